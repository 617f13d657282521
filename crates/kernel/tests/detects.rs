//! Detectors in the kernel: what they keep comes and goes with connections, and without room for it
//! paths are coupled.

mod support;

use libbpf_rs::MapCore;
use narrows_kernel::control::Registered;
use narrows_kernel::state::{self, Connection};
use narrows_laws::{Control, Detector, Law, Place};
use narrows_testkit::transfer::{Kind, Server, Traffic, connect};
use narrows_testkit::wait_until;
use std::io::{ErrorKind, Write};
use support::law::{Net, agree, counted, counter, detections, detections_of, entries};
use support::{Alone, verified_max};

const PORT: u16 = 7000;
/// Bytes of a job.
const JOB: u64 = 1 << 20;

#[test]
fn every_law_loads_with_every_detector() {
    let Some(_alone) = Alone::once("laws with detectors", &[]) else { return };
    let decide = |detector: &Detector| detector.decides() && detector.is_for_kernel();
    let detectors: Vec<Detector> = Detector::all().filter(decide).collect();
    assert_eq!(detectors, [Detector::SSC, Detector::TR, Detector::BTLBW, Detector::XCORR]);
    let coupled = |law: &Law| Control::of(*law).detector == Detector::SHARED || law.is_model();
    for law in Law::all().filter(coupled) {
        // Detectors are apart from laws: all of them with one window law and the model laws, and the dearest with all.
        let all = law.is_model() || law == Law::LIA;
        let of: &[Detector] = if all { &detectors } else { &[Detector::XCORR] };
        for &detector in of {
            let control = Control { detector, ..Control::of(law) };
            let (law, most) = (Registered::register(control).unwrap(), verified_max(control));
            let insns = law.verified_insns().unwrap();
            println!("{:16} {insns:?}", law.name());
            assert!(insns.iter().all(|(_, insns)| (1..most).contains(insns)), "{insns:?}");
        }
    }
}

fn xcorr() -> Control {
    "lia+xcorr".parse().unwrap()
}

#[test]
fn what_a_detector_keeps_comes_and_goes_with_the_connection() {
    let Some(_alone) = Alone::with("what a detector keeps", &[]) else { return };
    let law = Registered::register(xcorr()).unwrap();
    let net = Net::new(&[20, 20]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = || Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    let traffic = [begin(), begin()];
    agree(&net, xcorr(), law.name(), 4);
    assert_eq!(detections(&law), 4, "of both ends");
    assert_eq!(
        state::Detections::open().unwrap().count().map(|(detections, _)| detections),
        Some(4)
    );
    let tokens: Vec<u32> = entries(&net).iter().map(|entry| entry.token).collect();
    assert!(tokens.iter().all(|&token| state::has_entry(token).unwrap()));
    // The two links have a queue each. Each connection shares both with the other, whose losses make
    // both queues change.
    wait_until(60, || {
        let entries = entries(&net);
        let sends = entries.iter().filter(|entry| entry.netns == net.server.inum);
        let apart = sends.filter(|entry| {
            let decision = state::decision(entry.token).unwrap();
            let places = decision.map(|decision| [decision.places[0], decision.places[1]]);
            let masks = entry.paths.iter().all(|path| path.mask & 3 == 1 << path.slot);
            masks && matches!(places, Some([Place::Group(a), Place::Group(b)]) if a != b)
        });
        if apart.count() > 0 { Ok(()) } else { Err(format!("{entries:?}")) }
    });
    for one in traffic {
        one.stop();
    }
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    assert_eq!(detections(&law), 0, "{}", counted(&law));
    assert_eq!(
        state::Detections::open().unwrap().count().map(|(detections, _)| detections),
        Some(0)
    );
    assert!(tokens.iter().all(|&token| !state::has_entry(token).unwrap()));
    assert_eq!(counter(&law, "undetected"), 0);
}

#[test]
fn without_room_for_what_a_detector_keeps_paths_are_coupled_and_counted() {
    let Some(_alone) = Alone::with("no room for detectors", &[]) else { return };
    let law = Registered::with_room(xcorr(), [100, 5]).unwrap();
    let net = Net::new(&[20, 20]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    // One of its ends gets what its user may have, a fifth of the room. Nobody reads what it is sent.
    let mut first = net.client.run(|| connect(net.address(PORT), Kind::Mptcp)).unwrap().unwrap();
    first.write_all(&[1, 0, 64 * JOB].map(u64::to_le_bytes).concat()).unwrap();
    agree(&net, xcorr(), law.name(), 2);
    wait_until(20, || match detections(&law) {
        1 => Ok(()),
        n => Err(format!("{n} detections")),
    });
    let before: Vec<u32> = entries(&net).iter().map(|entry| entry.token).collect();
    let second = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    agree(&net, xcorr(), law.name(), 4);
    let coupled = |entry: &&Connection| entry.paths.iter().all(|path| path.mask & 3 == 3);
    wait_until(20, || {
        let mut entries = entries(&net);
        entries.retain(|entry| entry.netns == net.server.inum && !before.contains(&entry.token));
        let loses =
            |entry: &Connection| entry.paths.iter().all(|path| path.line.ssthresh < 1 << 30);
        match entries.iter().filter(|entry| loses(entry)).find(coupled) {
            Some(_) => Ok(()),
            None => Err(format!("{entries:?}")),
        }
    });
    assert_eq!(
        (detections(&law), counter(&law, "undetected")),
        (1, 3),
        "the second path of the other end, and of each end of the other connection"
    );
    // Closed with bytes unread, a connection is reset, and both ends are gone at once. There is room
    // again, and who had none tries again each round trip.
    drop(first);
    server.accepted.lock().unwrap().remove(0);
    let others = |of: &&Connection| !before.contains(&of.token);
    wait_until(10, || match entries(&net).iter().filter(others).any(|of| state_of(of.token)) {
        true => Ok(()),
        false => {
            Err(format!("{} detections, {}: {:?}", detections(&law), counted(&law), entries(&net)))
        }
    });
    second.stop();
    let failed = server.stop();
    assert!(
        matches!(&failed[..], [reset] if reset.kind() == ErrorKind::ConnectionReset),
        "{failed:?}"
    );
    net.drained();
    drop(net);
    drop(law);
    // With its connections its maps go, which are smaller than those of whoever comes next.
    wait_until(20, || Registered::register(xcorr()).map(drop).map_err(|error| error.to_string()));
}

/// Does a detector keep something of this connection?
fn state_of(token: u32) -> bool {
    state::Detections::open().unwrap().of(token).unwrap().is_some()
}

#[test]
fn a_control_that_is_unloaded_under_traffic_leaves_nothing_of_its_detector() {
    let Some(_alone) = Alone::with("a detector unloaded under traffic", &[]) else { return };
    let law = Registered::register(xcorr()).unwrap();
    let net = Net::new(&[20, 20]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = || Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, JOB, JOB);
    let traffic = [begin(), begin()];
    agree(&net, xcorr(), law.name(), 4);
    let map = detections_of(&law);
    assert_eq!(map.keys().count(), 4, "of both ends");
    net.set_default("reno");
    drop(law);
    // They keep it, and deliver.
    let before = traffic.each_ref().map(Traffic::bytes);
    wait_until(20, || match traffic.iter().zip(before).all(|(one, before)| one.bytes() > before) {
        true => Ok(()),
        false => Err("no bytes".into()),
    });
    assert_eq!(map.keys().count(), 4);
    for one in traffic {
        one.stop();
    }
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    assert_eq!(map.keys().count(), 0);
}
