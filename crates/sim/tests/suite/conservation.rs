//! Conservation and causality over random networks, flows and events: no packet comes from
//! nowhere, arrives twice, early or changed; no queue holds more than its limit; no link
//! transmits faster than its rate; and at every time all sums match, at each link and end to end.

use crate::common;

use std::collections::HashMap;
use std::sync::Arc;

use common::*;
use narrows_net::{
    CoDel, Discipline, Distribution, Ecn, FqCoDel, GilbertElliott, Limit, LinkConfig, LinkId, Loss,
    Nanos, Pie, Policer, Rate, Red, Reorder, Trace, Variation, Wifi,
};
use narrows_sim::capture::{Captured, Point};
use narrows_sim::topology::FatTree;
use narrows_sim::{ConnectionConfig, ConnectionStats, PathConfig, Sim, UdpConfig};
use narrows_traffic::{
    ConnId, FlowId, LossDetection, Opener, ReceiverAcks, Scheduler, SizeDist, Source, TcpConfig,
    Timestamps,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn any_loss() -> impl Strategy<Value = Loss> {
    let bursts = (0.0..0.05, 0.05..1.0).prop_map(|(good_to_bad, bad_to_good)| {
        Loss::GilbertElliott(GilbertElliott { good_to_bad, bad_to_good, ..Default::default() })
    });
    prop_oneof![6 => Just(Loss::None), 1 => (0.0..0.2).prop_map(Loss::Random), 1 => bursts]
}

fn any_discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        4 => Just(Discipline::DropTail),
        1 => Just(Discipline::Red(Red::default())),
        1 => Just(Discipline::CoDel(CoDel::default())),
        1 => (1_u32..20).prop_map(|flows| Discipline::FqCoDel(FqCoDel { flows, ..Default::default() })),
        1 => Just(Discipline::Pie(Pie::default())),
    ]
}

/// What few links have.
fn any_feature() -> impl Strategy<Value = (Option<Policer>, Option<Reorder>, Option<Wifi>)> {
    let policer = (MBIT..50 * MBIT).prop_map(|rate| Policer { rate, burst: 30_000 });
    let reorder = (0.0..0.1, MS..20 * MS).prop_map(|(share, delay)| Reorder { share, delay });
    (
        prop_oneof![4 => Just(None), 1 => policer.prop_map(Some)],
        prop_oneof![4 => Just(None), 1 => reorder.prop_map(Some)],
        prop_oneof![4 => Just(None), 1 => Just(Some(Wifi::default()))],
    )
}

pub fn any_link() -> impl Strategy<Value = LinkConfig> {
    let trace = Arc::new(Trace::parse(b"0\n3\n3\n4\n9\n", "test").unwrap());
    let rate = prop_oneof![
        1 => Just(Rate::Infinite),
        4 => (MBIT..200 * MBIT).prop_map(Rate::Constant),
        1 => Just(Rate::Trace(trace)),
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (1_u32..100).prop_map(Limit::Packets),
        (1_000_u64..100_000).prop_map(Limit::Bytes),
        (MS..50 * MS).prop_map(Limit::Time),
    ];
    let distribution = prop_oneof![
        Just(Distribution::Uniform),
        (0..5 * MS, 0..5 * MS)
            .prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
        (0..5 * MS, 1.01..5.0).prop_map(|(mean, shape)| Distribution::Pareto { mean, shape }),
    ];
    let variation = (distribution, prop_oneof![Just(0.0), 0.0..1.0])
        .prop_map(|(distribution, correlation)| Variation { distribution, correlation });
    let jitter = (prop_oneof![Just(0), 0..10 * MS], variation);
    let mtu = select(vec![576_u32, 1500, 1500, 9000]);
    let queue = (limit, any_discipline(), any::<bool>());
    (rate, 2 * MS..50 * MS, jitter, any_loss(), queue, any_feature(), mtu).prop_map(
        |(
            rate,
            delay,
            (jitter, variation),
            loss,
            (limit, discipline, ecn),
            (policer, reorder, wifi),
            mtu,
        )| {
            let queues = !matches!(rate, Rate::Infinite);
            let constant = matches!(rate, Rate::Constant(_));
            let discipline = if queues { discipline } else { Discipline::DropTail };
            let fair = matches!((discipline, limit), (Discipline::FqCoDel(_), Limit::Time(_)));
            LinkConfig {
                name: "any".into(),
                rate,
                delay,
                jitter,
                variation,
                loss,
                limit: if fair { Limit::Packets(50) } else { limit },
                discipline,
                ecn: ecn && discipline != Discipline::DropTail,
                policer,
                reorder,
                wifi: wifi.filter(|_| constant),
                mtu,
                quantiles: true,
            }
        },
    )
}

