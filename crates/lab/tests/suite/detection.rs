//! Passive detectors, in the simulator, on two links that differ.

use std::sync::atomic::AtomicBool;

use narrows_lab::catalogue::{self, Named};
use narrows_lab::detection::PhaseDetection;
use narrows_lab::{
    Algorithm, Case, Edits, Finished, HostId, Plan, Row, Scenario, Seeds, SeriesOf, Signal,
    compare, load, parse, rows, shipped,
};
#[cfg(feature = "kernel")]
use narrows_lab::{Job, host};
use narrows_laws::Params;

/// Two links of different rates, each with a TCP. The paths of the connection cross them one each,
/// or both the first.
fn text(apart: bool, more: &str) -> String {
    let second = if apart { "narrow" } else { "wide" };
    let groups = if apart { r#"[["a"], ["b"]]"# } else { r#"[["a", "b"]]"# };
    format!(
        r#"
        name = "toy"
        title = "Two links"
        source = "made for this test"
        warmup = "20 s"
        duration = "60 s"
        test = "mptcp"
        [links]
        wide = {{ rate = "12 Mbit/s", delay = "5 ms", queue = "40 packets" }}
        narrow = {{ rate = "4 Mbit/s", delay = "5 ms", queue = "60 packets" }}
        [routes]
        a = {{ links = ["wide"], rtt = "20 ms" }}
        b = {{ links = ["{second}"], rtt = "20 ms" }}
        other = {{ links = ["narrow"], rtt = "20 ms" }}
        [flows]
        mptcp = {{ kind = "mptcp", routes = ["a", "b"], cc = "reno", scheduler = "min-rtt" }}
        tcp1 = {{ kind = "tcp", routes = ["a"], cc = "reno" }}
        tcp2 = {{ kind = "tcp", routes = ["other"], cc = "reno" }}
        [[phases]]
        start = "0 s"
        groups = {groups}
        {more}"#
    )
}

fn scenario(apart: bool, more: &str) -> Scenario {
    parse(&text(apart, more), &Edits::default()).unwrap()
}

const SEEDS: u64 = 3;

/// All seeds of a control with each signal, and their rows.
fn compared(
    scenario: Scenario,
    cc: &str,
    signals: &[Signal],
    seeds: u64,
    jobs: usize,
) -> (Vec<Finished>, Vec<Row>) {
    let cases = [Case { scenario, set: Vec::new() }];
    let controls = [cc.parse().unwrap()];
    let plan = Plan {
        cases: &cases,
        controls: &controls,
        signals,
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(seeds),
        jobs,
        series: SeriesOf::None,
    };
    let finished = compare(plan, None, &AtomicBool::new(false), &|_| ()).unwrap();
    let rows = rows(&plan, &finished);
    (finished, rows)
}

fn runs(scenario: Scenario, cc: &str, signals: &[Signal], jobs: usize) -> Vec<Finished> {
    compared(scenario, cc, signals, SEEDS, jobs).0
}

/// The mean accuracy over the runs of a signal.
fn mean(runs: &[Finished], signal: Signal) -> f64 {
    let of = runs.iter().map(|run| &run.summary.detection[0]);
    let of: Vec<&PhaseDetection> = of.filter(|phase| phase.signal == signal.name()).collect();
    assert_eq!(of.len() as u64, SEEDS);
    of.iter().map(|phase| phase.accuracy.unwrap()).sum::<f64>() / SEEDS as f64
}

#[test]
fn every_signal_shows_two_different_links_apart() {
    let runs = runs(scenario(true, ""), "lia+ssc", &Signal::ALL, 0);
    for signal in Signal::ALL {
        let accuracy = mean(&runs, signal);
        assert!(accuracy > 0.9, "{} {accuracy}", signal.name());
    }
}

/// LTE's jitter is correlated from packet to packet, so that a bin does not even it out.
#[test]
fn jitter_of_a_radio_link_hides_no_shared_queue() {
    let signals = [Signal::SenderUs, Signal::Rtt];
    for cc in ["greno+xcorr", "gcubic+xcorr"] {
        let scenario = load("phone/vpn", &Edits::default()).unwrap();
        let runs = runs(scenario, cc, &signals, 0);
        for signal in signals {
            let accuracy = mean(&runs, signal);
            assert!(accuracy > 0.95, "{cc}, {} {accuracy}", signal.name());
        }
    }
}

#[test]
fn paths_that_meet_are_found_at_the_receiver() {
    let runs = runs(scenario(false, ""), "lia+ssc", &[Signal::ReceiverUs], 0);
    let accuracy = mean(&runs, Signal::ReceiverUs);
    // Detectors err, this one about one time in five here; on the links above it would be never.
    assert!(accuracy > 0.65, "{accuracy}");
}

#[test]
fn the_smoothed_round_trip_is_another_signal_than_the_last_one() {
    let decisions = |signal| -> Vec<_> {
        let runs = runs(scenario(false, ""), "lia+ssc", &[signal], 0);
        runs.into_iter().map(|run| run.decisions).collect()
    };
    assert_ne!(decisions(Signal::Rtt), decisions(Signal::Srtt));
}

/// Whatever its signal, a passive one finds what the same detector in the control finds.
#[test]
fn a_passive_detector_finds_what_that_of_the_control_finds() {
    for (detector, signal) in [
        ("xcorr", Signal::ReceiverUs),
        ("xcorr", Signal::SenderUs),
        ("xcorr", Signal::Rtt),
        ("ssc", Signal::Srtt),
        ("dcw", Signal::SenderMs),
    ] {
        let passive = format!("[detection]\npassive = [\"{detector}:{}\"]", signal.name());
        let cc = format!("lia+{detector}");
        for run in runs(scenario(true, &passive), &cc, &[signal], 0) {
            let [passive] = &run.summary.passive[..] else { panic!("{:?}", run.summary) };
            let first = run.summary.detection[0].first_correct_s;
            assert!(first.is_some(), "{detector} {}", signal.name());
            assert_eq!(passive.phases[0].first_right_s, first, "{detector} {}", signal.name());
        }
    }
}

/// Nothing follows what they find: packets go as without them.
#[test]
fn passive_detectors_change_nothing() {
    let run = |more: &str| runs(scenario(true, more), "lia+ssc", &[Signal::Rtt], 0);
    let (alone, beside) =
        (run(""), run("[detection]\npassive = [\"xcorr:rtt\", \"tr:srtt\", \"ssc:rtt\"]"));
    for (alone, beside) in alone.iter().zip(&beside) {
        assert_eq!(beside.summary.passive.len(), 3);
        assert_eq!(alone.decisions, beside.decisions);
        assert_eq!(alone.summary.connections, beside.summary.connections);
        assert_eq!(alone.summary.links, beside.summary.links);
    }
}

#[test]
fn what_cannot_be_a_passive_detector_is_refused_by_its_place() {
    let refused = |passive: &str| {
        let set = vec![("detection.passive".into(), passive.into())];
        load("sbd/nsb-2", &Edits { set, traces: Vec::new() }).unwrap_err().to_string()
    };
    for (passive, message) in [
        ("[\"none\"]", "unknown detector 'none'; expected one of: ssc, "),
        ("[\"shared\"]", "unknown detector 'shared'; expected one of: ssc, "),
        ("[\"ssc:none\"]", "unknown signal \"none\"; expected one of: receiver-us, "),
        ("[\"ssc:rtt\", \"ssc:rtt\"]", "ssc:rtt is named twice"),
        (
            "[\"ssc:sender-us\", \"ssc:sender-ms\"]",
            "needs other timestamps than ssc:sender-us; run them apart",
        ),
    ] {
        let line = refused(passive);
        assert!(line.contains("detection.passive") && line.contains(message), "{line}");
    }
}

#[test]
fn the_timestamps_of_the_control_are_those_of_passive_detectors() {
    let cases = [Case {
        scenario: scenario(true, "[detection]\npassive = [\"ssc:sender-ms\"]"),
        set: Vec::new(),
    }];
    let run = |signal: Signal| {
        let controls = ["lia+xcorr".parse().unwrap()];
        let plan = Plan {
            cases: &cases,
            controls: &controls,
            signals: &[signal],
            hosts: &[HostId::SIM],
            seeds: Seeds::up_to(1),
            jobs: 1,
            series: SeriesOf::None,
        };
        compare(plan, None, &AtomicBool::new(false), &|_| ()).map(|_| ())
    };
    for fits in [Signal::SenderMs, Signal::Rtt] {
        run(fits).unwrap();
    }
    let error = run(Signal::ReceiverUs).unwrap_err().to_string();
    assert_eq!(
        error,
        "toy: detection.passive: ssc:sender-ms needs other timestamps than lia+xcorr with receiver-us; \
         run them apart"
    );
}

/// What the detector at the receiver decides reaches the sender's law: on links of their own it
/// takes more than one that is always coupled.
#[test]
fn what_the_receiver_decides_the_sender_obeys() {
    let goodput = |cc, signals: &[Signal]| {
        let runs = runs(scenario(true, ""), cc, signals, 0);
        runs.iter().map(|run| run.summary.connections[0].goodput_mbps).sum::<f64>()
    };
    let (coupled, detected) = (goodput("lia", &[]), goodput("lia+ssc", &[Signal::ReceiverUs]));
    assert!(detected > 1.1 * coupled, "{detected} and {coupled}");
}

#[test]
fn the_number_of_threads_changes_no_decision() {
    let with = |jobs| {
        let runs = runs(scenario(true, ""), "olia+ssc", &Signal::ALL, jobs);
        runs.into_iter().map(|run| (run.signal, run.summary, run.decisions)).collect::<Vec<_>>()
    };
    let one = with(1);
    assert_eq!(one.len(), Signal::ALL.len() * SEEDS as usize);
    assert!(one.iter().all(|(_, _, decisions)| !decisions.is_empty()));
    assert!(one == with(2));
}

#[test]
fn parameters_are_set_in_the_file_or_from_outside() {
    let params = |more: &str| scenario(true, more).params;
    let default = params("");
    // The preset goes first, wherever it stands.
    let preset = params("[ssc]\npreset = \"mptcp-sbd\"\n");
    assert_ne!(default, preset);
    let both = params("[ssc]\np_s = 0.25\npreset = \"mptcp-sbd\"\n");
    assert_eq!(both.word("ssc.p_s"), 65536 / 4);
    assert_eq!(both.word("ssc.c_s"), preset.word("ssc.c_s"));
    let set = |field: &str, value: &str| {
        let set = vec![(field.to_owned(), value.to_owned())];
        load("sbd/nsb-2", &Edits { set, ..Edits::default() })
    };
    assert_eq!(set("ssc.p_s", "0.25").unwrap().params.word("ssc.p_s"), 65536 / 4);
    assert_eq!(set("ssc.preset", "mptcp-sbd").unwrap().params, preset);
    let signal = set("detection.signal", "rtt").unwrap();
    assert_eq!(signal.flows[signal.test.unwrap()].tcp.signal, Signal::Rtt);
}

fn edits(set: &[(&str, &str)]) -> Edits {
    let set = set.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned()));
    Edits { set: set.collect(), ..Edits::default() }
}

