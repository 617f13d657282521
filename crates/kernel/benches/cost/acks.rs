//! What an acknowledgement costs in the programs of a control, by the kernel's statistics.
//!
//! The transfer crosses bottlenecks that are slow for the machine and fast for a network, packet by
//! packet: so the window is what holds the sender back, the law's growth runs at every
//! acknowledgement, and they come as they would from a wire.

use std::thread;
use std::time::{Duration, Instant};

use narrows_kernel::control::Registered;

use crate::Result;
use crate::machine::Machine;
use crate::stats::{Programs, Runs, Statistics};
use crate::transfer::{Until, on_all_paths, transfer};
use crate::wire::{Bottleneck, Wire};

/// Of all paths together, Mbit/s.
const RATE: u32 = 300;
const QUEUE_PACKETS: u32 = 100;
const PATHS: [u32; 2] = [2, 8];

/// The target, ns per acknowledgement.
const AT_MOST: f64 = 200.0;

/// Times each control has its turn; the machine is another one every few seconds.
const ROUNDS: usize = 5;
/// A transfer's beginning, which is not counted: joins, the first slow start.
const WARM_UP: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_millis(1_500);

/// A registered control and its programs.
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

/// Prints the table: `empty`, which gives the statistics' own cost, against each of `candidates`.
pub fn table(machine: &Machine, empty: &Candidate<'_>, candidates: &[Candidate<'_>]) -> Result<()> {
    println!(
        "\nns per ACK, all programs of the control; {RATE} Mbit/s over all paths, queues of \
         {QUEUE_PACKETS} packets\nmedian of {ROUNDS} turns of {} s (lowest, highest); the \
         statistics' own cost is subtracted in every turn; at most {AT_MOST}",
        SPAN.as_secs_f64()
    );
    println!("control    paths   ns/ACK                      runs/ACK      ACKs");
    for paths in PATHS {
        let bottleneck = Bottleneck { mbit_per_s: RATE / paths, queue_packets: QUEUE_PACKETS };
        let wire = Wire::lay(paths as usize, Some(bottleneck));
        let mut own = Vec::new();
        let mut spans: Vec<Vec<Span>> = candidates.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            let turn = |candidate| on_all_paths(|| measure(machine, &wire, candidate));
            own.push(turn(empty)?.acks().ns_per_run());
            for (candidate, spans) in candidates.iter().zip(&mut spans) {
                spans.push(turn(candidate)?);
            }
        }
        for (candidate, spans) in candidates.iter().zip(&spans) {
            let net = spans.iter().zip(&own);
            let net = net.map(|(span, own)| span.gross_ns() - own * span.runs_per_ack());
            let (low, median, high) = order(net.collect());
            let runs = spans.iter().map(Span::runs_per_ack).sum::<f64>() / ROUNDS as f64;
            let acks = spans.iter().map(|span| span.acks().count).sum::<u64>();
            let verdict = if median <= AT_MOST { "met" } else { "not met" };
            println!(
                "{:<10} {paths:>5} {median:>8.0} ({low:>4.0}, {high:>4.0})  {verdict:<8} \
                 {runs:>8.2} {acks:>9}",
                candidate.name
            );
        }
        let (low, median, high) = order(own);
        println!("statistics {paths:>5} {median:>8.0} ({low:>4.0}, {high:>4.0})  a run");
    }
    Ok(())
}

fn order(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

/// A while of a transfer under that control, and what the transfer's least used path carried.
fn measure(machine: &Machine, wire: &Wire, candidate: &Candidate<'_>) -> Result<(Span, f64)> {
    let (name, programs) = (candidate.name, &candidate.programs);
    let _statistics = Statistics::on()?;
    let until = Until::Time(Instant::now() + WARM_UP + SPAN + Duration::from_millis(100));
    let (before, after, least) = thread::scope(|scope| {
        let transfer = scope.spawn(|| transfer(machine, wire, name, until));
        thread::sleep(WARM_UP);
        let before = programs.runs();
        thread::sleep(SPAN);
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
