//! RED, CoDel, FQ-CoDel and PIE against what their sources promise.

use narrows_net::rng::{stream, uniform_f64};
use narrows_net::{
    CoDel, Delivery, Discipline, DualPi2, Ecn, FqCoDel, Header, Limit, LinkConfig, LinkId,
    MILLISECOND, Nanos, Network, Pie, Rate, Red, RouteId, SECOND, Weight,
};

use crate::{one_link, run, sized};

const LINK: LinkId = LinkId(0);

/// A link on which 1500 bytes take a millisecond.
fn link(discipline: Discipline) -> LinkConfig {
    LinkConfig { rate: Rate::Constant(12_000_000), discipline, ..LinkConfig::default() }
}

fn assert_within(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} instead of {expected}");
}

/// RED keeps what the queue's limit makes of a 100-fold overload: `packets`, almost always.
struct Full {
    network: Network<()>,
    route: RouteId,
    now: Nanos,
}

impl Full {
    fn new(red: Red, packets: u32) -> Full {
        let limit = Limit::Packets(packets);
        let (network, route) = one_link(LinkConfig { limit, ..link(Discipline::Red(red)) });
        let mut full = Full { network, route, now: 0 };
        // 10 time constants of the average.
        (0..5000).for_each(|_| _ = full.is_signalled(1500));
        full
    }

    /// Whether RED drops the next packet. What the limit drops, RED has let through.
    fn is_signalled(&mut self, size: u32) -> bool {
        self.now += MILLISECOND / 100;
        while self.network.advance(self.now).is_some() {}
        let before = self.network.counters(LINK).dropped_aqm;
        self.network.enqueue(self.now, self.route, sized(size), ());
        self.network.counters(LINK).dropped_aqm > before
    }
}

/// Between 5 and 15 packets p rises to 0.1: at 10 it is 0.05, and the gaps between drops are
/// uniform in 1..=20 (section 8 of the paper). So they are 10.5 in the mean.
#[test]
fn red_drops_evenly_by_its_average() {
    let mut full = Full::new(Red::default(), 10);
    let mut gaps = [0_u32; 21];
    let (mut gap, mut drops) = (0, 0);
    while drops < 20_000 {
        gap += 1;
        if full.is_signalled(1500) {
            drops += 1;
            // An average slightly below 10 makes a gap of 21 possible.
            gaps[gap.min(21) - 1] += 1;
            gap = 0;
        }
    }
    // Each is binomial with mean 1000 and deviation 31.
    for (number, &count) in gaps[..20].iter().enumerate() {
        assert!(count.abs_diff(1000) < 150, "{count} gaps of {}", number + 1);
    }
    assert!(gaps[20] < 100, "{}", gaps[20]);
}

/// Share of packets of 1500 bytes that RED drops at a full queue.
fn share(red: Red, packets: u32) -> f64 {
    let mut full = Full::new(red, packets);
    (0..100_000).filter(|_| full.is_signalled(1500)).count() as f64 / 100_000.0
}

/// At 20 of 15 packets a gentle RED has p = 0.1 + 0.9 * 5 / 15 = 0.4: gaps of 1, 2 and 3 with 0.4,
/// 0.4 and 0.2. At 30, or at 15 if it is not gentle, no packet passes.
#[test]
fn a_gentle_red_goes_on_above_its_maximum() {
    assert_within(share(Red::default(), 20), 1.0 / 1.8, 0.02);
    for (gentle, most) in [(false, 15), (true, 30)] {
        // The average is the queue.
        let red = Red { gentle, weight: Weight::Fixed(1.0), ..Red::default() };
        let mut full = Full::new(red, 1000);
        let longest = (0..100_000).map(|_| {
            full.is_signalled(1500);
            full.network.queue_packets(LINK, full.now)
        });
        let longest = longest.max().unwrap();
        assert!((most - 5..=most).contains(&longest), "{longest}");
    }
}

