//! QUIC end points of noq in virtual time, over the simulator's links and beside its TCP.
//!
//! The connection under test and each MPTCP connection of a scenario run as connections of QUIC, with
//! a path for each of theirs; what else the scenario has runs as in the simulator.

mod check;
mod connection;
mod run;
mod seen;
mod transport;

#[cfg(feature = "kernel")]
pub use check::{couplings, ignored, quic_flows, quic_has, signal};
#[cfg(feature = "kernel")]
pub use seen::{Ends, Seen};
#[cfg(feature = "kernel")]
pub use transport::{Buffers, transport};

use super::{Host, Job};
use crate::Error;
use crate::host_id::HostId;
use crate::recorder::Run;

/// QUIC end points of noq, in virtual time.
pub struct Quic;

impl Host for Quic {
    fn id(&self) -> HostId {
        run::ID
    }

    fn real_time(&self) -> bool {
        false
    }

    fn check(&self, job: &Job) -> Result<(), Error> {
        check::check(job)
    }

    fn run(&self, job: Job) -> Result<Run, Error> {
        run::run(job)
    }
}
