//! A queue that decides late, and is looked at only when something enters or arrives, does what one
//! does that acts at every moment.

use std::collections::{BTreeMap, VecDeque};

use narrows_net::{
    CoDel, Delivery, Discipline, Ecn, FqCoDel, Header, LinkConfig, LinkId, MILLISECOND, Nanos,
    Rate, SECOND,
};
use proptest::prelude::*;

use crate::conservation::any_link;
use crate::{one_link, run, sized};

const LINK: LinkId = LinkId(0);

/// Nanoseconds per byte of the links here.
const BYTE: Nanos = 8;
const MTU: u32 = 1500;

/// A discipline as its RFC writes it. Packets are numbers with a size, a flow and an entry.
trait Reference {
    fn push(&mut self, packet: Waiting);
    fn pop(&mut self, now: Nanos) -> Option<Waiting>;
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: usize,
    size: u32,
    flow: u32,
    entered: Nanos,
}

/// RFC 8289, section 5, without ECN.
#[derive(Default)]
struct PlainCoDel {
    config: CoDel,
    queue: VecDeque<Waiting>,
    first_above_time: Nanos,
    drop_next: Nanos,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl PlainCoDel {
    fn bytes(&self) -> u32 {
        self.queue.iter().map(|packet| packet.size).sum()
    }

    fn control_law(&self, t: Nanos, count: u32) -> Nanos {
        t + (self.config.interval as f64 / f64::from(count).sqrt()) as Nanos
    }

    fn dodequeue(&mut self, now: Nanos) -> (Option<Waiting>, bool) {
        let mut ok_to_drop = false;
        let packet = self.queue.pop_front();
        match packet {
            None => self.first_above_time = 0,
            Some(p) if now - p.entered < self.config.target || self.bytes() <= MTU => {
                self.first_above_time = 0;
            }
            Some(_) if self.first_above_time == 0 => {
                self.first_above_time = now + self.config.interval;
            }
            Some(_) => ok_to_drop = now >= self.first_above_time,
        }
        (packet, ok_to_drop)
    }
}

impl Reference for PlainCoDel {
    fn push(&mut self, packet: Waiting) {
        self.queue.push_back(packet);
    }

    fn pop(&mut self, now: Nanos) -> Option<Waiting> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if packet.is_none() {
            self.dropping = false;
        } else if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * self.config.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet
    }
}

