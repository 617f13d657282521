//! QUIC's spin bit (RFC 9000, section 17.4; RFC 9312, section 3.8.2): a delay of captures that have nothing else.
//!
//! The client inverts the bit, the server repeats it: it changes once a round trip, at an edge. The time from one edge to
//! the next of the direction with the data is a delay, that of a whole round trip, wherever the capture was made. So there
//! are few, and with them is what each end waits before it sends: at most the time between its packets. Losses are not
//! seen. Each end leaves the bit out on one connection in 16 and more: then it is constant, or random for each packet.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;

use crate::capture::{self, Ended};
use crate::copies::{again_note, ends as hashed};
use crate::order::{Course, Order};
use crate::packet::{Datagram, End, Packet, Skip, datagram, ends_name};
use crate::sizes::{COUNTED, Flows, forget_half, leave_small, left_out};
use crate::skipped::Skipped;
use crate::sorted::behind_note;
use crate::surveyed::{Flow, Survey, far_apart};
use crate::translated::{self, translated};
use crate::wrapped::ip;
use crate::{Error, Input, Limits, Observation, Signal, Traffic};

/// The bit has changed once so many packets in a row have the new one: what was overtaken has the old one.
const HOLD: u32 = 3;

/// Round trips whose variance is taken, and the least that a flow has.
const WINDOW: u64 = 32;

/// Of longer times between packets it is not the network that waits, nanoseconds.
const PAUSE: i64 = 200_000_000;

/// Packets that are remembered, to find copies; and the least that was kept of one to tell it from another.
const SEEN: usize = 1 << 14;
const LEAST: usize = 24;

/// The beginning of a packet of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// Of a connection that begins: Initial or Handshake of version 1 (RFC 9000, 17.2) or 2 (RFC 9369, 3.2).
    Long,
    /// With its spin bit.
    Short(bool),
}

fn header(data: &[u8]) -> Option<Header> {
    let (first, rest) = data.split_first()?;
    match first >> 6 {
        0b01 => Some(Header::Short(first & 0x20 != 0)),
        0b11 => {
            let version = u32::from_be_bytes(*rest.first_chunk()?);
            let begins = matches!((version, first >> 4 & 3), (1, 0 | 2) | (0x6b33_43cf, 1 | 3));
            begins.then_some(Header::Long)
        }
        _ => None,
    }
}

/// The UDP datagram in a packet.
fn read<'a>(packet: &Packet<'a>) -> Option<Datagram<'a>> {
    let link = packet.link.ok().filter(|_| packet.skip.is_none())?;
    datagram(link, packet.data)
}

/// Of the datagrams that have been [seen](SEEN) lately, which is there again? No two that ends of QUIC send are alike.
struct Seen(Vec<(u64, u64)>);

impl Default for Seen {
    fn default() -> Seen {
        Seen(vec![(0, 0); SEEN])
    }
}

impl Seen {
    /// What was said of it when it was there first, if that is known.
    fn first(&mut self, datagram: impl Hash, said: u64) -> Option<u64> {
        let hash = FixedState::default().hash_one(datagram);
        let place = &mut self.0[hash as usize % SEEN];
        if place.0 == hash {
            return Some(place.1);
        }
        *place = (hash, said);
        None
    }

    /// Has it been there between the same ends?
    fn is_copy(&mut self, Datagram { from, to, data, .. }: &Datagram) -> bool {
        data.len() >= LEAST && self.first((from, to, data), 0).is_some()
    }

