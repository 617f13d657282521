//! How long a decision of a detector holds up acknowledgements, and how long it takes from the claim to
//! the answer: its parts are made in the softirqs of several acknowledgements.

use libbpf_rs::{MapCore, MapFlags};
use narrows_kernel::control::Registered;
use narrows_laws::{Control, Detector, Law};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::transfer::{Until, on_all_paths, transfer};
use crate::wire::Wire;
use crate::{Aligned, Result, acks, verdict};

/// The control of gcubic, with clocks around the detector.
static TIMED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/timed.bpf.o")));

/// `NR_HELD_NS`, µs.
const HELD_BIN: f64 = 0.1;
/// `NR_ANSWERED_NS`, ms.
const ANSWERED_BIN: f64 = 0.01;
/// Subflows, and the target of the longest time that one acknowledgement is held up, µs.
const PATHS: [(usize, Option<f64>); 2] = [(2, None), (8, Some(20.0))];
/// The quantiles that are shown.
const PARTS: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
/// Decisions before this are about queues that have not filled yet.
const WARM_UP: Duration = Duration::from_secs(3);

/// How many decisions took so long, by bin.
struct Times {
    held: Vec<u64>,
    answered: Vec<u64>,
    loops: Vec<u64>,
}

/// The upper end of the bin that has this part of all below it.
fn quantile(times: &[u64], bin: f64, part: f64) -> f64 {
    let all: u64 = times.iter().sum();
    let mut below = 0;
    let at = times.iter().position(|n| {
        below += n;
        below as f64 >= part * all as f64
    });
    (at.unwrap_or(0) + 1) as f64 * bin
}

/// Prints the distributions for each of `detectors`, over a transfer of so many seconds.
pub fn table(machine: &Machine, detectors: &[Detector], seconds: u64) -> Result<()> {
    println!(
        "\nof each decision, in a transfer of {seconds} s over queues as above: \
         µs that its longest part held an acknowledgement up; ms from the claim to the answer"
    );
    println!(
        "control      paths decisions  µs 50 %    90 %    99 %  99.9 %  longest   ms 50 %  longest   \
         µs 99 % at most"
    );
    let law = Law::all().find(|law| law.name() == "gcubic").expect("a law that is there");
    for (paths, at_most) in PATHS {
        let wire = Wire::lay(paths, Some(acks::bottleneck(paths as u32)));
        for &detector in detectors {
            let control = Control { detector, ..Control::of(law) };
            let control = Registered::with_object(control, &TIMED.0)?;
            let times = on_all_paths(|| measure(machine, &wire, &control, seconds))?;
            let held = |part| quantile(&times.held, HELD_BIN, part);
            let answered = |part| quantile(&times.answered, ANSWERED_BIN, part);
            let [half, most, nearly, all_but, longest] = PARTS.map(held);
            let looped = PARTS.map(|part| quantile(&times.loops, HELD_BIN, part));
            let verdict = at_most.map_or(String::new(), |at_most| {
                format!("{at_most:>8} {}", verdict(nearly, nearly, at_most))
            });
            println!(
                "{:<12} {paths:>5} {:>9} {half:>8.1} {most:>7.1} {nearly:>7.1} {all_but:>7.1} \
                 {longest:>8.1} {:>9.2} {:>8.2} {verdict}",
                control.name(),
                times.held.iter().sum::<u64>(),
                answered(0.5),
                answered(1.0),
            );
            let [half, most, nearly, all_but, longest] = looped;
            println!(
                "{:<28} {half:>8.1} {most:>7.1} {nearly:>7.1} {all_but:>7.1} {longest:>8.1}",
                "a loop after each part"
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
) -> Result<(Times, f64)> {
    let bins = |name: &str| -> Result<Vec<u64>> {
        let map = control.loaded().object().maps().find(|map| map.name() == name);
        let map = map.expect("the object has it");
        let bins = (0..map.max_entries()).map(|bin| {
            let value = map.lookup(&bin.to_ne_bytes(), MapFlags::ANY)?.expect("an array");
            Ok(u64::from_ne_bytes(value.try_into().expect("64 bits")))
        });
        bins.collect()
    };
    let times = || -> Result<[Vec<u64>; 3]> {
        Ok([bins("nr_longest")?, bins("nr_answers")?, bins("nr_loops")?])
    };
    std::thread::scope(|scope| {
        let until = Until::Time(Instant::now() + WARM_UP + Duration::from_secs(seconds));
        let transfer = scope.spawn(move || transfer(machine, wire, control.name(), until));
        std::thread::sleep(WARM_UP);
        let before = times()?;
        let cost = transfer.join().expect("no panic in the transfer")?;
        let mut times = times()?;
        for (after, before) in times.iter_mut().flatten().zip(before.iter().flatten()) {
            *after -= before;
        }
        let [held, answered, loops] = times;
        match held.iter().sum() {
            0 => Err(format!("{}: no decision", control.name()).into()),
            1u64.. => Ok((Times { held, answered, loops }, cost.least)),
        }
    })
}
