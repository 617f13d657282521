//! With a control as both hosts' default: plain TCP, a peer without MPTCP, options that are stripped
//! on the way, and connections for which there is no slot. Transfers are right, and what cannot be
//! coupled runs alone, is handed on, or runs the fallback law and is counted.

mod support;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_kernel::control::Registered;
use narrows_kernel::register::padded;
use narrows_kernel::state::{CONNS, PLAIN};
use narrows_laws::Control;
use narrows_netns::{set_sysctl, sysctl};
use narrows_testkit::net::{self, Host, ip};
use narrows_testkit::transfer::{
    Job, Kind, Server, Traffic, ask, begin_connect, connect, finish, listen, set_control,
};
use narrows_testkit::wait_until;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::thread::sleep;
use std::time::Duration;
use support::Alone;
use support::law::{Net, agree, counted, counter, entries, slots};

const LAW: Control = Control::OLIA;
const PORT: u16 = 7000;
/// More than the send buffers of eight subflows, so that a ninth is used.
const JOB: u64 = 1 << 20;

/// Bytes go both ways for a while, and `during` looks at them.
fn transfer(net: &Net, client: Kind, server: Kind, during: impl FnOnce()) {
    let server = Server::start(&net.server, net.address(PORT), server);
    let traffic = Traffic::start(&net.client, net.address(PORT), client, JOB, JOB);
    wait_until(10, || if traffic.bytes() > JOB { Ok(()) } else { Err("no bytes".into()) });
    during();
    let before = traffic.bytes();
    wait_until(10, || if traffic.bytes() > before { Ok(()) } else { Err("no more".into()) });
    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
}

/// One TCP connection, which runs `control` in both hosts.
fn one_runs(net: &Net, control: &str) {
    for host in [&net.client, &net.server] {
        let sockets = net::sockets(host);
        assert_eq!(sockets.len(), 1, "{sockets:?}");
        assert!(sockets[0].runs(control), "not {control}: {sockets:?}");
    }
}

/// One path alone in each host, which takes no entry of the map.
fn alone(net: &Net, law: &Registered) {
    one_runs(net, law.name());
    assert!(entries(net).is_empty(), "{:?}", entries(net));
    assert_eq!(slots(law), 2, "{}", counted(law));
}

/// Hands plain TCP of both hosts to another control.
fn hand_to(control: &str, net: &Net, law: &Registered) {
    let map = map(law, PLAIN);
    for host in [&net.client, &net.server] {
        let cookie = host.run(narrows_netns::cookie).unwrap().unwrap();
        map.update(&cookie.to_ne_bytes(), &padded(control), MapFlags::ANY).unwrap();
    }
}

fn map(law: &Registered, name: &str) -> MapHandle {
    let map = law.loaded().object().maps().find(|map| map.name() == name).unwrap();
    MapHandle::try_from(&map).unwrap()
}

#[test]
fn plain_tcp_runs_alone_or_is_handed_to_the_former_default() {
    let Some(_alone) = Alone::with("plain TCP", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    let former = default_of(&net);
    net.set_default(law.name());
    transfer(&net, Kind::Tcp, Kind::Tcp, || alone(&net, &law));
    assert_eq!(counter(&law, "alone"), 2);
    assert_eq!(counter(&law, "tcp_fallbacks"), 0);
    hand_to(&former, &net, &law);
    transfer(&net, Kind::Tcp, Kind::Tcp, || {
        one_runs(&net, &former);
        assert!(entries(&net).is_empty());
    });
    assert_eq!(counter(&law, "plain"), 2);
    // And MPTCP beside it is not plain.
    transfer(&net, Kind::Mptcp, Kind::Mptcp, || agree(&net, LAW, law.name(), 2));
    println!("  {}", counted(&law));
}

#[test]
fn a_namespace_with_the_number_of_one_that_has_gone_gets_nothing_of_it() {
    let Some(_alone) = Alone::with("a number given again", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let plain = map(&law, PLAIN);
    let former = Host::new("former");
    let inum = former.inum;
    let cookie = former.run(narrows_netns::cookie).unwrap().unwrap().to_ne_bytes();
    plain.update(&cookie, &padded("reno"), MapFlags::ANY).unwrap();
    drop(former);
    // The kernel gives the lowest free one, and a namespace's is free a moment after it has gone.
    let again = (0..50).find_map(|_| {
        sleep(Duration::from_millis(50));
        Some(Host::new("again")).filter(|host| host.inum == inum)
    });
    match again {
        None => println!("  skipped, the number was not given again"),
        Some(host) => {
            let set = host.run(|| set_sysctl("net/ipv4/tcp_congestion_control", law.name()));
            set.unwrap().unwrap();
            let loopback = || {
                let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), Kind::Tcp).unwrap();
                let client = connect(listener.local_addr().unwrap(), Kind::Tcp).unwrap();
                drop((client, listener.accept().unwrap()));
            };
            host.run(loopback).unwrap();
            assert_eq!((counter(&law, "plain"), counter(&law, "alone")), (0, 2));
        }
    }
    plain.delete(&cookie).unwrap();
}

