//! What the window of a BBR path is, and what the path tells its group, after events in any order: losses,
//! timeouts and what takes them back, idleness, other masks, a subflow that leaves for another (c/laws/bbr/share.h).
//! What losses tell a group is version 1's alone: version 3 is told of none here.

use crate::common;

use common::orders::all_orders;
use common::paths::*;
use narrows_laws::{Event, EventKind, flag};
use proptest::prelude::*;

const LAWS: [&str; 2] = ["bbr", "bbr3"];
const SHARED: u64 = u64::MAX;
const APART: u64 = 0x8040_2010_0804_0201;

/// Of word[1]: all below the rate, of that the bit of a path that conserves packets, and no phase.
const SAYS: u32 = 127;
const CONSERVES: u32 = 32;
const NO_PHASE: u32 = 8;

/// Packets in flight at each acknowledgement and each timeout: few, as after losses.
const INFLIGHT: u32 = 2;

/// What happens, to one path or to both.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Fast recovery begins.
    Loss(usize),
    /// An acknowledgement of a packet of the same round.
    Acked(usize),
    Timeout(usize),
    Undo(usize),
    Recovered(usize),
    /// Data after idleness.
    Idle(usize),
    /// The subflow leaves, and another joins in its place.
    Join(usize),
    /// The detector finds the paths apart, or, where they are, together again.
    Masks,
    /// Both deliver for four round trips.
    Rounds,
}

const STEPS: [Step; 16] = [
    Step::Loss(0),
    Step::Loss(1),
    Step::Acked(0),
    Step::Acked(1),
    Step::Timeout(0),
    Step::Timeout(1),
    Step::Undo(0),
    Step::Undo(1),
    Step::Recovered(0),
    Step::Recovered(1),
    Step::Idle(0),
    Step::Idle(1),
    Step::Join(0),
    Step::Join(1),
    Step::Masks,
    Step::Rounds,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    Open,
    /// Fast recovery, of which nothing has been acknowledged.
    Begun,
    On,
}

/// A path as it must be.
#[derive(Clone, Copy, Debug)]
struct Side {
    cwnd: u32,
    /// The window to go back to: that of before recovery, or what it was raised to since.
    prior: u32,
    recovery: Recovery,
    /// The first round of fast recovery: what is in flight stays.
    conserves: bool,
    /// Its siblings know.
    says: bool,
    /// Startup is over.
    full: bool,
}

const JOINED: Side = Side {
    cwnd: 10,
    prior: 0,
    recovery: Recovery::Open,
    conserves: false,
    says: false,
    full: false,
};

impl Side {
    fn reduce(&mut self, recovery: Recovery) {
        let open = self.recovery == Recovery::Open;
        self.prior = if open { self.cwnd } else { self.prior.max(self.cwnd) };
        self.recovery = recovery;
    }

    fn recovered(&mut self) {
        if self.recovery != Recovery::Open {
            self.cwnd = self.cwnd.max(self.prior);
        }
        self.recovery = Recovery::Open;
        self.conserves = false;
    }
}

/// Two equal paths of a group, which no packet's loss bounds.
#[derive(Clone)]
struct Story {
    paths: Paths,
    sides: [Side; 2],
    together: bool,
    /// Version 1 conserves packets in recovery; version 3 has its bounds.
    conserving: bool,
}

impl Story {
    fn new(law: &str) -> Story {
        let of = Path::new(1000.0, 20_000, 1448);
        let mut paths = Paths::new(law, &[], &[of, of]);
        paths.run(1_000_000);
        let sides = [0, 1].map(|n| {
            let cwnd = paths.conn.path(n).cwnd;
            Side { cwnd, full: true, ..JOINED }
        });
        Story { paths, sides, together: true, conserving: law == "bbr" }
    }

