//! Queueing delay follows queueing theory.

use narrows_net::rng::{stream, uniform_f64};
use narrows_net::{LinkConfig, LinkId, MILLISECOND, Nanos, Network, Rate, SECOND};

use crate::{one_link, run};

const LINK: LinkId = LinkId(0);

/// On 8 Mbit/s a byte takes a microsecond.
const RATE: Rate = Rate::Constant(8_000_000);
const MEAN_SIZE: f64 = 10_000.0;

/// Mean service time: 10 ms.
const SERVICE: f64 = MEAN_SIZE * 1e-6;

const UTILISATION: f64 = 0.8;

fn network() -> (Network<usize>, narrows_net::RouteId) {
    one_link(LinkConfig { rate: RATE, mtu: 1 << 30, ..LinkConfig::default() })
}

/// Half a million Poisson arrivals at 80 % load, with sizes drawn from `size`.
fn poisson(size: impl Fn(f64) -> f64) -> Network<usize> {
    let (mut network, route) = network();
    let mut rng = stream(3, 0);
    let mut now = 0.0;
    let sends: Vec<_> = (0..500_000)
        .map(|_| {
            now += -libm::log(1.0 - uniform_f64(&mut rng)) * SERVICE / UTILISATION;
            let size = size(uniform_f64(&mut rng));
            ((now * SECOND as f64) as Nanos, route, size.max(1.0) as u32)
        })
        .collect();
    run(&mut network, &sends);
    network
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

fn assert_within(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} instead of {expected}");
}

/// Pollaczek-Khinchine: W = rho S (1 + c²) / (2 (1 - rho)), c² being the squared coefficient of
/// variation of the service time.
fn pollaczek_khinchine(c2: f64) -> f64 {
    UTILISATION * SERVICE * (1.0 + c2) / (2.0 * (1.0 - UTILISATION))
}

#[test]
fn poisson_arrivals_of_equal_packets_wait_as_in_m_d_1() {
    let network = poisson(|_| MEAN_SIZE);
    let waits = &network.counters(LINK).queue_delay;
    assert_within(seconds(waits.mean()), pollaczek_khinchine(0.0), 0.03);
}

#[test]
fn poisson_arrivals_of_exponential_packets_wait_as_in_m_m_1() {
    let network = poisson(|u| -libm::log(1.0 - u) * MEAN_SIZE);
    let waits = &network.counters(LINK).queue_delay;
    assert_within(seconds(waits.mean()), pollaczek_khinchine(1.0), 0.03);
    // P(W > t) = rho exp(-(1 - rho) t / S)
    let quantile = |q: f64| libm::log(UTILISATION / (1.0 - q)) * SERVICE / (1.0 - UTILISATION);
    assert_within(seconds(waits.quantile(0.5)), quantile(0.5), 0.05);
    assert_within(seconds(waits.quantile(0.95)), quantile(0.95), 0.05);
}

#[test]
fn evenly_spaced_packets_below_the_rate_never_wait() {
    let (mut network, route) = network();
    let sends: Vec<_> = (0..1000).map(|n| (n * 10 * MILLISECOND, route, 10_000)).collect();
    run(&mut network, &sends);
    assert_eq!(network.counters(LINK).queue_delay.max(), 0);
}

#[test]
fn evenly_spaced_packets_above_the_rate_wait_longer_and_longer() {
    let (mut network, route) = network();
    // 10 ms of work come every 9 ms: packet n waits n ms.
    let sends: Vec<_> = (0..1001).map(|n| (n * 9 * MILLISECOND, route, 10_000)).collect();
    run(&mut network, &sends);
    let waits = &network.counters(LINK).queue_delay;
    assert_eq!((waits.mean(), waits.max()), (500 * MILLISECOND, 1000 * MILLISECOND));
    let p95 = waits.quantile(0.95);
    assert!((950 * MILLISECOND..=980 * MILLISECOND).contains(&p95), "{p95}");
}
