//! What a comparison has finished is kept, whatever ends it, and going on from there gives what an
//! uninterrupted comparison gives.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_lab::{
    Algorithm, Case, Control, Edits, Error, Finished, HostId, Journal, Plan, Seeds, SeriesOf,
    compare, load,
};

const RENO: Algorithm = Algorithm::Ours(Control::RENO);
const LIA: Algorithm = Algorithm::Ours(Control::LIA);

fn cases() -> [Case; 1] {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.toml");
    [Case { scenario: load(file.to_str().unwrap(), &Edits::default()).unwrap(), set: Vec::new() }]
}

fn plan(cases: &[Case]) -> Plan<'_> {
    Plan {
        cases,
        controls: &[RENO, LIA],
        signals: &[],
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(2),
        jobs: 2,
        series: SeriesOf::First,
    }
}

/// Runs the plan; returns the results and how many of them were run now.
fn go_on(plan: Plan, journal: &Journal) -> (Result<Vec<Finished>, Error>, u64) {
    let before = journal.earlier().len() as u64;
    let done = AtomicU64::new(0);
    let all = compare(plan, Some(journal), &AtomicBool::new(false), &|_| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    (all, done.into_inner() - before)
}

fn text(all: &[Finished]) -> String {
    serde_json::to_string(all).unwrap()
}

#[test]
fn a_journal_torn_anywhere_gives_the_results_of_an_uninterrupted_comparison() {
    let (home, cases) = (tempfile::tempdir().unwrap(), cases());
    let plan = plan(&cases);
    let file = home.path().join("unfinished.jsonl");
    let journal = Journal::open(home.path(), &plan, false).unwrap();
    let (whole, ran) = go_on(plan, &journal);
    let whole = whole.unwrap();
    assert_eq!(ran, 4);
    drop(journal);
    let bytes = fs::read(&file).unwrap();
    let ends: Vec<usize> = (1..=bytes.len()).filter(|&end| bytes[end - 1] == b'\n').collect();
    assert_eq!(ends.len(), 1 + 4, "a line for the plan and one for each run");

    // Killed while the third run was being written, right after it, and while the plan was.
    for (cut, missing) in [(ends[3] - 7, 2), (ends[3], 1), (ends[0] - 7, 4), (0, 4)] {
        fs::write(&file, &bytes[..cut]).unwrap();
        let journal = Journal::open(home.path(), &plan, true).unwrap();
        let (all, ran) = go_on(plan, &journal);
        assert_eq!(ran, missing, "cut at {cut} of {}", bytes.len());
        assert_eq!(text(&all.unwrap()), text(&whole));
        drop(journal);
        let journal = Journal::open(home.path(), &plan, true).unwrap();
        assert_eq!(journal.earlier().len(), 4, "what came after the torn line is whole");
    }
    // A power failure can leave zeros.
    let mut zeros = bytes.clone();
    zeros[ends[1]..ends[2]].fill(0);
    fs::write(&file, zeros).unwrap();
    let journal = Journal::open(home.path(), &plan, true).unwrap();
    assert_eq!(text(&go_on(plan, &journal).0.unwrap()), text(&whole));
    journal.remove().unwrap();
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_journal_is_of_one_plan() {
    let (home, cases) = (tempfile::tempdir().unwrap(), cases());
    let plan = plan(&cases);
    let journal = Journal::open(home.path(), &plan, false).unwrap();
    drop(journal);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "an empty journal leaves no file");

    let journal = Journal::open(home.path(), &plan, true).unwrap();
    assert_eq!(go_on(plan, &journal).1, 4);
    drop(journal);
    let refused =
        |plan: Plan, resume| Journal::open(home.path(), &plan, resume).unwrap_err().to_string();
    assert!(
        refused(plan, false)
            .contains("unfinished.jsonl: an interrupted comparison is in this folder")
    );
    let mut other = cases.clone();
    other[0].scenario.links[0].config.delay += 1;
    for other in [
        Plan { seeds: Seeds::up_to(3), ..plan },
        Plan { controls: &[LIA], ..plan },
        Plan { hosts: &[HostId::new("kernel")], ..plan },
        Plan { hosts: &[HostId::new("kernel"), HostId::SIM], ..plan },
        Plan { series: SeriesOf::None, ..plan },
        Plan { cases: &other, ..plan },
    ] {
        assert!(refused(other, true).contains("belongs to other arguments, other scenarios"));
    }
    // The number of threads is no part of it.
    Journal::open(home.path(), &Plan { jobs: 1, ..plan }, true).unwrap();
}

#[test]
fn a_panic_names_its_run_and_leaves_the_others() {
    let (home, mut cases) = (tempfile::tempdir().unwrap(), cases().to_vec());
    // Two runs that go well, then one that no scenario file can make: a connection without paths.
    let mut broken = cases[0].clone();
    broken.scenario.name = "broken".into();
    broken.scenario.flows[0].paths.clear();
    cases.push(broken);
    let plan = Plan {
        cases: &cases,
        controls: &[LIA],
        signals: &[],
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(2),
        jobs: 1,
        series: SeriesOf::None,
    };
    let journal = Journal::open(home.path(), &plan, false).unwrap();
    let error = journal.interrupted(go_on(plan, &journal).0.unwrap_err(), 4);
    assert_eq!(error.exit_code(), 1);
    let line = error.to_string();
    assert_eq!(line.lines().count(), 1);
    assert!(line.starts_with("broken under lia, seed "), "{line}");
    assert!(line.contains("1 to 8 paths"), "{line}");
    assert!(line.contains("; 2 of 4 runs are saved in "), "{line}");
    drop(journal);
    assert_eq!(Journal::open(home.path(), &plan, true).unwrap().earlier().len(), 2);
}
