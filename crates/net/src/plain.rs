//! What every link has, and all that a plain one does: packets pass in order, and when one leaves is
//! known as it enters.

use crate::jitter::Jitter;
use crate::loss::Losses;
use crate::packet::Packet;
use crate::queue::{Entry, Fifo};
use crate::rate::Server;
use crate::{Counters, Limit, Nanos};

/// What every link has.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Core {
    pub server: Server,
    /// All packets of a plain link; of a managed one those that no longer wait.
    pub fifo: Fifo,
    pub limit: Limit,
    pub mtu: u32,
    pub delay: Nanos,
    /// Arrival of the last packet whose transmission is known, without its detour.
    pub last_arrival: Nanos,
    pub losses: Option<Box<Losses>>,
    pub jitter: Option<Box<Jitter>>,
    pub counters: Counters,
}

impl Core {
    /// When a packet arrives whose transmission ends at `end`, if it need not wait for others.
    pub fn propagate(&mut self, end: Nanos) -> Nanos {
        let jitter = self.jitter.as_mut().map_or(0, |jitter| jitter.draw());
        end.saturating_add(self.delay + jitter)
    }

    /// A packet enters a plain link. False if it was dropped.
    pub fn enter(&mut self, now: Nanos, packet: Packet) -> bool {
        self.fifo.settle(now);
        let wait = self.server.start(now) - now;
        if !self.fifo.admits(self.limit, packet.size, wait) {
            self.counters.dropped_queue += 1;
            return false;
        }
        self.counters.queue_delay.record(wait);
        let slot = self.server.serve(now, packet.size);
        self.last_arrival = self.last_arrival.max(self.propagate(slot.end));
        self.fifo.push(now, Entry { start: slot.start, arrival: self.last_arrival, packet });
        true
    }
}
