//! Whether an address is to be a backup, by what all connections with a subflow from it show: the kernel's path
//! manager knows no connections, so what one gains and others lose is one decision.
//!
//! Of a connection, d is what it delivers over all its subflows, c what of that goes over the address; bytes/s, in
//! both directions, on average over `LOOKS` looks.
//!
//! ```text
//! while the address is regular
//!   gain  of one that has the advice   (1 / GAIN - 1) d   the least with which a trial goes on
//!   loss  of another one               c                  the most: what its other paths carry, they carry without it
//! while it is a backup
//!   gain  of one that has the advice   (1 - GAIN) d       the same, of what is delivered since
//!   loss  of another one               d before - d       if another of its paths was busy all the time and less was
//!                                                         delivered than before, in LOOKS looks in a row
//! ```
//!
//! An address becomes a backup where somebody asks for it and the sum of the gains is not below that of the losses:
//! so what all deliver together does not fall, if those who have the advice are right, which a trial shows. It is
//! regular again when nobody asks any more, or what is lost exceeds what is gained. This has a hysteresis without a
//! number of its own: it takes less than the most that others could lose to prevent it, and what they are seen to lose
//! to undo it. What one connection takes from another on a path that both use is gain here and loss there.
//!
//! Who cannot tell has no vote: who has been seen for fewer than `LOOKS` looks, as most short connections, and who
//! has no other path and so keeps this one (Linux uses a backup where nothing else lives). Who began while it was a
//! backup does not know what it would deliver with it. An idle connection votes with what it delivers, nothing.

use crate::LOOKS;
use crate::look::{BUSY, GAIN, Part, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What speaks for an address as a backup, and what against it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Votes {
    /// Has somebody the advice who can tell?
    pub asked: bool,
    /// What those who have it gain, bytes/s.
    pub gain: f64,
    /// What the others lose, bytes/s.
    pub loss: f64,
}

impl Votes {
    /// Is the address to be a backup?
    pub fn backup(&self) -> bool {
        self.asked && self.gain >= self.loss
    }

    fn join(&mut self, other: Votes) {
        self.asked |= other.asked;
        self.gain += other.gain;
        self.loss += other.loss;
    }
}

/// The values of the last [`LOOKS`] looks.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    values: [f64; LOOKS as usize],
    looks: u32,
}

impl Recent {
    fn push(&mut self, value: f64) {
        self.values[(self.looks % LOOKS) as usize] = value;
        self.looks += 1;
    }

    fn are_enough(&self) -> bool {
        self.looks >= LOOKS
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / f64::from(self.looks.clamp(1, LOOKS))
    }
}

/// What is known of a connection and an address that it has a subflow from.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// While it was regular: what went over it, and in all.
    carried: Recent,
    before: Recent,
    /// In all since it is a backup.
    since: Recent,
    /// Looks in a row in which it was missed.
    missed: u32,
}

impl Known {
    /// A look at the connection's subflows, of which those `here` are from the address.
    fn see<P: Copy>(
        &mut self,
        parts: &[Part<P>],
        here: impl Fn(P) -> bool,
        is_backup: bool,
        seconds: f64,
    ) {
        let rate = |part: &Part<P>| (part.bytes + part.received) / seconds;
        let delivered: f64 = parts.iter().map(rate).sum();
        if is_backup {
            self.since.push(delivered);
            let busy = |part: &Part<P>| !part.backup && part.busy_s >= BUSY * seconds;
            let misses = delivered < self.before.mean() && parts.iter().any(busy);
            self.missed = if misses { self.missed + 1 } else { 0 };
            return;
        }
        if self.since.looks > 0 {
            *self = Known::default();
        }
        self.carried.push(parts.iter().filter(|part| here(part.subflow)).map(rate).sum());
        self.before.push(delivered);
    }

    fn vote(&self, advised: bool, is_backup: bool) -> Votes {
        let knows = self.before.are_enough();
        let (mut gain, mut loss) = (0.0, 0.0);
        match (is_backup, advised) {
            (false, true) if knows => gain = (1.0 / GAIN - 1.0) * self.before.mean(),
            (false, false) if knows => loss = self.carried.mean(),
            (true, true) => gain = (1.0 - GAIN) * self.since.mean(),
            (true, false) if knows && self.missed >= LOOKS => {
                loss = (self.before.mean() - self.since.mean()).max(0.0);
            }
            _ => {}
        }
        Votes { asked: advised && (is_backup || knows), gain, loss }
    }
}

/// What connections show of addresses `A`; `P` names a subflow among those of all connections.
#[derive(Debug)]
pub struct Pool<P, A> {
    last: BTreeMap<P, Sample<P>>,
    at: Duration,
    known: BTreeMap<(u32, A), Known>,
}

impl<P, A> Default for Pool<P, A> {
    fn default() -> Self {
        Pool { last: BTreeMap::new(), at: Duration::ZERO, known: BTreeMap::new() }
    }
}

