//! One link: what happens to a packet from its entry to its arrival at the far end.

use std::mem::offset_of;

use crate::jitter::Jitter;
use crate::loss::Losses;
use crate::managed::Managed;
use crate::packet::Packet;
use crate::plain::Core;
use crate::prefetch::prefetch;
use crate::queue::{Entry, Fifo};
use crate::rate::Server;
use crate::rng::{self, Purpose};
use crate::{Counters, Histogram, LinkConfig, Loss, Nanos, Rate};

/// A link with its packets, state and counters together.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Link {
    core: Core,
    /// What only some links have.
    managed: Option<Box<Managed>>,
    /// Packets that were on the link when the counters were reset.
    carried_over: u64,
}

impl Link {
    /// Link `number` of a network with this seed, from a valid configuration.
    pub fn new(config: &LinkConfig, seed: u64, number: u32) -> Link {
        let stream = |purpose| rng::link_stream(seed, number, purpose);
        let losses = || Box::new(Losses::new(config.loss, stream(Purpose::Loss)));
        let jitter = || {
            Box::new(Jitter::new(config.jitter, config.variation.clone(), stream(Purpose::Jitter)))
        };
        let managed = || Box::new(Managed::new(config, seed, number));
        let queue_delay =
            if config.quantiles { Histogram::default() } else { Histogram::without_quantiles() };
        let needs_more = Managed::is_needed(config);
        Link {
            core: Core {
                server: Server::new(&config.rate),
                fifo: Fifo::default(),
                limit: config.limit,
                mtu: config.mtu,
                plain: !needs_more,
                watched: false,
                loses: config.loss != Loss::None,
                varies: config.jitter > 0,
                delay: config.delay,
                last_arrival: 0,
                losses: (config.loss != Loss::None).then(losses),
                jitter: (config.jitter > 0).then(jitter),
                counters: Counters { queue_delay, ..Counters::default() },
            },
            managed: needs_more.then(managed),
            carried_over: 0,
        }
    }

    /// A packet enters at `now`. False if it was dropped.
    #[inline(always)]
    pub fn enter(&mut self, now: Nanos, packet: Packet) -> bool {
        let core = &mut self.core;
        core.counters.arrived += 1;
        if packet.size > core.mtu {
            core.counters.dropped_mtu += 1;
            return false;
        }
        if core.loses && core.draw_loss() {
            core.counters.dropped_random += 1;
            return false;
        }
        if core.plain {
            return core.enter(now, packet);
        }
        self.managed.as_mut().is_some_and(|managed| managed.enter(core, now, packet))
    }

    /// From now on an observer wants to know what arrives at the far end.
    pub fn watch(&mut self) {
        self.core.watched = true;
    }

    pub fn is_watched(&self) -> bool {
        self.core.watched
    }

    /// Whether all that will happen to the packets on it is known.
    pub fn is_plain(&self) -> bool {
        self.core.plain
    }

    /// How long before an arrival at the far end it is known at least, where it is known at the entry and nobody
    /// looks at it there.
    pub fn lookahead(&self) -> Option<Nanos> {
        (self.core.plain && !self.core.watched).then_some(self.core.delay)
    }

    /// The packets whose arrival is known.
    pub fn known(&self) -> impl Iterator<Item = &Entry> {
        self.core.fifo.iter()
    }

    /// Shows all packets, to be given other keys.
    pub fn each_packet(&mut self, mut see: impl FnMut(&mut Packet)) {
        self.core.fifo.each_packet(&mut see);
        if let Some(managed) = &mut self.managed {
            managed.each_packet(&mut see);
        }
    }

    /// The time of its entry in the schedule, if it has one.
    pub fn due(&self) -> Option<Nanos> {
        match &self.managed {
            None => self.next_arrival(),
            Some(managed) => managed.armed(),
        }
    }

    /// A packet is put on a plain link, to arrive at `arrival`, behind those before.
    pub fn bring(&mut self, arrival: Nanos, packet: Packet) {
        debug_assert!(arrival >= self.core.last_arrival, "out of order");
        self.core.counters.arrived += 1;
        self.core.last_arrival = arrival;
        self.core.fifo.push(0, Entry { start: 0, arrival, packet });
    }

    /// Whether nothing is on a plain link.
    pub fn is_empty(&self) -> bool {
        self.core.fifo.len() == 0
    }

    /// The arrival of the packet that entered a plain link last.
    pub fn last_arrival(&self) -> Nanos {
        self.core.last_arrival
    }