fn system(name: &str) -> &'static Named {
    name.parse::<Algorithm>().unwrap().system().unwrap()
}

/// The scenario under a system, and its signal.
fn under(name: &str, more: &str, set: &[(&str, &str)]) -> (Scenario, Signal) {
    let mut scenario = parse(&text(true, more), &edits(set)).unwrap();
    scenario.adopt(system(name), "--cc").unwrap();
    let signal = scenario.flows[scenario.test.unwrap()].tcp.signal;
    (scenario, signal)
}

#[test]
fn a_system_brings_its_signal_and_all_parameters_of_its_detector() {
    let params = |settings: &[(&str, &str)]| Params::default().with(settings);
    let sbd = params(&[("ssc.preset", "mptcp-sbd"), ("decision.clear", "all")]);
    let (scenario, signal) = under("mptcp-sbd", "", &[]);
    assert_eq!((scenario.params, signal), (sbd, Signal::ReceiverUs));
    // The scenario's own are not of the system, except those of other detectors.
    let own = "[ssc]\np_s = 0.5\n[decision]\ntogether = 3\n[tr]\neps = 0.1\n\
               [detection]\nsignal = \"sender-ms\"\n";
    let (scenario, signal) = under("mptcp-sbd", own, &[]);
    assert_eq!((scenario.params, signal), (sbd.with(&[("tr.eps", "0.1")]), Signal::ReceiverUs));
    let (scenario, signal) = under("tr-lia", own, &[]);
    assert_eq!((scenario.params, signal), (params(&[("ssc.p_s", "0.5")]), Signal::Rtt));
    let (scenario, signal) = under("ssc-lia", "", &[]);
    let (undecided, grouped) = (("decision.undecided", "none"), ("decision.grouped", "none"));
    let ssc_lia = [("ssc.preset", "mptcp-sbd"), ("ssc.hold_s", "100"), undecided, grouped];
    assert_eq!((scenario.params, signal), (params(&ssc_lia), Signal::Srtt));
}