/// In bytes a packet of half the MTU is dropped half as often; thresholds are in bytes.
#[test]
fn red_in_bytes_drops_by_size() {
    let (min, max) = (Limit::Bytes(5 * 1500), Limit::Bytes(15 * 1500));
    let red = Red { min, max, max_p: 0.02, ..Red::default() };
    let (large, small) = (share(red, 10), {
        let mut full = Full::new(red, 10);
        let mut rng = stream(1, 0);
        // Mostly full packets, so that the average stays.
        let mut counts = [0_u32; 2];
        for _ in 0..1_000_000 {
            let small = uniform_f64(&mut rng) < 0.02;
            if full.is_signalled(if small { 750 } else { 1500 }) && small {
                counts[0] += 1;
            }
            counts[1] += u32::from(small);
        }
        f64::from(counts[0]) / f64::from(counts[1])
    });
    // p = 0.01, uniformised: 2 p / (1 + p).
    assert_within(large, 0.02 / 1.01, 0.05);
    assert_within(small / large, 0.5, 0.15);
}

/// Thresholds in time: a packet that would wait for the maximum is dropped, at any rate. The packet
/// in transmission counts, as one waits for it too.
#[test]
fn red_in_time_drops_by_the_wait() {
    let (min, max) = (Limit::Time(MILLISECOND), Limit::Time(10 * MILLISECOND));
    let weight = Weight::Fixed(1.0);
    let red = Red { min, max, max_p: 0.0, weight, gentle: false };
    for (rate, packet) in [(12_000_000, MILLISECOND), (6_000_000, 2 * MILLISECOND)] {
        let rate = Rate::Constant(rate);
        let (mut network, route) = one_link(LinkConfig { rate, ..link(Discipline::Red(red)) });
        (0..100).for_each(|_| network.enqueue(0, route, sized(1500), ()));
        assert_eq!(network.queue_delay(LINK, 0), 10 * MILLISECOND);
        assert_eq!(network.counters(LINK).dropped_aqm, 100 - 10 * MILLISECOND / packet);
    }
}

/// The queue of a 100-fold overload drains; then a packet comes that finds the link idle for m
/// packet times. The average has fallen by (1 - w)^m, and by the new sample.
#[test]
fn red_forgets_while_the_link_is_idle() {
    let red = Red {
        min: Limit::Packets(5),
        max: Limit::Packets(6),
        weight: Weight::Fixed(0.1),
        gentle: false,
        ..Red::default()
    };
    for (average, dropped) in [(7.3, true), (4.7, false)] {
        let (mut network, route) = one_link(link(Discipline::Red(red)));
        (0..1000).for_each(|_| network.enqueue(0, route, sized(1500), ()));
        let queue = network.queue_packets(LINK, 0) as f64;
        assert!(queue > 8.0, "{queue}");
        let idle = libm::log(average / queue) / libm::log(0.9) - 1.0;
        let now = ((queue + 1.0 + idle) * MILLISECOND as f64) as Nanos;
        while network.advance(now).is_some() {}
        let before = network.counters(LINK).dropped_aqm;
        network.enqueue(now, route, sized(1500), ());
        assert_eq!(network.counters(LINK).dropped_aqm > before, dropped, "at {average}");
        // The same idle time does not count twice: now the average is 0.9 times as much.
        network.enqueue(now, route, sized(1500), ());
        assert_eq!(network.counters(LINK).dropped_aqm > before + 1, dropped, "at {average}");
    }
}

/// A link that is busy with what it sends at its former rate is not idle, however fast it is now.
#[test]
fn red_does_not_forget_in_a_transmission_that_a_new_rate_outlives() {
    let red = Red {
        min: Limit::Packets(3),
        max: Limit::Packets(4),
        weight: Weight::Fixed(0.1),
        gentle: false,
        ..Red::default()
    };
    let (mut network, route) = one_link(link(Discipline::Red(red)));
    (0..1000).for_each(|_| network.enqueue(0, route, sized(1500), ()));
    let queue = network.queue_packets(LINK, 0);
    assert!(queue > 5, "{queue}");
    // One packet is in transmission for a millisecond; the others are gone.
    network.set_up(0, LINK, false);
    network.set_up(0, LINK, true);
    network.set_rate(0, LINK, Rate::Constant(12_000_000_000)).unwrap();
    let before = network.counters(LINK).dropped_aqm;
    network.enqueue(MILLISECOND - 1, route, sized(1500), ());
    assert_eq!(network.counters(LINK).dropped_aqm, before + 1);
}

