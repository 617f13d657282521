//! The event loop: packets that arrive and timers that expire, in the order of time.

use narrows_laws::MAX_PATHS;
use narrows_net::{
    ConfigError, Delivery, Header, LinkConfig, LinkId, Nanos, Network, PREFETCHED, Rate, RouteId,
    prefetch,
};
use narrows_traffic::{ConnId, FlowId, Generator, Message, PathManager, Source, TcpConfig, UdpId};

use crate::capture::{Captured, Point, Recorder};
use crate::event::{Target, Timers};
use crate::mptcp::connection::Connection;
use crate::mptcp::subflow::PathSetup;
use crate::packet::{Body, MPTCP_HEADER, OUTSIDE, Packet, Payload, TCP_HEADER};
use crate::passive::Findings;
use crate::stats::{ConnectionStats, Detection, UdpStats};
use crate::tcp::NEVER;
use crate::udp::Udp;
use crate::wire::Wire;
use crate::{ConnectionConfig, PathConfig, UdpConfig};
pub use parts::THREAD;
use parts::{Apart, Places, Plan, place};
use windows::Ran;

mod parts;
mod sync;
mod windows;

/// So many events at one time are an endless loop, and the run is ended. Ten thousand connections
/// that each send a window of a thousand packets over a link of infinite rate need fewer.
const STUCK: u32 = 1 << 24;

/// A simulation: a network, the connections and flows over it, and the time.
#[derive(Debug)]
pub struct Sim {
    seed: u64,
    now: Nanos,
    network: Network<Packet>,
    connections: Vec<Connection>,
    /// For each path of each connection the earliest entry in `timers`: a deadline that moves
    /// away leaves its entry, which sets the next when its time comes.
    armed: Vec<[Nanos; MAX_PATHS]>,
    udp: Vec<Udp>,
    timers: Timers,
    recorder: Option<Box<Recorder>>,
    /// Events since time last moved.
    at_once: u32,
    /// Packets delivered and timers expired.
    events: u64,
    /// Threads to run on.
    threads: usize,
    /// Of a part: where the flows of the whole are.
    places: Places,
    /// Its parts, if it has been taken apart.
    apart: Option<Box<Apart>>,
    /// Packet-hops in parts, and how many there would have been if all threads had been as busy as the busiest.
    shared: (u64, u64),
    /// Windows and events since it was taken apart.
    in_parts: (u64, u64),
    /// It is not taken apart before, and how much longer if that is in vain once more.
    alone_until: Nanos,
    alone_for: Nanos,
    /// It cannot be taken apart, as far as is known.
    is_one: bool,
    /// An end point outside of it has sent something.
    outside: bool,
}

/// A datagram of an end point outside of the simulator ([`Sim::send`]) has reached the end of its
/// route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// What its sender calls it.
    pub key: u32,
    /// Whether it is marked: congestion experienced.
    pub ce: bool,
}

impl Sim {
    /// An empty simulation at time 0. All randomness comes from the seed.
    pub fn new(seed: u64) -> Sim {
        Sim {
            seed,
            now: 0,
            network: Network::new(seed),
            connections: Vec::new(),
            armed: Vec::new(),
            udp: Vec::new(),
            timers: Timers::default(),
            recorder: None,
            at_once: 0,
            events: 0,
            shared: (0, 0),
            threads: 1,
            places: Places::default(),
            apart: None,
            in_parts: (0, 0),
            alone_until: 0,
            alone_for: 0,
            is_one: false,
            outside: false,
        }
    }

    /// Adds a link.
    ///
    /// # Errors
    /// As [`Network::add_link`].
    pub fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError> {
        self.change();
        self.network.add_link(config)
    }

    /// Adds a route.
    ///
    /// # Errors
    /// As [`Network::add_route`].
    pub fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError> {
        self.change();
        self.network.add_route(links)
    }

