//! Two flows of different RTT on one link.

use crate::common::*;
use crate::figure::figure;
use narrows_net::{Limit, LinkConfig, Rate};
use narrows_sim::Sim;

/// The exponent a in rate1 / rate2 = (RTT2 / RTT1)^a, over RTTs with the mean queue; `rtts` in ms,
/// a droptail queue on 20 Mbit/s.
fn exponent(law: &str, rtts: [u64; 2], queue: u32, seconds: u64, seed: u64) -> f64 {
    let mut sim = Sim::new(seed);
    let narrow = link("narrow", Rate::Constant(20 * MBIT), 0);
    let bottleneck = add(&mut sim, LinkConfig { limit: Limit::Packets(queue), ..narrow });
    let connections = rtts.map(|rtt| {
        let half = link("access", Rate::Constant(1000 * MBIT), rtt * MS / 2);
        let access = add(&mut sim, LinkConfig { jitter: 2 * MS, ..half.clone() });
        let back = add(&mut sim, half);
        let path = path(&mut sim, &[access, bottleneck], &[back]);
        let mut config = greedy_delack(vec![path]);
        config.control = control(law);
        sim.add_connection(config)
    });
    let mbits = goodput(&mut sim, &connections, 50 * S, (50 + seconds) * S);
    let waiting = sim.network().counters(bottleneck).queue_delay.mean() as f64 / 1e6;
    let [short, long] = rtts.map(|rtt| rtt as f64 + 1.0 + waiting);
    (mbits[0] / mbits[1]).ln() / (long / short).ln()
}

/// With a droptail queue between 1, where losses come by chance, and 2, where both flows lose at
/// the same time (Lakshman and Madhow, "The performance of TCP/IP for networks with high
/// bandwidth-delay products and random loss", 1997).
#[test]
fn reno_favours_the_short_rtt() {
    for queue in [20, 67, 200] {
        let a = exponent("reno", [20, 80], queue, 300, 1);
        let what = format!("Reno, droptail {queue}: a in rate ~ RTT^-a");
        figure("4", &what, a, 1.0, 1.0..=2.0);
    }
}
