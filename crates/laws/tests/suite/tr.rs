//! The detector `tr` (arXiv:1812.05816): the stream against the paper's batches in floating point,
//! the paper's slips, and what becomes of the masks.

use crate::common::detect;
use crate::reference;

use narrows_laws::detect::{Flows, Sample as FlowSample};
use narrows_laws::raw::{self, Detection, MAX_PATHS};
use narrows_laws::{Conn, Control, Detector, Event, EventKind, Params, Place, State};
use proptest::prelude::*;
use reference::tr::{Line, Point, Slips, Tr};

const LIA_TR: Control = Control { detector: Detector::TR, ..Control::LIA };
const S: u64 = 1_000_000;
const PERIOD: u64 = 5 * S;
/// What times in the sums are multiples of, in us.
const TICK: u64 = 64;
/// After a period, until it is decided on.
const SETTLE: u64 = S / 2;

/// The paper's numbers; alpha as the C has it, in 2^-16.
fn paper() -> Tr {
    Tr { alpha: 58982.0 / 65536.0, ..Tr::default() }
}

fn event(kind: EventKind, now_us: u64, rtt_us: u32) -> Event {
    Event {
        now_us,
        kind: kind as u32,
        state: State::Active as u32,
        delivered: 2 * u32::from(rtt_us > 0),
        rtt_us,
        srtt8_us: rtt_us.saturating_mul(8),
        mss: 1448,
        ..Event::default()
    }
}

/// A delay at a time, both in µs.
type Sample = (u64, u32);

/// What path 0 publishes of each period of `samples`.
fn stream(samples: &[Sample]) -> Vec<Line> {
    let params = Params::default();
    let mut conn = raw::Conn::new(LIA_TR, &params);
    let mut detection = Detection::new(&params);
    let mut lines = Vec::new();
    let mut report = |event: &Event| {
        detect(Detector::TR, &mut conn, &mut detection, 0, event);
        for record in conn.record[0].iter_mut().filter(|record| record.stamp != 0) {
            let [slope, from, to, points, ..] = record.word;
            lines.push(Line {
                slope: f64::from(slope) / 1e3,
                from: f64::from(from) / 1e3,
                to: f64::from(to) / 1e3,
                points: points as usize,
            });
            record.stamp = 0;
        }
    };
    report(&event(EventKind::Joined, samples[0].0, 0));
    for (now_us, rtt_us) in samples {
        report(&event(EventKind::Acked, *now_us, *rtt_us));
    }
    report(&event(EventKind::Acked, samples[samples.len() - 1].0 + PERIOD, 0));
    lines
}

/// The same, by the paper.
fn batches(tr: &Tr, samples: &[Sample]) -> Vec<Line> {
    let period = |&(now_us, _): &Sample| now_us / PERIOD;
    let point = |&(now_us, rtt_us): &Sample| -> Point {
        ((now_us % PERIOD) as f64 / 1e3, f64::from(rtt_us) / 1e3)
    };
    let batch = |samples: &[Sample]| -> Vec<Point> { samples.iter().map(point).collect() };
    samples
        .chunk_by(|a, b| period(a) == period(b))
        .map(|samples| {
            let none = Line { slope: 0.0, from: 0.0, to: 0.0, points: 0 };
            tr.longest(&batch(samples)).unwrap_or(none)
        })
        .collect()
}

fn assert_close(ours: &Line, paper: &Line) {
    assert_eq!(
        (ours.points, ours.from, ours.to),
        (paper.points, paper.from, paper.to),
        "{ours:?} instead of {paper:?}"
    );
    // The C leaves out the line through two points, and says 0 of one that falls.
    let slope = if paper.points < 3 { 0.0 } else { paper.slope.max(0.0) };
    // The sums hold delays in whole 1/8 us, and are whole themselves once centred.
    let span = (paper.to - paper.from).max(1e-3 * TICK as f64);
    let ticks = 1e3 * span / TICK as f64;
    let fine = 0.002 + 0.125 / span + slope * (4.0 / (ticks * ticks) + 1e-6);
    let error = (ours.slope - slope).abs();
    assert!(error <= fine, "{ours:?} instead of {paper:?}");
}

/// Deterministic noise in 0..1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A queue that fills at `slope` ms/s for `up` s and empties at once, again and again, seen over a
/// path of `base` ms at `rate` acknowledgements a second, with noise of up to `noise` µs.
#[derive(Clone, Copy, Debug)]
struct Saw {
    base: f64,
    slope: f64,
    up: f64,
    rate: f64,
    noise: f64,
    seed: u64,
}

