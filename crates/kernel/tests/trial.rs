//! What a trial counts and when its guards break: the C of `src/bpf/trial.h`, against crates/stats and
//! the standard library.

use narrows_kernel::trial::{Arm, Guards};
use narrows_stats::sequence::{self, Sequence};
use narrows_testkit::Random;

unsafe extern "C" {
    safe fn nr_test_log2(x: u64) -> u32;
    safe fn nr_test_siphash(k0: u64, k1: u64, a: u64, b: u64) -> u64;
    safe fn nr_test_boundary2(n: u64, planned: u32) -> u64;
    safe fn nr_test_broken(result: &[Arm; 2], guards: &[u32; 4]) -> u32;
    safe fn nr_test_count(arm: &mut Arm, outcome: &Outcome);
}

/// `struct nr_outcome`.
#[repr(C)]
#[derive(Default)]
struct Outcome {
    bytes: u64,
    mptcp_bytes: u64,
    segs: u64,
    retrans: u64,
    busy_ms: u32,
    silent_ms: u32,
    srtt_us: u32,
    paths: u32,
    groups: u32,
    reserved: u32,
}

const ALL: Guards = Guards { goodput: Some(0.9), retransmits: Some(1.5), p95_srtt: Some(1.3) };
/// As the command assumes.
const PLANNED: u32 = 8000;

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// A connection of a megabyte and more: goodputs, losses and round-trip times of one in ten differ much.
fn connection(random: &mut Random, goodput: f64, retransmits: f64, srtt: f64) -> Outcome {
    let far = random.unit() < 0.1;
    let rate = 1e6 * goodput * (normal(random) + if far { -3.0 } else { 0.0 }).exp2();
    let bytes = 1_000_000 + (random.unit() * 1e6) as u64;
    let segs = bytes / 1428;
    let lossy = random.unit() < 0.3;
    let share = if lossy { 0.02 * random.unit() * retransmits } else { 0.0 };
    Outcome {
        bytes,
        segs,
        retrans: (segs as f64 * share) as u64,
        busy_ms: (bytes as f64 / rate * 1e3) as u32,
        srtt_us: (40e3 * srtt * (0.7 * normal(random)).exp2()) as u32,
        paths: 1 + u32::from(far),
        ..Outcome::default()
    }
}

/// The guard that breaks while `connections` come, one of ten in the trial's arm; `effect` is that arm's
/// goodput, retransmits and srtt over the other's.
fn broken(seed: u64, connections: usize, effect: [f64; 3]) -> Option<(u32, usize)> {
    let mut random = Random(seed);
    let mut arms = [Arm::default(); 2];
    for n in 1..=connections {
        let arm = usize::from(random.unit() < 0.1);
        let [goodput, retransmits, srtt] = if arm == 1 { effect } else { [1.0; 3] };
        nr_test_count(&mut arms[arm], &connection(&mut random, goodput, retransmits, srtt));
        if n % 20 == 0 {
            let guard = nr_test_broken(&arms, &ALL.words(PLANNED));
            if guard != 0 {
                return Some((guard, n));
            }
        }
    }
    None
}

#[test]
fn the_hash_is_siphash() {
    use std::hash::Hasher;
    let mut random = Random(3);
    for _ in 0..100 {
        let [k0, k1, a, b] = [0; 4].map(|_| random.next());
        #[expect(deprecated, reason = "the standard library's only one with keys")]
        let mut hasher = std::hash::SipHasher::new_with_keys(k0, k1);
        hasher.write(&a.to_le_bytes());
        hasher.write(&b.to_le_bytes());
        assert_eq!(nr_test_siphash(k0, k1, a, b), hasher.finish());
    }
}

#[test]
fn the_logarithm_is_right_to_its_last_bit() {
    assert_eq!(nr_test_log2(0), 0);
    for bits in 0..64 {
        for x in [1u64 << bits, (1 << bits) + (1 << bits >> 1), u64::MAX >> bits] {
            let (log, exact) = (f64::from(nr_test_log2(x)), (x as f64).log2() * 1024.0);
            assert!(log <= exact + 1e-6 && log > exact - 1.01, "{x}: {log}, {exact}");
        }
    }
}

#[test]
fn the_boundary_is_that_of_the_confidence_sequence() {
    for planned in [60, 8000, 1_000_000] {
        let sequence = Sequence::new(0.05 / 3.0, f64::from(planned));
        for n in [60, 400, 8000, 100_000, 10_000_000] {
            let (c2, exact) = (nr_test_boundary2(n, planned), sequence.boundary(n as f64).powi(2));
            let error = c2 as f64 / 256.0 / exact - 1.0;
            assert!(error.abs() < 2e-3, "{n} of {planned}: {} for {exact}", c2 as f64 / 256.0);
        }
    }
}

