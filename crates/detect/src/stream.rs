//! A capture while it comes: read once, in memory that does not grow with it.
//!
//! What the first pass over a file finds at its end has to be decided on the way: each second the flows that
//! send most now and are large enough begin to be compared. A flow that ended keeps its place as long as there is
//! room; when another flow needs it, all begins anew with those that still send.

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_laws::{Detector, Params};

use crate::capture;
use crate::copies::{Again, Copies, again_note};
use crate::live::Live;
use crate::measure::State;
use crate::order::disorder_note;
use crate::others::Others;
use crate::packet::{End, Packet, Segment};
use crate::sizes::{COUNTED, Flows, forget_half};
use crate::skipped::Skipped;
use crate::sorted::{Sorted, behind_note};
use crate::survey::{Captured, choose, cut_note, name, place, read};
use crate::tally::{Entry, Way};
use crate::translated::{self, Translated, translated};
use crate::{Decision, Error, Found, Limits, MAX_FLOWS, Recording, Signal, mptcp};

/// Between two looks at which flows there are, nanoseconds.
const LOOK: i64 = 1_000_000_000;
/// So long a flow has sent data before it tells its place and its clock, nanoseconds.
const YOUNG: i64 = 2_000_000_000;
/// In words.
const LONG_ENOUGH: &str = "2 seconds";
/// A flow that was silent so long has ended, nanoseconds.
const SILENT: i64 = 15_000_000_000;
/// What a flow sent counts so much less a second later: half after 7 s.
const DECAY: f64 = 0.9;
/// A flow takes the place of one that sends so many times less.
const LARGER: f64 = 2.0;

/// What happens in a stream; times are seconds since its first packet.
#[derive(Debug)]
pub enum Event<'a> {
    /// A flow is compared with the others from now on. Its number is the length of `flows` before it.
    Joined {
        /// When.
        t_s: f64,
        /// All flows so far.
        flows: &'a [String],
    },
    /// The detector decided.
    Decided {
        /// On flows by their numbers.
        decision: &'a Decision,
        /// Their names.
        flows: &'a [String],
    },
    /// A second has passed.
    Second {
        /// When.
        t_s: f64,
        /// Names of the flows.
        flows: &'a [String],
        /// What each sent in it, Mbit/s.
        mbit_per_s: &'a [f64],
    },
    /// There was no more room: all begins anew, with new numbers. What was found up to here.
    Renewed(&'a Part),
}

/// What was found in a stream, or in a part of it.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its flows.
    pub recording: Recording,
    /// What the detector found.
    pub found: Found,
}

/// A detector on a capture that is read once.
pub struct Stream {
    detector: Detector,
    params: Params,
    limits: Limits,
    /// Flows that are compared in a part, at most.
    room: usize,
    live: Live,
    flows: Flows<(End, End), Followed>,
    slots: Vec<Slot>,
    names: Vec<String>,
    signal: Option<(Signal, Option<Captured>)>,
    copies: Copies,
    skipped: Skipped,
    packets: u64,
    /// Those that have a time and a segment, and those of them without all TCP options.
    timed: u64,
    cut: u64,
    /// Flows that have ended and were not compared; and those that are others, the largest of them.
    gone: Others,
    gone_translated: (usize, Option<Translated>),
    /// When the first packet came, and the newest, nanoseconds since 1970.
    span: Option<(i64, i64)>,
    /// When the present part began.
    since: i64,
    /// When the flows are looked at next.
    look: i64,
    /// What the clock lacks since it was set back, nanoseconds; and by how much it went back at most.
    lacks: i64,
    back: i64,
    /// By how much packets were behind others, nanoseconds; and how many were given behind later ones.
    disorder: i64,
    out_of_order: u64,
    /// The packet before was behind the newest, too.
    behind: bool,
    /// Flows that were large enough, and had no place.
    crowded: bool,
}

