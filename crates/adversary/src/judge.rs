//! Runs a network under a control, under its law uncoupled and with each path alone, and measures
//! what the control can be charged with.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use narrows_lab::{Algorithm, Control, Error, Host, Job, Scenario, run};
use narrows_laws::Detector;
use serde::{Deserialize, Serialize};

use crate::alone::each_path;
use crate::charge::{CHARGES, Charge, Measure, Runs, Seen};

/// What was measured in one network with one seed; a charge that is no question there is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict(pub BTreeMap<Charge, Measure>);

/// The control with its law uncoupled, which is what it is compared with.
///
/// # Errors
/// A control of the kernel's own, or one that is uncoupled itself.
pub fn uncoupled(control: Algorithm) -> Result<Control, Error> {
    let no = |message| Err(Error::input("--cc", format!("{control} {message}")));
    let Some(ours) = control.ours() else { return no("does not run in the simulator") };
    let alone = Control { detector: Detector::DISJOINT, ..ours };
    if alone == ours || !ours.law.couples() {
        return no("is uncoupled itself, and nothing to compare it with is left");
    }
    Ok(alone)
}

/// The control of the TCP flows beside `control`: the one that its law is on one path.
///
/// # Errors
/// As [`uncoupled`].
pub fn rival(control: Algorithm) -> Result<String, Error> {
    let law = uncoupled(control)?.law.name();
    Ok(match law {
        "lia" | "olia" | "balia" | "ewtcp" | "greno" => "reno".into(),
        "gcubic" => "cubic".into(),
        other => format!("{other}+disjoint"),
    })
}

/// Judges `control` in a scenario with a connection under test of two paths or more.
///
/// # Errors
/// Those of the runs, or [`Error::Interrupted`] once `stop` is set.
pub fn judge(
    host: &dyn Host,
    scenario: &Scenario,
    control: Algorithm,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Verdict, Error> {
    let Some(test) = scenario.test else {
        let message = "no flow is under test; expected a field test = \"FLOW\"";
        return Err(Error::input(&scenario.name, message));
    };
    let mut own = scenario.clone();
    if let Some(system) = control.system() {
        own.adopt(system, "--cc")?;
    }
    let one = |scenario: &Scenario, control| {
        let job = Job { control: Some(control), seed, ..Job::new(scenario, stop) };
        let summary = match run(host, job) {
            Ok(run) => run.summary,
            Err(Error::Fault { .. } | Error::Law { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let paths = summary.connections[test].paths.iter();
        let acknowledged_mbps = paths.map(|path| path.goodput_mbps).sum();
        let rivals = scenario.rivals_of(&scenario.flows[test], None);
        let goodput = |flow: usize| summary.connections[flow].goodput_mbps;
        let rivals_mbps = rivals.map(|rival| goodput(rival.flow)).sum();
        let seconds = summary.duration_s;
        let seen = summary.test.map(|test| Seen { test, acknowledged_mbps, rivals_mbps, seconds });
        seen.map(Some).ok_or_else(|| Error::input(&scenario.name, "nothing was measured"))
    };
    let uncoupled = Algorithm::from(uncoupled(control)?);
    let alone = each_path(scenario, test)?;
    let alone: Result<Option<Vec<Seen>>, Error> =
        alone.iter().map(|scenario| one(scenario, uncoupled)).collect();
    let (alone, control, uncoupled) = (alone?, one(&own, control)?, one(scenario, uncoupled)?);
    let (Some(alone), Some(control), Some(uncoupled)) = (&alone, &control, &uncoupled) else {
        let failure = Measure::failure(alone.is_none() || uncoupled.is_none());
        return Ok(Verdict([(Charge::Failure, failure)].into()));
    };
    let runs = Runs { scenario, control, uncoupled, alone };
    let measure = |charge: Charge| Some((charge, runs.measure(charge)?));
    Ok(Verdict(CHARGES.into_iter().filter_map(measure).collect()))
}
