//! `ssc` against RFC 8382 in floating point, and the mistakes that are known from other code.

use crate::common::detect;
use crate::reference::ssc as reference;

use narrows_laws::raw::{self, Detection, MAX_PATHS};
use narrows_laws::{Control, Detector, Event, EventKind, Params, Place, State, flag};
use narrows_testkit::Random;
use reference::{Estimates, History, Real};

fn rfc8382() -> Params {
    Params::default()
}

fn mptcp_sbd() -> Params {
    Params::default().with(&[("ssc.preset", "mptcp-sbd")])
}

/// A connection under the detector, with its records in sight.
struct Bench {
    conn: raw::Conn,
    detection: Box<Detection>,
    t_us: u64,
}

impl Bench {
    fn new(params: &Params, paths: usize) -> Bench {
        Bench::from(params, paths, 0)
    }

    /// Whose paths join in interval `number`.
    fn from(params: &Params, paths: usize, number: u64) -> Bench {
        params.check().unwrap();
        let control = Control { detector: Detector::SSC, ..Control::RENO };
        let conn = raw::Conn::new(control, params);
        let t_us = u64::from(params.word("ssc.t_ms"));
        let mut bench = Bench { conn, detection: Detection::new(params), t_us };
        for path in 0..paths {
            bench.send(
                path,
                EventKind::Joined,
                Event { now_us: number * t_us, ..Event::default() },
            );
        }
        bench
    }

    fn send(&mut self, path: usize, kind: EventKind, event: Event) {
        let event = Event { kind: kind as u32, state: State::Active as u32, ..event };
        detect(Detector::SSC, &mut self.conn, &mut self.detection, path, &event);
    }

    /// Delays of interval `number`, µs, evenly over it, each of a packet delivered; then losses.
    fn interval(&mut self, path: usize, number: u64, delays: &[i32], lost: u32) {
        self.flagged(path, number, delays, lost, 0);
    }

    fn flagged(&mut self, path: usize, number: u64, delays: &[i32], lost: u32, flags: u32) {
        let (begin, step) = (number * self.t_us, self.t_us / (delays.len() as u64 + 1));
        for (at, delay) in delays.iter().enumerate() {
            let ack = Event {
                now_us: begin + at as u64 * step,
                flags: flag::OWD | flag::DWELL | flags,
                owd_us: *delay,
                delivered: 1,
                lost: if at == 0 { lost } else { 0 },
                ..Event::default()
            };
            self.send(path, EventKind::Acked, ack);
        }
    }

    /// The estimates of interval `number`, which the next one's first event closes.
    fn close(&mut self, path: usize, number: u64) -> Option<Estimates> {
        let next = Event { now_us: (number + 1) * self.t_us, ..Event::default() };
        self.send(path, EventKind::Acked, next);
        let record = self.conn.record[path][(number & 1) as usize];
        let [skew, var, freq, loss, congested, _, _] = record.word;
        (record.stamp == (number + 1) as u32).then(|| Estimates {
            skew: f64::from(skew as i32) / 65_536.0,
            var: f64::from(var) / 256.0,
            freq: f64::from(freq) / 65_536.0,
            loss: f64::from(loss) / 65_536.0,
            congested: congested == 1,
        })
    }

    /// An interval and what it came to.
    fn after(&mut self, path: usize, number: u64, delays: &[i32]) -> Estimates {
        self.interval(path, number, delays, 0);
        self.close(path, number).unwrap()
    }

    /// Where the newest observation has `path`: a group's number, 14 or 15.
    fn place(&self, path: usize) -> u64 {
        self.detection.observed >> (4 * path) & 15
    }
}

fn close_to(ours: &Estimates, theirs: &Estimates) -> bool {
    (ours.skew - theirs.skew).abs() < 1e-4
        && (ours.var - theirs.var).abs() < 0.02 + 1e-5 * theirs.var
        && (ours.freq - theirs.freq).abs() < 1e-4
        && (ours.loss - theirs.loss).abs() < 1e-4
        && ours.congested == theirs.congested
}