/// Time constant 100 ms at 1000 packets/s: w = 1 - exp(-1/100). After 100 packets the average of a
/// queue that stays at 10 is 6.3.
#[test]
fn red_s_weight_follows_from_a_time_constant() {
    let red = |max| Red {
        min: Limit::Packets(max - 1),
        max: Limit::Packets(max),
        max_p: 0.0,
        weight: Weight::TimeConstant(100 * MILLISECOND),
        gentle: false,
    };
    for (max, dropped) in [(6, true), (7, false)] {
        let config = LinkConfig { limit: Limit::Packets(10), ..link(Discipline::Red(red(max))) };
        let (mut network, route) = one_link(config);
        // The first finds nobody waiting; 11 more fill the queue.
        (0..112).for_each(|_| network.enqueue(0, route, sized(1500), ()));
        assert_eq!(network.counters(LINK).dropped_aqm > 0, dropped, "{max}");
    }
}

/// Pollaczek-Khinchine for M/D/1 at load 0.8: W = 0.8 S / (2 (1 - 0.8)) = 2 S. Nothing is dropped,
/// so the managed queue is the plain one.
#[test]
fn a_discipline_that_drops_nothing_keeps_m_d_1() {
    let red = Red { min: Limit::Packets(1000), max: Limit::Packets(3000), ..Red::default() };
    let codel = CoDel { target: SECOND, ..CoDel::default() };
    let fair = FqCoDel { codel, ..FqCoDel::default() };
    for discipline in [Discipline::Red(red), Discipline::CoDel(codel), Discipline::FqCoDel(fair)] {
        let (mut network, route) = one_link(link(discipline));
        let mut rng = stream(3, 0);
        let mut now = 0.0;
        let sends: Vec<_> = (0..300_000)
            .map(|_| {
                now += -libm::log(1.0 - uniform_f64(&mut rng)) * MILLISECOND as f64 / 0.8;
                (now as Nanos, route, 1500)
            })
            .collect();
        run(&mut network, &sends);
        let counters = network.counters(LINK);
        assert_eq!(counters.dropped(), 0);
        assert_within(counters.queue_delay.mean() as f64, 2.0 * MILLISECOND as f64, 0.03);
    }
}

/// Twice what the link can carry, deaf to drops, for 5 s. Returns the times of CoDel's drops or
/// marks, of which the link tells at the arrivals.
fn deaf(ecn: Ecn) -> (Network<usize>, Vec<Nanos>) {
    let config = LinkConfig { ecn: true, ..link(Discipline::CoDel(CoDel::default())) };
    let (mut network, route) = one_link(config);
    let mut times = Vec::new();
    for number in 0..10_000 {
        let now = number as Nanos * MILLISECOND / 2;
        while let Some(next) = network.next_time().filter(|&next| next <= now) {
            network.advance(next);
            let counters = network.counters(LINK);
            let signals = (counters.dropped_aqm + counters.marked) as usize;
            times.resize(signals, next);
        }
        network.enqueue(now, route, Header { ecn, ..sized(1500) }, number);
    }
    (network, times)
}

/// The n-th drop follows after interval / sqrt(n): the law of RFC 8289, section 5.6, to one
/// packet time.
#[test]
fn codel_drops_at_its_square_roots() {
    let (network, times) = deaf(Ecn::NotEct);
    // The queue passes 5 ms when 10 packets have come; an interval later is the first drop.
    assert!(times[0].abs_diff(110 * MILLISECOND) <= 3 * MILLISECOND, "{}", times[0]);
    let mut due = times[0] as f64;
    for (n, &time) in (1..).zip(&times[1..]) {
        due += 100e6 / f64::from(n).sqrt();
        let late = time as f64 - due;
        assert!((-1.0..=1.1e6).contains(&late), "drop {n} is late by {late} ns");
    }
    // Sum of 1 / sqrt(n): in t there are about (t / 2 interval)^2 drops.
    assert_within(times.len() as f64, (4.9 / 0.2) * (4.9 / 0.2), 0.1);
    assert_eq!(network.counters(LINK).marked, 0);
}

