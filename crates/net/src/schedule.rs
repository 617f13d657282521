//! The order of events across the network: a heap of the links' next arrivals.

use crate::Nanos;

/// Children per node. Four keys of 16 bytes share a cache line, and with half the levels of a
/// binary heap there are half the cache misses in a large network.
const ARITY: usize = 4;

/// Time in the upper bits, link in the lower 32: one comparison orders both.
type Key = u128;

fn key(time: Nanos, link: u32) -> Key {
    Key::from(time) << 32 | Key::from(link)
}

/// The next arrival of every link that has packets, earliest first; at equal times the link with
/// the lower number first.
///
/// A link has one entry however many packets it carries: its first packet's arrival never changes,
/// so the entry changes only when the link becomes busy or its first packet has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// Node i has the children 4i + 1 to 4i + 4, none of them earlier than itself.
    heap: Vec<Key>,
}

impl Schedule {
    /// The earliest arrival and its link.
    pub fn first(&self) -> Option<(Nanos, u32)> {
        self.heap.first().map(|&key| ((key >> 32) as Nanos, key as u32))
    }

    /// A link without packets has got one that arrives at `time`.
    pub fn insert(&mut self, time: Nanos, link: u32) {
        let key = key(time, link);
        let mut node = self.heap.len();
        self.heap.push(key);
        while node > 0 {
            let parent = (node - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[node] = self.heap[parent];
            node = parent;
        }
        self.heap[node] = key;
    }

    /// The first packet of the earliest link has arrived; `next` is that link's next arrival.
    pub fn replace_first(&mut self, next: Option<Nanos>) {
        let Some(&first) = self.heap.first() else { return };
        match next {
            Some(time) => self.sink(key(time, first as u32)),
            None => {
                if let Some(last) = self.heap.pop().filter(|_| !self.heap.is_empty()) {
                    self.sink(last);
                }
            }
        }
    }

    /// Puts a key where the root was and lets it sink to its place.
    fn sink(&mut self, key: Key) {
        let heap = self.heap.as_mut_slice();
        let mut node = 0;
        loop {
            let begin = node * ARITY + 1;
            let mut child = begin;
            if let Some(&[a, b, c, d]) = heap.get(begin..begin + ARITY) {
                // Without branches: which child is earliest cannot be predicted.
                let (left, l) = if b < a { (b, 1) } else { (a, 0) };
                let (right, r) = if d < c { (d, 3) } else { (c, 2) };
                child += if right < left { r } else { l };
            } else if begin < heap.len() {
                for other in begin + 1..heap.len() {
                    if heap[other] < heap[child] {
                        child = other;
                    }
                }
            } else {
                break;
            }
            if key <= heap[child] {
                break;
            }
            heap[node] = heap[child];
            node = child;
        }
        heap[node] = key;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arrivals_come_in_the_order_of_time_and_link(
            links in prop::collection::vec(prop::collection::vec(0_u64..50, 1..20), 1..100),
        ) {
            // Each link has arrivals at non-decreasing times, given as gaps.
            let mut arrivals: Vec<Vec<Nanos>> = links
                .iter()
                .map(|gaps| gaps.iter().scan(0, |t, gap| { *t += gap; Some(*t) }).collect())
                .collect();
            let mut expected: Vec<(Nanos, u32)> = (0..)
                .zip(&arrivals)
                .flat_map(|(link, times)| times.iter().map(move |&time| (time, link)))
                .collect();
            expected.sort_unstable();

            let mut schedule = Schedule::default();
            for (link, times) in (0..).zip(&mut arrivals) {
                schedule.insert(times.remove(0), link);
            }
            let mut seen = Vec::new();
            while let Some((time, link)) = schedule.first() {
                seen.push((time, link));
                let times = &mut arrivals[link as usize];
                schedule.replace_first((!times.is_empty()).then(|| times.remove(0)));
            }
            prop_assert_eq!(seen, expected);
        }
    }
}
