//! What every link has, and all that a plain one does: packets pass in order, and when one leaves is
//! known as it enters.

#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;

use crate::jitter::Jitter;
use crate::loss::Losses;
use crate::packet::Packet;
use crate::queue::{Entry, Fifo};
use crate::rate::Server;
use crate::{Counters, Limit, Nanos};

/// What every link has, in the order in which cache lines are touched: one by packets that enter,
/// two by those that enter and those that leave, then what few packets need.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Core {
    pub server: Server,
    pub limit: Limit,
    pub delay: Nanos,
    /// Arrival of the last packet whose transmission is known, without its detour.
    pub last_arrival: Nanos,
    /// All packets of a plain link; of a managed one those that no longer wait.
    pub fifo: Fifo,
    pub mtu: u32,
    /// Whether all that will happen to the packets on the link is known: there is nothing beside this.
    pub plain: bool,
    /// Whether an observer wants to know what arrives at the far end.
    pub watched: bool,
    /// Whether there are losses, and whether there is jitter: these are in a line that few packets need.
    pub loses: bool,
    pub varies: bool,
    pub counters: Counters,
    pub losses: Option<Box<Losses>>,
    pub jitter: Option<Box<Jitter>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(Core, fifo) == 64, "only packets that enter need the first line");
    assert!(offset_of!(Core, counters.dropped_queue) <= 192, "the rest fits into two more");
};

impl Core {
    /// When a packet arrives whose transmission ends at `end`, if it need not wait for others.
    #[inline(always)]
    pub fn propagate(&mut self, end: Nanos) -> Nanos {
        let jitter = if self.varies { self.draw_jitter(end) } else { 0 };
        end.saturating_add(self.delay + jitter)
    }

    #[inline(never)]
    fn draw_jitter(&mut self, end: Nanos) -> Nanos {
        self.jitter.as_mut().map_or(0, |jitter| jitter.draw(end))
    }

    /// Whether the link loses a packet at random.
    #[inline(never)]
    pub fn draw_loss(&mut self) -> bool {
        self.losses.as_mut().is_some_and(|losses| losses.next())
    }

    /// A packet enters a plain link. False if it was dropped.
    #[inline(always)]
    pub fn enter(&mut self, now: Nanos, packet: Packet) -> bool {
        self.fifo.settle(now);
        let start = self.server.start(now);
        let wait = start - now;
        if !self.fifo.admits(self.limit, packet.size, wait) {
            self.counters.dropped_queue += 1;
            return false;
        }
        self.counters.queue_delay.record(wait);
        let slot = self.server.serve(now, packet.size);
        self.last_arrival = self.last_arrival.max(self.propagate(slot.end));
        self.fifo.push(now, Entry { start, arrival: self.last_arrival, packet });
        true
    }
}
