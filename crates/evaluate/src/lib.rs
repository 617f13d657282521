//! BCP 133 run and judged: what RFC 9743, "Specifying New Congestion Control Algorithms", asks of a congestion control.
//!
//! The [`CATALOGUE`] has a [`Criterion`] for each question: its section and keyword, what is run, the figure, and its
//! limit. A figure is *harm* after Ware et al. (HotNets 2019): what somebody loses more beside the law than beside one more flow of a
//! standard control in the same place, as a share. All are judged by the one rule of [`rule`]. The runs
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

pub use catalogue::{CATALOGUE, Criterion, Keyword, Make, select, selection};
pub use prose::Law;
pub use show::{PAGE, Tables, catalogue, ignored, listed, of_law, page, shown};

use std::collections::BTreeSet;

use narrows_lab::{Error, HostId};
use narrows_papers::{Ask, Form, Runs, Used};
use serde::Serialize;

use cell::Cell;
use rule::{Found, Own, Verdict, judged};

/// Seeds of each run: of the whole form, and of the quick one.
const SEEDS: [u64; 2] = [20, 5];

/// How many seeds each run has.
fn seeds(runs: &Runs) -> u64 {
    runs.seeds(SEEDS[0], SEEDS[1])
}

/// How many each has in a form, unless others are asked for.
pub fn seeds_of(form: Form) -> u64 {
    form.pick(SEEDS[0], SEEDS[1], 1)
}

/// What was found of some laws on a host.
#[derive(Clone, Debug)]
pub struct OnHost {
    /// The host.
    pub host: HostId,
    /// The laws, each with its outcomes.
    pub laws: Vec<(Law, Vec<Outcome>)>,
}

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
    /// Harm, mean of the cells that are judged.
    pub mean: Option<f64>,
    /// All cells, the greatest mean first.
    pub cells: Vec<Found>,
    /// How many runs that took.
    pub runs: usize,
    /// How many of them the machine was too slow for, in real time.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfit: usize,
    /// A run that failed, why the host runs none, or what the law's header says: one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub line: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Outcome {
    /// The cell that tells most: the one most surely above the limit if it falls short, else the one least surely below.
    pub fn worst(&self) -> Option<&Found> {
        let by = |cell: &Found| match self.verdict {
            Verdict::FallsShort => cell.low,
            _ => cell.high,
        };
        let sure = |cell: &Found| by(cell).unwrap_or(cell.mean);
        self.judged().max_by(|a, b| sure(a).total_cmp(&sure(b)))
    }

    /// The line of a run that failed by an internal error, for which it cannot be told.
    pub fn internal_error(&self) -> Option<&str> {
        (self.verdict == Verdict::CannotBeTold && !self.line.is_empty())
            .then_some(self.line.as_str())
    }

    /// The cells that are judged.
    pub fn judged(&self) -> impl Iterator<Item = &Found> {
        self.cells.iter().filter(|cell| cell.judged)
    }

    /// The cells that are compared with the law's own standard.
    pub fn compared(&self) -> impl Iterator<Item = (&Found, &Own)> {
        self.cells.iter().filter_map(|cell| Some((cell, cell.own.as_ref()?)))
    }

    /// Those of them in which the law is surely worse.
    pub fn worse(&self) -> impl Iterator<Item = (&Found, &Own)> {
        self.compared().filter(|(_, own)| own.is_worse())
    }
}

/// What a run that failed says of its criterion, and in which line; nothing if no other is to be judged either.
fn failed(error: &Error) -> Option<(Verdict, String)> {
    match error {
        Error::Law { .. } => Some((Verdict::FallsShort, error.to_string())),
        // Perhaps the law's fault, perhaps ours, or the machine's.
        Error::Fault { .. } => Some((Verdict::CannotBeTold, format!("internal error: {error}"))),
        _ => None,
    }
}

/// The cells of a criterion in which the law has as many paths as it is judged with.
fn cells_of(make: fn(&str, Form) -> Vec<Cell>, law: &Law, form: Form) -> Vec<Cell> {
    let mut cells = make(law.control(), form);
    cells.retain(|cell| law.has(cell.paths()));
    cells
}

