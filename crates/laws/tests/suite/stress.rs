//! Siblings on real threads, as the kernel runs them: nobody locks the connection.

use narrows_laws::raw::{self, Conn, Detection, MAX_PATHS, OBSERVATIONS, Private};
use narrows_laws::{Control, Event, EventKind, Params, State, flag};
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

/// A connection that threads share as CPUs do: through the C side's single-word accesses.
struct Shared<T = Conn>(UnsafeCell<T>);

// SAFETY: all accesses go through the C functions, which use single-word volatile accesses and
// compare-and-swap on what they share, or come after the threads have been joined.
unsafe impl<T> Sync for Shared<T> {}

impl Shared {
    fn new(control: Control) -> Shared {
        Shared(UnsafeCell::new(Conn::new(control, &Params::default())))
    }

    fn event(&self, control: Control, path: usize, private: &mut Private, event: &Event) {
        self.event_detected(control, std::ptr::null_mut(), path, private, event);
    }

    fn event_detected(
        &self,
        control: Control,
        detection: *mut Detection,
        path: usize,
        private: &mut Private,
        event: &Event,
    ) {
        // SAFETY: each thread has a path and its private state for itself.
        unsafe {
            narrows_laws::event_shared(
                control,
                self.0.get(),
                detection,
                path as u32,
                private,
                event,
            );
        }
    }

    /// The published window of the caller's own path.
    fn cwnd(&self, path: usize) -> u32 {
        // SAFETY: written by this thread only.
        unsafe { (&raw const (*self.0.get()).path[path].cwnd).read_volatile() }
    }

    fn claim(&self, number: u64) -> bool {
        // SAFETY: a compare-and-swap on the tick.
        unsafe { raw::narrows_tick_claim(self.0.get(), number) == 1 }
    }

    fn take(&self, donor: usize, want: u32, keep: u32) -> u32 {
        // SAFETY: a compare-and-swap on the donor's line.
        unsafe { raw::narrows_debit_take(self.0.get(), donor as u32, want, keep) }
    }
}

impl Shared<*mut Detection> {
    fn pointer(&self) -> *mut Detection {
        // SAFETY: never written.
        unsafe { *self.0.get() }
    }
}

const EVENTS: u64 = 200_000;

fn event(kind: EventKind, now_us: u64, cwnd: u32) -> Event {
    Event {
        kind: kind as u32,
        now_us,
        cwnd,
        state: State::Active as u32,
        flags: flag::CWND_LIMITED,
        srtt8_us: 160_000,
        mss: 1448,
        ..Event::default()
    }
}

#[test]
fn what_siblings_take_is_what_the_donor_gives() {
    // Path 0 is in slow start, a packet for each one acknowledged; three siblings take from it.
    let control = Control::LIA;
    let conn = Shared::new(control);
    let mut private = Private::default();
    conn.event(control, 0, &mut private, &event(EventKind::Joined, 0, 0));
    let barrier = Barrier::new(4);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        for sibling in 1..4u64 {
            let (conn, barrier, taken) = (&conn, &barrier, &taken);
            scope.spawn(move || {
                barrier.wait();
                for number in 0..EVENTS {
                    let want = 1 + (number * sibling % 10) as u32;
                    taken.fetch_add(u64::from(conn.take(0, want, 3)), Ordering::Relaxed);
                }
            });
        }
        barrier.wait();
        for number in 0..EVENTS {
            let ack = event(EventKind::Acked, number, conn.cwnd(0));
            conn.event(control, 0, &mut private, &Event { delivered: 1, ..ack });
            assert!(conn.cwnd(0) >= 1);
        }
    });
    // One more event settles what was taken last.
    let last = event(EventKind::Acked, EVENTS, conn.cwnd(0));
    conn.event(control, 0, &mut private, &last);
    let left = u64::from(conn.cwnd(0));
    assert_eq!(left + taken.into_inner(), 10 + EVENTS);
    assert!(left >= 3, "the takers left what they had to: {left}");
}

#[test]
fn joins_take_their_windows_from_a_donor_at_once() {
    // Path 0 is in slow start and gets 40 packets again and again; siblings join and leave.
    let control: Control = "olia+lisa".parse().unwrap();
    let conn = Shared::new(control);
    let mut private = Private::default();
    conn.event(control, 0, &mut private, &event(EventKind::Joined, 0, 40));
    let barrier = Barrier::new(MAX_PATHS);
    let lent = AtomicU64::new(0);
    thread::scope(|scope| {
        for path in 1..MAX_PATHS {
            let (conn, barrier, lent) = (&conn, &barrier, &lent);
            scope.spawn(move || {
                let mut private = Private::default();
                barrier.wait();
                for number in 0..EVENTS / 4 {
                    let state = State::Joining as u32;
                    let joined = Event { state, ..event(EventKind::Joined, number, 10) };
                    conn.event(control, path, &mut private, &joined);
                    let cwnd = conn.cwnd(path);
                    assert!((3..=10).contains(&cwnd), "{cwnd}");
                    lent.fetch_add(u64::from(cwnd < 10), Ordering::Relaxed);
                    conn.event(control, path, &mut private, &event(EventKind::Left, number, 0));
                }
            });
        }
        barrier.wait();
        for number in 0..EVENTS {
            let acked = Event { inflight: 40, ..event(EventKind::Acked, number, 40) };
            conn.event(control, 0, &mut private, &acked);
            assert!((1..=40).contains(&conn.cwnd(0)));
        }
    });
    assert!(lent.into_inner() > 0, "some found less than 20");
    // Path 0 settles what was taken last.
    conn.event(control, 0, &mut private, &event(EventKind::Acked, EVENTS, 40));
    assert_eq!(conn.0.into_inner().path[0].debit & 0xffff, 0);
}

