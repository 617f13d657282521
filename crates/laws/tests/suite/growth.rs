//! How windows grow: where the scaled integers of earlier kernels froze, overflowed or ran away,
//! and what a law owes to single-path TCP.

use crate::common;
use crate::reference;

use common::{Host, every_window_law};
use narrows_laws::raw::ONE_PACKET;
use narrows_laws::{Conn, Control, Detector, Event, EventKind, Params, State, flag};
use narrows_testkit::Random;
use reference::Flow;

/// The coupled laws that go by windows and losses: alone they are Reno.
fn by_loss() -> impl Iterator<Item = Control> {
    ["lia", "olia", "balia", "ewtcp"].into_iter().map(|law| law.parse().unwrap())
}

/// `n` paths in congestion avoidance at `w` packets and 20 ms.
fn equal(control: Control, n: usize, w: u32) -> Host {
    let mut host = Host::new(control);
    for path in 0..n {
        host.report(path, EventKind::Joined);
    }
    for path in 0..n {
        host.avoiding_at(path, w);
    }
    host
}

/// The Reno of Linux: a counter of acknowledged packets, a packet of window for each full window.
struct LinuxReno {
    cwnd: u32,
    counter: u32,
}

impl LinuxReno {
    fn ack(&mut self, packets: u32) {
        for _ in 0..packets {
            self.counter += 1;
            if self.counter >= self.cwnd {
                self.counter = 0;
                self.cwnd += 1;
            }
        }
    }
}

#[test]
fn n_equal_paths_earn_one_over_n_squared_w_each() {
    // The kernel's OLIA froze above w = 256 for two paths and 40 for five; its LIA was at most 2^12
    // packets slow for one of growth, and so N^2 w / 4096 times too fast above that.
    for control in by_loss() {
        for n in 2..=8 {
            for w in (1..=20).flat_map(|bits| [(1 << bits), (1 << bits) - 1, (1 << bits) * 2 / 3]) {
                if w < 2 {
                    continue;
                }
                let credit = equal(control, n, w).credit(0);
                let expected = 1.0 / ((n * n) as f64 * f64::from(w));
                let error = (credit / expected - 1.0).abs();
                assert!(error < 0.01, "{control}, {n} paths at {w}: {credit:e}, not {expected:e}");
            }
        }
    }
}

#[test]
fn growth_is_smooth_where_lia_stepped() {
    // The kernel's coarse alpha made w = 700 with two paths, and w = 300 with three, nearly half too
    // slow, and the next window twice as fast.
    for (n, w) in [(2, 700), (3, 300)] {
        let mut host = equal(Control::LIA, n, w);
        let mut acked = 0usize;
        while host.ack(0, 1).cwnd == w {
            acked += 1;
        }
        let expected = n * n * w as usize;
        assert!(acked.abs_diff(expected) <= expected / 100, "{acked} packets, not {expected}");
    }
}

#[test]
fn lia_distinguishes_the_best_path_on_slow_links() {
    // w = 10 at 50 ms was 0 in the kernel's key, as all slower paths were: they tied, and the last
    // one won. The best path here is the first.
    let flows = [Flow { w: 10, rtt8: 8 * 50_000, l: 1 }, Flow { w: 10, rtt8: 8 * 300_000, l: 1 }];
    let mut host = Host::new(Control::LIA);
    for (path, flow) in flows.iter().enumerate() {
        host.avoiding(path, flow.w, flow.rtt8, 0);
    }
    for path in 0..2 {
        let (ours, theirs) = (host.credit(path), reference::lia(&flows, path));
        assert!((ours / theirs - 1.0).abs() < 1e-6, "path {path}: {ours} and {theirs}");
    }
}

#[test]
fn lia_squares_round_trip_times_of_minutes() {
    // srtt * srtt in 32 bits was over at 8 ms.
    let mut host = Host::new(Control::LIA);
    for path in 0..2 {
        host.avoiding(path, 100, u32::MAX - 7, 0);
    }
    assert!((host.credit(0) * 400.0 - 1.0).abs() < 1e-6);
}

