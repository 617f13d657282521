//! A group under greno is one Reno flow: growth, one cut for all, and what must not cut.

use crate::common;
use crate::reference;

use common::Host;
use narrows_laws::raw::{MAX_PATHS, ONE_PACKET};
use narrows_laws::{Control, Event, EventKind, flag};
use proptest::prelude::*;
use reference::group::{Member, cut, growth, whole};

const RTT_US: u64 = 20_000;

fn greno() -> Control {
    "greno".parse().unwrap()
}

/// Paths in congestion avoidance at `windows` and 20 ms, two seconds after their last loss.
fn group(windows: &[u32]) -> Host {
    let mut host = Host::new(greno());
    for path in 0..windows.len() {
        host.report(path, EventKind::Joined);
    }
    for (path, w) in windows.iter().enumerate() {
        host.avoiding_at(path, *w);
    }
    later(&mut host, windows, 2_000_000);
    host
}

/// Time passes, in which every path has had an event and its windows are as before.
fn later(host: &mut Host, windows: &[u32], us: u64) {
    host.now_us += us;
    for _ in 0..3 {
        for (path, w) in windows.iter().enumerate() {
            // All that was out has arrived; the sender was not cwnd-limited.
            let event = Event { delivered: 2 * w, ..host.event(path, EventKind::Acked) };
            host.send(path, &event);
            host.set_cwnd(path, *w);
        }
    }
}

/// A round trip: each path gets its window acknowledged, one packet each time, in turn.
fn round(host: &mut Host, windows: &[u32]) {
    let most = windows.iter().max().unwrap();
    for packet in 0..*most {
        for (path, w) in windows.iter().enumerate() {
            if packet < *w {
                host.ack(path, 1);
            }
        }
        host.now_us += RTT_US / u64::from(*most);
    }
}

fn windows(host: &Host, n: usize) -> Vec<u32> {
    (0..n).map(|path| host.conn.path(path).cwnd).collect()
}

/// Growth in g of one flow with a window of `v` packets, of which some wait: (g / G)^2.
fn in_g(v: f64) -> f64 {
    (1.0 + 1.0 / (4.0 * v)).powi(-2)
}

/// The sum of the windows with their fractions, packets.
fn sum(host: &Host, n: usize) -> f64 {
    (0..n).map(|path| host.window(path) as f64 / ONE_PACKET as f64).sum()
}

#[test]
fn a_group_of_equal_paths_grows_by_one_packet_a_round_trip() {
    for n in 2..=8 {
        let w = vec![40; n];
        let mut host = group(&w);
        let before = sum(&host, n);
        round(&mut host, &w);
        let grown = sum(&host, n) - before;
        assert!((grown - in_g(40.0 * n as f64)).abs() < 1e-4, "{n} paths grow by {grown}");
    }
}

#[test]
fn unequal_windows_become_equal() {
    // The smaller window gets as much per round trip, and a cut takes half of both.
    let mut host = group(&[60, 20]);
    for _ in 0..40 {
        let w = windows(&host, 2);
        round(&mut host, &w);
    }
    let w = windows(&host, 2);
    assert!((w[0] - w[1]).abs_diff(40) <= 1, "{w:?}");
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    let w = windows(&host, 2);
    assert!((w[0] - w[1]).abs_diff(20) <= 1, "{w:?}");
}

#[test]
fn an_event_of_one_path_cuts_all_once() {
    for kind in [EventKind::Recovery, EventKind::Ecn] {
        let w = [40, 30, 20];
        let mut host = group(&w);
        host.report(1, kind);
        assert_eq!(windows(&host, 3), [40, 15, 20], "siblings follow at their own events");
        for _ in 0..3 {
            host.now_us += 1_000;
            host.report(0, EventKind::Acked);
            host.report(2, EventKind::Acked);
        }
        assert_eq!(windows(&host, 3), [20, 15, 10]);
        // What was out at that event may be lost or marked as well.
        host.report(0, kind);
        host.report(2, kind);
        assert_eq!(windows(&host, 3), [20, 15, 10]);
    }
}

