//! `narrows kernel watch`.

use std::time::{Duration, Instant};

use narrows_mptcp_admin::watch::{Scope, Watch};
use narrows_netns::Namespace;

use super::wait;
use crate::args::kernel::{ScopeArgs, WatchArgs};
use crate::error::Error;
use crate::terminal::print_while_read;
use crate::{print, stop};

/// Time between two looks at the sockets.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Readings of samples in that time.
pub(super) const READINGS: u32 = 10;

/// Connections of MPTCP, or so many flows of plain TCP.
pub fn scope(args: &ScopeArgs, tcp: Option<usize>) -> Result<Scope, Error> {
    let netns = args.netns.as_deref().map(Namespace::named).transpose();
    let netns = netns.map_err(|error| Error::input("--netns", error))?;
    Ok(Scope { netns, cgroup: args.cgroup.clone(), ports: args.port.clone(), tcp })
}

/// Finds which paths meet in one bottleneck until Ctrl-C or the end of --for, and changes nothing.
pub fn watch(args: &WatchArgs) -> Result<(), Error> {
    let mut watch = Watch::start(scope(&args.scope, args.tcp)?)?;
    let stop = stop::on_signal()?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (mut going_on, mut seen, mut short) = (true, false, 0);
    while going_on {
        let ended = watch.look()?;
        seen |= !ended.is_empty();
        // A server has many that are over before there is an answer.
        let (told, others): (Vec<_>, Vec<_>) = ended.iter().partition(|one| !one.spent.is_empty());
        short += others.len();
        for connection in told.into_iter().filter(|_| !args.json) {
            going_on &= print_while_read(&format!("\n{}\n", connection.text()))?;
        }
        let tick = Instant::now();
        for reading in 1..=READINGS {
            let next = tick + TICK * reading / READINGS;
            let until = end.map_or(next, |end| end.min(next));
            going_on &= wait(until, &stop) && end != Some(until);
            for line in watch.sample()?.iter().filter(|_| !args.json) {
                going_on &= print_while_read(&format!("{line}\n"))?;
            }
            if !going_on {
                break;
            }
        }
        if args.json {
            let mut report = watch.report();
            report.connections.extend(ended);
            let line = serde_json::to_string(&report);
            let line = line.map_err(|error| Error::input("JSON", error))?;
            going_on &= print_while_read(&format!("{line}\n"))?;
        }
    }
    if args.json {
        return Ok(());
    }
    let report = watch.report();
    for connection in &report.connections {
        print(&format!("\n{}", connection.text()))?;
    }
    if short > 0 {
        print(&format!("\nconnections that ended before there was an answer: {short}\n"))?;
    }
    if report.left_out > 0 {
        let kind = if args.tcp.is_some() { "flows" } else { "connections" };
        print(&format!("\n{kind} not watched, as others send more: {}\n", report.left_out))?;
    }
    if !seen && report.connections.is_empty() {
        let what = if args.tcp.is_some() { "TCP flow" } else { "MPTCP connection of two subflows" };
        print(&format!("no {what} sent anything\n"))?;
    }
    Ok(())
}
