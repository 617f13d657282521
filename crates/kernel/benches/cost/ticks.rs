//! How long the decisions of a detector take, each: the path that claims one makes it in the softirq
//! of its acknowledgement.

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use narrows_kernel::control::Registered;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::transfer::{Until, on_all_paths, transfer};
use crate::wire::Wire;
use crate::{Aligned, Result, acks, verdict};

static TICK: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tick.bpf.o")));

/// `BIN_NS`.
const BIN_US: f64 = 0.1;
/// Subflows, and the target, µs.
const PATHS: [(usize, Option<f64>); 2] = [(2, None), (8, Some(20.0))];
/// Programs that acknowledgements run.
const PROGRAMS: [&str; 3] = ["nr_cong_avoid", "nr_pkts_acked", "nr_cong_control"];
/// Decisions before this are about queues that have not filled yet.
const WARM_UP: Duration = Duration::from_secs(3);

/// What is attached to one program of a control.
struct Probe {
    object: Object,
    _links: Vec<Link>,
}

impl Probe {
    fn attach(program: i32) -> Result<Probe> {
        let mut open = ObjectBuilder::default().open_memory(&TICK.0)?;
        for mut probe in open.progs_mut() {
            probe.set_attach_target(program, Some("nr_watch_tick".to_owned()))?;
        }
        let object = open.load()?;
        let links = object.progs_mut().map(|probe| probe.attach());
        let _links = links.collect::<std::result::Result<_, _>>()?;
        Ok(Probe { object, _links })
    }

    /// How many decisions took so long, by bins.
    fn times(&self) -> Result<Vec<u64>> {
        let map = self.object.maps().find(|map| map.name() == "times").expect("the object has it");
        let bins = (0..map.max_entries()).map(|bin| {
            let value = map.lookup(&bin.to_ne_bytes(), MapFlags::ANY)?.expect("an array");
            Ok(u64::from_ne_bytes(value.try_into().expect("64 bits")))
        });
        bins.collect()
    }
}

/// Prints the distribution for each of `controls`, over a transfer of so many seconds.
pub fn table(machine: &Machine, controls: &[Registered], seconds: u64) -> Result<()> {
    println!(
        "\nµs a decision, in a transfer of {seconds} s over queues as above; its clocks and trampoline \
         included"
    );
    println!(
        "control      paths decisions     50 %    90 %    99 %  99.9 %  longest   99 % at most"
    );
    for (paths, at_most) in PATHS {
        let wire = Wire::lay(paths, Some(acks::bottleneck(paths as u32)));
        for control in controls {
            let times = on_all_paths(|| measure(machine, &wire, control, seconds))?;
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
    let programs = control.loaded().object().progs();
    let programs = programs.filter(|program| PROGRAMS.iter().any(|name| program.name() == *name));
    let probes = programs.map(|program| Probe::attach(program.as_fd().as_raw_fd()));
    let probes = probes.collect::<Result<Vec<_>>>()?;
    let sum = || -> Result<Vec<u64>> {
        let all = probes.iter().map(Probe::times).collect::<Result<Vec<_>>>()?;
        let sum = |mut a: Vec<u64>, b: Vec<u64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        all.into_iter().reduce(sum).ok_or_else(|| "no program to attach to".into())
    };
    std::thread::scope(|scope| {
        let until = Until::Time(Instant::now() + WARM_UP + Duration::from_secs(seconds));
        let transfer = scope.spawn(move || transfer(machine, wire, control.name(), until));
        std::thread::sleep(WARM_UP);
        let before = sum()?;
        let cost = transfer.join().expect("no panic in the transfer")?;
        let times = sum()?.into_iter().zip(before).map(|(after, before)| after - before);
        let times: Vec<u64> = times.collect();
        match times.iter().sum() {
            0 => Err(format!("{}: no decision", control.name()).into()),
            1u64.. => Ok((times, cost.least)),
        }
    })
}
