//! The packet simulator.

mod advised;
mod build;
mod capture;
mod run;

#[cfg(feature = "quic")]
pub use build::{Build, controls};
pub use run::{Join, join, parts};
#[cfg(feature = "quic")]
pub use run::{change_link, messages, state};

use super::{Host, Job};
use crate::Error;
use crate::host_id::HostId;
use crate::recorder::Run;

/// The packet simulator, in virtual time.
pub struct Simulator;

impl Host for Simulator {
    fn id(&self) -> HostId {
        HostId::SIM
    }

    fn real_time(&self) -> bool {
        false
    }

    fn check(&self, job: &Job) -> Result<(), Error> {
        if job.app.is_some() {
            return Err(Error::input("--app", "programs run on the kernel: --on kernel"));
        }
        build::controls(job).map(drop)
    }

    fn run(&self, job: Job) -> Result<Run, Error> {
        run::simulate(job)
    }
}
