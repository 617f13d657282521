//! The network: links, routes over them and the packets that travel.

use crate::border::Border;
use crate::link::{Change, Link};
use crate::packet::Packet;
use crate::pool::Pool;
use crate::prefetch::prefetch;
use crate::queue::Entry;
use crate::schedule::Schedule;
use crate::{ConfigError, Counters, Header, LinkConfig, Nanos, Rate};

/// A link of one [`Network`]; means nothing to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A route of one [`Network`]; means nothing to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// A packet that has reached the end of its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// When it arrived; never later than the `now` of [`Network::advance`].
    pub time: Nanos,
    /// The route it took.
    pub route: RouteId,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it is marked: congestion experienced ([`crate::Ecn::Ce`]).
    pub ce: bool,
    /// What the sender gave to [`Network::enqueue`].
    pub payload: P,
}

/// A packet that has reached the far end of a watched link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<P> {
    /// When it arrived there.
    pub time: Nanos,
    /// The watched link.
    pub link: LinkId,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it is marked: congestion experienced ([`crate::Ecn::Ce`]).
    pub ce: bool,
    /// A copy of what the sender gave to [`Network::enqueue`].
    pub payload: P,
}

/// Marks the end of a route in [`Network::hops`], beside the number of the route.
pub(crate) const END: u32 = 1 << 31;

/// Marks there, in a part of a network, that a route goes on in another part, beside the part's number.
pub(crate) const FOREIGN: u32 = 1 << 30;

/// The other part in which a route goes on with this hop, if it does.
pub(crate) fn other_part(hop: u32) -> Option<u32> {
    (FOREIGN..END).contains(&hop).then_some(hop & !FOREIGN)
}

/// How many arrivals ahead of a delivery [`Network::advance_prefetching`] announces it.
pub const PREFETCHED: [usize; 4] = [7, 5, 3, 1];

/// How many arrivals ahead one prepares for a link that a packet will leave, for its first packet, and
/// for where this goes.
const LINK: usize = 16;
const FIRST: usize = 13;
const NEXT: usize = 10;
/// And for the end of the queue that it will join.
const QUEUE: usize = 3;

/// Arrivals in preparation: a power of two.
const TURNS: usize = 16;

/// An arrival in preparation. Few others come between, so it is not looked for again: at worst the
/// wrong memory is loaded.
#[derive(Clone, Copy, Debug, Default)]
struct Soon {
    /// The link that its packet leaves.
    link: u32,
    /// What that enters, see [`Network::hops`], and its place in the pool; not known before [`NEXT`].
    next: u32,
    packet: u32,
}

/// Links and routes, and the packets on them, each with a payload of type `P`: a small value that is
/// copied.
#[derive(Clone, Debug)]
pub struct Network<P> {
    pub(crate) seed: u64,
    pub(crate) links: Vec<Link>,
    configs: Vec<LinkConfig>,
    /// The link numbers of all routes one after another, each route closed by its number with [`END`].
    pub(crate) hops: Vec<u32>,
    /// Where each route starts in `hops`.
    pub(crate) routes: Vec<u32>,
    pub(crate) packets: Pool<P>,
    pub(crate) schedule: Schedule,
    /// The next arrivals, as they were known some time ago, by turns.
    soon: [Soon; TURNS],
    turn: usize,
    /// Arrivals at the end of any link.
    arrived: u64,
    /// What was seen on watched links.
    pub(crate) seen: Vec<Seen<P>>,
    /// What was dropped, if the caller wants to know.
    pub(crate) lost: Option<Vec<P>>,
    /// If this is a part: what it knows of the whole.
    pub(crate) border: Option<Box<Border<P>>>,
}

impl<P: Copy> Network<P> {
    /// So many links need no calendar.
    const FEW: usize = 64;

    /// So many links stay in the near caches by themselves: to look ahead would cost more than it
    /// gains.
    const NEAR: usize = 512;

    /// An empty network. All its randomness comes from the seed; each link has streams of its own
    /// (see [`crate::rng::LINK_STREAMS`]).
    pub fn new(seed: u64) -> Self {
        Network {
            seed,
            links: Vec::new(),
            configs: Vec::new(),
            hops: Vec::new(),
            routes: Vec::new(),
            packets: Pool::new(),
            schedule: Schedule::new(),
            soon: [Soon::default(); TURNS],
            turn: 0,
            arrived: 0,
            seen: Vec::new(),
            lost: None,
            border: None,
        }
    }

