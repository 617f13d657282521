//! The first pass over a capture: which flows there are, how large, where they were captured, and
//! which signal their packets give. It takes the same memory for any capture.

use crate::capture;
use crate::copies::{Again, Copies, again_note};
use crate::order::{Course, Order};
use crate::others::Others;
use crate::packet::{End, Packet, Segment, Skip, ends_name, segment};
use crate::place::{At, Clue, Decided, Why, places};
use crate::sizes::{COUNTED, Flows, forget_half, leave_small, left_out};
use crate::skipped::Skipped;
use crate::sorted::behind_note;
use crate::surveyed::{Flow, Survey, far_apart};
use crate::tally::{Entry, Way};
use crate::translated::{self, translated};
use crate::{Error, Input, Limits, Signal, mptcp, spin};

/// So long a flow has to send, that its clock is known.
const LONG_ENOUGH: &str = "a second";

/// What the packets of a capture add up to.
#[derive(Debug, Default)]
struct Counted {
    flows: Flows<(End, End), Entry>,
    /// Flows that were forgotten.
    forgotten: usize,
    packets: u64,
    skipped: Skipped,
    /// Those without all TCP options.
    cut: u64,
    /// When the first came and the last.
    span: Option<(i64, i64)>,
    damage: Option<String>,
    /// Those that were given behind later ones.
    behind: u64,
    course: Course,
}

/// Reads the capture once.
fn count(input: &Input, order: &Order) -> Result<Counted, Error> {
    let mut counted = Counted::default();
    let mut copies = Copies::default();
    let capture::Ended { damage, behind } = capture::for_each(input, order, |packet| {
        counted.packets += 1;
        let segment = match read(&packet) {
            Ok(segment) => segment,
            Err(skip) => return counted.skipped.count(skip),
        };
        counted.cut += u64::from(segment.cut);
        let (start, end) = counted.span.unwrap_or((packet.time, packet.time));
        counted.span = Some((start.min(packet.time), end.max(packet.time)));
        counted.course.see(packet.number, packet.time);
        let way = usize::from(segment.from > segment.to);
        let ends = [(segment.from, segment.to), (segment.to, segment.from)][way];
        let again = copies.see(packet.time, &segment);
        if counted.flows.len() >= COUNTED && !counted.flows.contains_key(&ends) {
            counted.forgotten += forget_half(&mut counted.flows, Entry::bytes);
        }
        let entry = counted.flows.entry(ends).or_default();
        let this = &mut entry.ways[way];
        this.first = this.first.or(Some(packet.number));
        if let (Some(gap), Some(clock), Some((stamp, _)), false) =
            (counted.course.gap(), &mut this.clock, segment.stamps, segment.syn)
        {
            if let Some(by) = clock.ahead(gap, packet.time, stamp) {
                counted.course.ahead(by);
            }
        }
        // A copy ends where the packet did, whatever the clock.
        let counts = segment.len > 0 && !matches!(again, Some(Again::Copy { .. }));
        if let (Some(first), Some((_, last)), Some(highest), true) =
            (this.first, this.sent, this.highest, counts)
        {
            let ahead = segment.end().wrapping_sub(highest) as i32;
            counted.course.data(first, last, packet.time, ahead);
        }
        entry.see(way, packet.time, &segment, again);
    })?;
    (counted.damage, counted.behind) = (damage, behind);
    Ok(counted)
}

