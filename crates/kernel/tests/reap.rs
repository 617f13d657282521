//! Entries that no path has any more are deleted, and no entry that one has.

mod support;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use narrows_kernel::control::Registered;
use narrows_kernel::reap;
use narrows_kernel::state::{DETECTIONS, USERS, USERS_ALL};
use narrows_laws::Control;
use narrows_testkit::machine::leaves_programs_out;
use narrows_testkit::transfer::{Kind, Server, Traffic};
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, counter};

/// Its detector keeps something of each connection, too.
fn control() -> Control {
    "olia+xcorr".parse().unwrap()
}

const PORT: u16 = 7000;
/// Bytes of a job.
const JOB: u64 = 1 << 20;

#[test]
fn what_was_left_behind_is_reaped_and_what_lives_is_not() {
    let Some(_alone) = Alone::with("entries left behind", &[]) else { return };
    let law = Registered::register(control()).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, JOB, JOB);
    agree(&net, control(), law.name(), 2);

    let map = law.loaded().object().maps().find(|map| map.name() == "nr_conns").unwrap();
    let map = MapHandle::try_from(&map).unwrap();
    let living: Vec<Vec<u8>> = map.keys().collect();
    assert_eq!(living.len(), 2, "both ends");
    // More than the program takes in a run. Tokens that no connection has; the sockets of the first
    // ones live, and have other slots; those of the others never did.
    let copy = map.lookup(&living[0], MapFlags::ANY).unwrap().unwrap();
    let left = 2500u32;
    for n in 1..=left {
        let mut value = if n <= 1000 { copy.clone() } else { vec![0xa5; copy.len()] };
        let slots = if n % 3 == 0 { 0 } else { u64::from(n & 0xff) };
        value[..8].copy_from_slice(&(u64::from(n) << 32 | slots).to_ne_bytes());
        map.update(&n.to_ne_bytes(), &value, MapFlags::NO_EXIST).unwrap();
    }
    let detections = law.loaded().object().maps().find(|map| map.name() == DETECTIONS).unwrap();
    let detections = MapHandle::try_from(&detections).unwrap();
    let kept = detections.lookup(&living[0], MapFlags::ANY).unwrap().expect("of a living one");
    for n in 1..=10u32 {
        detections.update(&n.to_ne_bytes(), &kept, MapFlags::NO_EXIST).unwrap();
    }
    // They count as users'.
    let all = |add| used(&law, USERS_ALL, add);
    assert_eq!(all([left, 10]), [2, 2], "entries, and detections");
    // One that is being made, or deleted, is somebody's.
    let closed = left + 1;
    let mut value = copy.clone();
    value[..8].copy_from_slice(&(1u64 << 8).to_ne_bytes());
    map.update(&closed.to_ne_bytes(), &value, MapFlags::NO_EXIST).unwrap();

    assert_eq!(reap().unwrap(), left);
    assert_eq!(all([0, 0]), [2, 2]);
    assert_eq!(detections.keys().count(), 2, "of the living");
    let mut kept: Vec<Vec<u8>> = map.keys().collect();
    kept.retain(|key| *key != closed.to_ne_bytes());
    kept.sort();
    let mut expected = living.clone();
    expected.sort();
    assert_eq!(kept, expected);
    map.delete(&closed.to_ne_bytes()).unwrap();

    // Over and over while connections come and go: none loses its entry.
    let end = Instant::now() + Duration::from_secs(5);
    let mut connections = 0;
    while Instant::now() < end {
        let short = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 1000, 1000);
        // A kernel that leaves programs out leaves entries.
        assert!(reap().unwrap() == 0 || leaves_programs_out());
        short.stop();
        connections += 1;
    }
    println!("  {connections} connections");
    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    assert_eq!(counter(&law, "fallback_lost"), 0);
}

#[test]
fn what_detectors_of_other_builds_kept_is_deleted_with_the_entries() {
    let Some(_alone) = Alone::with("detections of other builds", &[]) else { return };
    // Its own connections have no detections: the only maps of them are other builds', one each.
    let law = Registered::register(Control::OLIA).unwrap();
    let map = law.loaded().object().maps().find(|map| map.name() == "nr_conns").unwrap();
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    let other = 8u32;
    let detections = [(7u32, 100), (9, 80), (11, 60)].map(|(token, bytes)| {
        let detections =
            MapHandle::create(MapType::Hash, Some(DETECTIONS), 4, bytes, 10, &options).unwrap();
        let mut entry = vec![0; map.value_size() as usize];
        entry[..8].copy_from_slice(&(u64::from(token) << 32 | 1).to_ne_bytes());
        map.update(&token.to_ne_bytes(), &entry, MapFlags::NO_EXIST).unwrap();
        for key in [token, other] {
            let detection = vec![0; bytes as usize];
            detections.update(&key.to_ne_bytes(), &detection, MapFlags::NO_EXIST).unwrap();
        }
        detections
    });
    // The third was not counted.
    let root = [0, USERS_ALL];
    for user in root {
        used(&law, user, [3, 2]);
    }
    assert_eq!(reap().unwrap(), 3);
    for user in root {
        assert_eq!(used(&law, user, [0, 0]), [0, 0], "nobody has less than nothing");
    }
    for detections in detections {
        let left: Vec<Vec<u8>> = detections.keys().collect();
        assert_eq!(left, [other.to_ne_bytes()], "that of a connection which is in no entry");
        // The kernel frees it later, and an empty one is in nobody's way.
        detections.delete(&other.to_ne_bytes()).unwrap();
    }
}

/// Adds to what a user has, entries and detections, and returns what that was.
fn used(law: &Registered, user: u32, add: [u32; 2]) -> [u32; 2] {
    let users = law.loaded().object().maps().find(|map| map.name() == USERS).unwrap();
    let key = user.to_ne_bytes();
    let value = users.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    let now = [0, 4].map(|at| u32::from_ne_bytes(value[at..at + 4].try_into().unwrap()));
    let sum = [now[0] + add[0], now[1] + add[1]].map(u32::to_ne_bytes).concat();
    users.update(&key, &sum, MapFlags::ANY).unwrap();
    now
}
