//! A k-ary fat tree: every host sends to one other and is sent to by one, over MPTCP under LIA,
//! each of 8 subflows on a random shortest path.

use narrows_laws::Control;
use narrows_net::rng::{below, stream};
use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Rate, SECOND};
use narrows_sim::topology::{FatTree, permutation};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};

use super::{Built, add};

const SUBFLOWS: usize = 8;
const BITS: u64 = 10_000_000_000;
const MTU: u32 = 9000;
const QUEUE: u32 = 100;
/// Of each link.
const DELAY: Nanos = 1000;
/// Of a host, three packet times: without it droptail queues beat in phase.
const JITTER: Nanos = 3 * MTU as Nanos * 8 * SECOND / BITS;

/// A stream of the seed that belongs to no connection.
const PLACEMENT: u64 = 1 << 62;

pub fn build(k: u32, milliseconds: u64) -> Built {
    let tree = FatTree::new(k).expect("an even number of ports");
    let mut sim = Sim::new(1);
    let mut rng = stream(1, PLACEMENT);
    // The links of hosts come first, up and down by turns.
    let is_sender = |link: u32| link < 2 * tree.hosts() && link % 2 == 0;
    let links: Vec<LinkId> = (0..tree.links())
        .map(|link| {
            let config = LinkConfig {
                rate: Rate::Constant(BITS),
                delay: DELAY,
                jitter: if is_sender(link) { JITTER } else { 0 },
                limit: Limit::Packets(QUEUE),
                mtu: MTU,
                quantiles: false,
                ..LinkConfig::default()
            };
            add(&mut sim, config)
        })
        .collect();
    let connections = (0..)
        .zip(permutation(tree.hosts(), &mut rng))
        .map(|(from, to)| {
            let chosen = tree.random_paths(from, to, SUBFLOWS, &mut rng);
            let mut route = |from, to, index| {
                let path = tree.path(from, to, index);
                let path: Vec<LinkId> = path.into_iter().map(|n| links[n as usize]).collect();
                sim.add_route(&path).expect("a valid route")
            };
            let paths = chosen
                .into_iter()
                .map(|index| PathConfig::new("", route(from, to, index), route(to, from, index)));
            let paths = paths.collect();
            sim.add_connection(ConnectionConfig {
                name: format!("host {from}"),
                multipath: true,
                paths,
                control: Control::LIA,
                active: vec![(below(&mut rng, MILLISECOND), Nanos::MAX)],
                ..ConnectionConfig::default()
            })
        })
        .collect();
    Built { sim, connections, mss: u64::from(MTU) - 76, until: milliseconds * MILLISECOND }
}
