//! `narrows kernel trial`: a share of new connections runs another control, both subflows of one in one
//! arm; what is bad is ended by the kernel alone, and nothing stays.

use super::host::{Host, refused};
use super::metrics;
use super::paths::Process;
use narrows_testkit::wait_until;
use serde_json::Value;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A law that stalls: no window grows beyond a packet.
const STALLS: &str = r#"
#include "law.h"
#include "laws/reno.h"
NR_INLINE nr_s64 nr_still_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return -nr_reno_credit(p->cwnd);
}
NR_INLINE nr_u32 nr_still_ssthresh(NR_HOOK)
{
	return 1;
}
NR_LAW(still) = {
    .name = "still",
    .code = "still",
    .about = "stands still",
    .source = "a test",
    .credit = nr_still_credit,
    .ssthresh = nr_still_ssthresh,
};
"#;

/// Two devices to a server, each with a queue of its own.
const NETWORK: &str = "
    ip netns add server
    for n in 1 2; do
        ip link add v$n type veth peer name v$n netns server
        ip addr add 10.88.$n.1/24 dev v$n; ip link set v$n up
        ip -n server addr add 10.88.$n.2/24 dev v$n; ip -n server link set v$n up
        tc qdisc add dev v$n root tbf rate 50mbit burst 15kb limit 60kb
        tc -n server qdisc add dev v$n root tbf rate 50mbit burst 15kb limit 60kb
    done
    ip mptcp limits set subflows 2 add_addr_accepted 2
    ip -n server mptcp limits set subflows 2 add_addr_accepted 2
    ip -n server mptcp endpoint add 10.88.2.2 id 2 signal";

/// A server that reads, and clients: `kind count bytes pause` opens so many connections one after the other,
/// each in a thread of its own that sends so much and closes.
const TRAFFIC: &str = "
import socket, sys, threading, time
def open(kind): return socket.socket(socket.AF_INET, socket.SOCK_STREAM, kind)
if len(sys.argv) == 1:
    for kind, port in (262, 5000), (0, 5001):
        a = open(kind)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        a.bind(('', port)); a.listen(1000)
        def read(b):
            while b.recv(1 << 20): pass
        def serve(a):
            while True: threading.Thread(target=read, args=[a.accept()[0]], daemon=True).start()
        threading.Thread(target=serve, args=[a], daemon=True).start()
    print('ready', flush=True); sys.stdin.read()
kind, count, size, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
def send():
    a = open(kind); a.connect(('10.88.1.2', 5000 if kind else 5001))
    for _ in range(0, size, 20000): a.sendall(bytes(20000))
    a.close()
for _ in range(count):
    threading.Thread(target=send, daemon=size >= 1e9).start(); time.sleep(pause)
print('ready', flush=True)
if size >= 1e9: sys.stdin.read()";

/// The other way round: a server that sends on all connections, and a client: `count` opens so many and reads.
const DOWNLOADS: &str = "
import socket, sys, threading, time
def go_on(what, of): threading.Thread(target=what, args=[of], daemon=True).start()
def send(b):
    try:
        while True: b.sendall(bytes(20000))
    except OSError: pass # the client has ended
def read(b):
    while b.recv(1 << 20): pass
def serve(a):
    while True: go_on(send, a.accept()[0])
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    if len(sys.argv) > 1:
        a.connect(('10.88.1.1', 5002)); go_on(read, a); time.sleep(0.02)
    else:
        a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        a.bind(('', 5002)); a.listen(1000); go_on(serve, a)
print('ready', flush=True); sys.stdin.read()";

fn network(host: &Host) -> Process {
    host.sh(NETWORK);
    let mut server =
        Process::start(host, &["ip", "netns", "exec", "server", "python3", "-c", TRAFFIC]);
    assert_eq!(server.line(), "ready");
    server
}

/// Connections that are made, and end, before this returns.
fn short(host: &Host, kind: &str, count: &str, size: &str) {
    let sent = host.command(&["python3", "-c", TRAFFIC, kind, count, size, "0.01"]);
    let mut sent = { sent };
    assert!(sent.stdout(Stdio::null()).status().unwrap().success());
}

/// Connections that go on until this is dropped.
fn long(host: &Host, kind: &str, count: &str) -> Process {
    let words = ["python3", "-c", TRAFFIC, kind, count, "1000000000", "0.02"];
    let mut process = Process::start(host, &words);
    assert_eq!(process.line(), "ready");
    process
}

