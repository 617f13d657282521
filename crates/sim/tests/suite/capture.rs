//! Captures: the same packets seen at both ends.

use crate::common;

use std::collections::BTreeMap;

use common::*;
use narrows_net::{Limit, LinkConfig, Rate};
use narrows_sim::Sim;
use narrows_sim::capture::{Captured, Point};
use narrows_traffic::FlowId;

/// Two paths of 10 Mbit/s with short queues, and what both hosts saw in a second.
fn hosts() -> (Vec<Captured>, Vec<Captured>) {
    let mut sim = Sim::new(1);
    let paths = [10, 30].map(|delay| {
        let config = link("there", Rate::Constant(10 * MBIT), delay * MS);
        let there = add(&mut sim, LinkConfig { limit: Limit::Packets(20), ..config });
        let back = add(&mut sim, link("back", Rate::Infinite, delay * MS));
        path(&mut sim, &[there], &[back])
    });
    let flow = FlowId::Connection(sim.add_connection(greedy(paths.to_vec())));
    for point in [Point::Sender(flow), Point::Receiver(flow)] {
        sim.capture(point);
    }
    sim.run_until(S);
    sim.drain_captured().partition(|packet| packet.point == Point::Sender(flow))
}

#[test]
fn what_arrives_is_what_was_sent() {
    let (sender, receiver) = hosts();
    let key = |packet: &Captured| (packet.path, packet.forward, packet.id);
    let (mut arrived, mut lost) = (0, 0);
    for (sent, seen) in [(&sender, &receiver), (&receiver, &sender)] {
        let seen: BTreeMap<_, _> = seen.iter().map(|packet| (key(packet), packet)).collect();
        let leaves = |packet: &&Captured| packet.time == packet.sent;
        for packet in sent.iter().filter(leaves) {
            let Some(other) = seen.get(&key(packet)) else {
                lost += 1;
                continue;
            };
            arrived += 1;
            let delay = other.time - packet.time;
            assert!(delay >= [10, 30][packet.path] * MS, "{packet:?}");
            assert_eq!((other.sent, other.echo), (packet.sent, packet.echo));
            assert_eq!(format!("{:?}", other.body), format!("{:?}", packet.body));
        }
    }
    assert!(arrived > 1000 && lost > 5, "{arrived} arrived, {lost} were lost or are underway");
}

/// RFC 7323: every packet but the first echoes one that the other end sent, by timestamps of 1 ms.
#[test]
fn an_echo_is_of_a_packet_that_has_arrived() {
    let (sender, receiver) = hosts();
    for (here, forward) in [(&sender, true), (&receiver, false)] {
        for (index, packet) in here.iter().enumerate() {
            if packet.forward != forward {
                continue;
            }
            let before = here[..index].iter().rev();
            let mut arrived = before.filter(|p| p.forward != forward && p.path == packet.path);
            match packet.echo {
                Some(echo) => {
                    assert!(arrived.any(|other| other.sent / MS == echo / MS), "{packet:?}")
                }
                None => assert_eq!(arrived.count(), 0, "{packet:?}"),
            }
        }
    }
}

/// A link shows what it has not dropped, when it reaches its far end.
#[test]
fn a_link_shows_what_reaches_its_far_end() {
    let mut sim = Sim::new(1);
    let config = link("there", Rate::Constant(10 * MBIT), 10 * MS);
    let there = add(&mut sim, LinkConfig { limit: Limit::Packets(20), ..config });
    let last = add(&mut sim, link("last", Rate::Infinite, 5 * MS));
    let back = add(&mut sim, link("back", Rate::Infinite, 15 * MS));
    let path = path(&mut sim, &[there, last], &[back]);
    let flow = FlowId::Connection(sim.add_connection(greedy(vec![path])));
    for point in [Point::Link(there), Point::Receiver(flow)] {
        sim.capture(point);
    }
    sim.run_until(S);
    let key = |packet: &Captured| (packet.id, packet.sent, packet.echo, packet.size);
    let (link, host): (Vec<_>, Vec<_>) =
        sim.drain_captured().partition(|packet| packet.point == Point::Link(there));
    let host: Vec<_> = host.iter().filter(|packet| packet.forward).collect();
    assert!(host.len() > 500 && sim.network().counters(there).dropped() > 0);
    for (at_link, at_host) in link.iter().zip(&host) {
        assert_eq!(key(at_link), key(at_host));
        assert_eq!(at_host.time, at_link.time + 5 * MS);
    }
}