#[test]
fn what_left_after_the_cut_and_is_lost_is_a_new_event() {
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [20, 20]);
    host.report(0, EventKind::Recovered);
    host.now_us += 2 * RTT_US;
    host.send(1, &Event { delivered: 41, ..host.event(1, EventKind::Acked) });
    host.report(1, EventKind::Recovery);
    host.report(0, EventKind::Acked);
    assert_eq!(windows(&host, 2), [10, 10]);
}

#[test]
fn two_paths_that_find_the_same_event_at_once_are_cut_once() {
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    // Path 1, on another CPU, has not seen it.
    let event = Event { now_us: host.now_us - 1, ..host.event(1, EventKind::Recovery) };
    host.send(1, &event);
    assert_ne!(host.conn.path(1).word[0], 0);
    host.report(0, EventKind::Acked);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [20, 20]);
}

#[test]
fn a_timeout_is_the_paths_own() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Timeout);
    host.now_us += 1_000;
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [1, 40]);
    // Linux reports a loss first, within microseconds.
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.now_us += 3;
    host.report(0, EventKind::Timeout);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [1, 40]);
}

#[test]
fn an_undone_event_cuts_nobody_who_has_not_followed() {
    let mut host = group(&[40, 40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    host.now_us += 1_000;
    host.report(0, EventKind::Undo);
    host.report(2, EventKind::Acked);
    host.report(0, EventKind::Acked);
    assert_eq!(windows(&host, 3), [40, 20, 40]);
}

#[test]
fn an_undo_leaves_what_siblings_cut() {
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    host.now_us += 2 * RTT_US;
    host.send(1, &Event { delivered: 41, ..host.event(1, EventKind::Acked) });
    host.report(1, EventKind::Recovery);
    let in_recovery = Event { flags: flag::IN_RECOVERY, ..host.event(0, EventKind::Acked) };
    host.send(0, &in_recovery);
    assert_eq!(windows(&host, 2), [10, 10]);
    assert_eq!(host.report(0, EventKind::Undo).cwnd, 20, "41 packets less the other's event");
}

#[test]
fn masks_that_merge_cut_nobody_for_what_was_before_and_those_that_split_are_two() {
    const APART: u64 = 0x8040_2010_0804_0201;
    const TOGETHER: u64 = 0x8040_2010_0804_0303;
    let mut host = group(&[42, 41]);
    host.conn.set_masks(APART);
    host.report(0, EventKind::Acked);
    host.report(1, EventKind::Acked);
    host.report(0, EventKind::Recovery);
    host.now_us += 1_000;
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [21, 41]);
    host.now_us += 100_000;
    host.report(0, EventKind::Recovered);
    host.conn.set_masks(TOGETHER);
    host.report(1, EventKind::Acked);
    host.report(0, EventKind::Acked);
    assert_eq!(windows(&host, 2), [21, 41], "no cut, and no burst");
    host.now_us += 1_000;
    host.report(1, EventKind::Recovery);
    host.report(0, EventKind::Acked);
    assert_eq!(windows(&host, 2), [10, 20]);
    host.conn.set_masks(APART);
    host.report(0, EventKind::Acked);
    assert_eq!(windows(&host, 2), [10, 20]);
}

#[test]
fn who_joins_is_not_cut_for_what_was_before_and_who_leaves_cuts_nobody() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.now_us += 1_000;
    host.report(2, EventKind::Joined);
    host.report(2, EventKind::Acked);
    assert_eq!(host.conn.path(2).cwnd, 10);
    host.srtt8_us[3] = 0;
    host.report(3, EventKind::Joined);
    host.now_us += 2 * RTT_US;
    host.report(0, EventKind::Recovered);
    host.report(0, EventKind::Recovery);
    host.report(3, EventKind::Acked);
    assert_eq!(host.conn.path(3).cwnd, 10, "nothing of it has been acknowledged");
    host.report(0, EventKind::Left);
    host.report(1, EventKind::Acked);
    assert_eq!(host.conn.path(1).cwnd, 40);
}

