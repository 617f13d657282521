//! One link: what happens to a packet from its entry to its arrival at the far end.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::loss::Losses;
use crate::packet::Packet;
use crate::queue::{Entry, Fifo};
use crate::rate::Server;
use crate::rng::{self, Purpose};
use crate::{Histogram, Limit, LinkConfig, Loss, Nanos};

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
    /// Arrival of the last packet that was accepted.
    last_arrival: Nanos,
    losses: Option<Box<Losses>>,
    jitter: Option<Box<Jitter>>,
    /// Whether an observer wants to know what arrives at the far end.
    pub watched: bool,
    counters: Counters,
    /// Packets that were on the link when the counters were reset.
    carried_over: u64,
}

/// Additional delay of a packet, uniform.
#[derive(Clone, Debug)]
struct Jitter {
    max: Nanos,
    rng: Xoshiro256PlusPlus,
}

impl Jitter {
    fn draw(&mut self) -> Nanos {
        rng::below(&mut self.rng, self.max + 1)
    }
}

impl Link {
    /// Link `number` of a network with this seed, from a valid configuration.
    pub fn new(config: &LinkConfig, seed: u64, number: u32) -> Link {
        let stream = |purpose| rng::link_stream(seed, number, purpose);
        let losses = || Box::new(Losses::new(config.loss, stream(Purpose::Loss)));
        let jitter = || Box::new(Jitter { max: config.jitter, rng: stream(Purpose::Jitter) });
        Link {
            server: Server::new(&config.rate),
            fifo: Fifo::default(),
            limit: config.limit,
            mtu: config.mtu,
            delay: config.delay,
            last_arrival: 0,
            losses: (config.loss != Loss::None).then(losses),
            jitter: (config.jitter > 0).then(jitter),
            watched: false,
            counters: Counters::default(),
            carried_over: 0,
        }
    }

    /// A packet enters at `now`. False if it was dropped.
    pub fn enter(&mut self, now: Nanos, packet: Packet) -> bool {
        let size = packet.size;
        self.counters.arrived += 1;
        if size > self.mtu {
            self.counters.dropped_mtu += 1;
            return false;
        }
        if self.losses.as_mut().is_some_and(|losses| losses.next()) {
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
        let jitter = self.jitter.as_mut().map_or(0, |jitter| jitter.draw());
        self.last_arrival = self.last_arrival.max(slot.end.saturating_add(self.delay + jitter));
        self.fifo.push(now, Entry { start: slot.start, arrival: self.last_arrival, packet });
        true
    }

    /// The first packet arrives at the far end.
    pub fn leave(&mut self) -> Option<Entry> {
        let entry = self.fifo.pop()?;
        self.counters.sent += 1;
        self.counters.bytes_sent += u64::from(entry.packet.size);
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
