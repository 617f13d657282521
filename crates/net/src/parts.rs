//! A network in parts that run side by side, each with links of its own.
//!
//! Where a route goes on in another part, its packet has to be there before that part has reached the time of its
//! arrival. On a plain link that time is known as the packet enters; so the part that owns the link hands the packet
//! over at that moment, a delay of the link ahead. The other part has a link in its place, of the same number, on
//! which it arrives: in each part arrivals come in the order of time and link that they have in the whole.

use crate::border::{Border, Crossing};
use crate::link::Link;
use crate::network::{END, FOREIGN, LinkId, Network, other_part};
use crate::pool::Pool;
use crate::{LinkConfig, Nanos, Rate};

impl<P: Copy> Network<P> {
    /// How long before a packet arrives at the far end of a link that is known at least; none if other parts cannot
    /// be told in time: not on a link that more may happen to, nor on a watched one.
    pub fn lookahead(&self, link: LinkId) -> Option<Nanos> {
        let known = self.links[link.0 as usize].lookahead();
        known.filter(|&delay| delay > 0)
    }

    /// The parts of the network: link n goes to part `of[n]` of `parts`. Until [`Network::join`] this one is without
    /// links.
    ///
    /// # Panics
    /// If a route goes on in another part behind a link without [`Network::lookahead`], or dropped packets are kept.
    pub fn split(&mut self, of: &[u32], parts: u32) -> Vec<Network<P>> {
        assert!(self.lost.is_none() && self.seen.is_empty(), "nobody looks at a network in parts");
        // Links that lead to other parts, and to which.
        let mut abroad: Vec<(u32, u32)> = Vec::new();
        for pair in self.hops.windows(2).filter(|pair| pair[0] < END && pair[1] < END) {
            let (from, to) = (of[pair[0] as usize], of[pair[1] as usize]);
            if from != to {
                assert!(self.lookahead(LinkId(pair[0])).is_some(), "link {} is cut", pair[0]);
                abroad.push((pair[0], to));
            }
        }
        abroad.sort_unstable();
        abroad.dedup();

        let mut networks: Vec<Network<P>> = (0..parts)
            .map(|part| {
                let own = |hop: u32| {
                    if of[hop as usize] == part { hop } else { FOREIGN | of[hop as usize] }
                };
                let mut network = Network::new(self.seed);
                network.hops =
                    self.hops.iter().map(|&hop| if hop < END { own(hop) } else { hop }).collect();
                network.routes.clone_from(&self.routes);
                network.border = Some(Box::new(Border::new(of.len(), parts)));
                network
            })
            .collect();
        let mut abroad = abroad.into_iter().peekable();
        for (number, link) in (0..).zip(std::mem::take(&mut self.links)) {
            networks[of[number as usize] as usize].adopt(number, link, false);
            while let Some((_, part)) = abroad.next_if(|&(link, _)| link == number) {
                networks[part as usize].adopt(number, Link::stand_in(), true);
            }
        }
        let mut crossings: Vec<Vec<Crossing<P>>> = (0..parts).map(|_| Vec::new()).collect();
        for network in &mut networks {
            let here = network.border.as_deref().map_or(&[][..], |border| &border.here);
            network
                .hops
                .iter_mut()
                .filter(|hop| **hop < FOREIGN)
                .for_each(|hop| *hop = here[*hop as usize]);
            for (link, &(number, _)) in
                network.links.iter_mut().zip(network.border.iter().flat_map(|b| &b.whole))
            {
                link.each_packet(|packet| {
                    let payload = *self.packets.get(packet.key);
                    packet.key = network.packets.insert(payload);
                });
                for entry in link.known() {
                    let next = network.hops[entry.packet.hop() as usize + 1];
                    if let Some(part) = other_part(next) {
                        let payload = *network.packets.get(entry.packet.key);
                        let (time, packet) = (entry.arrival, entry.packet);
                        let crossing = Crossing { time, link: number, packet, payload };
                        crossings[part as usize].push(crossing);
                    }
                }
            }
            network.reschedule();
        }
        for (network, crossings) in networks.iter_mut().zip(&mut crossings) {
            network.arrive(crossings);
        }
        self.packets = Pool::new();
        self.reschedule();
        networks
    }

