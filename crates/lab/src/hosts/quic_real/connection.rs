//! A connection as the run sees it, from outside of the thread that has its end points.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use narrows_emu::Host;
use narrows_net::Nanos;
use narrows_quic::Coupling;
use narrows_quic_sim::{Side, client, server};
use narrows_quic_sockets::Sockets;
use narrows_traffic::Opener;
use nix::sys::socket::{setsockopt, sockopt};
use noq::congestion::Controller;
use noq::{Endpoint, EndpointConfig, PathId, PathStats, TokioRuntime};

use super::task::{Line, Shared, Task};
use crate::Error;
use crate::hosts::kernel::{Built, PORT, PathPlan, RECEIVER, SENDER, UDP_BUFFER};
use crate::hosts::quic::{Buffers, Ends, Seen, transport};

/// A connection, and its state at the last look.
pub struct Connection<'a> {
    name: String,
    /// The names of its paths.
    paths: Vec<String>,
    /// Which side sends the data.
    sender: Side,
    /// Where the client is.
    host: &'a Host,
    /// The client's sockets, one at each address that it has.
    sockets: Sockets,
    /// Until it is started.
    task: Option<Task>,
    shared: Arc<Shared>,
    pub seen: Seen,
    /// Paths that the sender had at the last look.
    open: Vec<bool>,
    notes: Vec<String>,
}

impl<'a> Connection<'a> {
    /// Opens the sockets of a flow's connection. Inside a runtime of tokio.
    pub fn open(built: &Built<'a>, flow: usize, coupling: &Coupling) -> io::Result<Connection<'a>> {
        let (of, at) = (&built.scenario.flows[flow], &built.plan.flows[flow]);
        let (sender, ends) = match of.tcp.opener {
            Opener::Sender => (Side::Client, [SENDER, RECEIVER]),
            Opener::Receiver => (Side::Server, [RECEIVER, SENDER]),
        };
        let hosts = ends.map(|end| built.hosts[at.hosts[end]]);
        let addresses = ends.map(|end| -> Vec<SocketAddr> {
            let address = |path: &PathPlan| SocketAddr::new(path.ends[end].v4.into(), PORT);
            at.paths.iter().map(address).collect()
        });
        let sockets = [Sockets::default(), Sockets::default()];
        for side in 0..2 {
            for address in &addresses[side] {
                sockets[side].add(address.ip(), || bind(hosts[side], *address))?;
            }
        }
        let mtu = at.paths.iter().map(|path| path.mtu).max().unwrap_or(0);
        let factory = coupling.factory();
        let buffers = Buffers::of(of, &built.scenario.links, coupling);
        let [for_client, for_server] = [Side::Client, Side::Server].map(|side| {
            let mut transport = transport(buffers, mtu);
            if side == sender {
                transport.congestion_controller_factory(factory.clone());
            }
            transport
        });
        let endpoint = |side: usize, config| {
            let sockets = Box::new(sockets[side].clone());
            let runtime = Arc::new(TokioRuntime);
            Endpoint::new_with_abstract_socket(EndpointConfig::default(), config, sockets, runtime)
        };
        let [locals, remotes] = &addresses;
        let lines = at.paths.iter().zip(locals).zip(remotes).map(|((path, local), remote)| Line {
            local: local.ip(),
            remote: *remote,
            backup: path.backup,
            id: None,
            lost: false,
        });
        let shared = Arc::new(Shared::new(lines.collect()));
        let task = Task {
            client: endpoint(0, None)?,
            server: endpoint(1, Some(Arc::unwrap_or_clone(server(for_server))))?,
            config: client(for_client),
            sender,
            factory: factory.clone(),
            receivers: coupling.factory(),
            generator: (built.generator)(flow),
            streams: buffers.streams(),
            shared: shared.clone(),
        };
        let [sockets, _] = sockets;
        Ok(Connection {
            name: of.name.clone(),
            paths: of.paths.iter().map(|path| path.name.clone()).collect(),
            sender,
            host: hosts[0],
            sockets,
            task: Some(task),
            shared,
            seen: Seen::new(of.paths.len(), factory),
            open: vec![false; of.paths.len()],
            notes: Vec::new(),
        })
    }

    /// What its end points do, once.
    pub fn task(&mut self) -> Option<Task> {
        self.task.take()
    }

    /// Looks at it, at `now`.
    pub fn look(&mut self, now: Nanos) {
        let Shared { progress, .. } = &*self.shared;
        let state = &mut self.seen.state;
        state.delivered = progress.received.load(Ordering::Relaxed);
        state.completed = progress.completed.get().copied();
        state.acknowledged = progress.acknowledged.get().copied();
        let lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (ids, lost): (Vec<_>, Vec<_>) = lines.iter().map(|line| (line.id, line.lost)).unzip();
        drop(lines);
        let [sender, receiver] = [self.sender, !self.sender].map(|side| self.shared.end(side));
        let mut real = Real { sender, receiver, ids: &ids };
        self.seen.look(&mut real, now);
        let Some(sender) = sender.filter(|sender| sender.close_reason().is_none()) else { return };
        for (path, id) in ids.iter().enumerate() {
            let open = id.is_some_and(|id| sender.path(id).is_some());
            if self.open[path] && !open && !lost[path] {
                let (at, path) = (now as f64 / 1e9, &self.paths[path]);
                self.notes.push(format!("{}: noq abandoned {path} by {at:.1} s", self.name));
            }
            self.open[path] = open;
        }
    }

    /// The client loses the address of a path, and closes it, unless it is the last.
    pub fn lose(&mut self, path: usize) {
        let mut lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = &mut lines[path];
        line.lost = true;
        self.sockets.remove(line.local);
        let open = line.id.zip(self.shared.end(Side::Client));
        if let Some(open) = open.and_then(|(id, client)| client.path(id)) {
            // noq keeps the last, and closes the connection when it has been idle for long.
            let _ = open.close();
        }
    }

    /// It has it again, and opens a new path.
    pub fn add(&mut self, path: usize) -> Result<(), Error> {
        let mut lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = &mut lines[path];
        let bind = || bind(self.host, SocketAddr::new(line.local, PORT));
        let added = self.sockets.add(line.local, bind);
        added.map_err(|error| Error::input(format!("flows.{}.routes", self.name), error))?;
        (line.id, line.lost) = (None, false);
        self.seen.reopened(path);
        Ok(())
    }

    /// What people should know, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Why it ended before the run did.
    pub fn failed(&self) -> Option<String> {
        self.shared.failed.get().map(|why| format!("{}: {why}", self.name))
    }
}

/// The ends of a connection, once they are there.
struct Real<'a> {
    sender: Option<&'a noq::Connection>,
    receiver: Option<&'a noq::Connection>,
    /// By path.
    ids: &'a [Option<PathId>],
}

impl Ends for Real<'_> {
    fn sender(&mut self, path: usize) -> Option<(PathStats, Box<dyn Controller>)> {
        let (id, end) = (self.ids[path]?, self.sender?);
        Some((end.path_stats(id)?, end.congestion_state(id)?))
    }

    fn receiver(&mut self, path: usize) -> Option<PathStats> {
        self.receiver?.path_stats(self.ids[path]?)
    }
}

/// A socket at an address of a host.
fn bind(host: &Host, address: SocketAddr) -> io::Result<UdpSocket> {
    let bind = || {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::RcvBufForce, &(UDP_BUFFER as usize))?;
        Ok(socket)
    };
    host.run(bind).and_then(|socket| socket)
}
