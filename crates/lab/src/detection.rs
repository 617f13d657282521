//! Accuracy of a detector: its decisions against the right groups of the scenario.

use std::io::Write;

use narrows_laws::{Decision, Detector, Place};
use narrows_net::{Nanos, SECOND};
use narrows_sim::Detection;
use serde::{Deserialize, Serialize};

use crate::scenario::{EventKind, Flow, Scenario};
use narrows_stats::{round, weighted};

/// Accuracy of the detector of the connection under test in one phase of the scenario. Shares and
/// rates are over the decisions that count: those after the warm-up, the scenario's and the
/// detector's own. `docs/method/measuring.md` has the definitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseDetection {
    /// Start of the phase, seconds from the start of the run.
    pub start_s: f64,
    /// The signal that the detector sampled.
    pub signal: String,
    /// Share of the decisions that found exactly the right groups, and so a place for every path;
    /// none without decisions or without right groups.
    pub accuracy: Option<f64>,
    /// Decisions that count.
    pub decisions: u64,
    /// Those of them that have a place for every path by their groups: 1, 2, and so on; a path that
    /// is not congested is a group.
    pub groups_hist: Vec<u64>,
    /// Of the pairs of paths with places that do not share a bottleneck, those put into one group.
    pub false_merge_rate: Option<f64>,
    /// Of the pairs of paths with places that share a bottleneck, those not put into one group.
    pub false_split_rate: Option<f64>,
    /// Of the paths in each decision, those that are not congested.
    pub uncongested_share: Option<f64>,
    /// Of the paths in each decision, the undecided ones.
    pub undecided_share: Option<f64>,
    /// When the first right decision of the phase was made, seconds from the start of the run, be
    /// it within a warm-up.
    pub first_correct_s: Option<f64>,
    /// From the start of the phase until then, seconds; of a phase that begins during the run.
    pub transition_delay_s: Option<f64>,
    /// Decisions by how many of the observations since the decision before are right: none, one,
    /// and so on, up to the most that there were.
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
    /// The undecided paths.
    pub undecided: String,
    /// Whether these are the right groups; none where the scenario has none.
    pub correct: Option<bool>,
    /// Observations since the decision before.
    pub observations: usize,
    /// Those of them that are right.
    pub correct_observations: usize,
    /// What stands in the columns of groups, by path; not in the file.
    #[serde(default)]
    pub places: Vec<Found>,
}

/// Where a decision places a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// In the group of this number.
    Group(u8),
    /// Not congested.
    Clear,
    /// Undecided.
    Undecided,
}

impl From<Place> for Found {
    fn from(place: Place) -> Found {
        match place {
            Place::Group(group) => Found::Group(group),
            Place::Clear => Found::Clear,
            Place::Undecided => Found::Undecided,
        }
    }
}

/// The decisions of a detector, and the true bottlenecks of its paths.
#[derive(Clone, Copy)]
pub(crate) struct Trial<'a> {
    pub scenario: &'a Scenario,
    pub detector: Detector,
    pub log: &'a Detection,
}

/// The right groups at a time: path by path the number of its group.
pub(crate) type Right = Vec<usize>;

/// What is so in a scenario, to judge what is found.
#[derive(Clone, Copy)]
pub(crate) struct Truth<'a>(pub &'a Scenario);

