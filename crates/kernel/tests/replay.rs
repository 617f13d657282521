//! The laws decide inside the kernel as they do natively, bit by bit, and its verifier accepts them
//! at a bounded price.

use narrows_kernel::replay::{Outcome, Replay};
use narrows_laws::catalogue::{DETECTORS, LAWS, STARTS};
use narrows_laws::replay::trace;
use narrows_laws::{Conn, Control, Event, MAX_PATHS, Private};

/// The verifier itself gives up at a million.
const VERIFIED_INSNS_MAX: u32 = 200_000;

const STEPS: usize = 20_000;
const SEEDS: u64 = 4;

/// Every law under every detector that does not listen, and with every slow start.
fn controls() -> impl Iterator<Item = Control> {
    LAWS.iter().flat_map(|law| {
        let own = Control::of(law.item);
        let detectors = DETECTORS.iter().filter(|d| !d.item.listens());
        let detectors = detectors.map(move |d| Control { detector: d.item, ..own });
        let starts = STARTS.iter().map(move |s| Control { start: s.item, ..own });
        detectors.chain(starts.filter(move |control| *control != own))
    })
}

/// False, and a word on the terminal, where this process cannot load BPF programs.
fn can_load(test: &str) -> bool {
    let available = narrows_kernel::available();
    if let Err(reason) = available {
        println!("{test}: skipped, {reason}");
    }
    available.is_ok()
}

/// A trace, and what the law compiled for this machine made of each of its events.
fn record(control: Control, paths: usize, seed: u64) -> (Vec<(u32, Event)>, Vec<Outcome>) {
    let mut conn = Conn::new(control);
    let mut private = [Private::default(); MAX_PATHS];
    let mut outcomes = Vec::with_capacity(STEPS);
    let events = trace(seed, paths, STEPS, |path, event| {
        let output = conn.event(path, &mut private[path], event);
        let masks = u64::from_le_bytes(std::array::from_fn(|i| conn.mask(i)));
        outcomes.push(Outcome { masks, private: private[path], path: *conn.path(path) });
        output
    });
    (events, outcomes)
}

#[test]
fn recorded_events_get_the_same_windows_in_the_kernel() {
    if !can_load("replay in the kernel") {
        return;
    }
    let mut compared = 0;
    for control in controls() {
        let mut kernel = Replay::load(control).unwrap();
        for paths in [1, 2, 4, 8] {
            for seed in 0..SEEDS {
                let (events, native) = record(control, paths, seed);
                kernel.reset().unwrap();
                let replayed = kernel.run(&events).unwrap();
                assert_eq!(native.len(), replayed.len());
                for (n, (native, replayed)) in native.iter().zip(&replayed).enumerate() {
                    assert_eq!(
                        native, replayed,
                        "{control}, native left, kernel right, after event {n} of {paths} paths, \
                         seed {seed}: {:?}",
                        events[n]
                    );
                    compared += 1;
                }
            }
        }
    }
    println!("replay in the kernel: {compared} outcomes equal bit by bit");
}

#[test]
fn the_verifier_walks_a_bounded_number_of_instructions() {
    if !can_load("verifier instructions") {
        return;
    }
    println!("verifier instructions (bound {VERIFIED_INSNS_MAX})");
    for control in controls() {
        for (program, insns) in Replay::load(control).unwrap().verified_insns().unwrap() {
            println!("  {:<16} {program:<10} {insns:>8}", control.to_string());
            assert!(insns <= VERIFIED_INSNS_MAX, "{control}: {program} takes {insns}");
        }
    }
}
