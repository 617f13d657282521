//! A path whose connection has subflows under another control: it must not take a full share beside
//! them. A subflow that has no connection yet, or is a backup, takes none itself.

mod support;

use narrows_kernel::control::Registered;
use narrows_kernel::state::ConnectionPath;
use narrows_laws::Control;
use narrows_testkit::net::{self, client, ip};
use narrows_testkit::transfer::{Kind, Server, Traffic, set_control};
use narrows_testkit::wait_until;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, counted, counter, entries, slots};

const LAW: Control = Control::OLIA;
const PORT: u16 = 7000;
const JOB: u64 = 1 << 20;

/// The only path that the control has on that side.
fn path(net: &Net, host: &net::Host) -> Option<ConnectionPath> {
    let entry = entries(net).into_iter().find(|entry| entry.netns == host.inum)?;
    assert!(entry.paths.len() <= 1, "{entry:?}");
    entry.paths.into_iter().next()
}

/// A download from a server that listened before the control became the default. Its first subflow
/// runs the default; one that joins after a socket option was set, through an endpoint with `flags`,
/// runs what the listener had.
fn older_listener(net: &Net, law: &Registered, flags: &str) -> (Server, Traffic) {
    ip(&net.client, "mptcp endpoint del id 2");
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    net.set_default(law.name());
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    wait_until(10, || match server.accepted.lock().unwrap().first() {
        Some(accepted) => accepted.set_nodelay(true).map_err(|error| error.to_string()),
        None => Err("not accepted".into()),
    });
    ip(&net.client, &format!("mptcp endpoint add {} id 2 subflow{flags}", client(2)));
    wait_until(10, || match net::sockets(&net.server) {
        both if both.len() != 2 => Err(format!("{both:?}")),
        both => match both.iter().filter(|subflow| subflow.runs(law.name())).count() {
            1 => Ok(()),
            n => Err(format!("{n} of them run the control: {both:?}")),
        },
    });
    (server, traffic)
}

fn end(net: &Net, law: &Registered, server: Server, traffic: Traffic) {
    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    println!("  {}", counted(law));
    assert_eq!(slots(law), 0);
}

#[test]
fn a_path_beside_a_subflow_of_another_control_grows_by_the_fallback_law_until_it_joins() {
    let Some(_alone) = Alone::with("a subflow outside", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[10, 10]);
    let (server, traffic) = older_listener(&net, &law, "");
    let outside = || path(&net, &net.server).is_some_and(|path| path.outside);
    wait_until(10, || if outside() { Ok(()) } else { Err("is coupled".into()) });
    assert_eq!(counter(&law, "fallback_outside"), 1);
    // Reno grows by a packet each round trip, the fallback law by a 64th of one.
    const LOOK: Duration = Duration::from_secs(2);
    wait_until(40, || {
        let began = Instant::now();
        let before = path(&net, &net.server).ok_or("no path")?.line;
        sleep(LOOK);
        let after = path(&net, &net.server).ok_or("no path")?.line;
        // In recovery the window still falls to its threshold, and after a rest it is smaller.
        let cut = after.ssthresh != before.ssthresh || after.cwnd < before.cwnd;
        if cut || before.cwnd < before.ssthresh {
            return Err("a loss, or slow start".into());
        }
        let rounds = began.elapsed().as_secs_f64() / (f64::from(before.srtt8_us) / 8e6);
        let grown = after.cwnd - before.cwnd;
        println!("  grown by {grown} packets in {rounds:.0} round trips");
        assert!(f64::from(grown) <= 2.0 + rounds / 32.0, "{before:?}, then {after:?}");
        Ok(())
    });
    for stream in server.accepted.lock().unwrap().iter() {
        set_control(stream, law.name()).unwrap();
    }
    agree(&net, LAW, law.name(), 2);
    wait_until(10, || {
        let entries = entries(&net);
        match entries.iter().flat_map(|entry| &entry.paths).any(|path| path.outside) {
            false => Ok(()),
            true => Err(format!("{entries:?}")),
        }
    });
    assert_eq!(counter(&law, "fallback_outside"), 1);
    end(&net, &law, server, traffic);
}

#[test]
fn a_backup_of_another_control_is_no_reason() {
    let Some(_alone) = Alone::with("a backup outside", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    let (server, traffic) = older_listener(&net, &law, " backup");
    stays_coupled(&net, &net.server, &law, &traffic);
    end(&net, &law, server, traffic);
}

#[test]
fn a_syn_without_an_answer_is_no_reason() {
    let Some(_alone) = Alone::with("a SYN without an answer", &["nft"]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let rule = "type filter hook prerouting priority raw\n iifname s2 drop";
    let mut nft = Command::new("ip");
    let nft = nft.args(["netns", "exec", net.server.name.raw(), "nft", "-f", "-"]);
    net::pipe(nft, &format!("table inet lost {{\n chain way {{\n {rule}\n }}\n}}\n"));
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, JOB, 0);
    stays_coupled(&net, &net.client, &law, &traffic);
    let trying = net::run("ss", &["-N", net.client.name.raw(), "-tnH", "state", "syn-sent"]);
    assert_eq!(trying.lines().count(), 1, "{trying}");
    end(&net, &law, server, traffic);
}

/// For many round trips, while bytes arrive.
fn stays_coupled(net: &Net, host: &net::Host, law: &Registered, traffic: &Traffic) {
    let before = traffic.bytes();
    let mut looks = 0;
    for _ in 0..20 {
        sleep(Duration::from_millis(100));
        let Some(path) = path(net, host) else { continue };
        assert!(!path.outside);
        looks += 1;
    }
    assert!(looks > 0, "the control has no path there");
    assert!(traffic.bytes() > before);
    assert_eq!(counter(law, "fallback_outside"), 0);
}
