//! What a simulation tells about its connections and flows. Counters count from the start.

use narrows_net::Nanos;

/// State and counters of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionStats {
    /// Bytes handed in order to the receiving application.
    pub delivered_bytes: u64,
    /// When the (first) handshake was done at the sender.
    pub established: Option<Nanos>,
    /// When the receiving application had the whole file ([`Source::File`](crate::Source::File)).
    pub completed: Option<Nanos>,
    /// Segments sent again, over all paths.
    pub retransmits: u64,
    /// Expiries of the retransmission timer, over all paths.
    pub timeouts: u64,
    /// Segments sent on another path than their first, after a timeout there.
    pub reinjections: u64,
    /// Per path, in the order of the configuration.
    pub paths: Vec<PathStats>,
}

/// State and counters of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// Payload bytes newly acknowledged, cumulatively or selectively.
    pub delivered_bytes: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985, section 7).
    pub probes: u64,
    /// Reductions of the window that turned out to be for nothing and were undone.
    pub undos: u64,
    /// Congestion window, packets; 0 before the handshake is done.
    pub cwnd: u32,
    /// Slow start threshold, packets.
    pub ssthresh: u32,
    /// Smoothed RTT, 0 before the first sample.
    pub srtt: Nanos,
    /// Packets in flight.
    pub inflight: u32,
    /// Newest sample of the delivery rate, payload bytes/s, as Linux's tcpi_delivery_rate: one that
    /// the application limited only if it is higher. 0 before the first.
    pub delivery_rate: u64,
    /// Data segments sent, retransmissions included.
    pub sent_packets: u64,
}

/// Counters of a UDP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Bytes that arrived, on the wire.
    pub received_bytes: u64,
}