/// With ECN the same number is marked, and nothing dropped.
#[test]
fn codel_marks_where_it_would_drop() {
    let (mut network, marks) = deaf(Ecn::Ect);
    let drops = deaf(Ecn::NotEct).1;
    assert_eq!(marks[0], drops[0]);
    assert_within(marks.len() as f64, drops.len() as f64, 0.05);
    assert_eq!(network.counters(LINK).dropped(), 0);
    // Also a packet that is marked already is ECN-capable.
    assert_eq!(deaf(Ecn::Ce).0.counters(LINK).dropped(), 0);
    // The deliveries carry the marks.
    let rest: Vec<Delivery<usize>> = std::iter::from_fn(|| network.advance(Nanos::MAX)).collect();
    let marked = network.counters(LINK).marked as usize - marks.len();
    assert!(marked > 0);
    assert!(rest.iter().filter(|d| d.ce).count().abs_diff(marked) <= 1);
}

/// At 1 Mbit/s a packet takes 12 ms: one that waits behind another is above target always, but an
/// MTU is no standing queue.
#[test]
fn codel_spares_a_queue_of_one_packet() {
    let rate = Rate::Constant(1_000_000);
    let (mut network, route) =
        one_link(LinkConfig { rate, ..link(Discipline::CoDel(CoDel::default())) });
    network.enqueue(0, route, sized(1500), ());
    for number in 0..1000 {
        let now = number * 12 * MILLISECOND;
        while network.advance(now).is_some() {}
        network.enqueue(now, route, sized(1500), ());
    }
    assert!(network.counters(LINK).queue_delay.mean() > 11 * MILLISECOND);
    assert_eq!(network.counters(LINK).dropped(), 0);
}

/// Flows (bit/s, packet size) meet at a link of 12 Mbit/s with 300 packets of room for 10 s: what
/// each gets in bit/s, and the longest delay of each.
fn meet(discipline: Discipline, flows: &[(u64, u32)]) -> Vec<(f64, Nanos)> {
    let (mut network, route) =
        one_link(LinkConfig { limit: Limit::Packets(300), ..link(discipline) });
    let mut sends: Vec<(Nanos, usize)> = Vec::new();
    for (flow, &(rate, size)) in flows.iter().enumerate() {
        let gap = u64::from(size) * 8 * SECOND / rate;
        sends.extend((0..10 * SECOND / gap).map(|n| (n * gap, flow)));
    }
    sends.sort_unstable();
    let mut got = vec![(0, 0); flows.len()];
    let mut arrive = |delivery: Delivery<(usize, Nanos)>| {
        let (flow, sent) = delivery.payload;
        got[flow].0 += delivery.size;
        got[flow].1 = got[flow].1.max(delivery.time - sent);
    };
    for (now, flow) in sends {
        std::iter::from_fn(|| network.advance(now)).for_each(&mut arrive);
        let header = Header { flow: flow as u32, ..sized(flows[flow].1) };
        network.enqueue(now, route, header, (flow, now));
    }
    got.iter().map(|&(bytes, delay)| (f64::from(bytes) * 0.8, delay)).collect()
}

/// Deaf flows of any rate and packet size get the same; a flow below its share gets all it wants
/// and hardly waits.
#[test]
fn fq_codel_shares_equally_and_lets_the_sparse_pass() {
    let flows = [(20_000_000, 1500), (60_000_000, 500), (2_000_000, 1000), (50_000, 200)];
    let fair = meet(Discipline::FqCoDel(FqCoDel::default()), &flows);
    // What the two small flows leave.
    let share = (12e6 - 2e6 - 0.05e6) / 2.0;
    for (got, expected) in fair.iter().zip([share, share, 2e6, 0.05e6]) {
        assert_within(got.0, expected, 0.01);
    }
    // At worst, at the start, all are new: a quantum and a packet of each other flow.
    assert!(fair[3].1 < 5 * MILLISECOND, "{}", fair[3].1);
}

