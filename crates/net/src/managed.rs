//! A link on which the transmission of a packet is not known when it enters: with a queue
//! discipline other than droptail, a shared channel, reordering, or changes during the run.
//!
//! Nothing happens by itself. What is due is made up for, in order, whenever something comes or
//! arrives: every decision is a function of its own time, so that being late changes none. While a
//! packet is in transmission or propagates, its arrival is known and never before the next
//! transmission can start, so the arrivals are events enough. Only when the wire is empty and the
//! queue is not (a trace offers nothing, a channel is not yet won) the next start is an event too;
//! and where packets may be overtaken, each start is.

use crate::aqm::red::Arrival;
use crate::aqm::{Signals, Verdict};
use crate::discipline::Queue;
use crate::line::{Line, Waiting};
use crate::packet::Packet;
use crate::plain::Core;
use crate::policer::Bucket;
use crate::queue::Entry;
use crate::rate::Server;
use crate::reorder::Detour;
use crate::rng::{self, Purpose};
use crate::wifi::Channel;
use crate::{Discipline, LinkConfig, Nanos, Rate};

/// No time.
const NEVER: Nanos = Nanos::MAX;

/// Entry of a packet whose queueing delay has been counted.
const COUNTED: Nanos = Nanos::MAX;

/// What a link has beyond a plain one.
#[derive(Clone, Debug)]
pub(crate) struct Managed {
    queue: Queue,
    ecn: bool,
    up: bool,
    policer: Option<Bucket>,
    detour: Option<Detour>,
    channel: Option<Channel>,
    /// When the first of the waiting packets came to an empty queue; no earlier than `free_from`.
    ready: Nanos,
    /// Before this the link is busy with what it sent at its former rate.
    free_from: Nanos,
    /// The earliest entry in the network's schedule.
    armed: Nanos,
    /// Keys of packets dropped from the queue, for the network to forget.
    pub lost: Vec<u32>,
    /// Packets of an aggregate while it is put together.
    aggregate: Vec<Waiting>,
}

impl Managed {
    /// Whether a link needs this from the start.
    pub fn is_needed(config: &LinkConfig) -> bool {
        config.discipline != Discipline::DropTail
            || config.policer.is_some()
            || config.reorder.is_some()
            || config.wifi.is_some()
    }

    pub fn new(config: &LinkConfig, seed: u64, number: u32) -> Managed {
        let stream = |purpose| rng::link_stream(seed, number, purpose);
        Managed {
            queue: Queue::new(config.discipline, stream(Purpose::Queue)),
            ecn: config.ecn,
            up: true,
            policer: config.policer.map(Bucket::new),
            detour: config.reorder.map(|reorder| Detour::new(reorder, stream(Purpose::Reorder))),
            channel: config.wifi.map(|wifi| Channel::new(wifi, stream(Purpose::Access))),
            ready: 0,
            free_from: 0,
            armed: NEVER,
            lost: Vec::new(),
            aggregate: Vec::new(),
        }
    }

    /// Takes a plain link over at `now`. What waits loses the transmission it was promised; its
    /// queueing delay has been counted as promised.
    pub fn take_over(&mut self, core: &mut Core, now: Nanos, rate: &Rate) {
        self.armed = core.fifo.front().map_or(NEVER, |entry| entry.arrival);
        core.fifo.settle(now);
        let waiting = core.fifo.take_waiting();
        // The end of the transmission that has started last: not after the next would have started,
        // and it took the delay at least to arrive.
        let next = waiting.first().map_or(core.server.busy_until(), |entry| entry.start);
        core.last_arrival = core.fifo.back().map_or(0, |entry| entry.arrival);
        let free = next.min(core.last_arrival.saturating_sub(core.delay));
        core.server = Server::new(rate);
        self.free_from = free;
        self.ready = now.max(free);
        for entry in waiting {
            self.queue.push(Waiting { packet: entry.packet, entered: COUNTED });
        }
    }

    /// A packet enters at `now`. False if it was dropped.
    pub fn enter(&mut self, core: &mut Core, now: Nanos, mut packet: Packet) -> bool {
        if !self.up {
            core.counters.dropped_down += 1;
            return false;
        }
        if self.policer.as_mut().is_some_and(|bucket| !bucket.admits(now, packet.size)) {
            core.counters.dropped_policer += 1;
            return false;
        }
        self.catch_up(core, now);
        if !self.judge(core, now, &mut packet) {
            core.counters.dropped_aqm += 1;
            return false;
        }
        let access = self.channel.as_mut().map_or(0, Channel::access);
        let mut idle = |since| self.queue.len() == 0 && core.server.start(since) <= now;
        let waits = access > 0 || !idle(now.max(self.free_from));
        if waits && !self.queue.admits(core.limit, packet.size, || self.wait(core, now)) {
            core.counters.dropped_queue += 1;
            return false;
        }
        if self.queue.len() == 0 {
            self.ready = now.max(self.free_from);
            if self.busy_until(core) <= now {
                self.queue.rest();
            }
        }
        self.queue.push(Waiting { packet, entered: now });
        self.catch_up(core, now);
        let lost = self.lost.len();
        self.queue.shed(core.limit, &mut self.lost);
        core.counters.dropped_queue += (self.lost.len() - lost) as u64;
        true
    }

