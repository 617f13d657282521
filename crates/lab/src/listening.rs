//! What detectors that listen found, against what is so.

use std::collections::BTreeMap;

use narrows_laws::detect::Answer;
use narrows_net::{MILLISECOND, Nanos, SECOND};
use narrows_sim::{Found, Heard};
use serde::{Deserialize, Serialize};

use crate::detection::{Right, Truth};
use crate::scenario::Scenario;
use narrows_stats::{mean, round};

/// From a start or a switch on, a detector has so long before shares of time count.
pub const GRACE: Nanos = 10 * SECOND;

/// How often a share of time looks.
const LOOK: Nanos = 100 * MILLISECOND;

/// What a detector that listens found in one phase of the scenario. Shares are of time, from
/// [`GRACE`] after the phase or the younger of two paths began, and of pairs of paths; by what the
/// detector held at the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeardPhase {
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
pub struct Said {
    /// Shared; else separate.
    pub shared: bool,
    /// [`narrows_laws::detect::Pair::strength`], rounded down to a multiple of 0.5.
    pub strength: f64,
    /// How many were right.
    pub right: u64,
    /// How many were wrong.
    pub wrong: u64,
}

/// A detector that listened to a run.
#[derive(Clone, Copy)]
pub struct OfListener<'a> {
    scenario: &'a Scenario,
    /// What it found.
    pub heard: &'a Heard,
}

impl<'a> OfListener<'a> {
    /// One that listened to the connection under test.
    pub fn new(scenario: &'a Scenario, heard: &'a Heard) -> OfListener<'a> {
        OfListener { scenario, heard }
    }

    /// What it found phase by phase, from that in which the connection begins.
    pub fn phases(&self) -> Vec<HeardPhase> {
        let truth = Truth(self.scenario);
        let begin = truth.flow().active.first().map_or(0, |active| active.0);
        let during = truth.phases().filter(|&(_, end)| begin < end);
        during.map(|(start, end)| self.phase(truth, start, end)).collect()
    }

    /// How often it was right, by the strength of its answers.
    pub fn said(&self) -> Vec<Said> {
        let truth = Truth(self.scenario);
        let mut counts: BTreeMap<(bool, i64), [u64; 2]> = BTreeMap::new();
        for (start, end) in truth.phases() {
            let Some(right) = truth.right(start) else { continue };
            let from = if start == 0 { 0 } else { start + GRACE };
            let during = self.heard.said.iter();
            for &(i, j, pair) in
                during.filter(|(.., pair)| (from..end).contains(&(1000 * pair.at_us)))
            {
                let shared = pair.answer == Answer::Shared;
                let strength = (2.0 * pair.strength()).floor() as i64;
                let count = counts.entry((shared, strength)).or_default();
                count[usize::from(shared != (right[i] == right[j]))] += 1;
            }
        }
        let said = |((shared, strength), [right, wrong]): (_, [u64; 2])| Said {
            shared,
            strength: strength as f64 / 2.0,
            right,
            wrong,
        };
        counts.into_iter().map(said).collect()
    }

    fn phase(&self, truth: Truth, start: Nanos, end: Nanos) -> HeardPhase {
        let begin = truth.flow().active.first().map_or(start, |active| active.0.max(start));
        let right = truth.right(start);
        let mut looks = [0u64; 3];
        let mut time = begin + GRACE;
        while let Some(right) = right.as_ref().filter(|_| time < end) {
            for (i, j) in pairs(truth, time, GRACE) {
                looks[verdict(&self.found(time), right, i, j) as usize] += 1;
            }
            time += LOOK;
        }
        let all: u64 = looks.iter().sum();
        let share = |of: Verdict| (all > 0).then(|| round(looks[of as usize] as f64 / all as f64));
        let first = right.and_then(|right| self.first_right(truth, &right, begin, end));
        HeardPhase {
            start_s: seconds(start),
            pair_s: seconds(all * LOOK),
            right: share(Verdict::Right),
            wrong: share(Verdict::Wrong),
            unsure: share(Verdict::Unsure),
            first_right_s: first.map(|first| seconds(first - begin)),
            length_s: seconds(end.saturating_sub(begin)),
        }
    }

    /// When all pairs that are there were first answered rightly.
    fn first_right(&self, truth: Truth, right: &Right, begin: Nanos, end: Nanos) -> Option<Nanos> {
        // An answer changes, or what there is to answer.
        let answers = self.heard.found.iter().map(|&(at, _)| 1000 * at);
        let changes = answers.chain(self.scenario.events.iter().map(|event| event.at));
        let mut times: Vec<Nanos> = changes.filter(|at| (begin..end).contains(at)).collect();
        times.push(begin);
        times.sort_unstable();
        let all_right = |time: &Nanos| {
            let found = self.found(*time);
            let mut pairs = pairs(truth, *time, 0).peekable();
            pairs.peek().is_some()
                && pairs.all(|(i, j)| matches!(verdict(&found, right, i, j), Verdict::Right))
        };
        times.into_iter().find(all_right)
    }

    /// What it held at a time.
    fn found(&self, time: Nanos) -> Found {
        let next = self.heard.found.partition_point(|&(at, _)| 1000 * at <= time);
        next.checked_sub(1).map_or_else(Found::default, |last| self.heard.found[last].1)
    }
}

/// A share over phases.
pub fn over(phases: &[HeardPhase], share: impl Fn(&HeardPhase) -> Option<f64>) -> Option<f64> {
    let judged = phases.iter().filter_map(|phase| Some((share(phase)?, phase.pair_s)));
    let (some, all) =
        judged.fold((0.0, 0.0), |(some, all), (share, of)| (some + share * of, all + of));
    (all > 0.0).then(|| some / all)
}

/// Mean time from a switch until all pairs were right; a switch that was never followed counts with the
/// length of its phase.
pub fn transition(phases: &[HeardPhase]) -> Option<f64> {
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

/// The pairs of paths that carry data at a time, and did for so long.
fn pairs(truth: Truth<'_>, time: Nanos, since: Nanos) -> impl Iterator<Item = (usize, usize)> {
    let paths = 0..truth.flow().paths.len();
    let old = |path: usize| {
        let opened = truth.opened(path, time).filter(|_| !truth.flow().paths[path].backup);
        opened.is_some_and(|opened| opened + since <= time)
    };
    let there: Vec<usize> = paths.filter(|&path| old(path)).collect();
    let of = there.clone();
    there
        .into_iter()
        .flat_map(move |i| of.clone().into_iter().filter(move |&j| i < j).map(move |j| (i, j)))
}

fn seconds(time: Nanos) -> f64 {
    round(time as f64 / SECOND as f64)
}

#[cfg(test)]
mod tests {
    use narrows_laws::Detector;
    use narrows_sim::Listener;

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

    fn judged(scenario: &Scenario, answers: &[(u64, Answer)]) -> Vec<HeardPhase> {
        let found = answers
            .iter()
            .map(|&(at, answer)| (at * 1_000_000, [(0, 1, answer)].into_iter().collect()))
            .collect();
        let by = Listener { detector: Detector::XCORR, signal: Signal::Rtt };
        OfListener::new(scenario, &Heard { by, found, said: Vec::new() }).phases()
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