#[test]
fn a_cut_ends_a_siblings_slow_start() {
    let mut host = group(&[40]);
    host.report(1, EventKind::Joined);
    host.set_cwnd(1, 65);
    host.now_us += 1_000;
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    let line = host.conn.path(1);
    assert_eq!((line.cwnd, line.ssthresh), (32, 32));
}

#[test]
fn after_a_cut_without_recovery_a_round_trip_does_not_grow() {
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    for _ in 0..42 {
        assert_eq!(host.ack(1, 1).cwnd, 20);
        assert_eq!(host.private[1].credit(), 0);
    }
    host.ack(1, 1);
    assert!(host.private[1].credit() > 0);
}

/// Two windows of 80 packets, of 20 and 80 ms.
fn short_and_long() -> Host {
    let mut host = group(&[80, 80]);
    host.srtt8_us[1] = 8 * 80_000;
    for _ in 0..300 {
        let event = Event { delivered: 2, rtt_us: 80_000, ..host.event(1, EventKind::Acked) };
        host.send(1, &event);
        host.set_cwnd(1, 80);
    }
    host
}

#[test]
fn a_longer_path_grows_after_a_cut_as_at_its_new_rate() {
    // 20 acknowledgements are of the flow's round trip, and of the other 60, which come at the rate of a window of
    // 80, as many count as come in 60 ms at that of 40 (39 and 3/8).
    let mut host = short_and_long();
    host.report(0, EventKind::Recovery);
    let event = Event { inflight: 80, delivered: 0, ..host.event(1, EventKind::Acked) };
    host.send(1, &event);
    let mut skipped = 0;
    while host.private[1].credit() == 0 {
        host.ack(1, 1);
        skipped += 1;
    }
    assert_eq!(skipped - 1, 80 - 30, "{skipped}");
}

#[test]
fn a_longer_path_grows_so_in_its_own_recovery_as_well() {
    let mut host = short_and_long();
    host.report(1, EventKind::Recovery);
    let mut grown = |us| {
        let before = host.private[1].credit();
        host.now_us += us;
        let event =
            Event { flags: flag::IN_RECOVERY, delivered: 1, ..host.event(1, EventKind::Acked) };
        host.send(1, &event);
        (host.private[1].credit() - before) as f64
    };
    assert_eq!(grown(19_000), 0.0);
    let (early, late) = (grown(2_000), grown(60_000));
    assert!((early / late - 39.0 / 80.0).abs() < 0.01, "{early}, {late}");
}

#[test]
fn nothing_of_a_window_is_lost_by_rounding() {
    // 41 / 2 + 1/4 - 3/8 leaves 20.375: the fraction comes back as credit.
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.ack(0, 1);
    let before = 20.375;
    let found = host.window(0) as f64 / ONE_PACKET as f64;
    assert!(found > before && found < before + 0.1, "{found}");
}

#[test]
fn a_window_at_the_floor_pays_before_it_grows() {
    // 3 / 2 + 1/4 - 3/8 leaves 1.375; the window stays at 2 and owes 0.625.
    let mut host = group(&[3, 5]);
    round(&mut host, &[3, 5]);
    host.set_cwnd(0, 4);
    host.set_cwnd(0, 3); // without credit
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    assert_eq!(host.conn.path(0).cwnd, 2);
    let growth = in_g(7.0) / (2.0 * 2.0);
    host.ack(0, 1);
    let found = host.private[0].credit() as f64 / ONE_PACKET as f64;
    assert!((found - (growth - 0.625)).abs() < 1e-3, "{found}");
}

#[test]
fn a_path_in_a_long_recovery_grows_with_the_flow() {
    let mut host = group(&[41, 41]);
    host.report(0, EventKind::Recovery);
    let in_recovery = |host: &Host| Event {
        flags: flag::IN_RECOVERY,
        delivered: 1,
        ..host.event(0, EventKind::Acked)
    };
    host.now_us += RTT_US - 1_000;
    let event = in_recovery(&host);
    host.send(0, &event);
    assert_eq!(host.private[0].credit(), 0, "a round trip long the flow does not grow");
    host.now_us += 1_000;
    let event = in_recovery(&host);
    host.send(0, &event);
    let found = host.private[0].credit() as f64 / ONE_PACKET as f64;
    assert!((found - 1.0 / (2.0 * 20.0)).abs() < 1e-3, "{found}");
    assert_eq!(host.conn.path(0).cwnd, 20);
    // Alone it is Reno.
    let mut host = group(&[40]);
    host.report(0, EventKind::Recovery);
    host.now_us += 2 * RTT_US;
    let event = in_recovery(&host);
    host.send(0, &event);
    assert_eq!(host.private[0].credit(), 0);
}

