//! What laws take with and without the detector: Figures 2, 5 and 10, Remark 1.

use narrows_lab::{Error, TestSummary};
use narrows_stats::mean;

use super::{
    ERA, FAMILIES, LAWS, SBD, TABLE_1, accuracy_of, ask, label, law, plus_minus, ratio_of, runs_of,
    scenarios, share, shared, spread_percent, system,
};
use crate::figures::{Interval, median, percent, quotient, spread};
use crate::goodput::{goodput, under_test};
use crate::{Form, Grid, Kept, Runs};

/// The connection starts as the run ends.
pub(super) const ABSENT: &str = "flows.mptcp.start=139.9 s";

/// The single-path TCPs by themselves: what stands behind the families.
pub fn alone(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new(["", "TCP1 alone, Mbit/s", "TCP1 : TCP2 : .."]);
    for scenario in
        scenarios(runs.form(), &FAMILIES, "").into_iter().filter(|one| one.contains("/nsb"))
    {
        let found = runs_of(runs, &scenario, "reno", None, &[ABSENT])?;
        let tcps = found[0].summary.connections.iter().filter(|one| one.name.starts_with("tcp"));
        let of = |name: &str| mean(&found.iter().map(|run| goodput(run, name)).collect::<Vec<_>>());
        let rates: Vec<f64> = tcps.map(|tcp| of(&tcp.name)).collect();
        let parts: Vec<_> = rates.iter().map(|rate| format!("{:.2}", rate / rates[0])).collect();
        grid.row([label(&scenario), format!("{:.1}", rates[0]), parts.join(" : ")]);
    }
    Ok(grid)
}

/// The median over runs of a ratio, which all have.
fn middle(runs: &[Kept], ratio: impl Fn(&Kept) -> Option<f64>) -> f64 {
    median(&runs.iter().filter_map(ratio).collect::<Vec<_>>())
}

/// A law's medians by path, and of both.
pub(super) fn medians(runs: &[Kept]) -> (Vec<f64>, f64) {
    let paths = runs[0].connection("mptcp").paths.len();
    let of = |path: usize| middle(runs, |run| run.connection("mptcp").paths[path].ratio_to_tcp);
    ((0..paths).map(of).collect(), middle(runs, |run| run.test().ratio_to_tcp))
}