#[test]
fn the_command_line_wins_over_a_system() {
    let set = [("ssc.p_s", "0.25"), ("decision.clear", "'none'"), ("detection.signal", "rtt")];
    let (scenario, signal) = under("mptcp-sbd", "", &set);
    let expected = [("ssc.preset", "mptcp-sbd"), ("ssc.p_s", "0.25")];
    assert_eq!((scenario.params, signal), (Params::default().with(&expected), Signal::Rtt));
    // A preset goes before other settings, and a table is as good as its fields.
    let set = [("ssc.f", "3"), ("ssc.preset", "rfc8382"), ("decision", "{ clear = \"none\" }")];
    let (scenario, _) = under("mptcp-sbd", "", &set);
    assert_eq!(scenario.params, Params::default().with(&[("ssc.f", "3")]));

    // It leaves what else the system sets.
    let (scenario, _) = under("ssc-lia", "", &[("ssc.preset", "rfc8382")]);
    assert_eq!(
        (scenario.params.word("ssc.hold_s"), scenario.params.word("ssc.trusted")),
        (100_000_000, 60)
    );

    let fits = "[decision]\nobservations = 20";
    let mut scenario = parse(&text(true, fits), &edits(&[("decision.together", "15")])).unwrap();
    let error = scenario.adopt(system("mptcp-sbd"), "--cc").unwrap_err().to_string();
    assert_eq!(error, "--cc: decision.together: '15' is not at most decision.observations, 10");
}

