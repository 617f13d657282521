//! A control is loaded, replaced and unloaded under traffic, again and again: transfers go on and
//! stay right, sockets keep what they run, and nothing of any build stays behind.

mod support;

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use narrows_kernel::Settings;
use narrows_kernel::pins::{Change, FOLDER, Pins};
use narrows_laws::Control;
use narrows_testkit::machine::with_own_pins;
use narrows_testkit::net;
use narrows_testkit::transfer::{Kind, Server, Traffic, set_control};
use narrows_testkit::wait_until;
use std::fs;
use std::path::Path;
use std::thread::scope;
use support::Alone;
use support::law::Net;

/// The verifier has the least work with it, and it takes most of a round.
const LAW: Control = Control::RENO;
const PORT: u16 = 7000;
/// Bytes of a job.
const JOB: u64 = 1 << 16;

#[test]
fn a_control_is_loaded_replaced_and_unloaded_under_traffic() {
    again_and_again("20 times loaded, replaced, unloaded", 20);
}

#[test]
#[ignore = "two minutes"]
fn a_control_is_loaded_replaced_and_unloaded_under_traffic_a_hundred_times() {
    again_and_again("100 times loaded, replaced, unloaded", 100);
}

fn again_and_again(name: &'static str, rounds: usize) {
    let Some(_alone) = Alone::with(name, &[]) else { return };
    // Made here: a namespace's name is a mount.
    let net = Net::new(&[20, 20]);
    let before = ours();
    with_own_pins(|| load_replace_and_unload(&net, rounds));
    net.drained();
    // A build goes when its last socket has, a moment later.
    wait_until(30, || match left(&before) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("in the kernel there are {left:?}")),
    });
}

fn load_replace_and_unload(net: &Net, rounds: usize) {
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = || Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, JOB, JOB);
    let long = begin();
    let load = || pins(net).load(&[LAW], &Settings::default(), || false).unwrap().pop().unwrap();
    scope(|scope| {
        for round in 0..rounds {
            let (name, change) = load();
            assert_eq!(change, Change::Loaded);
            net.set_default(&name);
            // One gets the control as it is, the next what it is replaced by; both outlive it.
            let first = begin();
            set_control(&long.stream, &name).unwrap();
            // A control whose build is not known is not of this one.
            fs::remove_file(Path::new(FOLDER).join(&name).join("build")).unwrap();
            assert_eq!(load(), (name.clone(), Change::Replaced));
            let second = begin();
            if round % 10 == 0 {
                clients_run(net, &name);
            }
            net.set_default("reno");
            assert!(pins(net).unload(&name).unwrap());
            let sockets = net::sockets(&net.client);
            assert!(sockets.iter().any(|socket| socket.runs(&name)), "{sockets:?}");
            if round % 2 == 0 {
                set_control(&long.stream, "cubic").unwrap();
            }
            // They end while the next round begins.
            for short in [first, second] {
                scope.spawn(|| assert!(short.stop() > 0));
            }
            // Those that have ended are to be closed, that the builds they ran can go.
            server.accepted.lock().unwrap().truncate(1);
        }
    });
    assert!(!Path::new(FOLDER).exists(), "{FOLDER} is still there");
    println!("  {} bytes of the connection that saw all of it", long.stop());
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
}

/// The pins; both hosts get a newer build as `narrows kernel load` gives it to them.
fn pins(net: &Net) -> Pins {
    let hosts = [net.client.clone(), net.server.clone()];
    let renew = move |name: &str| {
        for host in &hosts {
            net::sysctl(host, "net/ipv4/tcp_congestion_control", name).unwrap();
        }
        Ok(())
    };
    Pins::open(renew).unwrap()
}

/// Waits until every subflow of the client runs it.
fn clients_run(net: &Net, name: &str) {
    wait_until(10, || {
        let sockets = net::sockets(&net.client);
        let others: Vec<_> = sockets.iter().filter(|s| s.is_mptcp() && !s.runs(name)).collect();
        if others.is_empty() { Ok(()) } else { Err(format!("not {name}: {others:?}")) }
    });
}

/// Maps and programs in the kernel that are called as ours, with their ids.
fn ours() -> Vec<String> {
    let ours =
        |name: &str| ["nr_", "narrows.", ".rodata.control"].iter().any(|own| name.starts_with(own));
    let maps = MapInfoIter::default().map(|map| (map.name.to_string_lossy().into_owned(), map.id));
    let programs = ProgInfoIter::default()
        .map(|program| (program.name.to_string_lossy().into_owned(), program.id));
    let all = maps.chain(programs).filter(|(name, _)| ours(name));
    all.map(|(name, id)| format!("{name} {id}")).collect()
}

/// Those that were not there before.
fn left(before: &[String]) -> Vec<String> {
    ours().into_iter().filter(|one| !before.contains(one)).collect()
}
