//! The receiving end of a subflow: what has arrived, what to acknowledge and when.

use std::collections::VecDeque;

use narrows_net::{Nanos, prefetch};
use narrows_traffic::{Hides, TcpConfig};

use super::delack::{DelayedAck, QUICK_ACKS};
use super::ecn::EcnReceiver;
use crate::mptcp::reassembly::Reassembly;
use crate::packet::{Ack, MAX_SACK_BLOCKS, Segment};
use crate::ranges::Ranges;

/// The receiver of one subflow.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// Next byte expected.
    next: u64,
    /// `next` at the last acknowledgement sent.
    acked: u64,
    /// None before the first segment that was not the next.
    disorder: Option<Box<Disorder>>,
    /// TS.Recent of RFC 7323.
    echo: Nanos,
    ecn: EcnReceiver,
    /// It misbehaves: what was lost is as if it had come.
    hides_losses: bool,
    pub delack: DelayedAck,
}

/// What came and was not next.
#[derive(Debug, Default)]
struct Disorder {
    out_of_order: Ranges,
    /// The ranges that last received a segment, the newest first.
    blocks: VecDeque<(u64, u64)>,
    /// What waits out of order, in the order of `seq`. Only kept for MPTCP: of plain TCP the
    /// mapping to data sequence is the identity.
    held: VecDeque<Held>,
    /// A segment that came twice, to be reported with the next acknowledgement (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

/// A segment that waits behind a gap of its subflow.
#[derive(Debug)]
struct Held {
    seq: u64,
    dsn: u64,
    len: u32,
    arrived: Nanos,
}

impl Receiver {
    /// A receiver that acknowledges as `tcp` says.
    pub fn new(tcp: &TcpConfig) -> Self {
        let delack = DelayedAck::new(tcp.gro, tcp.receiver_acks);
        let hides_losses = tcp.receiver_hides == Some(Hides::Losses);
        Receiver { ecn: EcnReceiver::new(tcp), hides_losses, delack, ..Receiver::default() }
    }

    /// Data will arrive: begins to load what is out of order, if anything is.
    pub fn prefetch(&self) {
        let Some(disorder) = &self.disorder else { return };
        disorder.out_of_order.prefetch();
        if let (Some(held), Some(block)) = (disorder.held.back(), disorder.blocks.front()) {
            prefetch(held, size_of_val(held));
            prefetch(block, size_of_val(block));
        }
    }

    /// Nothing waits for a segment before it.
    fn is_in_order(&self) -> bool {
        self.disorder.as_ref().is_none_or(|disorder| disorder.out_of_order.is_empty())
    }

    /// Must what waits to be acknowledged be so before a segment is taken that is marked if `ce`?
    pub fn must_acknowledge_before(&self, ce: bool) -> bool {
        self.acked < self.next && self.ecn.turns(ce)
    }

    /// Takes a segment, marked if `ce`, and hands what is in order to the connection. True if an
    /// acknowledgement is due at once.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        ce: bool,
        now: Nanos,
        multipath: bool,
        data: &mut Reassembly,
    ) -> bool {
        let Segment { seq, dsn, len, sent, cwr, psh, .. } = *segment;
        let end = seq + u64::from(len);
        let quick = self.ecn.on_segment(cwr, ce);
        if quick > 0 {
            self.delack.enter_quick(quick);
        }
        // RFC 7323, section 4.3: the echo is of the segment that the next ACK acknowledges first,
        // so that the sender's sample contains the delay of the acknowledgement.
        // It never goes back, though an older segment may come later.
        if seq <= self.acked {
            self.echo = self.echo.max(sent);
        }
        // A window probe, or all of it has arrived before: something was sent again for nothing, or
        // acknowledgements were lost. Linux's tcp_data_queue() hurries with its answers then.
        if end <= self.next {
            if len > 0 {
                self.disorder.get_or_insert_default().duplicate = Some((seq, end));
                self.delack.enter_quick(QUICK_ACKS);
            }
            return true;
        }
        if self.hides_losses && seq > self.next {
            self.next = seq;
            data.insert_range(data.next(), dsn.max(data.next()));
        }
        if seq > self.next {
            self.hold(segment, multipath, now);
            return true;
        }
        debug_assert_eq!(seq, self.next, "segments are sent again in their first limits");
        self.next = end;
        if multipath {
            data.insert_mapped(dsn, len, now, now);
        } else {
            data.insert(dsn, len);
        }
        if self.is_in_order() {
            // The window of a sender that has just reduced it may be so small that it waits for this
            // acknowledgement (Linux: tcp_ecn_accept_cwr()).
            return self.delack.on_segment(len, psh, self.next - self.acked, now) || cwr;
        }
        self.delack.on_data(now);
        self.fill(multipath, now, data);
        // RFC 5681, section 4.2: at once when a gap is filled, in part or in whole.
        true
    }

