//! BCP 133 run and judged: what RFC 9743, "Specifying New Congestion Control Algorithms", asks of a congestion control.
//!
//! The [`CATALOGUE`] has a [`Criterion`] for each question: its section and keyword, what is run, the figure, and its
//! limit. A figure is *harm* after Ware et al. (HotNets 2019): what somebody loses more beside the law than beside one more flow of a
//! standard control in the same place, as a share. All are judged by the one rule of [`rule`], fixed before any run. The runs
//! are those of [`narrows_papers::Runs`].

mod bed;
mod catalogue;
mod cell;
mod general;
mod mixed;
mod multipath;
mod prose;
pub mod rule;
mod show;
mod single;
mod special;

pub use catalogue::{CATALOGUE, Criterion, Keyword, Make, select};
pub use prose::Law;
pub use show::{PAGE, Tables, catalogue, page, shown};

use std::collections::BTreeSet;

use narrows_lab::Error;
use narrows_papers::figures::Interval;
use narrows_papers::{Ask, Form, Runs};
use serde::Serialize;

use cell::Cell;
use rule::{Found, Verdict, judged};

/// Seeds of each run: of the whole form, and of the quick one.
const SEEDS: [u64; 2] = [20, 5];

/// What was found of a criterion.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `5.1.4/late`.
    pub criterion: String,
    /// The heading of its section.
    pub heading: &'static str,
    /// The RFC's word.
    pub keyword: Keyword,
    /// The verdict.
    pub verdict: Verdict,
    /// What a cell is measured by.
    pub figure: &'static str,
    /// The most that it may be.
    pub limit: f64,
    /// Its mean over the cells, by seed.
    pub mean: Option<Interval>,
    /// All cells, the greatest mean first.
    pub cells: Vec<Found>,
    /// How many runs that took.
    pub runs: usize,
    /// A run that failed, why nothing is run, or what the law's header says: one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub line: String,
}

impl Outcome {
    /// The cell that tells most: the one most above the limit by its interval if it falls short, else of the greatest mean.
    pub fn worst(&self) -> Option<&Found> {
        let sure = |cell: &Found| cell.mean - cell.half.unwrap_or(0.0);
        match self.verdict {
            Verdict::FallsShort => self.cells.iter().max_by(|a, b| sure(a).total_cmp(&sure(b))),
            _ => self.cells.first(),
        }
    }
}

impl Criterion {
    /// Its name on the command line: `5.1.4/late`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.section, self.name)
    }

    /// Runs and judges it.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or a run that does not fit. A run that the law ends is a verdict, not an error.
    pub fn evaluate(&self, law: &Law, runs: &Runs) -> Result<Outcome, Error> {
        let empty = Outcome {
            criterion: self.id(),
            heading: self.heading,
            keyword: self.keyword,
            verdict: Verdict::NotRun,
            figure: self.figure,
            limit: self.limit,
            mean: None,
            cells: Vec::new(),
            runs: 0,
            line: String::new(),
        };
        let make = match self.make {
            Make::None(why) => return Ok(Outcome { line: why.into(), ..empty }),
            Make::Prose => {
                return Ok(match law.says(self.section) {
                    Some(text) => Outcome { verdict: Verdict::Answered, line: text, ..empty },
                    None => {
                        let line =
                            format!("no line \"BCP 133, {}:\" in the law's header", self.section);
                        Outcome { verdict: Verdict::Missing, line, ..empty }
                    }
                });
            }
            Make::Runs(make) => make,
        };
        let cells = make(law.control(), runs.form());
        let seeds = runs.seeds(SEEDS[0], SEEDS[1]);
        let asks: Vec<Ask> = cells
            .iter()
            .flat_map(|cell| &cell.runs)
            .map(|(ask, _)| ask.clone().seeds(seeds))
            .collect();
        let count = asks.iter().map(|ask| format!("{ask:?}")).collect::<BTreeSet<_>>().len()
            * seeds as usize;
        let found = match runs.all(&asks) {
            Err(error @ (Error::Law { .. } | Error::Fault { .. })) => {
                let (verdict, line) = (Verdict::FallsShort, error.to_string());
                return Ok(Outcome { verdict, line, runs: count, ..empty });
            }
            found => found?,
        };
        let mut found = found.iter();
        let all = cells.len();
        let values = |cell: &Cell| {
            let of: Vec<_> = cell
                .runs
                .iter()
                .zip(found.by_ref())
                .map(|((_, control), of)| of.of(control))
                .collect();
            let value =
                |seed: usize| (cell.figure)(&of.iter().map(|of| &of[seed]).collect::<Vec<_>>());
            Found::new(&cell.place, (0..seeds as usize).map(value).collect(), all)
        };
        let mut cells: Vec<Found> = cells.iter().map(values).collect();
        let (verdict, mean) = judged(&cells, self.limit);
        cells.sort_by(|one, other| other.mean.total_cmp(&one.mean));
        Ok(Outcome { verdict, mean, cells, runs: count, ..empty })
    }

    /// CPU time of all its runs of a form, seconds, about; those of the standards, which other laws share, included.
    ///
    /// # Errors
    /// A network that is no scenario.
    pub fn seconds(&self, law: &Law, form: Form) -> Result<f64, Error> {
        let Make::Runs(make) = self.make else { return Ok(0.0) };
        let seeds = form.pick(SEEDS[0], SEEDS[1], 1);
        let cells = make(law.control(), form);
        let (mut once, mut seconds) = (BTreeSet::new(), 0.0);
        for (ask, _) in cells.iter().flat_map(|cell| &cell.runs) {
            if once.insert(format!("{ask:?}")) {
                seconds += ask.clone().seeds(seeds).seconds()?;
            }
        }
        Ok(seconds)
    }
}
