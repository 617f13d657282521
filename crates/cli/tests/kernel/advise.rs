//! `narrows kernel advise`: a law's advice becomes the path manager's backup, and nothing stays.

use super::host::Host;
use narrows_testkit::wait_until;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Reno that wants the second path to be a backup while the first has delivered between 300 and 20,000
/// packets: what is sent decides, not the time it takes.
const LAW: &str = r#"
#include "law.h"
NR_INLINE void nr_adviser_acked(NR_HOOK)
{
	nr_u32 delivered = c->path[0].word[0] + ev->delivered;

	if (i)
		return;
	NR_WRITE(c->path[0].word[0], delivered);
	NR_WRITE(c->path[1].advice,
		 delivered > 300 && delivered < 20000 ? NR_ADVICE_BACKUP : NR_ADVICE_NONE);
}
NR_LAW(adviser) = {
    .name = "adviser",
    .code = "adv",
    .about = "Reno with advice",
    .source = "a test",
    .kind = NR_WINDOW,
    .acked = nr_adviser_acked,
};
"#;

/// Two paths between this host and a namespace, 10.88.N.1 and .2; the second subflow is endpoint 2.
const NETWORK: &str = "
    ip netns add peer
    for n in 1 2; do
        ip link add v$n type veth peer name v$n netns peer
        ip addr add 10.88.$n.1/24 dev v$n; ip link set v$n up
        ip -n peer addr add 10.88.$n.2/24 dev v$n; ip -n peer link set v$n up
        ip rule add from 10.88.$n.1 table 10$n
        ip route add default via 10.88.$n.2 dev v$n table 10$n
    done
    ip -n peer link set lo up
    ip route add default via 10.88.1.2
    ip mptcp limits set subflows 4; ip -n peer mptcp limits set subflows 4
    ip mptcp endpoint add 10.88.2.1 id 2 subflow";

const SERVER: &str = "
import socket, threading
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.bind(('10.88.1.2', 5000)); a.listen(); print('ready', flush=True)
def read(b):
    while b.recv(1 << 20): pass
while True: threading.Thread(target=read, args=[a.accept()[0]], daemon=True).start()";

/// Sends as many kB as each line says.
const CLIENT: &str = "
import socket, sys
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.connect(('10.88.1.2', 5000)); print('ready', flush=True)
for line in sys.stdin:
    a.sendall(b'x' * (int(line) << 10)); print('sent', flush=True)";

