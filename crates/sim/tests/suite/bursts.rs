//! Segments that leave in bursts, paced or not, and that are acknowledged in bursts.

use crate::common;

use common::*;
use narrows_net::{Limit, LinkConfig, LinkId, Rate};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_traffic::TcpConfig;

const MSS: u64 = 1448;

/// A greedy Reno flow over a link of `mbit` Mbit/s with an endless queue; returns the link and the
/// one back.
fn flow(mbit: u64, rtt: u64, tcp: TcpConfig) -> (Sim, LinkId, LinkId) {
    let mut sim = Sim::new(1);
    let forward = add(&mut sim, link("forward", Rate::Constant(mbit * MBIT), rtt / 2));
    let back = add(&mut sim, link("back", Rate::Infinite, rtt / 2));
    let path = path(&mut sim, &[forward], &[back]);
    // The receiver limits the window.
    sim.add_connection(ConnectionConfig { tcp, recv_buffer: 64 * MSS, ..greedy(vec![path]) });
    (sim, forward, back)
}

/// Slow start sends two packets for each that arrives: at a link of 100 Mbit/s, which is far from
/// full, half of each window queues for a moment, 80 us per packet. Pacing spreads it over half a
/// round trip, and only the initial window, which is not paced, queues.
#[test]
fn pacing_keeps_slow_start_from_queueing() {
    let peak = |pacing| {
        let (mut sim, forward, _) =
            flow(100, 100 * MS, TcpConfig { pacing, ..TcpConfig::default() });
        let queues = (0..6_000).map(|n| {
            sim.run_until(n * MS / 10);
            sim.network().queue_packets(forward, sim.now())
        });
        queues.max().expect("there are some")
    };
    let (paced, unpaced) = (peak(true), peak(false));
    assert!((25..=40).contains(&unpaced), "{unpaced} packets");
    assert!((8..=10).contains(&paced), "{paced} packets");
}

/// Each acknowledgement of two packets makes room for two. A sender that prefers bursts waits for a
/// third of its window, but not for more than 44; 120 to 240 packets fill this path, and the link is as full.
#[test]
fn a_sender_with_offload_waits_for_room_for_a_burst() {
    let run = |tso| {
        let mut sim = Sim::new(1);
        let access = add(&mut sim, link("access", Rate::Infinite, 0));
        let limit = Limit::Packets(150);
        let bottleneck = link("bottleneck", Rate::Constant(1_000 * MBIT), MS / 2);
        let bottleneck = add(&mut sim, LinkConfig { limit, ..bottleneck });
        let back = add(&mut sim, link("back", Rate::Infinite, MS / 2));
        let path = path(&mut sim, &[access, bottleneck], &[back]);
        let tcp = TcpConfig { tso, ..TcpConfig::default() };
        sim.add_connection(ConnectionConfig { tcp, ..greedy(vec![path]) });
        let (mut bursts, mut before) = (0, 0);
        for us in 0..300_000 {
            sim.run_until(us * 1_000);
            let sent = sim.network().counters(access).sent;
            bursts += u64::from(sent > before);
            before = sent;
        }
        (before, before as f64 / bursts as f64)
    };
    let ((packets, pairs), (with_offload, burst)) = (run(1), run(44));
    assert!((1.5..2.5).contains(&pairs), "{pairs} packets at once");
    assert!((15.0..44.0).contains(&burst), "{burst} packets at once");
    let full = with_offload as f64 / packets as f64;
    assert!((0.97..1.01).contains(&full), "{with_offload} packets instead of {packets}");
}

/// Packets every 12 us, gathered for 100 us: one acknowledgement for ten of them instead of two.
#[test]
fn a_receiver_that_gathers_acknowledges_in_stretches() {
    let run = |gro| {
        let (mut sim, forward, back) =
            flow(1_000, MS / 2, TcpConfig { gro, ..TcpConfig::default() });
        sim.run_until(S);
        let sent = |link| sim.network().counters(link).sent as f64;
        (sent(forward), sent(forward) / sent(back))
    };
    let ((packets, pairs), (gathered, stretch)) = (run(0), run(100_000));
    assert!((1.9..2.1).contains(&pairs), "{pairs} packets each");
    assert!((9.0..11.0).contains(&stretch), "{stretch} packets each");
    assert!((0.99..1.01).contains(&(gathered / packets)), "{gathered} instead of {packets}");
}

/// MPTCP over two paths of 20 Mbit/s, paced in bursts of up to 44 segments, by whichever scheduler:
/// both are full.
#[test]
fn pacing_fills_all_paths_of_a_connection() {
    use narrows_traffic::Scheduler;
    for scheduler in [Scheduler::Linux, Scheduler::MinRtt, Scheduler::RoundRobin] {
        let mut sim = Sim::new(1);
        let paths = [20 * MS, 60 * MS].map(|rtt| {
            let limit = Limit::Packets(100);
            let forward = link("forward", Rate::Constant(20 * MBIT), rtt / 2);
            let forward = add(&mut sim, LinkConfig { limit, ..forward });
            let back = add(&mut sim, link("back", Rate::Infinite, rtt / 2));
            path(&mut sim, &[forward], &[back])
        });
        let tcp = TcpConfig { pacing: true, tso: 44, ..TcpConfig::default() };
        let config = ConnectionConfig { tcp, scheduler, ..greedy(paths.to_vec()) };
        let connection = sim.add_connection(config);
        sim.run_until(20 * S);
        let mbits = sim.connection(connection).delivered_bytes as f64 * 8.0 / 20e6;
        assert!((36.0..40.0).contains(&mbits), "{scheduler:?}: {mbits} Mbit/s");
    }
}