impl Criterion {
    /// Its name on the command line: `5.1.4/late`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.section, self.name)
    }

    /// Runs and judges it.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or a run that does not fit. A run that the law ends, or that fails by an internal error, is a verdict, not an
    /// error: the other criteria are judged.
    pub fn evaluate(&self, law: &Law, runs: &Runs) -> Result<Outcome, Error> {
        let empty = Outcome {
            criterion: self.id(),
            heading: self.heading,
            keyword: self.keyword,
            verdict: Verdict::CannotBeTold,
            figure: self.figure,
            limit: self.limit,
            mean: None,
            cells: Vec::new(),
            runs: 0,
            unfit: 0,
            line: String::new(),
        };
        let make = match self.make {
            Make::Prose => {
                return Ok(match law.says(self.section) {
                    Some(text) => Outcome { verdict: Verdict::Answered, line: text, ..empty },
                    None => {
                        let line = format!(
                            "no answer \"BCP 133, {}: ..\" in the law's header",
                            self.section
                        );
                        Outcome { verdict: Verdict::Missing, line, ..empty }
                    }
                });
            }
            Make::Runs(make) | Make::Host(make) => make,
        };
        let cells = cells_of(make, law, runs.form());
        if let (Some(most), []) = (law.most_paths(), &cells[..]) {
            let more = if most == 1 { "several".into() } else { format!("more than {most}") };
            let line = format!("the law has {more} paths in all cells");
            return Ok(Outcome { verdict: Verdict::LeftOut, line, ..empty });
        }
        let seeds = seeds(runs);
        let asks: Vec<Ask> =
            cells.iter().flat_map(Cell::asks).map(|ask| ask.clone().seeds(seeds)).collect();
        let count = asks.iter().map(|ask| format!("{ask:?}")).collect::<BTreeSet<_>>().len()
            * seeds as usize;
        runs.next();
        let found = runs.all(&asks);
        let (refused, Used { unfit, .. }) = runs.next();
        let found = match (found, refused) {
            (_, Some(why)) => {
                return Ok(Outcome { verdict: Verdict::LeftOut, line: why, ..empty });
            }
            (Err(error), None) => {
                let Some((verdict, line)) = failed(&error) else { return Err(error) };
                return Ok(Outcome { verdict, line, runs: count, ..empty });
            }
            (Ok(found), None) => found,
        };
        let mut found = found.iter();
        let figures = |cell: &Cell| {
            let found = found.by_ref().take(cell.asks().count());
            cell.figures(found, self.limit, law.standard())
        };
        let (verdict, mut cells) = judged(cells.iter().map(figures).collect(), self.limit);
        cells.sort_by(|one, other| other.mean.total_cmp(&one.mean));
        let verdict = match (self.make, verdict) {
            (Make::Host(_), Verdict::Meets) => Verdict::Host,
            (_, verdict) => verdict,
        };
        let outcome = Outcome { verdict, cells, runs: count, unfit, ..empty };
        let means: Vec<f64> = outcome.judged().map(|cell| cell.mean).collect();
        Ok(Outcome { mean: (!means.is_empty()).then(|| narrows_stats::mean(&means)), ..outcome })
    }

    /// CPU time of all its runs of a form, seconds, about; those of the standards, which other laws share, included.
    ///
    /// # Errors
    /// A network that is no scenario.
    pub fn seconds(&self, law: &Law, form: Form) -> Result<f64, Error> {
        let (Make::Runs(make) | Make::Host(make)) = self.make else { return Ok(0.0) };
        let seeds = seeds_of(form);
        let cells = cells_of(make, law, form);
        let (mut once, mut seconds) = (BTreeSet::new(), 0.0);
        for ask in cells.iter().flat_map(Cell::asks) {
            if once.insert(format!("{ask:?}")) {
                seconds += ask.clone().seeds(seeds).seconds()?;
            }
        }
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_is_a_verdict_and_an_end_of_all_is_not() {
        let (scenario, cc, seed) = ("bcp133".to_owned(), "mine".to_owned(), 1);
        let reason = "loops".to_owned();
        let law = Error::Law { place: "mine.h".into(), reason, scenario: scenario.clone(), seed };
        assert_eq!(failed(&law), Some((Verdict::FallsShort, law.to_string())));
        let message = "its process was killed by SIGKILL".into();
        let fault = Error::Fault { scenario, cc, seed, message };
        let line = "internal error: bcp133 under mine, seed 1: its process was killed by SIGKILL";
        assert_eq!(failed(&fault), Some((Verdict::CannotBeTold, line.to_owned())));
        assert_eq!(failed(&Error::Interrupted), None);
        assert_eq!(failed(&Error::input("a.toml", "no such file")), None);
    }
}
