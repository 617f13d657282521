//! The recommended controls on networks where coupling once cost a connection more than it can gain: an
//! outage of one path, random loss on one or on all, gaps. Goal 1 of RFC 6356, section 2: never less than
//! the best path; here nearly as much as the uncoupled law has on all paths, and never silent.

use std::sync::atomic::AtomicBool;

use narrows_lab::{Case, Edits, HostId, Plan, Scenario, Seeds, SeriesOf, compare, load, parse};

const SEEDS: u64 = 5;

/// Of each control: mean goodput, Mbit/s, and the longest silence of any run, s.
fn run(scenario: Scenario, controls: &[&str]) -> Vec<(f64, f64)> {
    let cases = [Case { scenario, set: Vec::new() }];
    let controls: Vec<_> = controls.iter().map(|control| control.parse().unwrap()).collect();
    let plan = Plan {
        cases: &cases,
        controls: &controls,
        signals: &[],
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(SEEDS),
        jobs: 0,
        series: SeriesOf::None,
    };
    let finished = compare(plan, None, &AtomicBool::new(false), &|_| ()).unwrap();
    let of = |control: usize| {
        let tests: Vec<_> = finished
            .iter()
            .filter(|run| run.summary.cc.as_deref() == Some(&*controls[control].to_string()))
            .map(|run| run.summary.test.as_ref().unwrap())
            .collect();
        assert_eq!(tests.len() as u64, SEEDS);
        let goodput = tests.iter().map(|test| test.goodput_mbps).sum::<f64>() / SEEDS as f64;
        (goodput, tests.iter().filter_map(|test| test.silence_s).fold(0.0, f64::max))
    };
    (0..controls.len()).map(of).collect()
}

/// Each law of ours has at least `part` of its uncoupled law's mean goodput, and its longest silence is at
/// most `silence_s`, or as long as the uncoupled law's and 0.2 s more, two samples.
fn not_worse(name: &str, scenario: Scenario, part: f64, silence_s: f64) {
    let seen = run(scenario, &["reno", "greno+xcorr", "cubic", "gcubic+xcorr"]);
    for (law, pair) in ["greno", "gcubic"].iter().zip(seen.chunks(2)) {
        let [(plain, plain_silence), (goodput, silence)] = [pair[0], pair[1]];
        println!(
            "{name}, {law}: {goodput:.1} of {plain:.1} Mbit/s, silent {silence:.1} of {plain_silence:.1} s"
        );
        assert!(goodput >= part * plain, "{name}, {law}: {goodput} of {plain} Mbit/s");
        let most = silence_s.max(plain_silence + 0.2);
        assert!(silence <= most, "{name}, {law}: silent for {silence} s, at most {most} s");
    }
}

fn shipped(name: &str) -> Scenario {
    load(name, &Edits::default()).unwrap()
}

#[test]
fn an_outage_of_lte_does_not_silence_wifi() {
    not_worse("phone/lte-outage", shipped("phone/lte-outage"), 0.9, 1.0);
}

#[test]
fn random_loss_on_one_path_does_not_slow_the_other() {
    for scheduler in ["linux", "min-rtt"] {
        for routes in [["radio", "line"], ["line", "radio"]] {
            let set = [
                ("flows.mptcp.scheduler".into(), format!("\"{scheduler}\"")),
                ("flows.mptcp.routes".into(), format!("{routes:?}")),
            ];
            let edits = Edits { set: set.to_vec(), ..Edits::default() };
            let name = format!("{scheduler}, {} first", routes[0]);
            not_worse(&name, load("home/lossy", &edits).unwrap(), 0.95, 1.0);
        }
    }
}

#[test]
fn random_loss_on_both_paths_couples_nobody() {
    for (mbps, loss) in [(100, "0.5 %"), (20, "2 %"), (50, "0.1 %")] {
        let link = format!(
            "{{ rate = \"{mbps} Mbit/s\", delay = \"1 ms\", queue = \"100 ms\", loss = \"{loss}\" }}"
        );
        let text = format!(
            r#"
name = "lossy"
title = "Two links with random loss"
source = "made for this test"
warmup = "10 s"
duration = "40 s"
test = "mptcp"
[links]
a = {link}
b = {link}
[routes]
a = {{ links = ["a"], rtt = "40 ms" }}
b = {{ links = ["b"], rtt = "50 ms" }}
[flows]
mptcp = {{ kind = "mptcp", routes = ["a", "b"], cc = "lia", start = "1 s" }}
"#
        );
        not_worse(loss, parse(&text, &Edits::default()).unwrap(), 0.97, 1.0);
    }
}

#[test]
fn gaps_of_a_satellite_link_cost_only_its_own() {
    not_worse("home/starlink", shipped("home/starlink"), 0.9, 1.0);
}

/// Three seconds of silence in each ten.
#[test]
fn gaps_of_lte_cost_only_its_own() {
    let Some(trace) = narrows_testkit::data("cases/outage-30s/gap3.trace") else { return };
    let edits = Edits { traces: vec![("lte".into(), trace)], ..Edits::default() };
    not_worse("gaps", load("phone/wifi-lte", &edits).unwrap(), 0.97, 1.0);
}
