//! Media under NADA (RFC 8698) and SCReAM (RFC 8298), in test cases of RFC 8867: a tail-drop queue of 300 ms, 50 ms
//! one way.

use narrows_net::{CoDel, Discipline, Limit, LinkConfig, LinkId, Nanos, Rate, RouteId};
use narrows_sim::{ConnectionConfig, Sim, UdpConfig};
use narrows_traffic::{MediaControl, Source, UdpId};

use crate::common::{self, MBIT, MS, S, add, control, greedy, link, path, route};

const MEDIA: Source = source(MediaControl::Nada, 1_500_000, false);

const fn source(control: MediaControl, max_bps: u64, ecn: bool) -> Source {
    Source::Media { control, min_bps: 150_000, max_bps, bytes: 1000, ecn }
}

/// SCReAM, whose encoder could fill the links here.
fn scream() -> Source {
    source(MediaControl::Scream, 5_000_000, false)
}

/// A bottleneck and a way back.
struct Net {
    sim: Sim,
    bottleneck: LinkId,
    back: LinkId,
}

impl Net {
    fn new(mbit: f64) -> Net {
        Net::with(mbit, |config| config)
    }

    fn with(mbit: f64, change: fn(LinkConfig) -> LinkConfig) -> Net {
        let mut sim = Sim::new(1);
        let config = link("bottleneck", constant(mbit), 50 * MS);
        let queue = (mbit * 1e6 * 0.3 / 8.0) as u64;
        let config = change(LinkConfig { limit: Limit::Bytes(queue), ..config });
        let bottleneck = add(&mut sim, config);
        let back = add(&mut sim, link("back", Rate::Constant(1000 * MBIT), 50 * MS));
        Net { sim, bottleneck, back }
    }

    fn media(&mut self, source: Source, start: Nanos) -> UdpId {
        let forward = route(&mut self.sim, &[self.bottleneck]);
        self.media_over(forward, source, vec![(start, Nanos::MAX)])
    }

    fn media_over(&mut self, route: RouteId, source: Source, active: Vec<(Nanos, Nanos)>) -> UdpId {
        let back = Some(common::route(&mut self.sim, &[self.back]));
        self.sim.add_udp(UdpConfig { name: "media".into(), route, back, source, active })
    }

    /// Mbit/s of media that arrived in the next seconds; the link's counters cover the same time.
    fn mbit(&mut self, flows: &[UdpId], seconds: u64) -> Vec<f64> {
        self.sim.reset_link_counters();
        let bytes = |sim: &Sim| flows.iter().map(|&id| sim.udp(id).received_bytes).collect();
        let before: Vec<u64> = bytes(&self.sim);
        self.sim.run_until(self.sim.now() + seconds * S);
        let after: Vec<u64> = bytes(&self.sim);
        let rate = |(after, before): (&u64, u64)| (after - before) as f64 * 8e-6 / seconds as f64;
        after.iter().zip(before).map(rate).collect()
    }

    /// Mean queueing delay, ms.
    fn queue_ms(&self) -> f64 {
        self.sim.network().counters(self.bottleneck).queue_delay.mean() as f64 / 1e6
    }

    fn rate(&mut self, mbit: f64) {
        self.sim.set_link_rate(self.bottleneck, constant(mbit)).expect("a valid rate");
    }
}

fn constant(mbit: f64) -> Rate {
    Rate::Constant((mbit * 1e6) as u64)
}

/// At the equilibrium the delay is XREF RMAX / r (section 4.3): 15 ms on 1 Mbit/s. On a faster link than RMAX
/// there is no queue.
#[test]
fn alone_it_fills_the_link_with_the_delay_of_the_equilibrium() {
    let mut net = Net::new(1.0);
    let media = net.media(MEDIA, 0);
    net.mbit(&[media], 20);
    let rate = net.mbit(&[media], 40)[0];
    assert!(rate > 0.95, "{rate} of 1 Mbit/s");
    let queue = net.queue_ms();
    assert!((12.0..20.0).contains(&queue), "{queue} ms");
    assert_eq!(net.sim.network().counters(net.bottleneck).dropped(), 0);

    has_no_queue_on_a_faster_link(MEDIA);
}

