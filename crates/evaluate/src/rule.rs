//! The rule of verdicts, the same for all criteria.
//!
//! A criterion has cells: places where a figure is measured of the law and of the standards, seed by seed, with a limit
//! to *harm* (Ware et al., HotNets 2019): the share by which the law's is worse. The standard that is worse by its mean
//! over the seeds is the yardstick, and harm is of the two means. Where more is better, harm 1 - y / x is at most L if
//! (1 - L) x - y is at most 0, and where less is, 1 - x / y, if (1 - L) y - x is: the rule asks Student's t of these
//! differences, pair by pair of seeds, which a noisy figure does not bias. A criterion
//! - *falls short* if in a cell harm is above the limit at a confidence of 1 - 0.05 / cells (Bonferroni's correction for
//!   the number of cells), or if the law ends a run;
//! - *meets* if in every cell harm is at most the limit at a confidence of 1 - 0.05 / standards: to be no worse than one of
//!   them is enough, and the same seeds choose that one, so each may err by a part of 5 % (of all cells at once: the number
//!   of cells needs no correction);
//! - else, from fewer than five seeds, and if a run fails by an internal error, *cannot be told*.
//!
//! A cell in which the standard is so near the worst possible that no law can be above the limit is not judged.
//!
//! A law of the kind of one standard is compared with that alone, too, in its place in the same cell. It is *worse* there if
//! harm is above zero, whatever the limit, at a confidence of 1 - 0.05 / cells, those of the criterion that are so compared.
//! No verdict depends on it.

use std::fmt;

use narrows_stats::{mean, one_sided};
use serde::Serialize;

/// What is found of a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is met.
    Meets,
    /// It is met by the host, which no law can change.
    Host,
    /// It is not met.
    FallsShort,
    /// The runs decide nothing.
    CannotBeTold,
    /// A question of prose that the law's header answers.
    Answered,
    /// One that it does not.
    Missing,
    /// The host cannot run it, or the law has more paths in it than it is judged with.
    LeftOut,
}

/// All of them.
pub const VERDICTS: [Verdict; 7] = [
    Verdict::Meets,
    Verdict::Host,
    Verdict::FallsShort,
    Verdict::CannotBeTold,
    Verdict::Answered,
    Verdict::Missing,
    Verdict::LeftOut,
];

impl Verdict {
    /// What it means, a line.
    pub fn about(self) -> &'static str {
        match self {
            Verdict::Meets => "every cell is at most the limit, with its interval",
            Verdict::FallsShort => {
                "a cell is above the limit by its interval, corrected for the number of cells; or the law ended a run, \
                 whose line stands for the cell"
            }
            Verdict::Host => "the host does so, whatever the law does",
            Verdict::CannotBeTold => {
                "the intervals, or fewer than five seeds, decide nothing: more seeds may; or a run failed by an internal \
                 error, whose line stands for the cell"
            }
            Verdict::Answered => "prose: the law's header answers",
            Verdict::Missing => "prose: the law's header does not answer",
            Verdict::LeftOut => {
                "the host lacks what it needs, or it is of more paths than asked for"
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Meets => "meets",
            Verdict::Host => "the host's",
            Verdict::FallsShort => "falls short",
            Verdict::CannotBeTold => "cannot be told",
            Verdict::Answered => "answered",
            Verdict::Missing => "missing",
            Verdict::LeftOut => "left out",
        })
    }
}

/// The chance that a criterion which is met everywhere falls short, and that one with a cell above the limit meets.
const CHANCE: f64 = 0.05;
/// Fewer seeds tell nothing: a few equal values are no certainty.
pub const LEAST_SEEDS: usize = 5;

/// Which figures are better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Better {
    /// Those that are more, as goodput.
    More,
    /// Those that are less, as delay; what is below `floor` does not count.
    Less {
        /// In the figure's unit.
        floor: f64,
    },
}

/// The figures of a cell, by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    place: String,
    better: Better,
    law: Vec<f64>,
    standard: Vec<f64>,
    against: String,
    /// Of how many standards it is the worst.
    standards: usize,
    /// Is harm above the limit possible?
    judged: bool,
    /// The same against the law's own standard, with no limit.
    own: Option<Box<Figures>>,
}

