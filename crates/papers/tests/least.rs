//! Every table of every paper is made, with one seed and as few networks as show that nothing is broken.

use std::sync::atomic::AtomicBool;

use narrows_papers::{Form, Grid, PAPERS, Runs, Verdict};

/// The tables of a paper.
fn made(paper: &str) -> Vec<(&'static str, Grid)> {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let paper = PAPERS.iter().find(|one| one.name == paper).expect("a paper of that name");
    let make = |table: &'static narrows_papers::Table| {
        let grid = (table.make)(&runs).unwrap_or_else(|error| panic!("{}: {error}", table.name));
        // Of the cells in which a detector is wrong there may be none.
        assert!(!grid.rows.is_empty() || table.name == "wrong", "{} has no rows", table.name);
        for plot in &grid.plots {
            let all = plot.curves.iter().all(|curve| curve.y.len() == plot.x.len());
            assert!(all && !plot.curves.is_empty(), "{}: {}", table.name, plot.title);
        }
        (table.name, grid)
    };
    paper.tables.iter().map(make).collect()
}

#[test]
fn every_paper_has_its_test_here() {
    let here = include_str!("least.rs");
    for paper in PAPERS {
        assert!(here.contains(&format!("made(\"{}\")", paper.name)), "{}", paper.name);
    }
}

/// What `make` makes is in the registry, and all of the registry is made by `make`.
#[test]
fn the_targets_of_the_makefile_are_papers() {
    let makefile = include_str!("../../../Makefile");
    let calls = makefile.lines().filter_map(|line| line.trim().strip_prefix("$(papers) "));
    let mut named: Vec<&str> = calls
        .flat_map(|call| call.split_whitespace().take_while(|word| !word.starts_with('-')))
        .collect();
    named.sort_unstable();
    let mut known: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    known.sort_unstable();
    assert_eq!(named, known);
}

#[test]
fn lisa() {
    let tables = made("lisa");
    let verdicts: Vec<Verdict> = tables.iter().flat_map(|(_, grid)| grid.verdicts()).collect();
    assert!(!verdicts.is_empty());
    assert!(verdicts.iter().all(|one| *one == Verdict::CannotBeTold), "one seed tells nothing");
}

#[test]
fn tr() {
    if let Err(error) = narrows_lab::host("quic") {
        println!("skipped: {error}");
        return;
    }
    made("tr");
}

#[test]
fn sbd() {
    let tables = made("sbd");
    let figures = tables.iter().filter(|(_, grid)| !grid.plots.is_empty());
    let names: Vec<&str> = figures.map(|(name, _)| *name).collect();
    // In seconds the others have no decision, and no series in the least form.
    assert_eq!(names, ["shifting"]);
}

#[test]
fn nornet() {
    made("nornet");
}

#[test]
fn cmpbbr() {
    made("cmpbbr");
}

#[test]
fn one_flow() {
    made("one-flow");
}

#[test]
fn detectors() {
    made("detectors");
}

#[test]
fn laws() {
    made("laws");
}

#[test]
fn mixes() {
    made("mixes");
}
