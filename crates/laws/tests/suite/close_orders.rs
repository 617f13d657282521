//! When a BBR path is advised as a backup, and when the advice ends, after events in any order
//! (c/laws/bbr/close.h).

use crate::common;

use common::orders::all_orders;
use common::paths::*;
use narrows_laws::{Advice, Event, EventKind, State, flag};
use proptest::prelude::*;

const SHARED: u64 = u64::MAX;
const APART: u64 = 0x8040_2010_0804_0201;

/// Rates of the two paths, packets/s: the second may not pay.
const RATES: [f64; 2] = [4000.0, 100.0];

/// What happens, to the second path where it is of one.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A second in which both together deliver less than half of what the best could.
    Held,
    /// A second in which they deliver all.
    Pays,
    /// A second in which the path is silent.
    Silent,
    /// A minute likewise.
    Minute,
    /// An acknowledgement while the host has it as a backup.
    Backup,
    /// Data after a pause of all.
    Idle,
    Loss,
    Timeout,
    Undo,
    /// The detector finds the paths together, or, where they are, apart again.
    Masks,
    /// The subflow leaves, and another joins in its place.
    Join,
}

const STEPS: [Step; 11] = [
    Step::Held,
    Step::Pays,
    Step::Silent,
    Step::Minute,
    Step::Backup,
    Step::Idle,
    Step::Loss,
    Step::Timeout,
    Step::Undo,
    Step::Masks,
    Step::Join,
];

/// The second path as it must be: five answers in a row give the advice, and five withdraw it; so does a sibling,
/// of a path that has been silent for a minute, the next time for two, and so on.
#[derive(Clone)]
struct Story {
    paths: Paths,
    together: bool,
    advised: bool,
    /// What the path itself takes its advice to be: a sibling may have withdrawn it.
    closed: bool,
    closings: u32,
    answers: u32,
    /// Packets that each path has delivered.
    delivered: [u64; 2],
    /// Of both, when it last asked, and when that was.
    before: u64,
    asked_ms: u64,
    seen_ms: u64,
}

impl Story {
    fn new() -> Story {
        // Packets of a kB, in which deliveries are counted.
        let of = RATES.map(|rate| Path::new(rate, 20_000, 1024));
        let paths = Paths::new("bbr+disjoint", &[("bbr.close", "0.5")], &of);
        let now_ms = paths.now_us / 1000;
        Story {
            paths,
            together: false,
            advised: false,
            closed: false,
            closings: 0,
            answers: 0,
            delivered: [0; 2],
            before: 0,
            asked_ms: now_ms,
            seen_ms: now_ms,
        }
    }

    fn now_ms(&self) -> u64 {
        self.paths.now_us / 1000
    }

    fn tell(&mut self, kind: EventKind) {
        let event = Event { flags: flag::APP_LIMITED, ..self.paths.event(1, kind) };
        self.paths.report(1, event);
        self.seen_ms = self.now_ms();
    }

    fn ack(&mut self, n: usize, delivered: u32, state: State) {
        let of = self.paths.paths[n];
        let event = Event {
            delivered,
            rate: of.bytes() as u64,
            rtt_us: of.rtt_us as u32,
            sample_delivered: of.bdp(),
            sample_inflight: of.bdp(),
            state: state as u32,
            ..self.paths.event(n, EventKind::Acked)
        };
        self.paths.report(n, event);
        self.delivered[n] += u64::from(delivered);
    }

    fn ask_from_now(&mut self) {
        self.before = self.delivered.iter().sum();
        self.asked_ms = self.now_ms();
    }

    /// The first path delivers so many packets in this time, and looks after its sibling.
    fn best_delivers(&mut self, ms: u64, packets: u32) {
        self.paths.now_us += 1000 * ms;
        self.ack(0, packets, State::Active);
        let silent = self.now_ms() - self.seen_ms;
        if self.advised && silent >= 60_000 << (self.closings - 1) {
            self.advised = false;
        }
    }