/// The client's default.
fn default_of(net: &Net) -> String {
    net.client.run(|| sysctl("net/ipv4/tcp_congestion_control")).unwrap().unwrap()
}

#[test]
fn a_peer_without_mptcp_is_served_as_plain_tcp() {
    let Some(_alone) = Alone::with("a peer without MPTCP", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    let former = default_of(&net);
    net.set_default(law.name());
    // A server that does not speak it, then a client, then a host where it is switched off.
    transfer(&net, Kind::Mptcp, Kind::Tcp, || alone(&net, &law));
    assert_eq!(counter(&law, "tcp_fallbacks"), 1);
    transfer(&net, Kind::Tcp, Kind::Mptcp, || alone(&net, &law));
    hand_to(&former, &net, &law);
    transfer(&net, Kind::Mptcp, Kind::Tcp, || one_runs(&net, &former));
    println!("  {}", counted(&law));
    assert_eq!(slots(&law), 0);
}

/// MPTCP's options vanish from packets that match, as they come in at the server.
fn strip(net: &Net, matching: &str) {
    let script = format!(
        "table inet strip {{\n chain way {{\n  type filter hook prerouting priority raw\n  \
         {matching} tcp option mptcp exists counter reset tcp option mptcp\n }}\n}}\n"
    );
    nft(&net.server, &script);
}

fn nft(host: &Host, script: &str) {
    let mut nft = Command::new("ip");
    net::pipe(nft.args(["netns", "exec", host.name.raw(), "nft", "-f", "-"]), script);
}

#[test]
fn options_stripped_on_the_way_leave_what_is_left_running() {
    let Some(_alone) = Alone::with("options stripped on the way", &["nft"]) else { return };
    let law = Registered::register(LAW).unwrap();
    for (matching, subflows) in [
        ("", 0),                                // all: plain TCP from the first packet on
        ("tcp flags & syn == 0", 0),            // behind the handshake: fallen back after it
        ("iifname s2", 1),                      // joins only: one subflow is left
        ("iifname s2 tcp flags & syn == 0", 1), // the join is agreed on and never confirmed
    ] {
        let net = Net::new(&[50, 50]);
        net.set_default(law.name());
        strip(&net, matching);
        let before = counter(&law, "tcp_fallbacks");
        transfer(&net, Kind::Mptcp, Kind::Mptcp, || {
            sleep(Duration::from_millis(500));
            let by_ss = [&net.client, &net.server].map(|host| net::sockets(host)).concat();
            assert!(by_ss.iter().all(|socket| socket.runs(law.name())), "{by_ss:?}");
            if subflows == 1 {
                agree(&net, LAW, law.name(), 1);
            } else {
                // What fell back after the handshake has an entry, of its only path.
                assert!(entries(&net).iter().all(|entry| entry.paths.len() == 1), "{matching}");
                assert_eq!(slots(&law), 2, "{matching}");
            }
        });
        let fallbacks = counter(&law, "tcp_fallbacks") - before;
        println!("  stripped {matching:?}: {fallbacks} fallbacks");
    }
    // A path that begins to strip while data flows: the subflow ends, the connection goes on.
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    transfer(&net, Kind::Mptcp, Kind::Mptcp, || {
        agree(&net, LAW, law.name(), 2);
        strip(&net, "iifname s2");
        wait_until(10, || match net::sockets(&net.client).len() {
            1 => Ok(()),
            n => Err(format!("{n} subflows")),
        });
    });
    println!("  {}", counted(&law));
    assert_eq!(slots(&law), 0);
}

/// A client that sets the control while its SYN is on the way, and then sends.
fn set_while_connecting(net: &Net, law: &Registered, server: Kind, during: impl Fn()) {
    net::sysctl(&net.server, "net/ipv4/tcp_congestion_control", law.name()).unwrap();
    let rule = "type filter hook prerouting priority raw\n tcp flags syn drop";
    nft(&net.server, &format!("table inet lost {{\n chain way {{\n {rule}\n }}\n}}\n"));
    let server = Server::start(&net.server, net.address(PORT), server);
    let begin = || begin_connect(net.address(PORT), Kind::Mptcp);
    let stream = net.client.run(begin).unwrap().unwrap();
    set_control(&stream, law.name()).unwrap();
    let trying = net::run("ss", &["-N", net.client.name.raw(), "-tnH", "state", "syn-sent"]);
    assert_eq!(trying.lines().count(), 1, "{trying}");
    nft(&net.server, "delete table inet lost\n");
    let job = |seed| Job { seed, up: JOB, down: JOB };
    (0..8).for_each(|seed| ask(&stream, job(seed), &AtomicU64::new(0)).unwrap());
    during();
    finish(&stream).unwrap();
    drop(stream);
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    assert_eq!(slots(law), 0);
}

#[test]
fn a_control_set_while_connecting_couples_or_runs_alone() {
    let Some(_alone) = Alone::with("a control set while connecting", &["nft"]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    set_while_connecting(&net, &law, Kind::Mptcp, || agree(&net, LAW, law.name(), 2));
    set_while_connecting(&net, &law, Kind::Tcp, || alone(&net, &law));
    println!("  {}", counted(&law));
}

#[test]
fn the_ninth_subflow_runs_the_fallback_law_until_a_slot_is_free() {
    let Some(_alone) = Alone::with("nine subflows", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[10; 9]);
    net.set_default(law.name());
    let paths = || {
        let mut paths: Vec<_> = entries(&net).iter().map(|entry| entry.paths.len()).collect();
        paths.sort_unstable();
        paths
    };
    transfer(&net, Kind::Mptcp, Kind::Mptcp, || {
        wait_until(10, || match [&net.client, &net.server].map(|host| net::sockets(host).len()) {
            [9, 9] => Ok(()),
            subflows => Err(format!("{subflows:?} subflows")),
        });
        assert_eq!(paths(), [8, 8]);
        assert!(counter(&law, "fallback_slots") >= 2);
        ip(&net.client, "mptcp endpoint del id 2");
        agree(&net, LAW, law.name(), 8);
    });
    println!("  {}", counted(&law));
    assert!(counter(&law, "coupled_later") >= 1);
    assert_eq!(slots(&law), 0);
}

#[test]
fn connections_run_the_fallback_law_while_the_map_is_full() {
    let Some(_alone) = Alone::with("a full map", &[]) else { return };
    let law = Registered::with_room(LAW, [1000, 1]).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let map = map(&law, CONNS);
    // All zero: they have no path, and nobody is counted for them.
    let count = map.max_entries();
    let keys: Vec<u8> = (1..=count).flat_map(u32::to_ne_bytes).collect();
    let values = vec![0; count as usize * map.value_size() as usize];
    map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY).unwrap();
    transfer(&net, Kind::Mptcp, Kind::Mptcp, || {
        wait_until(10, || match net::sockets(&net.client).len() {
            2 => Ok(()),
            n => Err(format!("{n} subflows")),
        });
        let by_ss = [&net.client, &net.server].map(|host| net::sockets(host)).concat();
        assert!(by_ss.iter().all(|socket| socket.runs(law.name())), "{by_ss:?}");
        assert_eq!(slots(&law), 0);
        assert!(counter(&law, "fallback_full") >= 4);
        map.delete_batch(&keys, count, MapFlags::ANY, MapFlags::ANY).unwrap();
        agree(&net, LAW, law.name(), 2);
    });
    println!("  {}", counted(&law));
    assert_eq!(counter(&law, "coupled_later"), 4);
    assert_eq!(slots(&law), 0);
}
