//! The status for people.

use super::{
    Connection, Control, Found, Group, Keeper, Map, Namespace, PathSignal, Status, Subflow,
};
use crate::assign::{Place, Use};
use narrows_foreign::Foreign;
use narrows_mptcp::diag::State;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write};
use std::ptr;
use unicode_width::UnicodeWidthStr;

/// MPTCP's counters that hint at trouble have one of these in their name; all are in the JSON.
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

/// Columns of a subflow's line.
const COLUMNS: usize = 11;
/// The first column of figures; those before it are one for a connection's line.
const FIGURES: usize = 3;
/// Their widths at least, so that they stand still while the figures change.
const LEAST: [usize; COLUMNS] = [0, 4, 7, 5, 5, 4, 7, 7, 8, 8, 6];

/// How much is shown: the busiest connections, and the number of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// All connections.
    All,
    /// At most so many connections.
    Top(usize),
    /// As many as fit into so many lines, with all that stands above them.
    Lines(usize),
}

impl Status {
    /// For people.
    pub fn text(&self, fit: Fit) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write(&mut text, self, fit);
        text
    }
}

fn write(text: &mut String, status: &Status, fit: Fit) -> fmt::Result {
    write_kernel(text, status)?;
    // Each load of a new build leaves an old one behind for as long as its sockets live.
    let is_old = |control: &&Control| !control.registered;
    for control in status.controls.iter().filter(|control| !is_old(control)) {
        write_control(text, control)?;
    }
    let old = status.controls.iter().filter(is_old);
    for of in old.collect::<Vec<_>>().chunk_by(|a, b| a.name == b.name) {
        write_old(text, of)?;
    }
    for line in &status.unseen {
        writeln!(text, "not seen: {line}")?;
    }
    let empty =
        |namespace: &&Namespace| namespace.connections.is_empty() && namespace.listeners.is_empty();
    let heads = status.namespaces.iter().map(|namespace| (namespace, head(namespace)));
    let heads: Vec<(&Namespace, String)> = match status.namespaces.iter().all(|one| empty(&one)) {
        true => heads.collect(),
        false => {
            heads.filter(|(namespace, _)| !empty(namespace) || namespace.runs_ours()).collect()
        }
    };
    let used = text.lines().count();
    let shown = match fit {
        Fit::All => None,
        Fit::Top(n) => busiest(&heads, n),
        Fit::Lines(lines) => choose(&heads, lines.saturating_sub(used)),
    };
    let shown: Option<HashSet<*const Connection>> =
        shown.map(|shown| shown.into_iter().map(ptr::from_ref).collect());
    let mut hidden = 0;
    for (namespace, head) in heads {
        let mut connections: Vec<&Connection> = namespace.connections.iter().collect();
        if let Some(shown) = &shown {
            connections.retain(|one| shown.contains(&ptr::from_ref(*one)));
            hidden += namespace.connections.len() - connections.len();
            if connections.is_empty() {
                continue;
            }
        }
        text.push_str(&head);
        write_connections(text, &connections)?;
    }
    if hidden > 0 {
        let ending = if hidden == 1 { "" } else { "s" };
        writeln!(text, "and {hidden} more, less busy connection{ending}")?;
    }
    Ok(())
}

/// The `n` busiest connections; none: there are no more.
fn busiest<'a>(heads: &[(&'a Namespace, String)], n: usize) -> Option<Vec<&'a Connection>> {
    let mut all: Vec<_> = heads.iter().flat_map(|of| &of.0.connections).collect();
    if all.len() <= n {
        return None;
    }
    all.sort_by_key(|one| rank(one));
    all.truncate(n);
    Some(all)
}

/// The busier, the lower.
fn rank(connection: &Connection) -> impl Ord + use<> {
    Reverse(connection.sent_bytes_per_s.max(connection.received_bytes_per_s))
}

