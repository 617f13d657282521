//! Policers, reordering, Wi-Fi-like access, and links that change during the run.

use std::sync::Arc;

use narrows_net::{
    Delivery, Discipline, FqCoDel, Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Network, Policer,
    Rate, Reorder, RouteId, SECOND, Trace, Wifi,
};
use proptest::prelude::*;

use crate::conservation::any_discipline;
use crate::{one_link, run, sized};

const LINK: LinkId = LinkId(0);
const US: Nanos = MILLISECOND / 1000;

/// A link on which 1500 bytes take a millisecond.
fn link() -> LinkConfig {
    LinkConfig { rate: Rate::Constant(12_000_000), ..LinkConfig::default() }
}

/// What arrives until `now`.
fn arrivals<P: Copy>(network: &mut Network<P>, now: Nanos) -> Vec<Delivery<P>> {
    std::iter::from_fn(|| network.advance(now)).collect()
}

fn milliseconds<P: Copy>(network: &mut Network<P>) -> Vec<Nanos> {
    arrivals(network, Nanos::MAX).iter().map(|d| d.time / MILLISECOND).collect()
}

proptest! {
    #[test]
    fn a_policer_never_passes_more_than_its_rate_and_burst(
        rate in 1_000_000_u64..100_000_000,
        burst in 1500_u64..20_000,
        gaps in prop::collection::vec((0..MILLISECOND, 1_u32..=1500), 1..200),
    ) {
        let policer = Some(Policer { rate, burst });
        let (mut network, route) = one_link(LinkConfig { policer, ..LinkConfig::default() });
        let mut now = 0;
        let sends: Vec<_> = gaps.iter().map(|&(gap, size)| { now += gap; (now, route, size) }).collect();
        let passed = run(&mut network, &sends);
        for first in 0..passed.len() {
            let mut bytes = 0;
            for later in &passed[first..] {
                bytes += u64::from(later.size);
                let time = later.time - passed[first].time;
                let most = u128::from(rate) * u128::from(time) / u128::from(8 * SECOND);
                // One more for what division cuts off.
                prop_assert!(u128::from(bytes) <= most + u128::from(burst) + 1);
            }
        }
        prop_assert_eq!(
            network.counters(LINK).dropped_policer as usize,
            sends.len() - passed.len()
        );
    }

    /// Whatever the queue does, in any window between arrivals no more comes than the rate allows.
    #[test]
    fn no_discipline_exceeds_the_rate(
        discipline in any_discipline(),
        rate in 1_000_000_u64..1_000_000_000,
        load in 0.5..3.0,
        sizes in prop::collection::vec((1_u32..=1500, 0.0..2.0), 1..150),
    ) {
        let rate_config = Rate::Constant(rate);
        let ecn = matches!(discipline, Discipline::DualPi2(_));
        let config = LinkConfig { rate: rate_config, discipline, ecn, ..LinkConfig::default() };
        let (mut network, route) = one_link(config);
        let mut now = 0;
        let sends: Vec<_> = sizes.iter().map(|&(size, gap)| {
            now += (gap * 750.0 * 8e9 / rate as f64 / load) as Nanos;
            (now, route, size)
        }).collect();
        let arrived = run(&mut network, &sends);
        for first in 0..arrived.len() {
            let mut bits = 0;
            for later in &arrived[first + 1..] {
                bits += u128::from(later.size) * 8;
                let window = u128::from(later.time - arrived[first].time) + 1;
                prop_assert!(bits * u128::from(SECOND) <= u128::from(rate) * window);
            }
        }
    }

    /// Holds keep the order and start nothing before their end, and after it the rate holds.
    #[test]
    fn a_hold_delays_and_never_hastens(
        gaps in prop::collection::vec((0_u64..20_000, 1_u32..=1500), 1..100),
        at in 0_u64..500_000,
        time in 0_u64..500_000,
    ) {
        let rate = Rate::Constant(8 * SECOND / 8);
        let (mut network, route) = one_link(LinkConfig { rate, ..LinkConfig::default() });
        let (mut now, mut free, mut held) = (0, 0, false);
        let (mut got, mut expected) = (Vec::new(), Vec::new());
        for &(gap, size) in &gaps {
            now += gap;
            if now > at && !held {
                got.extend(arrivals(&mut network, at));
                network.hold(at, LINK, at + time);
                held = true;
            }
            got.extend(arrivals(&mut network, now));
            network.enqueue(now, route, sized(size), ());
            let mut start = now.max(free);
            // What starts at the very time of the hold has begun, if it was there before.
            if start > at || (start == at && now > at) {
                start = start.max(at + time);
            }
            free = start + u64::from(size) * 8;
            expected.push(free);
        }
        if !held {
            got.extend(arrivals(&mut network, at));
            network.hold(at, LINK, at + time);
        }
        got.extend(arrivals(&mut network, Nanos::MAX));
        let times: Vec<_> = got.iter().map(|d| d.time).collect();
        prop_assert_eq!(times, expected);
    }

    /// A packet in transmission ends as it began, the others start at the new rate. Bytes take 8 or
    /// 32 ns.
    #[test]
    fn a_rate_holds_from_its_change_on(
        gaps in prop::collection::vec((0_u64..20_000, 1_u32..=1500), 1..100),
        at in 0_u64..500_000,
        slower in any::<bool>(),
        fair in any::<bool>(),
    ) {
        let (before, after) = if slower { (8, 32) } else { (32, 8) };
        let rate = |byte| Rate::Constant(8 * SECOND / byte);
        let discipline = FqCoDel { quantum: 1, ..FqCoDel::default() };
        let discipline =
            if fair { Discipline::FqCoDel(discipline) } else { Discipline::DropTail };
        let (mut network, route) =
            one_link(LinkConfig { rate: rate(before), discipline, ..LinkConfig::default() });
        let (mut now, mut free) = (0, 0);
        let (mut got, mut expected) = (Vec::new(), Vec::new());
        let mut changed = false;
        for &(gap, size) in &gaps {
            now += gap;
            if now > at && !changed {
                got.extend(arrivals(&mut network, at));
                network.set_rate(at, LINK, rate(after)).unwrap();
                changed = true;
            }
            got.extend(arrivals(&mut network, now));
            network.enqueue(now, route, sized(size), ());
            let start = now.max(free);
            free = start + u64::from(size) * if start > at || (start == at && now > at) { after } else { before };
            expected.push(free);
        }
        if !changed {
            got.extend(arrivals(&mut network, at.max(now)));
            network.set_rate(at.max(now), LINK, rate(before)).unwrap();
        }
        got.extend(arrivals(&mut network, Nanos::MAX));
        let times: Vec<_> = got.iter().map(|d| d.time).collect();
        if changed {
            prop_assert_eq!(times, expected);
        } else {
            prop_assert_eq!(times.len(), expected.len());
        }
    }
}

