//! What happens to connections while they carry data: paths come, go and fall silent, another law is
//! chosen. Transfers go on and stay right, and every subflow is
//! where the map says.

mod support;

use narrows_kernel::control::Registered;
use narrows_laws::{Control, Detector};
use narrows_testkit::net::{self, SERVER6, client, ip};
use narrows_testkit::transfer::{Kind, Server, Traffic, set_control};
use narrows_testkit::wait_until;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, counted, counter, detections, entries, mptcp, slots};

/// What most of it runs.
const LAW: Control = with_detector(Control::OLIA);
const PORT: u16 = 7000;
/// Bytes of a job.
const JOB: u64 = 1 << 20;

const fn with_detector(control: Control) -> Control {
    Control { detector: Detector::XCORR, ..control }
}

#[test]
fn a_download_over_two_ipv6_paths_is_one_connection_in_the_map() {
    let Some(_alone) = Alone::with("two IPv6 paths", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::v6(&[50, 50]);
    net.set_default(law.name());
    let address = (SERVER6, PORT).into();
    let server = Server::start(&net.server, address, Kind::Mptcp);
    let traffic = Traffic::start(&net.client, address, Kind::Mptcp, 0, JOB);
    agree(&net, LAW, law.name(), 2);
    sleep(Duration::from_secs(1));
    assert!(traffic.stop() > 0);
    assert_clean(server);
    net.drained();
    assert_eq!(counter(&law, "joins"), 4);
    println!("  {}", counted(&law));
}

/// Both still deliver.
fn go_on(traffic: &[Traffic; 2]) {
    let before = traffic.each_ref().map(Traffic::bytes);
    wait_until(20, || {
        let after = traffic.each_ref().map(Traffic::bytes);
        let delivers = before[0] < after[0] && before[1] < after[1];
        if delivers { Ok(()) } else { Err(format!("{before:?}, then {after:?}")) }
    });
}

/// No connection of the server has failed.
fn assert_clean(server: Server) {
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn endpoints_come_and_go_during_transfers() {
    let Some(_alone) = Alone::with("endpoints removed and added", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[40, 40, 40]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = |up, down| Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, up, down);
    let traffic = [begin(0, JOB), begin(JOB, 0)];
    agree(&net, LAW, law.name(), 6);
    for round in 0..8 {
        let n = 2 + round % 2;
        let removed = mptcp(&net.server, "RmAddr");
        ip(&net.client, &format!("mptcp endpoint del id {n}"));
        agree(&net, LAW, law.name(), 4);
        // The peer's worker closes what has this id when it comes to it: a new subflow, too. If the option
        // was lost, it is not sent again.
        let deadline = Instant::now() + Duration::from_secs(1);
        while mptcp(&net.server, "RmAddr") < removed + 2 && Instant::now() < deadline {
            sleep(Duration::from_millis(20));
        }
        ip(&net.client, &format!("mptcp endpoint add {} id {n} subflow", client(n)));
        agree(&net, LAW, law.name(), 6);
        go_on(&traffic);
    }
    for one in traffic {
        one.stop();
    }
    assert_clean(server);
    net.drained();
    println!("  {}", counted(&law));
    assert_eq!(counter(&law, "joins"), 2 * (2 * 3 + 2 * 8));
    assert_eq!((slots(&law), detections(&law)), (0, 0));
}

#[test]
fn a_link_is_down_for_ten_seconds_during_transfers() {
    let Some(_alone) = Alone::with("a link down for 10 s", &[]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[20, 20]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = |up, down| Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, up, down);
    let traffic = [begin(0, JOB), begin(JOB, 0)];
    agree(&net, LAW, law.name(), 4);
    sleep(Duration::from_secs(1));
    // Its addresses stay, so the subflows do, and the peer is not notified.
    ip(&net.server, "link set s2 down");
    sleep(Duration::from_secs(5));
    let midway = traffic.each_ref().map(Traffic::bytes);
    sleep(Duration::from_secs(5));
    let silent = traffic.each_ref().map(Traffic::bytes);
    println!("  in the last 5 s of the silence {:?} bytes", sub(silent, midway));
    ip(&net.server, "link set s2 up");
    assert!(midway[0] < silent[0] && midway[1] < silent[1], "{midway:?}, then {silent:?}");
    sleep(Duration::from_secs(2));
    agree(&net, LAW, law.name(), 4);
    for one in traffic {
        one.stop();
    }
    assert_clean(server);
    net.drained();
    println!("  {}", counted(&law));
    assert_eq!(slots(&law), 0);
}

fn sub(later: [u64; 2], sooner: [u64; 2]) -> [u64; 2] {
    [later[0] - sooner[0], later[1] - sooner[1]]
}

#[test]
fn the_law_of_living_connections_is_switched() {
    let Some(_alone) = Alone::with("the law switched on living sockets", &[]) else { return };
    let detecting = with_detector(Control::LIA);
    let controls = [LAW, Control::LIA, detecting, Control::BALIA, Control::RENO];
    let laws = controls.map(|control| Registered::register(control).unwrap());
    let net = Net::new(&[60, 60, 60]);
    net.set_default(laws[0].name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let begin = |up, down| Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, up, down);
    // What sends nothing has no round trips to try again to join in.
    let traffic = [begin(JOB, JOB), begin(JOB, JOB)];
    agree(&net, controls[0], laws[0].name(), 6);
    let switch = |name: &str| {
        let accepted = server.accepted.lock().unwrap();
        for stream in traffic.iter().map(|one| &one.stream).chain(accepted.iter()) {
            set_control(stream, name).unwrap();
        }
    };
    for round in 1..=12 {
        if round % 3 == 0 {
            switch("cubic");
            let by_ss = [&net.client, &net.server].map(|host| net::sockets(host)).concat();
            assert!(by_ss.iter().all(|socket| socket.runs("cubic")), "{by_ss:?}");
            assert!(entries(&net).is_empty(), "{:?}", entries(&net));
        }
        let next = round % laws.len();
        switch(laws[next].name());
        agree(&net, controls[next], laws[next].name(), 6);
        go_on(&traffic);
    }
    for one in traffic {
        one.stop();
    }
    assert_clean(server);
    net.drained();
    for law in &laws {
        println!("  {}: {}", law.name(), counted(law));
        assert_eq!(slots(law), 0);
    }
    assert_eq!(detections(&laws[0]), 0);
}
