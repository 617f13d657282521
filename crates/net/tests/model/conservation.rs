//! No packet is lost without being counted, and none is invented.

use std::sync::Arc;

use narrows_net::{
    CoDel, Delays, Discipline, Distribution, DualPi2, Ecn, FqCoDel, GilbertElliott, Header, Limit,
    LinkConfig, LinkId, Loss, MILLISECOND, Nanos, Network, Pie, Policer, Rate, Red, Reorder,
    RouteId, SECOND, Trace, Variation, Weight, Wifi,
};
use proptest::prelude::*;

use crate::{one_link, sized};

fn any_rate() -> impl Strategy<Value = Rate> {
    let trace = Arc::new(Trace::parse(b"0\n3\n3\n4\n9\n", "test").unwrap());
    prop_oneof![
        Just(Rate::Infinite),
        (100_000_u64..1_000_000_000).prop_map(Rate::Constant),
        Just(Rate::Trace(trace)),
    ]
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1_u32..20).prop_map(Limit::Packets),
        (1_u64..20_000).prop_map(Limit::Bytes),
        (1..20 * MILLISECOND).prop_map(Limit::Time),
    ]
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let bursts = (0.0..=1.0, 0.0..=1.0).prop_map(|(good_to_bad, bad_to_good)| {
        let model = GilbertElliott { good_to_bad, bad_to_good, ..GilbertElliott::default() };
        Loss::GilbertElliott(model)
    });
    prop_oneof![Just(Loss::None), (0.0..=1.0).prop_map(Loss::Random), bursts]
}

/// Parameters small enough to matter within 100 ms.
pub fn any_discipline() -> impl Strategy<Value = Discipline> {
    let codel = (1..MILLISECOND, 1..5 * MILLISECOND)
        .prop_map(|(target, interval)| CoDel { target, interval });
    let red = prop_oneof![
        Just((Limit::Packets(1), Limit::Packets(3))),
        Just((Limit::Bytes(1000), Limit::Bytes(3000))),
        Just((Limit::Time(MILLISECOND), Limit::Time(3 * MILLISECOND))),
    ];
    let weight = prop_oneof![
        (0.01..=1.0).prop_map(Weight::Fixed),
        (1..SECOND).prop_map(Weight::TimeConstant),
    ];
    let red = (red, 0.0..=1.0, weight, any::<bool>())
        .prop_map(|((min, max), max_p, weight, gentle)| Red { min, max, max_p, weight, gentle });
    let pie = (1..MILLISECOND, 1000..MILLISECOND, 0..MILLISECOND)
        .prop_map(|(target, update, burst)| Pie { target, update, burst, ..Pie::default() });
    let fq_codel = (codel.clone(), 1_u32..8, 1_u32..3000)
        .prop_map(|(codel, flows, quantum)| FqCoDel { codel, flows, quantum });
    let times = (MILLISECOND / 2..2 * MILLISECOND, MILLISECOND..10 * MILLISECOND);
    let dual = (times, 0..MILLISECOND, 0..MILLISECOND).prop_map(
        |((target, rtt_max), threshold, range)| DualPi2 {
            target,
            rtt_max,
            threshold,
            range,
            ..DualPi2::default()
        },
    );
    prop_oneof![
        Just(Discipline::DropTail),
        red.prop_map(Discipline::Red),
        codel.prop_map(Discipline::CoDel),
        fq_codel.prop_map(Discipline::FqCoDel),
        pie.prop_map(Discipline::Pie),
        dual.prop_map(Discipline::DualPi2),
    ]
}

fn any_wifi() -> impl Strategy<Value = Wifi> {
    (1_u32..10, 0..5 * MILLISECOND, 0..MILLISECOND, 0..2 * MILLISECOND).prop_map(
        |(packets, time, overhead, contention)| Wifi { packets, time, overhead, contention },
    )
}