/// The busiest connections that these lines have room for, with what is shown of their namespaces and
/// a last line for the others; none: there is room for all.
fn choose<'a>(heads: &[(&'a Namespace, String)], lines: usize) -> Option<Vec<&'a Connection>> {
    // A namespace with connections has a line with the names of the columns.
    let top = |(namespace, head): &(&Namespace, String)| {
        head.lines().count() + usize::from(!namespace.connections.is_empty())
    };
    let all = heads.iter().flat_map(|of| of.0.connections.iter().map(move |one| (of, one)));
    let mut all: Vec<_> = all.collect();
    let tops: usize = heads.iter().map(top).sum();
    if tops + all.iter().map(|(_, one)| height(one)).sum::<usize>() <= lines {
        return None;
    }
    all.sort_by_key(|(_, one)| rank(one));
    let mut room = lines.saturating_sub(1);
    let (mut shown, mut headed) = (Vec::new(), HashSet::new());
    for (of, connection) in all {
        let first = !headed.contains(&of.0.inum);
        let needed = height(connection) + if first { top(of) } else { 0 };
        if needed > room {
            break;
        }
        room -= needed;
        headed.insert(of.0.inum);
        shown.push(connection);
    }
    Some(shown)
}

fn height(connection: &Connection) -> usize {
    1 + connection.subflows.len() + findings(connection).count()
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
    if status.controls.is_empty() && status.unseen.is_empty() {
        writeln!(text, "nothing is loaded (narrows kernel load NAME)")?;
    }
    if let Some(Map { entries, entries_max }) = status.map {
        writeln!(text, "map of connections: {entries} of {entries_max} entries")?;
    }
    if let Some(Map { entries, entries_max }) = status.detection_map {
        writeln!(text, "map of detected connections: {entries} of {entries_max} entries")?;
    }
    Ok(())
}

/// `olia (nr_olia)`; `nr_mine` for a user's law.
fn names(control: &Control) -> String {
    let Control { name, kernel_name, .. } = control;
    if name == kernel_name { name.clone() } else { format!("{name} ({kernel_name})") }
}

fn write_control(text: &mut String, control: &Control) -> fmt::Result {
    write!(text, "{}: {}; ", names(control), kept(control))?;
    let uses = control.uses.as_deref().unwrap_or_default();
    let mut used: Vec<String> = uses.iter().map(place).collect();
    // Set by hand, or taken over by a namespace that was made while it was the machine's default.
    let listed = |inum: u32| {
        let of = |one: &Use| matches!(one.place, Place::Netns { inum: of, .. } if of == inum);
        uses.iter().any(of)
    };
    let others = control.default_in.iter().filter(|default| !listed(default.inum));
    used.extend(others.map(|default| format!("default of {}", default.netns)));
    let none = if control.uses.is_some() { "not in use" } else { "uses not seen" };
    writeln!(text, "{}", if used.is_empty() { none.into() } else { used.join(", ") })?;
    let insns = control.verified_insns();
    if let Some(signal) = control.signal {
        writeln!(text, "  its detector samples {signal}")?;
    }
    writeln!(text, "  {insns} instructions verified in {} programs", control.programs.len())?;
    let costs = control.programs.iter().filter_map(|program| {
        Some(format!("{} {:.0} ({})", program.name, program.ns_per_run()?, program.runs))
    });
    let costs: Vec<String> = costs.collect();
    if !costs.is_empty() {
        writeln!(text, "  ns a call (calls): {}", costs.join(", "))?;
    }
    let count = |name| control.counters.get(name).copied().unwrap_or(0);
    if let decisions @ 1.. = count("decisions") {
        let regroupings = count("regroupings");
        writeln!(text, "  decisions {decisions}, of which {regroupings} changed groups")?;
    }
    write_problems(text, control)
}

/// How it is loaded, and what ends that.
fn kept(control: &Control) -> String {
    match &control.kept {
        None | Some(Keeper::Narrows) => "loaded".into(),
        Some(Keeper::Kernel { id }) => {
            format!("loaded, not by narrows; bpftool struct_ops unregister id {id} removes it")
        }
        Some(Keeper::Process { pid, command }) => {
            format!("loaded by {command} (pid {pid}), and removed when it ends")
        }
        Some(Keeper::Pin) => "loaded, its link pinned in another BPF file system".into(),
    }
}

