//! Metrics of the connection under test, against the goodputs of all connections.

use std::sync::atomic::AtomicBool;

use narrows_lab::{
    Case, Edits, Finished, HostId, Plan, Row, Seeds, SeriesOf, compare, parse, rows,
};

/// Path `a` has four greedy TCPs in all and `b` three; and what is no greedy TCP at a bottleneck.
const APART: &str = r#"
name = "toy"
title = "Two bottlenecks"
source = "made for this test"
warmup = "2 s"
duration = "10 s"
test = "mptcp"
[links]
left = { rate = "12 Mbit/s", delay = "5 ms", queue = "40 packets" }
right = { rate = "6 Mbit/s", delay = "5 ms", queue = "40 packets" }
aside = { rate = "50 Mbit/s", delay = "5 ms", queue = "90 packets" }
[routes]
a = { links = ["left"], rtt = "20 ms" }
b = { links = ["right"], rtt = "30 ms" }
c = { links = ["aside"], rtt = "30 ms" }
[flows]
mptcp = { kind = "mptcp", routes = ["a", "b"], cc = "reno" }
tcp1 = { kind = "tcp", routes = ["a"], cc = "reno" }
tcp2 = { kind = "tcp", routes = ["b"], cc = "reno" }
more = { kind = "tcp", routes = ["b"], cc = "reno" }
other = { kind = "tcp", routes = ["c"], cc = "reno" }
file = { kind = "tcp", routes = ["a"], cc = "reno", source = { file = { size = "100 kB" } } }
udp = { kind = "udp", routes = ["b"], source = { rate = { mean = "20 packets/s", size = { constant = "500 B" } } } }
[rivals]
left = "tcp1"
right = "tcp2"
[background]
links = ["left", "right"]
greedy = [3, 1]
rtt = ["20 ms", "40 ms"]
"#;

fn run(text: &str, seeds: u64) -> (Vec<Finished>, Row) {
    run_with(text, &Edits::default(), seeds)
}

fn run_with(text: &str, edits: &Edits, seeds: u64) -> (Vec<Finished>, Row) {
    let cases = [Case { scenario: parse(text, edits).unwrap(), set: Vec::new() }];
    let controls = ["lia".parse().unwrap()];
    let plan = Plan {
        cases: &cases,
        controls: &controls,
        signals: &[],
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(seeds),
        jobs: 0,
        series: SeriesOf::None,
    };
    let finished = compare(plan, None, &AtomicBool::new(false), &|_| ()).unwrap();
    let row = rows(&plan, &finished).remove(0);
    (finished, row)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Equations 19 and 20 of arXiv:1812.05816.
#[test]
fn the_mean_tcp_is_that_of_all_greedy_tcps_at_the_bottlenecks() {
    let (finished, _) = run(APART, 1);
    let summary = &finished[0].summary;
    let goodput =
        |name: &str| summary.connections.iter().find(|of| of.name == name).unwrap().goodput_mbps;
    let background = |link: &str| -> Vec<f64> {
        let of = |c: &&narrows_lab::ConnectionSummary| c.name.contains(&format!("-{link}-"));
        summary.connections.iter().filter(of).map(|c| c.goodput_mbps).collect()
    };
    let left = [vec![goodput("tcp1")], background("left")].concat();
    let right = [vec![goodput("tcp2"), goodput("more")], background("right")].concat();
    assert_eq!((left.len(), right.len()), (4, 3));
    let own = goodput("mptcp");
    let test = summary.test.as_ref().unwrap();
    let close = |ours: Option<f64>, expected: f64| {
        assert!((ours.unwrap() - expected).abs() < 1e-5, "{ours:?}, not {expected}");
    };
    close(test.ratio_to_best, own / mean(&left).max(mean(&right)));
    let tcp = mean(&[left, right].concat());
    close(test.jain_mean, (own + tcp).powi(2) / (2.0 * (own * own + tcp * tcp)));
}

#[test]
fn without_rivals_there_is_no_mean_tcp() {
    let alone = APART.replace("left = \"tcp1\"\nright = \"tcp2\"\n", "");
    let (_, row) = run(&alone, 2);
    assert_eq!(row.metrics["ratio_to_best"], None);
    assert_eq!(row.metrics["jain_mean"], None);
    assert_eq!(row.paths[0].metrics["ratio_to_tcp"], None);
}

/// Figure 2(a) of MPTCP-SBD has the two paths of NSB-2 apart.
#[test]
fn a_row_has_the_metrics_of_each_path() {
    let (finished, row) = run(APART, 3);
    let names: Vec<&str> = row.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for (index, path) in row.paths.iter().enumerate() {
        let of = |run: &Finished| run.summary.connections[0].paths[index].clone();
        let mut ratios: Vec<f64> =
            finished.iter().map(|run| of(run).ratio_to_tcp.unwrap()).collect();
        let spread = path.metrics["ratio_to_tcp"].unwrap();
        assert!((spread.mean - mean(&ratios)).abs() < 1e-5 && spread.ci95.unwrap() > 0.0);
        ratios.sort_by(f64::total_cmp);
        assert_eq!(spread.median, ratios[1]);
        let goodputs: Vec<f64> = finished.iter().map(|run| of(run).goodput_mbps).collect();
        let goodput = path.metrics["goodput_mbps"].unwrap().mean;
        assert!((goodput - mean(&goodputs)).abs() < 1e-5);
    }
    let json = serde_json::to_value(&row).unwrap();
    assert_eq!(json["paths"][1]["name"], "b");
    assert!(json["paths"][1]["ratio_to_tcp"]["q3"].is_f64());

    let mut csv = Vec::new();
    narrows_lab::write_csv(std::slice::from_ref(&row), &mut csv).unwrap();
    let mut csv = csv::Reader::from_reader(&csv[..]);
    let heads = csv.headers().unwrap().clone();
    let record = csv.records().next().unwrap().unwrap();
    let of = |head: &str| &record[heads.iter().position(|other| other == head).unwrap()];
    assert_eq!(of("path2"), "b");
    let median = row.paths[1].metrics["ratio_to_tcp"].unwrap().median;
    assert_eq!(of("path2_ratio_to_tcp_median"), median.to_string());
}

/// A trace that carries 12 Mbit/s for 2 s and then nothing for 2 s, and so on.
#[test]
fn a_link_is_used_at_most_whole() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("half.trace");
    let busy: String = (1..2000).map(|ms| format!("{ms}\n")).collect();
    std::fs::write(&file, busy + "4000\n").unwrap();
    let used = |warmup: &str, duration: &str| {
        let text = format!(
            "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"{warmup}\"\n\
             duration = \"{duration}\"\ntest = \"a\"\n\
             links.l = {{ rate = \"1 Mbit/s\", delay = \"30 ms\", queue = \"400 packets\" }}\n\
             routes.r = {{ links = [\"l\"], rtt = \"80 ms\" }}\n\
             flows.a = {{ kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }}\n",
        );
        let edits = Edits { traces: vec![("l".into(), file.clone())], ..Edits::default() };
        run_with(&text, &edits, 1).0[0].summary.links[0].utilization
    };
    // All of what the trace has; its begin and its end within a burst, or in the silence.
    for (warmup, duration) in
        [("5 s", "8 s"), ("5 s", "3 s"), ("6010 ms", "2 s"), ("4500 ms", "3 s"), ("7 s", "6 s")]
    {
        let used = used(warmup, duration);
        assert!((0.97..=1.0).contains(&used), "{used} of {duration} from {warmup} on");
    }
    assert_eq!(used("6100 ms", "1800 ms"), 0.0, "of nothing");
}
