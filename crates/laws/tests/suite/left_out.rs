//! What a detector must leave out, with `xcorr`. Two paths have a queue each, and their host does the
//! same to both at the same moments. Each test reports that as what it is, and nothing is found; and as
//! delays of a queue, which would be taken for one queue: so a rule that is missing fails its test.

use crate::common;

use common::paths::{Path, Paths};
use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Params, Place, Private, State, flag,
};
use narrows_testkit::Random;

/// Smallest round trip, µs.
const RTT_US: u32 = 20_000;
/// Acknowledgements of a path are so far apart, ms.
const EVERY: u64 = 5;
const SECONDS: u64 = 60;

/// An acknowledgement of two packets that waited `queue_us`.
fn ack(queue_us: u32) -> Event {
    let rtt_us = RTT_US + queue_us;
    Event { delivered: 2, rtt_us, srtt8_us: 8 * rtt_us, ..Event::default() }
}

/// Are the two said to share?
fn share(places: [Place; 8]) -> bool {
    places[0] == places[1] && places[0] != Place::Undecided
}

/// Runs two paths for a minute, which report what `acks` says of them at each ms, with some noise of
/// each path's own. Slow start ends with a loss at `lost_ms`. Returns at how many seconds' ends they
/// were said to share.
fn shared_from(lost_ms: u64, mut acks: impl FnMut(u64, usize) -> Option<Event>) -> usize {
    let control = Control { detector: Detector::XCORR, ..Control::LIA };
    let mut conn = Conn::with_params(control, &Params::default());
    let mut private = [Private::default(); 2];
    let mut random = Random(7);
    let mut shared = 0;
    for ms in 0..1000 * SECONDS {
        for (path, private) in private.iter_mut().enumerate() {
            let event = if ms == 0 { Some(Event::default()) } else { acks(ms, path) };
            let Some(event) = event else { continue };
            let kind = match ms {
                0 => EventKind::Joined,
                _ if ms == lost_ms => EventKind::Recovery,
                _ if event.lost > 0 => EventKind::Timeout,
                _ => EventKind::Acked,
            };
            let noise_us = if event.rtt_us == 0 { 0 } else { random.below(300) as u32 };
            let event = Event {
                kind: kind as u32,
                state: State::Active as u32,
                now_us: 1_000_000 + 1000 * ms + 200 * path as u64,
                lost: event.lost + u32::from(ms == lost_ms),
                rtt_us: event.rtt_us + noise_us,
                ..event
            };
            conn.event(path, private, &event);
        }
        if ms % 1000 == 999 {
            let places = conn.decision().map(|decision| decision.places);
            shared += usize::from(places.is_some_and(share));
        }
    }
    shared
}

/// The same of two paths of which the same is said.
fn shared(mut acks: impl FnMut(u64) -> Option<Event>) -> usize {
    shared_from(500, |ms, _| acks(ms))
}

/// Times at random, on average `mean_ms` and at least half of that apart.
fn moments(mean_ms: u64) -> Vec<u64> {
    let mut random = Random(3);
    let mut moments = vec![1000];
    while *moments.last().unwrap() < 1000 * SECONDS {
        let last = moments.last().unwrap();
        moments.push(last + mean_ms / 2 + random.below(mean_ms));
    }
    moments
}

/// How long ago the last of `moments` was, ms.
fn since(moments: &[u64], ms: u64) -> Option<u64> {
    Some(ms - moments[moments.partition_point(|&moment| moment <= ms).checked_sub(1)?])
}

/// An acknowledgement each 5 ms, of a queue that does not change.
fn usual(ms: u64) -> Option<Event> {
    (ms % EVERY == 0).then(|| ack(5_000))
}

/// What `special` says of a time, if anything; else the usual.
fn with(special: impl Fn(u64) -> Option<Option<Event>>) -> impl FnMut(u64) -> Option<Event> {
    move |ms| special(ms).unwrap_or_else(|| usual(ms))
}

#[test]
fn what_is_usual_says_nothing() {
    assert_eq!(shared(usual), 0);
}

/// The last packet of a burst waits alone for its acknowledgement.
#[test]
fn what_waited_in_a_delayed_acknowledgement() {
    let tails = moments(700);
    let of = |delivered: u32, dwell: Option<u32>| {
        let tails = &tails;
        move |ms| {
            let after = since(tails, ms).filter(|after| *after < 60)?;
            let waited = Event { delivered, ..ack(45_000) };
            let event = match dwell {
                Some(dwell_us) => Event { flags: flag::DWELL, dwell_us, ..waited },
                None => waited,
            };
            Some((after == 50).then_some(event))
        }
    };
    assert_eq!(shared(with(of(1, None))), 0);
    assert_eq!(shared(with(of(2, Some(40_000)))), 0, "the peer said how long it waited");
    let n = shared(with(of(2, None)));
    assert!(n > 20, "{n}");
}

