//! What a group of paths takes, by its law, and what it costs others: the measure of our laws.

mod networks;
mod undecided;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use narrows_lab::Error;
use narrows_stats::mean;

use crate::figures::{Interval, quotient, rounded, spread};
use crate::goodput::goodput;
use crate::{Ask, Curves, Grid, Kept, Paper, Runs, Table};
use networks::{Network, Yardstick, of_table};

/// The tables of docs/results/one-flow.md.
pub const PAPER: Paper = Paper {
    name: "one-flow",
    title: "what a group of paths takes, and what it costs others",
    document: "results/one-flow.md",
    tables: &[
        Table {
            name: "undecided",
            about: "a shared bottleneck from the start on",
            make: undecided::undecided,
        },
        Table {
            name: "shared",
            about: "one bottleneck: goodput over one rival's",
            make: |runs| grid(runs, "shared", ratio),
        },
        Table {
            name: "losses",
            about: "the rivals' loss rate over that beside one more TCP",
            make: |runs| grid(runs, "shared", losses),
        },
        Table {
            name: "one",
            about: "one TCP, and nobody else, beside the group",
            make: |runs| grid(runs, "one", ratio),
        },
        Table {
            name: "many",
            about: "five TCPs beside the group",
            make: |runs| grid(runs, "many", ratio),
        },
        Table { name: "sweep", about: "rates, RTTs, buffers and paths", make: sweep },
        Table {
            name: "apart",
            about: "separate bottlenecks: goodput over the uncoupled law's",
            make: |runs| grid(runs, "apart", ratio),
        },
        Table { name: "two", about: "two such connections", make: |runs| grid(runs, "two", ratio) },
        Table { name: "shifting", about: "after each shift, 5 s by 5 s", make: shifting },
    ],
};

const PACKET_BITS: f64 = 8.0 * 1448.0;
/// Of a Reno flow that peaks at w, a cycle has w / 2 round trips, and its mean is 3 w / 4.
const CYCLE_RTTS: f64 = 2.0 / 3.0;
/// A group is judged where one flow has this many packets for each of its paths, and so many loss cycles.
const JUDGED_PACKETS: f64 = 3.0;
const JUDGED_CYCLES: f64 = 20.0;
/// Shifts: windows of 5 s, the first after each shift reported apart.
const STEP_S: u32 = 5;

fn goodputs(runs: &[Kept], name: &str) -> Vec<Option<f64>> {
    runs.iter().map(|run| Some(goodput(run, name))).collect()
}

/// The group's runs.
fn group(
    runs: &Runs,
    network: &Network,
    kind: &str,
    control: &str,
) -> Result<Arc<Vec<Kept>>, Error> {
    if let Yardstick::Other(other) = &network.yardstick {
        let other = format!("flows.other={{{other}, cc=\"{control}\"}}");
        let ask = network.ask(runs, kind, [control]).set([other]);
        return Ok(runs.get(&ask)?.of(control));
    }
    let controls = network
        .controls()
        .find(|(of, _)| *of == kind)
        .map(|(_, controls)| controls)
        .unwrap_or_default();
    let ask: Ask = network.ask(runs, kind, controls.iter().map(String::as_str));
    Ok(runs.get(&ask)?.of(control))
}

/// The group's goodput over what it is measured by.
fn ratio(
    runs: &Runs,
    network: &Network,
    kind: &str,
    control: &str,
) -> Result<Option<Interval>, Error> {
    let found = group(runs, network, kind, control)?;
    Ok(match &network.yardstick {
        Yardstick::Tcp => spread(&found, |run| run.test().ratio_to_tcp),
        Yardstick::Best => spread(&found, |run| run.test().ratio_to_best),
        Yardstick::Other(_) => quotient(&goodputs(&found, "mptcp"), &goodputs(&found, "other")),
        Yardstick::Uncoupled => {
            let alone = runs.get(&network.ask(runs, kind, [kind]))?;
            quotient(&goodputs(&found, "mptcp"), &goodputs(&alone[kind], "mptcp"))
        }
    })
}

/// Of the rivals' packets, the share sent again.
fn loss_rate(run: &Kept, rivals: &[String]) -> Option<f64> {
    let rivals = || rivals.iter().map(|rival| run.connection(rival));
    let again: u64 = rivals().map(|rival| rival.retransmits).sum();
    let bits = rivals().map(|rival| rival.goodput_mbps).sum::<f64>() * 1e6 * run.summary.duration_s;
    (bits > 0.0).then(|| again as f64 / (bits / PACKET_BITS))
}

/// One more TCP in the connection's place.
fn one_more(runs: &Runs, network: &Network, kind: &str) -> Result<Arc<Vec<Kept>>, Error> {
    let ask =
        network.ask_one_more(runs, kind).expect("a network that is compared with one more TCP");
    Ok(runs.get(&ask)?.of("lia"))
}

/// The rivals' loss rate, over that beside one more TCP.
fn losses(
    runs: &Runs,
    network: &Network,
    kind: &str,
    control: &str,
) -> Result<Option<Interval>, Error> {
    let rate = |found: Arc<Vec<Kept>>| {
        found.iter().map(|run| loss_rate(run, &network.rivals)).collect::<Vec<_>>()
    };
    let beside = [group(runs, network, kind, control)?, one_more(runs, network, kind)?].map(rate);
    Ok(quotient(&beside[0], &beside[1]))
}

/// The window of one more TCP, packets, and its loss cycles in the run; means over the seeds.
fn fair(runs: &Runs, network: &Network, kind: &str) -> Result<(f64, f64), Error> {
    let found = one_more(runs, network, kind)?;
    let of = |run: &Kept| {
        let path = &run.connection("more").paths[0];
        let cycle_s = CYCLE_RTTS * path.mean_cwnd_packets * path.mean_srtt_ms / 1000.0;
        (path.mean_cwnd_packets, if cycle_s > 0.0 { run.summary.duration_s / cycle_s } else { 0.0 })
    };
    let (windows, cycles): (Vec<f64>, Vec<f64>) = found.iter().map(of).unzip();
    Ok((mean(&windows), mean(&cycles)))
}