impl<'a> Truth<'a> {
    /// The connection under test.
    pub fn flow(self) -> &'a Flow {
        &self.0.flows[self.0.test.unwrap_or_default()]
    }

    /// When phases begin: the scenario's, or one.
    fn starts(self) -> Vec<Nanos> {
        match &self.0.phases[..] {
            [] => vec![0],
            phases => phases.iter().map(|phase| phase.start).collect(),
        }
    }

    /// The start and end of each phase.
    pub fn phases(self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let starts = self.starts();
        let ends: Vec<Nanos> = starts.iter().skip(1).copied().chain([self.0.end()]).collect();
        starts.into_iter().zip(ends)
    }

    /// The right groups from `start`, the start of a phase, on.
    pub fn right(self, start: Nanos) -> Option<Right> {
        let phase = self.0.phases.iter().find(|phase| phase.start == start)?;
        let group = |path| phase.groups.iter().position(|group| group.contains(&path));
        (0..self.flow().paths.len()).map(group).collect()
    }

    /// When the subflow of a path was last opened; none while its address is lost.
    pub fn opened(self, path: usize, time: Nanos) -> Option<Nanos> {
        let start = self.flow().active.first().map_or(0, |period| period.0);
        let mut opened = Some(start);
        for event in self.0.events.iter().take_while(|event| event.at <= time) {
            match event.what {
                EventKind::PathLost(flow, of) if self.is(flow) && of == path => opened = None,
                EventKind::PathAdded(flow, of) if self.is(flow) && of == path => {
                    opened = Some(event.at.max(start));
                }
                _ => {}
            }
        }
        opened
    }

    fn is(self, flow: usize) -> bool {
        self.0.test == Some(flow)
    }

    /// The paths that carry data as far as the scenario knows: neither lost nor for backup.
    pub fn there(self, time: Nanos) -> Vec<usize> {
        let paths = self.flow().paths.iter().enumerate().filter(|(_, path)| !path.backup);
        paths.map(|(path, _)| path).filter(|&path| self.opened(path, time).is_some()).collect()
    }
}

impl Trial<'_> {
    /// One entry per phase; one for the whole run if the scenario knows no right groups.
    pub fn by_phase(&self) -> Vec<PhaseDetection> {
        self.truth().phases().map(|(start, end)| self.phase(start, end)).collect()
    }

    fn phase(&self, start: Nanos, end: Nanos) -> PhaseDetection {
        let right = self.truth().right(start);
        let right = right.as_ref();
        let during = self.log.decisions.iter().filter(|d| (start..end).contains(&at(d)));
        let first = during.clone().find(|d| right.is_some_and(|right| self.is_right(d, right)));
        let first = first.map(at);
        let [mut correct, mut merged, mut split, mut clear, mut undecided] = [Share::default(); 5];
        let (mut decisions, mut groups_hist) = (0, vec![0; self.truth().flow().paths.len()]);
        let mut observations: Vec<u64> = Vec::new();
        for decision in during.filter(|decision| self.counts(at(decision))) {
            decisions += 1;
            let there = self.truth().there(at(decision));
            let of = |place: Place| there.iter().filter(move |&&p| decision.places[p] == place);
            clear.add(there.len(), of(Place::Clear).count());
            undecided.add(there.len(), of(Place::Undecided).count());
            if of(Place::Undecided).next().is_none() {
                groups_hist[groups(decision, &there) - 1] += 1;
            }
            let Some(right) = right else { continue };
            correct.add(1, usize::from(self.is_right(decision, right)));
            let placed = |path| decision.places[path] != Place::Undecided;
            for (i, j) in pairs(&there).filter(|&(i, j)| placed(i) && placed(j)) {
                let (is, should) = (together(decision, i, j), right[i] == right[j]);
                let kind = if should { &mut split } else { &mut merged };
                kind.add(1, usize::from(is != should));
            }
            let since = self.since_last(decision);
            observations.resize(observations.len().max(1 + since.len()), 0);
            observations[self.count_right(since, right)] += 1;
        }
        PhaseDetection {
            start_s: seconds(start),
            signal: self.truth().flow().tcp.signal.name().into(),
            accuracy: correct.value(),
            decisions,
            groups_hist,
            false_merge_rate: merged.value(),
            false_split_rate: split.value(),
            uncongested_share: clear.value(),
            undecided_share: undecided.value(),
            first_correct_s: first.map(seconds),
            transition_delay_s: first.filter(|_| start > 0).map(|first| seconds(first - start)),
            correct_observations_hist: observations,
        }
    }

    /// Every decision, also those within the warm-up.
    pub fn decisions(&self) -> Vec<Judged> {
        let judged = |decision: &Decision| {
            let right = self.truth().starts().into_iter().rfind(|&start| start <= at(decision));
            let right = right.and_then(|start| self.truth().right(start));
            let listed = |place: Place| {
                let named = self.truth().flow().paths.iter().zip(decision.places);
                let named =
                    named.filter(|(_, of)| *of == place).map(|(path, _)| path.name.as_str());
                named.collect::<Vec<_>>()
            };
            let groups = (0..=u8::MAX).map(|group| listed(Place::Group(group)).join("+"));
            let groups: Vec<String> = groups.filter(|group| !group.is_empty()).collect();
            let since = self.since_last(decision);
            Judged {
                time_s: seconds(at(decision)),
                groups: groups.join(" "),
                uncongested: listed(Place::Clear).join(" "),
                undecided: listed(Place::Undecided).join(" "),
                correct: right.as_ref().map(|right| self.is_right(decision, right)),
                observations: since.len(),
                correct_observations: right.map_or(0, |right| self.count_right(since, &right)),
                places: self.places(decision),
            }
        };
        self.log.decisions.iter().map(judged).collect()
    }

    fn places(&self, decision: &Decision) -> Vec<Found> {
        let places = decision.places.iter().take(self.truth().flow().paths.len());
        places.map(|&place| Found::from(place)).collect()
    }

    fn truth(&self) -> Truth<'_> {
        Truth(self.scenario)
    }

    /// Does a decision of this time count? After the scenario's warm-up, and the detector's on each
    /// path.
    fn counts(&self, time: Nanos) -> bool {
        let opened =
            self.truth().there(time).into_iter().filter_map(|path| self.truth().opened(path, time));
        time >= self.scenario.warmup
            && opened.clone().count() >= 2
            && opened.max().is_some_and(|last| time >= last + self.warm_up())
    }

    /// How long a detector leaves a path that carries data undecided.
    fn warm_up(&self) -> Nanos {
        1000 * self.detector.warm_up_us(&self.scenario.params)
    }

    /// Does it place every path that carries data, and each two as is right?
    fn is_right(&self, decision: &Decision, right: &Right) -> bool {
        let there = self.truth().there(at(decision));
        there.iter().all(|&path| decision.places[path] != Place::Undecided)
            && pairs(&there).all(|(i, j)| together(decision, i, j) == (right[i] == right[j]))
    }

    /// The observations since the decision before, and up to this one.
    fn since_last(&self, decision: &Decision) -> &[Decision] {
        let log = &self.log.observations;
        let until = |time: u64| log.partition_point(|observed| observed.at_us <= time);
        let place = self.log.decisions.partition_point(|other| other.at_us < decision.at_us);
        let before = place.checked_sub(1).map_or(0, |last| until(self.log.decisions[last].at_us));
        &log[before..until(decision.at_us)]
    }

    fn count_right(&self, observations: &[Decision], right: &Right) -> usize {
        observations.iter().filter(|observed| self.is_right(observed, right)).count()
    }
}