/// A flow.
#[derive(Debug, Default)]
struct Followed {
    entry: Entry,
    /// When its newest packet came.
    last: i64,
    /// Its bytes at the last look, and what it sent lately.
    bytes: u64,
    recent: f64,
    slot: Option<usize>,
    /// It was compared with others once.
    joined: bool,
}

/// A flow that is compared.
#[derive(Debug)]
struct Slot {
    ends: (End, End),
    /// The way of its data.
    data: usize,
    state: State,
    lost: u64,
    /// It ended, or gave way to a larger one, and is not compared.
    left: bool,
}

impl Stream {
    /// With room for `limits.flows` at a time.
    ///
    /// # Errors
    /// The detector does not go by delays and losses.
    pub fn new(detector: Detector, params: &Params, limits: Limits) -> Result<Stream, Error> {
        let room = (2 * limits.flows).clamp(2, MAX_FLOWS);
        Ok(Stream {
            detector,
            params: *params,
            limits,
            room,
            live: Live::new(detector, params, room)?,
            flows: Flows::default(),
            slots: Vec::new(),
            names: Vec::new(),
            signal: None,
            copies: Copies::default(),
            skipped: Skipped::default(),
            packets: 0,
            timed: 0,
            cut: 0,
            gone: Others::default(),
            gone_translated: (0, None),
            span: None,
            since: 0,
            look: 0,
            lacks: 0,
            back: 0,
            disorder: 0,
            out_of_order: 0,
            behind: false,
            crowded: false,
        })
    }

    /// Does its detector compare pairs of flows? Else it groups flows by several observations of each.
    pub fn compares_pairs(&self) -> bool {
        self.live.compares_pairs()
    }

