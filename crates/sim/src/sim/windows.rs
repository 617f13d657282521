//! Windows of time in which parts run by themselves, on several threads.
//!
//! A part does nothing to another less than `lookahead` later. So from the earliest event of all on each may run so far
//! without the others; what they send each other meanwhile is taken up in the next window. A window begins with the
//! earliest event, so time in which nothing happens costs nothing.

use super::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError,
    wait_a_little,
};

/// Nanoseconds of virtual time.
type Nanos = u64;

/// The time of what never happens.
const NEVER: Nanos = Nanos::MAX;

/// So many events a window and thread are worth the wait at its end.
pub(crate) const LEAST_EVENTS: u64 = 8;

/// What a part has done in a window.
pub(crate) struct Did {
    pub events: u64,
    pub hops: u64,
    /// When the earliest will happen in it, or caused by it in another.
    pub next: Nanos,
}

/// What runs in windows.
pub(crate) trait Part {
    /// What it sends to others.
    type Crossing;

    /// Takes what another has sent, in its order, and empties the list.
    fn take(&mut self, crossings: &mut Vec<Self::Crossing>);

    /// Does everything up to and including the time `last`.
    fn run(&mut self, last: Nanos) -> Did;

    /// What it has sent to each part, to be taken out.
    fn sent(&mut self) -> &mut [Vec<Self::Crossing>];
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Everything up to this time has happened: the end, unless too little happened.
    pub reached: Nanos,
    /// In so many windows.
    pub windows: u64,
    /// And with so many events.
    pub events: u64,
    /// What packets have gone over links, counted by the first thread alone.
    pub hops: u64,
    /// Of these, one after the other on the busiest thread of each window, if a hop takes as long as another.
    pub critical: u64,
}

/// What several parts have sent to one.
type Inbox<C> = Mutex<Vec<Vec<C>>>;

/// The windows of a run, as all threads see them.
pub(crate) struct Windows<'a, P: Part> {
    parts: &'a [Mutex<P>],
    lookahead: Nanos,
    start: Nanos,
    until: Nanos,
    /// None until it is known how many there are.
    threads: AtomicUsize,
    /// So many windows are looked at together, whether enough happens in them.
    trial: u64,
    /// By part: how many windows have been begun on it.
    begun: Vec<AtomicU64>,
    /// By turns of windows: the earliest that will happen behind it.
    next: [AtomicU64; 3],
    /// By turns: the hops of each part.
    done: [Vec<AtomicU64>; 2],
    /// By turns: what has been sent to each part.
    inboxes: [Vec<Inbox<P::Crossing>>; 2],
    events: AtomicU64,
    /// The window in which it was found that too little happens.
    stop_after: AtomicU64,
    barrier: Barrier,
}

