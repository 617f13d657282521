//! What user space reads is what is there: connections over two paths, watched and judged.

use narrows_kernel::control::Registered;
use narrows_laws::Control;
use narrows_mptcp_admin::check::{Item, Verdict, check};
use narrows_mptcp_admin::status::{Connection, Status};
use narrows_netns::Namespace;
use nix::fcntl::{Flock, FlockArg};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Paths' rates, Mbit/s.
const RATES: [u32; 2] = [10, 20];
/// Routed to over every path.
const SERVER: [u8; 4] = [10, 77, 255, 1];
const PORT: u16 = 5001;

/// Two hosts, each a network namespace, and two paths between them: 10.77.N.1 on device cN of the
/// client, 10.77.N.2 on sN of the server. Removed when dropped.
struct Net {
    client: Namespace,
    server: Namespace,
    /// Controls have global names: one test at a time, also of other processes.
    _alone: Flock<File>,
}

impl Net {
    /// None, and a word on the terminal, where this process cannot load BPF programs or make hosts.
    fn new(test: &str) -> Option<Net> {
        if let Err(reason) = narrows_kernel::available() {
            println!("{test}: skipped, {reason}");
            return None;
        }
        if !fs::exists("/proc/sys/net/mptcp/enabled").unwrap()
            || Command::new("tc").output().is_err()
        {
            println!("{test}: skipped, no MPTCP in this kernel, or no tc");
            return None;
        }
        let file = File::create("/run/narrows-test.lock").expect("/run is root's");
        let alone = Flock::lock(file, FlockArg::LockExclusive).expect("flock");
        let name = |host| format!("nr-inspect{}-{host}", std::process::id());
        let (c, s) = (name("c"), name("s"));
        let mut script = format!("ip netns add {c}\nip netns add {s}\n");
        script += &format!("ip -n {s} address add 10.77.255.1/32 dev lo\n");
        for host in [&c, &s] {
            script += &format!("ip -n {host} link set lo up\n");
            script += &format!("ip -n {host} mptcp limits set subflows 4 add_addr_accepted 0\n");
        }
        for (n, rate) in (1..).zip(RATES) {
            script += &format!("ip -n {c} link add c{n} type veth peer name s{n} netns {s}\n");
            for (host, device, last) in [(&c, 'c', 1), (&s, 's', 2)] {
                script +=
                    &format!("ip -n {host} address add 10.77.{n}.{last}/24 dev {device}{n}\n");
                script += &format!("ip -n {host} link set {device}{n} up\n");
            }
            script += &format!("ip -n {c} route add default via 10.77.{n}.2 metric {n}\n");
            script += &format!("ip -n {c} route add default via 10.77.{n}.2 table {}\n", 100 + n);
            script += &format!("ip -n {c} rule add from 10.77.{n}.1 table {}\n", 100 + n);
            script += &format!(
                "tc -n {c} qdisc add dev c{n} root tbf rate {rate}mbit burst 20kb latency 50ms\n"
            );
        }
        script += &format!("ip -n {c} mptcp endpoint add 10.77.2.1 subflow");
        script.lines().for_each(run);
        let named = |name: &str| Namespace::named(name).expect("just made");
        Some(Net { client: named(&c), server: named(&s), _alone: alone })
    }

    fn set_default(&self, control: &str) {
        for host in [&self.client, &self.server] {
            sysctl(host, "net/ipv4/tcp_congestion_control", control);
        }
    }

    /// A connection that sends as much as it can.
    fn send(&self, port: u16, listen: Protocol, connect: Protocol) -> Sending {
        let address = SocketAddr::from((SERVER, port));
        let socket =
            |protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).expect("a socket");
        let listener = self.server.run(|| {
            let socket = socket(listen);
            socket.set_reuse_address(true).unwrap();
            socket.bind(&address.into()).unwrap();
            socket.listen(8).unwrap();
            TcpListener::from(socket)
        });
        let listener = listener.unwrap();
        let stream = self.client.run(|| {
            let socket = socket(connect);
            socket.connect(&address.into()).unwrap();
            TcpStream::from(socket)
        });
        let stream = stream.unwrap();
        let mut accepted = listener.accept().unwrap().0;
        let mut sender = stream.try_clone().unwrap();
        let threads = [
            std::thread::spawn(move || while sender.write(&[0; 65536]).is_ok() {}),
            std::thread::spawn(
                move || while accepted.read(&mut [0; 65536]).is_ok_and(|n| n > 0) {},
            ),
        ];
        Sending { stream, threads, _listener: listener }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in [&self.client, &self.server] {
            Command::new("ip").args(["netns", "del", &host.name]).status().ok();
        }
    }
}