#[test]
fn the_least_of_eight_noisy_round_trip_times_is_near_their_mean() {
    // RTTs of 10 to 30 ms, seen at different times by 8 paths: g is 20 ms, within 7 %.
    let mut host = group(&[40; 8]);
    let mut random = 1u64;
    let mut least = 0.0;
    let rounds = 4_000;
    for n in 0..rounds {
        for path in 0..8 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let rtt_us = 10_000 + (random >> 33) as u32 % 20_001;
            let event = Event { delivered: 2, rtt_us, ..host.event(path, EventKind::Acked) };
            host.send(path, &event);
        }
        if n >= 200 {
            let g = (0..8).map(|path| host.conn.path(path).word[1] >> 5).min().unwrap();
            least += f64::from(g) / 8e3 / f64::from(rounds - 200);
        }
    }
    assert!((18.6..20.0).contains(&least), "{least}");
}

#[test]
fn an_event_is_over_after_a_second_and_its_time_never_comes_back() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.now_us += 1_000_000;
    host.report(1, EventKind::Acked);
    assert_eq!(host.conn.path(1).cwnd, 40);
    host.report(0, EventKind::Acked);
    assert_eq!(host.conn.path(0).word[0], 0);
}

#[test]
fn a_path_that_fell_silent_after_an_event_does_not_cut_the_others_when_its_time_repeats() {
    let mut host = group(&[40, 40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    host.report(2, EventKind::Acked);
    // A clock of 32 bits has come round; the others have gone on.
    host.now_us += (1 << 32) - 500_000;
    for path in 1..3 {
        host.set_cwnd(path, 40);
    }
    host.now_us += 600_000;
    host.report(1, EventKind::Acked);
    host.report(2, EventKind::Acked);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 3)[1..], [40, 40]);
}

#[test]
fn what_was_marked_lost_when_a_path_follows_is_of_the_same_event() {
    // All that was out is lost, and the path learns of its sibling's event by that.
    for kind in [EventKind::Recovery, EventKind::Timeout, EventKind::Ecn] {
        let mut host = group(&[40, 40]);
        host.report(0, EventKind::Recovery);
        host.now_us += 250_000;
        let event = Event { inflight: 0, lost: 40, ..host.event(1, kind) };
        host.send(1, &event);
        assert_eq!(host.conn.path(1).ssthresh, 19, "{kind:?}");
        let mut host = group(&[40, 40]);
        host.report(0, EventKind::Recovery);
        host.now_us += 250_000;
        // Told before, or all that was out was delivered with the mark.
        let event = Event { inflight: 0, ..host.event(1, kind) };
        host.send(1, &event);
        assert_eq!(host.conn.path(1).ssthresh, 19, "{kind:?}");
    }
}

#[test]
fn a_loss_after_a_timeout_is_another_event() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    assert_eq!(host.conn.path(1).cwnd, 19);
    host.now_us += 250_000;
    host.report(1, EventKind::Timeout);
    host.report(1, EventKind::Recovered);
    host.set_cwnd(1, 16);
    host.report(1, EventKind::Recovery);
    assert!(host.conn.path(1).ssthresh <= 8, "{}", host.conn.path(1).ssthresh);
}

#[test]
fn what_was_out_is_of_the_event_also_when_the_group_has_split() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    host.conn.set_masks(0x8040_2010_0804_0201);
    host.report(1, EventKind::Recovery);
    assert_eq!(host.conn.path(1).ssthresh, 19);
    host.report(1, EventKind::Recovered);
    later(&mut host, &[40, 40], 100_000);
    // Alone it is Reno.
    host.set_cwnd(1, 19);
    host.report(1, EventKind::Recovery);
    assert_eq!(host.conn.path(1).ssthresh, 9);
}

