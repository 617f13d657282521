//! The status for people.

use super::{Connection, Control, Namespace, Status, Subflow};
use crate::assign::{Place, Use};
use crate::diag::State;
use std::cmp::Reverse;
use std::fmt::{self, Write};

/// MPTCP's counters that tell of trouble have one of these in their name; all are in the JSON.
const TROUBLE: [&str; 10] = [
    "Fallback",
    "Fail",
    "Err",
    "Drop",
    "Rejected",
    "NoToken",
    "Rst",
    "Stale",
    "Corruption",
    "Blackhole",
];

/// At most so many lines, where the connections that do not fit are counted.
pub(super) fn text(status: &Status, lines: Option<usize>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, status, lines);
    text
}

fn write(text: &mut String, status: &Status, lines: Option<usize>) -> fmt::Result {
    write_kernel(text, status)?;
    for control in &status.controls {
        write_control(text, control)?;
    }
    for line in &status.unseen {
        writeln!(text, "not seen: {line}")?;
    }
    let empty = |namespace: &&Namespace| namespace.connections.is_empty();
    let heads = status.namespaces.iter().map(|namespace| (namespace, head(namespace)));
    let heads: Vec<(&Namespace, String)> = match status.namespaces.iter().all(|one| empty(&one)) {
        true => heads.collect(),
        false => {
            heads.filter(|(namespace, _)| !empty(namespace) || namespace.runs_ours()).collect()
        }
    };
    // One line for those that are hidden, and for each namespace one with the columns' names.
    let heights = heads.iter().map(|(_, head)| head.lines().count() + 1);
    let used = text.lines().count() + heights.sum::<usize>() + 1;
    let mut room = lines.map_or(usize::MAX, |lines| lines.saturating_sub(used));
    let all = heads.iter().flat_map(|(namespace, _)| &namespace.connections);
    let all_fit = all.map(height).sum::<usize>() <= room;
    let mut hidden = 0;
    for (namespace, head) in heads {
        text.push_str(&head);
        let mut connections: Vec<&Connection> = namespace.connections.iter().collect();
        if !all_fit {
            connections
                .sort_by_key(|one| Reverse(one.sent_bytes_per_s.max(one.received_bytes_per_s)));
        }
        let before = connections.len();
        connections.retain(|connection| {
            let fits = height(connection) <= room;
            room = if fits { room - height(connection) } else { 0 };
            fits
        });
        hidden += before - connections.len();
        write_connections(text, &connections)?;
    }
    if hidden > 0 {
        writeln!(text, "and {hidden} more connections, less busy")?;
    }
    Ok(())
}

fn height(connection: &Connection) -> usize {
    1 + connection.subflows.len()
}

fn write_kernel(text: &mut String, status: &Status) -> fmt::Result {
    let kernel = &status.kernel;
    let held = match kernel.struct_ops_links {
        true => "controls held by links",
        false => "controls registered plainly (links: Linux 6.4)",
    };
    let stats = match kernel.bpf_stats {
        true => "on",
        false => "off (sysctl kernel.bpf_stats_enabled=1)",
    };
    writeln!(text, "Linux {}, {held}; run times {stats}", kernel.release)?;
    if status.controls.is_empty() && crate::is_root() {
        writeln!(text, "nothing is loaded (narrows kernel load NAME)")?;
    }
    Ok(())
}

fn write_control(text: &mut String, control: &Control) -> fmt::Result {
    let state = match (control.registered, control.pinned) {
        (true, true) => "loaded",
        (true, false) => "loaded, not pinned: gone with who loaded it",
        (false, _) => "gone or replaced, sockets still run it",
    };
    write!(text, "{} ({}): {state}; ", control.name, control.kernel_name)?;
    let mut used: Vec<String> = control.uses.iter().map(place).collect();
    // Set by hand, or taken over by a namespace that was made while it was the machine's default.
    let told = |inum: u32| {
        let of = |one: &Use| matches!(one.place, Place::Netns { inum: told, .. } if told == inum);
        control.uses.iter().any(of)
    };
    let others = control.default_in.iter().filter(|default| !told(default.inum));
    used.extend(others.map(|default| format!("default of {}", default.netns)));
    writeln!(text, "{}", if used.is_empty() { "used nowhere".into() } else { used.join(", ") })?;
    let insns = control.verified_insns();
    writeln!(text, "  {insns} instructions verified in {} programs", control.programs.len())?;
    let costs = control.programs.iter().filter_map(|program| {
        Some(format!("{} {:.0} ({})", program.name, program.ns_per_run()?, program.runs))
    });
    let costs: Vec<String> = costs.collect();
    if !costs.is_empty() {
        writeln!(text, "  ns a call (calls): {}", costs.join(", "))?;
    }
    for (name, n) in control.problems() {
        writeln!(text, "  {name} {n}: {}", meaning(name))?;
    }
    Ok(())
}