type Figure = fn(&Runs, &Network, &str, &str) -> Result<Option<Interval>, Error>;

/// A row for each network, a column for each control.
fn grid(runs: &Runs, table: &str, figure: Figure) -> Result<Grid, Error> {
    let mut rows = IndexMap::<String, BTreeMap<String, String>>::new();
    let mut heads = IndexSet::new();
    for network in of_table(table, runs.form()) {
        let row = rows.entry(network.name.clone()).or_default();
        for (kind, controls) in network.controls() {
            for control in controls {
                row.insert(control.clone(), rounded(figure(runs, &network, kind, &control)?, 2));
                heads.insert(control);
            }
        }
    }
    let mut grid = Grid::new([String::new()].into_iter().chain(heads.iter().cloned()));
    for (name, found) in rows {
        let cells = heads.iter().map(|head| found.get(head).cloned().unwrap_or("-".into()));
        grid.row([name].into_iter().chain(cells));
    }
    Ok(grid)
}

/// Rates, paths, buffers and RTTs: judged where the group is thick and the run long enough.
fn sweep(runs: &Runs) -> Result<Grid, Error> {
    let mut grid =
        Grid::new(["", "law", "fair window", "cycles", "judged", "ratio", "rivals' loss"]);
    let (mut judged, mut inside) = (0, 0);
    for network in of_table("sweep", runs.form()) {
        for (kind, controls) in network.controls() {
            for control in controls {
                let (window, cycles) = fair(runs, &network, kind)?;
                let found = ratio(runs, &network, kind, &control)?;
                let counts =
                    window >= JUDGED_PACKETS * network.paths as f64 && cycles >= JUDGED_CYCLES;
                judged += usize::from(counts);
                inside += usize::from(
                    counts && found.is_some_and(|found| (0.92..=1.08).contains(&found.mean)),
                );
                grid.row([
                    network.name.clone(),
                    control.clone(),
                    format!("{window:.0}"),
                    format!("{cycles:.0}"),
                    if counts { "yes".into() } else { String::new() },
                    rounded(found, 2),
                    rounded(losses(runs, &network, kind, &control)?, 2),
                ]);
            }
        }
    }
    grid.note = format!("Of {judged} judged, {inside} are within 0.92 to 1.08.");
    Ok(grid)
}

/// By step of 5 s, Mbit/s of each connection.
fn by_step(run: &Kept) -> BTreeMap<(u32, &str), f64> {
    let mut rates = BTreeMap::new();
    for row in &run.series {
        // A row is about the 100 ms before it.
        let step = libm::floor((row.time_s - 0.05) / f64::from(STEP_S)) as u32;
        *rates.entry((step, row.connection.as_str())).or_default() +=
            row.goodput_mbps.unwrap_or(0.0);
    }
    rates
}

/// What came after each shift, 5 s by 5 s: goodput over the rivals' then.
fn shifting(runs: &Runs) -> Result<Grid, Error> {
    let mut rows = Vec::<(String, Vec<String>)>::new();
    let mut data = "control,phase,since_s,ratio,ci95\n".to_owned();
    for network in of_table("shifting", runs.form()) {
        for (kind, controls) in network.controls() {
            let ask = network.ask(runs, kind, controls.iter().map(String::as_str)).series();
            let found = runs.get(&ask)?;
            for control in &controls {
                let rates: Vec<_> = found[control].iter().map(by_step).collect();
                let mut since = IndexMap::<(&str, u32), [Vec<Option<f64>>; 2]>::new();
                for rates in &rates {
                    for (start, end, phase, rivals) in &network.phases {
                        for step in start / STEP_S..end / STEP_S {
                            let of = |name: &str| rates.get(&(step, name)).copied().unwrap_or(0.0);
                            let [these, those] =
                                since.entry((phase, step * STEP_S - start)).or_default();
                            these.push(Some(of("mptcp")));
                            those.push(Some(rivals.iter().map(|rival| of(rival)).sum()));
                        }
                    }
                }
                let mut by_phase = IndexMap::<&str, Vec<String>>::new();
                for ((phase, since), [these, those]) in &since {
                    let found = quotient(these, those);
                    by_phase.entry(phase).or_default().push(rounded(found, 2));
                    if let Some(Interval { mean, half }) = found {
                        let half = half
                            .map_or(String::new(), |half| narrows_stats::round(half).to_string());
                        let _ = writeln!(
                            data,
                            "{control},{phase},{since},{},{half}",
                            narrows_stats::round(mean)
                        );
                    }
                }
                rows.extend(
                    by_phase
                        .into_iter()
                        .map(|(phase, cells)| (format!("{control}, {phase}"), cells)),
                );
            }
        }
    }
    let steps = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0) as u32;
    let heads = (0..steps).map(|step| format!("{} s", STEP_S * step));
    let mut grid = Grid::new(["since the shift".to_owned()].into_iter().chain(heads));
    rows.into_iter().for_each(|(name, cells)| grid.row([name].into_iter().chain(cells)));
    let ratios = Curves {
        title: "Goodput after a shift over that of the rivals",
        about: "5 s by 5 s, within its 95 % interval.",
        plots: &["phase"],
        curves: &["control"],
        x: ("since_s", "since the shift, s"),
        y: (Some("ratio"), "ratio", ""),
        ci95: Some("ci95"),
        smooth: false,
    };
    grid.draw("shifting.csv", data, &ratios);
    Ok(grid)
}
