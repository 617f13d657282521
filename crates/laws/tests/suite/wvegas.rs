//! wVegas: its rounds against the source in floating point, and what they come to on links.

use crate::common;
use crate::reference;

use common::Host;
use narrows_laws::raw::{MAX_PATHS, ONE_PACKET};
use narrows_laws::{Conn, Control, Event, EventKind, Params, flag};
use narrows_testkit::Random;
use reference::{Round, Vegas};

fn wvegas() -> Control {
    "wvegas".parse().unwrap()
}

/// An acknowledgement of `packets` with an RTT sample, 0 for none.
fn ack(host: &mut Host, path: usize, packets: u32, rtt_us: u32, flags: u32) {
    let event = Event {
        delivered: packets,
        rtt_us,
        flags: flags | flag::CWND_LIMITED,
        ..host.event(path, EventKind::Acked)
    };
    host.send(path, &event);
}

/// A round with these samples, in which nothing moves the window, and the begin of the next.
fn measure(host: &mut Host, path: usize, rtts: &[u32]) {
    for rtt in rtts {
        ack(host, path, 0, *rtt, 0);
    }
    ack(host, path, 0, 0, flag::ROUND_START);
}

/// A round trip at `rtt_us`: the window acknowledged, in 16 pieces where it has as many.
fn round_trip(host: &mut Host, path: usize, rtt_us: u32) {
    host.srtt8_us[path] = 8 * rtt_us;
    let w = host.conn.path(path).cwnd;
    let pieces = w.min(16);
    for n in 0..pieces {
        let packets = w / pieces + u32::from(n < w % pieces);
        let begin = if n == 0 { flag::ROUND_START } else { 0 };
        ack(host, path, packets, rtt_us, begin);
    }
}

/// Packets that the next one acknowledged adds, as a part of a packet a window.
fn step(host: &Host, path: usize) -> f64 {
    host.credit(path) * f64::from(host.conn.path(path).cwnd)
}

#[test]
fn rounds_are_the_sources() {
    let mut seen = [0; 5];
    for seed in 0..300 {
        let mut random = Random(seed);
        let n = 1 + random.below(3) as usize;
        let mut host = Host::new(wvegas());
        let mut rate = [0.0; MAX_PATHS];
        for (path, rate) in rate.iter_mut().enumerate().take(n) {
            let w = 2 + random.below(300) as u32;
            let rtt8 = 8 * (1_000 + random.below(100_000)) as u32;
            host.avoiding(path, w, rtt8, 0);
            *rate = f64::from(w) / f64::from(rtt8);
        }
        let mut reference = Vegas::new();
        let mut base = u32::MAX;
        let true_base = 1_000 + random.below(300_000) as u32;
        for _ in 0..40 {
            let most = [10, 100, 10_000][random.below(3) as usize];
            let w = 4 + random.below(most) as u32;
            let slow_start = random.below(5) == 0;
            // Up to 20 packets wait, most often about 10.
            let wait = (u64::from(true_base) * random.below(20) / u64::from(w)) as u32;
            let samples = 1 + random.below(12);
            let rtts: Vec<u32> = (0..samples)
                .map(|_| true_base + wait + random.below(1 + u64::from(wait / 8)) as u32)
                .collect();
            base = rtts.iter().fold(base, |a, b| a.min(*b));
            let ssthresh = if slow_start { w + 1_000_000 } else { w / 2 };
            let windows = Event { cwnd: w, ssthresh, ..host.event(0, EventKind::Acked) };
            host.send(0, &windows);
            host.report(0, EventKind::Recovered); // nothing is left of a drain
            rate[0] = f64::from(w) / f64::from(host.srtt8_us[0]);
            let share = rate[0] / rate.iter().sum::<f64>();
            let expected = reference.round(f64::from(w), slow_start, &rtts, base, share);
            measure(&mut host, 0, &rtts);
            let line = *host.conn.path(0);
            let what = format!("seed {seed}, w {w}, {rtts:?}, {expected:?}: {line:?}");
            let moved = |to: f64| (f64::from(line.cwnd) - to.max(2.0)).abs() <= 1.0;
            let sign = step(&host, 0).round();
            match expected {
                None => break, // rounding decides, and the two may differ from here on
                Some(Round::Up) if slow_start => assert!(line.cwnd == w && sign > 1.0, "{what}"),
                Some(Round::Up) => assert!(line.cwnd == w && sign == 1.0, "{what}"),
                Some(Round::Stay) => assert!(line.cwnd == w && sign == 0.0, "{what}"),
                Some(Round::Down) => assert!(line.cwnd == w && sign == -1.0, "{what}"),
                Some(Round::Leave(to)) => {
                    assert!(moved(to) && line.ssthresh < line.cwnd && sign == 0.0, "{what}");
                }
                Some(Round::Drain(to)) => {
                    assert!(moved(to) && line.ssthresh == w - w / 4, "{what}");
                }
            }
            seen[match expected.unwrap() {
                Round::Up => 0,
                Round::Stay => 1,
                Round::Down => 2,
                Round::Leave(_) => 3,
                Round::Drain(_) => 4,
            }] += 1;
        }
    }
    assert!(seen.iter().all(|n| *n > 100), "up, stay, down, leave, drain: {seen:?}");
}