/// A full queue takes from the fattest flow, also when another's packet is one too many: half of
/// its bytes from the head, but not more than 64 packets (RFC 8290, section 4.1).
#[test]
fn fq_codel_drops_half_of_the_fattest() {
    for (limit, dropped) in [(10, 5), (11, 6), (1000, 64)] {
        let config = link(Discipline::FqCoDel(FqCoDel::default()));
        let (mut network, route) = one_link(LinkConfig { limit: Limit::Packets(limit), ..config });
        let limit = limit as usize;
        // Number 0 is in transmission, the others fill the queue.
        for number in 0..=limit {
            network.enqueue(0, route, Header { flow: 1, ..sized(1500) }, number);
        }
        assert_eq!(network.counters(LINK).dropped_queue, 0);
        network.enqueue(0, route, Header { flow: 2, ..sized(100) }, limit + 1);
        assert_eq!(network.queue_packets(LINK, 0), limit + 1 - dropped);
        assert_eq!(network.counters(LINK).dropped_queue, dropped as u64);
        let arrived: Vec<_> =
            std::iter::from_fn(|| network.advance(Nanos::MAX)).map(|d| d.payload).collect();
        // The head of flow 1 had its turn for what its quantum lacked; then the new flow comes.
        let head = dropped + 1;
        assert_eq!(arrived[..4], [0, head, limit + 1, head + 1]);
    }
}

/// Poisson packets at 1.2 times the rate, deaf, for a minute: the share to be dropped is 1/6.
fn pie_under_load(ecn: Ecn) -> Network<usize> {
    under_load(Discipline::Pie(Pie::default()), 1.2, ecn)
}

/// The same under any discipline, at so many times the rate.
fn under_load(discipline: Discipline, load: f64, ecn: Ecn) -> Network<usize> {
    let config = LinkConfig { ecn: true, ..link(discipline) };
    let (mut network, route) = one_link(config);
    let mut rng = stream(5, 0);
    let mut now = 0.0;
    let mut warm = false;
    while now < 60e9 {
        now += -libm::log(1.0 - uniform_f64(&mut rng)) * MILLISECOND as f64 / load;
        while network.advance(now as Nanos).is_some() {}
        network.enqueue(now as Nanos, route, Header { ecn, ..sized(1500) }, 0);
        if !warm && now > 20e9 {
            network.reset_counters();
            warm = true;
        }
    }
    network
}

#[test]
fn pie_holds_its_delay_under_load() {
    let network = pie_under_load(Ecn::NotEct);
    let counters = network.counters(LINK);
    assert_within(counters.queue_delay.mean() as f64, 15e6, 0.1);
    assert_within(counters.dropped_aqm as f64 / counters.arrived as f64, 1.0 / 6.0, 0.03);
    assert_eq!((counters.marked, counters.dropped_queue), (0, 0));
}

/// Marks that nobody heeds make p rise above 0.1; there it drops (RFC 8033, section 5.1).
#[test]
fn pie_marks_only_while_it_drops_little() {
    let network = pie_under_load(Ecn::Ect);
    let counters = network.counters(LINK);
    assert_within(counters.queue_delay.mean() as f64, 15e6, 0.1);
    assert_within(counters.dropped_aqm as f64 / counters.arrived as f64, 1.0 / 6.0, 0.03);
}

/// What does not heed signals is dropped down to the rate, in either queue, and waits for about the target
/// (RFC 9332, section 4.2.3 and appendix A.2).
#[test]
fn dualpi2_drops_what_overloads_it_also_if_it_asks_for_marks() {
    for ecn in [Ecn::NotEct, Ecn::Ect, Ecn::Ect1, Ecn::Ce] {
        let network = under_load(Discipline::DualPi2(DualPi2::default()), 1.5, ecn);
        let counters = network.counters(LINK);
        assert_within(counters.queue_delay.mean() as f64, 15e6, 0.15);
        assert_within(counters.dropped_aqm as f64 / counters.arrived as f64, 1.0 / 3.0, 0.03);
        assert_eq!(counters.dropped_queue, 0, "{ecn:?}");
    }
}