/// Unloaded or replaced ones of a name.
fn write_old(text: &mut String, of: &[&Control]) -> fmt::Result {
    let times = if of.len() == 1 { String::new() } else { format!("{} times ", of.len()) };
    let state = "gone or replaced, sockets or a default still hold it";
    writeln!(text, "{}: {times}{state}", names(of[0]))?;
    of.iter().try_for_each(|control| write_problems(text, control))
}

fn write_problems(text: &mut String, control: &Control) -> fmt::Result {
    for (name, n) in control.problems() {
        writeln!(text, "  {name} {n}: {}", meaning(name))?;
    }
    Ok(())
}

fn place(of: &Use) -> String {
    let only = if of.mptcp_only { " (MPTCP only)" } else { "" };
    match &of.place {
        Place::Netns { netns, .. } => format!("default{only} of {netns}"),
        Place::Cgroup { cgroup, .. } => format!("cgroup{only} {}", Foreign::from(cgroup.as_path())),
    }
}

pub(super) fn meaning(counter: &str) -> &'static str {
    match counter {
        "fallback_law" => "subflows ran the fallback law, their connection ran another control",
        "fallback_version" => "subflows ran the fallback law, their connection ran another build",
        "fallback_slots" => "subflows ran the fallback law, their connection already had eight",
        "fallback_full" => "subflows ran the fallback law, the map of connections was full",
        "fallback_user" => "subflows ran the fallback law, their user had his part of the map",
        "fallback_race" => {
            "subflows ran the fallback law, their connection was being created or deleted"
        }
        "fallback_lost" => {
            "subflows ran the fallback law, their connection's entry was deleted externally"
        }
        "fallback_outside" => {
            "subflows ran the fallback law, their connection had subflows under another control"
        }
        "undetected" => {
            "subflows joined without room for what the detector keeps, and were coupled with all"
        }
        _ => "subflows ran the fallback law",
    }
}

/// What is shown of a namespace above its connections.
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
    for listener in &namespace.listeners {
        head += &format!("  listener {listener}\n");
    }
    head
}

fn write_connections(text: &mut String, connections: &[&Connection]) -> fmt::Result {
    if connections.is_empty() {
        return Ok(());
    }
    // A row's words, and whether its first one is a connection's, which may stand over what follows;
    // and what is told of the connection after its last row.
    let mut rows = vec![(
        false,
        [
            "", "dev", "control", "out", "in", "cwnd", "srtt ms", "state", "coupled", "ssthresh",
            "retr",
        ]
        .map(str::to_owned),
    )];
    let mut after: HashMap<usize, &Connection> = HashMap::new();
    for connection in connections {
        let mut row = [const { String::new() }; COLUMNS];
        row[0] = title(connection);
        row[3] = mbits(connection.sent_bytes_per_s);
        row[4] = mbits(connection.received_bytes_per_s);
        rows.push((true, row));
        rows.extend(connection.subflows.iter().map(|subflow| (false, cells(subflow))));
        after.insert(rows.len() - 1, connection);
    }
    let mut widths: [usize; COLUMNS] = std::array::from_fn(|at| {
        let cells = rows.iter().filter(|(title, _)| !*title || at > 0).map(|(_, row)| &row[at]);
        cells.map(|cell| cell.width()).max().unwrap_or(0).max(LEAST[at])
    });
    // A title has the width of what stands before the first figure.
    let titles = rows.iter().filter(|(title, _)| *title).map(|(_, row)| row[0].width());
    let before = 2 + widths[0] + 1 + widths[1] + 1 + widths[2];
    widths[0] += titles.max().unwrap_or(0).saturating_sub(before);
    for (number, (is_title, row)) in rows.iter().enumerate() {
        let mut line = String::new();
        let mut edge = 0;
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let gap = if at == 0 { 2 } else { 1 };
            let indent = if *is_title && at < FIGURES { 0 } else { gap };
            edge += gap + width;
            if matches!(at, FIGURES..=6 | 9..) {
                let room = edge.saturating_sub(line.width() + cell.width());
                write!(line, "{:room$}{cell}", "")?;
            } else {
                write!(line, "{:indent$}{cell}", "")?;
                line += &" ".repeat(edge.saturating_sub(line.width()));
            }
        }
        writeln!(text, "{}", line.trim_end())?;
        let of = after.get(&number).into_iter();
        of.flat_map(|of| findings(of)).try_for_each(|found| writeln!(text, "  {found}"))?;
    }
    Ok(())
}

