//! What a host counts of a running scenario, from which all metrics are made.

use narrows_net::{Counters, Nanos};
use narrows_sim::HeadOfLine;

/// What can be seen of a running scenario. Flows, their paths and links are named by their indices
/// in the scenario.
pub trait Observed {
    /// State and counters of a flow.
    fn flow(&self, flow: usize) -> FlowState;
    /// How long a packet that came now would wait in a link's queue.
    fn queue_delay(&self, link: usize) -> Nanos;
    /// What a link did since the end of the warm-up.
    fn link(&self, link: usize) -> &Counters;
}

/// State of a flow, and what it counted since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct FlowState {
    /// Bytes handed in order to the receiving application; UDP: that arrived, with headers.
    pub delivered: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments given to a second subflow.
    pub reinjections: u64,
    /// When the whole file was there.
    pub completed: Option<Nanos>,
    /// MPTCP goes on as plain TCP.
    pub fallback: bool,
    /// What order costs at the receiver, where the host measures it.
    pub head_of_line: Option<HeadOfLine>,
    /// By path; none of UDP.
    pub paths: Vec<PathState>,
}

/// State of a path, and what it counted since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct PathState {
    /// Payload bytes acknowledged.
    pub delivered: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow start threshold, packets; none before the first loss.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT; 0 before it was measured.
    pub srtt: Nanos,
    /// Packets in flight.
    pub inflight: u32,
}

/// The samples of a path in the analysed time.
#[derive(Clone, Debug, Default)]
pub struct PathSamples {
    /// Congestion window, packets.
    pub cwnd: Vec<f64>,
    /// Smoothed RTT, ms.
    pub srtt_ms: Vec<f64>,
}
