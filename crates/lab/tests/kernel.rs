//! Scenarios on this machine's kernel, in real time. Without root, BTF or TUN devices each test says
//! so and passes.
#![cfg(feature = "kernel")]

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use narrows_kernel::state;
use narrows_lab::hosts::kernel::on_wait;
use narrows_lab::series::Sample;
use narrows_lab::{
    App, CaptureRequest, ConnectionSummary, Control, Edits, Error, Job, Output, Run, Scenario,
    host, load, parse, run,
};
use narrows_testkit::machine::{
    Turn, hold_controls, mptcp, tun, turn_of_scenarios, without_scenarios,
};
use narrows_testkit::root::Root;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Runs until one is fit, beside two busy loops on two cores.
const TRIES: u32 = 10;

/// The kernel for one test alone; at the end the root namespace must be as it was.
struct Alone {
    root: Root,
    _turn: Turn,
}

impl Alone {
    /// None, and a word on the terminal, where scenarios cannot run.
    fn with(test: &str) -> Option<Alone> {
        let bpf = narrows_kernel::available().map_err(|reason| reason.to_string());
        let needs = bpf.and_then(|()| tun()).and_then(|()| mptcp());
        Some(Alone { _turn: turn_of_scenarios(test, needs)?, root: without_scenarios(Root::now) })
    }

    /// Runs a scenario as it is.
    fn run(&self, scenario: &Scenario) -> Result<Run, Error> {
        let stop = AtomicBool::new(false);
        on_kernel(Job { series: true, ..Job::new(scenario, &stop) })
    }

    /// The same until the run is fit, so that what is asserted is the kernel's doing and not a busy
    /// machine's. Says what was unfit.
    fn run_fit(&self, scenario: &Scenario) -> Run {
        fit(|| self.run(scenario))
    }

    fn ends(self) {
        without_scenarios(|| self.root.is_unchanged());
    }
}

/// The first run that is fit. Says what was unfit.
fn fit(run: impl Fn() -> Result<Run, Error>) -> Run {
    for _ in 0..TRIES {
        let run = run().unwrap();
        match run.summary.fitness.as_ref().and_then(|fitness| fitness.why.as_ref()) {
            None => return run,
            Some(why) => eprintln!("{}: unfit, runs again: {why}", run.summary.scenario),
        }
    }
    panic!("none of {TRIES} runs was fit");
}

/// Checks and runs a job.
fn on_kernel(job: Job) -> Result<Run, Error> {
    let kernel = host("kernel")?;
    kernel.check(&job)?;
    run(kernel, job)
}

/// A scenario of two links of `rate` with queues of `queue` and a route of 20 ms over each; `rest`
/// follows.
fn scenario(times: &str, rate: &str, queue: &str, rest: &str) -> Scenario {
    let link = format!("rate = \"{rate}\"\ndelay = \"5 ms\"\nqueue = \"{queue}\"");
    let text = format!(
        "name = \"two\"\ntitle = \"two\"\nsource = \"a test\"\n{times}\ntest = \"test\"\n\
         [links.l1]\n{link}\n[links.l2]\n{link}\n\
         [routes.r1]\nlinks = [\"l1\"]\nrtt = \"20 ms\"\n\
         [routes.r2]\nlinks = [\"l2\"]\nrtt = \"20 ms\"\n{rest}"
    );
    parse(&text, &Edits::default()).unwrap()
}

fn of<'a>(run: &'a Run, name: &str) -> &'a ConnectionSummary {
    run.summary.connections.iter().find(|connection| connection.name == name).unwrap()
}

/// Mean goodput of a path between two times of the run, Mbit/s.
fn between(series: &[Sample], path: &str, from: f64, until: f64) -> f64 {
    let of = series.iter().filter(|sample| sample.connection == "test" && sample.path == path);
    let some: Vec<f64> = of
        .filter(|sample| sample.time_s > from && sample.time_s < until)
        .map(|sample| sample.goodput_mbps.unwrap_or(0.0))
        .collect();
    assert!(!some.is_empty(), "no samples of {path} from {from} s until {until} s");
    some.iter().sum::<f64>() / some.len() as f64
}