    /// Takes the links of all parts of [`Network::split`] back, and the packets on them.
    pub fn join(&mut self, parts: Vec<Network<P>>) {
        let mut links: Vec<(u32, Link)> = Vec::new();
        for Network { links: own, packets, border, .. } in parts {
            for (mut link, (number, stands_in)) in
                own.into_iter().zip(border.into_iter().flat_map(|b| b.whole))
            {
                if !stands_in {
                    link.each_packet(|packet| {
                        packet.key = self.packets.insert(*packets.get(packet.key))
                    });
                    links.push((number, link));
                }
            }
        }
        links.sort_unstable_by_key(|&(number, _)| number);
        self.links = links.into_iter().map(|(_, link)| link).collect();
        self.reschedule();
    }

    /// Packets come from another part, on each link in order of time. Their arrivals have not been reached here.
    pub fn arrive(&mut self, crossings: &mut Vec<Crossing<P>>) {
        /// How far ahead one begins to load the link of a packet, and its end.
        const AHEAD: [usize; 2] = [8, 4];
        let Some(border) = &self.border else { return };
        for n in 0..crossings.len() {
            let ahead = |n: usize| {
                let crossing = crossings.get(n)?;
                self.links.get(border.here[crossing.link as usize] as usize)
            };
            ahead(n + AHEAD[0]).into_iter().for_each(Link::prepare_to_leave);
            ahead(n + AHEAD[1]).into_iter().for_each(Link::prepare);
            let Crossing { time, link, mut packet, payload } = crossings[n];
            packet.key = self.packets.insert(payload);
            let here = border.here[link as usize];
            let link = &mut self.links[here as usize];
            let was_empty = link.is_empty();
            link.bring(time, packet);
            if was_empty {
                self.schedule.insert(time, here);
            }
        }
        crossings.clear();
    }

    /// What has left for each part since it was taken out.
    pub fn crossings(&mut self) -> &mut [Vec<Crossing<P>>] {
        self.border.as_mut().map_or(&mut [], |border| &mut border.out)
    }

    /// When the first of what has left since the last call arrives, the largest time if nothing has.
    pub fn first_crossing(&mut self) -> Nanos {
        self.border
            .as_mut()
            .map_or(Nanos::MAX, |border| std::mem::replace(&mut border.first, Nanos::MAX))
    }

    /// One more link, whose number in the whole is larger than that of all before.
    fn adopt(&mut self, number: u32, link: Link, stands_in: bool) {
        let here = self.links.len() as u32;
        self.links.push(link);
        if let Some(border) = &mut self.border {
            border.here[number as usize] = here;
            border.whole.push((number, stands_in));
        }
    }
}