impl Saw {
    fn samples(&self, from_s: f64, to_s: f64) -> Vec<Sample> {
        let mut noise = Noise(self.seed);
        let mut samples = Vec::new();
        let mut t = from_s;
        while t < to_s {
            let queue = self.slope * (t % self.up);
            let rtt = 1e3 * (self.base + queue) + self.noise * noise.next();
            samples.push(((t * 1e6) as u64 / TICK * TICK, rtt as u32));
            t += (0.5 + noise.next()) / self.rate;
        }
        samples
    }
}

fn saw() -> impl Strategy<Value = Saw> {
    (1.0..300.0, 5.0..500.0, 0.05..8.0, 20.0..2000.0, 20.0..20_000.0, any::<u64>())
        .prop_map(|(base, slope, up, rate, noise, seed)| Saw { base, slope, up, rate, noise, seed })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_stream_says_what_the_batches_say(saw in saw(), from in 0.0..20.0) {
        let samples = saw.samples(from, from + 12.0);
        let (ours, paper) = (stream(&samples), batches(&paper(), &samples));
        prop_assert_eq!(ours.len(), paper.len());
        for (ours, paper) in ours.iter().zip(&paper) {
            assert_close(ours, paper);
        }
    }

    #[test]
    fn the_stream_says_what_the_batches_say_of_noise_alone(
        steps in prop::collection::vec((1u64..470, 1u32..2_000_000), 3..2000),
    ) {
        let mut now_us = 7 * S;
        let samples: Vec<Sample> =
            steps.iter().map(|(step, rtt)| { now_us += step * TICK; (now_us, *rtt) }).collect();
        for (ours, paper) in stream(&samples).iter().zip(&batches(&paper(), &samples)) {
            assert_close(ours, paper);
        }
    }

    /// Steps are so small that no gap comes near the one that parts two rises.
    #[test]
    fn times_between_ticks_count_as_the_tick_before(
        steps in prop::collection::vec((1u64..500, 1u32..2_000_000), 3..2000),
    ) {
        let mut now_us = 7 * S;
        let samples: Vec<Sample> =
            steps.iter().map(|(step, rtt)| { now_us += step; (now_us, *rtt) }).collect();
        let cut: Vec<Sample> =
            samples.iter().map(|(now_us, rtt)| (now_us / TICK * TICK, *rtt)).collect();
        let slopes = |samples: &[Sample]| -> Vec<f64> {
            stream(samples).iter().map(|line| line.slope).collect()
        };
        prop_assert_eq!(slopes(&samples), slopes(&cut));
    }
}

#[test]
fn nothing_overflows_at_100_000_acknowledgements_a_second() {
    // A queue grows for 5 s without a break, by 4 s in all.
    let samples: Vec<Sample> =
        (0..500_000).map(|i| (2 * PERIOD + 10 * i, 20_000 + 8 * i as u32)).collect();
    let lines = stream(&samples);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].points, 499_999);
    assert!((lines[0].slope - 800.0).abs() < 0.01, "{lines:?}");
}

/// Delays farther than 4.19 s from the period's first count as that far.
#[test]
fn delays_beyond_all_range_are_cut_off() {
    let far = (1 << 22) - 1;
    let steep = |i: u64| (40 * TICK * i, 1_000_000 * (1 + i as u32));
    let up: Vec<Sample> = (0..1900).map(steep).collect();
    let down: Vec<Sample> = (0..1500)
        .map(|i| (40 * TICK * i, if i == 0 { 20_000_000 } else { steep(i).1 % 30_000_000 }))
        .collect();
    for samples in [up, down] {
        let first = samples[0].1;
        let cut = |&(at, delay): &Sample| (at, delay.clamp(first.saturating_sub(far), first + far));
        let line = stream(&samples)[0];
        assert_eq!(line, stream(&samples.iter().map(cut).collect::<Vec<_>>())[0]);
        assert_close(&line, &batches(&paper(), &samples.iter().map(cut).collect::<Vec<_>>())[0]);
    }
}

/// Delays in ms at times in s, by straight lines through `corners`, one a `step` s.
fn drawn(corners: &[(f64, f64)], step: f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut t = corners[0].0;
    for pair in corners.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        while t < to {
            let ms = low + (high - low) * (t - from) / (to - from);
            samples.push(((t * 1e6).round() as u64, (ms * 1e3).round() as u32));
            t += step;
        }
    }
    samples
}

