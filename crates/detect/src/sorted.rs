//! Packets in the order of time, of a capture that has them in disorder.
//!
//! Packets wait for others that come late. Of a file it is known how late these come; of a stream they wait as long as the
//! latest came late in this period of ten seconds and in that before it. If too many wait, the first are given. What is
//! given behind a later one all the same is counted.

use std::collections::BTreeMap;

use crate::order::{BACK, DISORDER};
use crate::packet::{Link, Packet};

/// Bytes that are kept of a packet that waits: more than all headers have.
const KEPT: usize = 256;

/// Packets that wait, at most: 16 MB, each with a record of some 100 bytes.
const WAITING: usize = (16 << 20) / (KEPT + 100);

/// A period, nanoseconds.
const PERIOD: i64 = 10_000_000_000;

/// Packets that wait for those that come late.
#[derive(Debug, Default)]
pub struct Sorted {
    /// How late they come at most, and for how long others wait now, nanoseconds.
    disorder: i64,
    wait: i64,
    lately: Lately,
    newest: Option<i64>,
    /// By their times, and the order in which they came.
    waiting: BTreeMap<(i64, u64), Waiting>,
    added: u64,
    /// The latest time of those that were given, and how many were given behind it.
    given: Option<i64>,
    behind: u64,
    /// Room of packets that wait no more.
    spare: Vec<Vec<u8>>,
}

/// How late packets came in this period, and in that before it, nanoseconds.
#[derive(Debug, Default)]
struct Lately {
    since: i64,
    now: i64,
    before: i64,
}

impl Lately {
    /// At a time a packet came so late; returns the latest of both periods.
    fn see(&mut self, time: i64, late: i64) -> i64 {
        let passed = time.saturating_sub(self.since);
        if !(0..PERIOD).contains(&passed) {
            // Of one that ended long ago nothing counts any more.
            let before = if passed < 2 * PERIOD { self.now } else { 0 };
            *self = Lately { since: time, now: 0, before };
        }
        self.now = self.now.max(late);
        self.now.max(self.before)
    }
}

/// A [`Packet`].
#[derive(Debug)]
struct Waiting {
    number: u64,
    link: Result<Link, u16>,
    data: Vec<u8>,
    wire: u32,
}

impl Sorted {
    /// Of packets that come so late, nanoseconds; 0: in order.
    pub fn new(disorder: i64) -> Sorted {
        Sorted { disorder, wait: disorder, ..Sorted::default() }
    }

    /// How late they come at most, as far as it is known.
    pub fn disorder(&self) -> i64 {
        self.disorder
    }

    /// Those that were given behind later ones: they came later than others had to wait, or than so many could.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Packets may come as late as this one, which is [added](Sorted::add) next.
    pub fn learn(&mut self, packet: &Packet) {
        if packet.skip.is_some() {
            return;
        }
        let newest = self.newest.map_or(packet.time, |newest| newest.max(packet.time));
        let back = newest.saturating_sub(packet.time);
        let late = if (DISORDER..BACK).contains(&back) { back } else { 0 };
        self.disorder = self.disorder.max(late);
        self.wait = self.lately.see(newest, late);
    }

    /// A packet; those to `each` that no other comes before.
    pub fn add(&mut self, packet: Packet, each: &mut impl FnMut(Packet)) {
        if packet.skip.is_some() {
            return each(packet);
        }
        let newest = *self.newest.get_or_insert(packet.time);
        self.newest = Some(newest.max(packet.time));
        if newest.saturating_sub(packet.time) >= BACK {
            // The clock was set back, or ahead for a moment.
            self.end(each);
            (self.newest, self.given) = (Some(packet.time), None);
        }
        if self.wait == 0 && self.waiting.is_empty() {
            self.count(packet.time);
            return each(packet);
        }
        let Packet { number, time, link, data, wire, .. } = packet;
        let mut room = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(KEPT));
        room.clear();
        room.extend(&data[..data.len().min(KEPT)]);
        self.added += 1;
        self.waiting.insert((time, self.added), Waiting { number, link, data: room, wire });
        let until = self.newest.map_or(time, |newest| newest.saturating_sub(self.wait));
        while let Some(&(first, _)) = self.waiting.keys().next() {
            if first > until && self.waiting.len() <= WAITING {
                break;
            }
            self.give(each);
        }
    }

    /// There are no more: the others.
    pub fn end(&mut self, each: &mut impl FnMut(Packet)) {
        while !self.waiting.is_empty() {
            self.give(each);
        }
    }

    /// The first that waits.
    fn give(&mut self, each: &mut impl FnMut(Packet)) {
        let Some(((time, _), of)) = self.waiting.pop_first() else { return };
        self.count(time);
        let Waiting { number, link, data, wire } = of;
        each(Packet { number, time, link, data: &data, wire, skip: None });
        self.spare.push(data);
    }

    /// One that is given now.
    fn count(&mut self, time: i64) {
        let given = *self.given.get_or_insert(time);
        // Where no disorder is known, a clock was set back by a little.
        self.behind += u64::from(self.disorder > 0 && given.saturating_sub(time) >= DISORDER);
        self.given = Some(given.max(time));
    }
}

