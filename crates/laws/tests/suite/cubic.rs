//! CUBIC against RFC 9438 in floating point, packet by packet.

use crate::common;
use crate::reference;

use common::Host;
use narrows_laws::raw::ONE_PACKET;
use narrows_laws::{Control, Event, EventKind, flag};
use reference::Cubic;

/// A connection whose only path lost at `w` packets, recovered, and is about to grow again.
fn after_loss_at(w: u32, rtt_us: u32) -> Host {
    let mut host = Host::new(Control::CUBIC);
    host.avoiding(0, w, 8 * rtt_us, 0);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host
}

fn window(host: &Host) -> f64 {
    host.window(0) as f64 / ONE_PACKET as f64
}

/// A window's worth of packets each round trip, one by one, for `seconds`; both windows must keep
/// within 1 % and a packet of each other all the way. Returns the last window.
fn follow(host: &mut Host, reference: &mut Cubic, seconds: f64) -> f64 {
    let rtt_us = u64::from(host.srtt8_us[0] / 8);
    let start = host.now_us;
    while host.now_us < start + (seconds * 1e6) as u64 {
        let t = (host.now_us - start) as f64 / 1e6;
        for _ in 0..host.conn.path(0).cwnd {
            host.ack(0, 1);
            reference.acked(t, rtt_us as f64 / 1e6);
        }
        let ours = window(host);
        assert!(
            (ours - reference.w).abs() <= 1.0 + 0.01 * reference.w,
            "at {t} s: {ours}, {}",
            reference.w
        );
        host.now_us += rtt_us;
    }
    window(host)
}

#[test]
fn a_loss_takes_three_tenths() {
    for (w, ssthresh) in [(100, 70), (10, 7), (3, 2), (2, 2), (1 << 20, 734_003)] {
        assert_eq!(after_loss_at(w, 100_000).conn.path(0).cwnd, ssthresh);
    }
}

#[test]
fn concave_to_the_plateau_and_convex_beyond_it() {
    // W_max 1000, K = cbrt(300 / 0.4) = 9.09 s, RTT 100 ms: Reno would be far below.
    let mut host = after_loss_at(1_000, 100_000);
    let mut reference = Cubic::new(700.0, 1_000.0, 1_000.0);
    let half = follow(&mut host, &mut reference, 4.5);
    let plateau = {
        let mut reference = Cubic::new(700.0, 1_000.0, 1_000.0);
        follow(&mut after_loss_at(1_000, 100_000), &mut reference, 9.1)
    };
    let beyond = {
        let mut reference = Cubic::new(700.0, 1_000.0, 1_000.0);
        follow(&mut after_loss_at(1_000, 100_000), &mut reference, 16.0)
    };
    assert!(half > 950.0 && (plateau - 1_000.0).abs() < 2.0 && beyond > 1_100.0);
    assert!((beyond - (1_000.0 + 0.4 * 6.9f64.powi(3))).abs() < 15.0, "{beyond}");
}

#[test]
fn windows_of_a_million_packets() {
    let mut host = after_loss_at(1 << 20, 1_000_000);
    let mut reference = Cubic::new(734_003.0, f64::from(1 << 20), f64::from(1 << 20));
    follow(&mut host, &mut reference, 5.0);
}

#[test]
fn short_paths_are_reno_friendly() {
    // 1 ms and 100 packets: after a second the cubic has hardly moved, Reno has: 9/17 packet per
    // round trip up to the old window, a whole one from there on.
    let mut host = after_loss_at(100, 1_000);
    let mut reference = Cubic::new(70.0, 100.0, 100.0);
    let w = follow(&mut host, &mut reference, 0.02);
    assert!((w - 80.6).abs() < 0.5, "9/17 of 20 round trips: {w}");
    let w = follow(&mut after_loss_at(100, 1_000), &mut Cubic::new(70.0, 100.0, 100.0), 1.0);
    assert!(w > 900.0, "{w}");
}

