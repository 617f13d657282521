//! What a scenario wants of its hosts' stacks beyond devices and addresses.

use std::io;

use narrows_emu::Testbed;
use narrows_kernel::Signal;
use narrows_mptcp::{pm, routes};
use narrows_netns::{set_sysctl, sysctl};

use super::controls::kernel;
use super::plan::Plan;
use crate::Error;
use crate::scenario::{Flow, FlowKind, Scenario};

/// What holds for a whole host.
#[derive(Default)]
struct Wanted<'a> {
    flows: Vec<&'a Flow>,
    /// Index of the MPTCP flow that it is an end of, and which.
    multipath: Option<(usize, usize)>,
}

/// Prepares the stacks of all hosts: buffers as large as the scenario's, ECN, the limits of MPTCP
/// and the endpoints of those that connect, which are the flows' ends `connects`; and the timestamps
/// that detectors need for `signal`.
///
/// # Errors
/// What flows want that share a host does not go together, or the kernel refuses.
pub fn prepare(
    scenario: &Scenario,
    plan: &Plan,
    testbed: &Testbed,
    connects: usize,
    signal: Signal,
) -> Result<(), Error> {
    for (index, host) in testbed.hosts().enumerate() {
        let mut wanted = Wanted::default();
        for (number, (flow, at)) in scenario.flows.iter().zip(&plan.flows).enumerate() {
            let Some(end) = at.hosts.iter().position(|&host| host == index) else { continue };
            if flow.kind == FlowKind::Mptcp {
                wanted.multipath = Some((number, end));
            }
            if flow.kind != FlowKind::Udp {
                wanted.flows.push(flow);
            }
        }
        let ecn = ecn(scenario, &wanted.flows)?;
        let work = || -> io::Result<()> {
            set_sysctl("net/ipv4/tcp_ecn", if ecn { "1" } else { "0" })?;
            let largest = |get: fn(&Flow) -> u64| wanted.flows.iter().map(|flow| get(flow)).max();
            for (name, bytes) in [
                ("net/ipv4/tcp_wmem", largest(|flow| flow.send_buffer)),
                ("net/ipv4/tcp_rmem", largest(|flow| flow.recv_buffer)),
            ] {
                raise(name, bytes.unwrap_or(0))?;
            }
            let Some((flow, end)) = wanted.multipath else { return Ok(()) };
            let at = &plan.flows[flow];
            pm::set_limits(at.limits())?;
            if signal == Signal::SenderUs {
                routes::set_us_timestamps()?;
            }
            if end == connects {
                at.endpoints(end).iter().try_for_each(pm::add_endpoint)?;
            }
            Ok(())
        };
        let done = host.run(work).and_then(|done| done);
        done.map_err(|error| kernel(format!("{}: {error}", host.namespace())))?;
    }
    Ok(())
}

/// ECN is a setting of a host.
fn ecn(scenario: &Scenario, flows: &[&Flow]) -> Result<bool, Error> {
    let ecn = flows.first().is_some_and(|flow| flow.tcp.ecn);
    match flows.iter().find(|flow| flow.tcp.ecn != ecn) {
        None => Ok(ecn),
        Some(flow) => {
            let place = format!("{}: flows.{}.tcp.ecn", scenario.name, flow.name);
            let other = &flows[0].name;
            let message =
                format!("on the kernel it shares a host with \"{other}\"; expected the same value");
            Err(Error::input(place, message))
        }
    }
}

/// Lets the kernel's own choice of a buffer's size become as large as the scenario's, twice: it
/// counts the memory that packets take.
fn raise(name: &str, bytes: u64) -> io::Result<()> {
    let now = sysctl(name)?;
    let mut sizes: Vec<u64> = now.split_whitespace().filter_map(|size| size.parse().ok()).collect();
    let wanted = (2 * bytes).min(i32::MAX as u64);
    match sizes.last_mut() {
        Some(most) if *most < wanted => *most = wanted,
        _ => return Ok(()),
    }
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    set_sysctl(name, &sizes.join(" "))
}
