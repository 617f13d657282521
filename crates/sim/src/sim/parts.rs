//! A simulation in parts that run side by side, on threads of their own.
//!
//! Conservative, in windows: no part is told of anything less than [`Partition::lookahead`] before it happens there. So
//! from the earliest event of all on each may run so far by itself; then they exchange what has left one for another,
//! and wait for each other. In each part things happen in the order that they have in the whole, by time and then by
//! the number of link or timer. So any partition on any number of threads gives the same bytes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use narrows_laws::MAX_PATHS;
use narrows_net::{Crossing, LinkId, Nanos, SECOND};

use super::Sim;
use crate::event::Target;
use crate::mptcp::connection::Connection;
use crate::packet::Packet;
use crate::partition::Partition;
use crate::tcp::NEVER;

/// So many events a window and thread are worth the wait at its end.
const LEAST_EVENTS: u64 = 8;
/// So many windows are looked at together.
const TRIAL: u64 = 512;
/// Looks at a barrier before a thread lets others have its core.
const SPINS: u32 = 200;

/// Where connections and UDP flows of the whole are in a part.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub connections: Vec<u32>,
    pub udp: Vec<u32>,
}

/// Not in this part.
const NOWHERE: u32 = u32::MAX;

/// The place of a flow: in the whole, which has no list of places, its number.
#[inline(always)]
pub(super) fn place(places: &[u32], flow: u32) -> usize {
    places.get(flow as usize).map_or(flow, |&place| place) as usize
}

/// Into which parts a simulation is taken.
#[derive(Debug)]
pub(super) struct Plan {
    partition: Partition,
    /// The part of each connection's sender and receiver, and of each UDP flow.
    senders: Vec<u32>,
    receivers: Vec<u32>,
    udp: Vec<u32>,
}

/// A simulation in parts.
#[derive(Debug)]
pub(super) struct Apart {
    plan: Plan,
    parts: Vec<Mutex<Sim>>,
}

impl Plan {
    /// How to run `sim` on so many threads, if that is worth it.
    pub fn new(sim: &Sim, threads: usize) -> Option<Plan> {
        let mut together: Vec<Vec<LinkId>> = Vec::new();
        let (mut senders, mut receivers, mut udp) = (Vec::new(), Vec::new(), Vec::new());
        for connection in &sim.connections {
            let ends = |route, into: &mut Vec<LinkId>, other: &mut Vec<LinkId>| {
                let links: Vec<LinkId> = sim.network.route(route).collect();
                into.extend(links.first());
                other.extend(links.last());
            };
            let (mut sender, mut receiver) = (Vec::new(), Vec::new());
            for (forward, reverse) in connection.routes() {
                ends(forward, &mut sender, &mut receiver);
                ends(reverse, &mut receiver, &mut sender);
            }
            senders.push(*sender.first()?);
            receivers.push(*receiver.first()?);
            if connection.can_part() {
                together.push(receiver);
            } else {
                sender.extend(receiver);
            }
            together.push(sender);
        }
        for flow in &sim.udp {
            let links: Vec<LinkId> = flow
                .routes()
                .flat_map(|route| {
                    let links: Vec<LinkId> = sim.network.route(route).collect();
                    [links[0], links[links.len() - 1]]
                })
                .collect();
            udp.push(links[0]);
            together.push(links);
        }
        let partition = Partition::new(&sim.network, &together, threads)?;
        let part = |links: Vec<LinkId>| {
            links.iter().map(|link| partition.links[link.0 as usize]).collect()
        };
        Some(Plan { senders: part(senders), receivers: part(receivers), udp: part(udp), partition })
    }
}

impl Plan {
    /// The time of the windows that are looked at together, at least.
    pub fn trial(&self) -> Nanos {
        self.partition.lookahead.saturating_mul(TRIAL).min(SECOND)
    }
}

impl Apart {
    /// Takes a simulation apart: until [`Apart::join`] it has nothing but its time.
    pub fn new(sim: &mut Sim, plan: Plan) -> Apart {
        let Partition { links, parts, .. } = &plan.partition;
        let (connections, udp) = (sim.connections.len(), sim.udp.len());
        let mut parts: Vec<Sim> = sim
            .network
            .split(links, *parts)
            .into_iter()
            .map(|network| Sim {
                now: sim.now,
                network,
                places: Places { connections: vec![NOWHERE; connections], udp: vec![NOWHERE; udp] },
                ..Sim::new(sim.seed)
            })
            .collect();
        for (flow, mut connection) in (0..).zip(std::mem::take(&mut sim.connections)) {
            let (near, far) = (plan.senders[flow as usize], plan.receivers[flow as usize]);
            if near != far {
                parts[far as usize].adopt(flow, connection.part());
            }
            parts[near as usize].adopt(flow, connection);
        }
        for (flow, udp) in std::mem::take(&mut sim.udp).into_iter().enumerate() {
            let part = &mut parts[plan.udp[flow] as usize];
            part.places.udp[flow] = part.udp.len() as u32;
            part.udp.push(udp);
        }
        sim.armed.clear();
        while let Some((time, target)) = sim.timers.pop() {
            let part = match target {
                // Set anew.
                Target::Subflow(..) => continue,
                Target::Source(flow) => plan.senders[flow as usize],
                Target::Udp(flow) | Target::Report(flow) => plan.udp[flow as usize],
            };
            parts[part as usize].timers.set(time, target);
        }
        Apart { plan, parts: parts.into_iter().map(Mutex::new).collect() }
    }

