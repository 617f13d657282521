//! What a flow of a file sent.

use crate::At;

/// The data of a flow, as the first pass over the file finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Packets with data; of a table its rows. What a network card put together counts as the segments
    /// that it was made of.
    pub packets: u64,
    /// Bytes of payload, also what was sent again; a table has none.
    pub bytes: Option<u64>,
    /// From the first packet to the last, seconds.
    pub duration_s: f64,
    /// The least round-trip time, ms, if the file shows it.
    pub min_rtt_ms: Option<f64>,
}

impl Traffic {
    /// Mbit/s, or of a table, which has no bytes, packets/s.
    pub fn rate(&self) -> f64 {
        let sent = self.bytes.map_or(self.packets as f64, |bytes| bytes as f64 * 8e-6);
        // A single packet has no rate.
        if self.duration_s > 0.0 { sent / self.duration_s } else { 0.0 }
    }
}

/// Which flows of a file are analysed, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest, at most [`crate::MAX_FLOWS`].
    pub flows: usize,
    /// Those with so many packets of data: control connections have a few, which show nothing of a
    /// bottleneck. If no flow of a file has as many as the default, all are analysed.
    pub packets: u64,
    /// Where a capture was made; else its packets tell.
    pub at: Option<At>,
}

impl Default for Limits {
    /// As the command has them.
    fn default() -> Limits {
        Limits { flows: 16, packets: 100, at: None }
    }
}
