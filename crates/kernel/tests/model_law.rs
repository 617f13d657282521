//! What the kernel does for a model law: it paces at the law's rate, also without fq, and reports
//! recovery, timeouts and the end of idle time.

mod support;

use narrows_kernel::control::Registered;
use narrows_kernel::object;
use narrows_laws::user::{self, Checks};
use narrows_laws::{Control, EventKind};
use narrows_testkit::net::{UNLIMITED, ip, run};
use narrows_testkit::transfer::{Kind, Server, Traffic};
use narrows_testkit::wait_until;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, counted, entries, slots};

const PORT: u16 = 7000;
/// Some seconds on both paths.
const JOB: u64 = 4 << 20;
/// `NR_PACED_RATE`, bytes/s.
const RATE: f64 = 625_000.0;

#[test]
fn a_model_law_paces_and_is_told_of_losses_timeouts_and_idle_time() {
    let Some(_alone) = Alone::with("a model law", &[]) else { return };
    let law = user::load(Path::new("tests/model_law/paced.h"), Checks::None).unwrap();
    let law = Control::of(law);
    object::compile_user().unwrap();
    let registered = Registered::register(law).unwrap();
    let net = Net::new(&[UNLIMITED, UNLIMITED]);
    net.set_default(registered.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    agree(&net, law, registered.name(), 2);

    // Nothing else limits it. A busy machine may send less for a while, and make up for a little.
    let mut most = 0.0_f64;
    wait_until(30, || {
        let (began, before) = (Instant::now(), traffic.bytes());
        sleep(Duration::from_secs(1));
        let paths = (traffic.bytes() - before) as f64 / began.elapsed().as_secs_f64() / RATE;
        most = most.max(paths);
        if paths < 1.8 { Err(format!("{paths:.2} of two paths' rate")) } else { Ok(()) }
    });
    println!("  {most:.2} times the rate of a path, over two");
    assert!(most < 2.4, "{most} times the rate of a path, over two");

    // A slower queue.
    let tc = |line: &str| run("tc", &line.split(' ').collect::<Vec<_>>());
    let on = format!("-n {} qdisc", net.server.name);
    tc(&format!("{on} add dev s1 root tbf rate 2mbit burst 4kb limit 20kb"));
    had(&net, &[EventKind::Recovery, EventKind::Recovered]);
    tc(&format!("{on} del dev s1 root"));
    // No way back for acknowledgements.
    ip(&net.client, "route replace blackhole default table 102");
    had(&net, &[EventKind::Timeout]);
    ip(&net.client, "route replace default via 10.77.2.2 dev c2 table 102");
    // Between jobs.
    had(&net, &[EventKind::Restart]);

    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    println!("  {}", counted(&registered));
    assert_eq!(slots(&registered), 0);
}

/// Waits until the server's law has had these events, on any path.
fn had(net: &Net, kinds: &[EventKind]) {
    wait_until(20, || {
        let entries = entries(net);
        let server = entries.iter().filter(|entry| entry.netns == net.server.inum);
        let paths = server.flat_map(|entry| &entry.paths);
        let had = paths.fold(0, |had, path| had | path.line.word[0]);
        match kinds.iter().find(|kind| had & 1 << **kind as u32 == 0) {
            Some(missing) => Err(format!("no {missing:?}: {had:#b}")),
            None => Ok(()),
        }
    });
}
