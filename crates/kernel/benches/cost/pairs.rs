//! CPU time of whole transfers of two candidates, in alternated pairs: a law and the kernel's Reno, a law
//! with a detector and without, and a control with a receiver's detector at both ends and with none.

use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::receiver::ReceiverDetector;
use narrows_stats::Spread;
use std::fmt;

use crate::machine::Machine;
use crate::transfer::{Cost, Until, on_all_paths, transfer};
use crate::wire::Wire;
use crate::{Result, verdict};

/// The target: the upper end of the ratio's interval.
const AT_MOST: f64 = 1.03;

/// A control, and whether [`ReceiverDetector`] detects at both ends of its connections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub control: &'a str,
    pub receiver: bool,
}

impl<'a> Candidate<'a> {
    pub const fn of(control: &'a str) -> Candidate<'a> {
        Candidate { control, receiver: false }
    }
}

impl fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&format!("{}{}", self.control, if self.receiver { ", receiver" } else { "" }))
    }
}

/// What laws are compared with.
pub const KERNELS: Candidate = Candidate::of("reno");

/// Bytes of a transfer.
const BYTES: u64 = 1_000_000_000;

struct Pair {
    ours: Cost,
    others: Cost,
}

/// Geometric mean of the pairs' ratios, and its 95 % interval by Student's t on their logarithms.
struct Ratio {
    mean: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(pairs: &[Pair], of: impl Fn(&Cost) -> f64) -> Ratio {
        let logarithms: Vec<f64> =
            pairs.iter().map(|pair| (of(&pair.ours) / of(&pair.others)).ln()).collect();
        let spread = Spread::of(&logarithms).expect("there are pairs");
        let half = spread.ci95.unwrap_or(f64::INFINITY);
        Ratio {
            mean: spread.mean.exp(),
            low: (spread.mean - half).exp(),
            high: (spread.mean + half).exp(),
        }
    }
}

/// Prints the table: the kernel's Reno against itself, which shows what the method can resolve, then
/// the first of each two `candidates` against the second.
pub fn table(machine: &Machine, candidates: &[[Candidate; 2]], pairs: usize) -> Result<()> {
    println!(
        "\nCPU seconds per GB, client and server; unlimited veth, 2 subflows, {} GB a transfer, \
         {pairs} alternated pairs\nratio with 95 % interval (t on the logarithms); at most \
         {AT_MOST}; `machine` is the ratio of all busy time, `known` the part of it that is \
         client's, server's or softirq's",
        BYTES as f64 / 1e9
    );
    println!(
        "ours                 / against         s/GB          Gbit/s         ratio                         \
               machine                 known"
    );
    let wire = Wire::lay(2, None);
    let everyone = Cgroup::top()?;
    let run = |candidate: &Candidate| {
        let detector = candidate.receiver.then(|| ReceiverDetector::start(&everyone));
        let _until_the_end = detector.transpose()?;
        on_all_paths(|| {
            let cost = transfer(machine, &wire, candidate.control, Until::Bytes(BYTES))?;
            let least = cost.least;
            Ok((cost, least))
        })
    };
    let candidates: Vec<[Candidate; 2]> =
        std::iter::once([KERNELS; 2]).chain(candidates.iter().copied()).collect();
    let mut rows: Vec<Vec<Pair>> = candidates.iter().map(|_| Vec::new()).collect();
    for candidate in candidates.iter().flatten() {
        run(candidate)?; // the first is another one: memory to get, caches to fill
    }
    // In turns over the rows too, so that all of them see the same machine.
    for number in 0..pairs {
        for ([candidate, against], row) in candidates.iter().zip(&mut rows) {
            let pair = if number % 2 == 0 {
                let ours = run(candidate)?;
                Pair { ours, others: run(against)? }
            } else {
                let others = run(against)?;
                Pair { ours: run(candidate)?, others }
            };
            row.push(pair);
        }
    }
    for (&candidates, row) in candidates.iter().zip(&rows) {
        print(candidates, row);
    }
    Ok(())
}

fn print([candidate, against]: [Candidate; 2], pairs: &[Pair]) {
    let mean = |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let gb = BYTES as f64 / 1e9;
    let per_gb = |cost: &Cost| cost.cpu.as_secs_f64() / gb;
    let gbits = |cost: &Cost| gb * 8.0 / cost.wall.as_secs_f64();
    let known = mean(&|Pair { ours, others }| {
        100.0 * (ours.cpu + others.cpu).as_secs_f64() / (ours.busy + others.busy).as_secs_f64()
    });
    let cpu = Ratio::of(pairs, |cost| cost.cpu.as_secs_f64());
    let busy = Ratio::of(pairs, |cost| cost.busy.as_secs_f64());
    let verdict =
        if candidate == against { "(itself)" } else { verdict(cpu.low, cpu.high, AT_MOST) };
    println!(
        "{candidate:<21}/ {against:<10} {:>6.3} {:>6.3} {:>8.1} {:>6.1}   {:>6.3} ({:.3}, {:.3}) \
         {verdict:<15} {:>6.3} ({:.3}, {:.3}) {known:>4.0} %",
        mean(&|pair| per_gb(&pair.ours)),
        mean(&|pair| per_gb(&pair.others)),
        mean(&|pair| gbits(&pair.ours)),
        mean(&|pair| gbits(&pair.others)),
        cpu.mean,
        cpu.low,
        cpu.high,
        busy.mean,
        busy.low,
        busy.high,
    );
}
