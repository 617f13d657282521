//! How right a detector was: what it decided beside the right groups of the scenario.

use std::io::Write;

use narrows_laws::{Decision, Place};
use narrows_net::{Nanos, SECOND};
use narrows_sim::Detection;
use serde::{Deserialize, Serialize};

use crate::scenario::{Flow, Scenario};
use crate::stats::round;

/// How right the detector of the connection under test was in one phase of the scenario. Shares and
/// rates are over the decisions that count: those after the scenario's warm-up that place at least
/// two paths. `docs/measuring.md` has the definitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseDetection {
    /// Start of the phase, seconds from the start of the run.
    pub start_s: f64,
    /// What the detector heard.
    pub signal: String,
    /// Share of the decisions that found exactly the right groups; none without decisions or without
    /// right groups.
    pub accuracy: Option<f64>,
    /// Decisions that count.
    pub decisions: u64,
    /// Those of them that found 1 group, 2 groups, and so on; a path that is not congested is a
    /// group.
    pub groups_hist: Vec<u64>,
    /// Of the pairs of paths that do not share a bottleneck, those put into one group.
    pub false_merge_rate: Option<f64>,
    /// Of the pairs of paths that share a bottleneck, those not put into one group.
    pub false_split_rate: Option<f64>,
    /// Of the places of paths, those that are not congested.
    pub uncongested_share: Option<f64>,
    /// Of the places of paths in all decisions after the warm-up, those of which nothing is said.
    pub undecided_share: Option<f64>,
    /// When the first right decision of the phase was made, seconds from the start of the run; also
    /// within the scenario's warm-up.
    pub first_correct_s: Option<f64>,
    /// From the start of the phase until then, seconds; of a phase that begins during the run.
    pub transition_delay_s: Option<f64>,
    /// Decisions by how many of the newest observations they were made of are right: none, one, and
    /// so on.
    pub correct_observations_hist: Vec<u64>,
}

/// A decision of the connection under test, as `decisions.csv` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// When it was made, from the start of the run.
    pub time_s: f64,
    /// The groups of paths, `a+b c`.
    pub groups: String,
    /// The paths that are not congested.
    pub uncongested: String,
    /// The paths of which nothing is said.
    pub undecided: String,
    /// Whether these are the right groups; none where the scenario has none, or fewer than two paths
    /// have a place.
    pub correct: Option<bool>,
    /// How many of the newest observations are right.
    pub correct_observations: usize,
}

/// What a listening detector heard and said, and where its paths truly met.
#[derive(Clone, Copy)]
pub(crate) struct Trial<'a> {
    pub scenario: &'a Scenario,
    /// The connection under test.
    pub flow: &'a Flow,
    pub log: &'a Detection,
}

/// The right groups at a time: path by path the number of its group.
type Right = Vec<usize>;

