//! A group under gcubic is one CUBIC flow, and a path alone is CUBIC.

use crate::common;
use crate::reference;

use common::Host;
use narrows_laws::raw::ONE_PACKET;
use narrows_laws::replay::trace;
use narrows_laws::{Conn, Control, Event, EventKind, Private, flag};
use proptest::prelude::*;
use reference::Cubic;
use reference::group::{CubicMember, Member, cubic_cut};

fn gcubic() -> Control {
    "gcubic".parse().unwrap()
}

/// Paths in congestion avoidance at `windows`, which have not yet grown, long after their last loss.
fn group(windows: &[u32], rtts_us: &[u32]) -> Host {
    let mut host = Host::new(gcubic());
    for path in 0..windows.len() {
        host.report(path, EventKind::Joined);
    }
    for (path, (w, rtt_us)) in windows.iter().zip(rtts_us).enumerate() {
        host.avoiding(path, *w, 8 * rtt_us, 0);
    }
    later(&mut host, windows, 2_000_000);
    host
}

/// Time passes; every path has had an event, all that was out has arrived, windows are as given.
fn later(host: &mut Host, windows: &[u32], us: u64) {
    host.now_us += us;
    for _ in 0..3 {
        for (path, w) in windows.iter().enumerate() {
            let event = Event { delivered: 2 * w, ..host.event(path, EventKind::Acked) };
            host.send(path, &event);
            let avoiding = Event { cwnd: *w, ssthresh: 2, ..host.event(path, EventKind::Acked) };
            host.send(path, &avoiding);
        }
    }
}

/// An event of path 0, which all follow and which is over for all; returns its window before.
fn event(host: &mut Host, n: usize) -> f64 {
    let windows = windows(host, n);
    // Each has grown before, so knows its part.
    for path in 0..n {
        host.ack(path, 1);
    }
    let before = window(host, 0);
    host.report(0, EventKind::Recovery);
    for (path, w) in windows.iter().enumerate().skip(1) {
        let event = Event { delivered: 2 * w, ..host.event(path, EventKind::Acked) };
        host.send(path, &event);
    }
    host.report(0, EventKind::Recovered);
    for (path, w) in windows.iter().enumerate() {
        let event = Event { delivered: 2 * w, ..host.event(path, EventKind::Acked) };
        host.send(path, &event);
    }
    before
}

fn windows(host: &Host, n: usize) -> Vec<u32> {
    (0..n).map(|path| host.conn.path(path).cwnd).collect()
}

fn window(host: &Host, path: usize) -> f64 {
    host.window(path) as f64 / ONE_PACKET as f64
}

fn sum(host: &Host, n: usize) -> f64 {
    (0..n).map(|path| window(host, path)).sum()
}

/// `n` paths of RTT `rtt_us` after an event at a total of `w` packets follow one CUBIC for `seconds`;
/// returns the last sum.
fn follow(n: usize, w: u32, rtt_us: u32, seconds: f64) -> f64 {
    let mut host = group(&vec![w / n as u32; n], &vec![rtt_us; n]);
    event(&mut host, n);
    let after = n as f64 * cubic_cut(f64::from(w) / n as f64, n);
    let mut reference = Cubic::new(after, f64::from(w), f64::from(w));
    let start = host.now_us;
    while host.now_us < start + (seconds * 1e6) as u64 {
        let t = (host.now_us - start) as f64 / 1e6;
        for path in 0..n {
            for _ in 0..host.conn.path(path).cwnd {
                host.ack(path, 1);
            }
        }
        for _ in 0..reference.w as u32 {
            reference.acked(t, f64::from(rtt_us) / 1e6);
        }
        let (ours, one) = (sum(&host, n), reference.w);
        assert!((ours - one).abs() <= 1.0 + 0.01 * one, "{n} paths at {t} s: {ours}, {one}");
        host.now_us += u64::from(rtt_us);
    }
    sum(&host, n)
}

