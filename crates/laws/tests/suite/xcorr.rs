//! The detector `xcorr`: its answers on synthetic queues against the specification in floating
//! point, and what must not count as a common queue.

use crate::{common, reference};

use std::cmp::Ordering;
use std::fs;
use std::process::Command;

use narrows_laws::detect::{self, Finding, Flows, Sample};
use narrows_laws::raw::{self, Detection, MAX_PATHS};
use narrows_laws::replay::queued;
use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Output, Params, Place, Private, State, event_shared,
    flag,
};
use narrows_testkit::Random;
use reference::xcorr::{self, Answer, Samples};

/// A queue that AIMD flows fill and drop, of random depth and length, with random bursts: its delay
/// in ms at each ms.
fn queue(seed: u64, seconds: usize) -> Vec<f64> {
    let mut random = Random(seed);
    let (mut level, mut burst) = (10.0, 0.0);
    let (mut rate, mut top) = (0.01, 20.0);
    (0..1000 * seconds)
        .map(|_| {
            level += rate;
            if level > top {
                level *= 0.3 + 0.4 * random.unit();
                rate = 0.005 + 0.02 * random.unit();
                top = 25.0 + 15.0 * random.unit();
            }
            burst *= 0.99;
            if random.below(400) == 0 {
                burst += 10.0 * random.unit();
            }
            level + burst
        })
        .collect()
}

/// How a path samples its queue.
#[derive(Clone, Copy)]
struct Path {
    /// Packets a second.
    rate: f64,
    /// Delay behind the queue, ms.
    behind: usize,
    /// Noise, ms.
    noise: f64,
    /// Difference of clocks, parts per million.
    skew: f64,
}

const USUAL: Path = Path { rate: 200.0, behind: 5, noise: 0.2, skew: 0.0 };

fn sampled(queue: &[f64], path: &Path, seed: u64) -> Samples {
    let mut random = Random(seed);
    let mut time = 0.0;
    let mut samples = Vec::new();
    loop {
        // From half to one and a half of the usual distance.
        time += 1e3 / path.rate * (0.5 + random.unit());
        let Some(wait) = queue.get(time as usize) else { return samples };
        let at = time + wait + path.behind as f64;
        let delay = wait + path.behind as f64 + path.noise * random.unit() + at * path.skew / 1e6;
        // Packets of one path do not overtake each other.
        let last = samples.last().map_or(0.0, |&(last, _)| last);
        samples.push((f64::max(at, last), delay));
    }
}

/// What places say of flows 0 and 1.
fn of(places: &[Place]) -> Answer {
    match (places[0], places[1]) {
        (Place::Undecided, _) | (_, Place::Undecided) => Answer::Unsure,
        (one, other) if one == other => Answer::Shared,
        _ => Answer::Separate,
    }
}

/// The samples of flows 0 and 1, in the order of time.
fn together_in_time(one: &Samples, other: &Samples) -> Vec<(usize, Sample)> {
    let mut all: Vec<_> = one.iter().map(|sample| (0, sample)).collect();
    all.extend(other.iter().map(|sample| (1, sample)));
    all.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let sample = |&(time, delay): &(f64, f64)| {
        let delay_us = Some((1e3 * delay) as i32);
        Sample { now_us: (1e3 * time) as u64, delay_us, delivered: 1, ..Sample::default() }
    };
    all.into_iter().map(|(flow, of)| (flow, sample(of))).collect()
}

/// The answer in force at the end of each second.
fn held(one: &Samples, other: &Samples, seconds: usize) -> Vec<Answer> {
    let mut flows = Flows::new(Detector::XCORR, &Params::default(), 2).unwrap();
    let mut decisions = Vec::new();
    for (flow, sample) in together_in_time(one, other) {
        decisions.extend(flows.sample(flow, &sample));
    }
    (1..=seconds)
        .map(|second| {
            let until = decisions.iter().take_while(|d| d.at_us <= 1_000_000 * second as u64);
            until.last().map_or(Answer::Unsure, |decision| of(&decision.places))
        })
        .collect()
}

/// Shares of `answers` that are `right` and wrong.
fn shares(answers: &[Answer], right: Answer) -> (f64, f64) {
    let part = |wanted: &dyn Fn(Answer) -> bool| {
        answers.iter().filter(|&&answer| wanted(answer)).count() as f64 / answers.len() as f64
    };
    (part(&|answer| answer == right), part(&|answer| answer != right && answer != Answer::Unsure))
}

/// Both, over seeds, from 10 s on: as the specification has it, and right.
fn compare(name: &str, one: Path, other: Path, right: Answer) {
    const SECONDS: usize = 60;
    let (mut ours, mut floating) = (Vec::new(), Vec::new());
    for seed in 1..=8 {
        let shared = queue(2 * seed, SECONDS);
        let own = queue(2 * seed + 1, SECONDS);
        let one = sampled(&shared, &one, 100 + seed);
        let other =
            sampled(if right == Answer::Shared { &shared } else { &own }, &other, 200 + seed);
        ours.extend(held(&one, &other, SECONDS).split_off(10));
        floating.extend(xcorr::held(&one, &other, SECONDS).split_off(10));
    }
    let ((right_c, wrong_c), (right_f, wrong_f)) = (shares(&ours, right), shares(&floating, right));
    println!(
        "{name}: right {right_c:.3}, wrong {wrong_c:.3}; specification {right_f:.3}, {wrong_f:.3}"
    );
    let same = ours.iter().zip(&floating).filter(|(a, b)| a == b).count() as f64;
    assert!(same >= 0.99 * ours.len() as f64, "{name}: same in {same} of {}", ours.len());
    assert!(right_c >= 0.98 && wrong_c <= 0.01, "{name}: {right_c} right, {wrong_c} wrong");
}

#[test]
fn two_paths_in_one_queue_and_in_two_alike() {
    compare("one queue", USUAL, USUAL, Answer::Shared);
    compare("two queues", USUAL, USUAL, Answer::Separate);
}

#[test]
fn a_delay_behind_the_queue_is_looked_for() {
    for behind in [15, 35, 65, 95, 105] {
        let late = Path { behind, ..USUAL };
        compare(&format!("{} ms later", behind - 5), USUAL, late, Answer::Shared);
        compare(&format!("{} ms earlier", behind - 5), late, USUAL, Answer::Shared);
        compare(&format!("two, {} ms later", behind - 5), USUAL, late, Answer::Separate);
    }
}

#[test]
fn few_packets_are_enough() {
    for rate in [10.0, 20.0, 50.0] {
        let thin = Path { rate, ..USUAL };
        compare(&format!("one of {rate} packets/s"), USUAL, thin, Answer::Shared);
        compare(&format!("one of {rate} packets/s, two queues"), USUAL, thin, Answer::Separate);
        compare(&format!("both of {rate} packets/s"), thin, thin, Answer::Shared);
        compare(&format!("both of {rate} packets/s, two queues"), thin, thin, Answer::Separate);
    }
}

