//! `narrows kernel receiver`: the receiver's groups are obeyed, and where they do not arrive those of
//! the sender's own detector; and nothing stays.

use super::host::Host;
use super::paths::{Paths, Process};
use narrows_testkit::wait_until;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// A detector at the sender that is quicker than the receiver's.
const CONTROL: &str = "lia+xcorr";
const NAME: &str = "nr_lia_xc";

/// The same control on both ends, or at the sender alone, and a process that detects on both.
fn begin<'a>(host: &'a Host, links: &str, both: bool) -> (Paths<'a>, Process) {
    let paths = Paths::new(host, "", links);
    host.does(&["load", CONTROL]);
    if both {
        host.does(&["use", CONTROL, "--netns", "server", "--mptcp-only"]);
    }
    (paths, detect(host))
}

/// A server, and what the client sends to it.
fn traffic(paths: &Paths) -> [Process; 2] {
    [paths.serve("262"), paths.send("262", NAME, &["10.99.1.2"])]
}

fn detect(host: &Host) -> Process {
    let words = [env!("CARGO_BIN_EXE_narrows"), "kernel", "receiver"];
    let mut process = Process::start(host, &words);
    let line = process.line();
    assert!(line.starts_with("detecting at the receiver: new MPTCP connections in /"), "{line}");
    process
}

/// What the sender's detection says, and what its subflows are coupled with.
fn detection(host: &Host) -> Option<(Value, Vec<Value>)> {
    let status: Value = serde_json::from_str(&host.does(&["status", "--json"])).unwrap();
    let namespaces = status["namespaces"].as_array().unwrap();
    let here = namespaces.iter().find(|one| one["is_current"] == true)?;
    let connection = here["connections"].as_array()?.first()?;
    let coupled = connection["subflows"].as_array()?.iter().map(|one| one["coupled_with"].clone());
    Some((connection["detection"].clone(), coupled.collect()))
}

/// Waits until the receiver is so, and the groups are as `right` says.
fn until(host: &Host, receiver: &str, right: impl Fn(&Value, &[Value]) -> bool) {
    wait_until(90, || match detection(host) {
        Some((of, with)) if of["receiver"] == receiver && right(&of["groups"], &with) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

fn together(groups: &Value, coupled_with: &[Value]) -> bool {
    let of = |n: usize, name: &str| groups[n][name].clone();
    (of(0, "paths"), of(0, "found")) == (json!([1, 2]), json!("shared"))
        && [json!([[2], [1]]), json!([[1], [2]])].contains(&json!(coupled_with))
}

fn apart(groups: &Value, coupled_with: &[Value]) -> bool {
    let known = |one: &Value| one["found"] == "alone" || one["found"] == "uncongested";
    json!(coupled_with) == json!([[], []])
        && groups.as_array().is_some_and(|all| all.iter().all(known))
}

/// Programs and maps in the kernel.
fn loaded(host: &Host) -> usize {
    let script = "{ bpftool prog show; bpftool map show; } |
        grep -cE 'name nr_(receiver|receivers|receiver_use|peers|sweep) ' || true";
    host.sh(script).trim().parse().unwrap()
}

fn unloaded(host: &Host) {
    wait_until(20, || match loaded(host) {
        0 => Ok(()),
        left => Err(format!("{left} programs and maps")),
    });
}

#[test]
#[ignore = "half a minute in real time each: make test-long"]
fn the_receivers_groups_are_obeyed_until_its_option_is_stripped() {
    let Some(host) = Host::new("receiver, shared") else { return };
    let (paths, process) = begin(&host, "12000", true);
    let sent = traffic(&paths);
    until(&host, "decides", together);
    // A middlebox on the way of the acknowledgements.
    let nft = "ip netns exec router nft";
    host.sh(&format!(
        "{nft} 'add table ip t; add chain ip t c {{ type filter hook forward priority 0; }};
        add rule ip t c reset tcp option 254'"
    ));
    until(&host, "silent", together);
    host.sh(&format!("{nft} delete table ip t"));
    until(&host, "decides", together);
    // What is kept goes with the connection.
    drop(sent);
    for map in ["nr_receivers", "nr_peers"] {
        wait_until(90, || match host.sh(&format!("bpftool -j map dump name {map}")).trim() {
            "[]" => Ok(()),
            _ => Err(format!("{map} has entries")),
        });
    }
    let (said, code) = process.end(&host, "-INT");
    assert_eq!(code, Some(0));
    let numbers: Vec<u64> =
        said.split([' ', ',', '\n']).filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [decided, obeyed] if decided > 0 && obeyed > 0), "{said}");
    unloaded(&host);
}

#[test]
#[ignore = "half a minute in real time each: make test-long"]
fn the_receiver_tells_paths_with_a_bottleneck_each_apart() {
    let Some(host) = Host::new("receiver, separate") else { return };
    let (paths, process) = begin(&host, "4000 16000", true);
    let sent = traffic(&paths);
    until(&host, "decides", apart);
    let told = host.does(&["status"]);
    assert!(told.contains("\n  groups from the receiver\n"), "{told}");
    // Killed: the sender's own detector goes on.
    process.end(&host, "-KILL");
    unloaded(&host);
    wait_until(30, || match detection(&host) {
        Some((of, _)) if of["receiver"].is_null() && of["decided_s"].as_f64() < Some(2.0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    drop(sent);
}

#[test]
#[ignore = "half a minute in real time each: make test-long"]
fn a_peer_that_does_not_know_it_is_silent() {
    let Some(host) = Host::new("receiver, alone") else { return };
    let (paths, process) = begin(&host, "4000 16000", false);
    let _traffic = traffic(&paths);
    until(&host, "waiting", |_, _| true);
    // A receiver's first groups would be here.
    sleep(Duration::from_secs(25));
    until(&host, "silent", apart);
    let told = host.does(&["status"]);
    assert!(told.contains("\n  own detector: receiver silent or undecided\n"), "{told}");
    let another = host.refuses(&["receiver"]);
    assert_eq!(another, "receiver: another process detects on this machine");
    let (said, _) = process.end(&host, "-TERM");
    assert!(said.ends_with("obeyed as the sender: 0\n"), "{said}");
    unloaded(&host);
    let refused = host.refuses(&["receiver", "--cgroup", "/tmp"]);
    assert_eq!(refused, "--cgroup /tmp: expected a folder of the cgroup2 file system");
}
