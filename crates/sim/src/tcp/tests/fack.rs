//! Loss detection by sequence: [`LossDetection::Fack`].

use narrows_traffic::LossDetection;

use super::*;

/// Ten packets are out.
fn established() -> Bench {
    let tcp = TcpConfig { loss_detection: LossDetection::Fack, ..TcpConfig::default() };
    let mut bench = Bench::with(&tcp);
    bench.now += RTT;
    bench
}

/// The third packet above a hole that is SACKed shows that it is lost.
#[test]
fn three_sacks_above_a_hole_are_proof() {
    let mut bench = established();
    for (to, retransmits) in [(2, 0), (3, 0), (4, 1)] {
        bench.ack(0, 1, to);
        assert_eq!(bench.sender.counters.retransmits, retransmits, "SACK up to {to}");
    }
    assert_eq!((bench.sender.phase, bench.sender.ssthresh()), (Phase::Recovery, 5));
}

/// A packet that two others overtook is not lost, however late it comes: no timer waits for it, where RACK
/// gives it a quarter of a round trip.
#[test]
fn a_packet_that_two_others_overtook_is_only_late() {
    let mut bench = established();
    bench.ack(0, 1, 2);
    bench.ack(0, 1, 3);
    assert_eq!(bench.sender.reo_at, NEVER);
    bench.now += RTT;
    bench.ack(3, 0, 0);
    assert_eq!((bench.sender.counters.retransmits, bench.sender.phase), (0, Phase::Open));
    assert!(bench.sender.cwnd() > 10, "and the window has grown");
}

/// The first four packets are lost. The SACK of the fifth is three above the first two (itself, the
/// fourth, the third), so these are lost at once; of the others the next SACKs decide.
#[test]
fn the_distance_counts_and_not_how_many_were_sacked() {
    let mut bench = established();
    let lost = [5, 6, 7, 8].map(|to| {
        bench.ack(0, 4, to);
        bench.sender.board.lost_out()
    });
    assert_eq!(lost, [2, 3, 4, 4]);
}

/// Packet 0 is sent again and lost again. What was sent before that may arrive; the SACK of a packet
/// sent after it shows the second loss.
#[test]
fn a_lost_retransmission_is_found_by_newer_data() {
    let mut bench = established();
    let limited = [2, 3].map(|to| bench.ack(0, 1, to));
    assert_eq!((limited, bench.next), ([1, 1], 12 * u64::from(MSS)), "packets 10 and 11");
    bench.ack(0, 1, 4);
    assert_eq!(bench.sender.counters.retransmits, 1);
    for to in 5..=12 {
        bench.ack(0, 1, to);
    }
    assert!(bench.next > 12 * u64::from(MSS), "packet 12 left after the retransmission");
    assert_eq!(bench.sender.counters.retransmits, 1);
    bench.now += RTT;
    bench.ack(0, 1, 13);
    assert_eq!(bench.sender.counters.retransmits, 2);
    assert_eq!(bench.sender.ssthresh(), 5, "the same congestion event");
}

/// In recovery a second hole comes first, with one packet above it: the next SACK of it is enough.
#[test]
fn in_recovery_a_duplicate_is_enough() {
    let mut bench = established();
    // 0 and 8 are lost.
    for to in 2..=8 {
        bench.ack(0, 1, to);
    }
    let retransmits = bench.sender.counters.retransmits;
    bench.now += RTT;
    bench.ack(8, 9, 10);
    assert_eq!(bench.sender.counters.retransmits, retransmits, "it advances");
    bench.ack(8, 9, 10);
    assert_eq!(bench.sender.counters.retransmits, retransmits, "it says nothing new");
    bench.ack(8, 9, 11);
    assert_eq!(bench.sender.counters.retransmits, retransmits + 1);
}

/// A timeout takes everything that was not SACKed, also what left a moment ago.
#[test]
fn a_timeout_takes_all() {
    let mut bench = established();
    bench.ack(0, 1, 2);
    let out = bench.sender.packets_out();
    assert_eq!(bench.timeout(), 1, "a window of one");
    let board = &bench.sender.board;
    assert_eq!((board.lost_out(), board.sacked_out()), (out - 1, 1));
}