/// By round trips, as the sender has them.
#[test]
fn a_detector_in_the_kernel_finds_which_paths_share() {
    let Some(alone) = Alone::with("a_detector_in_the_kernel_finds_which_paths_share") else {
        return;
    };
    for name in ["sbd/nsb-2", "sbd/sb-2"] {
        let set = [("warmup", "2 s"), ("duration", "14 s")];
        let set = set.map(|(field, value)| (field.to_owned(), value.to_owned())).to_vec();
        let scenario = load(name, &Edits { set, ..Edits::default() }).unwrap();
        let stop = AtomicBool::new(false);
        let control = "lia+xcorr".parse().unwrap();
        let job = Job { control: Some(control), ..Job::new(&scenario, &stop) };
        let run = on_kernel(job).unwrap();
        let [phase] = &run.summary.detection[..] else { panic!("{:?}", run.summary.detection) };
        println!("{name}: {phase:?}");
        assert_eq!(phase.signal, "rtt");
        assert!(phase.first_correct_s.is_some_and(|s| s < 12.0), "{name}: {phase:?}");
        let last = run.decisions.last().unwrap();
        assert_eq!((last.correct, last.undecided.as_str()), (Some(true), ""), "{name}: {last:?}");
    }
    alone.ends();
}

const TIMES: &str = "warmup = \"2 s\"\nduration = \"4 s\"";

#[test]
fn connections_of_ours_and_of_the_kernel_fill_two_links() {
    let Some(alone) = Alone::with("connections_of_ours_and_of_the_kernel_fill_two_links") else {
        return;
    };
    let scenario = scenario(
        TIMES,
        "10 Mbit/s",
        "35 packets",
        "[flows]\n\
         test = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"olia\" }\n\
         cubic = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"kernel:cubic\" }\n\
         plain = { kind = \"tcp\", routes = [\"r1\"], cc = \"reno\" }\n",
    );
    let mut coupled = false;
    let run = scope(|scope| {
        let running = scope.spawn(|| alone.run(&scenario));
        while !running.is_finished() {
            let all = state::connections().expect("root may read maps");
            coupled |= all.iter().any(|connection| {
                let all = connection.paths.iter().fold(0, |all, path| all | 1 << path.slot);
                let coupled = |path: &state::ConnectionPath| path.mask & all == all;
                connection.control == Some(Control::OLIA)
                    && connection.paths.len() == 2
                    && connection.paths.iter().all(coupled)
            });
            sleep(Duration::from_millis(100));
        }
        running.join().unwrap().unwrap()
    });
    assert!(coupled, "no connection was seen with two paths that OLIA couples");
    let sum: f64 = run.summary.connections.iter().map(|c| c.goodput_mbps).sum();
    // 2 x 10 Mbit/s less the headers of 5 %.
    assert!((16.5..19.5).contains(&sum), "{sum} Mbit/s together");
    for name in ["test", "cubic"] {
        let connection = of(&run, name);
        assert!(!connection.fallback);
        for path in &connection.paths {
            assert!(path.goodput_mbps > 0.2, "{name} on {}: {}", path.name, path.goodput_mbps);
            assert!((15.0..80.0).contains(&path.mean_srtt_ms), "{name}: {}", path.mean_srtt_ms);
            assert!(path.mean_cwnd_packets >= 2.0, "{name}: {path:?}");
        }
        let paths: f64 = connection.paths.iter().map(|path| path.goodput_mbps).sum();
        let whole = connection.goodput_mbps;
        // In 4 s some data was sent on both paths, and some waits for earlier data.
        assert!(
            (0.9..1.5).contains(&(paths / whole)),
            "{name}: {paths} on its paths, {whole} in all"
        );
    }
    assert_eq!(of(&run, "cubic").cc.as_deref(), Some("kernel:cubic"));
    assert!(run.summary.links.iter().all(|link| link.utilization > 0.9 && link.drops > 0));
    let fitness = run.summary.fitness.expect("on the kernel there is one");
    assert!(fitness.lateness_p50_ms > 0.0 && fitness.lateness_p50_ms <= fitness.lateness_max_ms);
    alone.ends();
}

