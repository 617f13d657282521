//! Packets in the order of time, of a capture that has them in disorder.

use std::collections::BTreeMap;

use crate::order::{BACK, DISORDER};
use crate::packet::{Link, Packet};

/// Bytes that are kept of a packet that waits: more than all headers have.
const KEPT: usize = 256;

/// Packets that wait, at most: 16 MB, each with a record of some 100 bytes.
const WAITING: usize = (16 << 20) / (KEPT + 100);

/// Packets that wait for those that come late.
#[derive(Debug, Default)]
pub struct Sorted {
    /// How late they come, nanoseconds.
    disorder: i64,
    newest: Option<i64>,
    /// By their times, and the order in which they came.
    waiting: BTreeMap<(i64, u64), Waiting>,
    added: u64,
    /// Room of packets that wait no more.
    spare: Vec<Vec<u8>>,
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
        Sorted { disorder, ..Sorted::default() }
    }

    /// How late they come, as far as it is known.
    pub fn disorder(&self) -> i64 {
        self.disorder
    }

    /// Packets may come as late as this one, which is [added](Sorted::add) next.
    pub fn learn(&mut self, packet: &Packet) {
        let back = self.newest.map_or(0, |newest| newest.saturating_sub(packet.time));
        if packet.skip.is_none() && (DISORDER..BACK).contains(&back) {
            self.disorder = self.disorder.max(back);
        }
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
            self.newest = Some(packet.time);
        }
        if self.disorder == 0 {
            return each(packet);
        }
        let Packet { number, time, link, data, wire, .. } = packet;
        let mut room = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(KEPT));
        room.clear();
        room.extend(&data[..data.len().min(KEPT)]);
        self.added += 1;
        self.waiting.insert((time, self.added), Waiting { number, link, data: room, wire });
        let until = self.newest.map_or(time, |newest| newest.saturating_sub(self.disorder));
        while self.waiting.len() > WAITING
            || self.waiting.keys().next().is_some_and(|(at, _)| *at <= until)
        {
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
        let Waiting { number, link, data, wire } = of;
        each(Packet { number, time, link, data: &data, wire, skip: None });
        self.spare.push(data);
    }
}
