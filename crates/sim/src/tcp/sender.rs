//! The sending end of a subflow: windows, loss recovery and timers, as Linux's tcp_input.c and
//! tcp_output.c; the congestion control law answers each event.

use narrows_laws::{Conn, Event, EventKind, Output, Private, State, flag};
use narrows_net::{Histogram, Nanos, RouteId};

use super::NEVER;
use super::limited::WindowUse;
use super::prr::Prr;
use super::rack::Rack;
use super::rto::RttEstimator;
use super::scoreboard::{Delivered, Resend, Scoreboard};
use crate::packet::{Ack, Body, Segment, Wire};

/// Timeouts in a row after which a path counts as failed: Linux MPTCP's stale_loss_cnt.
const FAILED_AFTER: u32 = 4;

/// The handshake, as the sender (who opens) sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Closed,
    SynSent,
    /// The third packet of a join left; the fourth is awaited.
    ThirdSent,
    Established,
}

/// What loss recovery is doing: Linux's icsk_ca_state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Something was SACKed, nothing is lost yet.
    Disorder,
    /// Fast recovery, up to `high_seq`.
    Recovery,
    /// After a timeout, up to `high_seq`.
    Loss,
}

/// Counters of a sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub delivered_bytes: u64,
    pub sent_packets: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    /// srtt after each sample, ns.
    pub srtt: Histogram,
}

/// The sender of one subflow.
#[derive(Debug)]
pub(crate) struct Sender {
    path: usize,
    forward: RouteId,
    mss: u32,
    joins: bool,
    handshake: Handshake,
    phase: Phase,
    cwnd: u32,
    ssthresh: u32,
    /// Recovery ends when this byte is acknowledged.
    high_seq: u64,
    board: Scoreboard,
    rack: Rack,
    prr: Prr,
    rtt: RttEstimator,
    window_use: WindowUse,
    private: Private,
    rto_at: Nanos,
    /// RACK's reordering timer.
    reo_at: Nanos,
    /// Expiries of the retransmission timer since the cumulative ACK last advanced.
    timeouts_in_row: u32,
    /// Sent something since the use of the window was last looked at.
    sent_since: bool,
    pub counters: Counters,
}

impl Sender {
    pub fn new(path: usize, forward: RouteId, mss: u32, joins: bool) -> Self {
        Sender {
            path,
            forward,
            mss,
            joins,
            handshake: Handshake::Closed,
            phase: Phase::Open,
            cwnd: 0,
            ssthresh: 0,
            high_seq: 0,
            board: Scoreboard::default(),
            rack: Rack::default(),
            prr: Prr::default(),
            rtt: RttEstimator::default(),
            window_use: WindowUse::default(),
            private: Private::default(),
            rto_at: NEVER,
            reo_at: NEVER,
            timeouts_in_row: 0,
            sent_since: false,
            counters: Counters::default(),
        }
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
        self.is_established() && self.board.in_flight() < self.cwnd && !self.board.must_retransmit()
    }

    /// The path is usable as far as is known.
    pub fn has_failed(&self) -> bool {
        self.timeouts_in_row >= FAILED_AFTER
    }

    /// The next time a timer may expire.
    pub fn deadline(&self) -> Nanos {
        self.rto_at.min(self.reo_at)
    }

    // ---- Handshake -------------------------------------------------------------------------

    /// Begins the handshake.
    pub fn open(&mut self, wire: &mut Wire) {
        self.handshake = Handshake::SynSent;
        self.send_handshake(wire);
    }

    fn send_handshake(&mut self, wire: &mut Wire) {
        let body = match self.handshake {
            Handshake::SynSent => Body::Syn { sent: wire.now },
            _ => Body::Third,
        };
        wire.send(self.forward, self.path, body);
        self.rto_at = wire.now + self.rtt.rto();
    }

