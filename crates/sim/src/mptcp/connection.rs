//! A connection: both ends, their subflows, and the law that couples them.

use narrows_laws::Conn;
use narrows_net::{Nanos, RouteId};

use super::reassembly::Reassembly;
use super::scheduler;
use super::stream::{Chunk, Stream};
use crate::packet::{Body, Wire};
use crate::source::{Generator, Write};
use crate::stats::{ConnectionStats, PathStats};
use crate::tcp::NEVER;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;
use crate::{Scheduler, Source};

/// A subflow: its sender at one end, its receiver at the other.
#[derive(Debug)]
struct Subflow {
    sender: Sender,
    receiver: Receiver,
    reverse: RouteId,
}

/// What a new subflow is told.
pub(crate) struct PathSetup {
    pub forward: RouteId,
    pub reverse: RouteId,
    pub mss: u32,
}

/// A connection, from application to application.
#[derive(Debug)]
pub(crate) struct Connection {
    multipath: bool,
    scheduler: Scheduler,
    source: Source,
    generator: Generator,
    law: Conn,
    subflows: Vec<Subflow>,
    stream: Stream,
    data: Reassembly,
    /// The subflow that sent last.
    last: usize,
    opened: bool,
    established: Option<Nanos>,
    completed: Option<Nanos>,
    reinjections: u64,
    /// Persist timer: when to ask for the window.
    probe_at: Nanos,
    probes: u32,
}

impl Connection {
    pub fn new(
        config: &crate::ConnectionConfig,
        paths: &[PathSetup],
        generator: Generator,
    ) -> Self {
        let subflow = |(path, setup): (usize, &PathSetup)| Subflow {
            sender: Sender::new(path, setup.forward, setup.mss, path > 0, &config.tcp),
            receiver: Receiver::new(config.tcp.gro),
            reverse: setup.reverse,
        };
        Connection {
            multipath: config.multipath,
            scheduler: config.scheduler,
            source: config.source,
            generator,
            law: Conn::new(config.control),
            subflows: paths.iter().enumerate().map(subflow).collect(),
            stream: Stream::new(config.send_buffer),
            data: Reassembly::new(config.recv_buffer),
            last: 0,
            opened: false,
            established: None,
            completed: None,
            reinjections: 0,
            probe_at: NEVER,
            probes: 0,
        }
    }

    pub fn is_multipath(&self) -> bool {
        self.multipath
    }

    pub fn paths(&self) -> usize {
        self.subflows.len()
    }

    /// A packet of one of the two ends arrived at the other, marked if `ce`.
    pub fn on_packet(&mut self, path: usize, body: &Body, ce: bool, wire: &mut Wire) {
        match body {
            Body::Data(segment) => {
                let Subflow { receiver, .. } = &mut self.subflows[path];
                let due =
                    receiver.on_segment(segment, ce, wire.now, self.multipath, &mut self.data);
                if due || self.data.window_opened() {
                    self.acknowledge(path, wire);
                }
                self.note_completion(wire.now);
            }
            Body::Ack(ack) => {
                self.stream.acknowledge(ack.data_ack, ack.edge);
                let more = !self.stream.is_drained();
                self.subflows[path].sender.on_ack(ack, more, wire, &mut self.law);
                self.push(wire);
                self.subflows[path].sender.note_sent(wire, &mut self.law);
            }
            Body::Syn { sent } => {
                self.subflows[path].receiver.delack.on_syn(wire.now);
                let body = Body::SynAck { echo: *sent, edge: self.data.advertise() };
                wire.send(self.subflows[path].reverse, path, body);
            }
            Body::SynAck { echo, edge } => {
                self.stream.acknowledge(0, *edge);
                if self.subflows[path].sender.on_syn_ack(*echo, wire, &mut self.law) {
                    self.on_established(path, wire);
                }
            }
            Body::Third => {
                self.subflows[path].receiver.delack.on_third(wire.now);
                // RFC 8684, section 3.2: only a join's is answered.
                if path > 0 {
                    let (data_ack, edge) = (self.data.next(), self.data.advertise());
                    let body = Body::Fourth { data_ack, edge };
                    wire.send(self.subflows[path].reverse, path, body);
                }
            }
            Body::Fourth { data_ack, edge } => {
                self.stream.acknowledge(*data_ack, *edge);
                if self.subflows[path].sender.on_fourth(wire.now, &mut self.law) {
                    self.on_established(path, wire);
                }
            }
            Body::Udp { .. } => unreachable!("a UDP packet in a connection"),
        }
    }

