//! A flow of a capture while its packets are counted: what it sent, how soon it is answered, whose clock
//! stamps it.

use crate::clock::Clock;
use crate::copies::{Again, after};
use crate::mptcp::Multipath;
use crate::packet::{End, Segment};
use crate::place::At;
use crate::{Signal, Traffic};

/// One-way delays from stamps of longer ticks are worse than round-trip times, nanoseconds
/// (RFC 8382, section 2.1, calls milliseconds adequate).
const COARSE: i64 = 1_000_000;

/// Payload of a packet that announced no maximum.
const MSS: u32 = 1448;

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub struct Way {
    pub bytes: u64,
    /// Packets with data, and when the first and the last came.
    pub packets: u64,
    /// Segments of any kind, without copies.
    pub segments: u64,
    /// Number of the first.
    pub first: Option<u64>,
    /// Those left out as copies, and those that may be; data in the latter.
    pub copies: u64,
    pub doubtful: u64,
    pub doubtful_bytes: u64,
    pub doubtful_packets: u64,
    /// What its segments were before their addresses were translated, and how many.
    pub translated: Option<(u64, u64)>,
    pub sent: Option<(i64, i64)>,
    pub highest: Option<u32>,
    pub clock: Option<Clock>,
    pub stamp: Option<u32>,
    /// A segment whose acknowledgement is waited for, and a stamp whose echo is: with the time.
    pub probe: Option<(u32, i64)>,
    pub stamped: Option<(u32, i64)>,
    /// Shortest time from here to this way's far end and back, nanoseconds.
    pub reach: Option<i64>,
    /// How far its data are acknowledged, by what, and by what in an earlier connection of the same ends.
    pub acked: Option<u32>,
    pub acks: Acks,
    pub before: Acks,
    /// The largest segment that its sender announced that it takes itself.
    pub mss: Option<u16>,
}

/// Segments that acknowledge data of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acks {
    count: u64,
    /// Those that [tell nothing of the network](is_of_a_message).
    of_messages: u64,
}

impl Acks {
    /// Those that tell something.
    fn telling(self) -> u64 {
        self.count - self.of_messages
    }
}

/// A flow being counted; the ways are from its smaller end and from its larger.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub ways: [Way; 2],
    pub multipath: Multipath,
    /// Some of its packets were captured without all TCP options.
    pub cut: bool,
    pub at: At,
}

/// Does an acknowledgement of `bytes` tell nothing of the network? With data it was sent when the other
/// program had an answer; of less than half a segment a receiver may put it off for 40 ms and more (RFC 5681,
/// 4.2).
pub fn is_of_a_message(segment: &Segment, bytes: u32, mss: u32) -> bool {
    segment.len > 0 || bytes < mss / 2
}

impl Entry {
    pub fn see(&mut self, way: usize, time: i64, segment: &Segment, again: Option<Again>) {
        let mss = self.mss();
        let [ref mut one, ref mut two] = self.ways;
        let (this, other) = if way == 0 { (one, two) } else { (two, one) };
        match again {
            Some(Again::Copy { sure: true }) => return this.copies += 1,
            Some(Again::Copy { sure: false }) => {
                this.doubtful += 1;
                this.doubtful_bytes += u64::from(segment.len);
                this.doubtful_packets += u64::from(segment.len.div_ceil(mss));
                return;
            }
            Some(Again::Translated(before)) => match &mut this.translated {
                Some((known, count)) => *count += u64::from(*known == before),
                none => *none = Some((before, 1)),
            },
            None => {}
        }
        this.segments += 1;
        self.multipath.see(segment);
        self.cut |= segment.cut;
        this.mss = segment.mss.or(this.mss);
        if segment.len > 0 {
            this.bytes += u64::from(segment.len);
            this.packets += u64::from(segment.len.div_ceil(mss));
            let (first, last) = this.sent.unwrap_or((time, time));
            this.sent = Some((first.min(time), last.max(time)));
        }
        if segment.syn {
            this.renew();
        }
        if segment.len > 0 || segment.syn {
            let end = segment.end();
            if segment.syn || this.highest.is_none_or(|highest| after(end, highest)) {
                this.highest = Some(end);
                this.probe = this.probe.or(Some((end, time)));
            } else {
                // Sent again: it is unknown which of the two is acknowledged.
                this.probe = None;
            }
        }
        if let Some(ack) = segment.ack.filter(|_| other.packets > 0) {
            let before = *other.acked.get_or_insert(ack);
            if after(ack, before) {
                let message = is_of_a_message(segment, ack.wrapping_sub(before), mss);
                other.acks.count += 1;
                other.acks.of_messages += u64::from(message);
                other.acked = Some(ack);
            }
        }
        if let (Some(ack), Some((end, sent))) = (segment.ack, other.probe) {
            if !after(end, ack) {
                other.answered(time - sent);
                other.probe = None;
            }
        }
        let Some((stamp, echo)) = segment.stamps else { return };
        match &mut this.clock {
            None => this.clock = Some(Clock::new(time, stamp)),
            // A new connection of the same ends has stamps of another offset.
            Some(clock) if segment.syn => *clock = Clock::new(time, stamp),
            Some(clock) => {
                clock.see(time, stamp);
                // Where somebody answers, that tells the place.
                if this.reach.is_none() {
                    clock.compare(time);
                }
            }
        }
        if this.stamp != Some(stamp) {
            this.stamp = Some(stamp);
            this.stamped = this.stamped.or(Some((stamp, time)));
        }
        if let Some((stamp, sent)) = other.stamped {
            if echo == stamp {
                other.answered(time - sent);
            }
            if !after(stamp, echo) {
                other.stamped = None;
            }
        }
    }

