//! The tables of docs/results/quic.md: noq end points in virtual time. Usage: `figures [SECONDS [SEEDS]]`.

use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Rate, SECOND};
use narrows_quic::{Coupling, Factory};
use narrows_quic_sim::{Routes, Setup, Side, Sim, transport};
use noq_proto::congestion::{ControllerFactory, NewRenoConfig};
use std::sync::Arc;

/// Not measured: slow starts, and what a detector needs to decide.
const WARM_UP: u64 = 10;

const CONTROLS: [&str; 16] = [
    "reno",
    "cubic",
    "lia",
    "olia",
    "balia",
    "ewtcp",
    "wvegas",
    "greno",
    "gcubic",
    "lia+xcorr",
    "greno+xcorr",
    "gcubic+xcorr",
    "bbr",
    "u-mpbbr",
    "bbr+xcorr",
    "bbr3+xcorr",
];

const DETECTORS: [&str; 4] = ["ssc", "tr", "dcw", "xcorr"];

/// 20 Mbit/s and 10 ms, with a droptail queue of 40 ms.
fn bottleneck() -> LinkConfig {
    LinkConfig {
        name: "bottleneck".into(),
        rate: Rate::Constant(20_000_000),
        delay: 10 * MILLISECOND,
        limit: Limit::Bytes(100_000),
        ..LinkConfig::default()
    }
}

/// An access link. Its jitter keeps packets of two connections from meeting at the bottleneck in the
/// same order in each round trip, which would let one of them have all losses.
fn access(delay: u64) -> LinkConfig {
    let (delay, jitter) = (delay * MILLISECOND, 2 * MILLISECOND);
    LinkConfig { name: "access".into(), delay, jitter, ..LinkConfig::default() }
}

/// Two paths, each with its bottleneck, which may be the same.
struct Net {
    sim: Sim,
    up: [LinkId; 2],
    down: [LinkId; 2],
}

impl Net {
    fn new(seed: u64, shared: bool) -> Net {
        let mut sim = Sim::new(seed);
        let up = [bottleneck(), bottleneck()].map(|link| sim.link(link));
        let up = if shared { [up[0]; 2] } else { up };
        let down = up.map(|_| sim.link(bottleneck()));
        Net { sim, up, down }
    }

    /// A path with an access of its own, of `delay` ms.
    fn path(&mut self, which: usize, delay: u64) -> Routes {
        let ends = [0, 1].map(|_| self.sim.link(access(delay)));
        self.sim.routes(&[ends[0], self.up[which]], &[self.down[which], ends[1]])
    }

    /// A connection over both paths whose `side` sends.
    fn connect(
        &mut self,
        paths: Vec<Routes>,
        of: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> usize {
        let mut client = transport();
        client.congestion_controller_factory(of);
        self.sim.connect(Setup { client, ..Setup::new(paths, Side::Client) })
    }

    fn coupled(&mut self, control: &str, seed: u64) -> (usize, Arc<Factory>) {
        let factory = Coupling::new(control).unwrap().factory();
        let paths = vec![self.path(0, 5 + seed % 3), self.path(1, 5 + seed % 5)];
        (self.connect(paths, factory.clone()), factory)
    }

    fn rival(&mut self, which: usize) -> usize {
        let path = self.path(which, 6);
        self.connect(vec![path], Arc::new(NewRenoConfig::default()))
    }

    /// Mbit/s of each connection after the warm-up.
    fn rates(&mut self, connections: &[usize], seconds: u64) -> Vec<f64> {
        self.sim.run(WARM_UP * SECOND);
        let before: Vec<u64> = connections.iter().map(|c| self.sim.received(*c)).collect();
        self.sim.run((WARM_UP + seconds) * SECOND);
        let received = connections.iter().zip(before);
        let bytes = received.map(|(c, before)| self.sim.received(*c) - before);
        bytes.map(|bytes| bytes as f64 * 8e-6 / seconds as f64).collect()
    }
}

/// Goodput over that of a NewReno connection on the same link.
fn shared(control: &str, seconds: u64, seed: u64) -> f64 {
    let mut net = Net::new(seed, true);
    let ours = net.coupled(control, seed).0;
    let rival = net.rival(0);
    let rates = net.rates(&[ours, rival], seconds);
    rates[0] / rates[1]
}

/// Mbit/s over two links, with nobody else.
fn empty(control: &str, seconds: u64, seed: u64) -> f64 {
    let mut net = Net::new(seed, false);
    let ours = net.coupled(control, seed).0;
    net.rates(&[ours], seconds)[0]
}

/// Goodput over two links over that of the NewReno connections there, one on each.
fn separate(control: &str, seconds: u64, seed: u64) -> f64 {
    let mut net = Net::new(seed, false);
    let ours = net.coupled(control, seed).0;
    let rivals = [net.rival(0), net.rival(1)];
    let rates = net.rates(&[ours, rivals[0], rivals[1]], seconds);
    rates[0] / (rates[1] + rates[2])
}

/// The share of the time after the warm-up in which `lia+DETECTOR` couples what shares a link and only
/// that. On each link is a NewReno connection; `back`: and three downloads on the way back of the
/// first path, which all acknowledgements take.
fn right(detector: &str, shared: bool, back: bool, seconds: u64, seed: u64) -> f64 {
    let mut net = Net::new(seed, shared);
    let (_, factory) = net.coupled(&format!("lia+{detector}"), seed);
    net.rival(0);
    net.rival(1);
    for delay in 0..3 * u64::from(back) {
        let path = net.path(0, 5 + delay);
        net.sim.connect(Setup::new(vec![path], Side::Server));
    }
    net.sim.run(WARM_UP * SECOND);
    let mut right = 0;
    for second in 1..=seconds {
        net.sim.run((WARM_UP + second) * SECOND);
        let coupled = factory.snapshot().paths.iter().all(|path| path.coupled == 0b11);
        right += u64::from(coupled == shared);
    }
    right as f64 / seconds as f64
}

/// Mean, smallest and largest over the seeds.
fn over(seeds: u64, measure: impl Fn(u64) -> f64) -> (f64, f64, f64) {
    let values: Vec<f64> = (1..=seeds).map(measure).collect();
    let mean = values.iter().sum::<f64>() / seeds as f64;
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    (mean, least, values.into_iter().fold(f64::MIN, f64::max))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |n| n.parse().expect("a number"));
    let (seconds, seeds): (u64, u64) = (number(40), number(5));
    println!(
        "| control | one link, of NewReno | two links, Mbit/s | two links, of a NewReno on each |"
    );
    println!("|---|---|---|---|");
    for control in CONTROLS {
        let (one, least, most) = over(seeds, |seed| shared(control, seconds, seed));
        let (two, ..) = over(seeds, |seed| empty(control, seconds, seed));
        let (each, low, high) = over(seeds, |seed| separate(control, seconds, seed));
        println!(
            "| {control} | {one:.2} ({least:.2} to {most:.2}) | {two:.1} | {each:.2} ({low:.2} to {high:.2}) |"
        );
    }
    println!("\n| detector | one link | one link, busy back | two links | two links, busy back |");
    println!("|---|---|---|---|---|");
    for detector in DETECTORS {
        let cell = |shared, back| {
            format!("{:.2}", over(seeds, |seed| right(detector, shared, back, seconds, seed)).0)
        };
        let (one, one_back) = (cell(true, false), cell(true, true));
        println!(
            "| {detector} | {one} | {one_back} | {} | {} |",
            cell(false, false),
            cell(false, true)
        );
    }
}
