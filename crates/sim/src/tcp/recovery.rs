//! Loss recovery of a subflow: when it begins and ends, as Linux's tcp_fastretrans_alert(), and
//! its timers.

use narrows_laws::{Conn, Event, EventKind, State};
use narrows_net::Nanos;

use super::NEVER;
use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::packet::Wire;

/// What loss recovery is doing: Linux's icsk_ca_state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Something was SACKed, nothing is lost yet.
    Disorder,
    /// Fast recovery, up to `high_seq`.
    Recovery,
    /// After a timeout, up to `high_seq`.
    Loss,
}

/// What a look of RACK found.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Segments marked lost, first time or again.
    marked: u32,
    /// Those that had been sent again already.
    retransmissions: u32,
}

impl Sender {
    /// An acknowledgement came: ends recovery, looks for loss, begins recovery. Returns how many
    /// packets were marked lost, first time or again.
    pub(super) fn recover(&mut self, told: &Delivered, now: Nanos, law: &mut Conn) -> u32 {
        if self.phase == Phase::Open && self.board.sacked_out() == 0 && told.sacked_sent.is_none() {
            return 0;
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
            self.enter_recovery(now, law);
        } else if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let disorder = self.board.sacked_out() > 0;
            self.phase = if disorder { Phase::Disorder } else { Phase::Open };
        }
        lost.marked
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
        self.untold_lost += marked;
        self.reo_at = wait.map_or(NEVER, |wait| now + wait);
        Lost { marked, retransmissions: marked - (self.board.lost_out() - before) }
    }

    fn enter_recovery(&mut self, now: Nanos, law: &mut Conn) {
        self.high_seq = self.board.nxt();
        self.prr.begin(self.cwnd);
        self.phase = Phase::Recovery;
        self.check();
        let out = self.tell(law, EventKind::Recovery, State::Active, now, Event::default());
        self.ssthresh = out.ssthresh;
    }

    /// Lets expire what is due. True if the retransmission timer of data was.
    pub fn on_timer(&mut self, wire: &mut Wire, law: &mut Conn) -> bool {
        self.deferred = false;
        if self.pace_at <= wire.now {
            self.pace_at = NEVER;
            self.retransmit_lost(wire);
        }
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
            self.enter_recovery(wire.now, law);
            let in_flight = self.board.in_flight();
            self.cwnd = self.prr.window(1, self.ssthresh, in_flight, false);
        }
        self.retransmit_lost(wire);
    }

    /// RFC 6298, section 5.4 to 5.6, and RFC 5681, section 3.1, as Linux's tcp_enter_loss().
    fn on_timeout(&mut self, wire: &mut Wire, law: &mut Conn) {
        self.counters.timeouts += 1;
        self.timeouts_in_row += 1;
        self.untold_lost += self.board.mark_timeout(&self.rack, wire.now);
        self.reo_at = NEVER;
        self.phase = Phase::Loss;
        self.high_seq = self.board.nxt();
        self.check();
        let state = if self.has_failed() { State::Failed } else { State::Active };
        // The law reduces its threshold at the first timeout of an episode only.
        let out = self.tell(law, EventKind::Timeout, state, wire.now, Event::default());
        self.ssthresh = out.ssthresh;
        // Loss window: one packet more than what is not yet given up.
        self.cwnd = self.board.in_flight() + 1;
        self.retransmit_lost(wire);
        self.rto_at = wire.now + self.rtt.rto();
    }
}