    /// Adds a link.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError> {
        config.validate()?;
        let number = self.links.len() as u32;
        match self.links.len() {
            Self::FEW => self.schedule.become_many(),
            Self::NEAR => self.schedule.look_ahead(),
            _ => {}
        }
        self.links.push(Link::new(&config, self.seed, number));
        self.configs.push(config);
        Ok(LinkId(number))
    }

    /// Adds a route: the links a packet crosses, in order. A link may occur more than once.
    ///
    /// # Errors
    /// If the route is empty or names a link that does not exist.
    pub fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError> {
        if links.is_empty() {
            return Err(ConfigError::EmptyRoute);
        }
        if let Some(unknown) = links.iter().find(|link| link.0 as usize >= self.links.len()) {
            return Err(ConfigError::UnknownLink(unknown.0));
        }
        let number = self.routes.len() as u32;
        self.routes.push(self.hops.len() as u32);
        self.hops.extend(links.iter().map(|link| link.0));
        self.hops.push(END | number);
        assert!(self.hops.len() < Packet::MAX_HOPS as usize, "more hops than a packet can count");
        Ok(RouteId(number))
    }

    /// All routes, in the order they were added.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> + use<P> {
        (0..self.routes.len() as u32).map(RouteId)
    }

    /// The links of a route.
    pub fn route(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        let start = self.routes[route.0 as usize] as usize;
        self.hops[start..].iter().take_while(|&&hop| hop < END).map(|&hop| LinkId(hop))
    }

    /// The path MTU of a route: the smallest of its links' MTUs.
    pub fn route_mtu(&self, route: RouteId) -> u32 {
        self.route(route).map(|link| self.config(link).mtu).fold(u32::MAX, u32::min)
    }

    /// All links, in the order they were added.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<P> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The configuration of a link, as of the last change.
    pub fn config(&self, link: LinkId) -> &LinkConfig {
        &self.configs[link.0 as usize]
    }

    /// A packet enters its route at `now`. If its first link drops it, the payload is dropped too.
    ///
    /// Everything before `now` must have happened, or the packet would overtake what is still
    /// underway: first call [`Network::advance`] until it returns `None`, or be at the time of the
    /// last delivery.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Nanos, route: RouteId, header: Header, payload: P) {
        debug_assert!(
            self.next_time().is_none_or(|time| time >= now),
            "enqueue at {now} ns before the arrivals up to then"
        );
        let hop = self.routes[route.0 as usize];
        let key = self.packets.insert(payload);
        self.enter(now, Packet::new(header, key, hop));
    }

    /// The time of the next arrival at the end of any link, if packets are underway.
    pub fn next_time(&self) -> Option<Nanos> {
        self.schedule.first().map(|(time, _)| time)
    }

    /// How many packets have arrived at the end of any link: packet-hops. A part counts its own.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Lets happen, in order, what happens up to and including `now`. Returns at the first packet
    /// that reaches the end of its route; call again until there is none.
    pub fn advance(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance_prefetching(now, |_, _| None)
    }

    /// As [`Network::advance`], and passes to `upcoming` the packets that will probably be delivered
    /// soon, so that their receivers can prepare for them: the payload, and how many arrivals come
    /// before, once for each of [`PREFETCHED`]. It returns the route of what the receiver will send
    /// then, if it knows one by the last two. It sees only some packets, and none in a small network,
    /// which stays in the near caches by itself.
    #[inline]
    pub fn advance_prefetching(
        &mut self,
        now: Nanos,
        mut upcoming: impl FnMut(usize, &P) -> Option<RouteId>,
    ) -> Option<Delivery<P>> {
        while let Some((time, number)) = self.schedule.first().filter(|&(time, _)| time <= now) {
            let link = &mut self.links[number as usize];
            let watched = link.is_watched();
            let arrived = if link.is_plain() {
                let packet = link.leave();
                self.schedule.replace_first(link.next_arrival());
                debug_assert!(link.is_conserved());
                packet
            } else {
                let (packet, next) = link.turn(time);
                self.schedule.replace_first(next);
                self.settle(number);
                packet
            };
            let Some(mut packet) = arrived else { continue };
            self.arrived += 1;
            if self.links.len() > Self::NEAR {
                self.prepare(&mut upcoming);
            }
            if watched {
                self.see(time, number, packet);
            }
            packet.step();
            let hop = self.hops[packet.hop() as usize];
            if hop >= FOREIGN {
                if hop < END {
                    // The other part has had it since it entered the link.
                    self.packets.remove(packet.key);
                    continue;
                }
                // Copied straight from its place: to take it out would copy it twice.
                let payload = *self.packets.get(packet.key);
                self.packets.remove(packet.key);
                let (route, size, ce) = (RouteId(hop & !END), packet.size, packet.ce());
                return Some(Delivery { time, route, size, ce, payload });
            }
            self.enter(time, packet);
        }
        None
    }

    /// Begins to load what the next arrivals need: first the link, then its first packet, then the
    /// link that this enters, and the end of the queue there; or the payload of one that has come
    /// to the end of its route, and what its receiver needs.
    #[inline]
    fn prepare(&mut self, upcoming: &mut impl FnMut(usize, &P) -> Option<RouteId>) {
        let Some(link) = self.schedule.ahead(LINK) else { return };
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let place = |n: usize| turn.wrapping_sub(LINK - n) % TURNS;

        self.links[link as usize].prepare_to_leave();
        if let Some(entry) = self.links[self.soon[place(FIRST)].link as usize].first() {
            // With the one behind it.
            prefetch(entry, 2 * size_of::<Entry>());
        }
        let soon = &mut self.soon[place(NEXT)];
        if let Some(Entry { packet, .. }) = self.links[soon.link as usize].first() {
            (soon.next, soon.packet) = (self.hops[packet.hop() as usize + 1], packet.key);
            match soon.next {
                END.. => {
                    let payload = self.packets.get(packet.key);
                    prefetch(payload, size_of_val(payload));
                }
                FOREIGN.. => {}
                number => self.links[number as usize].prepare_to_enter(),
            }
        }
        let soon = self.soon[place(QUEUE)];
        if soon.next < FOREIGN {
            self.links[soon.next as usize].prepare();
        }
        for n in PREFETCHED {
            let soon = self.soon[place(n)];
            if soon.next < END {
                continue;
            }
            if let Some(route) = upcoming(n, self.packets.get(soon.packet)) {
                // None if the packet is not the one that was meant, and its route begins in another part.
                let first = self.hops[self.routes[route.0 as usize] as usize];
                let Some(link) = self.links.get(first as usize) else { continue };
                if n == PREFETCHED[3] { link.prepare() } else { link.prepare_to_begin() }
            }
        }
        // In the place of the one that arrives now.
        self.soon[place(LINK)] = Soon { link, ..Soon::default() };
    }

    /// A packet enters the link it stands before.
    fn enter(&mut self, now: Nanos, packet: Packet) {
        let number = self.hops[packet.hop() as usize];
        let link = &mut self.links[number as usize];
        let was_empty = link.is_empty();
        let accepted = link.enter(now, packet);
        debug_assert!(link.is_conserved());
        if !accepted {
            lose(&mut self.packets, &mut self.lost, packet.key);
        }
        if !link.is_plain() {
            self.settle(number);
        } else if accepted {
            let arrival = link.last_arrival();
            if was_empty {
                self.schedule.insert(arrival, number);
            }
            if let Some(border) = &mut self.border {
                let next = self.hops[packet.hop() as usize + 1];
                if let Some(part) = other_part(next) {
                    border.leave(part, number, arrival, packet, *self.packets.get(packet.key));
                }
            }
        }
    }

    /// Schedules all links anew.
    pub(crate) fn reschedule(&mut self) {
        self.schedule = Schedule::new();
        if self.links.len() > Self::FEW {
            self.schedule.become_many();
        }
        if self.links.len() > Self::NEAR {
            self.schedule.look_ahead();
        }
        for (number, link) in (0..).zip(&self.links) {
            if let Some(time) = link.due() {
                self.schedule.insert(time, number);
            }
        }
        (self.soon, self.turn) = ([Soon::default(); TURNS], 0);
    }

    /// After something happened to a managed link: forgets what it dropped, and looks at it again
    /// when it has to.
    #[inline(never)]
    fn settle(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        if let Some(time) = link.arm() {
            self.schedule.insert(time, number);
        }
        while let Some(key) = link.pop_lost() {
            lose(&mut self.packets, &mut self.lost, key);
        }
        debug_assert!(link.is_conserved());
    }

    /// From `now` on the link has this rate. The packet in transmission ends as it began; those
    /// that wait are served anew. A trace is read at the time of the run, whenever it is set.
    ///
    /// Everything before `now` must have happened, see [`Network::enqueue`].
    ///
    /// # Errors
    /// If the link could not be built with this rate; it is then unchanged.
    pub fn set_rate(&mut self, now: Nanos, link: LinkId, rate: Rate) -> Result<(), ConfigError> {
        let config = LinkConfig { rate, ..self.config(link).clone() };
        config.validate()?;
        self.change(now, link, Change::Rate(&config.rate));
        self.configs[link.0 as usize] = config;
        Ok(())
    }

    /// Packets whose transmission starts after `now` propagate with this delay. The order is kept:
    /// where the delay shrinks, packets wait for those before them.
    ///
    /// Everything before `now` must have happened, see [`Network::enqueue`].
    ///
    /// # Errors
    /// If the delay is out of range; the link is then unchanged.
    pub fn set_delay(&mut self, now: Nanos, link: LinkId, delay: Nanos) -> Result<(), ConfigError> {
        let config = LinkConfig { delay, ..self.config(link).clone() };
        config.validate()?;
        self.change(now, link, Change::Delay(delay));
        self.configs[link.0 as usize] = config;
        Ok(())
    }

    /// The link goes down or up again. When it goes down, the packets that wait are dropped, and
    /// until it is up all that come ([`Counters::dropped_down`]); what is in transmission or
    /// propagates arrives.
    ///
    /// Everything before `now` must have happened, see [`Network::enqueue`].
    pub fn set_up(&mut self, now: Nanos, link: LinkId, up: bool) {
        self.change(now, link, Change::Up(up));
    }

    /// The link starts no transmission before `until`: packets wait in its queue, and are dropped where that
    /// is full. What is in transmission or propagates arrives. A hold that ends earlier than one before
    /// changes nothing.
    ///
    /// Everything before `now` must have happened, see [`Network::enqueue`].
    pub fn hold(&mut self, now: Nanos, link: LinkId, until: Nanos) {
        self.change(now, link, Change::Hold(until));
    }

    fn change(&mut self, now: Nanos, LinkId(number): LinkId, change: Change) {
        debug_assert!(
            self.next_time().is_none_or(|time| time >= now),
            "a change at {now} ns before the arrivals up to then"
        );
        let link = &mut self.links[number as usize];
        link.change(now, change, &self.configs[number as usize], self.seed, number);
        self.settle(number);
    }

    /// From now on every packet that reaches the far end of the link is kept for
    /// [`Network::drain_seen`].
    pub fn watch(&mut self, link: LinkId) {
        self.links[link.0 as usize].watch();
    }

    /// What reached the far end of watched links since the last call, in order of time. Whoever
    /// watches should ask often: it is kept in memory until then.
    pub fn drain_seen(&mut self) -> impl Iterator<Item = Seen<P>> + '_ {
        self.seen.drain(..)
    }

    /// From now on the payload of every packet that is dropped is kept for
    /// [`Network::drain_lost`], for a caller whose payloads stand for something it has to free.
    pub fn keep_lost(&mut self) {
        self.lost.get_or_insert_default();
    }

    /// Whether [`Network::keep_lost`] was called.
    pub fn keeps_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// What was dropped since the last call. Whoever has it kept should ask often.
    pub fn drain_lost(&mut self) -> impl Iterator<Item = P> + '_ {
        self.lost.iter_mut().flat_map(|lost| lost.drain(..))
    }

    #[cold]
    fn see(&mut self, time: Nanos, link: u32, packet: Packet) {
        let payload = *self.packets.get(packet.key);
        let (size, ce) = (packet.size, packet.ce());
        self.seen.push(Seen { time, link: LinkId(link), size, ce, payload });
    }

    /// What a link has done since the start or the last reset.
    pub fn counters(&self, link: LinkId) -> &Counters {
        self.links[link.0 as usize].counters()
    }

    /// Sets all counters of all links to zero, as at the end of a warm-up. Packets on a link stay
    /// there and count as sent when they reach its end.
    pub fn reset_counters(&mut self) {
        self.links.iter_mut().for_each(Link::reset_counters);
    }

    /// Packets that wait in a link's queue at `now`, without the one in transmission.
    pub fn queue_packets(&self, link: LinkId, now: Nanos) -> usize {
        self.links[link.0 as usize].queue(now).0
    }

    /// Bytes that wait in a link's queue at `now`, without the packet in transmission.
    pub fn queue_bytes(&self, link: LinkId, now: Nanos) -> u64 {
        self.links[link.0 as usize].queue(now).1
    }

    /// How long a packet that entered the link at `now` would wait until its transmission starts;
    /// behind all that wait, also where FQ-CoDel would let it pass some.
    pub fn queue_delay(&self, link: LinkId, now: Nanos) -> Nanos {
        self.links[link.0 as usize].queue_delay(now)
    }

    /// Packets on a link: waiting, in transmission or propagating.
    pub fn packets_on(&self, link: LinkId) -> usize {
        self.links[link.0 as usize].packets()
    }

    /// Packets in the whole network.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Checks that no link has lost or invented a packet: what came was sent, was dropped, or is
    /// still there; and that every packet is on exactly one link.
    pub fn is_conserved(&self) -> bool {
        self.links.iter().all(Link::is_conserved)
            && self.links.iter().map(Link::packets).sum::<usize>() == self.packets.len()
    }
}

/// A packet was dropped.
fn lose<P: Copy>(packets: &mut Pool<P>, lost: &mut Option<Vec<P>>, key: u32) {
    if let Some(lost) = lost {
        lost.push(*packets.get(key));
    }
    packets.remove(key);
}
