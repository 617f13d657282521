//! What an acknowledgement costs in the programs of a control, by the kernel's statistics.
//!
//! The transfer crosses bottlenecks that are slow for the machine and fast for a network, packet by
//! packet: so the window is what holds the sender back, the law's growth runs at every
//! acknowledgement, and they come as they would from a wire.

use std::thread;
use std::time::{Duration, Instant};

use narrows_kernel::control::Registered;
use narrows_stats::Spread;

use crate::machine::Machine;
use crate::stats::{Programs, Runs, Statistics};
use crate::transfer::{Until, on_all_paths, transfer};
use crate::wire::{Bottleneck, Wire};
use crate::{Result, verdict};

/// Of all paths together, Mbit/s.
const RATE: u32 = 300;
const QUEUE_PACKETS: u32 = 100;

/// How a table is measured.
pub struct Method {
    /// Paths, and the target: how many ns per acknowledgement more.
    pub paths: [(u32, Option<f64>); 2],
    /// A transfer's beginning, which is not counted.
    pub warm_up: Duration,
    /// A turn. Short, so that both turns of a pair see the same machine.
    pub span: Duration,
}

/// A law against `nr_reno`; at first are joins and the first slow start.
pub const LAWS: Method = Method {
    paths: [(2, Some(50.0)), (8, Some(180.0))],
    warm_up: Duration::from_millis(250),
    span: Duration::from_millis(350),
};

/// A law with a detector against the law alone; decisions, one each 240 ms, come after some seconds.
pub const DETECTORS: Method = Method {
    paths: [(2, Some(120.0)), (8, None)],
    warm_up: Duration::from_millis(2500),
    span: Duration::from_millis(960),
};

/// Turns of the empty program, from which the statistics' own cost is taken.
const OWN_TURNS: usize = 9;
/// A registered control and its programs.
#[derive(Clone)]
pub struct Candidate<'a> {
    pub name: &'a str,
    pub programs: Programs,
}

impl Candidate<'_> {
    pub fn of(control: &Registered) -> Result<Candidate<'_>> {
        let programs = Programs::of(control.loaded().object())?;
        Ok(Candidate { name: control.name(), programs })
    }
}

/// What the programs of a control did in a while, by their names; runs and time.
struct Span(Vec<(String, Runs)>);

impl Span {
    /// Each acknowledgement that brings something new runs this program once.
    fn acks(&self) -> Runs {
        let program = self.0.iter().find(|(name, _)| name == "nr_pkts_acked");
        program.map_or(Runs::default(), |(_, runs)| *runs)
    }

    fn runs_per_ack(&self) -> f64 {
        self.0.iter().map(|(_, runs)| runs.count).sum::<u64>() as f64 / self.acks().count as f64
    }

    /// All programs' time per acknowledgement, the statistics' own included.
    fn gross_ns(&self) -> f64 {
        self.0.iter().map(|(_, runs)| runs.ns).sum::<u64>() as f64 / self.acks().count as f64
    }
}

/// The network of so many paths.
pub fn bottleneck(paths: u32) -> Bottleneck {
    Bottleneck { mbit_per_s: RATE / paths, queue_packets: QUEUE_PACKETS }
}

/// Prints the table: the first of each two `candidates` in `pairs` alternated pairs with the second;
/// `empty` gives the statistics' own cost.
pub fn table(
    machine: &Machine,
    method: &Method,
    empty: &Candidate<'_>,
    candidates: &[[Candidate<'_>; 2]],
    pairs: usize,
) -> Result<()> {
    println!(
        "\nns per ACK, all programs of the control; {RATE} Mbit/s over all paths, queues of \
         {QUEUE_PACKETS} packets\n{pairs} alternated pairs of turns of {} s; more: mean difference \
         with 95 % interval (t); the statistics' own cost is subtracted",
        method.span.as_secs_f64()
    );
    println!("control      against    paths   ns/ACK  against       more                at most");
    for (paths, at_most) in method.paths {
        let wire = Wire::lay(paths as usize, Some(bottleneck(paths)));
        let turn = |candidate| on_all_paths(|| measure(machine, method, &wire, candidate));
        let own = (0..OWN_TURNS)
            .map(|_| Ok(turn(empty)?.acks().ns_per_run()))
            .collect::<Result<Vec<_>>>()?;
        let own = spread(&own).median;
        let cost =
            |candidate| turn(candidate).map(|span| span.gross_ns() - own * span.runs_per_ack());
        // In turns over the controls too, so that all of them see the same machine.
        let mut rows: Vec<Vec<(f64, f64)>> = candidates.iter().map(|_| Vec::new()).collect();
        for number in 0..pairs {
            for ([ours, against], row) in candidates.iter().zip(&mut rows) {
                row.push(if number % 2 == 0 {
                    let theirs = cost(against)?;
                    (cost(ours)?, theirs)
                } else {
                    (cost(ours)?, cost(against)?)
                });
            }
        }
        for ([candidate, against], row) in candidates.iter().zip(&rows) {
            let ours = spread(&row.iter().map(|pair| pair.0).collect::<Vec<_>>());
            let theirs = spread(&row.iter().map(|pair| pair.1).collect::<Vec<_>>());
            let more = spread(&row.iter().map(|pair| pair.0 - pair.1).collect::<Vec<_>>());
            let half = more.ci95.unwrap_or(f64::INFINITY);
            let (low, high) = (more.mean - half, more.mean + half);
            let verdict = at_most.map_or(String::new(), |at_most| {
                format!("{at_most:>8} {}", verdict(low, high, at_most))
            });
            println!(
                "{:<12} {:<10} {paths:>5} {:>8.0} {:>8.0} {:>8.0} ({low:>4.0}, {high:>4.0}) {verdict}",
                candidate.name, against.name, ours.mean, theirs.mean, more.mean,
            );
        }
        println!("statistics              {paths:>5} {own:>8.0}  a run");
    }
    Ok(())
}

fn spread(values: &[f64]) -> Spread {
    Spread::of(values).expect("there are turns")
}

/// A while of a transfer under that control, and what the transfer's least used path carried.
fn measure(
    machine: &Machine,
    method: &Method,
    wire: &Wire,
    candidate: &Candidate<'_>,
) -> Result<(Span, f64)> {
    let Method { warm_up, span, .. } = *method;
    let (name, programs) = (candidate.name, &candidate.programs);
    let _statistics = Statistics::on()?;
    let until = Until::Time(Instant::now() + warm_up + span + Duration::from_millis(100));
    let (before, after, least) = thread::scope(|scope| {
        let transfer = scope.spawn(|| transfer(machine, wire, name, until));
        thread::sleep(warm_up);
        let before = programs.runs();
        thread::sleep(span);
        let after = programs.runs();
        transfer.join().expect("no panic in the transfer").map(|cost| (before, after, cost.least))
    })?;
    let during = after.into_iter().zip(before);
    let during = during.map(|((name, after), (_, before))| (name, after.since(before)));
    let span = Span(during.collect());
    if span.acks().count == 0 {
        return Err(format!("{name}: no acknowledgement ran its programs").into());
    }
    Ok((span, least))
}
