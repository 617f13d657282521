//! Captures whose times go back: parts of a file that were captured at the same time and stand one after
//! the other (`mergecap -a`, sections of pcapng), clocks that were set, back or ahead, and packets of several
//! interfaces that were written in turn (dumpcap).

use std::collections::VecDeque;
use std::ops::Range;

use crate::clock::Gap;

/// Times that go back by less are disorder, or small corrections of a clock, nanoseconds.
pub const BACK: i64 = 1_000_000_000;

/// Less disorder changes nothing, and of less nothing is said, nanoseconds.
pub const DISORDER: i64 = 1_000_000;
const NOTED: i64 = 20 * DISORDER;

/// After so long without any packet the clock may have been set ahead, nanoseconds.
const GAP: i64 = 2_000_000_000;

/// Clocks that differ by less than one in so many are taken for equal, as in [`crate::clock`].
const UNLIKE: i64 = 50;

/// Parts that are read at the same time, with a buffer each.
const PARTS: usize = 16;

/// Places where the time goes back; with more it has no order.
const STEPS: usize = 256;

/// What goes back by more after a few packets goes back from damaged times, nanoseconds: a day.
const DAMAGE: i64 = 86_400_000_000_000;

/// What shows the kind of a place is counted up to here.
const SURE: i32 = 32;

/// A sequence number that is so far ahead of the newest is of another connection, bytes.
const AHEAD: i32 = 1 << 22;

/// In which order a file is read.
#[derive(Clone, Debug, Default)]
pub struct Order {
    steps: Vec<Step>,
    /// Nanoseconds.
    disorder: i64,
}

/// A place where the time goes back, or too far ahead.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Of the first packet behind it.
    number: u64,
    /// Nanoseconds; less than 0 where it goes ahead.
    back: i64,
    /// The newest time before it.
    newest: i64,
    /// How much more often flows go on behind it, at times that they had before, than not. If they do, the clock
    /// was set back.
    goes_on: i32,
}

/// A part that has its own order of time.
#[derive(Clone, Debug)]
pub struct Part {
    /// By their numbers.
    pub packets: Range<u64>,
    /// What the clock lacks from a packet on, nanoseconds.
    set_back: VecDeque<(u64, i64)>,
    lacks: i64,
}

impl Part {
    /// When a packet came that has a time in the file; packets in the order of their numbers.
    pub fn time(&mut self, number: u64, time: i64) -> i64 {
        while let Some(&(_, lacks)) = self.set_back.front().filter(|(from, _)| *from <= number) {
            self.lacks = lacks;
            self.set_back.pop_front();
        }
        time.saturating_add(self.lacks)
    }
}

impl Order {
    /// Is that the order of the file, with its times?
    pub fn is_plain(&self) -> bool {
        self.steps.is_empty() && self.disorder == 0
    }

    /// By how much packets of a part are behind others before them at most, nanoseconds; 0 if that is too little to
    /// matter.
    pub fn disorder(&self) -> i64 {
        self.disorder
    }

    /// The parts, at least one.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let begin = |from| Part { packets: from..u64::MAX, set_back: VecDeque::new(), lacks: 0 };
        let mut parts = vec![begin(0)];
        let mut lacks = 0_i64;
        for step in &self.steps {
            let Some(last) = parts.last_mut() else { continue };
            if step.goes_on > 0 {
                lacks = lacks.saturating_add(step.back);
                last.set_back.push_back((step.number, lacks));
            } else {
                last.packets.end = step.number;
                lacks = 0;
                parts.push(begin(step.number));
            }
        }
        parts.into_iter()
    }

    /// What the user should know of it.
    pub fn notes(&self) -> Vec<String> {
        let ahead: Vec<&Step> = self.steps.iter().filter(|step| step.back < 0).collect();
        let ahead = ahead.first().map(|first| {
            let most = ahead.iter().map(|step| -step.back).max().unwrap_or_default();
            let (by, number) = (most as f64 / 1e9, first.number);
            let times = match ahead.len() {
                1 => format!("by {by:.3} s at packet {number}"),
                count => format!("{count} times, first at packet {number}, by {by:.3} s at most"),
            };
            format!(
                "times go ahead {times}, and no sender's timestamps do: the clock was set, and is taken to have \
                 gone on"
            )
        });
        let note = |goes_on: bool, what: &str| {
            let steps = || {
                let back = self.steps.iter().filter(|step| step.back > 0);
                back.filter(|step| (step.goes_on > 0) == goes_on)
            };
            let first = steps().next()?;
            let most = steps().map(|step| step.back).max()?;
            let (most, number) = (most as f64 / 1e9, first.number);
            Some(match steps().count() {
                1 => format!("times go back by {most:.3} s at packet {number}: {what}"),
                count => format!(
                    "times go back {count} times, first at packet {number}, by {most:.3} s at most: {what}"
                ),
            })
        };
        let put =
            note(false, "what follows was captured at the same time, and is read in its place");
        put.into_iter()
            .chain(note(true, "the clock was set back, and is taken to have gone on"))
            .chain(ahead)
            .chain(disorder_note(self.disorder))
            .collect()
    }
}

