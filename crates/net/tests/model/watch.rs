//! An observer of a link sees what reaches its far end, and no more.

use narrows_net::{Ecn, Header, Limit, LinkConfig, MILLISECOND, Network, Rate, SECOND, Seen};

#[test]
fn a_watched_link_shows_what_arrived_there_also_what_is_lost_later() {
    let mut network = Network::new(1);
    let mut link = |limit| {
        let rate = Rate::Constant(12_000_000);
        network.add_link(LinkConfig { rate, limit, ..LinkConfig::default() }).unwrap()
    };
    let (first, second) = (link(Limit::Packets(1)), link(Limit::Unlimited));
    let route = network.add_route(&[first, second]).unwrap();
    network.watch(first);
    for (ecn, payload) in [(Ecn::NotEct, "a"), (Ecn::Ce, "b"), (Ecn::NotEct, "dropped")] {
        network.enqueue(0, route, Header { size: 1500, flow: 0, ecn }, payload);
    }
    assert_eq!(network.drain_seen().count(), 0);
    let delivered: Vec<_> = std::iter::from_fn(|| network.advance(SECOND)).collect();
    let seen: Vec<_> = network.drain_seen().collect();
    let at = |time, ce, payload| Seen { time, link: first, size: 1500, ce, payload };
    assert_eq!(seen, [at(MILLISECOND, false, "a"), at(2 * MILLISECOND, true, "b")]);
    assert_eq!(network.drain_seen().count(), 0);
    // The mark goes on to the end of the route.
    assert_eq!(delivered.iter().map(|d| d.ce).collect::<Vec<_>>(), [false, true]);
}
