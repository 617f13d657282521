//! The order of events across the network: a heap of the links' next arrivals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::Nanos;

/// The next arrival of every link that has packets, earliest first; at equal times the link with
/// the lower number first.
///
/// A link has one entry however many packets it carries: its first packet's arrival never changes,
/// so the entry changes only when the link becomes busy or its first packet has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Schedule {
    /// The earliest arrival and its link.
    pub fn first(&self) -> Option<(Nanos, u32)> {
        self.heap.peek().map(|entry| entry.0)
    }

    /// A link without packets has got one that arrives at `time`.
    pub fn insert(&mut self, time: Nanos, link: u32) {
        self.heap.push(Reverse((time, link)));
    }

    /// The first packet of the earliest link has arrived; `next` is that link's next arrival.
    pub fn replace_first(&mut self, next: Option<Nanos>) {
        if let Some(mut first) = self.heap.peek_mut() {
            match next {
                Some(time) => first.0.0 = time,
                None => {
                    PeekMut::pop(first);
                }
            }
        }
    }
}
