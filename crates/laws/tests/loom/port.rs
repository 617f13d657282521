//! Shared memory of C under loom: what `port.h` makes of the accesses that `c/nr_port.h` names.
//!
//! A word that a test shares ([`Shared::new`]) lives in a loom atomic from then on, and those macros
//! access it there: reads and writes relaxed, `NR_CAS` sequentially consistent where it succeeds,
//! `NR_FETCH_AND` always. All else is plain memory, which every thread sees as it was last written,
//! and there these two fail the test. So a test shares the words that its protocol is about, and no
//! more: the interleavings multiply with every access.
//!
//! A plain access of C to a shared word, past the macros, sees the value before it was shared.
//!
//! Loom runs the threads of a model as coroutines, one at a time and all on the OS thread of the
//! test. That makes plain memory sound without locks, and the words a matter of that OS thread.
//! A failure unwinds through C, which is compiled with -fexceptions.

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU64, fence};
use std::cell::{RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    /// The words that are shared, by address. No borrow lasts over an access, at which another
    /// thread of the model may go on.
    static WORDS: RefCell<HashMap<usize, Rc<AtomicU64>>> = RefCell::default();
}

fn word(at: *const c_void) -> Option<Rc<AtomicU64>> {
    WORDS.with_borrow(|words| words.get(&at.addr()).cloned())
}

fn shared_word(at: *const c_void) -> Rc<AtomicU64> {
    word(at).expect("a word that the test shares")
}

/// A field of 32 or 64 bits.
pub trait Word {
    fn value(&self) -> u64;
}

impl Word for u32 {
    fn value(&self) -> u64 {
        u64::from(*self)
    }
}

impl Word for u64 {
    fn value(&self) -> u64 {
        *self
    }
}

/// A C structure that the threads of a model share; to C, a pointer to it.
#[repr(transparent)]
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: the threads of a model run one at a time, on one OS thread (see above).
unsafe impl<T> Send for Shared<T> {}
// SAFETY: likewise.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Shares `words` of `memory`. Before the threads that use them are spawned.
    pub fn new(memory: Box<T>, words: impl Fn(&T) -> Vec<&dyn Word>) -> Arc<Self> {
        // SAFETY: Shared<T> has the layout of T.
        let shared: Box<Self> = unsafe { Box::from_raw(Box::into_raw(memory).cast()) };
        let shared: Arc<Self> = shared.into();
        for word in words(shared.plain()) {
            let at = ptr::from_ref(word).cast::<()>().addr();
            WORDS.with_borrow_mut(|words| {
                words.insert(at, Rc::new(AtomicU64::new(word.value())));
            });
        }
        shared
    }

    /// The memory as it is; of shared words, as it was.
    pub fn plain(&self) -> &T {
        // SAFETY: C writes only while it is called, and callers keep this over no call.
        unsafe { &*self.0.get() }
    }

    /// What a shared word holds.
    pub fn load<W: Word>(&self, field: impl Fn(&T) -> &W) -> u64 {
        shared_word(ptr::from_ref(field(self.plain())).cast()).load(Relaxed)
    }

    /// Writes a shared word.
    #[allow(dead_code, reason = "not every test writes one itself")]
    pub fn store<W: Word>(&self, field: impl Fn(&T) -> &W, value: u64) {
        shared_word(ptr::from_ref(field(self.plain())).cast()).store(value, Relaxed);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let here = self.0.get().addr();
        WORDS.with_borrow_mut(|words| {
            words.retain(|at, _| !(here..here + size_of::<T>()).contains(at));
        });
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_load(at: *const c_void, plain: u64) -> u64 {
    word(at).map_or(plain, |word| word.load(Relaxed))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_store(at: *const c_void, value: u64) -> i32 {
    word(at).map(|word| word.store(value, Relaxed)).is_some().into()
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_cas(at: *const c_void, old: u64, new: u64) -> u64 {
    shared_word(at).compare_exchange(old, new, SeqCst, Relaxed).unwrap_or_else(|now| now)
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_and(at: *const c_void, keep: u64) -> u64 {
    shared_word(at).fetch_and(keep, SeqCst)
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_acquire() {
    fence(Acquire);
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_loom_release() {
    fence(Release);
}
