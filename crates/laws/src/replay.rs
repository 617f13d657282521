//! Traces of events for replays: the same trace through two builds of a control must give the same
//! windows. [`trace`] deterministically generates all kinds of events of a connection, and
//! [`queued`] sends its paths through queues for a minute or more, for detectors.
//!
//! It is not a simulator: losses are random, and clocks and RTTs vary, but no window fills a queue.
//! Events of every kind come in an order that a host may send, at windows from one packet to many
//! thousands.

mod queues;

use crate::conn::Output;
use crate::raw::{Event, EventKind, MAX_PATHS, State, flag};

pub use queues::queued;

/// Feeds `steps` events of `paths` paths to `answer`, which runs each through the law under test
/// and returns its output; the trace follows the law's windows, as a host does. Equal `seed`s and
/// equal outputs give equal traces. Returns the trace: path and event.
///
/// Panics if `paths` is 0 or above [`MAX_PATHS`].
pub fn trace(
    seed: u64,
    paths: usize,
    steps: usize,
    mut answer: impl FnMut(usize, &Event) -> Output,
) -> Vec<(u32, Event)> {
    assert!((1..=MAX_PATHS).contains(&paths), "{paths} paths of at most {MAX_PATHS}");
    let mut random = Random(seed);
    let mut hosts: Vec<Host> = (0..paths).map(|path| Host::new(path, &mut random)).collect();
    let mut trace = Vec::with_capacity(steps);
    let mut now_us = 1_000_000;
    while trace.len() < steps {
        now_us += random.below(2_000);
        let path = random.below(paths as u64) as usize;
        let event = hosts[path].next(now_us, &mut random);
        hosts[path].obey(&event, answer(path, &event));
        trace.push((path as u32, event));
    }
    trace
}

/// splitmix64 (Steele, Lea, Flood 2014): a trace needs no better one.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Absent,
    Open,
    Recovery { left: u32 },
    Loss,
    Idle,
}

/// One path as its host sees it.
struct Host {
    phase: Phase,
    base_rtt_us: u64,
    srtt8_us: u64,
    cwnd: u32,
    ssthresh: u32,
    undoable: bool,
    mss: u32,
}

impl Host {
    fn new(path: usize, random: &mut Random) -> Host {
        // 100 us to 400 ms, some paths alike.
        let base_rtt_us = [100, 5_000, 20_000, 20_000, 80_000, 400_000][random.below(6) as usize];
        let mss = if path % 2 == 0 { 1424 } else { 1360 };
        Host {
            phase: Phase::Absent,
            base_rtt_us,
            srtt8_us: 0,
            cwnd: 0,
            ssthresh: 0,
            undoable: false,
            mss,
        }
    }

    fn next(&mut self, now_us: u64, random: &mut Random) -> Event {
        match self.phase {
            Phase::Absent => self.event(now_us, EventKind::Joined, State::Joining),
            Phase::Recovery { left: 0 } => self.event(now_us, EventKind::Recovered, State::Active),
            Phase::Recovery { left } => {
                let mut ack = self.ack_of_any(now_us, random);
                ack.delivered = ack.delivered.min(left);
                ack.flags |= flag::IN_RECOVERY;
                if random.one_in(60) {
                    return self.event(now_us, EventKind::Timeout, State::Active);
                }
                ack
            }
            Phase::Idle => Event {
                cwnd: self.cwnd.min(10),
                ..self.event(now_us, EventKind::Restart, State::Active)
            },
            Phase::Open | Phase::Loss => {
                // Losses come about once per window, other things more rarely.
                if self.undoable && random.one_in(20) {
                    return self.event(now_us, EventKind::Undo, State::Active);
                }
                if random.one_in(u64::from(self.cwnd.clamp(20, 4_000))) {
                    let lost = 1 + random.below(3) as u32;
                    // As a simulator or QUIC knows it.
                    return Event {
                        lost,
                        sent_us: now_us.saturating_sub(self.base_rtt_us),
                        ..self.event(now_us, EventKind::Recovery, State::Active)
                    };
                }
                match random.below(2_000) {
                    0 => self.event(now_us, EventKind::Timeout, State::Active),
                    1 => self.event(now_us, EventKind::Timeout, State::Failed),
                    2..=4 => {
                        // Half of them as in the kernel, which does not know when it had left.
                        let sent_us = now_us.saturating_sub(self.base_rtt_us) * random.below(2);
                        let mark = self.event(now_us, EventKind::Ecn, State::Active);
                        Event { marked: 1, sent_us, ..mark }
                    }
                    5..=6 => self.event(now_us, EventKind::Left, State::Free),
                    7..=8 => {
                        // The path falls silent; its siblings see an idle state, or nothing.
                        self.phase = Phase::Idle;
                        Event { state: State::Idle as u32, ..self.ack_of_any(now_us, random) }
                    }
                    _ => self.ack_of_any(now_us, random),
                }
            }
        }
    }

    fn ack_of_any(&mut self, now_us: u64, random: &mut Random) -> Event {
        let rtt_us = self.base_rtt_us + random.below(self.base_rtt_us / 2 + 10);
        self.ack(now_us, rtt_us, random)
    }

