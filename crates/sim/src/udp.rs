//! A flow of UDP packets: what the application writes goes out, what arrives is counted.

use narrows_net::{Nanos, RouteId};
use narrows_traffic::{Generator, Write};

use crate::packet::Body;
use crate::stats::UdpStats;
use crate::wire::Wire;

/// A UDP flow.
#[derive(Debug)]
pub(crate) struct Udp {
    route: RouteId,
    generator: Generator,
    pub stats: UdpStats,
}

impl Udp {
    pub fn new(route: RouteId, generator: Generator) -> Self {
        Udp { route, generator, stats: UdpStats::default() }
    }

    /// First time of the application.
    pub fn first_start(&self) -> Nanos {
        self.generator.first_start()
    }

    /// The application's time has come. Returns when it comes again.
    pub fn on_source(&mut self, wire: &mut Wire) -> Nanos {
        let (write, next) = self.generator.wake(wire.now);
        if let Write::Message(size) = write {
            self.stats.sent_packets += 1;
            wire.send(self.route, 0, Body::Udp { size });
        }
        next
    }

    /// A packet of `size` bytes arrived.
    pub fn on_packet(&mut self, size: u32) {
        self.stats.received_packets += 1;
        self.stats.received_bytes += u64::from(size);
    }
}