    fn acknowledge(&mut self, path: usize, wire: &mut Wire) {
        let subflow = &mut self.subflows[path];
        let mut ack = subflow.receiver.acknowledge(&mut self.data);
        if self.multipath {
            ack.leave_room_for_dss();
        }
        wire.send(subflow.reverse, path, Body::Ack(ack));
    }

    fn note_completion(&mut self, now: Nanos) {
        if let Source::File { bytes } = self.source {
            if self.completed.is_none() && self.data.read() >= bytes {
                self.completed = Some(now);
            }
        }
    }

    /// A subflow may carry data. After the first the others join (fullmesh).
    fn on_established(&mut self, path: usize, wire: &mut Wire) {
        if path == 0 {
            self.established = Some(wire.now);
            for subflow in &mut self.subflows[1..] {
                subflow.sender.open(wire);
            }
        }
        self.push(wire);
    }

    /// Sends what may be sent: first what another subflow failed to deliver, then new data.
    fn push(&mut self, wire: &mut Wire) {
        while self.push_reinjection(wire) || self.push_new(wire) {}
        let unsent = self.stream.unsent();
        for subflow in &mut self.subflows {
            subflow.sender.note_window_use(unsent, wire.now);
        }
        self.set_probe_timer(wire.now);
    }

    fn push_reinjection(&mut self, wire: &mut Wire) -> bool {
        // The lowest byte that another subflow has room for: the receiver waits for it.
        let mut first: Option<(Chunk, usize, usize)> = None;
        for from in 0..self.subflows.len() {
            let Some(chunk) = self.stream.next_reinjection(from) else { continue };
            if first.is_none_or(|(lowest, ..)| chunk.dsn < lowest.dsn) {
                first = self.pick(Some(from)).map(|path| (chunk, from, path)).or(first);
            }
        }
        let Some((chunk, from, path)) = first else { return false };
        let sender = &mut self.subflows[path].sender;
        let len = chunk.len.min(sender.mss());
        self.stream.take_reinjection(from, len);
        sender.send_new(chunk.dsn, len, wire, &mut self.law);
        self.reinjections += 1;
        true
    }

    fn push_new(&mut self, wire: &mut Wire) -> bool {
        let Some(path) = self.pick(None) else { return false };
        let mss = self.subflows[path].sender.mss();
        let len = match self.stream.next_len(mss, false) {
            0 if self.is_idle() => self.stream.next_len(mss, true),
            len => len,
        };
        if len == 0 {
            return false;
        }
        let dsn = self.stream.take(len);
        self.subflows[path].sender.send_new(dsn, len, wire, &mut self.law);
        self.last = path;
        true
    }

    fn pick(&self, except: Option<usize>) -> Option<usize> {
        let ready = self
            .subflows
            .iter()
            .enumerate()
            .filter(|(path, subflow)| Some(*path) != except && subflow.sender.has_room())
            .map(|(path, subflow)| (path, subflow.sender.srtt()));
        scheduler::pick(self.scheduler, self.last, ready)
    }

    /// Nothing is underway.
    fn is_idle(&self) -> bool {
        self.subflows.iter().all(|subflow| subflow.sender.packets_out() == 0)
    }

    /// RFC 9293, section 3.8.6.1: while the window is closed and nothing is underway that would
    /// bring news of it, ask, at doubling intervals.
    fn set_probe_timer(&mut self, now: Nanos) {
        if !(self.stream.is_blocked() && self.is_idle() && self.established.is_some()) {
            (self.probe_at, self.probes) = (NEVER, 0);
        } else if self.probe_at == NEVER {
            let rto = self.subflows[0].sender.rto() << self.probes.min(10);
            self.probe_at = now + rto.min(crate::tcp::rto::RTO_MAX);
        }
    }

