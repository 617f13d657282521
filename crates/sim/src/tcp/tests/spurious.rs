//! Reductions that were for nothing, and those that were not.

use super::*;
use crate::tcp::ecn::EcnSender;

impl Bench {
    /// An acknowledgement with these SACK blocks that echoes `echo`; returns how many packets leave.
    fn acknowledge(&mut self, ack: u64, echo: Nanos, blocks: &[(u64, u64)]) -> u64 {
        self.now += MS;
        let offset = |packets: u64| (packets as i64 - ack as i64) as i32 * MSS as i32;
        let mut feedback = Ack { ack: ack * u64::from(MSS), echo, ..Ack::default() };
        for (place, &(from, to)) in feedback.sack.iter_mut().zip(blocks) {
            *place = (offset(from), offset(to));
        }
        self.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
        let sent = self.push();
        self.act(|sender, wire, controller| sender.note_sent(wire, controller));
        sent
    }

    /// Packets 10 to 29 are out, in slow start, since 200 ms.
    fn twenty() -> Bench {
        let mut bench = Bench::established();
        bench.now = 2 * RTT - MS;
        assert_eq!(bench.acknowledge(10, RTT, &[]), 20);
        bench
    }

    fn windows(&self) -> (u32, u32) {
        (self.sender.cwnd(), self.sender.ssthresh())
    }
}

const NEVER_REDUCED: u32 = 0x7fff_ffff;

/// The first acknowledgement after a timeout echoes the timestamp of the original: it was late,
/// and so is everything else. Nothing more is sent again.
#[test]
fn an_original_that_arrives_after_the_timeout_gives_the_window_back() {
    let mut bench = Bench::established();
    bench.timeout();
    assert_eq!(bench.windows(), (1, 5));
    bench.acknowledge(1, RTT, &[]);
    assert_eq!(bench.sender.counters.retransmits, 1);
    assert!(bench.sender.cwnd() >= 10 && bench.sender.ssthresh() == NEVER_REDUCED);
    assert!(bench.sender.in_flight() >= 10, "all is in the network");
}

/// F-RTO found the timeout real: what is acknowledged later, sent once, changes nothing.
#[test]
fn a_timeout_found_real_stays_real() {
    let mut bench = Bench::established();
    bench.timeout();
    bench.now += RTT;
    bench.ack(1, 0, 0);
    bench.now += RTT;
    bench.ack(1, 11, 13);
    bench.now += RTT;
    bench.ack(13, 0, 0);
    assert_eq!((bench.sender.counters.undos, bench.sender.ssthresh()), (0, 5));
}

/// Packet 10 is overtaken by three others and sent again. The original arrives, with all before
/// it, and ends recovery.
#[test]
fn an_original_that_ends_recovery_gives_the_window_back() {
    let mut bench = Bench::twenty();
    bench.now += RTT;
    for to in [12, 13, 14] {
        bench.acknowledge(10, RTT, &[(11, to)]);
    }
    assert_eq!((bench.sender.ssthresh(), bench.sender.counters.retransmits), (10, 1));
    let all = bench.next / u64::from(MSS);
    bench.acknowledge(all, 2 * RTT, &[]);
    assert_eq!(bench.sender.counters.undos, 1);
    assert!(bench.sender.cwnd() >= 20 && bench.sender.ssthresh() == NEVER_REDUCED);
}