#[test]
fn each_decision_interval_has_one_owner() {
    const INTERVALS: usize = 50_000;
    let conn = Shared::new(Control::OLIA);
    let owners: Vec<AtomicU32> = (0..INTERVALS).map(|_| AtomicU32::new(0)).collect();
    let (barrier, current) = (Barrier::new(4), AtomicU64::new(1));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                loop {
                    let number = current.load(Ordering::Relaxed);
                    if number >= INTERVALS as u64 {
                        break;
                    }
                    if conn.claim(number) {
                        owners[number as usize].fetch_add(1, Ordering::Relaxed);
                        current.store(number + 1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(owners.iter().skip(1).all(|owner| owner.load(Ordering::Relaxed) == 1));
}

/// Eight paths under a detector, at once, whose decisions have parts as `at_once` says. `t_us` is the
/// interval.
fn decide(control: &str, t_us: u64, at_once: u32) -> Box<Detection> {
    let control: Control = control.parse().unwrap();
    let conn = Shared::new(control);
    let mut params = Params::default();
    params.set("ssc.trusted", "10").unwrap();
    let mut detection = Detection::new(&params);
    detection.at_once = at_once;
    let pointer = Shared(UnsafeCell::new(&raw mut *detection));
    let barrier = Barrier::new(MAX_PATHS);
    let in_step = t_us / STEP_US;
    let acked = |number: u64, delay: u64| Event {
        delivered: 1,
        flags: flag::OWD | flag::DWELL,
        owd_us: delay as i32,
        ..event(EventKind::Acked, number * STEP_US, 10)
    };
    let mut privates = thread::scope(|scope| {
        let paths = (0..MAX_PATHS).map(|path| {
            let (conn, pointer, barrier) = (&conn, &pointer, &barrier);
            scope.spawn(move || {
                let mut private = Private::default();
                for number in 0..STEPS {
                    // In step, so that many come to each tick at once; one comes and goes.
                    if number % in_step == in_step - 1 {
                        barrier.wait();
                    }
                    let kind = match number {
                        0 => EventKind::Joined,
                        _ if path == 3 && number % 5_000 == 0 => EventKind::Joined,
                        _ if path == 3 && number % 5_000 == 4_900 => EventKind::Left,
                        _ => EventKind::Acked,
                    };
                    let delay = (number * (1 + path as u64 % 2)) % 500 * 40;
                    let one = Event { kind: kind as u32, ..acked(number, delay) };
                    conn.event_detected(control, pointer.pointer(), path, &mut private, &one);
                }
                private
            })
        });
        let paths: Vec<_> = paths.collect();
        paths.into_iter().map(|path| path.join().unwrap()).collect::<Vec<_>>()
    });
    // What is left of the last decision: a claim, at most 14 parts and the answer.
    for _ in 0..16 {
        let (last, pointer) = (acked(STEPS - 1, 0), pointer.pointer());
        conn.event_detected(control, pointer, 0, &mut privates[0], &last);
    }
    let masks = conn.0.into_inner().masks;
    for i in 0..MAX_PATHS {
        for j in 0..MAX_PATHS {
            assert_eq!(masks >> (8 * i + j) & 1, masks >> (8 * j + i) & 1, "mutual: {masks:x}");
        }
    }
    detection
}

const STEPS: u64 = 40_000;
const STEP_US: u64 = 2_000;
/// Of ssc and xcorr.
const INTERVALS_US: [u64; 2] = [350_000, 240_000];

#[test]
fn paths_under_a_dynamic_detector_claim_observe_and_decide_at_once() {
    for (control, t_us) in ["lia+ssc", "lia+xcorr"].into_iter().zip(INTERVALS_US) {
        let detection = decide(control, t_us, 0);
        let stamp = |word: u64| word >> 32;
        // Each interval has its observation, in its place; the newest is that of the last tick.
        let newest = (STEPS - 1) * STEP_US / t_us - 1;
        assert_eq!(stamp(detection.observed), newest, "{control}");
        for back in 0..OBSERVATIONS as u64 {
            let number = newest - back;
            assert_eq!(stamp(detection.ring[number as usize % OBSERVATIONS]), number, "{control}");
        }
        assert!(newest - stamp(detection.decided) < 10, "{control}: decided every ten");
    }
}

#[test]
fn paths_at_once_make_the_parts_of_decisions() {
    for (control, t_us) in ["lia+ssc", "lia+xcorr"].into_iter().zip(INTERVALS_US) {
        let detection = decide(control, t_us, 2);
        assert_eq!((detection.stamp, detection.busy), (0, 0), "{control}: nothing is left undone");
        let newest = (STEPS - 1) * STEP_US / t_us - 1;
        assert_eq!(detection.observed >> 32, newest, "{control}");
    }
}
