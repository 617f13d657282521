//! `narrows kernel watch`: which paths of a connection meet in one bottleneck, under stock controls,
//! and nothing stays.

use super::host::Host;
use narrows_testkit::wait_until;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

/// This host reaches a server through a router: its two devices go to two addresses of the server, by
/// one link of the router or by one each. `$links` has the rates, kbit/s, of one or two.
const NETWORK: &str = "
    for n in router server; do ip netns add $n; ip -n $n link set lo up; done
    ip netns exec router sysctl -qw net.ipv4.ip_forward=1
    ip netns exec server sysctl -qw net.ipv4.conf.all.rp_filter=0
    for n in 1 2; do
        ip link add v$n type veth peer name v$n netns router
        ip addr add 10.88.$n.1/24 dev v$n; ip link set v$n up
        ip -n router addr add 10.88.$n.2/24 dev v$n; ip -n router link set v$n up
    done
    l=0
    for rate in $links; do
        l=$((l + 1))
        ip -n router link add l$l type veth peer name l$l netns server
        ip -n router addr add 10.99.$l.1/24 dev l$l; ip -n router link set l$l up
        ip -n server addr add 10.99.$l.2/24 dev l$l; ip -n server link set l$l up
        tc -n router qdisc add dev l$l root tbf rate ${rate}kbit burst 3kb limit 60kb
    done
    if [ $l = 1 ]; then ip -n server addr add 10.99.1.3/24 dev l1; second=10.99.1.3
    else second=10.99.2.2; fi
    ip route add 10.99.1.2 via 10.88.1.2; ip route add $second via 10.88.2.2
    ip -n server route add 10.88.1.0/24 via 10.99.1.1
    ip -n server route add 10.88.2.0/24 via 10.99.$l.1
    ip mptcp limits set subflows 2 add_addr_accepted 2
    ip -n server mptcp limits set subflows 2 add_addr_accepted 2
    ip -n server mptcp endpoint add $second id 2 signal";

/// Sends to a server, by MPTCP or TCP, as much as fits.
/// A namespace may not have every control as its default, but a socket of root's may.
const TRAFFIC: &str = "
import os, socket, sys, threading
def open(kind): return socket.socket(socket.AF_INET, socket.SOCK_STREAM, kind)
kind, control, targets = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if not targets:
    a = open(kind)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    a.bind(('', 5000)); a.listen(); print('ready', flush=True)
    def read(b):
        while b.recv(1 << 20): pass
    while True: threading.Thread(target=read, args=[a.accept()[0]], daemon=True).start()
def send(target):
    a = open(kind); a.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    try:
        a.connect((target, 5000))
        while True: a.sendall(bytes(1 << 16))
    except OSError: pass # the server has ended
for target in targets: threading.Thread(target=send, args=[target], daemon=True).start()
print('ready', flush=True); sys.stdin.read()";