#[test]
fn fast_convergence_gives_way_to_newcomers() {
    // A second loss below the plateau of the first sets the next plateau lower still: 0.85 of it.
    let mut host = after_loss_at(1_000, 100_000);
    host.set_cwnd(0, 800);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    let mut reference = Cubic::new(560.0, 680.0, 800.0);
    follow(&mut host, &mut reference, 6.7); // K = cbrt(120 / 0.4) = 6.69 s
    assert!((window(&host) - 680.0).abs() < 2.0);
    // One above it does not.
    let mut host = after_loss_at(1_000, 100_000);
    host.set_cwnd(0, 1_200);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    follow(&mut host, &mut Cubic::new(840.0, 1_200.0, 1_200.0), 9.7);
    assert!((window(&host) - 1_200.0).abs() < 2.0);
}

#[test]
fn after_a_timeout_the_epoch_begins_at_its_plateau() {
    // Section 4.8: K = 0, W_max is the window at the beginning of congestion avoidance.
    let mut host = Host::new(Control::CUBIC);
    host.avoiding(0, 1_000, 800_000, 0);
    host.report(0, EventKind::Timeout);
    host.ack(0, 699);
    assert_eq!(host.conn.path(0).cwnd, 700);
    follow(&mut host, &mut Cubic::new(700.0, 0.0, 1_000.0), 10.0);
}

#[test]
fn after_a_timeout_in_recovery_as_well() {
    // The timer fires after RACK has found the loss: one reduction, but the epoch is a timeout's.
    let mut host = Host::new(Control::CUBIC);
    host.avoiding(0, 1_000, 800_000, 0);
    host.report(0, EventKind::Recovery);
    assert_eq!(host.report(0, EventKind::Timeout).ssthresh, 700);
    host.ack(0, 699);
    assert_eq!(host.conn.path(0).cwnd, 700);
    follow(&mut host, &mut Cubic::new(700.0, 0.0, 1_000.0), 10.0);
}

#[test]
fn a_window_below_reno_s_catches_up_with_it_and_not_beyond() {
    // Reno-friendly growth from 70 to 90, then the host lowers the window to 75 and a stretch
    // acknowledgement of 60 packets comes: 15 lead back to W_est, the others earn 9/17 packet.
    let mut host = after_loss_at(100, 1_000);
    while host.conn.path(0).cwnd < 90 {
        host.ack(0, 1);
    }
    host.set_cwnd(0, 75);
    assert_eq!(host.ack(0, 2).cwnd, 77);
    let after = host.ack(0, 58).cwnd;
    assert!((85..=91).contains(&after), "{after}");
    host.ack(0, 60);
    let after = host.ack(0, 60).cwnd;
    assert!((90..=93).contains(&after), "{after}");
}

#[test]
fn reno_s_window_counts_every_packet_of_a_stretch() {
    // 2000 packets at once, more than the credit is worked out anew for: w grows to 84, W_est too.
    let mut host = after_loss_at(100, 1_000);
    let after = host.ack(0, 2_000).cwnd;
    assert!((80..=90).contains(&after), "{after}");
    assert!(host.ack(0, 300).cwnd > after);
}

#[test]
fn the_clock_stands_while_the_application_is_the_limit() {
    let mut busy = after_loss_at(1_000, 100_000);
    busy.ack(0, 1);
    let mut idle = busy.clone();
    for _ in 0..50 {
        idle.now_us += 100_000;
        let event = Event { delivered: 1, ..idle.event(0, EventKind::Acked) };
        idle.send(0, &event);
    }
    for host in [&mut busy, &mut idle] {
        for _ in 0..50 {
            host.now_us += 100_000;
            host.ack(0, host.conn.path(0).cwnd);
        }
    }
    assert_eq!(busy.window(0), idle.window(0), "5 s without a full window count for nothing");
}