    /// Reads to the end, tells what happens as soon as it does, and returns what was found at the end; `name`
    /// is what errors call the stream. Once `ended` is set it may end within a packet.
    ///
    /// # Errors
    /// There was no flow that gives a delay, or `tell` fails.
    pub fn read<E: From<Error>>(
        mut self,
        name: &str,
        from: impl Read + Send + 'static,
        ended: &AtomicBool,
        mut tell: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<Part, E> {
        let mut result = Ok(());
        let mut sorted = Sorted::default();
        let damage = capture::follow(from, |packet| {
            sorted.learn(&packet);
            (self.disorder, self.out_of_order) = (sorted.disorder(), sorted.behind());
            sorted.add(packet, &mut |packet| {
                if result.is_ok() {
                    result = self.packet(&packet, &mut tell);
                }
            });
            result.is_ok()
        });
        sorted.end(&mut |packet| {
            if result.is_ok() {
                result = self.packet(&packet, &mut tell);
            }
        });
        self.out_of_order = sorted.behind();
        result?;
        let (_, end) = self.span.unwrap_or_default();
        self.advance(end, &mut tell)?;
        self.place();
        let damage = damage.filter(|_| !ended.load(Ordering::Relaxed));
        if self.slots.is_empty() {
            let others = self.others();
            let message = match self.packets {
                0 => damage.is_none().then(|| "no packet came".to_owned()),
                _ => Some(others.none(&self.skipped, self.packets, self.limits, LONG_ENOUGH)),
            };
            let notes = self.notes().into_iter().chain(others.small(self.limits.packets));
            let why: Vec<String> = damage.into_iter().chain(notes).chain(message).collect();
            return Err(Error::input(name, why.join("; ")).into());
        }
        let mut part = self.part();
        part.recording.notes.extend(damage.map(|what| format!("{name}: {what}")));
        Ok(part)
    }

    /// Microseconds since the first packet, of a time in nanoseconds since 1970.
    fn time(&self, at: i64) -> u64 {
        let (start, _) = self.span.unwrap_or_default();
        (at.saturating_sub(start) / 1000).max(0) as u64
    }

    fn packet<E>(
        &mut self,
        packet: &Packet,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        self.packets += 1;
        let segment = match read(packet) {
            Ok(segment) => segment,
            Err(skip) => {
                self.skipped.count(skip);
                return Ok(());
            }
        };
        self.timed += 1;
        self.cut += u64::from(segment.cut);
        // Of the first packet, what follows shows whether its time is damaged.
        if self.timed == 2 && self.span.is_some_and(|(first, _)| capture::apart(first, packet.time))
        {
            self.span = None;
            self.flows.clear();
        }
        let time = self.clock(packet.time);
        let (start, newest) = self.span.unwrap_or((time, time));
        if self.span.is_none() {
            (self.since, self.look) = (time, time.saturating_add(LOOK));
        }
        let newest = newest.max(time);
        self.span = Some((start, newest));
        while self.look <= newest {
            let now = self.look;
            self.advance(now, tell)?;
            self.look(now, tell)?;
            // After a gap there is nothing to be seen in every second of it.
            self.look = now.saturating_add(LOOK).max(newest.saturating_sub(LOOK));
            if self.look == now {
                break;
            }
        }
        let again = self.copies.see(time, &segment);
        let way = usize::from(segment.from > segment.to);
        let ends = [(segment.from, segment.to), (segment.to, segment.from)][way];
        if self.flows.len() >= COUNTED && !self.flows.contains_key(&ends) {
            forget_half(&mut self.flows, Followed::weight);
        }
        let flow = self.flows.entry(ends).or_default();
        flow.last = flow.last.max(time);
        flow.entry.see(way, time, &segment, again);
        let Some(slot) = flow.slot else { return Ok(()) };
        let doubled = flow.entry.ways[way].doubled();
        if matches!(again, Some(Again::Copy { sure }) if sure || doubled) {
            return Ok(());
        }
        self.sample(slot, way, time, &segment, tell)
    }

    /// When a packet came by a clock that is never set back: two packets in a row that are behind by a second
    /// and more show that it was.
    fn clock(&mut self, time: i64) -> i64 {
        // Far from where sums end.
        let time = time.min(i64::MAX / 2).saturating_add(self.lacks);
        let Some((_, newest)) = self.span else { return time };
        let behind = newest - time >= LOOK;
        if behind && self.behind {
            self.back = self.back.max(newest - time);
            self.lacks = self.lacks.saturating_add(newest - time);
            self.behind = false;
            return newest;
        }
        self.behind = behind;
        time
    }

    /// A segment of a flow that is compared.
    fn sample<E>(
        &mut self,
        slot: usize,
        way: usize,
        time: i64,
        segment: &Segment,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let now_us = self.time(self.span.map_or(time, |(_, newest)| newest));
        let Slot { state, data, lost, left, .. } = &mut self.slots[slot];
        let sample = state.see(time, segment, way == *data).filter(|_| !*left);
        let Some(sample) = sample else { return Ok(()) };
        let Some(seen) = state.observation(slot, now_us, sample) else { return Ok(()) };
        *lost += u64::from(seen.lost);
        let due = self.live.sample(slot, &seen.sample());
        self.decided(due, now_us, tell)
    }

    /// Up to a time there is no more packet.
    fn advance<E>(
        &mut self,
        time: i64,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let now_us = self.time(time);
        let due = self.live.advance(now_us);
        self.decided(due, now_us, tell)
    }

    fn decided<E>(
        &mut self,
        mut due: Option<Decision>,
        now_us: u64,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(mut decision) = due {
            if !self.slots.is_empty() {
                decision.on.places.truncate(self.slots.len());
                decision.on.confidence.truncate(self.slots.len());
                tell(Event::Decided { decision: &decision, flows: &self.names })?;
            }
            due = self.live.advance(now_us);
        }
        Ok(())
    }

    /// Which flows are compared from now on?
    fn look<E>(
        &mut self,
        now: i64,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let translated = self.translated();
        self.forget(now, &translated);
        let mut mbit_per_s = vec![0.0; self.slots.len()];
        for flow in self.flows.values_mut() {
            let bytes = flow.entry.bytes();
            let sent = bytes.saturating_sub(flow.bytes) as f64;
            flow.recent = DECAY * flow.recent + sent;
            flow.bytes = bytes;
            if let Some(slot) = flow.slot {
                mbit_per_s[slot] = sent * 8e-6;
            }
        }
        let t_s = self.time(now) as f64 / 1e6;
        tell(Event::Second { t_s, flows: &self.names, mbit_per_s: &mbit_per_s })?;
        for slot in &mut self.slots {
            let last = self.flows.get(&slot.ends).map_or(i64::MIN, |flow| flow.last);
            slot.left |= now.saturating_sub(last) >= SILENT;
        }
        let compared = |flow: &Followed| flow.slot.is_some_and(|slot| !self.slots[slot].left);
        let mut large: Vec<_> = self
            .flows
            .iter()
            .filter(|(ends, flow)| {
                let other = compared(flow) || translated.contains_key(ends);
                !other && flow.may_join(now, self.limits.packets)
            })
            .collect();
        large.sort_by(|(ends, a), (others, b)| {
            b.recent.total_cmp(&a.recent).then_with(|| ends.cmp(others))
        });
        let large: Vec<(End, End)> = large.into_iter().map(|(ends, _)| *ends).collect();
        if large.is_empty() {
            return Ok(());
        }
        let captured = self.place();
        if self.slots.iter().all(|slot| slot.left) {
            let entries = large.iter().map(|ends| &self.flows[ends].entry);
            let Some(signal) = choose(entries) else { return Ok(()) };
            // Nobody is left who could be compared with them.
            if !self.slots.is_empty() {
                self.renew(now, tell)?;
            }
            self.signal = Some((signal, captured));
        }
        for ends in large {
            let Some((signal, _)) = self.signal else { return Ok(()) };
            let Some(tick) = self.flows[&ends].entry.gives(signal) else { continue };
            if !self.make_room(self.flows[&ends].recent) {
                self.crowded = true;
                break;
            }
            if let Some(slot) = self.flows[&ends].slot {
                // It comes back under its number.
                self.slots[slot].left = false;
                continue;
            }
            if self.slots.len() == self.room {
                self.renew(now, tell)?;
            }
            self.join(ends, signal, tick);
            tell(Event::Joined { t_s, flows: &self.names })?;
        }
        Ok(())
    }

    /// Those that are others.
    fn translated(&self) -> Flows<(End, End), Translated> {
        translated(self.flows.iter().map(|(ends, flow)| (ends, &flow.entry)))
    }

    /// Forgets flows that have ended and have no place, but for what there was of them.
    fn forget(&mut self, now: i64, translated: &Flows<(End, End), Translated>) {
        let Stream { flows, gone, gone_translated: (count, largest), limits, signal, .. } = self;
        let signal = signal.as_ref().map(|(signal, _)| *signal);
        flows.retain(|ends, flow| {
            if flow.slot.is_some() || now.saturating_sub(flow.last) < SILENT {
                return true;
            }
            match translated.get(ends) {
                Some(of) => (*count, *largest) = (*count + 1, (*largest).max(Some(*of))),
                None => flow.count(gone, limits.packets, signal),
            }
            false
        });
    }

    /// Flows that are not compared.
    fn others(&self) -> Others {
        let mut others = self.gone;
        let signal = self.signal.as_ref().map(|(signal, _)| *signal);
        let translated = self.translated();
        let flows = self.flows.iter().filter(|(ends, _)| !translated.contains_key(ends));
        flows.for_each(|(_, flow)| flow.count(&mut others, self.limits.packets, signal));
        others
    }

    /// What the user should know of its packets.
    fn notes(&self) -> Vec<String> {
        let ways = self.flows.values().flat_map(|flow| &flow.entry.ways);
        let copies = ways.map(|way| {
            let doubtful = if way.doubled() { way.doubtful } else { 0 };
            way.copies + doubtful
        });
        let back = (self.back >= LOOK).then(|| {
            format!(
                "times go back by {:.3} s at most: the clock is taken to have gone on",
                self.back as f64 / 1e9
            )
        });
        let (gone, largest) = self.gone_translated;
        let translated = self.translated();
        let largest = translated.values().copied().chain(largest).max();
        let count = gone + translated.len();
        self.skipped
            .note(self.packets)
            .into_iter()
            .chain(cut_note(self.cut, self.packets))
            .chain(back)
            .chain(disorder_note(self.disorder))
            .chain(behind_note(self.out_of_order, self.packets))
            .chain(again_note(copies.sum(), self.packets))
            .chain(largest.map(|largest| translated::note(count, largest)))
            .collect()
    }

    /// Where the flows were captured.
    fn place(&mut self) -> Option<Captured> {
        let mut all: Vec<((End, End), &mut Entry)> =
            self.flows.iter_mut().map(|(ends, flow)| (*ends, &mut flow.entry)).collect();
        all.sort_by(|(ends, a), (others, b)| {
            b.bytes().cmp(&a.bytes()).then_with(|| ends.cmp(others))
        });
        place(&mut all, self.limits.at)
    }

    /// May a flow that sent so much lately be compared? If there are as many as may be, the one that sends
    /// least gives way to one that sends much more.
    fn make_room(&mut self, recent: f64) -> bool {
        let send: Vec<usize> =
            (0..self.slots.len()).filter(|&slot| !self.slots[slot].left).collect();
        if send.len() < self.limits.flows {
            return true;
        }
        let recent_of = |slot: &usize| self.flows[&self.slots[*slot].ends].recent;
        let least = send.into_iter().min_by(|a, b| recent_of(a).total_cmp(&recent_of(b)));
        let least = least.filter(|slot| recent > LARGER * recent_of(slot));
        if let Some(slot) = least {
            self.slots[slot].left = true;
            self.crowded = true;
        }
        least.is_some()
    }

    fn join(&mut self, ends: (End, End), signal: Signal, tick: i64) {
        let all = self.flows.values().map(|flow| &flow.entry);
        let name = name(ends, &self.flows[&ends].entry, all);
        self.names.push(name);
        let slot = self.slots.len();
        let flow = self.flows.get_mut(&ends);
        let entry = flow.map(|flow| {
            (flow.slot, flow.joined) = (Some(slot), true);
            &flow.entry
        });
        let (data, mss) = entry.map_or((0, 1), |entry| (entry.data(), entry.mss()));
        let state = State::new(signal, tick, mss);
        self.slots.push(Slot { ends, data, state, lost: 0, left: false });
    }

    /// Begins anew with the flows that still send.
    fn renew<E>(
        &mut self,
        now: i64,
        tell: &mut impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = self.part();
        tell(Event::Renewed(&part))?;
        // The detector was accepted before.
        if let Ok(live) = Live::new(self.detector, &self.params, self.room) {
            self.live = live;
        }
        self.since = now;
        let slots = std::mem::take(&mut self.slots);
        let names = std::mem::take(&mut self.names);
        let t_s = self.time(now) as f64 / 1e6;
        for (slot, name) in slots.into_iter().zip(names) {
            let sends = !slot.left;
            let Some(flow) = self.flows.get_mut(&slot.ends) else { continue };
            flow.slot = sends.then_some(self.slots.len());
            if sends {
                self.slots.push(slot);
                self.names.push(name);
                tell(Event::Joined { t_s, flows: &self.names })?;
            }
        }
        Ok(())
    }

    /// What was found since the present part began.
    fn part(&self) -> Part {
        let (start, end) = self.span.unwrap_or_default();
        let seconds = |time: i64| (time - start) as f64 / 1e9;
        let all = || self.flows.values().map(|flow| &flow.entry);
        let entry = |slot: &Slot| {
            let mut entry = self.flows.get(&slot.ends).map(|flow| flow.entry.clone());
            entry.iter_mut().flat_map(|entry| &mut entry.ways).for_each(Way::end);
            entry.unwrap_or_default()
        };
        let crowded = self.crowded.then(|| {
            format!(
                "more than {} flows sent at a time: the others are left out (--flows)",
                self.limits.flows
            )
        });
        let captured = self.signal.as_ref().and_then(|(_, captured)| captured.as_ref());
        let entries: Vec<Entry> = self.slots.iter().map(entry).collect();
        let flows: Vec<String> =
            self.slots.iter().zip(&entries).map(|(slot, of)| name(slot.ends, of, all())).collect();
        let multipath = entries.iter().map(|of| &of.multipath);
        let (others, limits) = (self.others(), self.limits);
        let lacking = self.signal.as_ref();
        let lacking = lacking.map(|(signal, _)| others.notes(*signal, limits.at, LONG_ENOUGH));
        let notes = self
            .notes()
            .into_iter()
            .chain(others.small(limits.packets))
            .chain(captured.and_then(Captured::note))
            .chain(lacking.into_iter().flatten())
            .chain(crowded)
            .chain(mptcp::notes(multipath.zip(flows.iter().map(String::as_str))));
        let recording = Recording {
            signal: self.signal.map_or(Signal::Rtt, |(signal, _)| signal),
            captured: captured.map(Captured::reason),
            notes: notes.collect(),
            flows,
            traffic: entries.iter().map(Entry::traffic).collect(),
            span: (seconds(self.since), seconds(end)),
        };
        let mut verdicts = self.live.verdicts();
        verdicts.retain(|verdict| verdict.flows.1 < self.slots.len());
        let lost = self.slots.iter().map(|slot| slot.lost).collect();
        Part { recording, found: Found { verdicts, lost, warm_up_s: self.live.warm_up_s } }
    }
}

impl Followed {
    /// Is it large enough, and old enough to tell its place and its clock?
    fn may_join(&self, now: i64, packets: u64) -> bool {
        let way = &self.entry.ways[self.entry.data()];
        now - self.last < LOOK && way.packets >= packets && !self.is_young()
    }

