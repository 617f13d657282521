//! Version 3 of BBR against its draft, on paths that deliver at a constant rate.

use crate::common;

use common::paths::*;
use narrows_laws::{Event, EventKind, Output, flag};
use proptest::prelude::*;

/// 1,000 packets/s, 40 ms: a BDP of 40 packets.
fn path() -> Path {
    Path::new(1_000.0, 40_000, 1448)
}

/// A path that cruises, after its first ProbeRTT.
fn cruising() -> Paths {
    let mut paths = Paths::new("bbr3", &[], &[path()]);
    paths.run(5_500_000);
    while gain(&paths) != 100 {
        paths.run(1_000);
    }
    paths
}

/// The pacing gain of the first path, percent.
fn gain(paths: &Paths) -> u32 {
    let rate = paths.conn.path(0).pacing_rate as f64 / 0.99;
    (100.0 * rate / paths.paths[0].bytes()).round() as u32
}

/// Goes on until the gain is `percent`, at most 5 s, the time between two probes and more.
fn until(paths: &mut Paths, percent: u32) {
    let end = paths.now_us + 5_000_000;
    while gain(paths) != percent {
        assert!(paths.now_us < end, "gain {}, not {percent}", gain(paths));
        paths.run(1_000);
    }
}

/// An acknowledgement that also reports losses, or marks.
fn bad_ack(paths: &mut Paths, lost: u32, marked: u32) -> Output {
    let report = Event { lost, marked, ..paths.event(0, EventKind::Ecn) };
    paths.report(0, report);
    paths.next(0, 0)
}

