//! The rule of verdicts, the same for all criteria and fixed before any run.
//!
//! A criterion has cells: places where a figure is measured, greater is worse, that has a limit. Each cell has a value
//! for each seed. A criterion
//! - *falls short* if in a cell the mean is above the limit by more than its one-sided interval at 1 - 0.05 / cells
//!   (Student's t; Bonferroni's correction for the number of cells of the criterion), or if a run fails;
//! - *meets* if no cell's mean is above the limit and the mean over the cells, by seed, is below it by its 95 %
//!   interval;
//! - else *cannot be told*.

use std::fmt;

use narrows_papers::figures::Interval;
use narrows_stats::{mean, one_sided};
use serde::Serialize;

/// What is found of a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is met.
    Meets,
    /// It is not met.
    FallsShort,
    /// The runs decide nothing.
    CannotBeTold,
    /// A question of prose that the law's header answers.
    Answered,
    /// One that it does not.
    Missing,
    /// Nothing runs it.
    NotRun,
}

/// All of them.
pub const VERDICTS: [Verdict; 6] = [
    Verdict::Meets,
    Verdict::FallsShort,
    Verdict::CannotBeTold,
    Verdict::Answered,
    Verdict::Missing,
    Verdict::NotRun,
];

impl Verdict {
    /// What it means, a line.
    pub fn about(self) -> &'static str {
        match self {
            Verdict::Meets => {
                "no cell is above the limit, and the mean is below it by its interval"
            }
            Verdict::FallsShort => {
                "a cell is above the limit by its interval, corrected for the number of cells"
            }
            Verdict::CannotBeTold => "the intervals decide nothing; more seeds may",
            Verdict::Answered => "prose: the law's header answers",
            Verdict::Missing => "prose: the law's header does not answer",
            Verdict::NotRun => "nothing here runs it",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Meets => "meets",
            Verdict::FallsShort => "falls short",
            Verdict::CannotBeTold => "cannot be told",
            Verdict::Answered => "answered",
            Verdict::Missing => "missing",
            Verdict::NotRun => "not run",
        })
    }
}

/// The chance that a criterion which is met everywhere falls short.
const CHANCE: f64 = 0.05;

/// A cell's values, one for each seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Where, in a few words.
    pub place: String,
    /// Mean over the seeds.
    pub mean: f64,
    /// By how much the mean may be too high, at the corrected confidence; none from one seed.
    pub half: Option<f64>,
    /// By seed.
    pub values: Vec<f64>,
}

impl Found {
    /// The values of one of so many cells.
    pub fn new(place: &str, values: Vec<f64>, cells: usize) -> Found {
        let half = one_sided(&values, 1.0 - CHANCE / cells.max(1) as f64);
        Found { place: place.into(), mean: mean(&values), half, values }
    }

    /// Is it above the limit by its interval?
    fn beyond(&self, limit: f64) -> bool {
        self.half.is_some_and(|half| self.mean - half > limit)
    }
}

/// The verdict on cells with a limit, and the interval of their mean by seed.
pub fn judged(cells: &[Found], limit: f64) -> (Verdict, Option<Interval>) {
    let seeds = cells.iter().map(|cell| cell.values.len()).min().unwrap_or(0);
    let by_seed: Vec<f64> = (0..seeds)
        .map(|seed| mean(&cells.iter().map(|cell| cell.values[seed]).collect::<Vec<_>>()))
        .collect();
    let pooled = Interval::of(&by_seed);
    let below = |found: Interval| found.bounds().is_some_and(|(mean, half)| mean + half <= limit);
    let verdict = if cells.iter().any(|cell| cell.beyond(limit)) {
        Verdict::FallsShort
    } else if cells.iter().all(|cell| cell.mean <= limit) && pooled.is_some_and(below) {
        Verdict::Meets
    } else {
        Verdict::CannotBeTold
    };
    (verdict, pooled)
}

/// How much less this is than that, as a share of that: harm where more is better (Ware et al., HotNets 2019). At most
/// 1, a gain at most -1; nothing where there was nothing to lose. A share of nothing is none.
pub fn less(this: f64, that: f64) -> f64 {
    let this = if this.is_finite() { this } else { 0.0 };
    if that > 0.0 { ((that - this) / that).max(-1.0) } else { 0.0 }
}

/// How much more this is than that, as a share of this: harm where less is better (the same). What both have below
/// `floor` does not count.
pub fn more(this: f64, that: f64, floor: f64) -> f64 {
    let (this, that) = (this.max(floor), that.max(floor));
    if this > 0.0 { ((this - that) / this).max(-1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(of: &[&[f64]]) -> Vec<Found> {
        of.iter().map(|values| Found::new("", values.to_vec(), of.len())).collect()
    }

    #[test]
    fn one_cell_above_the_limit_falls_short() {
        let good = [0.01, 0.02, 0.03];
        let of = |bad: &[f64]| judged(&cells(&[&good, &good, bad]), 0.2).0;
        assert_eq!(of(&[0.1, 0.1, 0.1]), Verdict::Meets);
        assert_eq!(of(&[0.5, 0.5, 0.5]), Verdict::FallsShort);
        // Its mean is above the limit, but not by its interval: nothing is told, however good the others are.
        assert_eq!(of(&[0.1, 0.3, 0.3]), Verdict::CannotBeTold);
    }

    #[test]
    fn more_cells_need_a_wider_interval() {
        let bad: &[f64] = &[0.4, 0.5, 0.6];
        let good: &[f64] = &[0.0, 0.0, 0.0];
        assert_eq!(judged(&cells(&[bad]), 0.2).0, Verdict::FallsShort);
        assert_eq!(
            judged(&cells(&[&[bad][..], &[good; 19][..]].concat()), 0.2).0,
            Verdict::CannotBeTold
        );
    }

    #[test]
    fn one_seed_tells_nothing() {
        assert_eq!(judged(&cells(&[&[9.0]]), 0.2).0, Verdict::CannotBeTold);
        assert_eq!(judged(&cells(&[&[0.0]]), 0.2).0, Verdict::CannotBeTold);
        assert_eq!(judged(&[], 0.2).0, Verdict::CannotBeTold);
    }

    #[test]
    fn the_mean_over_cells_must_be_below_the_limit_by_its_interval() {
        assert_eq!(judged(&cells(&[&[0.05, 0.15, 0.25]]), 0.2).0, Verdict::CannotBeTold);
        assert_eq!(judged(&cells(&[&[0.14, 0.15, 0.16]]), 0.2).0, Verdict::Meets);
    }

    #[test]
    fn harm_is_a_share_of_the_better() {
        assert_eq!(less(4.0, 5.0), 0.2);
        assert_eq!(less(0.0, 5.0), 1.0);
        assert_eq!(less(50.0, 5.0), -1.0);
        assert_eq!(less(1.0, 0.0), 0.0);
        // Of a law that delivers nothing beside one that does not either.
        assert_eq!(less(f64::NAN, 0.5), 1.0);
        assert_eq!(more(5.0, 4.0, 0.0), 0.2);
        assert_eq!(more(0.1, 0.001, 0.2), 0.0);
        assert_eq!(more(0.001, 5.0, 0.0), -1.0);
    }
}
