//! When to acknowledge: RFC 5681, section 4.2, as Linux's __tcp_ack_snd_check(),
//! tcp_event_data_recv(), tcp_measure_rcv_mss(), tcp_send_delayed_ack() and tcp_cleanup_rbuf().

use narrows_net::Nanos;
use narrows_traffic::ReceiverAcks;

use super::{NEVER, rto};

/// Linux's TCP_DELACK_MIN and TCP_ATO_MIN.
pub(crate) const DELAY: Nanos = 40_000_000;
/// Linux's TCP_DELACK_MAX.
const DELAY_MAX: Nanos = 200_000_000;
/// Acknowledgements sent at once in the beginning: Linux's TCP_MAX_QUICKACKS.
pub(crate) const QUICK_ACKS: u32 = 16;
/// Bytes that generic receive offload merges at most: Linux's GRO_LEGACY_MAX_SIZE.
const GRO_MAX: u64 = 65_536;
/// Linux's TCP_MSS_DEFAULT, the first guess of the size of full segments.
const FIRST_GUESS: u32 = 536;

/// The delayed acknowledgement of one subflow.
#[derive(Debug)]
pub(crate) struct DelayedAck {
    /// Acknowledgements still to be sent at once: the sender is in slow start.
    quick: u32,
    /// Size of full segments, bytes (Linux: rcv_mss).
    full_segment: u32,
    /// Size of the last segment if it was shorter, else 0 (Linux: last_seg_size).
    short_segment: u32,
    rule: ReceiverAcks,
    /// To be acknowledged once the application has read it (Linux: ICSK_ACK_PUSHED).
    pushed: bool,
    deadline: Nanos,
    /// When data last arrived in order (Linux: lrcvtime); before the first data, when the SYN was
    /// answered.
    last: Nanos,
    /// Expected time between segments (Linux: ato); 0 before the first data.
    interval: Nanos,
    /// Round trip of the handshake, 0 if unknown. A mere receiver takes no further sample.
    rtt: Nanos,
    /// For how long segments are gathered; 0: not.
    gro: Nanos,
    /// The deadline is the end of that.
    gathering: bool,
}

impl Default for DelayedAck {
    fn default() -> Self {
        DelayedAck {
            quick: 0,
            full_segment: FIRST_GUESS,
            short_segment: 0,
            rule: ReceiverAcks::default(),
            pushed: false,
            deadline: NEVER,
            last: 0,
            interval: 0,
            rtt: 0,
            gro: 0,
            gathering: false,
        }
    }
}

impl DelayedAck {
    /// Segments that arrive within `gro` of one that is to be acknowledged at once are acknowledged
    /// with it, as if the network card had handed them over together.
    pub fn new(gro: Nanos, rule: ReceiverAcks) -> Self {
        DelayedAck { gro, rule, ..DelayedAck::default() }
    }

    /// The SYN was answered.
    pub fn on_syn(&mut self, now: Nanos) {
        self.last = now;
    }

    /// The answer to that came.
    pub fn on_third(&mut self, now: Nanos) {
        if self.interval == 0 {
            self.rtt = now - self.last;
        }
    }

    /// A segment of `len` bytes arrived in order; `unacked` bytes wait with it. True if the
    /// acknowledgement is due now: at once in the beginning, at the latest with every second full
    /// segment (more than one full segment waits).
    pub fn on_segment(&mut self, len: u32, psh: bool, unacked: u64, now: Nanos) -> bool {
        self.on_data(now);
        self.measure(len, psh);
        if self.quick > 0
            || self.rule == ReceiverAcks::EveryPacket
            || unacked > u64::from(self.full_segment)
        {
            return self.due(unacked, now);
        }
        let longest = if self.rtt == 0 { DELAY_MAX } else { self.rtt.clamp(DELAY, DELAY_MAX) };
        self.deadline = self.deadline.min(now + self.interval.min(longest));
        false
    }

