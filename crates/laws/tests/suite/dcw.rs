//! The detector `dcw`: the procedure in floating point against what the authors' own program says,
//! the C against that procedure, and what becomes of delays that are missing.

use crate::reference;

use narrows_laws::detect::{Flows, Sample};
use narrows_laws::{Detector, Params, Place};
use narrows_testkit::Random;
use reference::dcw;

/// Delays of two paths, in whole ms, one each 100 ms: a queue that AIMD flows fill, of which the
/// second has the share `alike` and the rest from one of its own, and noise.
fn series(seed: u64, alike: f64, noise: f64, len: usize) -> [Vec<f64>; 2] {
    let mut random = Random(seed);
    let mut queue = || {
        let mut level = 20.0;
        let levels = (0..len).map(|_| {
            level += 1.0 + random.unit();
            if level > 80.0 + 20.0 * random.unit() {
                level *= 0.5;
            }
            level
        });
        levels.collect::<Vec<f64>>()
    };
    let [common, own] = [queue(), queue()];
    let mut noisy = |delay: f64| (delay + noise * random.unit()).round();
    let one = common.iter().map(|&delay| noisy(delay)).collect();
    let mixed = common.iter().zip(own).map(|(common, own)| alike * common + (1.0 - alike) * own);
    [one, mixed.map(&mut noisy).collect()]
}

#[test]
fn the_transform_has_an_inverse() {
    for len in [25, 26, 27, 68, 100, 999, 1000] {
        let [x, _] = series(len as u64, 1.0, 20.0, len);
        let back = dcw::join(&dcw::split(&x), len);
        assert!(x.iter().zip(back).all(|(x, back)| (x - back).abs() < 1e-9), "{len}");
    }
}

/// What the authors' program (dc.cc in Emulab, built and run once) printed for these series.
const AUTHORS: [(u64, f64, f64, usize, f64); 10] = [
    (1, 1.0, 20.0, 1000, 0.951876),
    (2, 0.0, 20.0, 1000, 0.588771),
    (3, 0.5, 20.0, 1000, 0.871622),
    (4, 0.6, 60.0, 1000, 0.620010),
    (5, 0.3, 5.0, 999, 0.643226),
    (6, 0.5, 40.0, 333, 0.792470),
    (7, 0.7, 80.0, 150, 0.794704),
    (8, 0.6, 20.0, 68, 0.964284),
    (9, 0.6, 20.0, 67, 0.983707),
    (10, 0.6, 20.0, 26, 0.953609),
];

#[test]
fn the_procedure_in_floating_point_is_that_of_the_authors_program() {
    for (seed, alike, noise, len, theirs) in AUTHORS {
        let [one, other] = series(seed, alike, noise, len);
        let ours = dcw::correlation(&one, &other);
        assert!((ours - theirs).abs() < 1e-5, "seed {seed}: {ours}, theirs {theirs}");
    }
}

/// A delay of a path in a slot, ms; none: no packet came.
type Delays = [Vec<Option<f64>>; 2];

/// What places say of flows 0 and 1: do they share?
fn of(places: &[Place]) -> Option<bool> {
    match (places[0], places[1]) {
        (Place::Undecided, _) | (_, Place::Undecided) => None,
        (one, other) => Some(one == other),
    }
}

/// Offsets of the packets of a slot, µs: the mean counts.
const PACKETS: [i32; 3] = [-20_000, 35_000, -15_000];

/// The decisions at the ends of seconds. Each path has a zero of its own.
fn decide(delays: &Delays, params: &Params) -> Vec<Option<bool>> {
    let mut flows = Flows::new(Detector::DCW, params, 2).unwrap();
    let slots = delays[0].len();
    let mut decisions = Vec::new();
    for slot in 0..slots {
        for (packet, offset) in PACKETS.into_iter().enumerate() {
            for (flow, delays) in delays.iter().enumerate() {
                let Some(delay) = delays[slot] else { continue };
                let sample = Sample {
                    now_us: 100_000 * slot as u64 + 20_000 * packet as u64,
                    delay_us: Some((1e3 * delay) as i32 + offset + 7_000 * flow as i32),
                    delivered: 1,
                    ..Sample::default()
                };
                decisions.extend(flows.sample(flow, &sample));
            }
        }
    }
    decisions.extend(std::iter::from_fn(|| flows.advance(100_000 * slots as u64)));
    let answers: Vec<_> = decisions.iter().map(|decision| of(&decision.places)).collect();
    assert_eq!(answers.len(), slots / 10);
    answers
}