/// The note on packets that were given behind later ones.
pub fn behind_note(behind: u64, packets: u64) -> Option<String> {
    (behind > 0).then(|| {
        format!(
            "{behind} of {packets} packets are read out of order: later ones were read before they came, as none was \
                so late in the last 10 s or {WAITING} is the most that wait"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(time: i64) -> Packet<'static> {
        Packet { number: 0, time, link: Ok(Link::Raw), data: &[], wire: 0, skip: None }
    }

    /// Of a stream with a packet each 10 ms, and one of them 390 ms late.
    #[test]
    fn packets_wait_no_longer_than_others_came_late_lately() {
        let (mut sorted, mut given) = (Sorted::default(), Vec::new());
        let times = (0..3000).map(|n| if n == 100 { 600 } else { 10 * n });
        let each = times.map(|ms| {
            let packet = packet(ms * MS);
            sorted.learn(&packet);
            sorted.add(packet, &mut |packet| given.push(packet.time));
            sorted.waiting.len()
        });
        let waiting: Vec<usize> = each.collect();
        assert_eq!([waiting[99], waiting[100]], [0, 0], "nothing was late before");
        // In the period of that packet, and in the next.
        assert_eq!([waiting[500], waiting[1999]], [39, 39]);
        assert_eq!([waiting[2000], waiting[2999]], [0, 0]);
        assert_eq!((given.len(), sorted.behind()), (3000, 1));
        assert_eq!(given.windows(2).filter(|two| two[0] > two[1]).count(), 1);
        assert_eq!(sorted.disorder(), 390 * MS);
    }

    #[test]
    fn a_clock_that_is_set_forgets_no_disorder_at_once() {
        let mut lately = Lately::default();
        let hour = 3_600_000 * MS;
        assert_eq!(lately.see(hour, 5 * MS), 5 * MS);
        // Set back by an hour, and there for a period.
        assert_eq!(lately.see(0, 0), 5 * MS);
        assert_eq!(lately.see(PERIOD - 1, 2 * MS), 5 * MS);
        assert_eq!(lately.see(PERIOD, 0), 2 * MS);
        // After a long silence.
        assert_eq!(lately.see(3 * PERIOD, 0), 0);
    }

    #[test]
    fn what_comes_behind_more_packets_than_can_wait_is_counted() {
        let (mut sorted, mut given) = (Sorted::new(BACK - 1), 0);
        let more = 2000;
        for n in 0..(WAITING + more) as i64 {
            sorted.add(packet(n * 1000), &mut |packet| {
                assert_eq!(packet.time, given * 1000);
                given += 1;
            });
        }
        assert_eq!((given as usize, sorted.behind()), (more, 0));
        // Nothing later is given yet; a millisecond behind what is; more.
        for (late, behind) in [(more as i64 * 1000, 0), (999_000, 1), (500, 2)] {
            sorted.add(packet(late), &mut |_| ());
            assert_eq!(sorted.behind(), behind, "{late}");
        }
        sorted.end(&mut |_| ());
        assert_eq!(sorted.behind(), 2);
        assert_eq!(behind_note(0, 9), None);
        let note = "2 of 50000 packets are read out of order: later ones were read before they came, as none was \
                so late in the last 10 s or 47127 is the most that wait";
        assert_eq!(behind_note(sorted.behind(), 50_000).unwrap(), note);
    }
}
