//! The law `bbr3` over small networks: what its draft says of one flow, of two, beside CUBIC, with marks,
//! and of a group.

use crate::common;

use common::*;
use narrows_net::{Discipline, LinkConfig, Rate, Red, Weight};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::TcpConfig;

/// A greedy flow.
fn flow(law: &str, paths: Vec<PathConfig>) -> ConnectionConfig {
    ConnectionConfig { control: control(law), ..greedy(paths) }
}

/// `paths` paths through 20 Mbit/s and 20 ms with so much queue; 35 packets are a BDP. Three packets'
/// time of jitter, as in scenarios.
fn net(seed: u64, paths: usize, queue: u32) -> (Sim, Dumbbell, Vec<PathConfig>) {
    let mut sim = Sim::new(seed);
    let net = Dumbbell::new(&mut sim, paths, 20 * MBIT, 20 * MS, queue, 1_800_000);
    let paths = (0..paths).map(|n| net.path(&mut sim, n)).collect();
    (sim, net, paths)
}

#[test]
fn one_flow_fills_the_link_without_a_loss_in_a_queue_of_one_bdp() {
    let (mut sim, net, paths) = net(1, 1, 40);
    let one = sim.add_connection(flow("bbr3", paths));
    sim.run_until(10 * S);
    let before = sim.connection(one);
    let mut queued = 0;
    for n in 0..4_000 {
        sim.run_until(10 * S + n * 10 * MS);
        queued += sim.queue_delay(net.bottleneck);
    }
    let after = sim.connection(one);
    let mbit = (after.delivered_bytes - before.delivered_bytes) as f64 * 8.0 / 40e6;
    assert!(mbit > 18.0, "{mbit} of 19.2 Mbit/s of payload");
    assert!(queued / 4_000 < 6 * MS, "{} ns", queued / 4_000);
    assert_eq!(after.retransmits, before.retransmits);
}

#[test]
fn a_thousandth_lost_at_random_costs_little() {
    let mut sim = Sim::new(1);
    let path = lossy(&mut sim);
    let one = sim.add_connection(flow("bbr3", vec![path]));
    let mbit = goodput(&mut sim, &[one], 5 * S, 65 * S)[0];
    assert!(mbit > 84.0, "{mbit} of 96 Mbit/s");
}

#[test]
fn two_flows_share_a_link_equally() {
    for queue in [35, 70] {
        let (mut sim, _, paths) = net(1, 2, queue);
        let flows: Vec<_> =
            paths.into_iter().map(|path| sim.add_connection(flow("bbr3", vec![path]))).collect();
        let got = goodput(&mut sim, &flows, 20 * S, 120 * S);
        assert!((0.8..1.25).contains(&(got[0] / got[1])), "{got:?}");
        assert!(got[0] + got[1] > 18.0, "{got:?}");
    }
}

/// In a queue of one BDP. docs/results/bbr.md has the means over 20 seeds.
#[test]
fn cubic_keeps_a_share_of_a_short_queue_where_version_1_starves_it() {
    let beside = |law: &str, seed: u64| {
        let (mut sim, _, paths) = net(seed, 2, 35);
        let mut paths = paths.into_iter();
        let mut next = |law| flow(law, vec![paths.next().unwrap()]);
        let flows = [sim.add_connection(next(law)), sim.add_connection(next("cubic"))];
        goodput(&mut sim, &flows, 20 * S, 80 * S)[1]
    };
    for seed in 1..=3 {
        let (v1, v3) = (beside("bbr", seed), beside("bbr3", seed));
        assert!(v3 > 4.8, "{v3} of 19.2 Mbit/s");
        assert!(v3 > 1.4 * v1, "{v3} and {v1}");
    }
}

/// Marked from 5 packets on, all above 30, by the queue as it is: four flows hold a queue below that, and lose nothing.
#[test]
fn marks_hold_the_queue_short() {
    let run = |law: &str| {
        let mut sim = Sim::new(1);
        let red = Red { weight: Weight::Fixed(1.0), ..Red::default() };
        let there = link("there", Rate::Constant(20 * MBIT), 10 * MS);
        let there = LinkConfig { discipline: Discipline::Red(red), ecn: true, ..there };
        let there = add(&mut sim, there);
        let back = add(&mut sim, link("back", Rate::Constant(100 * MBIT), 10 * MS));
        let flows: Vec<_> = (0..4)
            .map(|_| {
                let path = path(&mut sim, &[there], &[back]);
                let tcp = TcpConfig { ecn: true, ..TcpConfig::default() };
                sim.add_connection(ConnectionConfig { tcp, ..flow(law, vec![path]) })
            })
            .collect();
        let got: f64 = goodput(&mut sim, &flows, 5 * S, 20 * S).iter().sum();
        let mut queued = 0;
        for n in 0..2_000 {
            sim.run_until(20 * S + n * 10 * MS);
            queued += sim.queue_delay(there);
        }
        (got, queued / 2_000)
    };
    let (got, queued) = run("bbr3");
    assert!(got > 16.0, "{got} of 19.2 Mbit/s");
    let (_, v1) = run("bbr");
    assert!(queued < 9 * MS && queued * 3 < v1 * 2, "{queued} ns, version 1 {v1} ns");
}
