//! A run on several threads gives the same as one on one, byte for byte.

use std::cell::Cell;
use std::collections::HashMap;

use narrows_laws::Control;
use narrows_net::rng::stream;
use narrows_net::{Limit, LinkConfig, LinkId, Loss, Rate};
use narrows_sim::UdpConfig;
use narrows_sim::topology::{FatTree, permutation};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_traffic::{ConnId, FlowId, SizeDist, Source};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::common::*;
use crate::conservation::{
    Connect, Happens, Topology, any_connection, any_link, any_way, anything, connect, happen,
};

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
        let waiting = (network.queue_bytes(link, sim.now()), sim.queue_delay(link));
        all += &format!("{link:?} {waiting:?} {:?}\n", network.counters(link));
    }
    all
}

/// A fat tree of 16 hosts, `delay` to its core and a tenth of that below; each host sends to another.
fn tree(law: &str, delay: u64, rate: u64) -> (Sim, Vec<FlowId>) {
    let tree = FatTree::new(4).unwrap();
    let mut sim = Sim::new(7);
    let links: Vec<LinkId> = (0..tree.links())
        .map(|link| {
            add(
                &mut sim,
                LinkConfig {
                    name: tree.link_name(link),
                    rate: Rate::Constant(rate),
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
        let source = if from % 3 == 0 { Source::File { bytes: 1_000_000 } } else { Source::Greedy };
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
            let (mut sim, flows) = tree(law, 2 * MS, 50 * MBIT);
            sim.set_threads(threads);
            let mut parts = 1;
            for step in 1..=15 {
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
    let (mut sim, _) = tree("lia", 2 * MS, 100 * MBIT);
    sim.set_threads(2);
    sim.run_on(100 * MS);
    let parts = sim.parts();
    sim.gather();
    assert_eq!((parts, sim.would_part(2)), (2, Some((2, 2 * MS))));
}

/// Where it is put together often and little happens meanwhile, it is soon left whole.
#[test]
fn what_is_not_worth_it_stays_whole() {
    let (mut sim, _) = tree("lia", 2 * MS, MBIT / 5);
    sim.set_threads(2);
    let mut apart = 0;
    for step in 1..=200 {
        sim.run_on(step * 100 * MS);
        apart += usize::from(sim.parts() > 1);
        sim.gather();
    }
    assert!((1..=12).contains(&apart), "in parts in {apart} of 200 steps");
}

/// Sources and retransmissions that wait for long are as they were, each time it is put together.
#[test]
fn timers_survive_being_taken_apart() {
    let run = |threads| {
        let (mut sim, mut flows) = tree("reno", 2 * MS, 100 * MBIT);
        let ways = [LinkId(0), LinkId(1)].map(|link| route(&mut sim, &[link]));
        for (number, way) in (0..).zip(ways) {
            let source = Source::Rate { mean_pps: 300.0, size: SizeDist::Constant(500) };
            let active = (0..2000).map(|n| (n * 50 * MS + number, n * 50 * MS + 30 * MS)).collect();
            let config = UdpConfig { name: "udp".into(), route: way, back: None, source, active };
            flows.push(FlowId::Udp(sim.add_udp(config)));
        }
        assert!(sim.would_part(2).is_some());
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
    assert_eq!((sim.parts(), sim.would_part(2)), (1, None));
    assert!(sim.connection(ConnId(0)).delivered_bytes > 0);
}

/// The delay of managed links is unknown ahead: they are in few of these.
fn any_links() -> impl Strategy<Value = Vec<LinkConfig>> {
    let plain = any_link().prop_map(|link| {
        let LinkConfig { discipline, ecn, policer, reorder, wifi, .. } = LinkConfig::default();
        LinkConfig { discipline, ecn, policer, reorder, wifi, ..link }
    });
    prop::collection::vec(prop_oneof![8 => plain, 1 => any_link()], 1..12)
}

/// Whatever the links of a fat tree and its flows, and whatever happens to them.
#[test]
fn any_tree_is_the_same_on_any_number_of_threads() {
    let config =
        ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
    let parted = Cell::new(0);
    let cases = (
        any_links(),
        prop::collection::vec(any_connection(), 4..16),
        prop::collection::vec(any_way(), 0..3),
        prop::collection::vec((1..200 * MS, anything()), 6..12),
        any::<u64>(),
    );
    let case = |(links, mut connections, udp, steps, seed): (
        _,
        Vec<Connect>,
        Vec<_>,
        Vec<(u64, Happens)>,
        _,
    )| {
        let topology = Topology::FatTree(links);
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
            let (mut states, mut parts) = (vec![], 1);
            for (step, event) in &steps {
                happen(&mut sim, &topology, &ids, &links, &mut HashMap::new(), event.clone());
                sim.run_on(sim.now() + step);
                parts = parts.max(sim.parts());
                sim.gather();
                states.push(state(&sim, &flows));
            }
            (states, parts)
        };
        let (alone, _) = run(1);
        for threads in [2, 3, 8] {
            let (several, parts) = run(threads);
            prop_assert!(several == alone, "{threads} threads");
            parted.set(parted.get() + usize::from(parts > 1));
        }
        Ok(())
    };
    TestRunner::new(config).run(&cases, case).unwrap();
    assert!(parted.get() >= 60, "in parts in {} of 180 runs", parted.get());
}