/// The same, but a mark was reported during recovery: there was congestion, and the window stays
/// reduced.
#[test]
fn a_mark_in_recovery_prohibits_undo() {
    let mut bench = Bench::twenty();
    bench.now += RTT;
    for to in [12, 13, 14] {
        bench.acknowledge(10, RTT, &[(11, to)]);
    }
    let sack = [(MSS as i32, 5 * MSS as i32), (0, 0), (0, 0)];
    let feedback = Ack { ack: 10 * u64::from(MSS), echo: RTT, sack, ece: true, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    let all = bench.next / u64::from(MSS);
    bench.acknowledge(all, 2 * RTT, &[]);
    assert_eq!((bench.sender.counters.undos, bench.sender.ssthresh()), (0, 10));
}

/// The same, but the acknowledgement of the original is lost. The one of the retransmission ends
/// recovery, and a DSACK after it tells that it was for nothing.
#[test]
fn a_dsack_after_recovery_gives_the_window_back() {
    let mut bench = Bench::twenty();
    bench.now += RTT;
    for to in [12, 13, 14] {
        bench.acknowledge(10, RTT, &[(11, to)]);
    }
    let all = bench.next / u64::from(MSS);
    bench.now += RTT;
    bench.acknowledge(all, bench.now - RTT / 2, &[]);
    assert_eq!((bench.sender.ssthresh(), bench.sender.counters.undos), (10, 0));
    bench.acknowledge(all, bench.now, &[(10, 11)]);
    assert_eq!((bench.windows(), bench.sender.counters.undos), ((20, NEVER_REDUCED), 1));
}

/// Packets 10 and 12 are overtaken, sent again, and come twice. The second's DSACK lies inside a
/// SACK block: it counts, and shows that this path reorders.
#[test]
fn a_dsack_behind_a_gap_counts() {
    let mut bench = Bench::twenty();
    bench.now += RTT;
    bench.acknowledge(10, RTT, &[(11, 12), (13, 14)]);
    bench.acknowledge(10, RTT, &[(13, 16), (11, 12)]);
    // What leaves from here on was sent after the retransmissions and has not arrived yet.
    let all = bench.next / u64::from(MSS);
    bench.acknowledge(10, RTT, &[(13, 22), (11, 12)]);
    assert_eq!((bench.sender.counters.retransmits, bench.sender.board.lost_out()), (2, 2));
    bench.acknowledge(10, RTT, &[(11, all)]);
    bench.now += RTT;
    assert!(!bench.sender.rack.reordering_seen());
    bench.acknowledge(10, RTT, &[(12, 13), (11, all)]);
    assert!(bench.sender.rack.reordering_seen());
    bench.acknowledge(all, bench.now, &[]);
    assert_eq!(bench.sender.counters.undos, 0);
    bench.acknowledge(all, bench.now, &[(10, 11)]);
    assert_eq!(bench.sender.counters.undos, 1);
}

/// Packets 10 to 14 seem lost, and 10 and 11 have been sent again when the original of 10 arrives:
/// so the others may be late too. New data leaves, but nothing is sent again, until it is known
/// (Linux: tcp_try_undo_partial()).
#[test]
fn what_may_be_late_is_not_sent_again() {
    let mut bench = Bench::twenty();
    bench.now += RTT;
    bench.acknowledge(10, RTT, &[(15, 18)]);
    bench.acknowledge(10, RTT, &[(15, 22)]);
    assert_eq!((bench.sender.counters.retransmits, bench.sender.board.lost_out()), (2, 5));
    assert!(bench.acknowledge(11, 2 * RTT, &[(15, 25)]) > 0);
    assert_eq!((bench.sender.counters.retransmits, bench.sender.counters.undos), (2, 0));
    // The original of 11 as well: no retransmission is out any more.
    bench.acknowledge(12, 2 * RTT, &[(15, 25)]);
    assert_eq!((bench.sender.counters.undos, bench.sender.ssthresh()), (1, NEVER_REDUCED));
}

/// Packet 9, the last, is sent again as a probe.
fn probed() -> Bench {
    let mut bench = Bench::established();
    bench.now += RTT;
    let feedback = Ack { ack: 9 * u64::from(MSS), echo: RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, false, wire, controller));
    bench.sender.note_window_use(bench.now);
    bench.now = bench.sender.deadline(bench.now);
    assert!(bench.sender.probe_due(bench.now));
    bench.act(|sender, wire, controller| sender.send_probe(None, wire, controller));
    bench
}

/// The probe repaired the loss and nothing else tells of it: the window is halved when something
/// sent later is acknowledged.
#[test]
fn a_loss_that_a_probe_repaired_halves_the_window() {
    let mut bench = probed();
    bench.push();
    let cwnd = bench.sender.cwnd();
    bench.now += RTT;
    bench.acknowledge(11, bench.now - RTT, &[]);
    assert_eq!(bench.sender.ssthresh(), cwnd / 2);
}

