//! How right the detector is: Tables II to IV, Figure 4, and what decides it.

use narrows_lab::Error;

use super::claims::EXACT;
use super::{
    ERA, FAMILIES, SBD, SIGNALS, TABLE_1, accuracy_of, ask, kinds, label, percents, published,
    published_right, ratio_of, right_groups, runs_of, scenarios, share, shares, spread_percent,
};
use crate::figures::{Interval, percent};
use crate::verdict::{Side, about};
use crate::{Cell, Curves, Grid, Kept, Runs};

/// A path is uncongested only if it was in all ten observations, as in the authors' user-space program.
const ALWAYS: &str = "decision.clear_always=on";
/// Uncongested paths are alone.
const CLEAR_ALONE: &str = "decision.clear=none";

/// Signals of a table: all of Table II, two of the others.
fn signals(suffix: &str) -> &'static [&'static str] {
    &SIGNALS[..if suffix.is_empty() { 4 } else { 2 }]
}

/// A table of the paper beside ours, judged with the paper's signal; in the others bold is a mean more than 5 points below.
pub fn accuracy(runs: &Runs, suffix: &str) -> Result<Grid, Error> {
    let signals = signals(suffix);
    let mut variants: Vec<(&str, Option<&str>, &[&str])> = vec![
        (signals[0], Some(signals[0]), &[]),
        ("uncongested alone", None, &[CLEAR_ALONE]),
        ("Linux 3.14", None, &[ERA]),
    ];
    if suffix == "-red" {
        variants.push(("uncongested in 10 of 10", None, &[ALWAYS]));
    }
    variants.extend(signals[1..].iter().map(|&signal| (signal, Some(signal), &[][..])));
    let (first, others) = (variants[0].0, variants[1..].iter().map(|(name, ..)| *name));
    let heads = ["accuracy, % (ratio)", "paper", first, "verdict"];
    let mut grid = Grid::new(heads.into_iter().chain(others));
    for scenario in kinds(runs.form(), suffix) {
        let paper = published_right(&scenario);
        let mut row: Vec<Cell> = vec![label(&scenario).into(), percent(Some(paper)).into()];
        for (at, (_, signal, settings)) in variants.iter().enumerate() {
            let found = runs_of(runs, &scenario, SBD, *signal, settings)?;
            let ours = accuracy_of(&found);
            let low = ours.is_none_or(|ours| ours.mean < paper - EXACT);
            let bold = if low && at > 0 { "**" } else { "" };
            let text = format!("{bold}{}{bold} ({})", spread_percent(ours), ratio_of(&found));
            row.push(text.into());
            row.extend((at == 0).then(|| about(ours, paper, EXACT, Side::More).into()));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// How many groups each decision after the warm-ups found, if all that are not congested are one.
fn groups_with_one_for_clear(run: &Kept) -> impl Iterator<Item = usize> {
    let counting = run
        .decisions
        .iter()
        .filter(|decision| decision.time_s >= 20.0 && decision.undecided.is_empty());
    counting
        .map(|one| one.groups.split_whitespace().count() + usize::from(!one.uncongested.is_empty()))
}

/// How many groups were found, theirs and ours at the receiver.
pub fn groups(runs: &Runs, suffix: &str) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "1, 2, .. groups, %",
        "paper",
        "ours",
        "merged",
        "split",
        "not congested",
        "undecided",
        "right, those as one group",
    ]);
    for scenario in kinds(runs.form(), suffix) {
        let found = runs_of(runs, &scenario, SBD, Some(SIGNALS[0]), &[])?;
        let counts: Vec<usize> = found.iter().flat_map(groups_with_one_for_clear).collect();
        let right = counts.iter().filter(|&&count| count == right_groups(&scenario)).count();
        let right = (!counts.is_empty()).then(|| right as f64 / counts.len() as f64);
        grid.row([
            label(&scenario),
            percents(&published(&scenario)),
            percents(&shares(&found, |phase| &phase.groups_hist)),
            percent(share(&found, |phase| phase.false_merge_rate)),
            percent(share(&found, |phase| phase.false_split_rate)),
            percent(share(&found, |phase| phase.uncongested_share)),
            percent(share(&found, |phase| phase.undecided_share)),
            percent(right),
        ]);
    }
    Ok(grid)
}

