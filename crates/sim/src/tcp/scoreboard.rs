//! The segments in flight: what was acknowledged, selectively acknowledged, lost and sent again.
//!
//! Segments lie in a queue in the order of their bytes. A second order, that of their last
//! transmission, runs through them as a linked list (Linux: tcp_tsorted_anchor): RACK walks it
//! from the oldest and stops early. No acknowledgement scans the whole queue.

use std::collections::VecDeque;

use narrows_net::{Nanos, prefetch};

use super::rack::Rack;
use super::rate_sample::{Newest, RateSampler, Stamp};
use crate::packet::MAX_SACK_BLOCKS;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Sent again since it was last marked lost.
const RETRANS: u8 = 4;
const EVER_RETRANS: u8 = 8;

/// End of the list.
const NIL: u32 = u32::MAX;

/// A segment in flight.
#[derive(Debug)]
#[repr(align(64))]
struct Segment {
    seq: u64,
    dsn: u64,
    sent: Nanos,
    len: u32,
    prev: u32,
    next: u32,
    stamp: Stamp,
    flags: u8,
}

const _: () = assert!(size_of::<Segment>() == 64, "a segment fills one cache line");

impl Segment {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// What an acknowledgement newly delivered.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// Segments newly acknowledged, cumulatively or selectively.
    pub packets: u32,
    /// Their payload bytes.
    pub bytes: u64,
    /// The cumulative ACK advanced.
    pub una_advanced: bool,
    /// Some of the cumulatively acknowledged segments had been sent again.
    pub retrans_acked: bool,
    /// First and last time of transmission of the never retransmitted segments that were
    /// cumulatively acknowledged, and of those that were selectively.
    pub acked_sent: Option<(Nanos, Nanos)>,
    pub sacked_sent: Option<(Nanos, Nanos)>,
    /// The one of all of them that was sent last.
    pub newest: Option<Newest>,
    /// A segment came twice.
    pub duplicate: Option<Duplicate>,
}

impl Delivered {
    /// Something sent before `time`, once, is newly known to have arrived.
    pub fn sent_before(&self, time: Nanos) -> bool {
        let before = |sent: Option<(Nanos, Nanos)>| sent.is_some_and(|(first, _)| first < time);
        before(self.acked_sent) || before(self.sacked_sent)
    }
}

/// A segment that came twice: the first block of an acknowledgement said so (RFC 2883).
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub end: u64,
    /// It had been sent again, or is acknowledged so that nobody knows.
    pub retransmitted: bool,
    /// It waits behind a gap and had been sent again: the original came late.
    pub late: bool,
}

/// When segments arrived, and before what.
pub(crate) struct Arrival {
    now: Nanos,
    min_rtt: Nanos,
    /// What was sent then or later is not what the acknowledgement echoes.
    after_echo: Nanos,
    /// End of the highest segment SACKed before this acknowledgement.
    prior_highest: u64,
}

impl Arrival {
    /// An acknowledgement came whose echo is a timestamp from before `after_echo`.
    pub fn new(now: Nanos, min_rtt: Nanos, after_echo: Nanos) -> Self {
        Arrival { now, min_rtt, after_echo, prior_highest: 0 }
    }
}

/// The bytes of a segment that is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmit {
    pub seq: u64,
    pub dsn: u64,
    pub len: u32,
}

/// The segments in flight of one subflow.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Segment>,
    /// Number of the first segment of the queue; numbers wrap.
    base: u32,
    una: u64,
    nxt: u64,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// Ends of the list by time of transmission: outstanding segments, neither SACKed nor lost.
    oldest: u32,
    newest: u32,
    /// No segment below this number waits for its retransmission.
    hint: u32,
    /// End of the highest SACKed segment (Linux: fack).
    highest_sacked: u64,
    /// When the newest of all that counted as lost had left.
    lost_sent: Nanos,
    /// SACK blocks of the last acknowledgement: their insides need no second look.
    seen: [(u64, u64); MAX_SACK_BLOCKS],
    pub rate: RateSampler,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Scoreboard {
            segments: VecDeque::new(),
            base: 0,
            una: 0,
            nxt: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            oldest: NIL,
            newest: NIL,
            hint: 0,
            highest_sacked: 0,
            lost_sent: 0,
            seen: [(0, 0); MAX_SACK_BLOCKS],
            rate: RateSampler::default(),
        }
    }
}

