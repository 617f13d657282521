//! A connection of QUIC in place of one of MPTCP, and what is seen of it.

use std::sync::Arc;

use narrows_net::Nanos;
use narrows_quic::{Advice, Coupling, Factory};
use narrows_quic_sim::{PathEvent, Routes, Setup, Side, Sim};
use narrows_sim::PathConfig;
use narrows_traffic::{FlowId, Generator, Message, Opener};
use noq::congestion::Controller;
use noq::{PathStats, PathStatus};

use super::seen::{Ends, Seen};
use super::transport::{Buffers, transport};
use crate::scenario::{Flow, Link};

/// A path of a connection.
struct Path {
    name: String,
    routes: Routes,
    /// Its number in the simulation: another one when it was lost and has come back.
    number: usize,
    /// Its address is lost.
    lost: bool,
    /// On the law's advice the sender uses it only while no other path works.
    parked: bool,
}

/// The ends of a connection in the simulation.
struct Simulated<'a> {
    sim: &'a mut Sim,
    number: usize,
    sender: Side,
    paths: &'a [Path],
}

impl Ends for Simulated<'_> {
    fn sender(&mut self, path: usize) -> Option<(PathStats, Box<dyn Controller>)> {
        let id = self.sim.path_id(self.number, self.paths[path].number)?;
        let end = self.sim.begun(self.number, self.sender)?;
        let controller = end.congestion_state(id)?.clone_box();
        Some((end.path_stats(id)?, controller))
    }

    fn receiver(&mut self, path: usize) -> Option<PathStats> {
        let id = self.sim.path_id(self.number, self.paths[path].number)?;
        let receiver = if self.sender == Side::Client { Side::Server } else { Side::Client };
        self.sim.begun(self.number, receiver)?.path_stats(id)
    }
}

/// A connection, and its state at the last look.
pub struct Connection {
    /// Its number in the simulation.
    number: usize,
    name: String,
    paths: Vec<Path>,
    sender: Side,
    factory: Arc<Factory>,
    pub seen: Seen,
    /// Events of paths that were seen.
    events: usize,
    /// What people should know, a line each.
    pub notes: Vec<String>,
}

impl Connection {
    /// Adds the connection of `flow`, which takes the routes of `paths` and writes what the flow
    /// `handle` of the simulator would.
    pub fn new(
        sim: &mut Sim,
        seed: u64,
        flow: &Flow,
        links: &[Link],
        handle: FlowId,
        paths: &[PathConfig],
        coupling: &Coupling,
    ) -> Connection {
        let sender = match flow.tcp.opener {
            Opener::Sender => Side::Client,
            Opener::Receiver => Side::Server,
        };
        let routes = |path: &PathConfig| {
            let (forward, reverse) = (path.forward, path.reverse);
            let (up, down) = match sender {
                Side::Client => (forward, reverse),
                Side::Server => (reverse, forward),
            };
            Routes { up, down, backup: path.backup }
        };
        let network = sim.net.network();
        let mtu = paths.iter().map(|path| network.route_mtu(path.forward)).max().unwrap_or(0);
        let factory = coupling.factory();
        let buffers = Buffers::of(flow, links, coupling);
        let mut setup = Setup::new(paths.iter().map(routes).collect(), sender);
        for side in [Side::Client, Side::Server] {
            let mut transport = transport(buffers, mtu);
            if side == sender {
                transport.congestion_controller_factory(factory.clone());
            }
            match side {
                Side::Client => setup.client = transport,
                Side::Server => setup.server = transport,
            }
        }
        setup.application = Generator::new(seed, handle, flow.source, flow.active.clone());
        setup.streams = buffers.streams();
        setup.ecn = flow.tcp.ecn;
        Connection {
            number: sim.connect(setup),
            name: flow.name.clone(),
            paths: paths
                .iter()
                .enumerate()
                .map(|(number, path)| Path {
                    name: path.name.clone(),
                    routes: routes(path),
                    number,
                    lost: false,
                    parked: false,
                })
                .collect(),
            sender,
            seen: Seen::new(paths.len(), factory.clone()),
            factory,
            events: 0,
            notes: Vec::new(),
        }
    }

    /// The address of a path is lost.
    pub fn lose(&mut self, sim: &mut Sim, path: usize) {
        self.paths[path].lost = true;
        sim.lose_path(self.number, self.paths[path].number);
    }

    /// It is there again.
    pub fn add(&mut self, sim: &mut Sim, path: usize) {
        self.seen.reopened(path);
        let path = &mut self.paths[path];
        (path.lost, path.parked) = (false, false);
        path.number = sim.add_path(self.number, path.routes);
    }

    /// Looks at it, at `now`.
    pub fn look(&mut self, sim: &mut Sim, now: Nanos) {
        let Connection { number, sender, .. } = *self;
        let state = &mut self.seen.state;
        state.delivered = sim.received(number);
        state.completed = sim.finished(number);
        state.acknowledged = sim.acknowledged(number);
        self.seen.look(&mut Simulated { sim, number, sender, paths: &self.paths }, now);
        self.heed(sim);
        self.abandoned(sim, now);
    }

    /// Parks and closes paths as the law advises, as `narrows_quic::tend`.
    fn heed(&mut self, sim: &mut Sim) {
        let now = sim.instant();
        for path in &mut self.paths {
            let Some(id) = sim.path_id(self.number, path.number) else { continue };
            let Some(end) = sim.begun(self.number, self.sender) else { return };
            let state = end.congestion_state(id).map(|state| state.clone_box());
            let Some(state) = state.and_then(|state| self.factory.path(state)) else { continue };
            let status = match (state.advice, path.parked) {
                (Advice::Backup, false) => PathStatus::Backup,
                (Advice::None, true) => PathStatus::Available,
                (Advice::Close, _) => {
                    // noq keeps the last one.
                    let _ = end.close_path(now, id, 0u8.into());
                    continue;
                }
                _ => continue,
            };
            if end.set_path_status(id, status).is_ok() {
                path.parked = status == PathStatus::Backup;
                if let Some(state) = end.congestion_state(id) {
                    self.factory.parked(state.clone_box(), path.parked);
                }
            }
        }
    }

    /// Tells its controllers of the paths that noq has abandoned, and notes them.
    fn abandoned(&mut self, sim: &mut Sim, now: Nanos) {
        let events = &sim.path_events(self.number, self.sender)[self.events..];
        self.events += events.len();
        let gone = events.iter().filter_map(|event| match event {
            PathEvent::Abandoned { id, .. } => Some(*id),
            _ => None,
        });
        for id in gone.collect::<Vec<_>>() {
            let end = sim.begun(self.number, self.sender);
            if let Some(state) = end.and_then(|end| end.congestion_state(id)) {
                self.factory.abandoned(state.clone_box());
            }
            let is = |path: &&Path| !path.lost && sim.path_id(self.number, path.number) == Some(id);
            if let Some(path) = self.paths.iter().find(is) {
                let (at, path) = (now as f64 / 1e9, &path.name);
                self.notes.push(format!("{}: noq abandoned {path} by {at:.1} s", self.name));
            }
        }
    }

    /// The messages that its application has written.
    pub fn messages(&self, sim: &Sim) -> Vec<Message> {
        sim.messages(self.number).to_vec()
    }

    /// Why it was closed before the run ended, if it was.
    pub fn closed(&self, sim: &Sim) -> Option<String> {
        let error = sim.lost(self.number, self.sender)?;
        Some(format!("{}: the connection was closed: {error}", self.name))
    }
}
