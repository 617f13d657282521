//! MPTCP-SBD (Ferlin, Alay, Dreibholz, Hayes, Welzl: Revisiting Congestion Control for Multipath TCP with Shared
//! Bottleneck Detection, IEEE INFOCOM 2016), and what the trend-line paper (Zhang, arXiv:1812.05816) shows of
//! detectors alone, on the same page.

mod accuracy;
mod causes;
mod claims;
mod laws;
mod shifts;
mod trends;

pub(crate) use trends::firsts;

use std::sync::Arc;

use narrows_lab::Error;

use crate::figures::{Interval, percent};
use crate::{Ask, Form, Kept, Paper, Runs, Table};

/// The tables of docs/results/detection.md.
pub const PAPER: Paper = Paper {
    name: "sbd",
    title: "MPTCP-SBD: shared bottlenecks detected, OLIA for each group",
    document: "results/detection.md",
    tables: &[
        Table { name: "claims", about: "the paper's claims, each judged", make: claims::claims },
        Table {
            name: "alone",
            about: "the single-path TCPs without the connection",
            make: laws::alone,
        },
        Table {
            name: "coupled",
            about: "Figure 2: the laws by path and in all",
            make: laws::coupled,
        },
        Table {
            name: "table-2",
            about: "Table II: accuracy with droptail",
            make: |runs| accuracy::accuracy(runs, ""),
        },
        Table {
            name: "table-2-groups",
            about: "Table II: how many groups are found",
            make: |runs| accuracy::groups(runs, ""),
        },
        Table {
            name: "table-3",
            about: "Table III: accuracy with RED",
            make: |runs| accuracy::accuracy(runs, "-red"),
        },
        Table {
            name: "table-3-groups",
            about: "Table III: how many groups are found",
            make: |runs| accuracy::groups(runs, "-red"),
        },
        Table {
            name: "table-4",
            about: "Table IV: accuracy with different RTTs",
            make: |runs| accuracy::accuracy(runs, "-rtt"),
        },
        Table {
            name: "table-4-groups",
            about: "Table IV: how many groups are found",
            make: |runs| accuracy::groups(runs, "-rtt"),
        },
        Table { name: "full", about: "the detector on uncoupled paths", make: accuracy::full },
        Table {
            name: "unlikeness",
            about: "how unlike bottlenecks must be to be told apart",
            make: accuracy::unlikeness,
        },
        Table {
            name: "causes",
            about: "the paper's Linux by field, the load and the detector's rules, one at a time",
            make: causes::causes,
        },
        Table {
            name: "observations",
            about: "Figure 4: right observations of each decision",
            make: accuracy::observations,
        },
        Table {
            name: "gains",
            about: "Figure 5: what is taken from TCP, and the gain over OLIA",
            make: laws::gains,
        },
        Table {
            name: "presets",
            about: "the paper's parameters and RFC 8382's",
            make: accuracy::presets,
        },
        Table {
            name: "shifting",
            about: "Figures 8 and 11: how long a shift takes to be seen",
            make: shifts::shifting,
        },
        Table {
            name: "progress",
            about: "Figure 7: right observations since the shift",
            make: shifts::progress,
        },
        Table {
            name: "real",
            about: "Section V and Figure 10: a model of the real network",
            make: laws::real,
        },
        Table {
            name: "traces",
            about: "trend lines, Figure 7: the first positive of TR and SSC",
            make: trends::traces,
        },
        Table {
            name: "fairness",
            about: "trend lines: shared bottlenecks, Jain's index",
            make: trends::fairness,
        },
        Table {
            name: "positives",
            about: "trend lines: separate bottlenecks, equal",
            make: |runs| trends::positives(runs, "apart"),
        },
        Table {
            name: "positives-unequal",
            about: "trend lines: separate bottlenecks, one twice as fast",
            make: |runs| trends::positives(runs, "unequal"),
        },
        Table { name: "lia", about: "LIA with each detector", make: laws::lia },
        Table { name: "floor", about: "Remark 1: the least ssthresh of OLIA", make: laws::floor },
    ],
};

