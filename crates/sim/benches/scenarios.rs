//! How fast whole simulations run: `cargo bench -p narrows-sim [-- NAME]`.
//!
//! A dumbbell of Reno flows: each sender and each receiver has an access link of 1 Gbit/s (10 in
//! B), and two routers share one droptail bottleneck; acknowledgements come back the same way.
//! A packet-hop is one packet, data or ACK, that crosses one link. Compared between tools is
//! better the number of data packets delivered per second of wall time.

use std::time::Instant;

use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Rate, SECOND};
use narrows_sim::{ConnId, ConnectionConfig, PathConfig, Sim};

/// Runs of each case; the quickest is told, as the others were disturbed.
const ROUNDS: u32 = 5;
const MBIT: u64 = 1_000_000;

struct Case {
    name: &'static str,
    flows: u64,
    bits: u64,
    access_bits: u64,
    buffer: u32,
    seconds: u64,
}

const CASES: [Case; 2] = [
    Case {
        name: "A",
        flows: 10,
        bits: 100 * MBIT,
        access_bits: 1000 * MBIT,
        buffer: 166,
        seconds: 60,
    },
    Case {
        name: "B",
        flows: 100,
        bits: 1000 * MBIT,
        access_bits: 10_000 * MBIT,
        buffer: 1664,
        seconds: 10,
    },
];

fn link(sim: &mut Sim, bits: u64, delay: Nanos, jitter: Nanos, limit: Limit) -> LinkId {
    let config =
        LinkConfig { rate: Rate::Constant(bits), delay, jitter, limit, ..LinkConfig::default() };
    sim.add_link(config).expect("a valid link")
}

/// A network whose flows start 10 ms apart, RTT 20 ms.
fn dumbbell(case: &Case) -> (Sim, Vec<ConnId>) {
    let mut sim = Sim::new(1);
    let limit = Limit::Packets(case.buffer);
    let bottleneck = [(); 2].map(|()| link(&mut sim, case.bits, 8 * MILLISECOND, 0, limit));
    // Four packet times of the bottleneck.
    let jitter = 4 * 1500 * 8 * SECOND / case.bits;
    let flows = (0..case.flows)
        .map(|n| {
            let mut access =
                |jitter| link(&mut sim, case.access_bits, MILLISECOND, jitter, Limit::Unlimited);
            let (out, deliver) = (access(jitter), access(0));
            let (back, home) = (access(0), access(0));
            let mut route = |links: [LinkId; 3]| sim.add_route(&links).expect("a valid route");
            let path = PathConfig {
                name: "path".into(),
                forward: route([out, bottleneck[0], deliver]),
                reverse: route([back, bottleneck[1], home]),
            };
            sim.add_connection(ConnectionConfig {
                name: format!("flow {n}"),
                paths: vec![path],
                active: vec![(n * 10 * MILLISECOND, Nanos::MAX)],
                send_buffer: 16 << 20,
                recv_buffer: 16 << 20,
                ..ConnectionConfig::default()
            })
        })
        .collect();
    (sim, flows)
}

fn main() {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!("{:8} {:>8} {:>14} {:>14}", "", "wall s", "M hops/s", "M delivered/s");
    for case in CASES.iter().filter(|case| only.as_ref().is_none_or(|name| name == case.name)) {
        let rounds = (0..ROUNDS).map(|_| {
            let (mut sim, flows) = dumbbell(case);
            let start = Instant::now();
            sim.run_until(case.seconds * SECOND);
            (start.elapsed().as_secs_f64(), sim, flows)
        });
        let (wall, sim, flows) =
            rounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are rounds");
        let network = sim.network();
        let hops: u64 = network.links().map(|link| network.counters(link).sent).sum();
        let bytes: u64 = flows.iter().map(|&flow| sim.connection(flow).delivered_bytes).sum();
        let rate = |count: u64| count as f64 / wall / 1e6;
        println!("{:8} {wall:8.3} {:14.2} {:14.2}", case.name, rate(hops), rate(bytes / 1448));
    }
}
