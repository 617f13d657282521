//! The second pass over a capture: the delays and losses of the chosen flows.

use std::collections::VecDeque;

use crate::clock::{Known, Stamps};
use crate::copies::{Again, Copies, after};
use crate::packet::{End, Segment};
use crate::sizes::Flows;
use crate::survey::read;
use crate::surveyed::{Flow, Survey};
use crate::tally::is_of_a_message;
use crate::{Error, Input, Observation, Signal, capture, spin};

/// Segments of a flow that wait for their acknowledgement; of more no delay is taken.
const OUTSTANDING: usize = 1 << 14;

/// A segment that comes so much later than the newest, and has no timestamp to show it, was sent
/// again and not overtaken (as Wireshark has it), nanoseconds.
const OVERTAKEN: i64 = 3_000_000;

/// [`narrows_laws::detect::DELACK_US`], nanoseconds.
const WAITED: i64 = 1000 * narrows_laws::detect::DELACK_US as i64;

/// A segment whose acknowledgement is waited for.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u32,
    time: i64,
    again: bool,
}

/// What is kept of a flow.
#[derive(Debug)]
pub struct State {
    signal: Signal,
    tick: i64,
    mss: u32,
    /// Stamps of the end that shows the delay, and when the first came.
    stamps: Option<(Stamps, i64)>,
    known: Known,
    /// End of the data so far, and its newest segment's stamp and time.
    highest: Option<u32>,
    newest: (Option<u32>, i64),
    /// In the order of their ends.
    sent: VecDeque<Sent>,
    /// How far the receiver has acknowledged data, selectively or not.
    newest_ack: Option<u32>,
    /// The last acknowledgement, and its time.
    acked: Option<(u32, i64)>,
    /// It repeated the one before without a selective block: something is missing.
    hole: bool,
    /// Losses that have not been reported yet.
    lost: u32,
}

impl State {
    /// Of a connection that begins.
    pub fn new(signal: Signal, tick: i64, mss: u32) -> State {
        State {
            signal,
            tick,
            mss,
            stamps: None,
            known: Known::new(tick),
            highest: None,
            newest: (None, 0),
            sent: VecDeque::new(),
            newest_ack: None,
            acked: None,
            hole: false,
            lost: 0,
        }
    }

    /// A segment passes, of the data or of what comes back; none: it shows nothing.
    pub fn see(&mut self, time: i64, segment: &Segment, data: bool) -> Option<Sample> {
        if segment.syn && data {
            *self = State::new(self.signal, self.tick, self.mss);
            return None;
        }
        match data {
            true if segment.len > 0 => Some(self.data(time, segment)),
            false if self.signal != Signal::OwdReceiver && !segment.syn => {
                Some(self.ack(time, segment))
            }
            _ => None,
        }
    }

    /// What is to be told of a flow after a sample, if anything.
    pub fn observation(&mut self, flow: usize, now_us: u64, sample: Sample) -> Option<Observation> {
        let lost = std::mem::take(&mut self.lost);
        let Sample { delay, delivered } = sample;
        let delay_us = delay.map(|delay| (delay / 1000).clamp(MIN_US, MAX_US) as i32);
        let news = delay_us.is_some() || delivered > 0 || lost > 0;
        news.then_some(Observation { flow, now_us, delay_us, delivered, lost })
    }

    /// Data passes. Returns the delay of it, if it is measured here.
    fn data(&mut self, time: i64, segment: &Segment) -> Sample {
        let end = segment.end();
        let stamp = segment.stamps.map(|(stamp, _)| stamp);
        let Some(highest) = self.highest else {
            self.advance(time, end, stamp);
            return self.arrived(time, segment);
        };
        if after(end, highest) {
            self.advance(time, end, stamp);
            return self.arrived(time, segment);
        }
        if self.again(time, stamp) {
            self.lost += segment.len.div_ceil(self.mss);
            let (from, to) = (segment.seq, end);
            let first = self.sent.partition_point(|sent| !after(sent.end, from));
            for sent in self.sent.range_mut(first..) {
                sent.again = true;
                if !after(to, sent.end) {
                    break;
                }
            }
            return Sample::default();
        }
        // Overtaken, but it came.
        self.arrived(time, segment)
    }

    fn advance(&mut self, time: i64, end: u32, stamp: Option<u32>) {
        self.highest = Some(end);
        self.newest = (stamp, time);
        if self.signal != Signal::OwdReceiver && self.sent.len() < OUTSTANDING {
            self.sent.push_back(Sent { end, time, again: false });
        }
    }

    /// Was a segment that is not the newest sent again? Near the sender nothing is overtaken. Near the
    /// receiver what was sent again has a later stamp than the newest.
    fn again(&self, time: i64, stamp: Option<u32>) -> bool {
        match (self.signal, stamp, self.newest) {
            (Signal::OwdReceiver, Some(stamp), (Some(newest), _)) => after(stamp, newest),
            (Signal::OwdReceiver, _, (_, newest)) => time - newest > OVERTAKEN,
            _ => true,
        }
    }

