//! The queue holds exactly what its limit says.

use std::sync::Arc;

use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Rate, SECOND, Trace};
use proptest::prelude::*;

use crate::{one_link, run, sized};

const LINK: LinkId = LinkId(0);

/// A link on which 1500 bytes take 1 ms.
fn link(limit: Limit) -> LinkConfig {
    LinkConfig { rate: Rate::Constant(12_000_000), limit, ..LinkConfig::default() }
}

#[test]
fn a_burst_meets_a_queue_of_three_packets() {
    let (mut network, route) = one_link(link(Limit::Packets(3)));
    for _ in 0..6 {
        network.enqueue(0, route, sized(1500), ());
    }
    // One is being transmitted, three wait, two found the queue full.
    assert_eq!(network.packets_on(LINK), 4);
    assert_eq!(network.queue_packets(LINK, 0), 3);
    assert_eq!(network.queue_bytes(LINK, 0), 4500);
    assert_eq!(network.queue_delay(LINK, 0), 4 * MILLISECOND);
    assert_eq!(network.counters(LINK).dropped_queue, 2);

    // A nanosecond before the next transmission starts there is still no room.
    network.enqueue(MILLISECOND - 1, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 3);
    // Then there is room for one.
    assert!(network.advance(MILLISECOND).is_some());
    assert_eq!(network.queue_packets(LINK, MILLISECOND), 2);
    network.enqueue(MILLISECOND, route, sized(1500), ());
    network.enqueue(MILLISECOND, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 4);
    assert_eq!(network.queue_packets(LINK, MILLISECOND), 3);
}

#[test]
fn a_queue_of_bytes_has_room_for_a_small_packet_where_a_large_one_is_dropped() {
    let (mut network, route) = one_link(link(Limit::Bytes(3100)));
    for size in [1500, 1500, 1500, 101, 100, 1] {
        network.enqueue(0, route, sized(size), ());
    }
    assert_eq!(network.queue_bytes(LINK, 0), 3100);
    assert_eq!(network.queue_packets(LINK, 0), 3);
    assert_eq!(network.counters(LINK).dropped_queue, 2);
}

#[test]
fn a_queue_of_milliseconds_drops_who_would_wait_longer() {
    let (mut network, route) = one_link(link(Limit::Time(2 * MILLISECOND)));
    for _ in 0..4 {
        network.enqueue(0, route, sized(1500), ());
    }
    // They would wait 0, 1, 2 and 3 ms.
    assert_eq!(network.counters(LINK).dropped_queue, 1);
    assert_eq!(network.counters(LINK).queue_delay.max(), 2 * MILLISECOND);
    // Half a millisecond later one would wait 2.5 ms, another half later 2 ms.
    network.enqueue(MILLISECOND / 2, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 2);
    assert!(network.advance(MILLISECOND).is_some());
    network.enqueue(MILLISECOND, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 2);
}

#[test]
fn a_packet_that_does_not_wait_needs_no_room() {
    let (mut network, route) = one_link(link(Limit::Bytes(100)));
    network.enqueue(0, route, sized(1500), ());
    network.enqueue(0, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 1);
    assert!(network.advance(MILLISECOND).is_some());
}

#[test]
fn on_a_trace_a_packet_waits_for_its_first_opportunity() {
    let trace = Arc::new(Trace::parse(b"10\n20\n", "test").unwrap());
    let (mut network, route) = one_link(LinkConfig {
        rate: Rate::Trace(trace),
        limit: Limit::Packets(2),
        ..LinkConfig::default()
    });
    for _ in 0..3 {
        network.enqueue(0, route, sized(1000), ());
    }
    assert_eq!(network.counters(LINK).dropped_queue, 1);
    // The opportunity at 10 ms carries the first packet and starts the second.
    assert_eq!(network.queue_packets(LINK, 10 * MILLISECOND), 0);
    assert_eq!(network.advance(SECOND).unwrap().time, 10 * MILLISECOND);
    assert_eq!(network.advance(SECOND).unwrap().time, 20 * MILLISECOND);
}

/// Which of the packets (time, size) a link of 1 Gbit/s (8 ns per byte) accepts: a list of all
/// packets' starts, searched in full each time.
fn reference(limit: Limit, sends: &[(Nanos, u32)]) -> Vec<usize> {
    let mut accepted: Vec<(usize, Nanos, u32)> = Vec::new();
    let mut free_at = 0;
    for (number, &(now, size)) in sends.iter().enumerate() {
        let start = free_at.max(now);
        let waiting = || accepted.iter().filter(|&&(_, start, _)| start > now);
        let fits = match limit {
            Limit::Unlimited => true,
            Limit::Packets(limit) => waiting().count() < limit as usize,
            Limit::Bytes(limit) => {
                waiting().map(|&(.., size)| u64::from(size)).sum::<u64>() + u64::from(size) <= limit
            }
            Limit::Time(limit) => start - now <= limit,
        };
        if fits || start == now {
            accepted.push((number, start, size));
            free_at = start + u64::from(size) * 8;
        }
    }
    accepted.into_iter().map(|(number, ..)| number).collect()
}

proptest! {
    #[test]
    fn the_queue_drops_what_a_plain_reference_drops(
        limit in prop_oneof![
            (1_u32..10).prop_map(Limit::Packets),
            (1_u64..10_000).prop_map(Limit::Bytes),
            (1_u64..80_000).prop_map(Limit::Time),
        ],
        // Gaps around one packet's time, so that the queue fills and empties.
        gaps in prop::collection::vec((0_u64..12_000, 1_u32..=1500), 1..300),
    ) {
        let rate = Rate::Constant(1_000_000_000);
        let (mut network, route) = one_link(LinkConfig { rate, limit, ..LinkConfig::default() });
        let mut now = 0;
        let packets: Vec<_> = gaps.iter().map(|&(gap, size)| { now += gap; (now, size) }).collect();
        let sends: Vec<_> = packets.iter().map(|&(now, size)| (now, route, size)).collect();
        let delivered: Vec<_> = run(&mut network, &sends).iter().map(|d| d.payload).collect();
        prop_assert_eq!(delivered, reference(limit, &packets));
    }
}