#[test]
fn clocks_that_drift_and_noise_are_no_matter() {
    let drift = Path { skew: 200.0, ..USUAL };
    compare("200 ppm", USUAL, drift, Answer::Shared);
    compare("200 ppm, two queues", USUAL, drift, Answer::Separate);
    compare("200 ppm of both", drift, drift, Answer::Shared);
    compare("200 ppm of both, two queues", drift, drift, Answer::Separate);
    let noisy = Path { noise: 3.0, ..USUAL };
    compare("3 ms of noise", noisy, noisy, Answer::Shared);
    compare("3 ms of noise, two queues", noisy, noisy, Answer::Separate);
}

/// Two paths of one connection, each alone in a queue: what their own sending does to the delay, in
/// ms, at the same moments.
fn together(now_ms: u64, alike: f64) -> Option<f64> {
    let level = match now_ms {
        // Slow start up to the loss, and what follows it.
        0..=999 => (now_ms as f64 / 1000.0).powi(4) * 80.0,
        1000..=1299 => 80.0 - (now_ms - 1000) as f64 / 300.0 * 50.0,
        _ => match now_ms % 5_000 {
            // The application pauses, the queue drains, fills again, and is as full as before.
            0..=399 => return None,
            400..=599 => (now_ms % 5_000 - 400) as f64 / 200.0 * 30.0,
            _ => 30.0,
        },
    };
    Some(level * alike)
}

/// The answers in force each second, of a host that reports `event`s of the two paths. The sender
/// knows its slow start and its pauses, a receiver sees losses, at `lost_ms`, and silence.
fn at_host(sender: bool, alike: f64, lost_ms: &[u64], params: &Params) -> Vec<Answer> {
    let control = Control { detector: Detector::XCORR, ..Control::LIA };
    let mut conn = Conn::with_params(control, params);
    let mut random = Random(3);
    let mut answers = Vec::new();
    let mut private = [Private::default(); 2];
    let mut report = |conn: &mut Conn, path: usize, event: &Event| match sender {
        true => drop(conn.event(path, &mut private[path], event)),
        false => conn.detect(path, event),
    };
    for path in 0..2 {
        let event = Event { kind: EventKind::Joined as u32, now_us: 1, ..Event::default() };
        report(&mut conn, path, &event);
    }
    for now_ms in 0..60_000 {
        if now_ms % 1000 == 999 {
            answers.push(conn.decision().map_or(Answer::Unsure, |decision| of(&decision.places)));
        }
        for path in 0..2 {
            let Some(level) = together(now_ms, alike) else { continue };
            let us = (1e3 * (level + 0.2 * random.unit())) as u32;
            let lost = lost_ms.contains(&now_ms);
            let now_us = 1000 * now_ms + 1000 + 400 * path as u64;
            let mut event = Event {
                kind: if lost { EventKind::Recovery } else { EventKind::Acked } as u32,
                flags: flag::OWD,
                state: State::Active as u32,
                now_us,
                sent_us: now_us.saturating_sub(u64::from(us) + 20_000),
                owd_us: us as i32,
                delivered: 2,
                lost: u32::from(lost),
                ..Event::default()
            };
            if sender {
                event.rtt_us = us + 20_000;
                event.srtt8_us = 8 * event.rtt_us;
            }
            report(&mut conn, path, &event);
        }
    }
    answers
}

#[test]
fn senders_that_start_and_pause_together_are_no_common_queue() {
    let rules = Params::default();
    let none = [("xcorr.start_s", "0"), ("xcorr.settle_ms", "0"), ("xcorr.pause_ms", "10000")];
    let no_rules = Params::default().with(&none);
    for sender in [true, false] {
        for alike in [1.0, 0.9] {
            let shared = |lost_ms: &[u64], params| {
                let answers = at_host(sender, alike, lost_ms, params);
                answers.iter().filter(|&&answer| answer == Answer::Shared).count()
            };
            assert_eq!(shared(&[1000], &rules), 0, "sender {sender}, alike {alike}");
            // A capture begins within a gap: what is lost then ends no slow start.
            assert_eq!(shared(&[0, 1000], &rules), 0, "lost at first, {sender}, {alike}");
            let without = shared(&[1000], &no_rules);
            // Of the rest noise does not explain how they differ.
            assert!(without > 15, "without rules: {without}");
        }
    }
}

/// A time in which a path of a connection samples a queue, s.
#[derive(Clone, Copy)]
struct Span<'a> {
    path: usize,
    queue: &'a [f64],
    time: [f64; 2],
    joins: bool,
    leaves: bool,
    /// The application limits it.
    limited: bool,
    /// Its acknowledgements have delays.
    sampled: bool,
}

impl<'a> Span<'a> {
    fn new(path: usize, queue: &'a [f64], time: [f64; 2]) -> Self {
        Span { path, queue, time, joins: true, leaves: true, limited: false, sampled: true }
    }
}

/// The masks of the paths there are at the end of each second, and the places, of a connection with
/// these paths, whose clock is `set` from the true time, both in seconds.
fn connection(
    spans: &[Span],
    seconds: usize,
    set: impl Fn(f64) -> f64,
) -> Vec<([u8; 8], Option<[Place; 8]>)> {
    let paths = spans.iter().fold(0, |paths, span| paths | 1 << span.path);
    seen(spans, seconds, set, |conn| {
        let masks = conn.masks().to_le_bytes().map(|mask| mask & paths);
        (masks, conn.decision().map(|decision| decision.places))
    })
}

