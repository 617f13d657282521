//! MPTCP: several paths, one sequence, one window.

use crate::common;

use common::*;
use narrows_net::{LinkConfig, Nanos, Rate};
use narrows_sim::{PathConfig, Sim};
use narrows_traffic::Scheduler;

const MSS: u64 = 1424;

/// A link of its own for each path: rate in Mbit/s, one-way delay, droptail of one
/// bandwidth-delay product; and its way back.
fn disjoint(sim: &mut Sim, paths: &[(u64, Nanos)]) -> Vec<PathConfig> {
    paths
        .iter()
        .map(|&(mbit, delay)| {
            let packets = (mbit * MBIT * 2 * delay / S / 8 / 1500).max(20) as u32;
            let config = link("path", Rate::Constant(mbit * MBIT), delay);
            let limit = narrows_net::Limit::Packets(packets);
            let forward = add(sim, LinkConfig { limit, jitter: MS, ..config });
            let back = add(sim, link("back", Rate::Infinite, delay));
            path(sim, &[forward], &[back])
        })
        .collect()
}

/// Mbit/s of payload from 5 s to 35 s.
fn goodput(sim: &mut Sim, connection: narrows_traffic::ConnId) -> f64 {
    sim.run_until(5 * S);
    let before = sim.connection(connection).delivered_bytes;
    sim.run_until(35 * S);
    (sim.connection(connection).delivered_bytes - before) as f64 * 8.0 / 30e6
}

/// The second subflow joins when the first has data acknowledged, with a handshake of two round
/// trips of its own (RFC 8684, section 3.2: SYN, SYN/ACK, ACK, ACK), and only then carries data.
#[test]
fn a_join_takes_its_own_two_round_trips() {
    let mut sim = Sim::new(1);
    let paths = [20 * MS, 50 * MS].map(|delay| {
        let [forward, back] = [(); 2].map(|()| add(&mut sim, link("ideal", Rate::Infinite, delay)));
        path(&mut sim, &[forward], &[back])
    });
    let connection = sim.add_connection(greedy(paths.to_vec()));
    let joined = 2 * 40 * MS + 2 * 100 * MS;
    sim.run_until(joined - 1);
    let stats = sim.connection(connection);
    assert_eq!(stats.established, Some(40 * MS));
    assert_eq!((stats.paths[1].cwnd, stats.paths[1].sent_packets), (0, 0));
    sim.run_until(joined);
    assert_eq!(sim.connection(connection).paths[1].cwnd, 10);
}

#[test]
fn two_disjoint_links_carry_nearly_the_sum() {
    for scheduler in [Scheduler::Linux, Scheduler::MinRtt, Scheduler::RoundRobin] {
        let mut sim = Sim::new(1);
        let paths = disjoint(&mut sim, &[(10, 20 * MS), (10, 20 * MS)]);
        let mut config = greedy(paths);
        config.scheduler = scheduler;
        let connection = sim.add_connection(config);
        let mbit = goodput(&mut sim, connection);
        println!("{scheduler:?}: {mbit:.2} Mbit/s");
        assert!(mbit > 0.95 * 20.0 * MSS as f64 / 1500.0, "{scheduler:?}: {mbit}");
    }
}

/// minRTT fills the quick path and gives the slow one what is left of an application that
/// writes 6 Mbit/s; round-robin gives each its turn.
#[test]
fn min_rtt_prefers_the_quick_path_and_round_robin_does_not() {
    use narrows_traffic::{SizeDist, Source};
    let slow_share = |scheduler| {
        let mut sim = Sim::new(1);
        let paths = disjoint(&mut sim, &[(10, 5 * MS), (10, 50 * MS)]);
        let mut config = greedy(paths);
        config.scheduler = scheduler;
        config.source = Source::Rate { mean_pps: 500.0, size: SizeDist::Constant(1424) };
        let connection = sim.add_connection(config);
        sim.run_until(20 * S);
        let stats = sim.connection(connection);
        stats.paths[1].delivered_bytes as f64 / stats.delivered_bytes as f64
    };
    let (quick, turns) = (slow_share(Scheduler::MinRtt), slow_share(Scheduler::RoundRobin));
    println!("share of the slow path: minRTT {quick:.3}, round-robin {turns:.3}");
    assert!(quick < 0.05 && turns > 0.3, "{quick}, {turns}");
}

/// With a small receive buffer what the quick path brings waits for the slow one, and the window
/// closes (head-of-line blocking); with a large one both paths are full.
#[test]
fn a_small_shared_buffer_blocks_the_quick_path() {
    let with_buffer = |packets| {
        let mut sim = Sim::new(1);
        let paths = disjoint(&mut sim, &[(20, 5 * MS), (5, 100 * MS)]);
        let mut config = greedy(paths);
        config.recv_buffer = packets * MSS;
        let connection = sim.add_connection(config);
        goodput(&mut sim, connection)
    };
    let (small, large) = (with_buffer(60), with_buffer(4000));
    println!("60 packets: {small:.2} Mbit/s, 4000 packets: {large:.2} Mbit/s");
    assert!(large > 0.9 * 25.0 * MSS as f64 / 1500.0, "{large}");
    assert!(small < 0.5 * large, "{small} of {large}");
}

