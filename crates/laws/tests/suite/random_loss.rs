//! Paths whose losses come without a queue are coupled with none, whatever their delays have in common;
//! those through one queue that overflows, or is managed, are one group.

use narrows_laws::{Conn, Event, EventKind, Private, State};

const ALONE: u64 = 0x0201;
const TOGETHER: u64 = 0x0303;
const RTT_US: u32 = 40_000;

/// A small generator: (seed, n) fixes each number, 0 to 1.
fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f64 / f64::from(1 << 24)
}

/// Two paths through one queue, which fills to about `most_us` and is then drained; `random`: packets
/// are lost at any time, else when it is full. Masks of the two, who is cut together, and whose losses are
/// found to be random, after 60 s.
fn after_a_minute(seed: u64, most_us: f64, random: bool) -> (u64, u64, [bool; 2]) {
    let mut conn = Conn::new("greno+xcorr".parse().unwrap());
    let mut private = [Private::default(); 2];
    let mut state = seed;
    let (mut queue, mut step, mut top) = (0.0, most_us / 100.0, most_us);
    for (path, own) in private.iter_mut().enumerate() {
        let event = Event {
            kind: EventKind::Joined as u32,
            state: State::Joining as u32,
            now_us: 1_000_000,
            mss: 1448,
            ..Event::default()
        };
        conn.event(path, own, &event);
    }
    for n in 0..12_000u64 {
        queue += step;
        let full = queue >= top;
        if full {
            queue *= 0.3 * draw(&mut state);
            step = most_us * (0.005 + 0.015 * draw(&mut state));
            top = most_us * (0.8 + 0.2 * draw(&mut state));
        }
        for (path, own) in private.iter_mut().enumerate() {
            let lost = if random { draw(&mut state) < 0.02 } else { full };
            // When a loss is found, what left right behind it is acknowledged.
            let met = if full && !random { top } else { queue };
            let event = Event {
                kind: EventKind::Acked as u32,
                state: State::Active as u32,
                now_us: 1_000_000 + 5_000 * n + 200 * path as u64,
                rtt_us: RTT_US + met as u32,
                srtt8_us: 8 * RTT_US,
                delivered: 2,
                inflight: 10,
                mss: 1448,
                lost: lost.into(),
                ..Event::default()
            };
            conn.event(path, own, &event);
        }
    }
    let kept = conn.shared().1.unwrap();
    let at_random = [0, 1].map(|path| kept.loses_at_random(path));
    (conn.masks() & TOGETHER, conn.cuts() & TOGETHER, at_random)
}

#[test]
fn losses_without_a_queue_are_nobody_elses() {
    for seed in 1..=5 {
        // 1 ms of 40: what the paths have in common is what their connection does on both.
        assert_eq!(after_a_minute(seed, 1_000.0, true), (ALONE, ALONE, [true; 2]), "seed {seed}");
    }
}

#[test]
fn losses_of_a_queue_are_those_of_all_its_paths() {
    for seed in 1..=5 {
        for most_us in [3_000.0, 20_000.0, 100_000.0] {
            let masks = after_a_minute(seed, most_us, false);
            assert_eq!(masks, (TOGETHER, TOGETHER, [false; 2]), "seed {seed}, {most_us} us");
        }
        // Where a queue changes much, a loss at any time is none without a queue.
        let (masks, cuts, _) = after_a_minute(seed, 20_000.0, true);
        assert_eq!((masks, cuts), (TOGETHER, TOGETHER), "seed {seed}");
    }
}

/// Whether two paths are coupled whose queues of 20 ms are empty once in 4 s, when losses come at any time: each time a
/// window of the least delay begins, one acknowledgement is `behind_us` earlier than the one before it.
fn beside_a_standing_queue(behind_us: u64) -> bool {
    let mut conn = Conn::new("greno+xcorr".parse().unwrap());
    let mut private = [Private::default(); 2];
    let mut event = |now_us: u64, kind: EventKind, queue_us: u32, lost: bool| {
        for (path, own) in private.iter_mut().enumerate() {
            let state = if kind == EventKind::Joined { State::Joining } else { State::Active };
            let event = Event {
                kind: kind as u32,
                state: state as u32,
                now_us,
                rtt_us: 100_000 + queue_us,
                srtt8_us: 960_000,
                delivered: 1,
                inflight: 10,
                mss: 1448,
                lost: lost.into(),
                ..Event::default()
            };
            conn.event(path, own, &event);
        }
    };
    let start = 1_000_000;
    event(start, EventKind::Joined, 0, false);
    event(start, EventKind::Acked, 0, false);
    for n in 1..=2080 {
        let (now, queue_us) = (start + 10_000 * n, if n % 400 == 390 { 0 } else { 20_000 });
        event(now, EventKind::Acked, queue_us, n % 25 == 0);
        if n % 400 == 0 {
            event(now - behind_us, EventKind::Acked, queue_us, false);
        }
    }
    conn.masks() & TOGETHER == TOGETHER
}

/// Times come from several CPUs' clocks.
#[test]
fn a_clock_that_is_slightly_behind_forgets_no_empty_queue() {
    for behind_us in [0, 1, 1000] {
        assert!(beside_a_standing_queue(behind_us), "{behind_us} us");
    }
}
