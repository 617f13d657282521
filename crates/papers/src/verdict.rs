//! Verdicts: what is published against what we have. There are four, whoever judges.
//!
//! A verdict is of intervals, not of means: what an interval leaves open cannot be told. *Better* and *worse* are
//! the sides of the published value; the caller says by [`Side`] which is better, by its metric. An effect is not
//! reproduced by an interval that also has 0.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figures::{Interval, less};

/// What a claim is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours agrees with what is published, as far as its interval can tell.
    Reproduced,
    /// Ours is on the better side of it.
    Better,
    /// Ours is on the worse side of it.
    Worse,
    /// The interval decides nothing, or there is none.
    CannotBeTold,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotBeTold => "cannot be told",
        })
    }
}

/// A verdict with what it rests on: `worse (3 of 5 reproduced)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What stands in brackets behind it; may be empty.
    pub because: String,
}

impl Judged {
    /// A verdict and what it rests on.
    pub fn new(verdict: Verdict, because: impl Into<String>) -> Judged {
        Judged { verdict, because: because.into() }
    }

    /// The same with more that it rests on.
    pub fn and(self, more: &str) -> Judged {
        let because = match self.because.as_str() {
            "" => more.to_owned(),
            because => format!("{because}; {more}"),
        };
        Judged { because, ..self }
    }
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Judged {
        Judged::new(verdict, "")
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.because.as_str() {
            "" => self.verdict.fmt(f),
            because => write!(f, "{} ({because})", self.verdict),
        }
    }
}

/// Which side of a published value is better, by the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// More is better: goodput, a gain.
    More,
    /// Less is better: a rival's loss, a delay.
    Less,
    /// Off either way is worse: a fair share.
    Exact,
}

impl Side {
    /// The verdict on a value beside a published one.
    pub fn of(self, found: f64, published: f64) -> Verdict {
        match self {
            Side::More if found > published => Verdict::Better,
            Side::Less if found < published => Verdict::Better,
            _ => Verdict::Worse,
        }
    }
}

/// A published effect: reproduced if our interval has it, and not also 0. More is better.
pub fn near(found: Option<Interval>, published: f64) -> Verdict {
    within(found, published, published)
}

/// A published range of an effect: reproduced if our interval meets it, and not also 0. More is better.
pub fn within(found: Option<Interval>, low: f64, high: f64) -> Verdict {
    let Some((middle, half)) = found.and_then(Interval::bounds) else {
        return Verdict::CannotBeTold;
    };
    let meets = low - half <= middle && middle <= high + half;
    match (meets, middle.abs() <= half) {
        (true, true) => Verdict::CannotBeTold,
        (true, false) => Verdict::Reproduced,
        (false, _) => Side::More.of(middle, high),
    }
}

/// A published level, as far as the paper's "about" or its plot leaves it open: reproduced if our interval is within the
/// tolerance of it, else the side of it if all of the interval is farther off.
pub fn about(found: Option<Interval>, published: f64, tolerance: f64, side: Side) -> Verdict {
    inside(found, published - tolerance, published + tolerance, Some(side))
}

/// A published ratio: reproduced if our whole interval is within a quarter of it, unless some of that is nearer to no
/// effect, 1; then, or if the interval is there only in part, it cannot be told.
pub fn ratio(found: Option<Interval>, published: f64, better: Side) -> Judged {
    let quarter = published / 4.0;
    let (least, most) = (published - quarter, published + quarter);
    let verdict = inside(found, least, most, Some(better));
    let Some((middle, half)) = found.and_then(Interval::bounds) else { return verdict.into() };
    // The least effect of the interval, seen from 1.
    let effect = (published - 1.0).signum() * (middle - 1.0) - half;
    match verdict {
        Verdict::Reproduced if effect < (published - 1.0).abs() / 2.0 => {
            Judged::new(Verdict::CannotBeTold, "nearer to no effect")
        }
        other => other.into(),
    }
}

/// A bound that the figure exceeds: reproduced if its whole interval does, worse if none of it does.
pub fn above(found: Option<Interval>, bound: f64) -> Verdict {
    match found.and_then(Interval::bounds) {
        Some((middle, half)) if (middle - bound).abs() > half => {
            if middle > bound {
                Verdict::Reproduced
            } else {
                Verdict::Worse
            }
        }
        _ => Verdict::CannotBeTold,
    }
}