#[test]
fn a_share_of_the_packets_is_overtaken() {
    let reorder = Some(Reorder { share: 0.2, delay: 5 * MILLISECOND });
    let delay = 10 * MILLISECOND;
    let config = LinkConfig { reorder, delay, ..link() };
    let (mut network, route) = one_link(config);
    let gap = 2 * MILLISECOND;
    let sends: Vec<_> = (0..50_000).map(|n| (n * gap, route, 1500)).collect();
    let arrived = run(&mut network, &sends);
    assert_eq!(arrived.len(), sends.len());
    assert!(arrived.is_sorted_by_key(|d| d.time));
    let late = |d: &Delivery<usize>| d.time - d.payload as u64 * gap - delay - MILLISECOND;
    assert!(arrived.iter().all(|d| [0, 5 * MILLISECOND].contains(&late(d))));
    let (detours, direct): (Vec<_>, Vec<_>) = arrived.iter().partition(|d| late(d) > 0);
    // Binomial with deviation 89.
    assert!(detours.len().abs_diff(10_000) < 360, "{}", detours.len());
    assert!(direct.is_sorted_by_key(|d| d.payload));
    // Those sent 2 and 4 ms later come first, unless they take the detour too.
    assert!(!arrived.is_sorted_by_key(|d| d.payload));
}

