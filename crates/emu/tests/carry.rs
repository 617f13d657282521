//! Packets between hosts: where they arrive, when, and what has become of them.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::{Direction, Error, Quantiles, Route, Tap, Wire};
use narrows_net::{CoDel, Discipline, Limit, LinkConfig, Loss, MILLISECOND, Nanos, Rate, RouteId};
use narrows_testkit::wait_until;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use support::{
    LEFT, RIGHT, alone, counter, left_and_right, network, pair, tcp, two_hosts, udp, v4, v6,
};

/// What a datagram took to the right and back, each time.
fn round_trips(left: &UdpSocket, right: &UdpSocket, times: u32) -> Vec<Duration> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times {
                let (_, from) = right.recv_from(&mut [0; 60]).expect("a datagram");
                right.send_to(&[7; 60], from).unwrap();
            }
        });
        let mut trips = Vec::new();
        for _ in 0..times {
            let began = Instant::now();
            left.send_to(&[7; 60], right.local_addr().unwrap()).unwrap();
            left.recv(&mut [0; 60]).expect("its echo");
            trips.push(began.elapsed());
        }
        trips
    })
}

#[test]
fn a_round_trip_takes_the_delays_of_the_links() {
    const DELAY: Nanos = 10 * MILLISECOND;
    const DELAYS: Duration = Duration::from_nanos(2 * DELAY);
    // What two hosts and the wire may take to wake up.
    const AWAKE: Duration = Duration::from_millis(2);
    let Some(_alone) = alone("a_round_trip_takes_the_delays_of_the_links") else { return };
    let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    let (testbed, wire) = pair(link.clone(), link);
    let [left, right] = left_and_right(&testbed);
    for address in [v4, v6] {
        wire.reset();
        let (left, right) = (udp(left, address(1, 1), 7), udp(right, address(2, 1), 7));
        // None is shorter than the delays, and on a machine however busy one soon finds all awake.
        let mut trips = Vec::new();
        while trips.len() < 1000 {
            let trip = round_trips(&left, &right, 1)[0];
            assert!(trip >= DELAYS, "{trip:?}");
            trips.push(trip);
            if trips.len() >= 50 && trips.iter().min() < Some(&(DELAYS + AWAKE)) {
                break;
            }
        }
        let fitness = wire.fitness();
        let least = trips.iter().min().unwrap();
        println!("{}: {least:?} of {}", left.local_addr().unwrap(), trips.len());
        println!("{fitness:?}");
        assert!(*least < DELAYS + AWAKE, "{trips:?} {fitness:?}");
        assert!(fitness.lateness.p50 > 0);
        assert_eq!(fitness.packets, 2 * trips.len() as u64);
        assert_eq!((fitness.unrouted, fitness.malformed), (0, 0));
    }
}

#[test]
fn a_transfer_through_losses_arrives_byte_by_byte() {
    let Some(_alone) = alone("a_transfer_through_losses_arrives_byte_by_byte") else {
        return;
    };
    const BYTES: usize = 4 << 20;
    let link = LinkConfig {
        rate: Rate::Constant(100_000_000),
        delay: 2 * MILLISECOND,
        limit: Limit::Packets(100),
        loss: Loss::Random(0.002),
        ..LinkConfig::default()
    };
    let (testbed, wire) = pair(link.clone(), link);
    // No piece is like another.
    let number = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    let sent: Vec<u8> = (0..BYTES).map(|n| number(n) as u8).collect();
    for address in [v4, v6] {
        let [mut client, mut server] = tcp(left_and_right(&testbed), address(2, 1), 80);
        let got = std::thread::scope(|scope| {
            scope.spawn(|| {
                client.write_all(&sent).expect("there is a receiver");
                client.shutdown(Shutdown::Write).unwrap();
            });
            let mut got = Vec::new();
            server.read_to_end(&mut got).expect("all of it");
            got
        });
        assert!(got == sent, "{} of {} bytes, or others", got.len(), sent.len());
    }
    let lost = wire.with(|network, _| network.counters(RIGHT).dropped_random).unwrap();
    assert!(lost > 0);
    assert_eq!(wire.fitness().malformed, 0);
}