/// For so long each acknowledgement reports marks.
fn all_marked(paths: &mut Paths, us: u64) {
    let end = paths.now_us + us;
    while paths.now_us < end {
        bad_ack(paths, 0, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In ProbeBW: 5/4, 9/10 and 1 of the rate, less 1 %; at most 2 BDP, 9/4 while probing.
    #[test]
    fn pacing_and_window_are_those_of_the_draft(
        rate in 50.0..20_000.0f64, rtt_us in 5_000..150_000u64, mss in 500..9000u32,
    ) {
        let path = Path::new(rate, rtt_us, mss);
        prop_assume!(path.bdp() >= 8);
        let mut paths = Paths::new("bbr3", &[], &[path]);
        paths.run(40 * rtt_us);
        let seen = paths.run(80 * rtt_us);
        let bdp = path.rate * rtt_us as f64 / 1e6;
        for (_, out) in &seen {
            let gain = out.pacing_rate as f64 / 0.99 / path.bytes();
            prop_assert!([1.25, 0.9, 1.0].iter().any(|of| near(gain, *of, 0.006)), "{gain}");
            let burst = (out.pacing_rate as f64 / 1024.0 / f64::from(mss)).clamp(2.0, 127.0);
            let most = (2.25 * bdp).max(3.0 * burst) + 10.0 + 0.02 * bdp;
            prop_assert!((4.0..=most).contains(&f64::from(out.cwnd)), "{} {bdp}", out.cwnd);
        }
    }
}

#[test]
fn startup_ends_at_a_plateau_and_drain_follows() {
    let mut paths = Paths::new("bbr3", &[], &[path()]);
    let seen = paths.run(600_000);
    let first = gains(&seen, path().bytes());
    assert!(first.iter().any(|gain| near(*gain, 2.77, 0.01)), "{first:?}");
    let drain = seen.iter().find(|(_, out)| (out.pacing_rate as f64) < 0.6 * path().bytes());
    let (at, out) = drain.expect("Drain");
    assert!(near(out.pacing_rate as f64 / 0.99 / path().bytes(), 0.5, 0.01));
    let rounds = (at - 1_000_000) / 40_000;
    assert!((3..=6).contains(&rounds), "{rounds}");
}

/// Samples that the application limited show no plateau; 5 % lost over a round of recovery do.
#[test]
fn startup_ends_by_losses_even_if_the_application_limits() {
    for (losses, ends) in [(12, true), (4, false)] {
        let mut paths = Paths::new("bbr3", &[], &[path()]);
        paths.run(80_000);
        let recovery = paths.event(0, EventKind::Recovery);
        paths.report(0, recovery);
        for n in 0..120 {
            let lost = u32::from(n % 3 == 0 && n / 3 < losses);
            let report = Event { lost, ..paths.event(0, EventKind::Ecn) };
            paths.report(0, report);
            paths.next(0, flag::APP_LIMITED | flag::IN_RECOVERY);
        }
        assert_eq!(gain(&paths) < 150, ends, "{losses} losses: {} %", gain(&paths));
    }
}

/// REFILL has the gain of CRUISE; a probe is at least 2 s after the last or 40 rounds, of 40 packets.
#[test]
fn a_probe_every_two_to_three_seconds_or_as_often_as_reno() {
    let times = |path: Path| {
        let mut paths = Paths::new("bbr3", &[], &[path]);
        paths.run(2_000_000);
        let mut times = vec![];
        for _ in 0..6 {
            until(&mut paths, 90);
            times.push(paths.now_us);
            until(&mut paths, 125);
            paths.paths[0].rtt_us -= 10; // smaller: no ProbeRTT, which puts a probe off
        }
        times.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    // UP lasts three rounds and more, without growth.
    let by_time = times(Path::new(5_000.0, 50_000, 1448));
    assert!(by_time.iter().all(|us| (2_100_000..3_700_000).contains(us)), "{by_time:?}");
    let by_rounds = times(path());
    assert!(by_rounds.iter().all(|us| (1_600_000..2_100_000).contains(us)), "{by_rounds:?}");
}

/// More than 2 % lost in a probe: it is over, the window then has 15 % less than fitted, and the next
/// probe goes no further at once. In small losses it goes on.
#[test]
fn losses_end_a_probe_and_bound_the_window() {
    let mut paths = cruising();
    until(&mut paths, 125);
    paths.run(60_000);
    let lost = bad_ack(&mut paths, 4, 0);
    assert_eq!(gain(&paths), 90, "{lost:?}");
    // 40 were delivered in the round trip, 4 lost: of 44 the first 40, and 2 % of those.
    until(&mut paths, 100);
    let cwnd = paths.conn.path(0).cwnd;
    assert!((32..=36).contains(&cwnd), "{cwnd} packets, expected 0.85 of 38 to 41");
    // Without a loss the next ends as it gets there, and another follows at once.
    until(&mut paths, 125);
    let up = paths.now_us;
    until(&mut paths, 90);
    assert!(paths.now_us - up < 45_000, "{} us", paths.now_us - up);
    until(&mut paths, 125);
    assert!(paths.now_us - up < 200_000, "{} us", paths.now_us - up);

    let path = Path::new(10_000.0, 40_000, 1448);
    let mut paths = Paths::new("bbr3", &[], &[path]);
    paths.run(1_000_000);
    until(&mut paths, 125);
    bad_ack(&mut paths, 4, 0);
    assert_eq!(gain(&paths), 125);
}

/// Losses while cruising: down to what is delivered, at most by three tenths; until the next probe.
#[test]
fn losses_while_cruising_lower_rate_and_window_for_a_while() {
    let mut paths = cruising();
    let before = paths.conn.path(0).pacing_rate as f64;
    paths.paths[0].rate = 850.0; // what the path delivers from now on
    // The round of the first loss has samples of before.
    bad_ack(&mut paths, 2, 0);
    paths.run(60_000);
    bad_ack(&mut paths, 2, 0);
    paths.run(60_000);
    let after = paths.conn.path(0).pacing_rate as f64;
    assert!(near(after / before, 0.85, 0.03), "{}", after / before);
    assert!(paths.conn.path(0).cwnd <= 60, "{}", paths.conn.path(0).cwnd);
    paths.paths[0].rate = 1_000.0;
    until(&mut paths, 125);

    let mut paths = cruising();
    paths.paths[0].rate = 300.0;
    bad_ack(&mut paths, 2, 0);
    paths.run(60_000);
    bad_ack(&mut paths, 2, 0);
    paths.run(60_000);
    let after = paths.conn.path(0).pacing_rate as f64;
    assert!(near(after / before, 0.7, 0.02), "{}", after / before);
}

/// alpha begins at 1 and falls by a sixteenth each round without marks.
#[test]
fn marks_lower_the_window_by_a_third_of_their_share() {
    let mut paths = cruising();
    let (before, rate) = (paths.conn.path(0).cwnd, paths.conn.path(0).pacing_rate);
    all_marked(&mut paths, 60_000);
    let after = paths.conn.path(0).cwnd;
    assert!(after < before, "{after} of {before}");
    assert!(f64::from(after) > 0.6 * f64::from(before), "{after} of {before}");
    assert_eq!(paths.conn.path(0).pacing_rate, rate, "the bandwidth is as it was");
    // Marks in every round: alpha grows to 1, and the window falls to its least.
    let mut least = after;
    for _ in 0..40 {
        all_marked(&mut paths, 50_000);
        least = least.min(paths.conn.path(0).cwnd);
    }
    assert!(least <= 10, "{least} packets");
}

#[test]
fn a_probe_with_most_packets_marked_is_over() {
    let mut paths = cruising();
    until(&mut paths, 125);
    all_marked(&mut paths, 85_000);
    assert!(gain(&paths) <= 100, "{} %", gain(&paths));
    let mut paths = cruising();
    until(&mut paths, 125);
    for _ in 0..85 {
        bad_ack(&mut paths, 0, 0);
    }
    assert_eq!(gain(&paths), 125, "without marks it would go on");
}

/// Half a BDP for 200 ms and a round, after 5 s without a smaller RTT.
#[test]
fn the_smallest_rtt_is_measured_every_five_seconds() {
    let mut paths = Paths::new("bbr3", &[], &[path()]);
    let (mut begins, mut low) = (vec![], 0);
    for ms in 0..30_000_u32 {
        paths.run(1_000);
        let of = &mut paths.paths[0];
        of.rtt_us = 40_000 + u64::from(ms % 100); // never smaller than the first
        match paths.conn.path(0).cwnd {
            0..=24 => low += 1,
            _ if low > 100 => {
                assert!((195..330).contains(&low), "{low} ms");
                begins.push(ms - low);
                low = 0;
            }
            _ => low = 0,
        }
    }
    assert!(begins.len() >= 4, "{begins:?}");
    for pair in begins.windows(2) {
        assert!((5_000..5_600).contains(&(pair[1] - pair[0])), "{begins:?}");
    }
}

/// Losses that were none: bounds and the probe come back.
#[test]
fn an_undo_restores_the_bounds() {
    let mut paths = cruising();
    until(&mut paths, 125);
    paths.run(60_000);
    let window = paths.conn.path(0).cwnd;
    let recovery = paths.event(0, EventKind::Recovery);
    paths.report(0, recovery);
    bad_ack(&mut paths, 4, 0);
    assert_eq!(gain(&paths), 90);
    let undo = paths.event(0, EventKind::Undo);
    paths.report(0, undo);
    paths.run(1_000);
    assert!(window >= 90 && paths.conn.path(0).cwnd >= 80, "2.25 BDP, then 2 in REFILL");
    let then = paths.now_us;
    until(&mut paths, 125);
    assert!(paths.now_us - then < 100_000, "a round of REFILL, then UP");
}

/// The pacing of the last path while it cruises, over its own rate, with paths at these rates.
fn cruise(share: &str, rates: &[f64]) -> f64 {
    let of: Vec<Path> = rates.iter().map(|rate| Path::new(*rate, 20_000, 1448)).collect();
    let mut paths = Paths::new("bbr3", &[("bbr3.share", share)], &of);
    paths.run(2_000_000);
    let mut all: Vec<u64> = paths.run(4_000_000).iter().map(|(_, out)| out.pacing_rate).collect();
    all.sort_unstable();
    all[all.len() / 2] as f64 / 0.99 / of[of.len() - 1].bytes()
}

#[test]
fn each_policy_is_its_formula() {
    for rates in [&[1000.0, 1000.0][..], &[3000.0, 1500.0], &[1000.0; 4]] {
        let own = rates[rates.len() - 1];
        let best = rates.iter().copied().fold(0.0, f64::max);
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        let found = cruise("han", rates);
        assert!(near(found, own * best / squares, 0.03), "{rates:?}: {found}");
        let found = cruise("published", rates);
        assert!(near(found, 1.0 / rates.len() as f64, 0.02), "{rates:?}: {found}");
        for share in ["group", "none"] {
            let found = cruise(share, rates);
            assert!(near(found, 1.0, 0.02), "{share} {rates:?}: {found}");
        }
    }
}

/// The paths of a group probe at the same time, and a loss in the probe of one ends that of all.
#[test]
fn a_group_probes_together_and_stops_together() {
    let of = [Path::new(1000.0, 40_000, 1448), Path::new(1100.0, 40_000, 1448)];
    let mut paths = Paths::new("bbr3", &[], &of);
    paths.run(2_000_000);
    let up = |paths: &Paths, n: usize| paths.conn.path(n).pacing_rate as f64 > 1.15 * of[n].bytes();
    let (mut both, mut one) = (0, 0);
    for _ in 0..8_000 {
        paths.run(1_000);
        both += u32::from(up(&paths, 0) && up(&paths, 1));
        one += u32::from(up(&paths, 0) != up(&paths, 1));
    }
    assert!(both > 2 * one && both > 100, "{both} ms together, {one} apart");
    while !(up(&paths, 0) && up(&paths, 1)) {
        paths.run(1_000);
    }
    bad_ack(&mut paths, 4, 0);
    paths.run(5_000);
    assert!(!up(&paths, 0) && !up(&paths, 1));
}

/// A timeout in a probe: the bound is by the window of before, not by the one packet of after.
#[test]
fn a_timeout_in_a_probe_leaves_seven_tenths_of_the_bound() {
    let mut paths = cruising();
    until(&mut paths, 125);
    paths.run(60_000);
    let lost = paths.inflight(0);
    let report = Event { lost, inflight: 0, ..paths.event(0, EventKind::Timeout) };
    assert_eq!(paths.report(0, report).cwnd, 1);
    paths.run(400_000);
    let cwnd = paths.conn.path(0).cwnd;
    assert!(cwnd >= 23, "{cwnd} packets, expected 0.85 of 0.7 of 40 at least");
}

/// A group probes as often as one flow with the window of all.
#[test]
fn a_group_probes_as_often_as_one_flow() {
    let probes = |of: &[Path]| {
        let mut paths = Paths::new("bbr3", &[], of);
        paths.run(2_000_000);
        let (mut up, mut probes) = (false, 0);
        while paths.now_us < 60_000_000 {
            paths.run(1_000);
            let now = gain(&paths) > 115;
            probes += u32::from(now && !up);
            up = now;
        }
        probes
    };
    let one = probes(&[path()]);
    let four = probes(&[Path::new(250.0, 40_000, 1448); 4]);
    assert!(one > 10 && four.abs_diff(one) * 3 <= one, "{four} probes, one flow {one}");
}