/// Integers that lose the fraction of a packet, or of a microsecond, would freeze or halve it.
#[test]
fn an_empty_path_of_any_rtt_and_window_grows_by_a_packet_a_round() {
    for rtt_us in [10, 33, 1_000, 20_000, 333_333, 10_000_000] {
        for w in [2, 3, 5, 10, 99, 1_000, 65_535, 1 << 20] {
            let mut host = Host::new(wvegas());
            host.avoiding(0, w, 8 * rtt_us, 0);
            for round in 1..=30 {
                round_trip(&mut host, 0, rtt_us);
                let grown = host.conn.path(0).cwnd - w;
                assert!(grown.abs_diff(round) <= 1, "{rtt_us} us, {w}: {grown} in {round} rounds");
            }
        }
    }
}

/// One path at `w` packets under a parameter, after a round at 100 ms and one at `rtt_us`.
fn after(set: (&str, &str), w: u32, ssthresh: u32, rtt_us: u32) -> Host {
    let params = Params::default().with(&[set]);
    let mut host = Host::new(wvegas());
    host.conn = Conn::with_params(wvegas(), &params);
    host.avoiding(0, w, 8 * 100_000, 0);
    let windows = Event { cwnd: w, ssthresh, ..host.event(0, EventKind::Acked) };
    host.send(0, &windows);
    measure(&mut host, 0, &[100_000; 4]);
    measure(&mut host, 0, &[rtt_us; 4]);
    host
}

#[test]
fn parameters_say_when_slow_start_ends_and_what_a_path_queues_at_first() {
    for (gamma, ends) in [("1", true), ("3", false)] {
        let host = after(("wvegas.gamma", gamma), 40, 1_000_000, 105_000); // 1.9 packets wait
        assert_eq!(host.conn.path(0).ssthresh < 40, ends, "gamma {gamma}");
    }
    for (alpha, grows) in [("2", false), ("20", true)] {
        let host = after(("wvegas.initial_alpha", alpha), 100, 50, 113_000); // 11.5 packets wait
        assert_eq!(step(&host, 0).round() == 1.0, grows, "initial alpha {alpha}");
    }
}

/// A queue twice as long as the shortest one is drained; after a loss the shortest is a new one's.
#[test]
fn a_loss_forgets_the_shortest_queue() {
    for loss in [false, true] {
        let mut host = after(("wvegas.gamma", "1"), 1_000, 500, 103_000);
        if loss {
            host.report(0, EventKind::Recovery);
            host.report(0, EventKind::Recovered);
            measure(&mut host, 0, &[]);
        }
        let before = host.conn.path(0).cwnd;
        measure(&mut host, 0, &[106_100; 4]);
        let drained = host.conn.path(0).cwnd < before;
        assert_eq!(drained, !loss, "{before} packets, then {}", host.conn.path(0).cwnd);
    }
}

/// In the authors' Linux code a queueing delay of 1 us that becomes 2 halves the window.
#[test]
fn jitter_does_not_drain_an_empty_path() {
    let mut host = Host::new(wvegas());
    host.avoiding(0, 1_000, 8 * 20_000, 0);
    for round in 0..100 {
        round_trip(&mut host, 0, 20_000 + round % 5);
    }
    assert!(host.conn.path(0).cwnd >= 1_098, "{}", host.conn.path(0).cwnd);
}

