//! A connection: both ends, their subflows, and the law that couples them.

use std::collections::BTreeMap;
use std::mem::offset_of;

use narrows_laws::{Conn, State};
use narrows_net::{Nanos, PREFETCHED, RouteId, prefetch};
use narrows_traffic::{Generator, Message, Messages, Opener, Scheduler, Source, TcpConfig, Write};

use super::reassembly::Reassembly;
use super::receiver_detector::ReceiverDetector;
use super::scheduler::Lane;
use super::stream::Stream;
use super::subflow::{PathSetup, Subflow};
use crate::controller::Controller;
use crate::packet::{Ack, Body, Packet, Segment};
use crate::passive::Findings;
use crate::stats::{ConnectionStats, Detection, PathStats, SlowStartEnd};
use crate::tcp::NEVER;
use crate::wire::Wire;

/// A connection, from application to application.
///
/// In this order, so that each kind of packet finds what it needs side by side: what both do, then
/// acknowledgements, then data, then what packets do not need. See [`Connection::prefetch`].
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Connection {
    pub(super) multipath: bool,
    /// Data was acknowledged: subflows may join (RFC 8684, section 3.1).
    pub(super) fully_established: bool,
    pub(super) scheduler: Scheduler,
    /// The subflows that the scheduler may use, as bits.
    pub(super) usable: u8,
    /// Those that the law asked something about, as bits.
    pub(super) advised: u8,
    /// The subflows whose timers may have changed, as bits: all of them, unless it is known that
    /// they are fewer. To look at the timers of all after each packet would take a cache miss for
    /// each.
    pub(super) touched: u8,
    /// Those of which the timer of the delayed acknowledgement alone may have changed, as bits: the
    /// sender's are in other cache lines.
    received: u8,
    /// Path and generation of the subflow that opened it, or tries to.
    pub(super) first: (u8, u8),
    /// The subflows with something to acknowledge once all has been read, as bits.
    pub(super) pushed: u8,
    /// There is a delay-based detector.
    detects: bool,
    /// Generation of each slot, a byte each.
    pub(super) generations: u64,
    /// By slot, which is also the law's.
    pub(super) subflows: Vec<Subflow>,
    /// What the scheduler sees of them; empty for plain TCP.
    pub(super) lanes: Vec<Lane>,
    pub(super) stream: Stream,
    /// The subflow that sent last.
    pub(super) last: usize,
    /// Retransmission timer of the connection.
    pub(super) rtx_at: Nanos,
    /// Persist timer: when to ask for the window.
    pub(super) probe_at: Nanos,
    pub(super) established: Option<Nanos>,
    pub(super) probes: u32,
    pub(super) opened: bool,
    pub(super) fallback: bool,
    pub(super) failed_joins: u32,
    pub(super) reinjections: u64,
    /// Segments to send again after a timeout: first byte in data sequence, and length.
    pub(super) again: BTreeMap<u64, u32>,
    pub(super) tcp: TcpConfig,
    /// Windows in the send buffer of a subflow.
    pub(super) windows: u64,
    /// Bytes that the send buffer grows to, at most.
    pub(super) buffer_max: u64,
    pub(super) data: Reassembly,
    pub(super) completed: Option<Nanos>,
    acknowledged: Option<Nanos>,
    first_loss: Option<Nanos>,
    slow_start_end: Option<SlowStartEnd>,
    pub(super) source: Source,
    pub(super) controller: Controller,
    /// The detector, if it is delay-based, and passive ones at the receiver.
    pub(super) receiver_detector: Option<ReceiverDetector>,
    generator: Generator,
    messages: Messages,
}

/// Windows in the send buffer of a subflow (Linux: tcp_sndbuf_expand()), and in that of a model law
/// (bbr_sndbuf_expand()): while a loss is repaired the one goes on and the next is written.
const WINDOWS: u64 = 2;
const MODEL_WINDOWS: u64 = 3;

/// All subflows, as bits.
pub(super) const ALL: u8 = u8::MAX;

/// The paths in a set of bits.
pub(super) fn paths(mut set: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let path = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (path < u8::BITS).then_some(path as usize)
    })
}

