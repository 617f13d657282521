//! Packets arrive at their exact times and in order, however the caller advances.

use std::sync::Arc;

use narrows_net::{
    Delays, Delivery, Distribution, LinkConfig, MILLISECOND, Nanos, Network, Rate, Variation,
};
use proptest::prelude::*;

use crate::conservation::{act, any_story};
use crate::{one_link, run};

#[test]
fn a_packet_takes_transmission_and_propagation_on_each_link() {
    let mut network = Network::new(1);
    let mut link = |rate, delay| {
        let config = LinkConfig { rate: Rate::Constant(rate), delay, ..LinkConfig::default() };
        network.add_link(config).unwrap()
    };
    // 1500 bytes take 1 ms on the first link and 6 ms on the second.
    let links = [link(12_000_000, 5 * MILLISECOND), link(2_000_000, 30 * MILLISECOND)];
    let route = network.add_route(&links).unwrap();
    let times: Vec<_> = run(&mut network, &[(0, route, 1500), (0, route, 1500)])
        .iter()
        .map(|d| d.time / MILLISECOND)
        .collect();
    // The second packet comes 1 ms later and waits 5 ms.
    assert_eq!(times, [42, 48]);
    let waits = &network.counters(links[1]).queue_delay;
    assert_eq!((waits.count(), waits.mean()), (2, 5 * MILLISECOND / 2));
}

#[test]
fn jitter_is_uniform_up_to_its_bound() {
    let jitter = 10 * MILLISECOND;
    let delay = 50 * MILLISECOND;
    let (mut network, route) = one_link(LinkConfig { delay, jitter, ..LinkConfig::default() });
    // Far enough apart that none has to wait for its predecessor.
    let gap = 20 * MILLISECOND;
    let sends: Vec<_> = (0..10_000).map(|n| (n * gap, route, 1500)).collect();
    let mut extra: Vec<Nanos> =
        run(&mut network, &sends).iter().map(|d| d.time - d.payload as u64 * gap - delay).collect();
    extra.sort_unstable();
    assert!(extra[9_999] <= jitter);
    for decile in 1..10 {
        // The deviation of a decile of 10,000 uniform draws is at most 0.5 % of the range.
        let expected = decile * jitter / 10;
        assert!(extra[decile as usize * 1000].abs_diff(expected) < jitter / 40, "{decile}");
    }
}

/// Delays of 10,000 packets that need not wait for each other, ms, in the order of sending.
fn drawn(max: Nanos, distribution: Distribution, correlation: f64) -> Vec<f64> {
    let variation = Variation { distribution, correlation };
    let config = LinkConfig { jitter: max, variation, ..LinkConfig::default() };
    let (mut network, route) = one_link(config);
    let sends: Vec<_> = (0..10_000).map(|n| (n * 2 * max, route, 1500)).collect();
    let arrived = run(&mut network, &sends);
    let ms =
        |d: &Delivery<usize>| (d.time - d.payload as u64 * 2 * max) as f64 / MILLISECOND as f64;
    arrived.iter().map(ms).collect()
}

