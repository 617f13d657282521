//! Explicit congestion notification, RFC 3168, as Linux's tcp_ecn_*(): new data is sent as
//! ECN-capable, the receiver echoes a mark until it gets CWR, the sender reduces once
//! per window of data. Both ends agree in the handshake, which is not modelled: nobody refuses.

use narrows_laws::EventKind;
use narrows_net::Nanos;

use super::recovery::Phase;
use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::packet::Segment;

/// The sender's part.
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// Data is sent as ECN-capable.
    on: bool,
    /// The window was reduced, and the next new segment is to say so.
    cwr: bool,
}

impl EcnSender {
    pub fn new(on: bool) -> Self {
        EcnSender { on, cwr: false }
    }

    /// The ECN bits of a segment: what is sent again is not ECN-capable (RFC 3168, section 6.1.5),
    /// and does not carry CWR, as it may be old.
    pub fn label(&mut self, segment: &mut Segment, new: bool) {
        if self.on && new {
            segment.ect = true;
            segment.cwr = std::mem::take(&mut self.cwr);
        }
    }

    /// The window was reduced, whatever the reason (section 6.1.2).
    pub fn reduced(&mut self) {
        self.cwr = true;
    }

    /// The reduction was undone: no CWR is sent. Linux: tcp_ecn_withdraw_cwr().
    pub fn withdraw(&mut self) {
        self.cwr = false;
    }
}

/// The receiver's part.
#[derive(Debug, Default)]
pub(crate) struct EcnReceiver {
    /// A mark has come, and no news of a reduction since.
    pub echo: bool,
}

impl EcnReceiver {
    /// A segment arrived, marked if `ce`. True if it is the first mark.
    pub fn on_segment(&mut self, cwr: bool, ce: bool) -> bool {
        if cwr {
            self.echo = false;
        }
        let first = ce && !self.echo;
        self.echo |= ce;
        first
    }
}

impl Sender {
    /// Is the window on its way down to ssthresh, a little with each acknowledgement?
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// An acknowledgement echoes a mark: reduce, once per window of data, unless a loss was reason
    /// enough already. Linux: tcp_enter_cwr().
    pub(super) fn on_echo(
        &mut self,
        delivered: &Delivered,
        now: Nanos,
        controller: &mut Controller,
    ) {
        // Linux counts so: all that a marked acknowledgement delivers (tcp_count_delivered_ce()).
        self.unreported_marked += delivered.packets;
        // There was congestion, so nothing was for nothing.
        self.undo.forget();
        if !matches!(self.phase, Phase::Open | Phase::Disorder) {
            return;
        }
        self.begin_reduction();
        self.phase = Phase::Cwr;
        self.tlp.give_up();
        self.report_reduction(controller, now, event(EventKind::Ecn));
    }

    /// The reduction for a mark ends when something beyond what was then out has been acknowledged:
    /// the segment that carried CWR has arrived. Linux: tcp_fastretrans_alert().
    pub(super) fn leave_cwr(&mut self, now: Nanos, controller: &mut Controller) {
        if self.phase == Phase::Cwr && self.board.una() > self.high_seq {
            self.phase = Phase::Open;
            self.report(controller, now, event(EventKind::Recovered));
        }
    }

    /// Linux: tcp_init_cwnd_reduction().
    pub(super) fn begin_reduction(&mut self) {
        self.high_seq = self.board.nxt();
        self.prr.begin(self.cwnd);
        self.ecn.reduced();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced() {
        let mut receiver = EcnReceiver::default();
        let echoes = [(false, false), (false, true), (false, true), (false, false), (true, false)]
            .map(|(cwr, ce)| (receiver.on_segment(cwr, ce), receiver.echo));
        let quick = echoes.map(|(quick, _)| quick);
        assert_eq!(quick, [false, true, false, false, false]);
        assert_eq!(echoes.map(|(_, echo)| echo), [false, true, true, true, false]);
        // The segment with CWR is itself marked: that is another.
        receiver.on_segment(true, true);
        assert!(receiver.echo);
    }

    #[test]
    fn only_new_data_is_ecn_capable_and_one_segment_shows_of_a_reduction() {
        let mut ecn = EcnSender::new(true);
        let label = |ecn: &mut EcnSender, new| {
            let mut segment = Segment::default();
            ecn.label(&mut segment, new);
            (segment.ect, segment.cwr)
        };
        assert_eq!(label(&mut ecn, true), (true, false));
        ecn.reduced();
        assert_eq!(label(&mut ecn, false), (false, false));
        assert_eq!(label(&mut ecn, true), (true, true));
        assert_eq!(label(&mut ecn, true), (true, false));
        ecn.on = false;
        ecn.reduced();
        assert_eq!(label(&mut ecn, true), (false, false));
    }
}
