//! The result of a run, as `summary.json` holds it. No timing, host name or version is in that of
//! the simulator: the same scenario and seed give the same bytes anywhere.

use serde::{Deserialize, Serialize};

use crate::detection::PhaseDetection;
use crate::host_id::HostId;
use crate::scenario::FlowKind;

/// The result of one run. All values are over the analysed time, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Congestion control of the connection under test.
    pub cc: Option<String>,
    /// What ran it.
    pub host: HostId,
    /// Seed of the run.
    pub seed: u64,
    /// Analysed time, seconds.
    pub duration_s: f64,
    /// All connections and flows, in the order of the scenario.
    pub connections: Vec<ConnectionSummary>,
    /// The scenario's links.
    pub links: Vec<LinkSummary>,
    /// How fairly the bottlenecks were shared.
    pub fairness: Fairness,
    /// How exactly the network kept real time; left out where time is the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitness: Option<Fitness>,
    /// How right the detector of the connection under test was, phase by phase; left out unless it has
    /// one that listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detection: Vec<PhaseDetection>,
}

/// One connection or flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSummary {
    /// Name in the scenario.
    pub name: String,
    /// What carries it.
    pub kind: FlowKind,
    /// Congestion control; none for UDP.
    pub cc: Option<String>,
    /// Payload handed to the receiving application in order, Mbit/s; for UDP what arrived, with
    /// headers.
    pub goodput_mbps: f64,
    /// From the start of the flow until the file was there, seconds.
    pub completion_s: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments given to a second subflow, as the first failed, closed or made no progress.
    pub reinjections: u64,
    /// Whether MPTCP fell back to TCP, as something on the way removes its options.
    pub fallback: bool,
    /// How long data waits at the receiver for earlier data that comes on other paths, from the start
    /// of the run; for multipath connections.
    pub head_of_line: Option<HeadOfLineSummary>,
    /// Goodput over the sum of the goodputs of the designated rivals at the true bottlenecks it
    /// crosses; for multipath connections and the connection under test.
    pub ratio_to_tcp: Option<f64>,
    /// Per path; empty for UDP.
    pub paths: Vec<PathSummary>,
}

/// Waiting for earlier data, over all segments, those that did not wait included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadOfLineSummary {
    /// Mean, ms.
    pub mean_ms: f64,
    /// 95 % quantile, ms.
    pub p95_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
}

/// One path of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSummary {
    /// Name of the route.
    pub name: String,
    /// Payload acknowledged on this path, Mbit/s.
    pub goodput_mbps: f64,
    /// Goodput over that of the rivals on this path.
    pub ratio_to_tcp: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Congestion window, packets: mean of the samples.
    pub mean_cwnd_packets: f64,
    /// Smoothed RTT, ms: mean of the samples.
    pub mean_srtt_ms: f64,
    /// Smoothed RTT, ms: 95 % quantile of the samples.
    pub p95_srtt_ms: f64,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Name in the scenario.
    pub name: String,
    /// Bits sent over what the link could have sent (a trace: at its mean rate; while it was down:
    /// nothing).
    pub utilization: f64,
    /// Packets dropped, for any reason.
    pub drops: u64,
    /// Those of them that the queue discipline dropped before the queue was full.
    pub aqm_drops: u64,
    /// Packets that it marked instead (ECN).
    pub marks: u64,
    /// Queueing delay of the packets, ms: mean.
    pub mean_queue_ms: f64,
    /// Queueing delay of the packets, ms: 95 % quantile.
    pub p95_queue_ms: f64,
}

/// How fairly the bottlenecks were shared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index over, at each true bottleneck, the goodputs of the connection under test and
    /// of the rival there: 1 if each shares its bottleneck equally with TCP. Without rivals: over
    /// the goodputs of all listed connections.
    pub jain: f64,
}

/// How exactly the network carried packets in real time, over the analysed time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// How much later than due packets went on, at every hop, ms: median.
    pub lateness_p50_ms: f64,
    /// The same, 99 % quantile.
    pub lateness_p99_ms: f64,
    /// The same, the most.
    pub lateness_max_ms: f64,
    /// How far a link was off its rate in the worst second, as a share of it.
    pub worst_second: f64,
    /// Whether the result may be read as that of the scenario; if not, averages leave it out.
    pub fit: bool,
    /// Why it may not, in a few words, as tables show it.
    pub why: Option<String>,
}
