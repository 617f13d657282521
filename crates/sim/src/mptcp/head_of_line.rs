//! Head-of-line delay: how long data waits at the receiver for earlier data.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_net::{Histogram, Nanos, prefetch};

use crate::stats::HeadOfLine;

const MICROSECOND: Nanos = 1_000;

/// The wait of each segment from its arrival until the connection has all before it.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// First byte and arrival of each segment that waits, the first byte first.
    segments: BinaryHeap<Reverse<(u64, Nanos)>>,
    /// Segments that did not wait.
    at_once: u64,
    /// Waits of the others, us.
    waits: Histogram,
}

impl Waiting {
    /// Data will arrive: begins to load the first that waits and where the next would be put.
    pub fn prefetch(&self) {
        let segments = self.segments.as_slice();
        if let (Some(first), Some(last)) = (segments.first(), segments.last()) {
            prefetch(first, size_of_val(first));
            prefetch(last, size_of_val(last));
        }
    }

    /// A segment is out of order.
    pub fn hold(&mut self, dsn: u64, arrived: Nanos) {
        self.segments.push(Reverse((dsn, arrived)));
    }

    /// A segment is in order.
    pub fn pass(&mut self, arrived: Nanos, now: Nanos) {
        if arrived == now {
            self.at_once += 1;
        } else {
            self.waits.record((now - arrived) / MICROSECOND);
        }
    }

    /// All below `next` is in order now.
    pub fn release(&mut self, next: u64, now: Nanos) {
        while let Some(&Reverse((dsn, arrived))) = self.segments.peek() {
            if dsn >= next {
                break;
            }
            self.segments.pop();
            self.pass(arrived, now);
        }
    }

    /// What was seen so far.
    pub fn stats(&self) -> HeadOfLine {
        let waited = self.waits.count();
        let packets = self.at_once + waited;
        let sum = self.waits.mean() * waited * MICROSECOND;
        // The 95th percentile of all is a lower one of those that waited.
        let above = packets - (packets * 95).div_ceil(100);
        let p95 = match waited.checked_sub(above) {
            None | Some(0) => 0,
            Some(rank) => self.waits.quantile((rank as f64 - 0.5) / waited as f64) * MICROSECOND,
        };
        let mean = sum.checked_div(packets).unwrap_or(0);
        HeadOfLine { packets, waited, mean, p95, max: self.waits.max() * MICROSECOND }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 segments 90 pass at once; the others wait 1 to 10 ms.
    #[test]
    fn mean_and_quantile_are_of_all_segments() {
        let mut waiting = Waiting::default();
        for _ in 0..90 {
            waiting.pass(5, 5);
        }
        for n in 1..=10 {
            waiting.hold(n * 1000, (10 - n) * 1_000_000);
        }
        waiting.release(11_000, 10_000_000);
        let seen = waiting.stats();
        assert_eq!((seen.packets, seen.waited), (100, 10));
        assert_eq!((seen.mean, seen.max), (550_000, 10_000_000));
        assert!((5_000_000..5_200_000).contains(&seen.p95), "{seen:?}");
    }
}
