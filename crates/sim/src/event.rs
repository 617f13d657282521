//! Timers: the times at which somebody wants attention.

use narrows_laws::MAX_PATHS;
use narrows_net::{Calendar, Nanos};

use crate::tcp::NEVER;

/// Who wants attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The timers of a path of a connection.
    Subflow(u32, u8),
    /// The application of a connection.
    Source(u32),
    /// The application of a UDP flow.
    Udp(u32),
    /// The receiver of a UDP flow, for its feedback.
    Report(u32),
}

/// Kinds of targets, in the upper bits of their numbers.
const SOURCE: u32 = 1 << 30;
const UDP: u32 = 2 << 30;
const REPORT: u32 = 3 << 30;
/// Bits of the number of a path.
const PATH_BITS: u32 = MAX_PATHS.trailing_zeros();

impl Target {
    /// Those at the same time come in the order of their numbers.
    fn number(self) -> u32 {
        match self {
            Target::Subflow(flow, path) => flow << PATH_BITS | u32::from(path),
            Target::Source(flow) => SOURCE | flow,
            Target::Udp(flow) => UDP | flow,
            Target::Report(flow) => REPORT | flow,
        }
    }

    fn of(number: u32) -> Target {
        match number & REPORT {
            REPORT => Target::Report(number & !REPORT),
            SOURCE => Target::Source(number & !SOURCE),
            UDP => Target::Udp(number & !UDP),
            _ => Target::Subflow(number >> PATH_BITS, (number & (MAX_PATHS as u32 - 1)) as u8),
        }
    }
}

/// Times in order; those at the same time in the order of their targets.
#[derive(Debug, Default)]
pub(crate) struct Timers(Calendar);

impl Timers {
    /// Wakes `target` at `time`, unless that is never.
    pub fn set(&mut self, time: Nanos, target: Target) {
        if time != NEVER {
            self.0.insert(time, target.number());
        }
    }

    /// The first time, [`NEVER`] if there is none.
    pub fn first(&self) -> Nanos {
        self.0.first().map_or(NEVER, |(time, _)| time)
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<(Nanos, Target)> {
        let (time, number) = self.0.first()?;
        self.0.replace_first(None);
        Some((time, Target::of(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_in_order_and_at_one_time_subflows_first() {
        let targets = [
            (7, Target::Subflow(0, 7)),
            (7, Target::Subflow(1, 0)),
            (7, Target::Subflow((1 << 27) - 1, 7)),
            (7, Target::Source(0)),
            (7, Target::Source((1 << 30) - 1)),
            (7, Target::Udp(3)),
            (7, Target::Report(2)),
            (NEVER - 1, Target::Subflow(0, 0)),
        ];
        let mut timers = Timers::default();
        targets.iter().rev().for_each(|&(time, target)| timers.set(time, target));
        timers.set(NEVER, Target::Udp(0));
        assert_eq!(timers.first(), 7);
        let popped: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
        assert_eq!(popped, targets);
        assert_eq!(timers.first(), NEVER);
    }
}