/// Begins one among the connections of this host alone: its cgroup is the machine's.
fn begin(host: &Host, args: &[&str]) -> String {
    host.does(&[&["trial"][..], args, &HERE].concat())
}

const HERE: [&str; 2] = ["--netns", "/proc/self/ns/net"];

fn status(host: &Host) -> Value {
    serde_json::from_str(&host.does(&["trial", "status", "--json"])).unwrap()
}

/// The controls of sending sockets, by MPTCP token; of those without one, each of its own.
fn controls(host: &Host) -> Vec<Vec<String>> {
    let shown = host.sh("ss -tinHO state established dst 10.88.0.0/16");
    let mut by_token = std::collections::BTreeMap::<String, Vec<String>>::new();
    for (number, socket) in shown.lines().enumerate() {
        let token = socket.split(" token:").nth(1).and_then(|rest| rest.split('/').nth(1));
        let token = token.and_then(|rest| rest.split("(id").next());
        let known = |word: &&str| word.starts_with("nr_") || ["reno", "cubic"].contains(word);
        let control = socket.split_whitespace().find(known).unwrap_or_default().to_owned();
        let key = token.map_or(format!("plain {number}"), str::to_owned);
        by_token.entry(key).or_default().push(control);
    }
    by_token.into_values().collect()
}

/// Are subflows of one connection in different arms?
fn mixed(all: &[Vec<String>]) -> bool {
    all.iter().any(|one| one.iter().any(|two| *two != one[0]))
}

