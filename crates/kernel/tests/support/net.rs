//! Two hosts, each a network namespace, and paths between them.
//!
//! Path n, from 1 on, is a pair of veth devices, c1 and s1, with 10.77.1.1 and fd77:1::1 on the
//! client's side and .2, ::2 on the server's. The server is 10.77.255.1 and fd77:ffff::1, whatever
//! path one takes: the client's rules route by source. The first path is the one a connection
//! begins on; the others are MPTCP endpoints.

use super::law;
use super::wait_until;
use narrows_netns::Namespace;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};

/// `nr-PID-client`: its process removes it, or after its death the next sweep().
const PREFIX: &str = "nr-";

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

/// Both hosts. Dropped: every socket must be gone from them and every entry from the map.
pub struct Net {
    pub client: Namespace,
    pub server: Namespace,
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
        let made = Names::new();
        let Names { client, server } = &made;
        run("ip", &["netns", "add", client]);
        run("ip", &["netns", "add", server]);
        let (mut c, mut c6) = (String::from("link set lo up\n"), String::new());
        let mut s = format!(
            "link set lo up\naddr add {SERVER}/32 dev lo\naddr add {SERVER6}/128 dev lo nodad\n"
        );
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
        let named = |name: &str| Namespace::named(name).expect("just made");
        let net = Net { client: named(client), server: named(server), paths: rates.len() };
        std::mem::forget(made);
        for host in [&net.client, &net.server] {
            // A minute after a kill -9 is too long for a test.
            sysctl(host, "net/mptcp/close_timeout", "2").ok();
            sysctl(host, "net/ipv4/tcp_fin_timeout", "2").unwrap();
            sysctl(host, "net/ipv4/conf/all/rp_filter", "0").unwrap();
        }
        net
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

    /// Sockets that hold memory, but those that listen or wait for stray packets to die out.
    fn sockets(&self) -> usize {
        [&self.client, &self.server].map(inuse).iter().sum()
    }

    /// Waits until all that was opened is closed: sockets, and entries of the map.
    pub fn drained(&self) {
        // Retransmission timers of what a killed process left may be long after a silence.
        wait_until(75, || {
            let (sockets, entries) = (self.sockets(), law::entries(self).len());
            if sockets + entries == 0 {
                return Ok(());
            }
            let left = [&self.client, &self.server].map(all_sockets).concat();
            Err(format!("{sockets} sockets, {entries} entries: {left}"))
        });
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let names = Names { client: self.client.name.clone(), server: self.server.name.clone() };
        if !std::thread::panicking() {
            self.drained();
        }
        drop(names);
    }
}

/// Subflows beside the first that Linux can do.
pub const MAX_EXTRA: usize = 8;

/// Names of namespaces, removed when dropped.
struct Names {
    client: String,
    server: String,
}

impl Names {
    fn new() -> Names {
        let name = |host| format!("{PREFIX}{}-{host}", std::process::id());
        Names { client: name("client"), server: name("server") }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            // Half made: perhaps not there.
            Command::new("ip").args(["netns", "del", name]).output().ok();
        }
    }
}

/// Removes what test processes left behind that were killed.
pub fn sweep() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some((pid, "client" | "server")) = pid else { continue };
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
    let arguments: Vec<&str> = ["-n", &host.name].into_iter().chain(arguments.split(' ')).collect();
    run("ip", &arguments)
}

/// A command in a host, to be spawned. It dies with this process.
pub fn command(host: &Namespace, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    // `ip netns exec` and setpriv become the program, so the child's id is the program's.
    command.args(["--pdeathsig", "KILL", "ip", "netns", "exec", &host.name]).arg(program);
    command
}

/// Writes a sysctl, by its path below /proc/sys, in a host.
pub fn sysctl(host: &Namespace, path: &str, value: &str) -> std::io::Result<()> {
    host.run(|| fs::write(format!("/proc/sys/{path}"), value))?
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
    pub local: SocketAddr,
    pub remote: SocketAddr,
    words: Vec<String>,
}

impl Socket {
    /// Is it a subflow of MPTCP?
    pub fn is_mptcp(&self) -> bool {
        self.words.iter().any(|word| word == "tcp-ulp-mptcp")
    }

    /// Is this its congestion control?
    pub fn runs(&self, control: &str) -> bool {
        self.words.iter().any(|word| word == control)
    }
}

/// The established TCP sockets of a host, as `ss` tells them.
pub fn sockets(host: &Namespace) -> Vec<Socket> {
    let text = run("ss", &["-N", &host.name, "-tinOH", "state", "established"]);
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
    run("ss", &["-N", &host.name, "-tinOHaoe"])
}

/// Sockets in use, from /proc/net/sockstat: all but those in TIME_WAIT, orphans included.
fn inuse(host: &Namespace) -> usize {
    let read = |path: &str| fs::read_to_string(format!("/proc/thread-self/net/{path}"));
    let text = host.run(|| read("sockstat").unwrap() + &read("sockstat6").unwrap()).unwrap();
    let number = |line: &str| line.split_once("inuse ")?.1.split(' ').next()?.parse::<usize>().ok();
    let lines = text.lines().filter(|line| line.starts_with("TCP"));
    lines.map(|line| number(line).unwrap_or_else(|| panic!("sockstat: {line}"))).sum()
}
