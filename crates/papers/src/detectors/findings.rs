//! What passive detectors found in runs, and the figures made of it.

use std::collections::BTreeMap;

use narrows_lab::PassiveSummary;
use narrows_stats::{mean, weighted};

use crate::figures::Interval;

/// Answers of this strength and more are one row; below it they come in steps of 0.5.
pub const STRONG: f64 = 7.0;

/// Right and wrong answers, by twice their strength and whether they were "shared".
pub type Answers = BTreeMap<(u32, bool), [u64; 2]>;

/// What a detector found in one run.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Right, wrong and not sure: of all phases, by their time and pairs.
    pub shares: [Option<f64>; 3],
    /// From the connection's start until all pairs were right; none if never.
    first_s: Option<f64>,
    /// The same from each switch, and how long the phase was.
    switches_s: Vec<(Option<f64>, f64)>,
    answers: Answers,
}

impl Findings {
    /// What a passive detector found.
    pub fn of(passive: &PassiveSummary) -> Findings {
        let phases = &passive.phases;
        let share = |of: fn(&narrows_lab::passive::PassivePhase) -> Option<f64>| {
            weighted(phases.iter().filter_map(|phase| Some((of(phase)?, phase.pair_s))))
        };
        let mut answers = Answers::new();
        for one in &passive.answers {
            let counts =
                answers.entry(((2.0 * one.strength.min(STRONG)) as u32, one.shared)).or_default();
            counts[0] += one.right;
            counts[1] += one.wrong;
        }
        Findings {
            shares: [
                share(|phase| phase.right),
                share(|phase| phase.wrong),
                share(|phase| phase.unsure),
            ],
            first_s: phases[0].first_right_s,
            switches_s: phases[1..]
                .iter()
                .map(|phase| (phase.first_right_s, phase.length_s))
                .collect(),
            answers,
        }
    }
}

/// Figures of a detector over the runs of a cell.
#[derive(Clone, Debug)]
pub struct Figures {
    /// How many runs there were.
    pub runs: usize,
    /// Right, wrong and not sure.
    pub shares: [Option<Interval>; 3],
    /// Until all pairs were first right, s: half of the runs, and 95 % of them; infinite for never.
    pub first_s: [Option<f64>; 2],
    /// Shifts.
    pub switches: usize,
    /// Those that were followed.
    pub followed: usize,
    /// How long a shift took, s: in the mean, where one that was never followed counts with the length of its
    /// phase, and 95 % of them.
    pub switch_s: [Option<f64>; 2],
    /// Right and wrong answers.
    pub answers: Answers,
}

/// Those of runs: for each seed a list with one finding for each mask.
pub fn figures(runs: &[Vec<&Findings>]) -> Figures {
    let share = |at: usize| {
        let of = |masks: &Vec<&Findings>| {
            let known: Vec<f64> = masks.iter().filter_map(|one| one.shares[at]).collect();
            (!known.is_empty()).then(|| mean(&known))
        };
        Interval::of(&runs.iter().filter_map(of).collect::<Vec<_>>())
    };
    let every = || runs.iter().flatten();
    let firsts: Vec<_> = every().map(|one| one.first_s).collect();
    let switches: Vec<_> = every().flat_map(|one| &one.switches_s).collect();
    let lengths: Vec<f64> =
        switches.iter().map(|(first, length)| first.unwrap_or(*length)).collect();
    let shifted: Vec<_> = switches.iter().map(|(first, _)| *first).collect();
    let mut answers = Answers::new();
    for (key, [right, wrong]) in every().flat_map(|one| &one.answers) {
        let counts = answers.entry(*key).or_default();
        counts[0] += right;
        counts[1] += wrong;
    }
    Figures {
        runs: firsts.len(),
        shares: [share(0), share(1), share(2)],
        first_s: [least(&firsts, 0.5), least(&firsts, 0.95)],
        switches: switches.len(),
        followed: shifted.iter().flatten().count(),
        switch_s: [(!lengths.is_empty()).then(|| mean(&lengths)), least(&shifted, 0.95)],
        answers,
    }
}

/// The least value that such a share of them are not above; infinite if those never came.
fn least(values: &[Option<f64>], share: f64) -> Option<f64> {
    let mut ordered: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
    ordered.sort_by(f64::total_cmp);
    let place = (libm::ceil(share * ordered.len() as f64) as usize).max(1) - 1;
    ordered.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(right: f64, first: Option<f64>) -> Findings {
        Findings {
            shares: [Some(right), Some(1.0 - right), Some(0.0)],
            first_s: first,
            switches_s: vec![(first, 20.0)],
            answers: Answers::from([((14, true), [5, 1]), ((11, true), [5, 1])]),
        }
    }

    #[test]
    fn a_quantile_counts_what_never_came() {
        let some = [Some(3.0), None, Some(1.0), Some(2.0)];
        assert_eq!(least(&some, 0.5), Some(2.0));
        assert_eq!(least(&some, 0.95), Some(f64::INFINITY));
        let all: Vec<_> = (1..=20).map(|one| Some(f64::from(one))).collect();
        assert_eq!(least(&all, 0.95), Some(19.0));
        assert_eq!(least(&[], 0.5), None);
    }

    #[test]
    fn the_masks_of_a_seed_are_one_value_of_the_interval() {
        let all = [
            [findings(1.0, Some(1.0)), findings(0.5, Some(3.0))],
            [findings(0.75, Some(2.0)), findings(0.75, None)],
        ];
        let found = figures(&all.each_ref().map(|masks| masks.iter().collect()));
        assert_eq!(found.runs, 4);
        assert_eq!(found.shares[0], Some(Interval { mean: 0.75, half: Some(0.0) }));
        assert_eq!(found.first_s, [Some(2.0), Some(f64::INFINITY)]);
        // The one that was never followed counts with its 20 s.
        assert_eq!((found.switches, found.followed, found.switch_s[0]), (4, 3, Some(6.5)));
        assert_eq!(found.answers, Answers::from([((14, true), [20, 4]), ((11, true), [20, 4])]));
    }
}
