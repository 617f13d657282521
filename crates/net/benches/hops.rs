//! How many packet-hops per second the network model does: `cargo bench -p narrows-net [-- NAME]`.
//!
//! A fixed number of packets circulates: each one delivered is sent again at once, as a window of
//! ACK-clocked traffic would. A packet-hop is one packet crossing one link.

use std::sync::Arc;
use std::time::Instant;

use narrows_net::rng::{below, stream};
use narrows_net::{
    Delivery, Header, Limit, LinkConfig, LinkId, MILLISECOND, Network, Rate, RouteId, Trace,
};

/// About the size of a simulated TCP segment.
type Payload = [u64; 8];

/// Each case is measured this often and the best is told: others may use the machine too.
const ROUNDS: usize = 5;

/// Packet-hops per round.
const HOPS: u64 = 2_000_000;

/// A network, its routes and how many packets circulate on each.
struct Case {
    name: &'static str,
    network: Network<Payload>,
    routes: Vec<RouteId>,
    window: u32,
}

fn link(rate: Rate, delay: u64) -> LinkConfig {
    LinkConfig { rate, delay, limit: Limit::Packets(1000), ..LinkConfig::default() }
}

/// One route over `length` links in a row.
fn chain(name: &'static str, rate: &Rate, length: usize, window: u32) -> Case {
    let mut network = Network::new(1);
    let links: Vec<LinkId> = (0..length)
        .map(|_| network.add_link(link(rate.clone(), MILLISECOND)).expect("a valid link"))
        .collect();
    let routes = vec![network.add_route(&links).expect("a valid route")];
    Case { name, network, routes, window }
}

/// As many routes of 4 links as there are links, drawn at random; delays differ, so that arrivals
/// interleave.
fn mesh(name: &'static str, size: u64, window: u32) -> Case {
    let mut rng = stream(1, 0);
    let mut network = Network::new(1);
    for _ in 0..size {
        let config = link(Rate::Constant(100_000_000), below(&mut rng, 20 * MILLISECOND));
        network.add_link(config).expect("a valid link");
    }
    let routes = (0..size)
        .map(|_| {
            let links = [(); 4].map(|()| LinkId(below(&mut rng, size) as u32));
            network.add_route(&links).expect("a valid route")
        })
        .collect();
    Case { name, network, routes, window }
}

fn main() {
    // 1 opportunity per ms for a minute: 12 Mbit/s.
    let text: String = (1..=60_000).map(|ms| format!("{ms}\n")).collect();
    let trace = Arc::new(Trace::parse(text.as_bytes(), "bench").expect("a valid trace"));

    let cases = [
        chain("chain of 1, 100 Mbit/s", &Rate::Constant(100_000_000), 1, 100),
        chain("chain of 10, 100 Mbit/s", &Rate::Constant(100_000_000), 10, 500),
        chain("chain of 2, trace", &Rate::Trace(trace), 2, 100),
        mesh("mesh of 100 links", 100, 10),
        mesh("mesh of 10,000 links", 10_000, 10),
    ];
    // Cargo itself passes `--bench`.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    for case in cases.into_iter().filter(|case| case.name.contains(&filter)) {
        let Case { name, mut network, routes, window } = case;
        for &route in routes.iter().cycle().take(routes.len() * window as usize) {
            network.enqueue(
                0,
                route,
                Header { size: 1500, ..Header::default() },
                Payload::default(),
            );
        }
        let sent =
            |network: &Network<_>| network.links().map(|l| network.counters(l).sent).sum::<u64>();
        let mut best: f64 = 0.0;
        for _ in 0..ROUNDS {
            let (start, begin) = (Instant::now(), sent(&network));
            while sent(&network) - begin < HOPS {
                for _ in 0..HOPS / 8 {
                    let Some(now) = network.next_time() else { break };
                    if let Some(delivery) = network.advance(now) {
                        let Delivery { time, route, size, payload, .. } = delivery;
                        let header = Header { size, ..Header::default() };
                        network.enqueue(time, route, header, payload);
                    }
                }
            }
            let hops = (sent(&network) - begin) as f64;
            best = best.max(hops / start.elapsed().as_secs_f64() / 1e6);
        }
        println!("{name:<24} {best:6.1} million packet-hops/s");
    }
}