/// Media of 1.5 Mbit/s at most, on twice that.
fn has_no_queue_on_a_faster_link(source: Source) {
    let mut net = Net::new(3.0);
    let media = net.media(source, 0);
    net.mbit(&[media], 20);
    let rate = net.mbit(&[media], 20)[0];
    assert!((rate / 1.5 - 1.0).abs() < 0.01, "{rate} of 1.5 Mbit/s");
    assert!(net.queue_ms() < 1.0, "{} ms", net.queue_ms());
    let stats = net.sim.udp(media).media.expect("it has feedback");
    // One packet of 1000 B takes 2.7 ms, one of feedback next to nothing.
    assert!((100 * MS..104 * MS).contains(&stats.rtt), "{} ns", stats.rtt);
    assert_eq!(stats.rate_bps, 1_500_000);
}

/// The receiver reports every 100 ms in packets of 56 bytes.
#[test]
fn feedback_costs_its_bytes_on_the_way_back() {
    let mut net = Net::new(3.0);
    let media = net.media(MEDIA, 0);
    net.mbit(&[media], 10);
    net.mbit(&[media], 10);
    let back = net.sim.network().counters(net.back);
    assert_eq!(back.bytes_sent, 100 * 56);
}

/// RFC 8867, section 5.1: 1 Mbit/s, from 40 s on 2.5, from 60 s 0.6, from 80 s 1. The rate falls within
/// seconds, and gradual updates take it back up within 15.
#[test]
fn the_rate_follows_the_capacity() {
    let mut net = Net::new(1.0);
    let media = [net.media(MEDIA, 0)];
    net.mbit(&media, 40);
    net.rate(2.5);
    net.mbit(&media, 10);
    let up = net.mbit(&media, 10)[0];
    assert!(up > 1.45, "{up} of RMAX, 1.5 Mbit/s");
    net.rate(0.6);
    net.mbit(&media, 3);
    net.mbit(&media, 12);
    assert!(net.queue_ms() < 30.0, "{} ms", net.queue_ms());
    let down = net.mbit(&media, 5)[0];
    assert!(down > 0.54, "{down} of 0.6 Mbit/s");
    net.rate(1.0);
    net.mbit(&media, 15);
    let back = net.mbit(&media, 5)[0];
    assert!(back > 0.9, "{back} of 1 Mbit/s");
}

/// RFC 8867, section 5.4: equal shares.
#[test]
fn flows_share_fairly() {
    let mut net = Net::new(2.0);
    let media = [net.media(MEDIA, 0), net.media(MEDIA, 10 * MS)];
    net.mbit(&media, 30);
    let rates = net.mbit(&media, 60);
    let (sum, ratio) = (rates[0] + rates[1], rates[0] / rates[1]);
    assert!(sum > 1.9 && (0.8..1.25).contains(&ratio), "{rates:?}");
}

/// RFC 8867, section 5.6: media from 5 s on, beside a TCP that fills the queue of 2 Mbit/s. It loses packets as
/// TCP does, so it discounts the delay, has twice its least rate, and leaves TCP more.
#[test]
fn beside_tcp_it_does_not_starve() {
    for law in ["reno", "cubic"] {
        for seed in 1..=3 {
            let [media, tcp, queue] = beside_tcp(MEDIA, law, Limit::Packets(50), seed);
            assert!(media > 0.3 && tcp > media, "{law}: {media} beside {tcp} Mbit/s");
            assert!(queue > 100.0, "{law} fills the queue: {queue} ms");
        }
    }
}

/// In a queue that counts bytes there is room for packets of 1000 B where TCP's are dropped: without losses it
/// yields to the delay.
#[test]
fn without_losses_delay_alone_takes_its_rate() {
    let [media, ..] = beside_tcp(MEDIA, "reno", Limit::Bytes(75_000), 1);
    assert!(media < 0.2, "{media} of 0.15 Mbit/s at least");
}

/// Mbit/s of media and of a TCP, and the mean queueing delay, ms, for 200 s. Senders have the jitter of scenarios.
fn beside_tcp(source: Source, law: &str, limit: Limit, seed: u64) -> [f64; 3] {
    let config = link("bottleneck", constant(2.0), 50 * MS);
    beside_tcp_on(LinkConfig { limit, ..config }, source, law, seed)
}

