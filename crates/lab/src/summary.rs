//! The result of a run, as `summary.json` holds it. No timing, host name or version is in that of
//! the simulator: the same scenario and seed give the same bytes anywhere.

use serde::{Deserialize, Serialize};

use crate::detection::PhaseDetection;
use crate::host_id::HostId;
use crate::metrics::{ConnectionSummary, LinkSummary, PassiveSummary, TestSummary};
use crate::setup::Setup;

/// The result of one run. All values are over the analysed time, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Congestion control of the connection under test.
    pub cc: Option<String>,
    /// The host.
    pub host: HostId,
    /// Seed of the run.
    pub seed: u64,
    /// The scenario as it was resolved; left out where a program made it and not a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
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
    /// How right the detector of the connection under test was, phase by phase; left out unless it
    /// has a delay-based one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detection: Vec<PhaseDetection>,
    /// The passive detectors of the connection under test; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<PassiveSummary>,
    /// The connection under test, as comparisons show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestSummary>,
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
