//! No law may depend on which slot a path sits in: the kernel hands slots out as paths come.

mod common;

use common::{every_coupled_law, every_law};
use narrows_laws::replay::trace;
use narrows_laws::{Conn, Control, Event, MAX_PATHS, Output, Private};

/// A connection whose path `i` sits in slot `slot[i]`.
struct Seated {
    conn: Conn,
    private: [Private; MAX_PATHS],
    slot: [usize; MAX_PATHS],
}

impl Seated {
    fn new(control: Control, slot: [usize; MAX_PATHS]) -> Seated {
        Seated { conn: Conn::new(control), private: Default::default(), slot }
    }

    fn event(&mut self, path: usize, event: &Event) -> (Output, i64) {
        let slot = self.slot[path];
        let output = self.conn.event(slot, &mut self.private[slot], event);
        (output, self.private[slot].credit())
    }
}

#[test]
fn windows_are_the_same_in_any_slot_to_the_bit() {
    let seatings = [[7, 6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 7, 4, 2, 5], [5, 7, 1, 2, 0, 3, 4, 6]];
    for control in every_coupled_law() {
        for paths in [2, 3, 5, 8] {
            for seed in 0..4 {
                let mut here = Seated::new(control, [0, 1, 2, 3, 4, 5, 6, 7]);
                let mut there = seatings.map(|slot| Seated::new(control, slot));
                trace(seed, paths, 10_000, |path, event| {
                    let expected = here.event(path, event);
                    for there in &mut there {
                        assert_eq!(there.event(path, event), expected, "{control}, {paths} paths");
                    }
                    expected.0
                });
            }
        }
    }
}

#[test]
fn the_same_events_give_the_same_windows() {
    for control in every_law() {
        let slots = [0, 1, 2, 3, 4, 5, 6, 7];
        let mut first = Seated::new(control, slots);
        let mut answers = Vec::new();
        let events = trace(9, 4, 20_000, |path, event| {
            answers.push(first.event(path, event));
            answers[answers.len() - 1].0
        });
        let mut second = Seated::new(control, slots);
        for ((path, event), answer) in events.iter().zip(&answers) {
            assert_eq!(second.event(*path as usize, event), *answer, "{control}");
        }
    }
}