/// Only what the paper means finds `slope`; with `slips` it finds something else, and so would we.
fn assert_differ(samples: &[Sample], slips: Slips, slope: f64) {
    let ours = stream(samples)[0];
    let slipped = batches(&Tr { slips, ..paper() }, samples)[0];
    assert!((ours.slope - slope).abs() < 0.02 * slope, "{ours:?} instead of {slope}");
    assert!((slipped.slope - slope).abs() > 0.1 * slope, "{slipped:?} tells nothing");
}

/// Algorithm 2, line 7, subtracts delays where the text has times: any two rises of which the
/// second ends higher would be one, and the line would go through the rest between them.
#[test]
fn two_rises_far_apart_in_time_are_two() {
    let mut samples = drawn(&[(0.1, 50.0), (1.1, 70.0)], 0.01);
    samples.extend(drawn(&[(4.0, 55.0), (4.9, 91.0)], 0.01));
    let slips = Slips { gap_of_delays: true, ..Slips::default() };
    assert_differ(&samples, slips, 20.0);
}

/// Algorithm 2 copies groups up to the last but one.
#[test]
fn the_last_rise_of_a_period_counts() {
    let samples = drawn(&[(0.1, 50.0), (1.1, 100.0), (1.2, 50.0), (4.9, 87.0)], 0.01);
    let slips = Slips { last_group_dropped: true, ..Slips::default() };
    assert_differ(&samples, slips, 10.0);
}

/// Equation 17 subtracts a group's first time on top of its mean time, and so the slope of a late
/// rise would shrink to nearly nothing.
#[test]
fn a_late_rise_is_as_steep_as_an_early_one() {
    let slips = Slips { centred_twice: true, ..Slips::default() };
    for at in [1.0, 4.0] {
        let samples = drawn(&[(at, 50.0), (at + 0.9, 86.0)], 0.01);
        assert_differ(&samples, slips, 40.0);
    }
}

/// 30 Reno flows, half of them over each of two base round trips (ms), through 20 Mbit/s
/// (equations 8 to 10): what one flow of each kind sees.
fn thirty_flows(base: [f64; 2]) -> [Vec<Sample>; 2] {
    let packets_per_ms = 20e6 / 12_000.0 / 1e3;
    let mut samples = [Vec::new(), Vec::new()];
    let mut queue = 0.0;
    for ms in 1..5000u64 {
        let growth: f64 = base.iter().map(|base| 15.0 / (base + queue)).sum();
        queue += growth / packets_per_ms;
        if queue > 100.0 {
            queue = 0.0;
        }
        if ms % 10 == 0 {
            for (samples, base) in samples.iter_mut().zip(base) {
                samples.push((1000 * ms, (1e3 * (base + queue)) as u32));
            }
        }
    }
    samples
}

/// Equations 14 and 15 give n / C = 18 ms per round trip for a slope, whatever the round trip.
#[test]
fn the_slope_is_flows_over_capacity_and_round_trip() {
    let [ours, _] = thirty_flows([100.0, 100.0]);
    let slope = stream(&ours)[0].slope;
    // n / (C r): 180 ms/s with the empty queue's round trip, 90 with the full one's.
    assert!((90.0..180.0).contains(&slope), "{slope}");
}

#[test]
fn paths_of_unequal_round_trips_see_one_slope() {
    let [near, far] = thirty_flows([40.0, 160.0]).map(|samples| stream(&samples)[0]);
    assert!(paper().shared(&near, &far), "{near:?} {far:?}");
    assert!((near.slope - far.slope).abs() < 0.01 * far.slope, "{near:?} {far:?}");
}

/// A delay that stays where it fell to is no rise: s comes nearer to it for ever. Rounding must
/// not make an idle path's flat line its longest group.
#[test]
fn a_queue_that_stays_empty_hides_no_rise() {
    let mut samples = drawn(&[(0.1, 50.0), (1.1, 90.0)], 0.01);
    samples.extend(drawn(&[(1.1, 50.0), (4.9, 50.0)], 0.001));
    let line = stream(&samples)[0];
    assert!((line.slope - 40.0).abs() < 0.5, "{line:?}");
}

/// A connection that has nothing but delays.
struct Paths {
    conn: Conn,
}

impl Paths {
    fn new(paths: usize, params: &Params) -> Paths {
        let mut conn = Conn::with_params(LIA_TR, params);
        for path in 0..paths {
            conn.detect(path, &event(EventKind::Joined, 0, 0));
        }
        Paths { conn }
    }