#[test]
fn a_law_that_stalls_is_ended_by_the_kernel_with_nobody_there() {
    let Some(host) = Host::new("trial of a law that stalls") else { return };
    let _server = network(&host);
    let before = host.state();
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("still.h");
    std::fs::write(&header, STALLS).unwrap();
    host.does(&["load", header.to_str().unwrap()]);
    let said = begin(&host, &["nr_still", "--against", "reno", "--share", "50%", "--for", "1h"]);
    assert!(
        said.starts_with(
            "nr_still: tried on 50 % of the new connections that would have reno, for 60 min\n"
        ),
        "{said}"
    );
    // No process of narrows lives from here on, until the trial has ended. Within a minute all is as before.
    let began = Instant::now();
    let left = || 60_u64.saturating_sub(began.elapsed().as_secs());
    let _traffic = long(&host, "262", "80");
    let ended =
        "bpftool -j map dump pinned /sys/fs/bpf/narrows/trial/state | grep -q '\"ended\": *[1-9]'";
    wait_until(left(), || match host.command(&["bash", "-c", ended]).status().unwrap().success() {
        true => Ok(()),
        false => Err(host.sh("bpftool map dump pinned /sys/fs/bpf/narrows/trial/state | tail -30")),
    });
    let now = status(&host);
    println!("  ended after {} s: {}", now["ran_s"], now["ended"]);
    assert_eq!(now["ended"], "guard, goodput fell", "{now}");
    // New connections are no longer drawn, and living ones get their control back.
    wait_until(left(), || match controls(&host).concat() {
        all if all.iter().all(|one| one == "reno") => Ok(()),
        all => Err(format!("{all:?}")),
    });
    short(&host, "262", "10", "20000");
    assert_eq!(status(&host)["arms"][1]["connections"], now["arms"][1]["connections"]);
    let said = host.does(&["trial", "stop"]);
    assert!(
        said.ends_with("\nnr_still broke a guard, goodput fell: its connections get reno back.\n"),
        "{said}"
    );
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn subflows_of_a_connection_are_in_one_arm_and_stop_puts_all_back() {
    let Some(host) = Host::new("trial of connections with two subflows") else { return };
    let _server = network(&host);
    let before = host.state();
    host.does(&["load", "greno"]);
    begin(&host, &["greno", "--against", "reno", "--share", "50%", "--mptcp-only"]);
    let _traffic = long(&host, "262", "24");
    let _plain = long(&host, "0", "4");
    wait_until(30, || {
        let all = controls(&host);
        let pairs = all.iter().filter(|one| one.len() == 2).count();
        let tried = all.iter().filter(|one| one[0] == "nr_greno").count();
        match pairs == 24 && !mixed(&all) && (3..=21).contains(&tried) {
            true => Ok(()),
            false => Err(format!("{pairs} pairs: {all:?}")),
        }
    });
    // They stay so.
    for _ in 0..4 {
        sleep(Duration::from_millis(500));
        assert!(!mixed(&controls(&host)), "{:?}", controls(&host));
    }
    let plain = controls(&host).into_iter().filter(|one| one.len() == 1).flatten();
    assert!(plain.clone().count() == 4 && plain.into_iter().all(|one| one == "reno"));
    let now = status(&host);
    let tried = controls(&host).iter().filter(|one| one[0] == "nr_greno").count();
    assert_eq!(now["arms"][1]["connections"].as_u64().unwrap() as usize, tried);
    assert_eq!(now["arms"][0]["connections"].as_u64().unwrap() as usize, 24 - tried);
    assert!(now["arms"][1]["paths"].as_f64().unwrap() > 1.5, "{now}");
    assert_eq!(now["arms"][1]["groups"], 1.0, "greno couples all: {now}");
    let refused = host.refuses(&["trial", "greno", "--against", "reno"]);
    assert_eq!(refused, "trial: there is one; first: narrows kernel trial stop");

    host.does(&["trial", "stop"]);
    assert!(controls(&host).concat().iter().all(|one| one == "reno"), "{:?}", controls(&host));
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

/// A server is the accepting side, of the connection and of the subflows that join.
#[test]
fn a_server_draws_what_it_accepts_and_all_subflows_of_a_connection_are_in_one_arm() {
    let Some(host) = Host::new("trial of a server") else { return };
    host.sh(NETWORK);
    // It announces its second address, and the client joins.
    host.sh("ip -n server mptcp endpoint flush; ip mptcp endpoint add 10.88.2.1 id 2 signal");
    let before = host.state();
    host.does(&["load", "greno"]);
    begin(&host, &["greno", "--against", "reno", "--share", "50%", "--mptcp-only"]);
    let mut server = Process::start(&host, &["python3", "-c", DOWNLOADS]);
    assert_eq!(server.line(), "ready");
    let client = ["ip", "netns", "exec", "server", "python3", "-c", DOWNLOADS, "16"];
    let mut client = Process::start(&host, &client);
    assert_eq!(client.line(), "ready");
    wait_until(30, || {
        let all = controls(&host);
        let tried = all.iter().filter(|one| one[0] == "nr_greno").count();
        let pairs = all.iter().filter(|one| one.len() == 2).count();
        match pairs == 16 && !mixed(&all) && (1..16).contains(&tried) {
            true => Ok(()),
            false => Err(format!("{pairs} pairs: {all:?}")),
        }
    });
    // What is counted is what this side sends, over both subflows.
    wait_until(10, || {
        let now = status(&host);
        let sends = |arm: &Value| arm["paths"].as_f64() > Some(1.5) && arm["bytes"] != 0;
        match now["arms"].as_array().unwrap().iter().all(sends) {
            true => Ok(()),
            false => Err(now.to_string()),
        }
    });
    let text = host.does(&["export"]);
    let samples = metrics::parse(&text);
    let values = |name: &str| -> Vec<f64> {
        samples.iter().filter(|one| one.name == name).map(|one| one.value).collect()
    };
    assert_eq!(values("narrows_trial_connections_total").iter().sum::<f64>(), 16.0, "{text}");
    assert_eq!(values("narrows_trial_ended_connections"), [0.0; 2], "{text}");
    assert_eq!(values("narrows_trial_guard_broken"), [0.0; 3], "{text}");
    host.does(&["trial", "stop"]);
    let all = controls(&host);
    assert!(!all.is_empty() && all.concat().iter().all(|one| one == "reno"), "{all:?}");
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn a_control_against_itself_is_no_difference_and_a_trial_ends_by_its_time() {
    let Some(host) = Host::new("trial of equals") else { return };
    let _server = network(&host);
    let before = host.state();
    host.does(&["load", "reno"]);
    let args = ["nr_reno", "--against", "reno", "--share", "50%", "--for", "12s", "--port", "5001"];
    begin(&host, &args);
    for _ in 0..4 {
        short(&host, "0", "60", "200000");
        let now = status(&host);
        assert_eq!(now["goodput"]["differs"], false, "{now}");
    }
    wait_until(20, || match &status(&host)["ended"] {
        Value::String(why) if why == "its time was over" => Ok(()),
        other => Err(format!("{other}")),
    });
    // What cannot be written is not lost.
    let line = host.refuses(&["trial", "stop", "--report", "/dev/full"]);
    assert!(line.starts_with("/dev/full: cannot write: "), "{line}");
    assert_eq!(status(&host)["ended"], "its time was over");
    let page = tempfile::tempdir().unwrap();
    let file = page.path().join("trial.html");
    let json = page.path().join("trial.json");
    std::fs::write(&json, host.does(&["trial", "status", "--json"])).unwrap();
    let said = host.does(&["trial", "stop", "--report", file.to_str().unwrap()]);
    assert!(said.contains("\nno difference in goodput is shown: "), "{said}");
    // What JSON holds is all that the report is made of.
    assert_eq!(host.does(&["trial", "merge", json.to_str().unwrap()]), said);
    let html = std::fs::read_to_string(file).unwrap();
    assert!(html.contains("Trial of nr_reno against reno"));
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn routes_that_lock_a_control_are_left_alone_and_a_trial_of_another_build_can_be_ended() {
    let Some(host) = Host::new("trial of locked routes and another build") else { return };
    let _server = network(&host);
    let before = host.state();
    host.does(&["load", "greno"]);
    begin(&host, &["greno", "--against", "reno", "--share", "99.9%"]);
    host.sh("ip route change 10.88.1.0/24 dev v1 congctl lock reno src 10.88.1.1");
    short(&host, "0", "10", "20000");
    let now = status(&host);
    assert_eq!((&now["ended"], &now["refused"]), (&Value::Null, &0.into()), "{now}");
    assert_eq!(now["others"].as_u64(), Some(10), "{now}");
    host.sh("ip route change 10.88.1.0/24 dev v1 src 10.88.1.1");
    let _traffic = long(&host, "0", "6");
    assert!(controls(&host).concat().contains(&"nr_greno".to_owned()));

    let pin = "/sys/fs/bpf/narrows/trial/state";
    let rewrite = format!(
        "value=$(bpftool -j map lookup pinned {pin} key 0 0 0 0 |
            python3 -c 'import json, sys; print(*json.load(sys.stdin)[\"value\"][1:])')
         bpftool map update pinned {pin} key 0 0 0 0 value 0xff $value"
    );
    host.sh(&rewrite);
    let line = host.refuses(&["trial", "status"]);
    assert!(line.starts_with("trial: begun by another build of narrows"), "{line}");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("trial.html");
    std::fs::write(&page, "yesterday's").unwrap();
    host.refuses(&["trial", "status", "--report", page.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "yesterday's", "what cannot be read");
    host.does(&["load", "olia"]);
    assert_eq!(host.does(&["unload", "olia"]), "nr_olia: unloaded\n");
    let output = host.narrows(&["trial", "stop"]);
    let said = "narrows: kernel trial: stopped; another build of narrows began it, so what it found is not known\n";
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(1), said));
    assert!(controls(&host).concat().iter().all(|one| one == "reno"), "nobody keeps it");
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn unloading_the_control_ends_its_trial_and_a_killed_command_leaves_none_or_a_whole_one() {
    let Some(host) = Host::new("trial, unloaded and killed") else { return };
    let _server = network(&host);
    let before = host.state();
    host.does(&["load", "greno"]);
    let loaded = host.state();
    let args = ["greno", "--against", "reno", "--share", "60%"];
    begin(&host, &args);
    let _traffic = long(&host, "0", "6");
    wait_until(10, || match controls(&host).concat() {
        all if all.contains(&"nr_greno".to_owned()) => Ok(()),
        all => Err(format!("{all:?}")),
    });
    let said = host.does(&["unload"]);
    assert!(
        said.starts_with("trial: ended\n") && said.ends_with("\nnr_greno: unloaded\n"),
        "{said}"
    );
    assert!(said.contains(" against reno, 60 % of new connections: ended after "), "{said}");
    assert!(controls(&host).concat().iter().all(|one| one == "reno"), "nobody keeps it");
    assert_eq!(host.state(), before);

    host.does(&["load", "greno"]);
    let whole_if_killed_after = |wait| {
        let command = [env!("CARGO_BIN_EXE_narrows"), "kernel", "trial"];
        let words = [&command[..], &args, &HERE].concat();
        let mut child = host.command(&words).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(wait));
        let _ = child.kill();
        child.wait().unwrap();
        let output = host.narrows(&["trial", "stop"]);
        // The next command that changes something sweeps up.
        host.does(&["load", "greno"]);
        assert_eq!(host.state(), loaded, "killed after {wait} ms");
        output.status.success()
    };
    // Around the moment at which it begins.
    let (mut none, mut whole) = (0, 100);
    assert!(!whole_if_killed_after(none));
    while !whole_if_killed_after(whole) {
        (none, whole) = (whole, 2 * whole);
        assert!(whole < 60_000, "it never begins");
    }
    for _ in 0..12 {
        let wait = (none + whole) / 2;
        match whole_if_killed_after(wait) {
            true => whole = wait,
            false => none = wait,
        }
    }
    println!("  begun after {none} to {whole} ms");
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn how_long_a_trial_would_take_is_said_and_nothing_changed() {
    let Some(host) = Host::new("trial, foreseen") else { return };
    let _server = network(&host);
    let before = host.state();
    let args = ["greno", "--against", "reno", "--share", "50%", "--dry-run"];
    let said = begin(&host, &args);
    let head =
        "nr_greno: would be tried on 50 % of the new connections that would have reno, for 24 h\n";
    assert!(said.starts_with(head), "{said}");
    let end = "\nnone of them began in 10 s: how long it takes is not known\nnothing was changed\n";
    assert!(said.ends_with(end), "{said}");
    // Two a second, of a third of a second each.
    let words = ["python3", "-c", TRAFFIC, "0", "80", "2000000", "0.5"];
    let _traffic = Process::start(&host, &words);
    let said = begin(&host, &args);
    let began = said.lines().find(|line| line.contains(" of them began in 10 s: at this rate "));
    let began = began.unwrap_or_else(|| panic!("{said}")).split(' ').next().unwrap();
    assert!((5..=30).contains(&began.parse::<u32>().unwrap()), "{said}");
    assert!(said.ends_with(" % less\nnothing was changed\n"), "{said}");
    assert_eq!(host.state(), before);
    let line = host.refuses(&["trial", "greno", "--against", "nr_greno", "--dry-run"]);
    assert!(line.starts_with("nr_greno: no such congestion control in the kernel"), "{line}");
}

#[test]
fn a_trial_that_cannot_be_is_refused_in_one_line() {
    let Some(host) = Host::new("trial, refused") else { return };
    let before = host.state();
    host.does(&["load", "greno"]);
    let loaded = host.state();
    let evil = "ev\u{1b}[31mil";
    for (args, expected) in [
        (
            vec!["olia", "--against", "reno"],
            "nr_olia: no such congestion control in the kernel (first: narrows kernel load",
        ),
        (
            vec!["greno", "--against", evil],
            r"ev\u001b[31mil: no such congestion control in the kernel",
        ),
        (vec!["greno", "--against", "nr_greno"], "nr_greno: is the control that is to be tried"),
        (vec!["greno", "--against", "greno"], "nr_greno: is the control that is to be tried"),
        (
            vec!["greno"],
            "command line: the following required arguments were not provided: --against",
        ),
        (
            vec!["greno", "--against", "reno", "--share", "0"],
            "command line: invalid value '0' for '--share <SHARE>': expected a share from 0.1% to 99.9%",
        ),
        (
            vec!["greno", "--against", "reno", "--for", "8d"],
            "command line: invalid value '8d' for '--for <TIME>': expected a time up to 7d",
        ),
        (
            vec!["greno", "--against", "reno", "--guard", "goodput>=2x"],
            "command line: invalid value 'goodput>=2x' for '--guard <LIMITS>': 'goodput>=2x': expected a ratio",
        ),
        (
            vec!["greno", "--against", "reno", "--netns", "none"],
            "--netns: no network namespace /run/netns/none",
        ),
        (
            vec!["greno", "--against", "reno", "--cgroup", "/tmp"],
            "--cgroup /tmp: expected a folder of the cgroup2 file system",
        ),
    ] {
        let args = [&["trial"], &args[..]].concat();
        let line = refused(&args, host.narrows(&args));
        assert!(line.starts_with(expected), "{args:?}: {line}");
        assert_eq!(host.state(), loaded);
    }
    for what in ["status", "stop"] {
        let output = host.narrows(&["trial", what]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stderr, b"narrows: kernel trial: there is no trial\n");
    }
    host.does(&["load", "olia"]);
    let said = begin(&host, &["greno", "--against", "olia"]);
    let warning = "\nnr_olia is no default here, and no open socket that could take part has it: connections with another ";
    assert!(said.contains(warning), "{said}");
    host.does(&["trial", "stop"]);
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}