/// Links, and how routes are found: any sequence of links, which may cross one twice, or a random
/// shortest path through a fat tree of 16 hosts.
#[derive(Clone, Debug)]
pub enum Topology {
    Any(Vec<LinkConfig>),
    FatTree(Vec<LinkConfig>),
}

impl Topology {
    pub fn build(&self, sim: &mut Sim) {
        match self {
            Topology::Any(links) => links.iter().for_each(|link| _ = add(sim, link.clone())),
            Topology::FatTree(links) => {
                let all = FatTree::new(4).unwrap().links() as usize;
                links.iter().cycle().take(all).for_each(|link| _ = add(sim, link.clone()));
            }
        }
    }

    /// A way there and one back.
    pub fn path(&self, sim: &mut Sim, [there, back]: &[Vec<Index>; 2]) -> PathConfig {
        let [forward, reverse] = match self {
            Topology::Any(links) => [there, back].map(|way| {
                way.iter().map(|i| LinkId(i.index(links.len()) as u32)).collect::<Vec<_>>()
            }),
            Topology::FatTree(_) => {
                let tree = FatTree::new(4).unwrap();
                let from = there[0].index(16) as u32;
                let to = (from + 1 + back[0].index(15) as u32) % 16;
                let index = there[there.len() - 1].index(tree.paths(from, to) as usize) as u32;
                [(from, to), (to, from)].map(|(from, to)| {
                    tree.path(from, to, index).into_iter().map(LinkId).collect::<Vec<_>>()
                })
            }
        };
        path(sim, &forward, &reverse)
    }
}

fn any_topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        prop::collection::vec(any_link(), 1..8).prop_map(Topology::Any),
        any_link().prop_map(|link| Topology::FatTree(vec![link])),
    ]
}

fn any_source() -> impl Strategy<Value = Source> {
    let size = SizeDist::Exponential { mean: 700.0, min: 50, max: 3000 };
    let on_off = Source::OnOff { pps: 500.0, size, on_mean_s: 0.2, on_shape: 1.5, off_mean_s: 0.2 };
    prop_oneof![
        3 => Just(Source::Greedy),
        2 => (1_u64..1_000_000).prop_map(|bytes| Source::File { bytes }),
        1 => Just(Source::Rate { mean_pps: 300.0, size }),
        1 => Just(on_off),
    ]
}

fn any_tcp() -> impl Strategy<Value = TcpConfig> {
    let timestamps = select(vec![Timestamps::Us, Timestamps::Ms]);
    let (tso, gro) = (select(vec![1_u32, 1, 8, 44]), select(vec![0, 0, 50_000]));
    let detection = select(vec![LossDetection::Rack, LossDetection::Fack]);
    let acks = select(vec![ReceiverAcks::Linux65, ReceiverAcks::Linux66]);
    let opener = select(vec![Opener::Sender, Opener::Receiver]);
    (any::<bool>(), any::<bool>(), tso, gro, detection, acks, timestamps, opener).prop_map(
        |(ecn, pacing, tso, gro, loss_detection, receiver_acks, timestamps, opener)| TcpConfig {
            ecn,
            pacing,
            tso,
            gro,
            loss_detection,
            receiver_acks,
            timestamps,
            opener,
            ..TcpConfig::default()
        },
    )
}

