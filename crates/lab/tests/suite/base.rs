//! A scenario and its base: what each of them says.

use std::fs;
use std::sync::atomic::AtomicBool;

use narrows_lab::{Edits, Job, Made, Scenario, host, load, run};
use narrows_net::{Distribution, Limit, MILLISECOND, SECOND};

const BASE: &str = r#"
name = "base"
title = "The base"
source = "test"
warmup = "1 s"
duration = "9 s"

[links]
first = { rate = "10 Mbit/s", delay = "2 ms", queue = "20 packets" }
second = { rate = "10 Mbit/s" }

[routes]
a = { links = ["first", "second"], rtt = "20 ms" }

[flows]
one = { kind = "tcp", routes = ["a"], cc = "reno" }
two = { kind = "tcp", routes = ["a"], cc = "cubic" }

[[paper]]
cc = ["lia"]
ratio_to_tcp = 1.0
place = "Figure 1"
"#;

const OWN: &str = "name = \"top\"\ntitle = \"The top\"\nsource = \"also a test\"\n";

/// The scenario `top` with the base `base`, in a folder of its own.
fn over(base: &str, top: &str) -> Scenario {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("bases")).unwrap();
    fs::write(home.path().join("bases/base.toml"), base).unwrap();
    fs::write(home.path().join("bases/trace"), "1\n2\n").unwrap();
    let file = home.path().join("top.toml");
    fs::write(&file, format!("base = \"bases/base.toml\"\n{OWN}{top}")).unwrap();
    load(file.to_str().unwrap(), &Edits::default()).unwrap()
}

#[test]
fn tables_are_merged_and_all_else_is_replaced() {
    let top = r#"
        duration = "4 s"
        links.first.rate = "5 Mbit/s"
        links.third = { rate = "1 Gbit/s" }
        routes.a.links = ["third", "first"]
        flows.two.cc = "lia"
        flows.three = { kind = "tcp", routes = ["b"], cc = "reno" }
        routes.b = { links = ["second"], rtt = "30 ms" }
    "#;
    let scenario = over(BASE, top);
    assert_eq!((scenario.warmup, scenario.duration), (1_000_000_000, 4_000_000_000));
    let links: Vec<_> = scenario
        .links
        .iter()
        .map(|link| (link.config.name.as_str(), link.mean_rate() / 1_000_000, link.config.delay))
        .collect();
    // The base's come first.
    assert_eq!(links, [("first", 5, 2_000_000), ("second", 10, 0), ("third", 1000, 0)]);
    assert_eq!(scenario.links[0].config.limit, Limit::Packets(20));
    assert_eq!(scenario.flows[0].paths[0].links, [2, 0], "a list is replaced, not continued");
    let laws: Vec<_> =
        scenario.flows.iter().map(|flow| flow.control.unwrap().to_string()).collect();
    assert_eq!(laws, ["reno", "lia", "reno"]);
}

#[test]
fn what_a_file_says_of_itself_is_not_inherited() {
    let scenario = over(BASE, "");
    assert_eq!((scenario.name.as_str(), scenario.source.as_str()), ("top", "also a test"));
    assert!(scenario.paper.is_empty(), "it was published of the base");
}

#[test]
fn a_trace_is_beside_the_file_that_names_it() {
    let replays = BASE.replace("{ rate = \"10 Mbit/s\" }", "{ trace = \"trace\" }");
    assert_eq!(over(&replays, "").links[1].mean_rate(), 12_032_000);
}

#[test]
fn what_lasts_is_the_same_where_its_files_are_gone() {
    let home = tempfile::tempdir().unwrap();
    let (file, trace) = (home.path().join("top.toml"), home.path().join("trace"));
    fs::write(&file, BASE.replace("{ rate = \"10 Mbit/s\" }", "{ trace = \"trace\" }")).unwrap();
    fs::write(&trace, "1\n2\n").unwrap();
    let none = Edits::default();
    let made = Made::named(file.to_str().unwrap()).unwrap().lasting();
    let scenario = made.load(&none).unwrap();
    drop(home);
    for made in [made.with_traces_of(&scenario), Made::complete(&scenario)] {
        let json = serde_json::to_string(&made).unwrap();
        let made: Made = serde_json::from_str(&json).unwrap();
        let again = made.load(&none).unwrap();
        assert_eq!((again.text(), again.links[1].mean_rate()), (scenario.text(), 12_032_000));
        let error = made.without_trace(&trace).load(&none).unwrap_err().to_string();
        assert!(error.contains(&format!("cannot read {}", trace.display())), "{error}");
    }
}