    /// Puts it together again.
    pub fn join(self, sim: &mut Sim) {
        let Apart { plan, parts } = self;
        let mut networks = Vec::new();
        let mut connections: Vec<(Option<Connection>, Option<Connection>)> = Vec::new();
        connections.resize_with(plan.senders.len(), Default::default);
        let mut udp: Vec<Option<crate::udp::Udp>> = Vec::new();
        udp.resize_with(plan.udp.len(), Default::default);
        for (number, part) in (0..).zip(parts) {
            let mut part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            let mut own: Vec<Option<Connection>> = part.connections.drain(..).map(Some).collect();
            for (flow, &place) in
                part.places.connections.iter().enumerate().filter(|(_, place)| **place != NOWHERE)
            {
                let connection = own[place as usize].take();
                let (near, far) = &mut connections[flow];
                *(if plan.senders[flow] == number { near } else { far }) = connection;
            }
            let mut own: Vec<Option<crate::udp::Udp>> = part.udp.drain(..).map(Some).collect();
            for (flow, &place) in
                part.places.udp.iter().enumerate().filter(|(_, place)| **place != NOWHERE)
            {
                udp[flow] = own[place as usize].take();
            }
            while let Some((time, target)) = part.timers.pop() {
                if !matches!(target, Target::Subflow(..)) {
                    sim.timers.set(time, target);
                }
            }
            networks.push(part.network);
        }
        sim.network.join(networks);
        sim.connections = connections
            .into_iter()
            .filter_map(|(near, far)| {
                let mut connection = near?;
                far.into_iter().for_each(|far| connection.reunite(far));
                Some(connection)
            })
            .collect();
        sim.udp = udp.into_iter().flatten().collect();
        debug_assert!(
            sim.connections.len() == plan.senders.len() && sim.udp.len() == plan.udp.len()
        );
        sim.armed = vec![[NEVER; MAX_PATHS]; sim.connections.len()];
        (0..sim.connections.len() as u32).for_each(|flow| sim.arm(flow));
    }

    /// How many there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How far they run by themselves.
    pub fn lookahead(&self) -> Nanos {
        self.plan.partition.lookahead
    }

    /// The earliest event of all parts.
    pub fn next_time(&self) -> Option<Nanos> {
        self.parts.iter().filter_map(|part| lock(part).next_time()).min()
    }

    /// Lets everything happen up to and including `until`, on so many threads, or up to a time before, if too little
    /// happens for several. Returns the time.
    pub fn run(&self, until: Nanos, threads: usize) -> Nanos {
        let Some(start) = self.next_time() else { return until };
        let windows = Windows::new(self, start, until, threads);
        let reached = thread::scope(|scope| {
            for thread in 1..threads {
                let windows = &windows;
                scope.spawn(move || windows.work(thread));
            }
            windows.work(0)
        });
        let reached = reached.min(until);
        windows.finish(reached);
        reached
    }
}

/// A part, of which nobody has panicked, or all would have ended.
fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The windows of a run, as all threads see them.
struct Windows<'a> {
    parts: &'a [Mutex<Sim>],
    lookahead: Nanos,
    start: Nanos,
    until: Nanos,
    threads: usize,
    /// By part: the window that has been begun on it last, from 1 on.
    begun: Vec<AtomicU64>,
    /// By turns of windows: the earliest that will happen behind it.
    next: [AtomicU64; 3],
    /// By turns: what has left for each part.
    inboxes: [Vec<Mutex<Vec<Vec<Crossing<Packet>>>>>; 2],
    events: AtomicU64,
    /// The window in which it was found that there is too little to do.
    stop_after: AtomicU64,
    barrier: Barrier,
}

