//! What of a scenario QUIC can run, and what is refused.

use narrows_quic::Coupling;
use narrows_traffic::{PathManager, Scheduler, Signal, TcpConfig};

use crate::Error;
use crate::algorithm::Algorithm;
use crate::hosts::sim::controls;
use crate::hosts::{Job, honest};
use crate::scenario::{Flow, FlowKind, FlowPath, Scenario};

/// Smallest MTU that QUIC runs over: datagrams of 1200 bytes (RFC 9000, section 14) and the headers of
/// UDP and IPv4.
const MIN_MTU: u32 = 1228;

/// Checks that `job` can run in virtual time.
///
/// # Errors
/// The field or option that asks for what this host has not.
pub fn check(job: &Job) -> Result<(), Error> {
    if job.capture.is_some() {
        return Err(Error::input("--pcap", "QUIC's packets are not captured (use --on sim)"));
    }
    controls(job)?;
    quic_has(job)
}

/// Checks that QUIC has what `job` asks of its connections, wherever they run.
///
/// # Errors
/// The field or option that asks for what it has not.
pub fn quic_has(job: &Job) -> Result<(), Error> {
    let Job { scenario, .. } = job;
    if job.app.is_some() {
        return Err(Error::input("--app", "programs run on the kernel: --on kernel"));
    }
    let refuse = |field: &str, message: &str| {
        Err(Error::input(format!("{}: {field}", scenario.name), message))
    };
    if !scenario.passive.is_empty() {
        return refuse("detection.passive", "passive detectors are for MPTCP only (use --on sim)");
    }
    if !(0..scenario.flows.len()).any(|flow| is_quic(scenario, flow)) {
        return refuse("flows", "expected a flow of kind mptcp, or a test, to run as QUIC");
    }
    for (_, flow) in quic_flows(scenario) {
        if flow.advice {
            let message = "the rule is for MPTCP only; expected false (or use --on sim)";
            return refuse(&format!("flows.{}.advice", flow.name), message);
        }
        if flow.path_manager != PathManager::Fullmesh {
            let message = "QUIC has one path for each pair of addresses; expected fullmesh";
            return refuse(&format!("flows.{}.path_manager", flow.name), message);
        }
        let links = flow.paths.iter().flat_map(|path| path.links.iter().chain(&path.back));
        for link in links.map(|link| &scenario.links[*link].config) {
            if link.mtu < MIN_MTU {
                let message = format!("QUIC needs {MIN_MTU} B; found {} B", link.mtu);
                return refuse(&format!("links.{}.mtu", link.name), &message);
            }
        }
    }
    honest(scenario, quic_flows(scenario).map(|(_, flow)| flow))?;
    couplings(job).map(drop)
}

/// Does the flow run as QUIC?
pub fn is_quic(scenario: &Scenario, index: usize) -> bool {
    match scenario.flows[index].kind {
        FlowKind::Mptcp => true,
        FlowKind::Tcp => scenario.test == Some(index),
        FlowKind::Udp => false,
    }
}

/// The flows that run as QUIC, by their indices.
pub fn quic_flows(scenario: &Scenario) -> impl Iterator<Item = (usize, &Flow)> {
    scenario.flows.iter().enumerate().filter(|(index, _)| is_quic(scenario, *index))
}

/// The congestion control of each connection of QUIC, by flow; none of the others.
///
/// # Errors
/// One that QUIC has not.
pub fn couplings(job: &Job) -> Result<Vec<Option<Coupling>>, Error> {
    let Job { scenario, .. } = job;
    let mut couplings = vec![None; scenario.flows.len()];
    for (flow, (place, algorithm)) in job.by_flow() {
        if is_quic(scenario, flow) {
            let here = scenario.test == Some(flow);
            couplings[flow] = Some(coupling(scenario, here, &place, algorithm)?);
        }
    }
    Ok(couplings)
}

fn coupling(
    scenario: &Scenario,
    under_test: bool,
    place: &str,
    algorithm: Algorithm,
) -> Result<Coupling, Error> {
    if algorithm.ours().is_none() {
        let message = format!("QUIC has no {algorithm}; expected a control of narrows");
        return Err(Error::input(place, message));
    }
    let coupling = Coupling::new(&algorithm.to_string())
        .and_then(|coupling| coupling.with_params(scenario.params));
    let coupling = coupling.map_err(|error| Error::input(place, error))?;
    if !under_test || !algorithm.decides() {
        return Ok(coupling);
    }
    let asked = scenario.settings.get("detection.signal");
    let signal = asked.map_or(signal(scenario).name(), String::as_str);
    coupling
        .with("detection.signal", signal)
        .map_err(|error| Error::input("detection.signal", error))
}

/// What the detector of the connection under test samples: one-way delays are not to be had.
pub fn signal(scenario: &Scenario) -> Signal {
    match scenario.test.map(|test| scenario.flows[test].tcp.signal) {
        Some(Signal::Srtt) => Signal::Srtt,
        _ => Signal::Rtt,
    }
}

/// Settings of TCP and MPTCP that connections of QUIC ignore.
pub fn ignored(scenario: &Scenario) -> Option<String> {
    let default = TcpConfig::default();
    let used = |is: &dyn Fn(&Flow) -> bool| quic_flows(scenario).any(|(_, flow)| is(flow));
    let strips = |path: &FlowPath| path.strips_mptcp;
    let fields = [
        ("scheduler", used(&|flow| flow.scheduler != Scheduler::default())),
        ("strips_mptcp", used(&|flow| flow.paths.iter().any(strips))),
        ("tcp.ecn = \"scalable\"", used(&|flow| flow.tcp.scalable)),
        ("tcp.pacing", used(&|flow| flow.tcp.pacing != default.pacing)),
        ("tcp.tso", used(&|flow| flow.tcp.tso != default.tso)),
        ("tcp.gro", used(&|flow| flow.tcp.gro != default.gro)),
        ("tcp.loss_detection", used(&|flow| flow.tcp.loss_detection != default.loss_detection)),
        ("tcp.receiver_acks", used(&|flow| flow.tcp.receiver_acks != default.receiver_acks)),
        ("tcp.timestamps", used(&|flow| flow.tcp.timestamps != default.timestamps)),
        ("tcp.skew_ppm", used(&|flow| flow.tcp.skew_ppm != default.skew_ppm)),
    ];
    let used: Vec<&str> = fields.iter().filter(|field| field.1).map(|field| field.0).collect();
    (!used.is_empty()).then(|| format!("ignored by QUIC: {}", used.join(", ")))
}
