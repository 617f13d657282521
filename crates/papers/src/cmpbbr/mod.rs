//! BBR alone and coupled, and the experiments of the C-MPBBR paper (Mahmud et al., "Coupled Multipath BBR
//! (C-MPBBR)", IEEE Access 8, 2020). Its networks are in `scenarios/cmpbbr`.

mod claims;
mod rankings;
mod tables;

use narrows_lab::Error;
use narrows_stats::{jain, mean};

use crate::figures::{Interval, ratios, spread};
use crate::goodput::{goodput, mptcp};
use crate::{Ask, Controls, Kept, Paper, Runs, Table};

/// The tables of docs/results/bbr.md.
pub const PAPER: Paper = Paper {
    name: "cmpbbr",
    title: "BBR alone and coupled, and the C-MPBBR paper",
    document: "results/bbr.md",
    tables: &[
        Table {
            name: "claims",
            about: "every claim with a number in the paper's text",
            make: claims::claims,
        },
        Table {
            name: "one-flow",
            about: "N paths beside one bbr flow, by bbr.share",
            make: |runs| {
                let shares = ["group", "published", "han", "none"].map(|share| (share, 1));
                tables::one_flow(runs, "bbr", &shares)
            },
        },
        Table { name: "unequal", about: "the same with unequal RTTs", make: tables::unequal },
        Table {
            name: "version-3",
            about: "version 3 beside window laws, and where the queue marks",
            make: tables::version_3,
        },
        Table {
            name: "one-flow-version-3",
            about: "N paths beside one bbr3 flow, by bbr3.share, and with bursts of 2 packets",
            make: |runs| tables::one_flow(runs, "bbr3", &[("group", 1), ("group", 2), ("none", 1)]),
        },
        Table {
            name: "figure-1",
            about: "Figure 1: two BBR flows with loss",
            make: tables::figure_1,
        },
        Table {
            name: "scenario-1",
            about: "scenario 1: two paths with loss, nothing beside them",
            make: |runs| tables::total(runs, "one"),
        },
        Table {
            name: "scenario-2",
            about: "scenario 2: two paths, a TCP beside the first",
            make: |runs| tables::total(runs, "two"),
        },
        Table {
            name: "scenario-3",
            about: "scenario 3: two paths and a TCP through one bottleneck",
            make: |runs| tables::total(runs, "three"),
        },
        Table {
            name: "scenario-4",
            about: "scenario 4: a fast path, and a slow one beside a TCP",
            make: |runs| tables::total(runs, "four"),
        },
        Table {
            name: "goal-1",
            about: "scenario 4 with advice to close a path, by buffers",
            make: tables::goal_1,
        },
        Table {
            name: "scenario-5",
            about: "scenario 5: two equal paths that share nothing",
            make: |runs| tables::total(runs, "five"),
        },
        Table {
            name: "fairness",
            about: "Figures 12 and 13: the rival's throughput over its share (equation 4), and Jain's index",
            make: tables::fairness,
        },
        Table {
            name: "itself",
            about: "Figures 13 and 14(d): two connections of the same control",
            make: tables::itself,
        },
        Table {
            name: "five-paths",
            about: "Section IV-F: five paths, a rival at each bottleneck",
            make: tables::five_paths,
        },
        Table {
            name: "rankings",
            about: "Figures 11 to 14: what the text says of its pictures, and what decides it",
            make: rankings::rankings,
        },
        Table {
            name: "detectors",
            about: "how often a detector is right on a BBR connection",
            make: tables::detectors,
        },
        Table {
            name: "hosts",
            about: "scenarios 1 to 5 under c-mpbbr; with --on HOST the simulator and that host",
            make: tables::hosts,
        },
    ],
};

const MODELS: [&str; 8] =
    ["bbr", "c-mpbbr", "han-bbr", "u-mpbbr", "bbr+btlbw", "bbr+xcorr", "bbr+ssc", "bbr+tr"];
const WINDOWS: [&str; 3] = ["lia", "olia", "balia"];

fn laws() -> Vec<&'static str> {
    [&MODELS[..], &WINDOWS].concat()
}

/// Bandwidth of the paths, Mbit/s: scenarios 1 to 5, and of five paths a link each.
fn rates(scenario: &str) -> &'static [f64] {
    match scenario {
        "one" | "two" => &[10.0, 5.0],
        "three" | "five" => &[10.0, 10.0],
        "four" => &[50.0, 1.0],
        "complex" => &[20.0, 1.0, 1.0, 20.0, 20.0],
        other => panic!("cmpbbr/{other} has no rates"),
    }
}

/// Buffers that fill: what the paper shows in scenario 4 asks for some, and it does not say which.
const SMALL: [&str; 2] = ["flows.mptcp.recv_buffer=1 MB", "flows.mptcp.send_buffer=1 MB"];

/// What out-of-tree MPTCP, which the paper ran, does by default when a buffer is full.
const ANSWER: &str = "flows.mptcp.scheduler=mptcp-v0.89";

// --- Runs -----------------------------------------------------------------------------------------------

/// The paper has "at least 30" runs of 120 s.
fn seeds(runs: &Runs) -> u64 {
    runs.seeds(10, 3)
}

/// Tables of many cells.
fn few(runs: &Runs) -> u64 {
    runs.seeds(4, 3)
}

