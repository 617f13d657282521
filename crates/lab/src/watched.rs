//! What is kept of a run besides its series: queues and losses, which pages show, and estimates of model laws.

use narrows_net::{Nanos, SECOND};
use narrows_stats::round;
use serde::{Deserialize, Serialize};

use crate::measured::{Observed, PathState, mbps, ms, seconds};
use crate::scenario::Scenario;

/// Of all links and of the flows in the series, at the times of the series.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watched {
    /// The times, seconds since the start of the run.
    pub time_s: Vec<f64>,
    /// By link of the scenario.
    pub links: Vec<WatchedLink>,
    /// By flow and path; nothing of a flow that is not in the series.
    pub retransmits: Vec<Vec<Count>>,
    /// By flow and path: a model law's estimates of the bandwidth, Mbit/s of payload; empty without such a law.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_mbps: Vec<Vec<Vec<f64>>>,
}

/// A link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WatchedLink {
    /// How long a packet that came then would wait, ms.
    pub queue_ms: Vec<f64>,
    /// Packets dropped since the time before.
    pub drops: Count,
}

/// What a counter that grows counted between looks at it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// By time.
    pub since: Vec<u64>,
    #[serde(skip)]
    last: u64,
}

impl Count {
    fn see(&mut self, now: u64) {
        self.since.push(now.saturating_sub(self.last));
        self.last = now;
    }
}

impl Watched {
    /// Of a run that starts now.
    pub fn new(scenario: &Scenario) -> Watched {
        Watched {
            time_s: Vec::new(),
            links: vec![WatchedLink::default(); scenario.links.len()],
            retransmits: vec![Vec::new(); scenario.flows.len()],
            bandwidth_mbps: Vec::new(),
        }
    }

    /// The counters of all links are 0 again.
    pub fn begin(&mut self) {
        self.links.iter_mut().for_each(|link| link.drops.last = 0);
    }

    /// Looks at all links.
    pub fn see_links(&mut self, now: Nanos, host: &impl Observed) {
        self.time_s.push(seconds(now));
        for (index, link) in self.links.iter_mut().enumerate() {
            link.queue_ms.push(round(ms(host.queue_delay(index))));
            link.drops.see(host.link(index).dropped());
        }
    }

    /// Looks at a path of a flow.
    pub fn see_path(&mut self, flow: usize, path: usize, now: &PathState) {
        entry(&mut self.retransmits[flow], path).see(now.retransmits);
        if now.bandwidth > 0 {
            let estimates = entry(entry(&mut self.bandwidth_mbps, flow), path);
            estimates.push(round(mbps(now.bandwidth, SECOND)));
        }
    }
}

/// The entry `at` of a list, made if it is not there.
fn entry<T: Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    list.resize_with(list.len().max(at + 1), T::default);
    &mut list[at]
}
