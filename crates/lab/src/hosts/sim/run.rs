//! One run of a scenario on the simulator.

use narrows_laws::Control;
use narrows_laws::raw::SSTHRESH_MAX;
use narrows_net::{Counters, LinkId, MILLISECOND, Nanos};
use narrows_sim::{Detection, MediaStats, PathConfig, PathStats, Sim, UdpStats};
use narrows_traffic::{ConnId, FlowId, Message};

use super::advised::Advised;
use super::build::{Build, controls};
use super::capture::Capture;
use crate::Error;
use crate::detection::Trial;
use crate::host_id::HostId;
use crate::hosts::Job;
use crate::hosts::world::{World, play, slice};
use crate::measured::{FlowState, Observed, PathState, seconds};
use crate::metrics::PassiveSummary;
use crate::passive::OfPassive;
use crate::recorder::Run;
use crate::scenario::{EventKind, Scenario};
use crate::summary::Summary;

/// Runs `job`, whose congestion controls the simulator has.
///
/// # Errors
/// [`Error::Interrupted`] once `job.stop` is set, the network's error for an impossible link, or a
/// capture that cannot be written.
pub fn simulate(job: Job) -> Result<Run, Error> {
    let controls = controls(&job)?;
    let Job { scenario, control, seed, series, capture, live, threads, stop, .. } = job;
    let scenario = &scenario.drawn(seed);
    let mut capture = capture.map(|request| Capture::new(scenario, seed, request)).transpose()?;
    let mut run = Running::new(scenario, &controls, seed)?;
    run.sim.set_threads(threads);
    if let Some(capture) = &mut capture {
        capture.begin(&mut run.sim, &run.handles, &run.links);
    }
    // What is captured waits in memory until its slice ends.
    let slice = (slice(scenario) / if capture.is_some() { 16 } else { 1 }).max(1);
    run.capture = capture;
    let recorder = play(&mut run, scenario, series, live, slice, stop)?;
    if let Some(capture) = &mut run.capture {
        capture.finish()?;
    }
    let cc = |flow: usize| scenario.algorithm(flow, control).map(|cc| cc.to_string());
    let trial = run.trial(&controls);
    let result = recorder.finish(run.now(), &run, HostId::SIM, seed, cc, trial);
    let summary = Summary { passive: run.passive(), ..result.summary };
    Ok(Run { summary, ..result })
}

/// `scenario` in the simulator, its flows under these controls.
fn built<'a>(
    scenario: &'a Scenario,
    controls: &[Option<Control>],
    seed: u64,
) -> Result<Build<'a>, Error> {
    let mut build = Build::new(scenario, seed)?;
    for (index, (flow, &control)) in scenario.flows.iter().zip(controls).enumerate() {
        let here = scenario.test == Some(index);
        build.flow(flow, control, if here { &scenario.passive } else { &[] })?;
    }
    Ok(build)
}

/// The parts that `job` would run in on its threads, and how far they run by themselves; none if it stays in one.
///
/// # Errors
/// The network's error for an impossible link, and what the simulator does not have.
pub fn parts(job: &Job) -> Result<Option<(usize, Nanos)>, Error> {
    let scenario = &job.scenario.drawn(job.seed);
    Ok(built(scenario, &controls(job)?, job.seed)?.sim.would_part(job.threads))
}

/// How the second path of the connection under test joins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Join {
    /// Time since the start of the run, s.
    pub time_s: f64,
    /// The window of the first path then, packets.
    pub donor: u32,
}

/// Runs `job` in the simulator until the second path of the connection under test sends; none if it does not.
///
/// # Errors
/// [`Error::Interrupted`] once `job.stop` is set, or the network's error for an impossible link.
pub fn join(job: &Job) -> Result<Option<Join>, Error> {
    let scenario = &job.scenario.drawn(job.seed);
    let mut run = Running::new(scenario, &controls(job)?, job.seed)?;
    let Some(FlowId::Connection(id)) = scenario.test.map(|test| run.handles[test]) else {
        return Ok(None);
    };
    run.joins = Some(id);
    match play(&mut run, scenario, false, None, MILLISECOND, job.stop) {
        Ok(_) => Ok(None),
        Err(Error::Interrupted) if run.joined().is_some() => Ok(run.joined()),
        Err(error) => Err(error),
    }
}