    /// Adds a connection.
    ///
    /// # Panics
    /// If it has no path, more than eight, or several without being multipath or with a path
    /// manager that makes several of one; if the MTU of a route has no room for headers; if an
    /// interval starts in the past.
    pub fn add_connection(&mut self, config: ConnectionConfig) -> ConnId {
        self.change();
        let (most, copies) = match config.path_manager {
            _ if !config.multipath => (1, 1),
            PathManager::Fullmesh => (MAX_PATHS, 1),
            PathManager::Ndiffports(subflows) => (1, usize::from(subflows)),
        };
        let name = &config.name;
        assert!((1..=most).contains(&config.paths.len()), "{name}: 1 to {most} paths");
        assert!((1..=MAX_PATHS).contains(&copies), "{name}: 1 to {MAX_PATHS} subflows");
        let setup = |path: &PathConfig| self.path_setup(path, config.multipath);
        let mut paths: Vec<PathSetup> = config.paths.iter().map(setup).collect();
        paths.resize(paths.len() + copies - 1, paths[0]);
        let number = self.connections.len() as u32;
        let generator =
            self.generator(FlowId::Connection(ConnId(number)), config.source, &config.active);
        let connection = Connection::new(&config, &paths, generator);
        self.timers.set(connection.first_start(), Target::Source(number));
        self.connections.push(connection);
        self.armed.push([NEVER; MAX_PATHS]);
        ConnId(number)
    }

    fn path_setup(&self, path: &PathConfig, multipath: bool) -> PathSetup {
        let PathConfig { name, forward, reverse, backup, strips_mptcp } = path;
        let header = if multipath { MPTCP_HEADER } else { TCP_HEADER };
        let mtu = self.network.route_mtu(*forward);
        assert!(mtu > header, "{name}: an MTU of {mtu} has no room for data");
        PathSetup {
            forward: *forward,
            reverse: *reverse,
            mss: mtu - header,
            backup: *backup,
            strips_mptcp: *strips_mptcp,
        }
    }

    /// The address of a path of a connection is lost at this moment: both ends drop its subflow,
    /// if it has one, and the data outstanding goes out on others. (The peer would learn it from
    /// RM_ADDR, RFC 8684, section 3.4.2, half a round trip later.) A connection of MPTCP without any
    /// path waits for a new one; plain TCP, also after a fallback, has come to its end. False if
    /// there is no such path.
    pub fn remove_path(&mut self, connection: ConnId, path: usize) -> bool {
        self.change();
        self.with_connection(connection.0, |c, wire| c.remove_path(path, wire))
    }

    /// A path becomes a backup, which carries data only while no regular path can, or regular again (RFC 8684, section
    /// 3.3.8).
    ///
    /// # Panics
    /// If the connection has no such path.
    pub fn set_backup(&mut self, connection: ConnId, path: usize, backup: bool) {
        self.change();
        self.with_connection(connection.0, |c, wire| c.set_backup(path, backup, wire));
    }

    /// A connection of MPTCP gets one more path, which joins as soon as it may. Returns its number
    /// in [`ConnectionStats::paths`]: that of a path of the same route that was removed, or else of
    /// any that was. None if it has eight paths already, or is plain TCP.
    ///
    /// # Panics
    /// If the MTU of the route has no room for headers.
    pub fn add_path(&mut self, connection: ConnId, path: &PathConfig) -> Option<usize> {
        self.change();
        let setup = self.path_setup(path, true);
        self.with_connection(connection.0, |c, wire| c.add_path(&setup, wire))
    }

