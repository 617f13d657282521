//! Which control, and which links, after connections were watched for a while: `narrows kernel recommend`.
//!
//! Nothing is tried, so that nothing is changed, and what is not seen is not said: **no change** is the answer until
//! an interval of 95 % leaves one side.
//!
//! 1. **A link** is to be left out if more would be delivered without it. In a look in which it holds up the others
//!    ([the crate](crate): they have room, and could deliver 1 / `GAIN` times as much), what they could deliver counts,
//!    less what all delivered; in every other look what the link itself delivered is lost. The mean over the watch must
//!    be above 0 by the low end of its interval. What others could deliver is a bound, as a window does not show what
//!    the link can carry; `narrows kernel advise` tries it, and undoes what gains nothing. One link at a time: what the
//!    others have room for was seen with it.
//! 2. **A model law** if on one of the other links losses, and no queue, hold a window law back ([`crate::losses`]): all
//!    along, as a burst is one cut of the window and no rate.
//! 3. **A coupled law** if paths of a connection whose law does not couple meet in one bottleneck, by who watches
//!    that (`xcorr`): coupled they take one share there.
//!
//! Hysteresis: the intervals. Who watches a link that is at a bound gets "no change"; and after a change its reason is
//! gone: a link that is left out holds up nobody, under a model law nothing is said of losses, and a coupled law is not
//! to be coupled.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::look::{Part, Sample, drag};
use crate::losses::{Seen, lost, share};

/// Looks in which something was delivered, at least: with fewer nothing is said.
pub const LEAST: u32 = 10;
/// Looks that count as one value for the interval of the rate, as neighbours are alike.
const BLOCK: usize = 3;

/// What kind of control a subflow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A window law of each path's own: CUBIC, Reno.
    Uncoupled,
    /// A window law that couples paths.
    Coupled,
    /// A law that goes by a model of the path: BBR.
    Model,
}

/// A subflow at a look, with what [`Sample`] has not.
#[derive(Clone, Copy, Debug)]
pub struct Look<P, L> {
    /// What advice goes by; its subflow's name is of no other connection.
    pub sample: Sample<P>,
    /// The link that it leaves by.
    pub link: L,
    /// What it runs.
    pub kind: Kind,
    /// Packets of data sent since it began.
    pub sent: u64,
    /// Of them those sent again.
    pub retransmitted: u64,
    /// The smallest round-trip time of late, µs; 0: none yet.
    pub min_rtt_us: u32,
}

/// What was seen of a link.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// Looks in which it was used, of each connection, and those in which it held up the others.
    used: u64,
    held_up: u64,
    bytes: f64,
    /// Bytes delivered under window laws, and round-trip times by them, bytes µs.
    window_bytes: f64,
    srtt: f64,
    min_rtt: f64,
    /// By look.
    looks: Vec<Second>,
}

/// What was seen of a link between two looks.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    /// What more would have been delivered without it, bytes/s.
    gain: f64,
    /// Packets sent under window laws, and those of them sent again.
    packets: [u64; 2],
}

/// What was seen of connections.
#[derive(Debug)]
pub struct Observer<P, L> {
    last: BTreeMap<P, Look<P, L>>,
    at: Option<Duration>,
    links: BTreeMap<L, Sums>,
    kinds: BTreeMap<Kind, f64>,
    /// What all delivered in each look, bytes/s.
    rates: Vec<f64>,
    /// Time of these looks.
    seconds: f64,
}

impl<P, L> Default for Observer<P, L> {
    fn default() -> Self {
        let (last, links, kinds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Observer { last, at: None, links, kinds, rates: Vec::new(), seconds: 0.0 }
    }
}

/// A link, as it was while watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Link<L> {
    /// Its name.
    pub link: L,
    /// What was delivered over it, bytes/s.
    pub rate: f64,
    /// Losses and round-trip times under window laws.
    pub seen: Seen,
    /// The share of looks in which it held up the others: low end, found, high end (95 %).
    pub holds_up: [f64; 3],
    /// What more would be delivered without it, at most, bytes/s: low end, mean, high end (95 %, over blocks of 3 looks).
    pub gain: [f64; 3],
}

/// What to run instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// What runs.
    Same,
    /// A coupled window law.
    Coupled,
    /// A model law.
    Model,
}

