//! The next arrival of every link that has packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::Nanos;
use crate::calendar::{Calendar, Key, key, time};

/// The arrivals of links in order; at equal times the lower link first. Where links are few, a heap of
/// theirs stays in the nearest cache, and asks for less than a calendar does.
#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    Few(BinaryHeap<Reverse<Key>>),
    Many(Box<Calendar>),
}

impl Schedule {
    /// Of few links.
    pub fn new() -> Schedule {
        Schedule::Few(BinaryHeap::new())
    }

    /// The links have become many.
    pub fn become_many(&mut self) {
        let Schedule::Few(arrivals) = self else { return };
        let mut calendar = Calendar::default();
        for Reverse(key) in arrivals.drain() {
            calendar.insert(time(key), key as u32);
        }
        *self = Schedule::Many(Box::new(calendar));
    }

    /// They are so many that one prepares for the next, see [`Calendar::look_ahead`].
    pub fn look_ahead(&mut self) {
        if let Schedule::Many(calendar) = self {
            calendar.look_ahead();
        }
    }

    /// The next arrival and its link.
    #[inline(always)]
    pub fn first(&self) -> Option<(Nanos, u32)> {
        match self {
            Schedule::Few(arrivals) => arrivals.peek().map(|&Reverse(key)| (time(key), key as u32)),
            Schedule::Many(calendar) => calendar.first(),
        }
    }

    /// The link of the arrival after the next `n`, as [`Calendar::ahead`]; none where links are few.
    pub fn ahead(&self, n: usize) -> Option<u32> {
        match self {
            Schedule::Few(_) => None,
            Schedule::Many(calendar) => calendar.ahead(n),
        }
    }

    /// A link without packets has got one that arrives at `time`.
    #[inline(always)]
    pub fn insert(&mut self, time: Nanos, link: u32) {
        match self {
            Schedule::Few(arrivals) => arrivals.push(Reverse(key(time, link))),
            Schedule::Many(calendar) => calendar.insert(time, link),
        }
    }

    /// The first packet of the earliest link has arrived; `next` is that of its next.
    #[inline(always)]
    pub fn replace_first(&mut self, next: Option<Nanos>) {
        match self {
            Schedule::Few(arrivals) => {
                let Some(mut first) = arrivals.peek_mut() else { return };
                match next {
                    Some(next) => first.0 = key(next, first.0 as u32),
                    None => {
                        PeekMut::pop(first);
                    }
                }
            }
            Schedule::Many(calendar) => calendar.replace_first(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links become many while packets are underway: the order stays.
    #[test]
    fn a_schedule_that_spreads_keeps_its_order() {
        let arrivals = |spread: Option<usize>| -> Vec<(Nanos, u32)> {
            let mut schedule = Schedule::new();
            for link in 0..40 {
                schedule.insert(u64::from(link * 7 % 5), link);
            }
            let mut seen = Vec::new();
            while let Some((time, link)) = schedule.first() {
                if spread == Some(seen.len()) {
                    schedule.become_many();
                }
                seen.push((time, link));
                let period = 1 + u64::from(link % 3);
                schedule.replace_first((time < 20).then_some(time + period));
            }
            seen
        };
        let few = arrivals(None);
        assert!(few.is_sorted() && few.len() > 400);
        assert_eq!(arrivals(Some(0)), few);
        assert_eq!(arrivals(Some(100)), few);
    }
}
