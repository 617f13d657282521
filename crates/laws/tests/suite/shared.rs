//! The words that several paths write: a debit is reserved at once and applied once, as LISA needs
//! it; an interval has one owner; a decision never undoes a join.

use narrows_laws::raw::{self, Conn, Private};
use narrows_laws::{Control, Event, EventKind, Params, State, flag};
use std::ptr::null_mut;

/// One connection with all its words in sight.
struct Paths {
    conn: Conn,
    private: [Private; 2],
}

impl Paths {
    /// Path 0 in slow start at `cwnd`.
    fn new(cwnd: u32) -> Paths {
        let mut paths = Paths {
            conn: Conn::new(Control::LIA, &Params::default()),
            private: Default::default(),
        };
        paths.event(0, EventKind::Joined, 0, 0, 0);
        paths.conn.path[0].cwnd = cwnd;
        paths.event(0, EventKind::Acked, cwnd, 0, cwnd);
        paths
    }

    fn event(
        &mut self,
        path: u32,
        kind: EventKind,
        cwnd: u32,
        delivered: u32,
        inflight: u32,
    ) -> u32 {
        let event = Event {
            kind: kind as u32,
            state: State::Active as u32,
            flags: flag::CWND_LIMITED,
            srtt8_us: 160_000,
            cwnd,
            delivered,
            inflight,
            ..Event::default()
        };
        let private = &mut self.private[path as usize];
        // SAFETY: exclusive pointers, path 0 or 1.
        unsafe {
            narrows_laws::event_shared(
                Control::LIA,
                &mut self.conn,
                null_mut(),
                path,
                private,
                &event,
            );
        }
        self.conn.path[path as usize].cwnd
    }

    /// An acknowledgement of `delivered` packets with the window full.
    fn ack(&mut self, delivered: u32) -> u32 {
        let cwnd = self.conn.path[0].cwnd;
        self.event(0, EventKind::Acked, cwnd, delivered, cwnd - delivered)
    }

    fn take(&mut self, want: u32, keep: u32) -> u32 {
        // SAFETY: an exclusive pointer.
        unsafe { raw::narrows_debit_take(&mut self.conn, 0, want, keep) }
    }
}

#[test]
fn a_debit_is_applied_once() {
    let mut paths = Paths::new(40);
    let settled = paths.conn.path[0].debit >> 16;
    assert_eq!(paths.take(10, 3), 10);
    assert_eq!(paths.conn.path[0].cwnd, 40, "the donor applies it, nobody else");
    assert_eq!(paths.event(0, EventKind::Acked, 40, 0, 30), 30);
    assert_eq!(paths.event(0, EventKind::Acked, 30, 0, 30), 30);
    // The settlement shows in the word: a taker that read it before will not succeed.
    assert_eq!(paths.conn.path[0].debit, (settled + 1) << 16);
}

#[test]
fn takers_see_what_others_took_before() {
    let mut paths = Paths::new(20);
    assert_eq!(paths.take(10, 3), 10);
    assert_eq!(paths.take(10, 3), 7, "no more than leaves the donor 3");
    assert_eq!(paths.take(10, 3), 0);
    assert_eq!(paths.event(0, EventKind::Acked, 20, 0, 0), 3);
    let mut paths = Paths::new(2);
    assert_eq!(paths.take(10, 3), 0, "a donor with less than it must keep gives nothing");
}

#[test]
fn what_is_in_flight_beyond_the_smaller_window_makes_no_room() {
    // LISA: ACKs to ignore = in flight - cwnd. 40 in flight, 30 left: the first 10 packets that
    // come back grow nothing, those after them do.
    let mut paths = Paths::new(40);
    paths.take(10, 3);
    assert_eq!(paths.ack(4), 30);
    assert_eq!(paths.event(0, EventKind::Acked, 30, 6, 30), 30);
    assert_eq!(paths.event(0, EventKind::Acked, 30, 5, 30), 35);
    // Half of a stretch acknowledgement may be among the ignored.
    let mut paths = Paths::new(40);
    paths.take(10, 3);
    assert_eq!(paths.ack(16), 36);
}

