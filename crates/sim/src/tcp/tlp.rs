//! Tail loss probe, RFC 8985, section 7: when nothing has come back for about two round trips, a
//! segment goes out so that the receiver's answer reveals losses at the end of a flight, long
//! before the retransmission timer would. As Linux's tcp_schedule_loss_probe(),
//! tcp_send_loss_probe() and tcp_process_tlp_ack().

use narrows_laws::{Event, EventKind};
use narrows_net::Nanos;

use super::NEVER;
use super::psh::Behind;
use super::recovery::Phase;
use super::rto::RTO_MIN;
use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::wire::Wire;

/// Added to two round trips: Linux's TCP_TIMEOUT_MIN_US.
const TIMEOUT_MIN: Nanos = 2_000_000;

/// The probe of a subflow.
#[derive(Debug)]
pub(crate) struct Probe {
    /// When the next one is due.
    pub at: Nanos,
    /// That must be set anew.
    pub stale: bool,
    /// End of what was sent when the last one left (Linux: tlp_high_seq); 0: none is out.
    end: u64,
    /// It was an old segment, sent again, that had left then.
    original: Option<Nanos>,
}

impl Default for Probe {
    fn default() -> Self {
        Probe { at: NEVER, stale: false, end: 0, original: None }
    }
}

impl Probe {
    /// A probe is out.
    pub fn is_out(&self) -> bool {
        self.end > 0
    }

    /// A retransmission is out as a probe.
    pub fn is_retransmitted(&self) -> bool {
        self.is_out() && self.original.is_some()
    }

    /// The segment that ends at `end` is out as a probe again.
    pub fn is_of(&self, end: u64) -> bool {
        self.is_retransmitted() && self.end == end
    }

    /// Recovery begins: its acknowledgements show more than a probe's.
    pub fn give_up(&mut self) {
        *self = Probe::default();
    }
}

impl Sender {
    /// Sets the probe's time. RFC 8985, section 7.2; but Linux adds the smallest timeout for the
    /// delayed acknowledgement of a lone segment, and a moment otherwise.
    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        let packets = self.board.packets_out();
        (self.tlp.at, self.tlp.stale) = (NEVER, false);
        if matches!(self.phase, Phase::Open | Phase::Cwr) && packets > 0 && !self.tlp.is_out() {
            let allowance = if packets == 1 { RTO_MIN } else { TIMEOUT_MIN };
            self.tlp.at = self.rto_at.min(now + 2 * self.rtt.srtt() + allowance);
        }
    }

    /// Is it time for a probe?
    pub fn probe_due(&self, now: Nanos) -> bool {
        self.tlp.at <= now
    }

    /// Sends the probe, whatever the window: `new` data (data sequence number and length), or the
    /// last segment again. RFC 8985, section 7.3.
    pub fn send_probe(
        &mut self,
        new: Option<(u64, u32, Behind)>,
        wire: &mut Wire,
        controller: &mut Controller,
    ) {
        let original = match new {
            Some((dsn, len, behind)) => {
                self.send_new(dsn, len, behind, wire, controller);
                None
            }
            None => {
                let original = self.board.last_sent();
                let segment = self.board.retransmit_last(wire.now);
                self.counters.retransmits += 1;
                self.transmit(segment, false, false, wire);
                Some(original)
            }
        };
        self.counters.probes += 1;
        self.tlp = Probe { end: self.board.nxt(), original, ..Probe::default() };
        self.rto_at = wire.now + self.rtt.rto();
    }

    /// An acknowledgement came while a probe is out: did the probe repair a loss? Then nothing else
    /// shows it, and the window must come down. RFC 8985, section 7.4.
    pub(super) fn on_probe_ack(
        &mut self,
        ack: u64,
        delivered: &Delivered,
        now: Nanos,
        controller: &mut Controller,
    ) {
        let end = self.tlp.end;
        if ack < end {
            return;
        }
        let twice = delivered.duplicate.as_ref().is_some_and(|duplicate| duplicate.end == end);
        if self.tlp.original.is_none()
            || twice
            || (!delivered.una_advanced && delivered.packets == 0)
        {
            // All of it has arrived, the probe's original too.
            self.tlp.end = 0;
        } else if ack > end {
            self.tlp.end = 0;
            if self.is_reducing() {
                return;
            }
            self.ecn.reduced();
            let sent_us = self.tlp.original.map_or(0, |sent| sent / 1000);
            self.tell(controller, now, Event { sent_us, ..event(EventKind::Recovery) });
            self.report(controller, now, event(EventKind::Recovered));
        }
    }
}
