//! Short connections, judged in turn by the addresses of their paths.
//!
//! A connection that is over before `LOOKS` looks is never judged, and has no vote ([`Pool`](crate::Pool)): of downloads
//! that are a connection each none would have a path tried, however long all of them wait for it. So while they have
//! been looked at fewer than `LOOKS` times, those with a subflow from an address are judged together, by the rule of one
//! connection ([the crate](crate)). After that each speaks for itself. A look at them has
//!
//! ```text
//! n          those that were busy all the time, on any path
//! h          those of them that the path from the address holds up
//! held up    if h > n / 2
//! delivered  by each of the n, on average
//! ```
//!
//! and is none where n = 0. After a minute of these all begins again, a trial without a verdict, too: who is slowed down
//! by it lasts longer, and is seen.
//!
//! **How often an address is tried that holds up nobody.** Let a look at a connection be wrong with probability p. Of n
//! that are wrong independently of each other more than half are with p at most, where p <= 1/2 (Condorcet's jury
//! theorem: p for n = 1, p² for 2, 3 p² - 2 p³ for 3). They share links, so they are not independent; but h is n p on
//! average whatever ties them, and above n / 2 with less than 2 p (Markov's inequality). So for `LOOKS` looks in a row it
//! is p^5, that of one connection, to (2 p)^5: for p = 0.1 between 1e-5 and 3e-4. If one of n were enough, it would be
//! 0.12 for n = 10. That takes looks to be independent of those before, which those at one connection are least: of one
//! there are fewer than `LOOKS`.
//!
//! **How often such a trial is taken for a gain.** It compares two means of `LOOKS` looks. If what connections deliver
//! has a standard deviation of v of its mean, and each look is at another one, the ratio errs by v sqrt(2 / 5): for
//! v = 1/4 a ratio of 1 / `GAIN` comes by chance in 8 of 100. A minute later the address is judged again, as after any
//! trial.

use crate::look::{GAIN, Part, Sample, Shown, by_token};
use crate::mind::{LOOKS, Mind, REST, REST_MOST};
use crate::pool::{Recent, Votes};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What short connections ask for.
#[derive(Debug)]
pub struct Asked<P, A> {
    /// What they say of each address that they want to be a backup.
    pub votes: BTreeMap<A, Votes>,
    /// Their subflows from these.
    pub subflows: BTreeSet<P>,
}

/// A look at those with a subflow from an address.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// How many were busy all the time.
    n: u32,
    /// How many of them it holds up.
    held: u32,
    /// What they delivered together, bytes/s.
    delivered: f64,
    /// Is it a backup of any?
    backup: bool,
}

/// What they show of an address.
#[derive(Debug)]
struct Turn<A> {
    mind: Mind<A>,
    /// What was delivered together at each look, also if there was none of them, bytes/s.
    delivered: Recent,
    /// When one was seen last.
    at: Duration,
}

/// What short connections show of addresses `A`; `P` names a subflow among those of all connections.
#[derive(Debug)]
pub struct Turns<P, A> {
    last: BTreeMap<P, Sample<P>>,
    at: Duration,
    /// Looks at each connection, by its token.
    looks: BTreeMap<u32, u32>,
    turns: BTreeMap<A, Turn<A>>,
}

impl<P, A> Default for Turns<P, A> {
    fn default() -> Self {
        Turns {
            last: BTreeMap::new(),
            at: Duration::ZERO,
            looks: BTreeMap::new(),
            turns: BTreeMap::new(),
        }
    }
}

impl<P: Copy + Ord, A: Copy + Ord> Turns<P, A> {
    /// What is asked for after a look at `now` (of a clock that begins anywhere) at all subflows of the connections that
    /// are judged, each `from` an address.
    pub fn look(
        &mut self,
        now: Duration,
        samples: &[Sample<P>],
        from: impl Fn(P) -> A,
    ) -> Asked<P, A> {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        let (mut seen, mut looks) = (BTreeMap::<A, Seen>::new(), BTreeMap::new());
        let mut short = Vec::new();
        for (token, all) in by_token(samples) {
            let parts = Part::all(&self.last, &all).filter(|_| seconds > 0.0);
            let before = self.looks.get(&token).copied().unwrap_or(0);
            let n = before + u32::from(parts.is_some());
            looks.insert(token, n);
            if n >= LOOKS {
                continue;
            }
            let mut addresses = BTreeMap::<A, Vec<P>>::new();
            for one in &all {
                addresses.entry(from(one.subflow)).or_default().push(one.subflow);
            }
            // Of one address: there is no other path.
            if addresses.len() < 2 {
                continue;
            }
            let shown = parts.map(|parts| Shown::of(&parts, seconds)).filter(|shown| shown.busy);
            for (address, ours) in addresses {
                // Of several the path manager sets the first, whichever is meant.
                let [subflow] = ours[..] else { continue };
                short.push((address, subflow));
                if let Some(shown) = &shown {
                    let seen = seen.entry(address).or_default();
                    seen.n += 1;
                    seen.held += u32::from(shown.drag == Some(subflow));
                    seen.delivered += shown.delivered;
                    seen.backup |= shown.backups.contains(&subflow);
                }
            }
        }
        self.last = samples.iter().map(|sample| (sample.subflow, *sample)).collect();
        (self.at, self.looks) = (now, looks);
        for address in seen.keys() {
            let new = || Turn { mind: Mind::default(), delivered: Recent::default(), at: now };
            self.turns.entry(*address).or_insert_with(new);
        }
        self.turns.retain(|address, turn| {
            turn.see(*address, seen.get(address).copied().unwrap_or_default(), now);
            // Until what was thought makes no difference any more.
            now < turn.at + 2 * REST_MOST
        });
        let votes: BTreeMap<A, Votes> =
            self.turns.iter().filter_map(|(at, turn)| Some((*at, turn.vote()?))).collect();
        let asked = short.into_iter().filter(|(address, _)| votes.contains_key(address));
        let subflows = asked.map(|(_, subflow)| subflow).collect();
        Asked { votes, subflows }
    }
}

