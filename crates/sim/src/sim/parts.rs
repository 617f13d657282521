//! A simulation in parts that run side by side, each a simulation of its own.
//!
//! In each part things happen in the order that they have in the whole, by time and then by the number of link or timer,
//! and no part is told of anything late. So any partition on any number of threads gives the same bytes.

use std::sync::{Mutex, PoisonError};
use std::thread;

use narrows_laws::MAX_PATHS;
use narrows_net::{Crossing, LinkId, Nanos, SECOND};

use super::Sim;
use super::windows::{Did, LEAST_EVENTS, Part, Ran, Windows, lock};
use crate::event::Target;
use crate::packet::Packet;
use crate::partition::Partition;
use crate::tcp::NEVER;

/// So many windows are looked at together, whether enough happens in them.
const TRIAL: u64 = 512;

/// The name of the threads that a run starts.
pub const THREAD: &str = "narrows part";

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
    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.partition.parts as usize
    }

    /// How far they run by themselves.
    pub fn lookahead(&self) -> Nanos {
        self.partition.lookahead
    }

    /// The time of the windows that are looked at together, at least.
    pub fn trial(&self) -> Nanos {
        self.partition.lookahead.saturating_mul(TRIAL).min(SECOND)
    }

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
        let mut timers = std::mem::take(&mut sim.timers);
        while let Some((time, target)) = timers.pop() {
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
        let (mut networks, mut ends, mut udp) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let mut part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            while let Some((time, target)) = part.timers.pop() {
                if !matches!(target, Target::Subflow(..)) {
                    sim.timers.set(time, target);
                }
            }
            networks.push(part.network);
            ends.push(part.connections.into_iter());
            udp.push(part.udp.into_iter());
        }
        sim.network.join(networks);
        // Each part has its own in the order of the whole.
        let both = |(&near, &far): (&u32, &u32)| {
            let mut connection = ends[near as usize].next()?;
            if far != near {
                connection.reunite(ends[far as usize].next()?);
            }
            Some(connection)
        };
        sim.connections = plan.senders.iter().zip(&plan.receivers).filter_map(both).collect();
        sim.udp = plan.udp.iter().filter_map(|&part| udp[part as usize].next()).collect();
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

    /// The earliest event of all parts.
    pub fn next_time(&self) -> Option<Nanos> {
        self.parts.iter().filter_map(|part| lock(part).next_time()).min()
    }

    /// Lets everything happen up to and including `until`, on so many threads at most, or up to a time before, if too
    /// little happens for several. Returns the time, and windows and events up to it.
    pub fn run(&self, until: Nanos, threads: usize) -> Ran {
        let idle = Ran { reached: until, windows: 0, events: 0, hops: 0, critical: 0 };
        let Some(start) = self.next_time().filter(|&start| start <= until) else { return idle };
        let windows =
            Windows::new(&self.parts, self.plan.partition.lookahead, (start, until), TRIAL);
        let ran = thread::scope(|scope| {
            let wanted = threads.min(self.parts.len());
            // As many as there can be.
            let started = (1..wanted).take_while(|&number| {
                let windows = &windows;
                let thread = thread::Builder::new().name(THREAD.into());
                thread.spawn_scoped(scope, move || windows.work(number)).is_ok()
            });
            windows.begin(1 + started.count());
            windows.work(0)
        });
        windows.finish();
        self.parts.iter().for_each(|part| lock(part).now = ran.reached);
        ran
    }

    /// Whether so much was worth taking it apart, waiting at the end of each window, and putting it together.
    pub fn was_worth(&self, windows: u64, events: u64, threads: usize) -> bool {
        let items = self.plan.partition.links.len() + self.plan.senders.len();
        let waits = windows.saturating_mul(threads.min(self.parts.len()) as u64);
        events >= LEAST_EVENTS.saturating_mul(waits.max(items as u64))
    }
}

impl Part for Sim {
    type Crossing = Crossing<Packet>;

    fn take(&mut self, crossings: &mut Vec<Crossing<Packet>>) {
        self.network.arrive(crossings);
    }

    fn run(&mut self, last: Nanos) -> Did {
        let (events, hops) = (self.events, self.network.arrived());
        let outside = self.advance(last);
        debug_assert!(outside.is_none(), "an end point outside of a part");
        let next = self.next_time().unwrap_or(NEVER).min(self.network.first_crossing());
        Did { events: self.events - events, hops: self.network.arrived() - hops, next }
    }

    fn sent(&mut self) -> &mut [Vec<Crossing<Packet>>] {
        self.network.crossings()
    }
}