impl Figures {
    /// Those of the law, and of each standard with its name. `worst` is the worst that the figure can be there, if there
    /// is such a bound. A figure that is no number is the worst.
    pub fn new(
        place: &str,
        better: Better,
        worst: Option<f64>,
        law: Vec<f64>,
        standards: Vec<(String, Vec<f64>)>,
        limit: f64,
    ) -> Figures {
        let bound = worst.unwrap_or(match better {
            Better::More => 0.0,
            Better::Less { .. } => f64::INFINITY,
        });
        let count = standards.len();
        let number = |value: f64| if value.is_finite() { value } else { bound };
        let law = law.into_iter().map(number).collect();
        let worse = |one: &f64, other: &f64| match better {
            Better::More => other.total_cmp(one),
            Better::Less { .. } => one.total_cmp(other),
        };
        let finite = standards.into_iter().filter(|(_, of)| of.iter().all(|one| one.is_finite()));
        let yardstick = finite.max_by(|(_, a), (_, b)| worse(&mean(a), &mean(b)));
        let (against, mut standard) = yardstick.unwrap_or_default();
        let level = mean(&standard);
        let most = match better {
            Better::More => (level > 0.0).then(|| 1.0 - bound / level),
            Better::Less { floor } => {
                if level < floor {
                    standard.fill(floor);
                }
                let level = level.max(floor);
                (level > 0.0 || bound > 0.0).then(|| 1.0 - level / bound)
            }
        };
        let judged = !standard.is_empty() && most.is_some_and(|most| most > limit);
        let place = place.into();
        Figures { place, better, law, standard, against, standards: count, judged, own: None }
    }

    /// The same, compared with the law's own standard, too: its name and figures.
    pub fn with_own(self, worst: Option<f64>, standard: (String, Vec<f64>)) -> Figures {
        let law = self.law.clone();
        let own = Figures::new(&self.place, self.better, worst, law, vec![standard], 0.0);
        Figures { own: Some(Box::new(own)).filter(|own| own.judged), ..self }
    }

    /// Harm in one of so many cells that are judged; so many are compared with the law's own standard.
    fn found(mut self, limit: f64, cells: usize, compared: usize) -> Found {
        let own = self.own.take().map(|own| {
            let Found { mean, low, high, against, standard, .. } = own.found(0.0, compared, 0);
            Own { against, mean, low, high, standard }
        });
        let share = 1.0 - limit;
        let (x, y) = (mean(&self.standard), mean(&self.law));
        let pairs = self.law.iter().zip(&self.standard);
        let (above, unit): (Vec<f64>, f64) = match self.better {
            Better::More => (pairs.map(|(y, x)| share * x - y).collect(), x),
            Better::Less { floor } if x <= floor && y <= floor => {
                (vec![-limit; self.law.len()], 1.0)
            }
            Better::Less { floor } => (pairs.map(|(y, x)| share * y - x).collect(), y.max(floor)),
        };
        // A gain is at most that of doing twice as well, as a cell's mean is for people; nobody can lose more than all, though
        // the bound of an interval may be above 1.
        let harm =
            |above: f64| if unit > 0.0 { (limit + above / unit).clamp(-1.0, 1.0) } else { 0.0 };
        let [middle, low, high] = if unit.is_finite() {
            let by = |confidence: f64| {
                one_sided(&above, confidence).filter(|_| above.len() >= LEAST_SEEDS)
            };
            let above_by = mean(&above);
            let half = |of: usize| by(1.0 - CHANCE / of.max(1) as f64);
            let low = half(cells).map(|half| harm(above_by - half));
            [Some(harm(above_by)), low, half(self.standards).map(|half| harm(above_by + half))]
        } else {
            [Some(1.0); 3]
        };
        let Figures { place, law, standard, against, judged, .. } = self;
        let [low, high] = [low, high].map(|bound| bound.filter(|_| judged));
        let mean = middle.unwrap_or(1.0);
        Found { place, mean, low, high, judged, against, law, standard, own }
    }
}

