//! Packets arrive at their exact times and in order, however the caller advances.

use narrows_net::{LinkConfig, MILLISECOND, Nanos, Network, Rate};
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
