//! A link's rate is kept, also by a wire that comes late.

mod support;

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use narrows_emu::{Direction, Fitness, Tap};
use narrows_net::{Limit, LinkConfig, MILLISECOND, Nanos, Rate, SECOND};
use narrows_testkit::wait_until;
use support::{RIGHT, alone, left_and_right, network, pair, two_hosts, udp, v4};

const RATE: u64 = 20_000_000;

/// 60 ms when full.
fn bottleneck() -> LinkConfig {
    LinkConfig {
        rate: Rate::Constant(RATE),
        delay: 5 * MILLISECOND,
        limit: Limit::Packets(100),
        ..LinkConfig::default()
    }
}

/// Sends at twice the rate of the link for so long. Its longest pause.
fn blast(sender: &UdpSocket, to: &UdpSocket, time: Duration) -> Duration {
    let to = to.local_addr().unwrap();
    let began = Instant::now();
    let mut sent = 0_u64;
    let (mut last, mut pause) = (began, Duration::ZERO);
    while began.elapsed() < time {
        pause = pause.max(last.elapsed());
        last = Instant::now();
        while sent * 1500 * 8 < began.elapsed().as_micros() as u64 * (2 * RATE / 1_000_000) {
            sender.send_to(&[7; 1472], to).unwrap();
            sent += 1;
        }
        sleep(Duration::from_millis(1));
    }
    pause
}

/// Blasts for three seconds, while `disturb` is called again and again. What the right host got,
/// and when; and how well it went. Once more where the sender itself paused for so long that the
/// queue was empty.
fn blasted(mut disturb: impl FnMut(&narrows_emu::Wire)) -> (Vec<(Nanos, usize)>, Fitness) {
    for _ in 0..10 {
        let (got, fitness, pause) = blasted_once(&mut disturb);
        if pause < Duration::from_millis(30) {
            return (got, fitness);
        }
        println!("unfit: the sender paused for {pause:?}");
    }
    panic!("no sender on this machine can fill a link");
}

fn blasted_once(
    mut disturb: impl FnMut(&narrows_emu::Wire),
) -> (Vec<(Nanos, usize)>, Fitness, Duration) {
    let testbed = two_hosts(1);
    let (network, routes) = network(&[(bottleneck(), LinkConfig::default())]);
    let (seen, sees) = mpsc::channel();
    let see = Box::new(move |now, _: usize, direction, bytes: &[u8]| {
        if direction == Direction::Got {
            seen.send((now, bytes.len())).unwrap();
        }
    });
    let wire = testbed.start(network, &routes, vec![Tap { host: 1, device: None, see }]).unwrap();
    let [left, right] = left_and_right(&testbed);
    let (sender, receiver) = (udp(left, v4(1, 1), 7), udp(right, v4(2, 1), 7));
    let pause = scope(|scope| {
        let blast = scope.spawn(|| blast(&sender, &receiver, Duration::from_secs(3)));
        while !blast.is_finished() {
            disturb(&wire);
        }
        blast.join().unwrap()
    });
    let (_, fitness) = wire.stop().unwrap();
    (sees.try_iter().collect(), fitness, pause)
}

/// bit/s from the first to the last.
fn rate(got: &[(Nanos, usize)]) -> f64 {
    let bytes: usize = got[1..].iter().map(|(_, length)| length).sum();
    let time = got[got.len() - 1].0 - got[0].0;
    8e9 * bytes as f64 / time as f64
}

#[track_caller]
fn is_the_links(rate: f64, fitness: &Fitness) {
    let share = rate / RATE as f64;
    println!("{share:.4} of the rate, {fitness:?}");
    assert!((0.99..1.01).contains(&share), "{share} of the rate, {fitness:?}");
}