    /// What [`hashed`] gives for the ends that it had before, if it had others.
    fn before(&mut self, Datagram { from, to, data, .. }: &Datagram) -> Option<u64> {
        let now = hashed(*from, *to);
        self.first(data, now).filter(|first| data.len() >= LEAST && *first != now)
    }
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
struct Way {
    /// Of its first packet.
    number: u64,
    packets: u64,
    bytes: u64,
    sent: Option<(i64, i64)>,
    /// What its packets were before their addresses were translated, and how many.
    translated: Option<(u64, u64)>,
    /// Packets with a spin bit, and those of which it is not that of the one before.
    shorts: u64,
    changes: u64,
    /// The bit of the newest packets, how many in a row have it, and since when.
    bit: bool,
    count: u32,
    since: i64,
    /// The longest time without a packet since then, and before it since the edge.
    pause: i64,
    silence: i64,
    /// The bit that has held, and when it came, if that was seen.
    held: Option<bool>,
    edge: Option<i64>,
    /// When it first left the bit that has held.
    left: Option<i64>,
    /// Sums of the times between its packets and of their squares, seconds.
    gaps: (f64, f64),
    trips: u64,
    least: Option<i64>,
    /// As `gaps`, of round trips in the present window; and the sum of the logarithms of the variance of each.
    window: (f64, f64),
    variances: f64,
}

impl Way {
    /// A packet; returns the round trip that ends with it, nanoseconds. None: the program paused in it.
    fn see(&mut self, time: i64, len: u32, header: Option<Header>) -> Option<i64> {
        self.packets += 1;
        self.bytes += u64::from(len);
        let (first, last) = self.sent.unwrap_or((time, time));
        self.sent = Some((first.min(time), last.max(time)));
        let gap = time.saturating_sub(last);
        if (0..PAUSE).contains(&gap) {
            add(&mut self.gaps, gap);
        }
        if matches!(header, Some(Header::Short(bit)) if self.count == 0 || bit != self.bit) {
            self.silence = self.silence.max(self.pause).max(gap);
            self.pause = 0;
        } else {
            self.pause = self.pause.max(gap);
        }
        let Header::Short(bit) = header? else {
            // Another connection of the same ends.
            (self.count, self.held, self.edge, self.left) = (0, None, None, None);
            return None;
        };
        self.shorts += 1;
        if self.count == 0 || bit != self.bit {
            self.changes += u64::from(self.count > 0);
            (self.bit, self.count, self.since) = (bit, 0, time);
            if self.held.is_some_and(|held| held != bit) {
                self.left.get_or_insert(time);
            }
        }
        self.count = self.count.saturating_add(1);
        if self.count != HOLD {
            return None;
        }
        // What was overtaken is soon over; else a round trip had fewer packets, and its edges are not known.
        let unclear = self.left.take().zip(self.edge).is_some_and(|(left, edge)| {
            self.since.saturating_sub(left).saturating_mul(3) > self.since.saturating_sub(edge)
        });
        if unclear {
            self.edge = None;
        }
        if self.held == Some(bit) {
            return None;
        }
        let silence = std::mem::take(&mut self.silence);
        // Nobody saw when the first one came.
        self.held.replace(bit)?;
        let trip = self.since.saturating_sub(self.edge.replace(self.since)?);
        if trip <= 0 || silence > trip / 2 {
            return None;
        }
        self.trips += 1;
        self.least = Some(self.least.map_or(trip, |least| least.min(trip)));
        add(&mut self.window, trip);
        if self.trips % WINDOW == 0 {
            let ((sum, squares), count) = (std::mem::take(&mut self.window), WINDOW as f64);
            self.variances += ((squares - sum * sum / count) / (count - 1.0)).max(1e-12).ln();
        }
        Some(trip)
    }

    /// For how long nothing comes, at a moment of any, seconds.
    fn gap(&self) -> f64 {
        let (sum, squares) = self.gaps;
        if sum > 0.0 { squares / sum } else { PAUSE as f64 / 1e9 }
    }

    /// Of its round trips in a window, the geometric mean: one with a jump does not stand for all; seconds squared.
    fn variance(&self) -> f64 {
        (self.variances / (self.trips / WINDOW).max(1) as f64).exp()
    }
}

fn add((sum, squares): &mut (f64, f64), time: i64) {
    let seconds = time as f64 / 1e9;
    *sum += seconds;
    *squares += seconds * seconds;
}

/// A flow being counted; the ways are from its smaller end and from its larger.
#[derive(Clone, Debug, Default)]
struct Entry {
    ways: [Way; 2],
}

impl Entry {
    /// The way with the data, and the other.
    fn ways(&self) -> (&Way, &Way) {
        let [one, two] = &self.ways;
        if two.bytes > one.bytes { (two, one) } else { (one, two) }
    }

    fn bytes(&self) -> u64 {
        self.ways().0.bytes
    }

    fn ends(&self, (small, large): (End, End)) -> (End, End) {
        if self.ways[1].bytes > self.ways[0].bytes { (large, small) } else { (small, large) }
    }

    fn name(&self, ends: (End, End)) -> String {
        ends_name(self.ends(ends)) + " quic"
    }

    fn traffic(&self) -> Traffic {
        let (Way { packets, bytes, sent, least, .. }, _) = self.ways();
        Traffic {
            packets: *packets,
            bytes: Some(*bytes),
            duration_s: sent.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9),
            min_rtt_ms: least.map(|least| least as f64 / 1e6),
        }
    }

