//! What detectors in the kernel sample: round-trip times, or one-way delays by the peer's timestamps.

mod support;

use narrows_kernel::control::Registered;
use narrows_kernel::state::{self, ConnectionPath};
use narrows_kernel::{Delay, Settings, Signal};
use narrows_laws::{Control, Place, flag};
use narrows_mptcp::routes::{has_us_timestamps, set_us_timestamps};
use narrows_netns::Namespace;
use narrows_testkit::net::{self, UNLIMITED, ip, run, sysctl};
use narrows_testkit::transfer::{Kind, Server, Traffic};
use narrows_testkit::wait_until;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, entries};

const PORT: u16 = 7000;
/// Bytes of a job.
const JOB: u64 = 1 << 20;

fn xcorr() -> Control {
    "lia+xcorr".parse().unwrap()
}

fn tc(host: &Namespace, arguments: &str) {
    let arguments: Vec<&str> =
        ["-n", host.name.raw()].into_iter().chain(arguments.split(' ')).collect();
    run("tc", &arguments);
}

/// A queue behind a device: Mbit/s, and at most so many ms.
fn limit(host: &Namespace, device: &str, rate: u32, ms: u32) {
    let tbf = format!("tbf rate {rate}mbit burst 5kb latency {ms}ms");
    tc(host, &format!("qdisc add dev {device} root {tbf}"));
}

/// The devices c1 and c2, or s1 and s2, send through one such queue.
fn share(host: &Namespace, device: char, rate: u32, ms: u32) {
    ip(host, "link add shared type ifb");
    ip(host, "link set shared up");
    limit(host, "shared", rate, ms);
    for n in 1..=2 {
        tc(host, &format!("qdisc add dev {device}{n} clsact"));
        let redirect = "action mirred egress redirect dev shared";
        tc(host, &format!("filter add dev {device}{n} egress u32 match u32 0 0 {redirect}"));
    }
}

/// A connection of two subflows on which the server sends, under a detector that samples `signal`;
/// `with` is given its two paths until the end.
fn connection(net: &Net, signal: Signal, with: impl FnOnce(&dyn Fn() -> [ConnectionPath; 2])) {
    let settings = Settings { signal, ..Settings::default() };
    let law = Registered::with(xcorr(), &settings).unwrap();
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    agree(net, xcorr(), law.name(), 2);
    with(&|| {
        let entry = entries(net).into_iter().find(|entry| entry.netns == net.server.inum);
        entry.expect("it is open").paths.try_into().expect("two paths")
    });
    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    net.set_default("reno");
}

/// Waits until the server's detector samples both paths so.
fn samples(paths: &dyn Fn() -> [ConnectionPath; 2], delay: Delay) {
    wait_until(20, || match paths().map(|path| path.delay) {
        delays if delays == [delay; 2] => Ok(()),
        delays => Err(format!("{delays:?}")),
    });
}

/// Waits until the server's detector finds that both paths share a bottleneck, or do not.
fn finds(net: &Net, shared: bool) {
    wait_until(40, || {
        let entries = entries(net);
        let entry = entries.iter().find(|entry| entry.netns == net.server.inum).expect("open");
        let decision = state::decision(entry.token).unwrap();
        let places = decision.map(|decision| [decision.places[0], decision.places[1]]);
        match places {
            Some([Place::Group(a), Place::Group(b)]) if (a == b) == shared => Ok(()),
            _ => Err(format!("{places:?}")),
        }
    });
}

fn us_timestamps(net: &Net) {
    for host in [&net.client, &net.server] {
        host.run(set_us_timestamps).unwrap().unwrap();
    }
    let towards = |to| net.client.run(|| has_us_timestamps(net::client(1), to, 0));
    assert_eq!(towards(net::SERVER).unwrap().unwrap(), Some(true));
}

/// Other packets, while `work` runs: for each of `ways` so many packets a second from a socket to an address for
/// a random time of 150 to 400 ms, then so many for as long, and so on.
fn beside<T>(ways: Vec<(UdpSocket, &str, [f64; 2])>, work: impl FnOnce() -> T) -> T {
    /// Ends them, also when `work` fails.
    struct Until<'a>(&'a AtomicBool);
    impl Drop for Until<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = &AtomicBool::new(false);
    scope(|scope| {
        for (number, (socket, to, rates)) in (1u64..).zip(ways) {
            let to = to.to_owned();
            scope.spawn(move || {
                let mut random = number;
                while !over.load(Ordering::Relaxed) {
                    random =
                        random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let phase = Duration::from_millis(150 + (random >> 56));
                    for packets_per_s in rates {
                        let (began, mut sent) = (Instant::now(), 0);
                        while began.elapsed() < phase {
                            while f64::from(sent) < packets_per_s * began.elapsed().as_secs_f64() {
                                // What is refused was not expected at the other end.
                                let _ = socket.send_to(&[0; 1472], &to);
                                sent += 1;
                            }
                            sleep(Duration::from_millis(2));
                        }
                    }
                }
            });
        }
        let _until = Until(over);
        work()
    })
}

