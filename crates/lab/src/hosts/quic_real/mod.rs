//! QUIC end points of noq over UDP sockets in network namespaces, in real time, beside the kernel's TCP.
//!
//! The connection under test and each MPTCP connection of a scenario run as connections of QUIC, as on
//! the host `quic`; what else the scenario has runs as on the host `kernel`, whose network carries all of
//! it.

mod connection;
mod connections;
mod task;

use super::kernel::{UserSpace, can_be_had, emulate, kernel, loadable, possible};
use super::quic::{couplings, ignored, quic_flows, quic_has, signal};
use super::{Host, Job};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::host_id::HostId;
use crate::recorder::Run;
use crate::scenario::{Flow, Scenario};
use connections::Connections;
use narrows_traffic::Source;

/// QUIC end points of noq beside this machine's kernel, in real time.
pub struct QuicReal;

impl Host for QuicReal {
    fn id(&self) -> HostId {
        HostId::new("quic-real")
    }

    fn real_time(&self) -> bool {
        true
    }

    fn check(&self, job: &Job) -> Result<(), Error> {
        quic_has(job)?;
        unmarked(job.scenario)?;
        unmeasured(job.scenario)?;
        loadable(kernels(job))?;
        possible(job.scenario)
    }

    /// This process is root's, there are TUN devices, and TCP's congestion controls can be had.
    fn ready(&self, job: &Job) -> Result<(), Error> {
        narrows_emu::available().map_err(kernel)?;
        can_be_had(&kernels(job))
    }

    /// Nothing is left in the kernel afterwards.
    fn run(&self, job: Job) -> Result<Run, Error> {
        let couplings = couplings(&job)?;
        let note = ignored(job.scenario);
        let others = UserSpace {
            host: self.id(),
            flows: quic_flows(job.scenario).map(|(flow, _)| flow).collect(),
            signal: signal(job.scenario),
            open: &|built| Ok(Box::new(Connections::open(built, &couplings)?)),
        };
        let mut run = emulate(job, Some(&others))?;
        run.notes.extend(note);
        Ok(run)
    }
}

/// The congestion controls of the flows that are the kernel's, each with the field that asks for it.
fn kernels(job: &Job) -> Vec<(String, Algorithm)> {
    let quic: Vec<usize> = quic_flows(job.scenario).map(|(flow, _)| flow).collect();
    let kernels = job.by_flow().filter(|(flow, _)| !quic.contains(flow));
    kernels.map(|(_, control)| control).collect()
}

/// The latency of messages is not measured here.
fn unmeasured(scenario: &Scenario) -> Result<(), Error> {
    let messages = |flow: &&Flow| matches!(flow.source, Source::Messages { .. });
    match quic_flows(scenario).map(|(_, flow)| flow).find(messages) {
        Some(flow) => {
            let place = format!("{}: flows.{}.source", scenario.name, flow.name);
            let message = "the latency of messages is not measured on quic-real; --on quic does";
            Err(Error::input(place, message))
        }
        None => Ok(()),
    }
}

/// noq's datagrams are all ECN-capable, which matters where a link marks.
fn unmarked(scenario: &Scenario) -> Result<(), Error> {
    for (_, flow) in quic_flows(scenario).filter(|(_, flow)| !flow.tcp.ecn) {
        let links = flow.paths.iter().flat_map(|path| path.links.iter().chain(&path.back));
        let mut links = links.map(|link| &scenario.links[*link].config);
        if let Some(link) = links.find(|link| link.ecn) {
            let place = format!("{}: flows.{}.tcp.ecn", scenario.name, flow.name);
            let message = format!(
                "link \"{}\" marks, and all of noq's datagrams are ECN-capable; expected true",
                link.name
            );
            return Err(Error::input(place, message));
        }
    }
    Ok(())
}
