//! Which path of a connection does not pay, whatever its control: without it the connection would deliver
//! more. `bbr` with `bbr.close` advises by itself; this is for the others. Whether an address pays that many
//! connections use is pooled ([`Pool`]). And which control and which links suit a machine ([`recommend`]).
//!
//! MPTCP delivers in order. What a path carries holds up all that was sent after it for the time D until it is
//! acknowledged, and of that no more than a buffer of B bytes is sent. So a connection delivers at most B / D,
//! however fast its other paths are, and a path does not pay where B / D is less than what the others deliver
//! without it. D is the path's round-trip time R with its queue, and as long as it takes for what the scheduler
//! gives it at a time: Linux gives 64 kB, a quarter of a second of 2 Mbit/s. The wait can be seen: the others
//! have room while that one is busy. What a path could deliver is what it delivered per time in which it had
//! something out ([`Sample::busy_us`]); or, as a window that is not full may have a little out all the time, a
//! window each round trip, if that is more. So
//!
//! ```text
//! held up for  D = R + 64 kB / what was acknowledged per time
//! with it      X = all that was acknowledged / time
//! without it   E = the sum over the others of max(acknowledged / busy time, window / R)
//! ```
//!
//! A window is what a law takes for room; that of a model law is twice that ([`window`]). Linux's own counts of
//! such waits do not tell. On 6.18, 40 Mbit/s beside 2 with a receive buffer of 400 kB, `tcpi_rwnd_limited` is 0
//! on both subflows, as the window is the connection's, and `tcpi_sndbuf_limited` an eighth of the busy time on
//! the fast one and a third on the slow one, where nothing waits.
//!
//! In `LOOKS` looks in a row X < `GAIN` E, of the path with the longest D, which was busy all the time, and none of
//! the others delivered `BUSY` of what it could: then it is to be tried without it, as long as that goes on. While a
//! path delivers nothing, all wait for that one, and none is suspected. E is too much where others share a
//! bottleneck, or where a window is larger than what the link can carry, so the trial decides: `SETTLE` looks after
//! it became a backup `LOOKS` must deliver 1 / `GAIN` times what was delivered before, or the path is regular again,
//! for a minute, and twice as long each time that it was wrong in a row, up to 16. One that was right to park
//! is tried again after a minute, and after twice as long each time that it did not pay, up to 16.
//!
//! A backup is one for the peer as well (RFC 8684, section 3.3.8). So what is delivered before and after is
//! what was sent and what was received, and a path on which a notable share of that comes in is not suspected.
//!
//! What it costs when wrong is what the path would have delivered in the ten seconds of a trial, at most one
//! in seven at first. Linux uses a backup only when no other path is left, so a path is regular again, too,
//! when in `LOOKS` looks in a row another is busy all the time and less is delivered than with it. An
//! application that sends less than E looks the same as one that waits: what it sends then goes over the
//! others, and a trial that gains nothing ends. One subflow is parked at a time.

mod look;
pub mod losses;
mod pool;
pub mod recommend;

pub use look::{Sample, window};
pub use pool::{Pool, Votes};

use look::{BUSY, GAIN, Part, drag};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Looks in a row, once a second.
const LOOKS: u32 = 5;
/// Looks until what the path had is delivered.
const SETTLE: u32 = 5;
/// So long a path is left alone, the first time; doubled to [`REST_MOST`].
const REST: Duration = Duration::from_secs(60);
const REST_MOST: Duration = Duration::from_secs(16 * 60);

/// What is thought of a connection's worst path.
#[derive(Clone, Debug)]
enum Thought<P> {
    /// All pay, but this one may not, since so many looks; `rate` is what was delivered in all, bytes/s,
    /// smoothed over [`LOOKS`].
    Pays { suspect: Option<P>, looks: u32, rate: f64 },
    /// It is a backup, to see what is delivered without it. Looks, and the sum of rates of those that count.
    Tried { without: Without<P>, looks: u32, sum: f64 },
    /// It is a backup until then.
    Parked { without: Without<P>, until: Duration },
}

/// A path that is a backup.
#[derive(Clone, Copy, Debug)]
struct Without<P> {
    subflow: P,
    /// With it this rate was delivered, bytes/s.
    before: f64,
    /// Looks in a row in which another path was busy all the time, and less was delivered than before.
    worse: u32,
}

