//! Small scenarios of any valid settings run to their end: no panic, no endless loop, and goodput
//! within what the links can carry. Debug assertions are on.
#![no_main]

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use narrows_lab::{Edits, Job, host, parse, run};

#[derive(Arbitrary, Debug)]
struct Link {
    kbits: u16,
    delay_us: u16,
    jitter_us: u8,
    loss_permille: u8,
    queue: u8,
    mtu: u16,
    aqm: u8,
    down_ms: Option<u8>,
}

#[derive(Arbitrary, Debug)]
struct Flow {
    multipath: bool,
    first: bool,
    cc: u8,
    start_ms: u8,
    file: Option<u16>,
    buffer: Option<u16>,
    scheduler: u8,
    ecn: bool,
    lose_ms: Option<u8>,
}

#[derive(Arbitrary, Debug)]
struct Setup {
    links: [Link; 2],
    flows: [Flow; 2],
    seed: u64,
}

const DISCIPLINES: [&str; 6] = ["droptail", "red", "codel", "fq-codel", "pie", "dualpi2"];
const SCHEDULERS: [&str; 4] = ["linux", "min-rtt", "round-robin", "redundant"];

fn toml(setup: &Setup) -> String {
    let mut text = String::from(
        "name = \"fuzz\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"50 ms\"\nduration = \"300 ms\"\n",
    );
    // Writing to a string cannot fail.
    for (n, link) in setup.links.iter().enumerate() {
        let Link { kbits, delay_us, jitter_us, loss_permille, queue, mtu, .. } = link;
        let aqm = DISCIPLINES[usize::from(link.aqm) % DISCIPLINES.len()];
        let ecn = aqm != "droptail";
        let (kbits, loss) = (1 + u32::from(*kbits), f64::from(*loss_permille) / 10.0);
        let (queue, mtu) = (1 + u32::from(*queue), 576 + u32::from(*mtu) % 9000);
        let _ = writeln!(
            text,
            "[links.l{n}]\nrate = \"{kbits} kbit/s\"\ndelay = \"{delay_us} us\"\n\
             jitter = \"{jitter_us} us\"\nloss = \"{loss} %\"\nqueue = \"{queue} packets\"\n\
             mtu = \"{mtu} B\"\naqm = \"{aqm}\"\necn = {ecn}\n[routes.r{n}]\nlinks = [\"l{n}\"]\nrtt = \"150 ms\"",
        );
    }
    for (n, flow) in setup.flows.iter().enumerate() {
        let (kind, routes) = match (flow.multipath || n == 0, flow.first) {
            (true, true) => ("mptcp", "\"r0\", \"r1\""),
            (true, false) => ("mptcp", "\"r1\", \"r0\""),
            (false, true) => ("tcp", "\"r0\""),
            (false, false) => ("tcp", "\"r1\""),
        };
        let controls: Vec<_> = narrows_laws::catalogue::controls().collect();
        let (cc, start) = (controls[usize::from(flow.cc) % controls.len()], flow.start_ms);
        let _ = writeln!(
            text,
            "[flows.f{n}]\nkind = \"{kind}\"\nroutes = [{routes}]\ncc = \"{cc}\"\n\
             start = \"{start} ms\"",
        );
        let _ = writeln!(text, "tcp.ecn = {}", flow.ecn);
        if kind == "mptcp" {
            let scheduler = SCHEDULERS[usize::from(flow.scheduler) % SCHEDULERS.len()];
            let _ = writeln!(text, "scheduler = \"{scheduler}\"");
        }
        if let Some(bytes) = flow.file {
            let _ = writeln!(text, "source.file.size = \"{} B\"", 1 + u32::from(bytes));
        }
        if let Some(bytes) = flow.buffer {
            let _ = writeln!(text, "recv_buffer = \"{} B\"", 3000 + u32::from(bytes));
        }
    }
    // In the order of time.
    let mut events = Vec::new();
    for (n, link) in setup.links.iter().enumerate() {
        if let Some(at) = link.down_ms.map(u32::from) {
            events.push((at, format!("link = \"l{n}\"\nup = false")));
            events.push((at + 50, format!("link = \"l{n}\"\nup = true")));
        }
    }
    if let Some(at) = setup.flows[0].lose_ms.map(u32::from) {
        events.push((at, "flow = \"f0\"\nlose = \"r0\"".into()));
        events.push((at + 50, "flow = \"f0\"\nadd = \"r0\"".into()));
    }
    events.sort();
    for (at, what) in events {
        let _ = writeln!(text, "[[events]]\nat = \"{at} ms\"\n{what}");
    }
    text
}

fuzz_target!(|setup: Setup| {
    let scenario = parse(&toml(&setup), &Edits::default()).expect("a valid scenario");
    let stop = AtomicBool::new(false);
    let job = Job { seed: setup.seed, ..Job::new(&scenario, &stop) };
    let result = run(host("sim").expect("always there"), job);
    let summary = result.unwrap_or_else(|error| panic!("{error}")).summary;
    let bytes: f64 = summary.connections.iter().map(|c| c.goodput_mbps * 0.3e6 / 8.0).sum();
    let bits = |link: &Link| (1.0 + f64::from(link.kbits)) * 350.0;
    // In all the time of the run, also if it is handed on after the warm-up.
    let carried = setup.links.iter().map(bits).sum::<f64>() / 8.0;
    assert!(bytes <= carried + 1.0, "{bytes} B arrived where {carried} B can pass");
});
