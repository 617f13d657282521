//! MPTCP listeners and connections that are older than a use.

use super::host::Host;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A server and its clients in one process, which does what it reads, a line each:
///
/// - `listen [CONTROL]`: on a new port, which it prints
/// - `connect`: a client to the last port; the server sets a socket option on what it accepts
/// - `send`: every connection some data, both ways
/// - `away`: the last listener's descriptor is put into a message that nobody receives
const PROGRAM: &str = r#"
import array, socket, sys
MPTCP = 262
listeners, pairs, away = [], [], []
for line in sys.stdin:
    words = line.split()
    answer = "done"
    if words[0] == "listen":
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        if len(words) > 1:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, words[1].encode())
        one.bind(("127.0.0.1", 0))
        one.listen()
        listeners.append(one)
        answer = str(one.getsockname()[1])
    elif words[0] == "connect":
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        client.connect(listeners[-1].getsockname())
        server, _ = listeners[-1].accept()
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pairs.append((client, server))
    elif words[0] == "away":
        way = socket.socketpair(socket.AF_UNIX)
        fd = array.array("i", [listeners[-1].fileno()])
        way[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd)])
        listeners.pop().close()
        away.append(way)
    if words[0] in ("connect", "send"):
        for client, server in pairs:
            for _ in range(20):
                client.sendall(b"x" * 1000); server.recv(1000, socket.MSG_WAITALL)
                server.sendall(b"y" * 1000); client.recv(1000, socket.MSG_WAITALL)
    print(answer, flush=True)
"#;

pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    pub fn new(host: &Host, enter: &str) -> Server {
        let script = format!("{enter} exec python3 -c \"$0\"");
        let mut child = host
            .command(&["sh", "-c", &script, PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Server { stdin: child.stdin.take(), stdout, child }
    }

    pub fn does(&mut self, line: &str) -> String {
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// A host whose connections may have further subflows, by [`join`].
fn host(test: &str) -> Option<Host> {
    let host = Host::new(test)?;
    host.sh("ip mptcp limits set subflows 2 add_addr_accepted 0");
    Some(host)
}

/// The controls of the server's subflows, those of connections to `port`, in the order they began.
fn controls(host: &Host, port: &str) -> Vec<String> {
    let all = host.sh(&format!("ss -tinH state established sport = :{port}"));
    let known = |word: &&str| word.starts_with("nr_") || ["reno", "cubic", "bbr"].contains(word);
    let mut controls: Vec<String> =
        all.split_whitespace().filter(known).map(str::to_owned).collect();
    controls.sort();
    controls
}

/// A second subflow of every connection.
fn join(host: &Host, server: &mut Server) {
    host.sh("ip mptcp endpoint add 127.0.0.2 dev lo id 2 subflow; sleep 0.3");
    server.does("send");
    host.sh("sleep 0.2");
    server.does("send");
}

fn no_join(host: &Host) {
    host.sh("ip mptcp endpoint flush; sleep 0.1");
}

#[test]
fn a_listener_older_than_a_use_is_moved_to_it_and_back() {
    let Some(host) = host("older listener") else { return };
    let before = host.state();
    let mut server = Server::new(&host, "");
    let port = server.does("listen");
    host.does(&["load", "olia", "lia"]);
    let loaded = host.state();
    let output = host.does(&["use", "olia", "--default", "--mptcp-only"]);
    let used = "nr_olia: used in default for new MPTCP connections; plain TCP keeps reno\n";
    assert_eq!(output, format!("{used}moved 1 older MPTCP listener\n"));
    assert_eq!(host.does(&["use", "olia", "--default", "--mptcp-only"]), used, "it was moved");

    server.does("connect");
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["nr_olia", "nr_olia"]);
    // Both ends have both subflows in one entry.
    let status = host.does(&["status"]);
    assert_eq!(status.matches(" with #2 ").count(), 2, "{status}");
    assert_eq!(status.matches(" with #1 ").count(), 2, "{status}");
    assert_eq!(status.matches(" alone ").count(), 0, "{status}");
    no_join(&host);

    // One use after the other, and back to what was there before both.
    let output = host.does(&["use", "lia", "--default", "--mptcp-only"]);
    assert!(output.contains("\nmoved 1 older MPTCP listener\n"), "{output}");
    assert!(
        output.ends_with("2 open MPTCP connections keep the former control (--open moves them)\n"),
        "{output}"
    );
    let output = host.does(&["unuse", "--default"]);
    let undone = "the default: restored reno instead of nr_lia\nmoved 1 older MPTCP listener\n";
    assert_eq!(output, undone);
    assert_eq!(host.state(), loaded);
    drop(server);

    let mut server = Server::new(&host, "");
    let port = server.does("listen");
    host.does(&["use", "olia", "--default"]);
    host.does(&["unuse", "--default"]);
    server.does("connect");
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["reno", "reno"]);
    no_join(&host);
    // What came into being under a control is not left with it either.
    host.does(&["use", "olia", "--default"]);
    let port = server.does("listen");
    assert_eq!(
        host.does(&["unload", "olia"]),
        "default: restored reno instead of nr_olia\nmoved 2 older MPTCP listeners\nnr_olia: unloaded\n"
    );
    server.does("connect");
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["reno", "reno"]);
    drop(server);
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn open_connections_are_moved_when_asked_for_and_other_controls_are_left_alone() {
    let Some(host) = host("open connections") else { return };
    let mut server = Server::new(&host, "");
    let port = server.does("listen");
    server.does("connect");
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["reno", "reno"]);
    no_join(&host);
    let other = server.does("listen cubic");
    server.does("connect");

    host.does(&["load", "olia"]);
    let output = host.does(&["use", "olia", "--default"]);
    let used = "nr_olia: used in default for new connections instead of reno\n";
    let moved = "moved 1 older MPTCP listener\n";
    // The other listener's client has the default.
    let keep = "3 open MPTCP connections keep the former control (--open moves them)\n";
    assert_eq!(output, format!("{used}{moved}{keep}"));
    let output = host.does(&["use", "olia", "--default", "--open"]);
    assert_eq!(output, format!("{used}moved 3 open MPTCP connections\n"));
    assert_eq!(host.does(&["use", "olia", "--default", "--open"]), used);
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["nr_olia", "nr_olia"]);
    assert_eq!(controls(&host, &other), ["cubic", "cubic"]);
    no_join(&host);

    let output = host.does(&["unuse", "--default", "--open"]);
    let undone = "the default: restored reno instead of nr_olia\n";
    assert_eq!(output, format!("{undone}{moved}moved 3 open MPTCP connections\n"));
    join(&host, &mut server);
    assert_eq!(controls(&host, &port), ["reno", "reno"]);
    assert_eq!(controls(&host, &other), ["cubic", "cubic"]);
    drop(server);
    assert_eq!(host.does(&["unload"]), "nr_olia: unloaded\n");
}

