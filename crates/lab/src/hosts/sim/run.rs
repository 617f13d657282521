//! One run of a scenario on the simulator.

use std::sync::atomic::Ordering;

use narrows_laws::Control;
use narrows_laws::raw::SSTHRESH_MAX;
use narrows_net::{ConfigError, Counters, LinkId, Nanos, SECOND};
use narrows_sim::{PathConfig, PathStats, Sim};
use narrows_traffic::FlowId;

use super::build::{Build, controls};
use super::capture::Capture;
use crate::Error;
use crate::detection::Trial;
use crate::host_id::HostId;
use crate::hosts::Job;
use crate::listening::OfListener;
use crate::measured::{FlowState, Observed, PathState};
use crate::metrics::ListenerSummary;
use crate::recorder::{Recorder, Run};
use crate::scenario::{EventKind, Scenario};
use crate::series::INTERVAL;
use crate::summary::Summary;

/// Runs `job`, whose congestion controls the simulator has.
///
/// # Errors
/// [`Error::Interrupted`] once `job.stop` is set, the network's error for an impossible link, or a
/// capture that cannot be written.
pub fn simulate(job: Job) -> Result<Run, Error> {
    let controls = controls(&job)?;
    let Job { scenario, control, seed, series, capture, stop, .. } = job;
    let scenario = &scenario.drawn(seed);
    let mut capture = capture.map(|request| Capture::new(scenario, seed, request)).transpose()?;
    let mut build = Build::new(scenario, seed)?;
    for (index, (flow, &control)) in scenario.flows.iter().zip(&controls).enumerate() {
        let here = scenario.test == Some(index);
        build.flow(flow, control, if here { &scenario.listeners } else { &[] })?;
    }
    let Build { sim, links, handles, paths, .. } = build;
    let mut run = Running { sim, links, handles, paths };
    let mut events = scenario.events.iter().peekable();
    if let Some(capture) = &mut capture {
        capture.begin(&mut run.sim, &run.handles, &run.links);
    }

    let mut recorder = Recorder::new(scenario, series);
    let mut now = 0;
    // What is captured waits in memory until its slice ends.
    let slice = (slice(scenario) / if capture.is_some() { 16 } else { 1 }).max(1);
    while now < scenario.end() {
        if now == scenario.warmup {
            recorder.begin(now, &run);
            run.sim.reset_link_counters();
        }
        let next = (now + INTERVAL).min(scenario.end());
        // The analysis begins exactly at the end of the warm-up.
        let next = if now < scenario.warmup { next.min(scenario.warmup) } else { next };
        let mut run_until = |sim: &mut Sim, time: Nanos| {
            while sim.now() < time {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                sim.run_until((sim.now() + slice).min(time));
                if let Some(capture) = &mut capture {
                    capture.write(sim)?;
                }
            }
            Ok(())
        };
        while let Some(event) = events.next_if(|event| event.at < next) {
            run_until(&mut run.sim, event.at)?;
            run.happen(&event.what).map_err(|error| Error::input(&scenario.name, error))?;
        }
        run_until(&mut run.sim, next)?;
        now = next;
        recorder.sample(now, &run);
    }

    if let Some(mut capture) = capture {
        capture.finish()?;
    }
    let cc = |flow: usize| scenario.algorithm(flow, control).map(|cc| cc.to_string());
    let trial = run.trial(scenario, &controls);
    let detection = trial.map_or_else(Vec::new, |trial| trial.by_phase());
    let decisions = trial.map_or_else(Vec::new, |trial| trial.decisions());
    let result = recorder.finish(now, &run, HostId::SIM, seed, cc, detection);
    let summary = Summary { listeners: run.listeners(scenario), ..result.summary };
    Ok(Run { summary, decisions, ..result })
}

/// A scenario in the simulator.
struct Running {
    sim: Sim,
    links: Vec<LinkId>,
    handles: Vec<FlowId>,
    paths: Vec<Vec<PathConfig>>,
}

