//! Transfers through network namespaces, in real time. Needs root, ip and tc.
//!
//! A server, a router and a client. The links from the router to the client are the bottlenecks: of
//! 20 Mbit/s with a queue of 40 ms.

mod common;

use common::Served;
use narrows_netns::set_sysctl;
use narrows_testkit::machine::{Turn, root, tools, turn};
use narrows_testkit::net::{Host, ip, run, sweep, veth};
use narrows_transfer::wire::Place;
use narrows_transfer::{Progress, Received};
use std::net::SocketAddr;
use std::sync::Arc;

const MB: usize = 1_000_000;
/// Mbit/s of a link.
const RATE: f64 = 20.0;
const SERVER: &str = "10.78.255.1:4433";

struct Net {
    served: Served,
    client: Host,
    _router: Host,
    /// The server's sockets are in it, until `served` is dropped.
    _server: Arc<Host>,
    _turn: Turn,
}

impl Net {
    /// A client that has the interfaces c1 to c`links`, each with an address, 10.78.1.1 and so on; and a
    /// server of a file of so many bytes. None where there can be no namespaces.
    fn new(test: &str, links: usize, bytes: usize) -> Option<Net> {
        let needs = root().and_then(|()| tools(&["ip", "tc"]));
        let turn = turn(test, needs)?;
        sweep();
        let [client, router, server] = ["client", "router", "server"].map(Host::new);
        veth((&router, "to-s"), (&server, "s"));
        ip(&router, "addr add 10.78.255.2/24 dev to-s");
        ip(&server, "addr add 10.78.255.1/24 dev s");
        // Each packet is one in the queues.
        ip(&server, "link set s gso_max_segs 1");
        ip(&router, "link set to-s up");
        ip(&server, "link set s up");
        ip(&server, "route add default via 10.78.255.2");
        router.run(|| set_sysctl("net/ipv4/ip_forward", "1")).unwrap().unwrap();
        for n in 1..=links {
            let (c, r) = (format!("c{n}"), format!("r{n}"));
            veth((&client, &c), (&router, &r));
            ip(&client, &format!("addr add 10.78.{n}.1/24 dev {c}"));
            ip(&router, &format!("addr add 10.78.{n}.254/24 dev {r}"));
            ip(&client, &format!("link set {c} up"));
            ip(&router, &format!("link set {r} up"));
            // No rules: an interface as a path needs none.
            ip(&client, &format!("route add default via 10.78.{n}.254 dev {c} metric {n}"));
            let queue = format!("tbf rate {RATE}mbit burst 4kb latency 40ms");
            let tc = format!("-n {} qdisc add dev {r} root {queue}", router.name);
            run("tc", &tc.split(' ').collect::<Vec<_>>());
        }
        let server = Arc::new(server);
        let inside = server.clone();
        let listen: SocketAddr = SERVER.parse().unwrap();
        let served = Served::new(bytes, listen, move || enter(&inside));
        Some(Net { served, client, _router: router, _server: server, _turn: turn })
    }

    /// Gets the file over these paths.
    fn get(&self, paths: &[&str], show: impl FnMut(&Progress) + Send) -> Received {
        let request = self.served.request(paths);
        let _ = std::fs::remove_file(&request.output); // of a former attempt
        self.client.run(|| self.served.arrives(&request, show)).unwrap()
    }
}

/// Moves this thread, and those that it starts, into a namespace.
fn enter(host: &Host) {
    let file = std::fs::File::open(format!("/run/netns/{}", host.name)).unwrap();
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}

/// What a machine that is too busy for it does not show at once is tried again.
fn fit(mut attempt: impl FnMut() -> Result<(), String>) {
    for _ in 0..4 {
        match attempt() {
            Ok(()) => return,
            Err(why) => eprintln!("once more: {why}"),
        }
    }
    attempt().unwrap();
}

fn mbit(received: &Received) -> f64 {
    received.progress.rate * 8e-6
}

#[test]
fn two_links_are_added() {
    let Some(net) = Net::new("two_links_are_added", 2, 15 * MB) else { return };
    // One link has 19 Mbit/s without headers.
    fit(|| {
        let both = net.get(&["c1", "c2"], |_| ());
        let least = both.progress.paths.iter().map(|path| path.bytes).min().unwrap();
        match mbit(&both) > 1.4 * RATE && least > 3 * MB as u64 {
            true => Ok(()),
            false => Err(format!("{:.1} Mbit/s: {:?}", mbit(&both), both.progress.paths)),
        }
    });
}

#[test]
fn two_addresses_behind_one_link_are_found_to_share_it() {
    let Some(net) = Net::new("two_addresses_behind_one_link", 1, 30 * MB) else { return };
    ip(&net.client, "addr add 10.78.1.2/24 dev c1");
    fit(|| {
        let received = net.get(&["10.78.1.1", "10.78.1.2"], |_| ());
        assert!(mbit(&received) < RATE, "{:.1} Mbit/s", mbit(&received));
        let reports = received.progress.paths.iter().map(|path| path.report.clone().unwrap());
        let reports: Vec<_> = reports.collect();
        let shared = matches!(reports[0].place, Some(Place::Group(_)))
            && reports[0].place == reports[1].place;
        match shared && reports[0].coupled == [0, 1] {
            true => Ok(()),
            false => Err(format!("{reports:?}")),
        }
    });
}

#[test]
fn a_path_goes_with_its_address_and_comes_back_with_it() {
    let Some(net) = Net::new("a_path_goes_with_its_address", 2, 20 * MB) else { return };
    let mut seen = Vec::new();
    let mut carried = 0;
    net.get(&["c1", "c2"], |now| {
        let second = now.paths.iter().find(|path| path.local == "10.78.2.1".parse().ok());
        let open = second.is_some_and(|path| path.id.is_some());
        if seen.last() != Some(&open) {
            seen.push(open);
        }
        match (seen.len(), now.bytes) {
            (1, at) if at > 4 * MB as u64 => {
                ip(&net.client, "addr del 10.78.2.1/24 dev c2");
            }
            (2, at) if at > 8 * MB as u64 => {
                carried = second.unwrap().bytes;
                ip(&net.client, "addr replace 10.78.2.1/24 dev c2");
                ip(&net.client, "route replace default via 10.78.2.254 dev c2 metric 2");
            }
            (3, _) => assert!(second.unwrap().bytes >= carried),
            _ => {}
        }
        if seen.len() == 3 && second.unwrap().bytes > carried + 2 * MB as u64 {
            seen.push(true);
        }
    });
    assert_eq!(seen[..4], [true, false, true, true], "{seen:?}");
}
