//! What the kernel host costs: nanoseconds per acknowledgement inside the programs, and CPU time of
//! whole transfers beside the kernel's own Reno.
//!
//! `cargo bench -p narrows-kernel --bench cost [-- acks|detect|decisions|cpu|receiver] [CONTROL...|all] [pairs=N]`
//!
//! All parts send data over MPTCP between two namespaces of this process, which it removes. Needs
//! root and Linux 6.4.

mod acks;
mod machine;
mod pairs;
mod stats;
mod ticks;
mod transfer;
mod wire;

use acks::Candidate;
use libbpf_rs::{MapCore, ObjectBuilder};
use machine::Machine;
use narrows_kernel::control::Registered;
use narrows_laws::{Control, Detector, Law};
use stats::Programs;
use std::collections::BTreeSet;
use std::process::exit;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// ELF needs more alignment than a byte array has.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static EMPTY: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o")));

/// What `detect` measures if nothing is named.
const DETECTING: [&str; 4] = ["greno+xcorr", "gcubic+xcorr", "lia+xcorr", "olia+ssc"];
/// The transfer in which each control's decisions are timed.
const TICKS_SECONDS: u64 = 60;

/// What was asked for.
struct Asked {
    acks: bool,
    detect: bool,
    decisions: bool,
    cpu: bool,
    receiver: bool,
    /// None: each part's own choice.
    laws: Vec<Law>,
    /// Those with a detector that decides; likewise.
    detecting: Vec<Control>,
    pairs: usize,
}

impl Asked {
    fn of(words: impl Iterator<Item = String>) -> std::result::Result<Asked, String> {
        let (laws, detecting) = (Vec::new(), Vec::new());
        let mut asked = Asked {
            acks: false,
            detect: false,
            decisions: false,
            cpu: false,
            receiver: false,
            laws,
            detecting,
            pairs: 40,
        };
        for word in words.filter(|word| word != "--bench") {
            match (word.as_str(), word.strip_prefix("pairs=").map(str::parse)) {
                ("acks", _) => asked.acks = true,
                ("detect", _) => asked.detect = true,
                ("decisions", _) => asked.decisions = true,
                ("cpu", _) => asked.cpu = true,
                ("receiver", _) => asked.receiver = true,
                ("all", _) => asked.laws = Law::all().collect(),
                (_, Some(Ok(pairs @ 2..))) => asked.pairs = pairs,
                (name, _) => match Law::all().find(|law| law.name() == name) {
                    Some(law) => asked.laws.push(law),
                    None => match name.parse::<Control>() {
                        Ok(control) if control.detector.decides() => asked.detecting.push(control),
                        _ => {
                            let expected = "expected acks, detect, decisions, cpu, receiver, a law, a law \
                                            with a detector that decides, all, pairs=N";
                            return Err(format!("`{word}`: {expected}"));
                        }
                    },
                },
            }
        }
        let Asked { acks, detect, decisions, cpu, receiver, .. } = &mut asked;
        let parts = [acks, detect, decisions, cpu, receiver];
        if parts.iter().all(|part| !**part) {
            parts.into_iter().for_each(|part| *part = true);
        }
        Ok(asked)
    }

    fn laws_or(&self, default: &[Law]) -> Vec<Law> {
        if self.laws.is_empty() { default.to_vec() } else { self.laws.clone() }
    }
}

fn main() {
    if let Err(reason) = narrows_kernel::available() {
        println!("cost in the kernel: skipped, {reason}");
        return;
    }
    let done =
        Asked::of(std::env::args().skip(1)).map_err(Into::into).and_then(|asked| run(&asked));
    if let Err(error) = done {
        eprintln!("cost in the kernel: {error}");
        exit(2);
    }
}