fn beside_tcp_on(bottleneck: LinkConfig, source: Source, law: &str, seed: u64) -> [f64; 3] {
    let mut sim = Sim::new(seed);
    let bottleneck = add(&mut sim, bottleneck);
    let back = add(&mut sim, link("back", Rate::Constant(1000 * MBIT), 50 * MS));
    let mut net = Net { sim, bottleneck, back };
    let access = ["media", "tcp"].map(|name| {
        let access = link(name, Rate::Constant(1000 * MBIT), 0);
        add(&mut net.sim, LinkConfig { jitter: 18 * MS / 10, ..access })
    });
    let path = path(&mut net.sim, &[access[1], bottleneck], &[back]);
    let tcp = ConnectionConfig { control: control(law), ..greedy(vec![path]) };
    let tcp = net.sim.add_connection(tcp);
    let forward = route(&mut net.sim, &[access[0], bottleneck]);
    let media = [net.media_over(forward, source, vec![(5 * S, Nanos::MAX)])];
    net.mbit(&media, 60);
    let before = net.sim.connection(tcp).delivered_bytes;
    let rate = net.mbit(&media, 200)[0];
    let bytes = net.sim.connection(tcp).delivered_bytes - before;
    [rate, bytes as f64 * 8e-6 / 200.0, net.queue_ms()]
}

/// Where the queue marks, ECN-capable media loses nothing, and marks hold its rate.
#[test]
fn marks_do_as_losses_do() {
    let run = |ecn: bool| {
        let mut net = Net::with(1.0, |config| LinkConfig {
            discipline: Discipline::CoDel(CoDel { target: MS, ..CoDel::default() }),
            ecn: true,
            ..config
        });
        let media = net.media(source(MediaControl::Nada, 1_500_000, ecn), 0);
        net.mbit(&[media], 20);
        let rate = net.mbit(&[media], 40)[0];
        let counters = net.sim.network().counters(net.bottleneck);
        (rate, counters.marked, counters.dropped())
    };
    let (rate, marked, dropped) = run(true);
    assert!(rate > 0.5 && marked > 0 && dropped == 0, "{rate} Mbit/s, {marked}, {dropped}");
    let (rate, marked, dropped) = run(false);
    assert!(rate > 0.5 && marked == 0 && dropped > 0, "{rate} Mbit/s, {marked}, {dropped}");
}

/// Sent again after a silence it goes on at the rate that it had.
#[test]
fn a_silence_changes_nothing() {
    let mut net = Net::new(3.0);
    let forward = route(&mut net.sim, &[net.bottleneck]);
    let media = [net.media_over(forward, MEDIA, vec![(0, 20 * S), (40 * S, 60 * S)])];
    net.mbit(&media, 21);
    assert_eq!(net.mbit(&media, 19)[0], 0.0);
    assert!(net.mbit(&media, 20)[0] > 1.45);
    assert!(net.mbit(&media, 20)[0] < 0.01);
}

/// SCReAM keeps the queue at its target, which starts at 100 ms and rises where the delay is steady (RFC 8298, section
/// 4.1.2.3, calls that a false positive). The encoder slower than the link, there is no queue.
#[test]
fn scream_alone_fills_the_link_with_the_delay_of_its_target() {
    let mut net = Net::new(3.0);
    let media = net.media(scream(), 0);
    net.mbit(&[media], 20);
    let rate = net.mbit(&[media], 40)[0];
    assert!(rate > 2.4, "{rate} of 3 Mbit/s");
    let queue = net.queue_ms();
    assert!((50.0..200.0).contains(&queue), "{queue} ms");
    assert_eq!(net.sim.network().counters(net.bottleneck).dropped(), 0);

    has_no_queue_on_a_faster_link(source(MediaControl::Scream, 1_500_000, false));
}

