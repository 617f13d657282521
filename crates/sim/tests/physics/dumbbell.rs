//! Reno flows over one droptail bottleneck.

use crate::common::*;
use crate::figure::{figure, within};
use narrows_net::{Limit, LinkConfig, Rate};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_stats::jain;

/// Scenarios A and B of the benchmark: RTT 20 ms, a droptail buffer of one bandwidth-delay product, access links
/// of 1 Gbit/s (10 in B) with 1 ms each way, flows that start 10 ms apart.
fn scenario(name: &str, flows: u64, mbit: u64, access: u64, buffer: u32, seconds: [u64; 2]) -> f64 {
    let mut sim = Sim::new(1);
    let rate = Rate::Constant;
    let narrow = LinkConfig {
        limit: Limit::Packets(buffer),
        ..link("bottleneck", rate(mbit * MBIT), 8 * MS)
    };
    let bottleneck = [(); 2].map(|()| add(&mut sim, narrow.clone()));
    // Four packet times of the bottleneck, against phase effects.
    let jitter = 4 * 1500 * 8 * S / (mbit * MBIT);
    let connections: Vec<_> = (0..flows)
        .map(|n| {
            let plain = link("access", rate(access * MBIT), MS);
            let out = add(&mut sim, LinkConfig { jitter, ..plain.clone() });
            let [deliver, back, home] = [(); 3].map(|()| add(&mut sim, plain.clone()));
            let path = path(&mut sim, &[out, bottleneck[0], deliver], &[back, bottleneck[1], home]);
            let active = vec![(n * 10 * MS, u64::MAX)];
            sim.add_connection(ConnectionConfig { active, ..greedy_delack(vec![path]) })
        })
        .collect();
    let [from, to] = seconds;
    let mbits = goodput(&mut sim, &connections, from * S, to * S);
    let total: f64 = mbits.iter().sum();
    let counters = sim.network().counters(bottleneck[0]);
    let loss = counters.dropped_queue as f64 / counters.arrived as f64;
    println!("peers: {name}, narrows, {total:.2}, {:.4}, {:.3}", jain(&mbits), loss * 100.0);
    // What waited for its order at the start may count.
    let full = mbit as f64 * 1448.0 / 1500.0;
    figure("1", &format!("{name}: goodput, Mbit/s"), total, full, full * 0.99..=full * 1.002);
    jain(&mbits)
}

#[test]
fn ten_flows_fill_100_mbit_fairly_with_the_loss_of_their_window() {
    let jain = scenario("A", 10, 100, 1000, 166, [10, 60]);
    figure("1", "A: Jain's index over 50 s", jain, 1.0, 0.99..=1.0);
}

/// The ten flows of A: a window that grows by a packet each round trip from W/2 to W carries 3/8 W^2
/// packets; until the loss is known it carries W more, and 3/4 W in recovery. The mean window is
/// 3/4 W. It is the mean of all flows at all times; their spread makes losses rarer: 10 %.
#[test]
fn a_loss_event_comes_once_in_a_saw_tooth() {
    let mut sim = Sim::new(1);
    let net = Dumbbell::new(&mut sim, 10, 100 * MBIT, 20 * MS, 166, 480_000);
    let flows: Vec<_> = (0..10)
        .map(|n| {
            let path = net.path(&mut sim, n);
            let active = vec![(n as u64 * 10 * MS, u64::MAX)];
            sim.add_connection(ConnectionConfig { active, ..greedy_delack(vec![path]) })
        })
        .collect();
    sim.run_until(10 * S);
    sim.reset_link_counters();
    let (mut events, mut windows, mut samples) = (0, 0, 0);
    let mut ssthresh = [0; 10];
    for tick in 0..5_000 {
        sim.run_until(10 * S + tick * 10 * MS);
        for (flow, before) in flows.iter().zip(&mut ssthresh) {
            let path = &sim.connection(*flow).paths[0];
            events += u64::from(tick > 0 && path.ssthresh != *before);
            *before = path.ssthresh;
            windows += u64::from(path.cwnd);
            samples += 1;
        }
    }
    let counters = sim.network().counters(net.bottleneck);
    let peak = windows as f64 / samples as f64 * 4.0 / 3.0;
    let theory = 0.375 * peak * peak + 1.75 * peak;
    let packets = counters.sent as f64 / events as f64;
    figure("1", "A: packets for each loss event", packets, theory, within(10.0, theory));
    println!("{:.2} packets lost in each", counters.dropped_queue as f64 / events as f64);
}

#[test]
fn a_hundred_flows_fill_1_gbit() {
    scenario("B", 100, 1000, 10_000, 1664, [4, 10]);
}

#[test]
#[ignore = "long: statistics"]
fn a_hundred_flows_share_1_gbit_fairly() {
    let jain = scenario("B for 50 s", 100, 1000, 10_000, 1664, [10, 60]);
    figure("1", "B: Jain's index over 50 s", jain, 1.0, 0.99..=1.0);
}

/// 20 Mbit/s, RTT 40 ms, a buffer of one bandwidth-delay product (67 packets); started 1 s apart.
fn two_flows(seeds: u64, seconds: u64) {
    let mut shares = [0.0, 0.0];
    for seed in 0..seeds {
        let mut sim = Sim::new(seed);
        let net = Dumbbell::new(&mut sim, 2, 20 * MBIT, 40 * MS, 67, 2 * MS);
        let connections = [0, 1].map(|n| {
            let path = net.path(&mut sim, n);
            let mut config = greedy_delack(vec![path]);
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