fn run(asked: &Asked) -> Result<()> {
    let machine = Machine::look()?;
    let mut object = ObjectBuilder::default().open_memory(&EMPTY.0)?.load()?;
    let _link = object
        .maps_mut()
        .find(|map| map.name() == "empty_ops")
        .expect("the object has a congestion control")
        .attach_struct_ops()?;
    let empty = Candidate { name: "nr_empty", programs: Programs::of(&object)? };
    if asked.acks {
        let laws = asked.laws_or(&Law::all().collect::<Vec<_>>());
        let others: Vec<Law> = laws.iter().copied().filter(|law| *law != Law::RENO).collect();
        let reno = Registered::register(Control::of(Law::RENO))?;
        let controls = register(&others)?;
        let reno = Candidate::of(&reno)?;
        let candidates = controls.iter().map(Candidate::of).collect::<Result<Vec<_>>>()?;
        let mut candidates: Vec<_> =
            candidates.into_iter().map(|one| [one, reno.clone()]).collect();
        if laws.contains(&Law::RENO) {
            // Against itself: what the method can resolve.
            candidates.insert(0, [reno.clone(), reno]);
        }
        acks::table(&machine, &acks::LAWS, &empty, &candidates, asked.pairs)?;
    }
    let controls: Vec<Control> = match &asked.detecting[..] {
        [] => DETECTING.iter().map(|name| name.parse()).collect::<std::result::Result<_, _>>()?,
        asked => asked.to_vec(),
    };
    if asked.detect {
        let with = controls.iter().map(|control| Ok(Registered::register(*control)?));
        let with = with.collect::<Result<Vec<_>>>()?;
        let mut laws: Vec<Law> = controls.iter().map(|control| control.law).collect();
        laws.sort();
        laws.dedup();
        let without = register(&laws)?;
        let candidates = controls.iter().zip(&with).map(|(control, with)| {
            let law = laws.iter().position(|law| *law == control.law).expect("from this list");
            Ok([Candidate::of(with)?, Candidate::of(&without[law])?])
        });
        let candidates = candidates.collect::<Result<Vec<_>>>()?;
        acks::table(&machine, &acks::DETECTORS, &empty, &candidates, asked.pairs)?;
    }
    if asked.decisions {
        let mut detectors: Vec<Detector> =
            controls.iter().map(|control| control.detector).collect();
        detectors.sort();
        detectors.dedup();
        ticks::table(&machine, &detectors, TICKS_SECONDS)?;
    }
    if asked.cpu {
        let mut laws = match (&asked.laws[..], &asked.detecting[..]) {
            ([], []) => vec![Law::RENO, Law::OLIA],
            (asked, _) => asked.to_vec(),
        };
        let named = laws.len();
        laws.extend(asked.detecting.iter().map(|control| control.law));
        let all: Vec<Law> = laws.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let registered = register(&all)?;
        let name = |law: Law| {
            let at = all.iter().position(|known| *known == law).expect("from this list");
            registered[at].name()
        };
        let with = asked.detecting.iter().map(|control| Ok(Registered::register(*control)?));
        let with = with.collect::<Result<Vec<_>>>()?;
        let mut pairs: Vec<[pairs::Candidate; 2]> = laws[..named]
            .iter()
            .map(|law| [pairs::Candidate::of(name(*law)), pairs::KERNELS])
            .collect();
        pairs.extend(
            with.iter()
                .zip(&laws[named..])
                .map(|(with, law)| [with.name(), name(*law)].map(pairs::Candidate::of)),
        );
        pairs::table(&machine, &pairs, asked.pairs)?;
    }
    if asked.receiver {
        let registered = controls.iter().map(|control| Ok(Registered::register(*control)?));
        let registered = registered.collect::<Result<Vec<_>>>()?;
        let pairs: Vec<_> = registered
            .iter()
            .map(|one| {
                [true, false].map(|receiver| pairs::Candidate { control: one.name(), receiver })
            })
            .collect();
        pairs::table(&machine, &pairs, asked.pairs)?;
    }
    Ok(())
}

/// Is a target met whose 95 % interval is from `low` to `high`?
fn verdict(low: f64, high: f64, at_most: f64) -> &'static str {
    if high <= at_most {
        "met"
    } else if low > at_most {
        "not met"
    } else {
        "undecided"
    }
}

fn register(laws: &[Law]) -> Result<Vec<Registered>> {
    laws.iter().map(|law| Ok(Registered::register(Control::of(*law))?)).collect()
}
