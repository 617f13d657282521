//! The handshake of a subflow, as the sender (who opens) sees it: three packets, four for a join.

use narrows_laws::raw::SSTHRESH_MAX;
use narrows_laws::{EventKind, State};
use narrows_net::{Nanos, RouteId};

use super::NEVER;
use super::recovery::Phase;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::packet::Body;
use crate::wire::Wire;

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    Closed,
    SynSent,
    /// The third packet of a join left; the fourth is awaited.
    ThirdSent,
    Established,
}

impl Sender {
    /// Not opened yet.
    pub fn is_closed(&self) -> bool {
        self.handshake == Handshake::Closed
    }

    /// The handshake is or was that of a join.
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// Begins the handshake of the connection, or of a subflow that joins it, and may be a backup.
    /// The SYN takes `route`: forward if the sender opens.
    pub fn open(&mut self, joins: bool, backup: bool, route: RouteId, wire: &mut Wire) {
        self.joins = joins;
        self.syn_route = route;
        self.standing = if joins && backup { State::Backup } else { State::Active };
        self.handshake = Handshake::SynSent;
        self.last_sent = wire.now;
        self.send_handshake(wire);
    }

    pub(super) fn send_handshake(&mut self, wire: &mut Wire) {
        let (route, body) = match self.handshake {
            Handshake::SynSent => (self.syn_route, Body::Syn { sent: wire.now, joins: self.joins }),
            _ => (self.forward, Body::Third),
        };
        wire.send(route, self.path, body);
        self.rto_at = wire.now + self.rtt.rto();
    }

    /// The SYN/ACK arrived. True if the subflow is established: a join still waits for the fourth
    /// packet (RFC 8684, section 3.2).
    pub fn on_syn_ack(
        &mut self,
        echo: Nanos,
        wire: &mut Wire,
        controller: &mut Controller,
    ) -> bool {
        match self.handshake {
            Handshake::SynSent => {}
            Handshake::ThirdSent => {
                self.send_handshake(wire);
                return false;
            }
            Handshake::Closed | Handshake::Established => return false,
        }
        // The timestamp shows which SYN was answered (RFC 7323, section 3.3).
        let rtt = wire.now - echo;
        self.rtt.sample(rtt, 0, 0);
        self.rtt.sample_min(rtt, wire.now);
        // RFC 6298, section 5.7, and RFC 5681, section 3.1, ask for a small window after a lost SYN;
        // Linux only if two were sent again, and not if the first has arrived (tcp_init_transfer(),
        // tcp_try_undo_spurious_syn()).
        self.syn_lost = self.rtt.expiries() > 1 && echo != self.last_sent;
        self.rtt.reset_backoff();
        self.handshake = Handshake::ThirdSent;
        self.send_handshake(wire);
        !self.joins && self.establish(wire.now, controller)
    }

    /// The fourth packet of a join arrived. True if that establishes the subflow.
    pub fn on_fourth(&mut self, now: Nanos, controller: &mut Controller) -> bool {
        self.handshake == Handshake::ThirdSent && self.establish(now, controller)
    }

    /// The receiver's SYN arrived: answers it.
    pub fn answer_syn(&mut self, sent: Nanos, edge: u64, wire: &mut Wire) {
        self.last_sent = wire.now;
        wire.send(self.forward, self.path, Body::SynAck { echo: sent, edge });
    }

    /// The third packet of the receiver's handshake arrived. True if that establishes the subflow.
    pub fn on_third(&mut self, now: Nanos, controller: &mut Controller) -> bool {
        if self.handshake != Handshake::SynSent {
            return false;
        }
        let rtt = now - self.last_sent;
        self.rtt.sample(rtt, 0, 0);
        self.rtt.sample_min(rtt, now);
        self.syn_lost = self.rtt.expiries() > 1;
        self.establish(now, controller)
    }

    /// Did the first slow start end, and the recovery from its losses, if that ended it?
    pub fn slow_start_over(&self) -> bool {
        self.is_established() && self.ssthresh < SSTHRESH_MAX && self.phase == Phase::Open
    }

    fn establish(&mut self, now: Nanos, controller: &mut Controller) -> bool {
        self.handshake = Handshake::Established;
        self.rto_at = NEVER;
        self.rtt.reset_backoff();
        self.report(controller, now, event(EventKind::Joined));
        if self.syn_lost {
            self.cwnd = 1;
        }
        true
    }
}