#[test]
fn olia_holds_where_its_products_overflowed() {
    // eps_den * w * rate was beyond 64 bits at 16384 (two paths) and 4096 (four).
    for (n, w) in [(2, 16_384), (2, 1 << 20), (4, 4_096), (8, 1 << 20)] {
        let mut host = equal(Control::OLIA, n, w);
        // Path 1 is better than the others, but no larger: it earns epsilon, they give it.
        for path in 0..n {
            host.set_cwnd(path, if path == 1 { w - 1 } else { w });
        }
        let better = Event {
            delivered: 1_000_000,
            flags: flag::IN_RECOVERY,
            ..host.event(1, EventKind::Acked)
        };
        host.send(1, &better);
        let flows: Vec<Flow> = (0..n)
            .map(|path| Flow {
                w: if path == 1 { w - 1 } else { w },
                rtt8: 8 * 20_000,
                l: if path == 1 { 1_000_000 } else { 1 },
            })
            .collect();
        for path in 0..n {
            let (first, second) = reference::olia(&flows, path);
            let error = (host.credit(path) - first - second).abs();
            assert!(error < 1e-6 * (first + second.abs()) + 2e-12, "{n} paths at {w}, path {path}");
            assert_eq!(second > 0.0, path == 1);
        }
    }
}

#[test]
fn olia_gives_to_all_best_paths_that_tie() {
    // Exact ties in l / rtt^2: 400 packets at 20 ms are as good as 100 at 10 ms. Both are smaller
    // than path 2, and share what it gives.
    let mut host = Host::new(Control::OLIA);
    for (path, w, rtt_us, l) in [(0, 10, 20_000, 399), (1, 10, 10_000, 100), (2, 20, 50_000, 1)] {
        host.avoiding(path, w, 8 * rtt_us, l);
    }
    let flows = [
        Flow { w: 10, rtt8: 160_000, l: 400 },
        Flow { w: 10, rtt8: 80_000, l: 100 },
        Flow { w: 20, rtt8: 400_000, l: 1 },
    ];
    let (first, second) = reference::olia(&flows, 0);
    assert_eq!(second, 1.0 / 3.0 / 2.0 / 10.0);
    assert!((host.credit(0) - first - second).abs() < 1e-9);
}

#[test]
fn olia_counts_packets_in_recovery_and_once_a_loss_event() {
    let mut host = equal(Control::OLIA, 2, 100);
    host.ack(0, 60);
    host.report(0, EventKind::Recovery);
    assert_eq!(host.conn.path(0).word[0], 60);
    let recovering =
        Event { delivered: 70, flags: flag::IN_RECOVERY, ..host.event(0, EventKind::Acked) };
    host.send(0, &recovering);
    assert_eq!(host.conn.path(0).word[0], 70, "max(60 before the loss, 70 since)");
    host.report(0, EventKind::Timeout);
    assert_eq!(host.conn.path(0).word[0], 70, "the timer belongs to the same loss");
    host.report(0, EventKind::Recovered);
    host.report(0, EventKind::Recovery);
    assert_eq!(host.conn.path(0).word[0], 70, "70 before the second loss, 0 since");
    host.report(0, EventKind::Recovered);
    host.report(0, EventKind::Recovery);
    assert_eq!(host.conn.path(0).word[0], 0);
}

#[test]
fn olia_windows_may_fall_to_one_packet_and_rise_again() {
    let mut host = Host::new(Control::OLIA);
    for path in 0..2 {
        host.report(path, EventKind::Joined);
    }
    // Path 0 has the largest window, path 1 is better: epsilon outweighs path 0's growth.
    host.avoiding(0, 4, 8 * 400_000, 0);
    host.avoiding(1, 3, 8 * 1_000, 1_000_000);
    for _ in 0..1_000 {
        host.now_us += 400_000;
        host.set_cwnd(1, 3);
        host.ack(0, 1);
    }
    assert_eq!(host.conn.path(0).cwnd, 3, "shrinks until it is no longer larger than the other");
    host.set_cwnd(1, 1);
    for _ in 0..10_000 {
        host.now_us += 400_000;
        host.set_cwnd(1, 1);
        host.ack(0, 1);
    }
    assert_eq!(host.conn.path(0).cwnd, 1);
}

#[test]
fn growth_is_at_most_a_round_trip_old() {
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        let credit = |host: &Host| {
            let mut after = host.clone();
            after.ack(0, 1);
            after.window(0) - host.window(0)
        };
        let before = credit(&host);
        host.ack(0, 1);
        // EWTCP's growth depends on the number of siblings, that of the others on their windows too.
        host.report(1, EventKind::Left);
        host.now_us += 19_999;
        assert_eq!(credit(&host), before, "{control} within the round trip");
        host.now_us += 1;
        assert_eq!(credit(&host), ONE_PACKET / 100 + 1, "{control} alone after it");
    }
}

