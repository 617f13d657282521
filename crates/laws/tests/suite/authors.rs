//! `ssc` beside MPTCP-SBD as its authors wrote it, on the same packets: their kernel's statistics of an interval and
//! their user-space program's grouping and decision, by the rules that these follow, in our own words. Where the two are
//! known to differ: they count a crossing from within the band of the first interval, and all crossings anew against the
//! mean and the variability of now; after an interval without a packet they take variability about zero; they
//! group in the order of values and break ties otherwise; their losses are per packet received.

use crate::common;

use common::queue::Queue;
use narrows_laws::detect::{Flows, Sample};
use narrows_laws::{Detector, Params, Place};
use narrows_testkit::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const T_US: u64 = 350_000;
const N: usize = 50;
/// Table I of the paper.
const C_S: f64 = -0.01;
const C_H: f64 = 0.3;
const P_F: f64 = 0.1;
const P_MAD: f64 = 0.1;
const P_S: f64 = 0.1;
const P_V: f64 = 0.7;
const P_L: f64 = 0.1;
const P_D: f64 = 0.1;

/// What their kernel keeps of an interval; all zero without a packet.
#[derive(Clone, Copy, Default)]
struct Interval {
    sum: f64,
    count: f64,
    skew: f64,
    deviation: f64,
    lost: f64,
}

impl Interval {
    fn mean(&self) -> f64 {
        if self.count == 0.0 { 0.0 } else { self.sum / self.count }
    }
}

#[derive(Default)]
struct Path {
    /// The newest intervals that are over, oldest first.
    over: VecDeque<Interval>,
    open: Interval,
    /// The means that the open interval's samples are held against: of all that are kept, and of the last.
    about: f64,
    last: f64,
    congested: bool,
}

/// What their program makes of a path's intervals.
#[derive(Clone, Copy)]
struct Estimates {
    skew: f64,
    var: f64,
    freq: f64,
    loss: f64,
}

fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = of.collect();
    if all.is_empty() { 0.0 } else { all.iter().sum::<f64>() / all.len() as f64 }
}

impl Path {
    fn sample(&mut self, delay: f64, lost: u32) {
        if !self.over.is_empty() {
            let skew = i32::from(delay < self.about) - i32::from(delay > self.about);
            self.open.skew += f64::from(skew);
            self.open.deviation += (delay - self.last).abs();
        }
        self.open.sum += delay;
        self.open.count += 1.0;
        self.open.lost += f64::from(lost);
    }

    /// The interval is over; after one without a packet the kernel takes 0 for its mean, `from_zero`.
    fn close(&mut self, from_zero: bool) {
        if self.open.count > 0.0 || from_zero {
            self.last = self.open.mean();
        }
        self.over.push_back(std::mem::take(&mut self.open));
        if self.over.len() > N {
            self.over.pop_front();
        }
        // Of the kernel's ring of N the open interval is one.
        let before = self.over.iter().rev().take(N - 1).filter(|one| one.count > 0.0);
        self.about = mean(before.map(Interval::mean));
    }

    /// None of a path that is silent.
    fn estimates(&self) -> Option<Estimates> {
        let some: Vec<&Interval> = self.over.iter().filter(|one| one.count > 0.0).collect();
        let total = |of: fn(&Interval) -> f64| some.iter().map(|one| of(one)).sum::<f64>();
        let samples = total(|one| one.count);
        let var = total(|one| one.deviation) / samples;
        let level = mean(some.iter().map(|one| one.mean()));
        // Above, within or below the band.
        let mut regions = some.iter().map(|one| {
            let away = one.mean() - level;
            if away.abs() > P_V * var { away.signum() } else { 0.0 }
        });
        let mut last = regions.next()?;
        let mut crossings = 0.0;
        for region in regions.filter(|region| *region != 0.0) {
            crossings += f64::from(u8::from(region != last));
            last = region;
        }
        Some(Estimates {
            skew: total(|one| one.skew) / samples,
            var,
            freq: crossings / some.len() as f64,
            loss: total(|one| one.lost) / samples,
        })
    }
}

/// Sorted by a value from above, divided where one is too far below the one before.
fn divide(
    mut group: Vec<(usize, Estimates)>,
    value: impl Fn(&Estimates) -> f64,
    limit: impl Fn(f64) -> f64,
) -> Vec<Vec<(usize, Estimates)>> {
    group.sort_by(|a, b| value(&b.1).total_cmp(&value(&a.1)));
    let mut parts: Vec<Vec<(usize, Estimates)>> = Vec::new();
    for one in group {
        match parts.last_mut() {
            Some(part)
                if {
                    let above = value(&part[part.len() - 1].1);
                    above - value(&one.1) < limit(above)
                } =>
            {
                part.push(one)
            }
            _ => parts.push(vec![one]),
        }
    }
    parts
}

/// An observation: groups of congested paths; all others are not congested.
fn observe(paths: &mut [Path]) -> Vec<Vec<usize>> {
    let mut congested = Vec::new();
    for (number, path) in paths.iter_mut().enumerate() {
        let Some(of) = path.estimates() else { continue };
        path.congested = of.skew < C_S || (of.skew < C_H && path.congested) || of.loss > P_L;
        if path.congested {
            congested.push((number, of));
        }
    }
    let by_freq = divide(congested, |of| of.freq, |_| P_F).into_iter();
    let by_var = by_freq.flat_map(|group| divide(group, |of| of.var, |above| P_MAD * above));
    let groups = by_var.flat_map(|group| {
        if group.iter().any(|(_, of)| of.loss > P_L) {
            divide(group, |of| of.loss, |_| P_D)
        } else {
            divide(group, |of| of.skew, |_| P_S)
        }
    });
    groups.map(|group| group.into_iter().map(|(number, _)| number).collect()).collect()
}