    /// The next arrival at the far end among the packets whose transmission is known.
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.core.fifo.front().map(|entry| entry.arrival)
    }

    /// The first packet arrives at the far end of a plain link.
    // A packet returned through memory would be read in other pieces than it was written in, and
    // so wait until all that was written before has reached the cache.
    #[inline(always)]
    pub fn leave(&mut self) -> Option<Packet> {
        let packet = self.core.fifo.pop()?;
        self.core.counters.sent += 1;
        self.core.counters.bytes_sent += u64::from(packet.size);
        Some(packet)
    }

    /// The schedule's entry for `time` has come up for a managed link: the packet that arrives at
    /// the far end, if one does, and the time of the entry that takes its place.
    pub fn turn(&mut self, time: Nanos) -> (Option<Packet>, Option<Nanos>) {
        let Some(managed) = &mut self.managed else { return (None, None) };
        let due = managed.is_due(&mut self.core, time);
        let packet = if due { self.leave() } else { None };
        (packet, self.arm())
    }

    /// The time of a new entry for the schedule, if a managed link needs one after something
    /// entered, left or was changed.
    pub fn arm(&mut self) -> Option<Nanos> {
        self.managed.as_mut()?.arm(&mut self.core)
    }

    /// The key of a packet that was dropped after it had been accepted, until there is none.
    pub fn pop_lost(&mut self) -> Option<u32> {
        self.managed.as_mut()?.lost.pop()
    }

    /// Changes the link at `now`. `number`, `seed` and `config` are as in [`Link::new`], the
    /// configuration as it was before the change.
    pub fn change(
        &mut self,
        now: Nanos,
        change: Change,
        config: &LinkConfig,
        seed: u64,
        number: u32,
    ) {
        let core = &mut self.core;
        let managed = self.managed.get_or_insert_with(|| {
            let mut managed = Box::new(Managed::new(config, seed, number));
            managed.take_over(core, now, &config.rate);
            core.plain = false;
            managed
        });
        match change {
            Change::Rate(rate) => managed.set_rate(core, now, rate),
            Change::Delay(delay) => managed.set_delay(core, now, delay),
            Change::Up(up) => managed.set_up(core, now, up),
            Change::Hold(until) => managed.hold(core, now, until),
        }
    }

    /// The packet that arrives next, if it is known.
    pub fn first(&self) -> Option<&Entry> {
        self.core.fifo.front()
    }

    /// A packet will soon leave: begins to load what that needs of the link.
    pub fn prepare_to_leave(&self) {
        let Core { fifo, .. } = &self.core;
        prefetch(fifo, offset_of!(Core, counters.queue_delay) - offset_of!(Core, fifo));
    }

    /// A packet will soon enter, likewise.
    pub fn prepare_to_enter(&self) {
        prefetch(&self.core, offset_of!(Core, counters.dropped_queue));
    }

    /// A packet will soon begin its route here, likewise: such links have jitter, if any have.
    pub fn prepare_to_begin(&self) {
        prefetch(&self.core, size_of::<Core>());
    }

    /// A packet will enter after few others.
    pub fn prepare(&self) {
        self.core.fifo.prepare();
        if self.core.varies {
            if let Some(jitter) = self.core.jitter.as_deref() {
                prefetch(jitter, size_of::<Jitter>());
            }
        }
    }

    /// All packets on the link.
    pub fn packets(&self) -> usize {
        self.core.fifo.len() + self.managed.as_ref().map_or(0, |managed| managed.queue().0)
    }

    /// Packets and bytes that wait in the queue at `now`.
    pub fn queue(&self, now: Nanos) -> (usize, u64) {
        match &self.managed {
            None => self.core.fifo.waiting(now),
            Some(managed) => managed.at(&self.core, now, |managed, _| managed.queue()),
        }
    }

    /// How long a packet that entered at `now` would wait.
    pub fn queue_delay(&self, now: Nanos) -> Nanos {
        match &self.managed {
            None => self.core.server.start_behind(now, 0) - now,
            Some(managed) => managed.at(&self.core, now, |managed, core| managed.wait(core, now)),
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    pub fn reset_counters(&mut self) {
        let queue_delay = self.core.counters.queue_delay.emptied();
        self.core.counters = Counters { queue_delay, ..Counters::default() };
        self.carried_over = self.packets() as u64;
    }

    /// Whether every packet that came was sent, was dropped, or is still on the link.
    pub fn is_conserved(&self) -> bool {
        let counters = &self.core.counters;
        self.carried_over + counters.arrived
            == counters.sent + counters.dropped() + self.packets() as u64
    }
}

/// A change of a link during the run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Rate(&'a Rate),
    Delay(Nanos),
    Up(bool),
    Hold(Nanos),
}