const SBD: &str = "mptcp-sbd";
const SIGNALS: [&str; 4] = ["receiver-us", "sender-us", "sender-ms", "rtt"];
/// The Linux that the paper ran.
const ERA: &str = "era=linux-3.14";
/// The paper's parameters, of its Table I.
const TABLE_1: &str = "ssc.preset=mptcp-sbd";
/// Laws without a detector.
const LAWS: [&str; 4] = ["reno", "lia", "olia", "balia"];

/// Families of separate bottlenecks: alike, with uneven loads, unlike in loads and greedy TCPs (chosen after
/// accuracies had been seen), and with the background of a script for D-ITG.
const FAMILIES: [&str; 4] = ["", "-uneven", "-unlike", "-itg"];

/// Networks of two to five paths: in the quick form of two and of five, in the least of two.
fn sizes(form: Form) -> Vec<usize> {
    form.pick(vec![2, 3, 4, 5], vec![2, 5], vec![2])
}

/// The scenarios of some families, then those of shared bottlenecks.
fn scenarios(form: Form, families: &[&str], suffix: &str) -> Vec<String> {
    let separate = families.iter().flat_map(|family| {
        sizes(form).into_iter().map(move |paths| format!("sbd/nsb-{paths}{family}{suffix}"))
    });
    separate.chain(shared(form).into_iter().map(|one| one + suffix)).collect()
}

fn shared(form: Form) -> Vec<String> {
    sizes(form).into_iter().map(|paths| format!("sbd/sb-{paths}")).collect()
}

/// Those of a table of detectors: with droptail and equal RTTs all families.
fn kinds(form: Form, suffix: &str) -> Vec<String> {
    scenarios(form, if suffix.is_empty() { &FAMILIES } else { &FAMILIES[..2] }, suffix)
}

/// `sbd/nsb-2-uneven-red`: NSB-2 uneven.
fn label(scenario: &str) -> String {
    let name = scenario.trim_start_matches("sbd/");
    let name = name.strip_suffix("-red").or(name.strip_suffix("-rtt")).unwrap_or(name);
    let mut parts = name.split('-');
    let kind = parts.next().unwrap_or_default().to_uppercase();
    let paths = parts.next().unwrap_or_default();
    let family: String = parts.map(|part| format!(" {part}")).collect();
    format!("{kind}-{paths}{family}")
}

/// How many groups there are in truth.
fn right_groups(scenario: &str) -> usize {
    let paths = scenario.split('-').nth(1).and_then(|paths| paths.parse().ok()).unwrap_or(1);
    if scenario.contains("/nsb") { paths } else { 1 }
}

/// The runs of a control.
fn runs_of(
    runs: &Runs,
    scenario: &str,
    control: &str,
    signal: Option<&str>,
    settings: &[&str],
) -> Result<Arc<Vec<Kept>>, Error> {
    let ask = ask(runs, scenario, [control], settings);
    let ask = if let Some(signal) = signal { ask.signal(signal) } else { ask };
    Ok(runs.get(&ask)?.of(control))
}

/// The paper's runs are 20 or more of each.
fn seeds(runs: &Runs) -> u64 {
    runs.seeds(20, 3)
}

fn ask<'a>(
    runs: &Runs,
    scenario: &str,
    controls: impl IntoIterator<Item = &'a str>,
    settings: &[&str],
) -> Ask {
    let ask = Ask::of(scenario, controls).set(settings.iter().copied()).seeds(seeds(runs));
    // What shifts, or starts as the run ends, needs all of it.
    let whole = scenario.contains("shifting") || settings.contains(&laws::ABSENT);
    if whole { ask } else { ask.brief(runs.form()) }
}

/// The system's runs, on today's Linux with the paper's signal, or on the paper's.
fn system(runs: &Runs, scenario: &str, era: bool) -> Result<Arc<Vec<Kept>>, Error> {
    if era {
        runs_of(runs, scenario, SBD, None, &[ERA])
    } else {
        runs_of(runs, scenario, SBD, Some(SIGNALS[0]), &[])
    }
}

/// A law's runs on either.
fn law(runs: &Runs, scenario: &str, law: &str, era: bool) -> Result<Arc<Vec<Kept>>, Error> {
    let settings: &[&str] = if era { &[ERA] } else { &[] };
    Ok(runs.get(&ask(runs, scenario, LAWS, settings))?.of(law))
}

