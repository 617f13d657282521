//! What a simulation reports about its connections and flows. Counters count from the start.

use narrows_laws::{Decision, State};
use narrows_net::Nanos;

/// State and counters of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionStats {
    /// Bytes handed in order to the receiving application.
    pub delivered_bytes: u64,
    /// When the (first) handshake was done at the sender.
    pub established: Option<Nanos>,
    /// When the receiving application had the whole file ([`Source::File`](narrows_traffic::Source::File)).
    pub completed: Option<Nanos>,
    /// When the sender had the acknowledgement of the whole file, in data sequence.
    pub acknowledged: Option<Nanos>,
    /// When a segment was first sent again as lost.
    pub first_loss: Option<Nanos>,
    /// How it stood when the last of all subflows had left its first slow start.
    pub slow_start_end: Option<SlowStartEnd>,
    /// Segments sent again, over all paths.
    pub retransmits: u64,
    /// Expiries of the retransmission timer, over all paths.
    pub timeouts: u64,
    /// Segments of data that had been given to a subflow before: the connection sent them again,
    /// as one subflow failed or closed or made no progress.
    pub reinjections: u64,
    /// The peer or a middlebox does not let MPTCP pass: this is plain TCP over the first path.
    pub fallback: bool,
    /// Subflows that were refused.
    pub failed_joins: u32,
    /// What order costs.
    pub head_of_line: HeadOfLine,
    /// Per path, in the order of the configuration; a path that is removed stays until another is
    /// added in its place.
    pub paths: Vec<PathStats>,
}

/// The moment when the last of all subflows has left its first slow start, and is out of the recovery
/// if a loss ended it: all are in congestion avoidance. A subflow that has not joined has not left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStartEnd {
    /// Segments sent again until then, over all paths.
    pub retransmits: u64,
    /// Sum of the congestion windows, packets.
    pub cwnd: u32,
}

/// How long data of MPTCP waits at the receiver for earlier data: from the arrival of a segment
/// until it and all before it can be handed to the application. What several subflows brought
/// counts the first time. Plain TCP's is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Segments handed on.
    pub packets: u64,
    /// Those that waited.
    pub waited: u64,
    /// Mean over all segments.
    pub mean: Nanos,
    /// 95th percentile over all segments; off by at most 1/32.
    pub p95: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// State of a path, and counters over all the paths that had this place.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// State last passed to the law; [`State::Free`] before the handshake is done and after the path
    /// was removed.
    pub state: State,
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
    /// A model law's estimate of the bandwidth, payload bytes/s; 0 of other laws, and before its first.
    pub bandwidth: u64,
    /// Time in which a subflow had something to send, or out, as Linux's `tcpi_busy_time`; 0 of plain TCP, which is
    /// not measured, and of a path that was removed.
    pub busy: Nanos,
    /// Data segments sent, retransmissions included.
    pub sent_packets: u64,
}

/// Decisions so far of the delay-based detector of a connection; empty without one.
/// Places are those of the paths in [`ConnectionStats::paths`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// What coupling followed, each from when it was made; at the sender from half a round trip later
    /// if it was made at the receiver.
    pub decisions: Vec<Decision>,
    /// What they were made of.
    pub observations: Vec<Decision>,
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
    /// What the sender of media knows; none of a flow without feedback.
    pub media: Option<MediaStats>,
}

/// State of media whose rate adapts, at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaStats {
    /// Reference rate, bit/s on the wire.
    pub rate_bps: u64,
    /// Newest RTT; 0 before the first.
    pub rtt: Nanos,
}
