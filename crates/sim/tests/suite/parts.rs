//! A run on several threads gives the same as one on one, byte for byte.

use std::collections::HashMap;

use narrows_laws::Control;
use narrows_net::rng::stream;
use narrows_net::{Limit, LinkConfig, LinkId, Loss, Rate};
use narrows_sim::UdpConfig;
use narrows_sim::topology::{FatTree, permutation};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_traffic::{ConnId, FlowId, SizeDist, Source};
use proptest::prelude::*;

use crate::common::*;
use crate::conservation::{Topology, any_connection, any_link, any_way, anything, connect, happen};

/// All that a simulation says of itself.
fn state(sim: &Sim, flows: &[FlowId]) -> String {
    let mut all = format!("{}\n", sim.now());
    for &flow in flows {
        all += &match flow {
            FlowId::Connection(id) => format!("{:?} {:?}\n", sim.connection(id), sim.detection(id)),
            FlowId::Udp(id) => format!("{:?}\n", sim.udp(id)),
        };
    }
    let network = sim.network();
    for link in network.links() {
        let waiting = network.queue_bytes(link, sim.now());
        all += &format!("{link:?} {waiting} {:?}\n", network.counters(link));
    }
    all
}

/// A fat tree of 16 hosts at 100 Mbit/s, `delay` to its core and a tenth of that below; each host sends to another.
fn tree(law: &str, delay: u64) -> (Sim, Vec<FlowId>) {
    let tree = FatTree::new(4).unwrap();
    let mut sim = Sim::new(7);
    let links: Vec<LinkId> = (0..tree.links())
        .map(|link| {
            add(
                &mut sim,
                LinkConfig {
                    name: tree.link_name(link),
                    rate: Rate::Constant(100 * MBIT),
                    delay: if tree.is_core(link) { delay } else { delay / 10 },
                    jitter: if link < 32 { 300_000 } else { 0 },
                    loss: if link % 7 == 0 { Loss::Random(0.001) } else { Loss::None },
                    limit: Limit::Packets(50),
                    ..LinkConfig::default()
                },
            )
        })
        .collect();
    let mut rng = stream(7, 1 << 62);
    let to = permutation(tree.hosts(), &mut rng);
    let mut flows = vec![];
    for (from, &to) in (0..).zip(&to) {
        let ways = tree.random_paths(from, to, 4, &mut rng);
        let route = |from, to, way| {
            tree.path(from, to, way).into_iter().map(|l| links[l as usize]).collect::<Vec<_>>()
        };
        let paths = ways
            .iter()
            .map(|&way| path(&mut sim, &route(from, to, way), &route(to, from, way)))
            .collect();
        let source = if from % 3 == 0 { Source::File { bytes: 3_000_000 } } else { Source::Greedy };
        let control: Control = control(law);
        flows.push(FlowId::Connection(sim.add_connection(ConnectionConfig {
            control,
            source,
            ..greedy(paths)
        })));
    }
    (sim, flows)
}

/// Parts there are, whenever the run stops, and the threads are as many as there may be.
#[test]
fn a_fat_tree_is_the_same_on_any_number_of_threads() {
    for law in ["lia", "greno+xcorr", "bbr", "cubic+hystart++"] {
        let run = |threads| {
            let (mut sim, flows) = tree(law, 2 * MS);
            sim.set_threads(threads);
            let mut parts = 1;
            for step in 1..=20 {
                sim.run_on(step * 70 * MS);
                parts = parts.max(sim.parts());
                if step % 5 == 0 {
                    sim.gather();
                }
            }
            sim.gather();
            assert!(sim.network().is_conserved());
            (parts, state(&sim, &flows))
        };
        let (parts, alone) = run(1);
        assert_eq!(parts, 1);
        for threads in [2, 3, 8] {
            let (parts, several) = run(threads);
            assert!(parts >= 2, "{law} on {threads} threads: {parts} parts");
            assert!(several == alone, "{law} on {threads} threads");
        }
    }
}

/// The links of pods stay together: what leads to the core crosses, and nothing else.
#[test]
fn a_fat_tree_is_parted_between_its_pods() {
    let (mut sim, _) = tree("lia", 2 * MS);
    sim.set_threads(2);
    sim.run_on(100 * MS);
    assert_eq!((sim.parts(), sim.lookahead()), (2, Some(2 * MS)));
}

/// Sources and retransmissions that wait for long are as they were, each time it is put together.
#[test]
fn timers_survive_being_taken_apart() {
    let run = |threads| {
        let (mut sim, mut flows) = tree("reno", 2 * MS);
        let ways = [LinkId(0), LinkId(1)].map(|link| route(&mut sim, &[link]));
        for (number, way) in (0..).zip(ways) {
            let source = Source::Rate { mean_pps: 300.0, size: SizeDist::Constant(500) };
            let active = (0..2000).map(|n| (n * 50 * MS + number, n * 50 * MS + 30 * MS)).collect();
            let config = UdpConfig { name: "udp".into(), route: way, back: None, source, active };
            flows.push(FlowId::Udp(sim.add_udp(config)));
        }
        sim.set_threads(threads);
        (1..=40).for_each(|step| sim.run_until(step * 25 * MS));
        state(&sim, &flows)
    };
    assert!(run(2) == run(1));
}

/// Nothing can be known ahead: one queue, and end points that have no delay to it.
#[test]
fn one_bottleneck_stays_one_part() {
    let mut sim = Sim::new(1);
    let (there, back) =
        (link("there", Rate::Constant(10 * MBIT), 10 * MS), link("back", Rate::Infinite, 10 * MS));
    let (there, back) = (add(&mut sim, there), add(&mut sim, back));
    for _ in 0..4 {
        let path = path(&mut sim, &[there], &[back]);
        sim.add_connection(greedy(vec![path]));
    }
    sim.set_threads(2);
    sim.run_on(S);
    assert_eq!((sim.parts(), sim.lookahead()), (1, None));
    assert!(sim.connection(ConnId(0)).delivered_bytes > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the links of a fat tree and its flows, and whatever happens to them.
    #[test]
    fn any_tree_is_the_same_on_any_number_of_threads(
        mut link in any_link(),
        rare in any::<bool>(),
        mut connections in prop::collection::vec(any_connection(), 4..16),
        udp in prop::collection::vec(any_way(), 0..3),
        steps in prop::collection::vec((1..200 * MS, anything()), 6..12),
        seed in any::<u64>(),
    ) {
        if !rare {
            // So that it can be cut.
            let plain = LinkConfig::default();
            link = LinkConfig {
                discipline: plain.discipline,
                ecn: false,
                policer: None,
                reorder: None,
                wifi: None,
                ..link
            };
        }
        let topology = Topology::FatTree(Box::new(link));
        for connection in &mut connections {
            // Between two hosts.
            let [there, back] = connection.ways[0].clone();
            for way in &mut connection.ways {
                (way[0][0], way[1][0]) = (there[0], back[0]);
            }
        }
        let run = |threads| {
            let mut sim = Sim::new(seed);
            topology.build(&mut sim);
            let (ids, flows) = connect(&mut sim, &topology, &connections, &udp);
            let links: Vec<LinkId> = sim.network().links().collect();
            sim.set_threads(threads);
            let mut states = vec![];
            for (step, event) in &steps {
                happen(&mut sim, &topology, &ids, &links, &mut HashMap::new(), event.clone());
                sim.run_on(sim.now() + step);
                sim.gather();
                states.push(state(&sim, &flows));
            }
            states
        };
        let alone = run(1);
        for threads in [2, 3] {
            prop_assert!(run(threads) == alone, "{threads} threads");
        }
    }
}