/// Any link that can be built.
pub fn any_link() -> impl Strategy<Value = LinkConfig> {
    let delay = 0..10 * MILLISECOND;
    let jitter = prop_oneof![Just(0), 0..5 * MILLISECOND];
    let variation = (
        prop_oneof![
            Just(Distribution::Uniform),
            (0..5 * MILLISECOND, 0..5 * MILLISECOND)
                .prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
            (0..5 * MILLISECOND, 1.01..5.0)
                .prop_map(|(mean, shape)| Distribution::Pareto { mean, shape }),
            (MILLISECOND..50 * MILLISECOND, 0..5 * MILLISECOND).prop_map(|(period, most)| {
                let points = vec![(0, 0), (period / 2, most), (period, 0)];
                Distribution::Recorded(Arc::new(Delays::new(points, "any").unwrap()))
            }),
        ],
        prop_oneof![Just(0.0), 0.0..1.0],
    )
        .prop_map(|(distribution, correlation)| {
            let recorded = matches!(distribution, Distribution::Recorded(_));
            Variation { distribution, correlation: if recorded { 0.0 } else { correlation } }
        });
    let jitter = (jitter, variation);
    let policer = (100_000_u64..100_000_000, 3000_u64..20_000)
        .prop_map(|(rate, burst)| Policer { rate, burst });
    let reorder =
        (0.0..=1.0, 0..10 * MILLISECOND).prop_map(|(share, delay)| Reorder { share, delay });
    let sometimes = 0.2;
    (
        (any_rate(), delay, jitter, any_loss(), any_limit(), 500_u32..3000),
        (
            any_discipline(),
            any::<bool>(),
            prop::option::weighted(sometimes, policer),
            prop::option::weighted(sometimes, reorder),
            prop::option::weighted(sometimes, any_wifi()),
        ),
    )
        .prop_map(
            |(
                (rate, delay, (jitter, variation), loss, limit, mtu),
                (discipline, ecn, policer, reorder, wifi),
            )| {
                let name = "any".into();
                let mut config = LinkConfig {
                    name,
                    rate,
                    delay,
                    jitter,
                    variation,
                    loss,
                    limit,
                    mtu,
                    quantiles: true,
                    discipline,
                    ecn,
                    policer,
                    reorder,
                    wifi,
                };
                // What does not go together is refused; see the tests of the configuration.
                if matches!(config.rate, Rate::Infinite) {
                    config.discipline = Discipline::DropTail;
                }
                if !matches!(config.rate, Rate::Constant(_)) {
                    config.wifi = None;
                }
                if let (Discipline::FqCoDel(_), Limit::Time(_)) = (config.discipline, config.limit)
                {
                    config.limit = Limit::Unlimited;
                }
                config.ecn &= config.discipline != Discipline::DropTail;
                config.ecn |= matches!(config.discipline, Discipline::DualPi2(_));
                config
            },
        )
}

/// Something that happens to a network.
#[derive(Clone, Debug)]
pub enum Act {
    Send(RouteId, Header),
    /// Refused where the link does not work with the rate.
    Rate(LinkId, Rate),
    Delay(LinkId, Nanos),
    Up(LinkId, bool),
    /// For so long from then on.
    Hold(LinkId, Nanos),
    Reset,
}

/// Acts in the order of their times.
pub type Story = Vec<(Nanos, Act)>;