/// The same messages, as they come of the same seed, and a file that needs a few round trips.
#[test]
fn sources_write_what_they_write_in_the_simulator() {
    let Some(alone) = Alone::with("sources_write_what_they_write_in_the_simulator") else { return };
    let scenario = scenario(
        "warmup = \"100 ms\"\nduration = \"4900 ms\"",
        "20 Mbit/s",
        "100 packets",
        "[flows]\n\
         rate = { kind = \"tcp\", routes = [\"r1\"], cc = \"kernel:reno\", source.rate = { mean = \"200 packets/s\", size = { uniform = [\"100 B\", \"1400 B\"] } } }\n\
         noise = { kind = \"udp\", routes = [\"r1\"], source.onoff = { rate = \"300 packets/s\", size = { uniform = [\"100 B\", \"1400 B\"] }, on = \"300 ms\", off = \"200 ms\", shape = 1.5 } }\n\
         burst = { kind = \"tcp\", routes = [\"r2\"], cc = \"kernel:reno\", active = [[\"1 s\", \"2 s\"], [\"3 s\", \"4 s\"]], source.greedy = {} }\n\
         talk = { kind = \"tcp\", routes = [\"r1\"], cc = \"kernel:reno\", source.messages = { size = \"500 B\", interval = \"10 ms\" } }\n\
         test = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"reno\", start = \"500 ms\", source.file.size = \"300 kB\" }\n",
    );
    let simulated = {
        let mut scenario = scenario.clone();
        for flow in &mut scenario.flows {
            if flow.control.is_some() {
                flow.control = Some(Control::RENO.into());
            }
        }
        let stop = AtomicBool::new(false);
        run(host("sim").unwrap(), Job { series: true, ..Job::new(&scenario, &stop) }).unwrap()
    };
    let emulated = alone.run_fit(&scenario);
    for name in ["rate", "noise"] {
        let [ours, theirs] = [&emulated, &simulated].map(|run| of(run, name).goodput_mbps);
        // A few packets lie across the ends of the time.
        assert!((ours / theirs - 1.0).abs() < 0.02, "{name}: {ours} Mbit/s, simulated {theirs}");
    }
    let [ours, theirs] = [&emulated, &simulated].map(|run| of(run, "talk"));
    let [written, expected] = [ours, theirs].map(|talk| talk.messages.unwrap());
    // The thread that writes may be late at the end.
    assert!(written.abs_diff(expected) < 20, "{written}, simulated {expected}");
    assert!(ours.undelivered_messages.unwrap() < 20, "{ours:?}");
    let [ours, theirs] = [ours, theirs].map(|talk| talk.p50_message_ms.unwrap());
    // Later where the machine is busy, never sooner.
    assert!((-0.5..15.0).contains(&(ours - theirs)), "{ours} ms, simulated {theirs}");
    let [ours, theirs] = [&emulated, &simulated].map(|run| of(run, "test").completion_s.unwrap());
    assert!((ours - theirs).abs() < 0.08, "300 kB in {ours} s, simulated {theirs} s");
    // Between its two times of activity it is silent, save what the kernel held.
    let quiet: Vec<f64> = emulated
        .series
        .iter()
        .filter(|sample| sample.connection == "burst" && (2.4..2.9).contains(&sample.time_s))
        .map(|sample| sample.goodput_mbps.unwrap_or(0.0))
        .collect();
    assert!(!quiet.is_empty() && quiet.iter().all(|goodput| *goodput == 0.0), "{quiet:?}");
    let [ours, theirs] = [&emulated, &simulated].map(|run| of(run, "burst").goodput_mbps);
    assert!((ours / theirs - 1.0).abs() < 0.1, "burst: {ours} Mbit/s, simulated {theirs}");
    alone.ends();
}