#[test]
fn a_loss_empties_what_was_in_flight_beyond_the_window() {
    // After it, every packet that comes back counts again.
    let mut paths = Paths::new(40);
    paths.take(10, 3);
    assert_eq!(paths.ack(4), 30);
    assert_eq!(paths.event(0, EventKind::Timeout, 30, 0, 0), 1);
    assert_eq!(paths.event(0, EventKind::Acked, 1, 1, 0), 2);
    // In recovery more is in flight than its window as a matter of course.
    let mut paths = Paths::new(40);
    paths.event(0, EventKind::Recovery, 40, 0, 40);
    paths.take(5, 3);
    let recovering = Event {
        kind: EventKind::Acked as u32,
        flags: flag::IN_RECOVERY,
        state: State::Active as u32,
        delivered: 1,
        inflight: 38,
        ..Event::default()
    };
    // SAFETY: exclusive pointers.
    unsafe {
        let private = &mut paths.private[0];
        narrows_laws::event_shared(
            Control::LIA,
            &mut paths.conn,
            null_mut(),
            0,
            private,
            &recovering,
        );
    }
    assert_eq!(paths.event(0, EventKind::Recovered, 15, 0, 15), 15);
    assert_eq!(paths.event(0, EventKind::Acked, 15, 5, 10), 20, "back to ssthresh");
}

#[test]
fn a_donor_that_loses_at_that_moment_keeps_a_packet() {
    let mut paths = Paths::new(20);
    assert_eq!(paths.take(17, 3), 17);
    // Its host had already gone down to 8.
    assert_eq!(paths.event(0, EventKind::Acked, 8, 0, 0), 1);
    assert_eq!(paths.event(0, EventKind::Acked, 1, 0, 0), 1);
}

#[test]
fn a_debit_in_recovery_lowers_the_window_after_it() {
    let mut paths = Paths::new(40);
    paths.event(0, EventKind::Recovery, 40, 0, 40);
    assert_eq!(paths.conn.path[0].cwnd, 20);
    assert_eq!(paths.take(5, 3), 5);
    assert_eq!(paths.event(0, EventKind::Recovered, 20, 0, 20), 15);
}

#[test]
fn a_slots_next_path_owes_nothing() {
    let mut paths = Paths::new(40);
    paths.take(10, 3);
    paths.event(0, EventKind::Left, 40, 0, 0);
    assert_eq!(paths.take(10, 3), 0, "nothing to take from a free slot");
    assert_eq!(paths.event(0, EventKind::Joined, 0, 0, 0), 10);
    assert_eq!(paths.event(0, EventKind::Acked, 10, 0, 0), 10);
}

#[test]
fn a_slots_next_path_has_no_samples() {
    for kind in [EventKind::Left, EventKind::Joined] {
        let mut paths = Paths::new(40);
        paths.conn.record[0].iter_mut().for_each(|record| record.stamp = 7);
        paths.event(0, kind, 0, 0, 0);
        assert!(paths.conn.record[0].iter().all(|record| record.stamp == 0), "{kind:?}");
    }
}

#[test]
fn a_join_resets_its_row_and_column_only() {
    const DECIDED: u64 = 0x8040_2010_0806_0603; // 0 apart; 1 and 2 coupled; the rest apart
    let mut paths = Paths::new(40);
    paths.conn.masks = DECIDED;
    paths.event(1, EventKind::Joined, 0, 0, 0);
    // Path 1 is coupled with all, all with path 1, and nothing else has changed.
    assert_eq!(paths.conn.masks, DECIDED | 0xff00 | 0x0202_0202_0202_0202);
}

#[test]
fn a_decision_on_old_masks_is_dropped() {
    let mut paths = Paths::new(40);
    let seen = paths.conn.masks;
    let store = |paths: &mut Paths, seen, masks| {
        // SAFETY: an exclusive pointer.
        unsafe { raw::narrows_masks_store(&mut paths.conn, seen, masks) }
    };
    assert_eq!(store(&mut paths, seen, 0x8040_2010_0804_0201), 1);
    paths.event(1, EventKind::Joined, 0, 0, 0);
    assert_eq!(store(&mut paths, 0x8040_2010_0804_0201, seen), 0);
}

#[test]
fn an_interval_is_claimed_once_and_none_before_it() {
    let mut paths = Paths::new(40);
    // SAFETY: an exclusive pointer.
    let mut claim = |number| unsafe { raw::narrows_tick_claim(&mut paths.conn, number) };
    assert_eq!([5, 5, 4, 6, 9, 8].map(&mut claim), [1, 0, 0, 1, 1, 0]);
}