/// Series of delays: noise, a queue that fills and drains, one that stands full, one that is mostly
/// empty, one with pauses.
fn series(kind: u64, random: &mut Random) -> impl FnMut() -> i32 + use<> {
    let (mut queue, mut random) = (0i64, Random(random.next()));
    let period = 20 + random.below(2_000) as i64;
    move || {
        queue += 1;
        let noise = random.below(997) as i64;
        (match kind {
            0 => noise * 53,
            1 => queue % period * 40 + noise,
            2 => 60_000 - (noise * noise / 40) + queue % 7,
            3 => 5_000 + noise * noise * noise / 20_000,
            _ => {
                if queue / period % 3 == 0 {
                    noise
                } else {
                    30_000 + 3 * noise
                }
            }
        }) as i32
    }
}

#[test]
fn estimates_are_those_of_the_rfc_on_any_series() {
    let mut random = Random(8382);
    let mut congested = [0; 2];
    for case in 0..120 {
        let mut params = if case % 2 == 0 { rfc8382() } else { mptcp_sbd() };
        if case >= 40 {
            let switch = |on| if on { "on" } else { "off" };
            params = params.with(&[
                ("ssc.n", &(2 + random.below(63)).to_string()),
                ("ssc.m", &(2 + random.below(63)).to_string()),
                ("ssc.f", &(1 + random.below(64)).to_string()),
                ("ssc.mask_noise", switch(random.below(2) == 1)),
                ("ssc.clock_skew", switch(random.below(4) == 0)),
            ]);
        }
        let mut real = Real::from(&params);
        real.f = real.f.min(real.m);
        let (mut bench, mut history) = (Bench::new(&params, 1), History::default());
        let mut next = series(case % 5, &mut random);
        for number in 0..200 {
            let samples = 1 + random.below(40) as usize;
            let lost = if random.below(3) == 0 { random.below(8) as u32 } else { 0 };
            let delays: Vec<i32> = (0..samples).map(|_| next()).collect();
            bench.interval(0, number, &delays, lost);
            let ours = bench.close(0, number).unwrap();
            let delays: Vec<f64> = delays.iter().map(|delay| f64::from(*delay)).collect();
            let theirs = history.close(&real, &delays, samples as u32, lost);
            assert!(
                close_to(&ours, &theirs),
                "case {case}, interval {number}: {ours:?} instead of {theirs:?}, {params:?}"
            );
            congested[usize::from(theirs.congested)] += 1;
        }
    }
    assert!(congested.iter().all(|n| *n > 4_000), "both happen: {congested:?}");
}

/// The authors' kernel takes one delay each 5 ms, so that a path that sends much has not many times the samples of
/// one that sends little; all packets count for the loss.
#[test]
fn of_the_delays_in_a_slot_the_first_counts() {
    let params = mptcp_sbd().with(&[("ssc.spacing_ms", "5")]);
    let (mut bench, mut history) = (Bench::new(&params, 1), History::default());
    let mut next = series(1, &mut Random(5));
    for number in 0..60 {
        // One each 2.5 ms.
        let delays: Vec<i32> = (0..139).map(|_| next()).collect();
        bench.interval(0, number, &delays, 2);
        let ours = bench.close(0, number).unwrap();
        let counting: Vec<f64> = delays.iter().step_by(2).map(|delay| f64::from(*delay)).collect();
        let theirs = history.close(&Real::from(&params), &counting, 139, 2);
        assert!(close_to(&ours, &theirs), "{number}: {ours:?} instead of {theirs:?}");
    }
}