impl Trial<'_> {
    /// One entry per phase; one for the whole run if the scenario knows no right groups.
    pub fn by_phase(&self) -> Vec<PhaseDetection> {
        let starts = self.starts();
        let ends = starts.iter().skip(1).copied().chain([self.scenario.end()]);
        starts.iter().zip(ends).map(|(&start, end)| self.phase(start, end)).collect()
    }

    fn phase(&self, start: Nanos, end: Nanos) -> PhaseDetection {
        let right = self.right(start);
        let right = right.as_ref();
        let during = self.log.decisions.iter().filter(|d| (start..end).contains(&at(d)));
        let first = during.clone().find(|d| right.is_some_and(|right| self.is_right(d, right)));
        let first = first.map(at);
        let after = during.filter(|d| at(d) >= self.scenario.warmup);
        let mut places = Share::default();
        let (mut undecided, mut merged, mut split) = (places, places, places);
        let mut correct = Share::default();
        let mut groups_hist = vec![0; self.paths()];
        let mut observations = vec![0; 1 + self.window()];
        for decision in after {
            let placed = self.placed(decision);
            undecided.add(self.paths() as u64, (self.paths() - placed.len()) as u64);
            if placed.len() < 2 {
                continue;
            }
            groups_hist[groups(decision, &placed) - 1] += 1;
            let clear = placed.iter().filter(|&&path| decision.places[path] == Place::Clear);
            places.add(placed.len() as u64, clear.count() as u64);
            let Some(right) = right else { continue };
            correct.add(1, u64::from(self.is_right(decision, right)));
            for (i, j) in pairs(&placed) {
                let is = together(decision, i, j);
                let should = right[i] == right[j];
                let kind = if should { &mut split } else { &mut merged };
                kind.add(1, u64::from(is != should));
            }
            observations[self.right_observations(decision, right)] += 1;
        }
        PhaseDetection {
            start_s: seconds(start),
            signal: self.flow.tcp.signal.name().into(),
            accuracy: correct.value(),
            decisions: groups_hist.iter().sum(),
            groups_hist,
            false_merge_rate: merged.value(),
            false_split_rate: split.value(),
            uncongested_share: places.value(),
            undecided_share: undecided.value(),
            first_correct_s: first.map(seconds),
            transition_delay_s: first.filter(|_| start > 0).map(|first| seconds(first - start)),
            correct_observations_hist: observations,
        }
    }

    /// Every decision, also those within the warm-up.
    pub fn decisions(&self) -> Vec<Judged> {
        let judged = |decision: &Decision| {
            let right = self.starts().into_iter().rfind(|&start| start <= at(decision));
            let right = right.and_then(|start| self.right(start));
            let listed = |place: Place| {
                let paths = (0..self.paths()).filter(|&path| decision.places[path] == place);
                paths.map(|path| self.flow.paths[path].name.as_str()).collect::<Vec<_>>()
            };
            let groups = (0..=u8::MAX).map(|group| listed(Place::Group(group)).join("+"));
            let groups: Vec<String> = groups.filter(|group| !group.is_empty()).collect();
            let counts = self.placed(decision).len() >= 2;
            Judged {
                time_s: seconds(at(decision)),
                groups: groups.join(" "),
                uncongested: listed(Place::Clear).join(" "),
                undecided: listed(Place::Undecided).join(" "),
                correct: right
                    .as_ref()
                    .filter(|_| counts)
                    .map(|right| self.is_right(decision, right)),
                correct_observations: right
                    .map_or(0, |right| self.right_observations(decision, &right)),
            }
        };
        self.log.decisions.iter().map(judged).collect()
    }

    fn paths(&self) -> usize {
        self.flow.paths.len()
    }

    fn starts(&self) -> Vec<Nanos> {
        match &self.scenario.phases[..] {
            [] => vec![0],
            phases => phases.iter().map(|phase| phase.start).collect(),
        }
    }

    /// The right groups from `start`, the start of a phase, on.
    fn right(&self, start: Nanos) -> Option<Right> {
        let phase = self.scenario.phases.iter().find(|phase| phase.start == start)?;
        let group = |path| phase.groups.iter().position(|group| group.contains(&path));
        (0..self.paths()).map(group).collect()
    }

    /// The paths that the decision says something of.
    fn placed(&self, decision: &Decision) -> Vec<usize> {
        (0..self.paths()).filter(|&path| decision.places[path] != Place::Undecided).collect()
    }

    /// Does it place at least two paths, and each two as is right?
    fn is_right(&self, decision: &Decision, right: &Right) -> bool {
        let placed = self.placed(decision);
        placed.len() >= 2
            && pairs(&placed).all(|(i, j)| together(decision, i, j) == (right[i] == right[j]))
    }

    /// Observations that a decision is made of.
    fn window(&self) -> usize {
        self.scenario.params.decision.observations as usize
    }

    fn right_observations(&self, decision: &Decision, right: &Right) -> usize {
        let log = &self.log.observations;
        let until = log.partition_point(|observed| observed.at_us <= decision.at_us);
        let newest = &log[until.saturating_sub(self.window())..until];
        newest.iter().filter(|observed| self.is_right(observed, right)).count()
    }
}

/// Writes decisions as CSV, with a line of names.
pub fn write_csv(decisions: &[Judged], to: impl Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for decision in decisions {
        writer.serialize(decision)?;
    }
    writer.flush()
}

/// The accuracy over all phases.
pub fn accuracy(phases: &[PhaseDetection]) -> Option<f64> {
    let judged = phases.iter().filter_map(|phase| Some((phase.accuracy?, phase.decisions as f64)));
    let (right, all) = judged.fold((0.0, 0.0), |(right, all), (accuracy, decisions)| {
        (right + accuracy * decisions, all + decisions)
    });
    (all > 0.0).then(|| right / all)
}

/// Some of all.
#[derive(Clone, Copy, Default)]
struct Share {
    all: u64,
    some: u64,
}

impl Share {
    fn add(&mut self, all: u64, some: u64) {
        self.all += all;
        self.some += some;
    }

    fn value(self) -> Option<f64> {
        (self.all > 0).then(|| round(self.some as f64 / self.all as f64))
    }
}

fn pairs(paths: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let later = move |at: usize| paths[at + 1..].iter().map(move |&other| (paths[at], other));
    (0..paths.len()).flat_map(later)
}

fn together(decision: &Decision, i: usize, j: usize) -> bool {
    matches!(decision.places[i], Place::Group(_)) && decision.places[i] == decision.places[j]
}

/// Groups among some paths: each that is not in one with an earlier path opens one.
fn groups(decision: &Decision, placed: &[usize]) -> usize {
    let opens = |&at: &usize| !placed[..at].iter().any(|&i| together(decision, i, placed[at]));
    (0..placed.len()).filter(opens).count()
}

fn at(decision: &Decision) -> Nanos {
    decision.at_us * 1000
}

fn seconds(time: Nanos) -> f64 {
    round(time as f64 / SECOND as f64)
}