/// The same detector where no coupling makes paths thin.
pub fn full(runs: &Runs) -> Result<Grid, Error> {
    let heads = [
        "accuracy, %",
        "reno+ssc",
        SBD,
        "merged, reno",
        "merged, mptcp-sbd",
        "split, reno",
        "split, mptcp-sbd",
    ];
    let mut grid = Grid::new(heads);
    for scenario in scenarios(runs.form(), &FAMILIES[..2], "") {
        let both = [
            runs_of(runs, &scenario, "reno+ssc", None, &[TABLE_1])?,
            runs_of(runs, &scenario, SBD, Some(SIGNALS[0]), &[])?,
        ];
        let mut row = vec![label(&scenario)];
        row.extend(both.iter().map(|found| spread_percent(accuracy_of(found))));
        row.extend(both.iter().map(|found| percent(share(found, |phase| phase.false_merge_rate))));
        row.extend(both.iter().map(|found| percent(share(found, |phase| phase.false_split_rate))));
        grid.row(row);
    }
    Ok(grid)
}

/// Loads, %, and greedy TCPs that five bottlenecks have at most: those of NSB-n unlike. Alike, each has 50 % and one.
const FAR: [(f64, f64); 5] = [(30.0, 2.0), (50.0, 5.0), (85.0, 20.0), (10.0, 0.0), (70.0, 10.0)];

/// Loads, %, and greedy TCPs of the background, by bottleneck.
type Background = (Vec<String>, Vec<u32>);

/// Those so many tenths of the way from alike.
fn on_the_way(tenths: u32) -> Background {
    let from = |alike: f64, far: f64| alike + (far - alike) * f64::from(tenths) / 10.0;
    let load = |(load, _): &(f64, f64)| from(50.0, *load).to_string();
    let greedy = |(_, count): &(f64, f64)| (from(1.0, *count) + 0.5) as u32;
    (FAR.iter().map(load).collect(), FAR.iter().map(greedy).collect())
}

