//! What the trend-line paper (Zhang, arXiv:1812.05816) shows of its detector beside that of MPTCP-SBD, on TCP; its
//! experiments on QUIC have a page of their own.

use std::fmt::Write;

use narrows_lab::Error;

use super::{accuracy_of, ask, plus_minus, ratio_of, runs_of, share};
use crate::figures::{percent, spread, time};
use crate::runs::first_right;
use crate::{Curves, Form, Grid, Kept, Runs};

/// The trace experiments plot every single finding: of TR each 5 s, of SSC each 350 ms, none is held.
const EACH: [&str; 5] = [
    "ssc.preset=mptcp-sbd",
    "tr.hold_s=1",
    "decision.observations=1",
    "decision.together=1",
    "decision.every=1",
];
/// With CUBIC in place of Reno beside the connection.
const CUBIC: [&str; 4] = [
    "flows.tcp1.cc=cubic",
    "flows.tcp2.cc=cubic",
    "background.0.cc=cubic",
    "background.1.cc=cubic",
];

/// The experiments E1 to E5.
fn experiments(form: Form) -> &'static [&'static str] {
    const ALL: [&str; 5] = ["e1", "e2", "e3", "e4", "e5"];
    &ALL[..form.pick(5, 5, 1)]
}

fn settings_of(law: &str) -> Vec<&'static str> {
    [&EACH[..], if law == "cubic" { &CUBIC } else { &[] }].concat()
}

fn queue_name(queue: &str) -> &'static str {
    if queue.is_empty() { "droptail" } else { "RED" }
}

/// When TR and SSC first find the shared bottleneck of a trace experiment, and how right they are from then on.
pub struct First {
    /// The experiment, `e1` to `e5`.
    pub experiment: &'static str,
    /// Nothing, or `-red`.
    pub queue: &'static str,
    /// The law of all flows.
    pub law: &'static str,
    /// Seconds, median over the seeds; infinite if in more than half it was not found.
    pub times: [f64; 2],
    /// Shares.
    pub right: [Option<f64>; 2],
    /// The first run of each.
    shown: [Kept; 2],
}

/// Those of all trace experiments.
///
/// # Errors
/// As [`Runs::get`].
pub fn firsts(runs: &Runs, seeds: u64) -> Result<Vec<First>, Error> {
    let mut all = Vec::new();
    for &experiment in experiments(runs.form()) {
        for queue in ["", "-red"] {
            for law in ["cubic", "reno"] {
                let controls = ["tr", "ssc"].map(|detector| format!("{law}+{detector}"));
                let names = controls.iter().map(String::as_str);
                let asked = ask(runs, &format!("tr/{experiment}{queue}"), names, &settings_of(law));
                let found = runs.get(&asked.seeds(seeds))?;
                let [tr, ssc] = controls.each_ref().map(|control| &found[control.as_str()]);
                let right = |runs: &[Kept]| accuracy_of(runs).map(|found| found.mean);
                all.push(First {
                    experiment,
                    queue,
                    law,
                    times: [first_right(tr), first_right(ssc)],
                    right: [right(tr), right(ssc)],
                    shown: [tr[0].clone(), ssc[0].clone()],
                });
            }
        }
    }
    Ok(all)
}

/// The first positive of TR beside that of SSC, and how right each is from then on.
pub fn traces(runs: &Runs) -> Result<Grid, Error> {
    let mut grid =
        Grid::new(["", "queue", "law", "tr, first s", "right, %", "ssc, first s", "right, %"]);
    let mut positives = "experiment,queue,law,detector,from_s,until_s\n".to_owned();
    let all = firsts(runs, runs.seeds(20, 3))?;
    for one in &all {
        let mut row =
            vec![one.experiment.to_uppercase(), queue_name(one.queue).into(), one.law.into()];
        for (place, detector) in ["tr", "ssc"].into_iter().enumerate() {
            row.push(time(one.times[place]));
            row.push(percent(one.right[place]));
            let queue = queue_name(one.queue).to_lowercase();
            together(
                &one.shown[place],
                &format!("{},{queue},{},{detector}", one.experiment, one.law),
                &mut positives,
            );
        }
        grid.row(row);
    }
    let earlier = all.iter().filter(|one| one.times[0] < one.times[1]).count();
    grid.note = format!("TR is first in {earlier} of {}.", all.len());
    grid.files.push(("tr-7.csv".into(), positives));
    let rtts = Curves {
        title: "Its Figure 6: smoothed RTT",
        about: "Of four flows of E5, two on each path.",
        plots: &["queue", "law"],
        curves: &["connection", "path"],
        x: ("time_s", "time, s"),
        y: (Some("srtt_ms"), "smoothed RTT", "ms"),
        ci95: None,
        smooth: true,
    };
    grid.draw("tr-6.csv", delays(runs)?, &rtts);
    Ok(grid)
}

