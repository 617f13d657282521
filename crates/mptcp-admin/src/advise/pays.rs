//! Which path of a connection does not pay, whatever its control: without it the connection would deliver
//! more. `bbr` with `bbr.close` advises by itself; this is for the others.
//!
//! MPTCP delivers in order. What the slowest path carries holds up all that was sent after it, for up to
//! that path's round-trip time R with its queue, and of that no more than a buffer of B bytes is sent. So a
//! connection delivers at most B / R, however fast its other paths are, and a path does not pay where
//! B / R is less than what the others deliver without it: 2 Mbit/s and 600 ms beside 100 Mbit/s do not pay
//! below 9 MB. The wait can be seen: the other paths have nothing to send while that one is busy. A path's
//! goodput per busy time ([`Sample::busy_us`]) is what it delivers when it has something to send, so
//!
//! ```text
//! with it      X = all that was acknowledged / time
//! without it   E = the sum over the others of what was acknowledged on it / its busy time
//! ```
//!
//! In [`LOOKS`] looks in a row X < [`GAIN`] E, of the path with the longest round-trip time, which was busy
//! all the time: then it is tried without it. E is too much where others share a bottleneck or have a full
//! buffer of their own, so the trial decides: [`SETTLE`] looks later [`LOOKS`] must deliver 1 / [`GAIN`] times
//! what was delivered before, or the path is regular again, for a minute, and twice as long each time that it
//! was wrong, up to 16. One that was right to park is tried again after a minute, and after twice as long
//! each time that it did not pay, up to 16.
//!
//! What it costs when wrong is what the path would have delivered in the ten seconds of a trial, at most one
//! in seven at first. An application that sends less than E looks the same as one that waits: what it sends
//! then goes over the others, and a trial that gains nothing ends. One subflow is parked at a time.

use super::Subflow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// As much as a path may cost before it is tried without it, a share of what is delivered.
const GAIN: f64 = 0.8;
/// Looks in a row, once a second.
const LOOKS: u32 = 5;
/// Looks until what the path had is delivered.
const SETTLE: u32 = 5;
/// A path is busy all the time, and one waits that is less busy than this.
const BUSY: f64 = 0.9;
/// So long a path is left alone, the first time; doubled to [`REST_MOST`].
const REST: Duration = Duration::from_secs(60);
const REST_MOST: Duration = Duration::from_secs(16 * 60);

/// A subflow at a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub subflow: Subflow,
    /// Bytes acknowledged since it began.
    pub acked: u64,
    /// Time since it began in which there was something to send, or out, µs (`tcpi_busy_time`).
    pub busy_us: u64,
    pub srtt_us: u32,
    pub backup: bool,
}

/// What a subflow did between two looks.
#[derive(Clone, Copy, Debug)]
struct Part {
    subflow: Subflow,
    bytes: f64,
    busy_s: f64,
    srtt_us: u32,
    backup: bool,
}

/// What is thought of a connection's worst path.
#[derive(Clone, Debug)]
enum Thought {
    /// All pay, but this one may not, since so many looks in which so much was delivered in all, bytes/s.
    Pays { suspect: Option<Subflow>, looks: u32, rate: f64 },
    /// Tried without it; before it was this rate, bytes/s. Looks, and the sum of rates of those that count.
    Tried { subflow: Subflow, before: f64, looks: u32, sum: f64 },
    /// It is a backup until then.
    Parked { subflow: Subflow, until: Duration },
}

#[derive(Debug)]
struct Connection {
    last: BTreeMap<Subflow, Sample>,
    at: Duration,
    thought: Thought,
    /// How long the next rest is of a path that pays, and of one that does not.
    rests: BTreeMap<Subflow, Duration>,
    /// Until when a path is left alone.
    left: BTreeMap<Subflow, Duration>,
}

/// Judges the connections of a namespace.
#[derive(Debug, Default)]
pub(super) struct Judge(BTreeMap<u32, Connection>);

const INNOCENT: Thought = Thought::Pays { suspect: None, looks: 0, rate: 0.0 };