#[test]
fn small_windows_grow_alike_and_may_rest_at_one_packet() {
    let w = [2, 2, 2, 2];
    let mut host = group(&w);
    round(&mut host, &w);
    later(&mut host, &w, 2_000_000);
    host.report(0, EventKind::Recovery);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 4), [1, 1, 2, 2]);
    host.report(0, EventKind::Recovered);
    host.report(2, EventKind::Acked);
    host.report(3, EventKind::Acked);
    let w = [1, 1, 1, 3];
    later(&mut host, &w, 2_000_000);
    for (path, w) in w.into_iter().enumerate() {
        host.ack(path, 1); // with the fraction of the cut
        let grown = f64::from(w) * host.credit(path);
        assert!((grown - in_g(6.0) / 4.0).abs() < 1e-6, "path {path}: {grown}");
    }
}

/// Where a path of `n` with 3 packets each rests after a loss, at that RTT.
fn rests(n: usize, rtt_us: u32) -> u32 {
    let w = vec![3; n];
    let mut host = group(&w);
    host.srtt8_us = [8 * rtt_us; MAX_PATHS];
    round(&mut host, &w);
    host.report(0, EventKind::Recovery);
    host.conn.path(0).cwnd
}

#[test]
fn a_group_keeps_two_packets_where_the_wait_of_one_costs_more_than_a_flow_for_each() {
    // One flow has 5/2 packets in g at least, n members with a packet each n in g + 40 ms: two if
    // n < 5 (g + 40 ms) / (2 n g).
    for n in 2..=MAX_PATHS {
        let from_us = 5.0 * 40_000.0 / (2.0 * (n * n) as f64 - 5.0);
        for (rtt_us, least) in [(0.95 * from_us, 2), (1.05 * from_us, 1)] {
            assert_eq!(rests(n, rtt_us as u32), least, "{n} paths at {rtt_us} us");
        }
    }
}

#[test]
fn what_an_acknowledgement_waited_is_in_srtt_but_not_in_r0() {
    let mut host = group(&[40, 40]);
    for path in 0..2 {
        host.srtt8_us[path] = 8 * 30_000;
        for n in 0..100 {
            // Every second one waits for 40 ms.
            let (delivered, rtt_us) = if n % 2 == 0 { (2, 20_000) } else { (1, 60_000) };
            let event = Event { delivered, rtt_us, ..host.event(path, EventKind::Acked) };
            host.send(path, &event);
            host.now_us += 1_000;
        }
        let word = host.conn.path(path).word[1];
        assert!((word >> 5).abs_diff(8 * 20_000) <= 8, "{word}");
        // Half of them are of two packets.
        assert!((14..=17).contains(&(word & 31)), "{word}");
    }
}

fn log_uniform(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (libm::log(from)..=libm::log(to)).prop_map(libm::exp)
}

fn member() -> impl Strategy<Value = Member> {
    (log_uniform(2.0, 1048576.0), log_uniform(80.0, 8e7), 0.3..1.2f64).prop_map(|(w, srtt8, r0)| {
        let r0 = ((srtt8 * r0 / 8.0) as u32 * 8).max(8);
        Member { w: w as u32, srtt8: srtt8 as u32, r0, pairs: 31 }
    })
}

/// Windows of the first of `n` paths while it grows from `from` to `to`, and its window with its fraction
/// where it changed.
fn growing(n: usize, from: u32, to: u32) -> Vec<(u32, f64)> {
    let mut host = group(&vec![from; n]);
    let mut steps = vec![(from, f64::from(from))];
    while steps.last().unwrap().0 < to {
        host.now_us += 1_000;
        for path in 0..n {
            host.ack(path, 1);
        }
        let cwnd = host.conn.path(0).cwnd;
        if cwnd != steps.last().unwrap().0 {
            steps.push((cwnd, host.window(0) as f64 / ONE_PACKET as f64));
        }
    }
    steps
}

