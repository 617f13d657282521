//! BBR against its formulas in floating point, on paths that deliver at a constant rate.

use crate::common;

use common::paths::*;
use narrows_laws::{Advice, Event, EventKind, flag};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In ProbeBW: 5/4, 3/4 and six times 1 of the rate, less 1 %, and two BDP and three bursts in
    /// flight, beside what was acknowledged at once.
    #[test]
    fn pacing_and_window_are_those_of_the_formulas(
        rate in 50.0..20_000.0f64, rtt_us in 5_000..150_000u64, mss in 500..9000u32,
    ) {
        let path = Path::new(rate, rtt_us, mss);
        prop_assume!(path.bdp() >= 5);
        let mut paths = Paths::new("bbr", &[], &[path]);
        paths.run(40 * rtt_us);
        let seen = paths.run(24 * rtt_us);
        for gain in gains(&seen, path.bytes()) {
            prop_assert!([1.25, 0.75, 1.0].iter().any(|of| near(gain, *of, 0.006)), "{gain}");
        }
        let (_, out) = seen[seen.len() - 1];
        let burst = (out.pacing_rate as f64 / 1024.0 / f64::from(mss)).clamp(1.0, 127.0);
        let bdp = path.rate * rtt_us as f64 / 1e6;
        let least = 2.0 * bdp - 1.0;
        // Each acknowledgement is of one packet: at most a few come before they are due.
        let most = 2.0 * bdp + 3.0 * burst.max(2.0) + 12.0 + 0.02 * bdp;
        prop_assert!((least..=most).contains(&f64::from(out.cwnd)), "{} {bdp} {burst}", out.cwnd);
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let path = Path::new(1_000.0, 50_000, 1448);
    let mut paths = Paths::new("bbr", &[], &[path]);
    let seen = paths.run(600_000);
    let high = 2885.0 / 1000.0;
    let ends = seen
        .iter()
        .position(|(_, out)| out.pacing_rate > 0 && (out.pacing_rate as f64) < 0.5 * path.bytes());
    let ends = seen[ends.expect("Drain")].0;
    // A round to see the rate and three without growth; then Drain at 1 / 2.885.
    let rounds = (ends - 1_000_000) / 50_000;
    assert!((3..=6).contains(&rounds), "{rounds}");
    let first = gains(&seen, path.bytes());
    assert!(first.iter().any(|gain| near(*gain, high, 0.01)), "{first:?}");
    assert!(first.iter().any(|gain| near(*gain, 1.0 / high, 0.02)), "{first:?}");
}

/// One cycle: a phase of 5/4, then 3/4, then 1 for the rest, each at least an RTT.
#[test]
fn a_cycle_has_eight_phases() {
    let path = Path::new(2_000.0, 20_000, 1448);
    let mut paths = Paths::new("bbr", &[], &[path]);
    // More is in flight than 5/4 BDP needs, so that phase 0 ends after an RTT.
    paths.run(1_000_000);
    let cycles = |paths: &Paths| paths.conn.path(0).word[0] & 0x1f;
    let before = cycles(&paths);
    let seen = paths.run(1_640_000);
    let count = cycles(&paths).wrapping_sub(before) & 0x1f;
    let gains = gains(&seen, path.bytes());
    let ups = gains.iter().filter(|gain| **gain > 1.2).count() as u32;
    assert!(ups >= 2 && count.abs_diff(ups) <= 1, "{count} cycles, {ups} probes: {gains:?}");
    for pair in gains.windows(2) {
        let then = if pair[0] > 1.2 {
            0.75
        } else if pair[0] < 0.8 {
            1.0
        } else {
            1.25
        };
        assert!(near(pair[1], then, 0.01), "{gains:?}");
    }
}

#[test]
fn a_sample_that_the_application_limited_counts_only_if_it_is_higher() {
    let path = Path::new(2_000.0, 20_000, 1448);
    let mut paths = Paths::new("bbr", &[], &[path]);
    paths.run(1_000_000);
    let known = paths.conn.path(0).bw;
    paths.paths[0].rate = 200.0;
    for _ in 0..200 {
        paths.now_us += 5_000;
        paths.ack(0, flag::APP_LIMITED);
    }
    assert_eq!(paths.conn.path(0).bw, known);
    for _ in 0..200 {
        paths.now_us += 5_000;
        paths.ack(0, 0);
    }
    assert!(paths.conn.path(0).bw < known / 5, "{} of {known}", paths.conn.path(0).bw);
}