    /// The SYN/ACK arrived. True if the subflow is established: a join still waits for the fourth
    /// packet (RFC 8684, section 3.2).
    pub fn on_syn_ack(&mut self, echo: Nanos, wire: &mut Wire, law: &mut Conn) -> bool {
        match self.handshake {
            Handshake::SynSent => {}
            Handshake::ThirdSent => {
                self.send_handshake(wire);
                return false;
            }
            Handshake::Closed | Handshake::Established => return false,
        }
        // The timestamp tells which SYN was answered (RFC 7323, section 3.3).
        let rtt = wire.now - echo;
        self.rtt.sample(rtt, 0, 0);
        self.rtt.sample_min(rtt);
        self.rtt.reset_backoff();
        self.handshake = Handshake::ThirdSent;
        self.send_handshake(wire);
        !self.joins && self.establish(wire.now, law)
    }

    /// The fourth packet of a join arrived. True if that establishes the subflow.
    pub fn on_fourth(&mut self, now: Nanos, law: &mut Conn) -> bool {
        self.handshake == Handshake::ThirdSent && self.establish(now, law)
    }

    fn establish(&mut self, now: Nanos, law: &mut Conn) -> bool {
        self.handshake = Handshake::Established;
        self.rto_at = NEVER;
        self.rtt.reset_backoff();
        let out = self.tell(law, EventKind::Joined, State::Joining, now, Event::default());
        (self.cwnd, self.ssthresh) = (out.cwnd, out.ssthresh);
        true
    }

    // ---- Sending ---------------------------------------------------------------------------

    /// Sends a new segment.
    pub fn send_new(&mut self, dsn: u64, len: u32, wire: &mut Wire) {
        let idle = self.board.packets_out() == 0;
        let segment = self.board.send_new(dsn, len, wire.now);
        self.transmit(segment, wire);
        if idle {
            self.rto_at = wire.now + self.rtt.rto();
        }
    }

    /// Sends again what is lost, as far as the window allows.
    pub fn retransmit_lost(&mut self, wire: &mut Wire) {
        while self.board.in_flight() < self.cwnd {
            let Some(segment) = self.board.retransmit_next(wire.now) else { break };
            if segment.seq == self.board.una() {
                self.rto_at = wire.now + self.rtt.rto();
            }
            self.counters.retransmits += 1;
            self.transmit(segment, wire);
        }
    }

    fn transmit(&mut self, segment: Resend, wire: &mut Wire) {
        let Resend { seq, dsn, len } = segment;
        let body = Body::Data(Segment { seq, dsn, len, sent: wire.now });
        wire.send(self.forward, self.path, body);
        self.counters.sent_packets += 1;
        self.sent_since = true;
        if self.phase == Phase::Recovery {
            self.prr.sent();
        }
    }

    /// Asks for the window: an old byte, which the receiver must acknowledge (RFC 9293, section
    /// 3.8.6.1).
    pub fn probe_window(&self, wire: &mut Wire) {
        let body = Body::Data(Segment { seq: 0, dsn: 0, len: 0, sent: wire.now });
        wire.send(self.forward, self.path, body);
    }

    /// To be called when all that may leave has left: was the window the limit?
    pub fn note_window_use(&mut self) {
        let full = self.board.in_flight() >= self.cwnd;
        if full || self.sent_since {
            let (una, nxt) = (self.board.una(), self.board.nxt());
            self.window_use.validate(full, self.board.packets_out(), una, nxt);
            self.sent_since = false;
        }
    }

    // ---- Acknowledgements ------------------------------------------------------------------

    /// Takes an acknowledgement, in the order of Linux's tcp_ack(): what arrived, the RTT, what is
    /// lost, the window. `more`: the connection has more to send than this subflow has.
    pub fn on_ack(&mut self, ack: &Ack, more: bool, wire: &mut Wire, law: &mut Conn) {
        let now = wire.now;
        let min_rtt = self.rtt.min_rtt();
        let told = self.board.acknowledge(ack.ack, ack.blocks(), now, min_rtt, &mut self.rack);
        self.counters.delivered_bytes += told.bytes;
        if told.una_advanced {
            self.timeouts_in_row = 0;
        }
        let sample = self.sample_rtt(&told, ack.echo, now);
        self.rearm_rto(&told, now);

        let retransmissions_lost = self.recover(&told, now, law);
        let lost = retransmissions_lost.marked;

        let in_recovery = self.phase == Phase::Recovery;
        if told.packets > 0 {
            let mut flags = 0;
            if in_recovery {
                flags |= flag::IN_RECOVERY;
            } else if self.may_grow(&told) {
                flags |= flag::CWND_LIMITED;
            }
            if told.retrans_acked {
                flags |= flag::RETRANS;
            }
            let state = match self.board.packets_out() {
                0 if !more => State::Idle,
                _ => State::Active,
            };
            let (sent, rtt) = sample.unwrap_or_default();
            let out = self.tell(
                law,
                EventKind::Acked,
                state,
                now,
                Event {
                    flags,
                    sent_us: sent / 1000,
                    rtt_us: (rtt / 1000) as u32,
                    delivered: told.packets,
                    lost,
                    ..Event::default()
                },
            );
            if in_recovery {
                let safe = told.una_advanced && lost == 0;
                let in_flight = self.board.in_flight();
                self.cwnd = self.prr.window(told.packets, self.ssthresh, in_flight, safe);
            } else {
                (self.cwnd, self.ssthresh) = (out.cwnd, out.ssthresh);
            }
        }
        self.retransmit_lost(wire);
    }