fn quantiles(mut of: Vec<f64>) -> [f64; 3] {
    of.sort_by(f64::total_cmp);
    [1_000, 5_000, 9_900].map(|place: usize| of[place])
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// Of neighbours.
fn correlation(of: &[f64]) -> f64 {
    let mean = mean(of);
    let product = |(a, b): (&f64, &f64)| (a - mean) * (b - mean);
    of.iter().zip(&of[1..]).map(product).sum::<f64>()
        / of.iter().map(|a| product((a, a))).sum::<f64>()
}

#[test]
fn jitter_has_its_distribution_also_if_neighbours_are_alike() {
    const MS: Nanos = MILLISECOND;
    let normal = Distribution::Normal { mean: 10 * MS, deviation: 2 * MS };
    let pareto = Distribution::Pareto { mean: 10 * MS, shape: 3.0 };
    // Quantiles at 10, 50 and 99 %; of a Lomax distribution 20 ((1 - q)^(-1/3) - 1).
    let expected = [
        (Distribution::Uniform, [10.0, 50.0, 99.0]),
        (normal, [7.437, 10.0, 14.653]),
        (pareto, [0.715, 5.198, 72.832]),
    ];
    for (distribution, expected) in expected {
        for rho in [0.0, 0.9] {
            let delays = drawn(100 * MS, distribution.clone(), rho);
            assert!(delays.iter().all(|delay| (0.0..=100.0).contains(delay)));
            for (found, expected) in quantiles(delays.clone()).into_iter().zip(expected) {
                // Of 10,000 draws, of which one in twenty is as good as alone at 0.9.
                let near = (found / expected - 1.0).abs() < if rho == 0.0 { 0.1 } else { 0.35 };
                assert!(near, "{distribution:?} {rho}: {found}, not {expected}");
            }
            if matches!(distribution, Distribution::Normal { .. }) {
                let found = correlation(&delays);
                assert!((found - rho).abs() < 0.03, "{found}, not {rho}");
            }
        }
    }
    // What is beyond the bounds is at them.
    let cut = drawn(MS, Distribution::Normal { mean: MS / 2, deviation: MS }, 0.0);
    assert!([0.0, 1.0].iter().all(|end| cut.iter().filter(|delay| *delay == end).count() > 2_500));
}

#[test]
fn recorded_delays_are_replayed_in_time_and_keep_the_order() {
    const MS: Nanos = MILLISECOND;
    // In 100 ms up by 30 ms and in 10 ms down again.
    let points = vec![(5 * MS, 20 * MS), (105 * MS, 50 * MS), (115 * MS, 20 * MS)];
    let delays = Arc::new(Delays::new(points, "d").unwrap());
    let (jitter, distribution) = (delays.max(), Distribution::Recorded(delays));
    let variation = Variation { distribution, correlation: 0.0 };
    let config = LinkConfig { delay: 7 * MS, jitter, variation, ..LinkConfig::default() };
    let (mut network, route) = one_link(config);
    let sends: Vec<_> = (0..220).map(|n| (n * MS, route, 1500)).collect();
    let mut last = 0;
    for (number, packet) in run(&mut network, &sends).iter().enumerate() {
        assert_eq!(packet.payload, number);
        let sent = number as u64 * MS;
        let late = match sent % (110 * MS) {
            rising if rising <= 100 * MS => rising * 3 / 10,
            falling => 30 * MS - (falling - 100 * MS) * 3,
        };
        // On the way down each would come before the one before it, and comes with it.
        last = last.max(sent + 7 * MS + late);
        assert!(packet.time.abs_diff(last) <= 1, "{number}: {}, not {last}", packet.time);
    }
}

#[test]
fn of_two_arrivals_at_the_same_time_that_on_the_lower_link_is_first() {
    let mut network = Network::new(1);
    let mut route = || {
        let link = network.add_link(LinkConfig { delay: 5, ..LinkConfig::default() }).unwrap();
        network.add_route(&[link]).unwrap()
    };
    let routes = [route(), route(), route()];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let sends = order.map(|i| (0, routes[i], 1500));
        let delivered: Vec<_> = run(&mut network.clone(), &sends).iter().map(|d| d.route).collect();
        assert_eq!(delivered, routes);
    }
}

proptest! {
    #[test]
    fn jitter_keeps_the_order(
        jitter in 1..10 * MILLISECOND,
        gaps in prop::collection::vec(0..2 * MILLISECOND, 1..200),
    ) {
        let (mut network, route) = one_link(LinkConfig { jitter, ..LinkConfig::default() });
        let mut now = 0;
        let sends: Vec<_> = gaps.iter().map(|gap| { now += gap; (now, route, 1500) }).collect();
        let deliveries = run(&mut network, &sends);
        prop_assert!(deliveries.iter().map(|d| d.payload).eq(0..sends.len()));
        prop_assert!(deliveries.is_sorted_by_key(|d| d.time));
        for delivery in &deliveries {
            let sent = sends[delivery.payload].0;
            prop_assert!((sent..=sent + jitter).contains(&delivery.time));
        }
    }

    #[test]
    fn a_late_caller_gets_the_same_deliveries((network, story) in any_story()) {
        // Advances only when it has something to do.
        let mut late = Vec::new();
        let mut sleepy = network.clone();
        for (number, (now, what)) in story.iter().enumerate() {
            late.extend(std::iter::from_fn(|| sleepy.advance(*now)));
            act(&mut sleepy, *now, number, what);
        }
        late.extend(std::iter::from_fn(|| sleepy.advance(Nanos::MAX)));

        // Wakes up for every arrival at every link.
        let mut network = network;
        let mut timely = Vec::new();
        for (number, (now, what)) in story.iter().enumerate() {
            while let Some(next) = network.next_time().filter(|next| next <= now) {
                timely.extend(network.advance(next));
            }
            act(&mut network, *now, number, what);
        }
        while let Some(next) = network.next_time() {
            timely.extend(network.advance(next));
        }
        prop_assert!(timely.is_sorted_by_key(|d| d.time));
        prop_assert_eq!(late, timely);
    }
}
