//! From a scenario to a simulation: links, routes, flows.

use narrows_laws::Control;
use narrows_net::{ConfigError, LinkConfig, LinkId, RouteId};
use narrows_sim::{ConnectionConfig, PassiveDetector, PathConfig, Sim, UdpConfig};
use narrows_traffic::FlowId;
use narrows_traffic::PathManager;

use crate::Error;
use crate::hosts::Job;
use crate::routes::{Routed, add_forward, add_links, add_reverse};
use crate::scenario::{Flow, FlowKind, Scenario};

impl Routed for Sim {
    fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError> {
        Sim::add_link(self, config)
    }

    fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError> {
        Sim::add_route(self, links)
    }
}

/// The congestion control of each flow; none of UDP.
///
/// # Errors
/// One that the simulator has not.
pub fn controls(job: &Job) -> Result<Vec<Option<Control>>, Error> {
    for (place, algorithm) in job.controls() {
        if algorithm.ours().is_none() {
            let message = format!("the simulator has no {algorithm}; --on kernel has");
            return Err(Error::input(place, message));
        }
    }
    let flows = 0..job.scenario.flows.len();
    let controls: Vec<_> = flows.map(|flow| job.algorithm(flow)?.ours()).collect();
    for (flow, control) in job.scenario.flows.iter().zip(&controls) {
        let unfit = control.filter(|control| flow.tcp.scalable && !control.law.scales());
        if let Some(control) = unfit {
            let place = format!("{}: flows.{}.tcp.ecn", job.scenario.name, flow.name);
            let message = format!(
                "{control} is no scalable control (RFC 9331); expected true, false, or \"scalable\" with dctcp"
            );
            return Err(Error::input(place, message));
        }
    }
    Ok(controls)
}

/// A simulation being put together.
pub struct Build<'a> {
    pub sim: Sim,
    /// The scenario's links in the simulator.
    pub links: Vec<LinkId>,
    pub handles: Vec<FlowId>,
    /// The paths of each flow in the simulator; none for UDP.
    pub paths: Vec<Vec<PathConfig>>,
    scenario: &'a Scenario,
}

impl<'a> Build<'a> {
    /// The links of `scenario`, without flows yet.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Result<Build<'a>, Error> {
        let mut sim = Sim::new(seed);
        let links = add_links(&mut sim, scenario);
        let links = links.map_err(|error| Error::input(&scenario.name, error))?;
        Ok(Build { sim, links, handles: Vec::new(), paths: Vec::new(), scenario })
    }

    /// Adds a flow of the scenario under `control`, with `passive` detectors; the order is that of
    /// [`Build::handles`].
    pub fn flow(
        &mut self,
        flow: &Flow,
        control: Option<Control>,
        passive: &[PassiveDetector],
    ) -> Result<(), Error> {
        self.add(flow, control, passive).map_err(|error| Error::input(&self.scenario.name, error))
    }

    fn add(
        &mut self,
        flow: &Flow,
        control: Option<Control>,
        passive: &[PassiveDetector],
    ) -> Result<(), ConfigError> {
        let mut paths = Vec::new();
        let handle = match (flow.kind, control) {
            (_, None) => {
                let path = &flow.paths[0];
                let route = add_forward(&mut self.sim, &self.links, path)?;
                let back = flow.has_feedback();
                let back =
                    back.then(|| add_reverse(&mut self.sim, &self.links, path)).transpose()?;
                FlowId::Udp(self.sim.add_udp(UdpConfig {
                    name: flow.name.clone(),
                    route,
                    back,
                    source: flow.source,
                    active: flow.active.clone(),
                }))
            }
            (kind, Some(control)) => {
                // Ndiffports makes its other subflows itself.
                let own = match flow.path_manager {
                    PathManager::Fullmesh => flow.paths.len(),
                    PathManager::Ndiffports(_) => 1,
                };
                for path in &flow.paths[..own] {
                    let forward = add_forward(&mut self.sim, &self.links, path)?;
                    let reverse = add_reverse(&mut self.sim, &self.links, path)?;
                    let (backup, strips_mptcp) = (path.backup, path.strips_mptcp);
                    let route = PathConfig::new(path.name.clone(), forward, reverse);
                    paths.push(PathConfig { backup, strips_mptcp, ..route });
                }
                FlowId::Connection(self.sim.add_connection(ConnectionConfig {
                    name: flow.name.clone(),
                    multipath: kind == FlowKind::Mptcp,
                    paths: paths.clone(),
                    path_manager: flow.path_manager,
                    control,
                    params: self.scenario.params,
                    passive: passive.to_vec(),
                    scheduler: flow.scheduler,
                    tcp: flow.tcp,
                    source: flow.source,
                    active: flow.active.clone(),
                    send_buffer: flow.send_buffer,
                    send_buffer_max: flow.send_buffer_max(&self.scenario.links),
                    recv_buffer: flow.recv_buffer,
                }))
            }
        };
        self.handles.push(handle);
        self.paths.push(paths);
        Ok(())
    }
}
