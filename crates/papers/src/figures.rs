//! Figures over seeds: means with their intervals, differences and quotients by pairs of seeds.

use std::cell::Cell;

use narrows_stats::{ci95, mean, one_sided};
use serde::Serialize;

/// Of all intervals, unless [`at`] says otherwise.
const CONFIDENCE: f64 = 0.95;

thread_local! {
    /// The confidence at which intervals are made now.
    static NOW: Cell<f64> = const { Cell::new(CONFIDENCE) };
}

/// What `make` makes of intervals at another confidence; at 0 they are their means.
pub fn at<T>(confidence: f64, make: impl FnOnce() -> T) -> T {
    let before = NOW.replace(confidence);
    let made = make();
    NOW.set(before);
    made
}

/// At this confidence and above equal values have no interval: a share of a few runs is often 1 in all of them, and that
/// tells nothing of how it varies.
pub const EARLY: f64 = 0.999;

/// Half the interval of a mean (Student's t); none of fewer than two values.
fn half(values: &[f64]) -> Option<f64> {
    match NOW.get() {
        CONFIDENCE => ci95(values),
        confidence if confidence >= EARLY => {
            one_sided(values, (1.0 + confidence) / 2.0).filter(|half| *half > 0.0)
        }
        confidence if confidence > 0.0 => one_sided(values, (1.0 + confidence) / 2.0),
        _ => ci95(values).map(|_| 0.0),
    }
}

/// A mean over runs with half its 95 % interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the interval; none from one run.
    pub half: Option<f64>,
}

impl Interval {
    /// Of values of independent runs; none without values.
    pub fn of(values: &[f64]) -> Option<Interval> {
        (!values.is_empty()).then(|| Interval { mean: mean(values), half: half(values) })
    }

    /// Mean and half the interval, if there is one.
    pub fn bounds(self) -> Option<(f64, f64)> {
        self.half.map(|half| (self.mean, half))
    }

    /// In another unit; the other way round by a negative one.
    pub fn times(self, scale: f64) -> Interval {
        // No minus before a zero.
        Interval { mean: scale * self.mean + 0.0, half: self.half.map(|half| scale.abs() * half) }
    }
}

/// The figure of each run, if all have it.
pub fn all_of<T>(runs: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<Vec<f64>> {
    runs.iter().map(figure).collect()
}

/// The interval of a figure over runs; none if a run has no such figure.
pub fn spread<T>(runs: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<Interval> {
    Interval::of(&all_of(runs, figure)?)
}

/// Those of two figures that pairs of runs both have.
fn both(one: &[Option<f64>], other: &[Option<f64>]) -> Vec<(f64, f64)> {
    assert_eq!(one.len(), other.len(), "pairs of seeds");
    one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?))).collect()
}

/// How much less the first are than the second, pair by pair of seeds.
pub fn less(one: &[Option<f64>], other: &[Option<f64>]) -> Option<Interval> {
    let by_pair: Vec<f64> = both(one, other).iter().map(|(a, b)| b - a).collect();
    Interval::of(&by_pair).filter(|found| found.half.is_some())
}

/// The same in percent of the second's mean.
pub fn less_percent(one: &[Option<f64>], other: &[Option<f64>]) -> Option<Interval> {
    let of: Vec<f64> = both(one, other).iter().map(|(_, b)| *b).collect();
    less(one, other).map(|found| found.times(100.0 / mean(&of)))
}

/// Mean over mean of as many runs, with the interval by the delta method: a mean of quotients is larger.
pub fn quotient(these: &[Option<f64>], those: &[Option<f64>]) -> Option<Interval> {
    let pairs = both(these, those);
    let sum = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>();
    if pairs.is_empty() {
        return None;
    }
    let middle = sum(|pair| pair.0) / sum(|pair| pair.1);
    let size = sum(|pair| pair.1) / pairs.len() as f64;
    let off: Vec<f64> = pairs.iter().map(|(this, that)| (this - middle * that) / size).collect();
    Some(Interval { mean: middle, half: half(&off) })
}

/// One over the other, pair by pair of seeds: both had the same background and the same losses.
pub fn ratios(these: &[f64], those: &[f64]) -> Vec<f64> {
    assert_eq!(these.len(), those.len(), "pairs of seeds");
    these.iter().zip(those).map(|(this, that)| this / that).collect()
}