/// Estimates put straight into the records of interval 100, and where they place the paths.
fn placed(params: &Params, flows: &[Estimates]) -> Vec<Place> {
    let number = 100;
    let mut bench = Bench::from(params, flows.len(), number);
    for (path, flow) in flows.iter().enumerate() {
        let record = &mut bench.conn.record[path][(number & 1) as usize];
        record.stamp = (number + 1) as u32;
        record.word = [
            (flow.skew * 65_536.0).round() as i32 as u32,
            (flow.var * 256.0).round() as u32,
            (flow.freq * 65_536.0).round() as u32,
            (flow.loss * 65_536.0).round() as u32,
            flow.congested.into(),
            1,
            0,
        ];
    }
    let now_us = (number + 2) * bench.t_us;
    bench.send(0, EventKind::Acked, Event { now_us, ..Event::default() });
    assert_eq!(bench.detection.observed >> 32, number + 1);
    (0..flows.len())
        .map(|path| match bench.place(path) {
            14 => Place::Clear,
            15 => Place::Undecided,
            group => Place::Group(group as u8),
        })
        .collect()
}

/// The groups among `places`, each in order.
fn groups(places: &[Place]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..MAX_PATHS as u8)
        .map(|group| (0..places.len()).filter(|i| places[*i] == Place::Group(group)).collect())
        .filter(|group: &Vec<usize>| !group.is_empty())
        .collect();
    groups.sort();
    groups
}

/// A congested path.
fn flow(freq: f64, var: f64, skew: f64, loss: f64) -> Estimates {
    Estimates { skew, var, freq, loss, congested: true }
}

#[test]
fn groups_are_those_of_the_rfc_for_any_estimates() {
    let mut random = Random(3);
    let mut sizes = [0; MAX_PATHS + 1];
    for case in 0..4_000 {
        let params = if case % 2 == 0 { rfc8382() } else { mptcp_sbd() };
        let flows: Vec<Estimates> = (0..1 + random.below(8))
            .map(|_| Estimates {
                // Steps of a third of a threshold, off its multiples: near, apart, and equal.
                freq: random.below(5) as f64 * 0.033,
                var: 10_000.0 * 0.965f64.powi(random.below(5) as i32),
                skew: random.below(5) as f64 * 0.047 - 0.3,
                loss: [0.0, 0.02, 0.101, 0.107, 0.15, 0.21][random.below(6) as usize],
                congested: random.below(5) > 0,
            })
            .collect();
        let places = placed(&params, &flows);
        let expected = reference::groups(&(&params).into(), &flows);
        assert_eq!(groups(&places), expected, "case {case}: {flows:?}");
        for (place, flow) in places.iter().zip(&flows) {
            assert_eq!(*place == Place::Clear, !flow.congested, "case {case}: {flows:?}");
        }
        expected.iter().for_each(|group| sizes[group.len()] += 1);
    }
    assert!(sizes[1..=4].iter().all(|n| *n > 100), "groups of all sizes: {sizes:?}");
}

/// Nor is what a path that left, or the slot's last one, has told before.
#[test]
fn a_path_that_is_not_there_is_not_observed() {
    for kind in [EventKind::Left, EventKind::Joined] {
        let params = short(rfc8382()).with(&[("ssc.trusted", "3")]);
        let mut bench = Bench::new(&params, 2);
        for number in 0..20 {
            (0..2).for_each(|path| bench.interval(path, number, &around(8), 0));
        }
        assert_eq!([0, 1].map(|path| bench.place(path)), [0, 0]);
        let event = Event { now_us: 20 * bench.t_us, ..Event::default() };
        bench.send(1, EventKind::Acked, event);
        bench.send(1, kind, event);
        let late = if kind == EventKind::Left { 2 } else { 1 };
        for number in 20..26 {
            (0..late).for_each(|path| bench.interval(path, number, &around(8), 0));
            let expected = if number == 20 { 0 } else { 15 };
            assert_eq!(bench.place(1), expected, "in interval {number}, {kind:?}");
            assert_eq!(bench.place(0), 0);
        }
    }
}