/// The detour adds to the time of the others: jitter, or a delay that shrinks, lets no packet
/// overtake one before it that was not sent around.
#[test]
fn a_detour_is_never_the_shorter_way() {
    // All take the detour, or it takes no time: then nothing is overtaken.
    for (share, detour) in [(1.0, 5 * MILLISECOND), (0.5, 0)] {
        let reorder = Some(Reorder { share, delay: detour });
        let config = LinkConfig { reorder, jitter: 10 * MILLISECOND, ..link() };
        let (mut network, route) = one_link(config);
        let arrived = run(&mut network, &vec![(0, route, 1500); 1000]);
        assert!(arrived.is_sorted_by_key(|d| d.payload));

        let (mut network, _) =
            four_packets(LinkConfig { reorder, delay: 20 * MILLISECOND, ..link() });
        assert_eq!(arrivals(&mut network, MILLISECOND + 1), []);
        network.set_delay(MILLISECOND + 1, LINK, 0).unwrap();
        let added = if share == 1.0 { 5 } else { 0 };
        assert_eq!(milliseconds(&mut network), [21, 22, 22, 22].map(|time| time + added));
    }
}

/// Overhead 100 us, no contention, 1500 bytes in 120 us.
fn wifi() -> LinkConfig {
    let wifi = Wifi { packets: 8, time: MILLISECOND, overhead: 100 * US, contention: 0 };
    LinkConfig { rate: Rate::Constant(100_000_000), wifi: Some(wifi), ..LinkConfig::default() }
}

/// The first packet finds the channel free and goes alone; meanwhile the others gather.
#[test]
fn wi_fi_sends_what_waits_together() {
    let (mut network, route) = one_link(wifi());
    (0..20).for_each(|number| network.enqueue(0, route, sized(1500), number));
    let ends: Vec<_> =
        arrivals(&mut network, SECOND).iter().map(|d| (d.payload, d.time / US)).collect();
    // 220; then eight take 100 + 960 us, twice, and the last three 460 us.
    let expected: Vec<_> = (0..20)
        .map(|number| (number, [220, 1280, 2340, 2800][(number as usize).div_ceil(8)]))
        .collect();
    assert_eq!(ends, expected);
    assert_eq!(network.counters(LINK).queue_delay.max(), 2340 * US);
}

/// In 750 us there is room for 6 packets of 120 us.
#[test]
fn a_wi_fi_aggregate_is_limited_in_time() {
    let wifi = Wifi { time: 750 * US, ..wifi().wifi.unwrap() };
    let (mut network, route) = one_link(LinkConfig { wifi: Some(wifi), ..self::wifi() });
    (0..8).for_each(|_| network.enqueue(0, route, sized(1500), ()));
    let ends: Vec<_> = arrivals(&mut network, SECOND).iter().map(|d| d.time / US).collect();
    assert_eq!(ends, [220, 1040, 1040, 1040, 1040, 1040, 1040, 1260]);
}

/// What an observer sees is as of the time asked for, whatever the link has made up for by then.
#[test]
fn an_observer_sees_what_is_due() {
    for discipline in [Discipline::DropTail, Discipline::FqCoDel(FqCoDel::default())] {
        let (mut network, _) = four_packets(LinkConfig { discipline, delay: SECOND, ..link() });
        // A managed link from the start, or from here on.
        network.set_up(0, LINK, true);
        for (us, packets) in [(0, 3), (999, 3), (1000, 2), (1999, 2), (2000, 1), (3000, 0)] {
            assert_eq!(network.queue_packets(LINK, us * US), packets, "at {us} us");
            assert_eq!(network.queue_bytes(LINK, us * US), packets as u64 * 1500);
            assert_eq!(network.queue_delay(LINK, us * US), 4 * MILLISECOND - us * US);
        }
    }
}

/// Access is uniform in 0..=contention, so a saturated link carries N packets per overhead, mean
/// access and N transmissions.
#[test]
fn wi_fi_contends_for_the_channel() {
    let contention = 1000 * US;
    let wifi = Wifi { contention, ..wifi().wifi.unwrap() };
    let config = LinkConfig { wifi: Some(wifi), ..self::wifi() };
    let (mut network, route) = one_link(config.clone());
    let gap = 2 * MILLISECOND;
    let sends: Vec<_> = (0..10_000).map(|n| (n * gap, route, 1500)).collect();
    let mut access: Vec<_> = run(&mut network, &sends)
        .iter()
        .map(|d| d.time - d.payload as u64 * gap - 220 * US)
        .collect();
    access.sort_unstable();
    assert!(access[9_999] <= contention);
    for decile in 1..10 {
        let expected = decile * contention / 10;
        assert!(access[decile as usize * 1000].abs_diff(expected) < contention / 40, "{decile}");
    }
    assert_eq!(network.counters(LINK).queue_delay.max(), access[9_999]);

    // Whoever waits for the channel is in the queue, and has to fit there.
    let (mut network, route) = one_link(LinkConfig { limit: Limit::Bytes(1000), ..config.clone() });
    network.enqueue(0, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 1);

    let (mut network, route) = one_link(config);
    (0..80_000).for_each(|_| network.enqueue(0, route, sized(1500), ()));
    let end = arrivals(&mut network, Nanos::MAX).last().map(|d| d.time as f64).unwrap();
    let expected = 10_000.0 * ((100 + 500 + 8 * 120) * US) as f64;
    assert!((end / expected - 1.0).abs() < 0.01, "{end} instead of {expected}");
}

