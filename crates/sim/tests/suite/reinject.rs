//! What out-of-tree MPTCP does after a subflow's timeout: all that the subflow holds goes out again on
//! another, each segment once.

use crate::common;

use common::*;
use narrows_net::{Limit, LinkConfig, Nanos, Rate};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_traffic::{ConnId, Scheduler};

/// When the first path dies.
const DEATH: u64 = 12 * S;

/// Two paths, of 20 ms and of `rtt`, of which the first dies; how many segments it holds then.
fn silent(scheduler: Scheduler, rtt: Nanos) -> (Sim, ConnId, u64) {
    let mut sim = Sim::new(1);
    let short = |name, delay| LinkConfig {
        limit: Limit::Packets(30),
        ..link(name, Rate::Constant(10 * MBIT), delay)
    };
    let there = add(&mut sim, short("dies", 10 * MS));
    let also = add(&mut sim, short("stays", rtt / 2));
    let back = add(&mut sim, link("back", Rate::Infinite, 0));
    let paths = [there, also].map(|link| path(&mut sim, &[link], &[back]));
    let connection = sim.add_connection(ConnectionConfig {
        multipath: true,
        scheduler,
        ..greedy(paths.to_vec())
    });
    sim.run_until(DEATH);
    sim.set_link_up(there, false);
    // Acknowledgements that were underway have come: 20 ms, and a queue.
    sim.run_until(DEATH + 100 * MS);
    let dead = &sim.connection(connection).paths[0];
    let held = dead.sent_packets - dead.retransmits - dead.delivered_bytes / 1424;
    (sim, connection, held)
}

/// The first tries again three times before the second's acknowledgements come.
#[test]
fn all_that_a_subflow_held_goes_out_again_once() {
    let (mut sim, connection, held) = silent(Scheduler::Mptcp089Reinject, 4 * S);
    sim.run_until(DEATH + 30 * S);
    let stats = sim.connection(connection);
    assert!(stats.paths[0].timeouts >= 3, "it tries again: {}", stats.paths[0].timeouts);
    assert!(held > 10);
    assert_eq!(stats.reinjections, held);
}

/// Without it only the connection's own timer helps, a head at a time.
#[test]
fn what_waits_for_a_silent_subflow_is_there_a_timeout_later() {
    let delivered = |scheduler| {
        let (mut sim, connection, _) = silent(scheduler, 60 * MS);
        sim.run_until(DEATH + 700 * MS);
        sim.connection(connection).delivered_bytes
    };
    assert!(delivered(Scheduler::Mptcp089Reinject) > delivered(Scheduler::Mptcp089));
}
