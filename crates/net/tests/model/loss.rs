//! Random loss has its probability and each link its own randomness.

use narrows_net::{GilbertElliott, LinkConfig, LinkId, Loss, MILLISECOND, Network};

use crate::{one_link, run};

#[test]
fn packets_are_lost_with_the_given_probability() {
    let (mut network, route) =
        one_link(LinkConfig { loss: Loss::Random(0.01), ..LinkConfig::default() });
    run(&mut network, &vec![(0, route, 1500); 1_000_000]);
    let lost = network.counters(LinkId(0)).dropped_random;
    // Binomial with mean 10,000 and deviation 99.5.
    assert!(lost.abs_diff(10_000) < 400, "{lost}");
}

#[test]
fn loss_0_loses_nothing_and_loss_1_everything() {
    for (loss, lost) in [(0.0, 0), (1.0, 10_000)] {
        let (mut network, route) =
            one_link(LinkConfig { loss: Loss::Random(loss), ..LinkConfig::default() });
        run(&mut network, &vec![(0, route, 1500); 10_000]);
        assert_eq!(network.counters(LinkId(0)).dropped_random, lost);
    }
}

/// Numbers of the packets that survive the first and those that survive the second of two links
/// with 10 % loss and the given jitter. Both are sent the same packets.
fn survivors(seed: u64, jitter_of_first: u64) -> (Vec<usize>, Vec<usize>) {
    let mut network = Network::new(seed);
    let mut route = |jitter| {
        let link = LinkConfig { loss: Loss::Random(0.1), jitter, ..LinkConfig::default() };
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

/// Lost or not, of each of a million packets.
fn fates(loss: Loss) -> Vec<bool> {
    let (mut network, route) = one_link(LinkConfig { loss, ..LinkConfig::default() });
    let mut lost = vec![true; 1_000_000];
    for delivery in run(&mut network, &vec![(0, route, 1500); lost.len()]) {
        lost[delivery.payload] = false;
    }
    lost
}

fn share(fates: &[bool]) -> f64 {
    fates.iter().filter(|&&lost| lost).count() as f64 / fates.len() as f64
}

/// Lengths of the runs of lost packets.
fn bursts(fates: &[bool]) -> Vec<usize> {
    fates.split(|&lost| !lost).map(<[bool]>::len).filter(|&length| length > 0).collect()
}

/// Gilbert's model: the good state loses nothing, the bad one everything. Then bursts are
/// geometric with mean 1/r.
#[test]
fn gilbert_loses_in_bursts_of_geometric_length() {
    let (p, r) = (0.01, 0.25);
    let model = GilbertElliott { good_to_bad: p, bad_to_good: r, ..GilbertElliott::default() };
    let loss = Loss::GilbertElliott(model);
    let fates = fates(loss);
    // A burst starts about every 104 packets: 1 % of deviation of the mean of 9,600 bursts.
    assert!((share(&fates) / (p / (p + r)) - 1.0).abs() < 0.05, "{}", share(&fates));
    assert!((loss.mean() - p / (p + r)).abs() < 1e-12);
    let bursts = bursts(&fates);
    let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
    assert!((mean * r - 1.0).abs() < 0.04, "{mean}");
    let longer = bursts.iter().filter(|&&length| length > 4).count() as f64 / bursts.len() as f64;
    // (1 - r)^4
    assert!((longer / 0.316 - 1.0).abs() < 0.06, "{longer}");
}

/// Elliott's: both states lose some. Two losses k packets apart correlate with (1 - p - r)^k.
#[test]
fn elliott_loses_in_both_states() {
    let (p, r) = (0.02, 0.1);
    let model = GilbertElliott { good_to_bad: p, bad_to_good: r, loss_good: 0.01, loss_bad: 0.5 };
    let loss = Loss::GilbertElliott(model);
    let mean = (p * 0.5 + r * 0.01) / (p + r);
    let fates = fates(loss);
    assert!((loss.mean() - mean).abs() < 1e-12);
    assert!((share(&fates) / mean - 1.0).abs() < 0.03, "{} for {mean}", share(&fates));
    // The state's variance is p r / (p + r)², and the loss differs by 0.49 between the states.
    let variance = p * r / ((p + r) * (p + r)) * 0.49 * 0.49;
    for apart in [1, 5] {
        let both = fates.iter().zip(&fates[apart..]).filter(|&(&a, &b)| a && b).count() as f64;
        let covariance = both / (fates.len() - apart) as f64 - mean * mean;
        let expected = variance * libm::pow(1.0 - p - r, apart as f64);
        assert!((covariance / expected - 1.0).abs() < 0.08, "{covariance} for {expected}");
    }
}

/// The same losses with and without jitter: each draws from its own stream.
#[test]
fn jitter_changes_no_loss() {
    let lost = |jitter| {
        let loss = Loss::Random(0.1);
        let (mut network, route) = one_link(LinkConfig { loss, jitter, ..LinkConfig::default() });
        let delivered = run(&mut network, &vec![(0, route, 1500); 1000]);
        delivered.iter().map(|d| d.payload).collect::<Vec<_>>()
    };
    assert_eq!(lost(0), lost(MILLISECOND));
}