/// From ten observations: paths together in half of them are grouped, and who is so with one of a group is of it; alone
/// and congested in any is a group, else not congested, all of which are one set here.
fn merge(observations: &VecDeque<Vec<Vec<usize>>>, paths: usize) -> BTreeSet<Vec<usize>> {
    let together = |a: usize, b: usize| {
        let both = |groups: &&Vec<Vec<usize>>| {
            groups.iter().any(|group| group.contains(&a) && group.contains(&b))
        };
        observations.iter().filter(both).count()
    };
    let mut group_of: Vec<usize> = (0..paths).collect();
    for a in 0..paths {
        for b in 0..a {
            if 2 * together(a, b) >= observations.len() {
                let (from, to) = (group_of[a], group_of[b]);
                group_of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }
    let mut groups: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for path in 0..paths {
        let alone = group_of.iter().filter(|group| **group == group_of[path]).count() == 1;
        let clear = alone && together(path, path) == 0;
        groups.entry((!clear).then_some(group_of[path])).or_default().push(path);
    }
    groups.into_values().collect()
}

/// The same of ours.
fn partition(places: &[Place]) -> BTreeSet<Vec<usize>> {
    let mut groups: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (path, place) in places.iter().enumerate() {
        groups.entry(*place).or_default().push(path);
    }
    groups.into_values().collect()
}

/// In how many decisions both have the same groups, of how many, and how many partitions there were. One in `silent`
/// intervals of a path is silent.
fn agreement(seed: u64, silent: Option<u64>, from_zero: bool) -> [usize; 3] {
    let mut random = Random(seed);
    let params =
        Params::default().with(&[("ssc.preset", "mptcp-sbd"), ("decision.clear_always", "on")]);
    // Queues alike and unlike, one of them hardly used; two paths in each, one with an eighth of the other's packets.
    let mut queues: Vec<Queue> = (0..3)
        .map(|queue| {
            let full_us = 20_000.0 + 3_000.0 * queue as f64 * random.unit();
            Queue::new(full_us, 600_000.0 + 900_000.0 * random.unit(), 0.6)
        })
        .collect();
    let paths = 6;
    let mut ours = Flows::new(Detector::SSC, &params, paths).unwrap();
    let mut theirs: Vec<Path> = (0..paths).map(|_| Path::default()).collect();
    let mut observations: VecDeque<Vec<Vec<usize>>> = VecDeque::new();
    let (mut same, mut all, mut kinds) = (0, 0, BTreeSet::new());
    for interval in 0..600_u64 {
        let mut decision = ours.advance(interval * T_US);
        if interval > 0 {
            theirs.iter_mut().for_each(|path| path.close(from_zero));
            observations.push_back(observe(&mut theirs));
            if observations.len() > 10 {
                observations.pop_front();
            }
        }
        if let Some(decision) = decision.take().filter(|_| interval > 70) {
            assert_eq!(decision.at_us, interval * T_US);
            let groups = merge(&observations, paths);
            same += usize::from(partition(&decision.places) == groups);
            all += 1;
            kinds.insert(groups);
        }
        let quiet: Vec<bool> =
            (0..paths).map(|_| silent.is_some_and(|one_in| random.below(one_in) == 0)).collect();
        for step in 0..70 {
            let now_us = interval * T_US + step * 5_000;
            for path in 0..paths {
                let queue = &mut queues[path / 2];
                let delay = queue.delay_us(now_us as f64, &mut random) + 500.0 * random.unit();
                // Random waits below the queue's make the last one's delays those of a path without a bottleneck.
                let delay = if path / 2 == 2 { 3_000.0 * random.unit().powi(4) } else { delay };
                let thin = path % 2 == 1 && random.below(8) > 0;
                if quiet[path] || thin {
                    continue;
                }
                let lost = u32::from(random.below(50) == 0);
                theirs[path].sample(delay.trunc() + 10_000.0, lost);
                let delay_us = Some(delay as i32 + 10_000);
                let sample = Sample { now_us, delay_us, delivered: 1, lost, ..Sample::default() };
                assert_eq!(ours.sample(path, &sample), None);
            }
        }
    }
    [same, all, kinds.len()]
}

/// The share of the decisions in which they have the same groups, over some runs.
fn share(silent: Option<u64>, from_zero: bool) -> f64 {
    let runs = (1..=8).map(|seed| agreement(seed, silent, from_zero));
    let [same, all, kinds] = runs.reduce(|a, b| [0, 1, 2].map(|i| a[i] + b[i])).unwrap();
    assert!(kinds >= 20, "they find many things: {kinds}");
    same as f64 / all as f64
}

/// Where every path has packets in every interval they differ in one decision of eight. A path without any in one
/// of fifty does more, most of it by the zero that stands for its mean.
#[test]
fn ssc_finds_the_groups_that_the_authors_program_finds() {
    let all = share(None, true);
    assert!(all > 0.85, "{all}");
    let (from_last, from_zero) = (share(Some(50), false), share(Some(50), true));
    assert!(from_last > 0.7 && from_zero < from_last - 0.3, "{from_last} {from_zero}");
}