impl Running {
    /// What the connection under test sampled and decided, if its detector is delay-based.
    fn trial<'a>(
        &'a self,
        scenario: &'a Scenario,
        controls: &[Option<Control>],
    ) -> Option<Trial<'a>> {
        let test = scenario.test?;
        let FlowId::Connection(id) = self.handles[test] else { return None };
        let log = self.sim.detection(id)?;
        let detector = controls[test]?.detector;
        Some(Trial { scenario, detector, log })
    }

    /// What the detectors found that listened to the connection under test.
    fn listeners(&self, scenario: &Scenario) -> Vec<ListenerSummary> {
        let test = scenario.test.map(|test| self.handles[test]);
        let Some(FlowId::Connection(id)) = test else { return Vec::new() };
        let listener = |heard| ListenerSummary::read(&OfListener::new(scenario, heard));
        self.sim.heard(id).map(listener).collect()
    }

    /// Lets something happen at this moment of the run.
    fn happen(&mut self, what: &EventKind) -> Result<(), ConfigError> {
        let Running { sim, links, handles, paths } = self;
        match what {
            EventKind::LinkUp(link, up) => sim.set_link_up(links[*link], *up),
            EventKind::LinkRate(link, rate) => sim.set_link_rate(links[*link], rate.clone())?,
            EventKind::LinkDelay(link, delay) => sim.set_link_delay(links[*link], *delay)?,
            EventKind::PathLost(flow, path) => {
                if let FlowId::Connection(id) = handles[*flow] {
                    sim.remove_path(id, *path);
                }
            }
            EventKind::PathAdded(flow, path) => {
                if let FlowId::Connection(id) = handles[*flow] {
                    sim.add_path(id, &paths[*flow][*path]);
                }
            }
        }
        Ok(())
    }
}

impl Observed for Running {
    fn flow(&self, flow: usize) -> FlowState {
        let id = match self.handles[flow] {
            FlowId::Connection(id) => id,
            FlowId::Udp(id) => {
                let delivered = self.sim.udp(id).received_bytes;
                return FlowState { delivered, ..FlowState::default() };
            }
        };
        let stats = self.sim.connection(id);
        let path = |path: &PathStats| PathState {
            delivered: path.delivered_bytes,
            retransmits: path.retransmits,
            cwnd: path.cwnd,
            ssthresh: (path.ssthresh < SSTHRESH_MAX).then_some(path.ssthresh),
            srtt: path.srtt,
            inflight: path.inflight,
        };
        FlowState {
            delivered: stats.delivered_bytes,
            retransmits: stats.retransmits,
            reinjections: stats.reinjections,
            completed: stats.completed,
            acknowledged: stats.acknowledged,
            first_loss: stats.first_loss,
            slow_start_end: stats.slow_start_end,
            fallback: stats.fallback,
            head_of_line: Some(stats.head_of_line),
            paths: stats.paths.iter().map(path).collect(),
        }
    }

    fn queue_delay(&self, link: usize) -> Nanos {
        self.sim.queue_delay(self.links[link])
    }

    fn link(&self, link: usize) -> &Counters {
        self.sim.network().counters(self.links[link])
    }
}

/// Simulated time between two looks at `stop`: that of a sample, or less if links are so fast that
/// it would be more than a million packets.
fn slice(scenario: &Scenario) -> Nanos {
    const BITS: u128 = 8 * 1500 * 1_000_000;
    let rate: u128 = scenario.links.iter().map(|link| u128::from(link.mean_rate())).sum();
    let bits = rate * u128::from(INTERVAL) / u128::from(SECOND);
    (u128::from(INTERVAL) / (1 + bits / BITS)).max(1) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load};

    #[test]
    fn fast_links_are_interrupted_as_soon_as_slow_ones() {
        let with = |rate: &str| {
            let set = vec![("links.wifi.rate".into(), rate.into())];
            slice(&load("phone/wifi-lte", &Edits { set, ..Edits::default() }).unwrap())
        };
        assert_eq!(with("30 Mbit/s"), INTERVAL);
        // 16.7 million packets in 100 ms.
        assert_eq!(with("2 Tbit/s"), INTERVAL / 17);
    }
}