/// Of a window of one packet each is acknowledged late, and how late, both paths have in common.
#[test]
fn what_only_supposedly_did_not_wait() {
    let longer = moments(900);
    let of = |delivered: u32| {
        let longer = &longer;
        move |ms| {
            let wait_us = if since(longer, ms)? < 400 { 80_000 } else { 40_000 };
            Some((ms % 60 == 0).then(|| Event { delivered, ..ack(wait_us) }))
        }
    };
    assert_eq!(shared(with(of(1))), 0);
    let n = shared(with(of(2)));
    assert!(n > 20, "{n}");
}

/// A window update, or the answer to a probe: its timestamp is that of older data.
#[test]
fn acknowledgements_without_new_data() {
    let updates = moments(700);
    let of = |delivered: u32| {
        let updates = &updates;
        move |ms| {
            let after = since(updates, ms)?;
            (after < 50 && after % 2 == 1).then(|| Some(Event { delivered, ..ack(60_000) }))
        }
    };
    assert_eq!(shared(with(of(0))), 0);
    let n = shared(with(of(2)));
    assert!(n > 20, "{n}");
}

/// Which of two was acknowledged is not known (Karn).
#[test]
fn retransmitted_samples() {
    let losses = moments(700);
    let of = |flags: u32| {
        let losses = &losses;
        move |ms| {
            let after = since(losses, ms)?;
            (after < 50).then(|| usual(ms).map(|_| Event { flags, ..ack(40_000) }))
        }
    };
    assert_eq!(shared(with(of(flag::RETRANS))), 0);
    let n = shared(with(of(0)));
    assert!(n > 20, "{n}");
}

/// A queue of 30 ms that is empty for a while and then fills again, in ms: nothing is sent from 0 to
/// `silent`, and it is full 200 ms later.
fn refills(after: u64, silent: u64) -> Option<u32> {
    match after {
        _ if after < silent => None,
        _ if after < silent + 200 => Some(150 * (after - silent) as u32),
        _ => Some(30_000),
    }
}

/// The application has nothing to send for 400 ms, the receiver's window is closed, or a timer must
/// expire: the queue drains and fills again.
#[test]
fn idle_times_closed_windows_and_timeouts() {
    let pauses = moments(4000);
    // What arrives while nothing is sent, and the first acknowledgement after it.
    let of = |meanwhile: Option<Event>, first: Option<Event>| {
        let pauses = &pauses;
        move |ms| {
            let after = since(pauses, ms)?;
            Some(match refills(after, 400) {
                None => meanwhile.filter(|_| after % 100 == 50),
                Some(queue_us) if after == 400 => first.or(Some(ack(queue_us))),
                Some(queue_us) => (ms % EVERY == 0).then(|| ack(queue_us)),
            })
        }
    };
    assert_eq!(shared(with(of(None, None))), 0, "idle");
    // The answers to window probes say that it is closed, and acknowledge nothing.
    let probe = Event { delivered: 0, rtt_us: 0, ..ack(0) };
    assert_eq!(shared(with(of(Some(probe), None))), 0, "a closed window");
    // All is lost, which acknowledges nothing either, and then what was sent again arrives.
    let lost = Event { lost: 10, ..probe };
    let again = Event { flags: flag::RETRANS, delivered: 1, ..ack(300_000) };
    assert_eq!(shared(with(of(Some(lost), Some(again)))), 0, "a timeout");
    let n = shared(with(of(Some(ack(0)), None)));
    assert!(n > 10, "{n}");
}

/// The application sends less than the queue would take for a second.
#[test]
fn times_limited_by_the_application() {
    let pauses = moments(3000);
    let of = |flags: u32| {
        let pauses = &pauses;
        move |ms| {
            let after = since(pauses, ms)?;
            let limited = after < 1000;
            let queue_us = if limited { 0 } else { refills(after, 1000)? };
            let flags = if limited { flags } else { 0 };
            Some((ms % EVERY == 0).then(|| Event { flags, ..ack(queue_us) }))
        }
    };
    assert_eq!(shared(with(of(flag::APP_LIMITED))), 0);
    let n = shared(with(of(0)));
    assert!(n > 10, "{n}");
}

