//! What the answers on pairs of flows say together.

use narrows_laws::Place;
use narrows_laws::detect::{Answer, Pair};

/// The answers of a detector that compares pairs. Sets of flows are bits of a word
/// ([`narrows_laws::detect::MAX_FLOWS`]).
#[derive(Debug)]
pub struct Pairs {
    flows: usize,
    /// Of each pair, by its smaller number and then its larger.
    pairs: Vec<Pair>,
    /// With whom each flow shares a bottleneck, also by way of others, and itself.
    group: Vec<u64>,
    /// From whom it is separate.
    apart: Vec<u64>,
}

impl Pairs {
    /// Of so many flows. None: the detector does not compare pairs, or there is none.
    pub fn new(flows: usize, pair: impl Fn(usize, usize) -> Option<Pair>) -> Option<Pairs> {
        let pairs: Option<Vec<Pair>> = both(flows).map(|(a, b)| pair(a, b)).collect();
        (flows > 1).then_some(Pairs::of(flows, pairs?))
    }

    /// The same with these answers, in the order of the flows; none is not sure.
    pub fn saying(&self, shared: impl Iterator<Item = Option<bool>>) -> Pairs {
        let answer = |shared| match shared {
            None => Answer::Unsure,
            Some(true) => Answer::Shared,
            Some(false) => Answer::Separate,
        };
        let pair = |(pair, shared): (&Pair, _)| Pair { answer: answer(shared), ..*pair };
        Pairs::of(self.flows, self.pairs.iter().zip(shared).map(pair).collect())
    }

    fn of(flows: usize, pairs: Vec<Pair>) -> Pairs {
        let mut near: Vec<u64> = (0..flows).map(|flow| 1 << flow).collect();
        let mut apart: Vec<u64> = vec![0; flows];
        for ((a, b), pair) in both(flows).zip(&pairs) {
            let sets = match pair.answer {
                Answer::Shared => &mut near,
                Answer::Separate => &mut apart,
                Answer::Unsure => continue,
            };
            sets[a] |= 1 << b;
            sets[b] |= 1 << a;
        }
        let group = near.iter().map(|&of| closed(&near, of)).collect();
        Pairs { flows, pairs, group, apart }
    }

    /// The answer on a pair, the smaller number first.
    pub fn pair(&self, a: usize, b: usize) -> Pair {
        let before = a * (2 * self.flows - a - 1) / 2;
        self.pairs[before + b - a - 1]
    }

    /// Do two flows share a bottleneck, by all answers? They do if each shares one with the next of a
    /// chain of others; else they do not if one that shares one with the first is separate from one
    /// that does so with the second.
    pub fn shared(&self, a: usize, b: usize) -> Option<bool> {
        if self.group[a] >> b & 1 == 1 {
            return Some(true);
        }
        let apart = of(self.group[a]).fold(0, |all, member| all | self.apart[member]);
        (apart & self.group[b] != 0).then_some(false)
    }

    /// The place of each flow. Alone is only who is separate from all others.
    pub fn places(&self) -> Vec<Place> {
        let place = |flow: usize| {
            let members = self.group[flow];
            let doubt = || (0..self.flows).any(|other| self.shared(flow, other).is_none());
            match members.count_ones() {
                1 if doubt() => Place::Undecided,
                _ => Place::Group(members.trailing_zeros() as u8),
            }
        };
        (0..self.flows).map(place).collect()
    }
}

/// Each two of so many flows.
fn both(flows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..flows).flat_map(move |a| (a + 1..flows).map(move |b| (a, b)))
}

/// A set with all that are near its members, and so on.
fn closed(near: &[u64], set: u64) -> u64 {
    match of(set).fold(set, |all, member| all | near[member]) {
        more if more == set => set,
        more => closed(near, more),
    }
}

/// The members of a set.
fn of(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |member| set >> member & 1 == 1)
}

#[cfg(test)]
mod tests {
    use narrows_laws::detect::Why;

    use super::*;

    /// Of so many flows, with these answers; the others are unsure.
    fn pairs(flows: usize, shared: &[(usize, usize)], separate: &[(usize, usize)]) -> Pairs {
        let pair = |a: usize, b: usize| {
            let answer = match (shared.contains(&(a, b)), separate.contains(&(a, b))) {
                (true, _) => Answer::Shared,
                (_, true) => Answer::Separate,
                _ => Answer::Unsure,
            };
            let observations = (10 * a + b) as u32;
            Some(Pair { answer, why: Why::Few, at_us: 0, concordance: 0.0, observations })
        };
        Pairs::new(flows, pair).unwrap()
    }

    #[test]
    fn pairs_answer_for_others() {
        let of = pairs(5, &[(0, 1), (1, 2)], &[(2, 3), (0, 2)]);
        assert_eq!(of.shared(0, 2), Some(true), "by way of 1, whatever they say alone");
        assert_eq!(of.shared(0, 3), Some(false), "2 is separate from it");
        assert_eq!(of.shared(3, 0), Some(false));
        assert_eq!(of.shared(3, 4), None);
        let one = Place::Group(0);
        assert_eq!(of.places(), [one, one, one, Place::Undecided, Place::Undecided]);
        for (a, b) in [(0, 1), (0, 4), (1, 2), (2, 4), (3, 4)] {
            assert_eq!(of.pair(a, b).observations as usize, 10 * a + b);
        }
    }

    #[test]
    fn alone_is_who_is_separate_from_all() {
        let of = pairs(3, &[(0, 1)], &[(1, 2)]);
        assert_eq!(of.places(), [Place::Group(0), Place::Group(0), Place::Group(2)]);
        assert_eq!(pairs(2, &[], &[]).places(), [Place::Undecided; 2]);
        assert_eq!(pairs(64, &[(0, 63)], &[]).shared(63, 0), Some(true));
    }
}