    /// Asks the discipline about a packet that enters, and marks it. False if it must be dropped.
    fn judge(&mut self, core: &mut Core, now: Nanos, packet: &mut Packet) -> bool {
        let (ready, free_from) = (self.ready, self.free_from);
        let arrival = |line: &Line| Arrival {
            now,
            size: packet.size,
            mtu: core.mtu,
            rate: core.server.mean_rate(),
            busy_until: core.server.busy_until().max(free_from),
            packets: line.len(),
            bytes: line.bytes(),
        };
        let wait = |line: &Line| {
            let since = if line.len() == 0 { now.max(free_from) } else { ready };
            core.server.start_behind(since, line.bytes()).saturating_sub(now)
        };
        let verdict = self.queue.judge(core.mtu, arrival, wait);
        match verdict {
            Verdict::Pass => true,
            Verdict::Drop => false,
            Verdict::Signal => {
                let Core { counters, .. } = core;
                Signals { ecn: self.ecn, counters, lost: &mut self.lost }.mark(packet)
            }
        }
    }

    /// The end of the last transmission, or some time past.
    fn busy_until(&self, core: &Core) -> Nanos {
        core.server.busy_until().max(self.free_from)
    }

    /// Starts all transmissions due by `now`.
    pub fn catch_up(&mut self, core: &mut Core, now: Nanos) {
        while let Some(at) = self.next_start(core).filter(|&at| at <= now) {
            self.update(core, at);
            if self.channel.is_some() {
                self.transmit_aggregate(core, at);
            } else {
                self.transmit(core, at);
            }
        }
        self.update(core, now);
    }

    /// When the next transmission starts, if something waits.
    fn next_start(&mut self, core: &mut Core) -> Option<Nanos> {
        if self.queue.len() == 0 {
            return None;
        }
        let access = self.channel.as_mut().map_or(0, Channel::access);
        Some(core.server.start(self.ready).saturating_add(access))
    }

    /// Makes up for the updates of a discipline that has some.
    fn update(&mut self, core: &Core, now: Nanos) {
        let Managed { queue, ready, free_from, .. } = self;
        queue.catch_up(now, |line, time| {
            let since = if line.len() == 0 { time.max(*free_from) } else { *ready };
            core.server.start_behind(since, line.bytes()).saturating_sub(time)
        });
    }

    /// The packet whose turn it is at `at`.
    fn pop(&mut self, core: &mut Core, at: Nanos) -> Option<Waiting> {
        let Core { counters, .. } = core;
        let mut signals = Signals { ecn: self.ecn, counters, lost: &mut self.lost };
        self.queue.pop(at, core.mtu, &mut signals)
    }

    fn transmit(&mut self, core: &mut Core, at: Nanos) {
        if let Some(waiting) = self.pop(core, at) {
            let slot = core.server.serve(self.ready, waiting.packet.size);
            debug_assert_eq!(slot.start, at);
            self.launch(core, at, slot.end, waiting);
        }
    }

    /// The channel is won at `at`: sends as many packets as one access may.
    fn transmit_aggregate(&mut self, core: &mut Core, at: Nanos) {
        let Some(channel) = &mut self.channel else { return };
        channel.won();
        let wifi = channel.config;
        core.server.seize(at.saturating_add(wifi.overhead));
        let most = core.server.bytes_in(wifi.time);
        let (mut bytes, mut end) = (0, at);
        for number in 0..wifi.packets {
            // Also the largest packet must fit: which comes next, the discipline says when asked.
            if number > 0 && bytes + u64::from(core.mtu) > most {
                break;
            }
            let Some(waiting) = self.pop(core, at) else { break };
            bytes += u64::from(waiting.packet.size);
            end = core.server.serve(self.ready, waiting.packet.size).end;
            self.aggregate.push(waiting);
        }
        let mut aggregate = std::mem::take(&mut self.aggregate);
        aggregate.drain(..).for_each(|waiting| self.launch(core, at, end, waiting));
        self.aggregate = aggregate;
    }

