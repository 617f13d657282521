//! The event loop: one clock for the network and all end points.

use crate::host::Host;
use crate::tls;
use crate::transfer::Transfer;
use bytes::BytesMut;
use narrows_net::{Ecn, Header, LinkConfig, LinkId, Nanos, RouteId, SECOND};
use narrows_sim::Datagram as Arrived;
use narrows_traffic::{ConnId, FlowId, Generator, Message, Source};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, EcnCodepoint, FourTuple, PathError, PathEvent,
    PathId, PathStatus, Side, TransportConfig,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u32 = 28;

/// The routes of a path: from client to server, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes {
    /// From client to server.
    pub up: RouteId,
    /// From server to client.
    pub down: RouteId,
    /// The sender uses it only while no other path works.
    pub backup: bool,
}

/// A connection to be.
#[derive(Debug)]
pub struct Setup {
    /// The routes of its paths. All but the first are opened once the peer allows it.
    pub paths: Vec<Routes>,
    /// The client's transport configuration.
    pub client: TransportConfig,
    /// The server's.
    pub server: TransportConfig,
    /// Which side sends.
    pub sender: Side,
    /// What it sends, and when. The client connects when it first has something to send.
    pub application: Generator,
    /// Over how many streams; [`Source::Messages`] takes one, in which they arrive in order.
    pub streams: usize,
    /// Datagrams are ECN-capable, as noq's are. If not, a middlebox clears the mark from all of them:
    /// noq notices, and goes on without.
    pub ecn: bool,
    /// How often each side sends something on each path. A receiver's acknowledgements all take the
    /// first one: on the others the sender would get nothing and abandon them, and a new port that a
    /// NAT gave would stay unknown. noq's keep-alive does not help, as data that arrives defers it.
    pub ping: Option<Nanos>,
}

/// A transport configuration with several paths. One on which nothing arrives for five seconds is
/// abandoned: only so does a receiver, whose acknowledgements all take the first path, find that this
/// is dead.
pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(8);
    transport.default_path_max_idle_timeout(Some(Duration::from_secs(5)));
    transport
}

/// An application that has this to send from now on.
pub fn application(source: Source) -> Generator {
    Generator::new(0, FlowId::Connection(ConnId(0)), source, vec![(0, Nanos::MAX)])
}

impl Setup {
    /// A connection over `paths` of which `sender` always has something to send: over four streams, as
    /// a stream's window of 1.25 MB is not to be raised (noq closes a connection with more than 1024
    /// gaps in a stream).
    pub fn new(paths: Vec<Routes>, sender: Side) -> Setup {
        Setup {
            paths,
            client: transport(),
            server: transport(),
            sender,
            application: application(Source::Greedy),
            streams: 4,
            ecn: true,
            ping: Some(SECOND),
        }
    }
}

/// A datagram on its way.
struct Datagram {
    pair: usize,
    to: Side,
    path: FourTuple,
    ect: bool,
    data: BytesMut,
}

/// A path of a connection.
struct Path {
    routes: Routes,
    /// The client's port, as the server sees it.
    port: u16,
    /// What noq calls it, once it is open.
    id: Option<PathId>,
    /// The client has lost its address.
    lost: bool,
}

impl Path {
    fn new(routes: Routes) -> Path {
        Path { routes, port: CLIENT.1, id: None, lost: false }
    }
}

/// A client and its server.
struct Pair {
    hosts: [Host; 2],
    /// The client's, until it connects.
    config: Option<ClientConfig>,
    paths: Vec<Path>,
    sender: Side,
    streams: usize,
    ecn: bool,
    transfer: Transfer,
    ping: Option<Nanos>,
    next_ping: Nanos,
}

/// A network, and connections over it.
pub struct Sim {
    /// The links, which may be changed and read at any time, and flows of TCP and UDP beside the
    /// connections.
    pub net: narrows_sim::Sim,
    seed: u64,
    base: Instant,
    pairs: Vec<Pair>,
    datagrams: Vec<Option<Datagram>>,
    free: Vec<u32>,
    trace: u64,
}

impl Sim {
    /// An empty network at time 0. All randomness comes from the seed.
    pub fn new(seed: u64) -> Sim {
        Sim::over(narrows_sim::Sim::new(seed), seed)
    }