/// Harm in a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Where, in a few words.
    pub place: String,
    /// Harm of the means over the seeds, -1 at least and 1 at most, as its bounds are.
    pub mean: f64,
    /// Harm is surely more, at the corrected confidence; none from fewer than [`LEAST_SEEDS`].
    pub low: Option<f64>,
    /// Harm is surely less, at 95 % over all standards; the same.
    pub high: Option<f64>,
    /// False if no law can be above the limit there.
    pub judged: bool,
    /// The standard that is the yardstick.
    pub against: String,
    /// The law's figure, by seed.
    pub law: Vec<f64>,
    /// The standard's, by seed.
    pub standard: Vec<f64>,
    /// The same against the law's own standard, if it is of the kind of one, and that has its place there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
}

/// Harm in a cell against the law's own standard alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Own {
    /// The standard.
    pub against: String,
    /// Harm of the means over the seeds.
    pub mean: f64,
    /// Harm is surely more, at the confidence that is corrected for the number of cells so compared.
    pub low: Option<f64>,
    /// Harm is surely less, at 95 %.
    pub high: Option<f64>,
    /// The standard's figure, by seed.
    pub standard: Vec<f64>,
}

impl Own {
    /// Is the law surely worse, by however little?
    pub fn is_worse(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0)
    }
}