/// Slow starts that begin together, up to their first loss.
#[test]
fn start_up() {
    let of = |lost_ms: u64| {
        move |ms: u64, _| {
            let part = ms.min(lost_ms) as f64 / lost_ms as f64;
            let after = ms.saturating_sub(lost_ms) as f64;
            let queue_us = 80_000.0 * part.powi(4) - 50_000.0 * (after / 300.0).min(1.0);
            (ms % EVERY == 0).then(|| ack(queue_us as u32))
        }
    };
    for lost_ms in [1000, 2500] {
        assert_eq!(shared_from(lost_ms, of(lost_ms)), 0, "{lost_ms} ms");
    }
    let n = shared_from(2 * EVERY, of(2500));
    assert!(n > 20, "if it is over at once: {n}");
}

/// What others queue, us.
const OTHERS_US: u32 = 30_000;

/// The paths of a connection go into ProbeRTT together (laws/bbr/share.h), and the queue of each is
/// shorter then.
#[test]
fn probe_rtt() {
    for (control, every) in [("bbr+xcorr", 10_000), ("bbr3+xcorr", 5_000)] {
        for less_us in [20_000, 4_000] {
            let path = Path::new(400.0, u64::from(RTT_US + OTHERS_US), 1448);
            let mut paths = Paths::new(control, &[], &[path; 2]);
            let mut random = Random(7);
            let (mut times, mut wrong) = ([0; 2], 0);
            let mut resting = [false; 2];
            for n in 0..2 * 400 * SECONDS as usize {
                let i = n % 2;
                let rests = paths.conn.path(i).word[1] & 15 == 9;
                times[i] += u32::from(rests && !resting[i]);
                resting[i] = rests;
                let queue_us = if rests { OTHERS_US - less_us } else { OTHERS_US };
                paths.paths[i].rtt_us = u64::from(RTT_US + queue_us) + random.below(300);
                paths.next(i, 0);
                let places = paths.conn.decision().map(|decision| decision.places);
                wrong += usize::from(places.is_some_and(share));
            }
            assert!(times.iter().all(|times| *times >= 4), "{control}: {times:?}");
            assert_eq!(wrong, 0, "{control}, {less_us} us");
            let drains = |ms: u64| {
                let queue_us = if ms % every < 250 { OTHERS_US - less_us } else { OTHERS_US };
                (ms % EVERY == 0).then(|| ack(queue_us))
            };
            let n = shared(drains);
            assert!(n > 20, "{n}");
        }
    }
}

/// A delay that is drawn anew bit by bit, with a deviation of 8 ms and a memory of 100 ms, us.
fn wave(seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    let mut ms = 0.0;
    let mut next = || {
        ms = 0.99 * ms + 3.9 * (random.unit() - 0.5);
        (1e3 * f64::max(25.0 + ms, 0.0)) as u32
    };
    (0..1000 * SECONDS).map(|_| next()).collect()
}

/// What the card or the receiver hands over together came together: four acknowledgements of a burst
/// have one delay in common, and do not tell how unlike two delays of the queue are.
#[test]
fn bursts() {
    let queue = wave(1);
    let mut random = Random(5);
    let mut burst_us = [0; 2];
    let n = shared_from(500, |ms, path| {
        if ms % 24 == 0 {
            burst_us[path] = random.below(15_000) as u32;
        }
        (ms % 24 < 4).then(|| ack(queue[ms as usize] + burst_us[path]))
    });
    assert!(n > 45, "{n}");
}

/// The one-way delay is by two clocks, of which one is set.
#[test]
fn clock_steps() {
    let queues = [wave(1), wave(2)];
    let of = |quiet: bool, step_ms: i32| {
        let (queues, mut random) = (&queues, Random(5));
        shared_from(500, move |ms, path| {
            let queue_us = if quiet { 5_000 } else { queues[path][ms as usize] };
            let noise_us = random.below(300) as i32;
            let step_us = if ms > 20_000 { 1000 * step_ms } else { 0 };
            let owd_us = queue_us as i32 + noise_us + step_us;
            (ms % EVERY == 0).then(|| Event { flags: flag::OWD, owd_us, ..ack(queue_us) })
        })
    };
    for step_ms in [-2000, -300, -20, 20, 300, 2000] {
        assert_eq!(of(false, step_ms), 0, "{step_ms} ms");
    }
    for step_ms in [-2000, 2000] {
        assert_eq!(of(true, step_ms), 0, "{step_ms} ms, while there is no queue");
    }
}