impl Judge {
    /// Which subflows are to be backups, by a look at `now` (of a clock that begins anywhere).
    pub fn look(&mut self, now: Duration, samples: &[Sample]) -> BTreeSet<Subflow> {
        let mut by_token = BTreeMap::<u32, Vec<&Sample>>::new();
        for sample in samples {
            by_token.entry(sample.subflow.token).or_default().push(sample);
        }
        self.0.retain(|token, _| by_token.contains_key(token));
        let mut backups = BTreeSet::new();
        for (token, all) in by_token {
            let new = || Connection {
                last: BTreeMap::new(),
                at: now,
                thought: INNOCENT,
                rests: BTreeMap::new(),
                left: BTreeMap::new(),
            };
            backups.extend(self.0.entry(token).or_insert_with(new).look(now, &all));
        }
        backups
    }
}

impl Connection {
    fn look(&mut self, now: Duration, all: &[&Sample]) -> Option<Subflow> {
        let seconds = (now - self.at).as_secs_f64();
        let parts: Vec<Part> = all
            .iter()
            .filter_map(|one| {
                let last = self.last.get(&one.subflow)?;
                Some(Part {
                    subflow: one.subflow,
                    bytes: one.acked.saturating_sub(last.acked) as f64,
                    busy_s: one.busy_us.saturating_sub(last.busy_us) as f64 / 1e6,
                    srtt_us: one.srtt_us,
                    backup: one.backup,
                })
            })
            .collect();
        self.last = all.iter().map(|one| (one.subflow, **one)).collect();
        self.at = now;
        if seconds > 0.0 && parts.len() == all.len() {
            self.think(now, &parts, seconds);
        }
        match self.thought {
            Thought::Tried { subflow, .. } | Thought::Parked { subflow, .. } => Some(subflow),
            Thought::Pays { .. } => None,
        }
    }

    fn think(&mut self, now: Duration, parts: &[Part], seconds: f64) {
        let delivered = parts.iter().map(|part| part.bytes).sum::<f64>() / seconds;
        let here = |subflow| parts.iter().find(|part| part.subflow == subflow);
        self.left.retain(|_, until| *until > now);
        self.thought = match self.thought.clone() {
            Thought::Pays { suspect, looks, rate } => match suspected(parts, delivered, seconds) {
                Some(one) if self.left.contains_key(&one) => INNOCENT,
                Some(one) => {
                    let again = suspect == Some(one);
                    let (looks, rate) =
                        if again { (looks + 1, rate + delivered) } else { (1, delivered) };
                    match looks >= LOOKS {
                        true => Thought::Tried {
                            subflow: one,
                            before: rate / f64::from(looks),
                            looks: 0,
                            sum: 0.0,
                        },
                        false => Thought::Pays { suspect: Some(one), looks, rate },
                    }
                }
                None => INNOCENT,
            },
            Thought::Tried { subflow, .. } | Thought::Parked { subflow, .. }
                if here(subflow).is_none() =>
            {
                INNOCENT
            }
            // Nobody has made it a backup yet, and perhaps nobody can.
            Thought::Tried { subflow, .. } if here(subflow).is_some_and(|part| !part.backup) => {
                self.thought.clone()
            }
            Thought::Tried { subflow, before, looks, sum } => {
                let (looks, sum) = (looks + 1, if looks >= SETTLE { sum + delivered } else { 0.0 });
                match looks >= SETTLE + LOOKS {
                    true if GAIN * sum / f64::from(LOOKS) >= before => {
                        Thought::Parked { subflow, until: now + self.rest(subflow) }
                    }
                    true => {
                        let until = now + self.rest(subflow);
                        self.left.insert(subflow, until);
                        INNOCENT
                    }
                    false => Thought::Tried { subflow, before, looks, sum },
                }
            }
            Thought::Parked { until, .. } if now >= until => INNOCENT,
            parked @ Thought::Parked { .. } => parked,
        };
    }

    /// How long a path is left as it is now; the next time twice as long.
    fn rest(&mut self, subflow: Subflow) -> Duration {
        let next = self.rests.entry(subflow).or_insert(REST);
        let rest = *next;
        *next = (rest * 2).min(REST_MOST);
        rest
    }
}

