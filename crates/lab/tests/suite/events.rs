//! What changes during a run does so when the scenario says, and what runs over it takes notice.

use std::sync::atomic::AtomicBool;

use narrows_lab::series::Sample;
use narrows_lab::{Edits, Job, Run, Scenario, host, load, parse, run};
use narrows_traffic::{TcpConfig, Timestamps};

/// Two links of 10 Mbit/s and a connection over both; `more` is what the test is about.
fn two(flow: &str, more: &str) -> Scenario {
    let text = format!(
        "name = \"two\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"1 s\"\nduration = \"9 s\"\n\
         links.a.rate = \"10 Mbit/s\"\nlinks.a.queue = \"30 packets\"\n\
         links.b = {{ rate = \"10 Mbit/s\", queue = \"30 packets\" }}\n\
         routes.a.links = [\"a\"]\nroutes.a.rtt = \"20 ms\"\n\
         routes.b = {{ links = [\"b\"], rtt = \"40 ms\" }}\n\
         flows.c = {{ kind = \"mptcp\", routes = [\"a\", \"b\"], cc = \"lia\" {flow} }}\n{more}"
    );
    parse(&text, &Edits::default()).unwrap()
}

fn result(scenario: &Scenario) -> Run {
    let stop = AtomicBool::new(false);
    run(host("sim").unwrap(), Job { series: true, ..Job::new(scenario, &stop) }).unwrap()
}