/// That reduction is one as any other: the receiver is told of it (RFC 3168, section 6.1.2).
#[test]
fn a_loss_that_a_probe_repaired_is_reported_to_the_receiver() {
    let mut bench = probed();
    bench.sender.ecn = EcnSender::new(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.push();
    bench.now += RTT;
    let feedback = Ack { ack: 11 * u64::from(MSS), echo: bench.now - RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    assert!(reports_a_reduction(&mut bench));
}

/// Both the last packet and the probe arrived.
#[test]
fn a_needless_probe_costs_no_window() {
    let mut bench = probed();
    bench.push();
    bench.now += RTT;
    bench.acknowledge(10, bench.now - RTT, &[(9, 10)]);
    bench.acknowledge(11, bench.now - RTT, &[]);
    assert_eq!(bench.sender.ssthresh(), NEVER_REDUCED);
}

/// Ten packets are out and a mark halves the window. Returns what can be sent with ECN.
fn marked() -> Bench {
    let mut bench = Bench::with(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.now += RTT;
    let feedback = Ack { ack: MSS.into(), echo: RTT, ece: true, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    bench.push();
    assert_eq!(bench.sender.ssthresh(), 5);
    bench
}

/// Does the next new segment tell of a reduction?
fn reports_a_reduction(bench: &mut Bench) -> bool {
    let mut segment = crate::packet::Segment::default();
    bench.sender.ecn.label(&mut segment, true);
    segment.cwr
}

/// A timeout after a mark is spurious, but the mark was not: nothing counts as lost, and the window
/// stays reduced (RFC 3168, section 6.1.2; Linux: prior_ssthresh is 0).
#[test]
fn a_mark_is_not_undone_with_a_timeout() {
    let mut bench = marked();
    bench.timeout();
    bench.acknowledge(3, RTT, &[]);
    assert_eq!((bench.sender.board.lost_out(), bench.sender.counters.undos), (0, 0));
    assert_eq!(bench.sender.ssthresh(), 5);
    assert!(bench.sender.cwnd() <= 5);
}

/// All that was out at a mark arrives, and then everything else is lost: that is another event.
#[test]
fn a_timeout_in_the_window_after_a_mark_reduces_again() {
    let mut bench = marked();
    let high = bench.sender.high_seq;
    assert!(high < bench.next, "something left since");
    bench.now += RTT;
    bench.ack(high / u64::from(MSS), 0, 0);
    assert_eq!(bench.sender.ssthresh(), 5);
    bench.timeout();
    assert_eq!(bench.sender.ssthresh(), 2);
}

/// A window that was given back was not reduced, so nobody is to acknowledge of it.
#[test]
fn an_undone_reduction_is_not_reported() {
    let mut bench = Bench::with(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.timeout();
    let feedback = Ack { ack: MSS.into(), echo: RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    assert_eq!(bench.sender.counters.undos, 1);
    assert!(!reports_a_reduction(&mut bench));
}

/// The same without DSACK: the second of them is answered by a mere duplicate (RFC 8985, section 7.4.2).
#[test]
fn a_duplicate_shows_that_a_probe_was_needless() {
    let mut bench = probed();
    bench.push();
    bench.now += RTT;
    bench.acknowledge(10, bench.now - RTT, &[]);
    bench.acknowledge(10, bench.now - RTT, &[]);
    bench.acknowledge(11, bench.now - RTT, &[]);
    assert_eq!(bench.sender.ssthresh(), NEVER_REDUCED);
}

/// A probe that came twice says nothing about reordering.
#[test]
fn a_needless_probe_does_not_make_rack_wait_longer() {
    let mut bench = probed();
    bench.sender.rack.reordered();
    bench.now += RTT;
    bench.acknowledge(10, bench.now - RTT, &[(9, 10)]);
    assert_eq!(bench.sender.rack.reo_wnd(false, 0, RTT, 2 * RTT), RTT / 4);
}

/// Two SYNs are lost: the network is in trouble, and the first window is one packet; but not if
/// the first SYN was only late.
#[test]
fn lost_syns_leave_a_window_of_one() {
    for (echo, cwnd) in [(3000 * MS, 1), (0, 10)] {
        let mut bench = Bench::closed(&TcpConfig::default());
        bench.act(|sender, wire, _| sender.open(false, false, sender.route(), wire));
        for ms in [1000, 3000] {
            assert_eq!(bench.sender.deadline(bench.now), ms * MS);
            bench.now = ms * MS;
            bench.act(|sender, wire, controller| sender.on_timer(wire, controller));
        }
        bench.now += RTT;
        bench.act(|sender, wire, controller| assert!(sender.on_syn_ack(echo, wire, controller)));
        assert_eq!(bench.sender.cwnd(), cwnd);
    }
}