/// How long a path is left as it is.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Was it right that it was tried?
    right: bool,
    length: Duration,
    until: Duration,
}

#[derive(Debug)]
struct Connection<P> {
    last: BTreeMap<P, Sample<P>>,
    at: Duration,
    thought: Thought<P>,
    rests: BTreeMap<P, Rest>,
}

/// Judges connections, by their tokens.
#[derive(Debug)]
pub struct Judge<P>(BTreeMap<u32, Connection<P>>);

impl<P> Default for Judge<P> {
    fn default() -> Self {
        Judge(BTreeMap::new())
    }
}

impl<P> Thought<P> {
    const INNOCENT: Thought<P> = Thought::Pays { suspect: None, looks: 0, rate: 0.0 };
}

impl<P: Copy + Ord> Judge<P> {
    /// Which subflows are to be backups, by a look at `now` (of a clock that begins anywhere).
    pub fn look(&mut self, now: Duration, samples: &[Sample<P>]) -> BTreeSet<P> {
        let mut by_token = BTreeMap::<u32, Vec<&Sample<P>>>::new();
        for sample in samples {
            by_token.entry(sample.token).or_default().push(sample);
        }
        self.0.retain(|token, _| by_token.contains_key(token));
        let mut backups = BTreeSet::new();
        for (token, all) in by_token {
            let new = || Connection {
                last: BTreeMap::new(),
                at: now,
                thought: Thought::INNOCENT,
                rests: BTreeMap::new(),
            };
            backups.extend(self.0.entry(token).or_insert_with(new).look(now, &all));
        }
        backups
    }
}

impl<P: Copy + Ord> Connection<P> {
    fn look(&mut self, now: Duration, all: &[&Sample<P>]) -> Option<P> {
        let seconds = (now - self.at).as_secs_f64();
        let parts: Vec<Part<P>> = all
            .iter()
            .filter_map(|one| Some(Part::between(self.last.get(&one.subflow)?, one)))
            .collect();
        self.last = all.iter().map(|one| (one.subflow, **one)).collect();
        self.at = now;
        if seconds > 0.0 && parts.len() == all.len() {
            self.think(now, &parts, seconds);
        }
        match self.thought {
            Thought::Pays { suspect, looks, .. } => suspect.filter(|_| looks >= LOOKS),
            Thought::Tried { without, .. } | Thought::Parked { without, .. } => {
                Some(without.subflow)
            }
        }
    }

    fn think(&mut self, now: Duration, parts: &[Part<P>], seconds: f64) {
        let delivered = parts.iter().map(|part| part.bytes + part.received).sum::<f64>() / seconds;
        let is_backup =
            |subflow: P| parts.iter().any(|part| part.subflow == subflow && part.backup);
        let worse = |without: Without<P>| {
            let busy = |part: &Part<P>| !part.backup && part.busy_s >= BUSY * seconds;
            let is = delivered < without.before && parts.iter().any(busy);
            Without { worse: if is { without.worse + 1 } else { 0 }, ..without }
        };
        self.thought = match self.thought.clone() {
            Thought::Pays { suspect: Some(subflow), looks, rate }
                if looks >= LOOKS && is_backup(subflow) =>
            {
                let without = worse(Without { subflow, before: rate, worse: 0 });
                Thought::Tried { without, looks: 1, sum: 0.0 }
            }
            Thought::Pays { suspect, looks, rate } => {
                match drag(parts, seconds).map(|found| found.subflow) {
                    Some(one) if self.is_left(one, now) => Thought::INNOCENT,
                    Some(one) => {
                        let (looks, rate) =
                            if suspect == Some(one) { (looks + 1, rate) } else { (1, 0.0) };
                        let rate = rate + (delivered - rate) / f64::from(looks.min(LOOKS));
                        Thought::Pays { suspect: Some(one), looks, rate }
                    }
                    None => Thought::INNOCENT,
                }
            }
            // Closed, or regular again for another reason: what was seen before says nothing any more.
            Thought::Tried { without, .. } | Thought::Parked { without, .. }
                if !is_backup(without.subflow) =>
            {
                Thought::INNOCENT
            }
            Thought::Tried { without, looks, sum } => {
                let (looks, sum) = (looks + 1, if looks >= SETTLE { sum + delivered } else { 0.0 });
                let without = worse(without);
                let over = looks >= SETTLE + LOOKS;
                if over && GAIN * sum / f64::from(LOOKS) >= without.before {
                    Thought::Parked { without, until: self.rest(without.subflow, true, now) }
                } else if over || without.worse >= LOOKS {
                    self.rest(without.subflow, false, now);
                    Thought::INNOCENT
                } else {
                    Thought::Tried { without, looks, sum }
                }
            }
            Thought::Parked { without, until } => match worse(without) {
                without if now < until && without.worse < LOOKS => {
                    Thought::Parked { without, until }
                }
                _ => Thought::INNOCENT,
            },
        };
    }

