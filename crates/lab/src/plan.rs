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
    /// The point of the sweep: a value on each of its axes.
    pub set: Vec<Point>,
}

/// A value on an axis of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The field that was set, dotted.
    pub field: String,
    /// Its value, as `--set` takes it.
    pub value: String,
    /// The number of the value, if it is one.
    pub number: Option<f64>,
    /// Its unit, if it has one.
    pub unit: Option<String>,
}

impl Point {
    /// `value` of `field`: a number, with or without a unit, or anything else.
    pub fn new(field: &str, value: &str) -> Point {
        let end = value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+'));
        let (number, unit) = value.split_at(end.unwrap_or(value.len()));
        let number = number.parse().ok();
        let unit = Some(unit.trim()).filter(|unit| number.is_some() && !unit.is_empty());
        Point { field: field.into(), value: value.into(), number, unit: unit.map(String::from) }
    }
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
    /// The seeds whose series are kept.
    pub series: SeriesOf,
}

/// The seeds whose series a comparison keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesOf {
    /// Of every seed.
    All,
    /// Of the first seed.
    #[default]
    First,
    /// Of none.
    None,
}

impl SeriesOf {
    /// Their names, as people write them.
    pub const NAMES: [&str; 3] = ["all", "first", "none"];

    /// Is the series of `seed` kept, one of `seeds`?
    pub fn keeps(self, seed: u64, seeds: Seeds) -> bool {
        match self {
            SeriesOf::All => true,
            SeriesOf::First => seed == seeds.first,
            SeriesOf::None => false,
        }
    }
}

impl FromStr for SeriesOf {
    type Err = String;

    fn from_str(text: &str) -> Result<SeriesOf, String> {
        let all = [SeriesOf::All, SeriesOf::First, SeriesOf::None];
        let named = all.into_iter().zip(SeriesOf::NAMES).find(|(_, name)| *name == text);
        named.map(|(of, _)| of).ok_or_else(|| "expected all, first or none".into())
    }
}

/// Some seeds in a row: `K` is 1 to K, `A..B` is A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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

    /// Are all of `others` among them?
    pub fn include(self, others: Seeds) -> bool {
        self.first <= others.first && others.last <= self.last
    }

    /// A part of them: all parts have as many, give or take one, and follow each other.
    ///
    /// # Errors
    /// There are fewer seeds than parts.
    pub fn shard(self, Shard { index, of }: Shard) -> Result<Seeds, String> {
        let count = self.count();
        if of > count {
            return Err(format!("expected at most {count} shards of {count} seeds, found {of}"));
        }
        let begin = |index: u64| self.first + index * count / of;
        Ok(Seeds { first: begin(index - 1), last: begin(index) - 1 })
    }

    /// These and the `next`, which begin where these end.
    pub fn with(self, next: Seeds) -> Option<Seeds> {
        (self.last + 1 == next.first).then_some(Seeds { last: next.last, ..self })
    }
}

impl std::fmt::Display for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl From<Seeds> for String {
    fn from(seeds: Seeds) -> String {
        seeds.to_string()
    }
}

impl TryFrom<String> for Seeds {
    type Error = String;

    fn try_from(text: String) -> Result<Seeds, String> {
        text.parse()
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

/// `I/N`: the Ith of N parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    index: u64,
    of: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        const MOST: u64 = 100_000;
        let parts = text.split_once('/').map(|(index, of)| (index.parse(), of.parse()));
        match parts {
            Some((Ok(index), Ok(of))) if 1 <= index && index <= of && of <= MOST => {
                Ok(Shard { index, of })
            }
            _ => Err("expected I/N, the Ith of N shards from 1, such as 3/7".into()),
        }
    }
}

/// A run of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Index of the case.
    pub case: usize,
    /// The congestion control.
    pub control: Algorithm,
    /// Index of the signal, as in [`Finished::signal`].
    pub signal: Option<usize>,
    /// What runs it.
    pub host: HostId,
    /// The seed.
    pub seed: u64,
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

    /// All runs, in the order of cases, controls, signals, hosts and seeds.
    pub fn tasks(&self) -> Vec<Task> {
        let mut all = Vec::new();
        for case in 0..self.cases.len() {
            for &control in self.controls {
                for signal in self.signals_of(control) {
                    for &host in self.hosts {
                        let task = |seed| Task { case, control, signal, host, seed };
                        all.extend(self.seeds.all().map(task));
                    }
                }
            }
        }
        all
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
    /// The series, if asked for.
    pub series: Vec<Sample>,
    /// The detector's decisions.
    pub decisions: Vec<Judged>,
}

impl Finished {
    /// The run of the plan that it is.
    pub fn task(&self) -> Task {
        let Summary { host, seed, .. } = self.summary;
        Task { case: self.case, control: self.control, signal: self.signal, host, seed }
    }
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
        let next = |a: &str, b: &str| a.parse::<Seeds>().unwrap().with(b.parse().unwrap());
        assert_eq!(next("10", "11..20").map(|seeds| seeds.to_string()), Some("1..20".into()));
        assert_eq!([next("10", "12..20"), next("10", "10..20"), next("11..20", "10")], [None; 3]);
        for wrong in ["", "0", "0..3", "5..4", "1..", "..3", "1...3", "100001", "x"] {
            assert!(read(wrong).unwrap_err().starts_with("expected K or A..B"), "{wrong}");
        }
    }

    #[test]
    fn shards_are_all_seeds_each_once() {
        let seeds: Seeds = "11..30".parse().unwrap();
        for of in 1..=20 {
            let parts = (1..=of).map(|index| seeds.shard(format!("{index}/{of}").parse().unwrap()));
            let parts: Vec<Seeds> = parts.collect::<Result<_, _>>().unwrap();
            let whole = parts[1..].iter().try_fold(parts[0], |all, &next| all.with(next));
            assert_eq!(whole, Some(seeds), "{of}");
            let counts: Vec<u64> = parts.iter().map(|part| part.count()).collect();
            let (most, least) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
            assert!(most - least <= 1, "{counts:?}");
        }
        let message = seeds.shard("1/21".parse().unwrap()).unwrap_err();
        assert_eq!(message, "expected at most 20 shards of 20 seeds, found 21");
        for wrong in ["", "0/3", "4/3", "1", "1/", "/1", "1/0", "-1/3", "1/100001"] {
            assert!(wrong.parse::<Shard>().unwrap_err().starts_with("expected I/N"), "{wrong}");
        }
    }

    #[test]
    fn a_value_is_a_number_with_its_unit_or_a_word() {
        let read = |value: &str| {
            let Point { number, unit, .. } = Point::new("f", value);
            (number, unit)
        };
        assert_eq!(read("-2.5 Mbit/s"), (Some(-2.5), Some("Mbit/s".into())));
        assert_eq!(read("3"), (Some(3.0), None));
        for word in ["min-rtt", "-", "10.0.0.1 s", "true", "[\"a\"]"] {
            assert_eq!(read(word), (None, None), "{word}");
        }
    }
}