#[test]
fn what_is_counted_is_what_the_report_takes() {
    let mut arm = Arm::default();
    let mut exact = sequence::Sums::default();
    let mut random = Random(9);
    for _ in 0..1000 {
        let one = connection(&mut random, 1.0, 1.0, 1.0);
        exact.add((one.bytes as f64 * 1e3 / f64::from(one.busy_ms)).log2());
        nr_test_count(&mut arm, &one);
    }
    let sum: u64 = arm.strata.iter().map(|one| one.goodput).sum();
    let squares: u64 = arm.strata.iter().map(|one| one.goodput2).sum();
    let of = sequence::Sums {
        n: 1000.0,
        sum: sum as f64 / 1024.0,
        squares: squares as f64 / 1024.0 / 1024.0,
    };
    assert!((of.mean() - exact.mean()).abs() < 2e-3, "{} {}", of.mean(), exact.mean());
    assert!((of.variance() / exact.variance() - 1.0).abs() < 1e-2);
    let sizes: Vec<u64> = arm.strata.iter().map(|one| one.n).collect();
    assert_eq!(sizes.iter().sum::<u64>(), 1000);
    assert!(sizes[2] > 800 && sizes[6] > 50, "of one path and of two, 1 to 10 MB: {sizes:?}");
    assert_eq!(arm.srtt.iter().sum::<u64>(), 1000);
}

#[test]
fn guards_hold_between_equal_arms_and_break_beyond_their_limits() {
    let same = (0..200).filter(|seed| broken(*seed, 3000, [1.0; 3]).is_some()).count();
    assert!(same <= 5, "{same} of 200 trials of equal arms end early");
    // A little worse, but within the limits.
    let within = (0..100).filter(|seed| broken(*seed, 3000, [0.95, 1.3, 1.2]).is_some()).count();
    assert!(within <= 5, "{within} of 100 trials within the limits end early");
    for (guard, effect) in [(4, [0.5, 1.0, 1.0]), (5, [1.0, 6.0, 1.0]), (6, [1.0, 1.0, 4.0])] {
        let found: Vec<_> = (0..20).map(|seed| broken(seed, 8000, effect)).collect();
        assert!(found.iter().all(|one| one.is_some_and(|(which, _)| which == guard)), "{found:?}");
    }
    // A control that stalls: ended as soon as there are enough connections.
    let (guard, connections) = broken(1, 3000, [0.001, 1.0, 1.0]).unwrap();
    assert!(guard == 4 && connections < 500, "{guard} after {connections}");
}

#[test]
fn connections_without_any_acknowledgement_have_no_round_trip_time() {
    let mut arms = [Arm::default(); 2];
    let mut random = Random(6);
    for n in 0..2000 {
        let mut one = connection(&mut random, 1.0, 1.0, 1.0);
        // Of the trial's arm nine in ten stall; the rest is slow, of all fewer than one in twenty.
        if n % 2 == 1 {
            one.srtt_us = if n % 80 == 1 { 10_000_000 } else { one.srtt_us };
            if n % 20 != 1 {
                (one.paths, one.srtt_us) = (0, 0);
            }
        }
        nr_test_count(&mut arms[n % 2], &one);
    }
    assert_eq!(arms[1].srtt.iter().sum::<u64>(), 100);
    assert_eq!(arms[1].strata.iter().map(|one| one.n).sum::<u64>(), 1000);
    let srtt = Guards { p95_srtt: Some(1.3), ..Guards::default() };
    assert_eq!(nr_test_broken(&arms, &srtt.words(2000)), 6);
}

#[test]
fn what_is_not_limited_does_not_end_a_trial() {
    let mut arms = [Arm::default(); 2];
    let mut random = Random(4);
    for n in 0..400 {
        let worse = if n % 2 == 1 { [0.01, 9.0, 9.0] } else { [1.0; 3] };
        let one = connection(&mut random, worse[0], worse[1], worse[2]);
        nr_test_count(&mut arms[n % 2], &one);
    }
    assert_eq!(nr_test_broken(&arms, &Guards::default().words(PLANNED)), 0);
    assert_ne!(nr_test_broken(&arms, &ALL.words(PLANNED)), 0);
}