/// The columns of decisions.
const COLUMNS: [&str; 7] = [
    "time_s",
    "groups",
    "uncongested",
    "undecided",
    "correct",
    "observations",
    "correct_observations",
];

/// Writes decisions as CSV, with a line of names.
pub fn write_csv(decisions: &[Judged], to: impl Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    if !decisions.is_empty() {
        writer.write_record(COLUMNS)?;
    }
    for decision in decisions {
        let of = decision;
        let found = (of.time_s, &of.groups, &of.uncongested, &of.undecided);
        writer.serialize((found, of.correct, of.observations, of.correct_observations))?;
    }
    writer.flush()
}

/// The accuracy over all phases.
pub fn accuracy(phases: &[PhaseDetection]) -> Option<f64> {
    weighted(phases.iter().filter_map(|phase| Some((phase.accuracy?, phase.decisions as f64))))
}

/// Some of all.
#[derive(Clone, Copy, Default)]
struct Share {
    all: u64,
    some: u64,
}

impl Share {
    fn add(&mut self, all: usize, some: usize) {
        self.all += all as u64;
        self.some += some as u64;
    }

    fn value(self) -> Option<f64> {
        (self.all > 0).then(|| round(self.some as f64 / self.all as f64))
    }
}

/// Each two of some paths.
pub(crate) fn pairs(paths: &[usize]) -> impl Iterator<Item = (usize, usize)> {
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

/// As results have it.
pub(crate) fn seconds(time: Nanos) -> f64 {
    round(time as f64 / SECOND as f64)
}

#[cfg(test)]
mod tests {
    use narrows_laws::{MAX_PATHS, Params};

    use super::*;
    use crate::scenario::{Event, Phase};
    use crate::{Edits, load};

    /// Places by path: a number is a group, `c` is not congested, `-` is undecided.
    fn decided(at_s: f64, places: &str) -> Decision {
        let mut all = [Place::Undecided; MAX_PATHS];
        for (place, text) in all.iter_mut().zip(places.split(' ')) {
            *place = match text {
                "c" => Place::Clear,
                "-" => Place::Undecided,
                group => Place::Group(group.parse().unwrap()),
            };
        }
        let at_us = (at_s * 1e6) as u64;
        Decision::new((at_s * 1e3) as u32, at_us, all)
    }

    fn log(decisions: &[(f64, &str)]) -> Detection {
        let decisions = decisions.iter().map(|&(at, places)| decided(at, places)).collect();
        Detection { decisions, observations: Vec::new() }
    }

    /// Of so many paths, with these groups from these seconds on. The connection under test is not
    /// the first flow.
    fn scenario(paths: usize, phases: &[(u64, &[&[usize]])]) -> Scenario {
        let mut scenario = load(&format!("sbd/nsb-{paths}"), &Edits::default()).unwrap();
        assert_eq!((scenario.warmup, scenario.duration), (20 * SECOND, 120 * SECOND));
        let phase = |&(start, groups): &(u64, &[&[usize]])| Phase {
            start: start * SECOND,
            groups: groups.iter().map(|group| group.to_vec()).collect(),
        };
        scenario.phases = phases.iter().map(phase).collect();
        scenario.flows.rotate_right(1);
        scenario.test = scenario.test.map(|test| test + 1);
        scenario
    }

    fn trial<'a>(scenario: &'a Scenario, log: &'a Detection) -> Trial<'a> {
        Trial { scenario, detector: Detector::SSC, log }
    }

    fn judge(scenario: &Scenario, log: &Detection) -> Vec<PhaseDetection> {
        trial(scenario, log).by_phase()
    }

    /// The connection starts at 2 s and SSC trusts its estimates 21 s later: the first three do not
    /// count. Of the others the last does not say enough to be right.
    #[test]
    fn two_paths_apart() {
        let scenario = scenario(2, &[(0, &[&[0], &[1]])]);
        let reported = [
            (12.0, "- -"),
            (15.5, "0 1"),
            (22.9, "0 0"),
            (30.0, "0 1"),
            (40.0, "1 1"),
            (50.0, "c c"),
            (60.0, "1 0"),
            (70.0, "0 -"),
        ];
        let judged = judge(&scenario, &log(&reported));
        assert_eq!(
            judged,
            [PhaseDetection {
                start_s: 0.0,
                signal: "receiver-us".into(),
                accuracy: Some(0.6),
                decisions: 5,
                groups_hist: vec![1, 3],
                false_merge_rate: Some(0.25),
                false_split_rate: None,
                uncongested_share: Some(0.2),
                undecided_share: Some(0.1),
                first_correct_s: Some(15.5),
                transition_delay_s: None,
                correct_observations_hist: vec![5],
            }]
        );
        assert_eq!(accuracy(&judged), Some(0.6));
    }

    /// The first two paths share. The second decision puts them apart, and one of them with the
    /// third, which is two mistakes in three pairs; the next says nothing of one, and the last
    /// finds no congestion.
    #[test]
    fn mistakes_are_counted_by_pairs() {
        let scenario = scenario(3, &[(0, &[&[0, 1], &[2]])]);
        let reported = [(30.0, "0 0 1"), (40.0, "0 1 1"), (50.0, "0 - 1"), (60.0, "c c 1")];
        let judged = &judge(&scenario, &log(&reported))[0];
        assert_eq!((judged.decisions, judged.accuracy), (4, Some(0.25)));
        assert_eq!(judged.groups_hist, [0, 2, 1]);
        // Two pairs do not share, but of one of them a decision says nothing.
        assert_eq!(judged.false_merge_rate, Some(round(1.0 / 7.0)));
        assert_eq!(judged.false_split_rate, Some(round(2.0 / 3.0)));
        assert_eq!(judged.uncongested_share, Some(round(2.0 / 12.0)));
        assert_eq!(judged.undecided_share, Some(round(1.0 / 12.0)));
    }

    /// A path whose address is lost does not count, nor one that has just come back.
    #[test]
    fn a_lost_path_has_no_place_and_a_new_one_gets_time() {
        let mut scenario = scenario(3, &[(0, &[&[0, 1, 2]])]);
        let test = scenario.test.unwrap();
        let event = |at: u64, what| Event { at: at * SECOND, what };
        scenario.events =
            vec![event(40, EventKind::PathLost(test, 2)), event(80, EventKind::PathAdded(test, 2))];
        let reported =
            [(39.0, "0 0 -"), (41.0, "0 0 -"), (42.0, "c c -"), (85.0, "0 0 -"), (102.0, "0 0 0")];
        let judged = &judge(&scenario, &log(&reported))[0];
        assert_eq!((judged.decisions, judged.accuracy), (4, Some(0.5)));
        assert_eq!(judged.first_correct_s, Some(41.0));
        // Of the 10 places of paths that were there.
        assert_eq!(judged.uncongested_share, Some(0.2));
        assert_eq!(judged.undecided_share, Some(0.1));
        scenario.flows[test].paths[2].backup = true;
        assert_eq!(judge(&scenario, &log(&reported))[0].accuracy, Some(0.8));
    }

    /// A single path shares with none; events of other flows' paths do not matter.
    #[test]
    fn while_one_path_is_there_nothing_counts() {
        let mut scenario = scenario(2, &[(0, &[&[0], &[1]])]);
        let test = scenario.test.unwrap();
        let other = test - 1;
        let event = |at: u64, what| Event { at: at * SECOND, what };
        scenario.events = vec![
            event(1, EventKind::PathAdded(test, 0)),
            event(30, EventKind::PathLost(other, 0)),
            event(40, EventKind::PathLost(test, 1)),
            event(50, EventKind::PathAdded(other, 1)),
            event(80, EventKind::PathAdded(test, 1)),
        ];
        let reported =
            [(35.0, "c c"), (40.0, "c c"), (75.0, "c c"), (100.9, "c c"), (101.0, "c c")];
        let log = log(&reported);
        let counts =
            log.decisions.iter().map(|reported| trial(&scenario, &log).counts(at(reported)));
        assert_eq!(counts.collect::<Vec<_>>(), [true, false, false, false, true]);
        // What is added before the connection begins is opened with it.
        let opened = [0, 1].map(|path| Truth(&scenario).opened(path, 3 * SECOND));
        assert_eq!(opened, [Some(2 * SECOND); 2]);
    }

    /// What was right until 60 s is wrong from then on, and is seen so 7 s later.
    #[test]
    fn a_phase_is_judged_by_its_own_groups() {
        let scenario = scenario(2, &[(0, &[&[0, 1]]), (60, &[&[0], &[1]])]);
        let reported = [(53.0, "0 0"), (59.9, "0 0"), (63.5, "0 0"), (67.0, "0 1"), (70.5, "0 1")];
        let judged = judge(&scenario, &log(&reported));
        let [first, second] = &judged[..] else { panic!("{judged:?}") };
        assert_eq!((first.decisions, first.accuracy), (2, Some(1.0)));
        assert_eq!((first.first_correct_s, first.transition_delay_s), (Some(53.0), None));
        assert_eq!((second.decisions, second.accuracy), (3, Some(round(2.0 / 3.0))));
        assert_eq!((second.first_correct_s, second.transition_delay_s), (Some(67.0), Some(7.0)));
        assert_eq!(accuracy(&judged).map(round), Some(0.8));
    }

    /// A decision made as a phase begins belongs to it, and to the one before no more.
    #[test]
    fn a_phase_has_its_start_and_not_its_end() {
        let scenario = scenario(2, &[(0, &[&[0, 1]]), (60, &[&[0], &[1]])]);
        let log = log(&[(60.0, "0 1"), (139.9, "0 1"), (140.0, "0 0")]);
        let judged = judge(&scenario, &log);
        assert_eq!(judged.iter().map(|one| one.decisions).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((judged[0].accuracy, judged[0].first_correct_s), (None, None));
        assert_eq!((judged[1].accuracy, judged[1].transition_delay_s), (Some(1.0), Some(0.0)));
        let reported = trial(&scenario, &log).decisions();
        assert_eq!(reported[0].correct, Some(true));
    }

    /// The first decision that counts, seconds, of one each half second.
    fn counts_from(scenario: &Scenario, detector: Detector) -> f64 {
        let decisions: Vec<(f64, &str)> = (0..280).map(|n| (f64::from(n) / 2.0, "0 1")).collect();
        let log = &log(&decisions);
        let judged = Trial { scenario, detector, log }.by_phase();
        (280 - judged[0].decisions) as f64 / 2.0
    }

    #[test]
    fn a_decision_counts_from_the_end_of_the_longest_warm_up_on() {
        let mut scenario = scenario(2, &[(0, &[&[0], &[1]])]);
        assert_eq!(counts_from(&scenario, Detector::SSC), 23.0);
        scenario.warmup = 30 * SECOND;
        scenario.duration = 110 * SECOND;
        assert_eq!(counts_from(&scenario, Detector::SSC), 30.0);
        (scenario.warmup, scenario.duration) = (0, 140 * SECOND);
        let params = Params::default();
        scenario.params = params.with(&[("ssc.trusted", "50"), ("ssc.t_ms", "300")]);
        assert_eq!(counts_from(&scenario, Detector::SSC), 2.0 + 15.0);
        scenario.params = params.with(&[("tr.t_s", "4"), ("tr.settle_ms", "500")]);
        assert_eq!(counts_from(&scenario, Detector::TR), 2.0 + 4.5);
        scenario.params = params.with(&[("btlbw.cycles", "3"), ("btlbw.t_s", "1.5")]);
        assert_eq!(counts_from(&scenario, Detector::BTLBW), 2.0 + 4.5);
    }

    /// Groups are numbered in each decision, by the path that opens them.
    #[test]
    fn a_decision_is_written_by_the_names_of_its_paths() {
        let mut scenario = scenario(3, &[(0, &[&[0, 2], &[1]])]);
        let test = scenario.test.unwrap();
        for (path, name) in scenario.flows[test].paths.iter_mut().zip(["a", "b", "c"]) {
            path.name = name.into();
        }
        let mut log = log(&[(3.0, "4 c 4"), (30.0, "0 7 -")]);
        log.observations = vec![decided(29.0, "0 1 0"), decided(30.0, "0 1 1")];
        let write = |scenario: &Scenario| {
            let mut csv = Vec::new();
            write_csv(&trial(scenario, &log).decisions(), &mut csv).unwrap();
            String::from_utf8(csv).unwrap()
        };
        let names = "time_s,groups,uncongested,undecided,correct,observations,correct_observations";
        let lines = ["3.0,a+c,b,,true,0,0", "30.0,a b,,c,false,2,1"];
        assert_eq!(write(&scenario), format!("{names}\n{}\n{}\n", lines[0], lines[1]));
        scenario.phases.clear();
        let lines = ["3.0,a+c,b,,,0,0", "30.0,a b,,c,,2,0"];
        assert_eq!(write(&scenario), format!("{names}\n{}\n{}\n", lines[0], lines[1]));
    }

    #[test]
    fn observations_belong_to_the_decision_after_them() {
        let scenario = scenario(2, &[(0, &[&[0], &[1]])]);
        let mut log = log(&[(26.5, "0 1"), (30.0, "0 1"), (33.5, "0 0")]);
        let observed = [
            (26.5, "0 0"),
            (27.0, "0 1"),
            (28.0, "0 1"),
            (29.0, "- -"),
            (30.0, "c c"),
            (31.0, "0 0"),
            (32.0, "0 1"),
            (33.5, "0 0"),
            (34.0, "0 1"),
        ];
        log.observations = observed.iter().map(|&(at, places)| decided(at, places)).collect();
        assert_eq!(judge(&scenario, &log)[0].correct_observations_hist, [1, 1, 0, 1, 0]);
        let reported = trial(&scenario, &log).decisions();
        let reported: Vec<_> =
            reported.iter().map(|d| (d.correct, d.observations, d.correct_observations)).collect();
        assert_eq!(reported, [(Some(true), 1, 0), (Some(true), 4, 3), (Some(false), 3, 1)]);
    }

    #[test]
    fn without_right_groups_nothing_is_right_or_wrong() {
        let scenario = scenario(2, &[]);
        let judged = &judge(&scenario, &log(&[(30.0, "0 1"), (40.0, "0 0")]))[0];
        assert_eq!((judged.decisions, judged.accuracy), (2, None));
        assert_eq!((judged.false_merge_rate, judged.first_correct_s), (None, None));
    }
}
