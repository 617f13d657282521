//! Reno flows over one droptail bottleneck: the physics.

mod common;

use common::*;
use narrows_sim::Sim;

/// Scenario A: ten flows, 100 Mbit/s, RTT 20 ms, 166 packets of buffer.
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
    sim.run_until(10 * S);
    sim.reset_link_counters();
    let before: Vec<_> = connections.iter().map(|&c| sim.connection(c).delivered_bytes).collect();
    sim.run_until(60 * S);
    let mbits: Vec<f64> = connections
        .iter()
        .zip(before)
        .map(|(&c, before)| (sim.connection(c).delivered_bytes - before) as f64 * 8.0 / 50e6)
        .collect();
    let total: f64 = mbits.iter().sum();
    let counters = sim.network().counters(net.bottleneck);
    let loss = counters.dropped_queue as f64 / counters.arrived as f64;
    println!(
        "{total:.2} Mbit/s, Jain {:.4}, loss {:.3} %, {mbits:.1?}",
        jain(&mbits),
        loss * 100.0
    );
    for &c in &connections {
        println!("{:?}", sim.connection(c));
    }
    assert!((96.0..97.0).contains(&total), "{total} Mbit/s");
    assert!(jain(&mbits) >= 0.99, "{mbits:?}");
    assert!((0.0018..0.0030).contains(&loss), "{loss}");
}