    /// The largest payload of a packet: the smaller one that the two announced.
    pub fn mss(&self) -> u32 {
        let announced = self.ways.iter().filter_map(|way| way.mss).min();
        announced.map_or(MSS, u32::from).max(1)
    }

    pub fn traffic(&self) -> Traffic {
        let Way { packets, bytes, sent, .. } = self.ways[self.data()];
        let [one, other] = self.ways.each_ref().map(|way| way.reach);
        Traffic {
            packets,
            bytes: Some(bytes),
            duration_s: sent.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9),
            min_rtt_ms: one.zip(other).map(|(one, other)| (one + other) as f64 / 1e6),
        }
    }

    /// The way with the data.
    pub fn data(&self) -> usize {
        usize::from(self.ways[1].bytes > self.ways[0].bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.ways[self.data()].bytes
    }

    /// Who sends its data, and who gets it.
    pub fn ends(&self, (small, large): (End, End)) -> (End, End) {
        if self.data() == 0 { (small, large) } else { (large, small) }
    }

    /// Shortest times until the receiver of its data answered, and until the sender did.
    pub fn reach(&self) -> (Option<i64>, Option<i64>) {
        (self.ways[self.data()].reach, self.ways[1 - self.data()].reach)
    }

    /// Do nearly all acknowledgements of its data [tell nothing of the network](is_of_a_message)? Of several
    /// connections of its ends the one whose acknowledgements tell most decides.
    pub fn is_messages(&self) -> bool {
        let Acks { count, of_messages } = self.ways[self.data()].most_telling();
        count > 0 && 10 * of_messages >= 9 * count
    }

    /// The tick of what stamps the signal, if the flow gives that where it was captured.
    pub fn gives(&self, signal: Signal) -> Option<i64> {
        let tick = |way: usize| self.ways[way].clock.as_ref().and_then(Clock::tick);
        let at = |at: At| [at, At::Middle].contains(&self.at);
        let answered = self.ways[self.data()].reach.is_some() && !self.is_messages();
        match signal {
            Signal::OwdReceiver if at(At::Receiver) => tick(self.data()),
            Signal::OwdSender if at(At::Sender) && answered => {
                tick(1 - self.data()).filter(|&tick| tick <= COARSE)
            }
            Signal::Rtt if at(At::Sender) && answered => Some(0),
            _ => None,
        }
    }
}

impl Way {
    /// Its ends begin another connection, whose sequence numbers are others.
    fn renew(&mut self) {
        self.before = self.most_telling();
        (self.acks, self.acked) = (Acks::default(), None);
    }

    /// Of the connections of its ends, the acknowledgements of the one with most that tell something.
    fn most_telling(&self) -> Acks {
        let (now, before) = (self.acks, self.before);
        if (now.telling(), now.count) >= (before.telling(), before.count) { now } else { before }
    }

    /// Copies are many, and what was sent again within a tick is rare.
    pub fn doubled(&self) -> bool {
        9 * self.doubtful >= self.segments
    }

    /// There is no more packet: what may have been a copy was one, or not.
    pub fn end(&mut self) {
        if self.doubled() {
            self.copies += self.doubtful;
        } else {
            self.bytes += self.doubtful_bytes;
            self.packets += self.doubtful_packets;
        }
    }

    /// Are most of its segments those of other ends, whose addresses were translated? Of which.
    pub fn is_translated(&self) -> Option<u64> {
        self.translated.filter(|(_, count)| 2 * count >= self.segments).map(|(before, _)| before)
    }

    pub fn answered(&mut self, time: i64) {
        if time >= 0 {
            self.reach = Some(self.reach.map_or(time, |least| least.min(time)));
        }
    }
}