#[test]
fn frequency_divides_before_variability() {
    // In frequency the second is the bridge between the others; by variability it is none of them.
    let flows = [flow(0.0, 1e4, 0.0, 0.0), flow(0.08, 2e4, 0.0, 0.0), flow(0.16, 1e4, 0.0, 0.0)];
    assert_eq!(groups(&placed(&rfc8382(), &flows)), [vec![0, 2], vec![1]]);
}

#[test]
fn variability_and_loss_are_compared_relative_to_the_higher_the_others_absolutely() {
    let grouped = |a, b| groups(&placed(&rfc8382(), &[a, b])).len() == 1;
    assert!(grouped(flow(0.0, 1e5, 0.0, 0.0), flow(0.0, 0.95e5, 0.0, 0.0)));
    assert!(!grouped(flow(0.0, 10.0, 0.0, 0.0), flow(0.0, 8.0, 0.0, 0.0)));
    // 10 % of the higher, not of the lower: 1000 and 905 are nearer than that, 1000 and 899 not.
    assert!(grouped(flow(0.0, 1_000.0, 0.0, 0.0), flow(0.0, 905.0, 0.0, 0.0)));
    assert!(!grouped(flow(0.0, 1_000.0, 0.0, 0.0), flow(0.0, 899.0, 0.0, 0.0)));
    assert!(grouped(flow(0.02, 1e3, 0.0, 0.0), flow(0.1, 1e3, 0.0, 0.0)));
    assert!(grouped(flow(0.0, 1e3, 0.01, 0.0), flow(0.0, 1e3, 0.15, 0.0)));
    assert!(!grouped(flow(0.0, 1e3, 0.0, 0.0), flow(0.0, 1e3, 0.16, 0.0)));
    // Loss counts where it is above p_l only.
    assert!(grouped(flow(0.0, 1e3, 0.0, 0.01), flow(0.0, 1e3, 0.0, 0.05)));
    assert!(grouped(flow(0.0, 1e3, 0.0, 0.19), flow(0.0, 1e3, 0.0, 0.2)));
    assert!(!grouped(flow(0.0, 1e3, 0.0, 0.15), flow(0.0, 1e3, 0.0, 0.2)));
}

#[test]
fn mptcp_sbd_divides_by_loss_instead_of_skewness_where_there_is_much() {
    let flows = [flow(0.0, 1e3, -0.5, 0.2), flow(0.0, 1e3, 0.1, 0.2)];
    assert_eq!(groups(&placed(&mptcp_sbd(), &flows)), [[0, 1]]);
    assert_eq!(groups(&placed(&rfc8382(), &flows)).len(), 2);
}

#[test]
fn a_congested_path_alone_is_a_group_and_two_that_are_not_congested_are_none() {
    let clear = Estimates::default();
    let places = placed(&rfc8382(), &[clear, flow(0.0, 1e3, 0.0, 0.0), clear]);
    assert_eq!(places, [Place::Clear, Place::Group(1), Place::Clear]);
}

/// `below` of 20 delays under a far mean's level, the others over it: a skewness of
/// (below - (20 - below)) / 20, as far as the mean stands at 10 ms.
fn around(below: usize) -> Vec<i32> {
    (0..20)
        .map(|i| {
            if i < below { 10_000 - 100 / below as i32 } else { 10_000 + 100 / (20 - below) as i32 }
        })
        .collect()
}

/// M = 2, so that the skewness is that of the last intervals.
fn short(preset: Params) -> Params {
    preset.with(&[("ssc.m", "2"), ("ssc.f", "2")])
}

#[test]
fn congestion_stays_until_the_skewness_is_over_the_higher_threshold() {
    // Skewness 0.2 is between c_s = 0.1 and c_h = 0.3.
    let mut bench = Bench::new(&short(rfc8382()), 1);
    for number in 0..4 {
        bench.after(0, number, &around(10));
    }
    assert!(bench.after(0, 4, &around(8)).congested);
    for number in 5..20 {
        let now = bench.after(0, number, &around(12));
        assert!(now.congested, "interval {number}: {now:?}");
    }
    for number in 20..23 {
        bench.after(0, number, &around(14));
    }
    // Over it, it is gone, and 0.2 alone does not bring it back.
    for number in 23..30 {
        let now = bench.after(0, number, &around(12));
        assert!(!now.congested, "interval {number}: {now:?}");
    }
    assert!((0..2).map(|n| bench.after(0, 30 + n, &around(10))).last().unwrap().congested);
}