/// A scenario in the simulator.
struct Running<'a> {
    scenario: &'a Scenario,
    sim: Sim,
    links: Vec<LinkId>,
    handles: Vec<FlowId>,
    paths: Vec<Vec<PathConfig>>,
    advised: Vec<Advised>,
    capture: Option<Capture>,
    /// The connection whose second path ends the run when it sends.
    joins: Option<ConnId>,
}

impl<'a> Running<'a> {
    /// `scenario` at its start, its flows under these controls.
    fn new(
        scenario: &'a Scenario,
        controls: &[Option<Control>],
        seed: u64,
    ) -> Result<Running<'a>, Error> {
        let Build { sim, links, handles, paths, .. } = built(scenario, controls, seed)?;
        let advised = Advised::all(scenario, &handles, controls);
        let (capture, joins) = (None, None);
        Ok(Running { scenario, sim, links, handles, paths, advised, capture, joins })
    }

    /// How the second path of `joins` has joined.
    fn joined(&self) -> Option<Join> {
        let paths = self.sim.connection(self.joins?).paths;
        let sends = paths.get(1)?.cwnd > 0;
        sends.then(|| Join { time_s: seconds(self.sim.now()), donor: paths[0].cwnd })
    }

    /// What the connection under test sampled and decided, if its detector is delay-based.
    fn trial(&self, controls: &[Option<Control>]) -> Option<Trial<'_>> {
        let scenario = self.scenario;
        let test = scenario.test?;
        let log = self.detection()?;
        let detector = controls[test]?.detector;
        Some(Trial { scenario, detector, log })
    }

    /// What the passive detectors of the connection under test found.
    fn passive(&self) -> Vec<PassiveSummary> {
        let scenario = self.scenario;
        let test = scenario.test.map(|test| self.handles[test]);
        let Some(FlowId::Connection(id)) = test else { return Vec::new() };
        let read = |findings| PassiveSummary::read(&OfPassive::new(scenario, findings));
        self.sim.findings(id).map(read).collect()
    }
}

impl World for Running<'_> {
    fn now(&self) -> Nanos {
        self.sim.now()
    }

    fn run_until(&mut self, time: Nanos) -> Result<(), Error> {
        self.sim.run_on(time);
        if !self.advised.is_empty() {
            self.sim.gather();
        }
        self.advised.iter_mut().for_each(|one| one.look(&mut self.sim));
        if let Some(capture) = &mut self.capture {
            capture.write(&mut self.sim)?;
        }
        if self.joined().is_some() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn happen(&mut self, what: &EventKind) -> Result<(), Error> {
        match what {
            EventKind::PathLost(flow, path) => {
                if let FlowId::Connection(id) = self.handles[*flow] {
                    self.sim.remove_path(id, *path);
                }
            }
            EventKind::PathAdded(flow, path) => {
                if let FlowId::Connection(id) = self.handles[*flow] {
                    self.sim.add_path(id, &self.paths[*flow][*path]);
                }
            }
            link => change_link(&mut self.sim, self.scenario, &self.links, link)?,
        }
        Ok(())
    }

    fn look(&mut self, _links: bool) -> Result<(Nanos, impl Observed), Error> {
        self.sim.gather();
        Ok((self.sim.now(), &*self))
    }

    fn begin(&mut self) {
        self.sim.reset_link_counters();
    }

    fn detection(&self) -> Option<&Detection> {
        match self.handles[self.scenario.test?] {
            FlowId::Connection(id) => self.sim.detection(id),
            _ => None,
        }
    }
}

/// A link of the scenario changes; `links` are its links in the simulator. Events of flows are
/// for who knows them.
pub fn change_link(
    sim: &mut Sim,
    scenario: &Scenario,
    links: &[LinkId],
    what: &EventKind,
) -> Result<(), Error> {
    let changed = match what {
        EventKind::LinkUp(link, up) => {
            sim.set_link_up(links[*link], *up);
            Ok(())
        }
        EventKind::LinkHold(link, time) => {
            sim.hold_link(links[*link], *time);
            Ok(())
        }
        EventKind::LinkRate(link, rate) => sim.set_link_rate(links[*link], rate.clone()),
        EventKind::LinkDelay(link, delay) => sim.set_link_delay(links[*link], *delay),
        EventKind::PathLost(..) | EventKind::PathAdded(..) => Ok(()),
    };
    changed.map_err(|error| Error::input(&scenario.name, error))
}

