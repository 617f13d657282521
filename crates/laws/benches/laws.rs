//! Nanoseconds an acknowledgement costs, for each law and number of paths; and what a detector that
//! decides costs besides.
//!
//! `cargo bench -p narrows-laws`

use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Law, MAX_PATHS, Private, State, flag,
};
use std::hint::black_box;
use std::time::Instant;

const ACKS: u32 = 20_000;
const ROUNDS: usize = 200;

/// One run over paths in congestion avoidance at 1000 packets, an ACK for 2 packets on each in turn.
fn run(control: Control, paths: usize) -> f64 {
    let mut conn = Conn::new(control);
    let mut private = [Private::default(); MAX_PATHS];
    let mut event = Event {
        now_us: 1_000_000,
        kind: EventKind::Joined as u32,
        state: State::Active as u32,
        mss: 1448,
        ..Event::default()
    };
    for (path, private) in private.iter_mut().enumerate().take(paths) {
        event.srtt8_us = 8 * (20_000 + 1_000 * path as u32);
        for (kind, cwnd) in [
            (EventKind::Joined, 0),
            (EventKind::Acked, 4),
            (EventKind::Recovery, 4),
            (EventKind::Recovered, 2),
        ] {
            conn.event(path, private, &Event { kind: kind as u32, cwnd, ..event });
        }
        conn.event(path, private, &Event { kind: EventKind::Acked as u32, cwnd: 1_000, ..event });
    }
    event.kind = EventKind::Acked as u32;
    event.flags = flag::CWND_LIMITED;
    event.delivered = 2;
    let start = Instant::now();
    for number in 0..ACKS {
        let path = number as usize % paths;
        event.now_us += 10;
        event.srtt8_us = 8 * (20_000 + 1_000 * path as u32);
        event.cwnd = conn.path(path).cwnd;
        black_box(conn.event(path, &mut private[path], black_box(&event)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(ACKS)
}

/// The detector's part alone: ACKs 1 ms apart, of delays that rise and fall with noise, so that a
/// run is 20 s of a connection with all its decisions.
fn detect(control: Control, paths: usize) -> f64 {
    let mut conn = Conn::new(control);
    let mut event = Event { state: State::Active as u32, delivered: 2, ..Event::default() };
    for path in 0..paths {
        conn.detect(path, &Event { kind: EventKind::Joined as u32, ..event });
    }
    event.kind = EventKind::Acked as u32;
    let mut noise = 1u32;
    let start = Instant::now();
    for number in 0..ACKS {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        event.now_us += 1_000;
        event.rtt_us = 20_000 + 20 * (number % 1_500) + (noise >> 22);
        conn.detect(number as usize % paths, black_box(&event));
    }
    start.elapsed().as_nanos() as f64 / f64::from(ACKS)
}

fn main() {
    println!("ns per ACK, best of {ROUNDS} runs of {ACKS}; paths:   1     2     4     8");
    for law in Law::all() {
        print(law.name(), |paths| run(Control::of(law), paths));
    }
    for detector in Detector::all().filter(|detector| detector.decides()) {
        let control = Control { detector, ..Control::LIA };
        print(&format!("+{}", detector.name()), |paths| detect(control, paths));
    }
}

fn print(name: &str, run: impl Fn(usize) -> f64) {
    let best =
        [1, 2, 4, 8].map(|paths| (0..ROUNDS).map(|_| run(paths)).fold(f64::INFINITY, f64::min));
    let [one, two, four, eight] = best;
    println!("{name:<48}{one:>6.1}{two:>6.1}{four:>6.1}{eight:>6.1}");
}