/// N = 20 intervals of the same delay each, 10 ms and what `off` says, without weights or masks.
fn crossings(off: &[i32]) -> f64 {
    let params = mptcp_sbd().with(&[("ssc.n", "20"), ("ssc.m", "50"), ("ssc.f", "50")]);
    let mut bench = Bench::new(&params, 1);
    // A long level before, with noise, so that mean and band stand: var is 2 ms, the band 1.4 ms.
    let noise = |off: i32| [10_000 + off - 2_000, 10_000 + off + 2_000].repeat(50);
    for number in 0..40 {
        bench.after(0, number, &noise(0));
    }
    let at = |number: usize, off: &i32| (40 + number as u64, *off);
    let last = off
        .iter()
        .enumerate()
        .map(|(n, off)| at(n, off))
        .fold(None, |_, (number, off)| Some(bench.after(0, number, &noise(off))));
    (last.unwrap().freq * 20.0).round()
}

#[test]
fn a_crossing_is_a_change_of_sides_however_long_the_mean_was_near() {
    assert_eq!(crossings(&[2_500]), 0.0, "the first only sets the side");
    assert_eq!(crossings(&[2_500, 2_500]), 0.0, "no crossing without a change");
    assert_eq!(crossings(&[2_500, 0, 0, 0, 2_500]), 0.0, "from the band back to the same side");
    assert_eq!(crossings(&[2_500, 0, 0, 0, -2_500]), 1.0, "through the band to the other side");
    assert_eq!(crossings(&[2_500, -2_500, 2_500]), 2.0);
    assert_eq!(crossings(&[1_000, -1_000, 1_000]), 0.0, "inside the band");
}

#[test]
fn old_crossings_are_forgotten() {
    let quiet = [0; 18];
    assert_eq!(crossings(&[&[2_500, -2_500], &quiet[..]].concat()), 1.0);
    assert_eq!(crossings(&[&[2_500, -2_500], &quiet[..], &[0]].concat()), 0.0 + 1.0);
    assert_eq!(crossings(&[&[2_500, -2_500], &quiet[..], &[0, 0]].concat()), 0.0);
}

#[test]
fn the_first_interval_has_no_mean_before_it() {
    // A mean of 0 before the first would make it all "above", and its deviation 50 ms.
    let mut bench = Bench::new(&rfc8382(), 1);
    let first = bench.after(0, 7, &[50_000; 10]);
    assert_eq!((first.skew, first.var), (0.0, 0.0));
    let second = bench.after(0, 8, &[50_000; 10]);
    assert_eq!((second.skew, second.var), (0.0, 0.0));
}

#[test]
fn the_mean_is_finer_than_the_samples() {
    // Half at 20.000 ms, half at 20.001 ms: as many below as above. A mean in whole µs sees half
    // of them on it.
    let mut bench = Bench::new(&rfc8382(), 1);
    let delays = [20_000, 20_001, 20_001, 20_001].repeat(8);
    let last = (0..40).map(|number| bench.after(0, number, &delays)).last().unwrap();
    assert_eq!(last.skew, -0.5, "one below, three above");
}

#[test]
fn an_interval_without_samples_is_skipped_and_congestion_survives_it() {
    let mut random = Random(5);
    for limited in [false, true] {
        let (mut here, mut there) = (Bench::new(&rfc8382(), 1), Bench::new(&rfc8382(), 1));
        let mut next = series(2, &mut random);
        let mut number = 0;
        for step in 0..150 {
            let delays: Vec<i32> = (0..20).map(|_| next()).collect();
            let one = here.after(0, step, &delays);
            let other = there.after(0, number, &delays);
            assert!(close_to(&one, &other), "{one:?} {other:?}");
            number += 1;
            if limited && step % 3 == 0 {
                // While the application sets the pace, delays are its own matter.
                there.flagged(0, number, &[500_000; 10], 0, flag::APP_LIMITED);
                assert!(there.close(0, number).is_none(), "no record of it");
                number += 1;
            }
            number += random.below(30); // silence, at most N intervals
        }
    }
}

