//! Asking for memory before it is needed. A large network does not fit into the processor's near
//! caches, and the next arrivals are known some time ahead.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Begins to load the first `bytes` bytes of a value. A hint: without it everything is the same, but
/// slower.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let load = |offset| {
            let address = std::ptr::from_ref(value).cast::<u8>().wrapping_add(offset);
            // SAFETY: a prefetch has no effect that could be seen and never faults, whatever the
            // address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
        };
        let mut offset = 0;
        while offset < bytes {
            load(offset);
            offset += LINE;
        }
        // A value that does not begin with a line ends in one more.
        if bytes > 0 && align_of_val(value) < LINE {
            load(bytes - 1);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, bytes, LINE);
}