/// One packet in transmission, three wait.
fn four_packets(config: LinkConfig) -> (Network<()>, RouteId) {
    let (mut network, route) = one_link(config);
    (0..4).for_each(|_| network.enqueue(0, route, sized(1500), ()));
    (network, route)
}

#[test]
fn what_waits_is_served_at_the_new_rate() {
    let (mut network, route) = four_packets(link());
    network.set_rate(MILLISECOND / 2, LINK, Rate::Constant(6_000_000)).unwrap();
    network.enqueue(MILLISECOND / 2, route, sized(1500), ());
    assert_eq!(network.queue_packets(LINK, MILLISECOND / 2), 4);
    assert_eq!(network.queue_delay(LINK, MILLISECOND / 2), 8 * MILLISECOND + MILLISECOND / 2);
    assert_eq!(milliseconds(&mut network), [1, 3, 5, 7, 9]);
    assert!(matches!(network.config(LINK).rate, Rate::Constant(6_000_000)));

    // Jitter, which is of the propagation, keeps nobody from starting.
    let (mut network, _) = four_packets(LinkConfig { jitter: 20 * MILLISECOND, ..link() });
    network.set_rate(MILLISECOND / 2, LINK, Rate::Constant(6_000_000)).unwrap();
    assert_eq!(network.queue_delay(LINK, MILLISECOND / 2), 6 * MILLISECOND + MILLISECOND / 2);

    // At an infinite rate all of them follow the one in transmission at once.
    let (mut network, _) = four_packets(link());
    network.set_rate(MILLISECOND / 2, LINK, Rate::Infinite).unwrap();
    assert_eq!(milliseconds(&mut network), [1; 4]);

    // A trace is read at the time of the run, from when the packet in transmission has ended.
    let (mut network, _) = four_packets(link());
    let trace = Arc::new(Trace::parse(b"1\n2\n10\n", "test").unwrap());
    network.set_rate(MILLISECOND / 2, LINK, Rate::Trace(trace)).unwrap();
    assert_eq!(milliseconds(&mut network), [1, 2, 10, 11]);
}

/// A trace that offers nothing for long is replaced: what waited for it starts at once.
#[test]
fn a_new_rate_ends_the_wait_for_a_trace() {
    let trace = Arc::new(Trace::parse(b"100\n", "test").unwrap());
    let (mut network, _) = four_packets(LinkConfig { rate: Rate::Trace(trace), ..link() });
    network.set_rate(10 * MILLISECOND, LINK, Rate::Constant(12_000_000)).unwrap();
    assert_eq!(milliseconds(&mut network), [11, 12, 13, 14]);
}

#[test]
fn a_rate_that_a_link_cannot_have_is_refused() {
    let (mut network, _) = one_link::<()>(wifi());
    let refused = network.set_rate(0, LINK, Rate::Infinite).unwrap_err().to_string();
    assert!(refused.contains("Wi-Fi"), "{refused}");
    assert!(network.set_rate(0, LINK, Rate::Constant(0)).is_err());
    assert!(network.set_delay(0, LINK, Nanos::MAX).is_err());
    assert!(matches!(network.config(LINK).rate, Rate::Constant(100_000_000)));
}