/// As many acknowledgements of which the application set the pace, of 10.
#[test]
fn an_interval_is_the_applications_if_most_of_its_samples_are() {
    let sampled = |limited: u64| {
        let mut bench = Bench::new(&rfc8382(), 1);
        for n in 0..10 {
            let flags = if n < limited { flag::APP_LIMITED } else { 0 };
            let event = Event { now_us: n * 10_000, delivered: 1, ..Event::default() };
            bench.send(
                0,
                EventKind::Acked,
                Event { flags: flags | flag::OWD | flag::DWELL, ..event },
            );
        }
        bench.close(0, 0).is_some()
    };
    assert_eq!([0, 5, 6, 10].map(sampled), [true, true, false, false]);
}

#[test]
fn a_path_silent_for_longer_than_its_history_starts_over() {
    let after = |silent: u64| {
        let mut bench = Bench::new(&rfc8382(), 1);
        for number in 0..60 {
            assert!(bench.after(0, number, &around(5)).congested);
        }
        bench.after(0, 60 + silent, &around(15))
    };
    let (kept, over) = (after(49), after(50));
    assert!(kept.skew < -0.1 && kept.var > 0.0, "{kept:?}");
    assert_eq!((over.skew, over.var, over.freq), (0.0, 0.0, 0.0));
}

#[test]
fn loss_is_of_what_was_sent() {
    let mut bench = Bench::new(&rfc8382(), 1);
    bench.interval(0, 0, &[1_000; 30], 10);
    assert!((bench.close(0, 0).unwrap().loss - 0.25).abs() < 1e-4, "10 of 40, not of 30");
    // It alone makes a path congested, and counts for N intervals.
    let mut bench = Bench::new(&rfc8382(), 1);
    for number in 0..3 {
        bench.after(0, number, &around(15));
    }
    bench.interval(0, 3, &around(15), 20);
    assert!(bench.close(0, 3).unwrap().congested);
    let after: Vec<bool> = (4..60).map(|n| bench.after(0, n, &around(15)).loss > 0.0).collect();
    assert_eq!(after.iter().filter(|lost| **lost).count(), 49);
}

#[test]
fn delays_are_relative_and_their_clock_may_wrap() {
    let mut random = Random(17);
    for offset in [0, 1 << 30, i32::MAX - 20_000, i32::MIN + 5, -1_000] {
        let mut next = series(1, &mut Random(1));
        let (mut here, mut there) = (Bench::new(&rfc8382(), 1), Bench::new(&rfc8382(), 1));
        for number in 0..120 {
            let delays: Vec<i32> = (0..1 + random.below(30)).map(|_| next()).collect();
            let moved: Vec<i32> = delays.iter().map(|delay| delay.wrapping_add(offset)).collect();
            let (one, other) = (here.after(0, number, &delays), there.after(0, number, &moved));
            assert!(close_to(&one, &other), "{offset}: {one:?} {other:?}");
        }
    }
}

#[test]
fn the_number_of_intervals_may_wrap() {
    let (from, params) = ((1u64 << 32) - 30, short(rfc8382()));
    let params = params.with(&[("ssc.trusted", "3")]);
    let mut bench = Bench::from(&params, 2, from);
    for number in from..from + 60 {
        for path in 0..2 {
            bench.interval(path, number, &around(8), 0);
        }
    }
    assert!(
        bench.detection.decided >> 32 < 60,
        "decided after the wrap: {:x}",
        bench.detection.decided
    );
    assert_eq!(bench.detection.decided as u32 & 0xff, 0, "both in group 0");
}