#[test]
fn growth_is_new_with_a_new_mask_and_a_new_window() {
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        host.ack(0, 1);
        host.set_cwnd(0, 10);
        let mut fresh = host.clone();
        fresh.private[0].discard_growth();
        assert_eq!(host.ack(0, 1).cwnd, fresh.ack(0, 1).cwnd);
        assert_eq!(host.private[0].credit(), fresh.private[0].credit(), "{control}: window");

        host.conn.set_masks(u64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]));
        let before = host.window(0);
        host.ack(0, 1);
        assert_eq!(host.window(0) - before, ONE_PACKET / 10 + 1, "{control}: mask");
    }
}

#[test]
fn balia_does_not_grow_before_it_has_weighed_its_paths() {
    // The kernel began with "0 ACKs for a packet of growth".
    let host = equal(Control::BALIA, 2, 10);
    assert!(host.credit(0) < 1.0 / 39.0);
}

#[test]
fn reno_is_the_counter_of_linux_for_ever() {
    let mut random = Random(1);
    for start in [2, 3, 10, 1_000, 65_535, (1 << 20) - 3] {
        let mut host = Host::new(Control::RENO);
        host.avoiding_at(0, start);
        let mut linux = LinuxReno { cwnd: start, counter: 0 };
        for step in 0..50_000 {
            let packets = 1 + random.below(u64::from(linux.cwnd.min(64))) as u32;
            linux.ack(packets);
            assert_eq!(host.ack(0, packets).cwnd, linux.cwnd, "from {start}, step {step}");
        }
    }
}

#[test]
fn reno_takes_exactly_a_window_at_every_window() {
    for w in (2..=1 << 20).step_by(997).chain([1 << 20]) {
        let mut host = Host::new(Control::RENO);
        host.avoiding_at(0, w);
        assert_eq!(host.ack(0, w - 1).cwnd, w);
        assert_eq!(host.ack(0, 1).cwnd, w + 1);
        assert_eq!(host.private[0].credit(), 0, "nothing is left of {w} credits");
    }
}

/// A life of one path: growth, losses, timeouts, ECN, undo, idleness.
fn life(control: Control, path: usize, host: &mut Host, seed: u64) -> Vec<(u32, u32, i64)> {
    let mut random = Random(seed);
    let mut windows = Vec::new();
    for step in 0..20_000 {
        let output = match random.below(300) {
            0 => {
                host.report(path, EventKind::Recovery);
                host.report(path, EventKind::Recovered)
            }
            1 if step % 3 == 0 => host.report(path, EventKind::Timeout),
            2 => host.report(path, EventKind::Ecn),
            3 if step % 2 == 0 => host.report(path, EventKind::Undo),
            4 if step % 5 == 0 => host.report(path, EventKind::Restart),
            _ => host.ack(path, 1 + random.below(4) as u32),
        };
        host.now_us += random.below(3_000);
        assert!(output.cwnd >= 1 && output.ssthresh >= 1, "{control}");
        windows.push((output.cwnd, output.ssthresh, host.private[path].credit()));
    }
    windows
}

#[test]
fn one_path_alone_is_reno_to_the_bit() {
    let mut reno = Host::new(Control::RENO);
    reno.report(0, EventKind::Joined);
    let expected = life(Control::RENO, 0, &mut reno, 7);
    for control in by_loss().chain(["greno".parse().unwrap()]) {
        let mut host = Host::new(control);
        host.report(0, EventKind::Joined);
        assert!(life(control, 0, &mut host, 7) == expected, "{control} on its only path");
    }
}

#[test]
fn paths_with_masks_of_one_are_reno_to_the_bit() {
    let mut reno = Host::new(Control::RENO);
    reno.report(0, EventKind::Joined);
    let expected = life(Control::RENO, 0, &mut reno, 7);
    for control in by_loss().chain(["greno".parse().unwrap()]) {
        let control = Control { detector: Detector::DISJOINT, ..control };
        let mut host = Host::new(control);
        for path in 0..3 {
            host.report(path, EventKind::Joined);
        }
        host.avoiding_at(0, 50);
        host.avoiding_at(2, 500);
        assert!(life(control, 1, &mut host, 7) == expected, "{control}");
    }
}