/// Its delays go round trips of 20 to 70 ms, as `ping -D` printed them, and the run has them.
#[test]
fn recorded_delays_are_beside_the_file_that_names_them_and_are_had() {
    let home = tempfile::tempdir().unwrap();
    let ping = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
        [1700000000.0] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=20 ms\n\
        [1700000000.5] no answer yet for icmp_seq=2\n\
        [1700000001.0] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=55 time=70 ms\n\
        [1700000002.0] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=55 time=20 ms\n";
    fs::write(home.path().join("ping.txt"), ping).unwrap();
    let file = home.path().join("top.toml");
    let of = |jitter: &str| {
        let second = format!("{{ rate = \"10 Mbit/s\", {jitter} }}");
        let text = BASE.replace("{ rate = \"10 Mbit/s\" }", &second);
        fs::write(&file, text).unwrap();
        load(file.to_str().unwrap(), &Edits::default())
    };
    let scenario = of("jitter.trace = { file = \"ping.txt\", format = \"ping\" }").unwrap();
    let config = &scenario.links[1].config;
    assert_eq!(config.jitter, 50 * MILLISECOND);
    let Distribution::Recorded(delays) = &config.variation.distribution else { panic!("drawn") };
    assert_eq!(delays.period(), 2 * SECOND);
    // Written out whole it is the same, and its digest tells another recording: see the end.
    let text = scenario.text();
    assert!(text.contains("ping.txt: sha256 "), "{text}");
    let other = tempfile::tempdir().unwrap();
    let written = other.path().join("whole.toml");
    fs::write(&written, &text).unwrap();
    let again = load(written.to_str().unwrap(), &Edits::default()).unwrap();
    assert_eq!((again.text(), &again.links[1].config.variation), (text, &config.variation));

    let stop = AtomicBool::new(false);
    let job = Job { series: true, seed: 1, ..Job::new(&scenario, &stop) };
    let run = run(host("sim").unwrap(), job).unwrap();
    let one = &run.summary.connections[0];
    // Half of 0 to 50 ms more than 20 ms and a queue of at most 24 ms.
    assert!((40.0..72.0).contains(&one.paths[0].mean_srtt_ms), "{one:?}");

    let refused = |jitter: &str| {
        let message = of(jitter).unwrap_err().to_string();
        message.replace(&file.display().to_string(), "top.toml")
    };
    let missing = refused("jitter.trace = { file = \"none.txt\" }");
    assert!(missing.starts_with("top.toml:10: links.second.jitter.trace.file: "), "{missing}");
    let format = refused("jitter.trace = { file = \"ping.txt\", format = \"pong\" }");
    assert!(format.contains("expected the units of time and delay such as"), "{format}");
    let columns = refused("jitter.trace = { file = \"ping.txt\" }");
    assert!(columns.starts_with("top.toml:10: links.second.jitter.trace.file: "), "{columns}");
    assert!(
        columns.contains("ping.txt:1: expected two numbers of s ms, found \"PING"),
        "{columns}"
    );

    // Over a base that draws another jitter, neither of the two is taken for both.
    let base = BASE.replace("{ rate = \"10 Mbit/s\" }", "{ rate = \"10 Mbit/s\", jitter.normal = { max = \"9 ms\", mean = \"2 ms\", deviation = \"1 ms\" } }");
    fs::write(&file, base).unwrap();
    let field = "links.second.jitter.trace.file".to_owned();
    let set = Edits {
        set: vec![(field, home.path().join("ping.txt").display().to_string())],
        ..Edits::default()
    };
    let both = load(file.to_str().unwrap(), &set).unwrap_err().to_string();
    assert!(both.contains("expected one kind, found \"trace\" besides another"), "{both}");

    fs::write(home.path().join("ping.txt"), ping.replace("time=70", "time=71")).unwrap();
    let other = of("jitter.trace = { file = \"ping.txt\", format = \"ping\" }").unwrap();
    assert_ne!(other.text(), again.text());
}

#[test]
fn bases_have_bases() {
    let scenario = over(
        "base = \"sbd/sb-3\"\nlinks.bottleneck1.ecn = true",
        "links.bottleneck1.aqm = \"red\"",
    );
    let shipped = load("sbd/sb-3-red", &Edits::default()).unwrap();
    let link = |scenario: &Scenario| format!("{:?}", scenario.links);
    assert_eq!(link(&scenario), link(&shipped));
    assert_eq!(scenario.flows.len(), shipped.flows.len());
}