/// Its Figure 7: when a detector has the two paths in one group, in the first run.
fn together(run: &Kept, name: &str, to: &mut String) {
    let mut since = None;
    let decisions =
        run.decisions.iter().map(|one| (one.time_s.to_string(), one.groups.contains('+')));
    for (time, together) in decisions.chain([("end".to_owned(), false)]) {
        match (&since, together) {
            (None, true) => since = Some(time),
            (Some(from), false) => {
                let _ = writeln!(to, "{name},{from},{time}");
                since = None;
            }
            _ => {}
        }
    }
}

/// Its Figure 6: RTTs of four flows of E5, two on each path, in the first 100 s.
fn delays(runs: &Runs) -> Result<String, Error> {
    let mut data = "queue,law,connection,path,time_s,srtt_ms\n".to_owned();
    if runs.form() == Form::Least {
        return Ok(data);
    }
    for queue in ["", "-red"] {
        for law in ["cubic", "reno"] {
            let control = format!("{law}+tr");
            let asked = ask(runs, &format!("tr/e5{queue}"), [control.as_str()], &settings_of(law));
            let found = runs.get(&asked.seeds(1).series())?;
            let queue = queue_name(queue).to_lowercase();
            for row in found[&control][0].series.iter().filter(|row| row.time_s <= 100.0) {
                let Some(srtt) = row.srtt_ms else { continue };
                let place = format!("{queue},{law},{},{}", row.connection, row.path);
                let _ = writeln!(data, "{place},{},{srtt}", row.time_s);
            }
        }
    }
    Ok(data)
}

/// The paper's systems, with what their detectors sample.
const SYSTEMS: [(&str, &str, Option<&str>); 3] = [
    ("ssc-lia", "ssc-lia", None),
    ("tr-lia (rtt)", "tr-lia", None),
    ("tr-lia (srtt)", "tr-lia", Some("srtt")),
];

/// Shared bottlenecks: its Jain's index, and the ratio.
pub fn fairness(runs: &Runs) -> Result<Grid, Error> {
    let mut grid =
        Grid::new(["J (ratio)", "reno"].into_iter().chain(SYSTEMS.map(|(name, ..)| name)));
    for experiment in experiments(runs.form()) {
        let mut row = vec![experiment.to_uppercase()];
        for (_, control, signal) in [("reno", "reno", None)].into_iter().chain(SYSTEMS) {
            let found = runs_of(runs, &format!("tr/{experiment}"), control, signal, &[])?;
            let jain = spread(&found, |run| run.test().jain_mean)
                .map_or("-".into(), |one| format!("{:.3}", one.mean));
            row.push(format!("{jain} ({})", ratio_of(&found)));
        }
        grid.row(row);
    }
    let mut data = "control,connection,path,time_s,goodput_mbps\n".to_owned();
    for control in &["tr-lia", "ssc-lia"][..runs.form().pick(2, 2, 0)] {
        let found = runs.get(&ask(runs, "tr/e1", [*control], &[]).seeds(1).series())?;
        for row in &found[control][0].series {
            let Some(rate) = row.goodput_mbps else { continue };
            let _ =
                writeln!(data, "{control},{},{},{},{rate}", row.connection, row.path, row.time_s);
        }
    }
    let rates = Curves {
        title: "Its Figures 8 and 9: goodput",
        about: "In E1, of each path; samples of 100 ms: their mean between the least and the greatest.",
        plots: &["control"],
        curves: &["connection", "path"],
        x: ("time_s", "time, s"),
        y: (Some("goodput_mbps"), "goodput", "Mbit/s"),
        ci95: None,
        smooth: true,
    };
    grid.draw("tr-8-9.csv", data, &rates);
    Ok(grid)
}

/// False positives on separate bottlenecks, and what that costs.
pub fn positives(runs: &Runs, kind: &str) -> Result<Grid, Error> {
    let wrong = SYSTEMS.map(|(name, ..)| format!("{name}, %"));
    let r =
        ["reno"].into_iter().chain(SYSTEMS.map(|(name, ..)| name)).map(|name| format!("R {name}"));
    let mut grid = Grid::new([String::new()].into_iter().chain(wrong).chain(r));
    for experiment in experiments(runs.form()) {
        let scenario = format!("tr/{experiment}-{kind}");
        let of = |control, signal| runs_of(runs, &scenario, control, signal, &[]);
        let held = SYSTEMS
            .iter()
            .map(|(_, control, signal)| of(control, *signal))
            .collect::<Result<Vec<_>, _>>()?;
        let mut row = vec![experiment.to_uppercase()];
        row.extend(held.iter().map(|found| percent(share(found, |phase| phase.false_merge_rate))));
        let reno = of("reno", None)?;
        row.extend(
            [&reno]
                .into_iter()
                .chain(&held)
                .map(|found| plus_minus(spread(found, |run| run.test().ratio_to_best))),
        );
        grid.row(row);
    }
    Ok(grid)
}