#[test]
fn a_path_alone_is_cubic_to_the_bit() {
    for (detector, start) in [("", ""), ("+disjoint", ""), ("+disjoint", "+hystart++")] {
        for (paths, seed) in [(1, 1), (1, 2), (3, 3), (8, 4)] {
            if paths > 1 && detector.is_empty() {
                continue;
            }
            let new = |law: &str| {
                let control: Control = format!("{law}{detector}{start}").parse().unwrap();
                (Conn::new(control), vec![Private::default(); paths])
            };
            let (mut group, mut cubic) = (new("gcubic"), new("cubic"));
            let mut step = 0;
            trace(seed, paths, 20_000, |path, event| {
                let found = group.0.event(path, &mut group.1[path], event);
                let expected = cubic.0.event(path, &mut cubic.1[path], event);
                let credits = [&group, &cubic].map(|(_, private)| private[path].credit());
                assert_eq!(
                    (&found, credits[0]),
                    (&expected, credits[1]),
                    "{detector}{start} {paths} paths, trace {seed}, event {step}: {event:?}"
                );
                step += 1;
                found
            });
        }
    }
}

#[test]
fn a_group_follows_one_cubic_through_its_plateau() {
    // W_max 1200, K = cbrt(360 / 0.4) = 9.65 s, RTT 100 ms: Reno would be far below.
    for n in [2, 3, 4, 8] {
        let plateau = follow(n, 1_200, 100_000, 9.7);
        assert!((plateau - 1_200.0).abs() < 6.0, "{n}: {plateau}");
        assert!(follow(n, 1_200, 100_000, 16.0) > 1_290.0);
    }
}

/// Mean of the windows' sum of `n` paths over 1000 s, with the same events whatever `n` is: 1.5 to 7 s apart.
fn through_events(n: usize, rtt_us: u32) -> f64 {
    let mut host = group(&vec![48 / n as u32; n], &vec![rtt_us; n]);
    let (mut random, mut next, mut all, mut rounds) = (1u64, 4_000_000u64, 0.0, 0.0);
    let start = host.now_us;
    while host.now_us < start + 1_000_000_000 {
        for path in 0..n {
            for _ in 0..host.conn.path(path).cwnd {
                host.ack(path, 1);
            }
        }
        all += windows(&host, n).iter().sum::<u32>() as f64;
        rounds += 1.0;
        if host.now_us - start > next {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            next += 1_500_000 + (random >> 33) % 5_500_000;
            event(&mut host, n);
        }
        host.now_us += u64::from(rtt_us);
    }
    all / rounds
}

#[test]
fn small_windows_grow_through_many_events_as_one_cubic() {
    for rtt_us in [80_000, 300_000] {
        let one = through_events(1, rtt_us);
        for n in [2, 4, 8] {
            let ours = through_events(n, rtt_us);
            assert!((ours / one - 1.0).abs() < 0.08, "{n} paths of {rtt_us} us: {ours}, {one}");
        }
    }
}

#[test]
fn short_paths_are_reno_friendly() {
    for n in [2, 4, 8] {
        // 1 ms, 120 packets in all: 9/17 packet per round trip for the group, a whole one above 120.
        let w = follow(n, 120, 1_000, 0.02);
        let after = 0.7 * 120.0 + 0.15 * n as f64 - 0.95;
        assert!((w - after - 20.0 * 9.0 / 17.0).abs() < 0.5, "{n}: {w}");
        assert!(follow(n, 120, 1_000, 0.5) > 480.0);
    }
}

#[test]
fn unequal_windows_become_equal_in_the_cubic_too() {
    let mut host = group(&[900, 300], &[100_000; 2]);
    for cycle in 0..4 {
        event(&mut host, 2);
        for _ in 0..110 {
            for path in 0..2 {
                for _ in 0..host.conn.path(path).cwnd {
                    host.ack(path, 1);
                }
            }
            host.now_us += 100_000;
        }
        let gap = window(&host, 0) - window(&host, 1);
        let expected = 600.0 * libm::pow(0.7, f64::from(cycle + 1));
        assert!((gap - expected).abs() < 6.0, "cycle {cycle}: {gap}, not {expected}");
    }
}

#[test]
fn fast_convergence_is_the_groups() {
    // An event below the plateau of the last: all lead to 0.85 of the sum.
    let mut host = group(&[600, 600], &[100_000; 2]);
    event(&mut host, 2);
    later(&mut host, &[500, 500], 2_000_000);
    event(&mut host, 2);
    let start = host.now_us;
    // K = cbrt(0.15 * 1000 / 0.4) = 7.2 s
    while host.now_us < start + 7_200_000 {
        for path in 0..2 {
            for _ in 0..host.conn.path(path).cwnd {
                host.ack(path, 1);
            }
        }
        host.now_us += 100_000;
    }
    assert!((sum(&host, 2) - 850.0).abs() < 5.0, "{}", sum(&host, 2));
}