#[test]
fn marks_reach_the_receiver() {
    let Some(_alone) = alone("marks_reach_the_receiver") else { return };
    let marking = LinkConfig {
        rate: Rate::Constant(2_000_000),
        limit: Limit::Packets(1000),
        discipline: Discipline::CoDel(CoDel::default()),
        ecn: true,
        ..LinkConfig::default()
    };
    let (testbed, wire) = pair(marking, LinkConfig::default());
    let [left, right] = left_and_right(&testbed);
    for (address, group, name) in
        [(v4 as fn(_, _) -> _, "IpExt", "InCEPkts"), (v6, "", "Ip6InCEPkts")]
    {
        wire.reset();
        let sender = udp(left, address(1, 1), 7);
        let receiver = udp(right, address(2, 1), 7);
        const ECT0: u32 = 2;
        let socket = SockRef::from(&sender);
        match sender.local_addr().unwrap() {
            SocketAddr::V4(_) => socket.set_tos_v4(ECT0).unwrap(),
            SocketAddr::V6(_) => socket.set_tclass_v6(ECT0).unwrap(),
        }
        let before = counter(right, group, name);
        for _ in 0..100 {
            sender.send_to(&[7; 1000], receiver.local_addr().unwrap()).unwrap();
        }
        // The kernel takes no packet whose header's checksum is wrong.
        for _ in 0..100 {
            receiver.recv(&mut [0; 1000]).expect("none is dropped");
        }
        let marked = wire.with(|network, _| network.counters(RIGHT).marked).unwrap();
        assert!(marked > 0, "the queue is long");
        assert_eq!(counter(right, group, name) - before, marked);
    }
}

/// An MPTCP connection that carries some bytes; whether the client met MPTCP on the other side.
fn is_mptcp(strips_mptcp: bool, address: fn(u8, u8) -> std::net::IpAddr) -> bool {
    let testbed = two_hosts(1);
    let (network, mut routes) = network(&[Default::default()]);
    routes.iter_mut().for_each(|entry| entry.strips_mptcp = strips_mptcp);
    let _wire = testbed.start(network, &routes, Vec::new()).expect("a wire");
    let [left, right] = left_and_right(&testbed);
    let to = SocketAddr::new(address(2, 1), 80);
    let socket = || Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::MPTCP));
    let listener = right.run(|| {
        let listener = socket()?;
        listener.bind(&to.into())?;
        listener.listen(1)?;
        std::io::Result::Ok(listener)
    });
    let listener = listener.unwrap().expect("a listener");
    let client = left.run(|| {
        let client = socket()?;
        client.connect_timeout(&to.into(), Duration::from_secs(10))?;
        std::io::Result::Ok(client)
    });
    let mut client = TcpStream::from(client.unwrap().expect("a connection"));
    let mut server = TcpStream::from(listener.accept().expect("a connection").0);
    client.write_all(b"to the right").unwrap();
    server.read_exact(&mut [0; 12]).unwrap();
    server.write_all(b"to the left").unwrap();
    client.read_exact(&mut [0; 11]).unwrap();
    assert_eq!(counter(left, "MPTcpExt", "MPCapableSYNTX"), 1, "it was asked for");
    counter(left, "MPTcpExt", "MPCapableSYNACKRX") == 1
}

#[test]
fn a_middlebox_makes_of_mptcp_what_tcp_is() {
    let Some(_alone) = alone("a_middlebox_makes_of_mptcp_what_tcp_is") else { return };
    if std::fs::metadata("/proc/sys/net/mptcp/enabled").is_err() {
        return println!("skipped, no MPTCP in this kernel");
    }
    for address in [v4, v6] {
        assert!(is_mptcp(false, address));
        assert!(!is_mptcp(true, address));
    }
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let Some(_alone) = alone("a_link_that_is_down_carries_nothing") else { return };
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let [left, right] = left_and_right(&testbed);
    let (left, right) = (udp(left, v4(1, 1), 7), udp(right, v4(2, 1), 7));
    let send = || left.send_to(&[7; 60], right.local_addr().unwrap()).unwrap();
    let dropped = || wire.with(|network, _| network.counters(RIGHT).dropped_down).unwrap();
    wire.with(|network, now| network.set_up(now, RIGHT, false)).unwrap();
    send();
    wait_until(20, || if dropped() == 1 { Ok(()) } else { Err("nothing dropped".into()) });
    wire.with(|network, now| network.set_up(now, RIGHT, true)).unwrap();
    send();
    right.recv(&mut [0; 60]).expect("it is up");
    right.set_nonblocking(true).unwrap();
    right.recv(&mut [0; 60]).expect_err("the first was lost");
    assert_eq!(dropped(), 1);
}

#[test]
fn each_device_has_its_path() {
    let Some(_alone) = alone("each_device_has_its_path") else { return };
    let testbed = two_hosts(2);
    let (network, routes) = network(&[Default::default(), Default::default()]);
    let wire = testbed.start(network, &routes, Vec::new()).expect("a wire");
    let [left, right] = left_and_right(&testbed);
    for device in [1, 2] {
        for address in [v4, v6] {
            wire.reset();
            let left = udp(left, address(1, device), 7);
            let right = udp(right, address(2, device), 7);
            round_trips(&left, &right, 1);
            let sent = wire.with(|network, _| {
                network.links().map(|link| network.counters(link).sent).collect::<Vec<_>>()
            });
            let expected = if device == 1 { [1, 1, 0, 0] } else { [0, 0, 1, 1] };
            assert_eq!(sent.unwrap(), expected);
        }
    }
    // Without an address of its own, by the first device.
    for (any, address) in [("0.0.0.0:0", v4(2, 1)), ("[::]:0", v6(2, 1))] {
        let right = udp(right, address, 7);
        let sender = left.run(|| UdpSocket::bind(any)).unwrap().unwrap();
        sender.send_to(&[7; 60], right.local_addr().unwrap()).unwrap();
        let (_, from) = right.recv_from(&mut [0; 60]).expect("it has a route");
        assert_eq!(from.ip(), if address.is_ipv4() { v4(1, 1) } else { v6(1, 1) });
    }
    assert_eq!(wire.fitness().unrouted, 0);
}