    /// Has it not sent for long?
    fn is_young(&self) -> bool {
        let sent = self.entry.ways[self.entry.data()].sent;
        sent.is_none_or(|(first, last)| last - first < YOUNG)
    }

    /// Counts it among flows, by the limit of packets and the signal.
    fn count(&self, flows: &mut Others, least: u64, signal: Option<Signal>) {
        let mut entry = self.entry.clone();
        entry.ways.iter_mut().for_each(Way::end);
        match self.joined {
            true => flows.analysed(&entry),
            false => flows.count(&entry, least, self.is_young(), signal),
        }
    }

    /// Which flows are forgotten first, when there are too many.
    fn weight(&self) -> u64 {
        let lately = self.recent as u64 + self.entry.bytes().saturating_sub(self.bytes);
        if self.slot.is_some() { u64::MAX } else { lately }
    }
}

/// Is a stream a capture that can be read as it comes? And the whole of it, of which the beginning was read to
/// tell that.
///
/// # Errors
/// It cannot be read.
pub fn begin(mut from: impl Read) -> io::Result<(bool, impl Read)> {
    let mut beginning = Vec::new();
    (&mut from).take(capture::HEADER).read_to_end(&mut beginning)?;
    let is_capture = beginning.get(..4).is_some_and(capture::is_capture);
    if is_capture {
        let rest = capture::first_block(&beginning) - beginning.len() as u64;
        (&mut from).take(rest).read_to_end(&mut beginning)?;
    }
    Ok((is_capture, Cursor::new(beginning).chain(from)))
}
