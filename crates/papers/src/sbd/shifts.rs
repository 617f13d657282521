//! Bottlenecks that shift: Figures 7, 8 and 11.

use narrows_lab::Error;
use narrows_lab::detection::PhaseDetection;
use narrows_stats::{mean, quantile};

use super::{SBD, SIGNALS, runs_of};
use crate::figures::percent;
use crate::{Grid, Kept, Runs};

/// What came after shifts towards shared bottlenecks, or towards separate ones.
#[derive(Default)]
pub(super) struct Shift {
    /// How many there were.
    pub(super) phases: usize,
    /// Seconds to the first right decision, of those that were seen.
    pub(super) delays: Vec<f64>,
    /// Of each of these the share of right decisions from then on.
    pub(super) after: Vec<f64>,
}

/// Those of all runs, towards shared and towards separate bottlenecks; scenarios begin with the former.
pub(super) fn shifts(runs: &[Kept]) -> [(&'static str, Shift); 2] {
    let mut kinds = [("SB", Shift::default()), ("NSB", Shift::default())];
    for run in runs {
        let phases = &run.summary.detection;
        for (index, phase) in phases.iter().enumerate().skip(1) {
            let kind = &mut kinds[index % 2].1;
            kind.phases += 1;
            let end = phases.get(index + 1).map_or(f64::INFINITY, |next| next.start_s);
            if let Some((delay, right)) = seen(run, phase, end) {
                kind.delays.push(delay);
                kind.after.push(right);
            }
        }
    }
    kinds
}

/// How long a shift took to be seen, and the share of right decisions from then on.
fn seen(run: &Kept, phase: &PhaseDetection, end: f64) -> Option<(f64, f64)> {
    let first = phase.first_correct_s?;
    let after = run.decisions.iter().filter(|one| first <= one.time_s && one.time_s < end);
    let right: Vec<f64> =
        after.filter_map(|one| one.correct).map(|right| f64::from(u8::from(right))).collect();
    Some((phase.transition_delay_s?, mean(&right)))
}

/// Figures 8 and 11: how long a shift takes to be seen, and how right it is from then on.
pub fn shifting(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "scenario",
        "signal",
        "shift to",
        "seen",
        "delay, mean s",
        "least",
        "25 %",
        "median",
        "75 %",
        "most",
        "right afterwards, %",
    ]);
    let mut data = "scenario,shift_to,delay_s\n".to_owned();
    let scenarios = ["sbd/shifting-30", "sbd/shifting-60", "sbd/realnet-shifting"];
    for scenario in &scenarios[..runs.form().pick(3, 3, 1)] {
        for signal in &SIGNALS[..2] {
            for (kind, mut shift) in shifts(&runs_of(runs, scenario, SBD, Some(signal), &[])?) {
                let delays = &mut shift.delays;
                delays.sort_by(f64::total_cmp);
                if *signal == SIGNALS[0] && !scenario.contains("realnet") {
                    delays.iter().for_each(|delay| data += &format!("{scenario},{kind},{delay}\n"));
                }
                let mut row = vec![scenario.to_string(), signal.to_string(), kind.to_owned()];
                row.push(format!("{} of {}", delays.len(), shift.phases));
                row.push(if delays.is_empty() {
                    "-".into()
                } else {
                    format!("{:.1}", mean(delays))
                });
                let part = |p: f64| {
                    if delays.len() > 1 {
                        format!("{:.1}", quantile(delays, p))
                    } else {
                        "-".into()
                    }
                };
                row.extend([0.0, 0.25, 0.5, 0.75, 1.0].map(part));
                row.push(percent((!shift.after.is_empty()).then(|| mean(&shift.after))));
                grid.row(row);
            }
        }
    }
    grid.files.push(("sbd-8a.csv".into(), data));
    Ok(grid)
}

/// Time between decisions, s.
const STEP_S: f64 = 3.5;
/// Steps that are shown.
const STEPS: usize = 8;

/// Figure 7: right observations in a decision's window, by the time since the shift.
pub fn progress(runs: &Runs) -> Result<Grid, Error> {
    let heads = (1..=STEPS).map(|step| format!("{:.1} s", STEP_S * step as f64));
    let mut grid = Grid::new(["right, %".to_owned()].into_iter().chain(heads));
    for signal in &SIGNALS[..2] {
        let found = runs_of(runs, "sbd/shifting-30", SBD, Some(signal), &[])?;
        for (parity, name) in ["SB", "NSB"].into_iter().enumerate() {
            let mut since: Vec<Vec<f64>> = vec![Vec::new(); STEPS];
            for run in found.iter() {
                let starts: Vec<f64> =
                    run.summary.detection.iter().map(|phase| phase.start_s).collect();
                for decision in &run.decisions {
                    let begun = starts.iter().filter(|&&start| start <= decision.time_s).count();
                    let Some(index) = begun.checked_sub(1).filter(|&index| index > 0) else {
                        continue;
                    };
                    let step = ((decision.time_s - starts[index]) / STEP_S) as usize;
                    if index % 2 == parity && step < STEPS {
                        since[step].push(decision.correct_observations as f64 / 10.0);
                    }
                }
            }
            let shares =
                since.iter().map(|found| percent((!found.is_empty()).then(|| mean(found))));
            grid.row([format!("{name}, {signal}")].into_iter().chain(shares));
        }
    }
    Ok(grid)
}