/// From 20 ms to 0 in the middle of four packets: the second may not overtake the first.
#[test]
fn a_new_delay_keeps_the_order() {
    let (mut network, _) = four_packets(LinkConfig { delay: 20 * MILLISECOND, ..link() });
    network.set_delay(MILLISECOND + 1, LINK, 0).unwrap();
    assert_eq!(milliseconds(&mut network), [21, 22, 22, 22]);
    let (mut network, _) = four_packets(link());
    assert_eq!(arrivals(&mut network, MILLISECOND + 1).len(), 1);
    network.set_delay(MILLISECOND + 1, LINK, 20 * MILLISECOND).unwrap();
    assert_eq!(milliseconds(&mut network), [2, 23, 24]);
    // What started before the change, unnoticed so far, propagates as it was then.
    let (mut network, _) = four_packets(LinkConfig { delay: 20 * MILLISECOND, ..link() });
    network.set_up(0, LINK, true);
    network.set_delay(2 * MILLISECOND + 1, LINK, 30 * MILLISECOND).unwrap();
    assert_eq!(milliseconds(&mut network), [21, 22, 23, 34]);
}

#[test]
fn a_link_that_is_down_loses_what_waits_and_what_comes() {
    for discipline in [Discipline::DropTail, Discipline::FqCoDel(FqCoDel::default())] {
        let config = LinkConfig { delay: 20 * MILLISECOND, discipline, ..link() };
        let (mut network, route) = four_packets(config);
        network.set_up(MILLISECOND + 1, LINK, false);
        assert_eq!(network.packets(), 2);
        network.enqueue(2 * MILLISECOND, route, sized(1500), ());
        // One propagates and one was in transmission.
        assert_eq!(milliseconds(&mut network), [21, 22]);
        assert_eq!(network.counters(LINK).dropped_down, 3);
        network.set_up(30 * MILLISECOND, LINK, true);
        network.enqueue(30 * MILLISECOND, route, sized(1500), ());
        assert_eq!(milliseconds(&mut network), [51]);
        assert_eq!((network.counters(LINK).dropped(), network.packets()), (3, 0));
    }
}

#[test]
fn a_link_that_holds_keeps_what_waits_and_what_comes() {
    for discipline in [Discipline::DropTail, Discipline::FqCoDel(FqCoDel::default())] {
        let config = LinkConfig { delay: 20 * MILLISECOND, discipline, ..link() };
        let (mut network, route) = four_packets(config);
        network.hold(MILLISECOND + 1, LINK, 10 * MILLISECOND);
        assert_eq!(network.packets(), 4);
        network.enqueue(2 * MILLISECOND, route, sized(1500), ());
        assert_eq!(network.queue_packets(LINK, 2 * MILLISECOND), 3);
        assert_eq!(network.queue_delay(LINK, 2 * MILLISECOND), 11 * MILLISECOND);
        // One propagates and one was in transmission.
        assert_eq!(milliseconds(&mut network), [21, 22, 31, 32, 33]);
        assert_eq!((network.counters(LINK).dropped(), network.packets()), (0, 0));
    }
    // An empty link holds what comes; a shorter hold, or a new rate, ends none; the queue is as long as it
    // is.
    let limit = Limit::Packets(2);
    let (mut network, route) = one_link(LinkConfig { limit, ..link() });
    network.hold(0, LINK, 10 * MILLISECOND);
    network.hold(MILLISECOND, LINK, 2 * MILLISECOND);
    network.set_rate(MILLISECOND, LINK, Rate::Constant(6_000_000)).unwrap();
    (0..3).for_each(|_| network.enqueue(MILLISECOND, route, sized(1500), ()));
    assert_eq!(milliseconds(&mut network), [12, 14]);
    assert_eq!(network.counters(LINK).dropped_queue, 1);
    // Of a trace, what it offers meanwhile is lost.
    let trace = Arc::new(Trace::parse(b"4\n", "test").unwrap());
    let (mut network, _) = four_packets(LinkConfig { rate: Rate::Trace(trace), ..link() });
    network.hold(3 * MILLISECOND, LINK, 14 * MILLISECOND);
    assert_eq!(milliseconds(&mut network), [16, 20, 24, 28]);
}

/// What the old rate let in stays, also beyond a limit in time; what comes meets the limit anew.
#[test]
fn a_limit_in_time_holds_at_the_new_rate() {
    let limit = Limit::Time(3 * MILLISECOND);
    let (mut network, route) = four_packets(LinkConfig { limit, ..link() });
    network.set_rate(0, LINK, Rate::Constant(1_200_000)).unwrap();
    network.enqueue(0, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_queue, 1);
    assert_eq!(milliseconds(&mut network), [1, 11, 21, 31]);
}