fn place(of: &Use) -> String {
    let only = if of.mptcp_only { " (MPTCP only)" } else { "" };
    match &of.place {
        Place::Netns { netns, .. } => format!("default{only} of {netns}"),
        Place::Cgroup { cgroup, .. } => format!("cgroup{only} {}", cgroup.display()),
    }
}

fn meaning(counter: &str) -> &'static str {
    match counter {
        "careful_law" => "subflows ran careful, their connection was another control's",
        "careful_version" => "subflows ran careful, their connection was another build's",
        "careful_slots" => "subflows ran careful, their connection had eight already",
        "careful_full" => "subflows ran careful, the map of connections was full",
        "careful_race" => "subflows ran careful, their connection came or went just then",
        "careful_lost" => "subflows ran careful, their connection was deleted from outside",
        _ => "subflows ran careful",
    }
}

/// What is told of a namespace above its connections.
fn head(namespace: &Namespace) -> String {
    let Namespace { name, default_control, connections, .. } = namespace;
    let n = connections.len();
    let ending = if n == 1 { "" } else { "s" };
    let mut head =
        format!("\nnetwork namespace {name}, default {default_control}: {n} connection{ending}\n");
    let trouble = namespace.mptcp_counters.iter();
    let trouble = trouble.filter(|(name, _)| TROUBLE.iter().any(|part| name.contains(part)));
    let trouble: Vec<String> = trouble.map(|(name, n)| format!("{name} {n}")).collect();
    if !trouble.is_empty() {
        head += &format!("  MPTCP: {}\n", trouble.join(", "));
    }
    head
}

fn write_connections(text: &mut String, connections: &[&Connection]) -> fmt::Result {
    if connections.is_empty() {
        return Ok(());
    }
    let addresses = |subflow: &Subflow| format!("{} > {}", subflow.local, subflow.remote);
    let all = connections.iter().flat_map(|connection| &connection.subflows);
    let width = all.map(|subflow| addresses(subflow).len()).max().unwrap_or(0);
    writeln!(
        text,
        "  {:width$}  {:8} {:9} {:13} {:>6} {:>8} {:>8} {:15} {:>7} {:>7} {:>6}",
        "",
        "dev",
        "state",
        "control",
        "cwnd",
        "ssthresh",
        "srtt ms",
        "coupled",
        "out",
        "in",
        "resent",
    )?;
    for connection in connections {
        let name = match connection.token {
            Some(token) => format!("{token:08x}"),
            None => "TCP".into(),
        };
        let law = connection.law.as_deref().unwrap_or("not under our control");
        let fell_back = if connection.fell_back { ", fallen back to TCP" } else { "" };
        // Below the subflows' columns.
        let indent = width + 76;
        writeln!(
            text,
            "{:indent$} {:>7} {:>7}",
            format!("{name} {law}{fell_back}"),
            mbits(connection.sent_bytes_per_s),
            mbits(connection.received_bytes_per_s),
        )?;
        for subflow in &connection.subflows {
            writeln!(
                text,
                "  {:width$}  {:8} {:9} {:13} {:>6} {:>8} {:>8.1} {:15} {:>7} {:>7} {:>6}",
                addresses(subflow),
                subflow.interface.as_deref().unwrap_or("-"),
                state(subflow),
                control(subflow),
                subflow.cwnd_packets,
                subflow.ssthresh_packets.map_or_else(|| "-".into(), |n| n.to_string()),
                f64::from(subflow.srtt_us) / 1e3,
                coupled(subflow),
                mbits(subflow.sent_bytes_per_s),
                mbits(subflow.received_bytes_per_s),
                subflow.retransmits,
            )?;
        }
    }
    Ok(())
}

/// In Mbit/s.
fn mbits(bytes_per_s: Option<u64>) -> String {
    bytes_per_s.map_or_else(|| "-".into(), |bytes| format!("{:.2}", bytes as f64 * 8e-6))
}

