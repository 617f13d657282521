//! The protocol of `c/shared.h` in every interleaving and every reordering that its memory order
//! allows. The functions here take the same steps as the C of the same name; change both.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p narrows-laws --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
use loom::thread;

const TRIES: usize = 8;
const PACKETS: u32 = 0xffff;

/// A donor's line.
struct Line {
    cwnd: AtomicU32,
    debit: AtomicU32,
}

impl Line {
    fn new(cwnd: u32) -> Arc<Line> {
        Arc::new(Line { cwnd: AtomicU32::new(cwnd), debit: AtomicU32::new(0) })
    }

    /// `nr_debit_take`
    fn take(&self, want: u32, keep: u32) -> u32 {
        for _ in 0..TRIES {
            let seen = self.debit.load(Relaxed);
            let taken = seen & PACKETS;
            fence(Acquire);
            let cwnd = self.cwnd.load(Relaxed);
            if cwnd <= taken + keep {
                return 0;
            }
            let want = want.min(cwnd - taken - keep).min(PACKETS - taken);
            if self.debit.compare_exchange(seen, seen + want, SeqCst, SeqCst).is_ok() {
                return want;
            }
        }
        0
    }

    /// `nr_debit_apply`
    fn apply(&self, cwnd: u32) -> u32 {
        let mut seen = self.debit.load(Relaxed);
        let taken = seen & PACKETS;
        if taken == 0 {
            return cwnd;
        }
        let left = if cwnd > taken { cwnd - taken } else { 1 };
        self.cwnd.store(left, Relaxed);
        for _ in 0..TRIES {
            match self.debit.compare_exchange(seen, seen - taken + PACKETS + 1, SeqCst, SeqCst) {
                Ok(_) => return left,
                Err(now) => seen = now,
            }
        }
        self.cwnd.store(cwnd, Relaxed);
        cwnd
    }
}

#[test]
fn nothing_is_taken_twice_and_nothing_is_lost() {
    loom::model(|| {
        // Only one of two takers may have the packets above 3, whatever the donor does meanwhile.
        let line = Line::new(8);
        let takers: Vec<_> = [5, 5]
            .into_iter()
            .map(|want| {
                let line = line.clone();
                thread::spawn(move || line.take(want, 3))
            })
            .collect();
        let mut cwnd = 8;
        for _ in 0..2 {
            cwnd = line.apply(cwnd);
        }
        let taken: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        cwnd = line.apply(cwnd);
        assert_eq!(cwnd + taken, 8);
        assert!(cwnd >= 3);
    });
}

#[test]
fn a_settlement_between_a_takers_read_and_its_swap_does_not_deceive_it() {
    // ABA: the second taker puts the same amount back that the first one saw before the settlement.
    // And the window is never seen before a settlement with the debit after it.
    loom::model(|| {
        let line = Line::new(13);
        assert_eq!(line.take(5, 3), 5);
        let slow = {
            let line = line.clone();
            thread::spawn(move || line.take(10, 3))
        };
        let cwnd = line.apply(13);
        let fast = line.take(5, 3);
        let slow = slow.join().unwrap();
        let cwnd = line.apply(cwnd);
        assert_eq!(cwnd + slow + fast + 5, 13);
        assert!(cwnd >= 3);
    });
}

/// `nr_tick_claim`
fn claim(tick: &AtomicU64, number: u64) -> bool {
    for _ in 0..TRIES {
        let last = tick.load(Relaxed);
        if number <= last {
            return false;
        }
        if tick.compare_exchange(last, number, SeqCst, SeqCst).is_ok() {
            return true;
        }
    }
    false
}

#[test]
fn an_interval_has_one_owner_also_while_an_older_one_is_claimed() {
    loom::model(|| {
        let tick = Arc::new(AtomicU64::new(0));
        let claims: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                let tick = tick.clone();
                thread::spawn(move || u32::from(claim(&tick, number)))
            })
            .collect();
        let second = u32::from(claim(&tick, 2));
        let claims: Vec<u32> = claims.into_iter().map(|claim| claim.join().unwrap()).collect();
        assert!(claims[0] <= 1);
        assert_eq!(claims[1] + second, 1);
    });
}

/// `nr_masks_store`
fn store(masks: &AtomicU64, seen: u64, new: u64) -> bool {
    masks.compare_exchange(seen, new, SeqCst, SeqCst).is_ok()
}

