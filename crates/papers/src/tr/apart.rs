//! A bottleneck for each path: what the connection has over one path, equation 20.

use std::sync::Arc;

use narrows_lab::Error;
use narrows_stats::mean;

use super::networks::{Experiment, Network, RATIOS, by_program as with_program, experiments};
use super::{
    GAIN, OURS, ROWS, Row, apart_all, apart_one, ask, fair, gain_text, over_best, possible, ratios,
    right, seeds, wrong,
};
use crate::figures::{Interval, percent, rounded, time};
use crate::runs::first_right;
use crate::verdict::{Judged, above, near, weakest};
use crate::{Cell, Grid, Kept, Runs, Verdict};

/// The halves of the experiments: equal n/C, and twice the rate on the second.
const FACTORS: [u32; 2] = [1, 2];

/// Equation 20 on each network.
pub fn apart(runs: &Runs, factor: u32) -> Result<Grid, Error> {
    let heads = ["R (wrong, %)", "a TCP's share on both"].map(String::from);
    let mut grid = Grid::new(heads.into_iter().chain(ROWS.map(Row::name)));
    for one in experiments(runs) {
        let mut cells = vec![
            one.name.clone(),
            format!("{:.2}", apart_one(runs, possible, ROWS[0], &one, factor)?),
        ];
        for row in ROWS {
            let merged = apart_one(runs, wrong, row, &one, factor)?;
            let merged =
                merged.map_or(String::new(), |share| format!(" ({})", percent(Some(share))));
            cells.push(format!("{:.2}{merged}", apart_one(runs, over_best, row, &one, factor)?));
        }
        grid.row(cells);
    }
    let mut means = vec![
        "**mean**".to_owned(),
        rounded(Interval::of(&apart_all(runs, possible, ROWS[0], factor)?), 2),
    ];
    for row in ROWS {
        means.push(rounded(Interval::of(&apart_all(runs, over_best, row, factor)?), 2));
    }
    grid.row(means);
    Ok(grid)
}

/// What is asked of our detector, which is no published value: a bound.
fn asked(found: Option<Interval>) -> &'static str {
    match above(found, OURS) {
        Verdict::Reproduced => "reached",
        Verdict::Worse => "missed",
        _ => "cannot be told",
    }
}

/// The mean gain over one path, of both halves, and the verdicts: of TR against the published gain, of ours against
/// what is asked of it.
pub fn gains(runs: &Runs) -> Result<Grid, Error> {
    let heads = ["equal", "factor 2"].into_iter().flat_map(|half| {
        ["gain", "of what is possible", "verdict"].map(|what| format!("{half}: {what}"))
    });
    let mut grid = Grid::new([String::new()].into_iter().chain(heads));
    for row in ROWS {
        let mut cells = vec![Cell::from(row.name())];
        for factor in FACTORS {
            let less_one =
                |values: Vec<f64>| values.iter().map(|one| one - 1.0).collect::<Vec<f64>>();
            let own = less_one(apart_all(runs, over_best, row, factor)?);
            let most = less_one(apart_all(runs, possible, row, factor)?);
            let part: Vec<f64> = own.iter().zip(&most).map(|(one, most)| one / most).collect();
            cells.push(format!("{:+.0} %", 100.0 * mean(&own)).into());
            cells.push(rounded(Interval::of(&part), 2).into());
            cells.push(if row.is("tr") {
                near(Interval::of(&own), GAIN).into()
            } else if row.is_xcorr() {
                asked(Interval::of(if factor == 1 { &own } else { &part })).into()
            } else {
                "".into()
            });
        }
        grid.row(cells);
    }
    Ok(grid)
}

/// Of the table by RTTs, beside Reno.
const BY_RTTS: [(&str, Option<&str>); 3] =
    [("reno", None), ("tr-lia", Some("rtt")), ("tr-lia", Some("srtt"))];