    /// What is the size of full segments, and is this the end of what the sender has for now?
    /// Linux's tcp_measure_rcv_mss().
    fn measure(&mut self, len: u32, psh: bool) {
        let last = std::mem::take(&mut self.short_segment);
        if len >= self.full_segment {
            self.full_segment = len;
            self.pushed |= psh && self.rule != ReceiverAcks::Linux65;
            return;
        }
        if len >= FIRST_GUESS {
            // Two of the same size: full segments have become smaller.
            if len == last {
                self.full_segment = len;
                return;
            }
            self.short_segment = len;
        }
        self.pushed = true;
    }

    /// An acknowledgement that need not wait: true if it goes out now, not with what is gathered.
    fn due(&mut self, unacked: u64, now: Nanos) -> bool {
        if self.gro == 0 || unacked >= GRO_MAX {
            return true;
        }
        self.deadline = self.deadline.min(now + self.gro);
        self.gathering = true;
        false
    }

    /// Something waits to be acknowledged as soon as the application has read all.
    pub fn is_pushed(&self) -> bool {
        self.pushed
    }

    /// The application has read all, and `unacked` bytes are not acknowledged. True if the
    /// acknowledgement is due now. Linux's tcp_cleanup_rbuf(), with an application that reads
    /// what was gathered at once.
    pub fn on_read(&mut self, unacked: u64, now: Nanos) -> bool {
        std::mem::take(&mut self.pushed) && unacked > 0 && self.due(unacked, now)
    }

    /// Data arrived in order: how far apart do segments come? After a gap longer than a timeout
    /// the sender is in slow start again and needs each acknowledgement (RFC 5681, section 4.1).
    pub fn on_data(&mut self, now: Nanos) {
        let gap = now - self.last;
        self.last = now;
        if gap <= DELAY / 2 && self.interval > 0 {
            self.interval = self.interval / 2 + DELAY / 2;
        } else if self.interval == 0 {
            self.enter_quick(QUICK_ACKS);
        } else if gap < self.interval {
            self.interval = (self.interval / 2 + gap).min(self.rto());
        } else if gap > self.rto() {
            self.quick = self.quick.max(QUICK_ACKS);
        }
    }

    /// The next `acks` acknowledgements go out at once: the sender must hurry. Linux's
    /// tcp_enter_quickack_mode().
    pub fn enter_quick(&mut self, acks: u32) {
        self.quick = self.quick.max(acks);
        self.interval = DELAY;
    }