/// A range of a figure: reproduced if our whole interval is inside, and cannot be told if only a part of it is. Outside
/// it is as `side` says; where no side is better, cannot be told.
pub fn inside(found: Option<Interval>, least: f64, most: f64, side: Option<Side>) -> Verdict {
    let Some((middle, half)) = found.and_then(Interval::bounds) else {
        return Verdict::CannotBeTold;
    };
    let (low, high) = (middle - half, middle + half);
    match side {
        _ if least <= low && high <= most => Verdict::Reproduced,
        Some(side) if low > most || high < least => side.of(middle, most),
        _ => Verdict::CannotBeTold,
    }
}

/// A ranking, as pairs of figures by seed of which the first is to be the larger: each reproduced if the interval of
/// the difference, by pairs of seeds, is on that side, and worse if it is on the other. The ranking is as the
/// [`weakest`] of them.
pub fn ranked<'a>(
    pairs: impl IntoIterator<Item = (&'a [Option<f64>], &'a [Option<f64>])>,
) -> Vec<Verdict> {
    pairs.into_iter().map(|(larger, smaller)| above(less(smaller, larger), 0.0)).collect()
}

/// Of several points at which a claim is to hold: the weakest verdict, with the number of those where it does.
pub fn weakest(verdicts: &[Verdict]) -> Judged {
    let reproduced = verdicts.iter().filter(|&&one| one == Verdict::Reproduced).count();
    let weak = [Verdict::Worse, Verdict::CannotBeTold, Verdict::Better];
    match weak.into_iter().find(|one| verdicts.contains(one)) {
        None if verdicts.is_empty() => Verdict::CannotBeTold.into(),
        Some(verdict) => {
            Judged::new(verdict, format!("{reproduced} of {} reproduced", verdicts.len()))
        }
        None => Verdict::Reproduced.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(mean: f64, half: f64) -> Option<Interval> {
        Some(Interval { mean, half: Some(half) })
    }

    #[test]
    fn a_value_is_reproduced_by_an_interval_that_has_it_and_not_also_nothing() {
        assert_eq!(near(interval(16.0, 2.0), 17.0), Verdict::Reproduced);
        assert_eq!(near(interval(16.0, 18.0), 17.0), Verdict::CannotBeTold);
        assert_eq!(near(interval(20.0, 2.0), 17.0), Verdict::Better);
        assert_eq!(near(interval(3.0, 2.0), 17.0), Verdict::Worse);
        // An interval at 0 that does not have it is worse all the same.
        assert_eq!(near(interval(0.0, 2.0), 17.0), Verdict::Worse);
        assert_eq!(near(Some(Interval { mean: 17.0, half: None }), 17.0), Verdict::CannotBeTold);
        assert_eq!(near(None, 17.0), Verdict::CannotBeTold);
        assert_eq!(within(interval(4.5, 1.0), 5.0, 7.0), Verdict::Reproduced);
        assert_eq!(within(interval(9.0, 1.0), 5.0, 7.0), Verdict::Better);
    }

    #[test]
    fn a_ratio_is_reproduced_within_a_quarter_unless_it_is_nearer_to_no_effect() {
        let of =
            |mean, half, published| ratio(interval(mean, half), published, Side::More).to_string();
        assert_eq!(of(2.19, 0.06, 2.18), "reproduced");
        assert_eq!(of(0.68, 0.02, 0.68), "reproduced");
        assert_eq!(of(1.10, 0.01, 1.33), "cannot be told (nearer to no effect)");
        assert_eq!(of(0.94, 0.00, 0.84), "cannot be told (nearer to no effect)");
        // The mean is nearer to the published ratio, a part of the interval is not.
        assert_eq!(of(1.20, 0.05, 1.33), "cannot be told (nearer to no effect)");
        assert_eq!(of(1.20, 0.01, 1.33), "reproduced");
    }

    #[test]
    fn a_ratio_beyond_a_quarter_is_as_the_side_says() {
        let judged = |mean, half, published, better| {
            ratio(interval(mean, half), published, better).to_string()
        };
        assert_eq!(judged(1.00, 0.01, 2.18, Side::More), "worse");
        assert_eq!(judged(2.85, 0.06, 1.48, Side::More), "better");
        assert_eq!(judged(2.7, 0.2, 2.18, Side::More), "cannot be told");
        // A share that is off either way.
        assert_eq!(judged(0.64, 0.02, 2.44, Side::Exact), "worse");
        assert_eq!(judged(3.5, 0.1, 2.44, Side::Exact), "worse");
        assert_eq!(judged(1.98, 0.08, 2.19, Side::Exact), "reproduced");
        assert_eq!(ratio(None, 2.0, Side::Exact).to_string(), "cannot be told");
    }

    #[test]
    fn a_bound_is_exceeded_by_the_whole_interval_or_not_at_all() {
        assert_eq!(above(interval(11.0, 0.5), 10.0), Verdict::Reproduced);
        assert_eq!(above(interval(11.0, 2.0), 10.0), Verdict::CannotBeTold);
        assert_eq!(above(interval(7.0, 2.0), 10.0), Verdict::Worse);
        assert_eq!(above(None, 10.0), Verdict::CannotBeTold);
    }

    #[test]
    fn a_level_is_reproduced_within_what_the_paper_leaves_open() {
        assert_eq!(about(interval(0.94, 0.01), 0.97, 0.05, Side::More), Verdict::Reproduced);
        assert_eq!(about(interval(0.90, 0.01), 0.97, 0.05, Side::More), Verdict::Worse);
        assert_eq!(about(interval(9.0, 0.5), 7.0, 1.0, Side::Less), Verdict::Worse);
        assert_eq!(about(interval(5.0, 0.5), 7.0, 1.0, Side::Less), Verdict::Better);
        assert_eq!(about(interval(1.3, 0.1), 1.0, 0.1, Side::Exact), Verdict::Worse);
        assert_eq!(about(interval(0.7, 0.1), 1.0, 0.1, Side::Exact), Verdict::Worse);
        // A wide interval reproduces nothing.
        assert_eq!(about(interval(0.96, 0.3), 0.97, 0.05, Side::More), Verdict::CannotBeTold);
        assert_eq!(about(None, 7.0, 1.0, Side::Less), Verdict::CannotBeTold);
    }

    #[test]
    fn a_range_is_met_by_the_whole_interval() {
        let range = |mean, half, side| inside(interval(mean, half), 10.0, 20.0, side);
        assert_eq!(range(12.0, 2.0, None), Verdict::Reproduced);
        assert_eq!(range(11.0, 2.0, Some(Side::More)), Verdict::CannotBeTold);
        assert_eq!(range(23.0, 2.0, Some(Side::More)), Verdict::Better);
        assert_eq!(range(7.0, 2.0, Some(Side::More)), Verdict::Worse);
        assert_eq!(range(23.0, 2.0, Some(Side::Less)), Verdict::Worse);
        assert_eq!(range(23.0, 2.0, None), Verdict::CannotBeTold);
        // Wider than the range, and around it.
        assert_eq!(range(15.0, 9.0, Some(Side::More)), Verdict::CannotBeTold);
        assert_eq!(inside(None, 10.0, 20.0, Some(Side::More)), Verdict::CannotBeTold);
        let one = Some(Interval { mean: 15.0, half: None });
        assert_eq!(inside(one, 10.0, 20.0, Some(Side::More)), Verdict::CannotBeTold);
    }

    #[test]
    fn a_ranking_is_of_intervals_of_differences_by_pairs_of_seeds() {
        let judged = |larger: &[f64], smaller: &[f64]| {
            let of = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
            ranked([(&of(larger)[..], &of(smaller)[..])])[0]
        };
        // Seeds differ by much more than the two of each.
        assert_eq!(judged(&[1.1, 5.1, 9.1], &[1.0, 5.0, 9.0]), Verdict::Reproduced);
        assert_eq!(judged(&[1.0, 5.0, 9.0], &[1.1, 5.1, 9.1]), Verdict::Worse);
        // The larger mean is not enough.
        assert_eq!(judged(&[1.0, 6.0, 9.0], &[1.1, 5.0, 9.1]), Verdict::CannotBeTold);
        assert_eq!(judged(&[2.0, 2.0], &[2.0, 2.0]), Verdict::CannotBeTold);
        assert_eq!(judged(&[2.0], &[1.0]), Verdict::CannotBeTold);
    }

    #[test]
    fn one_point_where_a_claim_fails_is_a_claim_that_fails() {
        use Verdict::{Better, CannotBeTold, Reproduced, Worse};
        assert_eq!(weakest(&[Reproduced, Reproduced]).to_string(), "reproduced");
        assert_eq!(weakest(&[Reproduced, Better]).to_string(), "better (1 of 2 reproduced)");
        assert_eq!(
            weakest(&[Better, CannotBeTold]).to_string(),
            "cannot be told (0 of 2 reproduced)"
        );
        assert_eq!(weakest(&[]).to_string(), "cannot be told");
        assert_eq!(weakest(&[Worse, Reproduced]).to_string(), "worse (1 of 2 reproduced)");
    }

    #[test]
    fn which_side_is_better_is_said_by_metric() {
        assert_eq!(Side::More.of(2.0, 1.0), Verdict::Better);
        assert_eq!(Side::Less.of(2.0, 1.0), Verdict::Worse);
    }
}