    /// Adds a UDP flow.
    ///
    /// # Panics
    /// If its source has no rate (greedy, file) or wants feedback that has no route; if an interval starts
    /// in the past.
    pub fn add_udp(&mut self, config: UdpConfig) -> UdpId {
        self.change();
        let paced = match config.source {
            Source::Rate { .. } | Source::OnOff { .. } => true,
            Source::Media { .. } => config.back.is_some(),
            _ => false,
        };
        assert!(paced, "{}: UDP needs a source with a rate, media a way back", config.name);
        let number = self.udp.len() as u32;
        let generator = self.generator(FlowId::Udp(UdpId(number)), config.source, &config.active);
        let udp = Udp::new(config.route, config.back, generator);
        self.timers.set(udp.first_start(), Target::Udp(number));
        self.udp.push(udp);
        UdpId(number)
    }

    fn generator(&self, flow: FlowId, source: Source, active: &[(Nanos, Nanos)]) -> Generator {
        let past = active.first().is_some_and(|&(start, _)| start < self.now);
        assert!(!past, "an interval of activity starts in the past");
        Generator::new(self.seed, flow, source, active.to_vec())
    }

    /// Lets everything happen up to and including time `t`.
    ///
    /// # Panics
    /// If time stands still: 2^24 events happened at one and the same time, which only an endless loop
    /// does, as of a connection over links that take no time at all.
    pub fn run_until(&mut self, t: Nanos) {
        self.run_on(t);
        self.gather();
    }

    /// The threads that [`Sim::run_until`] may use: 1 at first. The result is the same with any number.
    pub fn set_threads(&mut self, threads: usize) {
        self.change();
        self.threads = threads.max(1);
    }

    /// The same as [`Sim::run_until`], but what runs on several threads is left in parts, as to take it apart and to put
    /// it together takes as long as some packets of each connection: whoever asks for more than the time calls
    /// [`Sim::gather`] before. What changes it does so by itself.
    ///
    /// # Panics
    /// As [`Sim::run_until`].
    pub fn run_on(&mut self, t: Nanos) {
        while self.now < t {
            let alone = if self.come_apart() { self.alone_until } else { t };
            match &self.apart {
                Some(apart) => {
                    let Ran { reached, windows, events, hops, critical } =
                        apart.run(t, self.threads);
                    self.now = reached;
                    self.shared.0 += hops;
                    self.shared.1 += critical * self.threads.min(apart.parts()) as u64;
                    self.in_parts.0 += windows;
                    self.in_parts.1 += events;
                    if reached < t {
                        // Of late too little happened.
                        self.in_parts.1 = 0;
                        self.gather();
                    }
                }
                None => while self.run_to_datagram(alone.min(t)).is_some() {},
            }
        }
        while self.apart.is_none() && self.run_to_datagram(t).is_some() {}
    }

    /// How many parts it is in at present: 1 unless [`Sim::run_on`] has taken it apart.
    pub fn parts(&self) -> usize {
        self.apart.as_ref().map_or(1, |apart| apart.parts())
    }

    /// How much of the time its threads were busy while it was in parts, by counting: as if a packet-hop took as long as
    /// another, each thread had a core of its own, and waiting took nothing. None if it has not been in parts.
    pub fn busy(&self) -> Option<f64> {
        let (hops, at_most) = self.shared;
        (at_most > 0).then(|| hops as f64 / at_most as f64)
    }

    /// The parts that it would be taken apart into for so many threads, and how far they run by themselves before they
    /// wait for each other; none if that would not be worth it.
    pub fn would_part(&self, threads: usize) -> Option<(usize, Nanos)> {
        let plan = if threads > 1 { Plan::new(self, threads) } else { None };
        plan.map(|plan| (plan.parts(), plan.lookahead()))
    }

    /// Takes the simulation apart if it may run on several threads now. False if it does not until something changes.
    fn come_apart(&mut self) -> bool {
        let seen = self.recorder.is_some() || self.network.keeps_lost() || self.outside;
        if self.threads == 1 || self.is_one || seen {
            return false;
        }
        if self.apart.is_none() && self.now >= self.alone_until {
            let Some(plan) = Plan::new(self, self.threads) else {
                self.is_one = true;
                return false;
            };
            self.alone_for = self.alone_for.max(plan.trial());
            self.apart = Some(Box::new(Apart::new(self, plan)));
            self.in_parts = (0, 0);
        }
        true
    }

