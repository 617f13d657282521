//! No packet is lost without being counted, and none is invented.

use std::sync::Arc;

use narrows_net::{
    Limit, LinkConfig, LinkId, Loss, MILLISECOND, Network, Rate, RouteId, SECOND, Trace,
};
use proptest::prelude::*;

use crate::{Send, one_link, sized};

fn any_rate() -> impl Strategy<Value = Rate> {
    let trace = Arc::new(Trace::parse(b"0\n3\n3\n4\n9\n", "test").unwrap());
    prop_oneof![
        Just(Rate::Infinite),
        (100_000_u64..1_000_000_000).prop_map(Rate::Constant),
        Just(Rate::Trace(trace)),
    ]
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1_u32..20).prop_map(Limit::Packets),
        (1_u64..20_000).prop_map(Limit::Bytes),
        (1..20 * MILLISECOND).prop_map(Limit::Time),
    ]
}

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let delay = 0..10 * MILLISECOND;
    let jitter = prop_oneof![Just(0), 0..5 * MILLISECOND];
    let loss = prop_oneof![Just(Loss::None), (0.0..=1.0).prop_map(Loss::Random)];
    (any_rate(), delay, jitter, loss, any_limit(), 500_u32..3000).prop_map(
        |(rate, delay, jitter, loss, limit, mtu)| LinkConfig {
            name: "any".into(),
            rate,
            delay,
            jitter,
            loss,
            limit,
            mtu,
        },
    )
}

/// A few links, routes over them that may cross a link twice, and packets of all sizes.
pub fn any_network() -> impl Strategy<Value = (Network<usize>, Vec<Send>)> {
    let links = prop::collection::vec(any_link(), 1..6);
    let routes =
        prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..5), 1..5);
    let sends =
        prop::collection::vec((0..SECOND / 10, any::<prop::sample::Index>(), 1_u32..3000), 0..200);
    (any::<u64>(), links, routes, sends).prop_map(|(seed, links, routes, mut sends)| {
        let mut network = Network::new(seed);
        let count = links.len();
        for link in links {
            network.add_link(link).unwrap();
        }
        for route in &routes {
            let links: Vec<_> = route.iter().map(|i| LinkId(i.index(count) as u32)).collect();
            network.add_route(&links).unwrap();
        }
        sends.sort_by_key(|&(time, ..)| time);
        let route = |index: prop::sample::Index| RouteId(index.index(routes.len()) as u32);
        let sends = sends.into_iter().map(|(time, i, size)| (time, route(i), size)).collect();
        (network, sends)
    })
}

proptest! {
    #[test]
    fn every_packet_is_sent_dropped_or_still_there(
        (mut network, sends) in any_network(),
        reset_at in 0..SECOND / 10,
    ) {
        let mut delivered = 0;
        let mut reset = false;
        for (number, &(now, route, size)) in sends.iter().enumerate() {
            while network.advance(now).is_some() {
                delivered += 1;
                prop_assert!(network.is_conserved());
            }
            network.enqueue(now, route, sized(size), number);
            if now >= reset_at && !reset {
                reset = true;
                network.reset_counters();
            }
            prop_assert!(network.is_conserved());
        }
        while network.advance(u64::MAX).is_some() {
            delivered += 1;
        }
        prop_assert!(network.is_conserved());
        prop_assert_eq!(network.packets(), 0);
        if !reset {
            let dropped: u64 = network.links().map(|l| network.counters(l).dropped()).sum();
            prop_assert_eq!(delivered + dropped, sends.len() as u64);
        }
    }
}

#[test]
fn the_end_of_a_warm_up_forgets_counts_but_no_packets() {
    let (mut network, route) =
        one_link(LinkConfig { rate: Rate::Constant(12_000_000), ..LinkConfig::default() });
    let link = LinkId(0);
    for _ in 0..3 {
        network.enqueue(0, route, sized(1500), ());
    }
    assert!(network.advance(MILLISECOND).is_some());
    network.reset_counters();
    assert_eq!(network.counters(link), &Default::default());
    assert_eq!(network.packets_on(link), 2);
    network.enqueue(MILLISECOND, route, sized(1500), ());
    while network.advance(SECOND).is_some() {}
    let counters = network.counters(link);
    // The two that were underway and the new one, which waited 2 ms behind them.
    assert_eq!((counters.arrived, counters.sent, counters.bytes_sent), (1, 3, 4500));
    assert_eq!(counters.queue_delay.max(), 2 * MILLISECOND);
    assert!(network.is_conserved());
}

#[test]
fn a_packet_larger_than_the_mtu_of_a_later_link_is_dropped_there() {
    let mut network = Network::new(1);
    let wide = network.add_link(LinkConfig { mtu: 9000, ..LinkConfig::default() }).unwrap();
    let narrow = network.add_link(LinkConfig { mtu: 1400, ..LinkConfig::default() }).unwrap();
    let route = network.add_route(&[wide, narrow]).unwrap();
    assert_eq!(network.route_mtu(route), 1400);
    network.enqueue(0, route, sized(1400), "fits");
    network.enqueue(0, route, sized(1401), "does not");
    assert_eq!(network.advance(0).map(|d| d.payload), Some("fits"));
    assert_eq!(network.advance(SECOND), None);
    assert_eq!((network.counters(wide).sent, network.counters(wide).dropped_mtu), (2, 0));
    assert_eq!((network.counters(narrow).sent, network.counters(narrow).dropped_mtu), (1, 1));
}
