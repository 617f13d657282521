//! Reno flows over one droptail bottleneck: the physics.

mod common;

use common::*;
use narrows_sim::{ConnId, Sim};

/// Mbit/s of payload of each connection between two times; link counters cover the same time.
fn goodput(sim: &mut Sim, connections: &[ConnId], from: u64, to: u64) -> Vec<f64> {
    sim.run_until(from);
    sim.reset_link_counters();
    let bytes = |sim: &Sim| -> Vec<u64> {
        connections.iter().map(|&c| sim.connection(c).delivered_bytes).collect()
    };
    let before = bytes(sim);
    sim.run_until(to);
    let seconds = (to - from) as f64 / 1e9;
    bytes(sim).iter().zip(before).map(|(&b, a)| (b - a) as f64 * 8.0 / 1e6 / seconds).collect()
}

/// Ten flows, 100 Mbit/s, RTT 20 ms, 166 packets of buffer. Payload is 1448 of 1500 bytes.
#[test]
fn ten_flows_fill_100_mbit_fairly_with_the_loss_of_their_window() {
    let mut sim = Sim::new(1);
    let net = Dumbbell::new(&mut sim, 10, 100 * MBIT, 20 * MS, 166, 500_000);
    let connections: Vec<_> = (0..10)
        .map(|n| {
            let path = net.path(&mut sim, n);
            let mut config = greedy(vec![path]);
            config.active = vec![(n as u64 * 10 * MS, u64::MAX)];
            sim.add_connection(config)
        })
        .collect();
    let mbits = goodput(&mut sim, &connections, 10 * S, 60 * S);
    let total: f64 = mbits.iter().sum();
    let counters = sim.network().counters(net.bottleneck);
    let loss = counters.dropped_queue as f64 / counters.arrived as f64;
    println!("{total:.2} Mbit/s, Jain {:.4}, loss {:.3} %", jain(&mbits), loss * 100.0);
    assert!((96.0..97.0).contains(&total), "{total} Mbit/s");
    assert!(jain(&mbits) >= 0.99, "{mbits:?}");
    assert!((0.0018..0.0032).contains(&loss), "{loss}");
    assert!(sim.network().is_conserved());
}

/// 20 Mbit/s, RTT 40 ms, a buffer of one bandwidth-delay product (67 packets); started 1 s apart.
fn two_flows(seeds: u64, seconds: u64) {
    let mut shares = [0.0, 0.0];
    for seed in 0..seeds {
        let mut sim = Sim::new(seed);
        let net = Dumbbell::new(&mut sim, 2, 20 * MBIT, 40 * MS, 67, 2 * MS);
        let connections = [0, 1].map(|n| {
            let path = net.path(&mut sim, n);
            let mut config = greedy(vec![path]);
            config.active = vec![(n as u64 * S, u64::MAX)];
            sim.add_connection(config)
        });
        let mbits = goodput(&mut sim, &connections, 20 * S, (20 + seconds) * S);
        shares[0] += mbits[0] / seeds as f64;
        shares[1] += mbits[1] / seeds as f64;
    }
    println!("mean of {seeds} seeds: {shares:.3?} Mbit/s");
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.05, "{shares:?}");
    assert!(shares[0] + shares[1] > 0.99 * 20.0 * 1448.0 / 1500.0, "the link is full: {shares:?}");
}

#[test]
fn two_flows_share_a_link_within_5_percent() {
    two_flows(10, 180);
}

#[test]
#[ignore = "long: statistics"]
fn two_flows_share_a_link_within_5_percent_over_hours() {
    two_flows(50, 600);
}