impl Connection {
    pub fn new(
        config: &crate::ConnectionConfig,
        paths: &[PathSetup],
        generator: Generator,
    ) -> Self {
        let mut tcp = config.tcp;
        let control = config.control;
        let (params, passive) = (&config.params, &config.passive);
        let signals = passive.iter().map(|detector| detector.signal);
        for signal in signals.chain(control.detector.decides().then_some(tcp.signal)) {
            tcp.timestamps = signal.timestamps().unwrap_or(tcp.timestamps);
        }
        let receiver_detector = ReceiverDetector::new(control, passive, params, tcp);
        let law = match &receiver_detector {
            Some(receiver_detector) => receiver_detector.at_sender(control, params),
            None => Conn::with_params(control, params),
        };
        let is_model = control.law.is_model();
        let grows = config.send_buffer_max.filter(|_| is_model);
        let subflow = |(slot, setup): (usize, &PathSetup)| Subflow::new(slot, setup, &tcp);
        Connection {
            multipath: config.multipath,
            fallback: false,
            scheduler: config.scheduler,
            tcp,
            source: config.source,
            generator,
            messages: Messages::default(),
            controller: Controller::new(law, passive, params),
            detects: receiver_detector.is_some(),
            receiver_detector,
            subflows: paths.iter().enumerate().map(subflow).collect(),
            lanes: vec![Lane::default(); if config.multipath { paths.len() } else { 0 }],
            usable: 0,
            advised: 0,
            generations: 0,
            first: (0, 0),
            pushed: 0,
            stream: Stream::new(config.send_buffer),
            windows: if is_model { MODEL_WINDOWS } else { WINDOWS },
            buffer_max: grows.unwrap_or(config.send_buffer),
            data: Reassembly::new(config.recv_buffer),
            last: 0,
            opened: false,
            established: None,
            fully_established: false,
            completed: None,
            acknowledged: None,
            first_loss: None,
            slow_start_end: None,
            reinjections: 0,
            again: BTreeMap::new(),
            failed_joins: 0,
            probe_at: NEVER,
            probes: 0,
            rtx_at: NEVER,
            touched: ALL,
            received: 0,
        }
    }

    /// The receiver opens it and its subflows.
    pub(super) fn is_download(&self) -> bool {
        self.tcp.opener == Opener::Receiver
    }

    /// The headers of its packets are those of MPTCP.
    pub fn is_multipath(&self) -> bool {
        self.multipath
    }

    /// Generation of each path, a byte each.
    pub fn generations(&self) -> u64 {
        self.generations
    }

    /// Path and generation of the subflow that opened it, or tries to.
    pub fn first(&self) -> (u8, u8) {
        self.first
    }

    pub fn tcp(&self) -> TcpConfig {
        self.tcp
    }

    /// The routes of each path, there and back.
    pub fn routes(&self) -> impl Iterator<Item = (RouteId, RouteId)> {
        self.subflows.iter().map(|subflow| (subflow.sender.route(), subflow.reverse))
    }

    pub fn paths(&self) -> usize {
        self.subflows.len()
    }

    /// A packet of one of the two ends arrived at the other, marked if `ce`.
    pub fn on_packet(&mut self, packet: &Packet, ce: bool, wire: &mut Wire) {
        let path = usize::from(packet.path);
        if self.generations.to_le_bytes()[path] != packet.generation {
            // Of a subflow that is gone: the answer would be a reset.
            return;
        }
        match packet.body {
            Body::Data(_) => (self.touched, self.received) = (0, 1 << path),
            Body::Ack(_) => self.touched = 1 << path,
            _ => {}
        }
        match &packet.body {
            Body::Data(segment) => self.on_segment(path, segment, ce, wire),
            Body::Ack(ack) => self.on_ack(path, ack, wire),
            Body::Syn { sent, .. } if self.is_download() => {
                self.pass_middlebox(path, wire);
                let edge = self.data.advertise();
                self.subflows[path].sender.answer_syn(*sent, edge, wire);
            }
            Body::SynAck { echo, .. } if self.is_download() => {
                if self.refuse_join(path) {
                    return;
                }
                let Subflow { receiver, reverse, .. } = &mut self.subflows[path];
                receiver.delack.on_syn(*echo);
                receiver.delack.on_third(wire.now);
                wire.send(*reverse, path, Body::Third);
            }
            Body::Third if self.is_download() => {
                self.stream.acknowledge(0, self.data.advertise());
                if self.subflows[path].sender.on_third(wire.now, &mut self.controller) {
                    self.on_established(path, wire);
                }
            }
            Body::Syn { sent, joins } => {
                if !joins {
                    (self.first, wire.first) =
                        ((packet.path, packet.generation), (packet.path, packet.generation));
                }
                self.subflows[path].receiver.delack.on_syn(wire.now);
                self.pass_middlebox(path, wire);
                let body = Body::SynAck { echo: *sent, edge: self.data.advertise() };
                wire.send(self.subflows[path].reverse, path, body);
            }
            Body::SynAck { echo, edge } => {
                if self.refuse_join(path) {
                    return;
                }
                self.stream.acknowledge(0, *edge);
                if self.subflows[path].sender.on_syn_ack(*echo, wire, &mut self.controller) {
                    self.on_established(path, wire);
                }
            }
            Body::Third => {
                self.subflows[path].receiver.delack.on_third(wire.now);
                // RFC 8684, section 3.2: only a join's is answered.
                if self.first != (packet.path, packet.generation) {
                    let (data_ack, edge) = (self.data.next(), self.data.advertise());
                    let body = Body::Fourth { data_ack, edge };
                    wire.send(self.subflows[path].reverse, path, body);
                }
            }
            Body::Fourth { data_ack, edge } => {
                self.stream.acknowledge(*data_ack, *edge);
                if self.subflows[path].sender.on_fourth(wire.now, &mut self.controller) {
                    self.on_established(path, wire);
                }
            }
            Body::Udp { .. } => unreachable!("a UDP packet in a connection"),
        }
    }