/// What `look` sees of it at the end of each second.
fn seen<T>(
    spans: &[Span],
    seconds: usize,
    set: impl Fn(f64) -> f64,
    look: impl Fn(&Conn) -> T,
) -> Vec<T> {
    let mut events = Vec::new();
    for (seed, span) in spans.iter().enumerate() {
        let of = |kind, time_ms: f64| {
            let now_us = (1e6 * set(time_ms / 1e3)) as u64;
            (time_ms, span.path, Event { kind: kind as u32, now_us, ..Event::default() })
        };
        let [from, to] = span.time.map(|time| 1e3 * time);
        if span.joins {
            events.push(of(EventKind::Joined, from));
        }
        let samples = sampled(span.queue, &USUAL, 300 + seed as u64);
        for (time, delay) in samples.into_iter().filter(|&(time, _)| from < time && time < to) {
            let mut event = of(EventKind::Acked, time);
            event.2.delivered = 1;
            event.2.owd_us = (1e3 * delay) as i32;
            event.2.flags = if span.sampled { flag::OWD } else { 0 };
            event.2.flags |= if span.limited { flag::APP_LIMITED } else { 0 };
            events.push(event);
        }
        if span.leaves {
            events.push(of(EventKind::Left, to));
        }
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let control = Control { detector: Detector::XCORR, ..Control::LIA };
    let mut conn = Conn::new(control);
    let mut events = events.into_iter().peekable();
    (1..=seconds)
        .map(|second| {
            while let Some((_, path, event)) = events.next_if(|next| next.0 < 1e3 * second as f64) {
                conn.detect(path, &event);
            }
            look(&conn)
        })
        .collect()
}

fn on_time(time: f64) -> f64 {
    100.0 + time
}

#[test]
fn a_host_can_ask_for_each_pair() {
    let [one, other] = [1, 2].map(|seed| queue(seed, 60));
    let span = |path, queue, time| Span::new(path, queue, time);
    let leaves = span(2, &other, [0.0, 29.95]);
    let spans = [span(0, &one, [0.0, 60.0]), span(1, &one, [0.0, 60.0]), leaves];
    let of_pairs = |spans: &[Span]| {
        seen(spans, 60, on_time, |conn| {
            [(0, 1), (0, 2), (2, 1)].map(|(i, j)| conn.pair(i, j).unwrap())
        })
    };
    let [unsure, shared, separate] =
        [detect::Answer::Unsure, detect::Answer::Shared, detect::Answer::Separate];
    let seen = of_pairs(&spans);
    assert_eq!(seen[1].map(|pair| (pair.answer, pair.at_us)), [(unsure, 0); 3], "too early");
    assert_eq!(seen[28].map(|pair| pair.answer), [shared, separate, separate]);
    for pair in seen[28] {
        assert!((128_000_000..=129_000_000).contains(&pair.at_us), "{pair:?}");
        assert_eq!(pair.concordance > 0.55, pair.answer == shared, "{pair:?}");
    }
    // It has left, since the last decision.
    for pairs in &seen[29..] {
        assert_eq!(pairs.map(|pair| pair.answer), [shared, unsure, unsure]);
    }
    // Another path takes its slot: nothing is known of it at once, though the slot had an answer.
    let stays = span(2, &one, [29.97, 60.0]);
    let seen = of_pairs(&[spans[0], spans[1], leaves, stays]);
    assert_eq!(seen[29].map(|pair| pair.answer), [shared, unsure, unsure]);
    assert_eq!(seen[58].map(|pair| pair.answer), [shared; 3]);
    // One that is limited: nothing is known of it.
    let limited = Span { limited: true, ..span(2, &other, [0.0, 60.0]) };
    assert_eq!(
        of_pairs(&[spans[0], spans[1], limited])[58].map(|pair| pair.answer),
        [shared, unsure, unsure]
    );
    // The others know nothing of pairs.
    for control in [Control::LIA, Control { detector: Detector::SSC, ..Control::LIA }] {
        assert_eq!(Conn::new(control).pair(0, 1), None, "{}", control.detector.name());
    }
}

#[test]
fn a_path_that_is_not_known_is_coupled_after_ten_seconds_and_couples_no_others() {
    let [one, two, third] = [1, 2, 3].map(|seed| queue(seed, 60));
    let whole = [0.0, 60.0];
    let paths = [Span::new(0, &one, whole), Span::new(1, &two, whole)];
    // Never sampled, or limited by the application.
    for (name, path) in [
        ("without delays", Span { sampled: false, ..Span::new(2, &third, whole) }),
        ("limited", Span { limited: true, ..Span::new(2, &third, whole) }),
    ] {
        let seen = connection(&[paths[0], paths[1], path], 60, on_time);
        for (second, (masks, places)) in seen.iter().enumerate().take(59).skip(4) {
            // 42 intervals, the one in which the paths joined included: 9.9 s.
            let expected = if second < 9 { [0b001, 0b010, 0b100] } else { [0b101, 0b110, 0b111] };
            assert_eq!(masks[..3], expected, "{name}: after {second} s");
            assert_eq!(places.unwrap()[2], Place::Undecided, "{name}");
        }
    }
    // One that joins later has ten seconds of its own.
    let late = Span { limited: true, ..Span::new(2, &third, [30.0, 60.0]) };
    let seen = connection(&[paths[0], paths[1], late], 60, on_time);
    assert_eq!(seen[39].0[..3], [0b001, 0b010, 0b100]);
    assert_eq!(seen[42].0[..3], [0b101, 0b110, 0b111]);
}

#[test]
fn up_to_eight_paths_are_grouped() {
    for of in [&[0, 1, 0][..], &[0, 0, 1, 1], &[0, 1, 2, 1, 2, 0], &[0, 0, 1, 1, 2, 2, 0, 1]] {
        let (mut right, mut total) = (0, 0);
        for seed in 0..4 {
            let queues = [1, 2, 3].map(|n| queue(10 * seed + n, 60));
            let span = |path: usize| Span::new(path, &queues[of[path]], [0.0, 60.0]);
            let spans: Vec<_> = (0..of.len()).map(span).collect();
            let mask = |path: usize| (0..of.len()).map(|n| u8::from(of[n] == of[path]) << n).sum();
            let truth: Vec<u8> = (0..of.len()).map(mask).collect();
            for (masks, _) in &connection(&spans, 60, on_time)[9..59] {
                right += usize::from(masks[..of.len()] == truth);
                total += 1;
            }
        }
        println!("{of:?}: right in {right} of {total}");
        assert!(right * 100 >= total * 97, "{of:?}: right in {right} of {total}");
    }
}

#[test]
fn a_path_that_leaves_is_forgotten() {
    let [one, other] = [1, 2].map(|seed| queue(seed, 60));
    let first = [Span::new(0, &one, [0.0, 60.0]), Span::new(1, &one, [0.0, 20.0])];
    let seen = connection(&first, 25, on_time);
    assert_eq!(seen[18].0[..2], [0b11, 0b11]);
    let (_, places) = seen[20];
    assert_eq!(places.unwrap()[1], Place::Undecided, "it left");
    // It returns to another queue: not known, then separate, and never found in the first.
    let seen = connection(&[first[0], first[1], Span::new(1, &other, [21.0, 60.0])], 60, on_time);
    for (second, (masks, places)) in seen.iter().enumerate().skip(21) {
        let places = places.unwrap();
        assert_ne!(places[1], Place::Group(0), "after {second} s");
        if second < 59 {
            assert_eq!(masks[..2], [0b01, 0b10], "after {second} s");
        }
    }
}

#[test]
fn what_is_known_of_a_path_lasts_fifteen_seconds_of_silence() {
    let [one, other] = [1, 2].map(|seed| queue(seed, 80));
    let first = Span { leaves: false, ..Span::new(1, &one, [0.0, 20.0]) };
    for (silence, forgotten) in [(10.0, false), (20.0, true)] {
        let again = Span { joins: false, ..Span::new(1, &other, [20.0 + silence, 80.0]) };
        let spans = [Span::new(0, &one, [0.0, 80.0]), first, again];
        let seen = connection(&spans, 80, on_time);
        let places = seen[20 + silence as usize].1.unwrap();
        let held = places[1] == Place::Group(0);
        assert_eq!(held, !forgotten, "after {silence} s");
        for (masks, _) in &seen[40 + silence as usize..79] {
            assert_eq!(masks[..2], [0b01, 0b10], "after {silence} s");
        }
    }
}

#[test]
fn a_clock_that_is_set_is_no_matter_after_some_seconds() {
    let [one, other] = [1, 2].map(|seed| queue(seed, 80));
    for step in [-60.0, -14.0, -5.0, -1.0, 1.0, 600.0] {
        let set = |time: f64| 100.0 + time + if time < 30.0 { 0.0 } else { step };
        let whole = [0.0, 80.0];
        let spans =
            [Span::new(0, &one, whole), Span::new(1, &one, whole), Span::new(2, &other, whole)];
        let seen = connection(&spans, 80, set);
        for (masks, _) in seen[19..29].iter().chain(&seen[44..79]) {
            assert_eq!(masks[..3], [0b011, 0b011, 0b100], "{step} s");
        }
        // Its answers are forgotten at once if it is set back.
        if step < -1.0 {
            assert_eq!(seen[31].1.unwrap()[..3], [Place::Undecided; 3], "{step} s");
        }
    }
}

/// Old sums fade to nothing without new values; what rounding leaves of them must not disturb.
#[test]
fn an_answer_holds_while_one_of_two_is_limited_and_after() {
    let mut one = queue(1, 400);
    // A level that is far away from the first, so that references move.
    one[20_000..].iter_mut().for_each(|delay| *delay += 200.0);
    let span = |time| Span { joins: false, leaves: false, ..Span::new(1, &one, time) };
    let busy = Span { joins: true, ..span([0.0, 40.0]) };
    let limited = Span { limited: true, ..span([40.0, 350.0]) };
    let spans = [Span::new(0, &one, [0.0, 400.0]), busy, limited, span([350.0, 400.0])];
    let seen = connection(&spans, 400, on_time);
    for (second, (masks, places)) in seen.iter().enumerate().take(399).skip(9) {
        assert_eq!(masks[..2], [0b11, 0b11], "after {second} s");
        assert_eq!(places.unwrap()[1], Place::Group(0), "after {second} s");
    }
}

/// A queue that is another each 120 ms, up to 30 ms long.
fn rough(seed: u64, seconds: usize) -> Vec<f64> {
    let mut random = Random(seed);
    let levels: Vec<f64> = (0..=1000 * seconds / 120).map(|_| 30.0 * random.unit()).collect();
    (0..1000 * seconds).map(|ms| levels[ms / 120]).collect()
}

/// The slow sums may still say what the fast ones had found to be over, as these know nothing first.
#[test]
fn an_older_answer_does_not_come_back_after_a_pause() {
    let mut separate = 0;
    for seed in 0..4 {
        let [one, other] = [1, 2].map(|n| rough(10 * seed + n, 40));
        for pause in [22.0, 23.0, 24.0, 25.0] {
            let span =
                |queue, time| Span { joins: false, leaves: false, ..Span::new(1, queue, time) };
            let spans = [
                Span::new(0, &one, [0.0, 40.0]),
                Span { joins: true, ..span(&one, [0.0, 20.0]) },
                span(&other, [20.0, pause]),
                Span { limited: true, ..span(&other, [pause, 32.0]) },
                span(&other, [32.0, 40.0]),
            ];
            // With what was still on its way.
            let seen = &connection(&spans, 40, on_time)[pause as usize..32];
            if seen[0].0[..2] == [0b01, 0b10] {
                separate += 1;
                for (second, (masks, _)) in seen.iter().enumerate() {
                    assert_eq!(masks[..2], [0b01, 0b10], "seed {seed}, {second} s after {pause}");
                }
            }
        }
    }
    assert!(separate >= 8, "in {separate} of 16");
}

#[test]
fn a_pair_is_described() {
    let [one, other] = [1, 2].map(|seed| queue(seed, 60));
    for (second, expected) in [(&one, Answer::Shared), (&other, Answer::Separate)] {
        let mut flows = Flows::new(Detector::XCORR, &Params::default(), 2).unwrap();
        let mut first = None;
        let samples = together_in_time(&sampled(&one, &USUAL, 1), &sampled(second, &USUAL, 2));
        for (flow, sample) in samples {
            flows.sample(flow, &sample);
            let pair = flows.pair(0, 1).unwrap();
            match pair.answer {
                detect::Answer::Unsure => assert!(pair.why.is_some() && pair.at_us == 0),
                _ => first = first.or(Some((sample.now_us, pair))),
            }
        }
        let (now_us, pair) = first.unwrap();
        // It counts after 3.5 s, and a smooth queue says something after 5 s more.
        assert!((3_500_000..10_000_000).contains(&now_us), "{now_us}");
        assert!(pair.at_us <= now_us && now_us < pair.at_us + 1_000_000, "{pair:?}");
        let last = flows.pair(0, 1).unwrap();
        assert_eq!(last.answer == detect::Answer::Shared, expected == Answer::Shared);
        // Shared by the slow sums, as it is smooth; separate by the fast ones.
        let least = if expected == Answer::Shared { 4 } else { 2 };
        assert!(last.at_us > 58_000_000 && last.observations >= least, "{last:?}");
        assert_eq!(last.concordance > 0.55, expected == Answer::Shared, "{last:?}");
        assert_eq!(last, flows.pair(1, 0).unwrap());
    }
}

const MEMBERS: usize = 8;

/// The places that the C gives to members with these answers on pairs i > j, at i (i - 1) / 2 + j, and as bits
/// whom each is known to share with.
fn grouped(answers: &[[u8; 28]]) -> Vec<[[u32; MEMBERS]; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("groups");
    let c = concat!(env!("CARGO_MANIFEST_DIR"), "/c");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/reference/groups.c");
    let flags = ["-O1", "-I", c, "-o"];
    let built = Command::new("cc").args(flags).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    let lines: String = answers
        .iter()
        .map(|one| one.map(|answer| char::from(b'0' + answer)).iter().collect::<String>() + "\n")
        .collect();
    let input = folder.path().join("answers");
    fs::write(&input, lines).unwrap();
    let output = Command::new(&program).stdin(fs::File::open(&input).unwrap()).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let numbers = |line: &str| {
        let all: Vec<u32> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        [0, MEMBERS].map(|at| std::array::from_fn(|n| all[at + n]))
    };
    output.lines().map(numbers).collect()
}

/// Answers on pairs, in the order of [`grouped`].
fn answer(answers: &[u8; 28], i: usize, j: usize) -> u8 {
    match i.cmp(&j) {
        Ordering::Less => answers[j * (j - 1) / 2 + i],
        Ordering::Equal => 1,
        Ordering::Greater => answers[i * (i - 1) / 2 + j],
    }
}

/// One wrong answer of shared links two bottlenecks, whose other pairs are known to be separate.
#[test]
fn paths_that_are_known_to_be_separate_are_not_cut_for_each_other() {
    let bottleneck = |member: usize| member / 4;
    let mut answers = [0; 28];
    for i in 1..MEMBERS {
        for j in 0..i {
            answers[i * (i - 1) / 2 + j] = if bottleneck(i) == bottleneck(j) { 1 } else { 2 };
        }
    }
    let [_, right] = grouped(&[answers])[0];
    assert_eq!(right, [0x0f, 0x0f, 0x0f, 0x0f, 0xf0, 0xf0, 0xf0, 0xf0]);
    answers[4 * 3 / 2 + 3] = 1;
    let [places, known] = grouped(&[answers])[0];
    assert_eq!(places, [0; MEMBERS], "they grow together");
    assert_eq!(known, [0x0f, 0x0f, 0x0f, 0x1f, 0xf8, 0xf0, 0xf0, 0xf0]);
    // Without an answer of its own a pair is known by others.
    answers[1] = 0; // of 2 and 0
    assert_eq!(grouped(&[answers])[0][1][2], 0x0f);
}

/// The answers of `members` members, shared or separate as their groups, with some not known.
fn partial(random: &mut Random, groups: u64, known: u64) -> [u8; 28] {
    let of: [u64; MEMBERS] = std::array::from_fn(|_| random.below(groups));
    let mut answers = [0; 28];
    for i in 1..MEMBERS {
        for j in 0..i {
            if random.below(100) < known {
                answers[i * (i - 1) / 2 + j] = if of[i] == of[j] { 1 } else { 2 };
            }
        }
    }
    answers
}

/// The policy of coupling, who grows together and who is cut together, by what the same answers say together.
#[test]
fn what_is_not_known_is_coupled_and_as_little_else_as_can_be() {
    const UNDECIDED: u32 = 0xff;
    let mut random = Random(5);
    let mut all = Vec::new();
    for known in [5, 20, 50, 80, 95, 100] {
        all.extend((0..500).map(|n| {
            let mut answers = partial(&mut random, 1 + n % 5, known);
            if n % 4 == 0 {
                // One that may contradict the others.
                answers[random.below(28) as usize] = 1 + random.below(2) as u8;
            }
            answers
        }));
    }
    let (mut merged, mut between, mut spared) = (0, 0, 0);
    for (answers, [places, known]) in all.iter().zip(grouped(&all)) {
        let answer = |i, j| answer(answers, i, j);
        let members = || 0..MEMBERS;
        let said = |n| {
            [detect::Answer::Unsure, detect::Answer::Shared, detect::Answer::Separate]
                [usize::from(n)]
        };
        let pairs = members().flat_map(|i| (0..i).map(move |j| (i, j)));
        let finding = Finding::new(MEMBERS, pairs.map(|(i, j)| (i, j, said(answer(i, j)))));
        let apart = |i: usize, j: usize| finding.answer(i, j) == detect::Answer::Separate;
        let answered = |i: usize| members().any(|j| j != i && answer(i, j) != 0);
        let doubt = |i: usize, j: usize| {
            finding.answer(i, j) == detect::Answer::Unsure && answered(i) && answered(j)
        };
        let coupled = |i: usize, j: usize| {
            places[i] == UNDECIDED || places[j] == UNDECIDED || places[i] == places[j]
        };
        for i in members() {
            // Undecided: without an answer, or of one of two groups that are separate.
            let two =
                members().any(|j| doubt(i, j) && members().any(|k| doubt(i, k) && apart(j, k)));
            assert_eq!(places[i] == UNDECIDED, !answered(i) || two, "{i}: {answers:?}: {places:?}");
            for j in members().filter(|&j| j != i) {
                if !apart(i, j) {
                    assert!(coupled(i, j), "{i} and {j}: {answers:?}: {places:?}");
                } else if places[i] != UNDECIDED && places[j] != UNDECIDED {
                    assert_ne!(places[i], places[j], "{i} and {j}: {answers:?}");
                }
                merged += u32::from(places[i] == places[j] && doubt(i, j));
                // Cut together: who is found to share, but not by a pair that itself says otherwise.
                let shared = finding.answer(i, j) == detect::Answer::Shared;
                let cut = shared && said(answer(i, j)) != detect::Answer::Separate;
                assert_eq!(known[i] >> j & 1 == 1, cut, "{i} and {j}: {answers:?}: {known:x?}");
                spared += u32::from(shared && !cut);
            }
            assert!(known[i] >> i & 1 == 1, "{i}: {answers:?}: {known:x?}");
            between += u32::from(two);
        }
    }
    let seen = [merged, between, spared];
    assert!(seen.iter().all(|&n| n > 100), "merged, between, not cut for each other: {seen:?}");
}

#[test]
fn the_table_of_thresholds_is_that_of_the_formula() {
    let header = include_str!("../../c/detect/xcorr/theta.h");
    let (_, table) = header.split_once("nr_xcorr_theta[NR_XCORR_THETAS]").unwrap();
    let (_, table) = table.split_once('{').unwrap();
    let (table, _) = table.split_once('}').unwrap();
    let table: Vec<f64> = table.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    assert_eq!(table.len(), 256);
    for (n_eff, less) in table.into_iter().enumerate() {
        let theta = (5.0 / (n_eff as f64 + 1.0).sqrt()).tanh();
        assert!((less - 65536.0 * (1.0 - theta)).abs() <= 1.0, "{n_eff}: {less}");
    }
}

/// The queue of one AIMD flow alone: a saw-tooth of 2.5 s, whose drops come up to 50 ms early or late.
fn saw_tooth(seed: u64, seconds: usize) -> Vec<f64> {
    let mut random = Random(seed);
    let (mut level, mut late) = (30.0, 0.0);
    (0..1000 * seconds)
        .map(|ms| {
            let phase = ms % 2500;
            if phase == 0 {
                late = 50.0 * random.unit();
            }
            let dropping = (late..late + 50.0).contains(&(phase as f64));
            level = f64::clamp(level + if dropping { -0.6 } else { 0.0122 }, 30.0, 60.0);
            level
        })
        .collect()
}

#[test]
fn saw_teeth_in_step_are_no_common_queue() {
    let busy = Path { rate: 1600.0, noise: 0.5, ..USUAL };
    for seed in 0..4 {
        let [one, other] = [1, 2].map(|n| saw_tooth(10 * seed + n, 60));
        let own = sampled(&one, &busy, 3 * seed);
        let answers = held(&own, &sampled(&other, &busy, 3 * seed + 1), 60);
        assert!(!answers.contains(&Answer::Shared), "seed {seed}: {answers:?}");
        let answers = held(&own, &sampled(&one, &busy, 3 * seed + 1), 60);
        assert_eq!(answers[10..], [Answer::Shared; 50], "seed {seed}");
    }
}

/// A radio link behind the queue, whose delays deviate by so much, with this memory, ms.
fn radio(samples: &Samples, deviation: f64, memory: f64, seed: u64) -> Samples {
    let mut random = Random(seed);
    let (mut last, mut noise): (f64, f64) = (0.0, 0.0);
    let mut delayed = |&(time, delay): &(f64, f64)| {
        let kept = (-(time - last) / memory).exp();
        noise = kept * noise + (12.0 * (1.0 - kept * kept)).sqrt() * (random.unit() - 0.5);
        last = time;
        (time, delay + deviation * (3.0 + noise))
    };
    samples.iter().map(&mut delayed).collect()
}

#[test]
fn noise_that_lasts_for_longer_than_a_bin_is_no_second_queue() {
    let path = Path { rate: 400.0, ..USUAL };
    for (deviation, memory) in [(2.0, 10.0), (2.0, 20.0), (3.0, 20.0)] {
        for seed in 0..4 {
            let (own, other) = (saw_tooth(10 * seed + 1, 60), queue(10 * seed + 2, 60));
            let later = [&own[2020..], &own[..2020]].concat();
            let seen = |queue: &[f64], n: u64| {
                let samples = sampled(queue, &path, 3 * seed + n);
                radio(&samples, deviation, memory, 100 + 3 * seed + n)
            };
            let one = seen(&own, 0);
            for (name, queue, right) in [
                ("the same", &own, Answer::Shared),
                ("another", &other, Answer::Separate),
                ("one that drops 480 ms later", &later, Answer::Separate),
            ] {
                let name = format!("{name}, {deviation} ms of noise for {memory} ms, seed {seed}");
                let two = seen(queue, 1);
                assert_eq!(held(&one, &two, 60)[15..], [right; 45], "{name}");
                let same = agreed(&name, &one, &two);
                assert!(same >= 54, "{name}: as specified in {same} of 60");
            }
        }
    }
}

/// The answers of paths that sample `one` until `at_ms`, then `before` and `after`.
fn then(one: &[f64], after: [&[f64]; 2], at_ms: usize, path: &Path) -> Vec<Answer> {
    let [a, b] = [0, 1].map(|n| [&one[..at_ms], &after[n][at_ms..]].concat());
    let seconds = a.len() / 1000;
    held(&sampled(&a, path, 1), &sampled(&b, path, 2), seconds)
}

/// A value that is drawn anew bit by bit, with a variance of 1 and a memory of 100 ms.
fn wave(seed: u64, seconds: usize) -> Vec<f64> {
    let mut random = Random(seed);
    let mut value = 0.0;
    let mut next = || {
        // The variance of a unit is 1/12; of the sum it is that over 1 - 0.99^2.
        value = 0.99 * value + (12.0_f64 * (1.0 - 0.99 * 0.99)).sqrt() * (random.unit() - 0.5);
        value
    };
    (0..1000 * seconds).map(|_| next()).collect()
}

#[test]
fn queues_nearly_in_step_are_not_shared_for_what_the_slow_sums_do_not_know() {
    let mix = |one: &[f64], part: f64, other: &[f64]| -> Vec<f64> {
        one.iter().zip(other).map(|(a, b)| 40.0 + 8.0 * a + part * b).collect()
    };
    for seed in 0..8 {
        let [common, a, b] = [1, 2, 3].map(|n| wave(10 * seed + n, 40));
        let one = mix(&common, 0.0, &a);
        let two = [mix(&common, 6.0, &a), mix(&common, 6.0, &b)];
        let answers = then(&one, [&two[0], &two[1]], 0, &USUAL);
        assert!(!answers.contains(&Answer::Shared), "seed {seed}: {answers:?}");
        let answers = then(&one, [&two[0], &two[1]], 20_000, &USUAL);
        assert_eq!(answers[10..20], [Answer::Shared; 10], "seed {seed}");
        assert!(!answers[23..].contains(&Answer::Shared), "seed {seed}: {answers:?}");
    }
}

/// Sums are of what is left beside a reference, which follows slowly: far from it, a count that is rounded would be missed
/// in a variance.
#[test]
fn quiet_queues_are_compared_also_far_from_where_they_were() {
    let path = Path { rate: 400.0, noise: 0.3, ..USUAL };
    for seed in 0..8 {
        // For the last 20 s both are longer by so much.
        let risen = |rise: f64| {
            let quiet = |n: u64| -> Vec<f64> {
                let queue = wave(10 * seed + n, 40).into_iter().enumerate();
                let risen = |ms| rise * (ms as f64 / 500.0 - 40.0).clamp(0.0, 1.0);
                queue.map(|(ms, x)| 20.0 + 0.5 * x + risen(ms)).collect()
            };
            let [one, other] = [1, 2].map(|n| sampled(&quiet(n), &path, 100 * n + seed));
            let mut flows = Flows::new(Detector::XCORR, &Params::default(), 2).unwrap();
            for (flow, sample) in together_in_time(&one, &other) {
                flows.sample(flow, &sample);
            }
            flows.pair(0, 1).unwrap()
        };
        for rise in [0.0, 300.0] {
            let pair = risen(rise);
            assert_eq!(pair.answer, detect::Answer::Separate, "seed {seed}, {rise} ms: {pair:?}");
            assert!(pair.at_us > 39_000_000, "seed {seed}, {rise} ms, an old answer: {pair:?}");
        }
    }
}

/// The difference of two delays is then far from its reference.
#[test]
fn quiet_queues_are_not_shared_once_one_path_is_longer() {
    let path = Path { rate: 200.0, noise: 2.0, ..USUAL };
    for seed in 0..8 {
        for step in [30.0, 100.0] {
            let quiet = |n: u64, step: f64| -> Vec<f64> {
                let queue = wave(10 * seed + n, 60).into_iter().enumerate();
                let longer = |ms| if ms < 30_000 { 0.0 } else { step };
                queue.map(|(ms, x)| 20.0 + 0.15 * x + longer(ms)).collect()
            };
            let one = sampled(&quiet(1, step), &path, 100 + seed);
            let answers = held(&one, &sampled(&quiet(2, 0.0), &path, 200 + seed), 60);
            let shared = answers.iter().filter(|&&answer| answer == Answer::Shared).count();
            let last = answers.last();
            assert_eq!(
                (shared, last),
                (0, Some(&Answer::Separate)),
                "seed {seed}, {step} ms: {answers:?}"
            );
        }
    }
}

#[test]
fn one_queue_that_noise_hides_is_not_called_two() {
    for seed in 1..=8 {
        for (height, noise) in [(0.1, 10.0), (0.05, 5.0)] {
            let queue: Vec<f64> = queue(seed, 60).iter().map(|delay| height * delay).collect();
            let path = Path { noise, ..USUAL };
            let answers =
                held(&sampled(&queue, &path, 100 + seed), &sampled(&queue, &path, 200 + seed), 60);
            let separate = answers.iter().filter(|&&answer| answer == Answer::Separate).count();
            assert_eq!(separate, 0, "seed {seed}, {height}, {noise} ms: {answers:?}");
        }
    }
}

#[test]
fn two_queues_that_noise_hides_are_told_when_there_is_enough_of_them() {
    for seed in 0..8 {
        let [one, other] = [1, 2].map(|n| -> Vec<f64> {
            wave(10 * seed + n, 60).iter().map(|x| 10.0 + 1.5 * x).collect()
        });
        let path = Path { noise: 10.0, ..USUAL };
        let answers =
            held(&sampled(&one, &path, 100 + seed), &sampled(&other, &path, 200 + seed), 60);
        assert_eq!(answers[45..], [Answer::Separate; 15], "seed {seed}: {answers:?}");
    }
}

#[test]
fn a_loud_start_is_forgotten_with_its_noise() {
    for seed in 1..=8 {
        let quiet = queue(seed, 60);
        let [mut a, mut b] = [quiet.clone(), quiet];
        // For 10 s delays are rough behind the queue, on each path for itself.
        let rough = [1, 2].map(|n| wave(10 * seed + n, 10));
        for ms in 0..10_000 {
            a[ms] += 6.0 * rough[0][ms];
            b[ms] += 6.0 * rough[1][ms];
        }
        let answers = held(&sampled(&a, &USUAL, 1), &sampled(&b, &USUAL, 2), 60);
        assert_eq!(answers[36..], [Answer::Shared; 24], "seed {seed}: {answers:?}");
    }
}

#[test]
fn clocks_are_no_queue_and_hide_none() {
    for skew in [50.0, 100.0, -200.0, 200.0] {
        let path = Path { skew, ..USUAL };
        for seed in 1..=4 {
            let none = vec![0.0; 60_000];
            let answers =
                held(&sampled(&none, &path, 100 + seed), &sampled(&none, &path, 200 + seed), 60);
            assert!(!answers.contains(&Answer::Shared), "{skew} ppm, {seed}: {answers:?}");
            // A queue of 1.5 ms.
            let low: Vec<f64> = queue(seed, 60).iter().map(|delay| 0.05 * delay).collect();
            let answers =
                held(&sampled(&low, &path, 100 + seed), &sampled(&low, &path, 200 + seed), 60);
            assert_eq!(answers[14..], [Answer::Shared; 46], "{skew} ppm, {seed}: {answers:?}");
        }
    }
}

/// The seconds of `one` and `other` in which the C and the specification have the same answer in force.
fn agreed(name: &str, one: &Samples, other: &Samples) -> usize {
    let (ours, floating) = (held(one, other, 60), xcorr::held(one, other, 60));
    let same = ours.iter().zip(&floating).filter(|(a, b)| a == b).count();
    println!("{name}: {same} of 60; {ours:?}; specification {floating:?}");
    same
}

/// Two queues, how both paths sample them, and the seconds of 60 in which the answers must agree.
type Case<'a> = (&'a str, &'a [f64], &'a [f64], Path, usize);