/// One of both all the way, and the other alike.
fn one_alone() -> [(&'static str, Background); 2] {
    let [(loads, greedy), (far_loads, far_greedy)] = [0, 10].map(on_the_way);
    [("1.0, loads alone", (far_loads, greedy)), ("1.0, greedy TCPs alone", (loads, far_greedy))]
}

/// How unlike bottlenecks must be to be told apart.
pub fn unlikeness(runs: &Runs) -> Result<Grid, Error> {
    let heads = [
        "unlikeness",
        "loads, %",
        "greedy TCPs",
        "ssc, NSB-2",
        "ssc, NSB-5",
        "xcorr, NSB-2",
        "xcorr, NSB-5",
    ];
    let mut grid = Grid::new(heads);
    let mut data = "control,scenario,unlikeness,accuracy,ci95\n".to_owned();
    let controls = [SBD, "olia+xcorr"];
    let steps: Vec<u32> =
        runs.form().pick((0..=10).step_by(2).collect(), (0..=10).step_by(2).collect(), vec![0, 10]);
    let on_the_way = steps.into_iter().map(|tenths| {
        let unlike = f64::from(tenths) / 10.0;
        (format!("{unlike:.1}"), Some(unlike), on_the_way(tenths))
    });
    let alone = one_alone().into_iter().map(|(name, of)| (name.to_owned(), None, of));
    for (name, unlike, (loads, greedy)) in on_the_way.chain(alone) {
        let mut found = Vec::new();
        for paths in [2, 5] {
            let offered: Vec<_> =
                loads[..paths].iter().map(|load| format!("\"{load} %\"")).collect();
            let settings = [
                format!("background.offered=[{}]", offered.join(", ")),
                format!("background.greedy={:?}", &greedy[..paths]),
            ];
            let settings = settings.each_ref().map(String::as_str);
            let ask =
                ask(runs, &format!("sbd/nsb-{paths}"), controls, &settings).signal(SIGNALS[0]);
            found.push(runs.get(&ask)?);
        }
        let counts: Vec<_> = greedy.iter().map(u32::to_string).collect();
        let mut row = vec![name, loads.join(" "), counts.join(" ")];
        for control in controls {
            for (of, paths) in found.iter().zip([2, 5]) {
                let accuracy = accuracy_of(&of[control]);
                // Only what is on the way is a point of the curve.
                if let (Some(unlike), Some(Interval { mean, half })) = (unlike, accuracy) {
                    let half = half.map_or(String::new(), |half| format!("{half:.4}"));
                    data += &format!("{control},NSB-{paths},{unlike},{mean:.4},{half}\n");
                }
                row.push(spread_percent(accuracy));
            }
        }
        grid.row(row);
    }
    let accuracy = Curves {
        title: "How unlike bottlenecks must be",
        about: "Share of right decisions; 0: bottlenecks alike, 1: as unlike as in nsb-n-unlike.",
        plots: &[],
        curves: &["control", "scenario"],
        x: ("unlikeness", "unlikeness"),
        y: (Some("accuracy"), "accuracy", ""),
        ci95: Some("ci95"),
        smooth: false,
    };
    grid.draw("sbd-unlikeness.csv", data, &accuracy);
    Ok(grid)
}

/// Figure 4: how many of a decision's ten observations are right.
pub fn observations(runs: &Runs) -> Result<Grid, Error> {
    let heads = ["10 / 5-9 / 1-4 / 0 right, %", "paper, 10", SIGNALS[0], SIGNALS[1], "Linux 3.14"];
    let mut grid = Grid::new(heads);
    let mut data = "family,scenario,right_observations,share\n".to_owned();
    for scenario in scenarios(runs.form(), &FAMILIES, "") {
        let paper = if scenario.contains("/nsb") { "45" } else { "90" };
        let mut row = vec![label(&scenario), paper.to_owned()];
        let variants: [(Option<&str>, &[&str]); 3] =
            [(Some(SIGNALS[0]), &[]), (Some(SIGNALS[1]), &[]), (None, &[ERA])];
        for (at, (signal, settings)) in variants.into_iter().enumerate() {
            let found = runs_of(runs, &scenario, SBD, signal, settings)?;
            let shares = shares(&found, |phase| &phase.correct_observations_hist);
            if at == 0 {
                // Whatever the number of paths.
                let family = scenario.trim_start_matches("sbd/").replace(char::is_numeric, "");
                for (right, share) in shares.iter().enumerate() {
                    data += &format!("{family},{scenario},{right},{share:.4}\n");
                }
            }
            let of = |part: &[f64]| percent(Some(part.iter().sum()));
            let parts = (shares.len() > 10).then(|| {
                [of(&shares[10..11]), of(&shares[5..10]), of(&shares[1..5]), of(&shares[..1])]
            });
            row.push(parts.map_or(String::new(), |parts| parts.join(" / ")));
        }
        grid.row(row);
    }
    let shares = Curves {
        title: "Figure 4: right observations of a decision",
        about: "Share of the decisions with so many right observations of ten.",
        plots: &["family"],
        curves: &["scenario"],
        x: ("right_observations", "right observations"),
        y: (Some("share"), "share of decisions", ""),
        ci95: None,
        smooth: false,
    };
    grid.draw("sbd-4.csv", data, &shares);
    Ok(grid)
}

/// The parameters of the paper and of the RFC.
pub fn presets(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new(["accuracy, % (ratio)", "Table I", "RFC 8382"]);
    for scenario in scenarios(runs.form(), &FAMILIES[..2], "") {
        let mut row = vec![label(&scenario)];
        let variants: [(Option<&str>, &[&str]); 2] =
            [(Some(SIGNALS[0]), &[]), (None, &["ssc.preset=rfc8382"])];
        for (signal, settings) in variants {
            let found = runs_of(runs, &scenario, SBD, signal, settings)?;
            row.push(format!("{} ({})", spread_percent(accuracy_of(&found)), ratio_of(&found)));
        }
        grid.row(row);
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlike_bottlenecks_are_those_of_the_scenarios() {
        assert_eq!(on_the_way(0), (vec!["50".into(); 5], vec![1; 5]));
        let (loads, greedy) = on_the_way(10);
        assert_eq!(loads, ["30", "50", "85", "10", "70"]);
        assert_eq!(greedy, [2, 5, 20, 0, 10]);
        let (loads, greedy) = on_the_way(6);
        assert_eq!(loads, ["38", "50", "71", "26", "62"]);
        assert_eq!(greedy, [2, 3, 12, 0, 6]);
    }

    #[test]
    fn one_of_both_is_unlike_alone() {
        let [(_, (loads, greedy)), (_, (alike, counts))] = one_alone();
        assert_eq!((loads, greedy), (on_the_way(10).0, vec![1; 5]));
        assert_eq!((alike, counts), (vec!["50".to_owned(); 5], on_the_way(10).1));
    }
}
