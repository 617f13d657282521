//! Tables of what we have, without a verdict.

use narrows_lab::Error;

use super::networks::{
    ADSL, ERAS, Era, FIBRE, OURS, adsl_queue, all, buffers, first, goodputs, name, only,
    opened_over, other, pairs, published, routes, tcp, uib,
};
use crate::figures::{Interval, averages, means, ratios, rounded, spread, text};
use crate::goodput::under_test;
use crate::{Controls, Grid, Kept, Runs};

/// One TCP over each pair.
pub fn figure_2(runs: &Runs, era: &Era) -> Result<Grid, Error> {
    let of = |pair: &&str| tcp(runs, era, pair);
    let found = pairs().iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let mut grid =
        Grid::new(["control".to_owned()].into_iter().chain(pairs().into_iter().map(name)));
    for control in published() {
        let cells = found.iter().zip(pairs()).map(|(of, pair)| {
            let digits = if ADSL.contains(&pair) { 3 } else { 2 };
            text(Interval::of(&goodputs(&of[control])), digits)
        });
        grid.row([control.to_owned()].into_iter().chain(cells));
    }
    Ok(grid)
}

/// The connection, opened over each pair in turn.
fn opened(runs: &Runs, era: &Era) -> Result<Vec<Controls>, Error> {
    pairs().iter().map(|pair| first(runs, era, pair)).collect()
}

pub fn figures_3_and_4(runs: &Runs, era: &Era) -> Result<Grid, Error> {
    let found = opened(runs, era)?;
    let heads = pairs().into_iter().map(|pair| format!("{} first", name(pair)));
    let mut grid = Grid::new(
        ["control".to_owned()].into_iter().chain(heads).chain(["ADSL / fibre first".into()]),
    );
    for control in all() {
        let cells: Vec<Vec<f64>> = found.iter().map(|of| goodputs(&of[control])).collect();
        let (adsl, fibre) = cells.split_at(ADSL.len());
        let ratio = ratios(&means(adsl), &means(fibre));
        let each = cells.iter().map(|cell| text(Interval::of(cell), 1));
        let last = text(Interval::of(&ratio), 2);
        grid.row([control.to_owned()].into_iter().chain(each).chain([last]));
    }
    Ok(grid)
}

/// Mbit/s over some pairs.
fn over(run: &Kept, pairs: &[&str]) -> f64 {
    let paths = run.connection("mptcp").paths.iter();
    paths.filter(|path| pairs.contains(&&*path.name)).map(|path| path.goodput_mbps).sum()
}

/// Segments sent again over some pairs.
fn again(run: &Kept, pairs: &[&str]) -> f64 {
    let paths = run.connection("mptcp").paths.iter();
    let sent = paths.filter(|path| pairs.contains(&&*path.name)).map(|path| path.retransmits);
    sent.sum::<u64>() as f64
}

/// The mean queue at BKK, ms.
fn queue(run: &Kept) -> Option<f64> {
    let link = run.summary.links.iter().find(|link| link.name == "server2");
    link.map(|link| link.mean_queue_ms)
}

/// Where the data went, opened over the fibres of Uninett.
pub fn data_went(runs: &Runs, era: &Era) -> Result<Grid, Error> {
    type Figure = fn(&Kept) -> Option<f64>;
    let figures: [(&str, Figure, usize); 7] = [
        ("to Uninett, Mbit/s", |run| Some(over(run, &["path1-1"])), 1),
        ("to BKK, Mbit/s", |run| Some(over(run, &["path1-2"])), 1),
        ("ADSL, Mbit/s", |run| Some(over(run, &ADSL)), 2),
        ("retx, fibre", |run| Some(again(run, &FIBRE)), 0),
        ("retx, ADSL", |run| Some(again(run, &ADSL)), 0),
        ("queue at BKK, ms", queue, 0),
        (
            "data waits, p95, ms",
            |run| run.connection("mptcp").head_of_line.map(|waits| waits.p95_ms),
            0,
        ),
    ];
    let found = first(runs, era, "path1-1")?;
    let mut grid = Grid::new(["control"].into_iter().chain(figures.map(|(name, ..)| name)));
    for control in all() {
        let cells =
            figures.map(|(_, figure, digits)| text(spread(&found[control], figure), digits));
        grid.row([control.to_owned()].into_iter().chain(cells));
    }
    Ok(grid)
}

