//! Every table of every paper is made, with one seed and as few networks as show that nothing is broken.

use std::sync::atomic::AtomicBool;

use narrows_papers::{Ask, Form, Grid, Made, PAPERS, Runs, Table, Verdict};

/// The tables of a paper.
fn made(paper: &str) -> Vec<(&'static str, Grid)> {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let paper = PAPERS.iter().find(|one| one.name == paper).expect("a paper of that name");
    let make = |table: &'static Table| {
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
    let tables = made("cmpbbr");
    let (_, claims) = tables.iter().find(|(name, _)| *name == "claims").expect("its claims");
    // What no run can judge is named.
    let last: Vec<String> = claims.rows[claims.rows.len() - 1].iter().map(|c| c.text()).collect();
    assert_eq!(last[..5], ["IV-G", "over the Internet", "", "", "not run"]);
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

#[test]
fn tables_are_made_on_another_host_but_for_those_that_it_cannot_run() {
    let host = match narrows_lab::host("quic") {
        Ok(host) => host,
        Err(error) => return println!("skipped: {error}"),
    };
    let stop = AtomicBool::new(false);
    let runs = || Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let (quic, sim) = (runs().on(host), runs());
    let on = |runs: &Runs, paper: &str, name: &str| {
        let paper = PAPERS.iter().find(|one| one.name == paper).unwrap();
        let table = paper.tables.iter().find(|table| table.name == name).unwrap();
        table.made(runs).unwrap()
    };
    let Made::LeftOut(why) = on(&quic, "sbd", "table-2") else { panic!("QUIC has no such signal") };
    assert!(why.contains("a one-way delay, which QUIC does not report"), "{why}");
    let kernel = narrows_lab::host("kernel").map(|host| runs().on(host));
    if let Ok(kernel) = kernel {
        let Made::LeftOut(why) = on(&kernel, "tr", "shared") else { panic!("it is of QUIC") };
        assert_eq!(why, "it is of quic, as its document says");
    }
    for (paper, table) in [("sbd", "floor"), ("lisa", "figure-8-slow-start")] {
        let [Made::Grid(there), Made::Grid(here)] =
            [&quic, &sim].map(|runs| on(runs, paper, table))
        else {
            panic!("both have it")
        };
        assert_eq!((&there.heads, there.rows.len()), (&here.heads, here.rows.len()));
        assert_ne!(there.rows, here.rows, "{table} is of the host that was asked for");
        let lacks = there.note.contains("-: no figure, of some on quic alone.");
        assert_eq!(
            lacks,
            paper == "lisa",
            "when slow start ends is the simulator's: {}",
            there.note
        );
    }
    let [Made::Grid(both), Made::Grid(one)] = [&quic, &sim].map(|runs| on(runs, "cmpbbr", "hosts"))
    else {
        panic!("both have C-MPBBR")
    };
    assert_eq!(both.heads[2..], ["simulator", "quic", "quic / simulator"]);
    assert_eq!(both.rows.len(), one.rows.len());
    for (both, one) in both.rows.iter().zip(&one.rows) {
        assert_eq!(both[..3], one[..], "what is simulated is the simulator's");
    }
    assert!(both.rows.iter().any(|row| row[3] != row[2]), "{:?}", both.rows);
}

/// One run of four seconds, in real time.
#[test]
fn a_table_is_made_on_the_kernel() {
    let table = Table {
        name: "least",
        about: "a run",
        make: |runs| {
            let found = runs.get(&Ask::of("sbd/sb-2", ["olia"]).brief(runs.form()))?;
            let mut grid = Grid::new(["host", "reinjections"]);
            let run = &found["olia"][0];
            assert!(run.test().goodput_mbps > 0.0);
            grid.row([run.summary.host.to_string(), "-".into()]);
            Ok(grid)
        },
    };
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 1, &stop, &|_| ()).unwrap();
    let host = match narrows_lab::host("kernel") {
        Ok(host) => host,
        Err(error) => return println!("skipped: {error}"),
    };
    let Made::Grid(grid) = (match table.made(&runs.on(host)) {
        // No root, or a kernel without BTF.
        Err(error @ narrows_lab::Error::Input { .. }) => return println!("skipped: {error}"),
        made => made.unwrap(),
    }) else {
        panic!("the kernel has OLIA")
    };
    assert_eq!(grid.rows[0][0].text(), "kernel");
    assert!(grid.note.contains("-: no figure, of some on kernel alone."), "{}", grid.note);
}