#[test]
fn links_fail_and_addresses_come_and_go() {
    let Some(alone) = Alone::with("links_fail_and_addresses_come_and_go") else { return };
    let events = [
        "at = \"2 s\"\nlink = \"l2\"\nup = false",
        "at = \"3600 ms\"\nlink = \"l2\"\nup = true",
        "at = \"7 s\"\nflow = \"test\"\nlose = \"r1\"",
        "at = \"9 s\"\nflow = \"test\"\nadd = \"r1\"",
        "at = \"11 s\"\nflow = \"test\"\nlose = \"r2\"",
    ];
    let events: String = events.map(|event| format!("[[events]]\n{event}\n")).concat();
    let flow = "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"lia\" }\n";
    let scenario = scenario(
        "warmup = \"1 s\"\nduration = \"12 s\"",
        "10 Mbit/s",
        "35 packets",
        &format!("{flow}{events}"),
    );
    let run = alone.run_fit(&scenario);
    let mbps = |path, from, until| between(&run.series, path, from, until);
    assert!(mbps("r1", 1.0, 2.0) > 5.0 && mbps("r2", 1.0, 2.0) > 5.0, "both paths at first");
    assert_eq!(mbps("r2", 2.3, 3.6), 0.0, "through a link that is down");
    // Until the connection sends again what the receiver waits for, the other path may wait, too: as long
    // as the link is down, if that is after the fourth timeout.
    assert!(mbps("r1", 2.3, 5.5) > 1.0, "the other path goes on");
    // Its timer was doubled three times at most.
    assert!(mbps("r2", 5.5, 7.0) > 1.0, "the link is up again");
    // Linux closes the subflow in order: what it holds still goes out.
    assert_eq!(mbps("r1", 8.0, 9.0), 0.0, "from an address that is lost");
    assert!(mbps("r2", 7.5, 9.0) > 1.0, "the other path goes on");
    assert!(mbps("r1", 9.6, 11.0) > 1.0, "the address is there again");
    assert_eq!(mbps("r2", 12.0, 13.0), 0.0, "from the other address that is lost");
    assert!(mbps("r1", 11.5, 13.0) > 1.0, "the first path goes on");
    alone.ends();
}

#[test]
fn a_program_takes_the_place_of_a_source() {
    let Some(alone) = Alone::with("a_program_takes_the_place_of_a_source") else { return };
    let flow = "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"olia\", start = \"500 ms\" }\n";
    let scenario =
        scenario("warmup = \"1 s\"\nduration = \"2 s\"", "10 Mbit/s", "35 packets", flow);
    let with = |client: &str, server: Option<&str>| {
        let app = App { client: client.into(), server: server.map(String::from) };
        let stop = AtomicBool::new(false);
        on_kernel(Job { app: Some(&app), ..Job::new(&scenario, &stop) })
    };
    const SERVE: &str = "exec python3 -c 'import socket\n\
        l = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n\
        l.bind((\"\", 7)); l.listen(); c, _ = l.accept()\n\
        while c.recv(65536): pass'";
    const SEND: &str = "exec python3 -c 'import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect((\"{server}\", 7))\n\
        while True: s.sendall(bytes(65536))'";
    let run = fit(|| with(SEND, Some(SERVE)));
    let connection = of(&run, "test");
    // Two links of 10 Mbit/s without headers, and in two seconds what was in their queues before.
    assert!((15.0..19.8).contains(&connection.goodput_mbps), "{}", connection.goodput_mbps);
    assert!(connection.paths.iter().all(|path| path.goodput_mbps > 5.0), "{:?}", connection.paths);
    assert!(run.notes.is_empty(), "{:?}", run.notes);

    // A failure before the analysis, and one that leaves nothing to analyse, are errors.
    for sleep in ["", "sleep 1; "] {
        let fails = format!("{sleep}echo first >&2; echo {{server}} >&2; exit 3");
        let message = with(&fails, None).unwrap_err().to_string();
        let command = fails.replace("{server}", "10.101.0.1");
        let expected = format!("--app: \"{command}\" ended with exit status: 3: 10.101.0.1");
        assert_eq!(message, expected);
    }
    // Later it is a note on a result.
    let late = SEND.replace("exec ", "timeout 2 ");
    let run = fit(|| with(&late, Some(SERVE)));
    assert!(run.notes[0].starts_with("--app: \"timeout 2 "), "{:?}", run.notes);
    assert!(of(&run, "test").goodput_mbps > 0.0);

    let message = with("true", Some("nonsuch-server")).unwrap_err().to_string();
    assert!(
        message.starts_with("--serve: \"nonsuch-server\" ended with exit status: 127"),
        "{message}"
    );
    alone.ends();
}

