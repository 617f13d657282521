//! Two hosts, each a network namespace, and paths between them.
//!
//! Path n, from 1 on, is a pair of veth devices, c1 and s1, with 10.77.1.1 and fd77:1::1 on the
//! client's side and .2, ::2 on the server's. The server is 10.77.255.1 and fd77:ffff::1, whatever
//! path one takes: the client's rules route by source. The first path is the one a connection
//! begins on; the others are MPTCP endpoints.

use crate::wait_until;
use narrows_netns::{Namespace, set_sysctl};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Deref;
use std::process::{Command, Stdio};

/// What the names of namespaces begin with.
const PREFIX: &str = "nr-test-";

/// The server's addresses.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 255, 1));
/// Likewise.
pub const SERVER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0xffff, 0, 0, 0, 0, 0, 1));

/// No limit on a path's rate.
pub const UNLIMITED: u32 = 0;

/// The client's address on path `n`.
pub fn client(n: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, n as u8, 1))
}

/// A network namespace that this process made: `nr-test-PID-NAME`. Removed when dropped, or after the
/// process' death by the next [`sweep`].
pub struct Host(Namespace);

impl Host {
    /// A new one, with its loopback up.
    pub fn new(name: &str) -> Host {
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        run("ip", &["netns", "add", &name]);
        let host = Host(Namespace::named(&name).expect("just made"));
        ip(&host, "link set lo up");
        host
    }
}

impl Deref for Host {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.0
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", self.name.raw()]).output().ok();
    }
}

/// Both hosts. Dropped: every socket must be gone from them.
pub struct Net {
    /// The one that connects.
    pub client: Host,
    /// The one that listens.
    pub server: Host,
    /// How many paths there are between them.
    pub paths: usize,
}

impl Net {
    /// A path for each rate, Mbit/s in either direction.
    pub fn new(rates: &[u32]) -> Net {
        Net::over(rates, false)
    }

    /// Likewise, and the endpoints are IPv6 addresses.
    pub fn v6(rates: &[u32]) -> Net {
        Net::over(rates, true)
    }

    fn over(rates: &[u32], v6: bool) -> Net {
        sweep();
        let hosts = ["client", "server"].map(Host::new);
        let [client, server] = hosts.each_ref().map(|host| host.name.raw());
        let (mut c, mut c6) = (String::new(), String::new());
        let mut s = format!("addr add {SERVER}/32 dev lo\naddr add {SERVER6}/128 dev lo nodad\n");
        let (mut c_tc, mut s_tc) = (String::new(), String::new());
        for (n, &rate) in (1..).zip(rates) {
            writeln!(c, "link add c{n} type veth peer name s{n} netns {server}").unwrap();
            for (text, host, device) in [(&mut c, 1, 'c'), (&mut s, 2, 's')] {
                writeln!(text, "addr add 10.77.{n}.{host}/24 dev {device}{n}").unwrap();
                writeln!(text, "addr add fd77:{n}::{host}/64 dev {device}{n} nodad").unwrap();
                writeln!(text, "link set {device}{n} up").unwrap();
            }
            let table = 100 + n;
            for (text, of) in [(&mut c, "10.77."), (&mut c6, "fd77:")] {
                let dots = if of == "fd77:" { "::" } else { "." };
                let route = format!("route add default via {of}{n}{dots}2 dev c{n}");
                writeln!(text, "rule add from {of}{n}{dots}1 table {table}").unwrap();
                writeln!(text, "{route} table {table}\n{route} metric {n}").unwrap();
            }
            if n > 1 {
                let address = if v6 { format!("fd77:{n}::1") } else { format!("10.77.{n}.1") };
                writeln!(c, "mptcp endpoint add {address} id {n} subflow").unwrap();
            }
            for (text, device) in [(&mut c_tc, 'c'), (&mut s_tc, 's')] {
                if rate != UNLIMITED {
                    let tbf = format!("rate {rate}mbit burst 20kb latency 50ms");
                    writeln!(text, "qdisc add dev {device}{n} root tbf {tbf}").unwrap();
                }
            }
        }
        let limits = format!("mptcp limits set subflows {0} add_addr_accepted 0\n", MAX_EXTRA);
        c += &limits;
        s += &limits;
        // The links are the client's to make, so it comes first.
        batch(&["ip", "-n", client], &c);
        batch(&["ip", "-6", "-n", client], &c6);
        batch(&["ip", "-n", server], &s);
        batch(&["tc", "-n", client], &c_tc);
        batch(&["tc", "-n", server], &s_tc);
        for host in &hosts {
            // A minute after a kill -9 is too long for a test.
            sysctl(host, "net/mptcp/close_timeout", "2").ok();
            sysctl(host, "net/ipv4/tcp_fin_timeout", "2").unwrap();
            sysctl(host, "net/ipv4/conf/all/rp_filter", "0").unwrap();
        }
        let [client, server] = hosts;
        Net { client, server, paths: rates.len() }
    }