/// What is recommended, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation<L> {
    /// The control.
    pub control: Control,
    /// The link that losses without a queue hold back, where a model law is recommended.
    pub held_back: Option<L>,
    /// The link to be left out.
    pub without: Option<L>,
    /// All links.
    pub links: Vec<Link<L>>,
    /// Looks in which something was delivered; with less than [`LEAST`] nothing can be said.
    pub looks: u32,
    /// What was delivered, bytes/s: low end, mean, high end (95 %, over blocks of 3 looks).
    pub rate: [f64; 3],
}

impl<P: Copy + Ord, L: Clone + Ord> Observer<P, L> {
    /// A look at `now` (of a clock that begins anywhere) at all subflows.
    pub fn look(&mut self, now: Duration, all: &[Look<P, L>]) {
        let seconds = self.at.map_or(0.0, |at| (now - at).as_secs_f64());
        let mut connections = BTreeMap::<u32, Vec<&Look<P, L>>>::new();
        for look in all {
            connections.entry(look.sample.token).or_default().push(look);
        }
        let (mut delivered, mut seconds_of) = (0.0, BTreeMap::<L, Second>::new());
        for subflows in connections.values().filter(|_| seconds > 0.0) {
            let last = |look: &Look<P, L>| self.last.get(&look.sample.subflow).cloned();
            let before: Option<Vec<_>> = subflows.iter().map(|look| last(look)).collect();
            // A path that has joined changes what the others have.
            let Some(before) = before else { continue };
            let both = || before.iter().zip(subflows.iter().copied());
            let parts: Vec<Part<P>> =
                both().map(|(last, look)| Part::between(&last.sample, &look.sample)).collect();
            let drag = drag(&parts, seconds);
            delivered += parts.iter().map(|part| part.bytes).sum::<f64>();
            for ((last, look), part) in both().zip(&parts) {
                let gain = drag.filter(|drag| drag.subflow == part.subflow);
                let second = seconds_of.entry(look.link.clone()).or_default();
                second.gain += gain.map_or(-part.bytes / seconds, |drag| drag.without - drag.with);
                if look.kind != Kind::Model {
                    second.packets[0] += look.sent.saturating_sub(last.sent);
                    second.packets[1] += look.retransmitted.saturating_sub(last.retransmitted);
                }
                *self.kinds.entry(look.kind).or_default() += part.bytes;
                let sums = self.links.entry(look.link.clone()).or_default();
                sums.add(look, part);
                sums.held_up += u64::from(gain.is_some());
            }
        }
        if delivered > 0.0 {
            for (link, second) in seconds_of {
                let sums = self.links.entry(link).or_default();
                sums.looks.resize(self.rates.len(), Second::default());
                sums.looks.push(second);
            }
            self.rates.push(delivered / seconds);
            self.seconds += seconds;
        }
        self.last = all.iter().map(|look| (look.sample.subflow, look.clone())).collect();
        self.at = Some(now);
    }

    /// What follows from that; `shared`: links over which paths of a connection meet in one bottleneck, for most of the
    /// time.
    pub fn recommend(&self, shared: &[Vec<L>]) -> Recommendation<L> {
        let looks = self.rates.len();
        let link = |(link, sums): (&L, &Sums)| {
            let mut seconds = sums.looks.clone();
            seconds.resize(looks, Second::default());
            let gains: Vec<f64> = seconds.iter().map(|second| second.gain).collect();
            Link {
                link: link.clone(),
                rate: sums.bytes / self.seconds.max(f64::MIN_POSITIVE),
                seen: sums.seen(&seconds),
                holds_up: share(sums.held_up, sums.used),
                gain: interval(&gains),
            }
        };
        let links: Vec<Link<L>> = self.links.iter().map(link).collect();
        let enough = looks >= LEAST as usize;
        let most = |of: fn(&Link<L>) -> f64| {
            move |one: &&Link<L>, other: &&Link<L>| of(one).total_cmp(&of(other))
        };
        let costs = |link: &&Link<L>| enough && links.len() > 1 && link.gain[0] > 0.0;
        let without = links.iter().filter(costs).max_by(most(|link| link.gain[0]));
        let without = without.map(|link| link.link.clone());
        let mostly = self.kinds.iter().max_by(|one, other| one.1.total_cmp(other.1));
        let mostly = mostly.map(|(kind, _)| *kind).filter(|_| enough);
        let held = |link: &&Link<L>| {
            let stays = without.as_ref() != Some(&link.link);
            mostly != Some(Kind::Model) && enough && stays && link.seen.is_held_back()
        };
        let held_back = links.iter().filter(held).max_by(most(|link| link.seen.least()));
        let held_back = held_back.map(|link| link.link.clone());
        let meet = |group: &Vec<L>| without.as_ref().is_none_or(|link| !group.contains(link));
        let control = match (&held_back, mostly) {
            (Some(_), _) => Control::Model,
            (None, Some(Kind::Uncoupled)) if shared.iter().any(meet) => Control::Coupled,
            _ => Control::Same,
        };
        let (looks, rate) = (looks as u32, interval(&self.rates));
        Recommendation { control, held_back, without, links, looks, rate }
    }
}

