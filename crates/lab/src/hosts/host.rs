//! What every host does, and what it is asked to do.

use std::sync::atomic::AtomicBool;

use crate::Error;
use crate::algorithm::Algorithm;
use crate::capture::CaptureRequest;
use crate::detection::Found;
use crate::estimate::Estimate;
use crate::host_id::HostId;
use crate::measured::seconds;
use crate::recorder::Run;
use crate::scenario::Scenario;
use crate::series::Sample;

/// What can run scenarios.
pub trait Host: Sync {
    /// Its name in options and results.
    fn id(&self) -> HostId;

    /// Does a run take as long as what it models, and the machine with it? Otherwise time is virtual,
    /// and runs can share the cores.
    fn real_time(&self) -> bool;

    /// Time of a run, alone on a core, seconds, about.
    fn seconds(&self, scenario: &Scenario) -> f64 {
        if self.real_time() { seconds(scenario.end()) } else { Estimate::of(scenario).seconds() }
    }

    /// Checks, without a look at this machine, that the host has what `job` asks for.
    ///
    /// # Errors
    /// The flow, or the option, that asks for what it has not.
    fn check(&self, job: &Job) -> Result<(), Error>;

    /// Checks that this machine can run `job`, which the host has checked, now.
    ///
    /// # Errors
    /// What the host needs and does not find here.
    fn ready(&self, _job: &Job) -> Result<(), Error> {
        Ok(())
    }

    /// Runs `job`, which the host has checked.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once `job.stop` is set, an impossible network, a capture that cannot be
    /// written, and what else the host refuses.
    fn run(&self, job: Job) -> Result<Run, Error>;
}

/// Sees how a run goes on.
pub trait Live: Sync {
    /// How it is now: every 100 ms of its time.
    fn see(&self, seen: Seen);
}

/// A run as it is now.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Time since its start, s.
    pub time_s: f64,
    /// The paths of all listed connections, always in this order.
    pub samples: &'a [Sample],
    /// Where the detector of the connection under test places its paths; empty before its first decision.
    pub places: Vec<Found>,
}

/// Receivers misbehave in the simulator alone.
///
/// # Errors
/// The flow whose receiver is to misbehave.
#[cfg(any(feature = "kernel", feature = "quic"))]
pub fn honest<'f>(
    scenario: &Scenario,
    flows: impl IntoIterator<Item = &'f crate::scenario::Flow>,
) -> Result<(), Error> {
    match flows.into_iter().find(|flow| flow.tcp.receiver_hides.is_some()) {
        Some(flow) => {
            let place = format!("{}: flows.{}.tcp.receiver_hides", scenario.name, flow.name);
            Err(Error::input(place, "receivers misbehave in the simulator only (use --on sim)"))
        }
        None => Ok(()),
    }
}

/// A run that is asked for.
pub struct Job<'a> {
    /// What runs.
    pub scenario: &'a Scenario,
    /// Congestion control of the connection under test, in place of the scenario's.
    pub control: Option<Algorithm>,
    /// Seed of the random generator.
    pub seed: u64,
    /// Keep samples for a series.
    pub series: bool,
    /// What packets are written down.
    pub capture: Option<CaptureRequest<'a>>,
    /// Programs in place of the source of the connection under test.
    pub app: Option<&'a App>,
    /// Who sees it go on; needs `series`.
    pub live: Option<&'a dyn Live>,
    /// Threads to run on at most; of no meaning in real time.
    pub threads: usize,
    /// Set to interrupt the run.
    pub stop: &'a AtomicBool,
}

impl<'a> Job<'a> {
    /// `scenario` as it is, with seed 1, on one thread and no output but its metrics.
    pub fn new(scenario: &'a Scenario, stop: &'a AtomicBool) -> Job<'a> {
        let (series, capture, app, live) = (false, None, None, None);
        Job { scenario, control: None, seed: 1, series, capture, app, live, threads: 1, stop }
    }

    /// The congestion control of a flow of the scenario; none of UDP.
    pub(crate) fn algorithm(&self, flow: usize) -> Option<Algorithm> {
        self.scenario.algorithm(flow, self.control)
    }

    /// The congestion controls of all flows that have one, each with the option or field that asks for
    /// it.
    pub(crate) fn controls(&self) -> Vec<(String, Algorithm)> {
        self.scenario.asked_for(self.control)
    }

    /// The same by flow.
    #[cfg(any(feature = "kernel", feature = "quic"))]
    pub(crate) fn by_flow(&self) -> impl Iterator<Item = (usize, (String, Algorithm))> {
        let flows = (0..self.scenario.flows.len()).filter(|flow| self.algorithm(*flow).is_some());
        flows.zip(self.controls())
    }
}

/// What runs in place of a source, as a shell understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Runs in the sender's host when the flow starts. `{server}` stands for the receiver's address.
    pub client: String,
    /// Runs in the receiver's host, from before the start.
    pub server: Option<String>,
}
