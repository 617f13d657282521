//! The protocols of `c/shared.h` and `c/detect/detection.h` in every interleaving and every reordering
//! that their memory order allows. The C itself runs here, over the port of `port.h`.

#![cfg(loom_models)]

mod port;

use loom::thread;
use narrows_laws::raw::{self, Conn, Detection, Record};
use narrows_laws::{Control, Detector, Event, EventKind, Params};
use port::Shared;
use std::sync::Arc;

unsafe extern "C-unwind" {
    safe fn nr_debit_take(conn: &Shared<Conn>, donor: u32, want: u32, keep: u32) -> u32;
    safe fn nr_debit_apply(conn: &Shared<Conn>, i: u32, cwnd: u32) -> u32;
    safe fn nr_debit_drop(conn: &Shared<Conn>, i: u32);
    safe fn nr_tick_claim(conn: &Shared<Conn>, number: u64) -> i32;
    safe fn nr_masks_store(conn: &Shared<Conn>, seen: u64, masks: u64) -> i32;
    safe fn nr_masks_join(conn: &Shared<Conn>, i: u32, row: u32, cuts: u32);
    safe fn nr_record_read(record: &Shared<Record>, stamp: u32, word: &mut [u32; 7]) -> i32;
    fn nr_record_write(record: &Shared<Record>, stamp: u32, word: *const u32, words: u32);
    safe fn nr_detect(
        detector: u32,
        conn: &Shared<Conn>,
        detection: &Shared<Detection>,
        i: u32,
        event: &Event,
    );
    fn nr_since(detection: *const Detection, i: u32) -> *const u32;
    safe fn nr_decision_enter(detection: &Shared<Detection>) -> i32;
    safe fn nr_decision_leave(detection: &Shared<Detection>);
}

/// A connection whose path 0 has a window of `cwnd`, which siblings may take from.
fn donor(cwnd: u32) -> Arc<Shared<Conn>> {
    let mut conn = Conn::new(Control::LIA, &Params::default());
    conn.path[0].cwnd = cwnd;
    Shared::new(Box::new(conn), |conn| vec![&conn.path[0].cwnd, &conn.path[0].debit])
}

#[test]
fn nothing_is_taken_twice_and_nothing_is_lost() {
    loom::model(|| {
        // Only one of two takers may have the packets above 3, whatever the donor does meanwhile.
        let conn = donor(8);
        let takers: Vec<_> = [5, 5]
            .into_iter()
            .map(|want| {
                let conn = conn.clone();
                thread::spawn(move || nr_debit_take(&conn, 0, want, 3))
            })
            .collect();
        let mut cwnd = 8;
        for _ in 0..2 {
            cwnd = nr_debit_apply(&conn, 0, cwnd);
        }
        let taken: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        cwnd = nr_debit_apply(&conn, 0, cwnd);
        assert_eq!(cwnd + taken, 8);
        assert!(cwnd >= 3);
    });
}

#[test]
fn a_settlement_between_a_takers_read_and_its_swap_does_not_deceive_it() {
    // ABA: the second taker puts the same amount back that the first one saw before the settlement.
    // And the window is never seen before a settlement with the debit after it.
    loom::model(|| {
        let conn = donor(13);
        assert_eq!(nr_debit_take(&conn, 0, 5, 3), 5);
        let slow = {
            let conn = conn.clone();
            thread::spawn(move || nr_debit_take(&conn, 0, 10, 3))
        };
        let cwnd = nr_debit_apply(&conn, 0, 13);
        let fast = nr_debit_take(&conn, 0, 5, 3);
        let slow = slow.join().unwrap();
        let cwnd = nr_debit_apply(&conn, 0, cwnd);
        assert_eq!(cwnd + slow + fast + 5, 13);
        assert!(cwnd >= 3);
    });
}

#[test]
fn a_taker_of_a_path_that_leaves_takes_nothing_from_the_next_one() {
    // The slot's next path has the same window: the number of settlements tells them apart.
    loom::model(|| {
        let conn = donor(20);
        let taker = {
            let conn = conn.clone();
            thread::spawn(move || nr_debit_take(&conn, 0, 10, 10))
        };
        // One leaves and another joins.
        conn.store(|conn| &conn.path[0].cwnd, 0);
        nr_debit_drop(&conn, 0);
        let joined = conn.load(|conn| &conn.path[0].debit);
        conn.store(|conn| &conn.path[0].cwnd, 20);
        let taken = taker.join().unwrap();
        let debit = conn.load(|conn| &conn.path[0].debit) & 0xffff;
        // It owes what was taken of its own window, after it had one.
        let own = conn.load(|conn| &conn.path[0].debit) >> 16 == joined >> 16;
        assert!(debit == 0 || (own && debit == u64::from(taken)), "{debit} of {taken}");
    });
}