#[derive(Clone, Debug)]
pub struct Connect {
    pub ways: Vec<[Vec<Index>; 2]>,
    law: &'static str,
    scheduler: Scheduler,
    source: Source,
    tcp: TcpConfig,
    start: Nanos,
    stop: Nanos,
    buffer: u64,
}

pub fn any_way() -> impl Strategy<Value = [Vec<Index>; 2]> {
    prop::array::uniform2(prop::collection::vec(any::<Index>(), 1..4))
}

pub fn any_connection() -> impl Strategy<Value = Connect> {
    (
        prop::collection::vec(any_way(), 1..5),
        select(vec![
            "reno",
            "cubic",
            "lia",
            "olia",
            "balia",
            "reno+hystart++",
            "greno+xcorr",
            "bbr",
        ]),
        select(common::SCHEDULERS.to_vec()),
        any_source(),
        any_tcp(),
        (0..S / 2, 0..4 * S),
        10_000_u64..300_000,
    )
        .prop_map(|(ways, law, scheduler, source, tcp, (start, length), buffer)| Connect {
            ways,
            law,
            scheduler,
            source,
            tcp,
            start,
            stop: start + length,
            buffer,
        })
}

/// Adds the connections, and UDP flows on these ways. Returns the connections, and all flows.
pub fn connect(
    sim: &mut Sim,
    topology: &Topology,
    connections: &[Connect],
    udp: &[[Vec<Index>; 2]],
) -> (Vec<ConnId>, Vec<FlowId>) {
    let mut ids = vec![];
    for connect in connections {
        let paths = connect.ways.iter().map(|ways| topology.path(sim, ways)).collect();
        // FACK with the laws of its time.
        let switches: &[&str] = match connect.tcp.loss_detection {
            LossDetection::Rack => &[],
            LossDetection::Fack => &["window.slow_start_at_ssthresh", "window.count_acks"],
        };
        let config = ConnectionConfig {
            params: on(switches),
            control: control(connect.law),
            scheduler: connect.scheduler,
            tcp: connect.tcp,
            source: connect.source,
            active: vec![(connect.start, connect.stop)],
            send_buffer: connect.buffer,
            recv_buffer: connect.buffer,
            ..greedy(paths)
        };
        ids.push(sim.add_connection(config));
    }
    let mut flows: Vec<FlowId> = ids.iter().copied().map(FlowId::Connection).collect();
    for way in udp {
        let route = topology.path(sim, way).forward;
        let source =
            Source::Rate { mean_pps: 1500.0, size: SizeDist::Uniform { min: 40, max: 1500 } };
        let config =
            UdpConfig { name: "udp".into(), route, back: None, source, active: vec![(0, S)] };
        flows.push(FlowId::Udp(sim.add_udp(config)));
    }
    (ids, flows)
}

/// What happens between two steps.
#[derive(Clone, Debug)]
pub enum Happens {
    Nothing,
    Rate(Index, u64),
    Delay(Index, Nanos),
    Up(Index, bool),
    Hold(Index, Nanos),
    PathLost(Index, Index),
    PathComes(Index, [Vec<Index>; 2]),
}

pub fn anything() -> impl Strategy<Value = Happens> {
    let link = any::<Index>;
    prop_oneof![
        30 => Just(Happens::Nothing),
        1 => (link(), MBIT..200 * MBIT).prop_map(|(link, rate)| Happens::Rate(link, rate)),
        1 => (link(), MS..100 * MS).prop_map(|(link, delay)| Happens::Delay(link, delay)),
        1 => (link(), any::<bool>()).prop_map(|(link, up)| Happens::Up(link, up)),
        1 => (link(), 1..200 * MS).prop_map(|(link, time)| Happens::Hold(link, time)),
        1 => (link(), link()).prop_map(|(flow, path)| Happens::PathLost(flow, path)),
        1 => (link(), any_way()).prop_map(|(flow, way)| Happens::PathComes(flow, way)),
    ]
}

