//! Random loss has its probability and each link its own randomness.

use narrows_net::{LinkConfig, LinkId, MILLISECOND, Network};

use crate::{one_link, run};

#[test]
fn packets_are_lost_with_the_given_probability() {
    let (mut network, route) = one_link(LinkConfig { loss: 0.01, ..LinkConfig::default() });
    run(&mut network, &vec![(0, route, 1500); 1_000_000]);
    let lost = network.counters(LinkId(0)).dropped_random;
    // Binomial with mean 10,000 and deviation 99.5.
    assert!(lost.abs_diff(10_000) < 400, "{lost}");
}

#[test]
fn loss_0_loses_nothing_and_loss_1_everything() {
    for (loss, lost) in [(0.0, 0), (1.0, 10_000)] {
        let (mut network, route) = one_link(LinkConfig { loss, ..LinkConfig::default() });
        run(&mut network, &vec![(0, route, 1500); 10_000]);
        assert_eq!(network.counters(LinkId(0)).dropped_random, lost);
    }
}

/// Numbers of the packets that survive the first and those that survive the second of two links
/// with 10 % loss and the given jitter. Both are sent the same packets.
fn survivors(seed: u64, jitter_of_first: u64) -> (Vec<usize>, Vec<usize>) {
    let mut network = Network::new(seed);
    let mut route = |jitter| {
        let link = LinkConfig { loss: 0.1, jitter, ..LinkConfig::default() };
        let link = network.add_link(link).unwrap();
        network.add_route(&[link]).unwrap()
    };
    let (first, second) = (route(jitter_of_first), route(0));
    let sends: Vec<_> = (0..1000).flat_map(|_| [(0, first, 1500), (0, second, 1500)]).collect();
    let deliveries = run(&mut network, &sends);
    let numbers =
        |route| deliveries.iter().filter(|d| d.route == route).map(|d| d.payload / 2).collect();
    (numbers(first), numbers(second))
}

#[test]
fn links_draw_from_streams_of_their_own() {
    let (first, second) = survivors(1, 0);
    assert_ne!(first, second, "two links lose the same packets");
    assert_eq!(survivors(1, MILLISECOND).1, second, "a link's jitter changed another's losses");
    assert_eq!(survivors(1, 0), (first.clone(), second));
    assert_ne!(survivors(2, 0).0, first);
}