fn state(subflow: &Subflow) -> &'static str {
    match (subflow.tcp_state, subflow.path_state) {
        (State::Established, Some(state)) => state,
        (State::Established, None) if subflow.backup => "backup",
        (State::Established, None) => "open",
        (State::SynSent | State::SynRecv, _) => "opening",
        _ => "closing",
    }
}

fn control(subflow: &Subflow) -> String {
    let careful = if subflow.careful { "!" } else { "" };
    format!("{}{careful}", subflow.control)
}

/// The paths it is coupled with, by number; its own first.
fn coupled(subflow: &Subflow) -> String {
    match (subflow.careful, subflow.path, subflow.coupling_mask) {
        (true, ..) => "careful".into(),
        (_, Some(own), Some(mask)) => {
            let others = (0..8).filter(|other| mask >> other & 1 == 1 && *other != own);
            let others: Vec<String> = others.map(|other| other.to_string()).collect();
            match others.is_empty() {
                true => format!("{own} alone"),
                false => format!("{own} with {}", others.join(",")),
            }
        }
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FORMAT, Kernel};
    use super::*;
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    fn subflow(port: u16) -> Subflow {
        Subflow {
            local: ([10, 0, 0, 1], port).into(),
            remote: ([10, 0, 0, 2], 80).into(),
            interface: Some("wlan0".into()),
            local_id: 0,
            remote_id: 0,
            tcp_state: State::Established,
            path_state: Some("active"),
            backup: false,
            control: "nr_olia".into(),
            careful: false,
            path: Some(1),
            coupling_mask: Some(0b111),
            cwnd_packets: 24,
            ssthresh_packets: None,
            srtt_us: 20_500,
            min_rtt_us: 20_000,
            mss_bytes: 1424,
            retransmits: 3,
            bytes_acked: 0,
            bytes_received: 0,
            sent_bytes_per_s: None,
            received_bytes_per_s: None,
            cookie: port.into(),
        }
    }

    fn status(connections: u32) -> Status {
        let connection = |n| Connection {
            token: Some(n),
            law: Some("olia".into()),
            fell_back: false,
            sent_bytes_per_s: None,
            received_bytes_per_s: None,
            subflows: vec![subflow(n as u16)],
        };
        let namespace = Namespace {
            name: "current".into(),
            inum: 1,
            is_current: true,
            default_control: "nr_olia".into(),
            mptcp_counters: BTreeMap::from([("MPJoinSynTx".into(), 1), ("MPFailRx".into(), 2)]),
            connections: (0..connections).map(connection).collect(),
        };
        Status {
            format: FORMAT,
            kernel: Kernel { release: "6.18.0".into(), struct_ops_links: true, bpf_stats: false },
            unseen: Vec::new(),
            controls: Vec::new(),
            namespaces: vec![namespace],
            interval_s: None,
            taken: Instant::now(),
        }
    }

    #[test]
    fn a_subflow_is_a_line() {
        let text = text(&status(1), None);
        let line = text.lines().last().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "10.0.0.1:0 > 10.0.0.2:80 wlan0 active nr_olia 24 - 20.5 1 with 0,2 - - 3";
        assert_eq!(words.join(" "), expected);
        assert!(text.contains("MPTCP: MPFailRx 2\n"), "{text}");
    }

    #[test]
    fn throughput_is_what_the_bytes_grew_by() {
        let (before, mut now) = (status(2), status(2));
        now.namespaces[0].connections[1].subflows[0].bytes_acked = 1_000_000;
        now.measure(&before, Duration::from_millis(500));
        let rates = |n: usize| now.namespaces[0].connections[n].sent_bytes_per_s;
        assert_eq!((rates(0), rates(1)), (Some(0), Some(2_000_000)));
        assert!(text(&now, None).contains(" 16.00 "));
    }

    #[test]
    fn a_screen_shows_the_busiest_and_counts_the_others() {
        let (before, mut now) = (status(100), status(100));
        now.namespaces[0].connections[77].subflows[0].bytes_acked = 1_000_000;
        now.measure(&before, Duration::from_secs(1));
        let text = text(&now, Some(24));
        assert!(text.lines().count() <= 24, "{}", text.lines().count());
        assert!(text.contains("10.0.0.1:77 > "));
        let hidden = 100 - text.matches("active").count();
        assert!(text.contains(&format!("and {hidden} more connections, less busy")), "{text}");
    }
}