/// One path stands still from 1 s on. Its data goes out on the other after its timer's expiry,
/// and the file arrives.
#[test]
fn a_file_survives_the_blackout_of_a_path() {
    let mut sim = Sim::new(1);
    let forward = add(&mut sim, with_outages("dies", &[(1_000, 59_999)], 20));
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let mut paths = vec![path(&mut sim, &[forward], &[back])];
    paths.extend(disjoint(&mut sim, &[(10, 20 * MS)]));
    let bytes = 5_000_000;
    let connection = sim.add_connection(file(bytes, paths));
    sim.run_until(20 * S);
    let stats = sim.connection(connection);
    println!("{stats:?}");
    assert_eq!(stats.delivered_bytes, bytes);
    assert!(stats.completed.is_some_and(|t| t < 5 * S), "{stats:?}");
    assert!(stats.reinjections > 0 && stats.paths[0].timeouts > 3, "{stats:?}");
}

/// Both paths stand still from 1 s on. The timer of the first, which is quicker, expires first, so
/// its data waits first for the other path; that never comes back. What the other one holds must
/// not wait behind it: the first comes back after a second and carries all.
#[test]
fn a_dead_path_does_not_hold_up_what_others_reinject() {
    let mut sim = Sim::new(1);
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let comes_back = add(&mut sim, with_outages("comes back", &[(1_000, 2_000)], 100));
    let dies = with_outages("dies", &[(1_000, 59_999)], 100);
    let dies = add(&mut sim, LinkConfig { delay: 100 * MS, ..dies });
    let paths = [comes_back, dies].map(|there| path(&mut sim, &[there], &[back]));
    let bytes = 3_000_000;
    let connection = sim.add_connection(file(bytes, paths.to_vec()));
    sim.run_until(20 * S);
    let stats = sim.connection(connection);
    assert!(stats.completed.is_some_and(|t| t < 8 * S), "{stats:#?}");
}

/// One path dies, and what it held goes out on the other. Later the other stands still for a
/// second: nobody else could take its data, and it sends it again by itself, not twice.
#[test]
fn a_path_does_not_reinject_its_own_data() {
    let mut sim = Sim::new(1);
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let pauses = add(&mut sim, with_outages("pauses", &[(4_000, 5_000)], 30));
    let dies = add(&mut sim, with_outages("dies", &[(500, 59_999)], 30));
    let paths = [pauses, dies].map(|there| path(&mut sim, &[there], &[back]));
    let connection = sim.add_connection(greedy(paths.to_vec()));
    sim.run_until(4 * S);
    let before = sim.connection(connection);
    sim.run_until(20 * S);
    let after = sim.connection(connection);
    assert!(before.reinjections > 0 && after.paths[0].timeouts > before.paths[0].timeouts);
    assert_eq!(after.reinjections, before.reinjections);
}

/// One path stands still from 3 s to 10 s. The connection goes on over the other, and takes the
/// path up again when it comes back.
#[test]
fn a_path_that_comes_back_is_used_again() {
    let mut sim = Sim::new(1);
    let forward = add(&mut sim, with_outages("radio", &[(3_000, 10_000)], 20));
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let mut paths = vec![path(&mut sim, &[forward], &[back])];
    paths.extend(disjoint(&mut sim, &[(10, 20 * MS)]));
    let connection = sim.add_connection(greedy(paths));
    let mut delivered = |until: u64| {
        sim.run_until(until);
        let stats = sim.connection(connection);
        (stats.delivered_bytes, stats.paths[0].delivered_bytes)
    };
    // The other path carries 10 Mbit/s all the time, the radio 12 when it is there. It takes about
    // a second of silence until the radio counts as failed and its data goes out on the other.
    let [start, broken, failed, outage, back, end] = [2, 3, 5, 9, 20, 30].map(|s| delivered(s * S));
    let mbit = |from: u64, to: u64, seconds: f64| (to - from) as f64 * 8.0 / 1e6 / seconds;
    assert!(mbit(start.0, broken.0, 1.0) > 18.0);
    assert!(mbit(failed.0, outage.0, 4.0) > 9.0, "{}", mbit(failed.0, outage.0, 4.0));
    assert!(outage.1 - broken.1 < 100_000);
    assert!(mbit(back.0, end.0, 10.0) > 18.0, "{}", mbit(back.0, end.0, 10.0));
}