/// In recovery: what is in flight, for a round; then the window of before.
#[test]
fn recovery_conserves_packets_and_gives_the_window_back() {
    let path = Path::new(2_000.0, 20_000, 1448);
    let mut paths = Paths::new("bbr", &[], &[path]);
    paths.run(1_000_000);
    let before = paths.conn.path(0).cwnd;
    let recovery = Event { lost: 3, ..paths.event(0, EventKind::Recovery) };
    paths.report(0, recovery);
    let inflight = paths.inflight(0);
    let out = paths.ack(0, flag::IN_RECOVERY);
    assert_eq!(out.cwnd, inflight + 1);
    let recovered = paths.event(0, EventKind::Recovered);
    assert_eq!(paths.report(0, recovered).cwnd, before);
    let timeout = Event { inflight: 2, ..paths.event(0, EventKind::Timeout) };
    assert_eq!(paths.report(0, timeout).cwnd, 3);
    let recovered = paths.event(0, EventKind::Recovered);
    assert_eq!(paths.report(0, recovered).cwnd, before);
}

/// The pacing of the last path while it cruises, over its own rate, with paths at these rates.
fn cruise(share: &str, rates: &[f64]) -> f64 {
    let of: Vec<Path> = rates.iter().map(|rate| Path::new(*rate, 20_000, 1448)).collect();
    let mut paths = Paths::new("bbr", &[("bbr.share", share)], &of);
    paths.run(2_000_000);
    let seen = paths.run(1_000_000);
    // Phases 2 to 7 are those between 3/4 and 5/4 of the rate, or below both.
    let own = of[of.len() - 1].bytes();
    let mut all: Vec<u64> = seen.iter().map(|(_, out)| out.pacing_rate).collect();
    all.retain(|rate| {
        [0.75, 1.25].iter().all(|gain| !near(*rate as f64 / 0.99 / own, *gain, 0.01))
    });
    all.sort_unstable();
    all[all.len() / 2] as f64 / 0.99 / own
}

#[test]
fn each_policy_is_its_formula() {
    for rates in [&[1000.0, 1000.0][..], &[3000.0, 1500.0], &[1000.0, 1000.0, 1000.0]] {
        let own = rates[rates.len() - 1];
        let best = rates.iter().copied().fold(0.0, f64::max);
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        let beta = own * best / squares;
        let found = cruise("han", rates);
        assert!(near(found, (8.0 * beta - 2.0) / 6.0, 0.05), "{rates:?}: {found}");
        let found = cruise("published", rates);
        assert!(near(found, 1.0 / rates.len() as f64, 0.02), "{rates:?}: {found}");
        // Constant rates: nothing is shared, and the group's rate is the sum.
        let found = cruise("group", rates);
        assert!(near(found, 1.0, 0.02), "{rates:?}: {found}");
        let found = cruise("none", rates);
        assert!(near(found, 1.0, 0.02), "{rates:?}: {found}");
    }
    // Four equal paths: beta is 1/4, and Han's gain would not be positive.
    assert!(near(cruise("han", &[1000.0; 4]), 1.0, 0.02));
}

/// The paths of a group probe at the same time.
#[test]
fn a_group_probes_together() {
    let of = [Path::new(1000.0, 20_000, 1448), Path::new(1100.0, 20_000, 1448)];
    let apart = |share: &str| {
        let mut paths = Paths::new("bbr", &[("bbr.share", share)], &of);
        paths.run(2_000_000);
        let (mut both, mut one) = (0, 0);
        for _ in 0..1000 {
            paths.run(1_000);
            let up = |n: usize| paths.conn.path(n).pacing_rate as f64 > 1.15 * of[n].bytes();
            both += u32::from(up(0) && up(1));
            one += u32::from(up(0) != up(1));
        }
        (both, one)
    };
    let (both, one) = apart("group");
    assert!(both > 5 * one && both > 40, "{both} ms together, {one} apart");
}

/// The first path leads the cycle, and stalls in a phase: the other goes on alone.
#[test]
fn a_path_that_stalls_holds_nobody() {
    let of = [Path::new(1000.0, 20_000, 1448), Path::new(1100.0, 20_000, 1448)];
    let mut paths = Paths::new("bbr", &[], &of);
    paths.run(2_000_000);
    let up = |paths: &Paths| paths.conn.path(0).pacing_rate as f64 > 1.15 * of[0].bytes();
    while !up(&paths) {
        paths.run(1_000);
    }
    paths.paths[0].next_us += 1e6;
    paths.run(100_000);
    let seen = gains(&paths.run(400_000), of[1].bytes());
    let [up, down] =
        [1.2, 0.8].map(|gain| seen.iter().filter(|of| (*of / gain - 1.0).abs() < 0.08).count());
    assert!(up >= 1 && down >= 1, "{seen:?}");
}

/// Bytes/s of paths which all stand still for as long as they deliver: each keeps its estimate, and
/// together they deliver half of them.
struct Held {
    paths: Paths,
    /// Does the host do as advised?
    obeys: bool,
}

