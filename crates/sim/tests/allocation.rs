//! A run in its steady state allocates nothing: packets live in a pool, queues keep their room.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::*;
use narrows_sim::Sim;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: all is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Four TCP and two MPTCP connections share 50 Mbit/s, with losses all the time.
#[test]
fn a_steady_run_does_not_allocate() {
    let mut sim = Sim::new(1);
    let net = Dumbbell::new(&mut sim, 8, 50 * MBIT, 20 * MS, 83, MS);
    for senders in [vec![0], vec![1], vec![2], vec![3], vec![4, 5], vec![6, 7]] {
        let paths = senders.into_iter().map(|n| net.path(&mut sim, n)).collect();
        sim.add_connection(greedy(paths));
    }
    sim.run_until(60 * S);
    sim.reset_link_counters();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    sim.run_until(120 * S);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let packets = sim.network().counters(net.bottleneck).sent;
    println!("{allocations} allocations for {packets} packets");
    // A queue may once be longer than ever before, and reset histograms fill again.
    assert!(packets > 200_000 && allocations < 100, "{allocations} for {packets} packets");
}