/// A socket of a host at an address.
fn at(host: &Namespace, address: &str) -> UdpSocket {
    host.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap()
}

/// Round-trip and one-way delays of a path in events of its own, µs, for some seconds.
fn delays(paths: &dyn Fn() -> [ConnectionPath; 2]) -> Vec<(i64, i64)> {
    let (mut all, mut last) = (Vec::new(), 0);
    for _ in 0..1_500 {
        sleep(Duration::from_millis(2));
        let event = paths()[0].event;
        if event.flags & flag::OWD != 0 && event.now_us != last {
            last = event.now_us;
            all.push((i64::from(event.rtt_us), i64::from(event.owd_us)));
        }
    }
    all
}

/// By how much values differ, without a tenth at either end.
fn span(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    let tenth = values.len() / 10;
    values[values.len() - 1 - tenth] - values[tenth]
}

#[test]
fn a_queue_back_is_in_round_trip_times_and_not_in_one_way_delays() {
    let Some(_alone) = Alone::with("a queue back", &[]) else { return };
    let net = Net::new(&[UNLIMITED, UNLIMITED]);
    limit(&net.server, "s1", 12, 20);
    limit(&net.server, "s2", 9, 20);
    share(&net.client, 'c', 10, 200);
    us_timestamps(&net);
    connection(&net, Signal::SenderUs, |paths| {
        samples(paths, Delay::Us);
        // They fill the queue that the acknowledgements of both paths wait in, and let it drain again:
        // 10 Mbit/s are 833 packets a second.
        let back = vec![(at(&net.client, "10.77.1.1"), "10.77.1.2:9", [1050.0, 550.0])];
        let delays = beside(back, || delays(paths));
        assert!(delays.len() > 200, "{}", delays.len());
        let rtt = span(delays.iter().map(|(rtt, _)| *rtt));
        let owd = span(delays.iter().map(|(_, owd)| *owd));
        println!("of {}: round trips {rtt} us, one way {owd} us", delays.len());
        // There at most 20 ms, back some 40 to 100.
        assert!(rtt > 35_000 && owd < 25_000, "{rtt} {owd}");
        let coarse = delays.iter().filter(|(_, owd)| owd % 1000 == delays[0].1 % 1000).count();
        assert!(coarse < delays.len() / 10, "{coarse} of {}: ticks of 1 ms", delays.len());
    });
}

#[test]
fn timestamps_of_1_ms_tell_one_bottleneck_from_two() {
    let Some(_alone) = Alone::with("timestamps of 1 ms", &[]) else { return };
    for shared in [false, true] {
        let net = Net::new(&[UNLIMITED, UNLIMITED]);
        if shared {
            share(&net.server, 's', 15, 50);
        } else {
            limit(&net.server, "s1", 12, 50);
            limit(&net.server, "s2", 9, 50);
        }
        connection(&net, Signal::SenderMs, |paths| {
            samples(paths, Delay::Ms);
            // Two paths that nobody else uses may rise and fall in step for a minute.
            let others = [("10.77.1.2", "10.77.1.1:9"), ("10.77.2.2", "10.77.2.1:9")];
            let others = others.map(|(from, to)| (at(&net.server, from), to, [300.0, 0.0]));
            beside(others.into(), || finds(&net, shared));
        });
    }
}

#[test]
fn without_the_timestamps_that_it_wants_a_detector_samples_round_trip_times() {
    let Some(_alone) = Alone::with("other timestamps", &[]) else { return };
    let net = Net::new(&[12, 9]);
    // Without the route feature.
    connection(&net, Signal::SenderUs, |paths| samples(paths, Delay::NoUs));
    sysctl(&net.client, "net/ipv4/tcp_timestamps", "0").unwrap();
    for signal in [Signal::SenderUs, Signal::SenderMs] {
        connection(&net, signal, |paths| {
            samples(paths, Delay::NoTimestamps);
            let flags = paths().map(|path| path.event.flags & (flag::OWD | flag::NO_DELAY));
            assert_eq!(flags, [0, 0]);
        });
    }
}