/// The run of a network whose RTTs have a ratio, beside Reno.
fn of_rtts(
    runs: &Runs,
    (control, signal): (&'static str, Option<&str>),
    experiment: &Experiment,
    ratio: f64,
) -> Result<(Network, Kept), Error> {
    let network = experiment.apart("reno", 1, Some(ratio));
    let found = runs.get(&ask(runs, &network, [control], signal))?;
    Ok((network, found[control][0].clone()))
}

/// The mean gain over the networks whose RTTs have a ratio.
pub fn gain_of_rtts(
    runs: &Runs,
    control: (&'static str, Option<&str>),
    ratio: f64,
) -> Result<Option<Interval>, Error> {
    let gain = |one: &Experiment| -> Result<f64, Error> {
        let (network, run) = of_rtts(runs, control, one, ratio)?;
        Ok(over_best(&network, 1, &run) - 1.0)
    };
    Ok(Interval::of(&experiments(runs).iter().map(gain).collect::<Result<Vec<_>, _>>()?))
}

/// Separate bottlenecks of equal n/C, by how many times the first path's RTT the second has.
pub fn by_rtts(runs: &Runs) -> Result<Grid, Error> {
    let columns = || RATIOS.into_iter().flat_map(|ratio| BY_RTTS.map(|control| (ratio, control)));
    let heads = columns().map(|(ratio, (control, signal))| {
        format!(
            "{ratio}: {control}{}",
            signal.map_or(String::new(), |signal| format!(", {signal}"))
        )
    });
    let mut grid = Grid::new(["R (wrong, %)".to_owned()].into_iter().chain(heads));
    for one in experiments(runs) {
        let mut cells = vec![one.name.clone()];
        for (ratio, control) in columns() {
            let (network, run) = of_rtts(runs, control, &one, ratio)?;
            let merged = wrong(&network, 1, &run)
                .map_or(String::new(), |share| format!(" ({})", percent(Some(share))));
            cells.push(format!("{:.2}{merged}", over_best(&network, 1, &run)));
        }
        grid.row(cells);
    }
    let mut gains = vec!["**gain**".into()];
    let mut verdicts = vec!["**verdict**".into()];
    for (ratio, control) in columns() {
        let gain = gain_of_rtts(runs, control, ratio)?;
        gains.push(Cell::from(gain_text(gain)));
        verdicts.push(if control.0 == "tr-lia" { near(gain, GAIN).into() } else { Cell::from("") });
    }
    grid.row(gains);
    grid.row(verdicts);
    Ok(grid)
}

/// Of the author's rule, shared and separate. Not `tr-lia`, which has the paper's parameters whatever the network says.
fn of_program(
    runs: &Runs,
    network: Network,
    seeds: u64,
) -> Result<(Network, Arc<Vec<Kept>>), Error> {
    let network = with_program(network);
    let found = runs.get(&ask(runs, &network, ["lia+tr"], Some("rtt")).seeds(seeds))?;
    Ok((network, found.of("lia+tr")))
}

/// The mean gain by it.
pub fn gain_of_program(runs: &Runs) -> Result<Option<Interval>, Error> {
    let gain = |one: &Experiment| -> Result<f64, Error> {
        let (network, found) = of_program(runs, one.apart("reno", 1, None), 1)?;
        Ok(over_best(&network, 1, &found[0]) - 1.0)
    };
    Ok(Interval::of(&experiments(runs).iter().map(gain).collect::<Result<Vec<_>, _>>()?))
}

/// TR by the rule of the author's program, as far as it goes: shared and separate bottlenecks.
pub fn by_program(runs: &Runs) -> Result<Grid, Error> {
    let heads =
        ["", "shared: J (ratio)", "verdict", "first s", "right, %", "separate: R", "wrong, %"];
    let (mut grid, mut verdicts) = (Grid::new(heads), Vec::new());
    for one in experiments(runs) {
        let (network, found) = of_program(runs, one.shared("reno", None), seeds(runs))?;
        let (other, apart) = of_program(runs, one.apart("reno", 1, None), 1)?;
        let apart = &apart[0];
        let [of_tcp, indexes] = ratios(&network, &found);
        let verdict = fair(&indexes, one.jain[1]);
        verdicts.push(verdict);
        grid.row([
            Cell::from(one.name.as_str()),
            format!("{:.3} ({:.2})", mean(&indexes), mean(&of_tcp)).into(),
            verdict.into(),
            time(first_right(&found)).into(),
            percent(right(&found)).into(),
            format!("{:.2}", over_best(&other, 1, apart)).into(),
            percent(wrong(&other, 1, apart)).into(),
        ]);
    }
    let gain = gain_of_program(runs)?;
    let judged = Judged::new(near(gain, GAIN), gain_text(gain));
    grid.row([
        "**all**".into(),
        "".into(),
        weakest(&verdicts).into(),
        "".into(),
        "".into(),
        Cell::from(judged),
        "".into(),
    ]);
    Ok(grid)
}
