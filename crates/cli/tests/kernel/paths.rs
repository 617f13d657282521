//! A client with two paths to a server, and traffic over them.

use super::host::Host;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

/// A client reaches a server through a router: its two devices go to two addresses of the server, by
/// one link of the router or by one each. `$links` has the rates, kbit/s, of one or two; the names of
/// the hosts begin with `$p`, and `$client` is `ip` at the client.
const NETWORK: &str = "
    router=${p}router; server=${p}server
    for n in $router $server; do ip netns add $n; ip -n $n link set lo up; done
    ip netns exec $router sysctl -qw net.ipv4.ip_forward=1
    ip netns exec $server sysctl -qw net.ipv4.conf.all.rp_filter=0
    for n in 1 2; do
        $client link add v$n type veth peer name v$n netns $router
        $client addr add 10.88.$n.1/24 dev v$n; $client link set v$n up
        ip -n $router addr add 10.88.$n.2/24 dev v$n; ip -n $router link set v$n up
    done
    l=0
    for rate in $links; do
        l=$((l + 1))
        ip -n $router link add l$l type veth peer name l$l netns $server
        ip -n $router addr add 10.99.$l.1/24 dev l$l; ip -n $router link set l$l up
        ip -n $server addr add 10.99.$l.2/24 dev l$l; ip -n $server link set l$l up
        tc -n $router qdisc add dev l$l root tbf rate ${rate}kbit burst 3kb limit 60kb
    done
    if [ $l = 1 ]; then ip -n $server addr add 10.99.1.3/24 dev l1; second=10.99.1.3
    else second=10.99.2.2; fi
    $client route add 10.99.1.2 via 10.88.1.2; $client route add $second via 10.88.2.2
    ip -n $server route add 10.88.1.0/24 via 10.99.1.1
    ip -n $server route add 10.88.2.0/24 via 10.99.$l.1
    $client mptcp limits set subflows 2 add_addr_accepted 2
    ip -n $server mptcp limits set subflows 2 add_addr_accepted 2
    ip -n $server mptcp endpoint add $second id 2 signal";

/// Sends to a server, by MPTCP or TCP, as much as fits.
/// A namespace may not have every control as its default, but a socket of root's may; without a name
/// it has the default.
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
    a = open(kind)
    if control: a.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    try:
        a.connect((target, 5000))
        while True: a.sendall(bytes(1 << 16))
    except OSError: pass # the server has ended
for target in targets: threading.Thread(target=send, args=[target], daemon=True).start()
print('ready', flush=True); sys.stdin.read()";

/// A process of the host, ended with the test.
pub struct Process {
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

    /// `narrows kernel watch`.
    pub fn watch(host: &Host, args: &[&str]) -> Process {
        let words = [&[env!("CARGO_BIN_EXE_narrows"), "kernel", "watch"], args].concat();
        Process::start(host, &words)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lines until one is `wanted`; what that returns.
    pub fn until<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> T {
        for _ in 0..90 {
            let line = self.line();
            assert!(!line.is_empty(), "it ended");
            if let Some(found) = wanted(&line) {
                return found;
            }
        }
        panic!("not in 90 lines");
    }

    /// All that it still says, when it has ended.
    pub fn rest(mut self) -> String {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        said
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

/// A client, a router and a server.
pub struct Paths<'a> {
    host: &'a Host,
    prefix: &'static str,
}

impl Paths<'_> {
    /// With links of these rates, kbit/s, namespaces whose names begin with `prefix`. Without one the
    /// client is the host itself.
    pub fn new<'a>(host: &'a Host, prefix: &'static str, links: &str) -> Paths<'a> {
        let client = match prefix {
            "" => "ip".to_owned(),
            _ => {
                host.sh(&format!(
                    "ip netns add {prefix}client; ip -n {prefix}client link set lo up"
                ));
                format!("ip -n {prefix}client")
            }
        };
        host.sh(&format!("p='{prefix}'; client='{client}'; links='{links}'\n{NETWORK}"));
        Paths { host, prefix }
    }

    /// The server, which reads all that comes.
    pub fn serve(&self, kind: &str) -> Process {
        self.traffic(&self.enter("server"), kind, "", &[])
    }

    /// The client sends to these addresses, under a control.
    pub fn send(&self, kind: &str, control: &str, to: &[&str]) -> Process {
        let enter = if self.prefix.is_empty() { Vec::new() } else { self.enter("client") };
        self.traffic(&enter, kind, control, to)
    }

    /// The same from a cgroup, where the client is this host.
    pub fn send_in(&self, cgroup: &str, kind: &str, control: &str, to: &[&str]) -> Process {
        let enter = ["sh", "-c", "echo $$ > $0/cgroup.procs; exec \"$@\"", cgroup];
        self.traffic(&enter.map(str::to_owned), kind, control, to)
    }

    fn enter(&self, name: &str) -> Vec<String> {
        let namespace = format!("{}{name}", self.prefix);
        ["ip", "netns", "exec", &namespace].map(str::to_owned).to_vec()
    }

    fn traffic(&self, enter: &[String], kind: &str, control: &str, to: &[&str]) -> Process {
        let mut words: Vec<&str> = enter.iter().map(String::as_str).collect();
        words.extend(["python3", "-c", TRAFFIC, kind, control]);
        words.extend(to);
        let mut process = Process::start(self.host, &words);
        assert_eq!(process.line(), "ready");
        process
    }
}