impl<A: Copy + Ord> Turn<A> {
    fn see(&mut self, address: A, seen: Seen, now: Duration) {
        self.delivered.push(seen.delivered);
        if seen.n > 0 {
            self.at = now;
            let shown = Shown {
                delivered: seen.delivered / f64::from(seen.n),
                drag: (2 * seen.held > seen.n).then_some(address),
                busy: true,
                backups: if seen.backup { vec![address] } else { Vec::new() },
            };
            self.mind.think(now, &shown);
        } else if now >= self.at + REST {
            self.mind.forget();
        }
    }

    /// As that of one connection: what is gained at least, of what they deliver together.
    fn vote(&self) -> Option<Votes> {
        self.mind.wanted()?;
        let share = if self.mind.does_without() { 1.0 - GAIN } else { 1.0 / GAIN - 1.0 };
        Some(Votes { asked: true, gain: share * self.delivered.mean(), loss: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::Random;

    const FAST: usize = 1;
    const SLOW: usize = 2;

    /// What a connection does in a second: Mbit/s over the fast and the slow path, and the share of it in which they are
    /// busy.
    type Does = ([f64; 2], [f64; 2]);

    /// Waits for the slow path; is as fast without it; is freed; has no more without it.
    const WAITS: Does = ([28.0, 2.0], [0.3, 1.0]);
    const FREED: Does = ([96.0, 0.0], [1.0, 0.0]);
    const PAYS: Does = ([96.0, 2.0], [1.0, 1.0]);
    const NO_FASTER: Does = ([28.0, 0.0], [1.0, 0.0]);

    /// Connections over both paths, in place of which others come every so many seconds, and who does what they ask for.
    struct Net {
        turns: Turns<(u32, usize), usize>,
        now: u64,
        lasts: u64,
        sent: BTreeMap<(u32, usize), (u64, u64)>,
        backup: bool,
        /// When the slow path became a backup.
        parked: Vec<u64>,
    }

    impl Net {
        fn new(lasts: u64) -> Net {
            let (turns, sent) = (Turns::default(), BTreeMap::new());
            Net { turns, now: 0, lasts, sent, backup: false, parked: Vec::new() }
        }

        /// A second; `all` is what each does.
        fn look(&mut self, all: &[Does]) -> Asked<(u32, usize), usize> {
            self.now += 1;
            let mut samples = Vec::new();
            for (n, (mbit, busy)) in (0..).zip(all) {
                // No token is that of another one.
                let token = 100 * ((self.now - 1) / self.lasts) as u32 + n;
                for (path, (mbit, busy)) in [FAST, SLOW].into_iter().zip(mbit.iter().zip(busy)) {
                    let (acked, busy_us) = self.sent.entry((token, path)).or_default();
                    *acked += (mbit * 125_000.0) as u64;
                    *busy_us += (busy * 1e6) as u64;
                    samples.push(Sample {
                        token,
                        subflow: (token, path),
                        acked: *acked,
                        received: 0,
                        busy_us: *busy_us,
                        srtt_us: if path == FAST { 30_000 } else { 900_000 },
                        window: 0,
                        backup: self.backup && path == SLOW,
                    });
                }
            }
            self.turns.look(Duration::from_secs(self.now), &samples, |(_, path)| path)
        }

        /// Seconds in which what is asked for is done; what each does with the slow path, and what without it.
        fn seconds(&mut self, seconds: u32, with: &[Does], without: &[Does]) {
            for _ in 0..seconds {
                let asked = self.look(if self.backup { without } else { with });
                assert!(!asked.votes.contains_key(&FAST), "the fast path pays");
                let wanted = asked.votes.get(&SLOW).is_some_and(Votes::backup);
                if wanted && !self.backup {
                    self.parked.push(self.now);
                }
                self.backup = wanted;
            }
        }
    }

    #[test]
    fn a_path_for_which_short_connections_wait_in_turn_is_tried_and_parked() {
        // Three looks at each, after the first.
        let mut net = Net::new(4);
        net.seconds(6, &[WAITS], &[FREED]);
        assert!(net.parked.is_empty());
        net.seconds(1, &[WAITS], &[FREED]);
        assert_eq!(net.parked, [7], "five looks");
        net.seconds(72, &[WAITS], &[FREED]);
        assert!(net.backup && net.parked == [7], "at 20 the trial is over: {:?}", net.parked);
        net.seconds(1, &[WAITS], &[FREED]);
        assert!(!net.backup, "and a minute later it is judged again");
    }

    #[test]
    fn what_each_of_them_gains_is_its_vote_and_its_subflows_are_the_advised_ones() {
        let mut net = Net::new(4);
        net.seconds(6, &[WAITS, WAITS], &[]);
        let Asked { votes, subflows } = net.look(&[WAITS, WAITS]);
        // A quarter of 30 Mbit/s each; in one of five looks there was nobody.
        let votes = votes[&SLOW];
        assert!(votes.asked && votes.loss == 0.0);
        assert!((votes.gain * 8e-6 - 0.25 * 60.0 * 0.8).abs() < 1e-3, "{votes:?}");
        assert_eq!(subflows, BTreeSet::from([(100, SLOW), (101, SLOW)]));
    }

    #[test]
    fn what_does_not_make_them_faster_is_undone_and_left_alone_for_a_minute() {
        let mut net = Net::new(4);
        net.seconds(13, &[WAITS], &[NO_FASTER]);
        assert!(net.backup);
        net.seconds(1, &[WAITS], &[NO_FASTER]);
        assert!(!net.backup, "less than before, in five looks");
        net.seconds(64, &[WAITS], &[NO_FASTER]);
        assert_eq!(net.parked, [7]);
        net.seconds(1, &[WAITS], &[NO_FASTER]);
        assert_eq!(net.parked, [7, 79]);
    }

    #[test]
    fn of_several_more_than_half_must_wait() {
        for (waiting, of, tried) in [(1, 2, false), (1, 3, false), (2, 3, true), (3, 5, true)] {
            let mut net = Net::new(4);
            let all: Vec<Does> = (0..of).map(|n| if n < waiting { WAITS } else { PAYS }).collect();
            net.seconds(60, &all, &all);
            assert_eq!(!net.parked.is_empty(), tried, "{waiting} of {of}");
        }
    }

    #[test]
    fn one_that_goes_on_speaks_for_itself_alone() {
        let mut net = Net::new(1000);
        net.seconds(100, &[WAITS], &[FREED]);
        assert!(net.parked.is_empty());
        // Four looks at each are not those of one.
        let mut net = Net::new(5);
        net.seconds(6, &[WAITS], &[FREED]);
        assert!(net.parked.is_empty());
        net.seconds(1, &[WAITS], &[FREED]);
        assert_eq!(net.parked, [7]);
    }

    #[test]
    fn after_a_minute_without_any_nothing_is_known() {
        let mut net = Net::new(4);
        net.seconds(7, &[WAITS], &[FREED]);
        net.seconds(59, &[], &[]);
        assert!(net.backup, "nobody is there to be slowed down");
        net.seconds(1, &[], &[]);
        assert!(!net.backup);
        // It is not left alone.
        net.seconds(20, &[WAITS], &[FREED]);
        assert_eq!(net.parked.len(), 2, "{:?}", net.parked);
    }

    /// With probability `p` a connection seems to wait, of several each by itself, or as many together as are just enough.
    #[test]
    fn an_address_that_holds_up_nobody_is_tried_no_more_often_than_was_said() {
        const P: f64 = 0.4;
        let tried = |n: usize, together: bool| {
            let (mut net, mut random) = (Net::new(4), Random(n as u64));
            let (mut tried, mut looks) = (0, 0);
            let enough = n / 2 + 1;
            for _ in 0..40_000 {
                let all_at_once = random.unit() < P * n as f64 / enough as f64;
                let mut seems = |one: usize| match together {
                    true => all_at_once && one < enough,
                    false => random.unit() < P,
                };
                let all: Vec<Does> =
                    (0..n).map(|one| if seems(one) { WAITS } else { PAYS }).collect();
                // It stays as it is. The first look at a connection tells nothing.
                let asked = net.look(&all).votes.contains_key(&SLOW);
                if net.now % 4 != 1 {
                    tried += u32::from(asked);
                    looks += 1;
                }
                net.sent.retain(|(token, _), _| u64::from(*token) >= 100 * ((net.now - 1) / 4));
            }
            f64::from(tried) / f64::from(looks)
        };
        let one = P.powi(5);
        let alone = tried(1, false);
        assert!((0.8 * one..1.2 * one).contains(&alone), "{alone}");
        for n in [2, 3, 5, 10] {
            let share = tried(n, false);
            assert!(share < 1.2 * one, "{n}: {share}");
        }
        for n in [2, 3, 5] {
            let share = tried(n, true);
            assert!(share < 1.2 * (2.0 * P).powi(5), "{n} that are tied: {share}");
        }
        // Two of three are, with 0.6.
        assert!(tried(3, true) > 5.0 * one, "and ties do make it more");
    }
}
