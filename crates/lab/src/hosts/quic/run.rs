//! One run of a scenario with QUIC in place of MPTCP.

use narrows_net::{Counters, LinkId, Nanos};
use narrows_quic_sim::Sim;
use narrows_sim::Detection;
use narrows_traffic::{FlowId, Message};

use super::check::{check, couplings, ignored, signal};
use super::connection::Connection;
use crate::Error;
use crate::detection::Trial;
use crate::host_id::HostId;
use crate::hosts::Job;
use crate::hosts::sim::{Build, change_link, controls, messages, state};
use crate::hosts::world::{World, play, slice};
use crate::measured::{FlowState, Observed};
use crate::recorder::Run;
use crate::scenario::{EventKind, Flow, Scenario};

/// The host's name.
pub const ID: HostId = HostId::new("quic");

/// Runs `job`, which this host has checked.
///
/// # Errors
/// [`Error::Interrupted`] once `job.stop` is set, or the network's error for an impossible link.
pub fn run(job: Job) -> Result<Run, Error> {
    // What is captured is known now.
    check(&job)?;
    let controls = controls(&job)?;
    let couplings = couplings(&job)?;
    let Job { scenario, control, seed, series, live, stop, .. } = job;
    let mut scenario = scenario.drawn(seed);
    if let Some(test) = scenario.test {
        let signal = signal(&scenario);
        scenario.to_mut().flows[test].tcp.signal = signal;
    }
    let scenario = &*scenario;
    let mut build = Build::new(scenario, seed)?;
    for ((flow, control), coupling) in scenario.flows.iter().zip(&controls).zip(&couplings) {
        // Where QUIC runs, the simulator has a connection that stays silent: all others keep their
        // numbers, so that their sources and links draw what they draw beside MPTCP.
        let active = if coupling.is_some() { Vec::new() } else { flow.active.clone() };
        build.flow(&Flow { active, ..flow.clone() }, *control, &[])?;
    }
    let Build { sim, links, handles, paths, .. } = build;
    let mut sim = Sim::over(sim, seed);
    let mut connections = Vec::new();
    for (index, coupling) in couplings.iter().enumerate() {
        let flow = &scenario.flows[index];
        connections.push(coupling.as_ref().map(|coupling| {
            let (links, paths) = (&scenario.links, &paths[index]);
            Connection::new(&mut sim, seed, flow, links, handles[index], paths, coupling)
        }));
    }
    let mut run = Running { scenario, sim, links, handles, connections };
    let recorder = play(&mut run, scenario, series, live, slice(scenario), stop)?;

    let cc = |flow: usize| scenario.algorithm(flow, control).map(|cc| cc.to_string());
    let tested = scenario.test.and_then(|test| run.connections[test].as_ref().zip(controls[test]));
    let trial = tested.filter(|(_, control)| control.detector.decides());
    let trial = trial.map(|(connection, control)| Trial {
        scenario,
        detector: control.detector,
        log: &connection.seen.detection,
    });
    let result = recorder.finish(run.now(), &run, ID, seed, cc, trial);
    let mut notes: Vec<String> = ignored(scenario).into_iter().collect();
    for connection in run.connections.iter().flatten() {
        notes.extend(connection.notes.iter().cloned().chain(connection.closed(&run.sim)));
    }
    Ok(Run { notes, ..result })
}

/// A scenario with QUIC.
struct Running<'a> {
    scenario: &'a Scenario,
    sim: Sim,
    links: Vec<LinkId>,
    handles: Vec<FlowId>,
    /// By flow; none of those that the simulator runs.
    connections: Vec<Option<Connection>>,
}

impl World for Running<'_> {
    fn now(&self) -> Nanos {
        self.sim.now()
    }

    fn run_until(&mut self, time: Nanos) -> Result<(), Error> {
        self.sim.run(time);
        for connection in self.connections.iter_mut().flatten() {
            connection.look(&mut self.sim, time);
        }
        Ok(())
    }

    fn happen(&mut self, what: &EventKind) -> Result<(), Error> {
        match what {
            EventKind::PathLost(flow, path) => {
                if let Some(connection) = &mut self.connections[*flow] {
                    connection.lose(&mut self.sim, *path);
                }
            }
            EventKind::PathAdded(flow, path) => {
                if let Some(connection) = &mut self.connections[*flow] {
                    connection.add(&mut self.sim, *path);
                }
            }
            link => change_link(&mut self.sim.net, self.scenario, &self.links, link)?,
        }
        Ok(())
    }

    fn look(&mut self, _links: bool) -> Result<(Nanos, impl Observed), Error> {
        Ok((self.sim.now(), &*self))
    }

    fn begin(&mut self) {
        self.sim.net.reset_link_counters();
    }

    fn detection(&self) -> Option<&Detection> {
        let connection = self.connections[self.scenario.test?].as_ref()?;
        Some(&connection.seen.detection)
    }
}

impl Observed for Running<'_> {
    fn flow(&self, flow: usize) -> FlowState {
        match &self.connections[flow] {
            Some(connection) => connection.seen.state.clone(),
            None => state(&self.sim.net, self.handles[flow]),
        }
    }

    fn queue_delay(&self, link: usize) -> Nanos {
        self.sim.net.queue_delay(self.links[link])
    }

    fn link(&self, link: usize) -> &Counters {
        self.sim.net.network().counters(self.links[link])
    }

    fn messages(&self, flow: usize) -> Vec<Message> {
        match &self.connections[flow] {
            Some(connection) => connection.messages(&self.sim),
            None => messages(&self.sim.net, self.handles[flow]),
        }
    }
}
