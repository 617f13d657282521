//! Networks and connections of the tests.
#![allow(dead_code)] // each test has its part

use narrows_net::{Limit, LinkConfig, MILLISECOND, Nanos, Rate, SECOND};
use narrows_quic::{Coupling, Factory};
use narrows_quic_sim::{Routes, Setup, Side, Sim, application};
use narrows_traffic::Source;
use noq_proto::TransportConfig;
use noq_proto::congestion::ControllerFactory;
use std::sync::Arc;

/// A factory for one connection under the control called `name`.
pub fn factory(name: &str) -> Arc<Factory> {
    Coupling::new(name).unwrap_or_else(|error| panic!("{error}")).factory()
}

/// The transport configuration of a connection whose controllers are made by `factory`.
pub fn transport(factory: Arc<dyn ControllerFactory + Send + Sync>) -> TransportConfig {
    let mut transport = narrows_quic_sim::transport();
    transport.congestion_controller_factory(factory);
    transport
}

/// A connection whose sender runs `factory`.
pub fn setup(paths: Vec<Routes>, sender: Side, factory: &Arc<Factory>) -> Setup {
    let setup = Setup::new(paths, sender);
    let ours = transport(factory.clone());
    match sender {
        Side::Client => Setup { client: ours, ..setup },
        Side::Server => Setup { server: ours, ..setup },
    }
}

/// 20 Mbit/s and 20 ms, with a droptail queue of 40 ms. The jitter keeps connections from meeting in
/// the same order in each round trip.
pub fn bottleneck() -> LinkConfig {
    LinkConfig {
        name: "bottleneck".into(),
        rate: Rate::Constant(20_000_000),
        delay: 20 * MILLISECOND,
        jitter: MILLISECOND,
        limit: Limit::Bytes(100_000),
        ..LinkConfig::default()
    }
}

/// The same with a queue that is never full.
pub fn deep() -> LinkConfig {
    LinkConfig { limit: Limit::Bytes(100_000_000), ..bottleneck() }
}

/// A connection of `paths` that transfers `bytes`, and time for it.
pub fn transfer(
    sim: &mut Sim,
    paths: Vec<Routes>,
    sender: Side,
    factory: &Arc<Factory>,
    bytes: u64,
) -> usize {
    let application = application(Source::File { bytes });
    sim.connect(Setup { application, ..setup(paths, sender, factory) })
}

/// Mbit/s of a connection from `from` to `to`.
pub fn mbit(sim: &mut Sim, connection: usize, from: Nanos, to: Nanos) -> f64 {
    sim.run(from);
    let before = sim.received(connection);
    sim.run(to);
    (sim.received(connection) - before) as f64 * 8.0 * 1e3 / (to - from) as f64
}

/// The windows of the paths at their last events, bytes, by slot.
pub fn windows(factory: &Factory) -> Vec<u64> {
    factory.snapshot().paths.iter().map(|path| path.cwnd).collect()
}

/// Runs to `until` in steps of `step`, and calls `look` after each.
pub fn watch(sim: &mut Sim, until: Nanos, step: Nanos, mut look: impl FnMut(&mut Sim)) {
    while sim.now() < until {
        let next = (sim.now() + step).min(until);
        sim.run(next);
        look(sim);
    }
}

pub const fn seconds(n: u64) -> Nanos {
    n * SECOND
}
