//! One link: what happens to a packet from its entry to its arrival at the far end.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::queue::{Entry, Fifo};
use crate::rate::Server;
use crate::{Histogram, Limit, LinkConfig, Nanos, rng};

/// What a link has done since the start or the last [`crate::Network::reset_counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came to the link.
    pub arrived: u64,
    /// Packets that reached its far end.
    pub sent: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue: u64,
    /// Packets lost at random.
    pub dropped_random: u64,
    /// Packets dropped because they were larger than the MTU.
    pub dropped_mtu: u64,
    /// Bytes on the wire of the packets that reached the far end.
    pub bytes_sent: u64,
    /// Queueing delay in ns: from the entry of a packet until its transmission starts. It is known,
    /// and counted, at the entry; dropped packets do not count.
    pub queue_delay: Histogram,
}

impl Counters {
    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue + self.dropped_random + self.dropped_mtu
    }
}

/// A link with its packets, state and counters together.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    server: Server,
    fifo: Fifo,
    limit: Limit,
    mtu: u32,
    delay: Nanos,
    jitter: Nanos,
    loss: f64,
    /// Arrival of the last packet that was accepted.
    last_arrival: Nanos,
    rng: Xoshiro256PlusPlus,
    counters: Counters,
    /// Packets that were on the link when the counters were reset.
    carried_over: u64,
}

impl Link {
    /// A link from a valid configuration.
    pub fn new(config: &LinkConfig, rng: Xoshiro256PlusPlus) -> Link {
        Link {
            server: Server::new(&config.rate),
            fifo: Fifo::default(),
            limit: config.limit,
            mtu: config.mtu,
            delay: config.delay,
            jitter: config.jitter,
            loss: config.loss,
            last_arrival: 0,
            rng,
            counters: Counters::default(),
            carried_over: 0,
        }
    }

    /// A packet enters at `now`. False if it was dropped.
    pub fn enter(&mut self, now: Nanos, size: u32, packet: u32, hop: u32) -> bool {
        self.counters.arrived += 1;
        if size > self.mtu {
            self.counters.dropped_mtu += 1;
            return false;
        }
        if self.loss > 0.0 && rng::uniform_f64(&mut self.rng) < self.loss {
            self.counters.dropped_random += 1;
            return false;
        }
        self.fifo.settle(now);
        let wait = self.server.start(now) - now;
        if !self.fifo.admits(self.limit, size, wait) {
            self.counters.dropped_queue += 1;
            return false;
        }
        self.counters.queue_delay.record(wait);
        let slot = self.server.serve(now, size);
        let jitter = if self.jitter > 0 { rng::below(&mut self.rng, self.jitter + 1) } else { 0 };
        self.last_arrival = self.last_arrival.max(slot.end.saturating_add(self.delay + jitter));
        self.fifo
            .push(now, Entry { start: slot.start, arrival: self.last_arrival, size, packet, hop });
        true
    }

    /// The first packet arrives at the far end.
    pub fn leave(&mut self) -> Option<Entry> {
        let entry = self.fifo.pop()?;
        self.counters.sent += 1;
        self.counters.bytes_sent += u64::from(entry.size);
        Some(entry)
    }

    /// The next arrival at the far end.
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.fifo.front().map(|entry| entry.arrival)
    }

    /// All packets on the link.
    pub fn packets(&self) -> usize {
        self.fifo.len()
    }

    /// Packets and bytes that wait in the queue at `now`.
    pub fn queue(&self, now: Nanos) -> (usize, u64) {
        self.fifo.waiting(now)
    }

    /// How long a packet that entered at `now` would wait.
    pub fn queue_delay(&self, now: Nanos) -> Nanos {
        // A copy, as a trace loses the opportunities up to the time it is asked for.
        self.server.clone().start(now) - now
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.carried_over = self.fifo.len() as u64;
    }

    /// Whether every packet that came was sent, was dropped, or is still on the link.
    pub fn is_conserved(&self) -> bool {
        self.carried_over + self.counters.arrived
            == self.counters.sent + self.counters.dropped() + self.fifo.len() as u64
    }
}