/// The path with the longest round-trip time, if the others wait for it and would deliver more.
fn suspected(parts: &[Part], delivered: f64, seconds: f64) -> Option<Subflow> {
    let used: Vec<&Part> = parts.iter().filter(|part| !part.backup && part.busy_s > 0.0).collect();
    let worst = used.iter().max_by_key(|part| part.srtt_us)?;
    let others = || used.iter().filter(|part| part.subflow != worst.subflow);
    let wait = others().next().is_some() && others().all(|part| part.busy_s < BUSY * seconds);
    let without: f64 = others().map(|part| part.bytes / part.busy_s).sum();
    (wait && worst.busy_s >= BUSY * seconds && delivered < GAIN * without).then_some(worst.subflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subflow(token: u32, path: u8) -> Subflow {
        let local = format!("10.88.{path}.1:4000").parse().unwrap();
        Subflow { token, local, remote: "10.99.0.1:80".parse().unwrap() }
    }

    /// A connection over a fast path and a slow one, as the kernel would show it, and who parks it.
    struct Net {
        judge: Judge,
        now: u64,
        acked: [u64; 2],
        busy_us: [u64; 2],
        backup: bool,
        parked: Vec<u64>,
    }

    impl Net {
        fn new() -> Net {
            Net {
                judge: Judge::default(),
                now: 0,
                acked: [0; 2],
                busy_us: [0; 2],
                backup: false,
                parked: Vec::new(),
            }
        }

        /// A second in which the paths deliver so many Mbit/s, and are busy that share of it.
        fn second(&mut self, mbit: [f64; 2], busy: [f64; 2]) {
            self.now += 1;
            for path in [0, 1] {
                self.acked[path] += (mbit[path] * 125_000.0) as u64;
                self.busy_us[path] += (busy[path] * 1e6) as u64;
            }
            let sample = |path: usize| Sample {
                subflow: subflow(7, path as u8),
                acked: self.acked[path],
                busy_us: self.busy_us[path],
                srtt_us: [30_000, 900_000][path],
                backup: path == 1 && self.backup,
            };
            let backups = self.judge.look(Duration::from_secs(self.now), &[sample(0), sample(1)]);
            let is = backups.contains(&subflow(7, 1));
            assert!(!backups.contains(&subflow(7, 0)), "the fast path pays");
            if is && !self.backup {
                self.parked.push(self.now);
            }
            self.backup = is;
        }
    }

    #[test]
    fn a_path_that_all_wait_for_is_parked_and_tried_ever_more_seldom() {
        let mut net = Net::new();
        for _ in 0..600 {
            match net.backup {
                true => net.second([96.0, 0.0], [1.0, 0.0]),
                false => net.second([28.0, 2.0], [0.3, 1.0]),
            }
        }
        // Five looks, ten of the trial, a minute; then two, four.
        assert_eq!(net.parked[0], 6);
        let gaps: Vec<u64> = net.parked.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(gaps, [75, 135, 255], "{:?}", net.parked);
    }

    #[test]
    fn a_path_that_pays_after_all_costs_a_trial_and_is_left_alone_for_longer_each_time() {
        let mut net = Net::new();
        let mut without = 0;
        for _ in 0..1200 {
            without += u32::from(net.backup);
            // The fast path is slow for another reason: without the other it delivers no more.
            match net.backup {
                true => net.second([28.0, 0.0], [0.3, 0.0]),
                false => net.second([28.0, 2.0], [0.3, 1.0]),
            }
        }
        assert_eq!(net.parked.len(), 5, "{:?}", net.parked);
        assert_eq!(without, 50, "ten seconds each");
    }

    #[test]
    fn a_slow_path_that_nobody_waits_for_is_used() {
        let mut net = Net::new();
        (0..100).for_each(|_| net.second([96.0, 2.0], [1.0, 1.0]));
        assert_eq!(net.parked, [0; 0]);
        // An application that pauses, or waits now and then.
        (0..100).for_each(|_| net.second([5.0, 0.2], [0.2, 0.3]));
        for n in 0..100 {
            let waits = n % 5 != 0;
            net.second(
                [if waits { 28.0 } else { 90.0 }, 2.0],
                [if waits { 0.3 } else { 1.0 }, 1.0],
            );
        }
        assert_eq!(net.parked, [0; 0]);
    }

    #[test]
    fn a_connection_that_ends_or_changes_its_paths_begins_anew() {
        let mut net = Net::new();
        (0..5).for_each(|_| net.second([28.0, 2.0], [0.3, 1.0]));
        net.judge.look(Duration::from_secs(net.now), &[]);
        assert!(net.judge.0.is_empty());
        (0..5).for_each(|_| net.second([28.0, 2.0], [0.3, 1.0]));
        assert_eq!(net.parked, [0; 0], "four looks since");
        net.second([28.0, 2.0], [0.3, 1.0]);
        assert_eq!(net.parked.len(), 1);
    }
}