impl Scoreboard {
    /// An acknowledgement will come: begins to load the first segments and the last.
    pub fn prefetch(&self) {
        if let (Some(first), Some(last)) = (self.segments.front(), self.segments.back()) {
            prefetch(first, 2 * size_of_val(first));
            prefetch(last, 2 * size_of_val(last));
        }
    }

    /// First unacknowledged byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Next byte to send.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Segments sent and not cumulatively acknowledged.
    pub fn packets_out(&self) -> u32 {
        self.segments.len() as u32
    }

    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    pub fn lost_out(&self) -> u32 {
        self.lost_out
    }

    /// End of the highest SACKed segment.
    pub fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// When the newest of all segments that counted as lost had left.
    pub fn lost_sent(&self) -> Nanos {
        self.lost_sent
    }

    /// When the last segment left.
    pub fn last_sent(&self) -> Nanos {
        self.segments.back().map_or(0, |s| s.sent)
    }

    /// Retransmissions believed to be in the network.
    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    /// A retransmission may be unacknowledged (Linux: tcp_any_retrans_done()).
    pub fn any_retransmitted(&self) -> bool {
        let head = self.segments.front();
        self.retrans_out > 0 || head.is_some_and(|s| s.flags & EVER_RETRANS != 0)
    }

    /// Segments believed to be in the network. RFC 6675's pipe, as Linux counts it.
    pub fn in_flight(&self) -> u32 {
        self.packets_out() - self.sacked_out - self.lost_out + self.retrans_out
    }

    /// A lost segment waits to be sent again.
    pub fn must_retransmit(&self) -> bool {
        self.lost_out > self.retrans_out
    }

    /// A segment with the byte `dsn` of the data sequence is not cumulatively acknowledged.
    pub fn holds(&self, dsn: u64) -> bool {
        self.segments.iter().any(|s| s.dsn <= dsn && dsn - s.dsn < u64::from(s.len))
    }

    /// The segments from byte `from` on: the first byte of each in data sequence, and its length.
    pub fn sent_since(&self, from: u64) -> impl Iterator<Item = (u64, u32)> {
        self.segments.iter().filter(move |s| s.seq >= from).map(|s| (s.dsn, s.len))
    }

    /// Last transmission of the first segment.
    pub fn head_sent(&self) -> Option<Nanos> {
        self.segments.front().map(|s| s.sent)
    }

    /// A new segment of `len` bytes, `dsn` its first byte's data sequence, leaves.
    pub fn send_new(&mut self, dsn: u64, len: u32, now: Nanos) -> Transmit {
        let number = self.number(self.segments.len());
        let seq = self.nxt;
        let stamp = self.rate.sent(now, self.in_flight() + 1, self.segments.is_empty());
        self.segments.push_back(Segment {
            seq,
            dsn,
            sent: now,
            len,
            prev: NIL,
            next: NIL,
            stamp,
            flags: 0,
        });
        self.nxt += u64::from(len);
        self.link(number);
        Transmit { seq, dsn, len }
    }

    /// The lowest lost segment that was not yet sent again leaves again.
    pub fn retransmit_next(&mut self, now: Nanos) -> Option<Transmit> {
        if !self.must_retransmit() {
            return None;
        }
        let first = (self.index(self.hint)..self.segments.len())
            .find(|&i| self.segments[i].flags & (LOST | RETRANS) == LOST);
        let index = first.expect("a lost segment waits");
        self.hint = self.number(index);
        Some(self.retransmit(index, now))
    }

    /// The last segment leaves again, though it does not count as lost.
    pub fn retransmit_last(&mut self, now: Nanos) -> Transmit {
        let index = self.segments.len() - 1;
        // One that was SACKed is not outstanding (while a mark is answered there may be gaps).
        if self.segments[index].flags & SACKED == 0 {
            let number = self.number(index);
            self.unlink(number);
            self.link(number);
        }
        let stamp = self.rate.sent(now, self.in_flight(), false);
        let segment = &mut self.segments[index];
        segment.flags |= EVER_RETRANS;
        segment.sent = now;
        segment.stamp = stamp;
        Transmit { seq: segment.seq, dsn: segment.dsn, len: segment.len }
    }

