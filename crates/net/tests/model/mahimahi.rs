//! A trace link delivers when Mahimahi's rule says.

use std::collections::VecDeque;
use std::sync::Arc;

use narrows_net::{LinkConfig, MILLISECOND, Nanos, Rate, SECOND, Trace};
use proptest::prelude::*;

use crate::{one_link, run};

fn trace_link(times: &[u64]) -> LinkConfig {
    let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
    let trace = Arc::new(Trace::parse(text.as_bytes(), "test").unwrap());
    LinkConfig { rate: Rate::Trace(trace), mtu: 10_000, ..LinkConfig::default() }
}

/// Delivery times in ms of packets sent at (ms, size) over a trace.
fn delivered(times: &[u64], sends: &[(u64, u32)]) -> Vec<u64> {
    let (mut network, route) = one_link(trace_link(times));
    let sends: Vec<_> = sends.iter().map(|&(ms, size)| (ms * MILLISECOND, route, size)).collect();
    run(&mut network, &sends).iter().map(|d| d.time / MILLISECOND).collect()
}

#[test]
fn the_trace_repeats_with_its_last_timestamp_as_period() {
    assert_eq!(delivered(&[3, 10], &[(0, 1500); 5]), [3, 10, 13, 20, 23]);
    // With an opportunity at 0 there are two at each multiple of the period, after the start.
    assert_eq!(delivered(&[0, 10], &[(0, 1500); 3]), [10, 10, 20]);
}

#[test]
fn an_opportunity_carries_1504_bytes_of_one_packet_or_of_several() {
    assert_eq!(delivered(&[1], &[(0, 1504); 2]), [1, 2]);
    assert_eq!(delivered(&[1], &[(0, 1505), (0, 1503)]), [2, 2]);
    assert_eq!(delivered(&[1], &[(0, 1505), (0, 1504)]), [2, 3]);
    assert_eq!(delivered(&[1], &[(0, 752), (0, 752), (0, 1)]), [1, 1, 2]);
    assert_eq!(delivered(&[1], &[(0, 5000)]), [4]);
}

#[test]
fn an_opportunity_serves_who_came_before_it_and_the_rest_is_lost() {
    assert_eq!(delivered(&[5], &[(5, 100)]), [10]);
    // 1404 bytes at 5 ms are not kept for the second packet.
    assert_eq!(delivered(&[5], &[(0, 100), (5, 100)]), [5, 10]);
    // A long idle time is skipped without using what it offered.
    assert_eq!(delivered(&[2, 5], &[(0, 100), (1_000_001, 3000)]), [2, 1_000_005]);
    assert_eq!(delivered(&[2, 5], &[(1_000_000, 1504), (1_000_000, 1504)]), [1_000_002, 1_000_005]);
}

/// Mahimahi's `LinkQueue::rationalize`, opportunity by opportunity from the beginning of time.
fn reference(times: &[u64], sends: &[(Nanos, u32)]) -> Vec<Nanos> {
    let mut upcoming: VecDeque<_> = sends.iter().copied().collect();
    let mut queue: VecDeque<u32> = VecDeque::new();
    let mut departures = Vec::new();
    for period in 0.. {
        for ms in times {
            let time = (period * times[times.len() - 1] + ms) * MILLISECOND;
            while let Some(&(_, size)) = upcoming.front().filter(|&&(sent, _)| sent < time) {
                upcoming.pop_front();
                queue.push_back(size);
            }
            let mut budget = Trace::OPPORTUNITY;
            while let Some(need) = queue.front_mut() {
                let carried = budget.min(*need);
                *need -= carried;
                budget -= carried;
                if *need > 0 {
                    break;
                }
                queue.pop_front();
                departures.push(time);
            }
            if departures.len() == sends.len() {
                return departures;
            }
        }
    }
    departures
}

proptest! {
    #[test]
    fn every_departure_is_that_of_the_reference(
        gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..8], 1..20),
        sends in prop::collection::vec((0..SECOND / 5, any::<bool>(), 1_u32..4000), 1..100),
    ) {
        let mut last = 0;
        let mut times: Vec<u64> = gaps.iter().map(|gap| { last += gap; last }).collect();
        if last == 0 {
            times.push(1);
        }
        // Half of the packets enter at whole milliseconds, where an opportunity may be.
        let mut packets: Vec<_> = sends
            .iter()
            .map(|&(t, whole, size)| (if whole { t - t % MILLISECOND } else { t }, size))
            .collect();
        packets.sort_unstable();
        let (mut network, route) = one_link(trace_link(&times));
        let sends: Vec<_> = packets.iter().map(|&(now, size)| (now, route, size)).collect();
        let departures: Vec<_> = run(&mut network, &sends).iter().map(|d| d.time).collect();
        prop_assert_eq!(departures, reference(&times, &packets));
    }

    /// Kept busy, a link whose rates were recorded carries them, and at no time more.
    #[test]
    fn recorded_rates_are_never_exceeded(
        steps in prop::collection::vec((1_u64..400, prop_oneof![Just(0), 1_u64..40_000_000]), 1..8),
    ) {
        let steps: Vec<_> = steps.iter().map(|&(ms, rate)| (ms * MILLISECOND, rate)).collect();
        let Ok(trace) = Trace::of_rates(steps.iter().copied(), "rates") else { return Ok(()) };
        let period = trace.period();
        prop_assert_eq!(period, steps.iter().map(|step| step.0).sum::<Nanos>());
        let carried = |until: Nanos| {
            let mut bits = 0.0;
            let (mut from, mut steps) = (0, steps.iter().cycle());
            while from < until {
                let &(time, rate) = steps.next().unwrap();
                bits += rate as f64 * time.min(until - from) as f64 / SECOND as f64;
                from += time;
            }
            bits
        };
        let rate = Rate::Trace(Arc::new(trace.clone()));
        let (mut network, route) = one_link(LinkConfig { rate, ..LinkConfig::default() });
        let sends = vec![(0, route, Trace::OPPORTUNITY); 3 * trace.opportunities()];
        let mut bits = 0.0;
        for (index, arrival) in run(&mut network, &sends).iter().enumerate() {
            bits += f64::from(8 * Trace::OPPORTUNITY);
            let at = arrival.time;
            prop_assert!(bits <= carried(at) + 1.0, "{bits} of {} at {at}", carried(at));
            // What is late waits for the end of its millisecond, or was too little in a period before.
            let (least, lost) = (carried(at.saturating_sub(MILLISECOND)), (1 + at / period) as f64);
            prop_assert!(bits >= least - lost * f64::from(8 * Trace::OPPORTUNITY), "{index}");
        }
    }
}