    /// All samples in the order of their times; those of each path in a slot of its own.
    fn sample(&mut self, samples: &[(usize, Vec<Sample>)]) {
        let mut all: Vec<(u64, usize, u32)> = samples
            .iter()
            .flat_map(|(path, samples)| samples.iter().map(|(at, rtt)| (*at, *path, *rtt)))
            .collect();
        all.sort();
        for (at, path, rtt) in all {
            self.conn.detect(path, &event(EventKind::Acked, at, rtt));
        }
    }

    fn masks(&self) -> [u8; MAX_PATHS] {
        self.conn.masks().to_le_bytes()
    }
}

fn queue(base: f64, slope: f64, seed: u64) -> Saw {
    Saw { base, slope, up: 1.7, rate: 200.0, noise: 200.0, seed }
}

#[test]
fn paths_are_apart_until_their_slopes_meet_and_a_decision_waits_for_nobody_s_next_period() {
    let mut paths = Paths::new(2, &Params::default());
    let (a, b) = (queue(30.0, 40.0, 1), queue(90.0, 42.0, 2));
    paths.sample(&[(0, a.samples(0.1, 5.45)), (1, b.samples(0.1, 5.45))]);
    assert_eq!(paths.masks()[..2], [0b01, 0b10]);
    paths.sample(&[(0, a.samples(5.45, 5.55)), (1, b.samples(5.45, 5.55))]);
    assert_eq!(paths.masks()[..2], [0b11, 0b11]);
    let decision = paths.conn.decision().unwrap();
    assert!((PERIOD + SETTLE..PERIOD + SETTLE + S / 100).contains(&decision.at_us));
    assert_eq!(decision.places[..3], [Place::Group(0), Place::Group(0), Place::Undecided]);
}

#[test]
fn unequal_slopes_stay_apart() {
    let mut paths = Paths::new(2, &Params::default());
    paths.sample(&[
        (0, queue(30.0, 40.0, 1).samples(0.1, 31.0)),
        (1, queue(30.0, 60.0, 2).samples(0.1, 31.0)),
    ]);
    assert_eq!(paths.masks()[..2], [0b01, 0b10]);
    let places = paths.conn.decision().unwrap().places;
    assert_eq!(places[..2], [Place::Group(0), Place::Group(1)]);
}

/// Equation 18 divides by the larger slope, which may be 0, and would find any two paths alike
/// whose queues stay empty.
#[test]
fn flat_paths_share_nothing() {
    let mut paths = Paths::new(4, &Params::default());
    let flat = |ms| drawn(&[(0.1, ms), (11.0, ms)], 0.01);
    let slow = |seed| Saw { up: 5.0, noise: 20.0, ..queue(50.0, 8.0, seed) }.samples(0.1, 11.0);
    paths.sample(&[(0, flat(50.0)), (1, flat(50.0)), (2, slow(1)), (3, slow(2))]);
    assert_eq!(paths.masks()[..4], [1, 2, 4, 8]);
}

#[test]
fn three_paths_and_more_are_grouped_by_the_chains_of_pairs() {
    let mut paths = Paths::new(5, &Params::default());
    let slopes = [100.0, 40.0, 84.0, 300.0, 118.0]; // 2 is near 0, 0 is near 4, 2 is not near 4
    let samples: Vec<(usize, Vec<Sample>)> = slopes
        .iter()
        .enumerate()
        .map(|(i, slope)| (i, queue(50.0, *slope, i as u64).samples(0.1, 5.6)))
        .collect();
    paths.sample(&samples);
    assert_eq!(paths.masks()[..5], [0b10101, 0b00010, 0b10101, 0b01000, 0b10101]);
}

#[test]
fn rises_within_a_second_of_each_other_are_of_one_queue_and_later_ones_are_not() {
    for (gap, masks) in [(0.9, [0b11, 0b11]), (1.1, [0b01, 0b10])] {
        let mut paths = Paths::new(2, &Params::default());
        let later = 1.5 + gap;
        paths.sample(&[
            (0, drawn(&[(0.5, 50.0), (1.5, 90.0)], 0.01)),
            (1, drawn(&[(later, 50.0), (later + 1.0, 90.0)], 0.01)),
        ]);
        paths.sample(&[(0, vec![(5_100_000, 50_000)]), (1, vec![(5_600_000, 50_000)])]);
        assert_eq!(paths.masks()[..2], masks, "{gap}");
    }
}

