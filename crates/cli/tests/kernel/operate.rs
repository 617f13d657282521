//! What an operator meets beside loading and using: `ip netns exec`, a BPF file system that is not
//! root's alone, controls of others, many connections, figures for Prometheus.

use super::host::{Host, refused};
use super::metrics::parse;
use narrows_kernel::state::COUNTERS;
use nix::fcntl::{Flock, FlockArg};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Connections over loopback that stay until this is dropped.
struct Connections(Child);

impl Connections {
    /// So many, each with data.
    fn open(host: &Host, n: usize) -> Connections {
        let script = format!(
            "import socket, sys
def new(): return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a = new(); a.bind(('127.0.0.1', 0)); a.listen()
held = []
for _ in range({n}):
    b = new(); b.connect(a.getsockname()); c, _ = a.accept(); held += [b, c]
    b.send(b'x' * 1000); c.recv(1000); c.send(b'y'); b.recv(1)
print(flush=True); sys.stdin.read()"
        );
        let mut command = host.command(&["python3", "-c", &script]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new());
        assert_eq!(line.unwrap(), 1);
        Connections(child)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn under_ip_netns_exec_nothing_false_is_said_and_nothing_is_begun() {
    let Some(host) = Host::new("ip netns exec") else { return };
    host.sh("ip netns add nr-exec-test");
    host.does(&["load", "olia"]);
    host.does(&["use", "olia", "--default"]);
    let loaded = host.state();
    let exec = ["ip", "netns", "exec", "nr-exec-test"];
    host.sh(&format!("{} sh -c 'echo reno > {DEFAULT}'", exec.join(" ")));

    let status = [&exec[..], &[NARROWS, "kernel", "status"]].concat();
    let output = host.command(&status).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["not pinned", "removed when", "not by narrows", "not in use"] {
        assert!(!text.contains(word), "{text}");
    }
    let unseen = "not seen: where controls are used: /sys/fs/bpf: hidden by `ip netns exec \
                  nr-exec-test`";
    assert!(text.contains(unseen), "{text}");

    // The second one mounts what would go with the command.
    for before in ["true", "mount -t bpf -o mode=0700 bpf /sys/fs/bpf"] {
        for args in ["load lia", "use olia --default", "unuse --default", "unload"] {
            let script = format!("{before} && exec {NARROWS} kernel {args}");
            let words = [&exec[..], &["sh", "-c", &script]].concat();
            let line = refused(&[args], host.command(&words).output().unwrap());
            assert!(
                line.starts_with("/sys/fs/bpf: hidden by `ip netns exec nr-exec-test`"),
                "{line}"
            );
            assert!(line.ends_with("--netns nr-exec-test"), "{line}");
        }
    }
    assert_eq!(host.sh(&format!("{} cat {DEFAULT}", exec.join(" "))), "reno\n");
    assert_eq!(host.state(), loaded);
    // As it says.
    host.does(&["use", "olia", "--netns", "nr-exec-test"]);
    assert_eq!(host.sh(&format!("{} cat {DEFAULT}", exec.join(" "))), "nr_olia\n");
    host.does(&["unload"]);
    host.sh("ip netns del nr-exec-test");
}

#[test]
fn a_bpf_file_system_that_others_can_write_to_is_refused_with_what_to_type() {
    let Some(host) = Host::new("BPF file system of all") else { return };
    let before = host.state();
    host.sh("chmod 1777 /sys/fs/bpf");
    let fix = "chown 0:0 /sys/fs/bpf && chmod 0700 /sys/fs/bpf";
    for args in [&["load", "olia"][..], &["use", "olia", "--default"], &["unload"]] {
        let line = host.refuses(args);
        let seen = "/sys/fs/bpf: mode 1777, owner 0: users other than root can write there";
        assert_eq!(line, format!("{seen}: {fix}"));
    }
    let output = host.narrows(&["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("run: {fix}\n")), "{text}");
    // What another user did meanwhile.
    host.sh("mkdir /sys/fs/bpf/nr_conns && chown 65534 /sys/fs/bpf/nr_conns");
    host.sh(fix);
    let line = host.refuses(&["load", "olia"]);
    assert_eq!(line, "/sys/fs/bpf: nr_conns there is no map of root's: rm -r /sys/fs/bpf/nr_conns");
    host.sh("rm -r /sys/fs/bpf/nr_conns");
    host.does(&["load", "olia"]);
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn a_control_that_bpftool_registered_is_shown_with_what_removes_it() {
    let Some(host) = Host::new("control of bpftool") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display().to_string();
    host.does(&["objects", &folder]);
    host.sh(&format!("bpftool struct_ops register {folder}/nr_olia.bpf.o"));
    let text = host.does(&["status"]);
    let line = text.lines().find(|line| line.starts_with("olia (nr_olia): ")).unwrap();
    let rest = line.strip_prefix("olia (nr_olia): loaded, not by narrows; ").expect(&text);
    let command = rest.split(" removes it; ").next().unwrap();
    host.sh(command);
    assert!(!host.does(&["status"]).contains("olia (nr_olia): loaded"));
    host.sh("rm -f /sys/fs/bpf/nr_conns /sys/fs/bpf/nr_plain");
}

#[test]
fn many_connections_are_counted_and_the_busiest_shown() {
    let Some(host) = Host::new("many connections") else { return };
    let _connections = Connections::open(&host, 20);
    let rows = |text: &str| text.matches(" > ").count();
    let all = host.does(&["status"]);
    assert_eq!(rows(&all), 40, "{all}");
    let top = host.does(&["status", "--top", "3"]);
    assert_eq!(rows(&top), 3, "{top}");
    assert!(top.ends_with("and 37 more, less busy connections\n"), "{top}");
    // A terminal has lines enough for some.
    let script = format!("stty rows 24 cols 200; {NARROWS} kernel status");
    let screen = host.sh(&format!("script -qec '{script}' /dev/null < /dev/null"));
    assert!(screen.lines().count() < 24 && (1..12).contains(&rows(&screen)), "{screen}");
    assert!(screen.contains(&format!("and {} more", 40 - rows(&screen))), "{screen}");

    host.sh("ip netns add nr-top-test");
    let there = host.does(&["status", "--netns", "nr-top-test"]);
    assert_eq!(rows(&there), 0, "{there}");
    assert!(there.contains("network namespace nr-top-test"), "{there}");
    host.sh("ip netns del nr-top-test");
    let line = host.refuses(&["status", "--netns", "nr-top-test"]);
    assert_eq!(line, "--netns: no network namespace /run/netns/nr-top-test");
}

#[test]
fn figures_for_prometheus_are_true_and_the_file_is_whole() {
    let Some(host) = Host::new("export") else { return };
    host.does(&["load", "olia"]);
    host.does(&["use", "olia", "--default"]);
    let _connections = Connections::open(&host, 3);
    let text = host.does(&["export"]);
    let samples = parse(&text);
    let value = |name: &str, labels: &[(&str, &str)]| {
        let has = |own: &Vec<(String, String)>| {
            labels.iter().all(|(n, v)| own.iter().any(|(name, value)| name == n && value == v))
        };
        let found: Vec<_> =
            samples.iter().filter(|one| one.name == name && has(&one.labels)).collect();
        assert!(!found.is_empty(), "no {name} with {labels:?}: {text}");
        found.iter().map(|sample| sample.value).sum::<f64>()
    };
    let mine = [("law", "olia"), ("protocol", "mptcp"), ("netns", "current")];
    assert_eq!(value("narrows_connections", &mine), 6.0, "{text}");
    let here = [("netns", "current")];
    assert_eq!(value("narrows_subflows", &here), 6.0, "{text}");
    assert_eq!(value("narrows_fallback_subflows", &here), 0.0, "{text}");
    assert!(value("narrows_received_bytes", &here) >= 3003.0, "{text}");
    assert!(value("narrows_acked_bytes", &here) >= 3003.0, "{text}");
    assert!(value("narrows_map_entries", &[]) >= 6.0, "{text}");
    assert!(value("narrows_map_max_entries", &[]) > 1000.0, "{text}");
    for (metric, label) in [
        ("narrows_fallback_total", ("reason", "full")),
        ("narrows_repaired_windows_total", ("build", "registered")),
    ] {
        assert!(value(metric, &[("control", "nr_olia"), label]) < 1e6, "{text}");
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let export = ["export", "--textfile", &path];
    // What a killed one left, or another user laid there.
    host.sh(&format!("echo kept > {path}/other; ln -s {path}/other {path}/.narrows.prom.new"));
    assert_eq!(host.does(&export), "", "nothing is known of before");
    let listed =
        host.sh(&format!("ls -A {path}; stat -c %a {path}/narrows.prom; cat {path}/other"));
    assert_eq!(listed, "narrows.prom\nother\n644\nkept\n");
    parse(&host.sh(&format!("cat {path}/narrows.prom")));
    if Command::new("promtool").arg("--version").output().is_ok() {
        host.sh(&format!("promtool check metrics < {path}/narrows.prom"));
    }

    let full = COUNTERS.iter().position(|name| *name == "fallback_full").unwrap();
    host.sh(&format!(
        "bpftool map update pinned /sys/fs/bpf/narrows/nr_olia/counters \
         key {full} 0 0 0 value 3 0 0 0 0 0 0 0"
    ));
    let rose = "nr_olia: fallback_full rose by 3 to 3: subflows ran the fallback law, the map of \
                connections was full\n";
    assert_eq!(host.does(&export), rose);
    assert_eq!(host.does(&export), "", "once");
    // What the folder's owner may lay there is not read, and who holds a lock of it stops nothing.
    for laid in ["ln -s /dev/zero", "mkfifo"] {
        host.sh(&format!("rm {path}/narrows.prom; {laid} {path}/narrows.prom"));
        let line = host.refuses(&export);
        assert!(line.starts_with(&format!("{path}/narrows.prom: cannot write: ")), "{line}");
    }
    host.sh(&format!("rm {path}/narrows.prom"));
    let held = std::fs::File::open(folder.path()).unwrap();
    let _held = Flock::lock(held, FlockArg::LockShared).unwrap();
    assert_eq!(host.does(&export), "");
    let line = host.refuses(&["export", "--textfile", "/none"]);
    assert!(line.starts_with("/none/narrows.prom: cannot write: No such file"), "{line}");
}