    /// Data arrived at the receiver.
    fn on_segment(&mut self, path: usize, segment: &Segment, ce: bool, wire: &mut Wire) {
        if let Some(receiver_detector) = self.receiver_detector.as_mut().filter(|_| self.detects) {
            receiver_detector.on_segment(path, segment, wire.now);
        }
        if self.subflows[path].receiver.must_acknowledge_before(ce) {
            self.acknowledge(path, wire);
        }
        let Subflow { receiver, .. } = &mut self.subflows[path];
        let due = receiver.on_segment(segment, ce, wire.now, self.multipath, &mut self.data);
        self.pushed |= u8::from(receiver.delack.is_pushed()) << path;
        if due || self.data.window_opened() {
            self.acknowledge(path, wire);
        }
        self.acknowledge_read(wire);
        self.note_read(wire.now);
        if !self.fully_established && self.multipath && self.is_download() {
            self.fully_established = true;
            self.open_subflows(wire);
        }
    }

    /// An acknowledgement arrived at the sender.
    fn on_ack(&mut self, path: usize, ack: &Ack, wire: &mut Wire) {
        if let Some(receiver_detector) = self.receiver_detector.as_mut().filter(|_| self.detects) {
            receiver_detector.on_ack(ack.decision, &mut self.controller);
        }
        let progress = self.stream.acknowledge(ack.data_ack, ack.edge);
        let more = !self.stream.is_drained();
        self.subflows[path].sender.on_ack(ack, more, wire, &mut self.controller);
        if self.multipath {
            self.on_mptcp_ack(path, progress, wire);
        }
        self.push(path, wire);
        self.subflows[path].sender.note_sent(wire, &mut self.controller);
        self.note_progress(path, wire.now);
        self.note_detection();
    }

    /// A packet will arrive after `n` others, one of [`PREFETCHED`]: begins to load what it needs.
    /// Each step follows the pointers that the one before has loaded. Returns where the answer will
    /// probably go, once that is known.
    pub fn prefetch(&self, n: usize, packet: &Packet) -> Option<RouteId> {
        let is_ack = match packet.body {
            Body::Ack(_) => true,
            Body::Data(_) => false,
            _ => return None,
        };
        let [early, middle, late, _] = PREFETCHED;
        if n == early {
            prefetch(self, offset_of!(Connection, stream));
            if is_ack {
                let bytes = offset_of!(Connection, tcp) - offset_of!(Connection, stream);
                prefetch(&self.stream, bytes);
                self.controller.prefetch(self.subflows.len(), prefetch);
            } else {
                let bytes = offset_of!(Connection, controller) - offset_of!(Connection, data);
                prefetch(&self.data, bytes);
            }
            return None;
        }
        let subflow = self.subflows.get(usize::from(packet.path))?;
        match (n == middle, is_ack) {
            (true, true) => {
                if let Some(lane) = self.lanes.first() {
                    prefetch(lane, size_of_val(&self.lanes[..]));
                }
                subflow.prefetch_ack();
                return None;
            }
            (true, false) => {
                self.data.prefetch();
                subflow.prefetch_data();
                return None;
            }
            (false, true) if n == late => subflow.sender.prefetch(),
            (false, false) if n == late => subflow.receiver.prefetch(),
            _ => {}
        }
        Some(if is_ack { subflow.sender.route() } else { subflow.reverse })
    }