fn complete(series: [Vec<f64>; 2]) -> Delays {
    series.map(|delays| delays.into_iter().map(Some).collect())
}

#[test]
fn the_c_decides_as_the_procedure_in_floating_point() {
    const LEN: usize = 1300;
    // Delays are cut to 64 us, and coefficients to 4 us.
    const FINE: f64 = 0.002;
    let (mut compared, mut shared) = (0, 0);
    for seed in 1..=12 {
        let both = series(seed, (seed % 6) as f64 / 5.0, 10.0 * seed as f64, LEN);
        for window in [1000, 250] {
            // The correlation at the end of each second, and decisions just below and above it.
            for second in (3..=LEN / 10).step_by(18) {
                let to = 10 * second;
                let from = to.saturating_sub(window);
                let theirs = dcw::correlation(&both[0][from..to], &both[1][from..to]);
                if !(2.0 * FINE..1.0 - FINE).contains(&theirs) {
                    continue;
                }
                let cut = complete(both.clone().map(|delays| delays[..to].to_vec()));
                for (threshold, expected) in [(theirs - FINE, true), (theirs + FINE, false)] {
                    let params = Params::default().with(&[
                        ("dcw.window", &window.to_string()),
                        ("dcw.threshold", &threshold.to_string()),
                    ]);
                    let answer = *decide(&cut, &params).last().unwrap();
                    assert_eq!(answer, Some(expected), "seed {seed}, {second} s: {theirs}");
                    compared += 1;
                }
                shared += usize::from(theirs >= 0.512);
            }
        }
    }
    assert!(compared > 250 && shared > 20, "{compared} compared, {shared} shared");
}

#[test]
fn the_first_answer_takes_25_delays_of_both() {
    let mut delays = complete(series(1, 1.0, 5.0, 200));
    assert_eq!(decide(&delays, &Params::default())[..4], [None, None, Some(true), Some(true)]);
    // A path that joins 10 s later: compared over what it has.
    delays[1][..100].fill(None);
    let answers = decide(&delays, &Params::default());
    assert!(answers[..12].iter().all(Option::is_none), "{answers:?}");
    assert!(answers[12..].iter().all(|&answer| answer == Some(true)), "{answers:?}");
}

#[test]
fn missing_delays_lie_between_their_neighbours() {
    let [one, other] = series(3, 0.6, 20.0, 400);
    let mut line = other.clone();
    let mut gaps = complete([one.clone(), other]);
    for from in [30, 95, 151, 208, 290] {
        let to = from + 17;
        for slot in from + 1..to {
            let part = (slot - from) as f64 / (to - from) as f64;
            line[slot] = line[from] + part * (line[to] - line[from]);
            gaps[1][slot] = None;
        }
    }
    let theirs = dcw::correlation(&one, &line);
    for (threshold, expected) in [(theirs - 0.002, true), (theirs + 0.002, false)] {
        let params = Params::default().with(&[("dcw.threshold", &threshold.to_string())]);
        assert_eq!(*decide(&gaps, &params).last().unwrap(), Some(expected), "{theirs}");
    }
}

#[test]
fn a_path_that_is_silent_for_10_s_or_whose_clock_is_set_starts_over() {
    let both = series(1, 1.0, 5.0, 500);
    let mut silent = complete(both.clone());
    silent[1][200..295].fill(None);
    let answers = decide(&silent, &Params::default());
    assert!(answers[2..].iter().all(Option::is_some), "9.5 s: {answers:?}");
    silent[1][200..305].fill(None);
    let answers = decide(&silent, &Params::default());
    assert_eq!(answers[29..34], [Some(true), None, None, Some(true), Some(true)]);

    let mut set = complete(both);
    set[1][250..].iter_mut().for_each(|delay| *delay = delay.map(|delay| delay + 3_000.0));
    let answers = decide(&set, &Params::default());
    assert_eq!(answers[24..29], [Some(true), None, None, Some(true), Some(true)]);
}

#[test]
fn a_constant_delay_is_that_of_no_other_path() {
    let [one, _] = series(1, 1.0, 5.0, 300);
    let flat = vec![50.0; 300];
    for delays in [[one, flat.clone()], [flat.clone(), flat]] {
        let answers = decide(&complete(delays), &Params::default());
        assert!(answers[2..].iter().all(|&answer| answer == Some(false)), "{answers:?}");
    }
}