/// As if its settings stood there: the whole text has them and loads as the same.
#[test]
fn a_system_in_a_file_is_its_settings() {
    let cc = |name: &str| text(true, "").replace("[\"a\", \"b\"], cc = \"reno\"", name);
    let named = cc("[\"a\", \"b\"], cc = \"mptcp-sbd\"");
    let loaded = parse(&named, &edits(&[("ssc.p_s", "0.25")])).unwrap();
    assert_eq!(loaded.params, under("mptcp-sbd", "", &[("ssc.p_s", "0.25")]).0.params);
    let test = &loaded.flows[loaded.test.unwrap()];
    assert_eq!(
        (test.control.unwrap().to_string(), test.tcp.signal),
        ("mptcp-sbd".into(), Signal::ReceiverUs)
    );
    let again = parse(&loaded.text(), &Edits::default()).unwrap();
    assert_eq!((again.params, again.text()), (loaded.params, loaded.text()));
    let plain = [
        ("ssc.preset", "mptcp-sbd"),
        ("ssc.p_s", "0.25"),
        ("decision.clear", "all"),
        ("detection.signal", "receiver-us"),
    ];
    let plain = parse(&cc("[\"a\", \"b\"], cc = \"olia+ssc\""), &edits(&plain)).unwrap();
    assert_eq!(plain.text(), loaded.text());

    let other =
        text(true, "").replace("[\"other\"], cc = \"reno\"", "[\"other\"], cc = \"tr-lia\"");
    let error = parse(&other, &Edits::default()).unwrap_err().to_string();
    assert!(error.contains("flows.tcp2.cc: tr-lia sets the scenario's parameters"), "{error}");
    let more = "[background]\nlinks = [\"wide\"]\ncc = \"tr-lia\"\ngreedy = [1]\nrtt = [\"20 ms\", \"30 ms\"]";
    let error = parse(&text(true, more), &Edits::default()).unwrap_err().to_string();
    assert!(error.contains("background.cc: tr-lia sets the scenario's parameters"), "{error}");
}

#[test]
fn docs_list_every_system_and_no_other() {
    let docs = include_str!("../../../../docs/method/measuring.md");
    let (_, rest) = docs.split_once("| name | control | set to |\n|---|---|---|\n").unwrap();
    let found: Vec<&str> = rest.lines().take_while(|line| line.starts_with("| ")).collect();
    let systems = catalogue::NAMES.iter().filter(|named| named.is_system());
    let line = |of: &Named| format!("| `{}` | `{}` | `{}` |", of.name, of.control, of.set);
    assert_eq!(found, systems.map(line).collect::<Vec<_>>());
}