/// `nr_masks_join`, of two paths with masks of two bits: row 0 in bits 0 and 1, row 1 in 2 and 3.
fn join(masks: &AtomicU64, row: u64) {
    for _ in 0..TRIES {
        let seen = masks.load(Relaxed);
        // Path 1 joins: its row, and its column in row 0.
        if store(masks, seen, (seen & 0b0001) | row << 2 | (row & 1) << 1) {
            return;
        }
    }
    panic!("a join gave up against one decision");
}

#[test]
fn a_decision_does_not_undo_a_join() {
    const COUPLED: u64 = 0b1111;
    const APART: u64 = 0b1001;
    loom::model(|| {
        let masks = Arc::new(AtomicU64::new(APART));
        let decision = {
            let masks = masks.clone();
            thread::spawn(move || {
                let seen = masks.load(Relaxed);
                // It finds all paths that it knows of apart.
                (seen, store(&masks, seen, APART))
            })
        };
        join(&masks, 0b11);
        let (seen, stored) = decision.join().unwrap();
        // A decision on the masks from before the join comes before it, or not at all.
        let expected = if stored && seen == COUPLED { APART } else { COUPLED };
        assert_eq!(masks.load(Relaxed), expected);
    });
}

/// A record of two words (`nr_record_write`, `nr_record_read`).
struct Record {
    stamp: AtomicU32,
    word: [AtomicU32; 2],
}

impl Record {
    fn write(&self, stamp: u32, words: [u32; 2]) {
        self.stamp.store(0, Relaxed);
        fence(Release);
        for (word, value) in self.word.iter().zip(words) {
            word.store(value, Relaxed);
        }
        fence(Release);
        self.stamp.store(stamp, Relaxed);
    }

    fn read(&self, stamp: u32) -> Option<[u32; 2]> {
        if self.stamp.load(Relaxed) != stamp {
            return None;
        }
        fence(Acquire);
        let words = [self.word[0].load(Relaxed), self.word[1].load(Relaxed)];
        fence(Acquire);
        (self.stamp.load(Relaxed) == stamp).then_some(words)
    }
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    // A path overwrites interval 1 by interval 3 while a late claimer still reads.
    loom::model(|| {
        let record = Arc::new(Record {
            stamp: AtomicU32::new(0),
            word: [AtomicU32::new(0), AtomicU32::new(0)],
        });
        let path = {
            let record = record.clone();
            thread::spawn(move || {
                record.write(1, [11, 12]);
                record.write(3, [31, 32]);
            })
        };
        assert!(record.read(1).is_none_or(|words| words == [11, 12]));
        assert!(record.read(3).is_none_or(|words| words == [31, 32]));
        path.join().unwrap();
        assert_eq!(record.read(3), Some([31, 32]));
    });
}

/// `nr_decide` and what stands around it: a claimer makes one observation, and stores masks from
/// what the paths' `since` lets count. `masks` are as above.
fn decide(tick: &AtomicU64, ring: &AtomicU64, masks: &AtomicU64, since: &AtomicU32, number: u64) {
    if !claim(tick, number) {
        return;
    }
    ring.store(number << 32 | 0b01, Relaxed); // the two paths are apart
    let seen = masks.load(Relaxed);
    fence(Acquire);
    let known = number > u64::from(since.load(Relaxed));
    store(masks, seen, if known { 0b1001 } else { 0b1111 });
}

#[test]
fn a_path_that_has_just_come_is_not_decided_on_by_what_was_seen_before_it() {
    loom::model(|| {
        let (tick, ring) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (masks, since) = (Arc::new(AtomicU64::new(0b1001)), Arc::new(AtomicU32::new(0)));
        let claimers: Vec<_> = (0..2)
            .map(|_| {
                let (tick, ring) = (tick.clone(), ring.clone());
                let (masks, since) = (masks.clone(), since.clone());
                thread::spawn(move || decide(&tick, &ring, &masks, &since, 4))
            })
            .collect();
        // Path 1 comes in interval 5 (`nr_listen`, then `nr_masks_join`).
        since.store(5, Relaxed);
        join(&masks, 0b11);
        claimers.into_iter().for_each(|claimer| claimer.join().unwrap());
        assert_eq!(masks.load(Relaxed), 0b1111);
        assert_eq!(ring.load(Relaxed) >> 32, 4, "one observation");
    });
}
