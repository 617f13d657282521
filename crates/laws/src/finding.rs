//! What the answers on pairs of flows, or paths, say together: who shares a bottleneck with whom.
//!
//! There are two policies. This one *reports*: what is in doubt is undecided, so that nothing is said
//! that is not known. *Coupling* is the detector's own (`nr_xcorr_group()`): what may share is coupled,
//! until it is known to be separate, and a path whose losses are random with none. Both have the
//! components of shared pairs.
//!
//! ```
//! use narrows_laws::Place;
//! use narrows_laws::detect::{Answer, Finding};
//!
//! let answers = [(0, 1, Answer::Shared), (1, 2, Answer::Separate)];
//! let finding = Finding::new(4, answers);
//! assert_eq!(finding.answer(0, 2), Answer::Separate); // 1 is where 0 is
//! assert_eq!(finding.answer(0, 3), Answer::Unsure);
//! let undecided = Place::Undecided; // of 3 nothing is known, and 2 may be where it is
//! assert_eq!(finding.places(), [Place::Group(0), Place::Group(0), undecided, undecided]);
//! ```

use std::collections::BTreeMap;

use crate::Place;
use crate::detect::MAX_FLOWS;
use crate::pair::Answer;

/// Who shares a bottleneck with whom. Sets of flows are bits of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// With whom each flow shares a bottleneck, also by way of others, and itself.
    group: Vec<u64>,
    /// From whom it is separate.
    apart: Vec<u64>,
}

impl Finding {
    /// Of so many flows, by answers on pairs of them; on others nothing is known. Panics at more than
    /// [`MAX_FLOWS`], and if a pair is of other flows.
    pub fn new(flows: usize, answers: impl IntoIterator<Item = (usize, usize, Answer)>) -> Finding {
        assert!(flows <= MAX_FLOWS, "{flows} flows of at most {MAX_FLOWS}");
        let mut near: Vec<u64> = (0..flows).map(|flow| 1 << flow).collect();
        let mut apart: Vec<u64> = vec![0; flows];
        for (a, b, answer) in answers {
            let sets = match answer {
                Answer::Shared => &mut near,
                Answer::Separate => &mut apart,
                Answer::Unsure => continue,
            };
            sets[a] |= 1 << b;
            sets[b] |= 1 << a;
        }
        let group = near.iter().map(|&of| closed(&near, of)).collect();
        Finding { group, apart }
    }

    /// On two flows, by all answers. They share a bottleneck if each shares one with the next of a chain
    /// of others; else they do not if one that shares one with the first is separate from one that does
    /// so with the second.
    pub fn answer(&self, a: usize, b: usize) -> Answer {
        if self.group[a] >> b & 1 == 1 {
            return Answer::Shared;
        }
        let apart = members(self.group[a]).fold(0, |all, member| all | self.apart[member]);
        if apart & self.group[b] != 0 { Answer::Separate } else { Answer::Unsure }
    }

    /// The place of each flow; a group has the number of its first. Alone is only who is separate from all
    /// others.
    pub fn places(&self) -> Vec<Place> {
        let flows = self.group.len();
        let place = |flow: usize| {
            let group = self.group[flow];
            let doubt = || (0..flows).any(|other| self.answer(flow, other) == Answer::Unsure);
            match group.count_ones() {
                1 if doubt() => Place::Undecided,
                _ => Place::Group(group.trailing_zeros() as u8),
            }
        };
        (0..flows).map(place).collect()
    }

    /// The flows of each group, those that are alone each in one of its own; who is undecided is in none.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (flow, place) in self.places().into_iter().enumerate() {
            groups.entry(place).or_default().push(flow);
        }
        groups.remove(&Place::Undecided);
        groups.into_values().collect()
    }
}

/// A set with all that are near its members, and so on.
fn closed(near: &[u64], set: u64) -> u64 {
    match members(set).fold(set, |all, member| all | near[member]) {
        more if more == set => set,
        more => closed(near, more),
    }
}

fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |member| set >> member & 1 == 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn finding(flows: usize, shared: &[(usize, usize)], separate: &[(usize, usize)]) -> Finding {
        let with = |pairs: &[(usize, usize)], answer| {
            pairs.iter().map(move |&(a, b)| (a, b, answer)).collect::<Vec<_>>()
        };
        Finding::new(
            flows,
            [with(shared, Answer::Shared), with(separate, Answer::Separate)].concat(),
        )
    }

    #[test]
    fn pairs_answer_for_others() {
        let of = finding(5, &[(0, 1), (1, 2)], &[(2, 3), (0, 2)]);
        assert_eq!(of.answer(0, 2), Answer::Shared, "by way of 1, whatever they say alone");
        assert_eq!(of.answer(0, 3), Answer::Separate, "2 is separate from it");
        assert_eq!(of.answer(3, 0), Answer::Separate);
        assert_eq!(of.answer(3, 4), Answer::Unsure);
        let one = Place::Group(0);
        assert_eq!(of.places(), [one, one, one, Place::Undecided, Place::Undecided]);
        assert_eq!(of.groups(), [[0, 1, 2]]);
    }

    #[test]
    fn alone_is_who_is_separate_from_all() {
        let of = finding(3, &[(0, 1)], &[(1, 2)]);
        assert_eq!(of.places(), [Place::Group(0), Place::Group(0), Place::Group(2)]);
        assert_eq!(of.groups(), [vec![0, 1], vec![2]]);
        assert_eq!(finding(2, &[], &[]).places(), [Place::Undecided; 2]);
        assert_eq!(finding(64, &[(0, 63)], &[]).answer(63, 0), Answer::Shared);
    }

    fn answers(flows: usize) -> impl Strategy<Value = Vec<(usize, usize, Answer)>> {
        let pairs: Vec<_> = (0..flows).flat_map(|a| (a + 1..flows).map(move |b| (a, b))).collect();
        let answer =
            prop_oneof![Just(Answer::Shared), Just(Answer::Separate), Just(Answer::Unsure)];
        prop::collection::vec(answer, pairs.len()).prop_map(move |answers| {
            pairs.iter().zip(answers).map(|(&(a, b), answer)| (a, b, answer)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the answers say, however they contradict each other: as what follows from each two
        /// of them, until nothing more does.
        #[test]
        fn a_finding_is_what_follows(answers in (1usize..8).prop_flat_map(answers)) {
            let flows = answers.iter().map(|(_, b, _)| b + 1).max().unwrap_or(1);
            let of = Finding::new(flows, answers.iter().copied());
            let mut shared = [[false; 8]; 8];
            let mut separate = [[false; 8]; 8];
            (0..8).for_each(|n| shared[n][n] = true);
            for &(a, b, answer) in &answers {
                for (a, b) in [(a, b), (b, a)] {
                    shared[a][b] |= answer == Answer::Shared;
                    separate[a][b] |= answer == Answer::Separate;
                }
            }
            for via in 0..8 {
                for a in 0..8 {
                    for b in 0..8 {
                        shared[a][b] |= shared[a][via] && shared[via][b];
                    }
                }
            }
            let each = || (0..flows).flat_map(|a| (0..flows).map(move |b| (a, b)));
            let known = |a: usize, b: usize| {
                let apart = each().any(|(x, y)| shared[a][x] && separate[x][y] && shared[y][b]);
                match (shared[a][b], apart) {
                    (true, _) => Answer::Shared,
                    (_, true) => Answer::Separate,
                    _ => Answer::Unsure,
                }
            };
            // In a group of two, or separate from all others.
            let placed = |a: usize| {
                let mut others = (0..flows).filter(|&b| b != a).map(|b| known(a, b));
                let others: Vec<Answer> = others.by_ref().collect();
                others.contains(&Answer::Shared) || !others.contains(&Answer::Unsure)
            };
            let places = of.places();
            for (a, b) in each() {
                prop_assert_eq!(of.answer(a, b), known(a, b), "{} {}", a, b);
                let one_group = places[a] == places[b] && places[a] != Place::Undecided;
                prop_assert_eq!(one_group, known(a, b) == Answer::Shared && placed(a));
            }
        }
    }
}