#[test]
fn olia_stretches_as_well_while_its_sets_stand() {
    let mut host = Host::new(Control::OLIA);
    host.avoiding(0, 10, 8 * 10_000, 1_000_000);
    host.avoiding(1, 90, 8 * 10_000, 10);
    for packets in 1..64 {
        for path in 0..2 {
            let mut single = host.clone();
            for _ in 0..packets {
                single.ack(path, 1);
            }
            host.ack(path, packets);
            assert_eq!(host.window(path), single.window(path), "{packets} on path {path}");
        }
    }
}

#[test]
fn slow_start_hands_its_leftover_packets_to_congestion_avoidance() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 20);
    host.report(0, EventKind::Timeout);
    assert_eq!((host.conn.path(0).cwnd, host.conn.path(0).ssthresh), (1, 10));
    assert_eq!(host.ack(0, 4).cwnd, 5);
    // 5 packets lead to ssthresh, 7 count at w = 10, and 3 more make it 11.
    assert_eq!(host.ack(0, 12).cwnd, 10);
    assert_eq!(host.ack(0, 2).cwnd, 10);
    assert_eq!(host.ack(0, 1).cwnd, 11);
}

#[test]
fn a_silent_sibling_does_not_throttle() {
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        host.now_us += 900_000;
        assert!(host.credit(0) < 1.0 / 390.0, "{control}: still coupled after 0.9 s");
        host.now_us += 200_000;
        assert_eq!(host.credit(0), {
            let mut reno = Host::new(Control::RENO);
            reno.avoiding_at(0, 100);
            reno.credit(0)
        });
        // On a path of 10 s, 1.1 s are no silence.
        let mut host = equal(control, 2, 100);
        host.avoiding(1, 100, 80_000_000, 0);
        let coupled = host.credit(0);
        host.now_us += 1_100_000;
        assert_eq!(host.credit(0), coupled, "{control}");
    }
}

#[test]
fn silence_is_two_round_trips_and_at_least_a_second() {
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        for path in 0..2 {
            host.avoiding(path, 100, 8 * 1_000_000, 0);
        }
        let coupled = host.credit(0);
        host.now_us += 1_900_000;
        assert_eq!(host.credit(0), coupled, "{control}: 1.9 of 1 s");
        host.now_us += 200_000;
        assert!(host.credit(0) > 1.0 / 101.0, "{control}: 2.1 of 1 s");
    }
}

#[test]
fn any_event_breaks_the_silence() {
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        host.now_us += 900_000;
        host.report(1, EventKind::Recovered);
        let coupled = host.credit(0);
        host.now_us += 900_000;
        assert_eq!(host.credit(0), coupled, "{control}");
    }
}

#[test]
fn a_siblings_clock_may_be_ahead() {
    // It ran on another CPU while this event waited.
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        let coupled = host.credit(0);
        host.now_us += 50_000;
        host.set_cwnd(1, 100);
        host.now_us -= 50_000;
        assert_eq!(host.credit(0), coupled, "{control}");
    }
}

#[test]
fn before_its_first_rtt_sample_a_path_is_alone() {
    for control in by_loss() {
        let mut host = equal(control, 1, 100);
        host.avoiding(1, 100, 0, 0);
        assert_eq!(host.conn.path(1).srtt8_us, 0);
        assert!((host.credit(1) * 100.0 - 1.0).abs() < 1e-9, "{control}: as Reno");
        assert!((host.credit(0) * 100.0 - 1.0).abs() < 1e-9, "{control}: its sibling as well");
    }
}

#[test]
fn only_active_siblings_count() {
    for control in by_loss() {
        for state in [State::Joining, State::Idle, State::Backup, State::Failed] {
            let mut host = equal(control, 2, 100);
            let event = Event { state: state as u32, ..host.event(1, EventKind::Acked) };
            host.send(1, &event);
            assert!(host.credit(0) > 1.0 / 101.0, "{control}: sibling {state:?}");
        }
        let mut host = equal(control, 2, 100);
        host.report(1, EventKind::Left);
        assert!(host.credit(0) > 1.0 / 101.0, "{control}: sibling gone");
    }
}

