//! The tables of docs/quic.md: noq end points in virtual time, beside a NewReno connection of noq's on
//! a shared link, and over two links of their own. Usage: `figures [SECONDS [SEEDS [CONTROL...]]]`.

use narrows_net::{Limit, LinkConfig, MILLISECOND, Rate, SECOND};
use narrows_quic::{Coupling, Factory};
use narrows_quic_sim::{Routes, Setup, Side, Sim, transport};
use noq_proto::congestion::NewRenoConfig;
use std::sync::Arc;

/// Not measured: slow starts, and what a detector needs to decide.
const WARM_UP: u64 = 10;

const CONTROLS: [&str; 12] = [
    "reno",
    "cubic",
    "lia",
    "olia",
    "balia",
    "ewtcp",
    "wvegas",
    "greno",
    "gcubic",
    "greno+xcorr",
    "gcubic+xcorr",
    "lia+xcorr",
];

/// 20 Mbit/s and 10 ms, with a droptail queue of one round trip of 40 ms.
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
fn wire(delay: u64) -> LinkConfig {
    let (delay, jitter) = (delay * MILLISECOND, 2 * MILLISECOND);
    LinkConfig { name: "access".into(), delay, jitter, ..LinkConfig::default() }
}

/// A connection that sends up, under `factory`.
fn setup(
    paths: Vec<Routes>,
    factory: Arc<dyn noq_proto::congestion::ControllerFactory + Send + Sync>,
) -> Setup {
    let mut client = transport();
    client.congestion_controller_factory(factory);
    Setup { client, ..Setup::new(paths, Side::Client) }
}

/// Mbit/s of each connection after the warm-up.
fn rates(sim: &mut Sim, connections: usize, seconds: u64) -> Vec<f64> {
    sim.run(WARM_UP * SECOND);
    let before: Vec<u64> = (0..connections).map(|c| sim.received(c)).collect();
    sim.run((WARM_UP + seconds) * SECOND);
    let mbit = |c: usize| (sim.received(c) - before[c]) as f64 * 8e-6 / seconds as f64;
    (0..connections).map(mbit).collect()
}

/// Two paths and a NewReno connection through one bottleneck: the rates of both, and whether the
/// paths are coupled at the end.
fn shared(control: &str, seconds: u64, seed: u64) -> (f64, f64, bool) {
    let mut sim = Sim::new(seed);
    let (up, down) = (sim.link(bottleneck()), sim.link(wire(10)));
    let route = |sim: &mut Sim, delay| {
        let access = sim.link(wire(delay));
        sim.routes(&[access, up], &[down])
    };
    let paths = vec![route(&mut sim, seed % 3), route(&mut sim, seed % 5)];
    let rival = vec![route(&mut sim, seed % 4)];
    let factory = Coupling::new(control).unwrap().factory();
    sim.connect(setup(paths, factory.clone()));
    sim.connect(setup(rival, Arc::new(NewRenoConfig::default())));
    let rates = rates(&mut sim, 2, seconds);
    (rates[0], rates[1], coupled(&factory))
}

/// Two paths with a bottleneck each: the rate, and whether they are coupled at the end.
fn disjoint(control: &str, seconds: u64, seed: u64) -> (f64, bool) {
    let mut sim = Sim::new(seed);
    let path = |sim: &mut Sim, delay| {
        let links = [wire(delay), bottleneck()].map(|link| sim.link(link));
        let down = sim.link(wire(10));
        sim.routes(&links, &[down])
    };
    let paths = vec![path(&mut sim, seed % 3), path(&mut sim, seed % 5)];
    let factory = Coupling::new(control).unwrap().factory();
    sim.connect(setup(paths, factory.clone()));
    (rates(&mut sim, 1, seconds)[0], coupled(&factory))
}

fn coupled(factory: &Factory) -> bool {
    factory.snapshot().paths.iter().any(|path| path.coupled.count_ones() > 1)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |n| n.parse().expect("a number"));
    let (seconds, seeds): (u64, u64) = (number(60), number(5));
    let named: Vec<String> = arguments.collect();
    let controls: Vec<&str> = match named.is_empty() {
        true => CONTROLS.to_vec(),
        false => named.iter().map(String::as_str).collect(),
    };
    println!("| control | shared: of NewReno | coupled | two links, Mbit/s | coupled |");
    println!("|---|---|---|---|---|");
    for control in controls {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let share = |yes: usize| format!("{yes} of {seeds}");
        let on_one: Vec<_> = (1..=seeds).map(|seed| shared(control, seconds, seed)).collect();
        let on_two: Vec<_> = (1..=seeds).map(|seed| disjoint(control, seconds, seed)).collect();
        let ratios: Vec<f64> = on_one.iter().map(|(ours, rival, _)| ours / rival).collect();
        let least = ratios.iter().copied().fold(f64::MAX, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "| {control} | {:.2} ({least:.2} to {most:.2}) | {} | {:.1} | {} |",
            mean(&ratios),
            share(on_one.iter().filter(|(_, _, yes)| *yes).count()),
            mean(&on_two.iter().map(|(rate, _)| *rate).collect::<Vec<_>>()),
            share(on_two.iter().filter(|(_, yes)| *yes).count()),
        );
    }
}
