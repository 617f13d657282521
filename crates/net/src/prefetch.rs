//! Asking for memory before it is needed. A large network does not fit into the processor's near
//! caches, and the next arrivals are known some time ahead.

/// Begins to load the cache line at `value`. A hint: without it everything is the same, but slower.
#[inline(always)]
pub(crate) fn prefetch<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that could be seen, and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(value.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