    fn tell(&mut self, n: usize, kind: EventKind) {
        let event = self.paths.event(n, kind);
        let event = Event { inflight: INFLIGHT, flags: flag::APP_LIMITED, ..event };
        self.paths.report(n, event);
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        self.paths.now_us += 1_000;
        match step {
            Step::Loss(n) => {
                self.tell(n, EventKind::Recovery);
                let begun = if self.conserving { Recovery::Begun } else { Recovery::On };
                self.sides[n].reduce(begun);
            }
            Step::Acked(n) => self.acked(n),
            Step::Timeout(n) => {
                self.tell(n, EventKind::Timeout);
                self.sides[n].reduce(Recovery::On);
                self.sides[n].cwnd = INFLIGHT + 1;
                // It says nothing to a group until it is acknowledged.
                self.sides[n].says = false;
                if self.paths.conn.path(n).word[1] & SAYS != NO_PHASE {
                    return Err("a path whose timer fired goes on to say something".into());
                }
            }
            Step::Undo(n) => {
                self.tell(n, EventKind::Undo);
                self.sides[n].recovered();
            }
            Step::Recovered(n) => {
                self.tell(n, EventKind::Recovered);
                self.sides[n].recovered();
            }
            Step::Idle(n) => self.tell(n, EventKind::Restart),
            Step::Join(n) => {
                self.tell(n, EventKind::Left);
                let line = self.paths.conn.path(n);
                if (line.cwnd, line.bw, line.word) != (0, 0, [0, 0]) {
                    return Err(format!("a slot without a path: {line:?}"));
                }
                self.tell(n, EventKind::Joined);
                self.sides[n] = JOINED;
                self.together = true;
            }
            Step::Masks => {
                self.together = !self.together;
                self.paths.conn.set_masks(if self.together { SHARED } else { APART });
            }
            Step::Rounds => {
                self.paths.run(80_000);
                for (n, side) in self.sides.iter_mut().enumerate() {
                    side.cwnd = self.paths.conn.path(n).cwnd;
                    side.conserves = false;
                    side.says = false;
                    if side.recovery == Recovery::Begun {
                        side.recovery = Recovery::On;
                    }
                }
            }
        }
        self.check()
    }

    fn acked(&mut self, n: usize) {
        let of = self.paths.paths[n];
        let event = Event {
            delivered: 1,
            inflight: INFLIGHT,
            rate: of.bytes() as u64,
            rtt_us: of.rtt_us as u32,
            sample_delivered: 1_000,
            sample_inflight: of.bdp(),
            ..self.paths.event(n, EventKind::Acked)
        };
        self.paths.report(n, event);
        let cwnd = self.paths.conn.path(n).cwnd;
        let other = self.sides[1 - n];
        let side = &mut self.sides[n];
        side.says = side.conserves;
        // While one of a group conserves packets no window grows.
        let held = self.together && other.says && side.full;
        if side.recovery == Recovery::Begun {
            side.recovery = Recovery::On;
            side.conserves = true;
            side.cwnd = INFLIGHT + 1;
        } else if side.conserves || held {
            side.cwnd = side.cwnd.max(INFLIGHT + 1);
        } else if cwnd <= (side.cwnd + 1).max(4) {
            side.cwnd = cwnd; // towards that of the model of the path
        }
    }

    fn check(&self) -> Result<(), String> {
        for (n, side) in self.sides.iter().enumerate() {
            let line = self.paths.conn.path(n);
            if line.cwnd != side.cwnd || (line.word[1] & CONSERVES != 0) != side.says {
                return Err(format!("path {n} is {line:?}; expected {side:?}"));
            }
        }
        Ok(())
    }
}

#[test]
fn a_bbr_group_is_as_it_must_be_after_events_in_any_order() {
    for law in LAWS {
        println!("{law}");
        all_orders(&Story::new(law), &STEPS, &mut Vec::new(), 4, Story::take);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_a_bbr_group_is_after_longer_ones(
        law in 0..LAWS.len(),
        steps in prop::collection::vec(0..STEPS.len(), 5..24),
    ) {
        let mut story = Story::new(LAWS[law]);
        for step in steps {
            prop_assert_eq!(story.take(STEPS[step]), Ok(()), "{:?}", STEPS[step]);
        }
    }
}