/// The note on packets that are so far behind others, nanoseconds.
pub fn disorder_note(disorder: i64) -> Option<String> {
    let seconds = disorder as f64 / 1e9;
    (disorder >= NOTED).then(|| {
        format!(
            "packets are up to {seconds:.3} s behind others before them, as of several interfaces: read in the order of \
             time"
        )
    })
}

/// A gap, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Silence {
    gap: Gap,
    /// Nanoseconds.
    length: i64,
    /// By how much at least the time was ahead of the senders' clocks ever after, nanoseconds. What a link held
    /// for a time is late at first, and not later.
    ahead: Option<i64>,
    /// The clock was set back since: nothing more is told of this one.
    over: bool,
}

impl Silence {
    /// What the clock was set ahead by, if it was.
    fn step(&self) -> Option<Step> {
        // Clocks are not quite as fast as each other.
        let ahead = self.ahead.filter(|&ahead| ahead >= BACK + self.length / UNLIKE)?;
        // Of a queue that changed meanwhile nothing is known: then no time passed at all.
        let by = if self.length - ahead < BACK { self.length } else { ahead };
        Some(Step { number: self.gap.number, back: -by, newest: self.gap.from, goes_on: SURE })
    }
}

/// Finds the order of a file, packet by packet.
#[derive(Debug, Default)]
pub struct Course {
    newest: Option<i64>,
    order: Order,
    gaps: Vec<Silence>,
    /// Data that goes on in its flow at a time that is back, by less than [`BACK`]: of several interfaces each flow's
    /// own times are in order.
    set_back: i32,
    /// Times go back more often than can be dealt with.
    lost: bool,
}

impl Course {
    /// A packet.
    pub fn see(&mut self, number: u64, time: i64) {
        let newest = *self.newest.get_or_insert(time);
        let back = newest.saturating_sub(time);
        if back <= -GAP && self.gaps.len() < STEPS {
            // Of a gap whose senders' clocks went on nothing is kept.
            self.gaps.truncate(self.gaps.partition_point(|before| before.step().is_some()));
            let gap = Gap { number, from: newest };
            self.gaps.push(Silence { gap, length: -back, ahead: None, over: false });
        }
        if back < BACK {
            self.newest = Some(newest.max(time));
            if back >= DISORDER {
                self.order.disorder = self.order.disorder.max(back);
            }
        } else if self.order.steps.len() == STEPS {
            self.lost = true;
        } else {
            self.newest = Some(time);
            self.order.steps.push(Step { number, back, newest, goes_on: 0 });
            self.gaps.iter_mut().for_each(|silence| silence.over = true);
        }
    }

    /// The last time without packets.
    pub fn gap(&self) -> Option<Gap> {
        self.gaps.last().filter(|silence| !silence.over).map(|silence| silence.gap)
    }

    /// By how much the time is ahead of a sender's clock since [`Course::gap`].
    pub fn ahead(&mut self, by: i64) {
        if let Some(silence) = self.gaps.last_mut() {
            silence.ahead = Some(silence.ahead.map_or(by, |least| least.min(by)));
        }
    }

    /// Data of a flow whose first packet has a number, and whose newest data before passed at `last`; it passes at
    /// `time`, and ends so far behind the newest. The first that come after a place tell its kind, at times that
    /// were there before it.
    pub fn data(&mut self, first: u64, last: i64, time: i64, ahead: i32) {
        let goes_on = (1..AHEAD).contains(&ahead);
        if goes_on && (DISORDER..BACK).contains(&last.saturating_sub(time)) {
            self.set_back = self.set_back.saturating_add(1);
        }
        let known = |step: &&mut Step| {
            first < step.number && time < step.newest && step.goes_on.abs() < SURE
        };
        if let Some(step) = self.order.steps.last_mut().filter(known) {
            // Of parts that were written in turn each goes on with its own times.
            step.goes_on += if goes_on && time < last { 1 } else { -1 };
        }
    }

    /// The order, if it has one; else what is wrong.
    pub fn end(mut self) -> Result<Order, String> {
        if self.set_back >= SURE {
            // A clock that was set back by little: packets are in the order in which they passed.
            self.order.disorder = 0;
        }
        self.order.steps.retain(|step| step.goes_on <= 0 || step.back < DAMAGE);
        self.order.steps.extend(self.gaps.iter().filter_map(Silence::step));
        self.order.steps.sort_by_key(|step| step.number);
        let parts = self.order.parts().count();
        if !self.lost && parts <= PARTS {
            return Ok(self.order);
        }
        let most = self.order.steps.iter().map(|step| step.back).max().unwrap_or_default();
        Err(format!(
            "times go back {} times or more, by {:.3} s at most: expected packets in the order of time \
             (Wireshark's reordercap sorts them)",
            self.order.steps.len(),
            most as f64 / 1e9,
        ))
    }
}
