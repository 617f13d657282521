//! The packets on a link: those that wait in its droptail queue and, before them, those that are in
//! transmission or propagate.

use std::collections::VecDeque;

use crate::Nanos;
use crate::packet::Packet;
use crate::prefetch::prefetch;

/// How much may wait in a link's queue. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Everything may wait.
    #[default]
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(u64),
    /// No packet may wait longer than this from its arrival until its transmission starts.
    Time(Nanos),
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Start of its transmission; it waits in the queue until then.
    pub start: Nanos,
    /// Its arrival at the far end.
    pub arrival: Nanos,
    pub packet: Packet,
}

/// First in, first out. Starts and arrivals never decrease from front to back, so the waiting
/// packets are a suffix, and its beginning moves only back: counting it costs O(1) per packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    entries: VecDeque<Entry>,
    /// How many entries were seen to have started.
    started: usize,
    /// Start of the first of the others, or of one before it: no need to look earlier.
    look_at: Nanos,
    /// Bytes of the others.
    waiting_bytes: u64,
}

impl Fifo {
    /// Appends a packet that enters at `now`, the time of the last [`Fifo::settle`].
    pub fn push(&mut self, now: Nanos, entry: Entry) {
        if entry.start > now {
            if self.started == self.entries.len() {
                self.look_at = entry.start;
            }
            self.waiting_bytes += u64::from(entry.packet.size);
        } else {
            // So nobody waits before it either. Not to look at it again in `settle` saves a link
            // that is often idle a cache miss per packet.
            self.started += 1;
        }
        self.entries.push_back(entry);
    }

    /// Puts a packet whose transmission has started before those that arrive later.
    pub fn insert_started(&mut self, entry: Entry) {
        let later = self.entries.iter().rev().take_while(|e| e.arrival > entry.arrival).count();
        self.entries.insert(self.entries.len() - later, entry);
        self.started += 1;
    }

    /// Takes out the packets that still wait, as of the last [`Fifo::settle`].
    pub fn take_waiting(&mut self) -> VecDeque<Entry> {
        self.waiting_bytes = 0;
        self.entries.split_off(self.started)
    }

    /// Takes the front, which has started since it has arrived.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        // Not the whole entry: to copy what nobody asks for would wait for its memory.
        let packet = self.entries.front()?.packet;
        self.entries.pop_front();
        match self.started.checked_sub(1) {
            Some(started) => self.started = started,
            None => self.waiting_bytes -= u64::from(packet.size),
        }
        Some(packet)
    }

    pub fn back(&self) -> Option<&Entry> {
        self.entries.back()
    }

    pub fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// All packets on the link.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Begins to load what [`Fifo::settle`] will look at.
    pub fn prepare(&self) {
        if let Some(entry) = self.entries.get(self.started) {
            prefetch(entry, size_of::<Entry>());
        }
    }

    /// Notices which transmissions have started by `now`.
    pub fn settle(&mut self, now: Nanos) {
        if now < self.look_at {
            return;
        }
        while let Some(entry) = self.entries.get(self.started) {
            if entry.start > now {
                self.look_at = entry.start;
                break;
            }
            self.waiting_bytes -= u64::from(entry.packet.size);
            self.started += 1;
        }
    }

    /// Packets and bytes that wait at `now`. Unlike [`Fifo::settle`] it remembers nothing, so an
    /// observer may ask for any time.
    pub fn waiting(&self, now: Nanos) -> (usize, u64) {
        let started = self.entries.partition_point(|entry| entry.start <= now);
        let waiting = self.entries.range(started..);
        (waiting.len(), waiting.map(|entry| u64::from(entry.packet.size)).sum())
    }

    /// Whether a packet of `size` bytes that would wait for `wait` may join the queue, as of the
    /// last [`Fifo::settle`]. One that does not have to wait never meets the limit.
    pub fn admits(&self, limit: Limit, size: u32, wait: Nanos) -> bool {
        wait == 0
            || match limit {
                Limit::Unlimited => true,
                Limit::Packets(packets) => self.entries.len() - self.started < packets as usize,
                Limit::Bytes(bytes) => self.waiting_bytes + u64::from(size) <= bytes,
                Limit::Time(time) => wait <= time,
            }
    }
}