/// How many segments with data a captured host sends on path `path` before anything comes back.
fn first_flight(capture: &Path, path: u32) -> usize {
    const OUTBOUND: u32 = 2;
    let mut reader = PcapNgReader::new(File::open(capture).unwrap()).unwrap();
    let mut sent = 0;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        if packet.interface_id != path {
            continue;
        }
        if !packet.options.contains(&EnhancedPacketOption::Flags(OUTBOUND)) {
            if sent > 0 {
                break;
            }
            continue;
        }
        // IPv4 without options, and the length of TCP's header.
        let headers = 20 + usize::from(packet.data[32] >> 4) * 4;
        sent += usize::from(packet.original_len as usize > headers);
    }
    sent
}

/// The first flight of a subflow that joins a transfer is what LISA takes for it, `most` of which the
/// scenario sets to 7, and 10 without; for who connects and for who accepts.
#[test]
fn a_joining_subflow_begins_with_what_lisa_takes_for_it() {
    let Some(alone) = Alone::with("a_joining_subflow_begins_with_what_lisa_takes_for_it") else {
        return;
    };
    const SERVE: &str = "exec python3 -c 'import socket\n\
        l = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n\
        l.bind((\"\", 7)); l.listen(); c, _ = l.accept(); c.recv(1)\n\
        c.sendall(bytes(300000)); c.recv(1)'";
    const ASK: &str = "exec python3 -c 'import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect((\"{server}\", 7))\n\
        s.sendall(bytes(1)); left = 300000\n\
        while left: left -= len(s.recv(65536))'";
    let download = App { client: ASK.into(), server: Some(SERVE.into()) };
    for (control, expected) in [("olia", 10), ("olia+lisa", 7)] {
        let rest = format!(
            "[flows]\ntest = {{ kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"{control}\", \
             start = \"500 ms\", source = {{ file = {{ size = \"300 kB\" }} }} }}\n\
             [lisa]\nmost = 7\n"
        );
        let times = "warmup = \"0 s\"\nduration = \"2 s\"";
        let scenario = scenario(times, "50 Mbit/s", "200 packets", &rest);
        for (app, host) in [(None, "sender"), (Some(&download), "receiver")] {
            // A busy machine may send late what belongs to the flight: the longest of some.
            let flights = (0..TRIES).map(|_| {
                let folder = tempfile::tempdir().unwrap();
                let mut output = Output::new(folder.path()).unwrap();
                let capture = CaptureRequest { names: &[], snaplen: None, output: &mut output };
                let stop = AtomicBool::new(false);
                on_kernel(Job { app, capture: Some(capture), ..Job::new(&scenario, &stop) })
                    .unwrap();
                output.commit().unwrap();
                first_flight(&folder.path().join(format!("test.{host}.pcapng")), 1)
            });
            let flights: Vec<usize> = flights
                .scan(false, |done, flight| {
                    let more = !*done;
                    *done |= flight == expected;
                    more.then_some(flight)
                })
                .collect();
            println!("{control}, {host}: first flights {flights:?}");
            assert!(flights.iter().all(|flight| *flight <= expected));
            assert_eq!(flights.last(), Some(&expected), "{control}, {host}: {flights:?}");
        }
    }
    alone.ends();
}