/// What hosts sent, by flow, path and its life, direction and identification, and links and hosts saw.
#[derive(Default)]
struct Ledger {
    underway: HashMap<(FlowId, usize, u8, bool, u16), Captured>,
    sent: u64,
    received: u64,
    /// Packets and bytes, by link.
    crossed: HashMap<LinkId, (u64, u64)>,
    /// The largest rate that a link has had, bit/s, if that and a delay are all it has.
    fastest: HashMap<LinkId, u64>,
    last: HashMap<LinkId, Nanos>,
    time: Nanos,
}

impl Ledger {
    fn enter(&mut self, packet: &Captured) {
        assert!(packet.time >= self.time, "back in time: {packet:?}");
        self.time = packet.time;
        let key = (packet.flow, packet.path, packet.generation, packet.forward, packet.id);
        let leaves = match packet.point {
            Point::Link(link) => {
                let (packets, bytes) = self.crossed.entry(link).or_default();
                *packets += 1;
                *bytes += u64::from(packet.size);
                if let Some(&bits) = self.fastest.get(&link) {
                    let transmission = u64::from(packet.size) * 8 * S / bits;
                    let last = self.last.insert(link, packet.time).unwrap_or_default();
                    let gap = packet.time - last;
                    assert!(gap + 1 >= transmission, "{link:?} is faster than it can: {gap} ns");
                }
                self.same(packet, self.underway.get(&key));
                return;
            }
            Point::Sender(_) => packet.forward,
            Point::Receiver(_) => !packet.forward,
        };
        if leaves {
            self.sent += 1;
            self.underway.insert(key, *packet);
        } else {
            self.received += 1;
            let original = self.underway.remove(&key);
            self.same(packet, original.as_ref());
        }
    }

    /// The packet is one that was sent, before, and it has not changed on its way but for a mark.
    fn same(&self, seen: &Captured, original: Option<&Captured>) {
        let Some(original) = original else { panic!("from nowhere, or twice: {seen:?}") };
        assert!(seen.time > original.time, "{seen:?} of {original:?}");
        assert_eq!((seen.size, seen.echo), (original.size, original.echo));
        assert_eq!(format!("{:?}", seen.body), format!("{:?}", original.body));
        let marked = original.ecn == Ecn::Ect && seen.ecn == Ecn::Ce;
        assert!(seen.ecn == original.ecn || marked, "{seen:?} of {original:?}");
    }

    /// What the links count is what was seen, and all sums match.
    fn balance(&self, sim: &Sim) {
        let network = sim.network();
        assert!(network.is_conserved());
        let mut dropped = 0;
        for link in network.links() {
            let counters = network.counters(link);
            dropped += counters.dropped();
            let crossed = self.crossed.get(&link).copied().unwrap_or_default();
            assert_eq!(crossed, (counters.sent, counters.bytes_sent), "{link:?}");
            let packets = network.queue_packets(link, sim.now());
            let bytes = network.queue_bytes(link, sim.now());
            match network.config(link).limit {
                Limit::Packets(limit) => assert!(packets <= limit as usize, "{link:?}"),
                Limit::Bytes(limit) => assert!(bytes <= limit, "{link:?}"),
                Limit::Time(_) | Limit::Unlimited => {}
            }
        }
        assert_eq!(self.sent, self.received + dropped + network.packets() as u64);
    }
}

