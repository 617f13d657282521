//! Scenarios on QUIC end points of noq in network namespaces, in real time. Without root, TUN devices or BTF
//! (for TCP's laws) each test that needs them says so and passes.
#![cfg(all(feature = "kernel", feature = "quic"))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use narrows_lab::{
    CaptureRequest, Edits, Error, Job, Output, Run, Scenario, Signal, host, parse, run,
};
use narrows_testkit::machine::{Turn, root, tun, turn_of_scenarios, without_scenarios};
use narrows_testkit::root::Root;
use narrows_traffic::Source;

/// The machine for one test alone; at the end the root namespace must be as it was.
struct Alone {
    root: Root,
    _turn: Turn,
}

impl Alone {
    /// None, and a word on the terminal, where scenarios cannot run.
    fn with(test: &str) -> Option<Alone> {
        let turn = turn_of_scenarios(test, root().and_then(|()| tun()))?;
        Some(Alone { root: without_scenarios(Root::now), _turn: turn })
    }

    /// Runs a scenario. What is asserted of it must hold on a busy machine.
    fn run(&self, scenario: &Scenario) -> Run {
        let stop = AtomicBool::new(false);
        let run = on_quic_real(Job { series: true, ..Job::new(scenario, &stop) }).unwrap();
        println!("{:?}", run.summary.fitness.as_ref().expect("real time was measured"));
        run
    }

    fn ends(self) {
        without_scenarios(|| self.root.is_unchanged());
    }
}

/// Checks and runs a job.
fn on_quic_real(job: Job) -> Result<Run, Error> {
    let host = host("quic-real")?;
    host.check(&job)?;
    run(host, job)
}