/// Paths 0 and 1 coupled, and all paths apart.
const COUPLED: u64 = APART | 1 << 1 | 1 << 8;
const APART: u64 = 0x8040_2010_0804_0201;

/// A connection of paths that are apart.
fn apart() -> Conn {
    Conn::new(Control { detector: Detector::DISJOINT, ..Control::LIA }, &Params::default())
}

#[test]
fn an_interval_has_one_owner_also_while_an_older_one_is_claimed() {
    loom::model(|| {
        let conn = Shared::new(Box::new(apart()), |conn| vec![&conn.tick]);
        let claims: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                let conn = conn.clone();
                thread::spawn(move || nr_tick_claim(&conn, number))
            })
            .collect();
        let second = nr_tick_claim(&conn, 2);
        let claims: Vec<i32> = claims.into_iter().map(|claim| claim.join().unwrap()).collect();
        assert!(claims[0] <= 1);
        assert_eq!(claims[1] + second, 1);
    });
}

#[test]
fn a_decision_does_not_undo_a_join() {
    loom::model(|| {
        let conn = Shared::new(Box::new(apart()), |conn| vec![&conn.masks, &conn.cuts]);
        let decision = {
            let conn = conn.clone();
            thread::spawn(move || {
                let seen = conn.load(|conn| &conn.masks);
                // It finds all paths that it knows of apart.
                (seen, nr_masks_store(&conn, seen, APART) == 1)
            })
        };
        nr_masks_join(&conn, 1, 0b11, 0b10);
        let (seen, stored) = decision.join().unwrap();
        // A decision on the masks from before the join comes before it, or not at all.
        let expected = if stored && seen == COUPLED { APART } else { COUPLED };
        assert_eq!(conn.load(|conn| &conn.masks), expected);
    });
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    fn write(record: &Shared<Record>, stamp: u32, words: [u32; 2]) {
        // SAFETY: two words are there.
        unsafe { nr_record_write(record, stamp, words.as_ptr(), 2) }
    }
    fn read(record: &Shared<Record>, stamp: u32) -> Option<[u32; 2]> {
        let mut word = [0; 7];
        (nr_record_read(record, stamp, &mut word) == 1).then_some([word[0], word[1]])
    }
    // A path overwrites interval 1 by interval 3 while a late claimer still reads.
    loom::model(|| {
        let record = Box::new(Record { stamp: 0, word: [0; 7] });
        let record = Shared::new(record, |r| vec![&r.stamp, &r.word[0], &r.word[1]]);
        let path = {
            let record = record.clone();
            thread::spawn(move || {
                write(&record, 1, [11, 12]);
                write(&record, 3, [31, 32]);
            })
        };
        assert!(read(&record, 1).is_none_or(|words| words == [11, 12]));
        assert!(read(&record, 3).is_none_or(|words| words == [31, 32]));
        path.join().unwrap();
        assert_eq!(read(&record, 3), Some([31, 32]));
    });
}

#[test]
fn a_decision_belongs_to_one_path_at_a_time_and_intervals_follow_each_other() {
    loom::model(|| {
        let conn = Shared::new(Box::new(apart()), |conn| vec![&conn.tick]);
        let detection =
            Shared::new(Detection::new(&Params::default()), |detection| vec![&detection.busy]);
        // What a decision writes, here the last interval: loom finds two at it at once, and one that
        // does not see what was written before.
        #[expect(clippy::arc_with_non_send_sync, reason = "loom finds who would share it")]
        let decided = Arc::new(loom::cell::UnsafeCell::new(0));
        let paths: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                let (conn, detection, decided) = (conn.clone(), detection.clone(), decided.clone());
                thread::spawn(move || {
                    if nr_decision_enter(&detection) == 1 {
                        decided.with_mut(|last| {
                            // SAFETY: loom checks that nobody else is here.
                            let last: &mut u64 = unsafe { &mut *last };
                            if nr_tick_claim(&conn, number) == 1 {
                                assert!(*last < number, "interval {number} after {last}");
                                *last = number;
                            }
                        });
                        nr_decision_leave(&detection);
                    }
                })
            })
            .collect();
        for path in paths {
            path.join().unwrap();
        }
        assert_eq!(detection.load(|detection| &detection.busy), 0);
    });
}