/// A few links, routes over them that may cross a link twice, packets of all sizes, and changes.
pub fn any_story() -> impl Strategy<Value = (Network<usize>, Story)> {
    let links = prop::collection::vec(any_link(), 1..6);
    let index = any::<prop::sample::Index>;
    let routes = prop::collection::vec(prop::collection::vec(index(), 1..5), 1..5);
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect), Just(Ecn::Ce), Just(Ecn::Ect1)];
    let sends =
        prop::collection::vec((0..SECOND / 10, index(), 1_u32..3000, 0_u32..5, ecn), 0..200);
    let change = prop_oneof![
        any_rate().prop_map(|rate| Act::Rate(LinkId(0), rate)),
        (0..10 * MILLISECOND).prop_map(|delay| Act::Delay(LinkId(0), delay)),
        any::<bool>().prop_map(|up| Act::Up(LinkId(0), up)),
        (0..30 * MILLISECOND).prop_map(|time| Act::Hold(LinkId(0), time)),
        Just(Act::Reset),
    ];
    let changes = prop::collection::vec((0..SECOND / 10, index(), change), 0..8);
    (any::<u64>(), links, routes, sends, changes).prop_map(
        |(seed, links, routes, sends, changes)| {
            let mut network = Network::new(seed);
            let count = links.len();
            for link in links {
                network.add_link(link).unwrap();
            }
            for route in &routes {
                let links: Vec<_> = route.iter().map(|i| LinkId(i.index(count) as u32)).collect();
                network.add_route(&links).unwrap();
            }
            let mut story: Story = sends
                .into_iter()
                .map(|(time, route, size, flow, ecn)| {
                    let route = RouteId(route.index(routes.len()) as u32);
                    (time, Act::Send(route, Header { size, flow, ecn }))
                })
                .collect();
            story.extend(changes.into_iter().map(|(time, link, change)| {
                let link = LinkId(link.index(count) as u32);
                let change = match change {
                    Act::Rate(_, rate) => Act::Rate(link, rate),
                    Act::Delay(_, delay) => Act::Delay(link, delay),
                    Act::Up(_, up) => Act::Up(link, up),
                    Act::Hold(_, time) => Act::Hold(link, time),
                    other => other,
                };
                (time, change)
            }));
            story.sort_by_key(|&(time, _)| time);
            (network, story)
        },
    )
}

/// Does what is to be done at `now`; packets carry their number in the story.
pub fn act(network: &mut Network<usize>, now: Nanos, number: usize, act: &Act) {
    match act {
        Act::Send(route, header) => network.enqueue(now, *route, *header, number),
        Act::Rate(link, rate) => {
            let _ = network.set_rate(now, *link, rate.clone());
        }
        Act::Delay(link, delay) => network.set_delay(now, *link, *delay).unwrap(),
        Act::Up(link, up) => network.set_up(now, *link, *up),
        Act::Hold(link, time) => network.hold(now, *link, now + time),
        Act::Reset => network.reset_counters(),
    }
}

proptest! {
    /// Debug builds check conservation on each link at every step besides.
    #[test]
    fn every_packet_is_sent_dropped_or_still_there((mut network, story) in any_story()) {
        network.keep_lost();
        let mut sent = vec![None; story.len()];
        let mut delivered = vec![false; story.len()];
        let mut last = 0;
        for (number, (now, what)) in story.iter().enumerate() {
            while let Some(delivery) = network.advance(*now) {
                prop_assert!(delivery.time >= last && Some(delivery.time) >= sent[delivery.payload]);
                last = delivery.time;
                prop_assert!(!std::mem::replace(&mut delivered[delivery.payload], true));
            }
            if let Act::Send(..) = what {
                sent[number] = Some(*now);
            }
            act(&mut network, *now, number, what);
            prop_assert!(network.is_conserved());
            for link in network.links() {
                let packets = network.queue_packets(link, *now);
                let bytes = network.queue_bytes(link, *now);
                match network.config(link).limit {
                    Limit::Packets(most) => prop_assert!(packets <= most as usize),
                    Limit::Bytes(most) => prop_assert!(bytes <= most),
                    // A change of the rate may have made the wait of those longer who are in.
                    Limit::Time(_) | Limit::Unlimited => {}
                }
            }
        }
        while let Some(delivery) = network.advance(u64::MAX) {
            prop_assert!(delivery.time >= last && sent[delivery.payload].is_some());
            last = delivery.time;
            prop_assert!(!std::mem::replace(&mut delivered[delivery.payload], true));
        }
        prop_assert!(network.is_conserved());
        prop_assert_eq!((network.packets(), network.next_time()), (0, None));
        // What was sent and did not arrive was told to be lost, once.
        let mut lost: Vec<_> = network.drain_lost().collect();
        lost.sort_unstable();
        let missing = (0..story.len()).filter(|&n| sent[n].is_some() && !delivered[n]);
        prop_assert_eq!(lost, missing.collect::<Vec<_>>());
        if !story.iter().any(|(_, act)| matches!(act, Act::Reset)) {
            let dropped: u64 = network.links().map(|l| network.counters(l).dropped()).sum();
            let delivered = delivered.iter().filter(|&&d| d).count() as u64;
            prop_assert_eq!(delivered + dropped, sent.iter().flatten().count() as u64);
        }
    }
}