/// Where noise and clocks decide, on the way to the answer, too.
#[test]
fn what_noise_and_clocks_forbid_is_as_specified() {
    let scaled = |queue: &[f64], by: f64| -> Vec<f64> { queue.iter().map(|d| by * d).collect() };
    let noisy = |noise| Path { noise, ..USUAL };
    let busy = Path { rate: 1600.0, noise: 0.5, ..USUAL };
    let none = vec![0.0; 60_000];
    let (mut agreements, mut total) = (0, 0);
    for seed in 1..=4 {
        let [one, other] = [2 * seed, 2 * seed + 1].map(|seed| queue(seed, 60));
        let [low, hidden] = [0.05, 0.1].map(|by| scaled(&one, by));
        let [a, b, common] = [1, 2, 3].map(|n| wave(10 * seed + n, 60));
        let [first, second] = [1, 2].map(|n| saw_tooth(10 * seed + n, 60));
        // Two waves that noise hides, and two that have most in common.
        let [small_a, small_b] =
            [&a, &b].map(|x| x.iter().map(|x| 10.0 + 1.5 * x).collect::<Vec<_>>());
        let near = |part: f64, own: &[f64]| -> Vec<f64> {
            common.iter().zip(own).map(|(x, own)| 40.0 + 8.0 * x + part * own).collect()
        };
        let [near_a, near_b] = [near(6.0, &a), near(6.0, &b)];
        // They begin as one queue.
        let parts = |part: &[f64]| [&one[..20_000], &part[20_000..]].concat();
        let (parts_a, parts_b) = (parts(&one), parts(&other));
        let skewed = |skew| Path { skew, ..USUAL };
        // Where noise hides a queue, L is long about as large as theta: when it crosses it, rounding
        // decides.
        let cases: [Case; 11] = [
            ("hidden by noise", &hidden, &hidden, noisy(10.0), 30),
            ("hidden by less noise", &low, &low, noisy(5.0), 30),
            ("two hidden by noise", &small_a, &small_b, noisy(10.0), 30),
            ("saw-teeth in step", &first, &second, busy, 58),
            ("one saw-tooth", &first, &first, busy, 58),
            ("nearly in step", &near_a, &near_b, USUAL, 56),
            ("part after 20 s", &parts_a, &parts_b, USUAL, 56),
            ("no queue, 100 ppm", &none, &none, skewed(100.0), 58),
            ("no queue, 200 ppm", &none, &none, skewed(-200.0), 58),
            ("a low queue, 50 ppm", &low, &low, skewed(50.0), 56),
            ("a low queue, 200 ppm", &low, &low, skewed(200.0), 56),
        ];
        for (name, one, other, path, least) in cases {
            let (one, other) = (sampled(one, &path, 100 + seed), sampled(other, &path, 200 + seed));
            let same = agreed(name, &one, &other);
            assert!(same >= least, "{name}, seed {seed}: {same} of 60");
            (agreements, total) = (agreements + same, total + 60);
        }
    }
    assert!(agreements * 100 >= total * 97, "{agreements} of {total}");
}