/// Rounds of `n` paths over links, `packets_ms` each and `base_us` long; of their own, or the first
/// one for all. Returns the packets that wait for each.
fn on_links(host: &mut Host, links: &[(f64, f64)], shared: bool, rounds: usize) -> Vec<f64> {
    let w = |host: &Host, path| f64::from(host.conn.path(path).cwnd);
    let mut waits = Vec::new();
    for _ in 0..rounds {
        let n = links.len();
        let total: f64 = (0..n).map(|path| w(host, path)).sum();
        waits = (0..n)
            .map(|path| {
                let (packets_ms, base_us) = links[path];
                let w = if shared { total } else { w(host, path) };
                (w / packets_ms * 1e3 - base_us).max(0.0)
            })
            .collect();
        for path in 0..n {
            let rtt = links[path].1 + waits[path];
            round_trip(host, path, rtt as u32);
            // What waits is this path's part of what is on its way.
            waits[path] *= w(host, path) / rtt;
        }
        host.now_us += 20_000;
    }
    waits
}

/// Paths that begin empty, so that they know their base.
fn paths(control: Control, params: &Params, windows: &[u32]) -> Host {
    let mut host = Host::new(control);
    host.conn = Conn::with_params(control, params);
    for (path, w) in windows.iter().enumerate() {
        host.avoiding_at(path, *w);
    }
    host
}

#[test]
fn equal_paths_end_with_equal_rates_and_ten_packets_wait() {
    for n in 1..=5 {
        let windows: Vec<u32> = (0..n).map(|path| 5 + 11 * path).collect();
        let mut host = paths(wvegas(), &Params::default(), &windows);
        let links = vec![(2.5, 20_000.0); n as usize];
        let queues = on_links(&mut host, &links, false, 300);
        let total: f64 = queues.iter().sum();
        // Each stands up to a packet above its share, and is a round behind.
        let most = 10.0 + 2.0 * f64::from(n);
        assert!((9.0..=most).contains(&total), "{n} paths: {queues:?}");
        let windows: Vec<u32> = (0..n as usize).map(|path| host.conn.path(path).cwnd).collect();
        // In a cycle of a packet up and down, as a queue shows a round late.
        assert!(windows.iter().all(|w| w.abs_diff(windows[0]) <= 2), "{windows:?}");
    }
}

/// How they divide it among them is open: on one queue each of them is content with any part.
#[test]
fn through_one_bottleneck_ten_packets_wait_in_all() {
    for n in 1..=5 {
        let windows: Vec<u32> = (0..n).map(|path| 2 + path).collect();
        let mut host = paths(wvegas(), &Params::default(), &windows);
        let links = vec![(5.0, 20_000.0); n as usize];
        let total: f64 = on_links(&mut host, &links, true, 300).iter().sum();
        assert!((8.0..=10.0 + 2.0 * f64::from(n)).contains(&total), "{n} paths: {total}");
    }
}

#[test]
fn packets_wait_equally_long_on_unequal_paths() {
    let mut host = paths(wvegas(), &Params::default(), &[5, 5]);
    let queues = on_links(&mut host, &[(1.0, 20_000.0), (3.0, 20_000.0)], false, 500);
    assert!((1.5..4.5).contains(&queues[0]) && (6.5..9.5).contains(&queues[1]), "{queues:?}");
}

#[test]
fn total_alpha_is_a_parameter() {
    let params = Params::default().with(&[("wvegas.total_alpha", "40")]);
    let mut host = paths(wvegas(), &params, &[10, 30]);
    let total: f64 = on_links(&mut host, &[(2.5, 20_000.0); 2], false, 300).iter().sum();
    assert!((39.0..=44.0).contains(&total), "{total}");
}

#[test]
fn alone_it_is_vegas_with_the_whole_of_alpha() {
    let mut host = Host::new(wvegas());
    host.avoiding(0, 100, 8 * 100_000, 0);
    measure(&mut host, 0, &[100_000; 3]);
    // 100 * 10 / 110 = 9.1 packets wait: above 2, the first alpha, but not above 10.
    measure(&mut host, 0, &[110_000; 3]);
    assert_eq!(step(&host, 0).round(), 1.0);
    measure(&mut host, 0, &[112_000; 3]);
    assert_eq!(step(&host, 0).round(), 0.0, "10.7 of 10 to 11");
    measure(&mut host, 0, &[113_000; 3]);
    assert_eq!(step(&host, 0).round(), -1.0, "11.5 are too many");
    let w = host.window(0);
    for _ in 0..500 {
        ack(&mut host, 0, 1, 0, 0);
    }
    assert!(w - host.window(0) <= ONE_PACKET + 200, "one packet a round, however long it is");
    measure(&mut host, 0, &[113_000, 113_000]);
    assert_eq!(step(&host, 0).round(), 1.0, "two samples: as Reno");
}

