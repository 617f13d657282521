//! Which failure of several runs is told: the runs decide it, whatever threads they were run by.
//!
//! That the user wants no more, or that a file cannot be written, ends all. Of failures of runs, what a law did is told
//! before any other, and of two of a kind that of the run which stands first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_lab::Error;

/// Ranks of failures, the one that is told first.
const ENDS_ALL: u8 = 0;
const BY_LAW: u8 = 1;
const OTHER: u8 = 2;

fn rank(error: &Error) -> u8 {
    match error {
        Error::Interrupted | Error::Io { .. } => ENDS_ALL,
        Error::Law { .. } => BY_LAW,
        _ => OTHER,
    }
}

/// Failures of runs that stand in an order.
#[derive(Debug, Default)]
pub struct Failures(Mutex<Option<(usize, Error)>>);

impl Failures {
    /// The run at a place of the order failed.
    pub fn add(&self, at: usize, error: Error) {
        let mut told = self.told();
        if told.as_ref().is_none_or(|(other, of)| (rank(&error), at) < (rank(of), *other)) {
            *told = Some((at, error));
        }
    }

    /// Is there nothing that the run at a place could change in what is told? A law may end it, or none can.
    pub fn are_settled(&self, at: usize, by_law: bool) -> bool {
        let most = if by_law { BY_LAW } else { OTHER };
        self.told().as_ref().is_some_and(|(other, of)| (rank(of), *other) < (most, at))
    }

    /// All runs have ended.
    ///
    /// # Errors
    /// The failure that is told, if there is one.
    pub fn end(self) -> Result<(), Error> {
        let told = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        told.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn told(&self) -> MutexGuard<'_, Option<(usize, Error)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(seed: u64) -> Error {
        let (place, reason, scenario) = ("mine.h".into(), "loops".into(), "bcp133".into());
        Error::Law { place, reason, scenario, seed }
    }

    fn fault(seed: u64) -> Error {
        let (scenario, cc, message) = ("bcp133".into(), "mine".into(), "killed".into());
        Error::Fault { scenario, cc, seed, message }
    }

    /// What is told of failures, each with its place, in whatever order they come.
    fn told(failed: impl Fn() -> [(usize, Error); 3]) -> String {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let each = orders.map(|order| {
            let (failures, mut failed) = (Failures::default(), failed().map(Some));
            for (at, error) in order.into_iter().filter_map(|of: usize| failed[of].take()) {
                failures.add(at, error);
            }
            failures.end().unwrap_err().to_string()
        });
        assert!(each.iter().all(|one| *one == each[0]), "{each:?}");
        each[0].clone()
    }

    #[test]
    fn what_the_law_did_is_told_then_the_first_in_whatever_order_they_come() {
        let host = || Error::input("kernel", "no namespace");
        assert_eq!(told(|| [(3, host()), (5, law(5)), (7, law(7))]), law(5).to_string());
        assert_eq!(told(|| [(3, fault(3)), (5, host()), (9, law(9))]), law(9).to_string());
        assert_eq!(told(|| [(3, fault(3)), (5, fault(5)), (7, host())]), fault(3).to_string());
        assert_eq!(told(|| [(3, host()), (5, fault(5)), (7, fault(7))]), host().to_string());
        let stopped = Error::Interrupted.to_string();
        assert_eq!(told(|| [(3, law(3)), (5, fault(5)), (7, Error::Interrupted)]), stopped);
        assert!(Failures::default().end().is_ok());
    }

    #[test]
    fn what_could_be_told_before_a_failure_is_run() {
        let settled = |failed: Error| {
            let failures = Failures::default();
            failures.add(5, failed);
            [(3, true), (3, false), (7, true), (7, false)]
                .map(|(at, by_law)| failures.are_settled(at, by_law))
        };
        assert_eq!(settled(law(1)), [false, true, true, true]);
        assert_eq!(settled(fault(1)), [false, false, false, true]);
        assert_eq!(settled(Error::Interrupted), [true; 4]);
    }
}