fn get<S: Into<String>>(
    runs: &Runs,
    scenario: &str,
    controls: &[&str],
    settings: impl IntoIterator<Item = S>,
    seeds: u64,
) -> Result<Controls, Error> {
    let ask = Ask::of(scenario, controls.iter().copied()).set(settings).seeds(seeds);
    runs.get(&ask.brief(runs.form()))
}

/// Figure 1 with what its flows estimate.
fn estimated(runs: &Runs) -> Result<Controls, Error> {
    let ask = Ask::of("cmpbbr/two-bbr", ["bbr"]).series().seeds(seeds(runs));
    runs.get(&ask.brief(runs.form()))
}

/// What is beside the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rival {
    Nothing,
    /// BBR beside model laws and Reno beside window laws: the paper's rule.
    Own,
    Cubic,
}

impl Rival {
    /// As the text has it.
    fn name(self) -> &'static str {
        match self {
            Rival::Nothing => "",
            Rival::Own => "BBR/Reno",
            Rival::Cubic => "CUBIC",
        }
    }
}

/// All controls in a scenario of the paper.
fn against(runs: &Runs, scenario: &str, rival: Rival) -> Result<Controls, Error> {
    against_with(runs, scenario, rival, &[])
}

/// The same in a network that differs.
fn against_with(
    runs: &Runs,
    scenario: &str,
    rival: Rival,
    more: &[&str],
) -> Result<Controls, Error> {
    let flows: &[&str] = if scenario == "complex" { &["tcp1", "tcp2", "tcp3"] } else { &["tcp1"] };
    let name = format!("cmpbbr/{scenario}");
    let beside = |controls: &[&str], law: &str| {
        let rivals = flows.iter().map(|flow| format!("flows.{flow}.cc={law}"));
        let settings = rivals.chain(more.iter().map(|one| one.to_string()));
        get(runs, &name, controls, settings, seeds(runs))
    };
    match rival {
        Rival::Nothing => get(runs, &name, &laws(), more.iter().copied(), seeds(runs)),
        Rival::Own => Ok(beside(&MODELS, "bbr")?.and(beside(&WINDOWS, "reno")?)),
        Rival::Cubic => beside(&laws(), "cubic"),
    }
}

/// Two connections of the same control, nothing else: `mptcp` and `other`.
fn twice(runs: &Runs, scenario: &str, law: &str, seeds: u64) -> Result<Vec<Kept>, Error> {
    // What the other is called as a flow's own control.
    let same = match law {
        "c-mpbbr" => "bbr+btlbw",
        "u-mpbbr" | "han-bbr" => "bbr",
        other => other,
    };
    let other = [format!("flows.other.cc={same}")];
    Ok(get(runs, &format!("cmpbbr/{scenario}-itself"), &[law], other, seeds)?[law].clone())
}

// --- Figures --------------------------------------------------------------------------------------------

fn tcp(run: &Kept) -> f64 {
    goodput(run, "tcp1")
}

/// What the first subflow delivered, Mbit/s.
fn first(run: &Kept) -> f64 {
    run.connection("mptcp").paths[0].goodput_mbps
}

/// The estimate of the bandwidth on a flow's first path, Mbit/s, mean of samples; none on a host that does not tell it.
fn estimate(run: &Kept, name: &str) -> Option<f64> {
    let flow = run.summary.connections.iter().position(|one| one.name == name)?;
    let samples = run.bandwidth_mbps.get(flow)?.first()?;
    Some(mean(samples)).filter(|_| !samples.is_empty())
}

fn to_rival(run: &Kept) -> f64 {
    mptcp(run) / tcp(run)
}

/// `Ag_bft`, equation 3: of the goodput and the rates of all paths.
fn benefit(run: &Kept, rates: &[f64]) -> f64 {
    let best = rates.iter().copied().fold(0.0, f64::max);
    let (total, sum) = (mptcp(run), rates.iter().sum::<f64>());
    (total - best) / if total >= best { sum - best } else { best }
}

/// Jain's index over goodputs, for Figure 13: in scenario 2 of the first subflow and the rival, which share a
/// bottleneck; in scenario 3 of the connection and the rival.
fn fairness(run: &Kept, scenario: &str) -> f64 {
    let ours = if scenario == "two" { first(run) } else { mptcp(run) };
    jain(&[ours, tcp(run)])
}

/// Jain's index of both of [`twice`].
fn even(run: &Kept) -> f64 {
    jain(&[mptcp(run), goodput(run, "other")])
}

/// The same with five paths: at each bottleneck of what the connection has there and its rival, the mean. The text does
/// not say of what its index is.
fn fairness_of_five(run: &Kept) -> f64 {
    let paths = &run.connection("mptcp").paths;
    let at = [(&paths[..1], "tcp1"), (&paths[1..3], "tcp2"), (&paths[3..], "tcp3")];
    let each = at.map(|(ours, rival)| {
        jain(&[ours.iter().map(|path| path.goodput_mbps).sum(), goodput(run, rival)])
    });
    mean(&each)
}

/// A figure over the seeds.
fn over(runs: &[Kept], figure: impl Fn(&Kept) -> f64) -> Option<Interval> {
    spread(runs, |run| Some(figure(run)))
}

/// The connection under one control over the same under another, by seed.
fn gain(these: &[Kept], those: &[Kept]) -> Option<Interval> {
    let of = |runs: &[Kept]| runs.iter().map(mptcp).collect::<Vec<_>>();
    Interval::of(&ratios(&of(these), &of(those)))
}
