//! What passive detectors found, against what is so.

use std::collections::BTreeMap;

use narrows_laws::detect::Answer;
use narrows_net::{MILLISECOND, Nanos, SECOND};
use narrows_sim::{Findings, Found};
use serde::{Deserialize, Serialize};

use crate::detection::{Right, Truth, pairs, seconds};
use crate::scenario::Scenario;
use narrows_stats::{mean, round, weighted};

/// From a start or a switch on, a detector has so long before shares of time count.
pub const GRACE: Nanos = 10 * SECOND;

/// How often a share of time looks.
const LOOK: Nanos = 100 * MILLISECOND;

/// What a passive detector found in one phase of the scenario. Shares are of time, from
/// [`GRACE`] after the phase or the younger of two paths began, and of pairs of paths; by what the
/// detector held at the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassivePhase {
    /// Start of the phase, seconds from the start of the run.
    pub start_s: f64,
    /// Seconds that count, times pairs.
    pub pair_s: f64,
    /// Share with the right answer; none where nothing counts, or nothing is known to be right.
    pub right: Option<f64>,
    /// Share with the wrong answer.
    pub wrong: Option<f64>,
    /// Share without a sure answer.
    pub unsure: Option<f64>,
    /// When first all pairs were answered rightly, seconds from the start of the phase or of the
    /// connection, whichever is later; none if never.
    pub first_right_s: Option<f64>,
    /// From the same start to the end of the phase, seconds.
    pub length_s: f64,
}

/// Answers of a detector that compares pairs, as often as an interval gave one, by their strength. The
/// first [`GRACE`] after a switch do not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerCount {
    /// Shared; else separate.
    pub shared: bool,
    /// [`narrows_laws::detect::Pair::strength`], rounded down to a multiple of 0.5.
    pub strength: f64,
    /// How many were right.
    pub right: u64,
    /// How many were wrong.
    pub wrong: u64,
}

/// A passive detector of a run.
pub struct OfPassive<'a> {
    scenario: &'a Scenario,
    /// What it found.
    pub findings: &'a Findings,
    /// The same phase by phase, from that in which the connection begins.
    pub phases: Vec<PassivePhase>,
}

impl<'a> OfPassive<'a> {
    /// One of the connection under test.
    pub fn new(scenario: &'a Scenario, findings: &'a Findings) -> OfPassive<'a> {
        let truth = Truth(scenario);
        let begin = truth.flow().active.first().map_or(0, |active| active.0);
        let during = truth.phases().filter(|&(_, end)| begin < end);
        let phase =
            |(start, end): (Nanos, Nanos)| phase(truth, findings, start.max(begin), start, end);
        OfPassive { scenario, findings, phases: during.map(phase).collect() }
    }

    /// How often it was right, by the strength of its answers.
    pub fn answers(&self) -> Vec<AnswerCount> {
        let truth = Truth(self.scenario);
        let mut counts: BTreeMap<(bool, i64), [u64; 2]> = BTreeMap::new();
        for (start, end) in truth.phases() {
            let Some(right) = truth.right(start) else { continue };
            let from = if start == 0 { 0 } else { start + GRACE };
            let during = self.findings.answers.iter();
            for &(i, j, pair) in
                during.filter(|(.., pair)| (from..end).contains(&(1000 * pair.at_us)))
            {
                let shared = pair.answer == Answer::Shared;
                let strength = (2.0 * pair.strength()).floor() as i64;
                let count = counts.entry((shared, strength)).or_default();
                count[usize::from(shared != (right[i] == right[j]))] += 1;
            }
        }
        let counted = |((shared, strength), [right, wrong]): (_, [u64; 2])| AnswerCount {
            shared,
            strength: strength as f64 / 2.0,
            right,
            wrong,
        };
        counts.into_iter().map(counted).collect()
    }
}

/// The phase that starts at `start`, in which the connection is there from `begin` on.
fn phase(
    truth: Truth,
    findings: &Findings,
    begin: Nanos,
    start: Nanos,
    end: Nanos,
) -> PassivePhase {
    let right = truth.right(start);
    let mut looks = [0u64; 3];
    let mut time = begin + GRACE;
    while let Some(right) = right.as_ref().filter(|_| time < end) {
        let found = held(findings, time);
        for (i, j) in pairs(&old(truth, time)) {
            looks[verdict(&found, right, i, j) as usize] += 1;
        }
        time += LOOK;
    }
    let all: u64 = looks.iter().sum();
    let share = |of: Verdict| (all > 0).then(|| round(looks[of as usize] as f64 / all as f64));
    let first = right.and_then(|right| first_right(truth, findings, &right, begin, end));
    PassivePhase {
        start_s: seconds(start),
        pair_s: seconds(all * LOOK),
        right: share(Verdict::Right),
        wrong: share(Verdict::Wrong),
        unsure: share(Verdict::Unsure),
        first_right_s: first.map(|first| seconds(first - begin)),
        length_s: seconds(end - begin),
    }
}

/// When all pairs that are there were first answered rightly.
fn first_right(
    truth: Truth,
    findings: &Findings,
    right: &Right,
    begin: Nanos,
    end: Nanos,
) -> Option<Nanos> {
    // An answer changes, or what there is to answer.
    let answers = findings.found.iter().map(|&(at, _)| 1000 * at);
    let changes = answers.chain(truth.0.events.iter().map(|event| event.at));
    let mut times: Vec<Nanos> = changes.filter(|at| (begin..end).contains(at)).collect();
    times.push(begin);
    times.sort_unstable();
    let all_right = |time: &Nanos| {
        let (found, there) = (held(findings, *time), truth.there(*time));
        there.len() > 1
            && pairs(&there).all(|(i, j)| matches!(verdict(&found, right, i, j), Verdict::Right))
    };
    times.into_iter().find(all_right)
}