#[test]
fn paths_at_once_make_the_parts_of_one_decision() {
    let xcorr = Detector::XCORR.number();
    let event = |kind: EventKind| Event {
        kind: kind as u32,
        now_us: 2_400_000, // interval 10 of 240 ms: the decision on 8 is due
        ..Event::default()
    };
    loom::model(move || {
        let (mut conn, mut detection) = (apart(), Detection::new(&Params::default()));
        for path in 0..2 {
            let joined = Event { now_us: 0, ..event(EventKind::Joined) };
            // SAFETY: both are there, and nobody shares them yet.
            unsafe { raw::narrows_detect(xcorr, &mut conn, &mut *detection, path, &joined) };
        }
        detection.at_once = 1;
        let conn = Shared::new(Box::new(conn), |conn| vec![&conn.tick, &conn.masks, &conn.cuts]);
        let detection = Shared::new(detection, |detection| vec![&detection.busy]);
        let other = {
            let (conn, detection) = (conn.clone(), detection.clone());
            thread::spawn(move || nr_detect(xcorr, &conn, &detection, 1, &event(EventKind::Acked)))
        };
        nr_detect(xcorr, &conn, &detection, 0, &event(EventKind::Acked));
        other.join().unwrap();
        // One claims; one groups, if it was not turned away by the other; one answers.
        assert_eq!(conn.load(|conn| &conn.tick), 9);
        for _ in 0..2 {
            nr_detect(xcorr, &conn, &detection, 0, &event(EventKind::Acked));
        }
        let detection = detection.plain();
        assert_eq!((detection.observed >> 32, detection.decided >> 32, detection.stamp), (9, 9, 0));
    });
}

#[test]
fn a_path_that_has_just_come_is_not_decided_on_by_what_was_seen_before_it() {
    /// Interval 3, in which paths 0 and 1 were not congested: no skewness, trusted.
    const CLEAR: Record = Record { stamp: 4, word: [0, 0, 0, 0, 0, 1, 0] };

    let ssc = Detector::SSC.number();
    let params = Params::default().with(&[
        ("decision.observations", "1"),
        ("decision.together", "1"),
        ("decision.every", "1"),
    ]);
    let in_interval_5 = 5 * u64::from(params.word("ssc.t_ms"));

    loom::model(move || {
        let (mut conn, mut detection) = (apart(), Detection::new(&params));
        let joined = |now_us| Event { kind: EventKind::Joined as u32, now_us, ..Event::default() };
        // SAFETY: both are there, and nobody shares them yet.
        unsafe { raw::narrows_detect(ssc, &mut conn, &mut *detection, 0, &joined(0)) };
        conn.masks = APART;
        conn.record[0][1] = CLEAR;
        conn.record[1][1] = CLEAR; // of the path that was in the slot before
        let conn = Shared::new(Box::new(conn), |conn| {
            vec![&conn.masks, &conn.cuts, &conn.tick, &conn.record[1][1].stamp]
        });
        let detection = Shared::new(detection, |detection| {
            // SAFETY: it points into `detection`.
            vec![unsafe { &*nr_since(detection, 1) }, &detection.busy]
        });
        let acked = Event { kind: EventKind::Acked as u32, now_us: in_interval_5, ..joined(0) };
        let claimer = {
            let (conn, detection) = (conn.clone(), detection.clone());
            thread::spawn(move || nr_detect(ssc, &conn, &detection, 0, &acked))
        };
        // The path that comes may be the one that claims the decision, with its first acknowledgement.
        nr_detect(ssc, &conn, &detection, 1, &joined(in_interval_5));
        nr_detect(ssc, &conn, &detection, 1, &acked);
        claimer.join().unwrap();
        assert_eq!(conn.load(|conn| &conn.masks) & COUPLED, COUPLED);
        assert_eq!(detection.plain().observed >> 32, 4, "one of them observed");
    });
}
