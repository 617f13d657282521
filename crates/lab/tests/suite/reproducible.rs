//! The same scenario and seed give the same bytes: on any machine (a committed hash) and with any
//! number of threads.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use narrows_lab::{
    Algorithm, Case, Control, Edits, HostId, Job, Plan, Scenario, Seeds, SeriesOf, Summary,
    compare, host, load, parse, parts, run, series, shipped,
};
use sha2::{Digest, Sha256};

use crate::shipped::short;

/// SHA-256 of the summary and the series of seed 7. Any change of laws, network, simulator or
/// metrics that changes a single bit of a result changes it; if the change is meant, put here what
/// the test prints and say in the commit why results differ.
const GOLDEN: &str = "d287a252bd2b3b1e35fabd986199b773136da7ff48a2c531881bb8f3e0117a8c";

fn golden() -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.toml");
    load(file.to_str().unwrap(), &Edits::default()).unwrap()
}

/// The result files of a run. Left out is what repeats or is made of the same counters as the rest.
fn bytes(scenario: &Scenario, control: Option<Algorithm>, seed: u64) -> Vec<u8> {
    on_threads(scenario, control, seed, 1)
}

fn on_threads(
    scenario: &Scenario,
    control: Option<Algorithm>,
    seed: u64,
    threads: usize,
) -> Vec<u8> {
    let stop = AtomicBool::new(false);
    let job = Job { control, seed, series: true, threads, ..Job::new(scenario, &stop) };
    let run = run(host("sim").unwrap(), job).unwrap();
    let summary = Summary { test: None, ..run.summary };
    let mut bytes = serde_json::to_vec_pretty(&summary).unwrap();
    series::write_csv(&run.series, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_run_gives_the_bytes_it_gave_when_it_was_committed() {
    let bytes = bytes(&golden(), None, 7);
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, GOLDEN, "results differ from the committed ones, see the note at GOLDEN");
}

#[test]
fn seed_and_law_change_a_run_and_nothing_else_does() {
    let scenario = golden();
    let first = bytes(&scenario, None, 1);
    assert_eq!(first, bytes(&scenario, None, 1));
    assert_eq!(first, bytes(&scenario, Some(Control::OLIA.into()), 1));
    assert_ne!(first, bytes(&scenario, None, 2));
    assert_ne!(first, bytes(&scenario, Some(Control::LIA.into()), 1));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let cases = [Case { scenario: golden(), set: Vec::new() }];
    let controls = [Control::RENO, Control::LIA].map(Algorithm::Ours);
    let with = |jobs| {
        let plan = Plan {
            cases: &cases,
            controls: &controls,
            signals: &[],
            hosts: &[HostId::SIM],
            seeds: Seeds::up_to(4),
            jobs,
            series: SeriesOf::First,
        };
        let finished = compare(plan, None, &AtomicBool::new(false), &|_| ()).unwrap();
        finished.into_iter().map(|run| (run.control, run.summary, run.series)).collect::<Vec<_>>()
    };
    let one = with(1);
    assert_eq!(one.len(), 8);
    assert!(one == with(3), "three threads give other results than one");
}

#[test]
fn the_threads_of_a_run_change_no_shipped_scenario() {
    shipped_scenarios_are_the_same_on(&[3]);
}

#[test]
#[ignore = "a minute: make test-long"]
fn no_number_of_threads_changes_a_shipped_scenario() {
    shipped_scenarios_are_the_same_on(&[2, 3, 8]);
}

/// Those that run in parts at all, cut short; all others run as on one thread.
fn shipped_scenarios_are_the_same_on(threads: &[usize]) {
    let mut parted = 0;
    for name in shipped() {
        let (whole, stop) = (short(name, "6 s"), AtomicBool::new(false));
        if parts(&Job { threads: 8, seed: 7, ..Job::new(&whole, &stop) }).unwrap().is_none() {
            continue;
        }
        let scenario = short(name, "2 s");
        let several = Job { threads: 8, seed: 7, ..Job::new(&scenario, &stop) };
        assert!(parts(&several).unwrap().is_some(), "{name} is whole in 2 s");
        parted += 1;
        let control = Some("greno+xcorr".parse().unwrap());
        let alone = on_threads(&scenario, control, 7, 1);
        for &threads in threads {
            let several = on_threads(&scenario, control, 7, threads);
            assert!(several == alone, "{name} on {threads} threads");
        }
    }
    assert!(parted >= 8, "{parted} scenarios run in parts");
}

/// Coupled paths of BBR: a sibling's event makes room in the window of a path whose pace had come before. It is due
/// then, and time does not run back, which the simulator checks at each event.
#[test]
fn time_does_not_run_back_where_a_siblings_event_makes_room() {
    let connections = (0..16).map(|number| {
        let start_ms = 500.0 + 62.5 * f64::from(number);
        format!(
            "flows.m{number} = {{ kind = \"mptcp\", routes = [\"a\", \"b\"], cc = \"bbr3\", scheduler = \"min-rtt\", start = \"{start_ms} ms\" }}\n"
        )
    });
    let text = format!(
        "name = \"crowd\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"1 s\"\nduration = \"4 s\"\ntest = \"m0\"\ntcp.receiver_acks = \"linux-6.5\"\n\
         links.l = {{ rate = \"20 Mbit/s\", delay = \"10 ms\", queue = \"33 packets\" }}\n\
         routes.a = {{ links = [\"l\"], rtt = \"40 ms\" }}\nroutes.b = {{ links = [\"l\"], rtt = \"40 ms\" }}\n{}",
        connections.collect::<String>()
    );
    let scenario = parse(&text, &Edits::default()).unwrap();
    let stop = AtomicBool::new(false);
    for seed in 1..=4 {
        run(host("sim").unwrap(), Job { seed, ..Job::new(&scenario, &stop) }).unwrap();
    }
}
