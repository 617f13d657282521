//! What becomes of the connections of an arm by the minute, as differences of what stands at the ends of minutes.

use narrows_kernel::trial::{Sums, Trial};
use serde::{Deserialize, Serialize};

/// Of all connections of an arm that had something to send, within a minute; zeros where nothing is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minute {
    /// Acknowledged.
    pub bytes: u64,
    /// Time in which there was something to send, added up over connections.
    pub busy_ms: u64,
    /// Segments of data that were sent.
    pub segs: u64,
    /// Of those retransmissions.
    pub retrans_segs: u64,
    /// Time without an acknowledgement while something was to be sent, added up over connections.
    pub silent_ms: u64,
}

/// A value of both arms, of each minute; null: there is none.
pub type Values = Vec<[Option<f64>; 2]>;

impl Minute {
    /// From the beginning to the end of a minute.
    fn up_to(end: &Sums) -> Minute {
        let Sums { bytes, busy_ms, segs, retrans_segs, silent_ms, .. } = *end;
        Minute { bytes, busy_ms, segs, retrans_segs, silent_ms }
    }

    fn sums(&self) -> Sums {
        let Minute { bytes, busy_ms, segs, retrans_segs, silent_ms } = *self;
        Sums { bytes, busy_ms, segs, retrans_segs, silent_ms, ..Sums::default() }
    }

    /// None: a sum is smaller than before.
    fn since(&self, before: &Minute) -> Option<Minute> {
        Some(Minute {
            bytes: self.bytes.checked_sub(before.bytes)?,
            busy_ms: self.busy_ms.checked_sub(before.busy_ms)?,
            segs: self.segs.checked_sub(before.segs)?,
            retrans_segs: self.retrans_segs.checked_sub(before.retrans_segs)?,
            silent_ms: self.silent_ms.checked_sub(before.silent_ms)?,
        })
    }

    /// While there was something to send.
    pub(super) fn mbit_per_s(&self) -> Option<f64> {
        (self.busy_ms > 0).then(|| self.bytes as f64 * 8.0 / 1e3 / self.busy_ms as f64)
    }

    /// Of all segments.
    pub(super) fn retransmitted(&self) -> Option<f64> {
        (self.segs > 0).then(|| (self.retrans_segs as f64 / self.segs as f64).min(1.0))
    }

    /// Of 60 s in which there was something to send.
    pub(super) fn silent_s(&self) -> Option<f64> {
        (self.busy_ms > 0).then(|| 60.0 * self.silent_ms as f64 / self.busy_ms as f64)
    }
}

/// Of a trial. A minute into which no look fell counts with the next one.
pub(super) fn of(trial: &Trial) -> Vec<[Minute; 2]> {
    let mut before = [Minute::default(); 2];
    let minute = |ends: &[Sums; 2]| {
        [0, 1].map(|arm: usize| {
            let now = Minute::up_to(&ends[arm]);
            let found = now.since(&before[arm]);
            if found.is_some() {
                before[arm] = now;
            }
            found.unwrap_or_default()
        })
    };
    trial.minutes.iter().map(minute).collect()
}

/// A value of each.
pub(super) fn values(minutes: &[[Minute; 2]], value: fn(&Minute) -> Option<f64>) -> Values {
    minutes.iter().map(|arms| arms.each_ref().map(value)).collect()
}

/// What stood at their ends.
pub(super) fn ends(minutes: &[[Minute; 2]]) -> Vec<[Sums; 2]> {
    let mut sums = [Sums::default(); 2];
    let end = |arms: &[Minute; 2]| {
        sums.iter_mut().zip(arms).for_each(|(all, more)| all.join(&more.sums()));
        sums
    };
    minutes.iter().map(end).collect()
}

/// Has it all that it ran for? A line of `trial status --json` has the last one alone.
pub(super) fn are_all_in(trial: &Trial) -> bool {
    trial.minutes.len() as u64 == trial.ran.as_secs() / 60
}

/// With those of another trial, each from its own beginning; of one that has ended nothing changes any more.
pub(super) fn joined(all: &[[Sums; 2]], other: &[[Sums; 2]]) -> Vec<[Sums; 2]> {
    let at = |ends: &[[Sums; 2]], minute: usize| {
        ends.get(minute).or(ends.last()).copied().unwrap_or_default()
    };
    let end = |minute| {
        let mut sums = at(all, minute);
        sums.iter_mut().zip(at(other, minute)).for_each(|(all, more)| all.join(&more));
        sums
    };
    (0..all.len().max(other.len())).map(end).collect()
}