/// At 1.5 Mbit/s there are 50 reports a second (section 4.2.2), each of 48 B and 2 B for each of its 3 or 4 packets,
/// padded to 4.
#[test]
fn screams_feedback_costs_its_bytes_on_the_way_back() {
    let mut net = Net::new(3.0);
    let media = net.media(source(MediaControl::Scream, 1_500_000, false), 0);
    net.mbit(&[media], 20);
    net.mbit(&[media], 10);
    let bytes = net.sim.network().counters(net.back).bytes_sent;
    assert!((499 * 56..=501 * 56).contains(&bytes), "{bytes} B");
}

/// From 3 to 1 Mbit/s the queue of 300 ms holds 900: within 10 s it is that of the target again, at most 0.4 s.
#[test]
fn scream_drains_the_queue_after_the_link_slows_down() {
    let mut net = Net::new(3.0);
    let media = [net.media(scream(), 0)];
    net.mbit(&media, 40);
    net.rate(1.0);
    net.mbit(&media, 3);
    let peak = net.queue_ms();
    assert!(peak > 300.0, "{peak} ms");
    net.mbit(&media, 7);
    let rate = net.mbit(&media, 10)[0];
    assert!(net.queue_ms() < 300.0, "{} ms", net.queue_ms());
    assert!(rate > 0.8, "{rate} of 1 Mbit/s");
}

/// It takes losses as TCP does, so beside one it has less than alone, and neither starves.
#[test]
fn scream_backs_off_beside_tcp() {
    for seed in 1..=3 {
        let scream = source(MediaControl::Scream, 1_500_000, false);
        let [media, tcp, _] = beside_tcp(scream, "reno", Limit::Packets(50), seed);
        assert!(media < 1.4 && tcp > 0.4, "{media} beside {tcp} Mbit/s");
        assert!(media > 0.4, "{media} beside {tcp} Mbit/s");
    }
}

/// Where CoDel keeps the queue short the delay tells SCReAM nothing, and drops hold both.
#[test]
fn scream_does_not_starve_in_a_short_queue() {
    let codel = LinkConfig {
        discipline: Discipline::CoDel(CoDel::default()),
        ..link("bottleneck", constant(2.0), 50 * MS)
    };
    let [media, tcp, queue] = beside_tcp_on(codel, scream(), "reno", 1);
    assert!(media > 0.3 && tcp > 0.3, "{media} beside {tcp} Mbit/s");
    assert!(queue < 50.0, "{queue} ms");
}

/// ECN-capable it loses nothing where the queue marks.
#[test]
fn scream_heeds_marks() {
    let mut net = Net::with(3.0, |config| LinkConfig {
        discipline: Discipline::CoDel(CoDel::default()),
        ecn: true,
        ..config
    });
    let media = [net.media(source(MediaControl::Scream, 5_000_000, true), 0)];
    net.mbit(&media, 20);
    let rate = net.mbit(&media, 40)[0];
    let counters = net.sim.network().counters(net.bottleneck);
    assert!(counters.marked > 0 && counters.dropped() == 0, "{counters:?}");
    assert!(rate > 2.1 && net.queue_ms() < 50.0, "{rate} Mbit/s, {} ms", net.queue_ms());
}

/// What it sends arrives or is dropped, also where its window closes over losses: the link is down for 5 s. Then a
/// packet at the least rate is acknowledged, and the window opens.
#[test]
fn screams_packets_are_conserved_and_an_outage_ends() {
    let mut net = Net::new(2.0);
    let forward = route(&mut net.sim, &[net.bottleneck]);
    let media = net.media_over(forward, scream(), vec![(0, 60 * S)]);
    net.sim.run_until(20 * S);
    net.sim.set_link_up(net.bottleneck, false);
    net.sim.run_until(25 * S);
    let before = net.sim.udp(media).received_bytes;
    net.sim.set_link_up(net.bottleneck, true);
    net.sim.run_until(70 * S);
    let stats = net.sim.udp(media);
    let dropped = net.sim.network().counters(net.bottleneck).dropped();
    assert!(dropped > 0);
    assert_eq!(stats.sent_packets, stats.received_packets + dropped);
    let rate = (stats.received_bytes - before) as f64 * 8e-6 / 35.0;
    assert!(rate > 1.2, "{rate} of 2 Mbit/s");
}
