//! What threads share, from the standard library; a test of [`super::windows`] has the model checker's in its place.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many looks before the core is left to others.
const LOOKS: u32 = 200;

/// Waits for another thread, after so many `looks` in vain.
pub(super) fn wait_a_little(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
}
