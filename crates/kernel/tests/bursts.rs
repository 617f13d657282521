//! Two thousand connections of two to four subflows come in bursts, and half of them end by the
//! death of their process: every slot is given back, and nothing stays in the map.

mod support;

use narrows_kernel::control::Registered;
use narrows_laws::Control;
use narrows_netns::Namespace;
use narrows_testkit::net::{UNLIMITED, command, ip};
use narrows_testkit::transfer::{Job, Kind, Server, ask, connect, finish, listen};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;
use support::Alone;
use support::law::{Net, counted, counter, detections, mptcp, slots};

const BURST: usize = 50;
const BURSTS: usize = 40;
const FIRST_PORT: u16 = 7000;

/// Which process of a burst is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Killed {
    Nobody,
    Client,
    Server,
}

#[test]
fn of_two_thousand_connections_in_bursts_nothing_stays_behind() {
    let Some(_alone) = Alone::with("2,000 connections in bursts", &[]) else { return };
    bursts(&Registered::register(Control::OLIA).unwrap());
}

#[test]
fn of_two_thousand_connections_in_bursts_a_detector_keeps_nothing() {
    let name = "2,000 connections with a detector in bursts";
    let Some(_alone) = Alone::with(name, &[]) else { return };
    let law = Registered::register("olia+xcorr".parse().unwrap()).unwrap();
    bursts(&law);
    assert_eq!(detections(&law), 0);
}

fn bursts(law: &Registered) {
    let net = Net::new(&[UNLIMITED; 4]);
    net.set_default(law.name());
    let next = AtomicUsize::new(0);
    // One of each pair of bursts for each of two processors.
    scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= BURSTS {
                        break;
                    }
                    let who = [Killed::Nobody, Killed::Client, Killed::Nobody, Killed::Server];
                    burst(&net, n, who[n % 4]);
                }
            });
        }
    });
    net.drained();
    let (begun, joined) = (mptcp(&net.server, "MPCapableACKRX"), mptcp(&net.server, "MPJoinAckRx"));
    println!("  {begun} connections, {joined} more subflows; {}", counted(law));
    assert_eq!(begun, (BURST * BURSTS) as u64);
    // One to three more, as many bursts of each; who is killed may not have got all.
    assert!(joined > 3 * begun / 2, "{joined} more subflows");
    assert!(counter(law, "joins") > 2 * begun);
    assert_eq!(slots(law), 0);
}

fn burst(net: &Net, n: usize, killed: Killed) {
    ip(&net.client, &format!("mptcp limits set subflows {} add_addr_accepted 0", 1 + n % 3));
    let address = net.address(FIRST_PORT + n as u16);
    let mut server = Process::start(&net.server, &format!("server {address}"));
    server.wait_for("ready");
    let mut client = Process::start(&net.client, &format!("client {address}"));
    client.wait_for("working");
    sleep(Duration::from_millis(7 * (n as u64 % 8)));
    match killed {
        Killed::Nobody => {
            client.end();
            server.end();
        }
        Killed::Client => {
            client.kill();
            server.whatever();
        }
        Killed::Server => {
            server.kill();
            client.whatever();
        }
    }
}

/// A process of a burst: this program again, in one of the hosts.
struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
}

const ROLE: &str = "NR_TEST_ROLE";

impl Process {
    fn start(host: &Namespace, role: &str) -> Process {
        let mut child = command(host, std::env::current_exe().unwrap())
            .args(["a_process_of_a_burst", "--exact", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Process { child, out }
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            let read = self.out.read_line(&mut line).unwrap();
            assert!(read > 0, "a process of a burst ended before it was {word}");
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap(); // SIGKILL
        self.child.wait().unwrap();
    }

    /// It does what is left, which must succeed.
    fn end(&mut self) {
        let printed = self.whatever();
        assert!(printed.contains("done, 0 failed"), "a process of a burst: {printed}");
    }

    /// Likewise, and it may have failed. What it said.
    fn whatever(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut printed = String::new();
        self.out.read_to_string(&mut printed).unwrap();
        self.child.wait().unwrap();
        printed
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
#[ignore = "a process of the bursts, not a test"]
fn a_process_of_a_burst() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, address) = role.split_once(' ').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let failed = match role {
        "server" => {
            let server = Server::on(listen(address, Kind::Mptcp).unwrap());
            report("ready");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            server.stop().len()
        }
        _ => client(address),
    };
    report(&format!("done, {failed} failed"));
}

fn report(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// A burst of connections, each of some transfers. How many failed.
fn client(address: SocketAddr) -> usize {
    let working = Barrier::new(BURST + 1);
    let work = |n: u64| {
        let progress = AtomicU64::new(0);
        let stream = connect(address, Kind::Mptcp);
        let job = |k: u64| Job { seed: n << 8 | k, up: 4_000 + n * 999, down: 60_000 };
        let first = stream.as_ref().map(|stream| ask(stream, job(0), &progress));
        let first = matches!(first, Ok(Ok(())));
        sleep(Duration::from_millis(100));
        working.wait();
        let Ok(stream) = stream else { return false };
        let mut rest = (1..4 + n % 8).map(|k| {
            sleep(Duration::from_millis(n * k % 20));
            ask(&stream, job(k), &progress)
        });
        first && rest.all(|done| done.is_ok()) && finish(&stream).is_ok()
    };
    scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..BURST as u64).map(|n| scope.spawn(move || work(n))).collect();
        working.wait();
        report("working");
        workers.into_iter().map(|worker| worker.join().unwrap()).filter(|done| !done).count()
    })
}
