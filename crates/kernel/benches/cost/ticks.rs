//! How long the decisions of a detector take, each: the path that claims one makes it in the softirq
//! of its acknowledgement.

use libbpf_rs::{MapCore, MapFlags};
use narrows_kernel::control::Registered;
use narrows_laws::{Control, Detector, Law};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::transfer::{Until, on_all_paths, transfer};
use crate::wire::Wire;
use crate::{Aligned, Result, acks, verdict};

/// The control of gcubic, with a map of how long decisions took.
static TIMED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/timed.bpf.o")));

/// `NR_TIME_NS`.
const BIN_US: f64 = 0.1;
/// Subflows, and the target, µs.
const PATHS: [(usize, Option<f64>); 2] = [(2, None), (8, Some(20.0))];
/// Decisions before this are about queues that have not filled yet.
const WARM_UP: Duration = Duration::from_secs(3);

/// Prints the distribution for each of `detectors`, over a transfer of so many seconds.
pub fn table(machine: &Machine, detectors: &[Detector], seconds: u64) -> Result<()> {
    println!(
        "\nµs an acknowledgement with a decision, the detector's part, in a transfer of {seconds} s \
         over queues as above"
    );
    println!(
        "control      paths decisions     50 %    90 %    99 %  99.9 %  longest   99 % at most"
    );
    let law = Law::all().find(|law| law.name() == "gcubic").expect("a law that is there");
    for (paths, at_most) in PATHS {
        let wire = Wire::lay(paths, Some(acks::bottleneck(paths as u32)));
        for &detector in detectors {
            let control = Control { detector, ..Control::of(law) };
            let control = Registered::with_object(control, &TIMED.0)?;
            let times = on_all_paths(|| measure(machine, &wire, &control, seconds))?;
            let decisions: u64 = times.iter().sum();
            // The upper end of the bin that has this part of all below it.
            let quantile = |part: f64| {
                let mut below = 0;
                let at = times.iter().position(|n| {
                    below += n;
                    below as f64 >= part * decisions as f64
                });
                (at.unwrap_or(0) + 1) as f64 * BIN_US
            };
            let [half, most, nearly, all_but] = [0.5, 0.9, 0.99, 0.999].map(quantile);
            let verdict = at_most.map_or(String::new(), |at_most| {
                format!("{at_most:>8} {}", verdict(nearly, nearly, at_most))
            });
            println!(
                "{:<12} {paths:>5} {decisions:>9} {half:>8.1} {most:>7.1} {nearly:>7.1} \
                 {all_but:>7.1} {:>8.1} {verdict}",
                control.name(),
                quantile(1.0),
            );
        }
    }
    Ok(())
}

fn measure(
    machine: &Machine,
    wire: &Wire,
    control: &Registered,
    seconds: u64,
) -> Result<(Vec<u64>, f64)> {
    let map = control.loaded().object().maps().find(|map| map.name() == "nr_times");
    let map = map.expect("the object has it");
    let times = || -> Result<Vec<u64>> {
        let bins = (0..map.max_entries()).map(|bin| {
            let value = map.lookup(&bin.to_ne_bytes(), MapFlags::ANY)?.expect("an array");
            Ok(u64::from_ne_bytes(value.try_into().expect("64 bits")))
        });
        bins.collect()
    };
    std::thread::scope(|scope| {
        let until = Until::Time(Instant::now() + WARM_UP + Duration::from_secs(seconds));
        let transfer = scope.spawn(move || transfer(machine, wire, control.name(), until));
        std::thread::sleep(WARM_UP);
        let before = times()?;
        let cost = transfer.join().expect("no panic in the transfer")?;
        let times = times()?.into_iter().zip(before).map(|(after, before)| after - before);
        let times: Vec<u64> = times.collect();
        match times.iter().sum() {
            0 => Err(format!("{}: no decision", control.name()).into()),
            1u64.. => Ok((times, cost.least)),
        }
    })
}