/// The last acknowledgement takes half of the round trip of 20 ms. A busy machine reads late: tries until
/// it did not.
#[test]
fn a_file_is_done_at_the_sender_half_a_round_trip_after_the_receiver() {
    let Some(alone) = Alone::with("a_file_is_done_at_the_sender_half_a_round_trip_after") else {
        return;
    };
    for kind in ["tcp", "mptcp"] {
        let flow = format!(
            "[flows]\ntest = {{ kind = \"{kind}\", routes = [\"r1\"], cc = \"kernel:reno\", \
             start = \"200 ms\", source = {{ file = {{ size = \"100 kB\" }} }} }}\n\
             other = {{ kind = \"tcp\", routes = [\"r2\"], cc = \"kernel:reno\" }}\n"
        );
        let times = "warmup = \"0 s\"\nduration = \"1 s\"";
        let scenario = scenario(times, "50 Mbit/s", "200 packets", &flow);
        let half = (0..TRIES).any(|_| {
            let run = alone.run(&scenario).unwrap();
            let of = of(&run, "test");
            let later = of.acknowledged_s.unwrap() - of.completion_s.unwrap();
            println!("{kind}: {later} s");
            assert!(later >= 0.0);
            later > 0.009
        });
        assert!(half, "{kind}");
    }
    alone.ends();
}

/// The end of the warm-up is between two samples: what runs is looked at all the same.
#[test]
fn a_program_that_chooses_another_control_is_reported() {
    let Some(alone) = Alone::with("a_program_that_chooses_another_control_is_told") else { return };
    let flow = "[flows]\ntest = { kind = \"tcp\", routes = [\"r1\"], cc = \"kernel:reno\" }\n\
                other = { kind = \"tcp\", routes = [\"r2\"], cc = \"kernel:reno\" }\n";
    let times = "warmup = \"950 ms\"\nduration = \"4 s\"";
    let scenario = scenario(times, "10 Mbit/s", "35 packets", flow);
    const SERVE: &str = "exec python3 -c 'import socket\n\
        l = socket.socket(); l.bind((\"\", 7)); l.listen(); c, _ = l.accept()\n\
        while c.recv(65536): pass'";
    const SEND: &str = "exec python3 -c 'import socket\n\
        s = socket.socket(); s.setsockopt(6, socket.TCP_CONGESTION, b\"cubic\")\n\
        s.connect((\"{server}\", 7))\n\
        while True: s.sendall(bytes(65536))'";
    let app = App { client: SEND.into(), server: Some(SERVE.into()) };
    let stop = AtomicBool::new(false);
    let message = on_kernel(Job { app: Some(&app), ..Job::new(&scenario, &stop) });
    let message = message.unwrap_err().to_string();
    assert_eq!(message, "two: the subflow of test from 10.1.0.1 runs cubic, not kernel:reno");
    alone.ends();
}

#[test]
fn a_stop_ends_the_wait_for_a_server() {
    let Some(alone) = Alone::with("a_stop_ends_the_wait_for_a_server") else { return };
    let flow =
        "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"kernel:reno\" }\n";
    let scenario = scenario(TIMES, "10 Mbit/s", "35 packets", flow);
    let app = App { client: "true".into(), server: Some("sleep 60".into()) };
    let asked = Instant::now();
    let stop = AtomicBool::new(true);
    let end = on_kernel(Job { app: Some(&app), ..Job::new(&scenario, &stop) });
    assert!(matches!(end, Err(Error::Interrupted)), "{end:?}");
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    alone.ends();
}

/// No machine is on time to within a tenth of 0.12 ms.
#[test]
fn a_run_that_could_not_keep_time_is_unfit() {
    let Some(alone) = Alone::with("a_run_that_could_not_keep_time_is_unfit") else { return };
    let flow = "[flows]\ntest = { kind = \"tcp\", routes = [\"r1\"], cc = \"kernel:reno\" }\n\
                other = { kind = \"tcp\", routes = [\"r2\"], cc = \"kernel:reno\" }\n";
    let times = "warmup = \"200 ms\"\nduration = \"800 ms\"";
    let run = alone.run(&scenario(times, "100 Mbit/s", "1 packets", flow)).unwrap();
    let fitness = run.summary.fitness.unwrap();
    assert!(!fitness.fit, "{fitness:?}");
    assert!(fitness.why.is_some_and(|why| why.starts_with("p99 ")));
    alone.ends();
}

