//! Small networks and connections for the tests.
#![allow(dead_code)] // each target uses a part

use narrows_laws::{Control, Params};
use std::sync::Arc;

use narrows_net::{
    Limit, LinkConfig, LinkId, Loss, MILLISECOND, Nanos, Rate, RouteId, SECOND, Trace,
};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::{ConnId, LossDetection, ReceiverAcks, Scheduler, Source, TcpConfig};

pub const MS: Nanos = MILLISECOND;
pub const S: Nanos = SECOND;
pub const MBIT: u64 = 1_000_000;

/// A link with an endless queue that loses nothing.
pub fn link(name: &str, rate: Rate, delay: Nanos) -> LinkConfig {
    LinkConfig { name: name.into(), rate, delay, limit: Limit::Unlimited, ..LinkConfig::default() }
}

pub fn add(sim: &mut Sim, config: LinkConfig) -> LinkId {
    sim.add_link(config).expect("a valid link")
}

pub fn route(sim: &mut Sim, links: &[LinkId]) -> RouteId {
    sim.add_route(links).expect("a valid route")
}

pub fn path(sim: &mut Sim, forward: &[LinkId], reverse: &[LinkId]) -> PathConfig {
    PathConfig::new("path", route(sim, forward), route(sim, reverse))
}

pub fn control(name: &str) -> Control {
    name.parse().expect("a known control")
}

/// A greedy connection that starts at once: TCP Reno with one path, MPTCP with more.
pub fn greedy(paths: Vec<PathConfig>) -> ConnectionConfig {
    ConnectionConfig {
        name: "greedy".into(),
        multipath: paths.len() > 1,
        paths,
        control: control("reno"),
        send_buffer: 64 << 20,
        recv_buffer: 64 << 20,
        ..ConnectionConfig::default()
    }
}

/// The same; every second segment is acknowledged, as theory, ns-2 and ns-3 have it.
pub fn greedy_delack(paths: Vec<PathConfig>) -> ConnectionConfig {
    let tcp = TcpConfig { receiver_acks: ReceiverAcks::Linux65, ..TcpConfig::default() };
    ConnectionConfig { tcp, ..greedy(paths) }
}

/// The same as Linux 3.14 sends: the era `linux-3.14` of scenarios (`crates/lab/src/scenario/era.rs`).
pub fn greedy_linux_3_14(paths: Vec<PathConfig>) -> ConnectionConfig {
    let mut config = greedy_delack(paths);
    config.tcp.loss_detection = LossDetection::Fack;
    config.scheduler = Scheduler::MinRtt;
    config.params = on(&["window.slow_start_at_ssthresh", "window.count_acks"]);
    config
}

/// Parameters, these switches on.
pub fn on(switches: &[&str]) -> Params {
    let mut params = Params::default();
    switches.iter().for_each(|switch| params.set(switch, "on").expect("a known switch"));
    params
}

/// A file of so many bytes over the paths.
pub fn file(bytes: u64, paths: Vec<PathConfig>) -> ConnectionConfig {
    ConnectionConfig { source: Source::File { bytes }, ..greedy(paths) }
}

/// A dumbbell: `senders` access links of 1 Gbit/s, a droptail bottleneck, and a way back.
pub struct Dumbbell {
    pub access: Vec<LinkId>,
    pub bottleneck: LinkId,
    pub back: LinkId,
}

impl Dumbbell {
    /// `jitter` is per packet, at the access links.
    pub fn new(
        sim: &mut Sim,
        senders: usize,
        bits: u64,
        rtt: Nanos,
        packets: u32,
        jitter: Nanos,
    ) -> Dumbbell {
        let access = (0..senders)
            .map(|n| {
                let access = link(&format!("access {n}"), Rate::Constant(1000 * MBIT), 0);
                add(sim, LinkConfig { jitter, ..access })
            })
            .collect();
        let bottleneck = link("bottleneck", Rate::Constant(bits), rtt / 2);
        let bottleneck = add(sim, LinkConfig { limit: Limit::Packets(packets), ..bottleneck });
        let back = add(sim, link("back", Rate::Constant(1000 * MBIT), rtt / 2));
        Dumbbell { access, bottleneck, back }
    }

    pub fn path(&self, sim: &mut Sim, sender: usize) -> PathConfig {
        path(sim, &[self.access[sender], self.bottleneck], &[self.back])
    }
}

/// Mbit/s of payload of each connection between two times; link counters cover the same time.
pub fn goodput(sim: &mut Sim, connections: &[ConnId], from: Nanos, to: Nanos) -> Vec<f64> {
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

/// A link of 12 Mbit/s that stands still in the given intervals (ms), out of a period of a minute:
/// what arrives then waits, or is dropped beyond `packets`.
pub fn with_outages(name: &str, outages: &[(u64, u64)], packets: u32) -> LinkConfig {
    let up = |ms: &u64| !outages.iter().any(|&(from, to)| (from..to).contains(ms));
    let lines: Vec<String> = (1..=60_000).filter(up).map(|ms| ms.to_string()).collect();
    let trace = Trace::parse(lines.join("\n").as_bytes(), name).expect("a valid trace");
    let rate = Rate::Trace(Arc::new(trace));
    LinkConfig { limit: Limit::Packets(packets), ..link(name, rate, 10 * MS) }
}

/// A path of 100 Mbit/s and 50 ms that loses a thousandth at random.
pub fn lossy(sim: &mut Sim) -> PathConfig {
    let there = link("there", Rate::Constant(100 * MBIT), 25 * MS);
    let there = LinkConfig { loss: Loss::Random(0.001), ..there };
    let there = add(sim, there);
    let back = add(sim, link("back", Rate::Constant(100 * MBIT), 25 * MS));
    path(sim, &[there], &[back])
}

pub const SCHEDULERS: [Scheduler; 6] = [
    Scheduler::Linux,
    Scheduler::MinRtt,
    Scheduler::Mptcp089,
    Scheduler::Mptcp089Reinject,
    Scheduler::RoundRobin,
    Scheduler::Redundant,
];
