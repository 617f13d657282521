//! Scenarios on this machine's kernel: hosts in network namespaces, and the scenario's network
//! between them in real time.

mod app;
mod capture;
mod change;
mod controls;
mod plan;
mod prepare;
mod run;
mod sample;
mod shell;
mod sources;
mod user_space;

use std::path::Path;

use narrows_kernel::Signal;

use super::{Host, Job};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::host_id::HostId;
use crate::recorder::Run;
use crate::scenario::{FlowKind, Scenario};

pub use app::listens;
pub use controls::on_wait;
#[cfg(feature = "quic")]
pub use controls::{can_be_had, kernel};
#[cfg(feature = "quic")]
pub use plan::possible;
pub use plan::{Addresses, FlowPlan, PathPlan, Plan, RECEIVER, SENDER};
#[cfg(feature = "quic")]
pub use run::emulate;
pub use shell::{Shell, alone};
#[cfg(feature = "quic")]
pub use sources::{Cpu, PORT, Progress, UDP_BUFFER, cpu};
#[cfg(feature = "quic")]
pub use user_space::{Built, Connections, UserSpace};

/// The host's name.
const ID: HostId = HostId::new("kernel");

/// This machine's kernel, in real time.
pub struct Kernel;

impl Host for Kernel {
    fn id(&self) -> HostId {
        ID
    }

    fn real_time(&self) -> bool {
        true
    }

    fn check(&self, job: &Job) -> Result<(), Error> {
        loadable(job.controls())?;
        if job.controls().iter().any(|(_, control)| control.decides()) {
            signal(job.scenario)?;
        }
        if job.scenario.params.word("bbr.close") > 0 {
            let message =
                "a run on the kernel does not follow advice; expected 0 (or use --on sim)";
            return Err(Error::input(format!("{}: bbr.close", job.scenario.name), message));
        }
        if let Some(flow) = job.scenario.flows.iter().find(|flow| flow.advice) {
            let place = format!("{}: flows.{}.advice", job.scenario.name, flow.name);
            let message =
                "a run on the kernel does not follow advice; expected false (or use --on sim)";
            return Err(Error::input(place, message));
        }
        if !job.scenario.passive.is_empty() {
            let place = format!("{}: detection.passive", job.scenario.name);
            let message = "passive detectors are for simulated connections only (use --on sim)";
            return Err(Error::input(place, message));
        }
        if job.app.is_some() && job.scenario.test.is_none() {
            let message =
                "no flow is under test, whose source it replaces; expected a field test = \"FLOW\"";
            return Err(Error::input("--app", message));
        }
        plan::possible(job.scenario)
    }

    /// This process is root's, there are TUN devices and MPTCP, and the congestion controls can be had.
    fn ready(&self, job: &Job) -> Result<(), Error> {
        narrows_emu::available().map_err(controls::kernel)?;
        let multipath = job.scenario.flows.iter().any(|flow| flow.kind == FlowKind::Mptcp);
        if multipath && !Path::new("/proc/sys/net/mptcp").exists() {
            return Err(controls::kernel("no MPTCP here (/proc/sys/net/mptcp)"));
        }
        controls::can_be_had(&job.controls())
    }

    /// Nothing is left in the kernel afterwards.
    fn run(&self, job: Job) -> Result<Run, Error> {
        run::emulate(job, None)
    }
}

/// What detectors in the kernel sample in a scenario: what the command line asks for, else round-trip
/// times, as they do by default; its file is the simulator's.
///
/// # Errors
/// They cannot.
fn signal(scenario: &Scenario) -> Result<Signal, Error> {
    let asked = scenario.asked_signal().map_or(Signal::default().name(), |asked| asked.name());
    asked.parse().map_err(|error| {
        let place = format!("{}: detection.signal", scenario.name);
        Error::input(place, format!("{error} (or use --on sim)"))
    })
}

/// Checks, without a look at this machine, that the kernel can have these congestion controls, each with
/// the option or field that asks for it.
///
/// # Errors
/// One that it cannot have.
pub fn loadable(controls: impl IntoIterator<Item = (String, Algorithm)>) -> Result<(), Error> {
    for (place, control) in controls {
        let Some(ours) = control.ours() else { continue };
        let refused =
            |error: String| Error::input(place.clone(), format!("{error} (or use --on sim)"));
        let settings = control.system().into_iter().flat_map(|system| system.settings());
        for (_, signal) in settings.filter(|(field, _)| *field == "detection.signal") {
            let known: Result<Signal, String> = signal.parse();
            known.map_err(|error| refused(format!("{control}: {error}")))?;
        }
        narrows_kernel::control::loadable(ours).map_err(|error| refused(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load};

    #[test]
    fn detectors_sample_what_the_command_line_asks_for() {
        let mut scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        assert_eq!(signal(&scenario).unwrap(), Signal::Rtt, "not what its file has");
        scenario.set_signal(narrows_traffic::Signal::SenderUs);
        assert_eq!(signal(&scenario).unwrap(), Signal::SenderUs);
        scenario.set_signal(narrows_traffic::Signal::ReceiverUs);
        let refused = signal(&scenario).unwrap_err().to_string();
        let expected = "sbd/nsb-2: detection.signal: the kernel's detectors do not sample \
                        \"receiver-us\"; expected one of: rtt, sender-ms, sender-us (or use --on sim)";
        assert_eq!(refused, expected);
    }
}