/// By seed, the mean of some lists.
pub fn means<L: AsRef<[f64]>>(lists: &[L]) -> Vec<f64> {
    let seeds = lists.first().map_or(0, |list| list.as_ref().len());
    let at = |seed: usize| lists.iter().map(|list| list.as_ref()[seed]).collect::<Vec<_>>();
    (0..seeds).map(|seed| mean(&at(seed))).collect()
}

/// The same of lists with gaps; none where one of them has none.
pub fn averages(lists: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let seeds = lists.first().map_or(0, Vec::len);
    let at = |seed: usize| lists.iter().map(|list| list[seed]).collect::<Option<Vec<f64>>>();
    (0..seeds).map(|seed| at(seed).map(|values| mean(&values))).collect()
}

/// The value in the middle, or the mean of the two there: infinite if one is. 0 without values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// `0.62 ±0.03`; with another digit where both are less than one of the last; `-` of nothing.
pub fn text(found: Option<Interval>, digits: usize) -> String {
    let most = found.map_or(0.0, |found| found.half.unwrap_or(0.0).max(found.mean.abs()));
    let bounds = found.and_then(Interval::bounds).is_some();
    let finer = bounds && 0.0 < most && most < 0.1_f64.powi(digits as i32);
    rounded(found, digits + usize::from(finer))
}

/// The same with so many digits, however small it is.
pub fn rounded(found: Option<Interval>, digits: usize) -> String {
    match found {
        None => "-".into(),
        Some(Interval { mean, half: None }) => format!("{mean:.digits$}"),
        Some(Interval { mean, half: Some(half) }) => format!("{mean:.digits$} ±{half:.digits$}"),
    }
}

/// A time in seconds; an infinite one never came.
pub fn time(seconds: f64) -> String {
    if seconds.is_finite() { format!("{seconds:.1}") } else { "never".into() }
}

/// A share in whole percent; `-` of nothing.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.0}", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_leave_out_what_one_of_them_lacks() {
        let one = [Some(1.0), None, Some(3.0)];
        let other = [Some(2.0), Some(9.0), Some(5.0)];
        let found = less(&one, &other).unwrap();
        assert_eq!(found.mean, 1.5);
        // 12.7062 times sqrt(0.5 / 2).
        assert!((found.half.unwrap() - 6.3531).abs() < 1e-4, "{found:?}");
        let percent = less_percent(&one, &other).unwrap().mean;
        assert!((percent - 100.0 * 1.5 / 3.5).abs() < 1e-9, "{percent}");
        assert_eq!(less(&one[..2], &other[..2]), None, "one pair has no interval");
    }

    #[test]
    fn a_quotient_is_of_means() {
        let found = quotient(&[Some(1.0), Some(4.0)], &[Some(1.0), Some(1.0)]).unwrap();
        assert_eq!(found.mean, 2.5);
        assert!((found.half.unwrap() - 12.7062 * 1.5).abs() < 1e-3, "{found:?}");
        assert_eq!(quotient(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn what_never_came_is_in_the_middle_if_half_of_them_are() {
        let never = f64::INFINITY;
        assert_eq!(median(&[never, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[never, 1.0]), never);
        assert_eq!(median(&[never, 1.0, never]), never);
        assert_eq!(median(&[3.0, 1.0, 2.0, 4.0]), 2.5);
    }

    #[test]
    fn seeds_that_lack_a_value_have_no_average() {
        let lists = [vec![Some(1.0), None], vec![Some(3.0), Some(1.0)]];
        assert_eq!(averages(&lists), [Some(2.0), None]);
    }

    #[test]
    fn small_figures_have_another_digit() {
        let of = |mean, half| Some(Interval { mean, half: Some(half) });
        assert_eq!(text(of(0.623, 0.031), 2), "0.62 ±0.03");
        assert_eq!(text(of(0.004, 0.003), 2), "0.004 ±0.003");
        assert_eq!(rounded(of(0.004, 0.003), 2), "0.00 ±0.00");
        assert_eq!(text(of(0.0, 0.0), 2), "0.00 ±0.00");
        assert_eq!(text(Some(Interval { mean: 1.5, half: None }), 1), "1.5");
        assert_eq!(text(None, 2), "-");
        assert_eq!((percent(Some(0.756)), percent(None)), ("76".into(), "-".into()));
    }
}