    /// The application reads what is in order. If nothing waits any more, what was pushed is
    /// acknowledged, on all subflows (Linux: tcp_cleanup_rbuf(), mptcp_cleanup_rbuf()).
    fn acknowledge_read(&mut self, wire: &mut Wire) {
        if self.pushed == 0 || !self.data.is_empty() {
            return;
        }
        self.received |= self.pushed;
        for path in 0..self.subflows.len() {
            if self.pushed & (1 << path) != 0 && self.subflows[path].receiver.on_read(wire.now) {
                self.acknowledge(path, wire);
            }
        }
        self.pushed = 0;
    }

    fn acknowledge(&mut self, path: usize, wire: &mut Wire) {
        self.pushed &= !(1 << path);
        let subflow = &mut self.subflows[path];
        let mut ack = subflow.receiver.acknowledge(&mut self.data);
        ack.elapsed_us = self.tcp.elapsed_us(wire.now, ack.echo);
        if let Some(receiver_detector) = self.receiver_detector.as_ref().filter(|_| self.detects) {
            ack.decision = receiver_detector.decision();
        }
        if self.multipath {
            ack.leave_room_for_dss();
        }
        wire.send(subflow.reverse, path, Body::Ack(ack));
    }

    /// The receiving application may have more: notes files and messages that are there.
    fn note_read(&mut self, now: Nanos) {
        match self.source {
            Source::File { bytes } if self.completed.is_none() && self.data.read() >= bytes => {
                self.completed = Some(now);
            }
            Source::Messages { .. } => self.messages.deliver(self.data.read(), now),
            _ => {}
        }
    }

    /// The messages that the application has written.
    pub fn messages(&self) -> &[Message] {
        self.messages.log()
    }

    /// Something happened to the sender of `path`: notes what happens once.
    fn note_progress(&mut self, path: usize, now: Nanos) {
        if let Source::File { bytes } = self.source {
            if self.acknowledged.is_none() && self.stream.una() >= bytes {
                self.acknowledged = Some(now);
            }
        }
        let sender = &self.subflows[path].sender;
        if self.first_loss.is_none() && sender.counters.retransmits > 0 {
            self.first_loss = Some(now);
        }
        // Few of the events pass the first two conditions.
        if self.slow_start_end.is_none()
            && sender.slow_start_over()
            && self.subflows.iter().all(|subflow| subflow.sender.slow_start_over())
        {
            let senders = || self.subflows.iter().map(|subflow| &subflow.sender);
            self.slow_start_end = Some(SlowStartEnd {
                retransmits: senders().map(|sender| sender.counters.retransmits).sum(),
                cwnd: senders().map(|sender| sender.cwnd()).sum(),
            });
        }
    }

    /// When the timers of a subflow next want attention; those of the connection run with the
    /// first.
    pub fn deadline(&self, path: usize, now: Nanos) -> Nanos {
        let Subflow { sender, receiver, .. } = &self.subflows[path];
        let own = sender.deadline(now).min(receiver.delack.deadline());
        if path == 0 { own.min(self.own_deadline()) } else { own }
    }

    /// The same of the acknowledgement's timer alone.
    pub fn ack_deadline(&self, path: usize) -> Nanos {
        self.subflows[path].receiver.delack.deadline()
    }

    /// When the timers of the connection itself next want attention.
    pub fn own_deadline(&self) -> Nanos {
        self.probe_at.min(self.rtx_at)
    }

    /// The subflows whose timers may have changed since the last call.
    pub fn take_touched(&mut self) -> impl Iterator<Item = usize> + use<> {
        let touched = std::mem::replace(&mut self.touched, ALL);
        paths(touched & self.all())
    }

    /// Those of which the acknowledgement's timer alone may have changed.
    pub fn take_received(&mut self) -> impl Iterator<Item = usize> + use<> {
        paths(std::mem::take(&mut self.received))
    }

    /// The subflows that there are, as bits.
    pub(super) fn all(&self) -> u8 {
        ALL.checked_shr(8 - self.subflows.len() as u32).unwrap_or(0)
    }

