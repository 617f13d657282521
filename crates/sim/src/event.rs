//! Timers: a heap of the times at which somebody wants attention.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_net::Nanos;

use crate::tcp::NEVER;

/// Who wants attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The timers of a path of a connection.
    Subflow(u32, u8),
    /// The application of a connection.
    Source(u32),
    /// The application of a UDP flow.
    Udp(u32),
}

/// Times in order; those at the same time in the order of their targets.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, Target)>>,
}

impl Timers {
    /// Wakes `target` at `time`, unless that is never.
    pub fn set(&mut self, time: Nanos, target: Target) {
        if time != NEVER {
            self.heap.push(Reverse((time, target)));
        }
    }

    /// The first time, [`NEVER`] if there is none.
    pub fn first(&self) -> Nanos {
        self.heap.peek().map_or(NEVER, |Reverse((time, _))| *time)
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<(Nanos, Target)> {
        self.heap.pop().map(|Reverse(first)| first)
    }
}
