//! What the kernel host costs: nanoseconds per acknowledgement inside the programs, and CPU time of
//! whole transfers beside the kernel's own Reno.
//!
//! `cargo bench -p narrows-kernel --bench cost [-- acks|cpu] [LAW...|all] [pairs=N]`
//!
//! Both parts send data over MPTCP between two namespaces of this process, which it removes. Needs
//! root and Linux 6.4.

mod acks;
mod machine;
mod pairs;
mod stats;
mod transfer;
mod wire;

use acks::Candidate;
use libbpf_rs::{MapCore, ObjectBuilder};
use machine::Machine;
use narrows_kernel::control::Registered;
use narrows_laws::{Control, Law};
use stats::Programs;
use std::process::exit;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// ELF needs more alignment than a byte array has.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static EMPTY: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o")));

/// What was asked for.
struct Asked {
    acks: bool,
    cpu: bool,
    /// None: each part's own choice.
    laws: Vec<Law>,
    pairs: usize,
}

impl Asked {
    fn of(words: impl Iterator<Item = String>) -> std::result::Result<Asked, String> {
        let mut asked = Asked { acks: false, cpu: false, laws: Vec::new(), pairs: 40 };
        for word in words.filter(|word| word != "--bench") {
            match (word.as_str(), word.strip_prefix("pairs=").map(str::parse)) {
                ("acks", _) => asked.acks = true,
                ("cpu", _) => asked.cpu = true,
                ("all", _) => asked.laws = Law::all().collect(),
                (_, Some(Ok(pairs @ 2..))) => asked.pairs = pairs,
                (name, _) => match Law::all().find(|law| law.name() == name) {
                    Some(law) => asked.laws.push(law),
                    None => {
                        return Err(format!("`{word}`: expected acks, cpu, a law, all, pairs=N"));
                    }
                },
            }
        }
        if !asked.acks && !asked.cpu {
            (asked.acks, asked.cpu) = (true, true);
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
    if asked.acks {
        let laws = asked.laws_or(&Law::all().collect::<Vec<_>>());
        let others: Vec<Law> = laws.iter().copied().filter(|law| *law != Law::RENO).collect();
        let reno = Registered::register(Control::of(Law::RENO))?;
        let controls = register(&others)?;
        let mut object = ObjectBuilder::default().open_memory(&EMPTY.0)?.load()?;
        let _link = object
            .maps_mut()
            .find(|map| map.name() == "empty_ops")
            .expect("the object has a congestion control")
            .attach_struct_ops()?;
        let empty = Candidate { name: "nr_empty", programs: Programs::of(&object)? };
        let reno = Candidate::of(&reno)?;
        let mut candidates = controls.iter().map(Candidate::of).collect::<Result<Vec<_>>>()?;
        if laws.contains(&Law::RENO) {
            candidates.insert(0, reno.clone()); // against itself: what the method can resolve
        }
        acks::table(&machine, &empty, &reno, &candidates, asked.pairs)?;
    }
    if asked.cpu {
        let controls = register(&asked.laws_or(&[Law::RENO, Law::OLIA]))?;
        let names: Vec<&str> = controls.iter().map(Registered::name).collect();
        pairs::table(&machine, &names, asked.pairs)?;
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