/// What is sent after it may fill the window at once, so that its acknowledgements are limited by that. A time in which
/// something is in flight, and nothing arrives, counts.
#[test]
fn an_idle_time_is_none_of_the_epoch_s() {
    for control in [Control::CUBIC, "gcubic".parse().unwrap()] {
        let after = |silent_us: u64, inflight: u32| {
            let mut host = Host::new(control);
            host.avoiding(0, 60, 8 * 50_000, 0);
            host.report(0, EventKind::Recovery);
            host.report(0, EventKind::Recovered);
            for round in 0..18 {
                for _ in 1..host.conn.path(0).cwnd {
                    host.ack(0, 1);
                }
                let (acked, last) = (host.event(0, EventKind::Acked), round == 9);
                let inflight = if last { inflight } else { acked.inflight };
                let flags = flag::CWND_LIMITED;
                host.send(0, &Event { delivered: 1, inflight, flags, ..acked });
                host.now_us += 50_000 + if last { silent_us } else { 0 };
            }
            host.conn.path(0).cwnd
        };
        let busy = after(0, 0);
        for silent_us in [150_000, 1_000_000, 60_000_000] {
            let idle = after(silent_us, 0);
            assert!(idle.abs_diff(busy) <= 1, "{control}: {busy}, after {silent_us} us {idle}");
        }
        assert!(after(10_000_000, 20) > busy + 20, "{control}: without an arrival");
    }
}

#[test]
fn undo_restores_the_epoch() {
    let mut calm = after_loss_at(1_000, 100_000);
    calm.ack(0, 700);
    let mut startled = calm.clone();
    startled.report(0, EventKind::Recovery);
    startled.report(0, EventKind::Undo);
    for host in [&mut calm, &mut startled] {
        host.now_us += 6_000_000;
        host.ack(0, 700);
    }
    let gap = (calm.window(0) - startled.window(0)) as f64 / ONE_PACKET as f64;
    assert!(gap.abs() <= 1.0, "but for the fraction that the reduction took: {gap}");
}

#[test]
fn growth_is_at_most_half_the_window_per_round_trip() {
    // Section 4.2: the target is clamped to 1.5 cwnd. W(t + RTT) of 100 s is 340,000 packets.
    let mut host = after_loss_at(100, 100_000_000);
    host.ack(0, 1);
    host.now_us += 4_000_000;
    for _ in 0..5 {
        let before = host.conn.path(0).cwnd;
        for _ in 0..before {
            host.ack(0, 1);
        }
        let after = host.conn.path(0).cwnd;
        assert!(
            after > before + before / 3 && after <= before + before / 2 + 1,
            "{before} to {after}"
        );
    }
}

#[test]
fn a_stretch_acknowledgement_is_its_packets_in_every_region() {
    // Short paths are Reno-friendly, with a = 9/17 and then 1; long ones cubic; those between go
    // from one region into the other.
    for rtt_us in (1..80).map(|ms| 1_000 * ms).chain([150_000, 300_000]) {
        for w in [40, 100, 333] {
            let mut stretch = after_loss_at(w, rtt_us);
            let mut single = stretch.clone();
            for round in 0..100 {
                let stretches = single.conn.path(0).cwnd.div_ceil(7);
                for part in 0..stretches {
                    for _ in 0..7 {
                        single.ack(0, 1);
                    }
                    stretch.ack(0, 7);
                    let same = stretch.window(0) == single.window(0);
                    assert!(same, "{rtt_us} us, from {w}: round {round}, part {part}");
                    single.now_us += u64::from(rtt_us / stretches);
                    stretch.now_us = single.now_us;
                }
            }
        }
    }
}

#[test]
fn in_recovery_it_only_keeps_its_clock() {
    let mut host = after_loss_at(100, 100_000);
    let event = Event {
        delivered: 50,
        flags: flag::IN_RECOVERY | flag::CWND_LIMITED,
        ..host.event(0, EventKind::Acked)
    };
    assert_eq!(host.send(0, &event).cwnd, 70);
}
