//! Loss recovery of a subflow: when it begins and ends, as Linux's tcp_fastretrans_alert(), and
//! its timers.

use narrows_laws::{Event, EventKind, flag};
use narrows_net::Nanos;
use narrows_traffic::LossDetection;

use super::NEVER;
use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::wire::Wire;

/// What loss recovery is doing: Linux's icsk_ca_state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Something was SACKed, nothing is lost yet.
    Disorder,
    /// A mark was reported: the window comes down, nothing is lost.
    Cwr,
    /// Fast recovery, up to `high_seq`.
    Recovery,
    /// After a timeout, up to `high_seq`.
    Loss,
}

/// What an acknowledgement means for recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Packets marked lost, first time or again.
    pub lost: u32,
    /// What is lost waits: it may have been late.
    pub hold: bool,
}

/// What a look for loss found.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Segments marked lost, first time or again.
    marked: u32,
    /// Those that had been sent again already.
    retransmissions: u32,
}

/// Segments above a lost one, at least, with FACK: Linux's tcp_reordering. Linux raised it, and gave
/// FACK up, for a connection whose segments overtook each other; that is not modelled.
const FACK_DISTANCE: usize = 3;

impl Sender {
    /// An acknowledgement that echoes `echo` came: ends recovery, or undoes it, looks for loss,
    /// begins recovery. `more`: the connection has more to send.
    pub(super) fn recover(
        &mut self,
        delivered: &Delivered,
        echo: Nanos,
        more: bool,
        now: Nanos,
        controller: &mut Controller,
    ) -> Recovery {
        let nothing_new = delivered.sacked_sent.is_none() && delivered.duplicate.is_none();
        if self.phase == Phase::Open && self.board.sacked_out() == 0 && nothing_new {
            return Recovery::default();
        }
        if self.phase == Phase::Recovery && self.board.una() >= self.high_seq {
            self.leave_recovery(echo, now, controller);
        }
        let mut hold = false;
        match self.phase {
            Phase::Recovery if delivered.una_advanced && self.undo.was_late(echo) => {
                // Something was late, and there may be retransmissions of what is late too. They
                // go out no more; and when none is left in the network, the reduction is undone.
                // Linux's tcp_try_undo_partial().
                if self.board.una() < self.board.highest_sacked() {
                    self.rack.reordered();
                }
                if self.board.retrans_out() > 0 {
                    self.new_first = true;
                    return Recovery { lost: 0, hold: true };
                }
                self.undo_reduction(true, now, controller);
                self.phase = Phase::Open;
            }
            Phase::Loss => hold = self.on_ack_in_loss(delivered, echo, more, now, controller),
            _ if self.undo.all_needless() => {
                self.undo_reduction(false, now, controller);
                self.phase = Phase::Open;
            }
            _ => {}
        }
        let lost = match self.loss_detection {
            LossDetection::Rack => self.detect_loss(now),
            LossDetection::Fack => self.detect_loss_by_fack(delivered),
        };
        let enter = match self.phase {
            Phase::Open | Phase::Disorder | Phase::Cwr => self.board.lost_out() > 0,
            // A retransmission is lost too: the congestion of a new round trip.
            Phase::Loss => lost.retransmissions > 0,
            Phase::Recovery => false,
        };
        if enter {
            self.enter_recovery(now, controller);
        } else if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let disorder = self.board.sacked_out() > 0;
            self.phase = if disorder { Phase::Disorder } else { Phase::Open };
        }
        Recovery { lost: lost.marked, hold: hold && !enter }
    }

    /// All that was out when recovery began has arrived. Linux's tcp_try_undo_recovery().
    fn leave_recovery(&mut self, echo: Nanos, now: Nanos, controller: &mut Controller) {
        self.phase = Phase::Open;
        self.check();
        if self.may_undo(echo) {
            self.undo_reduction(false, now, controller);
            return;
        }
        self.rack.recovered();
        self.report(controller, now, event(EventKind::Recovered));
    }

    /// After a timeout: was it spurious? By timestamp and DSACK, and by F-RTO with SACK (RFC 5682,
    /// section 3.1), as Linux's tcp_process_loss(). True if new data is to be tried before what is
    /// lost.
    fn on_ack_in_loss(
        &mut self,
        delivered: &Delivered,
        echo: Nanos,
        more: bool,
        now: Nanos,
        controller: &mut Controller,
    ) -> bool {
        // Step 3.b: something that was sent once, before the timeout, has arrived.
        let original = self.frto.is_some_and(|since| delivered.sent_before(since));
        if original || (delivered.una_advanced && self.may_undo(echo)) {
            self.undo_reduction(true, now, controller);
            self.timeouts_in_row = 0;
            self.phase = Phase::Open;
            return false;
        }
        let recovered = self.board.una() >= self.high_seq;
        if self.frto.is_some() {
            let nothing_delivered = delivered.packets == 0 && delivered.duplicate.is_none();
            if self.board.nxt() > self.high_seq {
                // Step 3.a: the new data arrived behind a gap.
                if delivered.sacked_sent.is_some() || nothing_delivered {
                    self.frto = None;
                }
            } else if delivered.una_advanced && !recovered {
                // Step 2.b: the first acknowledgement; the answer to new data will show it.
                self.new_first = more;
                if more {
                    return true;
                }
                self.frto = None;
            }
        }
        if recovered {
            self.phase = Phase::Open;
            self.rack.recovered();
        }
        false
    }

    /// New data had its turn. If F-RTO wanted it and there was none that might be sent, the timeout
    /// counts as real.
    pub(super) fn end_new_first(&mut self, wire: &mut Wire) {
        self.new_first = false;
        if self.phase == Phase::Loss && self.board.nxt() == self.high_seq {
            self.frto = None;
            self.retransmit_lost(wire);
        }
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
        self.found(marked, before)
    }

    /// Looks for loss by sequence. After a timeout all that was out counts as lost already.
    fn detect_loss_by_fack(&mut self, delivered: &Delivered) -> Lost {
        if self.phase == Phase::Loss {
            return Lost::default();
        }
        // In recovery a duplicate acknowledgement, with a SACK of something new, is enough for the first
        // segment.
        let sacked_only = !delivered.una_advanced && delivered.packets > 0;
        let duplicate = self.phase == Phase::Recovery && sacked_only;
        let before = self.board.lost_out();
        let marked = self.board.detect_loss_by_fack(duplicate.into(), FACK_DISTANCE);
        self.found(marked, before)
    }

    /// So many segments were marked, where `before` were lost: the others are retransmissions lost again.
    fn found(&mut self, marked: u32, before: u32) -> Lost {
        self.unreported_lost += marked;
        Lost { marked, retransmissions: marked - (self.board.lost_out() - before) }
    }

    fn enter_recovery(&mut self, now: Nanos, controller: &mut Controller) {
        // A reduction that a mark began goes on: a window of data costs one, and there was reason.
        if self.phase != Phase::Cwr {
            self.begin_reduction();
            self.begin_undo();
        }
        self.phase = Phase::Recovery;
        self.tlp.give_up();
        self.check();
        let sent_us = self.board.lost_sent() / 1000;
        self.report_reduction(controller, now, Event { sent_us, ..event(EventKind::Recovery) });
    }

    /// Lets expire what is due. True if the retransmission timer of data was.
    pub fn on_timer(&mut self, wire: &mut Wire, controller: &mut Controller) -> bool {
        self.deferred = false;
        if self.pace_at <= wire.now {
            self.pace_at = NEVER;
            self.retransmit_lost(wire);
        }
        if self.reo_at <= wire.now {
            self.on_reordering_timer(wire, controller);
        }
        if self.rto_at > wire.now {
            return false;
        }
        self.rtt.back_off();
        if !self.is_established() {
            self.send_handshake(wire);
            return false;
        }
        self.on_timeout(wire, controller);
        true
    }

    /// RFC 8985, section 6.3: the reordering window has passed without the segment.
    fn on_reordering_timer(&mut self, wire: &mut Wire, controller: &mut Controller) {
        self.reo_at = NEVER;
        self.rack.look_again();
        let lost = self.detect_loss(wire.now);
        if lost.marked == 0 {
            return;
        }
        if self.phase != Phase::Recovery {
            self.enter_recovery(wire.now, controller);
            if !controller.control().law.is_model() {
                let in_flight = self.board.in_flight();
                self.cwnd = self.prr.window(1, self.ssthresh, in_flight, false);
            }
        }
        self.retransmit_lost(wire);
    }

    /// RFC 6298, section 5.4 to 5.6, and RFC 5681, section 3.1, as Linux's tcp_enter_loss().
    fn on_timeout(&mut self, wire: &mut Wire, controller: &mut Controller) {
        self.counters.timeouts += 1;
        let new = matches!(self.phase, Phase::Open | Phase::Disorder);
        let again = self.timeouts_in_row > 0;
        self.timeouts_in_row += 1;
        if self.is_reducing() && self.board.una() >= self.high_seq {
            // The window that was reduced for a mark has arrived: this is another event.
            self.tell(controller, wire.now, event(EventKind::Recovered));
        }
        let rack = (self.loss_detection == LossDetection::Rack).then_some(&self.rack);
        self.unreported_lost += self.board.mark_timeout(rack, wire.now);
        if new || self.board.una() >= self.high_seq || (self.phase == Phase::Loss && !again) {
            self.begin_undo();
        }
        // RFC 5682, section 2.1: not during recovery, unless from a timeout.
        self.frto = (new || again || self.phase == Phase::Cwr).then_some(wire.now);
        // The law reduces its threshold at the first timeout of a segment only, though something else
        // may have arrived since.
        let held = again && self.phase == Phase::Loss;
        let flags = if held { flag::RETRANS } else { 0 };
        let event = Event { flags, ..event(EventKind::Timeout) };
        self.tlp.give_up();
        self.reo_at = NEVER;
        self.phase = Phase::Loss;
        self.ecn.reduced();
        self.high_seq = self.board.nxt();
        self.check();
        self.report_reduction(controller, wire.now, event);
        // Loss window: one packet more than what is not yet given up.
        self.cwnd = self.board.in_flight() + 1;
        self.retransmit_lost(wire);
        self.rto_at = wire.now + self.rtt.rto();
    }
}
