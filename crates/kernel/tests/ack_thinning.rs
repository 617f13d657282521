//! Which events a detector is shown: the C of `src/bpf/ack_thinning.h`.

use narrows_laws::{Event, EventKind};

/// `struct nr_ack_thinning`.
#[repr(C)]
#[derive(Default)]
struct AckThinning {
    us: u32,
    acked_us: u32,
    delivered: u32,
    lost: u32,
}

unsafe extern "C" {
    fn nr_test_ack_thinning(
        t: &mut AckThinning,
        event: &mut Event,
        delivered: u32,
        lost: u32,
    ) -> i32;
}

/// A path and its detector.
#[derive(Default)]
struct Path {
    thinning: AckThinning,
    delivered: u32,
    lost: u32,
}

impl Path {
    /// An event at `us` with so many packets newly delivered and lost; what the detector is shown of
    /// them.
    fn event(
        &mut self,
        kind: EventKind,
        us: u64,
        rtt_us: u32,
        [delivered, lost]: [u32; 2],
    ) -> Option<[u32; 2]> {
        self.delivered = self.delivered.wrapping_add(delivered);
        self.lost = self.lost.wrapping_add(lost);
        let mut event =
            Event { now_us: us, kind: kind as u32, rtt_us, delivered, lost, ..Event::default() };
        // SAFETY: both are this function's own, and of the C's layout.
        let shown = unsafe {
            nr_test_ack_thinning(&mut self.thinning, &mut event, self.delivered, self.lost)
        };
        (shown != 0).then_some([event.delivered, event.lost])
    }

    fn acked(&mut self, us: u64, counts: [u32; 2]) -> Option<[u32; 2]> {
        self.event(EventKind::Acked, us, 20_000, counts)
    }
}

#[test]
fn of_acknowledgements_one_in_2_ms_is_shown_with_the_counts_of_all() {
    let mut path = Path { delivered: u32::MAX - 3, ..Path::default() };
    path.thinning.delivered = path.delivered;
    assert_eq!(path.acked(1_000_000, [2, 0]), Some([2, 0]));
    let (mut shown, mut counted) = (0, [0, 0]);
    // 10,000 acknowledgements in a second, over a wrap of the microseconds of 32 bits.
    let begin = (1 << 32) - 500_000;
    for n in 0..10_000_u64 {
        if let Some(counts) = path.acked(begin + n * 100, [2, u32::from(n % 50 == 0)]) {
            shown += 1;
            counted = [counted[0] + counts[0], counted[1] + counts[1]];
        }
    }
    assert_eq!(shown, 500);
    // But for those after the last one shown.
    assert_eq!(counted, [2 * 10_000 - 2 * 19, 200]);
}

#[test]
fn other_events_are_always_shown() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    assert_eq!(path.acked(1_000_100, [2, 1]), None);
    for (kind, lost) in [
        (EventKind::Recovery, 1),
        (EventKind::Timeout, 0),
        (EventKind::Restart, 0),
        (EventKind::Left, 0),
    ] {
        assert_eq!(path.event(kind, 1_000_200, 0, [0, 0]), Some([0, lost]), "{kind:?}");
    }
    assert_eq!(path.acked(1_002_000, [2, 0]), Some([4, 0]), "what was lost has been shown");
}

#[test]
fn other_events_keep_nothing_from_being_shown() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    path.event(EventKind::Restart, 1_001_900, 0, [0, 0]);
    assert_eq!(path.acked(1_002_000, [2, 0]), Some([2, 0]));
}

#[test]
fn without_a_delay_the_next_is_shown() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    assert_eq!(path.event(EventKind::Acked, 1_002_000, 0, [1, 1]), Some([1, 1]));
    assert_eq!(path.acked(1_002_100, [2, 0]), Some([2, 0]));
    assert_eq!(path.acked(1_002_200, [2, 0]), None);
}

#[test]
fn without_anything_new_none_is_shown() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    assert_eq!(path.acked(1_000_100, [1, 0]), None);
    assert_eq!(path.acked(1_050_000, [0, 0]), None);
    assert_eq!(path.acked(1_050_100, [2, 0]), Some([3, 0]));
}

/// Nothing is lost of what was delivered meanwhile.
#[test]
fn a_packet_alone_after_a_silence_stays_alone() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    path.acked(1_000_500, [2, 1]);
    assert_eq!(path.acked(1_040_500, [1, 0]), Some([1, 1]), "its acknowledgement was delayed");
    assert_eq!(path.acked(1_081_000, [1, 0]), Some([1, 0]), "likewise");
    assert_eq!(path.acked(1_083_000, [2, 0]), Some([4, 0]));
    assert_eq!(path.acked(1_084_000, [2, 0]), None);
    assert_eq!(path.acked(1_085_000, [1, 0]), Some([3, 0]));
}

/// Of a burst of packets that are acknowledged one by one the second shows that the first was not
/// delayed.
#[test]
fn the_second_of_a_burst_is_shown() {
    let mut path = Path::default();
    path.acked(1_000_000, [2, 0]);
    let burst = [0, 100, 200, 300].map(|us| path.acked(1_060_000 + us, [1, 0]));
    assert_eq!(burst, [Some([1, 0]), Some([1, 0]), None, None]);
}