    /// Where the server listens.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(SERVER, port)
    }

    /// The congestion control of both hosts.
    pub fn set_default(&self, control: &str) {
        for host in [&self.client, &self.server] {
            sysctl(host, "net/ipv4/tcp_congestion_control", control).unwrap_or_else(|error| {
                panic!("{control} as default in {}: {error}", host.name);
            });
        }
    }

    /// Waits until all sockets are closed, but those that wait for stray packets to die out, and
    /// `others`, which says what else is left, finds nothing.
    pub fn drained(&self, others: impl Fn() -> usize) {
        // Retransmission timers of what a killed process left may be long after a silence.
        wait_until(75, || {
            let sockets: usize = [&self.client, &self.server].map(|host| inuse(host)).iter().sum();
            let others = others();
            if sockets + others == 0 {
                return Ok(());
            }
            let left = [&self.client, &self.server].map(|host| all_sockets(host)).concat();
            Err(format!("{sockets} sockets, {others} others: {left}"))
        });
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drained(|| 0);
        }
    }
}

/// Subflows beside the first that Linux can do.
pub const MAX_EXTRA: usize = 8;

/// Removes what test processes left behind that were killed.
pub fn sweep() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some((pid, _)) = pid else { continue };
        if pid.parse::<u32>().is_ok() && fs::metadata(format!("/proc/{pid}")).is_err() {
            run("ip", &["netns", "del", &name]);
        }
    }
}

/// Runs a command and returns what it prints; panics if it fails.
pub fn run(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {}: {error}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `ip`, in a host.
pub fn ip(host: &Namespace, arguments: &str) -> String {
    let arguments: Vec<&str> =
        ["-n", host.name.raw()].into_iter().chain(arguments.split(' ')).collect();
    run("ip", &arguments)
}

/// A veth pair, each end in a host and with a name.
pub fn veth((left, name): (&Namespace, &str), (right, peer): (&Namespace, &str)) {
    ip(left, &format!("link add {name} type veth peer name {peer} netns {}", right.name));
}

/// A command in a host, to be spawned. It dies with this process.
pub fn command(host: &Namespace, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    // `ip netns exec` and setpriv become the program, so the child's id is the program's.
    command.args(["--pdeathsig", "KILL", "ip", "netns", "exec", host.name.raw()]).arg(program);
    command
}

/// Writes a sysctl, by its path below /proc/sys, in a host.
pub fn sysctl(host: &Namespace, path: &str, value: &str) -> std::io::Result<()> {
    host.run(|| set_sysctl(path, value))?
}

/// Lines of a script for `ip` or `tc`, in one process.
fn batch(command: &[&str], script: &str) {
    pipe(Command::new(command[0]).args(&command[1..]).args(["-batch", "-"]), script);
}

/// Runs a command that reads `input`.
pub fn pipe(command: &mut Command, input: &str) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}\n{input}");
}

/// A line of `ss`.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's address.
    pub remote: SocketAddr,
    words: Vec<String>,
}

impl Socket {
    /// Is it a subflow of MPTCP?
    pub fn is_mptcp(&self) -> bool {
        self.words.iter().any(|word| word == "tcp-ulp-mptcp")
    }

    /// A number that `ss` shows, such as `cwnd:10`.
    pub fn number(&self, name: &str) -> Option<f64> {
        let shown = |word: &String| {
            word.strip_prefix(name)?.strip_prefix(':')?.split('/').next()?.parse().ok()
        };
        self.words.iter().find_map(shown)
    }

    /// Is this its congestion control?
    pub fn runs(&self, control: &str) -> bool {
        self.words.iter().any(|word| word == control)
    }
}

/// The established TCP sockets of a host, as `ss` shows them.
pub fn sockets(host: &Namespace) -> Vec<Socket> {
    let text = run("ss", &["-N", host.name.raw(), "-tinOH", "state", "established"]);
    // An IPv6 socket that talks to an IPv4 peer has its addresses mapped.
    let address = |word: &str| {
        let address: SocketAddr = word.parse().ok()?;
        Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
    };
    let parse = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        Some(Socket {
            local: address(words.next()?)?,
            remote: address(words.next()?)?,
            words: words.map(str::to_owned).collect(),
        })
    };
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("ss says: {line}"))).collect()
}

/// For a failure's message.
fn all_sockets(host: &Namespace) -> String {
    run("ss", &["-N", host.name.raw(), "-tinOHaoe"])
}

/// Sockets in use, from /proc/net/sockstat: all but those in TIME_WAIT, orphans included.
fn inuse(host: &Namespace) -> usize {
    let read = |path: &str| fs::read_to_string(format!("/proc/thread-self/net/{path}"));
    let text = host.run(|| read("sockstat").unwrap() + &read("sockstat6").unwrap()).unwrap();
    let number = |line: &str| line.split_once("inuse ")?.1.split(' ').next()?.parse::<usize>().ok();
    let lines = text.lines().filter(|line| line.starts_with("TCP"));
    lines.map(|line| number(line).unwrap_or_else(|| panic!("sockstat: {line}"))).sum()
}
