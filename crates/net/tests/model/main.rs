//! The network model against what theory, Mahimahi's rule and plain references say.

mod aqm;
mod conservation;
mod droptail;
mod features;
mod late;
mod loss;
mod mahimahi;
mod rate;
mod time;
mod waiting;
mod watch;

use narrows_net::{Delivery, Header, LinkConfig, Nanos, Network, RouteId};

/// A packet to send: when, along which route, and its size in bytes.
type Send = (Nanos, RouteId, u32);

/// The header of a packet of this size, of no flow in particular.
fn sized(size: u32) -> Header {
    Header { size, ..Header::default() }
}

/// A network of one link and the route over it.
fn one_link<P: Copy>(config: LinkConfig) -> (Network<P>, RouteId) {
    let mut network = Network::new(1);
    let link = network.add_link(config).unwrap();
    let route = network.add_route(&[link]).unwrap();
    (network, route)
}

/// Sends the packets, numbered in order, and returns what is delivered until nothing is underway.
/// `sends` must be in order of time.
fn run(network: &mut Network<usize>, sends: &[Send]) -> Vec<Delivery<usize>> {
    let mut deliveries = Vec::new();
    for (number, &(now, route, size)) in sends.iter().enumerate() {
        deliveries.extend(std::iter::from_fn(|| network.advance(now)));
        network.enqueue(now, route, sized(size), number);
    }
    deliveries.extend(std::iter::from_fn(|| network.advance(Nanos::MAX)));
    deliveries
}
