//! Active queue management: who is dropped, or marked, before the queue is full.
//!
//! RED and PIE judge a packet when it enters, CoDel when its transmission is due. FQ-CoDel and DualPI2
//! also choose whose turn it is.

pub(crate) mod codel;
pub(crate) mod dualpi2;
pub(crate) mod fq_codel;
pub(crate) mod pie;
pub(crate) mod red;

use crate::Counters;
use crate::packet::Packet;

/// What happens to a packet that a queue wants to be smaller for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// A signal to the sender: a mark if the link marks and the packet can bear it, else a drop.
    Signal,
    /// A drop in any case.
    Drop,
}

/// How a queue signals congestion to senders, and where that is counted.
#[derive(Debug)]
pub(crate) struct Signals<'a> {
    /// Whether the link marks.
    pub ecn: bool,
    pub counters: &'a mut Counters,
    /// Keys of the dropped packets.
    pub lost: &'a mut Vec<u32>,
}

impl Signals<'_> {
    /// Marks the packet. False if link or packet do not know ECN and it must be dropped instead.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        let marked = self.ecn && packet.mark();
        self.counters.marked += u64::from(marked);
        marked
    }

    pub fn drop(&mut self, packet: Packet) {
        self.counters.dropped_aqm += 1;
        self.lost.push(packet.key);
    }
}