/// Mean goodput of a path in Mbit/s between two times in seconds.
fn goodput(series: &[Sample], path: &str, from: f64, to: f64) -> f64 {
    let of = series.iter().filter(|s| s.path == path && s.time_s > from && s.time_s <= to);
    let all: Vec<f64> = of.map(|sample| sample.goodput_mbps.unwrap_or(0.0)).collect();
    assert!(!all.is_empty(), "no samples of {path} in {from} to {to} s");
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn a_link_that_is_down_carries_nothing_and_is_used_again() {
    let down = "[[events]]\nat = \"3 s\"\nlink = \"a\"\nup = false\n\
                [[events]]\nat = \"5 s\"\nlink = \"a\"\nup = true\n";
    let Run { series, summary, .. } = result(&two("", down));
    assert!(goodput(&series, "a", 2.0, 3.0) > 8.0);
    assert!(goodput(&series, "a", 3.1, 5.0) < 0.1);
    assert!(goodput(&series, "a", 8.0, 10.0) > 5.0, "{}", goodput(&series, "a", 8.0, 10.0));
    // Once what was sent on the dead path and blocks the receiver has been given to the other.
    assert!(goodput(&series, "b", 4.5, 5.0) > 6.0, "{}", goodput(&series, "b", 4.5, 5.0));
    assert!(
        summary.connections[0].reinjections > Some(0),
        "what was on the way goes out on the other"
    );
    // Down for 2 of 9 s, which count neither as sent nor as capacity.
    let utilization = summary.links[0].utilization;
    assert!((0.5..=1.0).contains(&utilization), "{utilization}");
}

#[test]
fn a_link_that_holds_its_packets_loses_none() {
    let hold = "[[events]]\nat = \"3 s\"\nlink = \"a\"\nhold = \"400 ms\"\n";
    let with = |events: &str| {
        let mut scenario = two("", events);
        scenario.links[0].config.limit = narrows_net::Limit::Packets(500);
        scenario
    };
    let scenario = with(hold);
    let Run { series, summary, .. } = result(&scenario);
    assert!(goodput(&series, "a", 3.1, 3.4) < 0.1);
    assert!(goodput(&series, "a", 3.4, 3.6) > 8.0, "{}", goodput(&series, "a", 3.4, 3.6));
    assert_eq!(summary.links[0].drops, 0);
    assert_eq!(scenario.capacity(0, scenario.warmup, scenario.end()), 86e6);
    assert!(
        (0.9..=1.0).contains(&summary.links[0].utilization),
        "{}",
        summary.links[0].utilization
    );

    // Every second, and a change of the rate meanwhile.
    let every =
        "every = \"1 s\"\n[[events]]\nat = \"5100 ms\"\nlink = \"a\"\nrate = \"5 Mbit/s\"\n";
    let scenario = with(&(hold.to_owned() + every));
    let at: Vec<u64> = scenario.events.iter().map(|event| event.at / 100_000_000).collect();
    assert_eq!(at, [30, 40, 50, 51, 60, 70, 80, 90]);
    // 2 s of 10 Mbit/s, twice 0.6; then five times 0.6 of 5 Mbit/s.
    let capacity = scenario.capacity(0, scenario.warmup, scenario.end());
    assert!((capacity - 47e6).abs() < 1.0, "{capacity}");
    let Run { series, .. } = result(&scenario);
    for second in 3..10 {
        let second = f64::from(second);
        assert!(goodput(&series, "a", second + 0.1, second + 0.4) < 0.1, "{second}");
        assert!(goodput(&series, "a", second + 0.5, second + 1.0) > 4.0, "{second}");
    }
}

#[test]
fn what_is_after_the_end_is_left_out_with_a_word() {
    let text = "[[events]]\nat = \"3 s\"\nlink = \"a\"\nup = false\n\
                [[events]]\nat = \"10 s\"\nlink = \"a\"\nup = true\n\
                [[events]]\nat = \"12 s\"\nevery = \"1 s\"\nflow = \"c\"\nlose = \"a\"\n";
    let scenario = two("", text);
    assert_eq!(scenario.events.len(), 1);
    let expected = "the run ends at 10 s and leaves out events.1 (at 10 s), events.2 (at 12 s)";
    assert_eq!(scenario.warnings(), [expected]);
    let cut = |duration: &str| {
        let set = vec![("duration".into(), duration.into())];
        load("sbd/shifting-60", &Edits { set, ..Edits::default() }).unwrap()
    };
    let whole = load("sbd/shifting-60", &Edits::default()).unwrap();
    assert!(whole.phases.len() > 2 && whole.warnings().is_empty());
    let short = cut("70 s");
    assert!(short.phases.len() < whole.phases.len());
    let expected = "the run ends at 90 s and leaves out phases.2 (at 140 s), phases.3 (at 200 s), \
                    phases.4 (at 260 s), flows.tcp1.active.1 (at 200 s), flows.tcp2.active.1 \
                    (at 200 s), flows.tcp3.active.1 (at 140 s), flows.tcp3.active.2 (at 260 s)";
    assert_eq!(short.warnings(), [expected]);
}

#[test]
fn a_rate_step_and_a_delay_step_are_felt_at_once() {
    let slower = "[[events]]\nat = \"5 s\"\nlink = \"a\"\nrate = \"2 Mbit/s\"\n\
                  [[events]]\nat = \"5 s\"\nlink = \"b\"\ndelay = \"200 ms\"\n";
    let scenario = two("", slower);
    let Run { series, summary, .. } = result(&scenario);
    assert!(goodput(&series, "a", 3.0, 5.0) > 8.0);
    let after = goodput(&series, "a", 5.5, 10.0);
    assert!((1.0..=2.0).contains(&after), "{after}");
    let srtt = |path: &str, time: f64| {
        series.iter().rfind(|s| s.path == path && s.time_s <= time).unwrap().srtt_ms.unwrap()
    };
    assert!(srtt("b", 5.0) < 100.0 && srtt("b", 7.0) > 200.0);
    // 4 s of 10 Mbit/s and 5 s of 2 Mbit/s.
    assert_eq!(scenario.capacity(0, scenario.warmup, scenario.end()), 50e6);
    let utilization = summary.links[0].utilization;
    assert!(utilization > 0.85 && utilization < 1.01, "{utilization}");
}

#[test]
fn an_address_is_lost_and_comes_again() {
    let lost = "[[events]]\nat = \"3 s\"\nflow = \"c\"\nlose = \"a\"\n\
                [[events]]\nat = \"4 s\"\nflow = \"c\"\nlose = \"b\"\n\
                [[events]]\nat = \"5 s\"\nflow = \"c\"\nadd = \"b\"\n\
                [[events]]\nat = \"7 s\"\nflow = \"c\"\nadd = \"a\"\n";
    let Run { series, .. } = result(&two("", lost));
    for (path, from, to, there) in [
        ("a", 2.0, 3.0, true),
        ("a", 3.1, 7.0, false),
        ("a", 8.0, 10.0, true),
        ("b", 3.1, 4.0, true),
        ("b", 4.1, 5.0, false),
        ("b", 6.0, 10.0, true),
    ] {
        let goodput = goodput(&series, path, from, to);
        let right = if there { goodput > 6.0 } else { goodput == 0.0 };
        assert!(right, "{path} from {from} to {to} s: {goodput}");
    }
}

#[test]
fn an_application_is_switched_off_and_on() {
    let off = "[[events]]\nat = \"3 s\"\nflow = \"c\"\non = false\n\
               [[events]]\nat = \"6 s\"\nflow = \"c\"\non = true\n";
    let scenario = two("", off);
    const S: u64 = 1_000_000_000;
    assert_eq!(scenario.flows[0].active, [(0, 3 * S), (6 * S, 10 * S)]);
    let Run { series, .. } = result(&scenario);
    assert!(goodput(&series, "a", 2.0, 3.0) > 8.0);
    assert_eq!(goodput(&series, "a", 4.0, 6.0), 0.0);
    assert!(goodput(&series, "a", 7.0, 10.0) > 7.0);
}

#[test]
fn a_backup_path_waits_for_the_regular_one_to_fail() {
    let scenario = load("phone/wifi-handover", &Edits::default()).unwrap();
    let Run { series, .. } = result(&scenario);
    let of: Vec<Sample> = series.into_iter().filter(|s| s.connection == "mptcp").collect();
    assert_eq!(goodput(&of, "lte", 1.0, 20.0), 0.0);
    // Nobody tells the connection: it notices by timeouts, and not before 200 ms.
    assert_eq!(goodput(&of, "lte", 20.0, 20.2), 0.0);
    assert!(goodput(&of, "lte", 22.0, 45.0) > 2.0);
    assert_eq!(goodput(&of, "wifi", 20.1, 45.0), 0.0);
    assert!(goodput(&of, "wifi", 46.0, 65.0) > 5.0);
    assert!(goodput(&of, "lte", 48.0, 65.0) < 0.1, "the backup rests again");
}

#[test]
fn a_middlebox_without_mptcp_leaves_plain_tcp() {
    let strips = "routes.a.strips_mptcp = true\n";
    let of = result(&two("", strips)).summary.connections.remove(0);
    assert!(of.fallback && of.paths[0].goodput_mbps > 8.0 && of.paths[1].goodput_mbps == 0.0);
    assert!(!result(&two("", "")).summary.connections[0].fallback);
}

#[test]
fn what_tcp_links_and_schedulers_can_do_reaches_the_simulator() {
    let all = ", tcp = { ecn = true, pacing = true, tso = \"10 packets\", gro = \"50 us\" }";
    let tcp = two(all, "[tcp]\ntimestamps = \"us\"\necn = false\n").flows[0].tcp;
    let timestamps = Timestamps::Us;
    let all = TcpConfig { ecn: true, pacing: true, tso: 10, gro: 50_000, timestamps, ..tcp };
    assert_eq!(tcp, all);
    let base = result(&two("", "")).summary;
    let of = |flow: &str, more: &str| result(&two(flow, more)).summary;
    // Each option changes the run.
    for flow in [
        ", scheduler = \"min-rtt\"",
        ", scheduler = \"round-robin\"",
        ", scheduler = \"redundant\"",
        ", tcp.pacing = true",
        ", tcp.gro = \"50 us\"",
        ", tcp.receiver_acks = \"linux-6.5\"",
    ] {
        assert_ne!(of(flow, ""), base, "{flow}");
    }
    for (link, label) in [
        ("loss = \"1 %\"", "plain loss"),
        ("loss = { good_to_bad = \"0.1 %\", bad_to_good = \"30 %\" }", "bursts"),
        ("aqm = \"red\"", "RED"),
        ("aqm = { red = { min = \"3 ms\", max_p = \"2 %\", time_constant = \"1 s\" } }", "RED"),
        ("aqm = \"codel\"", "CoDel"),
        ("aqm = { codel = { target = \"1 ms\" } }", "CoDel"),
        ("aqm = \"fq-codel\"", "FQ-CoDel"),
        ("aqm = { fq-codel = { flows = 16, quantum = \"300 B\" } }", "FQ-CoDel"),
        ("aqm = \"pie\"", "PIE"),
        ("aqm = { pie = { target = \"5 ms\" } }", "PIE"),
        ("policer = { rate = \"5 Mbit/s\", burst = \"20 kB\" }", "policer"),
        ("reorder = { share = \"1 %\", delay = \"5 ms\" }", "reordering"),
        ("wifi = { contention = \"1 ms\" }", "Wi-Fi"),
    ] {
        assert_ne!(of("", &format!("links.a.{link}\n")), base, "{label}");
    }
    let red = of(", tcp.ecn = true", "links.a.aqm = \"red\"\nlinks.a.ecn = true\n");
    assert!(red.links[0].marks > 0 && red.links[1].marks == 0);
    let mut dual =
        two(", tcp.ecn = \"scalable\"", "links.a.aqm = \"dualpi2\"\nlinks.a.ecn = true\n");
    dual.flows[0].control = Some("dctcp".parse().unwrap());
    let dual = result(&dual).summary;
    assert!(dual.links[0].marks > 0 && dual.links[1].marks == 0);
    let codel = of("", "links.a.aqm = \"codel\"\n");
    assert!(codel.links[0].aqm_drops > 0 && codel.links[0].aqm_drops <= codel.links[0].drops);
    assert!(base.connections[0].head_of_line.unwrap().max_ms > 0.0);
}

#[test]
fn ndiffports_opens_its_subflows_on_one_route() {
    let text = "name = \"one\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"1 s\"\nduration = \"4 s\"\n\
                links.a = { rate = \"10 Mbit/s\", queue = \"30 packets\" }\n\
                routes.a = { links = [\"a\"], rtt = \"20 ms\" }\n\
                flows.c = { kind = \"mptcp\", routes = [\"a\"], cc = \"lia\", \
                path_manager = { ndiffports = 3 } }\n";
    let summary = result(&parse(text, &Edits::default()).unwrap()).summary;
    let paths = &summary.connections[0].paths;
    let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["a-1", "a-2", "a-3"]);
    assert!(paths.iter().all(|path| path.goodput_mbps > 0.5), "{paths:?}");
}

/// A trace that carries nothing for half of its period, analysed in the other half: what it offered
/// then counts, not the mean of the period.
#[test]
fn a_link_with_a_trace_is_used_by_what_the_trace_offered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("half.trace");
    let lines = (1..=20_000).chain([40_000]).map(|ms| format!("{ms}\n"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let edits = Edits {
        traces: vec![("lte".into(), file)],
        set: vec![("warmup".into(), "5 s".into()), ("duration".into(), "15 s".into())],
    };
    let scenario = load("phone/wifi-lte", &edits).unwrap();
    let lte = scenario.links.iter().position(|link| link.config.name == "lte").unwrap();
    assert_eq!(scenario.capacity(lte, scenario.warmup, scenario.end()), 15_000.0 * 1504.0 * 8.0);
}