#[test]
fn a_pair_is_held_for_100_s_after_it_was_last_found() {
    // The longest outlasts the ring of observations.
    for (hold, until) in [("100", 105.0), ("12.5", 20.0), ("200", 205.0)] {
        let mut params = Params::default();
        params.set("tr.hold_s", hold).unwrap();
        let mut paths = Paths::new(2, &params);
        let (a, b, other) = (queue(30.0, 40.0, 1), queue(90.0, 41.0, 2), queue(90.0, 200.0, 3));
        let mut second = b.samples(0.1, 5.0);
        second.extend(other.samples(5.0, until));
        // Found in the first period, which is decided on at 5.5 s.
        paths.sample(&[(0, a.samples(0.1, until)), (1, second)]);
        assert_eq!(paths.masks()[..2], [0b11, 0b11], "{hold}");
        let next = (until, until + 0.6);
        paths.sample(&[(0, a.samples(next.0, next.1)), (1, other.samples(next.0, next.1))]);
        assert_eq!(paths.masks()[..2], [0b01, 0b10], "{hold}");
    }
}

#[test]
fn an_idle_path_stays_held_and_keeps_no_others_from_deciding() {
    let mut paths = Paths::new(3, &Params::default());
    let (a, b, c) = (queue(30.0, 40.0, 1), queue(90.0, 41.0, 2), queue(50.0, 150.0, 3));
    paths.sample(&[(0, a.samples(0.1, 30.0)), (1, b.samples(0.1, 6.0)), (2, c.samples(0.1, 30.0))]);
    assert_eq!(paths.masks()[..3], [0b011, 0b011, 0b100]);
    assert!(paths.conn.decision().unwrap().at_us > 25 * S);
    assert_eq!(paths.conn.observation().unwrap().places[1], Place::Undecided);
    // Its old line is not compared with what the others see now.
    paths.sample(&[(0, a.samples(30.0, 121.0)), (2, c.samples(30.0, 121.0))]);
    assert_eq!(paths.masks()[..3], [0b001, 0b010, 0b100]);
}

#[test]
fn a_path_that_joins_in_a_slot_knows_nothing_of_the_last_one() {
    let mut paths = Paths::new(2, &Params::default());
    let (a, b) = (queue(30.0, 40.0, 1), queue(90.0, 41.0, 2));
    paths.sample(&[(0, a.samples(0.1, 6.0)), (1, b.samples(0.1, 6.0))]);
    assert_eq!(paths.masks()[..2], [0b11, 0b11]);
    paths.conn.detect(1, &event(EventKind::Left, 6 * S, 0));
    paths.conn.detect(1, &event(EventKind::Joined, 6 * S, 0));
    assert_eq!(paths.masks()[..2], [0b01, 0b10]);
    let other = queue(90.0, 200.0, 3);
    paths.sample(&[(0, a.samples(6.0, 21.0)), (1, other.samples(6.0, 21.0))]);
    assert_eq!(paths.masks()[..2], [0b01, 0b10]);
}

/// Neither does a silent flow's last line link others, on captures, which keep it.
#[test]
fn a_silent_flow_links_no_others() {
    let mut params = Params::default();
    params.set("tr.hold_s", "5").unwrap();
    let mut flows = Flows::new(Detector::TR, &params, 3).unwrap();
    let (a, b, c) = (queue(50.0, 84.0, 1), queue(50.0, 100.0, 2), queue(50.0, 118.0, 3));
    let of = [a.samples(0.1, 10.0), b.samples(0.1, 5.0), c.samples(0.1, 10.0)];
    let mut all: Vec<(u64, usize, u32)> = Vec::new();
    for (flow, samples) in of.iter().enumerate() {
        all.extend(samples.iter().map(|(at, delay)| (*at, flow, *delay)));
    }
    all.sort();
    let mut decisions = Vec::new();
    for (now_us, flow, delay) in all {
        let delay_us = Some(delay as i32);
        decisions
            .extend(flows.sample(flow, &FlowSample { now_us, delay_us, ..FlowSample::default() }));
    }
    decisions.extend(flows.advance(2 * PERIOD));
    let places: Vec<&[Place]> = decisions.iter().map(|decision| &decision.places[..]).collect();
    let [first, second] = places[..] else { panic!("{decisions:?}") };
    assert_eq!(first, [Place::Group(0); 3]);
    assert_eq!(second, [Place::Group(0), Place::Undecided, Place::Group(2)]);
}