    /// Why it gives no delay, if it gives none.
    fn lacks(&self) -> Option<&'static str> {
        let (data, back) = self.ways();
        // A random one changes at half of the packets; a server repeats that of a client in some.
        let random = |way: &Way| 3 * way.changes > way.shorts;
        // The wait of an end for its next packet is between 0 and the time from packet to packet, and so has a twelfth of
        // its square for a variance: where both ends' are no more than a twelfth of all, shared queues are found shared.
        let waits = data.gap().powi(2) + back.gap().powi(2);
        let reasons = [
            (data.shorts == 0, "no packet of it has a spin bit"),
            (data.changes == 0, "its spin bit stays the same"),
            (
                random(data) || random(back),
                "its spin bit changes too often: it is random, or a round trip has fewer than 3 packets",
            ),
            (back.shorts == 0, "only one direction of it was captured"),
            (data.trips < WINDOW, "its spin bit shows fewer than 32 round trips"),
            (waits > data.variance(), "its round trips vary by less than its packets are apart"),
        ];
        reasons.into_iter().find(|(is, _)| *is).map(|(_, why)| why)
    }
}

impl translated::Counted for Entry {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn ends(&self, ends: (End, End)) -> (End, End) {
        self.ends(ends)
    }

    fn before(&self) -> Option<u64> {
        let (data, _) = self.ways();
        data.translated.filter(|(_, count)| 2 * count >= data.packets).map(|(before, _)| before)
    }
}

/// What the packets of a capture add up to.
#[derive(Default)]
struct Counted {
    flows: Flows<(End, End), Entry>,
    forgotten: usize,
    copies: u64,
    /// UDP of no connection that began here.
    unknown: u64,
    span: Option<(i64, i64)>,
    course: Course,
}

fn count(input: &Input, order: &Order) -> Result<(Counted, Ended), Error> {
    let (mut counted, mut copies, mut seen) =
        (Counted::default(), Seen::default(), Seen::default());
    let ended = capture::for_each(input, order, |packet| {
        let Some(datagram) = read(&packet) else { return };
        let Datagram { from, to, len, data } = datagram;
        let (way, header) = (usize::from(from > to), header(data));
        let ends = [(from, to), (to, from)][way];
        let known = counted.flows.contains_key(&ends);
        if !known && header != Some(Header::Long) {
            return counted.unknown += 1;
        }
        if copies.is_copy(&datagram) {
            return counted.copies += 1;
        }
        let (start, end) = counted.span.unwrap_or((packet.time, packet.time));
        counted.span = Some((start.min(packet.time), end.max(packet.time)));
        counted.course.see(packet.number, packet.time);
        if !known && counted.flows.len() >= COUNTED {
            counted.forgotten += forget_half(&mut counted.flows, Entry::bytes);
        }
        let this = &mut counted.flows.entry(ends).or_default().ways[way];
        if let Some(before) = seen.before(&datagram) {
            let (known, count) = this.translated.get_or_insert((before, 0));
            *count += u64::from(*known == before);
        }
        match this.sent {
            // Nobody sees what an end sent first: what comes later in the file is taken for later.
            Some((_, last)) => counted.course.data(this.number, last, packet.time, 1),
            None => this.number = packet.number,
        }
        this.see(packet.time, len, header);
    })?;
    Ok((counted, ended))
}

/// The largest flows of QUIC whose spin bit shows delays; without any, why the others show none. `skipped` are those of
/// `packets` that are not TCP.
///
/// # Errors
/// The capture cannot be opened, times go to and fro, or no flow has as many packets as are asked for.
pub fn survey(
    input: &Input,
    limits: Limits,
    skipped: Skipped,
    packets: u64,
) -> Result<Result<Survey, Vec<String>>, Error> {
    let error = |message: String| Error::input(input.name(), message);
    let (mut counted, mut ended) = count(input, &Order::default())?;
    let order = std::mem::take(&mut counted.course).end().map_err(error)?;
    if !order.is_plain() {
        (counted, ended) = count(input, &order)?;
    }
    let Counted { mut flows, forgotten, copies, unknown, span, .. } = counted;
    let Ended { damage, behind } = ended;
    let nat = translated(flows.iter());
    flows.retain(|ends, _| !nat.contains_key(ends));
    let nat = nat.values().max().map(|largest| translated::note(nat.len(), *largest));
    let mut sized: Vec<((End, End), Entry)> = flows.into_iter().collect();
    sized.sort_by(|(ends, a), (others, b)| b.bytes().cmp(&a.bytes()).then(ends.cmp(others)));
    let sum = |sized: &[((End, End), Entry)]| sized.iter().map(|(_, of)| of.bytes()).sum::<u64>();
    let all = sum(&sized).max(1) as f64;
    let share = |sized: &[((End, End), Entry)]| 100.0 * sum(sized) as f64 / all;
    let packets_of = |(_, entry): &((End, End), Entry)| entry.traffic().packets;
    let small =
        leave_small(&mut sized, limits.packets, packets_of, share, "data").map_err(error)?;
    let (mut chosen, lacking): (Vec<_>, Vec<_>) =
        sized.into_iter().partition(|(_, entry)| entry.lacks().is_none());
    let lacking = refused(&lacking);
    let unknown = (unknown > 0).then(|| {
        format!(
            "{unknown} of {packets} packets are UDP of which no handshake of QUIC 1 or 2 is there"
        )
    });
    if chosen.is_empty() {
        return Ok(Err(lacking.into_iter().chain(unknown).collect()));
    }
    let beyond = chosen.split_off(limits.flows.min(chosen.len()));
    let left = beyond.len() + forgotten;
    let left = (left > 0).then(|| left_out(chosen.len(), left, forgotten, share(&beyond), "data"));
    let damage = damage.map(|what| format!("{}: {what}", input.name()));
    let (start, end) = span.unwrap_or_default();
    let skipped = skipped.without(Skip::NotTcp(ip::UDP));
    let notes = damage.into_iter().chain(skipped.note(packets)).chain(order.notes());
    let notes = notes.chain(behind_note(behind, packets)).chain(again_note(copies, packets));
    let notes = notes.chain(far_apart(input, start, end)).chain(nat).chain(small);
    let lacking = lacking.into_iter().chain(unknown).map(|why| format!("skipped: {why}"));
    let notes = notes.chain(lacking).chain(left);
    let limit = "QUIC's spin bit gives one delay a round trip, with the waits of both ends, and shows no losses";
    let flow = |(ends, entry): &((End, End), Entry)| Flow {
        ends: entry.ends(*ends),
        name: entry.name(*ends),
        tick: 0,
        mss: 1,
        doubled: (false, false),
        copied: false,
        traffic: entry.traffic(),
    };
    Ok(Ok(Survey {
        signal: Signal::Spin,
        captured: "at any place: a round trip is as long at each".into(),
        flows: chosen.iter().map(flow).collect(),
        notes: notes.chain([limit.to_owned()]).collect(),
        order,
        start,
        end,
    }))
}