    fn retransmit(&mut self, index: usize, now: Nanos) -> Transmit {
        let number = self.number(index);
        let stamp = self.rate.sent(now, self.in_flight() + 1, false);
        let segment = &mut self.segments[index];
        segment.flags |= RETRANS | EVER_RETRANS;
        segment.sent = now;
        segment.stamp = stamp;
        let segment = Transmit { seq: segment.seq, dsn: segment.dsn, len: segment.len };
        self.retrans_out += 1;
        self.link(number);
        segment
    }

    /// Takes an acknowledgement up to `ack` with its SACK blocks; passes RACK each segment that
    /// arrived.
    pub fn acknowledge(
        &mut self,
        ack: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        arrival: Arrival,
        rack: &mut Rack,
    ) -> Delivered {
        let mut delivered = Delivered::default();
        let arrival = Arrival { prior_highest: self.highest_sacked, ..arrival };
        self.sack(ack, blocks, &arrival, rack, &mut delivered);
        if ack <= self.una {
            return delivered;
        }
        debug_assert!(ack <= self.nxt, "acknowledges what was not sent");
        delivered.una_advanced = true;
        while let Some(segment) = self.segments.front() {
            if segment.end() > ack {
                break;
            }
            let (flags, sent) = (segment.flags, segment.sent);
            if flags & EVER_RETRANS != 0 {
                delivered.retrans_acked = true;
            }
            if flags & SACKED != 0 {
                self.sacked_out -= 1;
            } else {
                if flags & EVER_RETRANS == 0 {
                    let first = delivered.acked_sent.map_or(sent, |(first, _)| first);
                    delivered.acked_sent = Some((first, sent));
                }
                self.arrived(0, &arrival, rack, &mut delivered);
            }
            if self.hint == self.base {
                self.hint = self.hint.wrapping_add(1);
            }
            self.base = self.base.wrapping_add(1);
            self.segments.pop_front();
        }
        self.una = ack;
        delivered
    }

    /// Marks what SACK blocks newly cover. RFC 2018, section 5.
    fn sack(
        &mut self,
        ack: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        arrival: &Arrival,
        rack: &mut Rack,
        delivered: &mut Delivered,
    ) {
        let mut list = [(0, 0); MAX_SACK_BLOCKS];
        let mut count = 0;
        for block in blocks {
            list[count] = block;
            count += 1;
        }
        if count == 0 {
            return;
        }
        let (first, second) = (list[0], list[1]);
        let inside = count > 1 && second.0 <= first.0 && first.1 <= second.1;
        if first.0 < ack || inside {
            delivered.duplicate = Some(self.duplicate(first));
            list.rotate_left(1);
            count -= 1;
            list[count..].fill((0, 0));
            if count == 0 {
                return;
            }
        }
        let seen = std::mem::replace(&mut self.seen, list);
        for &(start, end) in &list[..count] {
            let mut from = start.max(ack).max(self.una);
            while from < end {
                // Blocks of the last acknowledgement inside of this one are known already.
                if let Some(known) = seen.iter().find(|b| b.0 <= from && from < b.1) {
                    from = known.1;
                    continue;
                }
                let to = seen.iter().map(|b| b.0).filter(|&s| s > from).min().unwrap_or(end);
                let to = to.min(end);
                self.sack_range(from, to, arrival, rack, delivered);
                from = to;
            }
            self.highest_sacked = self.highest_sacked.max(end);
        }
    }

    fn duplicate(&self, (start, end): (u64, u64)) -> Duplicate {
        let segment = self.segments.get(self.find(start));
        let is = |flags| segment.is_some_and(|s| s.flags & flags == flags);
        let retransmitted = end <= self.una || is(EVER_RETRANS);
        let late = is(SACKED | EVER_RETRANS) && end < self.highest_sacked;
        Duplicate { end, retransmitted, late }
    }

    /// The place of the first segment from byte `seq` on. Where all before it are as long as the
    /// first, as most are, nothing is searched.
    fn find(&self, seq: u64) -> usize {
        let Some(head) = self.segments.front() else { return 0 };
        let guess = seq.saturating_sub(head.seq) / u64::from(head.len);
        match self.segments.get(guess as usize) {
            Some(segment) if segment.seq == seq => guess as usize,
            _ => self.segments.partition_point(|s| s.seq < seq),
        }
    }