pub fn happen(
    sim: &mut Sim,
    topology: &Topology,
    ids: &[ConnId],
    links: &[LinkId],
    fastest: &mut HashMap<LinkId, u64>,
    event: Happens,
) {
    match event {
        Happens::Nothing => {}
        Happens::Rate(link, bits) => {
            let link = *link.get(links);
            // A queue that waits at an infinite rate, or Wi-Fi at none, is refused.
            if sim.set_link_rate(link, Rate::Constant(bits)).is_ok() {
                fastest.entry(link).and_modify(|most| *most = bits.max(*most));
            }
        }
        Happens::Delay(link, delay) => {
            let link = *link.get(links);
            sim.set_link_delay(link, delay).expect("a delay in range");
            fastest.remove(&link);
        }
        Happens::Hold(link, time) => sim.hold_link(*link.get(links), time),
        Happens::Up(link, up) => sim.set_link_up(*link.get(links), up),
        Happens::PathLost(flow, path) => {
            let flow = *flow.get(ids);
            let paths = sim.connection(flow).paths.len();
            sim.remove_path(flow, path.index(paths));
        }
        Happens::PathComes(flow, way) => {
            let path = topology.path(sim, &way);
            sim.add_path(*flow.get(ids), &path);
        }
    }
}

/// A connection delivers nothing that was not sent, and takes nothing back.
fn goes_on(before: &ConnectionStats, after: &ConnectionStats, mss: u64) {
    assert!(after.delivered_bytes >= before.delivered_bytes, "{before:?} {after:?}");
    let segments: u64 = after.paths.iter().map(|path| path.sent_packets).sum();
    assert!(after.delivered_bytes <= segments * mss, "{after:?}");
    for (before, after) in before.paths.iter().zip(&after.paths) {
        assert!(after.delivered_bytes >= before.delivered_bytes, "{before:?} {after:?}");
        assert!(after.delivered_bytes <= after.sent_packets * mss, "{after:?}");
        assert!(u64::from(after.inflight) <= after.sent_packets, "{after:?}");
        assert!(after.retransmits <= after.sent_packets, "{after:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_comes_from_nowhere_and_all_sums_match(
        topology in any_topology(),
        connections in prop::collection::vec(any_connection(), 1..5),
        udp in prop::collection::vec(any_way(), 0..3),
        steps in prop::collection::vec((1..100 * MS, anything()), 30..60),
        seed in any::<u64>(),
    ) {
        let mut sim = Sim::new(seed);
        topology.build(&mut sim);
        let (ids, flows) = connect(&mut sim, &topology, &connections, &udp);
        let links: Vec<LinkId> = sim.network().links().collect();
        let ends = flows.iter().flat_map(|&flow| [Point::Sender(flow), Point::Receiver(flow)]);
        ends.chain(links.iter().copied().map(Point::Link)).for_each(|point| sim.capture(point));

        let mut ledger = Ledger::default();
        for &link in &links {
            let config = sim.network().config(link);
            let plain = config.jitter == 0 && config.reorder.is_none() && config.wifi.is_none();
            if let (Rate::Constant(bits), true) = (&config.rate, plain) {
                ledger.fastest.insert(link, *bits);
            }
        }
        let stats = |sim: &Sim| ids.iter().map(|&id| sim.connection(id)).collect::<Vec<_>>();
        let mut before = stats(&sim);
        for (step, event) in steps {
            happen(&mut sim, &topology, &ids, &links, &mut ledger.fastest, event);
            let now = sim.now() + step;
            sim.run_until(now);
            assert_eq!(sim.now(), now);
            let captured: Vec<_> = sim.drain_captured().collect();
            captured.iter().for_each(|packet| ledger.enter(packet));
            ledger.balance(&sim);
            let after = stats(&sim);
            before.iter().zip(&after).for_each(|(before, after)| goes_on(before, after, 9000));
            before = after;
        }
        for flow in flows {
            if let FlowId::Udp(id) = flow {
                let counted = sim.udp(id);
                prop_assert!(counted.received_packets <= counted.sent_packets);
            }
        }
    }
}