/// Rows have the name that was given, the setup of the system, and the results of its parts; a
/// signal of the command line goes over that of the system.
#[test]
fn a_system_is_compared_under_its_name() {
    let rows_of = |cc: &str, signals: &[Signal], set: &[(&str, &str)]| {
        let set = [("duration", "30 s")].iter().chain(set).copied().collect::<Vec<_>>();
        let scenario = parse(&text(true, ""), &edits(&set)).unwrap();
        let (finished, rows) = compared(scenario, cc, signals, 2, 0);
        let decisions: Vec<_> = finished.iter().map(|run| run.decisions.clone()).collect();
        let signal = finished[0].summary.detection[0].signal.clone();
        let cc = finished[0].summary.cc.clone().unwrap();
        let setup = finished[0].summary.setup.clone().unwrap();
        (rows[0].cc.clone(), cc, signal, decisions, setup)
    };
    let (row, cc, signal, decisions, setup) = rows_of("mptcp-sbd", &[], &[]);
    assert_eq!([&row, &cc, &signal], ["mptcp-sbd", "mptcp-sbd", "receiver-us"]);
    assert!(decisions.iter().all(|decisions| !decisions.is_empty()));
    assert_eq!(setup.settings["decision.clear"], "all");
    let parts = [
        ("ssc.preset", "mptcp-sbd"),
        ("decision.clear", "all"),
        ("detection.signal", "receiver-us"),
    ];
    let (row, _, _, same, parts) = rows_of("olia+ssc", &[], &parts);
    assert_eq!(row, "olia+ssc");
    assert_eq!((decisions, setup.scenario_sha256.clone()), (same, parts.scenario_sha256));
    let (_, _, signal, _, other) = rows_of("mptcp-sbd", &[Signal::Rtt], &[]);
    assert_eq!(signal, "rtt");
    assert_ne!(setup.scenario_sha256, other.scenario_sha256);
    let (_, _, signal, _, _) = rows_of("mptcp-sbd", &[], &[("detection.signal", "srtt")]);
    assert_eq!(signal, "srtt");
}

#[test]
fn the_scenarios_of_a_paper_name_the_signal_of_its_detector() {
    for name in shipped() {
        let scenario = load(name, &Edits::default()).unwrap();
        let signal = scenario.flows[scenario.test.unwrap()].tcp.signal;
        let expected = match name.split_once('/').unwrap().0 {
            "sbd" => Signal::ReceiverUs,
            // Based on those.
            "detection" if !name.contains("lte") => Signal::ReceiverUs,
            "tr" => Signal::Rtt,
            _ => Signal::default(),
        };
        assert_eq!(signal, expected, "{name}");
    }
}

#[test]
fn mistakes_are_reported_in_a_line_with_their_field() {
    let message = |more: &str| parse(&text(true, more), &Edits::default()).unwrap_err().to_string();
    for (more, field) in [
        ("[ssc]\np_s = 7", "ssc.p_s: "),
        ("[ssc]\np_x = 0.1", "ssc.p_x: "),
        ("[ssc]\npreset = \"draft\"", "ssc.preset: "),
        ("[tr]\nerror = [1]", "tr.error: "),
        ("[detection]\nsignal = \"owd\"", "detection.signal: "),
        ("[decision]\ntogether = 11", "decision.together: "),
        ("[tr]\nhold_s = 600", "tr.hold_s: "),
    ] {
        let message = message(more);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(message.matches(field).count(), 1, "{message}");
        assert!(message.starts_with("scenario:"), "{message}");
    }
    let set = vec![("ssc.p_s".into(), "x".into())];
    let error = load("sbd/nsb-2", &Edits { set, ..Edits::default() }).unwrap_err().to_string();
    assert!(error.starts_with("--set ssc.p_s=x: "), "{error}");
}

#[cfg(feature = "kernel")]
#[test]
fn the_kernel_host_refuses_what_it_cannot_detect_by() {
    let (scenario, stop) = (scenario(true, ""), AtomicBool::new(false));
    let refused = |control: &str| {
        let job = Job { control: Some(control.parse().unwrap()), ..Job::new(&scenario, &stop) };
        host("kernel").unwrap().check(&job).unwrap_err().to_string()
    };
    let line = "--cc: olia+dcw: the kernel has no detector 'dcw'; it has: shared, disjoint, ssc, tr, \
                btlbw, xcorr (or use --on sim)";
    assert_eq!(refused("olia+dcw"), line);
    let line = "--cc: mptcp-sbd: the kernel's detectors do not sample \"receiver-us\"; expected one of: \
                rtt, sender-ms, sender-us (or use --on sim)";
    assert_eq!(refused("mptcp-sbd"), line);
    assert!(refused("ssc-lia").contains("do not sample \"srtt\""));
    // These set none, or one that it has.
    for control in ["c-mpbbr", "tr-lia"] {
        let job = Job { control: Some(control.parse().unwrap()), ..Job::new(&scenario, &stop) };
        host("kernel").unwrap().check(&job).unwrap();
    }
}