    fn sack_range(
        &mut self,
        from: u64,
        to: u64,
        arrival: &Arrival,
        rack: &mut Rack,
        delivered: &mut Delivered,
    ) {
        let first = self.find(from);
        for index in first..self.segments.len() {
            let segment = &mut self.segments[index];
            if segment.end() > to {
                break;
            }
            if segment.flags & SACKED != 0 {
                continue;
            }
            segment.flags |= SACKED;
            self.sacked_out += 1;
            if segment.flags & EVER_RETRANS == 0 {
                let sent = segment.sent;
                let (first, last) = delivered.sacked_sent.unwrap_or((sent, sent));
                delivered.sacked_sent = Some((first.min(sent), last.max(sent)));
            }
            self.arrived(index, arrival, rack, delivered);
        }
    }

    /// A segment has arrived, by whichever acknowledgement that is known: it is outstanding no more.
    fn arrived(
        &mut self,
        index: usize,
        arrival: &Arrival,
        rack: &mut Rack,
        delivered: &mut Delivered,
    ) {
        let segment = &mut self.segments[index];
        let (flags, sent, end) = (segment.flags, segment.sent, segment.end());
        segment.flags &= !(LOST | RETRANS);
        self.rate.arrived(&mut delivered.newest, &segment.stamp, sent, end);
        delivered.packets += 1;
        delivered.bytes += u64::from(segment.len);
        if flags & LOST != 0 {
            self.lost_out -= 1;
        }
        if flags & RETRANS != 0 {
            self.retrans_out -= 1;
        }
        let sent_again = flags & EVER_RETRANS != 0;
        // RFC 8985, section 6.2, step 2: the echo shows that the original arrived. With a SACK it is
        // of another segment. Linux: tcp_skb_spurious_retrans().
        let original = sent_again && flags & SACKED == 0 && sent >= arrival.after_echo;
        if !original {
            rack.delivered(sent, end, sent_again, arrival.now, arrival.min_rtt);
        }
        if !sent_again && end <= arrival.prior_highest {
            rack.reordered();
        }
        self.unlink(self.number(index));
    }

    /// Marks lost what RACK has waited for long enough: sent before the newest delivered segment
    /// by more than its time allows (RFC 8985, section 6.2, step 5). Returns how many were marked,
    /// and how long the last of the others still has to wait.
    pub fn detect_loss(&mut self, rack: &Rack, reo_wnd: Nanos, now: Nanos) -> (u32, Option<Nanos>) {
        let mut lost = 0;
        let mut wait = None;
        let mut number = self.oldest;
        while number != NIL {
            let index = self.index(number);
            let segment = &self.segments[index];
            if !rack.sent_before(segment.sent, segment.end()) {
                break;
            }
            let next = segment.next;
            match rack.remaining(segment.sent, reo_wnd, now) {
                0 => {
                    self.mark_lost(index);
                    lost += 1;
                }
                remaining => wait = wait.max(Some(remaining)),
            }
            number = next;
        }
        (lost, wait)
    }

    /// Marks lost what is behind by sequence: the first `least` segments, and those that have `distance`
    /// segments above them up to the highest SACKed one; and retransmissions that left before that one,
    /// if it was sent once. Linux before 4.15: tcp_mark_head_lost() and tcp_mark_lost_retrans(). Returns
    /// how many were marked.
    pub fn detect_loss_by_fack(&mut self, least: usize, distance: usize) -> u32 {
        let forward = self.segments.partition_point(|s| s.end() <= self.highest_sacked);
        let Some(top) = forward.checked_sub(1) else { return 0 };
        let Segment { sent, flags, .. } = self.segments[top];
        let top = (sent, self.segments[top].end());
        let first = least.max(forward.saturating_sub(distance));
        let mut lost = 0;
        let mut number = self.oldest;
        while number != NIL {
            let index = self.index(number);
            let segment = &self.segments[index];
            if (segment.sent, segment.end()) > top {
                break;
            }
            number = segment.next;
            let is_lost = match segment.flags & RETRANS {
                0 => index < first,
                _ => flags & EVER_RETRANS == 0,
            };
            if is_lost {
                self.mark_lost(index);
                lost += 1;
            }
        }
        lost
    }

