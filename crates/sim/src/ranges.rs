//! Byte ranges received out of order.

use std::collections::VecDeque;

use narrows_net::prefetch;

/// Disjoint ranges `[start, end)` in order, none touching the next.
#[derive(Debug, Default)]
pub(crate) struct Ranges(VecDeque<(u64, u64)>);

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes will arrive: begins to load the first range and the last.
    pub fn prefetch(&self) {
        if let (Some(first), Some(last)) = (self.0.front(), self.0.back()) {
            prefetch(first, size_of_val(first));
            prefetch(last, size_of_val(last));
        }
    }

    /// Adds `[start, end)`. Returns the range it is part of now, and how many bytes were new.
    pub fn insert(&mut self, start: u64, end: u64) -> ((u64, u64), u64) {
        // The common case: it continues the last range or opens one behind it.
        match self.0.back_mut() {
            Some(last) if last.1 == start => {
                last.1 = end;
                return (*last, end - start);
            }
            Some(last) if last.1 > start => {}
            _ => {
                self.0.push_back((start, end));
                return ((start, end), end - start);
            }
        }
        let first = self.0.partition_point(|r| r.1 < start);
        let mut merged = (start, end);
        let mut known = 0;
        let mut next = first;
        while let Some(&(s, e)) = self.0.get(next).filter(|r| r.0 <= end) {
            known += e.min(end).saturating_sub(s.max(start));
            merged = (merged.0.min(s), merged.1.max(e));
            next += 1;
        }
        if next == first {
            self.0.insert(first, merged);
        } else {
            self.0[first] = merged;
            self.0.drain(first + 1..next);
        }
        (merged, end - start - known)
    }

    /// Removes the range that begins at or before `next`, if any, and returns the first byte that
    /// is missing then.
    pub fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        while let Some(&(start, end)) = self.0.front() {
            if start > next {
                break;
            }
            next = next.max(end);
            self.0.pop_front();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a set of bytes: the same bytes are new, the same run is reported.
        #[test]
        fn ranges_are_a_set_of_bytes(inserts in prop::collection::vec((0u64..60, 1u64..8), 1..60)) {
            let mut ranges = Ranges::default();
            let mut bytes = [false; 80];
            for (start, len) in inserts {
                let end = start + len;
                let fresh = (start..end).filter(|&b| !bytes[b as usize]).count() as u64;
                bytes[start as usize..end as usize].fill(true);
                let ((s, e), new) = ranges.insert(start, end);
                prop_assert_eq!(new, fresh);
                prop_assert!(s <= start && e >= end);
                prop_assert!((s..e).all(|b| bytes[b as usize]));
                prop_assert!(!bytes[e as usize] && (s == 0 || !bytes[s as usize - 1]));
            }
            let missing = bytes.iter().position(|b| !b).unwrap() as u64;
            prop_assert_eq!(ranges.advance(0), missing);
        }
    }
}