impl<'a> Windows<'a> {
    fn new(apart: &'a Apart, start: Nanos, until: Nanos, threads: usize) -> Windows<'a> {
        let parts = &apart.parts[..];
        let inboxes = || parts.iter().map(|_| Mutex::default()).collect();
        Windows {
            parts,
            lookahead: apart.plan.partition.lookahead,
            start,
            until,
            threads,
            begun: parts.iter().map(|_| AtomicU64::new(0)).collect(),
            next: [const { AtomicU64::new(NEVER) }; 3],
            inboxes: [inboxes(), inboxes()],
            events: AtomicU64::new(0),
            stop_after: AtomicU64::new(u64::MAX),
            barrier: Barrier::new(threads),
        }
    }

    /// What one of the threads does: in each window the parts that no other has begun. Returns up to when everything has
    /// happened.
    fn work(&self, thread: usize) -> Nanos {
        let poison = Poison(&self.barrier);
        let mut spare: Vec<Vec<Crossing<Packet>>> = Vec::new();
        let (mut start, mut window) = (self.start, 0_u64);
        while start <= self.until {
            // Never beyond what the others may still send.
            let last = (start.saturating_add(self.lookahead) - 1).min(self.until);
            let slot = window as usize % 3;
            if thread == 0 {
                // Read before the barrier that has just been passed, and written behind the next.
                self.next[(slot + 1) % 3].store(NEVER, Ordering::Relaxed);
                if window % TRIAL == TRIAL - 1 {
                    let events = self.events.swap(0, Ordering::Relaxed);
                    if events < LEAST_EVENTS * TRIAL * self.threads as u64 {
                        self.stop_after.store(window, Ordering::Relaxed);
                    }
                }
            }
            let mut next = NEVER;
            for turn in 0..self.parts.len() {
                let number = (thread * self.parts.len() / self.threads + turn) % self.parts.len();
                let begun = &self.begun[number];
                if begun
                    .compare_exchange(window, window + 1, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
                {
                    next = next.min(self.run_part(number, last, window, &mut spare));
                }
            }
            self.next[slot].fetch_min(next, Ordering::Relaxed);
            if !self.barrier.wait() {
                break;
            }
            if self.stop_after.load(Ordering::Relaxed) == window {
                std::mem::forget(poison);
                return last;
            }
            start = self.next[slot].load(Ordering::Relaxed);
            window += 1;
        }
        std::mem::forget(poison);
        self.until
    }

    /// Runs a part up to the time `last`. Returns the earliest that it will do or have others do behind that.
    fn run_part(
        &self,
        number: usize,
        last: Nanos,
        window: u64,
        spare: &mut Vec<Vec<Crossing<Packet>>>,
    ) -> Nanos {
        let mut part = lock(&self.parts[number]);
        let [sent, received] = if window % 2 == 0 { [0, 1] } else { [1, 0] };
        for mut crossings in lock(&self.inboxes[received][number]).drain(..) {
            part.network.arrive(&mut crossings);
            spare.push(crossings);
        }
        let events = part.events;
        let outside = part.advance(last);
        debug_assert!(outside.is_none(), "an end point outside of a part");
        self.events.fetch_add(part.events - events, Ordering::Relaxed);
        let crossing = part.network.first_crossing();
        debug_assert!(crossing > last, "too late for another part");
        for (inbox, crossings) in self.inboxes[sent].iter().zip(part.network.crossings()) {
            if !crossings.is_empty() {
                let empty = spare.pop().unwrap_or_default();
                lock(inbox).push(std::mem::replace(crossings, empty));
            }
        }
        part.next_time().unwrap_or(NEVER).min(crossing)
    }

    /// What left in the last window arrives, whenever that may be. Everything up to `now` has happened.
    fn finish(&self, now: Nanos) {
        for (number, part) in self.parts.iter().enumerate() {
            let mut part = lock(part);
            for inboxes in &self.inboxes {
                lock(&inboxes[number])
                    .drain(..)
                    .for_each(|mut crossings| part.network.arrive(&mut crossings));
            }
            part.now = now;
        }
    }
}

/// Where threads wait for each other. They seldom wait for long: the standard library's barrier puts them to sleep, which
/// takes longer than most windows.
#[derive(Debug)]
struct Barrier {
    threads: usize,
    waiting: AtomicUsize,
    passed: AtomicU32,
    broken: AtomicBool,
}

impl Barrier {
    fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            waiting: AtomicUsize::new(0),
            passed: AtomicU32::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for all others. False if one has panicked.
    fn wait(&self) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.passed.store(passed.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut spins = 0;
        while self.passed.load(Ordering::Acquire) == passed {
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
        true
    }
}

/// Breaks the barrier if it is dropped, as by a panic, so that the others do not wait for ever.
struct Poison<'a>(&'a Barrier);

impl Drop for Poison<'_> {
    fn drop(&mut self) {
        self.0.broken.store(true, Ordering::Relaxed);
    }
}
