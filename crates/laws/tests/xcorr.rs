//! The detector `xcorr`: its answers on synthetic queues against the specification in floating
//! point, and what must not count as a common queue.

mod reference;

use narrows_laws::detect::{Flows, Sample};
use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Params, Place, Private, State, flag,
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

/// How a path hears its queue.
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

fn hear(queue: &[f64], path: &Path, seed: u64) -> Samples {
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

/// The answer in force at the end of each second.
fn held(one: &Samples, other: &Samples, seconds: usize) -> Vec<Answer> {
    let mut all: Vec<_> = one.iter().map(|sample| (0, sample)).collect();
    all.extend(other.iter().map(|sample| (1, sample)));
    all.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let mut flows = Flows::new(Detector::XCORR, &Params::default(), 2).unwrap();
    let mut decisions = Vec::new();
    for (flow, &(time, delay)) in all {
        let delay_us = Some((1e3 * delay) as i32);
        let now_us = (1e3 * time) as u64;
        let sample = Sample { now_us, delay_us, delivered: 1, ..Sample::default() };
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
        let one = hear(&shared, &one, 100 + seed);
        let other = hear(if right == Answer::Shared { &shared } else { &own }, &other, 200 + seed);
        ours.extend(held(&one, &other, SECONDS).split_off(10));
        floating.extend(xcorr::held(&one, &other, SECONDS).split_off(10));
    }
    let ((right_c, wrong_c), (right_f, wrong_f)) = (shares(&ours, right), shares(&floating, right));
    println!(
        "{name}: right {right_c:.3}, wrong {wrong_c:.3}; specification {right_f:.3}, {wrong_f:.3}"
    );
    let same = ours.iter().zip(&floating).filter(|(a, b)| a == b).count() as f64;
    assert!(same >= 0.98 * ours.len() as f64, "{name}: same in {same} of {}", ours.len());
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
/// knows its slow start and its pauses, a receiver sees a loss and silence.
fn at_host(sender: bool, alike: f64, params: &Params) -> Vec<Answer> {
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
            let lost = now_ms == 1000;
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
            let shared = |params| {
                let answers = at_host(sender, alike, params);
                answers.iter().filter(|&&answer| answer == Answer::Shared).count()
            };
            assert_eq!(shared(&rules), 0, "sender {sender}, alike {alike}");
            assert!(shared(&no_rules) > 50, "without rules: {}", shared(&no_rules));
        }
    }
}