/// What TR cannot report (a limit, not a wish): two queues of one n / (C r) that fill at one time.
#[test]
fn two_queues_that_fill_alike_are_taken_for_one() {
    let mut paths = Paths::new(2, &Params::default());
    let second = |seed| Saw { up: 2.1, ..queue(50.0, 40.0, seed) };
    let (a, b) = (queue(50.0, 40.0, 1).samples(0.1, 5.6), second(2).samples(0.1, 5.6));
    paths.sample(&[(0, a), (1, b)]);
    assert_eq!(paths.masks()[..2], [0b11, 0b11]);
}

#[test]
fn what_makes_a_match_can_be_set() {
    let masks = |name: &str, value: &str| {
        let mut params = Params::default();
        params.set(name, value).unwrap();
        let mut paths = Paths::new(2, &params);
        // They differ by 18 % of the larger, 22 % of the smaller.
        let (a, b) = (queue(30.0, 40.0, 1), queue(90.0, 49.0, 2));
        paths.sample(&[(0, a.samples(0.1, 5.7)), (1, b.samples(0.1, 5.7))]);
        paths.masks()[..2] == [0b11, 0b11]
    };
    assert!(masks("tr.eps", "0.2"));
    assert!(!masks("tr.eps", "0.1"));
    assert!(!masks("tr.slope_min", "50"));
    assert!(!masks("tr.settle_ms", "800"));
    assert!(!masks("tr.t_s", "6"));
}

#[test]
fn a_pair_may_have_to_match_several_times_in_a_row() {
    let coupled = |until: f64, parted: bool| {
        let mut params = Params::default();
        params.set("tr.matches", "3").unwrap();
        let mut paths = Paths::new(2, &params);
        let (a, b, other) = (queue(30.0, 40.0, 1), queue(90.0, 41.0, 2), queue(90.0, 200.0, 3));
        let mut second = b.samples(0.1, 5.0);
        second.extend(if parted { other } else { b }.samples(5.0, 10.0));
        second.extend(b.samples(10.0, until));
        paths.sample(&[(0, a.samples(0.1, until)), (1, second)]);
        paths.masks()[..2] == [0b11, 0b11]
    };
    assert!(!coupled(10.7, false));
    assert!(coupled(15.7, false));
    assert!(!coupled(20.7, true));
    assert!(coupled(25.7, true));
}

/// Two recordings of another simulator (ns-3, 30 CUBIC flows, droptail). An example of how far TR
/// gets: it finds the pairs that share in most periods, and those that do not in half of them,
/// because two equal queues often fill at one time. With the hold, that couples all of them.
#[test]
fn recorded_in_ns3() {
    let Some(folder) = narrows_testkit::data("traces/ns3") else { return };
    let found = |name: &str| {
        let flows = recorded(&folder.join(name));
        let lines: Vec<(usize, Vec<Line>)> =
            flows.iter().map(|(flow, samples)| (*flow, stream(samples))).collect();
        let mut shared = std::collections::BTreeMap::new();
        for (i, (a, of_a)) in lines.iter().enumerate() {
            for (b, of_b) in &lines[i + 1..] {
                assert_eq!((of_a.len(), of_b.len()), (24, 24));
                let pairs = of_a.iter().zip(of_b);
                shared.insert((*a, *b), pairs.filter(|(a, b)| paper().shared(a, b)).count());
            }
        }
        println!("{name}: of 24 periods each pair matches in {shared:?}");
        shared
    };
    let shared = found("E3_droptail_cubic_shared.rtt.csv.gz");
    assert!(shared.values().all(|n| *n >= 18), "{shared:?}");
    let apart = found("E3_droptail_cubic_sepeq.rtt.csv.gz");
    for (pair, n) in &apart {
        // Flows 0 and 1 are in one queue, 30 and 31 in another.
        let meet = [(0, 1), (30, 31)].contains(pair);
        assert!(if meet { *n >= 18 } else { (6..=16).contains(n) }, "{apart:?}");
    }
}

/// Samples of each flow of a recording, by the flow's number.
fn recorded(file: &std::path::Path) -> std::collections::BTreeMap<usize, Vec<Sample>> {
    let file = std::fs::File::open(file).unwrap();
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap();
    let mut flows = std::collections::BTreeMap::<usize, Vec<Sample>>::new();
    for line in text.lines().skip(1) {
        let field: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [flow, t_s, rtt_ms, _, rtx, dwell_ms] = field[..] else { panic!("{line}") };
        if rtx == 0.0 {
            let sample = ((t_s * 1e6).round() as u64, ((rtt_ms - dwell_ms) * 1e3).round() as u32);
            flows.entry(flow as usize).or_default().push(sample);
        }
    }
    flows
}