    /// Puts the parts of [`Sim::run_on`] together.
    pub fn gather(&mut self) {
        let Some(apart) = self.apart.take() else { return };
        let (windows, events) = self.in_parts;
        if !apart.was_worth(windows, events, self.threads) {
            // For some time it goes on as a whole, then perhaps more happens.
            self.alone_until = self.now + self.alone_for;
            self.alone_for *= 2;
        }
        apart.join(self);
    }

    /// Something about it changes.
    fn change(&mut self) {
        self.gather();
        self.is_one = false;
    }

    /// The same, but returns at the first datagram of [`Sim::send`] that reaches the end of its route,
    /// at that time; call again until there is none.
    ///
    /// # Panics
    /// As [`Sim::run_until`].
    pub fn run_to_datagram(&mut self, t: Nanos) -> Option<Datagram> {
        self.gather();
        let datagram = self.advance(t);
        debug_assert!(
            datagram.is_some() || self.network.is_conserved(),
            "packets lost or made at {} ns",
            self.now
        );
        datagram
    }

    fn advance(&mut self, t: Nanos) -> Option<Datagram> {
        loop {
            let before = self.now;
            let timer = self.timers.first();
            let (connections, armed, places) =
                (&self.connections, &self.armed, &self.places.connections);
            let delivery = self.network.advance_prefetching(timer.min(t), |n, packet| {
                let place = place(places, packet.flow);
                let connection = connections.get(place)?;
                if n == PREFETCHED[0] {
                    prefetch(&armed[place], size_of::<[Nanos; MAX_PATHS]>());
                }
                connection.prefetch(n, packet)
            });
            if let Some(recorder) = &mut self.recorder {
                self.network.drain_seen().for_each(|seen| recorder.on_link(&seen));
            }
            let mut datagram = None;
            if let Some(delivery) = &delivery {
                self.now = delivery.time;
                datagram = self.deliver(delivery);
            } else if timer <= t {
                self.now = timer;
                self.expire();
            } else {
                break;
            }
            self.events += 1;
            assert!(self.now >= before, "an event at {} ns, in the past", self.now);
            self.at_once = if self.now == before { self.at_once + 1 } else { 0 };
            assert!(self.at_once < STUCK, "time stands still at {} ns: {STUCK} events", self.now);
            if datagram.is_some() {
                return datagram;
            }
        }
        self.now = self.now.max(t);
        None
    }

    /// The time of the next event, if there is one.
    pub fn next_time(&self) -> Option<Nanos> {
        if let Some(apart) = &self.apart {
            return apart.next_time();
        }
        let timer = Some(self.timers.first()).filter(|&time| time != NEVER);
        timer.into_iter().chain(self.network.next_time()).min()
    }

    /// An end point outside of the simulator sends a datagram now, which it calls `key`.
    pub fn send(&mut self, route: RouteId, header: Header, key: u32) {
        self.change();
        self.outside = true;
        let body = Body::Udp { size: header.size, payload: Payload::Plain };
        let packet = Packet { flow: key, path: OUTSIDE, generation: 0, id: 0, body };
        self.network.enqueue(self.now, route, header, packet);
    }

    /// From now on datagrams of [`Sim::send`] that are dropped are kept for [`Sim::drain_lost`].
    pub fn keep_lost(&mut self) {
        self.change();
        self.network.keep_lost();
    }

