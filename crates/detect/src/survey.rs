//! The first pass over a capture: which flows there are, how large, where they were captured, and
//! which signal their packets give. It takes the same memory for any capture.

use crate::capture::{self, Packet};
use crate::clock::Clock;
use crate::mptcp::Multipath;
use crate::packet::{End, Segment, Skip, segment};
use crate::sizes::{COUNTED, Flows, forget_half, left_out};
use crate::{Error, Input, Signal};

/// One-way delays from stamps of longer ticks are worse than round-trip times, nanoseconds
/// (RFC 8382, section 2.1, calls milliseconds adequate).
const COARSE: i64 = 1_000_000;

/// Who answers sooner is here, if nobody else answers, nanoseconds.
const HERE: i64 = 1_000_000;

/// A flow to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends its data, and who gets it.
    pub ends: (End, End),
    /// What the user sees: `10.0.0.1:40001 > 10.0.0.2:5001`, with its MPTCP connection.
    pub name: String,
    /// Nanoseconds of a tick of the clock that stamps.
    pub tick: i64,
    /// The largest payload of a packet that both ends announced, if the capture has that.
    pub mss: Option<u16>,
}

/// What the first pass found.
#[derive(Debug)]
pub struct Survey {
    pub signal: Signal,
    pub flows: Vec<Flow>,
    /// What the user should know: skipped packets, flows left out, damage.
    pub notes: Vec<String>,
    /// When the first packet came, nanoseconds since 1970.
    pub start: i64,
    /// When the last came.
    pub end: i64,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
struct Way {
    bytes: u64,
    highest: Option<u32>,
    clock: Option<Clock>,
    stamp: Option<u32>,
    /// A segment whose acknowledgement is waited for, and a stamp whose echo is: with the time.
    probe: Option<(u32, i64)>,
    stamped: Option<(u32, i64)>,
    /// Shortest time from here to this way's far end and back, nanoseconds.
    reach: Option<i64>,
    /// The largest segment that its sender announced that it takes itself.
    mss: Option<u16>,
}

/// A flow being counted; the ways are from its smaller end and from its larger.
#[derive(Clone, Debug, Default)]
struct Entry {
    ways: [Way; 2],
    multipath: Multipath,
}

/// Is `a` behind `b` in the order of sequence numbers?
pub fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Entry {
    fn see(&mut self, way: usize, time: i64, segment: &Segment) {
        self.multipath.see(segment);
        let [ref mut one, ref mut two] = self.ways;
        let (this, other) = if way == 0 { (one, two) } else { (two, one) };
        this.bytes += u64::from(segment.len);
        this.mss = segment.mss.or(this.mss);
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
            Some(clock) => clock.see(time, stamp),
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

    /// The way with the data.
    fn data(&self) -> usize {
        usize::from(self.ways[1].bytes > self.ways[0].bytes)
    }

    fn bytes(&self) -> u64 {
        self.ways[self.data()].bytes
    }

    /// Was it captured nearer to the receiver of its data?
    fn near_receiver(&self) -> bool {
        let [to_receiver, to_sender] =
            [self.data(), 1 - self.data()].map(|way| self.ways[way].reach);
        match (to_receiver, to_sender) {
            (Some(receiver), Some(sender)) => receiver < sender,
            // Nothing ever answered: only the data was captured.
            (None, _) => true,
            (Some(receiver), None) => receiver < HERE,
        }
    }

    /// The tick of what stamps the signal, if the flow gives that.
    fn gives(&self, signal: Signal) -> Option<i64> {
        let tick = |way: usize| self.ways[way].clock.as_ref().and_then(Clock::tick);
        let near_receiver = self.near_receiver();
        match signal {
            Signal::OwdReceiver if near_receiver => tick(self.data()),
            Signal::OwdSender if !near_receiver => {
                tick(1 - self.data()).filter(|&tick| tick <= COARSE)
            }
            Signal::Rtt if !near_receiver => Some(0),
            _ => None,
        }
    }
}

impl Way {
    fn answered(&mut self, time: i64) {
        if time >= 0 {
            self.reach = Some(self.reach.map_or(time, |least| least.min(time)));
        }
    }
}

/// Packets that were of no use, by the reason.
#[derive(Clone, Copy, Debug, Default)]
struct Skipped([u64; 5]);

const REASONS: [(Skip, &str); 5] = [
    (Skip::Link, "of an unknown link type"),
    (Skip::NotIp, "not IP"),
    (Skip::NotTcp, "not TCP"),
    (Skip::Fragment, "IP fragments"),
    (Skip::Cut, "cut within their headers"),
];

impl Skipped {
    fn count(&mut self, skip: Skip) {
        let reason = REASONS.iter().position(|(reason, _)| *reason == skip);
        self.0[reason.unwrap_or_default()] += 1;
    }

    fn note(&self, packets: u64) -> Option<String> {
        let reasons = self.0.iter().zip(REASONS).filter(|(count, _)| **count > 0);
        let reasons: Vec<String> =
            reasons.map(|(count, (_, why))| format!("{count} {why}")).collect();
        (!reasons.is_empty())
            .then(|| format!("skipped of {packets} packets: {}", reasons.join(", ")))
    }
}

/// Reads the capture once; chooses a signal, and the `limit` largest flows that give it.
///
/// # Errors
/// It cannot be opened, or it has no flow that gives a signal.
pub fn survey(input: &Input, limit: usize) -> Result<Survey, Error> {
    let mut flows: Flows<(End, End), Entry> = Flows::default();
    let mut skipped = Skipped::default();
    let (mut forgotten, mut cut) = (0, 0);
    let (mut packets, mut start, mut end) = (0, i64::MAX, i64::MIN);
    let damage = capture::for_each(input, |packet| {
        packets += 1;
        let segment = match read(&packet) {
            Ok(segment) => segment,
            Err(skip) => return skipped.count(skip),
        };
        cut += u64::from(segment.cut);
        (start, end) = (start.min(packet.time), end.max(packet.time));
        let way = usize::from(segment.from > segment.to);
        let ends = [(segment.from, segment.to), (segment.to, segment.from)][way];
        if flows.len() >= COUNTED && !flows.contains_key(&ends) {
            forgotten += forget_half(&mut flows, Entry::bytes);
        }
        flows.entry(ends).or_default().see(way, packet.time, &segment);
    })?;
    let skipped = skipped.note(packets);
    let cut = (cut > 0)
        .then(|| format!("{cut} of {packets} packets were captured without all TCP options"));

    let mut sized: Vec<_> = flows.into_iter().filter(|(_, entry)| entry.bytes() > 0).collect();
    sized.sort_by(|(ends, a), (others, b)| b.bytes().cmp(&a.bytes()).then(ends.cmp(others)));
    let all: u64 = sized.iter().map(|(_, entry)| entry.bytes()).sum();
    let Some(signal) = choose(&sized) else {
        let message = if sized.is_empty() {
            "expected TCP flows with data, found none"
        } else {
            "no flow gives a delay: expected packets of at least a second with TCP timestamps, or, \
             captured near the sender, with their acknowledgements"
        };
        let why: Vec<String> =
            damage.into_iter().chain(skipped).chain(cut).chain([message.into()]).collect();
        return Err(Error::input(input.name(), why.join("; ")));
    };
    let damage = damage.map(|what| format!("{}: {what}", input.name()));
    let mut notes: Vec<String> = damage.into_iter().chain(skipped).chain(cut).collect();
    let gives = |(ends, entry): &((End, End), Entry)| Some((*ends, entry.gives(signal)?));
    let chosen: Vec<usize> =
        (0..sized.len()).filter(|&index| gives(&sized[index]).is_some()).take(limit).collect();
    let smallest = chosen.last().copied().unwrap_or_default();
    let skipped: Vec<usize> = (0..smallest).filter(|index| !chosen.contains(index)).collect();
    let bytes = |of: &[usize]| -> u64 { of.iter().map(|&index| sized[index].1.bytes()).sum() };
    let percent = |bytes: u64| 100.0 * bytes as f64 / all.max(1) as f64;
    if !skipped.is_empty() {
        notes.push(format!(
            "skipped, without {}: {} of the largest, with {:.1} % of the data",
            signal.about(),
            skipped.len(),
            percent(bytes(&skipped))
        ));
    }
    let others = sized.len() - chosen.len() - skipped.len() + forgotten;
    if others > 0 {
        let share = percent(all - bytes(&chosen) - bytes(&skipped));
        notes.push(left_out(chosen.len(), others, forgotten, share, "data"));
    }
    let names = |index: usize| name(&sized, index);
    let flows = chosen.iter().map(|&index| {
        let ((small, large), entry) = &sized[index];
        Flow {
            ends: if entry.data() == 0 { (*small, *large) } else { (*large, *small) },
            name: names(index),
            tick: entry.gives(signal).unwrap_or_default(),
            mss: entry.ways.iter().filter_map(|way| way.mss).min(),
        }
    });
    Ok(Survey { signal, flows: flows.collect(), notes, start, end })
}

/// The TCP segment in a packet.
pub fn read<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, Skip> {
    segment(packet.link.ok_or(Skip::Link)?, packet.data, packet.wire)
}

/// The signal that most data gives. One-way delay is before round-trip times, which have the queues
/// of the way back in them, as long as half of the data gives it.
fn choose(flows: &[((End, End), Entry)]) -> Option<Signal> {
    let bytes = |signal| -> u64 {
        let give = flows.iter().filter(|(_, entry)| entry.gives(signal).is_some());
        give.map(|(_, entry)| entry.bytes()).sum()
    };
    let [receiver, sender, rtt] = [Signal::OwdReceiver, Signal::OwdSender, Signal::Rtt].map(bytes);
    let (near_sender, most) =
        if 2 * sender >= rtt { (Signal::OwdSender, sender) } else { (Signal::Rtt, rtt) };
    match (receiver, most) {
        (0, 0) => None,
        (receiver, most) if receiver >= most => Some(Signal::OwdReceiver),
        _ => Some(near_sender),
    }
}

/// `10.0.0.1:40001 > 10.0.0.2:5001 mptcp 1f2e3d4c`.
fn name(flows: &[((End, End), Entry)], index: usize) -> String {
    let ((small, large), entry) = &flows[index];
    let [small, large] =
        [small, large].map(|&(address, port)| std::net::SocketAddr::new(address, port).to_string());
    let (from, to) = if entry.data() == 0 { (small, large) } else { (large, small) };
    let mut name = format!("{from} > {to}");
    if entry.multipath.seen {
        name += " mptcp";
    }
    if let Some(token) = entry.multipath.token {
        // A subflow that the host which was connected to has begun names the other's token.
        let first = flows.iter().find(|(_, first)| first.multipath.own == Some(token));
        let token = first.and_then(|(_, first)| first.multipath.token).unwrap_or(token);
        name += &format!(" {token:08x}");
    }
    name
}