#[test]
fn what_cannot_run_is_refused_in_one_line_and_leaves_nothing() {
    let Some(alone) = Alone::with("what_cannot_run_is_refused_in_one_line") else { return };
    let flows = |cc: &str| {
        let flow = |name, route| {
            format!("{name} = {{ kind = \"tcp\", routes = [\"{route}\"], cc = \"{cc}\" }}\n")
        };
        format!("[flows]\n{}{}", flow("test", "r1"), flow("other", "r2"))
    };
    let message = |rate: &str, cc: &str| {
        let message = alone.run(&scenario(TIMES, rate, "35 packets", &flows(cc))).unwrap_err();
        assert_eq!(message.exit_code(), 2);
        message.to_string()
    };
    let unknown = message("10 Mbit/s", "kernel:nonsuch");
    let start = "two: flows.test.cc: this kernel has no kernel:nonsuch; expected one of: kernel:";
    assert!(unknown.starts_with(start), "{unknown}");
    let fast = message("2 Gbit/s", "kernel:reno");
    assert!(fast.starts_with("two: links of 4.0 Gbit/s in total;"), "{fast}");
    alone.ends();
}

#[test]
fn a_run_waits_for_another_process_that_has_controls_of_ours() {
    let name = "a_run_waits_for_another_process_that_has_controls_of_ours";
    let Some(alone) = Alone::with(name) else { return };
    let flow = "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"lia\" }\n";
    let times = "warmup = \"100 ms\"\nduration = \"200 ms\"";
    let short = scenario(times, "10 Mbit/s", "35 packets", flow);
    let stop = AtomicBool::new(false);
    static SAID: AtomicBool = AtomicBool::new(false);
    on_wait(|| SAID.store(true, Ordering::Relaxed));
    let ended_by = |end: &mut dyn FnMut()| {
        scope(|scope| {
            let run = scope.spawn(|| on_kernel(Job::new(&short, &stop)));
            let patience = Instant::now() + Duration::from_secs(30);
            while !SAID.load(Ordering::Relaxed) && Instant::now() < patience {
                sleep(Duration::from_millis(20));
            }
            let waits = SAID.swap(false, Ordering::Relaxed) && !run.is_finished();
            end();
            let ended = run.join().unwrap();
            assert!(waits);
            ended
        })
    };
    // As another process has it: by a file of its own.
    let held = hold_controls();
    let error = ended_by(&mut || stop.store(true, Ordering::Relaxed)).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    stop.store(false, Ordering::Relaxed);
    let mut held = Some(held);
    ended_by(&mut || drop(held.take())).unwrap();
    alone.ends();
}

/// Names are the whole kernel's: runs of one process share them, and the first to end leaves them.
#[test]
fn runs_at_the_same_time_share_a_control() {
    let Some(alone) = Alone::with("runs_at_the_same_time_share_a_control") else { return };
    let flow = "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"lia\" }\n";
    let lasts = |time| {
        let times = format!("warmup = \"500 ms\"\nduration = \"{time}\"");
        scenario(&times, "10 Mbit/s", "35 packets", flow)
    };
    let (short, long) = (lasts("1 s"), lasts("2500 ms"));
    scope(|scope| {
        let runs = [&long, &short].map(|scenario| scope.spawn(|| alone.run(scenario)));
        for run in runs {
            let run = run.join().unwrap().unwrap();
            assert!(of(&run, "test").goodput_mbps > 10.0);
        }
    });
    alone.ends();
}

#[test]
fn an_interrupted_run_ends_soon_and_leaves_nothing() {
    let Some(alone) = Alone::with("an_interrupted_run_ends_soon") else { return };
    let flow = "[flows]\ntest = { kind = \"mptcp\", routes = [\"r1\", \"r2\"], cc = \"balia\" }\n";
    let scenario = scenario(TIMES, "10 Mbit/s", "35 packets", flow);
    let stop = AtomicBool::new(false);
    scope(|scope| {
        let running = scope.spawn(|| on_kernel(Job::new(&scenario, &stop)));
        sleep(Duration::from_millis(1500));
        assert!(!running.is_finished(), "{:?}", running.join().unwrap().err());
        stop.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        let end = running.join().unwrap();
        assert!(matches!(end, Err(Error::Interrupted)), "{end:?}");
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    });
    let ours = state::connections().unwrap();
    assert!(ours.iter().all(|connection| connection.control != Some(Control::BALIA)), "{ours:?}");
    alone.ends();
}