impl Observed for Running<'_> {
    fn flow(&self, flow: usize) -> FlowState {
        state(&self.sim, self.handles[flow])
    }

    fn queue_delay(&self, link: usize) -> Nanos {
        self.sim.queue_delay(self.links[link])
    }

    fn link(&self, link: usize) -> &Counters {
        self.sim.network().counters(self.links[link])
    }

    fn messages(&self, flow: usize) -> Vec<Message> {
        messages(&self.sim, self.handles[flow])
    }
}

/// The messages of a flow of the simulator.
pub fn messages(sim: &Sim, flow: FlowId) -> Vec<Message> {
    match flow {
        FlowId::Connection(id) => sim.messages(id).to_vec(),
        FlowId::Udp(_) => Vec::new(),
    }
}

/// State and counters of a flow of the simulator.
pub fn state(sim: &Sim, flow: FlowId) -> FlowState {
    let id = match flow {
        FlowId::Connection(id) => id,
        FlowId::Udp(id) => {
            let UdpStats { received_bytes: delivered, media, .. } = sim.udp(id);
            let path = |media: MediaStats| PathState {
                delivered,
                srtt: media.rtt,
                ..PathState::default()
            };
            let paths = media.map(path).into_iter().collect();
            return FlowState { delivered, reinjections: Some(0), paths, ..FlowState::default() };
        }
    };
    let stats = sim.connection(id);
    let path = |path: &PathStats| PathState {
        delivered: path.delivered_bytes,
        retransmits: path.retransmits,
        cwnd: path.cwnd,
        ssthresh: (path.ssthresh < SSTHRESH_MAX).then_some(path.ssthresh),
        srtt: path.srtt,
        inflight: path.inflight,
        bandwidth: path.bandwidth,
    };
    FlowState {
        delivered: stats.delivered_bytes,
        retransmits: stats.retransmits,
        reinjections: Some(stats.reinjections),
        completed: stats.completed,
        acknowledged: stats.acknowledged,
        first_loss: stats.first_loss,
        slow_start_end: stats.slow_start_end,
        fallback: stats.fallback,
        head_of_line: Some(stats.head_of_line),
        paths: stats.paths.iter().map(path).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{Edits, load};

    fn joins(name: &str, set: &[(String, String)], seed: u64) -> Join {
        let scenario = load(name, &Edits { set: set.to_vec(), ..Edits::default() }).unwrap();
        let stop = AtomicBool::new(false);
        let control = "lia".parse().unwrap();
        let job = Job { control: Some(control), seed, ..Job::new(&scenario, &stop) };
        join(&job).unwrap().expect("it joins")
    }

    /// The window of the first subflow when the second begins.
    fn donor(name: &str, set: &[(String, String)], seed: u64) -> u32 {
        joins(name, set, seed).donor
    }

    /// LISA paper, section III: "consider, as in Fig. 1, an existing subflow with a cwnd of 40".
    #[test]
    fn the_second_subflow_of_the_lisa_paper_joins_at_40_packets_of_the_first() {
        for name in ["lisa/two", "lisa/three", "lisa/shared"] {
            for seed in 1..=10 {
                let window = donor(name, &[], seed);
                assert!((36..=44).contains(&window), "{name}, seed {seed}: {window}");
            }
        }
        let receiver = [("tcp.opener".to_owned(), "receiver".to_owned())];
        let window = donor("lisa/two", &receiver, 1);
        assert!((18..=26).contains(&window), "a round trip earlier: {window}");
    }

    #[test]
    fn a_subflow_whose_address_comes_later_joins_later() {
        let events = r#"[{at="0 s", flow="mptcp", lose="path2"}, {at="1252 ms", flow="mptcp", add="path2"}]"#;
        let later = joins("lisa/shared", &[("events".to_owned(), events.to_owned())], 1);
        let usual = joins("lisa/shared", &[], 1);
        assert!(usual.time_s < 1.252 && later.time_s > 1.252, "{usual:?}, {later:?}");
    }
}
