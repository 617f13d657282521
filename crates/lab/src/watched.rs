//! What a page shows of a run besides its series: queues and losses.

use narrows_net::Nanos;
use narrows_stats::round;
use serde::{Deserialize, Serialize};

use crate::measured::{Observed, ms, seconds};
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

    /// A path of a flow has sent so many segments again.
    pub fn see_path(&mut self, flow: usize, path: usize, retransmits: u64) {
        let paths = &mut self.retransmits[flow];
        paths.resize_with(paths.len().max(path + 1), Count::default);
        paths[path].see(retransmits);
    }
}