/// What the C program `name` of `reference/` writes.
fn reference(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let source = format!("{}/tests/suite/reference/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let c = concat!(env!("CARGO_MANIFEST_DIR"), "/c");
    let flags = ["-O1", "-I", c, "-o"];
    let built = Command::new("cc").args(flags).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap()
}

#[test]
fn noise_is_that_of_the_delays_however_few_they_are() {
    // Delays that change by 10 ms, so many us apart.
    for line in reference("noise").lines() {
        let (apart_us, noise) = line.split_once(' ').unwrap();
        let noise: f64 = noise.parse().unwrap();
        // Known with one bit behind the leading one.
        assert!((2.0 / 3.0 * 1e8..=1e8).contains(&noise), "{apart_us} us apart: {noise}");
    }
}

#[test]
fn while_a_path_is_at_a_decision_the_others_go_on_without_it() {
    let control = Control { detector: Detector::XCORR, ..Control::LIA };
    let mut detection = Detection::new(&Params::default());
    let mut conn = raw::Conn::new(control, &Params::default());
    let mut run = |detection: &mut Detection, kind: EventKind, ms: std::ops::Range<u64>| {
        for now_ms in ms {
            for path in 0..2 {
                let event = Event {
                    kind: kind as u32,
                    flags: flag::OWD,
                    now_us: 1000 * now_ms,
                    delivered: 1,
                    ..Event::default()
                };
                common::detect(control.detector, &mut conn, detection, path, &event);
            }
        }
        (detection.observed >> 32, detection.decided >> 32)
    };
    run(&mut detection, EventKind::Joined, 1..2);
    assert_eq!(run(&mut detection, EventKind::Acked, 2..2000), (7, 7), "intervals of 240 ms");
    // Another path is at one, and held up.
    detection.busy = 1;
    assert_eq!(run(&mut detection, EventKind::Acked, 2000..3000), (7, 7));
    detection.busy = 0;
    assert_eq!(run(&mut detection, EventKind::Acked, 3000..4000), (15, 15));
}

/// A connection under `lia+xcorr`, and its paths.
struct Running {
    conn: Conn,
    private: [Private; MAX_PATHS],
}

impl Running {
    fn new(at_once: u32) -> Running {
        let mut conn = Conn::new("lia+xcorr".parse().unwrap());
        conn.compare_at_once(at_once);
        Running { conn, private: [Private::default(); MAX_PATHS] }
    }

    fn event(&mut self, path: usize, event: &Event) -> Output {
        self.conn.event(path, &mut self.private[path], event)
    }

    fn detection(&self) -> &Detection {
        self.conn.shared().1.unwrap()
    }

    /// The newest observation, and all that is kept of pairs.
    fn known(&self) -> (u64, Vec<u64>) {
        (self.detection().observed, self.detection().pairs.to_vec())
    }
}

#[test]
fn a_decision_in_parts_is_the_decision_at_once() {
    // What is kept of the 28 pairs, each with its sums first.
    const PAIR: usize = 68;
    let sums = |detection: &Detection| -> Vec<Vec<u64>> {
        let pairs = &detection.pairs[detection.pairs.len() - 28 * PAIR..];
        pairs.chunks(PAIR).map(|pair| pair[..PAIR - 8].to_vec()).collect()
    };
    for (seed, paths) in [(0, 8), (1, 8), (3, 5)] {
        let mut whole = Running::new(0);
        let mut known = Vec::new();
        let events = queued(seed, paths, 20, |path, event| {
            let output = whole.event(path, event);
            assert_eq!(whole.detection().stamp, 0, "no part is left");
            if known.last().map_or(0, |(observed, _)| *observed) != whole.detection().observed {
                known.push(whole.known());
            }
            output
        });
        for at_once in [1, 4] {
            let mut parts = Running::new(at_once);
            let mut expected = known.iter();
            let (mut observed, mut most) = (0, 0);
            for (path, event) in &events {
                let before = (parts.detection().stamp != 0).then(|| sums(parts.detection()));
                parts.event(*path as usize, event);
                if let Some(before) = before {
                    let after = sums(parts.detection());
                    // Those that are only forgotten are zero.
                    let compared = |(before, after): &(&Vec<u64>, &Vec<u64>)| {
                        before != after && after.iter().any(|word| *word != 0)
                    };
                    most = most.max(before.iter().zip(&after).filter(compared).count());
                }
                if observed != parts.detection().observed {
                    observed = parts.detection().observed;
                    let known = parts.known();
                    assert!(Some(&known) == expected.next(), "after {event:?}, seed {seed}");
                }
            }
            assert_eq!(most, at_once as usize, "pairs of an event");
            // The last one may have been under way.
            assert!(expected.count() <= 1 && known.len() > 60, "seed {seed}");
        }
    }
}

#[test]
fn a_path_that_falls_silent_within_a_decision_holds_up_nothing() {
    let events = queued(1, 8, 20, |path, _| {
        // The host's windows do not matter here.
        Output::new(10 + path as u32, 10)
    });
    let mut running = Running::new(1);
    let mut events = events.iter();
    let within = |detection: &Detection| {
        detection.decided != 0 && detection.next[0] == 4 && detection.next[1] == 2
    };
    let claimed = loop {
        let (path, event) = events.next().expect("it comes to the pair of 4 and 2");
        running.event(*path as usize, event);
        if running.detection().stamp != 0 && within(running.detection()) {
            break running.detection().stamp;
        }
    };
    let is_of = |path: u32| {
        move |(of, event): &&(u32, Event)| *of == path && event.kind == EventKind::Acked as u32
    };
    // 6 pairs are compared, 22 are left. Whoever of the paths goes on, at once or a minute later.
    for path in 0..MAX_PATHS as u32 {
        for later_us in [0, 60_000_000] {
            let mut conn = running.conn.clone();
            let mut private = running.private;
            let mut acks = events
                .clone()
                .filter(is_of(path))
                .map(|(_, event)| Event { now_us: event.now_us + later_us, ..*event });
            let mut ack = |conn: &mut Conn| {
                let event = acks.next().expect("it has more");
                conn.event(path as usize, &mut private[path as usize], &event);
                event.now_us
            };
            let answered = (1..=23).find(|_| {
                ack(&mut conn);
                conn.observation().unwrap().number == claimed
            });
            assert!(answered.is_some(), "path {path}, {later_us} us later");
            // And on to the interval that is due then.
            let newest = (1..=40).find_map(|_| {
                let due = (ack(&mut conn) / 240_000 - 1) as u32;
                (conn.observation().unwrap().number == due).then_some(due)
            });
            assert!(later_us == 0 || newest.is_some(), "path {path}");
        }
    }
}

/// As in a kernel that has no memory for the detection when the first path joins.
#[test]
fn a_path_without_memory_at_its_join_is_sampled_once_there_is_some() {
    let (control, params) = ("lia+xcorr".parse::<Control>().unwrap(), Params::default());
    for shared in [true, false] {
        let queues = [queue(1, 40), if shared { queue(1, 40) } else { queue(2, 40) }];
        let samples = [0, 1].map(|path| sampled(&queues[path], &USUAL, 3 + path as u64));
        let mut conn = raw::Conn::new(control, &params);
        let mut detection = Detection::new(&params);
        let mut private = [Private::default(); 2];
        let mut send =
            |conn: &mut raw::Conn, detection: *mut Detection, path: usize, kind, event: Event| {
                let event =
                    Event { kind: kind as u32, cwnd: 10, ssthresh: 1 << 30, mss: 1448, ..event };
                // SAFETY: all is valid and nobody else's; the detection is one, or null.
                unsafe {
                    event_shared(control, conn, detection, path as u32, &mut private[path], &event)
                };
            };
        let joined = Event { state: State::Joining as u32, ..Event::default() };
        send(&mut conn, std::ptr::null_mut(), 0, EventKind::Joined, joined);
        let mut both = false;
        for (path, sample) in together_in_time(&samples[0], &samples[1]) {
            if sample.now_us > 5_000_000 && !both {
                both = true;
                let joined = Event { now_us: sample.now_us, ..joined };
                send(&mut conn, &mut *detection, 1, EventKind::Joined, joined);
                assert_eq!(conn.masks & 0x0303, 0x0201, "nothing is known yet");
            }
            if path == 1 && !both {
                continue;
            }
            let event = Event {
                now_us: sample.now_us,
                state: State::Active as u32,
                rtt_us: sample.delay_us.unwrap() as u32,
                delivered: 2,
                ..Event::default()
            };
            let memory = if both { &mut *detection } else { std::ptr::null_mut() };
            send(&mut conn, memory, path, EventKind::Acked, event);
        }
        let expected = if shared { Answer::Shared } else { Answer::Separate };
        assert_eq!(of(&detection.decision().unwrap().places), expected);
        let expected = if shared { 0x0303 } else { 0x0201 };
        assert_eq!([conn.masks & 0x0303, conn.cuts & 0x0303], [expected; 2]);
    }
}
