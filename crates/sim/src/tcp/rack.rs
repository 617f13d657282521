//! RACK loss detection, RFC 8985: a segment is lost when one sent later has arrived and its own
//! time is up.

use narrows_net::Nanos;

/// SACKed segments that make loss likely without regard to time: RFC 8985's DupThresh.
const DUP_THRESH: u32 = 3;
/// Recoveries for which a larger reordering window lasts: Linux's TCP_RACK_RECOVERY_THRESH.
const PERSIST: u8 = 16;

/// The newest delivered segment and what is known of reordering.
#[derive(Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts: when the newest delivered segment was sent.
    sent: Nanos,
    /// RACK.end_seq: its end.
    end: u64,
    /// RACK.rtt: its round trip.
    rtt: Nanos,
    /// Reordering window in quarters of the smallest RTT (RACK.reo_wnd_mult), above 1.
    more_steps: u8,
    /// Recoveries until it is 1 again (RACK.reo_wnd_persist).
    persist: u8,
    /// No second step until this byte is acknowledged (RACK.dsack_round).
    round_end: u64,
    reordering_seen: bool,
    /// Some segment has been delivered since the last look.
    advanced: bool,
}

impl Rack {
    /// A segment ending at `end`, last sent at `sent`, arrived. RFC 8985, section 6.2, step 2.
    pub fn delivered(
        &mut self,
        sent: Nanos,
        end: u64,
        retransmitted: bool,
        now: Nanos,
        min_rtt: Nanos,
    ) {
        let rtt = now - sent;
        // The acknowledgement may belong to the original: too soon for the retransmission.
        if retransmitted && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (sent, end) > (self.sent, self.end) {
            (self.sent, self.end) = (sent, end);
        }
    }

