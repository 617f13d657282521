//! What the default scheduler of out-of-tree MPTCP does when the receive buffer is full: the segment
//! that the receiver waits for goes out again on a quicker subflow, and a slower one's window is halved.

use crate::common;

use common::*;
use narrows_net::{LinkId, Nanos, Rate};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::{ConnId, Scheduler};

/// A path that loses nothing, and its link there.
fn ideal_path(sim: &mut Sim, rtt: Nanos) -> (PathConfig, LinkId) {
    let there = add(sim, link("there", Rate::Constant(100 * MBIT), rtt / 2));
    let back = add(sim, link("back", Rate::Infinite, rtt / 2));
    (path(sim, &[there], &[back]), there)
}

/// A greedy connection with a receive buffer of so many segments. It opens over the first path.
fn connect(sim: &mut Sim, first: PathConfig, segments: u64, scheduler: Scheduler) -> ConnId {
    let recv_buffer = segments * 1424;
    sim.add_connection(ConnectionConfig {
        multipath: true,
        scheduler,
        recv_buffer,
        ..greedy(vec![first])
    })
}

/// Runs on until the window of a path falls, and returns the windows of all before and after that.
fn next_fall(sim: &mut Sim, connection: ConnId, path: usize) -> (Vec<u32>, Vec<u32>) {
    let windows = |sim: &Sim| -> Vec<u32> {
        sim.connection(connection).paths.iter().map(|path| path.cwnd).collect()
    };
    let mut before = windows(sim);
    for _ in 0..10_000 {
        sim.run_until(sim.now() + MS);
        let after = windows(sim);
        if after[path] < before[path] {
            return (before, after);
        }
        before = after;
    }
    panic!("none falls: {before:?}");
}

/// Subflows of 2 s, 200 ms and 20 ms join in this order. The first has what the receiver waits for; the
/// second sends it again and halves the first's window, but not twice within its own RTT. When both
/// have it the third halves the window of the second, which joined last, and not that of the first.
#[test]
fn the_newest_that_has_the_segment_is_halved_once_per_rtt() {
    let mut sim = Sim::new(1);
    let paths = [2 * S, 200 * MS, 20 * MS].map(|rtt| ideal_path(&mut sim, rtt).0);
    let connection = connect(&mut sim, paths[0].clone(), 200, Scheduler::Mptcp089);
    sim.run_until(9 * S);
    sim.add_path(connection, &paths[1]);
    let (before, after) = next_fall(&mut sim, connection, 0);
    assert_eq!(after[0], before[0] / 2);
    assert_eq!(sim.connection(connection).reinjections, 1);
    let first = sim.now();
    sim.add_path(connection, &paths[2]);
    let (before, after) = next_fall(&mut sim, connection, 1);
    assert_eq!((after[0], after[1]), (before[0], before[1] / 2), "both have the segment");
    assert!(sim.now() < first + 100 * MS, "the second's has not arrived");
    assert_eq!(sim.connection(connection).reinjections, 2);
    let halved = sim.now();
    let (before, after) = next_fall(&mut sim, connection, 0);
    assert_eq!(after[0], before[0] / 2);
    assert!(sim.now() >= halved + 20 * MS, "{} ms after {}", sim.now() / MS, halved / MS);
}

/// A subflow that is not much quicker halves the other's window, but sends nothing again.
#[test]
fn a_subflow_of_half_the_rtt_halves_only() {
    let mut sim = Sim::new(1);
    let paths = [2 * S, S].map(|rtt| ideal_path(&mut sim, rtt).0);
    let connection = connect(&mut sim, paths[0].clone(), 60, Scheduler::Mptcp089);
    sim.run_until(5 * S);
    sim.add_path(connection, &paths[1]);
    let (before, after) = next_fall(&mut sim, connection, 0);
    assert_eq!(after[0], before[0] / 2);
    assert_eq!(sim.connection(connection).reinjections, 0);
}

/// New segments that a subflow sends after a timeout before all that was lost has arrived.
#[test]
fn a_subflow_gets_nothing_new_while_it_recovers_from_a_timeout() {
    let early = |scheduler| {
        let mut sim = Sim::new(1);
        let (dies, there) = ideal_path(&mut sim, 20 * MS);
        let (stays, _) = ideal_path(&mut sim, 2 * S);
        let connection = connect(&mut sim, dies, 100, scheduler);
        sim.add_path(connection, &stays);
        sim.run_until(6 * S);
        sim.set_link_up(there, false);
        sim.run_until(6 * S + 150 * MS);
        sim.set_link_up(there, true);
        let path = |sim: &Sim| sim.connection(connection).paths[0].clone();
        let new = |sim: &Sim| path(sim).sent_packets - path(sim).retransmits;
        let lost = new(&sim);
        let mut most = 0;
        while path(&sim).delivered_bytes < lost * 1424 {
            most = new(&sim) - lost;
            sim.run_until(sim.now() + MS);
        }
        assert_eq!(path(&sim).timeouts, 1);
        most
    };
    assert!(early(Scheduler::MinRtt) > 0);
    assert_eq!(early(Scheduler::Mptcp089), 0);
}
