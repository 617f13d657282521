//! Names that others chose, of processes, interfaces, namespaces and cgroups and in arguments, do not command
//! the terminal, stand on one line and leave the columns as they are.

use super::host::Host;
use super::metrics;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::scope;

/// A server, and a client that calls itself two lines, the second with a byte that is no text. It sends on
/// two subflows.
const SERVER: &str = r#"
import socket
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.bind(("10.0.0.2", 7000)); a.listen()
print("ready", flush=True)
c, _ = a.accept()
while c.recv(1 << 20): pass"#;
const CLIENT: &str = r#"
import socket, time
b = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
b.connect(("10.0.0.2", 7000))
open("/proc/self/comm", "wb").write(b"ev\x1b[31m\nil\xff")
b.send(b"x" * 20000); time.sleep(1)
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    b.send(b"x" * 20000); time.sleep(0.01)"#;

/// The names for a shell, and the namespace's as it is and as it is shown.
const SHELL: &str = r"name=$'ev\e[31m\n\u202e' one=$'e\e[41m\e[2Jz\a' two=$'\xff(id)'";
const NAME: &str = "ev\u{1b}[31m\n\u{202e}";
const SHOWN: &str = r"ev\u001b[31m\n\u202e";

/// Ends with its value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn names_that_others_chose_do_not_command_the_terminal() {
    let Some(host) = Host::new("names of others") else { return };
    // An interface may have any bytes but white space, slashes and colons.
    host.sh(&format!(
        r#"{SHELL}; ip netns add "$name"; ip netns add peer
        add() {{
            ip link add "$1" netns "$name" type veth peer name "$2" netns peer
            ip -n "$name" addr add "$3.1/24" dev "$1"; ip -n peer addr add "$3.2/24" dev "$2"
            ip -n "$name" link set "$1" up; ip -n peer link set "$2" up
        }}
        add "$one" p1 10.0.0
        add "$two" p2 10.0.1
        ip -n "$name" rule add from 10.0.1.1 table 101
        ip -n "$name" route add default via 10.0.1.2 dev "$two" table 101
        for at in "$name" peer; do
            ip -n "$at" link set lo up; ip -n "$at" mptcp limits set subflow 2
        done
        ip -n "$name" mptcp endpoint add 10.0.1.1 dev "$two" subflow"#
    ));
    let inside = |name: &str, rest: &str| {
        let script = format!("{SHELL}; exec ip netns exec {name} {rest}");
        host.command(&["bash", "-c", &script])
    };
    let python = |name: &str, code: &str| {
        let mut command = inside(name, "python3 -c \"$0\"");
        let mut child = command.arg(code).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running(child)
    };
    host.does(&["load", "lia"]);
    host.does(&["use", "lia", "--netns", NAME]);
    let _server = python("peer", SERVER);
    let _client = python("\"$name\"", CLIENT);
    let check = concat!(env!("CARGO_BIN_EXE_narrows"), " kernel check");
    let checked = inside("\"$name\"", check).output().unwrap();
    let watch = &|args: &[&str]| host.does(&[&["watch", "--for", "3"], args].concat());
    let [watched, watched_json] = scope(|scope| {
        let both = [&[][..], &["--json"]].map(|args| scope.spawn(move || watch(args)));
        both.map(|one| one.join().unwrap())
    });
    let all = [
        host.does(&["status"]),
        host.does(&["status", "--json"]),
        String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap(),
        host.refuses(&["use", "lia", "--netns", "n\u{1b}[2J\n\u{202e}"]),
        watched,
        watched_json,
        host.does(&["export"]),
        host.does(&["unload", "lia"]),
    ];
    for text in &all {
        let bad = |one: char| one == '\u{202e}' || one.is_control() && !['\n', '\t'].contains(&one);
        assert!(!text.contains(bad), "{text:?}");
    }
    let [status, json, check, _, watched, watched_json, exported, unloaded] = &all;
    let [one, two] = [r"e\u001b[41m\u001b[2Jz\u0007", r"\xff(id)"];
    assert!(status.contains(&format!("network namespace {SHOWN}, ")), "{status}");
    // Where the next column begins.
    let place = |name: &str| {
        let line = status.lines().find(|line| line.contains(name));
        line.unwrap_or_else(|| panic!("no {name} in {status}")).find(" nr_lia ").unwrap()
    };
    assert_eq!(place(one), place(two), "{status}");
    let json: Value = serde_json::from_str(json).unwrap();
    let of = json["namespaces"].as_array().unwrap().iter().find(|of| of["name"] == NAME).unwrap();
    let subflows = of["connections"][0]["subflows"].as_array().unwrap();
    let mut names: Vec<&str> =
        subflows.iter().map(|one| one["interface"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, [two, "e\u{1b}[41m\u{1b}[2Jz\u{7}"]);
    for text in [check, watched] {
        assert!(text.contains(two), "{text}");
    }
    assert!(watched.contains(&format!("{SHOWN} {one} 10.0.0.1:")), "{watched}");
    // As many a path in both.
    let paths = |text: &str| {
        let numbers = text.split('#').skip(1).filter_map(|rest| rest.chars().next());
        numbers.filter(char::is_ascii_digit).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((paths(status), paths(watched)), (['1', '2'].into(), ['1', '2'].into()));
    let last: Value = serde_json::from_str(watched_json.lines().last().unwrap()).unwrap();
    assert_eq!(last["connections"][0]["paths"][0]["netns"], NAME);
    let labels = metrics::parse(exported).into_iter().flat_map(|one| one.labels);
    let mut netns = labels.filter(|(name, _)| name == "netns");
    assert!(netns.any(|(_, value)| value == "ev\\u001b[31m\n\\u202e"), "{exported}");
    assert!(unloaded.contains(&format!("{SHOWN}: restored ")), "{unloaded}");
    assert!(unloaded.contains(r"held by ev\u001b[31m\nil\xff (pid "), "{unloaded}");
}

#[test]
fn a_cgroups_name_does_not_command_the_terminal() {
    let Some(host) = Host::new("a cgroup's name") else { return };
    // The kernel allows no new line in it.
    let cgroup = host.cgroup("ev\u{1b}[31m\u{202e}");
    let folder = cgroup.folder.as_str();
    let shown = folder.replace('\u{1b}', r"\u001b").replace('\u{202e}', r"\u202e");
    host.does(&["load", "lia"]);
    let used = host.does(&["use", "lia", "--cgroup", folder]);
    assert!(used.starts_with(&format!("nr_lia: used in {shown} for new connections\n")), "{used}");
    let [status, json] = [&["status"][..], &["status", "--json"]].map(|args| host.does(args));
    assert!(status.contains(&format!("cgroup {shown}")), "{status}");
    assert!(json.contains(&format!("\"{shown}\"")), "{json}");
    for text in [status, json] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
    let line = host.refuses(&["watch", "--cgroup", &format!("{folder}/cgroup.procs")]);
    let expected = "expected a folder of the cgroup2 file system";
    assert_eq!(line, format!("--cgroup {shown}/cgroup.procs: {expected}"));
    let unused = host.does(&["unuse", "--cgroup", folder]);
    assert_eq!(unused, format!("cgroup {shown}: no longer nr_lia\n"));
    host.does(&["unload", "lia"]);
}