#[test]
fn a_delay_far_out_is_no_sample_and_a_clock_that_was_set_starts_a_path_over() {
    let mut bench = Bench::new(&rfc8382(), 1);
    for number in 0..50 {
        bench.after(0, number, &around(5));
    }
    let with_stray = [&around(5)[..], &[5_000_000]].concat();
    let stray = bench.after(0, 50, &with_stray);
    assert!(stray.var < 200.0, "{stray:?}");
    let set: Vec<i32> = around(5).iter().map(|delay| delay + 60_000_000).collect();
    bench.interval(0, 51, &set, 0);
    assert!(bench.close(0, 51).is_none());
    let after = bench.after(0, 52, &set);
    assert_eq!((after.skew, after.var), (0.0, 0.0));
}

#[test]
fn clocks_that_run_apart_do_not_look_like_an_empty_queue() {
    // 1000 ppm and a level of noise: the mean of 10 s is 5 ms behind, and all delays are above it.
    let drifting = |clock_skew: &str| {
        let params = rfc8382().with(&[("ssc.clock_skew", clock_skew)]);
        let (mut bench, mut random) = (Bench::new(&params, 1), Random(2));
        let mut last = Estimates::default();
        for number in 0..100 {
            let drift = number as i32 * 350;
            let delays: Vec<i32> = (0..40).map(|_| drift + random.below(10_000) as i32).collect();
            last = bench.after(0, number, &delays);
        }
        last
    };
    let (plain, aware) = (drifting("off"), drifting("on"));
    assert!(plain.skew < -0.5, "{plain:?}");
    assert!(aware.skew.abs() < 0.15 && aware.freq == 0.0, "{aware:?}");
}

/// Acknowledgements every `every` us over 80 intervals, the packets they tell of and what is in the delay
/// of the nth, us.
fn samples(every: u64, flags: u32, ack: impl Fn(u64) -> (u32, i32)) -> Estimates {
    sampled(every, |n| {
        let (delivered, owd_us) = ack(n);
        Event { delivered, owd_us, flags, ..Event::default() }
    })
}

/// The same of whole events.
fn sampled(every: u64, ack: impl Fn(u64) -> Event) -> Estimates {
    let mut bench = Bench::new(&mptcp_sbd(), 1);
    for n in 1..80 * bench.t_us / every {
        bench.send(0, EventKind::Acked, Event { now_us: n * every, ..ack(n) });
    }
    bench.close(0, 79).unwrap()
}

/// Every eighth comes alone, after 50 ms, and waited for most of them.
#[test]
fn a_delayed_acknowledgement_is_no_sample() {
    let delay = |n: u64| 10_000 + (n * 7919 % 13) as i32 * 500;
    let often = |wait: i32| {
        let mut bench = Bench::new(&mptcp_sbd(), 1);
        let mut now_us = 0;
        while now_us < 80 * bench.t_us - 50_000 {
            let n = now_us / 10_000;
            let alone = n % 8 == 7;
            now_us += if alone { 50_000 } else { 10_000 };
            let waited = if alone { wait } else { 0 };
            let (delivered, owd_us) = (if alone { 1 } else { 2 }, delay(n) + waited);
            let event = Event { now_us, delivered, owd_us, flags: flag::OWD, ..Event::default() };
            bench.send(0, EventKind::Acked, event);
        }
        bench.close(0, 79).unwrap()
    };
    let (sampled, waited) = (often(0), often(45_000));
    assert!(close_to(&sampled, &waited), "{sampled:?}, {waited:?}");
}

