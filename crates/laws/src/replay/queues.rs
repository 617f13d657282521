//! Paths that meet in queues, so that a detector has something to decide on.

use super::{Host, Phase, Random};
use crate::conn::Output;
use crate::raw::{Event, EventKind, MAX_PATHS, State, flag};

/// Every [`super::trace`]'s kinds of event over `seconds` of a connection of `paths` paths, which go
/// through four queues: three that others fill and empty, each in its own time and depth, and one
/// that no other traffic fills. Where `seed` is even, paths 2n and 2n + 1 meet in a queue, else n
/// and n + 4. Of four seeds two give one-way delays. Acknowledgements come late, packets twice,
/// applications and paths pause.
///
/// Equal `seed`s and equal answers give equal traces. Returns the trace: path and event.
///
/// Panics if `paths` is 0 or above [`MAX_PATHS`].
pub fn queued(
    seed: u64,
    paths: usize,
    seconds: u64,
    mut answer: impl FnMut(usize, &Event) -> Output,
) -> Vec<(u32, Event)> {
    assert!((1..=MAX_PATHS).contains(&paths), "{paths} paths of at most {MAX_PATHS}");
    let mut random = Random(seed);
    let mut queues = [(40_000, 2_600_000), (9_000, 1_100_000), (110_000, 5_300_000), (0, 1)]
        .map(|(full_us, fills_us)| Queue { full_us, fills_us, ..Queue::default() });
    let mut members: Vec<Member> = (0..paths)
        .map(|path| Member {
            host: Host::new(path, &mut random),
            queue: if seed % 2 == 0 { path / 2 } else { path % 4 },
            seen_drops: 0,
            offset_us: 1_000_000_000 * (path as i64 % 3 - 1),
            tells_owd: seed & 2 != 0,
            silent_until_us: 0,
            limited_until_us: 0,
        })
        .collect();
    let mut trace = Vec::new();
    let mut now_us = 1_000_000;
    while now_us < 1_000_000 * (seconds + 1) {
        now_us += random.below(8_000 / paths as u64);
        let path = random.below(paths as u64) as usize;
        let member = &mut members[path];
        if now_us < member.silent_until_us {
            continue;
        }
        let event = member.next(now_us, &mut queues[member.queue], &mut random);
        member.host.obey(&event, answer(path, &event));
        trace.push((path as u32, event));
    }
    trace
}

/// A queue that other traffic fills, slower and slower, until it drops.
#[derive(Default)]
struct Queue {
    /// Its delay when it drops; 0: it never does.
    full_us: u64,
    /// How long filling takes on average.
    fills_us: u64,
    /// When it was emptied last, and until when it fills.
    since_us: u64,
    until_us: u64,
    /// What is left in it after a drop.
    left_us: u64,
    /// How often it dropped.
    drops: u64,
}

impl Queue {
    /// What a packet waits now.
    fn delay_us(&mut self, now_us: u64, random: &mut Random) -> u64 {
        if self.full_us == 0 {
            // Others' packets, now and then.
            return if random.one_in(6) { random.below(900) } else { random.below(100) };
        }
        while now_us >= self.until_us {
            self.since_us = self.until_us.max(now_us.saturating_sub(2 * self.fills_us));
            self.until_us = self.since_us + self.fills_us / 2 + random.below(self.fills_us);
            self.left_us = random.below(self.full_us / 4);
            self.drops += 1;
        }
        let empty = 1_024 * (self.until_us - now_us) / (self.until_us - self.since_us);
        let rise = self.full_us - self.left_us;
        self.left_us + rise - rise * empty * empty / (1_024 * 1_024) + random.below(300)
    }
}

/// A path and the queue on its way.
struct Member {
    host: Host,
    queue: usize,
    seen_drops: u64,
    /// Of the receiver's clock.
    offset_us: i64,
    tells_owd: bool,
    silent_until_us: u64,
    limited_until_us: u64,
}

impl Member {
    fn next(&mut self, now_us: u64, queue: &mut Queue, random: &mut Random) -> Event {
        let wait_us = queue.delay_us(now_us, random);
        let host = &mut self.host;
        match host.phase {
            Phase::Absent | Phase::Idle | Phase::Recovery { left: 0 } => host.next(now_us, random),
            Phase::Recovery { left } => {
                let mut ack = self.ack(now_us, wait_us, random);
                ack.delivered = ack.delivered.min(left);
                ack.flags |= flag::IN_RECOVERY;
                ack
            }
            Phase::Open | Phase::Loss => {
                let dropped = queue.drops != std::mem::replace(&mut self.seen_drops, queue.drops);
                if dropped && !random.one_in(3) {
                    let lost = 1 + random.below(4) as u32;
                    return Event {
                        lost,
                        ..host.event(now_us, EventKind::Recovery, State::Active)
                    };
                }
                match random.below(20_000) {
                    0..=3 => host.event(now_us, EventKind::Timeout, State::Active),
                    4..=9 if host.undoable => host.event(now_us, EventKind::Undo, State::Active),
                    10 => Event { marked: 1, ..host.event(now_us, EventKind::Ecn, State::Active) },
                    11 if random.one_in(2) => host.event(now_us, EventKind::Left, State::Free),
                    12..=14 => {
                        host.phase = Phase::Idle;
                        self.silent_until_us = now_us + random.below(4_000_000);
                        Event { state: State::Idle as u32, ..self.ack(now_us, wait_us, random) }
                    }
                    15..=18 => {
                        self.limited_until_us = now_us + random.below(3_000_000);
                        self.ack(now_us, wait_us, random)
                    }
                    _ => self.ack(now_us, wait_us, random),
                }
            }
        }
    }

    fn ack(&mut self, now_us: u64, wait_us: u64, random: &mut Random) -> Event {
        let late_us = if random.one_in(100) { random.below(200_000) } else { 0 };
        let rtt_us = self.host.base_rtt_us + wait_us + late_us;
        let mut ack = self.host.ack(now_us, rtt_us, random);
        if now_us < self.limited_until_us {
            ack.flags = ack.flags & !flag::CWND_LIMITED | flag::APP_LIMITED;
        }
        // Most that are late say so.
        if late_us > 0 && !random.one_in(5) {
            ack.flags |= flag::DWELL;
            ack.dwell_us = late_us as u32;
        }
        if random.one_in(80) {
            ack.flags |= flag::RETRANS;
            ack.rtt_us = 0;
        }
        if self.tells_owd && !random.one_in(50) {
            ack.flags |= flag::OWD;
            // 30 ppm of skew between the clocks.
            let owd_us = self.offset_us + wait_us as i64 + now_us as i64 * 30 / 1_000_000;
            ack.owd_us = owd_us as i32;
        }
        if random.one_in(200) {
            ack.flags |= flag::SRTT;
        }
        ack
    }
}
