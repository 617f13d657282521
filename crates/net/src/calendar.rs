//! The order of events: a calendar of the links' next arrivals, or of timers.
//!
//! Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation event set
//! problem", CACM 1988. Time is cut into buckets of a power of two of nanoseconds, so that one has
//! some [`FILL`] arrivals. Those of the present bucket are sorted; those of later ones wait in
//! lists, those beyond the last bucket in one more.

use crate::Nanos;

/// Time in the upper bits, link in the lower 32: one comparison orders both.
pub(crate) type Key = u128;

pub(crate) fn key(time: Nanos, link: u32) -> Key {
    Key::from(time) << 32 | Key::from(link)
}

pub(crate) fn time(key: Key) -> Nanos {
    (key >> 32) as Nanos
}

/// Buckets: 64 words of 64 bits say which have arrivals, and one word which of the words.
const BUCKETS: u64 = 64 * 64;

/// How many arrivals a bucket should have: few enough to sort.
const FILL: u64 = 4;

/// How many of the next arrivals should be known if one wants to prepare for them.
const AHEAD: usize = 17;

/// More than this many sorted arrivals are too many to keep sorted.
const CROWDED: usize = 256;

/// Arrivals between two looks at the width of the buckets.
const REVIEW: u32 = 4096;

/// End of a list.
const NIL: u32 = u32::MAX;

/// An arrival that waits for its bucket.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: Nanos,
    link: u32,
    /// The next in the list.
    next: u32,
}

/// Times, each with a number, earliest first; at equal times the lower number first. In a network:
/// the next arrival of every link that has packets.
///
/// A link has one entry however many packets it carries: its first packet's arrival rarely changes,
/// so the entry changes when the link becomes busy or its first packet has arrived.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// All arrivals up to the end of the present bucket, in order, behind `passed` that were. As a
    /// rule `ahead` or more, if there are so many.
    near: Vec<Key>,
    passed: usize,
    /// At least 1; more only where [`Calendar::ahead`] is asked.
    ahead: usize,
    /// log2 of the width of a bucket, ns.
    shift: u32,
    /// Number of the present bucket.
    present: u64,
    /// First of those that wait for each of the next buckets, by its number modulo [`BUCKETS`].
    first: Vec<u32>,
    /// Which of them have one, and which of these words are not 0.
    occupied: [u64; 64],
    words: u64,
    /// First of those beyond the buckets, and the bucket of their earliest.
    beyond: u32,
    beyond_from: u64,
    /// Those in lists, and the first of the places that are free.
    waiting: Vec<Waiting>,
    free: u32,
    /// Arrivals until the next review, and the time of the last one.
    review: u32,
    reviewed: Nanos,
}

impl Default for Calendar {
    fn default() -> Self {
        Calendar {
            near: Vec::new(),
            passed: 0,
            ahead: 1,
            shift: 10,
            present: 0,
            first: vec![NIL; BUCKETS as usize],
            occupied: [0; 64],
            words: 0,
            beyond: NIL,
            beyond_from: u64::MAX,
            waiting: Vec::new(),
            free: NIL,
            review: REVIEW,
            reviewed: 0,
        }
    }
}

impl Calendar {
    /// The earliest time and its number: the next arrival and its link.
    pub fn first(&self) -> Option<(Nanos, u32)> {
        self.near.get(self.passed).map(|&key| (time(key), key as u32))
    }

    /// From now on the next [`AHEAD`] are kept in order.
    pub(crate) fn look_ahead(&mut self) {
        self.ahead = AHEAD;
    }

    /// The link of the arrival after the next `n`, if there are so many; `n` below [`AHEAD`], and
    /// only after [`Calendar::look_ahead`].
    pub(crate) fn ahead(&self, n: usize) -> Option<u32> {
        self.near.get(self.passed + n).map(|&key| key as u32)
    }

    /// One more: a link without packets has got one that arrives at `time`.
    pub fn insert(&mut self, time: Nanos, link: u32) {
        if self.left() == 0 {
            // Nothing else is there: the calendar begins anew.
            self.near.clear();
            self.passed = 0;
            self.present = time >> self.shift;
        }
        self.put(time, link);
    }