    /// No connections yet over `net`; what they draw comes from the seed.
    pub fn over(mut net: narrows_sim::Sim, seed: u64) -> Sim {
        net.keep_lost();
        // An origin without meaning: noq's times are this and virtual time.
        let base = Instant::now();
        let (pairs, datagrams, free) = (Vec::new(), Vec::new(), Vec::new());
        Sim { net, seed, base, pairs, datagrams, free, trace: 0xcbf2_9ce4_8422_2325 }
    }

    /// Adds a link. Panics if it cannot be built.
    pub fn link(&mut self, link: LinkConfig) -> LinkId {
        self.net.add_link(link).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Adds new links for a path, the same ones for each direction. Panics if one cannot be built.
    pub fn path(&mut self, links: &[LinkConfig]) -> Routes {
        let mut route = || links.iter().map(|link| self.link(link.clone())).collect::<Vec<_>>();
        let (up, down) = (route(), route());
        self.routes(&up, &down)
    }

    /// The routes over links that are there, from client to server and back. Panics if they are not.
    pub fn routes(&mut self, up: &[LinkId], down: &[LinkId]) -> Routes {
        let mut route = |links| self.net.add_route(links).unwrap_or_else(|e| panic!("{e}"));
        Routes { up: route(up), down: route(down), backup: false }
    }

    /// Adds a connection. Returns its number.
    pub fn connect(&mut self, setup: Setup) -> usize {
        let pair = self.pairs.len();
        let seed = self.seed.wrapping_mul(1000).wrapping_add(2 * pair as u64);
        let server = Host::new(seed + 1, Some(tls::server(setup.server)));
        self.pairs.push(Pair {
            hosts: [Host::new(seed, None), server],
            config: Some(tls::client(setup.client)),
            paths: setup.paths.into_iter().map(Path::new).collect(),
            sender: setup.sender,
            streams: setup.streams,
            ecn: setup.ecn,
            transfer: Transfer::new(setup.application),
            next_ping: self.now() + setup.ping.unwrap_or(0),
            ping: setup.ping,
        });
        self.write(pair);
        pair
    }

    /// Gives a connection another path, which the client opens as soon as it can. Returns its number.
    pub fn add_path(&mut self, connection: usize, path: Routes) -> usize {
        let paths = &mut self.pairs[connection].paths;
        paths.push(Path::new(path));
        paths.len() - 1
    }

    /// Closes path number `path`, which is its place in [`Setup::paths`], by the client.
    pub fn close_path(&mut self, connection: usize, path: usize) {
        let now = self.instant();
        let id = self.path_id(connection, path).expect("an open path");
        let client = self.end(connection, Side::Client);
        client.close_path(now, id, 0u8.into()).expect("not the last path");
    }

    /// The client loses the address of path number `path`: what is sent there is lost, and the client
    /// closes it, unless it is the last.
    pub fn lose_path(&mut self, connection: usize, path: usize) {
        self.pairs[connection].paths[path].lost = true;
        let (now, id) = (self.instant(), self.path_id(connection, path));
        if let Some((client, id)) = self.begun(connection, Side::Client).zip(id) {
            // noq keeps the last, and closes the connection when it has been idle for long.
            let _ = client.close_path(now, id, 0u8.into());
        }
    }

    /// What noq calls path number `path`; none before it is open.
    pub fn path_id(&self, connection: usize, path: usize) -> Option<PathId> {
        self.pairs[connection].paths[path].id
    }

    /// A NAT on the client's way gives path number `path` another port.
    pub fn rebind(&mut self, connection: usize, path: usize) {
        self.pairs[connection].paths[path].port += 1;
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        self.net.now()
    }

    /// Bytes of a connection that have arrived in order and as they were sent.
    pub fn received(&self, connection: usize) -> u64 {
        self.pairs[connection].transfer.received
    }

    /// When the whole file of a connection had arrived.
    pub fn finished(&self, connection: usize) -> Option<Nanos> {
        self.pairs[connection].transfer.finished
    }

    /// The messages that a connection's application has written; none without
    /// [`Source::Messages`].
    pub fn messages(&self, connection: usize) -> &[Message] {
        self.pairs[connection].transfer.messages()
    }

    /// When the sender of a file had the acknowledgement of all of it.
    pub fn acknowledged(&self, connection: usize) -> Option<Nanos> {
        self.pairs[connection].transfer.acknowledged
    }

    /// Why a side of a connection was closed, if it was.
    pub fn lost(&self, connection: usize, side: Side) -> Option<&ConnectionError> {
        self.pairs[connection].hosts[index(side)].lost.as_ref()
    }

    /// The events of paths at a side, from the first on.
    pub fn path_events(&self, connection: usize, side: Side) -> &[PathEvent] {
        &self.pairs[connection].hosts[index(side)].path_events
    }

    /// noq's connection at a side. Panics before it exists.
    pub fn end(&mut self, connection: usize, side: Side) -> &mut Connection {
        self.begun(connection, side).expect("it has begun")
    }

    /// The same, if it exists.
    pub fn begun(&mut self, connection: usize, side: Side) -> Option<&mut Connection> {
        self.pairs[connection].hosts[index(side)].connection.as_mut()
    }

    /// A hash of time, size, connection and direction of every datagram that was sent.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Lets everything happen up to `until`.
    pub fn run(&mut self, until: Nanos) {
        for pair in 0..self.pairs.len() {
            self.drive(pair, Side::Client);
            self.drive(pair, Side::Server);
        }
        loop {
            let next = self.next_time().filter(|next| *next <= until);
            if let Some(datagram) = self.net.run_to_datagram(next.unwrap_or(until)) {
                self.deliver(datagram);
                continue;
            }
            if next.is_none() {
                return;
            }
            for pair in 0..self.pairs.len() {
                self.ping(pair);
                self.write(pair);
                for side in [Side::Client, Side::Server] {
                    let now = self.instant();
                    if self.pairs[pair].hosts[index(side)].timeout(now) {
                        self.drive(pair, side);
                    }
                }
            }
        }
    }

    /// Lets the application write, if it is time.
    fn write(&mut self, number: usize) {
        let (now, instant) = (self.now(), self.instant());
        let pair = &mut self.pairs[number];
        if pair.transfer.next_write() > now {
            return;
        }
        pair.transfer.wake(now);
        if let Some(config) = pair.config.take() {
            let first = pair.paths.iter().position(|path| !path.lost).unwrap_or(0);
            let to = FourTuple::new(address(number, first, SERVER), None);
            pair.hosts[index(Side::Client)].connect(instant, config, to);
            pair.paths[first].id = Some(PathId::ZERO);
            self.drive(number, Side::Client);
        } else {
            self.drive(number, self.pairs[number].sender);
        }
    }

    /// Sends something on each path, if it is time.
    fn ping(&mut self, number: usize) {
        let pair = &mut self.pairs[number];
        let Some(interval) = pair.ping.filter(|_| pair.next_ping <= self.net.now()) else { return };
        pair.next_ping += interval;
        for host in pair.hosts.iter_mut().filter(|host| host.connected && host.lost.is_none()) {
            let Some(connection) = &mut host.connection else { continue };
            for path in connection.paths() {
                // One that has been abandoned cannot be pinged.
                let _ = connection.ping_path(path);
            }
        }
        self.drive(number, Side::Client);
        self.drive(number, Side::Server);
    }

    /// Now, as noq has it.
    pub fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now())
    }

    /// When an end point or an application has something to do next.
    fn next_time(&self) -> Option<Nanos> {
        let ends = self.pairs.iter().flat_map(|pair| &pair.hosts);
        let timers = ends.filter_map(Host::next_timeout);
        let timers = timers.map(|at| at.saturating_duration_since(self.base).as_nanos() as Nanos);
        let writes = self.pairs.iter().map(|pair| pair.transfer.next_write());
        let pings = self.pairs.iter().filter(|pair| pair.ping.is_some()).map(|pair| pair.next_ping);
        timers.chain(writes).chain(pings).min()
    }

    fn deliver(&mut self, Arrived { key, ce }: Arrived) {
        let datagram = self.datagrams[key as usize].take().expect("it was underway");
        self.free.push(key);
        let now = self.instant();
        let pair = &mut self.pairs[datagram.pair];
        if pair.paths[path_of(datagram.path.remote())].lost {
            return;
        }
        let ecn = match (datagram.ect, ce) {
            (_, true) => Some(EcnCodepoint::Ce),
            (true, false) => Some(EcnCodepoint::Ect0),
            (false, false) => None,
        };
        let host = &mut pair.hosts[index(datagram.to)];
        host.receive(now, datagram.path, ecn, datagram.data);
        self.drive(datagram.pair, datagram.to);
    }

    /// Lets a side do all it can do now.
    fn drive(&mut self, number: usize, side: Side) {
        let (now, instant) = (self.now(), self.instant());
        loop {
            let pair = &mut self.pairs[number];
            let host = &mut pair.hosts[index(side)];
            host.poll();
            let mut progress = false;
            if let Some(connection) = host.connection.as_mut().filter(|_| host.lost.is_none()) {
                let opens = side == Side::Client && host.connected;
                let next = pair.paths.iter().position(|path| path.id.is_none() && !path.lost);
                if let Some(next) = next.filter(|_| opens) {
                    let to = address(number, next, SERVER);
                    let from = address(number, next, CLIENT).ip();
                    let path = FourTuple::new(to, Some(from));
                    let status = status(pair.paths[next].routes);
                    match connection.open_path(path, status, instant) {
                        Ok(id) => (pair.paths[next].id, progress) = (Some(id), true),
                        // The peer has not allowed it yet.
                        Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {}
                        Err(error) => panic!("path {next}: {error}"),
                    }
                }
                // Only a sender's own status counts, and a client has given it with the path.
                if side == Side::Server && pair.sender == side {
                    let backup = pair.paths.iter().filter(|path| path.routes.backup);
                    for id in backup.filter_map(|path| path.id) {
                        // The server may not know of it yet, or not any more.
                        let _ = connection.set_path_status(id, PathStatus::Backup);
                    }
                }
                if side == pair.sender && host.connected {
                    pair.transfer.open(connection, pair.streams);
                    pair.transfer.write(connection);
                    pair.transfer.acknowledge(host.finished_streams, now);
                } else if side != pair.sender {
                    pair.transfer.read(connection, now);
                }
            }
            progress |= host.exchange();
            progress |= self.send(number, side);
            if !progress {
                return;
            }
        }
    }

    /// Sends what a side has to send. True if that was anything.
    fn send(&mut self, number: usize, side: Side) -> bool {
        let (now, instant) = (self.now(), self.instant());
        let pair = &mut self.pairs[number];
        let host = &mut pair.hosts[index(side)];
        let mut any = false;
        while let Some((transmit, data)) = host.transmit(instant) {
            any = true;
            let path = path_of(transmit.destination);
            if pair.paths[path].lost {
                continue;
            }
            let (to, route, path) = match side {
                Side::Client => {
                    let from =
                        SocketAddr::new(address(number, path, CLIENT).ip(), pair.paths[path].port);
                    let at = address(number, path, SERVER).ip();
                    (Side::Server, pair.paths[path].routes.up, FourTuple::new(from, Some(at)))
                }
                // What is sent to a port that the NAT has given up is lost.
                Side::Server if transmit.destination.port() != pair.paths[path].port => continue,
                Side::Server => {
                    let from = address(number, path, SERVER);
                    let at = address(number, path, CLIENT).ip();
                    (Side::Client, pair.paths[path].routes.down, FourTuple::new(from, Some(at)))
                }
            };
            let ect = pair.ecn && transmit.ecn.is_some();
            for data in data.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                let size = data.len() as u32 + HEADERS;
                for word in [now, size.into(), number as u64, index(to) as u64] {
                    self.trace = (self.trace ^ word).wrapping_mul(0x100_0000_01b3);
                }
                let datagram = Datagram { pair: number, to, path, ect, data: data.into() };
                let key = self.free.pop().unwrap_or_else(|| {
                    self.datagrams.push(None);
                    self.datagrams.len() as u32 - 1
                });
                self.datagrams[key as usize] = Some(datagram);
                let ecn = if ect { Ecn::Ect } else { Ecn::NotEct };
                let header = Header { size, flow: number as u32, ecn };
                self.net.send(route, header, key);
            }
        }
        for key in self.net.drain_lost() {
            self.datagrams[key as usize] = None;
            self.free.push(key);
        }
        any
    }
}

/// The last octet of an address, and the port.
type End = (u8, u16);
const CLIENT: End = (1, 1000);
const SERVER: End = (2, 4433);

/// The address of an end of a path: 10.CONNECTION.PATH.END.
fn address(pair: usize, path: usize, (end, port): End) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, pair as u8, path as u8, end).into(), port)
}

fn status(path: Routes) -> PathStatus {
    if path.backup { PathStatus::Backup } else { PathStatus::Available }
}

fn path_of(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(address) => address.octets()[2].into(),
        IpAddr::V6(_) => unreachable!("all addresses are given above"),
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}
