//! The packets on a link: those that wait in its droptail queue and, before them, those that are in
//! transmission or propagate.

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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// Start of its transmission; it waits in the queue until then.
    pub start: Nanos,
    /// Its arrival at the far end.
    pub arrival: Nanos,
    pub packet: Packet,
}

/// First in, first out. Starts and arrivals never decrease from front to back, so the waiting
/// packets are a suffix, and its beginning moves only back: counting it costs O(1) per packet.
// A ring of our own: with a standard queue it would not fit into its part of a link's cache line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    /// A power of two of places, or none. A packet is at its number modulo that.
    ring: Box<[Entry]>,
    /// Number of the first entry; numbers wrap.
    head: u32,
    len: u32,
    /// How many entries were seen to have started.
    started: u32,
    /// Start of the first of the others, or of one before it: no need to look earlier.
    look_at: Nanos,
    /// Bytes of the others.
    waiting_bytes: u64,
}

impl Fifo {
    /// The place of the entry behind `n` others.
    #[inline(always)]
    fn place(&self, n: u32) -> usize {
        self.head.wrapping_add(n) as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn get(&self, n: u32) -> Option<&Entry> {
        if n < self.len { self.ring.get(self.place(n)) } else { None }
    }

    /// Appends an entry.
    #[inline(always)]
    fn push_back(&mut self, entry: Entry) {
        if self.len as usize == self.ring.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.ring[place] = entry;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let places = (2 * self.ring.len()).max(4);
        let mut ring = Vec::with_capacity(places);
        ring.extend(self.iter());
        ring.resize(places, Entry::default());
        (self.ring, self.head) = (ring.into_boxed_slice(), 0);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        (0..self.len).filter_map(|n| self.get(n))
    }

    /// Shows all packets, to be changed.
    pub fn each_packet(&mut self, mut see: impl FnMut(&mut Packet)) {
        for n in 0..self.len {
            let place = self.place(n);
            see(&mut self.ring[place].packet);
        }
    }

    /// Appends a packet that enters at `now`, the time of the last [`Fifo::settle`].
    #[inline(always)]
    pub fn push(&mut self, now: Nanos, entry: Entry) {
        if entry.start > now {
            if self.started == self.len {
                self.look_at = entry.start;
            }
            self.waiting_bytes += u64::from(entry.packet.size);
        } else {
            // So nobody waits before it either. Not to look at it again in `settle` saves a link
            // that is often idle a cache miss per packet.
            self.started += 1;
        }
        self.push_back(entry);
    }

    /// Puts a packet whose transmission has started before those that arrive later.
    pub fn insert_started(&mut self, entry: Entry) {
        self.push_back(entry);
        // From the end: few are later, and those move back.
        for n in (1..self.len).rev() {
            let (before, place) = (self.place(n - 1), self.place(n));
            if self.ring[before].arrival <= entry.arrival {
                break;
            }
            self.ring.swap(before, place);
        }
        self.started += 1;
    }

    /// Takes out the packets that still wait, as of the last [`Fifo::settle`].
    pub fn take_waiting(&mut self) -> Vec<Entry> {
        self.waiting_bytes = 0;
        let waiting = self.iter().skip(self.started as usize).copied().collect();
        self.len = self.started;
        waiting
    }

    /// Takes the front, which has started since it has arrived.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        // Not the whole entry: to copy what nobody asks for would wait for its memory.
        let packet = self.front()?.packet;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        if self.len == 0 {
            // A ring goes through all its places, and so through as many cache lines: one that is often
            // empty needs the first of them alone.
            self.head = 0;
        }
        match self.started.checked_sub(1) {
            Some(started) => self.started = started,
            None => self.waiting_bytes -= u64::from(packet.size),
        }
        Some(packet)
    }

    pub fn back(&self) -> Option<&Entry> {
        self.get(self.len.wrapping_sub(1))
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&Entry> {
        self.get(0)
    }

    /// All packets on the link.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Begins to load what [`Fifo::settle`] will look at, and the place of the next packet.
    pub fn prepare(&self) {
        for n in [self.started, self.len] {
            if let Some(entry) = self.ring.get(self.place(n)) {
                prefetch(entry, size_of::<Entry>());
            }
        }
    }

    /// Notices which transmissions have started by `now`.
    #[inline(always)]
    pub fn settle(&mut self, now: Nanos) {
        if now < self.look_at {
            return;
        }
        while let Some(entry) = self.get(self.started) {
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
        let waiting = (0..self.len).rev().map_while(|n| self.get(n).filter(|e| e.start > now));
        waiting.fold((0, 0), |(n, bytes), entry| (n + 1, bytes + u64::from(entry.packet.size)))
    }

    /// Whether a packet of `size` bytes that would wait for `wait` may join the queue, as of the
    /// last [`Fifo::settle`]. One that does not have to wait never meets the limit.
    #[inline(always)]
    pub fn admits(&self, limit: Limit, size: u32, wait: Nanos) -> bool {
        wait == 0
            || match limit {
                Limit::Unlimited => true,
                Limit::Packets(packets) => self.len - self.started < packets,
                Limit::Bytes(bytes) => self.waiting_bytes + u64::from(size) <= bytes,
                Limit::Time(time) => wait <= time,
            }
    }
}
