//! The sending end of a subflow: what it sends and what acknowledgements do to it, as Linux's
//! tcp_output.c and tcp_ack(). The congestion control law answers each event.

use narrows_laws::{Event, EventKind, Output, Private, State, flag};
use narrows_net::{Nanos, RouteId};
use narrows_traffic::{LossDetection, Signal, TcpConfig};

use super::NEVER;
use super::ecn::EcnSender;
use super::handshake::Handshake;
use super::limited::{self, WindowUse};
use super::pacing::Pacer;
use super::prr::Prr;
use super::psh::{Behind, Burst};
use super::rack::Rack;
use super::recovery::Phase;
use super::rto::RttEstimator;
use super::scoreboard::{Arrival, Delivered, Scoreboard, Transmit};
use super::tlp::Probe;
use super::undo::Undo;
use crate::controller::{Controller, event};
use crate::packet::{Ack, Body, MPTCP_HEADER, Segment, TCP_HEADER};
use crate::wire::Wire;

/// Counters of a sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub delivered_bytes: u64,
    pub sent_packets: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Reductions that were undone.
    pub undos: u64,
}

/// The sender of one subflow.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(super) path: usize,
    pub(super) forward: RouteId,
    pub(super) mss: u32,
    pub(super) joins: bool,
    pub(super) handshake: Handshake,
    /// Where the SYN goes.
    pub(super) syn_route: RouteId,
    pub(super) phase: Phase,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// Recovery ends when this byte is acknowledged.
    pub(super) high_seq: u64,
    pub(super) board: Scoreboard,
    pub(super) loss_detection: LossDetection,
    pub(super) rack: Rack,
    pub(super) tlp: Probe,
    pub(super) undo: Undo,
    /// F-RTO runs since this time (RFC 5682).
    pub(super) frto: Option<Nanos>,
    /// New data goes before what is lost: that may have been late.
    pub(super) new_first: bool,
    pub(super) prr: Prr,
    pub(super) rtt: RttEstimator,
    pub(super) window_use: WindowUse,
    pub(super) private: Private,
    pub(super) rto_at: Nanos,
    /// RACK's reordering timer.
    pub(super) reo_at: Nanos,
    pub(super) ecn: EcnSender,
    /// Expiries of the retransmission timer since the cumulative ACK last advanced.
    pub(super) timeouts_in_row: u32,
    /// How the connection sees the path: in use ([`State::Active`]), kept for failure, or failed.
    pub(super) standing: State,
    /// Bursts and pacing, where there are any.
    pub(super) pacer: Option<Box<Pacer>>,
    /// When the next burst may leave, [`NEVER`] if it may now.
    pub(super) pace_at: Nanos,
    /// Waits until there is room for a burst.
    pub(super) deferred: bool,
    /// What leaves as one.
    pub(super) burst: Burst,
    /// Tick of the timestamps.
    tick: Nanos,
    /// What a detector samples.
    signal: Signal,
    /// Packets marked lost, not yet reported to the law.
    pub(super) unreported_lost: u32,
    /// Packets reported as marked, likewise.
    pub(super) unreported_marked: u32,
    /// Sent something since the use of the window was last looked at.
    pub(super) sent_since: bool,
    /// When data last left; before, the first SYN.
    pub(super) last_sent: Nanos,
    /// The network lost the first SYNs.
    pub(super) syn_lost: bool,
    /// Newest sample of the delivery rate, bytes/s; one that the application limited only if it
    /// is higher.
    pub delivery_rate: u64,
    pub counters: Counters,
}

impl Sender {
    pub fn new(path: usize, forward: RouteId, mss: u32, tcp: &TcpConfig) -> Self {
        let bursts = tcp.pacing || tcp.tso > 1;
        Sender {
            path,
            forward,
            mss,
            joins: false,
            handshake: Handshake::Closed,
            syn_route: forward,
            phase: Phase::Open,
            cwnd: 0,
            ssthresh: 0,
            high_seq: 0,
            board: Scoreboard::default(),
            loss_detection: tcp.loss_detection,
            rack: Rack::default(),
            tlp: Probe::default(),
            undo: Undo::default(),
            frto: None,
            new_first: false,
            prr: Prr::default(),
            rtt: RttEstimator::default(),
            window_use: WindowUse::default(),
            private: Private::default(),
            rto_at: NEVER,
            reo_at: NEVER,
            ecn: EcnSender::new(tcp),
            timeouts_in_row: 0,
            standing: State::Active,
            pacer: bursts.then(|| Box::new(Pacer::new(tcp.pacing, tcp.tso))),
            pace_at: NEVER,
            deferred: false,
            burst: Burst::default(),
            tick: tcp.timestamps.tick(),
            signal: tcp.signal,
            unreported_lost: 0,
            unreported_marked: 0,
            sent_since: false,
            last_sent: 0,
            syn_lost: false,
            delivery_rate: 0,
            counters: Counters::default(),
        }
    }

