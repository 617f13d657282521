//! What can run a scenario.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::recorder::Run;
use crate::scenario::Scenario;
use crate::{Capture, Error, Output, run};

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// The packet simulator.
    Sim,
    /// This machine's kernel, in real time.
    Kernel,
}

impl Host {
    /// All of them.
    pub const ALL: [Host; 2] = [Host::Sim, Host::Kernel];

    /// As options and results show it.
    pub fn name(self) -> &'static str {
        match self {
            Host::Sim => "sim",
            Host::Kernel => "kernel",
        }
    }

    /// Checks that this program can run scenarios on the host.
    ///
    /// # Errors
    /// It was built without it.
    pub fn available(self) -> Result<(), Error> {
        if self == Host::Kernel && cfg!(not(feature = "kernel")) {
            let message =
                "this narrows was built without the kernel; `make install` builds it with";
            return Err(Error::input("--on", message));
        }
        Ok(())
    }

    /// Checks, before anything runs, that the host is available and can be given `scenario`, where
    /// `control` replaces that of the connection under test.
    ///
    /// # Errors
    /// The host is not available; the flow, or the option, that asks for what it has not.
    pub fn check(self, scenario: &Scenario, control: Option<Algorithm>) -> Result<(), Error> {
        self.available()?;
        if self == Host::Kernel {
            deaf(scenario, control)?;
        }
        match self {
            Host::Sim => simulated(scenario, control),
            #[cfg(feature = "kernel")]
            Host::Kernel => crate::kernel::check(scenario),
            #[cfg(not(feature = "kernel"))]
            Host::Kernel => Ok(()),
        }
    }

    /// Checks that this machine can run `scenario` on the host now; all else is as [`Host::check`]
    /// has it.
    ///
    /// # Errors
    /// What the kernel's host needs and does not have here: root, TUN devices, MPTCP, BTF for a
    /// congestion control of ours, or one of the kernel's own.
    #[cfg_attr(not(feature = "kernel"), expect(unused_variables))]
    pub(crate) fn ready(
        self,
        scenario: &Scenario,
        control: Option<Algorithm>,
    ) -> Result<(), Error> {
        match self {
            #[cfg(feature = "kernel")]
            Host::Kernel => crate::kernel::ready(scenario, control),
            _ => Ok(()),
        }
    }
}

/// Refuses detectors that listen.
fn deaf(scenario: &Scenario, control: Option<Algorithm>) -> Result<(), Error> {
    let asked = scenario.asked_for(control);
    match asked.into_iter().find(|(_, control)| control.listens()) {
        Some((place, control)) => {
            let message = format!(
                "the kernel host has no detector that listens, as {control} needs; --on sim has"
            );
            Err(Error::input(place, message))
        }
        None => Ok(()),
    }
}

/// Refuses congestion controls that the simulator has not.
fn simulated(scenario: &Scenario, control: Option<Algorithm>) -> Result<(), Error> {
    let asked = scenario.asked_for(control);
    match asked.into_iter().find(|(_, control)| control.ours().is_none()) {
        Some((place, control)) => {
            let message = format!("the simulator has no {control}; --on kernel has");
            Err(Error::input(place, message))
        }
        None => Ok(()),
    }
}

/// Runs `scenario` on `host`; all else is as [`run`] has it.
///
/// # Errors
/// As [`run`]; the host is not available, or writes no capture.
pub fn run_on(
    host: Host,
    scenario: &Scenario,
    control: Option<Algorithm>,
    seed: u64,
    series: bool,
    capture: Option<&mut HostCapture>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    host.check(scenario, control)?;
    match (host, capture) {
        (Host::Sim, None) => run(scenario, control, seed, series, None, stop),
        (Host::Sim, Some(HostCapture::Sim(capture))) => {
            run(scenario, control, seed, series, Some(capture), stop)
        }
        #[cfg(feature = "kernel")]
        (Host::Kernel, None) => {
            crate::kernel::run(scenario, control, None, seed, series, None, stop)
        }
        #[cfg(feature = "kernel")]
        (Host::Kernel, Some(HostCapture::Kernel(capture))) => {
            crate::kernel::run(scenario, control, None, seed, series, Some(capture), stop)
        }
        _ => Err(Error::input("--pcap", format!("a capture of another host than {host}"))),
    }
}

/// Captures of a run on a host, being written.
pub enum HostCapture {
    /// On the simulator.
    Sim(Capture),
    /// On this machine's kernel.
    #[cfg(feature = "kernel")]
    Kernel(crate::kernel::Capture),
}

impl HostCapture {
    /// Opens the files in `output`, see [`Capture::new`]; without a `snaplen` headers are kept.
    ///
    /// # Errors
    /// As [`Capture::new`]; the host is not available, or cannot capture what is named.
    pub fn new(
        host: Host,
        scenario: &Scenario,
        seed: u64,
        names: &[String],
        snaplen: Option<u32>,
        output: &mut Output,
    ) -> Result<HostCapture, Error> {
        host.available()?;
        match host {
            #[cfg(feature = "kernel")]
            Host::Kernel => {
                let snaplen = snaplen.unwrap_or(crate::kernel::Capture::HEADERS);
                let capture = crate::kernel::Capture::new(scenario, names, snaplen, output)?;
                Ok(HostCapture::Kernel(capture))
            }
            _ => {
                let snaplen = snaplen.unwrap_or(Capture::HEADERS);
                let capture = Capture::new(scenario, seed, names, snaplen, output)?;
                Ok(HostCapture::Sim(capture))
            }
        }
    }

    /// What a run on this machine's kernel writes to.
    #[cfg(feature = "kernel")]
    pub fn kernel(&mut self) -> Option<&mut crate::kernel::Capture> {
        match self {
            HostCapture::Kernel(capture) => Some(capture),
            HostCapture::Sim(_) => None,
        }
    }

    /// The names of the files.
    pub fn names(&self) -> Vec<&str> {
        match self {
            HostCapture::Sim(capture) => capture.names().collect(),
            #[cfg(feature = "kernel")]
            HostCapture::Kernel(capture) => capture.names().collect(),
        }
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(name: &str) -> Result<Host, String> {
        let known = || Host::ALL.map(Host::name).join(", ");
        let host = Host::ALL.into_iter().find(|host| host.name() == name);
        host.ok_or_else(|| format!("unknown host \"{name}\"; there is: {}", known()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