    /// Is a path left alone that was tried in vain?
    fn is_left(&self, subflow: P, now: Duration) -> bool {
        self.rests.get(&subflow).is_some_and(|rest| !rest.right && now < rest.until)
    }

    /// Until when a path is left as it is: twice as long as the last time after the same verdict, unless since
    /// then it was for as long beyond suspicion.
    fn rest(&mut self, subflow: P, right: bool, now: Duration) -> Duration {
        let last = self.rests.get(&subflow);
        let again = last.filter(|last| last.right == right && now < last.until + last.length);
        let length = again.map_or(REST, |last| (2 * last.length).min(REST_MOST));
        let until = now + length;
        self.rests.insert(subflow, Rest { right, length, until });
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection over a fast path and a slow one, as the kernel would show it, and who parks it.
    struct Net {
        judge: Judge<usize>,
        now: u64,
        acked: [u64; 2],
        received: [u64; 2],
        busy_us: [u64; 2],
        /// By their windows, Mbit/s.
        could: [f64; 2],
        backup: bool,
        /// Does anybody make it a backup?
        followed: bool,
        parked: Vec<u64>,
    }

    const SRTT_US: [u32; 2] = [30_000, 900_000];

    impl Net {
        fn new() -> Net {
            Net {
                judge: Judge::default(),
                now: 0,
                acked: [0; 2],
                received: [0; 2],
                busy_us: [0; 2],
                could: [0.0; 2],
                backup: false,
                followed: true,
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
                token: 7,
                subflow: path,
                acked: self.acked[path],
                received: self.received[path],
                busy_us: self.busy_us[path],
                srtt_us: SRTT_US[path],
                window: (self.could[path] * f64::from(SRTT_US[path]) / 8.0) as u64,
                backup: path == 1 && self.backup,
            };
            let backups = self.judge.look(Duration::from_secs(self.now), &[sample(0), sample(1)]);
            let is = backups.contains(&1);
            assert!(!backups.contains(&0), "the fast path pays");
            let is = is && self.followed;
            if is && !self.backup {
                self.parked.push(self.now);
            }
            self.backup = is;
        }

        /// Seconds in which all wait for the slow path while it is used.
        fn dragged(&mut self, seconds: u32) {
            for _ in 0..seconds {
                match self.backup {
                    true => self.second([96.0, 0.0], [1.0, 0.0]),
                    false => self.second([28.0, 2.0], [0.3, 1.0]),
                }
            }
        }

        fn wanted(&self) -> bool {
            let thought = &self.judge.0[&7].thought;
            !matches!(thought, Thought::Pays { looks, .. } if *looks < LOOKS)
        }
    }

    #[test]
    fn a_path_that_all_wait_for_is_parked_and_tried_ever_more_seldom() {
        let mut net = Net::new();
        net.dragged(600);
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
    fn a_parked_path_is_used_when_the_others_deliver_less_than_with_it() {
        for (seconds, after) in [(40, 5), (8, 5)] {
            let mut net = Net::new();
            net.dragged(seconds);
            assert!(net.backup);
            // An application that pauses needs no path.
            (0..2).for_each(|_| net.second([1.0, 0.0], [0.1, 0.0]));
            assert!(net.backup);
            let fell = net.now;
            while net.backup {
                net.second([0.1, 0.0], [1.0, 0.0]);
            }
            assert_eq!(net.now - fell, after, "parked for {seconds} s");
        }
    }

    /// A small window of the fast path is on its way all the time, so that it never looks idle.
    #[test]
    fn a_path_that_all_wait_for_is_parked_though_none_is_idle() {
        let mut net = Net::new();
        net.could = [96.0, 2.0];
        for _ in 0..60 {
            match net.backup {
                true => net.second([96.0, 0.0], [1.0, 0.0]),
                false => net.second([28.0, 2.0], [1.0, 1.0]),
            }
        }
        assert_eq!(net.parked, [6]);
        assert!(net.backup, "it pays to do without");
        // The same where the fast path has no window for more.
        let mut net = Net::new();
        net.could = [28.0, 2.0];
        (0..60).for_each(|_| net.second([28.0, 2.0], [1.0, 1.0]));
        assert_eq!(net.parked, [0; 0]);
    }

    #[test]
    fn while_a_path_is_dead_none_is_suspected() {
        let mut net = Net::new();
        net.could = [96.0, 2.0];
        (0..20).for_each(|_| net.second([0.0, 0.2], [1.0, 1.0]));
        (0..20).for_each(|_| net.second([28.0, 0.0], [1.0, 1.0]));
        assert_eq!(net.parked, [0; 0]);
    }

    #[test]
    fn a_path_on_which_the_peer_sends_is_no_backup() {
        // 2 Mbit/s up and 100 down.
        let mut net = Net::new();
        for _ in 0..60 {
            net.received[1] += 12_500_000;
            net.second([28.0, 2.0], [0.3, 1.0]);
        }
        assert_eq!(net.parked, [0; 0]);
        // What comes in over all paths: without this one more is sent, and less in all.
        for _ in 0..20 {
            net.received[0] += 10_000_000;
            net.received[1] += if net.backup { 0 } else { 1_000_000 };
            net.received[0] -= if net.backup { 8_000_000 } else { 0 };
            match net.backup {
                true => net.second([40.0, 0.0], [0.9, 0.0]),
                false => net.second([28.0, 2.0], [0.3, 1.0]),
            }
        }
        assert_eq!(net.parked.len(), 1);
        assert!(!net.backup, "a backup for ten seconds at most");
    }

    #[test]
    fn what_nobody_can_make_a_backup_is_wanted_while_it_drags_and_no_longer() {
        let mut net = Net::new();
        net.followed = false;
        net.dragged(20);
        assert!(net.wanted());
        net.second([96.0, 2.0], [1.0, 1.0]);
        assert!(!net.wanted());
        // The rate of before is that of the last looks: by that of all, it would be parked.
        (0..20).for_each(|_| net.second([2.0, 2.0], [0.02, 1.0]));
        (0..20).for_each(|_| net.second([28.0, 2.0], [0.3, 1.0]));
        net.followed = true;
        net.second([28.0, 2.0], [0.3, 1.0]);
        (0..10).for_each(|_| net.second([28.0, 0.0], [0.3, 0.0]));
        assert!(!net.backup);
    }

    #[test]
    fn a_trial_that_others_end_begins_anew() {
        let mut net = Net::new();
        net.dragged(12);
        assert!(net.backup);
        // Somebody makes it regular, and nobody can make it a backup for a time.
        net.backup = false;
        net.second([28.0, 2.0], [0.3, 1.0]);
        assert!(!net.wanted());
        net.dragged(5);
        assert!(net.backup && net.parked.len() == 2, "judged by five looks more: {:?}", net.parked);
        net.dragged(9);
        let thought = &net.judge.0[&7].thought;
        assert!(matches!(thought, Thought::Tried { .. }), "not by what came before: {thought:?}");
    }

    #[test]
    fn rests_after_one_verdict_do_not_make_those_after_the_other_longer() {
        let mut net = Net::new();
        // In vain three times, so that the next rest would be eight minutes.
        while net.parked.len() < 3 || net.backup {
            match net.backup {
                true => net.second([28.0, 0.0], [0.3, 0.0]),
                false => net.second([28.0, 2.0], [0.3, 1.0]),
            }
        }
        while net.parked.len() < 5 {
            net.dragged(1);
        }
        assert_eq!(net.parked[4] - net.parked[3], 75, "{:?}", net.parked);
        // Used without suspicion for long.
        (0..1000).for_each(|_| net.second([96.0, 2.0], [1.0, 1.0]));
        let from = net.parked.len();
        while net.parked.len() < from + 2 {
            net.dragged(1);
        }
        assert_eq!(net.parked[from + 1] - net.parked[from], 75, "{:?}", net.parked);
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