/// Why flows give no delay: of each reason the largest flow, and how many others there are.
fn refused(flows: &[((End, End), Entry)]) -> Vec<String> {
    let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (ends, entry) in flows {
        named.entry(entry.lacks().unwrap_or_default()).or_default().push(entry.name(*ends));
    }
    let text = |(why, names): (&str, Vec<String>)| match names.len() {
        1 => format!("{}: {why}", names[0]),
        count => format!("{}, as {} more: {why}", names[0], count - 1),
    };
    named.into_iter().map(text).collect()
}

/// Reads the capture again and gives each observation of the flows to `each`, in the order of time.
///
/// # Errors
/// It cannot be opened, or `each` fails.
pub fn measure<E: From<Error>>(
    input: &Input,
    survey: &Survey,
    mut each: impl FnMut(Observation) -> Result<(), E>,
) -> Result<(), E> {
    let places = survey.flows.iter().enumerate().map(|(index, flow)| (flow.ends, index));
    let places: Flows<(End, End), usize> = places.collect();
    let mut ways = vec![Way::default(); survey.flows.len()];
    let (mut copies, mut newest, mut result) = (Seen::default(), 0_i64, Ok(()));
    capture::for_each(input, &survey.order, |packet| {
        let Some(datagram) = read(&packet) else { return };
        let Datagram { from, to, len, data } = datagram;
        let Some(&flow) = places.get(&(from, to)).filter(|_| result.is_ok()) else { return };
        if copies.is_copy(&datagram) {
            return;
        }
        newest = newest.max(packet.time.saturating_sub(survey.start) / 1000);
        let trip = ways[flow].see(packet.time, len, header(data));
        let delay_us = trip.map(|trip| (trip / 1000).min(i32::MAX.into()) as i32);
        let now_us = newest as u64;
        result = each(Observation { flow, now_us, delay_us, delivered: 1, lost: 0 });
    })?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_pause_is_in_the_round_trip_that_it_is_in() {
        // Behind a packet of the fifth of eight round trips, whose edges are at its first.
        for behind in 0..10 {
            let (mut way, mut time, mut trips) = (Way::default(), 0, Vec::new());
            for round in 0..8 {
                for packet in 0..10 {
                    let header = Header::Short(round % 2 == 1);
                    trips.extend(way.see(time, 100, Some(header)).map(|trip| trip / MS));
                    time += if (round, packet) == (4, behind) { 155 * MS } else { 5 * MS };
                }
            }
            assert_eq!(
                trips, [50; 5],
                "{behind}: without the first, whose edge nobody saw, and that"
            );
        }
    }

    #[test]
    fn times_of_centuries_are_no_round_trip() {
        let mut way = Way::default();
        let bits = [false, false, false, true, true, true, false, true, true, true];
        for (number, bit) in (0..).zip(bits) {
            let time = if number < 7 { number } else { 4_000_000_000_000_000_000 + number };
            assert_eq!(way.see(time, 100, Some(Header::Short(bit))), None);
        }
    }
}