/// All that the sender knows, at every acknowledgement: of a retransmission, too, and after silence.
#[test]
fn the_smoothed_round_trip_is_sampled_as_it_is() {
    let queue = |n: u64| (n / 12 % 5) as i32 * 4_000;
    let known = samples(60_000, flag::OWD | flag::DWELL, |n| (1, queue(n)));
    let smoothed = sampled(60_000, |n| Event {
        flags: flag::SRTT | if n % 3 == 0 { flag::RETRANS } else { flag::OWD },
        delivered: 1,
        rtt_us: 7 * n as u32,
        owd_us: n as i32,
        srtt8_us: 8 * (30_000 + queue(n)) as u32,
        ..Event::default()
    });
    assert!(known.var > 1_000.0 && close_to(&smoothed, &known), "{smoothed:?}, not {known:?}");
}

/// The round trip, which has another mean, does not stand in for it.
#[test]
fn a_one_way_delay_that_is_missing_is_no_sample() {
    let queue = |n: u64| (n / 12 % 5) as i32 * 4_000;
    let sampled = |missing: u32| {
        sampled(60_000, |n| Event {
            flags: flag::DWELL | if n % 3 == 0 { missing } else { flag::OWD },
            delivered: 1,
            rtt_us: 90_000,
            owd_us: queue(n),
            ..Event::default()
        })
    };
    // Retransmissions have no delay either.
    let [known, without, mixed] = [flag::RETRANS, flag::NO_DELAY, 0].map(sampled);
    assert!(known.var > 1_000.0 && close_to(&without, &known), "{without:?}, not {known:?}");
    assert!(!close_to(&mixed, &known), "{mixed:?}");
}

/// All it sends waits, 40 ms and sometimes a little longer: what is left is the queue's.
#[test]
fn a_path_with_a_window_of_one_packet_is_sampled_less_the_wait() {
    let queue = |n: u64| (n / 12 % 5) as i32 * 4_000;
    let known = samples(60_000, flag::OWD | flag::DWELL, |n| (1, queue(n)));
    let waited = samples(60_000, flag::OWD, |n| (1, 40_000 + queue(n)));
    assert!(known.var > 1_000.0 && close_to(&waited, &known), "{waited:?}, without {known:?}");
}

/// That all of its slot's last path waited says nothing of a path that joins there.
#[test]
fn a_path_that_joins_counts_delayed_acknowledgements_from_zero() {
    let sampled = |joins: bool| {
        let mut bench = Bench::new(&mptcp_sbd(), 1);
        for n in 1..=21 {
            if joins && n == 14 {
                let now_us = 13 * 50_000 + 5_000;
                bench.send(0, EventKind::Joined, Event { now_us, ..Event::default() });
            }
            let flags = flag::OWD;
            let event = Event { now_us: n * 50_000, delivered: 1, flags, ..Event::default() };
            bench.send(0, EventKind::Acked, event);
        }
        bench.close(0, 2).is_some()
    };
    assert_eq!([sampled(false), sampled(true)], [true, false]);
}

/// As another CPU's may be.
#[test]
fn a_clock_that_is_a_little_behind_makes_no_silence() {
    let mut bench = Bench::new(&mptcp_sbd(), 1);
    for n in 1..80 * bench.t_us / 10_000 {
        let (back_us, owd_us) = if n % 2 == 1 { (12_000, 8_000) } else { (0, 0) };
        let now_us = (n * 10_000).saturating_sub(back_us);
        let event = Event { now_us, delivered: 1, owd_us, flags: flag::OWD, ..Event::default() };
        bench.send(0, EventKind::Acked, event);
    }
    let estimates = bench.close(0, 79).unwrap();
    assert!(estimates.var > 3_000.0, "half of the delays are 8 ms longer: {estimates:?}");
}

#[test]
fn estimates_are_not_trusted_too_early() {
    let params = rfc8382();
    let mut bench = Bench::new(&params, 2);
    for number in 0..70 {
        for path in 0..2 {
            bench.interval(path, number, &around(5), 0);
        }
        // Interval 59 is the 60th; it is observed two later.
        let expected = if number < 61 { 15 } else { 0 };
        let there = bench.detection.observed != 0;
        assert!(there || number < 3);
        assert!(!there || bench.place(1) == expected, "in interval {number}");
    }
}