    /// Stores a segment beyond a gap.
    fn hold(&mut self, segment: &Segment, multipath: bool, now: Nanos) {
        let end = segment.seq + u64::from(segment.len);
        let Disorder { out_of_order, blocks, held, duplicate } =
            &mut **self.disorder.get_or_insert_default();
        let (range, new) = out_of_order.insert(segment.seq, end);
        if new == 0 {
            *duplicate = Some((segment.seq, end));
        } else if multipath {
            let place = match held.back() {
                Some(last) if last.seq > segment.seq => {
                    held.partition_point(|s| s.seq < segment.seq)
                }
                _ => held.len(),
            };
            let Segment { seq, dsn, len, .. } = *segment;
            held.insert(place, Held { seq, dsn, len, arrived: now });
        }
        // RFC 2018, section 4: the first block is the one with the newest segment.
        blocks.retain(|b| b.1 < range.0 || b.0 > range.1);
        blocks.truncate(MAX_SACK_BLOCKS - 1);
        blocks.push_front(range);
    }

    /// A gap was filled: hands on what follows it.
    fn fill(&mut self, multipath: bool, now: Nanos, data: &mut Reassembly) {
        let Some(Disorder { out_of_order, blocks, held, .. }) = self.disorder.as_deref_mut() else {
            return;
        };
        let from = self.next;
        self.next = out_of_order.advance(from);
        if multipath {
            while let Some(segment) = held.front().filter(|s| s.seq < self.next) {
                data.insert_mapped(segment.dsn, segment.len, segment.arrived, now);
                held.pop_front();
            }
        } else if self.next > from {
            data.insert_range(from, self.next);
        }
        blocks.retain(|b| b.1 > self.next);
    }

    /// The application has read all that is in order, and nothing else waits on the connection: true
    /// if an acknowledgement is due at once.
    pub fn on_read(&mut self, now: Nanos) -> bool {
        self.is_in_order() && self.delack.on_read(self.next - self.acked, now)
    }

    /// The acknowledgement to send now.
    pub fn acknowledge(&mut self, data: &mut Reassembly) -> Ack {
        self.acked = self.next;
        self.delack.sent();
        Ack {
            ack: self.next,
            data_ack: data.next(),
            edge: data.advertise(),
            echo: self.echo,
            sack: self.sack(),
            ece: self.ecn.echo,
            ..Ack::default()
        }
    }

    /// The SACK blocks: a duplicate first.
    fn sack(&mut self) -> [(i32, i32); MAX_SACK_BLOCKS] {
        let mut sack = [(0, 0); MAX_SACK_BLOCKS];
        let Some(disorder) = self.disorder.as_deref_mut() else { return sack };
        let Disorder { blocks, duplicate, .. } = disorder;
        if blocks.is_empty() && duplicate.is_none() {
            return sack;
        }
        let offset = |seq: u64| {
            let offset = seq.wrapping_sub(self.next) as i64;
            offset.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let blocks = duplicate.iter().chain(&*blocks);
        for (place, &(start, end)) in sack.iter_mut().zip(blocks) {
            *place = (offset(start), offset(end));
        }
        *duplicate = None;
        sack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn arrive(receiver: &mut Receiver, data: &mut Reassembly, number: u64) -> Option<Ack> {
        let seq = number * u64::from(MSS);
        let segment = Segment { seq, dsn: seq, len: MSS, sent: number, ..Segment::default() };
        receiver.on_segment(&segment, false, 0, false, data).then(|| receiver.acknowledge(data))
    }

    fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
        ack.blocks().map(|(s, e)| (s / u64::from(MSS), e / u64::from(MSS))).collect()
    }

    #[test]
    fn three_sack_blocks_the_newest_first() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        arrive(&mut receiver, &mut data, 0);
        let mut last = Ack::default();
        for number in [2, 4, 6, 8] {
            last =
                arrive(&mut receiver, &mut data, number).expect("disorder is acknowledged at once");
        }
        assert_eq!(last.ack, u64::from(MSS));
        assert_eq!(blocks(&last), [(8, 9), (6, 7), (4, 5)]);
        // A segment between two ranges merges them, and the merged range comes first.
        let ack = arrive(&mut receiver, &mut data, 5).unwrap();
        assert_eq!(blocks(&ack), [(4, 7), (8, 9)]);
        // The first gap is filled: the rest stays.
        let ack = arrive(&mut receiver, &mut data, 1).unwrap();
        assert_eq!(ack.ack, 3 * u64::from(MSS));
        assert_eq!(blocks(&ack), [(4, 7), (8, 9)]);
        assert_eq!(data.next(), 3 * u64::from(MSS));
    }