#[test]
fn the_end_of_a_warm_up_forgets_counts_but_no_packets() {
    let (mut network, route) =
        one_link(LinkConfig { rate: Rate::Constant(12_000_000), ..LinkConfig::default() });
    let link = LinkId(0);
    for _ in 0..3 {
        network.enqueue(0, route, sized(1500), ());
    }
    assert!(network.advance(MILLISECOND).is_some());
    network.reset_counters();
    assert_eq!(network.counters(link), &Default::default());
    assert_eq!(network.packets_on(link), 2);
    network.enqueue(MILLISECOND, route, sized(1500), ());
    while network.advance(SECOND).is_some() {}
    let counters = network.counters(link);
    // The two that were underway and the new one, which waited 2 ms behind them.
    assert_eq!((counters.arrived, counters.sent, counters.bytes_sent), (1, 3, 4500));
    assert_eq!(counters.queue_delay.max(), 2 * MILLISECOND);
    assert!(network.is_conserved());
}

#[test]
fn a_packet_larger_than_the_mtu_of_a_later_link_is_dropped_there() {
    let mut network = Network::new(1);
    let wide = network.add_link(LinkConfig { mtu: 9000, ..LinkConfig::default() }).unwrap();
    let narrow = network.add_link(LinkConfig { mtu: 1400, ..LinkConfig::default() }).unwrap();
    let route = network.add_route(&[wide, narrow]).unwrap();
    assert_eq!(network.route_mtu(route), 1400);
    network.enqueue(0, route, sized(1400), "fits");
    network.enqueue(0, route, sized(1401), "does not");
    assert_eq!(network.advance(0).map(|d| d.payload), Some("fits"));
    assert_eq!(network.advance(SECOND), None);
    assert_eq!((network.counters(wide).sent, network.counters(wide).dropped_mtu), (2, 0));
    assert_eq!((network.counters(narrow).sent, network.counters(narrow).dropped_mtu), (1, 1));
}

/// What is delivered, and what each of the first links has counted; `idle` links more that carry nothing are
/// added before a place in the story.
fn told(mut network: Network<usize>, story: &Story, idle: usize, at: usize) -> String {
    let links: Vec<_> = network.links().collect();
    let mut deliveries = Vec::new();
    for (number, (now, what)) in story.iter().enumerate() {
        if number == at {
            (0..idle).for_each(|_| _ = network.add_link(LinkConfig::default()).unwrap());
        }
        deliveries.extend(std::iter::from_fn(|| network.advance(*now)));
        act(&mut network, *now, number, what);
    }
    deliveries.extend(std::iter::from_fn(|| network.advance(Nanos::MAX)));
    let counters: Vec<_> = links.iter().map(|&link| network.counters(link)).collect();
    format!("{deliveries:?} {counters:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arrivals of few links are kept otherwise than those of many, and of very many one prepares for the next.
    #[test]
    fn links_that_carry_nothing_change_nothing((network, story) in any_story()) {
        let alone = told(network.clone(), &story, 0, 0);
        for (idle, at) in [(100, 0), (600, 0), (100, story.len() / 2), (600, story.len() / 2)] {
            prop_assert_eq!(&told(network.clone(), &story, idle, at), &alone);
        }
    }
}