/// How right the detector was in the runs that decided something.
fn accuracy_of(runs: &[Kept]) -> Option<Interval> {
    Interval::of(&runs.iter().filter_map(|run| run.test().accuracy).collect::<Vec<_>>())
}

/// Mean of the ratio to TCP.
fn ratio_of(runs: &[Kept]) -> String {
    match crate::figures::spread(runs, |run| run.test().ratio_to_tcp) {
        Some(found) => format!("{:.2}", found.mean),
        None => "-".into(),
    }
}

/// A share with its interval, in percent: `75 ± 3`.
fn spread_percent(found: Option<Interval>) -> String {
    found.map_or("-".into(), |found| {
        format!("{:.0} ± {:.0}", 100.0 * found.mean, 100.0 * found.half.unwrap_or(0.0))
    })
}

/// A mean with its interval: `0.62 ± 0.03`.
fn plus_minus(found: Option<Interval>) -> String {
    found
        .map_or("-".into(), |found| format!("{:.2} ± {:.2}", found.mean, found.half.unwrap_or(0.0)))
}

/// Mean of a share over phases and seeds; none where no run has it.
fn share(
    runs: &[Kept],
    of: fn(&narrows_lab::detection::PhaseDetection) -> Option<f64>,
) -> Option<f64> {
    let phases = runs.iter().flat_map(|run| &run.summary.detection);
    let values: Vec<f64> = phases.filter_map(of).collect();
    (!values.is_empty()).then(|| narrows_stats::mean(&values))
}

/// Mean over phases and seeds of a histogram's shares, as far as the shortest goes; none without a count.
fn shares(runs: &[Kept], of: fn(&narrows_lab::detection::PhaseDetection) -> &Vec<u64>) -> Vec<f64> {
    let phases = runs.iter().flat_map(|run| &run.summary.detection);
    let found: Vec<Vec<f64>> = phases
        .filter_map(|phase| {
            let counts = of(phase);
            let sum: u64 = counts.iter().sum();
            (sum > 0).then(|| counts.iter().map(|&count| count as f64 / sum as f64).collect())
        })
        .collect();
    let length = found.iter().map(Vec::len).min().unwrap_or(0);
    let at = |place: usize| found.iter().map(|shares| shares[place]).collect::<Vec<_>>();
    (0..length).map(|place| narrows_stats::mean(&at(place))).collect()
}

/// Shares in whole percent, side by side.
fn percents(shares: &[f64]) -> String {
    shares.iter().map(|&share| percent(Some(share))).collect::<Vec<_>>().join(" ")
}

/// The paper's Tables II to IV, the share of decisions that found 1 to 5 groups; our families have those of NSB-n.
fn published(scenario: &str) -> Vec<f64> {
    let name =
        FAMILIES[1..].iter().fold(scenario.to_owned(), |name, family| name.replace(family, ""));
    let rows = include_str!("published.csv").lines().filter(|line| !line.starts_with('#'));
    let mut rows = rows.map(|line| line.split(',').collect::<Vec<_>>());
    let row =
        rows.find(|row| row[1] == name).unwrap_or_else(|| panic!("no published row of {name}"));
    row[2..].iter().filter_map(|share| share.parse().ok()).collect()
}

/// What is published of the right number of groups.
fn published_right(scenario: &str) -> f64 {
    published(scenario)[right_groups(scenario) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_have_the_papers_names() {
        assert_eq!(label("sbd/nsb-2-uneven-red"), "NSB-2 uneven");
        assert_eq!(label("sbd/sb-5-rtt"), "SB-5");
        assert_eq!((right_groups("sbd/nsb-4-itg"), right_groups("sbd/sb-4")), (4, 1));
    }

    #[test]
    fn what_is_published_is_of_one_family() {
        assert_eq!(published_right("sbd/nsb-3-unlike"), 0.74);
        assert_eq!(published_right("sbd/sb-2-red"), 0.989);
        assert_eq!(published("sbd/nsb-5-uneven-rtt").len(), 5);
        for suffix in ["", "-red", "-rtt"] {
            for scenario in kinds(Form::Whole, suffix) {
                assert!(published_right(&scenario) > 0.6, "{scenario}");
            }
        }
    }
}