/// What its detector found of a connection, a line each.
fn findings(connection: &Connection) -> impl Iterator<Item = String> {
    let detection = connection.detection.iter();
    let unable = detection.clone().filter(|detection| !detection.runs);
    let unable =
        unable.map(|of| format!("{}: no room for what it keeps; all coupled", of.detector));
    let receiver = detection.clone().filter_map(|of| match of.receiver? {
        "decides" => Some("groups from the receiver".to_owned()),
        "waiting" => Some("own detector: no groups from the receiver yet".to_owned()),
        _ => Some("own detector: receiver silent or undecided".to_owned()),
    });
    let groups = detection.clone().flat_map(|detection| detection.groups.iter().map(finding));
    let signals = detection.flat_map(|detection| signals(&detection.signals));
    unable.chain(receiver).chain(groups).chain(signals)
}

/// `#1,#2 sampled by rtt: no TCP timestamps`: a line for each reason why it is not what the control wants.
fn signals(paths: &[PathSignal]) -> impl Iterator<Item = String> + use<> {
    let mut by_why: BTreeMap<(&str, Option<&str>), Vec<String>> = BTreeMap::new();
    for PathSignal { path, signal, why } in paths {
        let Some(why) = why else { continue };
        by_why.entry((why, *signal)).or_default().push(format!("#{path}"));
    }
    by_why.into_iter().map(|((why, signal), paths)| {
        let by =
            signal.map_or_else(|| "not sampled".into(), |signal| format!("sampled by {signal}"));
        format!("{} {by}: {why}", paths.join(","))
    })
}

/// `#1,#2 share a bottleneck for 12 s, 99.9 % sure`
fn finding(group: &Group) -> String {
    let paths: Vec<String> = group.paths.iter().map(|path| format!("#{path}")).collect();
    let what = match (group.found, paths.len()) {
        (Found::Shared, _) => "share a bottleneck",
        (Found::Alone, _) => "has a bottleneck of its own",
        (Found::Uncongested, 1) => "has no bottleneck",
        (Found::Uncongested, _) => "have no bottleneck",
        (Found::Undecided, _) => "undecided",
    };
    let mut text = format!("{} {what}", paths.join(","));
    if let Some(seconds) = group.for_s {
        text += &format!(" for {seconds:.0} s");
    }
    if let Some(confidence) = group.confidence {
        // Of a percent, one digit.
        text += &format!(", {} % sure", (confidence * 1e3).round() / 10.0);
    }
    if let Some(why) = group.why {
        text += &format!(": {why}");
    }
    text
}

fn title(connection: &Connection) -> String {
    let name = connection.token.map_or_else(|| "TCP".into(), |token| format!("{token:08x}"));
    let law = connection.law.as_deref().unwrap_or("other control");
    let fell_back = if connection.fell_back { ", fallen back to TCP" } else { "" };
    format!("{name} {law}{fell_back}")
}

/// The most useful ones first: a narrow terminal cuts the others.
fn cells(subflow: &Subflow) -> [String; COLUMNS] {
    [
        format!("{} > {}", subflow.local, subflow.remote),
        subflow.interface.as_ref().map_or_else(|| "-".into(), Foreign::to_string),
        control(subflow),
        mbits(subflow.sent_bytes_per_s),
        mbits(subflow.received_bytes_per_s),
        subflow.cwnd_packets.to_string(),
        format!("{:.1}", f64::from(subflow.srtt_us) / 1e3),
        state(subflow),
        coupled(subflow),
        subflow.ssthresh_packets.map_or_else(|| "-".into(), |n| n.to_string()),
        subflow.retransmits.to_string(),
    ]
}