/// Half a packet less than a window is next to an even one, so that in the mean as much is sent as with
/// whole packets.
#[test]
fn small_windows_of_a_group_are_even_and_others_are_not() {
    for n in [2, 3] {
        // An even one is left for the next even one, with two packets acknowledged.
        let expected = [4.0, 5.0, 5.5, 7.5, 7.5, 9.5, 9.5, 11.5, 11.5, 13.0, 14.0, 15.0];
        let steps = growing(n, 4, 15);
        assert_eq!(steps.len(), expected.len(), "{n} paths");
        for ((window, at), expected) in steps.into_iter().zip(expected) {
            // An acknowledgement grows it by up to 1/4.
            assert!((0.0..0.35).contains(&(at - expected)), "{n} paths, {window}: {at}");
        }
    }
    let alone: Vec<u32> = growing(1, 4, 15).into_iter().map(|(window, _)| window).collect();
    assert_eq!(alone, (4..=15).collect::<Vec<_>>());
    // 19.9, 13.9, 7.9, 6.9 and 4.9 packets, of which nothing is lost.
    for (before, after) in [(40, 19), (28, 13), (16, 8), (14, 6), (10, 4)] {
        let mut host = group(&[before, before]);
        host.report(0, EventKind::Recovery);
        assert_eq!(windows(&host, 1), [after], "{before}");
        host.report(0, EventKind::Recovered);
        host.now_us += RTT_US;
        let ideal = cut(f64::from(before), 2);
        host.ack(0, 1);
        let kept = host.window(0) as f64 / ONE_PACKET as f64;
        assert!((0.0..0.3).contains(&(kept - ideal)), "{before}: {kept}, not {ideal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn growth_is_the_formulas(
        mut members in prop::collection::vec(member(), 2..=8),
        singles in prop::collection::vec(0..100, 8),
    ) {
        let mut host = Host::new(greno());
        for path in 0..members.len() {
            host.report(path, EventKind::Joined);
        }
        for (path, member) in members.iter_mut().enumerate() {
            host.avoiding(path, member.w, member.srtt8, 0);
            let sample = Event {
                rtt_us: member.r0 / 8,
                delivered: u32::MAX,
                ..host.event(path, EventKind::Acked)
            };
            host.send(path, &sample);
            for _ in 0..singles[path] {
                host.send(path, &Event { delivered: 1, ..sample });
            }
            member.pairs = host.conn.path(path).word[1] & 31;
            host.set_cwnd(path, member.w);
        }
        for i in 0..members.len() {
            let mut paid = host.clone();
            paid.ack(i, 1); // what a cut to the floor left is paid
            let (found, expected) = (paid.credit(i), growth(&members, i));
            let error = (found - expected).abs();
            let bound = expected / f64::from(1 << 27) + 2.0 / ONE_PACKET as f64;
            prop_assert!(error <= bound, "path {i}: {found:e}, not {expected:e}");
        }
    }

    #[test]
    fn a_cut_is_the_formulas(w in 8u32..1 << 20, n in 2usize..=8) {
        let mut host = group(&vec![w; n]);
        let expected = cut(f64::from(w), n);
        let reduced = host.report(0, EventKind::Recovery);
        prop_assert_eq!(f64::from(reduced.ssthresh), whole(expected));
    }
}

/// The time of a congestion event has 32 bits of microseconds, which repeat after 71 minutes and 35 seconds.
#[test]
fn a_path_that_was_silent_for_71_minutes_cuts_nobody_for_its_old_loss() {
    let mut host = group(&[40, 40]);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    let repeats_us = host.now_us + (1 << 32);
    // The other goes on all the time.
    host.now_us = repeats_us + 190_000;
    for _ in 0..3 {
        let event = Event { delivered: 80, ..host.event(1, EventKind::Acked) };
        host.send(1, &event);
        host.set_cwnd(1, 40);
    }
    host.now_us += 10_000;
    host.report(0, EventKind::Acked);
    host.now_us += 1_000;
    host.report(1, EventKind::Acked);
    assert_eq!(host.conn.path(1).cwnd, 40);
}
