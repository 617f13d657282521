//! The registry of experiments: every figure and table that Narrows sets beside a published one, or
//! documents of its own laws and detectors.
//!
//! A [`Paper`] is a document with [`Table`]s; a table is a function from [`Runs`], which runs what it is asked
//! for once, to a [`Grid`]. Published values stand beside the code that asks for ours; a verdict is one of
//! [`Verdict`]'s four, by a rule of [`verdict`] or one beside the claim.

pub mod cmpbbr;
mod curves;
pub mod detectors;
mod failures;
pub mod figures;
mod goodput;
pub mod grid;
pub mod laws;
pub mod lisa;
pub mod mixes;
pub mod nornet;
pub mod one_flow;
mod page;
mod runs;
pub mod sbd;
mod sequential;
mod stamp;
pub mod tr;
pub mod verdict;

pub use curves::Curves;
pub use grid::{Cell, Grid};
pub use page::{page, plots};
pub use runs::{Ask, Controls, Kept, Runs, Store, Told, Used};
pub use sequential::ADAPTIVE;
pub use stamp::Stamp;
pub use verdict::{Judged, Verdict};

use narrows_lab::catalogue::hint;
use narrows_lab::{Error, HostId};

/// A paper, or a document of ours, whose tables are made by runs.
pub struct Paper {
    /// Its name in commands: `lisa`.
    pub name: &'static str,
    /// What it is, a line.
    pub title: &'static str,
    /// The page that has its tables, in `docs/`.
    pub document: &'static str,
    /// Its tables, in the order of the page.
    pub tables: &'static [Table],
}

/// A table of a paper.
pub struct Table {
    /// Its name in commands, `figure-6-time`, and between the marks of its page.
    pub name: &'static str,
    /// What it shows, a line, with its place in the paper.
    pub about: &'static str,
    /// Runs what it needs and makes it.
    pub make: fn(&Runs) -> Result<Grid, Error>,
}

/// What has become of a table.
pub enum Made {
    /// It is made.
    Grid(Grid),
    /// The host, or this build, cannot run what it asks for: why.
    LeftOut(String),
}

impl Table {
    /// Makes it, on the host of the runs.
    ///
    /// # Errors
    /// Of a run; and where the host is the simulator, what that does not have.
    pub fn made(&self, runs: &Runs) -> Result<Made, Error> {
        runs.next();
        let made = (self.make)(runs);
        let (refused, used) = runs.next();
        match (made, refused) {
            (_, Some(why)) => Ok(Made::LeftOut(why)),
            (Err(error), None) => Err(error),
            (Ok(grid), None) => Ok(Made::Grid(match runs.host() {
                HostId::SIM => grid,
                host => grid.on(host, used),
            })),
        }
    }
}

/// All of them.
pub const PAPERS: &[Paper] = &[
    sbd::PAPER,
    lisa::PAPER,
    tr::PAPER,
    nornet::PAPER,
    cmpbbr::PAPER,
    one_flow::PAPER,
    detectors::PAPER,
    laws::PAPER,
    mixes::PAPER,
];

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The paper's repetitions, or as many as the page says.
    Whole,
    /// Few seeds and a part of the networks, for a look.
    Quick,
    /// One seed and as few networks as show that nothing is broken.
    Least,
}

impl Form {
    /// What the form has of three.
    pub fn pick<T>(self, whole: T, quick: T, least: T) -> T {
        match self {
            Form::Whole => whole,
            Form::Quick => quick,
            Form::Least => least,
        }
    }
}

/// The tables that a selection names: `lisa`, `lisa/claims`, `lisa/figure-6` (all whose names begin so, as none has it) or
/// `all`.
///
/// # Errors
/// A paper or a table that there is not.
pub fn select(names: &[String]) -> Result<Vec<(&'static Paper, &'static Table)>, Error> {
    let all =
        || PAPERS.iter().flat_map(|paper| paper.tables.iter().map(move |table| (paper, table)));
    let chosen = |name: &String| {
        let (paper, table) = name.split_once('/').unwrap_or((name, ""));
        if paper != "all" && !PAPERS.iter().any(|known| known.name == paper) {
            let known: Vec<_> = PAPERS.iter().map(|paper| paper.name).collect();
            let (hint, known) = (hint(paper, &known), known.join(", "));
            let message = format!("no such paper{hint}; expected list, all or one of {known}");
            return Err(Error::input(name, message));
        }
        let exact = |one: &&Table| one.name == table;
        let named = |of: &&Paper| of.name == paper && of.tables.iter().any(|one| exact(&one));
        if let Some(of) = PAPERS.iter().find(named) {
            return Ok(of.tables.iter().filter(exact).map(|one| (of, one)).collect());
        }
        let found: Vec<_> = all()
            .filter(|(of, one)| (paper == "all" || of.name == paper) && one.name.starts_with(table))
            .collect();
        let numbered = |one: &Table| numbers(one.about).any(|number| number == table);
        let found = match &found[..] {
            [] => all().filter(|(of, one)| of.name == paper && numbered(one)).collect(),
            _ => found,
        };
        if found.is_empty() || name.ends_with('/') {
            let known = || all().filter(|(of, _)| paper == "all" || of.name == paper);
            let known: Vec<_> = known().map(|(_, one)| one.name).collect();
            let hint = hint(table, &known);
            let expected = match paper {
                "all" => "see".into(),
                _ => format!("expected one of {}; see", known.join(", ")),
            };
            let message = format!(
                "no table of {paper} begins with '{table}'{hint}; {expected} `narrows papers list`"
            );
            return Err(Error::input(name, message));
        }
        Ok(found)
    };
    let named: Vec<_> = names.iter().map(chosen).collect::<Result<Vec<_>, _>>()?.concat();
    let same = |one: &(&Paper, &Table), other: &(&Paper, &Table)| {
        (one.0.name, one.1.name) == (other.0.name, other.1.name)
    };
    // Each once, in the order of the registry.
    Ok(all().filter(|one| named.iter().any(|other| same(one, other))).collect())
}