    /// A transmission from `at` to `end` puts a packet on the wire.
    fn launch(&mut self, core: &mut Core, at: Nanos, end: Nanos, waiting: Waiting) {
        if waiting.entered != COUNTED {
            core.counters.queue_delay.record(at - waiting.entered);
        }
        core.last_arrival = core.last_arrival.max(core.propagate(end));
        let detour = self.detour.as_mut().and_then(Detour::draw).unwrap_or(0);
        let arrival = core.last_arrival.saturating_add(detour);
        core.fifo.insert_started(Entry { start: at, arrival, packet: waiting.packet });
    }

    /// What can be seen of the link at `now`, without touching it: what is due by then is made up
    /// for on a copy.
    pub fn at<R>(&self, core: &Core, now: Nanos, see: impl FnOnce(&Managed, &Core) -> R) -> R {
        // A copy of FQ-CoDel's queues takes longer than some hundred packets. Before the channel is
        // won, nothing is due either.
        if self.queue.len() == 0 || core.server.start_behind(self.ready, 0) > now {
            return see(self, core);
        }
        let (mut managed, mut core) = (self.clone(), core.clone());
        managed.catch_up(&mut core, now);
        see(&managed, &core)
    }

    /// The time of the schedule's entry that counts, if there is one.
    pub fn armed(&self) -> Option<Nanos> {
        Some(self.armed).filter(|&time| time != NEVER)
    }

    /// Shows all packets that wait, to be changed.
    pub fn each_packet(&mut self, see: &mut dyn FnMut(&mut Packet)) {
        debug_assert!(
            self.lost.is_empty() && self.aggregate.is_empty(),
            "in the middle of an event"
        );
        self.queue.each_packet(see);
    }

    /// Packets and bytes that wait.
    pub fn queue(&self) -> (usize, u64) {
        (self.queue.len(), self.queue.bytes())
    }

    /// How long a packet that entered at `now` would wait, first come, first served.
    pub fn wait(&self, core: &Core, now: Nanos) -> Nanos {
        let since = if self.queue.len() == 0 { now.max(self.free_from) } else { self.ready };
        core.server.start_behind(since, self.queue.bytes()).saturating_sub(now)
    }

    /// When the link must be looked at again: at its next arrival, or where that is not known or
    /// need not be the next, at its next transmission.
    fn next_event(&mut self, core: &mut Core) -> Option<Nanos> {
        let arrival = core.fifo.front().map(|entry| entry.arrival);
        if arrival.is_some() && self.detour.is_none() {
            return arrival;
        }
        arrival.into_iter().chain(self.next_start(core)).min()
    }

    /// The time of a new entry for the schedule, if one is needed.
    pub fn arm(&mut self, core: &mut Core) -> Option<Nanos> {
        let next = self.next_event(core).filter(|&next| next < self.armed)?;
        self.armed = next;
        Some(next)
    }

    /// The schedule's entry for `time` has come up: whether a packet arrives then. An entry that was
    /// overtaken by an earlier one is no longer of use.
    pub fn is_due(&mut self, core: &mut Core, time: Nanos) -> bool {
        if time != self.armed {
            return false;
        }
        self.armed = NEVER;
        self.catch_up(core, time);
        core.fifo.front().is_some_and(|entry| entry.arrival <= time)
    }

    /// The link has this rate from `now` on. What is in transmission ends as it began.
    pub fn set_rate(&mut self, core: &mut Core, now: Nanos, rate: &Rate) {
        self.catch_up(core, now);
        self.free_from = self.busy_until(core);
        self.ready = now.max(self.free_from);
        core.server = Server::new(rate);
        self.catch_up(core, now);
    }

    /// The link propagates with this delay what it starts to send after `now`.
    pub fn set_delay(&mut self, core: &mut Core, now: Nanos, delay: Nanos) {
        self.catch_up(core, now);
        core.delay = delay;
    }

    /// The link starts no transmission until `until`; what is in transmission ends.
    pub fn hold(&mut self, core: &mut Core, now: Nanos, until: Nanos) {
        self.catch_up(core, now);
        self.free_from = self.busy_until(core).max(until);
        self.ready = self.ready.max(now).max(self.free_from);
        self.catch_up(core, now);
    }

    /// The link goes up or down. If down, what waits is lost, and all that comes until it is up.
    pub fn set_up(&mut self, core: &mut Core, now: Nanos, up: bool) {
        self.catch_up(core, now);
        self.up = up;
        if !up {
            let waiting = self.queue.clear();
            core.counters.dropped_down += waiting.len() as u64;
            self.lost.extend(waiting.iter().map(|waiting| waiting.packet.key));
        }
    }
}