/// Reads the capture once, in disorder twice; chooses a signal, and the largest flows that give it.
///
/// # Errors
/// It cannot be opened, or it has no flow that gives a signal, too little of each packet, or times that go
/// to and fro.
pub fn survey(input: &Input, limits: Limits) -> Result<Survey, Error> {
    let mut counted = count(input, &Order::default())?;
    let order = std::mem::take(&mut counted.course).end();
    let order = order.map_err(|message| Error::input(input.name(), message))?;
    if !order.is_plain() {
        counted = count(input, &order)?;
    }
    let Counted { mut flows, forgotten, packets, skipped, cut, span, damage, behind, .. } = counted;
    let (start, end) = span.unwrap_or_default();
    let skips = skipped.note(packets);
    flows.values_mut().flat_map(|entry| &mut entry.ways).for_each(Way::end);
    let copies = flows.values().flat_map(|entry| &entry.ways).map(|way| way.copies).sum();
    let twice = again_note(copies, packets);
    let nat = translated(flows.iter());
    flows.retain(|ends, _| !nat.contains_key(ends));
    let nat = nat.values().max().map(|largest| translated::note(nat.len(), *largest));
    let cut = cut_note(cut, packets);

    let (mut sized, empty): (Vec<_>, Vec<_>) =
        flows.into_iter().partition(|(_, entry)| entry.bytes() > 0);
    sized.sort_by(|(ends, a), (others, b)| b.bytes().cmp(&a.bytes()).then(ends.cmp(others)));
    let placed = place(
        &mut sized.iter_mut().map(|(ends, entry)| (*ends, entry)).collect::<Vec<_>>(),
        limits.at,
    );
    let packets_of = |(_, entry): &(_, Entry)| entry.traffic().packets;
    // Where none is large enough all are taken, or that is wrong.
    let large = sized.iter().any(|flow| packets_of(flow) >= limits.packets);
    let least = if large { limits.packets } else { 0 };
    let kept = sized.iter().filter(|flow| packets_of(flow) >= least).map(|(_, entry)| entry);
    let signal = choose(kept);
    let mut others = Others::default();
    let all = sized.iter().chain(&empty);
    all.for_each(|(_, entry)| others.count(entry, least, false, signal));
    let share = |sized: &[(_, Entry)]| others.share(sized.iter().map(|(_, of)| of.bytes()).sum());
    let small = leave_small(&mut sized, limits.packets, packets_of, share, "data");
    let small = small.map_err(|message| Error::input(input.name(), message))?;
    let order_notes = order.notes().into_iter().chain(behind_note(behind, packets));
    let notes = skips.into_iter().chain(cut).chain(order_notes).chain(twice).chain(nat);
    let Some(signal) = signal.filter(|_| !others.is_cut()) else {
        let message = others.none(&skipped, packets, limits, LONG_ENOUGH);
        let mut why: Vec<String> = damage.into_iter().chain(notes).chain(small).collect();
        if others.is_udp(&skipped, packets) {
            match spin::survey(input, limits, skipped, packets)? {
                Ok(_) if limits.at.is_some() => {
                    let message = "expected a capture of TCP, found QUIC alone";
                    return Err(Error::input("--at", message));
                }
                Ok(survey) => return Ok(survey),
                Err(lacking) => why.extend(lacking),
            }
        }
        why.push(message);
        return Err(Error::input(input.name(), why.join("; ")));
    };
    let damage = damage.map(|what| format!("{}: {what}", input.name()));
    let mut notes: Vec<String> = damage.into_iter().chain(notes).collect();
    notes.extend(far_apart(input, start, end));
    notes.extend(small);
    notes.extend(placed.as_ref().and_then(Captured::note));
    notes.extend(others.notes(signal, limits.at, LONG_ENOUGH));
    let give = (0..sized.len()).filter(|&index| sized[index].1.gives(signal).is_some());
    let mut chosen: Vec<usize> = give.collect();
    let beyond = chosen.split_off(limits.flows.min(chosen.len()));
    let left = beyond.len() + forgotten;
    if left > 0 {
        let share = others.share(beyond.iter().map(|&index| sized[index].1.bytes()).sum());
        notes.push(left_out(chosen.len(), left, forgotten, share, "data"));
    }
    let flows = chosen.iter().map(|&index| {
        let (ends, entry) = &sized[index];
        Flow {
            ends: entry.ends(*ends),
            name: name(*ends, entry, sized.iter().map(|(_, entry)| entry)),
            tick: entry.gives(signal).unwrap_or_default(),
            mss: entry.mss(),
            copied: entry.ways.iter().any(|way| way.copies > 0),
            doubled: (entry.ways[entry.data()].doubled(), entry.ways[1 - entry.data()].doubled()),
            traffic: entry.traffic(),
        }
    });
    let flows: Vec<Flow> = flows.collect();
    let multipath = chosen.iter().map(|&index| &sized[index].1.multipath);
    notes.extend(mptcp::notes(multipath.zip(flows.iter().map(|flow| flow.name.as_str()))));
    let captured = placed.as_ref().map(Captured::reason).unwrap_or_default();
    Ok(Survey { signal, captured, flows, notes, order, start, end })
}

/// The note on packets of which too little was kept.
pub fn cut_note(cut: u64, packets: u64) -> Option<String> {
    (cut > 0).then(|| format!("{cut} of {packets} packets were captured without all TCP options"))
}