    /// Growth is for windows that were the limit; and while segments wait behind a gap, only if
    /// the cumulative ACK advances, or if reordering is known to happen (Linux:
    /// tcp_may_raise_cwnd()).
    fn may_grow(&self, told: &Delivered) -> bool {
        self.window_use.is_limited(self.cwnd, self.ssthresh)
            && (told.una_advanced || self.rack.reordering_seen())
    }

    /// RFC 6298, section 3, and RFC 7323, section 4: the sample of the first segment never sent
    /// again, or of the timestamp. Returns the newest such segment's time and round trip.
    fn sample_rtt(&mut self, told: &Delivered, echo: Nanos, now: Nanos) -> Option<(Nanos, Nanos)> {
        let acked = told.acked_sent.filter(|_| !told.retrans_acked);
        let by_time = told.una_advanced.then_some((echo, echo));
        let (first, _) = acked.or(told.sacked_sent).or(by_time)?;
        let (_, last) = told.sacked_sent.or(acked).or(by_time)?;
        self.rtt.sample_min(now - last);
        self.rtt.sample(now - first, self.board.una(), self.board.nxt());
        self.rtt.reset_backoff();
        self.counters.srtt.record(self.rtt.srtt());
        Some((last, now - last))
    }

    /// RFC 6298, sections 5.2 and 5.3.
    fn rearm_rto(&mut self, told: &Delivered, now: Nanos) {
        let Some(head_sent) = self.board.head_sent() else {
            (self.rto_at, self.reo_at) = (NEVER, NEVER);
            return;
        };
        // Linux also starts it anew when a SACK tells of data older than the head's last
        // retransmission: the network still delivers.
        let older = told.sacked_sent.is_some_and(|(first, _)| first < head_sent);
        if told.una_advanced || older {
            self.rto_at = now + self.rtt.rto();
        }
    }