    /// An acknowledgement was sent.
    pub fn sent(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.interval = DELAY;
            }
        }
        self.deadline = NEVER;
        self.gathering = false;
        self.pushed = false;
    }

    /// The deadline passed: segments come further apart than was thought (Linux's
    /// tcp_delack_timer_handler()).
    pub fn expired(&mut self) {
        if !self.gathering {
            self.interval = (2 * self.interval).min(self.rto());
        }
    }

    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    fn rto(&self) -> Nanos {
        if self.rtt == 0 { rto::RTO_INITIAL } else { self.rtt + (2 * self.rtt).max(rto::RTO_MIN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1448;
    const MS: Nanos = 1_000_000;

    /// A connection of 100 ms, past its quick acknowledgements.
    fn settled() -> DelayedAck {
        let mut delack = DelayedAck::default();
        delack.on_syn(0);
        delack.on_third(100 * MS);
        for _ in 0..16 {
            assert!(delack.on_segment(FULL, false, FULL.into(), 100 * MS));
            delack.sent();
        }
        delack
    }

    #[test]
    fn sixteen_quick_acks_then_every_second_segment_or_40_ms() {
        let mut delack = settled();
        let now = 101 * MS;
        assert!(!delack.on_segment(FULL, false, FULL.into(), now));
        assert_eq!(delack.deadline(), now + DELAY);
        assert!(delack.on_segment(FULL, false, 2 * u64::from(FULL), now));
        delack.sent();
        assert_eq!(delack.deadline(), NEVER);
        // More than a full segment is enough, as Linux counts.
        assert!(!delack.on_segment(FULL, false, FULL.into(), now));
        assert!(delack.on_segment(1, false, u64::from(FULL) + 1, now));
    }

    #[test]
    fn small_segments_wait_for_the_first_deadline() {
        let mut delack = settled();
        assert!(!delack.on_segment(100, false, 100, 101 * MS));
        assert!(!delack.on_segment(100, false, 200, 102 * MS));
        assert_eq!(delack.deadline(), 101 * MS + DELAY);
    }

    /// Segments come every 30 ms and acknowledgements wait a little longer for the second one;
    /// one that waited in vain makes the next wait longer still, but not beyond the round trip.
    #[test]
    fn the_delay_adapts_to_the_gaps_between_segments() {
        let mut delack = settled();
        let wait = |delack: &mut DelayedAck, now| {
            assert!(!delack.on_segment(100, false, 100, now));
            let wait = delack.deadline() - now;
            delack.sent();
            wait
        };
        assert_eq!(wait(&mut delack, 130 * MS), 50 * MS);
        assert_eq!(wait(&mut delack, 160 * MS), 55 * MS);
        delack.expired();
        assert_eq!(wait(&mut delack, 280 * MS), 100 * MS);
        assert_eq!(wait(&mut delack, 281 * MS), 75 * MS);
    }

    /// The sender paused for longer than its timeout of 100 + 200 ms: it starts slowly again.
    #[test]
    fn after_a_long_gap_the_acknowledgements_are_quick_again() {
        let mut delack = settled();
        assert!(!delack.on_segment(FULL, false, FULL.into(), 400 * MS));
        assert!(delack.on_segment(FULL, false, FULL.into(), 701 * MS));
    }

    /// A single full segment in the middle of a transfer waits for a second one, unless every one is
    /// acknowledged.
    #[test]
    fn every_packet_is_acknowledged_where_that_is_the_rule() {
        for (rule, due) in [(ReceiverAcks::Linux66, false), (ReceiverAcks::EveryPacket, true)] {
            let mut delack = DelayedAck { rule, ..settled() };
            for ms in 101..110 {
                assert_eq!(delack.on_segment(FULL, false, FULL.into(), ms * MS), due, "{rule:?}");
                delack.sent();
            }
        }
    }

    /// Once it is read: a full-sized segment with PSH by today's rule, a short one by both; not what
    /// comes without PSH, and nothing twice.
    #[test]
    fn what_was_pushed_is_acknowledged_when_it_is_read() {
        let read = |rule, len, psh| {
            let mut delack = DelayedAck { rule, ..settled() };
            assert!(!delack.on_segment(len, psh, len.into(), 101 * MS));
            let due = delack.on_read(len.into(), 101 * MS);
            assert!(!delack.on_read(len.into(), 101 * MS));
            due
        };
        assert!(read(ReceiverAcks::Linux66, FULL, true));
        assert!(!read(ReceiverAcks::Linux65, FULL, true));
        for rule in [ReceiverAcks::Linux65, ReceiverAcks::Linux66] {
            assert!(!read(rule, FULL, false));
            assert!(read(rule, 100, true));
        }
        let mut delack = settled();
        assert!(!delack.on_segment(FULL, true, FULL.into(), 101 * MS));
        delack.sent();
        assert!(!delack.on_read(0, 101 * MS), "it was acknowledged before it was read");
    }

    /// The second of two equal short segments is what full ones are from now on.
    #[test]
    fn full_segments_may_become_smaller() {
        let mut delack = settled();
        assert!(!delack.on_segment(1000, false, 1000, 101 * MS));
        delack.sent();
        assert!(!delack.on_segment(1000, false, 1000, 102 * MS));
        assert!(!delack.is_pushed());
        assert!(delack.on_segment(1000, false, 2000, 103 * MS));
    }

    /// Segments 10 us apart, gathered for 100 us: the second of each train makes the
    /// acknowledgement due, which then covers ten more; and not more than 64 kB.
    #[test]
    fn gathered_segments_share_an_acknowledgement() {
        let mut delack =
            DelayedAck { interval: DELAY, ..DelayedAck::new(100_000, ReceiverAcks::Linux66) };
        for n in 1..=11 {
            assert!(!delack.on_segment(FULL, false, n * u64::from(FULL), n * 10_000));
        }
        assert_eq!(delack.deadline(), 120_000);
        assert!(delack.on_segment(FULL, false, 46 * u64::from(FULL), 110_000));
    }
}