/// Decides where the flows were captured; why, of the largest, and what that follows from.
pub fn place(flows: &mut [((End, End), &mut Entry)], at: Option<At>) -> Option<Captured> {
    let clue = |(ends, entry): &((End, End), &mut Entry)| Clue {
        ends: entry.ends(*ends),
        bytes: entry.bytes(),
        reach: entry.reach(),
    };
    let found = places(&flows.iter().map(clue).collect::<Vec<_>>());
    for ((_, entry), found) in flows.iter_mut().zip(&found) {
        entry.at = at.unwrap_or(found.at);
    }
    let (_, largest) = flows.first()?;
    let found = *found.first()?;
    let change = |(_, entry): &((End, End), &mut Entry)| {
        entry.ways[entry.data()].clock.map_or(0, |clock| clock.change())
    };
    let change = flows.iter().map(change).max().unwrap_or_default();
    Some(Captured { at: largest.at, given: at.is_some(), found, reach: largest.reach(), change })
}

/// Where the largest flow was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    at: At,
    /// By the user.
    given: bool,
    found: Decided,
    reach: (Option<i64>, Option<i64>),
    /// The largest change of a flow's delay from its sender to here, nanoseconds.
    change: i64,
}

/// Near the sender the delay of data, from its timestamp on, changes no more: what a tick and the sender's
/// own queue make of it, nanoseconds.
const STILL: i64 = 20_000_000;

impl Captured {
    /// The place and the reason.
    pub fn reason(&self) -> String {
        let place = self.at.name();
        if self.given {
            return format!("{place}, as --at says");
        }
        let (receiver, sender) = self.reach;
        let ms = |time: Option<i64>| {
            let in_ms = |time: i64| format!("after {:.1} ms at best", time as f64 / 1e6);
            time.map_or("never".into(), in_ms)
        };
        let answers = format!(
            "the largest flow's receiver answers {}, its sender {}",
            ms(receiver),
            ms(sender)
        );
        match self.found.why {
            Why::Answers => format!("{place}: {answers}"),
            Why::Unclear => format!("{place}, of which there is no clear sign: {answers}"),
            Why::Silence if self.change > STILL => format!(
                "{place}: the delay of data changes by {:.1} ms, which it does not near the sender",
                self.change as f64 / 1e6
            ),
            Why::Silence => format!(
                "{place}, of which there is no sign: nobody answers. Near the sender the delay of data \
                 does not change, as its time and its timestamp are of one host"
            ),
        }
    }

    /// What the user should know of it.
    pub fn note(&self) -> Option<String> {
        let clear = match self.found.why {
            Why::Answers => true,
            Why::Unclear => self.given,
            Why::Silence => self.given || self.change > STILL,
        };
        (!clear).then(|| {
            format!(
                "taken for captured {} (--at sender, receiver or middle decides)",
                self.reason()
            )
        })
    }
}

/// The TCP segment in a packet.
pub fn read<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, Skip> {
    if let Some(skip) = packet.skip {
        return Err(skip);
    }
    segment(packet.link.map_err(Skip::Link)?, packet.data, packet.wire)
}

/// The signal that most data gives. One-way delay is before round-trip times, which have the queues
/// of the way back in them, as long as half of the data gives it, of two flows.
pub fn choose<'a>(flows: impl Iterator<Item = &'a Entry> + Clone) -> Option<Signal> {
    let give = |signal| flows.clone().filter(move |entry| entry.gives(signal).is_some());
    let bytes = |signal| -> u64 { give(signal).map(Entry::bytes).sum() };
    let [receiver, sender, rtt] = [Signal::OwdReceiver, Signal::OwdSender, Signal::Rtt].map(bytes);
    // Not where that leaves one alone.
    let compares = give(Signal::OwdSender).count() > 1 || give(Signal::Rtt).count() < 2;
    let near_sender = if compares && 2 * sender >= rtt { Signal::OwdSender } else { Signal::Rtt };
    let most = if near_sender == Signal::Rtt { rtt } else { sender };
    match (receiver, most) {
        (0, 0) => None,
        (receiver, most) if receiver >= most => Some(Signal::OwdReceiver),
        _ => Some(near_sender),
    }
}

/// `10.0.0.1:40001 > 10.0.0.2:5001 mptcp 1f2e3d4c`.
pub fn name<'a>(
    ends: (End, End),
    entry: &Entry,
    mut all: impl Iterator<Item = &'a Entry>,
) -> String {
    let mut name = ends_name(entry.ends(ends));
    if !entry.multipath.is() {
        return name;
    }
    name += " mptcp";
    if let Some(token) = entry.multipath.token {
        // A subflow that the host which was connected to has begun names the other's token.
        let first = all.find(|first| first.multipath.own == Some(token));
        let token = first.and_then(|first| first.multipath.token).unwrap_or(token);
        name += &format!(" {token:08x}");
    }
    name
}