    fn ack(&mut self, now_us: u64, rtt_us: u64, random: &mut Random) -> Event {
        self.srtt8_us = match self.srtt8_us {
            0 => rtt_us * 8,
            srtt8 => srtt8 - srtt8 / 8 + rtt_us,
        };
        let delivered = match random.below(10) {
            0..=6 => 1 + random.below(2),
            7..=8 => 2 + random.below(14),
            _ => 16 + random.below(48),
        } as u32;
        let limited = if random.one_in(30) { 0 } else { flag::CWND_LIMITED };
        let round = if random.one_in(12) { flag::ROUND_START } else { 0 };
        let paced = if random.one_in(50) { flag::PACED } else { 0 };
        // A host may clamp the window by itself.
        let cwnd = if random.one_in(500) { self.cwnd.div_ceil(2) } else { self.cwnd };
        // And remember a threshold.
        let ssthresh = match random.below(200) {
            0 => self.ssthresh.max(self.cwnd - self.cwnd / 4),
            1..=99 => self.ssthresh,
            _ => 0,
        };
        Event {
            delivered: delivered.min(self.cwnd.max(1)),
            flags: limited | round | paced,
            rtt_us: rtt_us as u32,
            sent_us: now_us.saturating_sub(rtt_us),
            rate: u64::from(self.cwnd) * u64::from(self.mss) * 1_000_000 / rtt_us,
            cwnd,
            ssthresh,
            ..self.event(now_us, EventKind::Acked, State::Active)
        }
    }

    fn event(&self, now_us: u64, kind: EventKind, state: State) -> Event {
        Event {
            now_us,
            kind: kind as u32,
            state: state as u32,
            inflight: self.cwnd,
            cwnd: self.cwnd,
            srtt8_us: self.srtt8_us as u32,
            mss: self.mss,
            ..Event::default()
        }
    }

    fn obey(&mut self, event: &Event, output: Output) {
        let kind = event.kind;
        self.cwnd = output.cwnd;
        self.ssthresh = output.ssthresh;
        if kind == EventKind::Joined as u32 {
            self.phase = Phase::Open;
            self.srtt8_us = 0;
            self.undoable = false;
        } else if kind == EventKind::Recovery as u32 {
            self.phase = Phase::Recovery { left: event.cwnd };
            self.undoable = true;
        } else if kind == EventKind::Timeout as u32 {
            self.phase = Phase::Loss;
            self.undoable = true;
        } else if kind == EventKind::Recovered as u32 || kind == EventKind::Restart as u32 {
            self.phase = Phase::Open;
        } else if kind == EventKind::Undo as u32 {
            self.phase = Phase::Open;
            self.undoable = false;
        } else if kind == EventKind::Left as u32 {
            self.phase = Phase::Absent;
        } else if kind == EventKind::Acked as u32 {
            match &mut self.phase {
                Phase::Recovery { left } => *left -= event.delivered.min(*left),
                Phase::Loss if self.cwnd >= self.ssthresh => self.phase = Phase::Open,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conn, Control, Private};

    fn run(seed: u64, control: Control) -> Vec<(u32, Event)> {
        let mut conn = Conn::new(control);
        let mut private = [Private::default(); MAX_PATHS];
        trace(seed, 4, 20_000, |path, event| conn.event(path, &mut private[path], event))
    }

    #[test]
    fn a_trace_repeats_and_knows_every_kind_of_event() {
        let trace = run(1, Control::OLIA);
        assert!(trace == run(1, Control::OLIA));
        assert!(trace != run(2, Control::OLIA));
        for kind in 1..=9 {
            assert!(trace.iter().any(|(_, event)| event.kind == kind), "kind {kind}");
        }
        let largest = trace.iter().map(|(_, event)| event.cwnd).max().unwrap();
        assert!(largest > 1_000, "windows up to {largest}");
    }

    fn run_queued(seed: u64) -> Vec<(u32, Event)> {
        let mut conn = Conn::new(Control::LIA);
        let mut private = [Private::default(); MAX_PATHS];
        queued(seed, 4, 70, |path, event| conn.event(path, &mut private[path], event))
    }

    #[test]
    fn a_queued_trace_repeats_and_has_all_that_a_sample_may_have() {
        let trace = run_queued(2);
        assert!(trace == run_queued(2));
        let mut all: Vec<_> = (0..4).flat_map(run_queued).collect();
        for kind in 1..=9 {
            assert!(all.iter().any(|(_, event)| event.kind == kind), "kind {kind}");
        }
        all.retain(|(_, event)| event.kind == EventKind::Acked as u32);
        let flags = [flag::OWD, flag::DWELL, flag::RETRANS, flag::APP_LIMITED, flag::IN_RECOVERY];
        for flag in flags.into_iter().chain([flag::SRTT]) {
            let with = all.iter().filter(|(_, event)| event.flags & flag != 0).count();
            assert!(with > 100 && with < all.len(), "flag {flag:#x}: {with} of {}", all.len());
        }
        // Paths are silent for longer than an interval, and have events to the end.
        let of_path = |path| -> Vec<u64> {
            let events = trace.iter().filter(|(of, _)| *of == path);
            events.map(|(_, event)| event.now_us).collect()
        };
        let times: Vec<_> = (0..4).map(of_path).collect();
        for times in &times {
            assert!(times.len() > 60 * 150, "{} events", times.len());
            assert!(times.last().unwrap() - times[0] > 60_000_000);
        }
        assert!(times.iter().any(|times| times.windows(2).any(|two| two[1] - two[0] > 700_000)));
    }
}