    /// The keys of the datagrams that were dropped since the last call.
    pub fn drain_lost(&mut self) -> impl Iterator<Item = u32> + '_ {
        let outside = |packet: Packet| (packet.path == OUTSIDE).then_some(packet.flow);
        self.network.drain_lost().filter_map(outside)
    }

    /// A packet has arrived. Returns it if it is for an end point outside of the simulator.
    #[inline(always)]
    fn deliver(&mut self, delivery: &Delivery<Packet>) -> Option<Datagram> {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_delivery(delivery);
        }
        let packet = &delivery.payload;
        if let Body::Udp { payload, .. } = packet.body {
            if packet.path == OUTSIDE {
                return Some(Datagram { key: packet.flow, ce: delivery.ce });
            }
            let udp = &mut self.udp[place(&self.places.udp, packet.flow)];
            let next = udp.on_packet(self.now, delivery.size, delivery.ce, payload);
            // The end that it came to acts next.
            let target = match payload {
                Payload::Report(_) => Target::Udp(packet.flow),
                _ => Target::Report(packet.flow),
            };
            self.timers.set(next, target);
            return None;
        }
        self.with_connection(packet.flow, |connection, wire| {
            connection.on_packet(packet, delivery.ce, wire);
        });
        None
    }

    fn expire(&mut self) {
        let Some((time, target)) = self.timers.pop() else { return };
        match target {
            Target::Subflow(flow, path) => {
                let armed =
                    &mut self.armed[place(&self.places.connections, flow)][usize::from(path)];
                if *armed != time {
                    return;
                }
                *armed = NEVER;
                self.with_connection(flow, |connection, wire| {
                    if connection.deadline(path.into(), time) <= time {
                        connection.on_timer(path.into(), wire);
                    }
                });
            }
            Target::Source(flow) => {
                let next = self.with_connection(flow, Connection::on_source);
                self.timers.set(next, target);
            }
            Target::Udp(flow) | Target::Report(flow) => {
                let mut wire = Wire {
                    now: self.now,
                    flow,
                    multipath: false,
                    generations: 0,
                    first: (0, 0),
                    network: &mut self.network,
                    recorder: self.recorder.as_deref_mut(),
                };
                let udp = &mut self.udp[place(&self.places.udp, flow)];
                let next = match target {
                    Target::Report(_) => udp.on_feedback(&mut wire),
                    _ => udp.on_source(&mut wire),
                };
                self.timers.set(next, target);
            }
        }
    }

    /// Lets a connection act, then sees to its timers.
    fn with_connection<R>(
        &mut self,
        flow: u32,
        act: impl FnOnce(&mut Connection, &mut Wire) -> R,
    ) -> R {
        let place = place(&self.places.connections, flow);
        let connection = &mut self.connections[place];
        let mut wire = Wire {
            now: self.now,
            flow,
            multipath: connection.is_multipath(),
            generations: connection.generations(),
            first: connection.first(),
            network: &mut self.network,
            recorder: self.recorder.as_deref_mut(),
        };
        let result = act(connection, &mut wire);
        let armed = &mut self.armed[place];
        for path in connection.take_touched() {
            let deadline = connection.deadline(path, self.now);
            if deadline < armed[path] {
                armed[path] = deadline;
                self.timers.set(deadline, Target::Subflow(flow, path as u8));
            }
        }
        for path in connection.take_received() {
            let deadline = connection.ack_deadline(path);
            if deadline < armed[path] {
                armed[path] = deadline;
                self.timers.set(deadline, Target::Subflow(flow, path as u8));
            }
        }
        let own = connection.own_deadline();
        if own < armed[0] {
            armed[0] = own;
            self.timers.set(own, Target::Subflow(flow, 0));
        }
        let in_time = |path: usize| armed[path] <= connection.deadline(path, self.now);
        debug_assert!((0..connection.paths()).all(in_time));
        result
    }

    /// A connection comes, from another part or the whole.
    fn adopt(&mut self, flow: u32, connection: Connection) {
        self.places.connections[flow as usize] = self.connections.len() as u32;
        self.connections.push(connection);
        self.armed.push([NEVER; MAX_PATHS]);
        self.arm(flow);
    }

    /// Sets the timers of a connection that has none.
    fn arm(&mut self, flow: u32) {
        let place = place(&self.places.connections, flow);
        let connection = &self.connections[place];
        for path in 0..connection.paths() {
            let deadline = connection.deadline(path, self.now);
            self.armed[place][path] = deadline;
            self.timers.set(deadline, Target::Subflow(flow, path as u8));
        }
    }

    /// The receiving application stops reading, or takes it up again (it reads from the start).
    pub fn set_reading(&mut self, connection: ConnId, reading: bool) {
        self.change();
        self.with_connection(connection.0, |c, wire| c.set_reading(reading, wire));
    }

    /// From now on packets that pass `point` are kept for [`Sim::drain_captured`]. For full headers
    /// call it before time begins.
    pub fn capture(&mut self, point: Point) {
        self.change();
        if let Point::Link(link) = point {
            self.network.watch(link);
        }
        self.recorder.get_or_insert_default().add(point);
    }

    /// The packets that passed the points of [`Sim::capture`] since the last call, at each point in
    /// order. They are kept in memory until then.
    pub fn drain_captured(&mut self) -> impl Iterator<Item = Captured> + '_ {
        self.recorder.iter_mut().flat_map(|recorder| recorder.drain())
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// What the TCP of a connection's ends does, as configured.
    pub fn tcp(&self, connection: ConnId) -> TcpConfig {
        self.connections[connection.0 as usize].tcp()
    }

    /// State and counters of a connection.
    pub fn connection(&self, connection: ConnId) -> ConnectionStats {
        self.connections[connection.0 as usize].stats(self.now)
    }

    /// The messages that a connection's application has written; none without
    /// [`Source::Messages`].
    pub fn messages(&self, connection: ConnId) -> &[Message] {
        self.connections[connection.0 as usize].messages()
    }

    /// The newest decision of a connection's dynamic detector; none without one.
    pub fn detection(&self, connection: ConnId) -> Option<&Detection> {
        self.connections[connection.0 as usize].detection()
    }

    /// What the passive detectors of a connection found.
    pub fn findings(&self, connection: ConnId) -> impl Iterator<Item = &Findings> {
        self.connections[connection.0 as usize].findings()
    }

    /// Counters of a UDP flow.
    pub fn udp(&self, flow: UdpId) -> UdpStats {
        self.udp[flow.0 as usize].stats()
    }

    /// The network: links, routes and their counters.
    pub fn network(&self) -> &Network<Packet> {
        debug_assert!(self.apart.is_none(), "it is in parts");
        &self.network
    }

    /// From now on a link has this rate, see [`Network::set_rate`].
    ///
    /// # Errors
    /// If the link could not be built with it.
    pub fn set_link_rate(&mut self, link: LinkId, rate: Rate) -> Result<(), ConfigError> {
        self.change();
        self.network.set_rate(self.now, link, rate)
    }

    /// From now on a link has this delay, see [`Network::set_delay`].
    ///
    /// # Errors
    /// If the link could not be built with it.
    pub fn set_link_delay(&mut self, link: LinkId, delay: Nanos) -> Result<(), ConfigError> {
        self.change();
        self.network.set_delay(self.now, link, delay)
    }

    /// A link goes down or up at this moment, see [`Network::set_up`].
    pub fn set_link_up(&mut self, link: LinkId, up: bool) {
        self.change();
        self.network.set_up(self.now, link, up);
    }

    /// A link holds its packets for this time, see [`Network::hold`].
    pub fn hold_link(&mut self, link: LinkId, time: Nanos) {
        self.change();
        self.network.hold(self.now, link, self.now + time);
    }

    /// Sets the counters of all links to 0, as at the end of a warm-up.
    pub fn reset_link_counters(&mut self) {
        self.change();
        self.network.reset_counters();
    }

    /// How long a packet that arrives now would wait in a link's queue.
    pub fn queue_delay(&self, link: LinkId) -> Nanos {
        self.network.queue_delay(link, self.now)
    }
}

#[cfg(test)]
mod lying;