/// A process of the host, ended with the test.
pub(super) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(host: &Host, words: &[&str]) -> Process {
        let mut command = host.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, output }
    }

    fn narrows(host: &Host, args: &[&str]) -> Process {
        let words = [&[env!("CARGO_BIN_EXE_narrows"), "kernel", "watch"], args].concat();
        Process::start(host, &words)
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lines until one is `wanted`; what that returns.
    fn until<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> T {
        for _ in 0..90 {
            let line = self.line();
            assert!(!line.is_empty(), "it ended");
            if let Some(found) = wanted(&line) {
                return found;
            }
        }
        panic!("not in 90 lines");
    }

    /// Ends it by a signal; the rest of what it says, and its exit code.
    pub fn end(mut self, host: &Host, signal: &str) -> (String, Option<i32>) {
        host.sh(&format!("kill {signal} {}", self.child.id()));
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        (said, self.child.wait().unwrap().code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn network(host: &Host, links: &str) {
    host.sh(&format!("links='{links}'\n{NETWORK}"));
}

/// A server, and a client that sends to these addresses.
pub(super) fn send(host: &Host, control: &str, kind: &str, to: &[&str]) -> [Process; 2] {
    let server = ["ip", "netns", "exec", "server", "python3", "-c", TRAFFIC, kind, control];
    let mut server = Process::start(host, &server);
    assert_eq!(server.line(), "ready");
    let mut client =
        Process::start(host, &[&["python3", "-c", TRAFFIC, kind, control][..], to].concat());
    assert_eq!(client.line(), "ready");
    [server, client]
}

/// The network, a server, and a client that sends to these addresses.
fn traffic(host: &Host, links: &str, control: &str, kind: &str, to: &[&str]) -> [Process; 2] {
    network(host, links);
    send(host, control, kind, to)
}

/// Programs, links and maps of the watch in the kernel.
fn loaded(host: &Host) -> usize {
    let script =
        "{ bpftool prog show; bpftool map show; } | grep -cE 'name nr_sample(d|s)? ' || true";
    host.sh(script).trim().parse().unwrap()
}

/// Waits until there are so many: the kernel frees them after a grace period of RCU.
fn unloaded(host: &Host, before: usize) {
    wait_until(20, || match loaded(host) {
        left if left <= before => Ok(()),
        left => Err(format!("{left} programs and maps, {before} before")),
    });
}

/// The connection of a report whose groups are those, if there is one.
fn connection(line: &str, groups: &Value) -> Option<Value> {
    let report: Value = serde_json::from_str(line).unwrap();
    assert_eq!(report["format"], 1);
    let connections = report["connections"].as_array().unwrap();
    connections.iter().find(|one| one["groups"] == *groups).cloned()
}

#[test]
fn paths_of_one_bottleneck_are_found_under_the_stock_control_and_nothing_stays() {
    let Some(host) = Host::new("watch, shared") else { return };
    let (before, programs) = (host.state(), loaded(&host));
    let _traffic = traffic(&host, "12000", "cubic", "262", &["10.99.1.2"]);
    let with_traffic = host.state();

    let mut watch = Process::narrows(&host, &["--json", "--port", "5000"]);
    let shared = watch.until(|line| connection(line, &serde_json::json!([[1, 2]])));
    assert!(loaded(&host) > programs);
    let paths = shared["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path["control"] == "cubic"));
    assert_eq!((&paths[0]["interface"], &paths[1]["interface"]), (&"v1".into(), &"v2".into()));
    let rate: f64 = paths.iter().map(|path| path["mbit_per_s"].as_f64().unwrap()).sum();
    assert!((1.0..13.0).contains(&rate), "{rate} Mbit/s through 12");
    assert_eq!(shared["verdicts"][0]["verdict"], "shared");
    assert!(shared["verdicts"][0]["confidence"].as_f64().unwrap() >= 0.99);
    let (_, code) = watch.end(&host, "-INT");
    assert_eq!(code, Some(0));
    unloaded(&host, programs);

    let mut watch = Process::narrows(&host, &[]);
    watch.until(|line| line.ends_with("#1+#2").then_some(()));
    let (said, code) = watch.end(&host, "-INT");
    assert_eq!(code, Some(0));
    let sentence = "both paths meet in one bottleneck 100 % of the time; coupled they would take \
                    one share there, not two.";
    assert!(said.contains(sentence), "{said}");

    let mut watch = Process::narrows(&host, &["--json"]);
    watch.line();
    assert!(loaded(&host) > programs);
    watch.end(&host, "-KILL");
    unloaded(&host, programs);
    assert_eq!(host.state(), with_traffic, "no control was changed");
    assert!(with_traffic.starts_with(before.split("reno").next().unwrap()));

    // In other places there is nothing to watch.
    for scope in [["--netns", "router"], ["--port", "5001"]] {
        let said = host.does(&["watch", "--for", "2s", scope[0], scope[1]]);
        assert_eq!(said, "no MPTCP connection of two subflows sent anything\n");
    }
}

#[test]
fn paths_with_a_bottleneck_each_are_told_apart() {
    let Some(host) = Host::new("watch, separate") else { return };
    let _traffic = traffic(&host, "7000 11000", "reno", "262", &["10.99.1.2"]);
    let mut watch = Process::narrows(&host, &["--json"]);
    let separate = watch.until(|line| connection(line, &serde_json::json!([[1], [2]])));
    assert_eq!(separate["verdicts"][0]["verdict"], "separate");
    let sentence = separate["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("the two paths have separate bottlenecks"), "{sentence}");
    watch.end(&host, "-INT");
}

#[test]
fn tcp_flows_are_compared_where_that_is_asked_for() {
    let Some(host) = Host::new("watch, TCP") else { return };
    let to = ["10.99.1.2", "10.99.1.2", "10.99.2.2"];
    let _traffic = traffic(&host, "7000 11000", "reno", "0", &to);
    let mut watch = Process::narrows(&host, &["--json", "--tcp", "3"]);
    let found = watch.until(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        let flows = report["connections"].get(0)?;
        let groups = flows["groups"].as_array().unwrap();
        (groups.len() == 2).then(|| flows.clone())
    });
    // Flows to one address take one link.
    let of = |number: &Value| {
        let path = &found["paths"][number.as_u64().unwrap() as usize - 1];
        path["remote"].as_str().unwrap().to_owned()
    };
    for group in found["groups"].as_array().unwrap() {
        let remotes: Vec<String> = group.as_array().unwrap().iter().map(of).collect();
        assert!(remotes.iter().all(|remote| *remote == remotes[0]), "{remotes:?}");
    }
    watch.end(&host, "-INT");
}

#[test]
fn what_cannot_be_watched_is_refused_in_one_line() {
    let Some(host) = Host::new("watch, refused") else { return };
    let before = loaded(&host);
    for (args, expected) in [
        (["--netns", "nr-not-there"], "--netns: /run/netns/nr-not-there: "),
        (["--cgroup", "/tmp"], "--cgroup /tmp: expected a folder of the cgroup2 file system"),
        (["--tcp", "1"], "command line: invalid value '1' for '--tcp <N>': "),
        (
            ["--for", "soon"],
            "command line: invalid value 'soon' for '--for <SECONDS>': expected seconds",
        ),
        (["--port", "70000"], "command line: invalid value '70000' for '--port <PORT>': "),
    ] {
        let line = host.refuses(&["watch", args[0], args[1]]);
        assert!(line.starts_with(expected), "{line}");
    }
    unloaded(&host, before);
}