#[test]
fn a_blast_fills_a_link_and_no_more() {
    let Some(_alone) = alone("a_blast_fills_a_link_and_no_more") else { return };
    let (got, fitness) = blasted(|_| sleep(Duration::from_millis(50)));
    is_the_links(rate(&got), &fitness);
    assert_eq!((fitness.refused, fitness.packets), (0, got.len() as u64));
    // Never more than the link can have sent since any earlier packet, but for what was late.
    let late = fitness.lateness.max + MILLISECOND;
    for (n, from) in got.iter().enumerate().step_by(50) {
        let mut bits = 0;
        for to in &got[n + 1..] {
            bits += 8 * to.1 as u64;
            assert!(bits <= RATE * (to.0 - from.0 + late) / SECOND, "{from:?} {to:?} {fitness:?}");
        }
    }
}

#[test]
fn a_late_wake_up_loses_no_rate() {
    let Some(_alone) = alone("a_late_wake_up_loses_no_rate") else { return };
    const STALL: Duration = Duration::from_millis(30);
    let (got, fitness) = blasted(|wire| {
        wire.with(|_, _| sleep(STALL)).unwrap();
        sleep(Duration::from_millis(40));
    });
    is_the_links(rate(&got), &fitness);
    // And it is said: almost half of all packets were due in a stall, the first of each for long.
    let (lateness, stall) = (fitness.lateness, STALL.as_nanos() as Nanos);
    assert!(lateness.max > stall * 9 / 10 && lateness.p99 > stall * 8 / 10, "{fitness:?}");
    assert!(fitness.reading.max > stall * 8 / 10, "{fitness:?}");
}

#[test]
fn a_stall_over_the_end_of_a_second_is_reported() {
    let Some(_alone) = alone("a_stall_over_the_end_of_a_second_is_reported") else { return };
    let (_, fitness) = blasted(|wire| {
        // From 20 ms before its end to 20 ms behind it.
        let begin = (wire.now() + 20 * MILLISECOND).div_ceil(SECOND) * SECOND - 20 * MILLISECOND;
        sleep(
            Duration::from_nanos(begin.saturating_sub(wire.now())).min(Duration::from_millis(10)),
        );
        if (begin..begin + 10 * MILLISECOND).contains(&wire.now()) {
            wire.with(|_, _| sleep(Duration::from_millis(40))).unwrap();
        }
    });
    println!("{fitness:?}");
    assert!((0.015..0.04).contains(&fitness.worst_second), "{fitness:?}");
    assert_eq!(fitness.worst_at.expect("there is one").0, RIGHT);
}

#[test]
fn what_is_dropped_frees_its_memory() {
    let Some(_alone) = alone("what_is_dropped_frees_its_memory") else { return };
    const DROPS: u64 = 100_000;
    let slow = LinkConfig {
        rate: Rate::Constant(1_000_000),
        limit: Limit::Packets(10),
        ..LinkConfig::default()
    };
    let (testbed, wire) = pair(slow, LinkConfig::default());
    let [left, right] = left_and_right(&testbed);
    let (sender, receiver) = (udp(left, v4(1, 1), 7), udp(right, v4(2, 1), 7));
    let to = receiver.local_addr().unwrap();
    let dropped = || wire.with(|network, _| network.counters(RIGHT).dropped()).unwrap();
    wait_until(20, || {
        for _ in 0..5000 {
            sender.send_to(&[7; 100], to).unwrap();
        }
        let dropped = dropped();
        if dropped > DROPS { Ok(()) } else { Err(format!("{dropped} dropped")) }
    });
    // The queue, the one in transmission, and the one that is read.
    assert_eq!(wire.fitness().buffers, 12);
    // Those that wait are dropped later than they entered.
    wire.with(|network, now| network.set_up(now, RIGHT, false)).unwrap();
    wire.with(|network, now| network.set_up(now, RIGHT, true)).unwrap();
    for _ in 0..5000 {
        sender.send_to(&[7; 100], to).unwrap();
    }
    wait_until(20, || match dropped() {
        dropped if dropped > DROPS + 4000 => Ok(()),
        dropped => Err(format!("{dropped} dropped")),
    });
    assert_eq!(wire.fitness().buffers, 12);
}