/// RFC 8290, section 4, with a queue for each flow.
#[derive(Default)]
struct PlainFqCoDel {
    config: FqCoDel,
    queues: BTreeMap<u32, (PlainCoDel, i64)>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl Reference for PlainFqCoDel {
    fn push(&mut self, packet: Waiting) {
        let config = self.config;
        let codel = PlainCoDel { config: config.codel, ..PlainCoDel::default() };
        let (queue, credits) = self.queues.entry(packet.flow).or_insert((codel, 0));
        queue.push(packet);
        if !self.new.contains(&packet.flow) && !self.old.contains(&packet.flow) {
            *credits = i64::from(config.quantum);
            self.new.push_back(packet.flow);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Waiting> {
        loop {
            let (flow, is_new) = match self.new.front() {
                Some(&flow) => (flow, true),
                None => (*self.old.front()?, false),
            };
            let (queue, credits) = self.queues.get_mut(&flow)?;
            let list = if is_new { &mut self.new } else { &mut self.old };
            if *credits <= 0 {
                *credits += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(flow);
            } else if let Some(packet) = queue.pop(now) {
                *credits -= i64::from(packet.size);
                return Some(packet);
            } else {
                list.pop_front();
                if is_new && !self.old.is_empty() {
                    self.old.push_back(flow);
                }
            }
        }
    }
}

/// Numbers and arrivals of the packets (time, size, flow) on a link with this queue and delay, by
/// stepping from event to event. What is transmitted is gone before something comes at that time.
fn step(
    queue: &mut dyn Reference,
    delay: Nanos,
    packets: &[(Nanos, u32, u32)],
) -> Vec<(usize, Nanos)> {
    let mut arrivals = Vec::new();
    let (mut busy_until, mut next) = (None, 0);
    loop {
        let entry = packets.get(next).map(|&(time, ..)| time);
        let now = match (busy_until, entry) {
            (Some(end), Some(entry)) if end <= entry => end,
            (Some(end), None) => end,
            (_, Some(entry)) => {
                let (_, size, flow) = packets[next];
                queue.push(Waiting { number: next, size, flow, entered: entry });
                next += 1;
                entry
            }
            (None, None) => return arrivals,
        };
        if busy_until.is_none_or(|end| end <= now) {
            let packet = queue.pop(now);
            busy_until = packet.map(|packet| now + u64::from(packet.size) * BYTE);
            arrivals.extend(packet.zip(busy_until).map(|(p, end)| (p.number, end + delay)));
        }
    }
}

/// The same by the network.
fn network(
    discipline: Discipline,
    delay: Nanos,
    packets: &[(Nanos, u32, u32)],
) -> Vec<(usize, Nanos)> {
    let rate = Rate::Constant(8_000_000_000 / BYTE);
    let config = LinkConfig { rate, delay, discipline, mtu: MTU, ..LinkConfig::default() };
    let (mut network, route) = one_link(config);
    let mut deliveries: Vec<Delivery<usize>> = Vec::new();
    for (number, &(now, size, flow)) in packets.iter().enumerate() {
        deliveries.extend(std::iter::from_fn(|| network.advance(now)));
        network.enqueue(now, route, Header { flow, ..sized(size) }, number);
    }
    deliveries.extend(std::iter::from_fn(|| network.advance(Nanos::MAX)));
    deliveries.iter().map(|d| (d.payload, d.time)).collect()
}

/// Packets (time, size, flow) at about 1.3 times the rate of the link: a queue forms. Many come at
/// the very time a transmission ends.
fn overload() -> impl Strategy<Value = Vec<(Nanos, u32, u32)>> {
    let gap = prop_oneof![Just(0), Just(1500 * BYTE), 0..1200 * BYTE];
    let size = prop_oneof![Just(1500_u32), 1_u32..=1500];
    prop::collection::vec((gap, size, 0_u32..4), 1..600).prop_map(|packets| {
        let time = |now: &mut Nanos, gap| {
            *now += gap;
            *now
        };
        let each = packets
            .into_iter()
            .scan(0, |now, (gap, size, flow)| Some((time(now, gap), size, flow)));
        each.collect()
    })
}

/// Small enough that several dropping states fit into the 7 ms of [`overload`].
fn codel() -> impl Strategy<Value = CoDel> {
    (1..MILLISECOND / 10, 1000..MILLISECOND)
        .prop_map(|(target, interval)| CoDel { target, interval })
}

fn delay() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(0), Just(1500 * BYTE), 0..MILLISECOND]
}

proptest! {
    #[test]
    fn codel_is_that_of_the_rfc(config in codel(), delay in delay(), packets in overload()) {
        let mut reference = PlainCoDel { config, ..PlainCoDel::default() };
        let expected = step(&mut reference, delay, &packets);
        prop_assert_eq!(network(Discipline::CoDel(config), delay, &packets), expected);
    }

    #[test]
    fn fq_codel_is_that_of_the_rfc(
        codel in codel(),
        quantum in 1_u32..4000,
        delay in delay(),
        packets in overload(),
    ) {
        // So many queues that the few flows do not meet in one.
        let config = FqCoDel { codel, quantum, flows: 65_536 };
        let mut reference = PlainFqCoDel { config, ..PlainFqCoDel::default() };
        let expected = step(&mut reference, delay, &packets);
        prop_assert_eq!(network(Discipline::FqCoDel(config), delay, &packets), expected);
    }

    /// A link is looked at when something arrives at its far end, so the longer the delay the later
    /// it decides: all else stays the same.
    #[test]
    fn a_longer_delay_changes_no_decision(
        config in any_link(),
        delay in 0..SECOND,
        packets in prop::collection::vec((0..MILLISECOND, 1_u32..3000, 0_u32..4), 0..300),
    ) {
        let arrivals = |delay| {
            let (mut network, route) = one_link(LinkConfig { delay, ..config.clone() });
            let mut deliveries: Vec<Delivery<usize>> = Vec::new();
            let mut now = 0;
            for (number, &(gap, size, flow)) in packets.iter().enumerate() {
                now += gap;
                deliveries.extend(std::iter::from_fn(|| network.advance(now)));
                let ecn = [Ecn::Ect, Ecn::NotEct, Ecn::Ect1][number % 3];
                network.enqueue(now, route, Header { size, flow, ecn }, number);
            }
            deliveries.extend(std::iter::from_fn(|| network.advance(Nanos::MAX)));
            let delivered = deliveries.iter().map(|d| (d.payload, d.time - delay, d.ce)).collect::<Vec<_>>();
            (delivered, network.counters(LINK).clone())
        };
        prop_assert_eq!(arrivals(0), arrivals(delay));
    }

    /// To go up, being up, changes nothing but makes a link decide late.
    #[test]
    fn droptail_decides_late_as_it_does_beforehand(
        config in any_link(),
        packets in prop::collection::vec((0..MILLISECOND, 1_u32..3000), 0..200),
    ) {
        let config = LinkConfig {
            discipline: Discipline::DropTail,
            ecn: false,
            policer: None,
            reorder: None,
            wifi: None,
            ..config
        };
        let (mut early, route) = one_link(config);
        let mut late = early.clone();
        late.set_up(0, LINK, true);
        let mut now = 0;
        let sends: Vec<_> =
            packets.iter().map(|&(gap, size)| { now += gap; (now, route, size) }).collect();
        prop_assert_eq!(run(&mut early, &sends), run(&mut late, &sends));
        prop_assert_eq!(early.counters(LINK), late.counters(LINK));
    }
}