/// Figure 2: the laws, by path and in all; medians, as the paper has them.
pub fn coupled(runs: &Runs) -> Result<Grid, Error> {
    let heads = LAWS.map(str::to_owned).into_iter().chain(LAWS.map(|law| format!("{law}, 3.14")));
    let mut grid = Grid::new(["ratio".to_owned(), "paper".into()].into_iter().chain(heads));
    let all = scenarios(runs.form(), &FAMILIES, "");
    let shown = ["sbd/nsb-2", "sbd/nsb-5", "sbd/sb-2", "sbd/sb-5"];
    for scenario in
        shown.iter().flat_map(|kind| all.iter().filter(move |one| one.starts_with(kind)))
    {
        let paper = match scenario.trim_start_matches("sbd/") {
            one if one.starts_with("nsb-2") => "0.70 0.45, 0.6",
            one if one.starts_with("nsb-5") => "below 0.4 of reno",
            _ => "close to 1",
        };
        let mut row = vec![label(scenario), paper.to_owned()];
        for settings in [&[][..], &[ERA]] {
            let found = runs.get(&ask(runs, scenario, LAWS, settings))?;
            for law in LAWS {
                let (paths, both) = medians(&found[law]);
                let by_path = law != "reno" && scenario.contains("nsb-2");
                let paths: Vec<_> = paths.iter().map(|ratio| format!("{ratio:.2}")).collect();
                let both = format!("{both:.2}");
                row.push(if by_path { format!("{}, {both}", paths.join(" ")) } else { both });
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

fn mean_goodput(runs: &[Kept]) -> f64 {
    mean(&runs.iter().map(under_test).collect::<Vec<_>>())
}

/// How much more goodput some runs have than others, by pairs of seeds.
pub(super) fn gain_over(these: &[Kept], those: &[Kept]) -> Option<Interval> {
    let goodputs = |runs: &[Kept]| runs.iter().map(|run| Some(under_test(run))).collect::<Vec<_>>();
    let found = quotient(&goodputs(these), &goodputs(those));
    found.map(|found| Interval { mean: found.mean - 1.0, ..found })
}

/// How much more the system has than OLIA.
pub(super) fn gain(runs: &Runs, scenario: &str, era: bool) -> Result<Option<Interval>, Error> {
    let olia = law(runs, scenario, "olia", era)?;
    Ok(gain_over(&system(runs, scenario, era)?, &olia))
}

/// Figure 5: what is taken from TCP, and what that gains over OLIA.
pub fn gains(runs: &Runs) -> Result<Grid, Error> {
    let ours = format!("{SBD} (gain)");
    let names = ["reno", "olia", &ours];
    let old = names.map(|name| format!("{name}, 3.14"));
    let mut grid =
        Grid::new(["ratio", "paper"].into_iter().chain(names).map(String::from).chain(old));
    for scenario in scenarios(runs.form(), &FAMILIES, "") {
        // Its coupled laws near 0.6 and below 0.4 of Reno's, and its gains; from two bounds follows no level.
        let paper = match label(&scenario) {
            one if one.starts_with("NSB-2") => "0.6, up to +40 %",
            one if one.starts_with("NSB-5") => "< 0.4 of reno, > +100 %",
            one if one.starts_with("SB") => "1, a little more",
            _ => "",
        };
        let mut row = vec![label(&scenario), paper.to_owned()];
        for era in [false, true] {
            row.push(ratio_of(&law(runs, &scenario, "reno", era)?));
            row.push(ratio_of(&law(runs, &scenario, "olia", era)?));
            let ratio = spread(&system(runs, &scenario, era)?, |run| run.test().ratio_to_tcp);
            let gain = gain(runs, &scenario, era)?.map_or(f64::NAN, |gain| gain.mean);
            row.push(format!("{} ({:+.0} %)", plus_minus(ratio), 100.0 * gain));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// LIA with each detector: what it gets, and how right that is.
pub fn lia(runs: &Runs) -> Result<Grid, Error> {
    let heads =
        ["ratio (accuracy, %)", "lia", "lia+ssc (receiver-us)", "ssc-lia (srtt)", "tr-lia (rtt)"];
    let mut grid = Grid::new(heads);
    for scenario in scenarios(runs.form(), &FAMILIES[..2], "") {
        let alone = runs.get(&ask(runs, &scenario, LAWS, &[]))?;
        let mut row = vec![label(&scenario), ratio_of(&alone["lia"])];
        let systems: [(&str, &[&str]); 3] =
            [("lia+ssc", &[TABLE_1]), ("ssc-lia", &[]), ("tr-lia", &[])];
        for (control, settings) in systems {
            let found = runs_of(runs, &scenario, control, None, settings)?;
            row.push(format!("{} ({})", ratio_of(&found), spread_percent(accuracy_of(&found))));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// The throttled links of the real network with short queues.
pub(super) const REAL_NSB_SHORT: [&str; 2] =
    ["links.isp1.queue=100 packets", "links.isp2.queue=100 packets"];
const SHORT_CLEAR_ALONE: [&str; 3] = [REAL_NSB_SHORT[0], REAL_NSB_SHORT[1], "decision.clear=none"];

/// A row of the real network: scenario, how it differs, settings, those of the laws beside it, accuracy and gain.
type Real = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static str,
);

const REAL: [Real; 7] = [
    (
        "sbd/realnet-nsb",
        ", 100 packets",
        &REAL_NSB_SHORT,
        &REAL_NSB_SHORT,
        "70",
        "+20 %, reno +25 %",
    ),
    (
        "sbd/realnet-nsb",
        ", 100 packets, uncongested alone",
        &SHORT_CLEAR_ALONE,
        &REAL_NSB_SHORT,
        "70",
        "+20 %, reno +25 %",
    ),
    ("sbd/realnet-nsb", ", 1000 packets", &[], &[], "70", "+20 %, reno +25 %"),
    ("sbd/realnet-sb-2", "", &[], &[], "91", "about 0"),
    ("sbd/realnet-sb-3", "", &[], &[], "", "a little"),
    ("sbd/realnet-sb-4", "", &[], &[], "", "a little"),
    ("sbd/realnet-sb-5", "", &[], &[], "about 85", "a little"),
];

/// Sections V-A and V-B, Figure 10.
pub fn real(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "scenario",
        "accuracy, paper",
        "ours, %",
        "not congested, %",
        "gain over OLIA, paper",
        "olia, Mbit/s",
        "gain, mptcp-sbd",
        "gain, reno",
    ]);
    let shown = if runs.form() == Form::Least { &REAL[3..4] } else { &REAL[..] };
    for (scenario, queue, settings, beside, accuracy, gain) in shown {
        let sbd = runs_of(runs, scenario, SBD, None, settings)?;
        let laws = runs.get(&ask(runs, scenario, ["reno", "olia"], beside))?;
        let olia = mean_goodput(&laws["olia"]);
        let over = |of: &[Kept]| format!("{:+.0} %", 100.0 * (mean_goodput(of) / olia - 1.0));
        grid.row([
            format!("{scenario}{queue}"),
            accuracy.to_string(),
            spread_percent(accuracy_of(&sbd)),
            percent(share(&sbd, |phase| phase.uncongested_share)),
            gain.to_string(),
            format!("{olia:.1}"),
            over(&sbd),
            over(&laws["reno"]),
        ]);
    }
    Ok(grid)
}

/// Remark 1: the least ssthresh of OLIA, 2 packets in the authors' code.
pub fn floor(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new(["ratio", "1 packet", "2 packets", "1, Linux 3.14", "2, Linux 3.14"]);
    const TWO: &str = "olia.floor=2";
    let ratio = |runs: &[Kept]| {
        let of: fn(&TestSummary) -> Option<f64> = |test| test.ratio_to_tcp;
        plus_minus(spread(runs, |run| of(run.test())))
    };
    for scenario in shared(runs.form()) {
        let mut row = vec![label(&scenario)];
        for settings in [&[][..], &[TWO], &[ERA], &[ERA, TWO]] {
            let controls: &[&str] = if settings.contains(&TWO) { &["olia"] } else { &LAWS };
            let found = runs.get(&ask(runs, &scenario, controls.iter().copied(), settings))?;
            row.push(ratio(&found["olia"]));
        }
        grid.row(row);
    }
    Ok(grid)
}