#[test]
fn a_tap_sees_what_a_host_sent_and_got() {
    let Some(_alone) = alone("a_tap_sees_what_a_host_sent_and_got") else { return };
    let testbed = two_hosts(2);
    let link = LinkConfig { delay: 5 * MILLISECOND, ..LinkConfig::default() };
    let (network, routes) = network(&[(link.clone(), link), Default::default()]);
    let (seen, sees) = mpsc::channel();
    let tap = |host, device| {
        let seen = seen.clone();
        let see = Box::new(move |now, device, direction, bytes: &[u8]| {
            seen.send((host, now, device, direction, bytes.to_vec())).unwrap();
        });
        Tap { host, device, see }
    };
    let taps = vec![tap(0, None), tap(1, Some(0))];
    let wire = testbed.start(network, &routes, taps).expect("a wire");
    let [left, right] = left_and_right(&testbed);
    for device in [2, 1] {
        let left = udp(left, v4(1, device), 7);
        let right = udp(right, v4(2, device), 7);
        round_trips(&left, &right, 1);
    }
    left.run(|| udp(left, v4(1, 1), 8).send_to(&[7; 60], "10.9.9.9:9")).unwrap().unwrap();
    wait_until(20, || match wire.fitness().unrouted {
        1 => Ok(()),
        unrouted => Err(format!("{unrouted} unrouted")),
    });
    drop(wire);
    let seen: Vec<_> = sees.try_iter().collect();
    let reported: Vec<_> =
        seen.iter().map(|(host, _, device, direction, _)| (*host, *device, *direction)).collect();
    use Direction::{Got, Sent};
    // Nothing of the second host's second device; and what has no route was sent, too.
    let expected = [
        (0, 1, Sent),
        (0, 1, Got),
        (0, 0, Sent),
        (1, 0, Got),
        (1, 0, Sent),
        (0, 0, Got),
        (0, 0, Sent),
    ];
    assert_eq!(reported, expected);
    let (sent, got) = (&seen[2], &seen[3]);
    assert_eq!((sent.4.len(), &sent.4[..]), (20 + 8 + 60, &got.4[..]));
    assert!(got.1 >= sent.1 + 5 * MILLISECOND);
}

#[test]
fn what_has_no_way_is_dropped_and_counted() {
    let Some(_alone) = alone("what_has_no_way_is_dropped_and_counted") else { return };
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let [left, _] = left_and_right(&testbed);
    let (four, six) = (udp(left, v4(1, 1), 7), udp(left, v6(1, 1), 7));
    for _ in 0..3 {
        four.send_to(&[7; 60], "192.0.2.1:7").unwrap();
        six.send_to(&[7; 60], "[2001:db8::1]:7").unwrap();
    }
    wait_until(20, || match wire.fitness().unrouted {
        6 => Ok(()),
        unrouted => Err(format!("{unrouted} unrouted")),
    });
    let (network, fitness) = wire.stop().unwrap();
    let none = Quantiles::default();
    assert_eq!((fitness.packets, fitness.lateness, fitness.worst_second), (0, none, 0.0));
    assert_eq!(network.counters(RIGHT).arrived + network.counters(LEFT).arrived, 0);
}

#[test]
fn one_wire_at_a_time() {
    let Some(_alone) = alone("one_wire_at_a_time") else { return };
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let start = |routes: &[Route]| {
        let (network, _) = network(&[Default::default()]);
        testbed.start(network, routes, Vec::new())
    };
    assert!(matches!(start(&[]), Err(Error::Running)));
    let began = wire.now();
    sleep(Duration::from_millis(5));
    assert!(wire.now() >= began + 5 * MILLISECOND);
    wire.stop().unwrap();
    let route = |from, to, id| Route { from, to, route: RouteId(id), strips_mptcp: false };
    let fault = |routes: &[Route]| start(routes).expect_err("a fault").to_string();
    assert_eq!(
        fault(&[route(v4(1, 1), v4(3, 1), 0)]),
        "route from 10.1.0.1 to 10.1.0.3: no host has the destination address"
    );
    assert_eq!(
        fault(&[route(v4(1, 1), v4(2, 1), 2)]),
        "route from 10.1.0.1 to 10.1.0.2: the network has no such route"
    );
    let twice = route(v4(1, 1), v4(2, 1), 0);
    assert_eq!(fault(&[twice, twice]), "route from 10.1.0.1 to 10.1.0.2: named twice");
    start(&[twice]).expect("the first one has stopped");
}