impl Link {
    /// For a link of another part: what enters it has crossed that one.
    fn stand_in() -> Link {
        let config = LinkConfig { rate: Rate::Infinite, quantiles: false, ..LinkConfig::default() };
        Link::new(&config, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CoDel, Counters, Delivery, Discipline, Header, Limit, Loss, RouteId};

    const PARTS: u32 = 3;

    /// A packet: when it is sent, and on which route.
    type Sent = (Nanos, u32);

    /// Links in three parts, and routes that leave a part only behind a plain link with a delay.
    fn network(links: &[(u8, Nanos)], routes: &[Vec<u8>]) -> (Network<usize>, Vec<u32>) {
        let mut network = Network::new(1);
        for (number, &(kind, delay)) in links.iter().enumerate() {
            let discipline =
                if kind == 1 { Discipline::CoDel(CoDel::default()) } else { Discipline::DropTail };
            let config = LinkConfig {
                rate: Rate::Constant(100_000_000),
                delay,
                limit: Limit::Packets(3),
                jitter: if kind == 2 { 40_000 } else { 0 },
                loss: if kind == 3 { Loss::Random(0.1) } else { Loss::None },
                discipline,
                name: format!("{number}"),
                ..LinkConfig::default()
            };
            network.add_link(config).expect("a valid link");
        }
        let of: Vec<u32> = (0..links.len() as u32).map(|link| link % PARTS).collect();
        for route in routes {
            let mut hops: Vec<LinkId> = Vec::new();
            for &hop in route {
                let link = LinkId(u32::from(hop) % links.len() as u32);
                let leads = |from: &LinkId| {
                    of[from.0 as usize] == of[link.0 as usize] || network.lookahead(*from).is_some()
                };
                if hops.last().is_none_or(leads) {
                    hops.push(link);
                }
            }
            network.add_route(&hops).expect("a valid route");
        }
        (network, of)
    }

    /// Sends what is due before `end`, and lets that happen.
    fn run(
        network: &mut Network<usize>,
        sent: &[Sent],
        mine: impl Fn(u32) -> bool,
        (start, end): (Nanos, Nanos),
        delivered: &mut Vec<(Nanos, RouteId, bool, usize)>,
    ) {
        let mut see = |network: &mut Network<usize>, now| {
            while let Some(Delivery { time, route, ce, payload, .. }) = network.advance(now) {
                delivered.push((time, route, ce, payload));
            }
        };
        for (key, &(time, route)) in sent.iter().enumerate() {
            if (start..end).contains(&time) && mine(route) {
                see(network, time);
                network.enqueue(
                    time,
                    RouteId(route),
                    Header { size: 1500, ..Header::default() },
                    key,
                );
            }
        }
        see(network, end - 1);
    }

    proptest! {
        /// Parts that tell each other what leaves them do what the whole does, whenever they are split and joined.
        #[test]
        fn parts_do_what_the_whole_does(
            links in prop::collection::vec((0_u8..5, 1_000_u64..300_000), 4..14),
            routes in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..7), 1..8),
            sent in prop::collection::vec((0_u64..20_000_000, any::<u8>()), 1..400),
            again in 1_u64..20_000_000,
        ) {
            let (mut whole, of) = network(&links, &routes);
            let mut sent: Vec<Sent> =
                sent.iter().map(|&(time, route)| (time, u32::from(route) % routes.len() as u32)).collect();
            sent.sort_unstable();
            let first = |route: u32| whole.route(RouteId(route)).next().map_or(0, |link| of[link.0 as usize]);
            let starts: Vec<u32> = (0..routes.len() as u32).map(first).collect();
            let lookahead = whole.links().filter_map(|link| whole.lookahead(link)).min().unwrap_or(1_000);
            let mut copy = whole.clone();
            let end = 60_000_000;
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            run(&mut whole, &sent, |_| true, (0, end), &mut expected);

            let mut now = 0;
            for until in [again, end] {
                let mut parts = copy.split(&of, PARTS);
                while now < until {
                    let next = (now + lookahead).min(until);
                    for (part, network) in (0..).zip(&mut parts) {
                        run(network, &sent, |route| starts[route as usize] == part, (now, next), &mut found);
                        prop_assert!(network.is_conserved());
                    }
                    for part in 0..parts.len() {
                        prop_assert!(parts[part].first_crossing() >= next);
                        for to in 0..parts.len() {
                            let mut crossings = std::mem::take(&mut parts[part].crossings()[to]);
                            parts[to].arrive(&mut crossings);
                        }
                    }
                    now = next;
                }
                copy.join(parts);
                prop_assert!(copy.is_conserved());
            }
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
            let counters = |network: &Network<usize>| -> Vec<Counters> {
                network.links().map(|link| network.counters(link).clone()).collect()
            };
            prop_assert_eq!(counters(&copy), counters(&whole));
        }
    }
}
