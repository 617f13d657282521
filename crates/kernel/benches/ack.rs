//! Nanoseconds an acknowledgement costs inside the kernel, for each law and number of paths: the
//! event loop and the law, as the JIT compiled them. The same events as in narrows-laws' bench.
//!
//! `cargo bench -p narrows-kernel`

use narrows_kernel::Error;
use narrows_kernel::replay::{Replay, STEPS};
use narrows_laws::{Conn, Control, Event, EventKind, Law, MAX_PATHS, Params, Private, State, flag};

const ROUNDS: usize = 500;

fn main() -> Result<(), Error> {
    if let Err(reason) = narrows_kernel::available() {
        println!("ns per ACK in the kernel: skipped, {reason}");
        return Ok(());
    }
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let jit = if jit.trim() == "0" { "interpreted" } else { "JIT" };
    println!(
        "ns per ACK in the kernel ({jit}), best of {ROUNDS} runs of {STEPS}; paths:   2     8"
    );
    for law in Law::all() {
        let control = Control::of(law);
        let mut replay = Replay::load(control)?;
        let two = best(&mut replay, &record(control, 2))?;
        let eight = best(&mut replay, &record(control, 8))?;
        println!("{:<64}{two:>6.1}{eight:>6.1}", law.name());
    }
    Ok(())
}

/// A connection's opening, and acknowledgements that follow.
struct Record {
    opening: Vec<(u32, Event)>,
    acks: Vec<(u32, Event)>,
}

/// Paths in congestion avoidance at 1000 packets, then an ACK for 2 packets on each in turn.
fn record(control: Control, paths: usize) -> Record {
    let mut conn = Conn::new(control);
    let mut private = [Private::default(); MAX_PATHS];
    let mut event = |path: usize, kind: EventKind, event: Event| {
        let event = Event {
            kind: kind as u32,
            state: State::Active as u32,
            srtt8_us: 8 * (20_000 + 1_000 * path as u32),
            mss: 1448,
            ..event
        };
        conn.event(path, &mut private[path], &event);
        ((path as u32, event), conn.path(path).cwnd)
    };
    let mut opening = Vec::new();
    for path in 0..paths {
        for (kind, cwnd) in [
            (EventKind::Joined, 0),
            (EventKind::Acked, 4),
            (EventKind::Recovery, 4),
            (EventKind::Recovered, 2),
            (EventKind::Acked, 1_000),
        ] {
            let now_us = 1_000_000;
            opening.push(event(path, kind, Event { now_us, cwnd, ..Event::default() }).0);
        }
    }
    let mut cwnd = [1_000; MAX_PATHS];
    let mut acks = Vec::with_capacity(STEPS);
    for number in 0..STEPS {
        let path = number % paths;
        let ack = Event {
            now_us: 1_000_000 + 10 * number as u64,
            flags: flag::CWND_LIMITED,
            delivered: 2,
            cwnd: cwnd[path],
            ..Event::default()
        };
        let (ack, after) = event(path, EventKind::Acked, ack);
        cwnd[path] = after;
        acks.push(ack);
    }
    Record { opening, acks }
}

/// The best over the rounds, each from the same start.
fn best(replay: &mut Replay, record: &Record) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        replay.reset(&Params::default())?;
        replay.run(&record.opening)?;
        best = best.min(replay.time(&record.acks)?.as_nanos() as f64 / STEPS as f64);
    }
    Ok(best)
}