impl Sums {
    fn add<P: Copy, L>(&mut self, look: &Look<P, L>, part: &Part<P>) {
        self.used += u64::from(!part.backup);
        self.bytes += part.bytes;
        if look.kind != Kind::Model {
            self.window_bytes += part.bytes;
            self.srtt += part.bytes * f64::from(look.sample.srtt_us);
            self.min_rtt += part.bytes * f64::from(look.min_rtt_us);
        }
    }

    fn seen(&self, seconds: &[Second]) -> Seen {
        let bytes = self.window_bytes.max(1.0);
        let sum = |block: &[Second], of: usize| block.iter().map(|one| one.packets[of]).sum();
        let blocks = seconds.chunks(BLOCK).map(|block| [0, 1].map(|of| sum(block, of)));
        Seen {
            lost: lost([0, 1].map(|of| sum(seconds, of)), &blocks.collect::<Vec<_>>()),
            mean_rtt_us: self.srtt / bytes,
            min_rtt_us: self.min_rtt / bytes,
        }
    }
}

/// Low end, mean, high end of the mean by blocks; without two blocks nothing is known of the ends.
fn interval(rates: &[f64]) -> [f64; 3] {
    let blocks: Vec<f64> = rates.chunks_exact(BLOCK).map(narrows_stats::mean).collect();
    let mean = narrows_stats::mean(rates);
    let half = narrows_stats::ci95(&blocks).unwrap_or(mean.abs());
    [mean - half, mean, mean + half]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection over two links, watched once a second.
    struct Net {
        observer: Observer<usize, &'static str>,
        kind: Kind,
        now: u64,
        acked: [u64; 2],
        busy_us: [u64; 2],
        lost: [u64; 2],
    }

    /// A second: Mbit/s, round-trip time in ms and window in kB of each path.
    type Second = [(f64, u32, u64); 2];

    /// Two paths with a full window each.
    const FULL: Second = [(40.0, 50, 250), (2.0, 500, 125)];
    /// The first has room for 80 Mbit/s.
    const DRAGGED: Second = [(20.0, 40, 400), (2.0, 90, 22)];

    impl Net {
        fn new(kind: Kind) -> Net {
            let (acked, busy_us, lost) = ([0; 2], [0; 2], [0; 2]);
            Net { observer: Observer::default(), kind, now: 0, acked, busy_us, lost }
        }

        fn second(&mut self, paths: Second, lost: [u64; 2]) {
            self.now += 1;
            let look = |path: usize| {
                let (mbit, srtt_ms, window_kb) = paths[path];
                self.acked[path] += (mbit * 125_000.0) as u64;
                self.busy_us[path] += 1_000_000;
                self.lost[path] += lost[path];
                let sample = Sample {
                    token: 7,
                    subflow: path,
                    acked: self.acked[path],
                    received: 0,
                    busy_us: self.busy_us[path],
                    srtt_us: 1000 * srtt_ms,
                    window: 1000 * window_kb,
                    backup: false,
                };
                Look {
                    sample,
                    link: ["fast", "slow"][path],
                    kind: self.kind,
                    sent: self.acked[path] / 1400,
                    retransmitted: self.lost[path],
                    min_rtt_us: 40_000,
                }
            };
            let all = [0, 1].map(look);
            self.observer.look(Duration::from_secs(self.now), &all);
        }

        fn says(&self, shared: bool) -> (Control, Option<&'static str>) {
            let shared = if shared { vec![vec!["fast", "slow"]] } else { Vec::new() };
            let found = self.observer.recommend(&shared);
            (found.control, found.without)
        }
    }

    #[test]
    fn nothing_changes_where_every_window_is_full_and_queues_lose() {
        let mut net = Net::new(Kind::Uncoupled);
        (0..30).for_each(|_| net.second([(40.0, 80, 400), FULL[1]], [20, 1]));
        assert_eq!(net.says(false), (Control::Same, None));
        let found = net.observer.recommend(&[]);
        assert_eq!((found.looks, found.links.len()), (29, 2));
        assert!((found.rate[1] - 42.0 * 125e3).abs() < 1e3, "{:?}", found.rate);
        assert_eq!(net.says(true), (Control::Coupled, None), "they meet in one bottleneck");
        let mut coupled = Net::new(Kind::Coupled);
        (0..30).for_each(|_| coupled.second(FULL, [0; 2]));
        assert_eq!(coupled.says(true), (Control::Same, None));
    }

    #[test]
    fn losses_without_a_queue_ask_for_a_model_law_unless_one_runs() {
        // 40 Mbit/s are 3,571 packets a second.
        for (kind, control) in [(Kind::Uncoupled, Control::Model), (Kind::Model, Control::Same)] {
            let mut net = Net::new(kind);
            (0..30).for_each(|_| net.second([(40.0, 42, 210), FULL[1]], [5, 0]));
            assert_eq!(net.says(false).0, control, "{kind:?}");
        }
        let mut most = Net::new(Kind::Uncoupled);
        (0..30).for_each(|_| most.second([(40.0, 42, 210), FULL[1]], [5, 0]));
        most.kind = Kind::Model;
        (0..40).for_each(|_| most.second([(40.0, 42, 210), FULL[1]], [5, 0]));
        assert_eq!(most.says(true).0, Control::Same, "most runs one");
        let mut few = Net::new(Kind::Coupled);
        (0..10).for_each(|_| few.second([(40.0, 42, 210), FULL[1]], [5, 0]));
        assert_eq!(few.says(false).0, Control::Same, "nine looks");
    }

    #[test]
    fn a_burst_of_losses_is_no_rate() {
        let mut net = Net::new(Kind::Uncoupled);
        // 150 of 107,000 packets are as many as 5 a second.
        (0..31)
            .for_each(|at| net.second([(40.0, 42, 210), FULL[1]], [150 * u64::from(at == 7), 0]));
        assert_eq!(net.says(false).0, Control::Same);
        let found = net.observer.recommend(&[]);
        let [low, share, high] = found.links[0].seen.lost.unwrap();
        assert!(
            low == 0.0 && (share - 0.0014).abs() < 1e-4 && high > 0.003,
            "{low} {share} {high}"
        );
        // Nor is one in the last second.
        let mut last = Net::new(Kind::Uncoupled);
        (0..12)
            .for_each(|at| last.second([(40.0, 42, 210), FULL[1]], [150 * u64::from(at == 11), 0]));
        assert_eq!(last.says(false).0, Control::Same);
    }

    #[test]
    fn a_link_that_holds_up_the_others_is_left_out_and_what_it_loses_counts_no_longer() {
        let mut net = Net::new(Kind::Uncoupled);
        (0..30).for_each(|_| net.second(DRAGGED, [0, 3]));
        assert_eq!(
            net.says(true),
            (Control::Same, Some("slow")),
            "what is left out shares nothing"
        );
        let found = net.observer.recommend(&[]);
        let slow = found.links.iter().find(|link| link.link == "slow").unwrap();
        assert_eq!(slow.holds_up[1], 1.0);
        // 80 less 22 Mbit/s.
        assert!((slow.gain[1] / 125e3 - 58.0).abs() < 0.1, "{:?}", slow.gain);
    }

    /// A third of the time 58 Mbit/s more, else 20 less: on average 6 more, but not for sure.
    #[test]
    fn a_link_that_pays_at_times_is_left_out_only_if_the_interval_says_so() {
        let mut net = Net::new(Kind::Uncoupled);
        let pays: Second = [(40.0, 50, 250), (20.0, 100, 250)];
        for second in 0..60 {
            net.second(if second % 30 < 10 { DRAGGED } else { pays }, [0; 2]);
        }
        let found = net.observer.recommend(&[]);
        let slow = found.links.iter().find(|link| link.link == "slow").unwrap();
        assert!(slow.gain[0] < 0.0 && slow.gain[1] > 0.0, "{:?}", slow.gain);
        assert_eq!(found.without, None);
    }
}