/// The value, also if a thread has panicked with it: all end then.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, P: Part> Windows<'a, P> {
    /// From the earliest event, at `start`, up to and including `until`.
    pub fn new(
        parts: &'a [Mutex<P>],
        lookahead: Nanos,
        (start, until): (Nanos, Nanos),
        trial: u64,
    ) -> Windows<'a, P> {
        let none = || parts.iter().map(|_| AtomicU64::new(0)).collect();
        let inboxes = || parts.iter().map(|_| Mutex::new(Vec::new())).collect();
        Windows {
            parts,
            lookahead,
            start,
            until,
            threads: AtomicUsize::new(0),
            trial,
            begun: none(),
            next: [(); 3].map(|()| AtomicU64::new(NEVER)),
            done: [(); 2].map(|()| none()),
            inboxes: [inboxes(), inboxes()],
            events: AtomicU64::new(0),
            stop_after: AtomicU64::new(u64::MAX),
            barrier: Barrier::new(),
        }
    }

    /// So many threads do, or are about to do, [`Windows::work`].
    pub fn begin(&self, threads: usize) {
        self.threads.store(threads, Ordering::Release);
    }

    /// What one of the threads does, the first of which is 0: in each window those parts that no other has begun.
    pub fn work(&self, thread: usize) -> Ran {
        let mut looks = 0;
        let threads = loop {
            match self.threads.load(Ordering::Acquire) {
                0 => wait_a_little(&mut looks),
                threads => break threads,
            }
        };
        let breaks = Breaks(&self.barrier);
        let (mut spare, mut seen) = (Vec::new(), 0);
        let (mut start, mut window) = (self.start, 0);
        let (mut hops, mut critical, mut ends) = (0, 0, vec![0; threads]);
        let mut reached = self.until;
        while start <= self.until {
            // Never beyond what the others may still send.
            let last = (start.saturating_add(self.lookahead) - 1).min(self.until);
            let slot = window as usize % 3;
            if thread == 0 {
                // All have read it before the last barrier, and write it behind the next.
                self.next[(slot + 1) % 3].store(NEVER, Ordering::Relaxed);
                self.look(window, threads, &mut seen);
            }
            let mut next = NEVER;
            for turn in 0..self.parts.len() {
                let number = (thread * self.parts.len() / threads + turn) % self.parts.len();
                let begun = &self.begun[number];
                if begun
                    .compare_exchange(window, window + 1, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
                {
                    next = next.min(self.run_part(number, last, window, &mut spare));
                }
            }
            self.next[slot].fetch_min(next, Ordering::Relaxed);
            if !self.barrier.wait(threads) {
                break;
            }
            if thread == 0 {
                let longest = longest(&self.done[window as usize % 2], &mut ends);
                (hops, critical) = (hops + ends.iter().sum::<u64>(), critical + longest);
            }
            // What others do in the next window changes neither.
            if self.stop_after.load(Ordering::Relaxed) == window {
                reached = last;
                window += 1;
                break;
            }
            start = self.next[slot].load(Ordering::Relaxed);
            window += 1;
        }
        std::mem::forget(breaks);
        let events = self.events.load(Ordering::Relaxed);
        Ran { reached, windows: window, events, hops, critical }
    }

    /// Now and then: did enough happen of late, beside the events that were seen the last time?
    fn look(&self, window: u64, threads: usize, seen: &mut u64) {
        if window % self.trial == self.trial - 1 {
            let events = self.events.load(Ordering::Relaxed);
            if events - *seen < LEAST_EVENTS * self.trial * threads as u64 {
                self.stop_after.store(window, Ordering::Relaxed);
            }
            *seen = events;
        }
    }

    /// Runs a part up to the time `last`. Returns the time of the next event in it, or caused by it in another. `spare` are
    /// empty lists.
    fn run_part(
        &self,
        number: usize,
        last: Nanos,
        window: u64,
        spare: &mut Vec<Vec<P::Crossing>>,
    ) -> Nanos {
        let mut part = lock(&self.parts[number]);
        let turn = window as usize % 2;
        for mut crossings in lock(&self.inboxes[1 - turn][number]).drain(..) {
            part.take(&mut crossings);
            spare.push(crossings);
        }
        let Did { events, hops, next } = part.run(last);
        debug_assert!(next > last, "too late for another part");
        self.events.fetch_add(events, Ordering::Relaxed);
        self.done[turn][number].store(hops, Ordering::Relaxed);
        for (inbox, crossings) in self.inboxes[turn].iter().zip(part.sent()) {
            if !crossings.is_empty() {
                let empty = spare.pop().unwrap_or_default();
                lock(inbox).push(std::mem::replace(crossings, empty));
            }
        }
        next
    }

    /// Once all threads have ended: what was sent in the last window arrives, whenever that may be.
    pub fn finish(&self) {
        for (number, part) in self.parts.iter().enumerate() {
            for inboxes in &self.inboxes {
                lock(&inboxes[number])
                    .drain(..)
                    .for_each(|mut crossings| lock(part).take(&mut crossings));
            }
        }
    }
}

/// The most of a thread, if each takes the next part when it is done with the one before. `ends` gets that of each.
fn longest(done: &[AtomicU64], ends: &mut [u64]) -> u64 {
    ends.fill(0);
    for part in done {
        if let Some(first) = ends.iter_mut().min() {
            *first += part.load(Ordering::Relaxed);
        }
    }
    ends.iter().copied().max().unwrap_or(0)
}

/// Where threads wait for each other, seldom for long: the standard library's puts them to sleep, which takes longer than
/// most windows.
struct Barrier {
    waiting: AtomicUsize,
    passed: AtomicU32,
    broken: AtomicBool,
}

impl Barrier {
    fn new() -> Barrier {
        Barrier {
            waiting: AtomicUsize::new(0),
            passed: AtomicU32::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for all others of so many. False if one has panicked.
    fn wait(&self, threads: usize) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.passed.store(passed.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut looks = 0;
        while self.passed.load(Ordering::Acquire) == passed {
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            wait_a_little(&mut looks);
        }
        true
    }
}

/// Breaks the barrier if it is dropped, as by a panic, so that the others do not wait for ever.
struct Breaks<'a>(&'a Barrier);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        self.0.broken.store(true, Ordering::Relaxed);
    }
}