/// A classic flow that fills the link, and sparse packets of a scalable one: these pass.
#[test]
fn dualpi2_keeps_what_is_sparse_in_the_l_queue_from_waiting() {
    let config = LinkConfig { ecn: true, ..link(Discipline::DualPi2(DualPi2::default())) };
    let (mut network, route) = one_link(config);
    let mut longest = 0;
    for number in 0..10_000_u64 {
        let now = number * MILLISECOND;
        for delivery in std::iter::from_fn(|| network.advance(now)) {
            let (ecn, sent) = delivery.payload;
            if ecn == Ecn::Ect1 {
                longest = longest.max(delivery.time - sent);
            }
        }
        network.enqueue(now, route, sized(1500), (Ecn::NotEct, now));
        if number % 20 == 0 {
            let header = Header { ecn: Ecn::Ect1, ..sized(1500) };
            network.enqueue(now, route, header, (Ecn::Ect1, now));
        }
    }
    // Its own transmission, what is left of another, and a turn of the C queue.
    assert!(longest <= 3 * MILLISECOND, "{longest}");
    assert!(network.counters(LINK).queue_delay.max() > 10 * MILLISECOND);
}

/// A burst of 100 ms at twice the rate builds a queue of 50 ms and loses nothing; one of 500 ms
/// does, but not in its first 150 ms.
#[test]
fn pie_allows_a_burst() {
    for (length, lossy) in [(100, false), (500, true)] {
        let (mut network, route) = one_link(link(Discipline::Pie(Pie::default())));
        let mut first_drop = None;
        // After a second of rest.
        for number in 0..2 * length {
            let now = SECOND + number * MILLISECOND / 2;
            while network.advance(now).is_some() {}
            network.enqueue(now, route, sized(1500), ());
            if network.counters(LINK).dropped_aqm > 0 {
                first_drop = first_drop.or(Some(now - SECOND));
            }
        }
        assert_eq!(first_drop.is_some(), lossy);
        assert!(first_drop.is_none_or(|time| time >= 135 * MILLISECOND), "{first_drop:?}");
    }
}

/// RED and PIE drop packets that cannot be marked, and mark the others.
#[test]
fn marks_are_for_who_understands_them() {
    for discipline in [
        Discipline::Red(Red { max_p: 1.0, weight: Weight::Fixed(1.0), ..Red::default() }),
        Discipline::CoDel(CoDel::default()),
        // Soon drops are due faster than packets come: but a packet is marked only once.
        Discipline::CoDel(CoDel { target: 100_000, interval: 200_000 }),
        Discipline::FqCoDel(FqCoDel::default()),
        Discipline::Pie(Pie::default()),
    ] {
        let (mut network, route) = one_link(LinkConfig { ecn: true, ..link(discipline) });
        let mut rng = stream(6, 0);
        let mut delivered: Vec<Delivery<Ecn>> = Vec::new();
        for number in 0..3000 {
            let now = number * MILLISECOND * 9 / 10;
            delivered.extend(std::iter::from_fn(|| network.advance(now)));
            let ecn = if uniform_f64(&mut rng) < 0.5 { Ecn::Ect } else { Ecn::NotEct };
            network.enqueue(now, route, Header { ecn, ..sized(1500) }, ecn);
        }
        delivered.extend(std::iter::from_fn(|| network.advance(Nanos::MAX)));
        let counters = network.counters(LINK);
        assert!(counters.marked > 0 && counters.dropped_aqm > 0, "{discipline:?} {counters:?}");
        let marked = delivered.iter().filter(|d| d.ce).count() as u64;
        assert_eq!(marked, counters.marked);
        assert!(delivered.iter().all(|d| !d.ce || d.payload == Ecn::Ect));
    }
}