/// A process on the host, spoken to by lines.
struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn start(host: &Host, words: &[&str]) -> Talk {
        let mut command = host.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Talk { child, input, output: BufReader::new(output) }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn send(&mut self, kilobytes: u32) {
        writeln!(self.input, "{kilobytes}").unwrap();
        assert_eq!(self.line(), "sent");
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One that has said that it is ready.
fn ready(host: &Host, words: &[&str]) -> Talk {
    let mut talk = Talk::start(host, words);
    assert_eq!(talk.line(), "ready");
    talk
}

/// A server and a client that is connected to it, under a law that advises.
fn connected(host: &Host) -> (Talk, Talk) {
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("adviser.h");
    std::fs::write(&header, LAW).unwrap();
    host.sh(NETWORK);
    host.does(&["load", header.to_str().unwrap()]);
    host.does(&["use", "nr_adv", "--default", "--mptcp-only"]);
    let server = ready(host, &["ip", "netns", "exec", "peer", "python3", "-c", SERVER]);
    (server, ready(host, &["python3", "-c", CLIENT]))
}

/// `narrows kernel advise`, in the foreground.
fn advise(host: &Host) -> Talk {
    Talk::start(host, &[env!("CARGO_BIN_EXE_narrows"), "kernel", "advise"])
}

/// Ctrl-C; what it says from then on.
fn interrupt(host: &Host, talk: Talk) -> Vec<String> {
    signal(host, talk, "INT")
}

/// The same by another signal.
fn signal(host: &Host, mut talk: Talk, name: &str) -> Vec<String> {
    host.sh(&format!("kill -{name} {}", talk.child.id()));
    let mut said = String::new();
    talk.output.read_to_string(&mut said).unwrap();
    assert!(talk.child.wait().unwrap().success());
    said.lines().map(str::to_owned).collect()
}

/// The subflows of the connection: that of the second path is the second.
fn subflows(host: &Host) -> Vec<serde_json::Value> {
    let status = host.does(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let connections = status["namespaces"][0]["connections"].as_array().unwrap();
    connections.iter().flat_map(|one| one["subflows"].as_array().unwrap().clone()).collect()
}

/// Sends so many kB at a time until the advice on the second subflow is `wanted`.
fn send_until(host: &Host, client: &mut Talk, kilobytes: u32, wanted: &serde_json::Value) {
    wait_until(60, || {
        client.send(kilobytes);
        let all = subflows(host);
        match all.get(1).filter(|second| second["advice"] == *wanted) {
            Some(_) => Ok(()),
            None => Err(format!("advice is not {wanted}: {all:?}")),
        }
    });
}

fn backup(host: &Host, wanted: bool) {
    wait_until(20, || match &subflows(host)[1]["backup"] {
        found if *found == wanted => Ok(()),
        found => Err(format!("backup: {found}")),
    });
    let endpoint = host.sh("ip mptcp endpoint show id 2");
    assert_eq!(endpoint.contains("backup"), wanted, "{endpoint}");
}

fn second_delivered(host: &Host) -> u64 {
    subflows(host)[1]["bytes_acked"].as_u64().unwrap()
}

#[test]
fn an_advised_subflow_becomes_a_backup_and_regular_again() {
    let Some(host) = Host::new("advice is followed") else { return };
    let (_server, mut client) = connected(&host);

    // Nobody follows the advice: nothing happens.
    send_until(&host, &mut client, 200, &"backup".into());
    assert!(host.does(&["status"]).contains(", advised backup"));
    backup(&host, false);

    let mut follower = advise(&host);
    let line = follower.line();
    let done = "endpoint 2, 10.88.2.1: backup: ";
    assert!(line.starts_with(done) && line.ends_with(" > 10.88.1.2:5000"), "{line}");
    backup(&host, true);
    assert_eq!(interrupt(&host, follower), ["endpoint 2, 10.88.2.1: regular: the end"]);
    backup(&host, false);

    let mut follower = advise(&host);
    assert!(follower.line().starts_with(done));
    backup(&host, true);
    // What it had is delivered; what comes goes over the other path.
    client.send(1000);
    let before = second_delivered(&host);
    client.send(4000);
    assert!(second_delivered(&host) < before + 400_000, "traffic leaves the backup");

    send_until(&host, &mut client, 2000, &serde_json::Value::Null);
    assert_eq!(follower.line(), "endpoint 2, 10.88.2.1: regular: advice withdrawn");
    backup(&host, false);
    let before = second_delivered(&host);
    wait_until(60, || {
        client.send(2000);
        match second_delivered(&host) - before {
            0..400_000 => Err("no traffic on the second path".into()),
            _ => Ok(()),
        }
    });
    assert!(interrupt(&host, follower).is_empty(), "nothing is left to set back");
}

#[test]
fn a_connection_that_delivers_little_does_not_keep_another_from_its_advice() {
    let Some(host) = Host::new("an idle connection") else { return };
    let (_server, mut client) = connected(&host);
    send_until(&host, &mut client, 200, &"backup".into());
    let mut idle = ready(&host, &["python3", "-c", CLIENT]);
    idle.send(10);
    wait_until(20, || match subflows(&host).len() {
        4 => Ok(()),
        other => Err(format!("{other} subflows")),
    });

    let mut follower = advise(&host);
    let line = follower.line();
    let (begins, ends) = ("endpoint 2, 10.88.2.1: backup: ", ", and 1 without such advice");
    assert!(line.starts_with(begins) && line.ends_with(ends), "{line}");
    for _ in 0..8 {
        idle.send(10);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    backup(&host, true);
    assert_eq!(interrupt(&host, follower), ["endpoint 2, 10.88.2.1: regular: the end"]);
}

/// Waits until a process has a file locked.
fn locked(talk: &Talk) {
    let lock = format!(" WRITE {} ", talk.child.id());
    wait_until(20, || match std::fs::read_to_string("/proc/locks").unwrap() {
        all if all.contains(&lock) => Ok(()),
        all => Err(all),
    });
}

#[test]
fn what_a_killed_one_set_the_next_one_knows_and_unload_sets_back() {
    let Some(host) = Host::new("advise, killed") else { return };
    let (_server, mut client) = connected(&host);
    send_until(&host, &mut client, 200, &"backup".into());
    let set = "endpoint 2, 10.88.2.1: backup: ";
    let mut killed = advise(&host);
    assert!(killed.line().starts_with(set));
    drop(killed);
    backup(&host, true);

    let next = advise(&host);
    locked(&next);
    let line = host.refuses(&["advise"]);
    assert_eq!(line, "network namespace current: narrows kernel advise runs there already");
    backup(&host, true);
    // As `systemctl stop` does.
    assert_eq!(signal(&host, next, "TERM"), ["endpoint 2, 10.88.2.1: regular: the end"]);
    backup(&host, false);

    let mut killed = advise(&host);
    assert!(killed.line().starts_with(set));
    drop(killed);
    // A record that cannot be read keeps nothing from being set back and unloaded.
    host.sh("mkdir /run/narrows-advise-0");
    let output = host.narrows(&["unload"]);
    host.sh("rmdir /run/narrows-advise-0");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "narrows: /run/narrows-advise-0: cannot open: Is a directory (os error 21)\n");
    let said = String::from_utf8(output.stdout).unwrap();
    let regular = "endpoint 2, 10.88.2.1: regular: its `advise` was killed\n";
    assert!(said.starts_with(regular) && said.contains("nr_adv: unloaded"), "{said}");
    let endpoint = host.sh("ip mptcp endpoint show id 2");
    assert!(!endpoint.contains("backup"), "{endpoint}");
    assert_eq!(host.does(&["unload"]), "nothing is loaded\n");
}

/// Sends all the time.
const SENDER: &str = "
import socket
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.connect(('10.88.1.2', 5000)); print('ready', flush=True)
while True: a.sendall(bytes(1 << 16))";

/// What the connection has acknowledged, over all its subflows, in so many seconds; Mbit/s.
fn mbit_per_s(host: &Host, seconds: u64) -> f64 {
    let acked = || {
        let shown = host.sh("ss -tinHO state established dport 5000");
        let all = shown.split(" bytes_acked:").skip(1);
        all.map(|rest| rest.split(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    let before = acked();
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    (acked() - before) * 8e-6 / seconds as f64
}

/// 40 Mbit/s beside 2 Mbit/s with a queue of 0.6 s, a buffer that does not last for it, and one who sends all the time.
fn dragged_down(host: &Host) -> (Talk, Talk) {
    host.sh(NETWORK);
    host.sh("tc qdisc add dev v1 root tbf rate 40mbit burst 15kb limit 60kb
        tc qdisc add dev v2 root tbf rate 2mbit burst 5kb limit 150kb
        ip netns exec peer sysctl -qw net.ipv4.tcp_rmem='4096 131072 400000'");
    let server = ready(host, &["ip", "netns", "exec", "peer", "python3", "-c", SERVER]);
    let client = ready(host, &["python3", "-c", SENDER]);
    wait_until(30, || match subflows(host).len() {
        2 => Ok(()),
        other => Err(format!("{other} subflows")),
    });
    (server, client)
}

#[test]
fn a_slow_path_that_all_wait_for_becomes_a_backup_under_the_kernels_own_control() {
    let Some(host) = Host::new("a path that does not pay") else { return };
    let before = host.state();
    let _connected = dragged_down(&host);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let dragged = mbit_per_s(&host, 4);
    let mut follower = advise(&host);
    let line = follower.line();
    assert!(line.starts_with("endpoint 2, 10.88.2.1: backup: "), "{line}");
    backup(&host, true);
    std::thread::sleep(std::time::Duration::from_secs(6));
    let alone = mbit_per_s(&host, 4);
    println!("  {dragged:.1} Mbit/s with the slow path, {alone:.1} without");
    assert!(dragged < 20.0 && alone > 1.5 * dragged, "{dragged}, {alone}");
    // The trial is over, and it pays to do without.
    std::thread::sleep(std::time::Duration::from_secs(8));
    backup(&host, true);
    assert_eq!(interrupt(&host, follower), ["endpoint 2, 10.88.2.1: regular: the end"]);
    backup(&host, false);
    assert_eq!(host.state(), before);
}

/// Connections of some 100 kB that last for a second or two, three at a time.
const SHORT: &str = "
import socket, threading, time
def go_on():
    while True:
        a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        a.connect(('10.88.1.2', 5000)); a.sendall(bytes(100000)); time.sleep(1); a.close()
for _ in range(3): threading.Thread(target=go_on, daemon=True).start(); time.sleep(0.4)
print('ready', flush=True); time.sleep(3600)";

/// One that goes on for long, and sends 20 kB each half second.
const PAGE: &str = "
import socket, time
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.connect(('10.88.1.2', 5000)); print('ready', flush=True)
while True: a.sendall(bytes(20000)); time.sleep(0.5)";

#[test]
fn short_connections_and_one_that_sends_little_neither_prevent_nor_undo_it() {
    let Some(host) = Host::new("a path that does not pay, of many connections") else { return };
    let _connected = dragged_down(&host);
    let _page = ready(&host, &["python3", "-c", PAGE]);
    let _short = ready(&host, &["python3", "-c", SHORT]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let dragged = mbit_per_s(&host, 4);
    let mut follower = advise(&host);
    let line = follower.line();
    assert!(line.starts_with("endpoint 2, 10.88.2.1: backup: "), "{line}");
    assert!(line.ends_with(" without such advice"), "{line}");
    // The trial, and as long again, with some thirty new connections.
    std::thread::sleep(std::time::Duration::from_secs(20));
    let alone = mbit_per_s(&host, 4);
    println!("  {dragged:.1} Mbit/s with the slow path, {alone:.1} without");
    assert!(alone > 1.5 * dragged, "{dragged}, {alone}");
    let endpoint = host.sh("ip mptcp endpoint show id 2");
    assert!(endpoint.contains("backup"), "{endpoint}");
    assert_eq!(interrupt(&host, follower), ["endpoint 2, 10.88.2.1: regular: the end"]);
}

#[test]
fn what_a_law_would_advise_is_set_when_it_is_loaded() {
    let Some(host) = Host::new("advice as a parameter") else { return };
    let before = host.state();
    let line = host.refuses(&["load", "reno", "--set", "bbr.close=0.6"]);
    assert_eq!(line, "--set: bbr.close is no parameter of reno");
    let line = host.refuses(&["load", "bbr", "--set", "bbr.close=2"]);
    assert!(line.starts_with("--set: bbr.close: '2' is not a number from 0 to "), "{line}");
    assert_eq!(host.does(&["advise", "--for", "0"]), "", "nothing is loaded, and nothing sends");
    assert_eq!(host.state(), before);

    host.does(&["load", "bbr", "reno"]);
    let load = ["load", "bbr", "reno", "--set", "bbr.close=0.6"];
    let replaced = "nr_bbr: loaded, replacing another build or settings; open connections keep \
                    the old ones\nnr_reno: already loaded\n";
    assert_eq!(host.does(&load), replaced);
    assert_eq!(host.does(&load), "nr_bbr: already loaded\nnr_reno: already loaded\n");
    assert_eq!(host.does(&["advise", "--for", "0"]), "");
    let line = host.refuses(&["advise", "--netns", "none"]);
    assert!(line.starts_with("--netns: no network namespace /run/netns/none"), "{line}");
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}