#[test]
fn a_stretch_is_worth_its_packets_one_by_one_in_every_round() {
    for rtt in [100_000, 112_000, 130_000] {
        let mut host = Host::new(wvegas());
        host.avoiding(0, 100, 8 * 100_000, 0);
        measure(&mut host, 0, &[100_000; 3]);
        measure(&mut host, 0, &[rtt; 3]);
        for packets in 1..150 {
            let mut single = host.clone();
            for _ in 0..packets {
                single.ack(0, 1);
            }
            host.ack(0, packets);
            assert_eq!(host.window(0), single.window(0), "{packets} at {rtt} us");
        }
    }
}

#[test]
fn more_than_gamma_packets_waiting_end_slow_start_before_hystartpp() {
    for control in [wvegas(), "wvegas+hystart++".parse().unwrap()] {
        let mut host = Host::new(control);
        host.report(0, EventKind::Joined);
        measure(&mut host, 0, &[100_000; 8]);
        host.set_cwnd(0, 40);
        measure(&mut host, 0, &[102_000; 8]);
        assert_eq!((host.conn.path(0).cwnd, step(&host, 0)), (40, 40.0), "{control}: 0.8 packets");
        measure(&mut host, 0, &[105_000; 8]);
        // 40 * 100 / 105 = 38.1, and one more.
        let line = host.conn.path(0);
        assert_eq!((line.cwnd, line.ssthresh), (39, 37), "{control}");
        assert_eq!(step(&host, 0), 0.0, "{control}: the queue shows a round later");
    }
}

#[test]
fn a_queue_of_twice_what_it_was_and_twice_its_share_is_drained() {
    let mut host = Host::new(wvegas());
    host.avoiding(0, 100, 8 * 100_000, 0);
    measure(&mut host, 0, &[100_000; 3]);
    measure(&mut host, 0, &[112_000; 3]);
    measure(&mut host, 0, &[125_000; 3]);
    assert_eq!(host.conn.path(0).cwnd, 100, "twice 12 ms, but 20 packets of 2 (10 + 1)");
    measure(&mut host, 0, &[130_000; 3]);
    // 100 * 100 / 260, and slow start to 75.
    let line = host.conn.path(0);
    assert_eq!((line.cwnd, line.ssthresh), (38, 75));
    ack(&mut host, 0, 62, 0, 0);
    assert_eq!(host.conn.path(0).cwnd, 38, "100 were out: the queue runs empty first");
    ack(&mut host, 0, 37, 0, 0);
    assert_eq!(host.conn.path(0).cwnd, 75);
}

#[test]
fn the_window_never_falls_below_two() {
    for w in [2, 3, 4, 5] {
        let mut host = Host::new(wvegas());
        host.avoiding(0, w, 8 * 1_000, 0);
        measure(&mut host, 0, &[1_000; 3]);
        for n in 0..50 {
            measure(&mut host, 0, &[1_000_000 * (1 + n); 3]);
            for _ in 0..10 {
                ack(&mut host, 0, 1, 0, 0);
            }
            assert!(host.conn.path(0).cwnd >= 2, "from {w}");
        }
    }
}

#[test]
fn recovery_measures_the_base_and_nothing_else() {
    let mut host = Host::new(wvegas());
    host.avoiding(0, 100, 8 * 100_000, 0);
    measure(&mut host, 0, &[100_000; 3]);
    host.report(0, EventKind::Recovery);
    for rtt in [90_000, 300_000, 300_000, 300_000] {
        ack(&mut host, 0, 2, rtt, flag::IN_RECOVERY | flag::ROUND_START);
    }
    host.report(0, EventKind::Recovered);
    host.set_cwnd(0, 100);
    measure(&mut host, 0, &[]);
    assert_eq!(step(&host, 0).round(), 1.0, "no round yet: as Reno");
    measure(&mut host, 0, &[102_000; 3]);
    assert_eq!(step(&host, 0).round(), -1.0, "100 * 12 / 102 = 11.8 are more than 11");
}

#[test]
fn a_restart_forgets_the_base() {
    let mut host = Host::new(wvegas());
    host.avoiding(0, 100, 8 * 100_000, 0);
    measure(&mut host, 0, &[100_000; 3]);
    let restart = Event { cwnd: 10, ..host.event(0, EventKind::Restart) };
    host.send(0, &restart);
    host.set_cwnd(0, 100);
    // The path is longer now, and empty.
    measure(&mut host, 0, &[200_000; 3]);
    assert_eq!(step(&host, 0).round(), 1.0);
    assert_eq!(host.conn.path(0).cwnd, 100);
}
