//! The windows of `src/sim/windows.rs` in every interleaving of two threads, with few preemptions, and every reordering that
//! their memory order allows. The code itself runs here, over loom's atomics and locks.

#![cfg(loom_models)]

#[path = "../../src/sim/windows.rs"]
#[allow(dead_code)]
mod windows;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};
    pub use std::sync::PoisonError;

    pub fn wait_a_little(_looks: &mut u32) {
        loom::thread::yield_now();
    }
}

use std::collections::BTreeSet;

use loom::sync::Mutex;
use loom::thread;
use windows::{Did, Part, Windows, lock};

const LOOKAHEAD: u64 = 10;

/// At each of its times it has the other part do something a lookahead and `late` later.
struct Node {
    number: usize,
    late: u64,
    due: BTreeSet<u64>,
    done: Vec<u64>,
    sent: [Vec<u64>; 2],
}

impl Part for Node {
    type Crossing = u64;

    fn take(&mut self, crossings: &mut Vec<u64>) {
        for time in crossings.drain(..) {
            assert!(self.done.last().is_none_or(|&last| last <= time), "{time} comes late");
            self.due.insert(time);
        }
    }

    fn run(&mut self, last: u64) -> Did {
        let later = self.due.split_off(&(last + 1));
        let (now, mut next) = (std::mem::replace(&mut self.due, later), u64::MAX);
        for &time in &now {
            let then = time + LOOKAHEAD + self.late;
            self.sent[1 - self.number].push(then);
            next = next.min(then);
            self.done.push(time);
        }
        let (events, next) =
            (now.len() as u64, next.min(self.due.first().copied().unwrap_or(u64::MAX)));
        Did { events, hops: events, next }
    }

    fn sent(&mut self) -> &mut [Vec<u64>] {
        &mut self.sent
    }
}

/// Two parts on two threads do up to `until` what they do on one, and stop where `trial` windows have too few events.
fn check(until: u64, trial: u64, reached: u64, expected: [&[u64]; 2]) {
    let expected = expected.map(<[u64]>::to_vec);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let node = |number: usize| {
            let due = if number == 0 { [0, 3].into() } else { [5].into() };
            Mutex::new(Node {
                number,
                late: number as u64,
                due,
                done: Vec::new(),
                sent: Default::default(),
            })
        };
        // Leaked, as loom's threads have no scopes; some bytes an interleaving.
        let parts: &'static [Mutex<Node>; 2] = Box::leak(Box::new([node(0), node(1)]));
        let windows: &'static Windows<Node> =
            Box::leak(Box::new(Windows::new(parts, LOOKAHEAD, (0, until), trial)));
        let other = thread::spawn(|| windows.work(1));
        windows.begin(2);
        let ran = windows.work(0);
        assert_eq!(ran.reached, reached);
        let other = other.join().expect("no panic");
        assert_eq!(
            (other.reached, other.windows, other.events),
            (reached, ran.windows, ran.events)
        );
        assert_eq!(ran.events, expected.iter().map(Vec::len).sum::<usize>() as u64);
        assert_eq!(ran.hops, ran.events);
        // Never less than half of them on two threads.
        assert!((ran.hops.div_ceil(2)..=ran.hops).contains(&ran.critical), "{ran:?}");
        windows.finish();
        for (part, expected) in parts.iter().zip(&expected) {
            assert_eq!(lock(part).done, *expected);
        }
    });
}

#[test]
fn parts_do_the_same_on_two_threads() {
    check(24, u64::MAX, 24, [&[0, 3, 16, 21, 24], &[5, 10, 13]]);
}

#[test]
fn both_threads_stop_in_the_same_window() {
    // Windows begin at 0 and 10: too little happens in both together.
    check(1000, 2, 19, [&[0, 3, 16], &[5, 10, 13]]);
}