impl<P: Copy + Ord, A: Copy + Ord> Pool<P, A> {
    /// The votes about each address, by a look at `now` (of a clock that begins anywhere) at all subflows, each `from`
    /// an address, where these are `advised` to be backups.
    pub fn look(
        &mut self,
        now: Duration,
        samples: &[Sample<P>],
        advised: &BTreeSet<P>,
        from: impl Fn(P) -> A,
    ) -> BTreeMap<A, Votes> {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        let mut by_token = BTreeMap::<u32, Vec<&Sample<P>>>::new();
        for sample in samples {
            by_token.entry(sample.token).or_default().push(sample);
        }
        let (mut votes, mut known) = (BTreeMap::<A, Votes>::new(), BTreeMap::new());
        for (token, all) in by_token {
            let between = |one: &&Sample<P>| Some(Part::between(self.last.get(&one.subflow)?, one));
            let parts: Vec<Part<P>> = all.iter().filter_map(between).collect();
            let addresses: BTreeSet<A> = all.iter().map(|one| from(one.subflow)).collect();
            // Of one address: there is no other path.
            for address in addresses.iter().copied().filter(|_| addresses.len() > 1) {
                let here = |subflow: P| from(subflow) == address;
                let ours: Vec<_> = all.iter().filter(|one| here(one.subflow)).collect();
                let is_backup = ours.iter().any(|one| one.backup);
                let mut one = self.known.get(&(token, address)).copied().unwrap_or_default();
                if seconds > 0.0 && parts.len() == all.len() {
                    one.see(&parts, here, is_backup, seconds);
                }
                let is_advised = ours.iter().any(|one| advised.contains(&one.subflow));
                // Of several the path manager sets the first, whichever is meant.
                if !is_advised || ours.len() == 1 {
                    votes.entry(address).or_default().join(one.vote(is_advised, is_backup));
                }
                known.insert((token, address), one);
            }
        }
        self.last = samples.iter().map(|sample| (sample.subflow, *sample)).collect();
        (self.at, self.known) = (now, known);
        votes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: usize = 1;
    const SLOW: usize = 2;

    /// A connection over both paths, by its token.
    #[derive(Clone, Copy, Debug, Default)]
    struct One {
        token: u32,
        advised: bool,
        /// Mbit/s over the fast and the slow path.
        mbit: [f64; 2],
        /// Is the fast path busy all the time?
        busy: bool,
    }

    /// Connections that look at the same two paths.
    #[derive(Default)]
    struct Net {
        pool: Pool<(u32, usize), usize>,
        now: u64,
        sent: BTreeMap<(u32, usize), (f64, f64)>,
        backup: bool,
    }

    impl Net {
        /// Seconds in which these connections are open; what is said of the slow path at the last of them.
        fn seconds(&mut self, seconds: u32, all: &[One]) -> Votes {
            let mut last = Votes::default();
            for _ in 0..seconds {
                self.now += 1;
                let (mut samples, mut advised) = (Vec::new(), BTreeSet::new());
                for one in all {
                    for (path, mbit) in [FAST, SLOW].into_iter().zip(one.mbit) {
                        let subflow = (one.token, path);
                        let (acked, busy_us) = self.sent.entry(subflow).or_default();
                        *acked += mbit * 125_000.0;
                        *busy_us += if one.busy && path == FAST { 1e6 } else { 2e5 };
                        samples.push(Sample {
                            token: one.token,
                            subflow,
                            acked: *acked as u64,
                            received: 0,
                            busy_us: *busy_us as u64,
                            srtt_us: 20_000,
                            window: 100_000,
                            backup: self.backup && path == SLOW,
                        });
                    }
                    if one.advised {
                        advised.insert((one.token, SLOW));
                    }
                }
                let now = Duration::from_secs(self.now);
                let votes = self.pool.look(now, &samples, &advised, |(_, path)| path);
                last = votes.get(&SLOW).copied().unwrap_or_default();
            }
            last
        }
    }

    /// A download that waits for the slow path, and, once that is a backup, does not.
    const WAITS: One = One { token: 1, advised: true, mbit: [28.0, 2.0], busy: false };
    const FREED: One = One { mbit: [96.0, 0.0], busy: true, ..WAITS };

    fn mbit(rate: f64) -> f64 {
        rate * 8e-6
    }

    #[test]
    fn short_connections_neither_prevent_nor_undo_what_a_long_one_is_advised() {
        let mut net = Net::default();
        // A new dozen every three seconds, each with more on the slow path than the download gains at least.
        let dozen = |n: u32, mbit: [f64; 2]| -> Vec<One> {
            let short = |i| One { token: 100 * n + i, mbit, ..One::default() };
            std::iter::once(WAITS).chain((0..12).map(short)).collect()
        };
        let votes: Vec<bool> =
            (1..=3).map(|n| net.seconds(3, &dozen(n, [5.0, 1.0])).backup()).collect();
        assert_eq!(votes, [false, true, true], "five looks after the first");
        net.backup = true;
        for n in 4..14 {
            let mut all = dozen(n, [5.0, 0.0]);
            all[0] = FREED;
            assert!(net.seconds(3, &all).backup(), "{n}");
        }
    }

    #[test]
    fn a_page_that_is_read_for_twenty_seconds_forbids_nothing() {
        let mut net = Net::default();
        let page = One { token: 2, mbit: [2.0, 0.3], ..One::default() };
        let votes = net.seconds(8, &[WAITS, page]);
        // A quarter of 30, and what the page has on the slow path.
        assert!((mbit(votes.gain) - 7.5).abs() < 1e-3 && (mbit(votes.loss) - 0.3).abs() < 1e-3);
        assert!(votes.backup());
        net.backup = true;
        let page = One { mbit: [2.0, 0.0], ..page };
        let votes = net.seconds(12, &[FREED, page]);
        assert_eq!(votes.loss, 0.0, "it is not busy all the time: it wants no more");
        assert!(votes.backup());
        // Another one begins, and has never had the path.
        let other = One { token: 3, mbit: [1.0, 0.0], busy: true, ..One::default() };
        assert_eq!(net.seconds(20, &[FREED, other]).loss, 0.0);
    }

    #[test]
    fn who_could_lose_more_than_is_gained_prevents_it() {
        let mut net = Net::default();
        let trickle = One { mbit: [0.6, 0.1], ..WAITS };
        let long = One { token: 2, mbit: [40.0, 1.0], busy: true, ..One::default() };
        let votes = net.seconds(8, &[trickle, long]);
        assert!(votes.asked && !votes.backup(), "{votes:?}");
        // Until it has been idle for five looks.
        let idle = One { mbit: [0.0; 2], ..long };
        assert!(!net.seconds(4, &[trickle, idle]).backup());
        assert!(net.seconds(1, &[trickle, idle]).backup());
        // Nobody asks.
        let innocent = One { advised: false, ..trickle };
        assert!(!net.seconds(1, &[innocent, idle]).backup());
    }

    #[test]
    fn who_loses_more_than_is_gained_undoes_it_after_five_looks() {
        let mut net = Net::default();
        let long = One { token: 2, mbit: [10.0, 1.0], busy: true, ..One::default() };
        assert!(net.seconds(8, &[WAITS, long]).backup());
        net.backup = true;
        // Less than is gained, a fifth of 96.
        let fewer = One { mbit: [6.0, 0.0], ..long };
        let votes = net.seconds(20, &[FREED, fewer]);
        assert!((mbit(votes.loss) - 5.0).abs() < 1e-3 && votes.backup(), "{votes:?}");
        // What has the advice pauses.
        let pauses = One { mbit: [1.0, 0.0], busy: false, ..FREED };
        let looks = (1..=8).find(|_| !net.seconds(1, &[pauses, fewer]).backup());
        assert!(looks.is_some(), "the others need it more");
        // A look without a busy path is none of five in a row.
        let mut net = Net::default();
        net.seconds(8, &[WAITS, long]);
        net.backup = true;
        net.seconds(4, &[FREED, fewer]);
        net.seconds(1, &[FREED, One { busy: false, ..fewer }]);
        assert_eq!(net.seconds(4, &[FREED, fewer]).loss, 0.0);
        assert!(net.seconds(1, &[FREED, fewer]).loss > 0.0);
    }

    #[test]
    fn what_is_known_begins_anew_when_the_path_is_regular_again() {
        let mut net = Net::default();
        assert!(net.seconds(8, &[WAITS]).backup());
        net.backup = true;
        assert!(net.seconds(8, &[FREED]).backup());
        net.backup = false;
        assert!(!net.seconds(4, &[WAITS]).asked);
        assert!(net.seconds(1, &[WAITS]).asked);
    }

    /// Advice that a law gave before anybody looked: what is a backup stays one at the first look.
    #[test]
    fn a_backup_that_is_found_stays_one_while_it_is_advised() {
        let mut net = Net { backup: true, ..Net::default() };
        assert!(net.seconds(1, &[FREED]).backup());
        assert!(!net.seconds(1, &[One { advised: false, ..FREED }]).backup());
    }

    #[test]
    fn who_has_no_other_path_and_who_has_several_from_the_address_do_not_ask() {
        let sample = |subflow, n: u64| Sample {
            token: 1,
            subflow,
            acked: 1_000_000 * n,
            received: 0,
            busy_us: 1_000_000 * n,
            srtt_us: 20_000,
            window: 100_000,
            backup: false,
        };
        // Advice is about subflow 2.
        let last = |subflows: &[usize], from: fn(usize) -> char| {
            let (mut pool, mut votes) = (Pool::<usize, char>::default(), BTreeMap::new());
            for n in 1..10 {
                let samples: Vec<_> = subflows.iter().map(|one| sample(*one, n)).collect();
                votes = pool.look(Duration::from_secs(n), &samples, &BTreeSet::from([2]), from);
            }
            votes
        };
        assert!(last(&[2], |_| 'a').is_empty());
        assert!(!last(&[1, 2, 3], |one| if one == 1 { 'a' } else { 'b' }).contains_key(&'b'));
        let votes = last(&[1, 2], |one| if one == 1 { 'a' } else { 'b' });
        assert!(votes[&'b'].asked && !votes[&'a'].asked);
    }
}
