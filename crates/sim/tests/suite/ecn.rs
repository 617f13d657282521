//! Explicit congestion notification, from the queue that marks to the window that comes down.

use crate::common;

use common::*;
use narrows_net::{CoDel, Counters, Discipline, Limit, LinkConfig, Rate, Red};
use narrows_sim::{ConnectionConfig, PathStats, Sim};
use narrows_traffic::TcpConfig;

/// Five minutes of one Reno flow on a link of 20 Mbit/s, RTT 40 ms (67 packets), after 10 s.
fn flow(discipline: Discipline, ecn: bool) -> (Counters, PathStats) {
    let mut sim = Sim::new(1);
    let limit = Limit::Packets(200);
    let plain = link("bottleneck", Rate::Constant(20 * MBIT), 20 * MS);
    let bottleneck = add(&mut sim, LinkConfig { limit, discipline, ecn: true, ..plain });
    let back = add(&mut sim, link("back", Rate::Infinite, 20 * MS));
    let path = path(&mut sim, &[bottleneck], &[back]);
    let tcp = TcpConfig { ecn, ..TcpConfig::default() };
    let connection = sim.add_connection(ConnectionConfig { tcp, ..greedy(vec![path]) });
    sim.run_until(10 * S);
    sim.reset_link_counters();
    let before = sim.connection(connection).paths[0].clone();
    sim.run_until(310 * S);
    let after = sim.connection(connection).paths[0].clone();
    let path = PathStats {
        delivered_bytes: after.delivered_bytes - before.delivered_bytes,
        retransmits: after.retransmits - before.retransmits,
        ..after
    };
    (sim.network().counters(bottleneck).clone(), path)
}

/// Where the queue marks, the same flow is held to the same window without losing a packet.
///
/// Under RED it is a few percent slower: the average still is above the minimum when the window has
/// come down, so often another signal follows. A mark reduces again as soon as the window of the
/// last has arrived, after one round trip. A drop late in that window makes recovery last for two,
/// until the second retransmission has arrived, and what it covers reduces once. CoDel signals once.
#[test]
fn a_marked_flow_loses_nothing_and_goes_as_fast() {
    for discipline in [Discipline::Red(Red::default()), Discipline::CoDel(CoDel::default())] {
        let (dropped, without) = flow(discipline, false);
        assert!(dropped.marked == 0 && without.retransmits > 10, "{discipline:?}: {dropped:?}");
        let (marked, with) = flow(discipline, true);
        assert!(marked.marked > 10, "{discipline:?}: {marked:?}");
        assert_eq!((with.retransmits, with.timeouts), (0, 0), "{discipline:?}");
        let ratio = with.delivered_bytes as f64 / without.delivered_bytes as f64;
        assert!((0.92..1.05).contains(&ratio), "{discipline:?}: {ratio}");
    }
}
