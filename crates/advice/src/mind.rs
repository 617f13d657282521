//! What is thought of the worst path, look by look: all paths pay, one is tried without, or one is parked. The rule is
//! [the crate](crate)'s.

use crate::look::{GAIN, Shown};
use std::collections::BTreeMap;
use std::time::Duration;

/// Looks in a row, once a second.
pub(crate) const LOOKS: u32 = 5;
/// Looks until what the path had is delivered.
const SETTLE: u32 = 5;
/// So long a path is left alone, the first time; doubled to [`REST_MOST`].
pub(crate) const REST: Duration = Duration::from_secs(60);
pub(crate) const REST_MOST: Duration = Duration::from_secs(16 * 60);

/// What is thought of the worst path.
#[derive(Clone, Debug)]
pub(crate) enum Thought<P> {
    /// All pay, but this one may not, since so many looks; `rate` is what was delivered in all, bytes/s,
    /// smoothed over [`LOOKS`].
    Pays { suspect: Option<P>, looks: u32, rate: f64 },
    /// It is a backup, to see what is delivered without it. Looks, and the sum of rates of those that count.
    Tried { without: Without<P>, looks: u32, sum: f64 },
    /// It is a backup until then.
    Parked { without: Without<P>, until: Duration },
}

/// A path that is a backup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without<P> {
    subflow: P,
    /// With it this rate was delivered, bytes/s.
    before: f64,
    /// Looks in a row in which another path was busy all the time, and less was delivered than before.
    worse: u32,
}

/// How long a path is left as it is.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Was it right that it was tried?
    right: bool,
    length: Duration,
    until: Duration,
}

/// What is thought, and which paths are left as they are.
#[derive(Debug)]
pub(crate) struct Mind<P> {
    pub thought: Thought<P>,
    rests: BTreeMap<P, Rest>,
}

impl<P> Thought<P> {
    const INNOCENT: Thought<P> = Thought::Pays { suspect: None, looks: 0, rate: 0.0 };
}

impl<P> Default for Mind<P> {
    fn default() -> Self {
        Mind { thought: Thought::INNOCENT, rests: BTreeMap::new() }
    }
}

impl<P: Copy + Ord> Mind<P> {
    /// The path that is to be a backup.
    pub fn wanted(&self) -> Option<P> {
        match self.thought {
            Thought::Pays { suspect, looks, .. } => suspect.filter(|_| looks >= LOOKS),
            Thought::Tried { without, .. } | Thought::Parked { without, .. } => {
                Some(without.subflow)
            }
        }
    }

    /// Is it one?
    pub fn does_without(&self) -> bool {
        !matches!(self.thought, Thought::Pays { .. })
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.thought = Thought::INNOCENT;
    }

    /// Thinks again, by a look at `now`.
    pub fn think(&mut self, now: Duration, shown: &Shown<P>) {
        let is_backup = |subflow: P| shown.backups.contains(&subflow);
        let worse = |without: Without<P>| {
            let is = shown.delivered < without.before && shown.busy;
            Without { worse: if is { without.worse + 1 } else { 0 }, ..without }
        };
        self.thought = match self.thought.clone() {
            Thought::Pays { suspect: Some(subflow), looks, rate }
                if looks >= LOOKS && is_backup(subflow) =>
            {
                let without = worse(Without { subflow, before: rate, worse: 0 });
                Thought::Tried { without, looks: 1, sum: 0.0 }
            }
            Thought::Pays { suspect, looks, rate } => match shown.drag {
                Some(one) if self.is_left(one, now) => Thought::INNOCENT,
                Some(one) => {
                    let (looks, rate) =
                        if suspect == Some(one) { (looks + 1, rate) } else { (1, 0.0) };
                    let rate = rate + (shown.delivered - rate) / f64::from(looks.min(LOOKS));
                    Thought::Pays { suspect: Some(one), looks, rate }
                }
                None => Thought::INNOCENT,
            },
            // Closed, or regular again for another reason: what was seen before says nothing any more.
            Thought::Tried { without, .. } | Thought::Parked { without, .. }
                if !is_backup(without.subflow) =>
            {
                Thought::INNOCENT
            }
            Thought::Tried { without, looks, sum } => {
                let counts = looks >= SETTLE;
                let (looks, sum) = (looks + 1, if counts { sum + shown.delivered } else { 0.0 });
                let without = worse(without);
                let over = looks >= SETTLE + LOOKS;
                if over && GAIN * sum / f64::from(LOOKS) >= without.before {
                    Thought::Parked { without, until: self.rest(without.subflow, true, now) }
                } else if over || without.worse >= LOOKS {
                    self.rest(without.subflow, false, now);
                    Thought::INNOCENT
                } else {
                    Thought::Tried { without, looks, sum }
                }
            }
            Thought::Parked { without, until } => match worse(without) {
                without if now < until && without.worse < LOOKS => {
                    Thought::Parked { without, until }
                }
                _ => Thought::INNOCENT,
            },
        };
    }

    /// Is a path left alone that was tried in vain?
    fn is_left(&self, subflow: P, now: Duration) -> bool {
        self.rests.get(&subflow).is_some_and(|rest| !rest.right && now < rest.until)
    }

    /// Until when a path is left as it is: twice as long as the last time after the same verdict, unless since
    /// then it was for as long beyond suspicion.
    fn rest(&mut self, subflow: P, right: bool, now: Duration) -> Duration {
        let last = self.rests.get(&subflow);
        let again = last.filter(|last| last.right == right && now < last.until + last.length);
        let length = again.map_or(REST, |last| (2 * last.length).min(REST_MOST));
        let until = now + length;
        self.rests.insert(subflow, Rest { right, length, until });
        until
    }
}