/// In Mbit/s.
fn mbits(bytes_per_s: Option<u64>) -> String {
    bytes_per_s.map_or_else(|| "-".into(), |bytes| format!("{:.2}", bytes as f64 * 8e-6))
}

fn state(subflow: &Subflow) -> String {
    let state = match (subflow.tcp_state, subflow.path_state) {
        // It joins a law's sums when it has sent.
        (State::Established, Some("joining")) if subflow.bytes_received > 0 => "receiving",
        (State::Established, Some(state)) => state,
        (State::Established, None) if subflow.backup => "backup",
        (State::Established, None) => "open",
        (State::SynSent | State::SynRecv, _) => "opening",
        _ => "closing",
    };
    // One that is a backup already is as advised.
    match subflow.advice.filter(|_| !subflow.backup) {
        Some(advice) => format!("{state}, advised {advice}"),
        None => state.into(),
    }
}

fn control(subflow: &Subflow) -> String {
    let fallback = if subflow.fallback_law == Some(true) { "!" } else { "" };
    format!("{}{fallback}", subflow.control)
}

/// The paths it is coupled with, by number; its own first.
fn coupled(subflow: &Subflow) -> String {
    match (subflow.fallback_law, subflow.path, &subflow.coupled_with) {
        (Some(true), ..) => "fallback".into(),
        (_, Some(own), Some(others)) => {
            let others: Vec<String> = others.iter().map(|other| format!("#{other}")).collect();
            match others.is_empty() {
                true => format!("#{own} alone"),
                false => format!("#{own} with {}", others.join(",")),
            }
        }
        _ => "-".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Detection, FORMAT, Kernel, Listener};
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
            advice: None,
            control: "nr_olia".into(),
            fallback_law: Some(false),
            path: Some(2),
            coupled_with: Some(vec![1, 3]),
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

    pub(in crate::status) fn status(connections: u32) -> Status {
        let connection = |n| Connection {
            token: Some(n),
            law: Some("olia".into()),
            fell_back: false,
            sent_bytes_per_s: None,
            received_bytes_per_s: None,
            detection: None,
            subflows: vec![subflow(n as u16)],
        };
        let namespace = Namespace {
            name: "current".into(),
            inum: 1,
            is_current: true,
            default_control: "nr_olia".into(),
            mptcp_counters: BTreeMap::from([("MPJoinSynTx".into(), 1), ("MPFailRx".into(), 2)]),
            listeners: Vec::new(),
            connections: (0..connections).map(connection).collect(),
            read: Instant::now(),
        };
        Status {
            format: FORMAT,
            kernel: Kernel { release: "6.18.0".into(), struct_ops_links: true, bpf_stats: false },
            unseen: Vec::new(),
            controls: Vec::new(),
            map: None,
            detection_map: None,
            namespaces: vec![namespace],
            interval_s: None,
            taken: Instant::now(),
            only: None,
        }
    }

    /// `now` is so much later than `before`.
    fn measure(before: &Status, now: &mut Status, later: Duration) {
        now.taken = before.taken + later;
        for (now, before) in now.namespaces.iter_mut().zip(&before.namespaces) {
            now.read = before.read + later;
        }
        now.measure(&before.sample());
    }

    #[test]
    fn a_subflow_is_a_line() {
        let text = status(1).text(Fit::All);
        let line = text.lines().last().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected =
            "10.0.0.1:0 > 10.0.0.2:80 wlan0 nr_olia - - 24 20.5 active #2 with #1,#3 - 3";
        assert_eq!(words.join(" "), expected);
        assert!(text.contains("MPTCP: MPFailRx 2\n"), "{text}");
    }

    #[test]
    fn what_a_detector_found_stands_below_the_subflows_and_takes_its_lines() {
        let group = |paths: &[u8], found, confidence, why| Group {
            paths: paths.to_vec(),
            found,
            for_s: Some(12.4),
            confidence,
            why,
        };
        let mut status = status(40);
        for connection in &mut status.namespaces[0].connections {
            connection.detection = Some(Detection {
                detector: "xcorr",
                runs: true,
                receiver: None,
                decided_s: Some(0.1),
                groups: vec![
                    group(&[1, 2], Found::Shared, Some(0.999), None),
                    group(&[3], Found::Alone, Some(0.95), None),
                    group(&[4, 5], Found::Undecided, None, Some("no queue that changes")),
                ],
                pairs: Vec::new(),
                signals: Vec::new(),
            });
        }
        let text = status.text(Fit::Top(1));
        let expected = "- 3\n  #1,#2 share a bottleneck for 12 s, 99.9 % sure\n  \
                        #3 has a bottleneck of its own for 12 s, 95 % sure\n  \
                        #4,#5 undecided for 12 s: no queue that changes\n";
        assert!(text.contains(&expected.replace("- 3", "-      3")), "{text}");
        assert!(status.text(Fit::Lines(24)).lines().count() <= 24);
        let mut connection = status.namespaces[0].connections.remove(0);
        for (receiver, line) in [
            ("decides", "groups from the receiver"),
            ("waiting", "own detector: no groups from the receiver yet"),
            ("silent", "own detector: receiver silent or undecided"),
        ] {
            connection.detection.as_mut().unwrap().receiver = Some(receiver);
            assert_eq!(findings(&connection).next().unwrap(), line);
            assert_eq!(findings(&connection).count(), 4);
        }
        connection.detection.as_mut().unwrap().receiver = None;
        let signal = |path, signal, why| PathSignal { path, signal, why };
        connection.detection.as_mut().unwrap().signals = vec![
            signal(1, Some("rtt"), Some("no TCP timestamps")),
            signal(2, Some("sender-us"), None),
            signal(3, Some("rtt"), Some("no TCP timestamps")),
            signal(4, None, Some("the peer's clock is not known yet")),
        ];
        let found: Vec<String> = findings(&connection).skip(3).collect();
        let expected = [
            "#1,#3 sampled by rtt: no TCP timestamps",
            "#4 not sampled: the peer's clock is not known yet",
        ];
        assert_eq!(found, expected);
        connection.detection.as_mut().unwrap().signals.clear();
        let detection = connection.detection.as_mut().unwrap();
        (detection.runs, detection.groups) = (false, Vec::new());
        let found: Vec<String> = findings(&connection).collect();
        assert_eq!(found, ["xcorr: no room for what it keeps; all coupled"]);
    }

    #[test]
    fn builds_that_were_replaced_are_counted_in_a_line() {
        let mut status = status(1);
        let control = |registered, full| Control {
            name: "olia".into(),
            kernel_name: "nr_olia".into(),
            registered,
            pinned: true,
            kept: registered.then_some(Keeper::Narrows),
            default_in: Vec::new(),
            uses: Some(Vec::new()),
            signal: None,
            programs: Vec::new(),
            counters: BTreeMap::from([("fallback_full", full)]),
        };
        status.controls = vec![control(true, 0), control(false, 0), control(false, 7)];
        let text = status.text(Fit::All);
        assert!(text.contains("olia (nr_olia): loaded; not in use\n"), "{text}");
        assert!(text.contains("olia (nr_olia): 2 times gone or replaced"), "{text}");
        assert!(text.contains("\n  fallback_full 7: "), "{text}");
    }

    #[test]
    fn throughput_is_what_the_bytes_grew_by() {
        let (before, mut now) = (status(2), status(2));
        now.namespaces[0].connections[1].subflows[0].bytes_acked = 1_000_000;
        measure(&before, &mut now, Duration::from_millis(500));
        let rates = |n: usize| now.namespaces[0].connections[n].sent_bytes_per_s;
        assert_eq!((rates(0), rates(1)), (Some(0), Some(2_000_000)));
        // Each namespace's sockets are read at a moment of their own.
        now.namespaces[0].read += Duration::from_millis(500);
        now.measure(&before.sample());
        assert_eq!(now.namespaces[0].connections[1].sent_bytes_per_s, Some(1_000_000));
        assert!(now.text(Fit::All).contains(" 8.00 "));
    }

    #[test]
    fn a_screen_shows_the_busiest_and_counts_the_others() {
        let (before, mut now) = (status(100), status(100));
        now.namespaces[0].connections[77].subflows[0].bytes_acked = 1_000_000;
        measure(&before, &mut now, Duration::from_secs(1));
        let text = now.text(Fit::Lines(24));
        assert!(text.lines().count() <= 24, "{}", text.lines().count());
        assert!(text.contains("10.0.0.1:77 > "));
        let hidden = 100 - text.matches("active").count();
        assert!(text.contains(&format!("and {hidden} more, less busy connections")), "{text}");
    }

    #[test]
    fn the_top_are_the_busiest_and_the_others_a_number() {
        let (before, mut now) = (status(100), status(100));
        for (port, bytes) in [(77, 1_000_000), (33, 500_000)] {
            now.namespaces[0].connections[port].subflows[0].bytes_acked = bytes;
        }
        measure(&before, &mut now, Duration::from_secs(1));
        let text = now.text(Fit::Top(2));
        assert_eq!(text.matches("active").count(), 2, "{text}");
        assert!(text.contains("10.0.0.1:77 > ") && text.contains("10.0.0.1:33 > "), "{text}");
        assert!(text.ends_with("\nand 98 more, less busy connections\n"), "{text}");
        assert_eq!(now.text(Fit::Top(100)), now.text(Fit::All), "there are no more");
    }

    #[test]
    fn a_subflow_that_only_receives_is_not_joining() {
        let mut status = status(1);
        let subflow = &mut status.namespaces[0].connections[0].subflows[0];
        subflow.path_state = Some("joining");
        assert!(status.text(Fit::All).contains(" joining "));
        status.namespaces[0].connections[0].subflows[0].bytes_received = 1;
        assert!(status.text(Fit::All).contains(" receiving "));
    }

    #[test]
    fn a_long_title_leaves_the_figures_in_their_columns() {
        let mut status = status(2);
        let connections = &mut status.namespaces[0].connections;
        connections[0].law = Some("olia+disjoint+hystart++".into());
        connections[0].fell_back = true;
        for connection in connections.iter_mut() {
            (connection.sent_bytes_per_s, connection.received_bytes_per_s) = (Some(0), Some(0));
            let subflow = &mut connection.subflows[0];
            (subflow.sent_bytes_per_s, subflow.received_bytes_per_s) =
                (Some(125_000_000), Some(125_000_000));
            subflow.interface = Some("enp0s31f6np1v16".into());
        }
        let text = status.text(Fit::All);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('.')).skip(1).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words(lines[0]).ends_with(&["0.00".into(), "0.00".into()]), "{text}");
        // Figures end where those of the other lines do.
        let ends = |line: &str, figure: &str| line.find(figure).unwrap() + figure.len();
        let edge = ends(lines[1], " 1000.00");
        for title in [lines[0], lines[2]] {
            assert_eq!(ends(title, " 0.00"), edge, "{text}");
        }
    }

    #[test]
    fn what_others_call_theirs_leaves_the_columns_and_the_lines_as_they_are() {
        let mut status = status(2);
        for (connection, name) in status.namespaces[0]
            .connections
            .iter_mut()
            .zip(["e\u{1b}[41m\u{1b}[2Jz\u{7}", "東京\u{202e}"])
        {
            connection.subflows[0].interface = Some(name.into());
        }
        status.namespaces[0].name = "ev\nil".into();
        status.namespaces[0].listeners = vec![Listener {
            local: "10.0.0.1:80".parse().unwrap(),
            control: "reno".into(),
            in_use: "nr_olia".into(),
            pid: Some(7),
            command: Some("ev\u{1b}[31m\n".into()),
            older: true,
        }];
        let text = status.text(Fit::All);
        assert!(!text.contains(|one: char| one.is_control() && one != '\n' || one == '\u{202e}'));
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.contains("network namespace ev\\nil, default"), "{text}");
        assert!(text.contains(" of ev\\u001b[31m\\n (pid 7) has reno"), "{text}");
        let place = |name: &str| {
            let line = lines.iter().find(|line| line.contains(name)).unwrap();
            line[..line.find(" nr_olia ").unwrap()].width()
        };
        assert_eq!(place("e\\u001b[41m\\u001b[2Jz\\u0007"), place("東京\\u202e"), "{text}");
    }

    #[test]
    fn what_keeps_a_control_is_said_as_it_is() {
        let mut status = status(0);
        status.map = Some(Map { entries: 3, entries_max: 65_536 });
        let cases = [
            (Some(Keeper::Narrows), Some(Vec::new()), "loaded; not in use"),
            (
                Some(Keeper::Kernel { id: 7 }),
                Some(Vec::new()),
                "loaded, not by narrows; bpftool struct_ops unregister id 7 removes it; not in use",
            ),
            (
                Some(Keeper::Process { pid: 12, command: "bench".into() }),
                Some(Vec::new()),
                "loaded by bench (pid 12), and removed when it ends; not in use",
            ),
            (
                Some(Keeper::Pin),
                None,
                "loaded, its link pinned in another BPF file system; uses not seen",
            ),
        ];
        for (kept, uses, expected) in cases {
            status.controls = vec![Control {
                name: "olia".into(),
                kernel_name: "nr_olia".into(),
                registered: true,
                pinned: kept == Some(Keeper::Narrows),
                kept,
                default_in: Vec::new(),
                uses,
                signal: None,
                programs: Vec::new(),
                counters: BTreeMap::new(),
            }];
            let text = status.text(Fit::All);
            assert!(text.contains(&format!("\nolia (nr_olia): {expected}\n")), "{text}");
            assert!(text.contains("map of connections: 3 of 65536 entries\n"), "{text}");
        }
    }

    #[test]
    fn the_busiest_of_all_namespaces_has_its_place_before_those_without_connections() {
        let mut before = status(50);
        for (inum, connections) in [(2, 0), (3, 0), (4, 50)] {
            let mut namespace = status(connections).namespaces.remove(0);
            (namespace.name, namespace.inum) = (format!("pid:{inum}").into(), inum);
            let cookies = namespace.connections.iter_mut().flat_map(|one| &mut one.subflows);
            cookies.for_each(|subflow| subflow.cookie += 1000);
            before.namespaces.push(namespace);
        }
        let mut now = before.clone();
        now.namespaces[3].connections[42].subflows[0].bytes_acked = 1_000_000;
        measure(&before, &mut now, Duration::from_secs(1));
        let text = now.text(Fit::Lines(12));
        assert!(text.lines().count() <= 12, "{text}");
        assert!(text.contains("10.0.0.1:42 > ") && text.contains(" 8.00 "), "{text}");
        assert!(!text.contains("pid:2"), "{text}");
    }

    #[test]
    fn a_subflow_of_ipv4_shows_its_throughput_window_and_rtt_on_eighty_columns() {
        let mut status = status(1);
        let subflow = &mut status.namespaces[0].connections[0].subflows[0];
        subflow.local = "192.168.178.101:43210".parse().unwrap();
        subflow.remote = "10.77.1.2:5000".parse().unwrap();
        (subflow.sent_bytes_per_s, subflow.received_bytes_per_s) = (Some(1_562_500), Some(0));
        let text = status.text(Fit::All);
        let cut: Vec<String> = text.lines().map(|line| line.chars().take(80).collect()).collect();
        let last = cut.last().unwrap();
        assert!(last.contains(" wlan0 nr_olia 12.50  0.00   24    20.5"), "{text}");
    }
}
