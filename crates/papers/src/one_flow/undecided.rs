//! What a connection takes of a shared bottleneck from its start on, while little is known of it.

use indexmap::IndexSet;
use narrows_lab::Error;
use narrows_stats::mean;

use crate::detectors::Design;
use crate::{Ask, Form, Grid, Runs};

const CONTROLS: [&str; 3] = ["reno", "lia", "greno+xcorr"];
/// The TCP beside it is there before.
const START_S: u32 = 10;
const WINDOWS_S: [(u32, u32); 4] = [(0, 5), (5, 10), (10, 20), (20, 40)];
/// As those of the design: no constant was chosen by them.
const FIRST_SEED: u64 = 301;
/// As `narrows fuzz` has it.
const TOO_MUCH: f64 = 1.25;

/// The networks of the detectors' design with up to five paths over one bottleneck, each once, with a TCP beside the
/// connection, both greedy: scenario and settings.
fn networks() -> IndexSet<(String, Vec<String>)> {
    let mut known = IndexSet::new();
    for cell in Design::read().cells() {
        let greedy = cell.closed || cell.factor == "drawn";
        let beside = !cell.settings.iter().any(|one| one.starts_with("flows.tcp1.start="));
        let ours =
            cell.side == "shared" && cell.traces.is_empty() && cell.scenario.starts_with("sbd/");
        // A share says nothing of a connection that the application limits.
        if ours && greedy && beside {
            let mut settings = cell.settings;
            settings.retain(|one| !one.starts_with("warmup=") && !one.starts_with("duration="));
            settings.push(format!("flows.mptcp.start={START_S} s"));
            known.insert((cell.scenario, settings));
        }
    }
    known
}

/// The quartiles by the exclusive rule (type 6 of Hyndman and Fan).
fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| {
        let position = share * (sorted.len() + 1) as f64;
        let below = (position as usize).clamp(1, sorted.len().saturating_sub(1).max(1));
        let above = below.min(sorted.len() - 1);
        sorted[below - 1] + (position - below as f64) * (sorted[above] - sorted[below - 1])
    })
}

/// Goodput over the TCP's by the time since the start: median, quartiles, and how many networks are above what is
/// right.
pub fn undecided(runs: &Runs) -> Result<Grid, Error> {
    let heads = WINDOWS_S.map(|(from, to)| format!("{from}-{to} s"));
    let mut grid = Grid::new([String::new()].into_iter().chain(heads));
    let seeds = runs.form().pick(5, 1, 1);
    let few = if runs.form() == Form::Least { 2 } else { usize::MAX };
    let mut found: Vec<Vec<String>> = CONTROLS.map(|control| vec![control.to_owned()]).to_vec();
    for (from, to) in WINDOWS_S {
        let mut ratios = vec![Vec::new(); CONTROLS.len()];
        for (scenario, settings) in networks().iter().take(few) {
            let times =
                [format!("warmup={} s", START_S + from), format!("duration={} s", to - from)];
            let ask = Ask::of(scenario, CONTROLS).set(settings.iter().cloned()).set(times);
            let of = runs.get(&ask.from_to(FIRST_SEED..=FIRST_SEED + seeds - 1))?;
            for (control, ratios) in CONTROLS.iter().zip(&mut ratios) {
                let each: Vec<f64> =
                    of[control].iter().filter_map(|run| run.test().ratio_to_tcp).collect();
                ratios.push(mean(&each));
            }
        }
        for (row, ratios) in found.iter_mut().zip(&ratios) {
            let [low, middle, high] = quartiles(ratios);
            let many = ratios.iter().filter(|&&ratio| ratio > TOO_MUCH).count();
            row.push(format!("{middle:.2} ({low:.2}-{high:.2}), {many} of {}", ratios.len()));
        }
    }
    found.into_iter().for_each(|row| grid.row(row));
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tcp_is_there_before_the_connection() {
        let networks = networks();
        assert!(networks.len() > 45, "{}", networks.len());
        for (_, settings) in networks {
            assert!(settings.iter().any(|one| one == "flows.mptcp.start=10 s"));
            let others = ["flows.tcp1.start", "warmup", "duration"];
            assert!(
                !settings.iter().any(|one| others.iter().any(|other| one.starts_with(other))),
                "{settings:?}"
            );
        }
    }

    #[test]
    fn quartiles_are_those_of_the_exclusive_rule() {
        assert_eq!(quartiles(&[1.0, 1.0, 1.5, 2.0]), [1.0, 1.25, 1.875]);
        assert_eq!(quartiles(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), [2.0, 4.0, 6.0]);
    }
}