#[test]
fn a_panic_in_work_for_the_wire_is_its_caller_s() {
    let Some(_alone) = alone("a_panic_in_work_for_the_wire_is_its_caller_s") else { return };
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let work = std::panic::AssertUnwindSafe(|| wire.with(|_, _| panic!("on purpose")));
    std::panic::catch_unwind(work).expect_err("it panicked");
    let [left, right] = left_and_right(&testbed);
    round_trips(&udp(left, v4(1, 1), 7), &udp(right, v4(2, 1), 7), 1);
}

#[test]
fn a_device_that_is_down_or_gone_refuses_and_the_others_go_on() {
    let test = "a_device_that_is_down_or_gone_refuses_and_the_others_go_on";
    let Some(_alone) = alone(test) else { return };
    let testbed = two_hosts(2);
    let link = LinkConfig { rate: Rate::Constant(1_000_000), ..LinkConfig::default() };
    let (network, routes) = network(&[Default::default(), (link.clone(), link)]);
    let wire = testbed.start(network, &routes, Vec::new()).expect("a wire");
    let [left, right] = left_and_right(&testbed);
    let sender = udp(left, v4(1, 2), 7);
    for (refused, change) in (1..).zip(["set path2 down", "delete path2"]) {
        let arguments = ["link"].into_iter().chain(change.split(' '));
        assert!(right.command("ip").args(arguments).status().unwrap().success(), "{change}");
        sender.send_to(&[7; 60], SocketAddr::new(v4(2, 2), 7)).unwrap();
        wait_until(20, || match wire.fitness().refused {
            reported if reported == refused => Ok(()),
            reported => Err(format!("{reported} refused after {change}")),
        });
        round_trips(&udp(left, v4(1, 1), 7), &udp(right, v4(2, 1), 7), 1);
    }
    // It sleeps when there is nothing to carry.
    let cpu = || {
        let used = wire.with(|_, _| getrusage(UsageWho::RUSAGE_THREAD)).unwrap().unwrap();
        (used.user_time() + used.system_time()).num_milliseconds()
    };
    let before = cpu();
    sleep(Duration::from_millis(200));
    let busy = cpu() - before;
    assert!(busy < 50, "{busy} of 200 ms");
    assert_eq!(wire.fitness().worst_second, 0.0);
}

/// Who sent what entered after a stall of the wire in which both sent so much, in order: 0 or 1.
fn entered(
    wire: &Wire,
    seen: &mpsc::Receiver<usize>,
    sockets: [(&UdpSocket, usize); 2],
) -> Vec<usize> {
    let (stalled, stalls) = mpsc::channel();
    let (go_on, reported) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wire.with(move |_, _| {
                stalled.send(()).unwrap();
                reported.recv().ok();
            })
            .unwrap();
        });
        stalls.recv().unwrap();
        for (socket, times) in sockets {
            for _ in 0..times {
                socket.send_to(&[7; 60], "10.9.9.9:9").unwrap();
            }
        }
        drop(go_on);
    });
    let total = sockets.iter().map(|socket| socket.1).sum();
    seen.iter().take(total).collect()
}

#[test]
fn hosts_take_turns_after_a_stall() {
    let Some(_alone) = alone("hosts_take_turns_after_a_stall") else { return };
    let testbed = two_hosts(1);
    let (network, routes) = network(&[Default::default()]);
    let (seen, sees) = mpsc::channel();
    let tap = |host| {
        let seen = seen.clone();
        let see = Box::new(move |_, _, _, _: &[u8]| seen.send(host).unwrap());
        Tap { host, device: None, see }
    };
    let wire = testbed.start(network, &routes, vec![tap(0), tap(1)]).expect("a wire");
    let [left, right] = left_and_right(&testbed);
    let (left, right) = (udp(left, v4(1, 1), 7), udp(right, v4(2, 1), 7));
    let first = |_| entered(&wire, &sees, [(&left, 1), (&right, 1)])[0];
    let firsts: Vec<usize> = (0..10).map(first).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
    // Nobody waits for all that another one has sent.
    for times in [[1000, 1], [1, 1000]] {
        let order = entered(&wire, &sees, [(&left, times[0]), (&right, times[1])]);
        let few = times.iter().position(|&times| times == 1).unwrap();
        let turn = order.iter().position(|&host| host == few).unwrap();
        assert!(turn < 100, "after {turn} of the other's packets");
    }
}