/// The numbers in its paper of what a table is about: 8 and 11 of `Figures 8 and 11: how long ..`, II of `Table II: ..`.
fn numbers(about: &str) -> impl Iterator<Item = &str> {
    let head = about.split(':').next().unwrap_or_default();
    let stands = ["Figure", "Table", "Section"].iter().any(|word| head.starts_with(word));
    let words = head.split(|one: char| !one.is_alphanumeric());
    let of = |word: &&str| word.bytes().all(|one| one.is_ascii_digit() || b"IVX".contains(&one));
    words.filter(move |word| stands && !word.is_empty() && of(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_of_papers_and_of_tables_by_their_beginning() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            select(&names).map(|found| {
                found
                    .iter()
                    .map(|(paper, table)| format!("{}/{}", paper.name, table.name))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(named(&["laws"]).unwrap(), ["laws/ratios"]);
        assert_eq!(named(&["laws/rat", "laws/ratios"]).unwrap(), ["laws/ratios"]);
        assert_eq!(named(&["sbd/table-2"]).unwrap(), ["sbd/table-2"]);
        assert_eq!(named(&["sbd/table-2-"]).unwrap(), ["sbd/table-2-groups"]);
        assert!(named(&["all"]).unwrap().contains(&"laws/ratios".into()));
        // By the number in the paper.
        assert_eq!(named(&["sbd/II"]).unwrap(), ["sbd/table-2", "sbd/table-2-groups"]);
        assert_eq!(named(&["sbd/11"]).unwrap(), ["sbd/shifting"]);
        let of_6 = named(&["lisa/6"]).unwrap();
        assert!(of_6.len() > 3 && of_6.iter().all(|name| name.starts_with("lisa/figure-6-")));
        for none in ["sbd/", "sbd/XI", "all/2", "laws/1"] {
            assert!(named(&[none]).is_err(), "{none}");
        }
        let error = named(&["lars"]).unwrap_err().to_string();
        assert!(
            error.starts_with("lars: no such paper (did you mean 'laws'?); expected list, all"),
            "{error}"
        );
        let error = named(&["laws/figure"]).unwrap_err().to_string();
        assert!(
            error.contains("no table of laws begins with 'figure'; expected one of ratios; see"),
            "{error}"
        );
        let error = named(&["sbd/tabel-2"]).unwrap_err().to_string();
        assert!(error.contains("(did you mean 'table-2'?); expected one of "), "{error}");
    }

    #[test]
    fn names_are_words_with_dashes_and_each_there_once() {
        let plain = |name: &str| {
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
        };
        for (at, paper) in PAPERS.iter().enumerate() {
            assert!(
                plain(paper.name) && PAPERS[..at].iter().all(|other| other.name != paper.name),
                "{}",
                paper.name
            );
            for (at, table) in paper.tables.iter().enumerate() {
                let once = paper.tables[..at].iter().all(|other| other.name != table.name);
                assert!(plain(table.name) && once, "{}/{}", paper.name, table.name);
            }
        }
    }

    #[test]
    fn every_page_has_the_marks_of_its_tables_and_no_others() {
        for paper in PAPERS {
            let page = format!("{}/../../docs/{}", env!("CARGO_MANIFEST_DIR"), paper.document);
            let page = std::fs::read_to_string(page).unwrap();
            let marks = page
                .lines()
                .filter_map(|line| line.strip_prefix("<!-- table ")?.strip_suffix(" -->"));
            let mut marks: Vec<&str> = marks.collect();
            let of = PAPERS.iter().filter(|other| other.document == paper.document);
            let mut names: Vec<&str> =
                of.flat_map(|paper| paper.tables).map(|table| table.name).collect();
            marks.sort_unstable();
            names.sort_unstable();
            assert_eq!(marks, names, "docs/{}", paper.document);
        }
    }
}