#[test]
fn an_event_of_one_path_cuts_all_once() {
    for kind in [EventKind::Recovery, EventKind::Ecn] {
        let mut host = group(&[40, 30, 20], &[20_000; 3]);
        host.report(1, kind);
        assert_eq!(windows(&host, 3), [40, 20, 20]);
        for _ in 0..3 {
            host.now_us += 1_000;
            host.report(0, EventKind::Acked);
            host.report(2, EventKind::Acked);
        }
        // 0.7 w + 0.15 - 0.95 / 3
        assert_eq!(windows(&host, 3), [27, 20, 13]);
        host.report(0, kind);
        host.report(2, kind);
        assert_eq!(windows(&host, 3), [27, 20, 13]);
    }
}

#[test]
fn undo_restores_the_epoch() {
    let mut calm = group(&[600, 600], &[100_000; 2]);
    event(&mut calm, 2);
    calm.ack(0, 420);
    let mut startled = calm.clone();
    startled.report(0, EventKind::Recovery);
    startled.report(0, EventKind::Undo);
    for host in [&mut calm, &mut startled] {
        for _ in 0..60 {
            host.now_us += 100_000;
            host.ack(0, 420);
        }
    }
    let gap = window(&calm, 0) - window(&startled, 0);
    assert!(gap.abs() <= 1.5, "but for the fraction that the reduction took: {gap}");
}

#[test]
fn an_undo_leaves_the_epoch_of_a_siblings_event() {
    let mut host = group(&[600, 600], &[100_000; 2]);
    event(&mut host, 2);
    let mut followed = host.clone();
    for host in [&mut host, &mut followed] {
        later(host, &[420, 420], 2_000_000);
    }
    followed.report(0, EventKind::Recovery);
    followed.report(0, EventKind::Recovered);
    followed.now_us += 200_000;
    let event = Event { delivered: 800, ..followed.event(1, EventKind::Acked) };
    followed.send(1, &event);
    followed.report(1, EventKind::Recovery);
    followed.report(0, EventKind::Acked);
    let before = followed.private[0];
    followed.report(0, EventKind::Undo);
    followed.now_us += 5_000_000;
    let mut kept = followed.clone();
    kept.private[0] = before;
    for host in [&mut kept, &mut followed] {
        host.ack(0, 2_000);
    }
    let gap = window(&kept, 0) - window(&followed, 0);
    assert!(gap.abs() < 3.0, "but for the fraction of the cut: {gap}");
}

/// What a path, one of two, grows by in congestion avoidance after a timeout, in so many windows of 100 ms.
fn grown_after_timeout(host: &mut Host, path: usize, windows: u32) -> f64 {
    let ssthresh = host.conn.path(path).ssthresh;
    host.ack(path, ssthresh - 1);
    for _ in 0..windows {
        host.ack(path, ssthresh);
        host.report(1 - path, EventKind::Acked);
        host.now_us += 100_000;
    }
    window(host, path) - f64::from(ssthresh)
}

#[test]
fn a_timeout_is_the_paths_own_and_its_epoch_begins_at_its_plateau() {
    let mut host = group(&[600, 600], &[100_000; 2]);
    event(&mut host, 2);
    host.report(0, EventKind::Timeout);
    host.report(1, EventKind::Acked);
    assert_eq!(windows(&host, 2), [1, 419]);
    // In 3 s the cubic from a plateau has 0.4 * 27 packets for both, this path half.
    let grown = grown_after_timeout(&mut host, 0, 30);
    assert!(grown > 3.0 && grown < 10.0, "{grown}");
}

#[test]
fn a_timeout_after_a_loss_of_what_was_out_begins_an_epoch_at_its_plateau_too() {
    // Path 1 follows and begins to grow before the loss is found: nothing is cut, and an epoch runs.
    let mut host = group(&[600, 600], &[20_000, 100_000]);
    for path in 0..2 {
        host.ack(path, 1);
    }
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.now_us += 20_000;
    host.ack(1, 1);
    for _ in 0..59 {
        host.ack(1, 10);
    }
    host.now_us += 400_000;
    host.report(1, EventKind::Recovery);
    host.report(1, EventKind::Timeout);
    // The old epoch, from a plateau of nothing, would give 54 in 10 s.
    let grown = grown_after_timeout(&mut host, 1, 100);
    assert!(grown > 65.0 && grown < 90.0, "{grown}");
}

