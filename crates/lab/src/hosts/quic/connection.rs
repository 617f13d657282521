//! A connection of QUIC in place of one of MPTCP, and what is seen of it.

use std::sync::Arc;

use narrows_laws::{Decision, MAX_PATHS, Place};
use narrows_net::Nanos;
use narrows_quic::{Coupling, Factory};
use narrows_quic_sim::{
    MtuDiscoveryConfig, PathEvent, Routes, Setup, Side, Sim, VarInt, transport,
};
use narrows_sim::{Detection, PathConfig};
use narrows_traffic::{FlowId, Generator, Opener};

use crate::measured::{FlowState, PathState};
use crate::scenario::Flow;

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;

/// Bytes of a datagram with data that are not data: a short header with a connection id of 8 and a
/// packet number of 2 bytes, a STREAM frame's header with an offset of 4 and without a length, and the
/// AEAD's tag (RFC 9000, sections 17.3 and 19.8; RFC 9001, section 5.3).
const OVERHEAD: u64 = 11 + 6 + 16;

/// noq's window of a stream, bytes. It must stay: noq closes a connection with more than 1024 gaps in
/// one stream.
const STREAM_WINDOW: u64 = 1_250_000;

/// A path of a connection.
struct Path {
    name: String,
    routes: Routes,
    /// Its number in the simulation: another one when it was lost and has come back.
    number: usize,
    /// Its address is lost.
    lost: bool,
    /// What it had delivered, and retransmitted, when it was last lost.
    before: (u64, u64),
}

/// A connection, and its state at the last look.
pub struct Connection {
    /// Its number in the simulation.
    number: usize,
    name: String,
    paths: Vec<Path>,
    sender: Side,
    factory: Arc<Factory>,
    pub state: FlowState,
    /// Events of paths that were seen.
    events: usize,
    /// What its detector decided.
    pub detection: Detection,
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
        let mut setup = Setup::new(paths.iter().map(routes).collect(), sender);
        for side in [Side::Client, Side::Server] {
            let mut transport = transport();
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(u16::try_from(mtu - HEADERS).unwrap_or(u16::MAX));
            transport.mtu_discovery_config(Some(discovery));
            transport.send_window(flow.send_buffer);
            let window = VarInt::from_u64(flow.recv_buffer).unwrap_or(VarInt::MAX);
            transport.receive_window(window);
            if side == sender {
                transport.congestion_controller_factory(factory.clone());
            }
            match side {
                Side::Client => setup.client = transport,
                Side::Server => setup.server = transport,
            }
        }
        setup.application = Generator::new(seed, handle, flow.source, flow.active.clone());
        // As many as fill the receive buffer; noq allows a hundred.
        setup.streams = flow.recv_buffer.div_ceil(STREAM_WINDOW).clamp(4, 100) as usize;
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
                    before: (0, 0),
                })
                .collect(),
            sender,
            factory,
            state: FlowState {
                paths: vec![PathState::default(); paths.len()],
                ..FlowState::default()
            },
            events: 0,
            detection: Detection::default(),
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
        let state = &self.state.paths[path];
        let path = &mut self.paths[path];
        path.lost = false;
        path.before = (state.delivered, state.retransmits);
        path.number = sim.add_path(self.number, path.routes);
    }

    /// Looks at it, at `now`.
    pub fn look(&mut self, sim: &mut Sim, now: Nanos) {
        self.state.delivered = sim.received(self.number);
        self.state.completed = sim.finished(self.number);
        self.state.acknowledged = sim.acknowledged(self.number);
        let receiver = if self.sender == Side::Client { Side::Server } else { Side::Client };
        for (path, state) in self.paths.iter().zip(&mut self.state.paths) {
            let Some(id) = sim.path_id(self.number, path.number) else { continue };
            let (delivered, retransmits) = path.before;
            let end = sim.begun(self.number, receiver);
            if let Some(stats) = end.and_then(|end| end.path_stats(id)) {
                let of_data = stats.udp_rx.bytes.saturating_sub(OVERHEAD * stats.udp_rx.datagrams);
                state.delivered = state.delivered.max(delivered + of_data);
            }
            let Some(end) = sim.begun(self.number, self.sender) else { continue };
            let controller = end.congestion_state(id).map(|state| state.clone_box());
            let controlled = controller.and_then(|controller| self.factory.path(controller));
            let (Some(stats), Some(path)) = (end.path_stats(id), controlled) else {
                // It is not there, or not any more: what it counted stays.
                let PathState { delivered, retransmits, .. } = *state;
                *state = PathState { delivered, retransmits, ..PathState::default() };
                continue;
            };
            let lost = stats.lost_packets.saturating_sub(stats.lost_plpmtud_probes);
            state.retransmits = state.retransmits.max(retransmits + lost);
            let packets = |bytes: u64| (bytes / u64::from(stats.current_mtu)) as u32;
            state.cwnd = packets(path.cwnd);
            state.ssthresh = path.ssthresh.map(packets);
            state.srtt = path.srtt.map_or(0, |srtt| srtt.as_nanos() as Nanos);
            state.inflight = packets(path.inflight);
        }
        self.state.retransmits = self.state.paths.iter().map(|path| path.retransmits).sum();
        self.detect(sim, now);
        self.abandoned(sim, now);
    }

    /// Has its detector decided?
    fn detect(&mut self, sim: &mut Sim, now: Nanos) {
        let number = self.factory.snapshot().decision;
        let log = &mut self.detection.decisions;
        if number == 0 || log.last().is_some_and(|last| last.number == number) {
            return;
        }
        let mut places = [Place::Undecided; MAX_PATHS];
        for (path, place) in self.paths.iter().zip(&mut places) {
            let Some(id) = sim.path_id(self.number, path.number) else { continue };
            let end = sim.begun(self.number, self.sender);
            let state = end.and_then(|end| end.congestion_state(id));
            let path = state.and_then(|state| self.factory.path(state.clone_box()));
            *place = path.and_then(|path| path.place).unwrap_or(Place::Undecided);
        }
        log.push(Decision { number, at_us: now / 1000, places });
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

    /// Why it was closed before the run ended, if it was.
    pub fn closed(&self, sim: &Sim) -> Option<String> {
        let error = sim.lost(self.number, self.sender)?;
        Some(format!("{}: the connection was closed: {error}", self.name))
    }
}
