//! Whatever a host sends, in whatever order, windows keep within their bounds and nothing is
//! undefined (`--features ubsan` makes the C trap on what is).

mod common;

use common::every_law;
use narrows_laws::raw::ONE_PACKET;
use narrows_laws::{Conn, Event, EventKind, MAX_PATHS, Private, State, flag};
use proptest::prelude::*;

/// Small numbers, huge ones, and all between.
fn any_u32() -> impl Strategy<Value = u32> {
    prop_oneof![0..4u32, 1_000..100_000u32, any::<u32>(), Just(u32::MAX), Just(1 << 31)]
}

fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 1_000_000..100_000_000u64, any::<u64>(), Just(u64::MAX)]
}

fn any_event() -> impl Strategy<Value = Event> {
    (
        (any_u64(), 0..12u32, any::<u32>(), 0..7u32),
        (any_u32(), any_u32(), any_u32(), any_u32(), any_u32()),
    )
        .prop_map(
            |((now_us, kind, flags, state), (delivered, inflight, cwnd, srtt8_us, mss))| Event {
                now_us,
                kind,
                flags,
                state,
                delivered,
                inflight,
                cwnd,
                srtt8_us,
                mss,
                ..Event::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn any_events(
        events in prop::collection::vec((0..MAX_PATHS, any_event()), 1..200),
    ) {
        for control in every_law() {
            let mut conn = Conn::new(control);
            let mut private = [Private::default(); MAX_PATHS];
            let mut joined = [false; MAX_PATHS];
            for (path, event) in &events {
                let path = *path;
                // Half of the slots wait for a join among the events, and may see others before.
                if !joined[path] && path % 2 == 0 {
                    let join = Event { kind: EventKind::Joined as u32, ..*event };
                    conn.event(path, &mut private[path], &join);
                    joined[path] = true;
                }
                let output = conn.event(path, &mut private[path], event);
                joined[path] |= event.kind == EventKind::Joined as u32;
                joined[path] &= event.kind != EventKind::Left as u32;
                if !joined[path] {
                    prop_assert_eq!(output.cwnd, 0, "{}", control);
                } else {
                    prop_assert!((1..=1 << 30).contains(&output.cwnd), "{control}: {output:?}");
                    prop_assert!(output.ssthresh >= 1, "{control}: {output:?}");
                    prop_assert!(private[path].credit().abs() < ONE_PACKET, "{control}");
                }
            }
        }
    }
}

#[test]
fn events_of_a_slot_without_a_path_are_nothing() {
    // Linux calls some hooks of a socket before its control's init, and some after its release.
    for control in every_law() {
        let mut conn = Conn::new(control);
        let mut private = [Private::default(); 2];
        let event = |kind: u32, cwnd| Event {
            kind,
            cwnd,
            state: State::Active as u32,
            flags: flag::CWND_LIMITED,
            delivered: 2,
            srtt8_us: 160_000,
            ..Event::default()
        };
        conn.event(1, &mut private[1], &event(EventKind::Joined as u32, 0));
        conn.event(1, &mut private[1], &event(EventKind::Timeout as u32, 10));
        let alone = *conn.path(0);
        for kind in EventKind::Acked as u32..=EventKind::Left as u32 + 1 {
            for cwnd in [0, 10] {
                assert_eq!(conn.event(0, &mut private[0], &event(kind, cwnd)).cwnd, 0, "{control}");
                assert_eq!(*conn.path(0), alone, "{control}, kind {kind} before the join");
            }
        }
        conn.event(0, &mut private[0], &event(EventKind::Joined as u32, 0));
        conn.event(0, &mut private[0], &event(EventKind::Timeout as u32, 10));
        conn.event(0, &mut private[0], &event(EventKind::Left as u32, 1));
        let gone = *conn.path(0);
        assert_eq!((gone.state, gone.cwnd), (State::Free as u32, 0));
        for kind in EventKind::Acked as u32..=EventKind::Left as u32 + 1 {
            for cwnd in [0, 1, 10] {
                conn.event(0, &mut private[0], &event(kind, cwnd));
                assert_eq!(*conn.path(0), gone, "{control}, kind {kind} after it left");
            }
        }
    }
}