    /// An acknowledgement will come: begins to load the segments it is likely to be about.
    pub fn prefetch(&self) {
        self.board.prefetch();
    }

    pub fn route(&self) -> RouteId {
        self.forward
    }

    pub fn mss(&self) -> u32 {
        self.mss
    }

    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    pub fn srtt(&self) -> Nanos {
        self.rtt.srtt()
    }

    pub fn rto(&self) -> Nanos {
        self.rtt.rto()
    }

    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    pub fn packets_out(&self) -> u32 {
        self.board.packets_out()
    }

    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Established
    }

    /// May a new segment go out? What was lost goes first.
    pub fn has_room(&self) -> bool {
        self.is_established()
            && self.pace_at == NEVER
            && !self.deferred
            && self.board.in_flight() < self.cwnd
            && (!self.board.must_retransmit() || self.new_first)
    }

    /// Recovery after a timeout.
    pub fn repairs_timeout(&self) -> bool {
        self.phase == Phase::Loss
    }

    /// Has sent the byte `dsn` of the data sequence, which is not cumulatively acknowledged.
    pub fn holds(&self, dsn: u64) -> bool {
        self.board.holds(dsn)
    }

    /// The segments from byte `from` on that are not cumulatively acknowledged: the first byte of each
    /// in data sequence, and its length.
    pub fn sent_since(&self, from: u64) -> impl Iterator<Item = (u64, u32)> {
        self.board.sent_since(from)
    }

    /// Next byte to send.
    pub fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// Bytes sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.board.nxt() - self.board.una()
    }

    /// When the retransmission timer expires, or the tail loss probe for which Linux uses the same
    /// timer.
    pub fn rtx_at(&self) -> Nanos {
        self.rto_at.min(self.tlp.at)
    }

    /// The next time a timer may expire. While the window is full nothing waits for its pace; one that comes meanwhile
    /// is due once a sibling's event makes room, `now`. (An acknowledgement of its own looks at the time itself.)
    pub fn deadline(&self, now: Nanos) -> Nanos {
        let room = self.board.in_flight() < self.cwnd;
        let pace_at = if room { self.pace_at.max(now) } else { NEVER };
        self.rto_at.min(self.reo_at).min(self.tlp.at).min(pace_at)
    }

    /// Sends a new segment; what is `behind` it may follow.
    pub fn send_new(
        &mut self,
        dsn: u64,
        len: u32,
        behind: Behind,
        wire: &mut Wire,
        controller: &mut Controller,
    ) {
        let idle = self.board.packets_out() == 0;
        if idle {
            self.restart(wire.now, controller);
        }
        let psh = self.pushes(behind, wire.now);
        let segment = self.board.send_new(dsn, len, wire.now);
        self.transmit(segment, true, psh, wire);
        if idle {
            self.rto_at = wire.now + self.rtt.rto();
        }
    }

    /// Data again after idleness: the old window says little about the path of today.
    fn restart(&mut self, now: Nanos, controller: &mut Controller) {
        if controller.control().law.is_model() {
            let limited = self.board.rate.is_app_limited();
            let flags = if limited { flag::APP_LIMITED } else { 0 };
            self.report(controller, now, Event { flags, ..event(EventKind::Restart) });
            return;
        }
        let cwnd = limited::after_idle(self.cwnd, now - self.last_sent, self.rtt.rto());
        if cwnd < self.cwnd {
            self.cwnd = cwnd;
            self.report(controller, now, event(EventKind::Restart));
        }
    }

    /// Sends again what is lost, as far as the window allows.
    pub(super) fn retransmit_lost(&mut self, wire: &mut Wire) {
        while self.pace_at == NEVER && self.board.in_flight() < self.cwnd {
            let Some(segment) = self.board.retransmit_next(wire.now) else { break };
            if segment.seq == self.board.una() {
                self.rto_at = wire.now + self.rtt.rto();
            }
            self.counters.retransmits += 1;
            self.undo.retransmitted(self.timestamp(wire.now));
            self.transmit(segment, false, false, wire);
        }
    }

    pub(super) fn transmit(&mut self, segment: Transmit, new: bool, psh: bool, wire: &mut Wire) {
        let Transmit { seq, dsn, len } = segment;
        let sent = self.timestamp(wire.now);
        let mut segment = Segment { seq, dsn, len, sent, psh, ..Segment::default() };
        self.ecn.label(&mut segment, new);
        wire.send(self.forward, self.path, Body::Data(segment));
        self.pace(len, wire.now);
        self.counters.sent_packets += 1;
        self.sent_since = true;
        self.last_sent = wire.now;
        if self.is_reducing() {
            self.prr.sent();
        }
    }

    /// Asks for the window: an old byte, which the receiver must acknowledge (RFC 9293, section
    /// 3.8.6.1).
    pub fn probe_window(&self, wire: &mut Wire) {
        let (seq, sent) = (self.board.una(), self.timestamp(wire.now));
        let body = Body::Data(Segment { seq, sent, ..Segment::default() });
        wire.send(self.forward, self.path, body);
    }

    /// The application writes only now that `unsent` bytes wait, or still does not: was it the limit?
    /// Linux: tcp_rate_check_app_limited().
    pub fn check_app_limited(&mut self, unsent: u64) {
        let full = self.board.in_flight() >= self.cwnd;
        if !full && unsent < self.mss.into() && !self.board.must_retransmit() {
            self.board.rate.app_limited(self.board.in_flight());
        }
    }

    /// To be called when all that may leave has left: was the window the limit?
    pub fn note_window_use(&mut self, now: Nanos) {
        let full = self.board.in_flight() >= self.cwnd;
        if self.sent_since || self.tlp.stale {
            self.schedule_probe(now);
        }
        if full || self.sent_since {
            let (una, nxt) = (self.board.una(), self.board.nxt());
            self.window_use.validate(full, self.board.packets_out(), una, nxt);
            self.sent_since = false;
        }
    }

    /// Takes an acknowledgement, in the order of Linux's tcp_ack(): what arrived, the RTT, what is
    /// lost, the window. `more`: the connection has more to send than this subflow has.
    pub fn on_ack(&mut self, ack: &Ack, more: bool, wire: &mut Wire, controller: &mut Controller) {
        let now = wire.now;
        self.end_burst(now);
        let arrival = Arrival::new(now, self.rtt.min_rtt(), ack.echo + self.tick);
        let delivered = self.board.acknowledge(ack.ack, ack.blocks(), arrival, &mut self.rack);
        self.counters.delivered_bytes += delivered.bytes;
        if delivered.una_advanced {
            self.timeouts_in_row = 0;
        }
        let sample = self.sample_rtt(&delivered, ack.echo, now);
        if let Some(duplicate) = &delivered.duplicate {
            self.on_duplicate(duplicate);
        }
        if self.tlp.is_out() {
            self.on_probe_ack(ack.ack, &delivered, now, controller);
        }
        self.leave_cwr(now, controller);
        let (model, before) = (controller.control().law.is_model(), self.phase);
        let recovery = self.recover(&delivered, ack.echo, more, now, controller);
        if model && before == Phase::Loss && !matches!(self.phase, Phase::Loss | Phase::Recovery) {
            self.tell(controller, now, event(EventKind::Recovered));
        }
        if ack.ece {
            self.on_echo(&delivered, now, controller);
        }
        self.rearm_timers(&delivered, now);
        let in_recovery = self.is_reducing();
        if delivered.packets > 0 {
            let mut flags = 0;
            if in_recovery {
                flags |= flag::IN_RECOVERY;
            } else if self.may_grow(&delivered) {
                flags |= flag::CWND_LIMITED;
            }
            if delivered.retrans_acked {
                flags |= flag::RETRANS;
            }
            if self.pacer.as_ref().is_some_and(|pacer| pacer.is_pacing()) {
                flags |= flag::PACED;
            }
            let state = match self.board.packets_out() {
                0 if !more => State::Idle,
                _ => State::Active,
            };
            let (sent, rtt) = sample.unwrap_or_default();
            let mut event = Event {
                state: state as u32,
                flags,
                sent_us: sent / 1000,
                rtt_us: (rtt / 1000) as u32,
                delivered: delivered.packets,
                ..event(EventKind::Acked)
            };
            if let Some(delay) = self.one_way_delay(ack, sample) {
                event.flags |= flag::OWD;
                event.owd_us = delay;
            }
            self.sample_rate(&delivered, now, &mut event);
            if in_recovery && !model {
                self.tell(controller, now, event);
                let safe = delivered.una_advanced && recovery.lost == 0;
                let in_flight = self.board.in_flight();
                self.cwnd = self.prr.window(delivered.packets, self.ssthresh, in_flight, safe);
            } else {
                self.report(controller, now, event);
            }
        }
        if !recovery.hold {
            self.retransmit_lost(wire);
        }
        self.deferred = self.should_defer(now);
        if self.phase != Phase::Open {
            self.check();
        }
    }

    /// To be called when what an acknowledgement lets leave has left. If the scheduler gave this
    /// subflow nothing, its window is a stale one that must not count among its siblings'.
    pub fn note_sent(&mut self, wire: &mut Wire, controller: &mut Controller) {
        if self.new_first {
            self.end_new_first(wire);
        }
        let active = controller.path(self.path).state == State::Active as u32;
        if active && self.board.packets_out() == 0 {
            self.report_idle(wire.now, controller);
        }
    }

    /// The connection sees the path in another way: its siblings are notified, as far as they count
    /// it.
    pub fn stand(&mut self, standing: State, now: Nanos, controller: &mut Controller) {
        if self.standing == standing {
            return;
        }
        self.standing = standing;
        self.report_idle(now, controller);
    }

    /// Nothing is acknowledged, and the path does not count.
    fn report_idle(&mut self, now: Nanos, controller: &mut Controller) {
        let idle = Event { state: State::Idle as u32, ..event(EventKind::Acked) };
        if self.is_reducing() {
            self.tell(controller, now, Event { flags: flag::IN_RECOVERY, ..idle });
        } else {
            self.report(controller, now, idle);
        }
    }

    /// Halves the window, and the threshold too but in slow start, where nothing is lost or marked. True if so.
    pub fn halve(&mut self, now: Nanos, controller: &mut Controller) -> bool {
        if self.phase != Phase::Open {
            return false;
        }
        let grown = self.cwnd >= self.ssthresh;
        let ssthresh = if grown { (self.ssthresh / 2).max(2) } else { self.ssthresh };
        self.cwnd = (self.cwnd / 2).max(1);
        self.report(controller, now, Event { ssthresh, ..event(EventKind::Acked) });
        true
    }

    /// The path is removed.
    pub fn leave(&mut self, now: Nanos, controller: &mut Controller) {
        if self.is_established() {
            self.tell(controller, now, event(EventKind::Left));
        }
    }

    /// The peer does not speak MPTCP: segments have room for more.
    pub fn fall_back(&mut self) {
        self.mss += MPTCP_HEADER - TCP_HEADER;
    }

    /// Growth is for windows that were the limit; and while segments wait behind a gap, only if
    /// the cumulative ACK advances, or if reordering is known to happen (Linux:
    /// tcp_may_raise_cwnd()).
    fn may_grow(&self, delivered: &Delivered) -> bool {
        self.window_use.is_limited(self.cwnd, self.ssthresh)
            && (delivered.una_advanced || self.rack.reordering_seen())
    }

    /// RFC 6298, section 3, and RFC 7323, section 4: the sample of the first segment never sent
    /// again, or of the timestamp. Returns the newest such segment's time and round trip.
    fn sample_rtt(
        &mut self,
        delivered: &Delivered,
        echo: Nanos,
        now: Nanos,
    ) -> Option<(Nanos, Nanos)> {
        let acked = delivered.acked_sent.filter(|_| !delivered.retrans_acked);
        let by_time = delivered.una_advanced.then(|| {
            // A tick at least: Linux's tcp_rtt_tsopt_us().
            let rtt = (self.timestamp(now) - echo).max(self.tick);
            (now.saturating_sub(rtt), now.saturating_sub(rtt))
        });
        let (first, _) = acked.or(delivered.sacked_sent).or(by_time)?;
        let (_, last) = delivered.sacked_sent.or(acked).or(by_time)?;
        self.rtt.sample_min(now - last, now);
        self.rtt.sample(now - first, self.board.una(), self.board.nxt());
        self.rtt.reset_backoff();
        Some((last, now - last))
    }

    /// The relative one-way delay of the newest segment that an acknowledgement covers, us: to the acknowledgement's timestamp from when the segment left, by the sender's
    /// own note. What is echoed left earlier: the first segment that the acknowledgement waited for, or
    /// the last before a hole (RFC 7323, section 4.1).
    pub(super) fn one_way_delay(&self, ack: &Ack, newest: Option<(Nanos, Nanos)>) -> Option<i32> {
        let (sent, _) = newest?;
        Some(ack.elapsed_us - ((sent as i64 - ack.echo as i64) / 1000) as i32)
    }

    /// Puts the rate sample of what arrived into the event.
    fn sample_rate(&mut self, delivered: &Delivered, now: Nanos, event: &mut Event) {
        let Some(newest) = &delivered.newest else { return };
        let sample = self.board.rate.sample(newest, now, self.rtt.min_rtt());
        event.rate = sample.rate(self.mss);
        if event.rate > if sample.app_limited { self.delivery_rate } else { 0 } {
            self.delivery_rate = event.rate;
        }
        event.sample_delivered = sample.delivered;
        event.sample_lost = sample.lost;
        event.sample_inflight = sample.inflight;
        if sample.app_limited {
            event.flags |= flag::APP_LIMITED;
        }
        if sample.round_start {
            event.flags |= flag::ROUND_START;
        }
    }

    /// RFC 6298, sections 5.2 and 5.3.
    fn rearm_timers(&mut self, delivered: &Delivered, now: Nanos) {
        let Some(head_sent) = self.board.head_sent() else {
            (self.rto_at, self.reo_at, self.tlp.at) = (NEVER, NEVER, NEVER);
            return;
        };
        // Linux also starts it anew when a SACK covers data older than the head's last
        // retransmission: the network still delivers.
        let older = delivered.sacked_sent.is_some_and(|(first, _)| first < head_sent);
        if delivered.una_advanced || older {
            self.rto_at = now + self.rtt.rto();
        }
        self.tlp.stale |= delivered.una_advanced || older || self.phase != Phase::Open;
    }

    /// Tells the law what happened, and takes its windows.
    pub(super) fn report(&mut self, controller: &mut Controller, now: Nanos, event: Event) {
        let out = self.tell(controller, now, event);
        (self.cwnd, self.ssthresh) = (out.cwnd, out.ssthresh);
    }

    /// Tells the law why a reduction begins, and takes its threshold: how the window gets there is up to
    /// the sender.
    pub(super) fn report_reduction(
        &mut self,
        controller: &mut Controller,
        now: Nanos,
        event: Event,
    ) {
        self.ssthresh = self.tell(controller, now, event).ssthresh;
    }

    /// Tells the law what happened; the event's common fields are filled here.
    pub(super) fn tell(&mut self, controller: &mut Controller, now: Nanos, event: Event) -> Output {
        let in_use = self.standing == State::Active || event.kind == EventKind::Left as u32;
        let mut event = Event {
            state: if in_use { event.state } else { self.standing as u32 },
            now_us: now / 1000,
            lost: std::mem::take(&mut self.unreported_lost),
            marked: std::mem::take(&mut self.unreported_marked),
            inflight: self.board.in_flight(),
            cwnd: self.cwnd,
            srtt8_us: self.rtt.srtt8_us() as u32,
            mss: self.mss,
            wait_us: match self.pace_at {
                NEVER => 0,
                at => (at.saturating_sub(now) / 1000) as u32,
            },
            ..event
        };
        let out = controller.event(self.path, &mut self.private, &mut event, self.signal);
        if out.pacing_rate > 0 {
            let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(false, 1)));
            pacer.set_law_rate(out.pacing_rate);
        }
        out
    }

    /// The time as segments carry it.
    pub(super) fn timestamp(&self, now: Nanos) -> Nanos {
        now - now % self.tick
    }

    pub(super) fn check(&self) {
        #[cfg(debug_assertions)]
        self.board.check();
    }
}
