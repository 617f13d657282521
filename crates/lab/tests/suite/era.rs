//! The Linux of a time: `era`.

use narrows_lab::{Edits, Flow, FlowKind, Scenario, load, parse};
use narrows_traffic::{LossDetection, ReceiverAcks, Scheduler};

const ERA: (&str, &str) = ("era", "linux-3.14");

/// What the era sets, field by field; flows of kind mptcp have a scheduler besides.
const FIELDS: [(&str, &str); 4] = [
    ("tcp.loss_detection", "fack"),
    ("tcp.receiver_acks", "linux-6.5"),
    ("window.slow_start_at_ssthresh", "on"),
    ("window.count_acks", "on"),
];

/// A network whose connection leaves everything open.
fn loaded(set: &[(&str, &str)]) -> Scenario {
    let text = "name = 'open'\ntitle = ''\nsource = ''\nwarmup = '1 s'\nduration = '4 s'\ntest = 'mptcp'\n\
        generator.disjoint = { paths = 2, rate = '10 Mbit/s', delay = '1 ms', queue = '20 packets', \
        rtt = '20 ms' }\n\
        flows.mptcp = { kind = 'mptcp', routes = ['path1', 'path2'], cc = 'olia' }\n\
        flows.tcp = { kind = 'tcp', routes = ['path1'], cc = 'reno' }\n\
        background = { links = ['bottleneck1'], rtt = ['10 ms', '20 ms'], greedy = [1] }\n";
    let set = set.iter().map(|&(field, value)| (field.into(), value.into())).collect();
    parse(text, &Edits { set, ..Edits::default() }).unwrap()
}

fn window(scenario: &Scenario) -> Vec<String> {
    let names = ["window.slow_start_at_ssthresh", "window.count_acks"];
    let all = narrows_laws::params::all().filter(|param| names.contains(&param.name.as_str()));
    all.map(|param| param.value(&scenario.params)).collect()
}

#[test]
fn an_era_is_of_all_end_points() {
    let scenario = loaded(&[ERA]);
    assert_eq!(scenario.flows.len(), 3);
    for Flow { name, kind, tcp, scheduler, .. } in &scenario.flows {
        let rules = (tcp.loss_detection, tcp.receiver_acks);
        assert_eq!(rules, (LossDetection::Fack, ReceiverAcks::Linux65), "{name}");
        let default = if *kind == FlowKind::Mptcp { Scheduler::MinRtt } else { Scheduler::Linux };
        assert_eq!(*scheduler, default, "{name}");
    }
    assert_eq!(window(&scenario), ["on", "on"]);
}

/// It is short for its fields, no more and no less; and what is written out whole are they, in the same
/// letters.
#[test]
fn an_era_is_its_fields() {
    let fields: Vec<_> = FIELDS.into_iter().chain([("flows.mptcp.scheduler", "min-rtt")]).collect();
    let text = loaded(&[ERA]).text();
    assert_eq!(text, loaded(&fields).text());
    assert!(!text.contains("era ="), "{text}");
    assert_eq!(parse(&text, &Edits::default()).unwrap().text(), text);
    assert_ne!(text, loaded(&[]).text());
}

/// In the scenario or by `--set`, of all or of one.
#[test]
fn what_the_scenario_sets_wins() {
    let today = [
        ("tcp.loss_detection", "rack"),
        ("tcp.receiver_acks", "linux-6.6"),
        ("window.slow_start_at_ssthresh", "off"),
        ("window.count_acks", "off"),
        ("flows.mptcp.scheduler", "linux"),
    ];
    let all: Vec<_> = [ERA].into_iter().chain(today).collect();
    assert_eq!(loaded(&all).text(), loaded(&[]).text());
    let one = loaded(&[ERA, ("flows.tcp.tcp.loss_detection", "rack")]);
    let found: Vec<_> = one.flows.iter().map(|flow| flow.tcp.loss_detection).collect();
    assert_eq!(found, [LossDetection::Fack, LossDetection::Rack, LossDetection::Fack]);
    // The networks of MPTCP-SBD name the scheduler themselves.
    let set = vec![("era".into(), "linux-3.14".into()), ("window.count_acks".into(), "off".into())];
    let sbd = load("sbd/sb-2", &Edits { set, ..Edits::default() }).unwrap();
    assert_eq!(window(&sbd), ["on", "off"]);
}

#[test]
fn an_unknown_era_is_refused_with_its_place() {
    let set = vec![("era".into(), "linux-2.6".into())];
    let error = load("sbd/sb-2", &Edits { set, ..Edits::default() }).unwrap_err().to_string();
    assert!(error.contains("--set era=linux-2.6"), "{error}");
    assert!(error.contains("linux-3.14"), "{error}");
}
