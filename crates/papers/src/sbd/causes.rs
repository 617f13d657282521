//! What decides, one thing at a time: the paper's Linux as a whole and by field, the load, and the detector's rules.

use narrows_lab::Error;

use super::{ERA, LAWS, SBD, accuracy_of, ask, plus_minus, ratio_of, right_groups, spread_percent};
use crate::figures::spread;
use crate::{Controls, Grid, Runs};

/// What the era sets, but for the scheduler, which these networks set themselves.
const FIELDS: [&str; 4] = [
    "window.slow_start_at_ssthresh=on",
    "window.count_acks=on",
    "tcp.loss_detection=fack",
    "tcp.receiver_acks=linux-6.5",
];

/// Ten greedy TCPs in the background of each bottleneck.
const GREEDY: &str = "background.greedy=[10]";

/// Of the delays within 5 ms the authors' kernel counts the first.
const SPACING: &str = "ssc.spacing_ms=5";

/// What is set in each row.
const ROWS: [&[&str]; 13] = [
    &[],
    &[ERA],
    &[FIELDS[0]],
    &[FIELDS[1]],
    &[FIELDS[2]],
    &[FIELDS[3]],
    &[ERA, "background.offered=70 %"],
    &[ERA, GREEDY],
    // No split by variability, then none by skewness, then no path that is not congested.
    &[ERA, "ssc.p_mad=1"],
    &[ERA, "ssc.p_s=2"],
    &[ERA, "ssc.c_s=1"],
    &[ERA, SPACING],
    // As in the authors' later user-space program; 0.1 in Table I.
    &[ERA, SPACING, "ssc.p_s=0.15"],
];

/// Networks on which the system is judged.
const NETWORKS: [&str; 4] = ["sbd/sb-2", "sbd/sb-3", "sbd/sb-5", "sbd/nsb-2"];
/// Networks of the laws without a detector.
const OF_LAWS: [&str; 2] = ["sbd/nsb-2", "sbd/sb-5"];

/// The settings of a row on a network.
fn on(scenario: &str, settings: &[&str]) -> Vec<String> {
    // Where bottlenecks are separate there is one for each group.
    let greedy = || format!("background.greedy={:?}", vec![10; right_groups(scenario)]);
    let set = |&one: &&str| if one == GREEDY { greedy() } else { one.to_owned() };
    settings.iter().map(set).collect()
}

/// The runs of controls in a row.
fn found(
    runs: &Runs,
    scenario: &str,
    controls: &[&str],
    settings: &[&str],
) -> Result<Controls, Error> {
    let settings = on(scenario, settings);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let ask = ask(runs, scenario, controls.iter().copied(), &settings);
    runs.get(&ask.seeds(runs.seeds(10, 3)))
}

/// A row for each change.
pub fn causes(runs: &Runs) -> Result<Grid, Error> {
    let heads = [
        "accuracy, % (ratio)",
        "SB-2",
        "SB-3",
        "SB-5",
        "NSB-2",
        "ratio of lia, olia, balia, NSB-2",
        "ratio of lia, olia, balia, SB-5",
    ];
    let mut grid = Grid::new(heads);
    let shown = runs.form().pick(ROWS.len(), ROWS.len(), 2);
    for settings in &ROWS[..shown] {
        let names: Vec<String> = settings.iter().map(|one| format!("`{one}`")).collect();
        let mut row = vec![if names.is_empty() { "today".to_owned() } else { names.join(", ") }];
        for scenario in NETWORKS {
            let of = found(runs, scenario, &[SBD], settings)?.of(SBD);
            row.push(format!("{} ({})", spread_percent(accuracy_of(&of)), ratio_of(&of)));
        }
        // The detector's rules do not concern them.
        let laws = !settings.iter().any(|one| one.starts_with("ssc."));
        for scenario in OF_LAWS {
            if !laws {
                row.push(String::new());
                continue;
            }
            let of = found(runs, scenario, &LAWS[1..], settings)?;
            let ratio = |law: &&str| plus_minus(spread(&of[*law], |run| run.test().ratio_to_tcp));
            row.push(LAWS[1..].iter().map(ratio).collect::<Vec<_>>().join(", "));
        }
        grid.row(row);
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ask;

    fn text(scenario: &str, settings: &[&str]) -> String {
        Ask::of(scenario, [SBD]).set(on(scenario, settings)).scenario().unwrap().text()
    }

    #[test]
    fn the_fields_are_all_of_the_era() {
        assert_eq!(text("sbd/nsb-2", &FIELDS), text("sbd/nsb-2", &[ERA]));
    }

    /// On networks of one bottleneck and of two. What a scenario's text lacks, as it is the default of a detector, differs
    /// from the system's own value, so the last row is left out.
    #[test]
    fn each_row_changes_something() {
        for scenario in ["sbd/sb-5", "sbd/nsb-2"] {
            let rows = &ROWS[..ROWS.len() - 1];
            let mut all: Vec<String> = rows.iter().map(|row| text(scenario, row)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), rows.len(), "{scenario}");
        }
    }
}
