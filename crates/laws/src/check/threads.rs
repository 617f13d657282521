//! Siblings on real threads without locks, as in the kernel.

use super::{Failure, Run, ensure};
use crate::raw::{Conn, MAX_PATHS, Private};
use crate::{Control, Event, EventKind, Params, State, flag};
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;

/// A connection that threads share as CPUs do.
struct Shared(UnsafeCell<Conn>);

// SAFETY: all accesses go through the C functions, which use single-word volatile accesses and
// compare-and-swap on what they share.
unsafe impl Sync for Shared {}

impl Shared {
    fn event(&self, control: Control, path: usize, private: &mut Private, event: &Event) {
        // SAFETY: each thread has its own path and private state; the detector is fixed.
        unsafe {
            crate::event_shared(
                control,
                self.0.get(),
                std::ptr::null_mut(),
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
}

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

pub(super) fn at_once(control: Control, run: Run) -> Result<(), Failure> {
    let case = || {
        let conn = Shared(UnsafeCell::new(Conn::new(control, &Params::default())));
        let barrier = Barrier::new(MAX_PATHS);
        thread::scope(|scope| {
            let paths: Vec<_> = (0..MAX_PATHS)
                .map(|path| {
                    let (conn, barrier) = (&conn, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        live(control, conn, path)
                    })
                })
                .collect();
            // The law cannot panic, only this code.
            paths.into_iter().try_for_each(|path| path.join().expect("no thread panics"))
        })
    };
    run(&case).map_err(|failure| failure.at("8 paths, 20000 events each"))
}

fn live(control: Control, conn: &Shared, path: usize) -> Result<(), Failure> {
    let mut private = Private::default();
    conn.event(control, path, &mut private, &event(EventKind::Joined, 0, 0));
    for number in 1..20_000u64 {
        let kind = match (number + path as u64 * 17) % 200 {
            0 => EventKind::Recovery,
            1 => EventKind::Recovered,
            77 if path % 2 == 0 => EventKind::Timeout,
            78 if path == 3 => EventKind::Left,
            79 if path == 3 => EventKind::Joined,
            _ => EventKind::Acked,
        };
        let before = conn.cwnd(path);
        let one = Event { delivered: 2, ..event(kind, number * 100, before) };
        conn.event(control, path, &mut private, &one);
        let after = conn.cwnd(path);
        ensure(after >= 1 || kind == EventKind::Left, || {
            format!("path {path} has a cwnd of {after} after its event {number}")
        })?;
        // Only the path's own events change its window; a law may follow a sibling's reduction at
        // one, once.
        let least = if control.law.follows() { before / 2 } else { before };
        let own = kind != EventKind::Acked || (after <= before + 2 && after + 1 >= least);
        ensure(own, || {
            format!(
                "2 packets acknowledged on path {path}, its event {number}: cwnd goes from {before} \
                 to {after}"
            )
        })?;
    }
    Ok(())
}
