//! Whole runs of any kind: nothing is lost or doubled, and the same seed gives the same run.

use crate::common;

use std::hash::{DefaultHasher, Hash, Hasher};

use common::*;
use narrows_net::{Limit, LinkConfig, Loss, Rate};
use narrows_sim::{Sim, UdpConfig};
use narrows_traffic::{Scheduler, SizeDist, Source};
use proptest::prelude::*;

/// A path of a random scenario.
#[derive(Clone, Debug)]
struct Wire {
    mbit: u64,
    delay_ms: u64,
    loss: f64,
    back_loss: f64,
    packets: u32,
    mtu: u32,
}

fn wire() -> impl Strategy<Value = Wire> {
    (1u64..50, 1u64..100, 0.0..0.05, 0.0..0.05, 5u32..100, prop::sample::select(vec![576, 1500]))
        .prop_map(|(mbit, delay_ms, loss, back_loss, packets, mtu)| Wire {
            mbit,
            delay_ms,
            loss,
            back_loss,
            packets,
            mtu,
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Over one to four lossy paths with small queues and buffers a file arrives, each byte once.
    /// (The connection's end counts what is new and in order; the subflows' segments must cover the
    /// file exactly, and the debug build checks every scoreboard on the way.)
    #[test]
    fn a_file_arrives_whole_over_any_paths(
        wires in prop::collection::vec(wire(), 1..5),
        bytes in 1u64..2_000_000,
        buffer in 20_000u64..200_000,
        scheduler in prop::sample::select(SCHEDULERS.to_vec()),
        always_mptcp in any::<bool>(),
        law in prop::sample::select(vec!["reno", "cubic", "lia", "olia", "balia"]),
        seed in any::<u64>(),
    ) {
        let mut sim = Sim::new(seed);
        let mut paths = vec![];
        for w in &wires {
            let config = link("path", Rate::Constant(w.mbit * MBIT), w.delay_ms * MS);
            let limit = Limit::Packets(w.packets);
            let back = LinkConfig { loss: Loss::Random(w.back_loss), ..config.clone() };
            let forward =
                LinkConfig { loss: Loss::Random(w.loss), limit, mtu: w.mtu, jitter: MS, ..config };
            let (forward, back) = (add(&mut sim, forward), add(&mut sim, back));
            paths.push(path(&mut sim, &[forward], &[back]));
        }
        let mut config = file(bytes, paths);
        config.multipath |= always_mptcp;
        config.control = control(law);
        config.send_buffer = buffer;
        config.recv_buffer = buffer;
        config.scheduler = scheduler;
        let connection = sim.add_connection(config);
        sim.run_until(600 * S);
        let stats = sim.connection(connection);
        prop_assert!(stats.completed.is_some(), "{:?}", stats);
        prop_assert_eq!(stats.delivered_bytes, bytes);
        let on_paths: u64 = stats.paths.iter().map(|p| p.delivered_bytes).sum();
        if stats.reinjections == 0 && scheduler != Scheduler::Redundant {
            prop_assert_eq!(on_paths, bytes);
        } else {
            prop_assert!(on_paths >= bytes);
        }
        prop_assert!(stats.paths.iter().all(|p| p.inflight == 0), "{:?}", stats);
        prop_assert_eq!(sim.network().packets(), 0);
        prop_assert!(sim.network().is_conserved());
    }
}

/// A bit of everything on one link; a hash of all that can be seen of it.
fn fingerprint(seed: u64) -> u64 {
    let mut sim = Sim::new(seed);
    let net = Dumbbell::new(&mut sim, 6, 20 * MBIT, 40 * MS, 40, MS);
    let mut connections = vec![];
    let size = SizeDist::Exponential { mean: 1000.0, min: 100, max: 1400 };
    let on_off = Source::OnOff { pps: 300.0, size, on_mean_s: 0.5, on_shape: 1.5, off_mean_s: 0.5 };
    let sources = [
        Source::Greedy,
        Source::File { bytes: 3_000_000 },
        Source::Rate { mean_pps: 200.0, size },
        on_off,
    ];
    for (n, source) in sources.into_iter().enumerate() {
        let mut paths = vec![net.path(&mut sim, n)];
        if n == 0 {
            paths.push(net.path(&mut sim, 4));
        }
        let mut config = greedy(paths);
        config.source = source;
        config.control = control(["olia", "cubic", "reno", "balia"][n]);
        config.active = vec![(n as u64 * 100 * MS, 8 * S), (9 * S, 12 * S)];
        connections.push(sim.add_connection(config));
    }
    let route = route(&mut sim, &[net.access[5], net.bottleneck]);
    let udp = sim.add_udp(UdpConfig {
        name: "udp".into(),
        route,
        back: None,
        source: on_off,
        active: vec![(S, 11 * S)],
    });
    let mut hasher = DefaultHasher::new();
    for tick in 1..=150 {
        sim.run_until(tick * 100 * MS);
        for &c in &connections {
            format!("{:?}", sim.connection(c)).hash(&mut hasher);
        }
        sim.queue_delay(net.bottleneck).hash(&mut hasher);
    }
    let counted = sim.udp(udp);
    assert!(counted.received_packets > 500, "{counted:?}");
    format!("{counted:?} {:?}", sim.network().counters(net.bottleneck)).hash(&mut hasher);
    hasher.finish()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    assert_eq!(fingerprint(7), fingerprint(7));
    assert_ne!(fingerprint(7), fingerprint(8));
}

/// Looking at a run more often does not change it.
#[test]
fn observation_changes_nothing() {
    let run = |step: u64| {
        let mut sim = Sim::new(5);
        let net = Dumbbell::new(&mut sim, 2, 10 * MBIT, 40 * MS, 30, MS);
        let connections = [0, 1].map(|n| {
            let path = net.path(&mut sim, n);
            sim.add_connection(greedy(vec![path]))
        });
        for time in (step..=10_000).step_by(step as usize) {
            sim.run_until(time * MS);
            sim.queue_delay(net.bottleneck);
        }
        connections.map(|c| sim.connection(c))
    };
    assert_eq!(run(10_000), run(1));
}

/// A connection over links that take no time at all would exchange data and acknowledgements at one
/// instant for ever.
#[test]
#[should_panic(expected = "time stands still at 1000000000 ns")]
fn a_run_whose_time_stands_still_ends() {
    let mut sim = Sim::new(1);
    let there = add(&mut sim, link("there", Rate::Infinite, 0));
    let back = add(&mut sim, link("back", Rate::Infinite, 0));
    let path = path(&mut sim, &[there], &[back]);
    let mut config = greedy(vec![path]);
    config.active = vec![(S, 2 * S)];
    config.send_buffer = 30_000;
    sim.add_connection(config);
    sim.run_until(3 * S);
}
