//! What can run a scenario. A host is a module here and a line of `HOSTS`.

#[cfg(unix)]
pub mod child;
mod host;
#[cfg(feature = "kernel")]
pub mod kernel;
#[cfg(feature = "quic")]
mod quic;
#[cfg(all(feature = "kernel", feature = "quic"))]
mod quic_real;
mod sim;
mod world;

use narrows_laws::catalogue::Unknown;

use crate::Error;
use crate::panics::catch;
use crate::recorder::Run;
use crate::setup::included_by;

#[cfg(any(feature = "kernel", feature = "quic"))]
use host::honest;
pub use host::{App, Host, Job, Live, Seen};
pub use sim::{Join, join, parts};

/// A host; of one that this program was built without, what includes it in the command and in the wheel.
type Built = Result<&'static dyn Host, [&'static str; 2]>;

/// All hosts by name, the default first.
static HOSTS: &[(&str, Built)] = &[
    ("sim", Ok(&sim::Simulator)),
    #[cfg(feature = "kernel")]
    ("kernel", Ok(&kernel::Kernel)),
    #[cfg(not(feature = "kernel"))]
    ("kernel", Err(["make install", "scripts/python wheel kernel"])),
    #[cfg(feature = "quic")]
    ("quic", Ok(&quic::Quic)),
    #[cfg(not(feature = "quic"))]
    ("quic", Err(["cargo build --release -p narrows --features quic", "scripts/python wheel"])),
    #[cfg(all(feature = "kernel", feature = "quic"))]
    ("quic-real", Ok(&quic_real::QuicReal)),
    #[cfg(not(all(feature = "kernel", feature = "quic")))]
    (
        "quic-real",
        Err([
            "cargo build --release -p narrows --features kernel,quic",
            "scripts/python wheel kernel",
        ]),
    ),
];

/// The hosts that this program was built with, the default first.
pub fn hosts() -> impl Iterator<Item = &'static dyn Host> {
    HOSTS.iter().filter_map(|(_, host)| host.ok())
}

/// The host of a name, as `--on` has it.
///
/// # Errors
/// There is none of that name, or this program was built without it.
pub fn host(name: &str) -> Result<&'static dyn Host, Error> {
    let message = match HOSTS.iter().find(|(known, _)| *known == name) {
        Some((_, Ok(host))) => return Ok(*host),
        Some((name, Err(how))) => {
            format!("built without {name} support; {} includes it", included_by(*how))
        }
        None => {
            let known: Vec<&str> = HOSTS.iter().map(|(name, _)| *name).collect();
            Unknown::new("host", name, &known).to_string()
        }
    };
    Err(Error::input("--on", message))
}

/// Runs `job` on `host`, which has checked it. A panic, which is a fault of this program, must not take
/// the results of other runs with it: it becomes an error.
///
/// # Errors
/// As [`Host::run`], or [`Error::Fault`].
pub fn run(host: &dyn Host, job: Job) -> Result<Run, Error> {
    let (scenario, seed) = (job.scenario.name.clone(), job.seed);
    let cc = job.scenario.test.and_then(|test| job.algorithm(test));
    #[cfg(unix)]
    if child::is_asked(host, &job) {
        return child::run(host, &job);
    }
    catch(|| host.run(job)).unwrap_or_else(|message| {
        let cc = cc.map_or("-".into(), |control| control.to_string());
        Err(Error::Fault { scenario, cc, seed, message })
    })
}
