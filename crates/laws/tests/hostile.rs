//! Whatever a host sends, in whatever order, windows keep within their bounds and nothing is
//! undefined (`--features ubsan` makes the C trap on what is).

use narrows_laws::raw::ONE_PACKET;
use narrows_laws::{Conn, Control, Event, EventKind, MAX_PATHS, Private};
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
        for control in [Control::RENO, Control::CUBIC, Control::LIA, Control::OLIA, Control::BALIA] {
            let mut conn = Conn::new(control);
            let mut private = [Private::default(); MAX_PATHS];
            let mut joined = [false; MAX_PATHS];
            for (path, event) in &events {
                let path = *path;
                if !joined[path] {
                    let join = Event { kind: EventKind::Joined as u32, ..*event };
                    conn.event(path, &mut private[path], &join);
                }
                let output = conn.event(path, &mut private[path], event);
                joined[path] = event.kind != EventKind::Left as u32;
                if joined[path] {
                    prop_assert!((1..=1 << 30).contains(&output.cwnd), "{control}: {output:?}");
                    prop_assert!(output.ssthresh >= 1, "{control}: {output:?}");
                    prop_assert!(private[path].credit().abs() < ONE_PACKET, "{control}");
                }
            }
        }
    }
}
