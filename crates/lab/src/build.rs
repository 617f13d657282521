//! From a scenario to a simulation: links, routes, flows.

use narrows_laws::Control;
use narrows_net::{ConfigError, LinkConfig, LinkId, Nanos, Rate, RouteId};
use narrows_sim::capture::Flow as Handle;
use narrows_sim::{ConnectionConfig, PathConfig, PathManager, Sim, UdpConfig};

use crate::Error;
use crate::scenario::{Flow, FlowKind, FlowPath, Scenario};

/// No packet is too large for an access link: the shared links limit the MTU.
const ACCESS_MTU: u32 = 65_535;

/// A simulation being put together.
pub struct Build {
    pub sim: Sim,
    /// The scenario's links in the simulator.
    pub links: Vec<LinkId>,
    pub handles: Vec<Handle>,
    /// The paths of each flow in the simulator; none for UDP.
    pub paths: Vec<Vec<PathConfig>>,
    name: String,
}

impl Build {
    /// The links of `scenario`, without flows yet.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Build, Error> {
        let mut sim = Sim::new(seed);
        let add = |link: &crate::scenario::Link| sim.add_link(link.config.clone());
        let links = scenario.links.iter().map(add).collect::<Result<_, ConfigError>>();
        let links = links.map_err(|error| Error::input(&scenario.name, error))?;
        Ok(Build {
            sim,
            links,
            handles: Vec::new(),
            paths: Vec::new(),
            name: scenario.name.clone(),
        })
    }

    /// Adds a flow of the scenario under `control`; the order is that of [`Build::handles`].
    pub fn flow(&mut self, flow: &Flow, control: Option<Control>) -> Result<(), Error> {
        let scenario = self.name.clone();
        self.add(flow, control).map_err(|error| Error::input(scenario, error))
    }

    fn add(&mut self, flow: &Flow, control: Option<Control>) -> Result<(), ConfigError> {
        let mut paths = Vec::new();
        let handle = match (flow.kind, control) {
            (FlowKind::Udp, _) | (_, None) => {
                let route = self.forward(&flow.paths[0])?;
                Handle::Udp(self.sim.add_udp(UdpConfig {
                    name: flow.name.clone(),
                    route,
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
                    let (forward, reverse) = (self.forward(path)?, self.reverse(path)?);
                    let (backup, strips_mptcp) = (path.backup, path.strips_mptcp);
                    let route = PathConfig::new(path.name.clone(), forward, reverse);
                    paths.push(PathConfig { backup, strips_mptcp, ..route });
                }
                Handle::Connection(self.sim.add_connection(ConnectionConfig {
                    name: flow.name.clone(),
                    multipath: kind == FlowKind::Mptcp,
                    paths: paths.clone(),
                    path_manager: flow.path_manager,
                    control,
                    scheduler: flow.scheduler,
                    tcp: flow.tcp,
                    source: flow.source,
                    active: flow.active.clone(),
                    send_buffer: flow.send_buffer,
                    recv_buffer: flow.recv_buffer,
                }))
            }
        };
        self.handles.push(handle);
        self.paths.push(paths);
        Ok(())
    }

    /// A link of one flow alone, without limits of its own.
    fn own_link(&mut self, name: &str, delay: Nanos, jitter: Nanos) -> Result<LinkId, ConfigError> {
        self.sim.add_link(LinkConfig {
            name: name.to_owned(),
            rate: Rate::Infinite,
            delay,
            jitter,
            mtu: ACCESS_MTU,
            quantiles: false,
            ..LinkConfig::default()
        })
    }

    fn forward(&mut self, path: &FlowPath) -> Result<RouteId, ConfigError> {
        let mut route = vec![self.own_link("access", path.access_delay, path.access_jitter)?];
        route.extend(path.links.iter().map(|&link| self.links[link]));
        self.sim.add_route(&route)
    }

    fn reverse(&mut self, path: &FlowPath) -> Result<RouteId, ConfigError> {
        let mut route: Vec<LinkId> = path.back.iter().map(|&link| self.links[link]).collect();
        route.push(self.own_link("return", path.return_delay, 0)?);
        self.sim.add_route(&route)
    }
}
