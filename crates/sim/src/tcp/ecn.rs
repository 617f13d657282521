//! Explicit congestion notification, RFC 3168, as Linux's tcp_ecn_*(): new data is sent as
//! ECN-capable, the receiver echoes a mark until it gets CWR, the sender reduces once
//! per window of data. With a scalable sender the receiver echoes each mark and no other (RFC 8257,
//! section 3.2). Both ends agree in the handshake, which is not modelled: nobody refuses.

use narrows_laws::{Event, EventKind};
use narrows_net::{Ecn, Nanos};
use narrows_traffic::{Hides, TcpConfig};

use super::recovery::Phase;
use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::packet::Segment;

/// Acknowledgements sent at once when the first mark arrives: Linux's tcp_ecn_check_ce().
const QUICK_ACKS: u32 = 2;

/// The sender's part.
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// What IP says of data.
    data: Ecn,
    /// The window was reduced, and the next new segment is to say so.
    cwr: bool,
}

impl EcnSender {
    pub fn new(tcp: &TcpConfig) -> Self {
        let data = match (tcp.ecn, tcp.scalable) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect,
            (true, true) => Ecn::Ect1,
        };
        EcnSender { data, cwr: false }
    }

    /// The ECN bits of a segment: what is sent again does not carry CWR, as it may be old, and is not
    /// ECN-capable (RFC 3168, section 6.1.5). A scalable sender's is, as all that it sends (Linux: INET_ECN_xmit()).
    pub fn label(&mut self, segment: &mut Segment, new: bool) {
        if new || self.data == Ecn::Ect1 {
            segment.ecn = self.data;
        }
        if new && self.data != Ecn::NotEct {
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
    /// A mark has come, and no news of a reduction since; for a scalable sender, the newest segment is marked.
    pub echo: bool,
    scalable: bool,
    /// It misbehaves: nothing is echoed.
    hides: bool,
}

impl EcnReceiver {
    pub fn new(tcp: &TcpConfig) -> Self {
        let hides = tcp.receiver_hides == Some(Hides::Marks);
        EcnReceiver { echo: false, scalable: tcp.ecn && tcp.scalable, hides }
    }

    /// Is a segment that is marked if `ce` the first of its kind after others? A scalable sender counts marked packets, so
    /// no acknowledgement covers both kinds (RFC 8257, section 3.2; Linux: dctcp_ece_ack_update()).
    pub fn turns(&self, ce: bool) -> bool {
        self.scalable && !self.hides && ce != self.echo
    }

    /// A segment arrived, marked if `ce`: so many acknowledgements are due at once. For a scalable sender one, whenever
    /// marks begin or end.
    pub fn on_segment(&mut self, cwr: bool, ce: bool) -> u32 {
        if self.hides {
            return 0;
        }
        if self.scalable {
            let turns = self.turns(ce);
            self.echo = ce;
            return u32::from(turns);
        }
        if cwr {
            self.echo = false;
        }
        let first = ce && !self.echo;
        self.echo |= ce;
        if first { QUICK_ACKS } else { 0 }
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
        let sent_us = delivered.newest.as_ref().map_or(0, |newest| newest.sent() / 1000);
        self.report_reduction(controller, now, Event { sent_us, ..event(EventKind::Ecn) });
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
        assert_eq!(quick, [0, 2, 0, 0, 0]);
        assert_eq!(echoes.map(|(_, echo)| echo), [false, true, true, true, false]);
        // The segment with CWR is itself marked: that is another.
        receiver.on_segment(true, true);
        assert!(receiver.echo);
    }

    #[test]
    fn only_new_data_is_ecn_capable_and_one_segment_shows_of_a_reduction() {
        let classic = TcpConfig { ecn: true, ..TcpConfig::default() };
        let mut ecn = EcnSender::new(&classic);
        let label = |ecn: &mut EcnSender, new| {
            let mut segment = Segment::default();
            ecn.label(&mut segment, new);
            (segment.ecn, segment.cwr)
        };
        assert_eq!(label(&mut ecn, true), (Ecn::Ect, false));
        ecn.reduced();
        assert_eq!(label(&mut ecn, false), (Ecn::NotEct, false));
        assert_eq!(label(&mut ecn, true), (Ecn::Ect, true));
        assert_eq!(label(&mut ecn, true), (Ecn::Ect, false));
        ecn = EcnSender::new(&TcpConfig::default());
        ecn.reduced();
        assert_eq!(label(&mut ecn, true), (Ecn::NotEct, false));
        // What a scalable sender sends again is as all else.
        ecn = EcnSender::new(&TcpConfig { scalable: true, ..classic });
        assert_eq!(label(&mut ecn, true), (Ecn::Ect1, false));
        assert_eq!(label(&mut ecn, false), (Ecn::Ect1, false));
    }

    /// RFC 8257, section 3.2.
    #[test]
    fn a_scalable_sender_is_told_of_each_mark_and_of_no_other() {
        let scalable = TcpConfig { ecn: true, scalable: true, ..TcpConfig::default() };
        let mut receiver = EcnReceiver::new(&scalable);
        let marks = [false, true, true, false, false, true];
        let told = marks.map(|ce| (receiver.on_segment(false, ce), receiver.echo));
        assert_eq!(told.map(|(_, echo)| echo), marks);
        assert_eq!(told.map(|(quick, _)| quick), [0, 1, 0, 1, 0, 1]);
        // The news of a reduction changes nothing.
        receiver.on_segment(true, true);
        assert!(receiver.echo);
        let hides = TcpConfig { receiver_hides: Some(Hides::Marks), ..scalable };
        let mut liar = EcnReceiver::new(&hides);
        assert_eq!((liar.on_segment(false, true), liar.echo), (0, false));
    }
}