#[test]
fn masks_that_change_move_no_window_and_curves_go_on() {
    const APART: u64 = 0x8040_2010_0804_0201;
    const TOGETHER: u64 = 0x8040_2010_0804_0303;
    for (first, then) in [(APART, TOGETHER), (TOGETHER, APART)] {
        // In the concave part, and beyond the plateau.
        for seconds in [3, 14] {
            let mut host = group(&[600, 600], &[100_000; 2]);
            host.conn.set_masks(first);
            event(&mut host, 2);
            let round = |host: &mut Host| {
                let before = window(host, 0);
                for path in 0..2 {
                    for _ in 0..host.conn.path(path).cwnd {
                        host.ack(path, 1);
                    }
                }
                host.now_us += 100_000;
                window(host, 0) - before
            };
            for _ in 0..10 * seconds {
                round(&mut host);
            }
            let mut as_before = host.clone();
            host.conn.set_masks(then);
            let five = |host: &mut Host| (0..5).map(|_| round(host)).sum::<f64>();
            let (next, unchanged) = (five(&mut host), five(&mut as_before));
            // Where the cubic was, with half or twice the constant: the slope goes with its cube root.
            let ratio = if then == TOGETHER { 0.794 } else { 1.26 };
            assert!(
                (next / unchanged - ratio).abs() < 0.07,
                "after {seconds} s, from {first:x}: {next} in five round trips, {unchanged} without"
            );
        }
    }
}

#[test]
fn in_recovery_it_only_keeps_its_clock() {
    let mut host = group(&[100, 100], &[100_000; 2]);
    host.report(0, EventKind::Recovery);
    let event = Event {
        delivered: 50,
        flags: flag::IN_RECOVERY | flag::CWND_LIMITED,
        ..host.event(0, EventKind::Acked)
    };
    assert_eq!(host.send(0, &event).cwnd, 69);
}

fn log_uniform(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (libm::log(from)..=libm::log(to)).prop_map(libm::exp)
}

fn member() -> impl Strategy<Value = Member> {
    (log_uniform(20.0, 20_000.0), log_uniform(4e4, 1.2e6)).prop_map(|(w, srtt8)| {
        let srtt8 = srtt8 as u32 / 8 * 8;
        Member { w: w as u32, srtt8, r0: srtt8, pairs: 31 }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn each_member_has_its_part_of_the_curve(
        members in prop::collection::vec(member(), 2..=8),
        fast in any::<bool>(),
    ) {
        let n = members.len();
        let of = |part: fn(&Member) -> u32| members.iter().map(part).collect::<Vec<_>>();
        let mut host = group(&of(|m| m.w), &of(|m| m.srtt8 / 8));
        if fast {
            // A plateau that the next event is below.
            let above: Vec<u32> = members.iter().map(|m| 4 * m.w).collect();
            later(&mut host, &above, 2_000_000);
            event(&mut host, n);
            later(&mut host, &of(|m| m.w), 20_000_000);
        }
        let w = event(&mut host, n);
        let rtt = f64::from(members[0].srtt8) / 8e6;
        let mut reference = CubicMember::new(&members, 0, w, fast);
        let start = host.now_us;
        for _ in 0..20 {
            let t = (host.now_us - start) as f64 / 1e6;
            for _ in 0..host.conn.path(0).cwnd.min(5_000) {
                host.ack(0, 1);
                reference.acked(t, rtt);
            }
            host.now_us += u64::from(members[0].srtt8 / 8);
            for path in 1..n {
                host.report(path, EventKind::Acked);
            }
            let (found, expected) = (window(&host, 0), reference.w);
            prop_assert!((found - expected).abs() <= 1.0 + 0.03 * expected, "{t} s: {found}, {expected}");
        }
    }

    #[test]
    fn a_cut_is_the_formulas(w in 8u32..1 << 20, n in 2usize..=8) {
        let mut host = group(&vec![w; n], &vec![20_000; n]);
        let reduced = host.report(0, EventKind::Recovery);
        prop_assert!((f64::from(reduced.ssthresh) - libm::floor(cubic_cut(f64::from(w), n))).abs() <= 1.0);
    }
}