    /// The retransmission timer expired: the first segment is lost, and so is each that has been
    /// out for longer than RACK's round trip (Linux: tcp_timeout_mark_lost()); without RACK all.
    pub fn mark_timeout(&mut self, rack: Option<&Rack>, now: Nanos) -> u32 {
        let before = self.lost_out - self.retrans_out;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let waits = segment.flags & SACKED != 0
                || segment.flags & (LOST | RETRANS) == LOST
                || (index > 0 && rack.is_some_and(|rack| rack.remaining(segment.sent, 0, now) > 0));
            if !waits {
                self.mark_lost(index);
            }
        }
        self.hint = self.base;
        self.lost_out - self.retrans_out - before
    }

    /// What counts as lost was only late: it is in the network. Segments that were sent again are
    /// there once (Linux counts both).
    pub fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.flags &= !(LOST | RETRANS);
            (segment.prev, segment.next) = (NIL, NIL);
        }
        (self.lost_out, self.retrans_out) = (0, 0);
        (self.oldest, self.newest) = (NIL, NIL);
        let mut outstanding: Vec<usize> =
            (0..self.segments.len()).filter(|&i| self.segments[i].flags & SACKED == 0).collect();
        outstanding.sort_by_key(|&index| self.segments[index].sent);
        for index in outstanding {
            self.link(self.number(index));
        }
    }

    /// Marks a segment lost, or its retransmission if it was lost already.
    fn mark_lost(&mut self, index: usize) {
        let number = self.number(index);
        let segment = &mut self.segments[index];
        if segment.flags & LOST == 0 {
            self.lost_out += 1;
        } else {
            debug_assert!(segment.flags & RETRANS != 0);
            self.retrans_out -= 1;
        }
        segment.flags = (segment.flags | LOST) & !RETRANS;
        self.lost_sent = self.lost_sent.max(segment.sent);
        self.rate.lost(1);
        self.unlink(number);
        if index < self.index(self.hint) {
            self.hint = number;
        }
    }

    fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.base) as usize
    }

    fn number(&self, index: usize) -> u32 {
        self.base.wrapping_add(index as u32)
    }

    fn link(&mut self, number: u32) {
        let index = self.index(number);
        let last = self.newest;
        self.segments[index].prev = last;
        self.segments[index].next = NIL;
        match last {
            NIL => self.oldest = number,
            last => {
                let index = self.index(last);
                self.segments[index].next = number;
            }
        }
        self.newest = number;
    }

    /// Takes a segment out of the order of transmission, if it is in it.
    fn unlink(&mut self, number: u32) {
        let index = self.index(number);
        let Segment { prev, next, .. } = self.segments[index];
        if prev == NIL && self.oldest != number {
            return;
        }
        match prev {
            NIL => self.oldest = next,
            prev => {
                let index = self.index(prev);
                self.segments[index].next = next;
            }
        }
        match next {
            NIL => self.newest = prev,
            next => {
                let index = self.index(next);
                self.segments[index].prev = prev;
            }
        }
        let segment = &mut self.segments[index];
        (segment.prev, segment.next) = (NIL, NIL);
    }

    /// Counters against a full count, and the order of transmission.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        // One pass, as it is half of what a simulation does under these assertions.
        let (mut sacked, mut lost, mut retrans) = (0, 0, 0);
        let mut seq = self.una;
        for s in &self.segments {
            assert_eq!(s.seq, seq, "segments follow each other");
            assert!(s.flags & SACKED == 0 || s.flags & (LOST | RETRANS) == 0);
            assert!(s.flags & RETRANS == 0 || s.flags & LOST != 0);
            seq = s.end();
            sacked += u32::from(s.flags & SACKED != 0);
            lost += u32::from(s.flags & LOST != 0);
            retrans += u32::from(s.flags & RETRANS != 0);
        }
        assert_eq!((sacked, lost, retrans), (self.sacked_out, self.lost_out, self.retrans_out));
        assert_eq!(seq, self.nxt);
        let (mut number, mut sent, mut linked) = (self.oldest, 0, 0);
        while number != NIL {
            assert!(self.index(number) < self.segments.len());
            // Most follow each other in both orders.
            for s in self.segments.range(self.index(number)..) {
                assert!(s.sent >= sent, "in the order of transmission");
                (number, sent, linked) = (number.wrapping_add(1), s.sent, linked + 1);
                if s.next != number {
                    number = s.next;
                    break;
                }
            }
        }
        assert_eq!(linked, self.in_flight());
    }
}