/// Two links of 10 Mbit/s with queues of 40 ms, and a route of 20 ms over each; `flow` is what the flow under
/// test has beside its kind and routes, and `more` follows.
fn scenario(flow: &str, more: &str) -> Scenario {
    let link = "rate = \"10 Mbit/s\"\nqueue = \"40 ms\"";
    let text = format!(
        "name = \"two\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"2 s\"\nduration = \"5 s\"\n\
         test = \"test\"\n\
         [links.l1]\n{link}\n[links.l2]\n{link}\n\
         [routes.r1]\nlinks = [\"l1\"]\nrtt = \"20 ms\"\n\
         [routes.r2]\nlinks = [\"l2\"]\nrtt = \"20 ms\"\n\
         [flows]\n\
         test = {{ kind = \"mptcp\", routes = [\"r1\", \"r2\"], {flow} }}\n{more}"
    );
    parse(&text, &Edits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Mean goodput of a path of the flow under test between two times of the run, Mbit/s.
fn between(run: &Run, path: &str, from: f64, until: f64) -> f64 {
    let of = run.series.iter().filter(|of| of.connection == "test" && of.path == path);
    let rates =
        of.filter(|of| from < of.time_s && of.time_s <= until).map(|of| of.goodput_mbps.unwrap());
    let rates: Vec<f64> = rates.collect();
    assert!(!rates.is_empty(), "no samples of {path} from {from} s until {until} s");
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// The kernel's own NewReno has a part of one of two links.
#[test]
fn a_connection_has_more_than_one_path_s_rate_beside_the_kernel_s_tcp() {
    let Some(alone) = Alone::with("more than one path's rate, beside the kernel's TCP") else {
        return;
    };
    let tcp = "tcp = { kind = \"tcp\", routes = [\"r2\"], cc = \"kernel:reno\" }\n";
    let run = alone.run(&scenario("cc = \"reno\"", tcp));
    let [test, tcp] = &run.summary.connections[..] else { panic!("two flows") };
    println!("{} and {} Mbit/s", test.goodput_mbps, tcp.goodput_mbps);
    assert!(test.goodput_mbps > 11.0, "{} Mbit/s", test.goodput_mbps);
    assert!(tcp.goodput_mbps > 1.0, "{} Mbit/s", tcp.goodput_mbps);
    let paths: f64 = test.paths.iter().map(|path| path.goodput_mbps).sum();
    assert!((paths / test.goodput_mbps - 1.0).abs() < 0.05, "{paths} Mbit/s on its paths");
    // What its controllers and noq report of each path.
    for path in &test.paths {
        assert!(path.goodput_mbps > 1.0, "{path:?}");
        assert!((20.0..200.0).contains(&path.mean_srtt_ms), "{path:?}");
        assert!(path.mean_cwnd_packets > 2.0, "{path:?}");
    }
    alone.ends();
}

#[test]
fn a_path_whose_address_is_lost_carries_data_again_when_it_is_back() {
    let Some(alone) = Alone::with("an address is lost and comes back") else { return };
    let events = "[[events]]\nat = \"2 s\"\nflow = \"test\"\nlose = \"r1\"\n\
                  [[events]]\nat = \"4 s\"\nflow = \"test\"\nadd = \"r1\"\n";
    for opener in ["sender", "receiver"] {
        let opener = format!("cc = \"greno\", tcp = {{ opener = \"{opener}\" }}");
        let run = alone.run(&scenario(&opener, events));
        let rates = [(1.0, 2.0), (2.5, 4.0), (5.0, 7.0)].map(|(a, b)| between(&run, "r1", a, b));
        println!("{opener}: {rates:?}");
        assert!(rates[0] > 3.0 && rates[2] > 3.0, "{opener}: {rates:?}");
        assert_eq!(rates[1], 0.0, "{opener}: {rates:?}");
        assert!(between(&run, "r2", 2.5, 4.0) > 3.0, "{opener}");
        assert_eq!(run.notes, Vec::<String>::new(), "{opener}");
    }
    alone.ends();
}

/// And one captures what its hosts send: both paths.
#[test]
fn a_file_arrives_and_is_acknowledged() {
    let Some(alone) = Alone::with("a file") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut output = Output::new(folder.path()).unwrap();
    let flow = "cc = \"lia\", source = { file = { size = \"2 MB\" } }, start = \"1 s\"";
    let scenario = scenario(flow, "");
    let stop = AtomicBool::new(false);
    let names = ["test".to_owned()];
    let capture = CaptureRequest { names: &names, snaplen: None, output: &mut output };
    let run = on_quic_real(Job { capture: Some(capture), ..Job::new(&scenario, &stop) }).unwrap();
    output.commit().unwrap();
    let test = &run.summary.connections[0];
    let times = test.completion_s.zip(test.acknowledged_s);
    let (completed, acknowledged) = times.unwrap_or_else(|| panic!("{test:?}: {:?}", run.notes));
    // 16 Mbit over 20 Mbit/s, and not in the time before it starts.
    assert!(completed > 0.8, "{completed} s");
    assert!(acknowledged >= completed, "{acknowledged} s after {completed} s");
    let captured = std::fs::metadata(folder.path().join("test.receiver.pcapng")).unwrap();
    assert!(captured.len() > 100_000, "{} bytes captured", captured.len());
    alone.ends();
}

#[test]
fn an_interrupted_run_ends_soon_and_leaves_nothing() {
    let Some(alone) = Alone::with("an interrupted run") else { return };
    let scenario = scenario("cc = \"balia\"", "");
    let stop = AtomicBool::new(false);
    scope(|scope| {
        let running = scope.spawn(|| on_quic_real(Job::new(&scenario, &stop)));
        sleep(Duration::from_millis(1500));
        assert!(!running.is_finished(), "{:?}", running.join().unwrap().err());
        stop.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        let end = running.join().unwrap();
        assert!(matches!(end, Err(Error::Interrupted)), "{end:?}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    });
    alone.ends();
}

#[test]
fn what_it_has_not_is_refused_by_its_field() {
    let refused = |scenario: &Scenario, cc: &str, start: &str| {
        let stop = AtomicBool::new(false);
        let control = Some(cc.parse().unwrap());
        let job = Job { control, ..Job::new(scenario, &stop) };
        let message = on_quic_real(job).unwrap_err().to_string();
        assert!(message.starts_with(start) && !message.contains('\n'), "{message}");
    };
    let plain = scenario("cc = \"lia\"", "");
    refused(
        &plain,
        "kernel:cubic",
        "--cc: QUIC has no kernel:cubic; expected a control of narrows",
    );
    let mut asked = plain.clone();
    asked.set_signal(Signal::SenderUs);
    refused(&asked, "lia+ssc", "detection.signal: signal sender-us: a one-way delay");
    let mut small = plain.clone();
    small.links[1].config.mtu = 1000;
    refused(&small, "lia", "two: links.l2.mtu: QUIC needs 1228 B; found 1000 B");
    let mut messages = plain.clone();
    messages.flows[0].source = Source::Messages { bytes: 100, interval: 1_000_000, poisson: false };
    let unmeasured = "two: flows.test.source: the latency of messages is not measured";
    refused(&messages, "lia", unmeasured);
    let mut marks = plain;
    marks.links[0].config.ecn = true;
    refused(
        &marks,
        "lia",
        "two: flows.test.tcp.ecn: link \"l1\" marks, and all of noq's datagrams",
    );
}