    /// When the timers of a subflow next want attention; the persist timer runs with the first.
    pub fn deadline(&self, path: usize) -> Nanos {
        let Subflow { sender, receiver, .. } = &self.subflows[path];
        let own = sender.deadline().min(receiver.delack.deadline());
        if path == 0 { own.min(self.probe_at) } else { own }
    }

    /// Lets expire what is due on a subflow.
    pub fn on_timer(&mut self, path: usize, wire: &mut Wire) {
        if self.subflows[path].receiver.delack.deadline() <= wire.now {
            self.subflows[path].receiver.delack.expired();
            self.acknowledge(path, wire);
        }
        if path == 0 && self.probe_at <= wire.now {
            self.subflows[0].sender.probe_window(wire);
            self.probes += 1;
            self.probe_at = NEVER;
            self.set_probe_timer(wire.now);
        }
        if self.subflows[path].sender.deadline() > wire.now {
            return;
        }
        if self.subflows[path].sender.probe_due(wire.now) {
            self.probe(path, wire);
        }
        if self.subflows[path].sender.on_timer(wire, &mut self.law) {
            self.reinject(path);
        }
        self.push(wire);
    }

    /// Sends a subflow's tail loss probe: new data if there is some (RFC 8985, section 7.3).
    fn probe(&mut self, path: usize, wire: &mut Wire) {
        let sender = &mut self.subflows[path].sender;
        let len = self.stream.next_len(sender.mss(), true);
        let new = (len > 0).then(|| (self.stream.take(len), len));
        sender.send_probe(new, wire, &mut self.law);
    }

    /// The timer of a subflow expired: its data may be lost for long, so others send it too.
    fn reinject(&mut self, path: usize) {
        let others = |(i, s): (usize, &Subflow)| i != path && s.sender.is_established();
        if !self.subflows.iter().enumerate().any(others) {
            return;
        }
        let stream = &mut self.stream;
        self.subflows[path].sender.reinject(|dsn, len| stream.reinject(path, Chunk { dsn, len }));
    }

    /// The application's time has come. Returns when it comes again.
    pub fn on_source(&mut self, wire: &mut Wire) -> Nanos {
        let (write, next) = self.generator.wake(wire.now);
        match (write, self.source) {
            (Write::Start, source) => {
                match source {
                    Source::Greedy => self.stream.write_up_to(u64::MAX),
                    Source::File { bytes } => self.stream.write_up_to(bytes),
                    Source::Rate { .. } | Source::OnOff { .. } => {}
                }
                if !self.opened {
                    self.opened = true;
                    self.subflows[0].sender.open(wire);
                }
            }
            (Write::Stop, Source::Greedy | Source::File { .. }) => self.stream.stop(),
            (Write::Bytes(bytes), _) => self.stream.write(bytes.into()),
            (Write::Stop | Write::Nothing, _) => {}
        }
        self.push(wire);
        next
    }

    /// First time of the application.
    pub fn first_start(&self) -> Nanos {
        self.generator.first_start()
    }

    /// The receiving application stops or takes up reading.
    pub fn set_reading(&mut self, reading: bool, wire: &mut Wire) {
        self.data.set_reading(reading);
        self.note_completion(wire.now);
        if self.data.window_opened() {
            for path in 0..self.subflows.len() {
                if self.subflows[path].sender.is_established() {
                    self.acknowledge(path, wire);
                }
            }
        }
    }

    pub fn stats(&self) -> ConnectionStats {
        let path = |Subflow { sender, .. }: &Subflow| PathStats {
            delivered_bytes: sender.counters.delivered_bytes,
            retransmits: sender.counters.retransmits,
            timeouts: sender.counters.timeouts,
            probes: sender.counters.probes,
            undos: sender.counters.undos,
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            srtt: sender.srtt(),
            inflight: sender.in_flight(),
            delivery_rate: sender.delivery_rate,
            sent_packets: sender.counters.sent_packets,
        };
        let paths: Vec<PathStats> = self.subflows.iter().map(path).collect();
        ConnectionStats {
            delivered_bytes: self.data.read(),
            established: self.established,
            completed: self.completed,
            retransmits: paths.iter().map(|p| p.retransmits).sum(),
            timeouts: paths.iter().map(|p| p.timeouts).sum(),
            reinjections: self.reinjections,
            paths,
        }
    }
}
