//! RFC 8382 in plain floating point, written from its text and not from the C.

use narrows_laws::Params;
use narrows_laws::params::Q16;

/// The parameters as real numbers.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    pub n: usize,
    pub m: usize,
    pub f: usize,
    pub c_s: f64,
    pub c_h: f64,
    pub p_l: f64,
    pub p_f: f64,
    pub p_mad: f64,
    pub p_s: f64,
    pub p_d: f64,
    pub p_v: f64,
    pub mask_noise: bool,
    pub loss_for_skew: bool,
    pub clock_skew: bool,
}

impl From<&Params> for Real {
    fn from(params: &Params) -> Real {
        let word = |name: &str| params.word(&format!("ssc.{name}"));
        let real = |name: &str| f64::from(word(name) as i32) / Q16 as f64;
        Real {
            n: word("n") as usize,
            m: word("m") as usize,
            f: word("f") as usize,
            c_s: real("c_s"),
            c_h: real("c_h"),
            p_l: real("p_l"),
            p_f: real("p_f"),
            p_mad: real("p_mad"),
            p_s: real("p_s"),
            p_d: real("p_d"),
            p_v: real("p_v"),
            mask_noise: word("mask_noise") == 1,
            loss_for_skew: word("loss_for_skew") == 1,
            clock_skew: word("clock_skew") == 1,
        }
    }
}

/// What a path's delays came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimates {
    pub skew: f64,
    /// µs
    pub var: f64,
    pub freq: f64,
    pub loss: f64,
    pub congested: bool,
}

/// An interval that is over.
struct Interval {
    e: f64,
    /// Skewness, variability (none: left out) and samples.
    base: Option<(f64, Option<f64>, f64)>,
    crossed: bool,
    lost: f64,
    total: f64,
}

/// A path's history, oldest first.
#[derive(Default)]
pub struct History {
    intervals: Vec<Interval>,
    /// Was the last significant mean above?
    above: Option<bool>,
    congested: bool,
}

/// Of the last `n` items.
fn last<T>(items: &[T], n: usize) -> &[T] {
    &items[items.len().saturating_sub(n)..]
}

impl History {
    /// Section 3.1.2: the mean of the means of the last M intervals.
    fn mean(&self, p: &Real) -> f64 {
        let means = last(&self.intervals, p.m);
        means.iter().map(|one| one.e).sum::<f64>() / means.len() as f64
    }

    /// The end of an interval with these delays, µs.
    pub fn close(&mut self, p: &Real, delays: &[f64], delivered: u32, lost: u32) -> Estimates {
        let n = delays.len() as f64;
        let base = self.intervals.last().map(|before| {
            let about = if p.clock_skew { before.e } else { self.mean(p) };
            let below = delays.iter().filter(|delay| **delay < about).count() as f64;
            let above = delays.iter().filter(|delay| **delay > about).count() as f64;
            let var = delays.iter().map(|delay| (delay - before.e).abs()).sum();
            (below - above, Some(var), n)
        });
        let e = delays.iter().sum::<f64>() / n;
        let (lost, total) = (f64::from(lost), f64::from(delivered + lost));
        self.intervals.push(Interval { e, base, crossed: false, lost, total });

        let loss = {
            let of = last(&self.intervals, p.n);
            let total: f64 = of.iter().map(|one| one.total).sum();
            let lost: f64 = of.iter().map(|one| one.lost).sum();
            if total == 0.0 { 0.0 } else { lost / total }
        };
        let skew = self.weighted(p, |(skew, _, _)| skew);
        let high = if self.congested { p.c_h.max(p.c_s) } else { p.c_s };
        self.congested = skew < high || loss > p.p_l;

        let masked = p.mask_noise && !self.congested;
        if let (true, Some((_, var, _))) =
            (masked, self.intervals.last_mut().and_then(|one| one.base.as_mut()))
        {
            *var = None;
        }
        let var = self.weighted(p, |(_, var, _)| var.unwrap_or(0.0));
        let mean = self.mean(p);
        if !masked && (e - mean).abs() > p.p_v * var {
            let above = e > mean;
            let crossed = self.above.is_some_and(|before| before != above);
            self.above = Some(above);
            self.intervals.last_mut().unwrap().crossed = crossed;
        }
        let crossings = last(&self.intervals, p.n).iter().filter(|one| one.crossed).count();
        let freq = if p.clock_skew { 0.0 } else { crossings as f64 / p.n as f64 };
        Estimates { skew, var, freq, loss, congested: self.congested }
    }

    /// Section 4.1: a sum over the samples of the last M intervals, per sample.
    fn weighted(&self, p: &Real, of: impl Fn((f64, Option<f64>, f64)) -> f64) -> f64 {
        let (mut sum, mut samples) = (0.0, 0.0);
        for (age, one) in last(&self.intervals, p.m).iter().rev().enumerate() {
            let weight = if age < p.f { p.m - p.f + 1 } else { p.m - age };
            if let Some(base) = one.base {
                sum += weight as f64 * of(base);
                samples += weight as f64 * base.2;
            }
        }
        if samples == 0.0 { 0.0 } else { sum / samples }
    }
}

/// Section 3.3.1: sorts by a value and divides where neighbours are too far from each other.
fn divide(
    groups: Vec<Vec<usize>>,
    value: impl Fn(usize) -> f64,
    apart: impl Fn(f64, f64) -> bool,
    which: impl Fn(&[usize]) -> bool,
) -> Vec<Vec<usize>> {
    let mut divided = Vec::new();
    for mut group in groups {
        if !which(&group) {
            divided.push(group);
            continue;
        }
        group.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
        let mut part = vec![group[0]];
        for pair in group.windows(2) {
            let (high, low) = (value(pair[0]), value(pair[1]));
            if high > low && apart(high, low) {
                divided.push(std::mem::take(&mut part));
            }
            part.push(pair[1]);
        }
        divided.push(part);
    }
    divided
}

/// The groups of the congested ones among `flows`, each in order.
pub fn groups(p: &Real, flows: &[Estimates]) -> Vec<Vec<usize>> {
    let congested: Vec<usize> = (0..flows.len()).filter(|i| flows[*i].congested).collect();
    if congested.is_empty() {
        return Vec::new();
    }
    let lossy = |group: &[usize]| group.iter().any(|i| flows[*i].loss > p.p_l);
    let groups = divide(vec![congested], |i| flows[i].freq, |a, b| a - b >= p.p_f, |_| true);
    let groups = divide(groups, |i| flows[i].var, |a, b| a - b >= p.p_mad * a, |_| true);
    let by_skew = |group: &[usize]| !(p.loss_for_skew && lossy(group));
    let groups = divide(groups, |i| flows[i].skew, |a, b| a - b >= p.p_s, by_skew);
    let mut groups = divide(groups, |i| flows[i].loss, |a, b| a - b >= p.p_d * a, lossy);
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    groups
}