    /// Lets expire what is due on a subflow.
    pub fn on_timer(&mut self, path: usize, wire: &mut Wire) {
        if self.subflows[path].receiver.delack.deadline() <= wire.now {
            self.subflows[path].receiver.delack.expired();
            self.acknowledge(path, wire);
        }
        if path == 0 {
            self.on_connection_timer(wire);
        }
        if self.subflows[path].sender.deadline(wire.now) > wire.now {
            return;
        }
        if self.subflows[path].sender.probe_due(wire.now) {
            self.probe_tail(path, wire);
        }
        let timeouts = self.subflows[path].sender.counters.timeouts;
        self.subflows[path].sender.on_timer(wire, &mut self.controller);
        if self.scheduler == Scheduler::Mptcp089Reinject
            && self.subflows[path].sender.counters.timeouts > timeouts
        {
            self.reinject(path);
        }
        self.push(path, wire);
        self.note_progress(path, wire.now);
        self.note_detection();
    }

    /// The law had events: its detector may have something to say.
    fn note_detection(&mut self) {
        if let Some(receiver_detector) = self.receiver_detector.as_mut().filter(|_| self.detects) {
            receiver_detector.on_events(&self.controller);
        }
    }

    /// The newest decision of a dynamic detector; none without one.
    pub fn detection(&self) -> Option<&Detection> {
        self.receiver_detector.as_ref().and_then(ReceiverDetector::log)
    }

    /// What the passive detectors found.
    pub fn findings(&self) -> impl Iterator<Item = &Findings> {
        let receiver = self.receiver_detector.iter().flat_map(ReceiverDetector::findings);
        self.controller.findings().chain(receiver)
    }

    /// The application's time has come. Returns when it comes again.
    pub fn on_source(&mut self, wire: &mut Wire) -> Nanos {
        let (write, next) = self.generator.wake(wire.now);
        match write {
            Write::Start { total } => {
                total.into_iter().for_each(|total| self.stream.write_up_to(total));
                self.opened = true;
                self.open_subflows(wire);
            }
            Write::Stop { withdraws: true } => self.stream.stop(),
            Write::Message(bytes) => {
                let end = self.stream.write(bytes.into());
                if let Source::Messages { .. } = self.source {
                    self.messages.write(wire.now, end);
                }
            }
            Write::Stop { withdraws: false } | Write::Nothing => {}
        }
        self.push(self.last, wire);
        next
    }

    /// First time of the application.
    pub fn first_start(&self) -> Nanos {
        self.generator.first_start()
    }

    /// The receiving application stops or takes up reading.
    pub fn set_reading(&mut self, reading: bool, wire: &mut Wire) {
        self.data.set_reading(reading);
        self.note_read(wire.now);
        if self.data.window_opened() {
            for path in 0..self.subflows.len() {
                if self.subflows[path].sender.is_established() {
                    self.acknowledge(path, wire);
                }
            }
        }
        self.acknowledge_read(wire);
    }

    pub fn stats(&self, now: Nanos) -> ConnectionStats {
        let path = |path: usize| {
            let sender = &self.subflows[path].sender;
            PathStats {
                state: self.state(path),
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
                bandwidth: self.controller.path(path).bw,
                busy: self.subflows[path].busy(now),
                sent_packets: sender.counters.sent_packets,
            }
        };
        let paths: Vec<PathStats> = (0..self.subflows.len()).map(path).collect();
        ConnectionStats {
            delivered_bytes: self.data.read(),
            established: self.established,
            completed: self.completed,
            acknowledged: self.acknowledged,
            first_loss: self.first_loss,
            slow_start_end: self.slow_start_end,
            retransmits: paths.iter().map(|p| p.retransmits).sum(),
            timeouts: paths.iter().map(|p| p.timeouts).sum(),
            reinjections: self.reinjections,
            fallback: self.fallback,
            failed_joins: self.failed_joins,
            head_of_line: self.data.head_of_line(),
            paths,
        }
    }

    /// How the connection sees a path.
    fn state(&self, path: usize) -> State {
        let subflow = &self.subflows[path];
        if !subflow.sender.is_established() {
            State::Free
        } else if self.multipath && self.usable & (1 << path) == 0 {
            if subflow.stale { State::Failed } else { State::Backup }
        } else if subflow.is_empty() {
            State::Idle
        } else {
            State::Active
        }
    }
}
