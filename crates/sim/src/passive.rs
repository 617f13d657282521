//! Passive detectors: they sample what the detector of a connection's control would, and nothing follows
//! what they find. So all of them see the same packets.

use narrows_laws::detect::{Answer, Pair};
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

/// What a decision, and what is `known` of pairs, say of pairs. Paths may be in one group only as they
/// are not known to be apart: of a detector that compares pairs, those share that a chain of shared
/// pairs connects.
fn found(places: &[Place; MAX_PATHS], known: &[(usize, usize, Option<Pair>)]) -> Found {
    let mut linked = [0u8; MAX_PATHS];
    for &(i, j, pair) in known {
        if pair.is_none_or(|pair| pair.answer == Answer::Shared) {
            linked[i] |= 1 << j;
            linked[j] |= 1 << i;
        }
    }
    for via in 0..MAX_PATHS {
        for i in 0..MAX_PATHS {
            if linked[i] & (1 << via) != 0 {
                linked[i] |= linked[via];
            }
        }
    }
    let answer = |(i, j): (usize, usize)| {
        let answer = match (places[i], places[j]) {
            (Place::Undecided, _) | (_, Place::Undecided) => Answer::Unsure,
            (Place::Group(one), Place::Group(other)) if one == other => {
                if linked[i] & (1 << j) != 0 { Answer::Shared } else { Answer::Unsure }
            }
            _ => Answer::Separate,
        };
        (i, j, answer)
    };
    pairs().map(answer).collect()
}

/// Each two of all paths.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..MAX_PATHS).flat_map(|i| (i + 1..MAX_PATHS).map(move |j| (i, j)))
}
