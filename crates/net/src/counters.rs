//! What a link counts.

use crate::histogram::Histogram;

/// What a link has done since the start or the last [`crate::Network::reset_counters`]. A queue that
/// decides when a packet's turn comes (CoDel, FQ-CoDel, DualPI2) counts its drops and marks when next
/// something enters or leaves the link.
// In this order: what every packet changes lies side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Packets that came to the link.
    pub arrived: u64,
    /// Packets that reached its far end.
    pub sent: u64,
    /// Bytes on the wire of the packets that reached the far end.
    pub bytes_sent: u64,
    /// Queueing delay in ns: from the entry of a packet until its transmission starts. On a plain
    /// link it is known, and counted, at the entry, and a change during the run does not correct
    /// what was counted before the first one. Dropped packets do not count.
    pub queue_delay: Histogram,
    /// Packets dropped because the queue was full.
    pub dropped_queue: u64,
    /// Packets lost at random.
    pub dropped_random: u64,
    /// Packets dropped because they were larger than the MTU.
    pub dropped_mtu: u64,
    /// Packets dropped by the queue discipline before the queue was full.
    pub dropped_aqm: u64,
    /// Packets dropped by the policer.
    pub dropped_policer: u64,
    /// Packets dropped because the link was down or went down while they waited.
    pub dropped_down: u64,
    /// Packets marked by the queue discipline instead of being dropped.
    pub marked: u64,
}

impl Counters {
    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        let refused = self.dropped_queue + self.dropped_aqm + self.dropped_policer;
        refused + self.dropped_random + self.dropped_mtu + self.dropped_down
    }
}