    /// A segment arrived behind one above it without having been sent again. Step 3.
    pub fn reordered(&mut self) {
        self.reordering_seen = true;
    }

    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// A segment was sent again for nothing: wait longer, by one step per round trip. Step 4.
    pub fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if una >= self.round_end {
            self.round_end = nxt;
            self.more_steps = self.more_steps.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// A recovery is over that was not for nothing. Step 4.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.more_steps = 0;
        }
    }

    /// Has a segment been delivered since the last call?
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Lets the next look find something though nothing was delivered: time has passed.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Was a segment sent before the newest delivered one? Ties go by sequence.
    pub fn sent_before(&self, sent: Nanos, end: u64) -> bool {
        (sent, end) < (self.sent, self.end)
    }

    /// How long to wait still for a segment before it counts as lost.
    pub fn remaining(&self, sent: Nanos, reo_wnd: Nanos, now: Nanos) -> Nanos {
        (sent + self.rtt + reo_wnd).saturating_sub(now)
    }

    /// The reordering window. Step 4: none while no reordering has been seen and loss is likely;
    /// otherwise steps of a quarter of the smallest RTT, the smoothed RTT at most.
    pub fn reo_wnd(&self, recovering: bool, sacked_out: u32, min_rtt: Nanos, srtt: Nanos) -> Nanos {
        if !self.reordering_seen && (recovering || sacked_out >= DUP_THRESH) {
            return 0;
        }
        (min_rtt / 4 * (1 + Nanos::from(self.more_steps))).min(srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::{Arrival, Scoreboard};

    const MS: Nanos = 1_000_000;
    const MSS: u64 = 1000;
    const RTT: Nanos = 100 * MS;

    /// A sender without a window: sends `n` segments 1 ms apart, takes SACKs, asks RACK.
    struct Bench {
        board: Scoreboard,
        rack: Rack,
        recovering: bool,
    }

    impl Bench {
        fn send(segments: u64) -> Bench {
            let mut board = Scoreboard::default();
            for n in 0..segments {
                board.send_new(n * MSS, MSS as u32, n * MS);
            }
            Bench { board, rack: Rack::default(), recovering: false }
        }

        /// SACK of segments `from..to`, cumulative ACK up to segment `ack`; returns what RACK
        /// finds lost and how long it waits.
        fn ack(&mut self, ack: u64, from: u64, to: u64, now: Nanos) -> (u32, Option<Nanos>) {
            let block = (from < to).then_some((from * MSS, to * MSS)).into_iter();
            let arrival = Arrival::new(now, RTT, Nanos::MAX);
            self.board.acknowledge(ack * MSS, block, arrival, &mut self.rack);
            self.look(now)
        }

        fn look(&mut self, now: Nanos) -> (u32, Option<Nanos>) {
            let sacked = self.board.sacked_out();
            let reo_wnd = self.rack.reo_wnd(self.recovering, sacked, RTT, RTT);
            let found = self.board.detect_loss(&self.rack, reo_wnd, now);
            self.board.check();
            self.recovering |= found.0 > 0;
            found
        }
    }

    /// Segment 0 is lost. The first SACKs could be reordering: it waits a quarter of the RTT; the
    /// third makes loss likely.
    #[test]
    fn three_sacks_make_a_gap_lost_at_once() {
        let mut bench = Bench::send(5);
        // Segment 1 took 100 ms, segment 0 was sent 1 ms before it: 25 - 1 ms are left.
        assert_eq!(bench.ack(0, 1, 2, RTT + MS), (0, Some(24 * MS)));
        assert_eq!(bench.ack(0, 1, 3, RTT + 2 * MS), (0, Some(23 * MS)));
        assert_eq!(bench.ack(0, 1, 4, RTT + 3 * MS), (1, None));
        assert_eq!(bench.board.in_flight(), 1);
    }

    /// Too few segments for three SACKs: the reordering timer finds the loss.
    #[test]
    fn a_loss_near_the_tail_waits_for_the_reordering_window() {
        let mut bench = Bench::send(2);
        let (_, wait) = bench.ack(0, 1, 2, RTT + MS);
        let due = RTT + MS + wait.expect("the timer runs");
        assert_eq!(bench.look(due - 1).0, 0);
        assert_eq!(bench.look(due), (1, None));
    }

    /// In recovery loss is likely, so one SACK is enough for a later gap.
    #[test]
    fn in_recovery_a_gap_is_lost_at_once() {
        let mut bench = Bench::send(5);
        bench.recovering = true;
        assert_eq!(bench.ack(0, 1, 2, RTT + MS), (1, None));
    }

    /// A timeout takes what has been out for a round trip, not what left a moment ago.
    #[test]
    fn a_timeout_spares_what_was_just_sent() {
        let mut bench = Bench::send(3);
        bench.ack(1, 0, 0, RTT);
        bench.board.send_new(3 * MSS, MSS as u32, 3 * RTT - 10 * MS);
        assert_eq!(bench.board.mark_timeout(Some(&bench.rack), 3 * RTT), 2);
        assert_eq!(bench.board.in_flight(), 1);
    }

    /// The first segment is what the timer is for, though it was sent again a moment ago.
    #[test]
    fn a_timeout_takes_the_first_segment_in_any_case() {
        let mut bench = Bench::send(5);
        assert_eq!(bench.ack(0, 1, 4, RTT + 3 * MS), (1, None));
        bench.board.retransmit_next(3 * RTT - 10 * MS);
        assert_eq!(bench.board.mark_timeout(Some(&bench.rack), 3 * RTT), 2);
        assert_eq!(bench.board.in_flight(), 0);
    }

    /// Segment 0 overtaken by three others and then delivered: from there on RACK waits a quarter
    /// of the RTT also after three SACKs, and a segment that is only late is not lost.
    #[test]
    fn reordering_once_seen_widens_the_window() {
        let mut bench = Bench::send(10);
        bench.ack(0, 1, 3, RTT + 2 * MS);
        bench.ack(3, 0, 0, RTT + 2 * MS);
        assert!(bench.rack.reordering_seen());
        // Segment 3 is late; 4..9 arrive. It is due 25 ms after the time of its successors.
        let (lost, wait) = bench.ack(3, 4, 9, RTT + 8 * MS);
        assert_eq!((lost, wait), (0, Some(20 * MS)));
        bench.ack(9, 0, 0, RTT + 20 * MS);
        assert_eq!((bench.look(RTT + 60 * MS).0, bench.board.lost_out()), (0, 0));
    }

    /// A gap sent again and lost again: what was sent after the retransmission arrives, so it is
    /// lost too, without a timeout.
    #[test]
    fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
        let mut bench = Bench::send(4);
        assert_eq!(bench.ack(0, 1, 4, RTT + 3 * MS), (1, None));
        let again = RTT + 4 * MS;
        let segment = bench.board.retransmit_next(again).expect("it waits");
        assert_eq!((segment.seq, bench.board.in_flight()), (0, 1));
        assert!(bench.board.retransmit_next(again).is_none());
        bench.board.send_new(4 * MSS, MSS as u32, again + MS);
        bench.look(again + MS);
        assert_eq!(bench.board.in_flight(), 2);
        assert_eq!(bench.ack(0, 1, 5, again + MS + RTT), (1, None));
        assert_eq!((bench.board.lost_out(), bench.board.in_flight()), (1, 0));
        assert_eq!(bench.board.retransmit_next(again + 2 * RTT).map(|r| r.seq), Some(0));
        // It arrives at last.
        bench.ack(5, 0, 0, again + 3 * RTT);
        assert_eq!((bench.board.packets_out(), bench.board.in_flight()), (0, 0));
    }

    /// RFC 8985, section 3.4: P1, P2 and P3 are lost. The probe is P3 again; its SACK shows that P1
    /// and P2 are lost; P1 is lost once more, which the SACK of P2 shows.
    #[test]
    fn the_example_of_rfc_8985() {
        let mut bench = Bench::send(4);
        assert_eq!(bench.ack(1, 0, 0, RTT), (0, None));
        let probe = 3 * RTT;
        assert_eq!(bench.board.retransmit_last(probe).seq, 3 * MSS);
        bench.board.check();
        let acked_at = probe + RTT;
        assert_eq!(bench.ack(1, 3, 4, acked_at), (2, None));
        let again: Vec<_> =
            (1..3).map(|n| bench.board.retransmit_next(acked_at + n).map(|r| r.seq)).collect();
        assert_eq!(again, [Some(MSS), Some(2 * MSS)]);
        assert_eq!(bench.ack(1, 2, 4, acked_at + RTT + MS), (1, None));
        assert_eq!(bench.board.retransmit_next(acked_at + RTT + MS).map(|r| r.seq), Some(MSS));
        assert_eq!(bench.ack(4, 0, 0, acked_at + 3 * RTT), (0, None));
        assert_eq!(bench.board.packets_out(), 0);
    }

    /// While a mark is answered a probe may be due though the last segment was SACKed: it is not
    /// outstanding for that, and not lost if something sent later arrives.
    #[test]
    fn a_probe_of_a_sacked_segment_is_not_outstanding() {
        let mut bench = Bench::send(3);
        assert_eq!(bench.ack(0, 2, 3, RTT + 2 * MS), (0, Some(24 * MS)));
        assert_eq!(bench.board.retransmit_last(2 * RTT).seq, 2 * MSS);
        bench.board.check();
        bench.board.send_new(3 * MSS, MSS as u32, 3 * RTT);
        assert_eq!(bench.ack(0, 3, 4, 4 * RTT), (2, None));
    }

    /// Section 6.2, step 4: each round trip with a needless retransmission adds a quarter of the
    /// smallest RTT, up to the smoothed one; 16 recoveries without end that.
    #[test]
    fn the_window_grows_with_needless_retransmissions() {
        let mut rack = Rack::default();
        let window = |rack: &Rack| rack.reo_wnd(false, 0, RTT, 2 * RTT) / MS;
        assert_eq!(window(&rack), 25);
        rack.on_duplicate(0, 10);
        rack.on_duplicate(5, 15);
        assert_eq!(window(&rack), 50, "one step in a round trip");
        rack.on_duplicate(10, 20);
        assert_eq!(window(&rack), 75);
        for round in 2..20 {
            rack.on_duplicate(10 * round, 10 * round + 10);
        }
        assert_eq!(window(&rack), 200);
        (0..15).for_each(|_| rack.recovered());
        assert_eq!(window(&rack), 200);
        rack.recovered();
        assert_eq!(window(&rack), 25);
    }

    /// The acknowledgement of a retransmission comes within less than the smallest RTT: it must
    /// be of the original, and says nothing about when the retransmission arrived.
    #[test]
    fn an_ack_too_early_for_the_retransmission_does_not_advance_rack() {
        let mut bench = Bench::send(6);
        assert_eq!(bench.ack(0, 1, 4, RTT + 3 * MS), (1, None));
        bench.board.retransmit_next(RTT + 4 * MS);
        bench.rack.take_advanced();
        let arrival = Arrival::new(RTT + 10 * MS, RTT, Nanos::MAX);
        bench.board.acknowledge(4 * MSS, [].into_iter(), arrival, &mut bench.rack);
        assert!(!bench.rack.take_advanced());
    }

    /// The same, late enough for the retransmission: but the acknowledgement echoes the timestamp
    /// of the original.
    #[test]
    fn an_echo_of_the_original_does_not_advance_rack() {
        let mut bench = Bench::send(6);
        assert_eq!(bench.ack(0, 1, 4, RTT + 3 * MS), (1, None));
        bench.board.retransmit_next(RTT + 4 * MS);
        bench.rack.take_advanced();
        let arrival = Arrival::new(2 * RTT + 10 * MS, RTT, MS);
        bench.board.acknowledge(4 * MSS, [].into_iter(), arrival, &mut bench.rack);
        assert!(!bench.rack.take_advanced());
    }
}
