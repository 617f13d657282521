//! Scenarios on QUIC: the seed fixes every byte, a connection takes its share, and what QUIC has not
//! is refused.
#![cfg(feature = "quic")]

use std::sync::atomic::AtomicBool;

use narrows_lab::{
    Edits, Error, FlowKind, Job, PathSummary, Run, Scenario, Signal, host, load, parse, run, series,
};

/// Two paths over the links `over`, of 20 Mbit/s each, and `more`; so long after a warm-up of 8 s.
fn network(over: [&str; 2], seconds: u32, more: &str) -> Scenario {
    let [first, second] = over;
    let link = |name| format!("links.{name} = {{ rate = \"20 Mbit/s\", queue = \"40 ms\" }}");
    let links = if first == second { link(first) } else { link(first) + "\n" + &link(second) };
    let file = format!(
        r#"
        name = "two"
        title = ""
        source = ""
        warmup = "8 s"
        duration = "{seconds} s"
        jitter = "2 packets"
        test = "mptcp"
        {links}
        routes.first = {{ links = ["{first}"], rtt = "30 ms" }}
        routes.second = {{ links = ["{second}"], rtt = "34 ms" }}
        flows.mptcp = {{ kind = "mptcp", routes = ["first", "second"], cc = "greno" }}
        {more}
        "#
    );
    parse(&file, &Edits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A TCP over link b.
const RIVAL: &str = r#"
    routes.other = { links = ["b"], rtt = "32 ms" }
    flows.tcp = { kind = "tcp", routes = ["other"], cc = "reno" }
"#;

fn on(name: &str, scenario: &Scenario, cc: &str, seed: u64) -> Result<Run, Error> {
    let stop = AtomicBool::new(false);
    let control = Some(cc.parse().unwrap());
    let job = Job { control, seed, series: true, ..Job::new(scenario, &stop) };
    let host = host(name).unwrap();
    host.check(&job)?;
    run(host, job)
}

fn on_quic(scenario: &Scenario, cc: &str, seed: u64) -> Run {
    on("quic", scenario, cc, seed).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_run_is_a_function_of_its_scenario_and_seed() {
    let scenario = network(["a", "b"], 4, RIVAL);
    let bytes = |cc: &str, seed| {
        let run = on_quic(&scenario, cc, seed);
        let mut bytes = serde_json::to_vec(&(&run.summary, &run.decisions)).unwrap();
        series::write_csv(&run.series, &mut bytes).unwrap();
        bytes
    };
    let first = bytes("lia+xcorr", 1);
    assert_eq!(first, bytes("lia+xcorr", 1));
    assert_ne!(first, bytes("lia+xcorr", 2));
    assert_ne!(first, bytes("reno", 1));
}

#[test]
fn two_links_are_filled() {
    for cc in ["reno", "greno+xcorr", "gcubic+xcorr"] {
        let run = on_quic(&network(["a", "b"], 10, ""), cc, 1);
        let quic = &run.summary.connections[0];
        assert!(quic.goodput_mbps > 37.5, "{cc}: {} Mbit/s", quic.goodput_mbps);
        // What arrives on each path is known by its datagrams.
        let paths: f64 = quic.paths.iter().map(|path| path.goodput_mbps).sum();
        assert!((paths / quic.goodput_mbps - 1.0).abs() < 0.01, "{cc}: {paths} Mbit/s");
        let right = |path: &PathSummary| (17.0..20.0).contains(&path.goodput_mbps);
        assert!(quic.paths.iter().all(right), "{cc}: {:?}", quic.paths);
    }
}

/// What a path holds with its queue full, and more than BBR's window in Startup.
fn one_path(rtt_ms: u32, queue_ms: u32) -> Scenario {
    let file = format!(
        r#"
        name = "one"
        title = ""
        source = ""
        warmup = "4 s"
        duration = "8 s"
        test = "flow"
        links.l = {{ rate = "20 Mbit/s", queue = "{queue_ms} ms" }}
        routes.r = {{ links = ["l"], rtt = "{rtt_ms} ms" }}
        flows.flow = {{ kind = "tcp", routes = ["r"], cc = "bbr" }}
        "#
    );
    parse(&file, &Edits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A quarter of a BDP, where default buffers hold less than BBR's window in Startup; and two BDP.
#[test]
fn model_laws_are_on_quic_what_they_are_in_the_simulator() {
    for (rtt_ms, queue_ms) in [(100, 25), (20, 40)] {
        let scenario = one_path(rtt_ms, queue_ms);
        for cc in ["bbr", "bbr3"] {
            let runs = ["sim", "quic"].map(|host| on(host, &scenario, cc, 1).unwrap());
            let [sim, quic] = runs.each_ref().map(|run| &run.summary.connections[0]);
            let ratio = quic.goodput_mbps / sim.goodput_mbps;
            assert!(
                (0.95..1.05).contains(&ratio),
                "{cc}, {rtt_ms} ms: {ratio:.3} of the simulator"
            );
            // A few are chance.
            let lost = [sim, quic].map(|of| of.retransmits as f64 + 20.0);
            assert!((0.4..2.5).contains(&(lost[1] / lost[0])), "{cc}, {rtt_ms} ms: {lost:?}");
            let queues = runs.each_ref().map(|run| run.summary.links[0].mean_queue_ms);
            assert!((queues[0] - queues[1]).abs() < 3.0, "{cc}, {rtt_ms} ms: {queues:?} ms");
        }
    }
}

/// A path of 1 Mbit/s and 600 ms fills buffers of 1 MB with what comes after it on one of 50 Mbit/s:
/// BBR advises to park it where it is asked, and its host does.
#[test]
fn a_path_is_parked_on_the_law_s_advice() {
    let goodput = |close: &str| {
        let set = [
            ("warmup", "15 s"),
            ("duration", "10 s"),
            ("flows.mptcp.send_buffer", "1 MB"),
            ("flows.mptcp.recv_buffer", "1 MB"),
            ("bbr.close", close),
        ];
        let set = set.map(|(field, value)| (field.to_owned(), value.to_owned())).to_vec();
        let scenario = load("cmpbbr/four", &Edits { set, ..Edits::default() }).unwrap();
        on_quic(&scenario, "bbr+disjoint", 1).summary.connections[0].goodput_mbps
    };
    let (open, parked) = (goodput("0"), goodput("0.6"));
    assert!(parked > 1.3 * open, "{open:.1} and {parked:.1} Mbit/s");
}

/// Beside a QUIC connection of one path.
#[test]
fn on_one_link_a_coupled_connection_is_one_flow_and_an_uncoupled_one_two() {
    let scenario = network(["b", "b"], 45, &RIVAL.replace("\"tcp\"", "\"mptcp\""));
    let ratio = |cc: &str| {
        let ratios = (1..=3).map(|seed| {
            let run = on_quic(&scenario, cc, seed);
            let [test, rival] = &run.summary.connections[..] else { panic!("two flows") };
            assert!(test.goodput_mbps + rival.goodput_mbps > 18.5, "{cc}: the link is full");
            test.goodput_mbps / rival.goodput_mbps
        });
        ratios.sum::<f64>() / 3.0
    };
    let coupled = ratio("greno");
    assert!((0.8..1.25).contains(&coupled), "{coupled}");
    let uncoupled = ratio("reno");
    assert!(uncoupled > 1.5, "{uncoupled}");
}

/// On slow paths every few packets one is acknowledged alone, after up to 25 ms, which is no queue.
#[test]
fn a_link_shared_by_slow_paths_is_found() {
    let file = r#"
        name = "slow"
        title = ""
        source = ""
        warmup = "15 s"
        duration = "25 s"
        test = "mptcp"
        links.b = { rate = "20 Mbit/s", queue = "60 ms" }
        routes.first = { links = ["b"], rtt = "160 ms" }
        routes.second = { links = ["b"], rtt = "180 ms" }
        phases = [{ start = "0 s", groups = [["first", "second"]] }]
        flows.mptcp = { kind = "mptcp", routes = ["first", "second"], cc = "greno" }
        background = { links = ["b"], greedy = [14], rtt = ["160 ms", "180 ms"] }
    "#;
    let scenario = parse(file, &Edits::default()).unwrap();
    let right = (1..=3).map(|seed| {
        let run = on_quic(&scenario, "greno+xcorr", seed);
        run.summary.detection[0].accuracy.unwrap()
    });
    let right = right.sum::<f64>() / 3.0;
    assert!(right > 0.9, "right in {right}");
}

/// Flows that meet no QUIC are to the byte what they are beside MPTCP.
#[test]
fn other_flows_are_those_of_the_simulator() {
    let more = r#"
        links.b = { rate = "20 Mbit/s", queue = "40 ms" }

        [flows.udp]
        kind = "udp"
        routes = ["other"]
        source = { rate = { mean = "250 packets/s", size = { constant = "1000 B" } } }
    "#;
    let scenario = network(["a", "a"], 10, &format!("{RIVAL}{more}"));
    let others = |host| on(host, &scenario, "lia", 3).unwrap().summary.connections[1..].to_vec();
    assert_eq!(others("quic"), others("sim"));
}

#[test]
fn a_path_whose_address_is_lost_carries_data_again_when_it_is_back() {
    for opener in ["sender", "receiver"] {
        let events = r#"
            events = [
                { at = "9 s", flow = "mptcp", lose = "first" },
                { at = "12 s", flow = "mptcp", add = "first" },
            ]
        "#;
        let scenario = network(["a", "b"], 10, &format!("tcp.opener = \"{opener}\"\n{events}"));
        let run = on_quic(&scenario, "greno", 1);
        let mean = |path: &str, from: f64, to: f64| {
            let of = run.series.iter().filter(|of| of.path == path);
            let rates = of
                .filter(|of| from < of.time_s && of.time_s <= to)
                .filter_map(|of| of.goodput_mbps);
            rates.clone().sum::<f64>() / rates.count() as f64
        };
        assert!(mean("first", 7.0, 9.0) > 15.0, "{opener}");
        assert_eq!(mean("first", 9.5, 12.0), 0.0, "{opener}");
        assert!(mean("second", 9.5, 12.0) > 15.0, "{opener}");
        assert!(mean("first", 14.0, 18.0) > 15.0, "{opener}: {}", mean("first", 14.0, 18.0));
        assert_eq!(run.notes, Vec::<String>::new(), "{opener}");
    }
}

#[test]
fn what_quic_has_not_is_refused_by_its_field() {
    let refused = |scenario: &Scenario, cc, start: &str| {
        let message = on("quic", scenario, cc, 1).unwrap_err().to_string();
        assert!(message.starts_with(start) && !message.contains('\n'), "{message}");
    };
    let plain = network(["a", "b"], 10, "");
    refused(&plain, "kernel:cubic", "--cc: the simulator has no kernel:cubic");
    refused(&plain, "mptcp-sbd", "--cc: signal receiver-us: a one-way delay");
    let mut small = plain.clone();
    small.links[1].config.mtu = 1000;
    refused(&small, "lia", "two: links.b.mtu: QUIC needs 1228 B; found 1000 B");
    let mut single = plain.clone();
    single.test = None;
    single.flows[0].kind = FlowKind::Tcp;
    refused(&single, "lia", "two: flows: expected a flow of kind mptcp");
    let mut asked = plain;
    asked.set_signal(Signal::SenderUs);
    refused(&asked, "lia+ssc", "detection.signal: signal sender-us: a one-way delay");
}