#[test]
fn an_entry_that_was_left_behind_is_reaped_by_the_next_command() {
    let Some(host) = host("an entry left behind") else { return };
    let mut server = Server::new(&host, "");
    host.does(&["load", "olia"]);
    host.does(&["use", "olia", "--default"]);
    server.does("listen");
    server.does("connect");
    let map = "pinned /sys/fs/bpf/nr_conns";
    let keys = || {
        host.sh(&format!("bpftool -j map dump {map} | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'"))
    };
    assert_eq!(keys(), "2\n", "both ends");
    // As if a release had been left out: the copy of a living one under another token.
    host.sh("python3 -c '
import json, subprocess
def bpftool(*words): return subprocess.check_output((\"bpftool\", \"-j\", \"map\") + words)
path = (\"pinned\", \"/sys/fs/bpf/nr_conns\")
value = json.loads(bpftool(\"dump\", *path))[0][\"value\"]
bpftool(\"update\", *path, \"key\", \"1\", \"0\", \"0\", \"0\", \"value\", *value)
# It counts as its user, who is root, and among all.
for key in ([0, 0, 0, 0], [0, 0, 1, 0]):
    users = (\"pinned\", \"/sys/fs/bpf/nr_users\", \"key\", *map(str, key))
    value = [int(byte, 16) for byte in json.loads(bpftool(\"lookup\", *users))[\"value\"]]
    bpftool(\"update\", *users, \"value\", str(value[0] + 1), *map(str, value[1:]))
'");
    assert_eq!(keys(), "3\n");
    let status = host.does(&["status"]);
    assert!(status.contains("\nmap of connections: 3 of "), "{status}");
    host.does(&["use", "olia", "--default"]);
    assert_eq!(keys(), "2\n");
    server.does("send");
    let status = host.does(&["status"]);
    assert!(status.contains("\nmap of connections: 2 of "), "{status}");
    assert!(!status.contains("fallback_lost"), "{status}");
    drop(server);
    host.does(&["unload"]);
}

#[test]
fn a_listener_that_cannot_be_moved_is_named() {
    let Some(host) = host("a listener nobody holds") else { return };
    let mut server = Server::new(&host, "");
    let port = server.does("listen");
    server.does("away");
    host.does(&["load", "olia"]);
    let output = host.does(&["use", "olia", "--default"]);
    let kept = format!("listener 127.0.0.1:{port} keeps reno: no process holds it\n");
    assert!(output.ends_with(&format!("\nnot moved: {kept}")), "{output}");
    let has = format!("127.0.0.1:{port} has reno, not nr_olia");
    let status = host.does(&["status"]);
    assert!(status.contains(&format!("\n  listener {has}\n")), "{status}");
    let check = host.does(&["check"]);
    assert!(check.contains(&format!("mistake  listener       {has}: older")), "{check}");
    // One that chose for itself.
    let other = server.does("listen cubic");
    let pid = server.child.id();
    let has = format!("127.0.0.1:{other} of python3 (pid {pid}) has cubic, not nr_olia");
    let check = host.does(&["check"]);
    assert!(check.contains(&format!("note     listener       {has}\n")), "{check}");
    let status = host.does(&["status"]);
    assert!(status.contains(&format!("\n  listener {has}\n")), "{status}");
    drop(server);
    host.does(&["unload"]);
}

#[test]
fn listeners_of_a_cgroup_are_moved_and_their_plain_tcp_is_not() {
    let Some(host) = host("listeners of a cgroup") else { return };
    let cgroup = host.cgroup("older");
    let folder = cgroup.folder.as_str();
    host.sh(&format!("mkdir {folder}/below"));
    let mut elsewhere = Server::new(&host, "");
    let elsewhere_port = elsewhere.does("listen");
    let mut inside = Server::new(&host, &format!("echo $$ > {folder}/below/cgroup.procs;"));
    let port = inside.does("listen");
    let mut later = Server::new(&host, "");
    let later_port = later.does("listen");
    let pid = later.child.id();
    host.sh(&format!("echo {pid} > {folder}/cgroup.procs"));

    host.does(&["load", "olia"]);
    let output = host.does(&["use", "olia", "--cgroup", folder, "--mptcp-only"]);
    let used = format!("nr_olia: used in {folder} for new MPTCP connections\n");
    let moved = "moved 1 older MPTCP listener\n";
    let kept = format!(
        "not moved: listener 127.0.0.1:{later_port} of python3 (pid {pid}) keeps reno: made \
         outside of the cgroup; restart the program\n"
    );
    assert_eq!(output, format!("{used}{moved}{kept}"));
    inside.does("connect");
    join(&host, &mut inside);
    assert_eq!(controls(&host, &port), ["nr_olia", "nr_olia"]);
    no_join(&host);
    // A client without MPTCP.
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; ss -tinH state established");
    let all = host.sh(&format!("{connect} sport = :{port} | grep -c reno"));
    assert_eq!(all.trim(), "1", "plain TCP has the default");
    elsewhere.does("connect");
    assert_eq!(controls(&host, &elsewhere_port), ["reno"]);

    // Not for MPTCP alone, the other one can be moved, too.
    let output = host.does(&["use", "olia", "--cgroup", folder]);
    assert_eq!(output, format!("nr_olia: used in {folder} for new connections\n{moved}"));
    later.does("connect");
    join(&host, &mut later);
    assert_eq!(controls(&host, &later_port), ["nr_olia", "nr_olia"]);
    no_join(&host);
    let output = host.does(&["unuse", "--cgroup", folder]);
    assert!(output.contains("\nmoved 2 older MPTCP listeners\n"), "{output}");
    drop((inside, later, elsewhere));
    host.does(&["unload"]);
}
