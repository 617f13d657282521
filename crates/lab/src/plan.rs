//! What a comparison runs, and what it finished.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use narrows_traffic::Signal;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::algorithm::Algorithm;
use crate::detection::Judged;
use crate::host_id::HostId;
use crate::scenario::Scenario;
use crate::series::Sample;
use crate::setup::{Setup, sha256};
use crate::summary::Summary;

/// A scenario of a comparison; in a sweep with the point of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// The point of the sweep.
    pub set: Option<Point>,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The field that was set, dotted.
    pub field: String,
    /// Its value.
    pub value: String,
}

/// How a comparison runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Scenarios.
    pub cases: &'a [Case],
    /// Congestion controls of the connection under test.
    pub controls: &'a [Algorithm],
    /// Delay signals of detectors; empty: those of the scenarios.
    pub signals: &'a [Signal],
    /// What runs them.
    pub hosts: &'a [HostId],
    /// The seeds of each.
    pub seeds: Seeds,
    /// Runs at the same time; 0 for as many as cores, in real time for one.
    pub jobs: usize,
    /// Keep the series of the first seed.
    pub series: bool,
}

/// Some seeds in a row: `K` is 1 to K, `A..B` is A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

impl Seeds {
    /// 1 to `last`.
    pub fn up_to(last: u64) -> Seeds {
        Seeds { first: 1, last }
    }

    /// The first, whose series is kept.
    pub fn first(self) -> u64 {
        self.first
    }

    /// All of them.
    pub fn all(self) -> RangeInclusive<u64> {
        self.first..=self.last
    }

    /// How many.
    pub fn count(self) -> u64 {
        1 + self.last - self.first
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        const MOST: u64 = 100_000;
        let (first, last) = text.split_once("..").unwrap_or(("1", text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 1 <= first && first <= last && last <= MOST => {
                Ok(Seeds { first, last })
            }
            _ => Err(format!("expected K or A..B, from 1 to at most {MOST}, such as 30 or 31..60")),
        }
    }
}

/// A case under a control with a signal, the first and the last by index.
type Variant = (usize, Algorithm, Option<usize>);

impl Plan<'_> {
    /// The signals that a control runs with, by index; one run without any if its detector samples none, or
    /// none is named.
    pub fn signals_of(&self, control: Algorithm) -> impl Iterator<Item = Option<usize>> + use<> {
        let signals = if control.decides() { self.signals.len() } else { 0 };
        let none = (signals == 0).then_some(None);
        none.into_iter().chain((0..signals).map(Some))
    }

    /// Hash of all that the results depend on, besides the program.
    pub fn identity(&self) -> String {
        let Plan { cases, controls, signals, hosts, seeds, .. } = self;
        let cases = cases.iter().map(|case| Setup::of(&case.scenario));
        sha256(&(cases.collect::<Vec<_>>(), controls, signals, hosts, seeds))
    }

    /// The scenario of a case under a control, with a signal of the plan.
    ///
    /// # Errors
    /// What the control is, and what the command line sets, do not fit.
    fn scenario(
        &self,
        case: usize,
        control: Algorithm,
        signal: Option<usize>,
    ) -> Result<Cow<'_, Scenario>, Error> {
        let signal = signal.map(|signal| self.signals[signal]);
        self.cases[case].scenario.under(control, signal)
    }

    /// The scenario of each case under each control with each of its signals, and its setup.
    ///
    /// # Errors
    /// As of [`Plan::scenario`].
    pub(crate) fn variants(&self) -> Result<HashMap<Variant, (Cow<'_, Scenario>, Setup)>, Error> {
        let mut variants = HashMap::new();
        for case in 0..self.cases.len() {
            for &control in self.controls {
                for signal in self.signals_of(control) {
                    let scenario = self.scenario(case, control, signal)?;
                    let setup = Setup::of(&scenario);
                    variants.insert((case, control, signal), (scenario, setup));
                }
            }
        }
        Ok(variants)
    }
}

/// A finished run of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// Index of the case.
    pub case: usize,
    /// The congestion control.
    pub control: Algorithm,
    /// Index of the signal, if the plan names any and the control's detector is delay-based.
    pub signal: Option<usize>,
    /// The run's summary.
    pub summary: Summary,
    /// The series of the first seed, if asked for.
    pub series: Vec<Sample>,
    /// The detector's decisions.
    pub decisions: Vec<Judged>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_of_them_or_from_one_to_another() {
        let read = |text: &str| text.parse::<Seeds>().map(|seeds| (seeds.first(), seeds.count()));
        assert_eq!(read("30"), Ok((1, 30)));
        assert_eq!(read("31..60"), Ok((31, 30)));
        assert_eq!("7..9".parse::<Seeds>().unwrap().all().collect::<Vec<_>>(), [7, 8, 9]);
        for wrong in ["", "0", "0..3", "5..4", "1..", "..3", "1...3", "100001", "x"] {
            assert!(read(wrong).unwrap_err().starts_with("expected K or A..B"), "{wrong}");
        }
    }
}
