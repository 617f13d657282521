//! Passive detectors: they sample what the detector of a connection's control would, and nothing follows
//! what they find. So all of them see the same packets.

use narrows_laws::detect::{Answer, Finding, Pair};
use narrows_laws::{Conn, Control, Detector, Event, MAX_PATHS, Params, Place};
use narrows_traffic::Signal;

/// A passive detector of a connection: which one, and what it samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassiveDetector {
    /// The detector.
    pub detector: Detector,
    /// What it samples.
    pub signal: Signal,
}

/// What a passive detector found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Who.
    pub by: PassiveDetector,
    /// What it held to be so from a time on, us, until the next. Nothing before the first.
    pub found: Vec<(u64, Found)>,
    /// The pairs of paths that an interval gave an answer on, of a detector that compares pairs.
    pub answers: Vec<(usize, usize, Pair)>,
}

/// The answers on all pairs of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found([[Answer; MAX_PATHS]; MAX_PATHS]);

impl Default for Found {
    /// Nothing is sure.
    fn default() -> Found {
        Found([[Answer::Unsure; MAX_PATHS]; MAX_PATHS])
    }
}

impl Found {
    /// The answer on paths `i` and `j`. Panics unless both are below [`MAX_PATHS`].
    pub fn of(&self, i: usize, j: usize) -> Answer {
        self.0[i.min(j)][i.max(j)]
    }
}

impl FromIterator<(usize, usize, Answer)> for Found {
    fn from_iter<T: IntoIterator<Item = (usize, usize, Answer)>>(answers: T) -> Found {
        let mut found = Found::default();
        for (i, j, answer) in answers {
            found.0[i.min(j)][i.max(j)] = answer;
        }
        found
    }
}

/// A passive detector that runs.
#[derive(Debug)]
pub(crate) struct Passive {
    conn: Conn,
    /// Number of its newest decision.
    newest: u32,
    /// When pairs were last given an answer.
    answered: [[u64; MAX_PATHS]; MAX_PATHS],
    findings: Findings,
}

impl Passive {
    /// With `params`, from the first packet on.
    pub fn new(by: PassiveDetector, params: &Params) -> Passive {
        // Only its detector is asked.
        let control = Control { detector: by.detector, ..Control::RENO };
        let conn = Conn::with_params(control, params);
        Passive {
            conn,
            newest: 0,
            answered: Default::default(),
            findings: Findings { by, found: Vec::new(), answers: Vec::new() },
        }
    }

    /// An event of a path, as its signal has it.
    pub fn take(&mut self, path: usize, event: &Event) {
        self.conn.detect(path, event);
        let Some(decision) = self.conn.decision().filter(|newest| newest.number != self.newest)
        else {
            return;
        };
        self.newest = decision.number;
        let known: Vec<_> = pairs().map(|(i, j)| (i, j, self.conn.pair(i, j))).collect();
        let found = found(&decision.places, &known);
        if self.findings.found.last().is_none_or(|(_, last)| *last != found) {
            self.findings.found.push((decision.at_us, found));
        }
        for (i, j, pair) in known {
            let answered = &mut self.answered[i][j];
            if let Some(pair) = pair.filter(|pair| pair.why.is_none() && pair.at_us > *answered) {
                *answered = pair.at_us;
                self.findings.answers.push((i, j, pair));
            }
        }
    }

    /// What it found so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }
}

/// What a decision, and what is `known` of pairs, say of pairs. Its groups are for coupling: of a detector
/// that compares pairs only those in one share that its answers together say so of.
fn found(places: &[Place; MAX_PATHS], known: &[(usize, usize, Option<Pair>)]) -> Found {
    let own = known.iter().map(|&(i, j, pair)| (i, j, pair.map_or(Answer::Shared, |of| of.answer)));
    let finding = Finding::new(MAX_PATHS, own);
    let answer = |i: usize, j: usize| match (places[i], places[j]) {
        (Place::Undecided, _) | (_, Place::Undecided) => Answer::Unsure,
        (Place::Group(one), Place::Group(other)) if one == other => match finding.answer(i, j) {
            Answer::Shared => Answer::Shared,
            _ => Answer::Unsure,
        },
        _ => Answer::Separate,
    };
    pairs().map(|(i, j)| (i, j, answer(i, j))).collect()
}

/// Each two of all paths.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..MAX_PATHS).flat_map(|i| (i + 1..MAX_PATHS).map(move |j| (i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_coupled_shares_as_far_as_its_pairs_say() {
        let mut places = [Place::Undecided; MAX_PATHS];
        places[..5].copy_from_slice(&[0, 0, 0, 0, 1].map(Place::Group));
        let shared = [(0, 1), (1, 2)];
        let compared = |(i, j)| match shared.contains(&(i, j)) {
            true => (i, j, Some(Pair::new(Answer::Shared))),
            false => (i, j, Some(Pair::new(Answer::Unsure))),
        };
        let of = found(&places, &pairs().map(compared).collect::<Vec<_>>());
        assert_eq!(of.of(0, 2), Answer::Shared, "by way of 1");
        assert_eq!(of.of(0, 3), Answer::Unsure, "it may share");
        assert_eq!(of.of(0, 4), Answer::Separate);
        assert_eq!(of.of(0, 5), Answer::Unsure, "it has no place");
        let of = found(&places, &pairs().map(|(i, j)| (i, j, None)).collect::<Vec<_>>());
        assert_eq!(of.of(0, 3), Answer::Shared, "a detector that does not compare pairs");
    }
}
