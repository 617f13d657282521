//! End points outside of the simulator send over its links, beside its flows.

use crate::common;

use common::{MBIT, MS, S, add, greedy, link, path, route};
use narrows_net::{Header, Limit, LinkConfig, Rate};
use narrows_sim::{Datagram, Sim};

/// 12 Mbit/s, a millisecond for 1500 bytes, with a queue of two packets.
fn bottleneck() -> LinkConfig {
    LinkConfig { limit: Limit::Packets(2), ..link("link", Rate::Constant(12 * MBIT), 5 * MS) }
}

#[test]
fn datagrams_arrive_at_their_times_and_those_that_are_dropped_are_named() {
    let mut sim = Sim::new(1);
    sim.keep_lost();
    let link = add(&mut sim, bottleneck());
    let route = route(&mut sim, &[link]);
    let header = Header { size: 1500, ..Header::default() };
    for key in 0..5 {
        sim.send(route, header, key);
    }
    assert_eq!(sim.drain_lost().collect::<Vec<_>>(), [3, 4]);
    for key in 0..3 {
        assert_eq!(sim.run_to_datagram(S), Some(Datagram { key, ce: false }));
        assert_eq!(sim.now(), (6 + u64::from(key)) * MS);
    }
    assert_eq!((sim.run_to_datagram(S), sim.now()), (None, S));
}

/// The queue is full of both; only what is from outside is named.
#[test]
fn datagrams_take_their_part_of_a_link_from_its_flows() {
    let mut sim = Sim::new(1);
    sim.keep_lost();
    let forward = add(&mut sim, bottleneck());
    let back = add(&mut sim, link("back", Rate::Infinite, 5 * MS));
    let route = route(&mut sim, &[forward]);
    let path = path(&mut sim, &[forward], &[back]);
    let tcp = sim.add_connection(greedy(vec![path]));
    let (mut sent, mut arrived, mut lost) = (0, 0, 0);
    // A half of the link.
    for time in (0..10 * S).step_by(2 * MS as usize) {
        while sim.run_to_datagram(time).is_some() {
            arrived += 1;
        }
        sim.send(route, Header { size: 1500, ..Header::default() }, sent);
        sent += 1;
        lost += sim.drain_lost().inspect(|&key| assert!(key < sent)).count() as u32;
    }
    while sim.run_to_datagram(11 * S).is_some() {
        arrived += 1;
    }
    assert!(lost > 0 && arrived + lost == sent, "{arrived} and {lost} of {sent}");
    let tcp = sim.connection(tcp).delivered_bytes as f64 * 8.0 / 10.0 / 1e6;
    assert!((4.0..8.0).contains(&tcp), "{tcp} Mbit/s");
}
