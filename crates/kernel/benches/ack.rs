//! ns per acknowledgement inside the kernel: the event loop and the law, JIT compiled, windows in
//! congestion avoidance. `cargo bench -p narrows-kernel`.

use narrows_kernel::replay::{Error, Replay, STEPS};
use narrows_laws::catalogue::LAWS;
use narrows_laws::{Control, Event, EventKind, State, flag};

/// Timed runs of [`STEPS`] acknowledgements; their median counts.
const RUNS: usize = 201;

fn main() -> Result<(), Error> {
    if let Err(reason) = narrows_kernel::available() {
        println!("ns per ACK in the kernel: skipped, {reason}");
        return Ok(());
    }
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let jit = if jit.trim() == "0" { "JIT off" } else { "JIT" };
    println!("ns per ACK in the kernel ({jit})    2 paths    8 paths");
    for law in LAWS {
        let mut replay = Replay::load(Control::of(law.item))?;
        let two = nanoseconds(&mut replay, 2)?;
        let eight = nanoseconds(&mut replay, 8)?;
        println!("{:<27}{two:>15.1}{eight:>11.1}", law.name);
    }
    Ok(())
}

/// Median over the runs, each from the same start.
fn nanoseconds(replay: &mut Replay, paths: usize) -> Result<f64, Error> {
    let opening = opening(paths);
    let acks: Vec<_> = (0..STEPS).map(|n| (n % paths, ack(n % paths, n as u64))).collect();
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        replay.reset()?;
        replay.run(&opening)?;
        times.push(replay.time(&acks)?.as_nanos());
    }
    times.sort_unstable();
    Ok(times[RUNS / 2] as f64 / STEPS as f64)
}

/// Every path joins, loses once, and continues with a window of its own.
fn opening(paths: usize) -> Vec<(usize, Event)> {
    let each = |kind: EventKind| {
        (0..paths).map(move |path| (path, Event { kind: kind as u32, ..ack(path, 0) }))
    };
    let window = |(path, event)| (path, Event { cwnd: 100 + 10 * path as u32, ..event });
    each(EventKind::Joined)
        .chain(each(EventKind::Recovery))
        .chain(each(EventKind::Recovered))
        .chain(each(EventKind::Acked).map(window))
        .collect()
}

/// An acknowledgement of two packets, the `n`th of the connection, 10 µs after the last.
fn ack(path: usize, n: u64) -> Event {
    let rtt_us = 20_000 + 5_000 * path as u32;
    Event {
        now_us: 1_000_000 + 10 * n,
        sent_us: 1_000_000 + 10 * n - u64::from(rtt_us),
        kind: EventKind::Acked as u32,
        flags: flag::CWND_LIMITED,
        state: State::Active as u32,
        delivered: 2,
        rtt_us,
        inflight: 100,
        srtt8_us: 8 * rtt_us,
        mss: 1428,
        ..Event::default()
    }
}