    /// The path has an acknowledgement. Has a sibling withdrawn its advice?
    fn reopened(&mut self, state: State) -> bool {
        self.ack(1, 10, state);
        self.seen_ms = self.now_ms();
        let reopened = self.closed && !self.advised;
        if reopened {
            self.closed = false;
            self.answers = 0;
            self.ask_from_now();
        }
        reopened
    }

    fn ask(&mut self) {
        if self.reopened(State::Active) {
            return;
        }
        let volume = self.delivered.iter().sum::<u64>() - self.before;
        let rate = volume as f64 * 1000.0 / (self.now_ms() - self.asked_ms) as f64;
        let no_gain = !self.together && rate < RATES[0] / 2.0;
        self.answers = if no_gain == self.closed { 0 } else { self.answers + 1 };
        self.ask_from_now();
        if self.answers == 5 {
            self.answers = 0;
            self.closed = !self.closed;
            self.advised = self.closed;
            self.closings = (self.closings + u32::from(self.closed)).min(5);
        }
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Held => {
                self.best_delivers(1_000, 1_600);
                self.ask();
            }
            Step::Pays => {
                self.best_delivers(1_000, 4_000);
                self.ask();
            }
            Step::Silent => self.best_delivers(1_000, 1_000),
            Step::Minute => self.best_delivers(60_000, 1_000),
            Step::Backup => {
                self.paths.now_us += 10_000;
                self.reopened(State::Backup);
            }
            Step::Idle => {
                self.paths.now_us += 3_000_000;
                self.tell(EventKind::Restart);
                self.ask_from_now();
            }
            Step::Loss => self.tell(EventKind::Recovery),
            Step::Timeout => self.tell(EventKind::Timeout),
            Step::Undo => self.tell(EventKind::Undo),
            Step::Masks => {
                self.together = !self.together;
                self.paths.conn.set_masks(if self.together { SHARED } else { APART });
            }
            Step::Join => {
                self.tell(EventKind::Left);
                if self.paths.conn.path(1).word != [0, 0] {
                    return Err(format!("a slot without a path: {:?}", self.paths.conn.path(1)));
                }
                self.tell(EventKind::Joined);
                (self.together, self.advised, self.closed) = (false, false, false);
                (self.closings, self.answers, self.delivered[1]) = (0, 0, 0);
                self.ask_from_now();
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let advice = if self.advised { Advice::Backup } else { Advice::None };
        let expected = (Advice::None, advice, self.closings);
        let conn = &self.paths.conn;
        let found = (conn.advice(0), conn.advice(1), (conn.path(1).word[0] >> 5) & 7);
        if found == expected {
            return Ok(());
        }
        Err(format!("advice and how often: {found:?}, expected {expected:?}"))
    }
}

/// From the first event on, from the fourth answer on, and from the fourth that would withdraw the advice.
#[test]
fn advice_is_as_it_must_be_after_events_in_any_order() {
    for (held, pays) in [(0, 0), (4, 0), (5, 4)] {
        let mut story = Story::new();
        let mut steps = [vec![Step::Held; held], vec![Step::Pays; pays]].concat();
        steps.iter().for_each(|step| story.take(*step).unwrap());
        assert_eq!(story.advised, held == 5);
        all_orders(&story, &STEPS, &mut steps, 5, Story::take);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Answers are more likely than what interrupts them, so that there are five in a row.
    #[test]
    fn so_advice_is_after_longer_ones(
        steps in prop::collection::vec(
            prop_oneof![6 => Just(0usize), 3 => Just(1usize), 3 => 2..STEPS.len()],
            6..80,
        ),
    ) {
        let mut story = Story::new();
        for step in steps {
            prop_assert_eq!(story.take(STEPS[step]), Ok(()), "{:?}", STEPS[step]);
        }
    }
}