/// The verdict on cells with a limit, and harm in each.
pub fn judged(cells: Vec<Figures>, limit: f64) -> (Verdict, Vec<Found>) {
    let count = cells.iter().filter(|cell| cell.judged).count();
    let compared = cells.iter().filter(|cell| cell.own.is_some()).count();
    let found = cells.into_iter().map(|cell| cell.found(limit, count, compared));
    let found: Vec<Found> = found.collect();
    let mut asked = found.iter().filter(|cell| cell.judged);
    let verdict = if asked.clone().any(|cell| cell.low.is_some_and(|low| low > limit)) {
        Verdict::FallsShort
    } else if count > 0 && asked.all(|cell| cell.high.is_some_and(|high| high <= limit)) {
        Verdict::Meets
    } else {
        Verdict::CannotBeTold
    };
    (verdict, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: f64 = 0.2;

    fn cell(better: Better, law: &[f64], standards: &[&[f64]]) -> Figures {
        let standards = standards.iter().enumerate();
        let standards = standards.map(|(at, of)| (format!("s{at}"), of.to_vec())).collect();
        Figures::new("", better, None, law.to_vec(), standards, LIMIT)
    }

    /// Goodput against one of 1 in each run.
    fn share(law: &[f64]) -> Figures {
        cell(Better::More, law, &[&vec![1.0; law.len()]])
    }

    fn verdict(cells: Vec<Figures>) -> Verdict {
        judged(cells, LIMIT).0
    }

    const GOOD: [f64; 5] = [0.99, 0.98, 0.97, 1.0, 1.01];

    #[test]
    fn one_cell_above_the_limit_falls_short() {
        let of = |bad: &[f64]| verdict(vec![share(&GOOD), share(&GOOD), share(bad)]);
        assert_eq!(of(&[0.9; 5]), Verdict::Meets);
        assert_eq!(of(&[0.5; 5]), Verdict::FallsShort);
        // Harm is above the limit, but not by its interval.
        assert_eq!(of(&[0.9, 0.7, 0.7, 0.9, 0.7]), Verdict::CannotBeTold);
    }

    #[test]
    fn no_gain_pays_for_harm_elsewhere() {
        let doubtful = share(&[0.95, 0.66, 0.95, 0.66, 0.9]);
        let gain = share(&[2.0; 5]);
        let of = verdict(vec![doubtful, gain.clone(), gain.clone(), gain]);
        assert_eq!(of, Verdict::CannotBeTold);
    }

    #[test]
    fn more_cells_need_a_wider_interval_to_fall_short() {
        let bad = share(&[0.6, 0.5, 0.7, 0.4, 0.75]);
        assert_eq!(verdict(vec![bad.clone()]), Verdict::FallsShort);
        let many = [vec![bad], vec![share(&GOOD); 39]].concat();
        assert_eq!(verdict(many), Verdict::CannotBeTold);
    }

    #[test]
    fn few_seeds_tell_nothing() {
        for seeds in 1..LEAST_SEEDS {
            for value in [0.0, 1.0] {
                let found = verdict(vec![share(&vec![value; seeds])]);
                assert_eq!(found, Verdict::CannotBeTold, "{seeds} of {value}");
            }
        }
        assert_eq!(verdict(vec![]), Verdict::CannotBeTold);
    }

    /// The worse of noisy standards is chosen once: a law that is one of them has no gain by it, and harm is not hidden.
    #[test]
    fn noise_hides_no_harm() {
        // The same values in three orders: of a coefficient of variation of 0.3.
        let noise: Vec<f64> =
            (0..40).map(|at| 1.0 + 0.42 * libm::sin(2.4 * f64::from(at))).collect();
        let turned = |by: usize| [&noise[by..], &noise[..by]].concat();
        let of = |law: Vec<f64>| {
            let (verdict, found) =
                judged(vec![cell(Better::More, &law, &[&turned(7), &turned(19)])], LIMIT);
            (verdict, found[0].mean)
        };
        let (same, harm) = of(noise.clone());
        assert!(same == Verdict::Meets && harm.abs() < 1e-9, "{same} {harm}");
        let (worse, harm) = of(noise.iter().map(|one| 0.6 * one).collect());
        assert!(worse == Verdict::FallsShort && (harm - 0.4).abs() < 1e-9, "{worse} {harm}");
    }

    /// Random numbers of a normal distribution, about: SplitMix64, and the sum of twelve.
    fn normal(state: &mut u64) -> f64 {
        let mut uniform = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = *state;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    /// A law that harms by just the limit is found to meet by chance in one of twenty, of however many equal standards the
    /// worst is chosen.
    #[test]
    fn at_the_limit_a_law_meets_by_chance_in_one_of_twenty_at_most() {
        const TRIALS: usize = 4000;
        let mut state = 9743;
        let mut draw = |level: f64, seeds: usize| -> Vec<f64> {
            (0..seeds).map(|_| level * (1.0 + 0.15 * normal(&mut state))).collect()
        };
        // 0.05 with three standard errors of a share of so many.
        let most = 0.05 + 3.0 * libm::sqrt(0.05 * 0.95 / TRIALS as f64);
        for (better, level) in
            [(Better::More, 1.0 - LIMIT), (Better::Less { floor: 0.0 }, 1.0 / (1.0 - LIMIT))]
        {
            for standards in 1..=3 {
                for seeds in [5, 20] {
                    let meets = (0..TRIALS).filter(|_| {
                        let law = draw(level, seeds);
                        let others: Vec<Vec<f64>> =
                            (0..standards).map(|_| draw(1.0, seeds)).collect();
                        let others: Vec<&[f64]> = others.iter().map(Vec::as_slice).collect();
                        verdict(vec![cell(better, &law, &others)]) == Verdict::Meets
                    });
                    let share = meets.count() as f64 / TRIALS as f64;
                    let of = format!("{better:?}, {standards} standards, {seeds} seeds: {share}");
                    // Not by a rule that nobody can meet.
                    assert!((0.02..=most).contains(&share), "{of}");
                }
            }
        }
    }

    #[test]
    fn bounds_of_harm_are_no_more_than_all() {
        let found = judged(vec![share(&[0.5, -0.4, 0.1, -0.3, 0.2])], LIMIT).1.remove(0);
        assert!(found.mean > 0.9 && found.high == Some(1.0), "{found:?}");
    }

    #[test]
    fn the_worse_standard_is_the_yardstick() {
        let less = Better::Less { floor: 0.1 };
        let harm = |figures: Figures| {
            let found = judged(vec![figures], LIMIT).1.remove(0);
            (libm::round(1000.0 * found.mean) / 1000.0, found.against)
        };
        assert_eq!(
            harm(cell(Better::More, &[4.0; 5], &[&[5.0; 5], &[6.0; 5]])),
            (0.2, "s0".into())
        );
        assert_eq!(
            harm(cell(Better::More, &[9.0; 5], &[&[3.0; 5], &[2.0; 5]])),
            (-1.0, "s1".into())
        );
        assert_eq!(harm(cell(less, &[5.0; 5], &[&[3.0; 5], &[4.0; 5]])), (0.2, "s1".into()));
        assert_eq!(harm(cell(less, &[2.0; 5], &[&[1.0; 5], &[0.5; 5]])), (0.5, "s0".into()));
        // Below the floor nothing counts.
        assert_eq!(harm(cell(less, &[0.09; 5], &[&[0.0; 5]])).0, 0.0);
        assert_eq!(harm(cell(less, &[0.2; 5], &[&[0.0; 5]])).0, 0.5);
    }

    /// One of so many cells against flows of 1, the own standard's; the others are as good as that to the bit.
    fn against_own(law: &[f64], cells: usize) -> (Verdict, Own) {
        let with =
            |law: &[f64]| share(law).with_own(None, ("reno".to_owned(), vec![1.0; law.len()]));
        let others = vec![with(&vec![1.0; law.len()]); cells - 1];
        let (verdict, mut found) = judged([vec![with(law)], others].concat(), LIMIT);
        (verdict, found.remove(0).own.unwrap())
    }

    #[test]
    fn a_law_is_worse_than_its_own_standard_by_anything_that_is_sure() {
        // Half of the limit.
        let (verdict, own) = against_own(&[0.9, 0.91, 0.89, 0.9, 0.9], 1);
        assert!(verdict == Verdict::Meets && own.is_worse(), "{verdict} {own:?}");
        assert!((own.mean - 0.1).abs() < 1e-9 && own.against == "reno", "{own:?}");
        // By its mean, but not by its interval; as good; better.
        for law in [[0.9, 1.05, 0.85, 1.0, 0.95], [1.0; 5], [1.2, 1.1, 1.2, 1.1, 1.2]] {
            let (verdict, own) = against_own(&law, 1);
            assert!(verdict == Verdict::Meets && !own.is_worse(), "{law:?}: {verdict} {own:?}");
        }
        // From few seeds nothing is sure.
        assert!(!against_own(&[0.5; LEAST_SEEDS - 1], 1).1.is_worse());
    }

    #[test]
    fn of_more_cells_one_is_worse_than_the_own_standard_by_a_wider_interval() {
        let law = [0.95, 0.9, 1.0, 0.9, 0.95];
        assert!(against_own(&law, 1).1.is_worse());
        assert!(!against_own(&law, 40).1.is_worse());
    }

    #[test]
    fn a_law_that_meets_by_another_standard_may_be_worse_than_its_own() {
        let own = ("s0".to_owned(), vec![1.0; 5]);
        let figures = cell(Better::More, &[0.7; 5], &[&[1.0; 5], &[0.6; 5]]);
        let (verdict, found) = judged(vec![figures.with_own(None, own)], LIMIT);
        assert_eq!((verdict, found[0].against.as_str()), (Verdict::Meets, "s1"));
        let own = found[0].own.as_ref().unwrap();
        assert!(own.is_worse() && (own.mean - 0.3).abs() < 1e-9, "{own:?}");
        // Below the floor nothing counts here, too; and where the standard has nothing to lose nothing is compared.
        let less = Better::Less { floor: 0.1 };
        let figures = cell(less, &[0.09; 5], &[&[0.01; 5]]);
        let found = judged(vec![figures.with_own(None, ("s0".into(), vec![0.01; 5]))], LIMIT).1;
        assert!(!found[0].own.as_ref().unwrap().is_worse(), "{found:?}");
        let nothing = share(&[0.0; 5]).with_own(None, ("s0".into(), vec![0.0; 5]));
        assert_eq!(judged(vec![nothing], LIMIT).1[0].own, None);
    }

    #[test]
    fn a_figure_that_is_no_number_is_the_worst() {
        assert_eq!(verdict(vec![share(&[f64::NAN; 5])]), Verdict::FallsShort);
        let less = Better::Less { floor: 0.0 };
        assert_eq!(verdict(vec![cell(less, &[f64::NAN; 5], &[&[1.0; 5]])]), Verdict::FallsShort);
    }

    #[test]
    fn where_the_standard_is_near_the_worst_nothing_is_judged() {
        let full = |level: f64| {
            let less = Better::Less { floor: 1.0 };
            Figures::new(
                "",
                less,
                Some(40.0),
                vec![40.0; 5],
                vec![("reno".into(), vec![level; 5])],
                LIMIT,
            )
        };
        assert_eq!(verdict(vec![full(35.0)]), Verdict::CannotBeTold);
        assert_eq!(verdict(vec![full(35.0), share(&GOOD)]), Verdict::Meets);
        assert_eq!(verdict(vec![full(30.0), share(&GOOD)]), Verdict::FallsShort);
        // Nothing to lose.
        assert_eq!(
            verdict(vec![cell(Better::More, &[0.0; 5], &[&[0.0; 5]])]),
            Verdict::CannotBeTold
        );
    }
}
