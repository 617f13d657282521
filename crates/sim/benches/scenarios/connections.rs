//! Many connections: 10,000 MPTCP connections of two subflows each share a bottleneck; and how much
//! memory one takes that has sent something and is idle.

use narrows_laws::Control;
use narrows_net::rng::{below, stream};
use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Rate, SECOND};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::Source;

use super::{Built, add, alone, memory};

const CONNECTIONS: u64 = 10_000;
const BITS: u64 = 40_000_000_000;
const RTT: Nanos = 20 * MILLISECOND;

/// Two bottlenecks of 40 Gbit/s, a subflow of each connection on each: some 13 packets per round
/// trip for each connection. Every subflow has an access link of its own.
pub fn build() -> Built {
    let mut sim = Sim::new(1);
    let mut rng = stream(1, 1 << 62);
    let bottlenecks = [(); 2].map(|()| {
        let queue = Limit::Packets((BITS / 8 / 1500 * RTT / SECOND) as u32);
        let config = LinkConfig {
            rate: Rate::Constant(BITS),
            delay: RTT / 2,
            limit: queue,
            quantiles: false,
            ..LinkConfig::default()
        };
        let back = LinkConfig { limit: Limit::Unlimited, ..config.clone() };
        (add(&mut sim, config), add(&mut sim, back))
    });
    let connections = (0..CONNECTIONS)
        .map(|n| {
            let path = |(bottleneck, back): (LinkId, LinkId)| {
                // A packet time each at the rate of the access link.
                let access = LinkConfig {
                    rate: Rate::Constant(1_000_000_000),
                    jitter: 12_000,
                    quantiles: false,
                    ..LinkConfig::default()
                };
                let access = add(&mut sim, access);
                let forward = sim.add_route(&[access, bottleneck]).expect("a valid route");
                PathConfig::new("", forward, sim.add_route(&[back]).expect("a valid route"))
            };
            let paths = bottlenecks.map(path).into();
            sim.add_connection(ConnectionConfig {
                name: format!("connection {n}"),
                multipath: true,
                paths,
                control: Control::LIA,
                active: vec![(below(&mut rng, 200 * MILLISECOND), Nanos::MAX)],
                send_buffer: 1 << 20,
                recv_buffer: 1 << 20,
                ..ConnectionConfig::default()
            })
        })
        .collect();
    Built { sim, connections, mss: 1424, until: SECOND }
}

/// Marks the measurement of memory; the number of subflows follows.
pub const IDLE: &str = "idle-";

/// Resident bytes of 10,000 connections that have sent 100 kB and are idle.
pub fn idle_bytes(subflows: usize) -> u64 {
    let mut sim = Sim::new(1);
    let link = LinkConfig { delay: MILLISECOND, quantiles: false, ..LinkConfig::default() };
    let link = add(&mut sim, link);
    let route = sim.add_route(&[link]).expect("a valid route");
    let path = PathConfig::new("", route, route);
    let before = memory::now();
    for n in 0..CONNECTIONS {
        // One after another, so that packets in flight are few.
        let start = n * 20 * MILLISECOND;
        sim.add_connection(ConnectionConfig {
            name: String::new(),
            multipath: true,
            paths: vec![path.clone(); subflows],
            control: Control::LIA,
            source: Source::File { bytes: 100_000 },
            active: vec![(start, Nanos::MAX)],
            ..ConnectionConfig::default()
        });
    }
    sim.run_until((CONNECTIONS + 100) * 20 * MILLISECOND);
    memory::now() - before
}

/// Prints what an idle connection and each of its subflows take.
pub fn print_memory() {
    let [one, eight] = [1, 8].map(|n| alone(&format!("{IDLE}{n}"), 1)[0] / CONNECTIONS as f64);
    let subflow = (eight - one) / 7.0;
    let connection = one - subflow;
    println!("an idle connection takes {connection:.0} B, each of its subflows {subflow:.0} B");
}