    /// Loss recovery, as Linux's tcp_fastretrans_alert(). Returns what was found lost.
    fn recover(&mut self, told: &Delivered, now: Nanos, law: &mut Conn) -> Lost {
        if self.phase == Phase::Open && self.board.sacked_out() == 0 && told.sacked_sent.is_none() {
            return Lost::default();
        }
        if self.board.una() >= self.high_seq {
            match self.phase {
                Phase::Recovery => {
                    self.phase = Phase::Open;
                    self.check();
                    let out =
                        self.tell(law, EventKind::Recovered, State::Active, now, Event::default());
                    (self.cwnd, self.ssthresh) = (out.cwnd, out.ssthresh);
                }
                Phase::Loss => self.phase = Phase::Open,
                Phase::Open | Phase::Disorder => {}
            }
        }
        let lost = self.detect_loss(now);
        let enter = match self.phase {
            Phase::Open | Phase::Disorder => self.board.lost_out() > 0,
            // A retransmission is lost too: the congestion of a new round trip.
            Phase::Loss => lost.retransmissions > 0,
            Phase::Recovery => false,
        };
        if enter {
            self.enter_recovery(now, lost, law);
        } else if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let disorder = self.board.sacked_out() > 0;
            self.phase = if disorder { Phase::Disorder } else { Phase::Open };
        }
        lost
    }

    /// Lets RACK look, if something arrived since its last look, and sets its timer.
    fn detect_loss(&mut self, now: Nanos) -> Lost {
        if !self.rack.take_advanced() {
            return Lost::default();
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let reo_wnd = self.rack.reo_wnd(
            recovering,
            self.board.sacked_out(),
            self.rtt.min_rtt(),
            self.rtt.srtt(),
        );
        let before = self.board.lost_out();
        let (marked, wait) = self.board.detect_loss(&self.rack, reo_wnd, now);
        self.reo_at = wait.map_or(NEVER, |wait| now + wait);
        Lost { marked, retransmissions: marked - (self.board.lost_out() - before) }
    }

    fn enter_recovery(&mut self, now: Nanos, lost: Lost, law: &mut Conn) {
        self.high_seq = self.board.nxt();
        self.prr.begin(self.cwnd);
        self.phase = Phase::Recovery;
        self.check();
        let event = Event { lost: lost.marked, ..Event::default() };
        self.ssthresh = self.tell(law, EventKind::Recovery, State::Active, now, event).ssthresh;
    }

    // ---- Timers ----------------------------------------------------------------------------

    /// Lets expire what is due. True if the retransmission timer of data was.
    pub fn on_timer(&mut self, wire: &mut Wire, law: &mut Conn) -> bool {
        if self.reo_at <= wire.now {
            self.on_reordering_timer(wire, law);
        }
        if self.rto_at > wire.now {
            return false;
        }
        self.rtt.back_off();
        if !self.is_established() {
            self.send_handshake(wire);
            return false;
        }
        self.on_timeout(wire, law);
        true
    }

    /// RFC 8985, section 6.3: the reordering window has passed without the segment.
    fn on_reordering_timer(&mut self, wire: &mut Wire, law: &mut Conn) {
        self.reo_at = NEVER;
        self.rack.look_again();
        let lost = self.detect_loss(wire.now);
        if lost.marked == 0 {
            return;
        }
        if self.phase != Phase::Recovery {
            self.enter_recovery(wire.now, lost, law);
            let in_flight = self.board.in_flight();
            self.cwnd = self.prr.window(1, self.ssthresh, in_flight, false);
        }
        self.retransmit_lost(wire);
    }

    /// RFC 6298, section 5.4 to 5.6, and RFC 5681, section 3.1, as Linux's tcp_enter_loss().
    fn on_timeout(&mut self, wire: &mut Wire, law: &mut Conn) {
        self.counters.timeouts += 1;
        self.timeouts_in_row += 1;
        let lost = self.board.mark_timeout(&self.rack, wire.now);
        self.reo_at = NEVER;
        self.phase = Phase::Loss;
        self.high_seq = self.board.nxt();
        self.check();
        let state = if self.has_failed() { State::Failed } else { State::Active };
        let event = Event { lost, ..Event::default() };
        // The law reduces its threshold at the first timeout of an episode only.
        self.ssthresh = self.tell(law, EventKind::Timeout, state, wire.now, event).ssthresh;
        // Loss window: one packet more than what is not yet given up.
        self.cwnd = self.board.in_flight() + 1;
        self.retransmit_lost(wire);
        self.rto_at = wire.now + self.rtt.rto();
    }

    // ---- Law -------------------------------------------------------------------------------

    /// Tells the law what happened; the event's common fields are filled here.
    fn tell(
        &mut self,
        law: &mut Conn,
        kind: EventKind,
        state: State,
        now: Nanos,
        event: Event,
    ) -> Output {
        let event = Event {
            kind: kind as u32,
            state: state as u32,
            now_us: now / 1000,
            inflight: self.board.in_flight(),
            cwnd: self.cwnd,
            srtt8_us: self.rtt.srtt8_us() as u32,
            mss: self.mss,
            ..event
        };
        law.event(self.path, &mut self.private, &event)
    }

    /// Hands the data that has not arrived to `each`, to be sent on other subflows.
    pub fn reinject(&mut self, each: impl FnMut(u64, u32)) {
        self.board.reinject(each);
    }

    fn check(&self) {
        #[cfg(debug_assertions)]
        self.board.check();
    }
}

/// What a look of RACK found.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Segments marked lost, first time or again.
    marked: u32,
    /// Those that had been sent again already.
    retransmissions: u32,
}