impl Held {
    fn new(control: &str, close: &str, rates: &[f64]) -> Held {
        let of: Vec<Path> = rates.iter().map(|rate| Path::new(*rate, 20_000, 1448)).collect();
        let set = [("bbr.close", close)];
        Held { paths: Paths::new(control, &set, &of), obeys: true }
    }

    fn advised(&self) -> Vec<bool> {
        let all = 0..self.paths.paths.len();
        all.map(|path| self.paths.conn.advice(path) == Advice::Backup).collect()
    }

    /// For so many seconds; `pause_us` after each 100 ms.
    fn run(&mut self, seconds: u64, pause_us: u64) {
        let end = self.paths.now_us + seconds * 1_000_000;
        while self.paths.now_us < end {
            self.paths.run(100_000);
            self.paths.now_us += pause_us;
            for (path, advised) in self.advised().into_iter().enumerate() {
                let of = &mut self.paths.paths[path];
                of.next_us += pause_us as f64;
                if advised && self.obeys {
                    of.next_us = of.next_us.max(self.paths.now_us as f64 + 150_000.0);
                }
            }
        }
    }
}

#[test]
fn what_does_not_pay_is_advised_as_backup() {
    const HALF: u64 = 100_000;
    let after = |control: &str, close: &str, rates: &[f64], pause: u64| {
        let mut held = Held::new(control, close, rates);
        held.run(12, pause);
        held.advised()
    };
    // 0.51 of the best path's.
    assert_eq!(after("bbr+disjoint", "0.6", &[4000.0, 100.0], HALF), [false, true]);
    assert_eq!(after("bbr+disjoint", "0.4", &[4000.0, 100.0], HALF), [false, false]);
    assert_eq!(after("bbr+disjoint", "0", &[4000.0, 100.0], HALF), [false, false], "off");
    assert_eq!(after("bbr+disjoint", "0.6", &[4000.0, 100.0], 0), [false, false], "it pays");
    assert_eq!(after("bbr+shared", "0.6", &[4000.0, 100.0], HALF), [false, false], "shared");
    assert_eq!(after("bbr+disjoint", "0.6", &[4000.0], HALF), [false], "alone");
    // One after the other, until one is left.
    let mut held = Held::new("bbr+disjoint", "0.6", &[200.0, 4000.0, 100.0]);
    held.run(10, HALF);
    assert_eq!(held.advised(), [false, false, true]);
    held.run(40, HALF);
    assert_eq!(held.advised(), [true, false, true]);
}

/// Advised for one minute, two, four, eight: four times in ten minutes.
#[test]
fn a_silent_path_comes_back_ever_more_seldom() {
    let mut held = Held::new("bbr+disjoint", "0.6", &[4000.0, 100.0]);
    let (mut times, mut before) = (vec![], false);
    for second in 0..600 {
        held.run(1, 100_000);
        if held.advised()[1] && !before {
            times.push(second);
        }
        before = held.advised()[1];
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 3, "{times:?}");
    for (gap, least) in gaps.iter().zip([60, 120, 240]) {
        assert!((least..least + 15).contains(gap), "{times:?}");
    }
}

/// A host that goes on with the path all the same: once it pays, the advice is withdrawn.
#[test]
fn advice_is_withdrawn_when_the_path_pays() {
    let mut held = Held::new("bbr+disjoint", "0.6", &[4000.0, 100.0]);
    held.obeys = false;
    held.run(30, 100_000);
    assert_eq!(held.advised(), [false, true]);
    held.run(3, 0);
    assert_eq!(held.advised(), [false, true], "not at once");
    held.run(9, 0);
    assert_eq!(held.advised(), [false, false]);
}

/// A request now and then, and silence between: times without data do not count.
#[test]
fn requests_with_pauses_are_no_reason_for_advice() {
    let mut held = Held::new("bbr+disjoint", "0.6", &[4000.0, 100.0]);
    for _ in 0..20 {
        held.paths.run(300_000);
        held.paths.now_us += 10_000_000;
        for path in 0..2 {
            held.paths.paths[path].next_us += 1e7;
            let restart = held.paths.event(path, EventKind::Restart);
            held.paths.report(path, restart);
        }
        assert_eq!(held.advised(), [false, false]);
    }
}

/// The only regular path gets slower than the one that was advised.
#[test]
fn a_path_that_is_better_than_what_is_left_comes_back_at_once() {
    let mut held = Held::new("bbr+disjoint", "0.7", &[4000.0, 1000.0]);
    held.run(10, 100_000);
    assert_eq!(held.advised(), [false, true]);
    held.paths.paths[0].rate = 500.0;
    held.run(25, 0);
    assert_eq!(held.advised(), [false, false]);
}
