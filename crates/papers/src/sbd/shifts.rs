//! Bottlenecks that shift: Figures 7, 8 and 11.

use narrows_lab::Error;
use narrows_stats::{mean, quantile};

use super::{SBD, SIGNALS, runs_of};
use crate::figures::percent;
use crate::{Curves, Grid, Kept, Runs};

/// What came after shifts towards shared bottlenecks, or towards separate ones.
#[derive(Default)]
pub(super) struct Shift {
    /// How many there were.
    pub(super) phases: usize,
    /// Seconds to the first right decision, of those that were seen.
    pub(super) delays: Vec<f64>,
    /// Of each of these the share of right decisions from then on.
    pub(super) after: Vec<f64>,
    /// By run, the mean of the seconds; a shift that was not seen has all of its phase.
    pub(super) delay_by_run: Vec<f64>,
    /// By run, the mean share of right decisions after the first right one, which is right by its choice; none of a
    /// shift that was not seen.
    pub(super) right_by_run: Vec<f64>,
}

/// Those of all runs, towards shared and towards separate bottlenecks; scenarios begin with the former.
pub(super) fn shifts(runs: &[Kept]) -> [(&'static str, Shift); 2] {
    let mut kinds = [("SB", Shift::default()), ("NSB", Shift::default())];
    for run in runs {
        for (delays, rights, kind) in by_run(run, &mut kinds) {
            kind.delay_by_run.extend((!delays.is_empty()).then(|| mean(&delays)));
            kind.right_by_run.extend((!rights.is_empty()).then(|| mean(&rights)));
        }
    }
    kinds
}

/// Adds the shifts of a run to their kinds; of each kind the seconds and shares that are averaged over the run.
fn by_run<'a>(
    run: &Kept,
    kinds: &'a mut [(&'static str, Shift); 2],
) -> Vec<(Vec<f64>, Vec<f64>, &'a mut Shift)> {
    let phases = &run.summary.detection;
    let end = phases.iter().map(|phase| phase.start_s).fold(0.0, f64::max);
    let mut found = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (index, phase) in phases.iter().enumerate().skip(1) {
        let (delays, rights) = &mut found[index % 2];
        let kind = &mut kinds[index % 2].1;
        kind.phases += 1;
        // The last phase is as long as the one before.
        let until = phases.get(index + 1).map(|next| next.start_s);
        let length = until.unwrap_or(2.0 * end - phases[index - 1].start_s) - phase.start_s;
        let Some((first, delay)) = phase.first_correct_s.zip(phase.transition_delay_s) else {
            delays.push(length);
            rights.push(0.0);
            continue;
        };
        let right = |later: &dyn Fn(f64) -> bool| -> Vec<f64> {
            let inside = |time: f64| later(time) && until.is_none_or(|until| time < until);
            let after = run.decisions.iter().filter(|one| inside(one.time_s));
            after.filter_map(|one| one.correct).map(|right| f64::from(u8::from(right))).collect()
        };
        kind.delays.push(delay);
        kind.after.push(mean(&right(&|time| first <= time)));
        delays.push(delay);
        let later = right(&|time| first < time);
        rights.extend((!later.is_empty()).then(|| mean(&later)));
    }
    let each = found.into_iter().zip(kinds);
    each.map(|((delays, rights), (_, kind))| (delays, rights, kind)).collect()
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
    let delays = Curves {
        title: "Figure 8a: delay of a shift",
        about: "Share of the shifts that were seen which were seen by then.",
        plots: &[],
        curves: &["scenario", "shift_to"],
        x: ("delay_s", "delay, s"),
        y: (None, "share of shifts", ""),
        ci95: None,
        smooth: false,
    };
    grid.draw("sbd-8a.csv", data, &delays);
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