struct Sending {
    stream: TcpStream,
    threads: [JoinHandle<()>; 2],
    _listener: TcpListener,
}

impl Sending {
    fn stop(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn run(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let status = Command::new(words[0]).args(&words[1..]).status();
    assert!(status.is_ok_and(|status| status.success()), "{line}");
}

/// `ip`, in a host.
fn ip(host: &Namespace, line: &str) {
    run(&format!("ip -n {} {line}", host.name));
}

fn sysctl(host: &Namespace, path: &str, value: &str) {
    host.run(|| fs::write(format!("/proc/sys/{path}"), value)).unwrap().unwrap();
}

/// Polls until it is so, or panics with what is told last.
fn wait_until(mut state: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(state) = state() {
        assert!(Instant::now() < deadline, "still: {state}");
        sleep(Duration::from_millis(20));
    }
}

/// The connections of a host as status tells them.
fn connections(status: &Status, host: &Namespace) -> Vec<Connection> {
    let of = |one: &&narrows_mptcp_admin::status::Namespace| one.inum == host.inum;
    status.namespaces.iter().find(of).map(|found| found.connections.clone()).unwrap_or_default()
}

/// Looks until a host's connections have so many subflows, then twice, half a second apart.
fn watch(host: &Namespace, subflows: usize) -> (Status, Vec<Connection>) {
    let count = |status: &Status| {
        connections(status, host).iter().map(|one| one.subflows.len()).sum::<usize>()
    };
    wait_until(|| match count(&Status::look()) {
        n if n == subflows => Ok(()),
        n => Err(format!("{n} subflows of {subflows}")),
    });
    // Past slow start.
    sleep(Duration::from_secs(1));
    let first = Status::look();
    sleep(Duration::from_millis(500));
    let status = first.again();
    let connections = connections(&status, host);
    (status, connections)
}

#[test]
fn a_transfer_over_two_paths_is_shown_as_one_connection_with_its_throughput() {
    let Some(net) = Net::new("status of MPTCP without our control") else { return };
    net.set_default("reno");
    let sending = net.send(PORT, Protocol::MPTCP, Protocol::MPTCP);
    let (status, seen) = watch(&net.client, 2);
    assert_eq!(seen.len(), 1, "{}", status.text(None));
    assert!(seen[0].token.is_some() && seen[0].law.is_none() && !seen[0].fell_back);
    let mbits = seen[0].sent_bytes_per_s.unwrap() as f64 * 8e-6;
    assert!((10.0..31.0).contains(&mbits), "{mbits} Mbit/s of 30");
    for (n, subflow) in (1..).zip(&seen[0].subflows) {
        assert_eq!(subflow.local.ip().to_string(), format!("10.77.{n}.1"));
        assert_eq!(subflow.remote, (SERVER, PORT).into());
        assert_eq!(subflow.interface.as_deref(), Some(format!("c{n}").as_str()));
        assert_eq!(subflow.control, "reno");
        assert!(subflow.cwnd_packets > 1 && subflow.srtt_us > 0);
        assert_eq!(subflow.careful, Some(false));
        assert!(subflow.bytes_acked > 100_000, "{subflow:?}");
    }
    // The other side receives what this one sends.
    let there = connections(&status, &net.server);
    assert_eq!(there.len(), 1);
    let received = there[0].received_bytes_per_s.unwrap() as f64 * 8e-6;
    assert!((received / mbits - 1.0).abs() < 0.3, "{received} of {mbits} Mbit/s");
    sending.stop();
}

#[test]
fn under_our_control_subflows_stand_with_their_paths_and_masks() {
    let Some(net) = Net::new("status of our control") else { return };
    let law = Registered::register(Control::LIA).unwrap();
    net.set_default(law.name());
    let sending = [
        net.send(PORT, Protocol::MPTCP, Protocol::MPTCP),
        net.send(PORT + 1, Protocol::TCP, Protocol::TCP),
        net.send(PORT + 2, Protocol::TCP, Protocol::MPTCP),
    ];
    let (status, seen) = watch(&net.client, 4);

    let text = status.text(None);
    let control = status.controls.iter().find(|one| one.kernel_name == law.name()).unwrap();
    assert!(control.registered && !control.pinned, "{text}");
    let verified = law.verified_insns().unwrap();
    assert_eq!(control.programs.len(), verified.len());
    assert_eq!(control.verified_insns(), verified.iter().map(|program| program.1).sum());
    let default: Vec<u32> = control.default_in.iter().map(|default| default.inum).collect();
    for host in [&net.client, &net.server] {
        assert!(default.contains(&host.inum), "{text}");
    }
    assert!(control.counters["joins"] >= 6, "{text}");
    assert_eq!(control.problems().count(), 0, "{text}");

    let coupled: Vec<_> = seen.iter().filter(|one| one.subflows.len() == 2).collect();
    assert_eq!(coupled.len(), 1, "{text}");
    assert_eq!(coupled[0].law.as_deref(), Some("lia"));
    for (n, subflow) in coupled[0].subflows.iter().enumerate() {
        assert_eq!((subflow.path, subflow.coupling_mask), (Some(n as u8), Some(0b11)), "{text}");
        assert_eq!(subflow.path_state, Some("active"));
    }
    let (tcp, mptcp): (Vec<_>, Vec<_>) =
        seen.iter().filter(|one| one.subflows.len() == 1).partition(|one| one.token.is_none());
    assert_eq!((tcp.len(), mptcp.len()), (1, 1), "{text}");
    assert!(mptcp[0].fell_back && !tcp[0].fell_back);
    for one in [tcp[0], mptcp[0]] {
        assert_eq!(one.law.as_deref(), Some("lia"));
        assert_eq!(one.subflows[0].coupling_mask, Some(1), "{text}");
    }
    sending.into_iter().for_each(Sending::stop);
    net.set_default("reno");
}

/// What check finds of one kind in a host.
fn find(host: &Namespace, what: &str) -> Vec<Item> {
    let network = check(host).unwrap().network;
    network.into_iter().filter(|item| item.what == what).collect()
}

fn mistakes(host: &Namespace) -> Vec<Item> {
    let network = check(host).unwrap().network;
    network.into_iter().filter(|item| item.verdict == Verdict::Mistake).collect()
}

/// Types what an item says.
fn follow(item: &Item) {
    item.fix.iter().for_each(|line| run(line));
}

#[test]
fn what_check_says_to_type_repairs_the_mistake() {
    let Some(net) = Net::new("check of MPTCP") else { return };
    let client = &net.client;
    assert_eq!(mistakes(client), [], "as the network is made");

    sysctl(client, "net/mptcp/enabled", "0");
    let items = find(client, "MPTCP");
    assert_eq!(items[0].verdict, Verdict::Missing);
    follow(&items[0]);
    assert_eq!(find(client, "MPTCP")[0].verdict, Verdict::Ok);

    ip(client, "mptcp limits set subflows 0");
    follow(&find(client, "limits")[0]);
    assert_eq!(find(client, "limits")[0].verdict, Verdict::Ok);

    ip(client, "mptcp endpoint flush");
    let items = find(client, "endpoints");
    assert_eq!(items[0].verdict, Verdict::Mistake);
    follow(&items[0]);
    let items = find(client, "endpoint");
    assert!(items[0].seen.starts_with("10.77.2.1 on c2"), "{items:?}");

    // The default route leaves by the first path: so would the second one's packets.
    ip(client, "rule del from 10.77.2.1");
    ip(client, "mptcp endpoint flush");
    ip(client, "mptcp endpoint add 10.77.2.1 subflow");
    let items = find(client, "source route");
    assert!(items[0].seen.contains("leave by c1"), "{items:?}");
    assert!(items[0].fix[0].contains(" via 10.77.2.2 dev c2 "), "{items:?}");
    follow(&items[0]);
    assert_eq!(find(client, "source route"), []);
    assert_eq!(mistakes(client), []);
}

#[test]
fn check_tells_of_connections_that_fell_back_or_have_one_subflow() {
    let Some(net) = Net::new("check of connections") else { return };
    let client = &net.client;
    let fallen = net.send(PORT, Protocol::TCP, Protocol::MPTCP);
    let items = find(client, "fallback");
    assert_eq!(items.len(), 2, "{items:?}");
    assert!(items[0].seen.contains("MPCapableFallbackSYNACK"), "{items:?}");
    assert!(items[1].seen.contains(&SocketAddr::from((SERVER, PORT)).to_string()), "{items:?}");
    let listeners = find(&net.server, "listeners");
    assert!(listeners[0].seen.ends_with(&PORT.to_string()), "{listeners:?}");

    ip(client, "mptcp endpoint flush");
    let alone = net.send(PORT + 1, Protocol::MPTCP, Protocol::MPTCP);
    wait_until(|| match find(client, "subflows").first() {
        Some(item) if item.seen.starts_with("1 of 1 connection with one") => Ok(()),
        item => Err(format!("{item:?}")),
    });
    fallen.stop();
    alone.stop();
}