    #[test]
    fn a_receiver_that_hides_losses_acknowledges_them() {
        let hides = TcpConfig { receiver_hides: Some(Hides::Losses), ..TcpConfig::default() };
        let mut receiver = Receiver::new(&hides);
        let mut data = Reassembly::new(1 << 20);
        let ack = [0, 3, 7].map(|number| arrive(&mut receiver, &mut data, number).unwrap());
        assert_eq!(ack.map(|ack| (ack.ack, ack.data_ack)), [1, 4, 8].map(|n| (1000 * n, 1000 * n)));
        assert!(ack.iter().all(|ack| blocks(ack).is_empty()));
    }

    /// RFC 7323, section 4.3: a delayed ACK echoes the first segment it acknowledges; a
    /// segment behind a gap echoes nothing new.
    #[test]
    fn the_echo_is_of_the_first_segment_acknowledged() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        for number in 0..16 {
            let ack = arrive(&mut receiver, &mut data, number).expect("quick");
            assert_eq!(ack.echo, number);
        }
        assert!(arrive(&mut receiver, &mut data, 16).is_none());
        assert_eq!(arrive(&mut receiver, &mut data, 17).unwrap().echo, 16);
        assert_eq!(arrive(&mut receiver, &mut data, 19).unwrap().echo, 16);
    }

    /// RFC 2883, section 4: the duplicate is the first block, once; below the cumulative ACK it
    /// stands alone, above it the block that contains it follows.
    #[test]
    fn a_duplicate_is_reported_in_the_first_block() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        let mut ack = |number| arrive(&mut receiver, &mut data, number).expect("at once");
        ack(0);
        assert_eq!(blocks(&ack(0)), [(0, 1)]);
        assert_eq!(blocks(&ack(1)), []);
        for number in [4, 5, 7] {
            ack(number);
        }
        assert_eq!(blocks(&ack(4)), [(4, 5), (4, 6), (7, 8)]);
        assert_eq!(blocks(&ack(0)), [(0, 1), (4, 6), (7, 8)]);
        assert_eq!(blocks(&ack(8)), [(7, 9), (4, 6)]);
    }

    /// Past the quick acknowledgements every second segment is acknowledged. The first mark brings
    /// two at once, the news of the reduction one.
    #[test]
    fn marks_and_the_news_of_a_reduction_are_acknowledged_at_once() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        let mut acked = |number: u64, ce, cwr| {
            let seq = number * u64::from(MSS);
            let segment = Segment { seq, dsn: seq, len: MSS, cwr, ..Segment::default() };
            let due = receiver.on_segment(&segment, ce, 0, false, &mut data);
            due && receiver.acknowledge(&mut data).ack > 0
        };
        (0..16).for_each(|number| assert!(acked(number, false, false)));
        let marked = [16, 17, 18, 19].map(|number| acked(number, number == 16, false));
        assert_eq!(marked, [true, true, false, true]);
        let answered = [20, 21, 22].map(|number| acked(number, false, number == 20));
        assert_eq!(answered, [true, false, true]);
    }

    /// RFC 8257, section 3.2: no acknowledgement covers marked and unmarked segments.
    #[test]
    fn a_scalable_sender_is_told_apart_what_was_marked_and_what_was_not() {
        let scalable = TcpConfig { ecn: true, scalable: true, ..TcpConfig::default() };
        let mut receiver = Receiver::new(&scalable);
        let mut data = Reassembly::new(1 << 20);
        let mut acks = Vec::new();
        // Past the quick acknowledgements, two of four, out of step with the pairs that wait together.
        let marked = |number: u64| number > 16 && (number + 1) % 4 < 2;
        for number in 0..30 {
            let seq = number * u64::from(MSS);
            let segment = Segment { seq, dsn: seq, len: MSS, ..Segment::default() };
            let ce = marked(number);
            if receiver.must_acknowledge_before(ce) {
                acks.push(receiver.acknowledge(&mut data));
            }
            if receiver.on_segment(&segment, ce, 0, false, &mut data) {
                acks.push(receiver.acknowledge(&mut data));
            }
        }
        let mut from = 0;
        for ack in acks {
            let covered = from / u64::from(MSS)..ack.ack / u64::from(MSS);
            assert!(covered.clone().all(|n| ack.ece == marked(n)), "{covered:?}");
            from = ack.ack;
        }
        assert!(from >= 29 * u64::from(MSS));
    }

    /// RFC 7323, section 4.3: TS.Recent never goes back.
    #[test]
    fn an_old_segment_does_not_turn_the_echo_back() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        let echoes = [0, 1, 0].map(|number| arrive(&mut receiver, &mut data, number).unwrap().echo);
        assert_eq!(echoes, [0, 1, 1]);
    }

    #[test]
    fn a_duplicate_is_acknowledged_at_once_and_delivered_once() {
        let mut receiver = Receiver::default();
        let mut data = Reassembly::new(1 << 20);
        for number in [0, 1, 1, 3, 3, 2] {
            assert!(arrive(&mut receiver, &mut data, number).is_some());
        }
        assert_eq!(data.next(), 4 * u64::from(MSS));
    }
}
