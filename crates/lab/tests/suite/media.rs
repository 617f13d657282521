//! Media whose rate adapts: what results show of it beside the connection under test.

use std::sync::atomic::AtomicBool;

use narrows_lab::{Edits, Job, Run, Scenario, host, parse, run};

/// 1 Mbit/s and 100 ms, which media has to itself but for a file at the end.
const ONE: &str = r#"
    name = "media"
    title = ""
    source = ""
    warmup = "30 s"
    duration = "30 s"
    jitter = "0 packets"
    test = "test"
    links.wire = { rate = "1 Mbit/s", queue = "25 packets", delay = "25 ms" }
    routes.way = { links = ["wire"], rtt = "100 ms" }
    [flows]
    media = { kind = "udp", routes = ["way"], source = "nada" }
    udp = { kind = "udp", routes = ["way"], source.rate = { mean = "1 packets/s", size = { constant = "50 B" } } }
    test = { kind = "tcp", routes = ["way"], cc = "reno", start = "59 s", source.file = { size = "1 kB" } }
"#;

fn scenario(text: &str) -> Scenario {
    parse(text, &Edits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn of(text: &str) -> Run {
    let (scenario, stop) = (scenario(text), AtomicBool::new(false));
    run(host("sim").unwrap(), Job { series: true, ..Job::new(&scenario, &stop) }).unwrap()
}

/// Its rate is the link's, and its RTT has the queue of the equilibrium, 15 ms, and the packet's own 8 ms.
#[test]
fn results_have_its_rate_and_its_rtt_and_no_window() {
    let run = of(ONE);
    let [media, udp, _] = &run.summary.connections[..] else { panic!("three flows") };
    let [path] = &media.paths[..] else { panic!("one path") };
    assert_eq!((media.name.as_str(), path.name.as_str(), &media.cc), ("media", "way", &None));
    assert!((0.95..1.0).contains(&media.goodput_mbps), "{media:?}");
    assert_eq!((media.goodput_mbps, path.mean_cwnd_packets), (path.goodput_mbps, 0.0));
    assert!((118.0..132.0).contains(&path.mean_srtt_ms), "{path:?}");
    assert!((path.mean_srtt_ms..140.0).contains(&path.p95_srtt_ms), "{path:?}");
    assert!(udp.paths.is_empty());
    let series = run.series.iter().filter(|sample| sample.connection == "media");
    let late = series.filter(|sample| sample.time_s > 30.0).collect::<Vec<_>>();
    assert_eq!(late.len(), 300);
    assert!(late.iter().all(|at| at.srtt_ms > Some(100.0) && at.cwnd_packets.is_none()));
    assert!(late.iter().all(|at| at.goodput_mbps > Some(0.8)), "{late:?}");
}

/// SCReAM beside it: its RTT has the queue of its target, 100 ms and more of the 200 that there are.
#[test]
fn scream_is_a_source_like_nada() {
    let text = ONE.replace("\"nada\"", "\"scream\"");
    let summary = of(&text).summary;
    let media = &summary.connections[0];
    assert!((0.9..1.0).contains(&media.goodput_mbps), "{media:?}");
    let [path] = &media.paths[..] else { panic!("one path") };
    assert!((180.0..320.0).contains(&path.mean_srtt_ms), "{path:?}");
    assert_eq!(of(&scenario(&text).text()).summary, summary);
}

/// What stands for the defaults is the same run, and so is the scenario written out whole.
#[test]
fn defaults_are_those_of_the_rfc() {
    let nada = "source.nada = { min = \"150 kbit/s\", max = \"1.5 Mbit/s\", size = \"1000 B\", ecn = false }";
    let explicit = ONE.replace("source = \"nada\"", nada);
    let summary = of(ONE).summary;
    assert_eq!(of(&explicit).summary, summary);
    assert_eq!(of(&scenario(ONE).text()).summary, summary);
    let slow = explicit.replace("1.5 Mbit/s", "300 kbit/s");
    let media = of(&slow).summary.connections.remove(0);
    assert!((0.29..0.301).contains(&media.goodput_mbps), "{media:?}");
}