/// By seed, the mean of a figure over first pairs; none if a run has none.
fn over_pairs(
    found: &[Controls],
    control: &str,
    figure: impl Fn(&Kept) -> Option<f64>,
) -> Vec<f64> {
    let lists: Vec<Vec<Option<f64>>> =
        found.iter().map(|of| of[control].iter().map(&figure).collect()).collect();
    averages(&lists).into_iter().collect::<Option<_>>().unwrap_or_default()
}

/// What `xcorr` found, and what it gains.
pub fn detector(runs: &Runs) -> Result<Grid, Error> {
    type Figure = fn(&Kept) -> Option<f64>;
    let figures: [(&str, Figure); 4] = [
        // A run without a decision has none that is right.
        ("accuracy, %", |run| Some(run.test().accuracy.unwrap_or(0.0))),
        ("pairs right, %", |run| run.summary.passive[0].right),
        ("wrong, %", |run| run.summary.passive[0].wrong),
        ("unsure, %", |run| run.summary.passive[0].unsure),
    ];
    let heads = ["control", "Linux"].into_iter().chain(figures.map(|(name, _)| name));
    let mut grid = Grid::new(heads.chain(["/ uncoupled", "/ lia", "/ olia", "/ balia"]));
    for era in &ERAS {
        let found = opened(runs, era)?;
        let goodput = |law| over_pairs(&found, law, |run| Some(under_test(run)));
        for control in OURS {
            let shares = figures.map(|(_, figure)| {
                let by_seed = over_pairs(&found, control, |run| Some(100.0 * figure(run)?));
                rounded(Interval::of(&by_seed), 0)
            });
            // The law alone, uncoupled: Reno or CUBIC.
            let uncoupled = if control.starts_with("greno") { "reno" } else { "cubic" };
            let gains = [uncoupled, "lia", "olia", "balia"]
                .map(|law| text(Interval::of(&ratios(&goodput(control), &goodput(law))), 2));
            let head = [control.to_owned(), era.name.into()];
            grid.row(head.into_iter().chain(shares).chain(gains));
        }
    }
    Ok(grid)
}

/// Networks that differ in one thing.
fn differing() -> Vec<(&'static str, Vec<String>)> {
    let scheduler = |name: &str| format!("flows.mptcp.scheduler={name}");
    let reinject = scheduler("mptcp-v0.89-reinject");
    let fibre_first = ["path1-1", "path1-2", "path2-1", "path2-2", "path3-1", "path3-2"];
    let fibre_next = ["path3-1", "path1-2", "path1-1", "path3-2", "path2-2", "path2-1"];
    vec![
        ("as it is", vec![]),
        ("buffers of 400 KiB", buffers("400 KiB")),
        ("buffers of 16 MiB", buffers("16 MiB")),
        ("ADSL with a queue of 50 packets", adsl_queue("50 packets")),
        ("the same, buffers of 16 MiB", [adsl_queue("50 packets"), buffers("16 MiB")].concat()),
        ("UiB's queues of 22 ms", uib("queue", "22 ms")),
        ("0.1 % of loss to UiB", uib("loss", "0.1 %")),
        ("both fibres before ADSL", vec![routes(&fibre_first)]),
        ("reinjection after timeouts", vec![reinject.clone()]),
        ("ADSL first", vec![opened_over("path3-1")]),
        ("the same, reinjection after timeouts", vec![opened_over("path3-1"), reinject]),
        ("ADSL first, then both fibres", vec![routes(&fibre_next)]),
        ("scheduler `min-rtt`", vec![scheduler("min-rtt")]),
        ("scheduler `linux`", vec![scheduler("linux")]),
        ("the same, losses by RACK", vec![scheduler("linux"), "tcp.loss_detection=rack".into()]),
        ("no ADSL", only(&FIBRE).into()),
    ]
}

pub fn others(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([""].into_iter().chain(all()));
    for (name, settings) in differing() {
        let found = other(runs, settings)?;
        let cells = all().into_iter().map(|law| text(Interval::of(&goodputs(&found[law])), 1));
        grid.row([name.to_owned()].into_iter().chain(cells));
    }
    Ok(grid)
}