#[test]
fn a_sibling_in_recovery_counts_with_the_window_after_it() {
    // RFC 6356 section 3: ssthresh instead of cwnd in fast recovery.
    for control in by_loss() {
        let mut host = equal(control, 2, 100);
        host.report(1, EventKind::Recovery);
        let inflated = Event {
            cwnd: 103,
            delivered: 1,
            flags: flag::IN_RECOVERY,
            ..host.event(1, EventKind::Acked)
        };
        host.send(1, &inflated);
        assert_eq!(host.conn.path(1).cwnd, host.conn.path(1).ssthresh, "{control}");
        let in_recovery = host.credit(0);
        host.report(1, EventKind::Recovered);
        assert_eq!(host.credit(0), in_recovery, "{control}");
    }
}

#[test]
fn more_than_a_million_packets_of_one_event_do_not_count() {
    for control in every_window_law() {
        let mut host = equal(control, 2, 2);
        let mut bounded = host.clone();
        host.ack(0, u32::MAX);
        bounded.ack(0, 1 << 20);
        assert!(bounded.conn.path(0).cwnd > 1_000, "{control}");
        assert_eq!(host.window(0), bounded.window(0), "{control}");
    }
}

/// A host whose law runs with a parameter set to another value.
fn under(control: Control, set: (&str, &str)) -> Host {
    let params = Params::default().with(&[set]);
    let mut host = Host::new(control);
    host.conn = Conn::with_params(control, &params);
    host
}

#[test]
fn fallback_is_one_of_eight_equal_paths_and_reno_where_nothing_is_coupled() {
    let control: Control = "fallback".parse().unwrap();
    for w in [2, 10, 1_000, 1 << 20] {
        for n in [1, 2, 8] {
            let credit = equal(control, n, w).credit(0);
            assert!(
                (credit * 64.0 * f64::from(w) - 1.0).abs() < 1e-3,
                "{n} paths at {w}: {credit}"
            );
        }
        let disjoint = Control { detector: Detector::DISJOINT, ..control };
        assert_eq!(equal(disjoint, 2, w).credit(0), equal(Control::RENO, 1, w).credit(0));
    }
}

#[test]
fn olia_s_floor_is_its_parameter() {
    for floor in [1, 2] {
        let mut host = under(Control::OLIA, ("olia.floor", &floor.to_string()));
        for path in 0..2 {
            host.report(path, EventKind::Joined);
            host.avoiding_at(path, 3);
        }
        assert_eq!(host.report(0, EventKind::Recovery).ssthresh, floor);
    }
}

#[test]
fn a_window_at_ssthresh_is_in_slow_start_where_asked() {
    for (set, grown) in [("off", 0.1), ("on", 1.0)] {
        let mut host = under(Control::RENO, ("window.slow_start_at_ssthresh", set));
        host.report(0, EventKind::Joined);
        let at = Event { cwnd: 10, ssthresh: 10, ..host.event(0, EventKind::Acked) };
        host.send(0, &at);
        assert!((host.credit(0) - grown).abs() < 1e-9, "{set}: {}", host.credit(0));
    }
}

/// Packets acknowledged two at a time: where acknowledgements count a window takes twice the packets for
/// each of growth, but for laws that go by time or round trips.
#[test]
fn growth_halves_with_delayed_acknowledgements_where_these_count() {
    for control in every_window_law() {
        let credit = |set, acked| {
            let mut host = under(control, ("window.count_acks", set));
            host.report(0, EventKind::Joined);
            host.avoiding_at(0, 100);
            let before = host.private[0].credit();
            host.ack(0, acked);
            host.private[0].credit() - before
        };
        let (one, two) = (credit("off", 1), credit("off", 2));
        let by_time = ["cubic", "gcubic", "wvegas"].contains(&control.law.name());
        assert_eq!(credit("on", 1), one, "{control}");
        assert_eq!(credit("on", 2), if by_time { two } else { one }, "{control}");
        assert!(by_time || (one > 0 && two == 2 * one), "{control}: {one}, {two}");
    }
}

/// Linux before 4.0: slow start counts packets up to ssthresh, and what is left of the acknowledgement is
/// nobody's.
#[test]
fn an_acknowledgement_of_slow_start_is_not_one_of_congestion_avoidance() {
    for (set, left) in [("off", true), ("on", false)] {
        let mut host = under(Control::RENO, ("window.count_acks", set));
        host.report(0, EventKind::Joined);
        let below = Event { cwnd: 10, ssthresh: 12, ..host.event(0, EventKind::Acked) };
        host.send(0, &below);
        let output = host.ack(0, 4);
        assert_eq!((output.cwnd, host.private[0].credit() > 0), (12, left), "{set}");
    }
}