    /// The earliest has passed; `next` is its number's next time. The first packet of the earliest
    /// link has arrived, and that link has another.
    pub fn replace_first(&mut self, next: Option<Nanos>) {
        let Some(&first) = self.near.get(self.passed) else { return };
        self.passed += 1;
        if let Some(next) = next {
            self.put(next, first as u32);
        }
        self.review -= 1;
        if self.review == 0 {
            self.review(time(first));
        }
        if self.left() < self.ahead {
            self.turn();
        }
    }

    /// How many are sorted and have not passed.
    fn left(&self) -> usize {
        self.near.len() - self.passed
    }

    fn put(&mut self, time: Nanos, link: u32) {
        if time >> self.shift > self.present {
            self.wait(time, link);
            return;
        }
        // From the end: few are later, and those move back.
        let key = key(time, link);
        let mut place = self.near.len();
        self.near.push(key);
        while place > self.passed && self.near[place - 1] > key {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = key;
        if self.left() > CROWDED {
            self.spread();
        }
    }

    /// Puts an arrival into the list of its later bucket.
    fn wait(&mut self, time: Nanos, link: u32) {
        let bucket = time >> self.shift;
        let first = if bucket - self.present < BUCKETS {
            let slot = bucket % BUCKETS;
            self.occupied[slot as usize / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
            &mut self.first[slot as usize]
        } else {
            self.beyond_from = self.beyond_from.min(bucket);
            &mut self.beyond
        };
        let waiting = Waiting { time, link, next: *first };
        *first = self.free;
        if let Some(place) = self.waiting.get_mut(self.free as usize) {
            self.free = std::mem::replace(place, waiting).next;
        } else {
            *first = self.waiting.len() as u32;
            self.waiting.push(waiting);
        }
    }

    /// Takes the arrival at `place` out of its list.
    fn free(&mut self, place: u32) -> Waiting {
        let waiting = self.waiting[place as usize];
        self.waiting[place as usize].next = std::mem::replace(&mut self.free, place);
        waiting
    }

    /// Few are left: goes on to the next bucket that is not empty.
    fn turn(&mut self) {
        if self.words == 0 && self.beyond == NIL {
            return;
        }
        let next =
            |s: &Calendar| s.present + (s.next_slot() + BUCKETS - s.present % BUCKETS) % BUCKETS;
        if self.words == 0 || next(self) >= self.beyond_from {
            // Not before it must be: those that stay beyond are then seen once per turn of all.
            self.present = self.beyond_from - 1;
            self.reconsider();
        }
        self.present = next(self);
        if self.passed >= CROWDED || self.left() == 0 {
            self.near.drain(..self.passed);
            self.passed = 0;
        }
        let known = self.near.len();
        self.take(self.present % BUCKETS);
        self.near[known..].sort_unstable();
    }

    /// Puts what was beyond the buckets into them as far as they reach now.
    #[cold]
    fn reconsider(&mut self) {
        let mut place = std::mem::replace(&mut self.beyond, NIL);
        self.beyond_from = u64::MAX;
        while place != NIL {
            let Waiting { time, link, next } = self.free(place);
            self.wait(time, link);
            place = next;
        }
    }

    /// The next occupied slot after the present one, around the end.
    fn next_slot(&self) -> u64 {
        let after = (self.present + 1) % BUCKETS;
        let (word, bit) = (after / 64, after % 64);
        let rest = self.occupied[word as usize] >> bit;
        if rest != 0 {
            return after + u64::from(rest.trailing_zeros());
        }
        // The words behind this one, around to this one's lower bits.
        let turned = self.words.rotate_right((word as u32 + 1) % 64);
        let word = (word + 1 + u64::from(turned.trailing_zeros())) % 64;
        word * 64 + u64::from(self.occupied[word as usize].trailing_zeros())
    }

    /// Moves those of a slot to `near`, in no order.
    fn take(&mut self, slot: u64) {
        let first = std::mem::replace(&mut self.first[slot as usize], NIL);
        self.take_list(first);
        let word = &mut self.occupied[slot as usize / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.words &= !(1 << (slot / 64));
        }
    }

    fn take_list(&mut self, mut place: u32) {
        while place != NIL {
            let Waiting { time, link, next } = self.free(place);
            self.near.push(key(time, link));
            place = next;
        }
    }

    /// Adapts the width of the buckets to the arrivals of late.
    #[cold]
    fn review(&mut self, now: Nanos) {
        let shift = width(now - self.reviewed, REVIEW.into());
        (self.review, self.reviewed) = (REVIEW, now);
        if shift.abs_diff(self.shift) > 1 {
            self.rebuild(shift);
        }
    }

    /// Too many are sorted: makes the buckets narrower if that helps.
    #[cold]
    fn spread(&mut self) {
        let near = &self.near[self.passed..];
        let (Some(&first), Some(&last)) = (near.first(), near.last()) else { return };
        let shift = width(time(last) - time(first), near.len() as u64);
        if shift < self.shift {
            self.rebuild(shift);
        }
    }

    /// Begins anew with other buckets.
    fn rebuild(&mut self, shift: u32) {
        self.near.drain(..self.passed);
        self.passed = 0;
        let sorted = !self.near.is_empty();
        while self.words != 0 {
            self.take(self.next_slot());
        }
        let beyond = std::mem::replace(&mut self.beyond, NIL);
        self.take_list(beyond);
        self.beyond_from = u64::MAX;
        self.shift = shift;
        let all = std::mem::take(&mut self.near);
        let first = if sorted { all.first() } else { all.iter().min() };
        let Some(&first) = first else { return };
        self.present = time(first) >> shift;
        for key in all {
            if time(key) >> shift > self.present {
                self.wait(time(key), key as u32);
            } else {
                self.near.push(key);
            }
        }
        self.near.sort_unstable();
    }
}

/// log2 of the width of buckets that have [`FILL`] arrivals if there are `arrivals` in a `span`.
fn width(span: Nanos, arrivals: u64) -> u32 {
    (span.saturating_mul(FILL) / arrivals).max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs each link's arrivals, at non-decreasing times, through a schedule.
    fn check(mut arrivals: Vec<Vec<Nanos>>, ahead: bool) {
        let mut expected: Vec<(Nanos, u32)> = (0..)
            .zip(&arrivals)
            .flat_map(|(link, times)| times.iter().map(move |&time| (time, link)))
            .collect();
        expected.sort_unstable();

        let mut schedule = Calendar::default();
        if ahead {
            schedule.look_ahead();
        }
        for (link, times) in (0..).zip(&mut arrivals) {
            schedule.insert(times.remove(0), link);
        }
        let mut seen = Vec::new();
        while let Some((time, link)) = schedule.first() {
            seen.push((time, link));
            let times = &mut arrivals[link as usize];
            schedule.replace_first((!times.is_empty()).then(|| times.remove(0)));
        }
        assert!(seen == expected);
    }

    /// One entry that comes and goes, as a lone timer does, leaves nothing behind.
    #[test]
    fn what_has_passed_takes_no_memory() {
        let mut calendar = Calendar::default();
        for time in 0..100_000 {
            calendar.insert(time * 1_000_000, 0);
            calendar.replace_first(None);
        }
        assert!(calendar.near.len() <= 1);
    }

    proptest! {
        /// Gaps of all sizes: what is now may be nanoseconds apart and what comes years away.
        #[test]
        fn arrivals_come_in_the_order_of_time_and_link(
            links in prop::collection::vec(
                (0_u32..56, prop::collection::vec(any::<u64>(), 1..60)), 1..100),
            same in any::<bool>(),
            ahead in any::<bool>(),
        ) {
            let scale = links[0].0;
            let times = |(own, gaps): (u32, Vec<u64>)| {
                let bits = if same { scale } else { own };
                let sum = |t: &mut u64, gap: u64| { *t += gap >> (63 - bits); Some(*t) };
                gaps.into_iter().scan(0, sum).collect()
            };
            check(links.into_iter().map(times).collect(), ahead);
        }
    }

    /// A thousand links begin at once, are quiet for a second, and then have arrivals at every
    /// pace: buckets that fit one time are too wide and too narrow for another.
    #[test]
    fn the_calendar_follows_the_pace() {
        let times = |link: u64| -> Vec<Nanos> {
            let begin = (0..20).map(|n| n * (1 + link % 3));
            let fast = (1..20).map(|n| 1_000_000_000 + n * (7 + link % 5));
            let slow = (1..20).map(|n| 2_000_000_000 + n * (link % 11) * 1_000_000);
            begin.chain(fast).chain(slow).collect()
        };
        check((0..1000).map(times).collect(), false);
        check((0..1000).map(times).collect(), true);
    }
}