/// What the detector held at a time.
fn held(findings: &Findings, time: Nanos) -> Found {
    let next = findings.found.partition_point(|&(at, _)| 1000 * at <= time);
    next.checked_sub(1).map_or_else(Found::default, |last| findings.found[last].1)
}

/// The paths that carry data at a time, and did for [`GRACE`].
fn old(truth: Truth, time: Nanos) -> Vec<usize> {
    let old = |&path: &usize| truth.opened(path, time).is_some_and(|opened| opened + GRACE <= time);
    truth.there(time).into_iter().filter(old).collect()
}

/// A share over phases.
pub fn over(phases: &[PassivePhase], share: impl Fn(&PassivePhase) -> Option<f64>) -> Option<f64> {
    weighted(phases.iter().filter_map(|phase| Some((share(phase)?, phase.pair_s))))
}

/// Mean time from a switch until all pairs were right; a switch that was never followed counts with the
/// length of its phase.
pub fn transition(phases: &[PassivePhase]) -> Option<f64> {
    let switches = phases.iter().skip(1);
    let times: Vec<f64> =
        switches.map(|phase| phase.first_right_s.unwrap_or(phase.length_s)).collect();
    (!times.is_empty()).then(|| mean(&times))
}

/// An answer, judged.
#[derive(Clone, Copy)]
enum Verdict {
    Right,
    Wrong,
    Unsure,
}

fn verdict(found: &Found, right: &Right, i: usize, j: usize) -> Verdict {
    match (found.of(i, j), right[i] == right[j]) {
        (Answer::Unsure, _) => Verdict::Unsure,
        (Answer::Shared, true) | (Answer::Separate, false) => Verdict::Right,
        _ => Verdict::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use narrows_laws::Detector;
    use narrows_sim::PassiveDetector;

    use super::*;
    use crate::scenario::Phase;
    use crate::{Edits, Signal, load};

    /// Two paths apart, in a scenario of 140 s whose connection begins at 2 s; shared from 60 s on.
    fn scenario() -> Scenario {
        let mut scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        let phase = |start: u64, groups: &[&[usize]]| Phase {
            start: start * SECOND,
            groups: groups.iter().map(|group| group.to_vec()).collect(),
        };
        scenario.phases = vec![phase(0, &[&[0], &[1]]), phase(60, &[&[0, 1]])];
        scenario
    }

    fn judged(scenario: &Scenario, answers: &[(u64, Answer)]) -> Vec<PassivePhase> {
        let found = answers
            .iter()
            .map(|&(at, answer)| (at * 1_000_000, [(0, 1, answer)].into_iter().collect()))
            .collect();
        let by = PassiveDetector { detector: Detector::XCORR, signal: Signal::Rtt };
        OfPassive::new(scenario, &Findings { by, found, answers: Vec::new() }).phases
    }

    #[test]
    fn shares_are_of_the_time_in_which_an_answer_was_held() {
        // Of 12 to 60 s 8 wrong, 10 unsure; of 70 to 140 s 5 wrong.
        let answers = [
            (4, Answer::Separate),
            (20, Answer::Shared),
            (28, Answer::Unsure),
            (38, Answer::Separate),
            (75, Answer::Shared),
        ];
        let phases = judged(&scenario(), &answers);
        let share = |some: f64, all: f64| Some(round(some / all));
        let [first, second] = &phases[..] else { panic!("{phases:?}") };
        assert_eq!((first.pair_s, second.pair_s), (48.0, 70.0));
        assert_eq!(
            (first.right, first.wrong, first.unsure),
            (share(30.0, 48.0), share(8.0, 48.0), share(10.0, 48.0))
        );
        assert_eq!(
            (second.right, second.wrong, second.unsure),
            (share(65.0, 70.0), share(5.0, 70.0), Some(0.0))
        );
        assert_eq!((first.first_right_s, second.first_right_s), (Some(2.0), Some(15.0)));
        assert_eq!(transition(&phases), Some(15.0));
        let wrong = over(&phases, |phase| phase.wrong).unwrap();
        assert!((wrong - 13.0 / 118.0).abs() < 1e-5, "{wrong}");
    }

    #[test]
    fn without_a_word_nothing_is_sure_and_a_switch_is_not_followed() {
        let phases = judged(&scenario(), &[]);
        assert!(phases.iter().all(|phase| phase.unsure == Some(1.0)));
        assert_eq!(phases.iter().map(|phase| phase.first_right_s).collect::<Vec<_>>(), [None; 2]);
        assert_eq!(transition(&phases), Some(80.0));
    }

    #[test]
    fn a_path_that_is_not_there_is_in_no_pair() {
        let mut scenario = scenario();
        let test = scenario.test.unwrap();
        scenario.flows[test].paths[1].backup = true;
        let phases = judged(&scenario, &[(4, Answer::Shared)]);
        assert!(phases.iter().all(|phase| (phase.pair_s, phase.right) == (0.0, None)));
        assert_eq!(over(&phases, |phase| phase.right), None);
    }
}