    /// Near the receiver: it is there. The delay is the time of arrival less that of its stamp.
    fn arrived(&mut self, time: i64, segment: &Segment) -> Sample {
        if self.signal != Signal::OwdReceiver {
            return Sample::default();
        }
        let delay = segment.stamps.map(|(stamp, _)| self.since(stamp, time, time));
        Sample { delay, delivered: segment.len.div_ceil(self.mss) }
    }

    /// From `sent`, a time here, to a stamp of the other clock, less what the two clocks differ; changed by no
    /// more than the stamps [show](Known).
    fn since(&mut self, stamp: u32, now: i64, other: i64) -> i64 {
        let (stamps, first) = self.stamps.get_or_insert_with(|| (Stamps::new(stamp), now));
        // Stamps that jump to and fro add up to more than fits.
        let stamped = stamps.ticks(stamp).saturating_mul(self.tick);
        let here = other - *first;
        let delay = stamped.saturating_sub(here);
        self.known.within(match self.signal {
            Signal::OwdReceiver => delay.saturating_neg(),
            _ => delay.saturating_add(self.tick),
        })
    }

    /// An acknowledgement passes, near the sender. The delay is that of the newest segment it covers
    /// of: until it passes, or until its stamp; [of a message](is_of_a_message) none.
    fn ack(&mut self, time: i64, segment: &Segment) -> Sample {
        let Some(ack) = segment.ack else { return Sample::default() };
        // A block below the acknowledgement reports a duplicate (RFC 2883).
        let block = segment.sack.map(|(_, end)| end).filter(|&end| after(end, ack));
        let newest = block.unwrap_or(ack);
        let (last, before) = self.acked.unwrap_or((ack, time));
        let advance = ack.wrapping_sub(last);
        // The first one acknowledges what nobody saw, too.
        let bytes = self.acked.map_or(u32::MAX, |_| advance);
        let hole = self.hole;
        // What fills a hole acknowledges what came long before.
        let repeated = self.acked.is_some() && ack == last;
        self.hole = repeated && block.is_none() && segment.len == 0 && !self.sent.is_empty();
        if !after(last, ack) {
            self.acked = Some((ack, time));
        }
        if !self.newest_ack.is_none_or(|before| after(newest, before)) {
            self.forget(ack);
            return Sample::default();
        }
        let news = self.newest_ack.map_or(0, |before| newest.wrapping_sub(before));
        self.newest_ack = Some(newest);
        let place = self.sent.partition_point(|sent| after(newest, sent.end));
        let newest = self.sent.get(place).copied();
        self.forget(ack);
        let delivered = news.div_ceil(self.mss);
        let waited = block.is_none() && advance <= self.mss && time - before >= WAITED;
        let filled = hole && block.is_none();
        let message = block.is_none() && is_of_a_message(segment, bytes, self.mss);
        let usable = newest.filter(|sent| !(sent.again || waited || filled || message));
        let delay = usable.and_then(|sent| match self.signal {
            Signal::Rtt => Some(time - sent.time),
            _ => segment.stamps.map(|(stamp, _)| self.since(stamp, sent.time, sent.time)),
        });
        Sample { delay, delivered }
    }

    /// Nothing up to `ack` is waited for any more.
    fn forget(&mut self, ack: u32) {
        while self.sent.front().is_some_and(|sent| !after(sent.end, ack)) {
            self.sent.pop_front();
        }
    }
}

/// What a segment shows of its flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    delay: Option<i64>,
    delivered: u32,
}

/// Reads the capture again and gives each observation of the flows to `each`, in the order of time.
///
/// # Errors
/// It cannot be opened.
pub fn measure<E: From<Error>>(
    input: &Input,
    survey: &Survey,
    mut each: impl FnMut(Observation) -> Result<(), E>,
) -> Result<(), E> {
    if survey.signal == Signal::Spin {
        return spin::measure(input, survey, each);
    }
    let places: Flows<(End, End), (usize, bool)> = survey
        .flows
        .iter()
        .enumerate()
        .flat_map(|(index, flow)| {
            let (from, to) = flow.ends;
            [((from, to), (index, true)), ((to, from), (index, false))]
        })
        .collect();
    let mut states: Vec<State> =
        survey.flows.iter().map(|flow| State::new(survey.signal, flow.tick, flow.mss)).collect();
    let mut copies = Copies::default();
    let mut newest = 0;
    let mut result = Ok(());
    capture::for_each(input, &survey.order, |packet| {
        let Ok(segment) = read(&packet) else { return };
        let Some(&(flow, data)) = places.get(&(segment.from, segment.to)) else { return };
        if result.is_err() {
            return;
        }
        let Flow { copied, doubled, .. } = survey.flows[flow];
        if copied {
            if let Some(Again::Copy { sure }) = copies.see(packet.time, &segment) {
                if sure || if data { doubled.0 } else { doubled.1 } {
                    return;
                }
            }
        }
        let Some(sample) = states[flow].see(packet.time, &segment, data) else { return };
        // Clocks of captures may step back, and packets of several interfaces be in disorder.
        newest = newest.max(packet.time.saturating_sub(survey.start) / 1000);
        if let Some(observation) = states[flow].observation(flow, newest as u64, sample) {
            result = each(observation);
        }
    })?;
    result
}

const MIN_US: i64 = i32::MIN as i64;
const MAX_US: i64 = i32::MAX as i64;
