//! The trend-line paper (Zhang, arXiv:1812.05816) on multipath QUIC, in the place of its Mininet.

mod apart;
mod bbr;
mod headline;
mod networks;
mod shared;
mod slopes;

use std::sync::Arc;

use narrows_lab::Error;
use narrows_stats::mean;

use crate::figures::Interval;
use crate::goodput::mptcp;
use crate::{Ask, Kept, Paper, Runs, Table};
use networks::{Experiment, Network};

/// The tables of docs/results/tr.md.
pub const PAPER: Paper = Paper {
    name: "tr",
    title: "delay trend lines on multipath QUIC (builds with QUIC)",
    document: "results/tr.md",
    tables: &[
        Table {
            name: "headline",
            about: "what the paper's abstract and conclusion rest on",
            make: headline::headline,
        },
        Table {
            name: "verdicts",
            about: "Tables 3 and 4, each against ours",
            make: shared::verdicts,
        },
        Table {
            name: "shared",
            about: "Tables 3 and 4: Jain's index and the ratio",
            make: shared::shared,
        },
        Table {
            name: "causes",
            about: "what is worse there, where one thing differs",
            make: shared::causes,
        },
        Table {
            name: "first",
            about: "when the shared bottleneck is first found",
            make: shared::firsts,
        },
        Table {
            name: "gains",
            about: "separate bottlenecks: the mean gain over one path",
            make: apart::gains,
        },
        Table {
            name: "apart-equal",
            about: "separate bottlenecks of equal n/C: equation 20",
            make: |runs| apart::apart(runs, 1),
        },
        Table {
            name: "apart-factor-2",
            about: "the second of twice the rate",
            make: |runs| apart::apart(runs, 2),
        },
        Table {
            name: "apart-rtts",
            about: "the same by the ratio of the RTTs",
            make: apart::by_rtts,
        },
        Table {
            name: "program",
            about: "TR by the rule of the author's program",
            make: apart::by_program,
        },
        Table { name: "claims", about: "the text's other claims", make: headline::claims },
        Table {
            name: "figure-1",
            about: "Figure 1: the slope of one flow's RTT",
            make: slopes::figure_1,
        },
        Table { name: "table-1", about: "Table 1: slopes of one path", make: slopes::table_1 },
        Table {
            name: "table-5",
            about: "Table 5: pairs of slopes that match",
            make: slopes::table_5,
        },
        Table {
            name: "figures-8-9",
            about: "Figures 8 and 9: goodput over time",
            make: slopes::rates,
        },
        Table { name: "bbr", about: "beside one BBR flow", make: bbr::bbr },
        Table {
            name: "bbr-claims",
            about: "whether BBR starves the connection",
            make: bbr::claims,
        },
    ],
};

/// The published mean gain, and what is asked of ours.
const GAIN: f64 = 0.74;
const OURS: f64 = 0.85;

/// A row: the control, what its detector samples, and the law of the TCPs beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    control: &'static str,
    signal: Option<&'static str>,
    rival: &'static str,
}

const fn row(control: &'static str, signal: Option<&'static str>, rival: &'static str) -> Row {
    Row { control, signal, rival }
}

const ROWS: [Row; 11] = [
    row("reno", None, "reno"),
    row("lia", None, "reno"),
    row("ssc-lia", Some("rtt"), "reno"),
    row("ssc-lia", Some("srtt"), "reno"),
    row("tr-lia", Some("rtt"), "reno"),
    row("tr-lia", Some("srtt"), "reno"),
    row("greno+xcorr", Some("rtt"), "reno"),
    row("cubic", None, "cubic"),
    row("ssc-lia", Some("srtt"), "cubic"),
    row("tr-lia", Some("srtt"), "cubic"),
    row("gcubic+xcorr", Some("rtt"), "cubic"),
];

impl Row {
    fn name(self) -> String {
        let signal = self.signal.map_or(String::new(), |signal| format!(", {signal}"));
        let rival = if self.rival == "cubic" { "CUBIC" } else { "Reno" };
        format!("{}{signal}, {rival}", self.control)
    }

    /// Of the paper's systems, whose TCPs it does not name: `ssc` or `tr`.
    fn is(self, system: &str) -> bool {
        self.control.strip_suffix("-lia") == Some(system)
    }

    fn is_xcorr(self) -> bool {
        self.control.ends_with("xcorr")
    }

    /// Has it a detector?
    fn decides(self) -> bool {
        self.control.contains('+') || self.control.ends_with("-lia")
    }

    /// The controls of one comparison with this one: those with the same signal and TCPs.
    fn together(self) -> impl Iterator<Item = &'static str> {
        let same = move |other: &&Row| (other.signal, other.rival) == (self.signal, self.rival);
        ROWS.iter().filter(same).map(|other| other.control)
    }
}

/// The rows of a system beside any TCPs.
fn rows_of(system: &str) -> impl Iterator<Item = Row> {
    ROWS.into_iter().filter(move |row| row.is(system))
}

/// The rows of a system beside Reno.
fn beside_reno(system: &str) -> Vec<Row> {
    rows_of(system).filter(|row| row.rival == "reno").collect()
}

/// Seeds of shared bottlenecks; all else has one run, and the means of separate ones are over the networks.
fn seeds(runs: &Runs) -> u64 {
    runs.seeds(10, 1)
}

/// What runs in a network on QUIC.
fn ask(
    runs: &Runs,
    network: &Network,
    controls: impl IntoIterator<Item = &'static str>,
    signal: Option<&str>,
) -> Ask {
    let ask = Ask::made(network.text.clone(), controls).on("quic").brief(runs.form());
    if let Some(signal) = signal { ask.signal(signal) } else { ask }
}

/// A row's runs in a network.
fn runs_of(runs: &Runs, network: &Network, row: Row, seeds: u64) -> Result<Arc<Vec<Kept>>, Error> {
    Ok(runs.get(&ask(runs, network, row.together(), row.signal).seeds(seeds))?.of(row.control))
}

/// A figure of a network, a seed and its run.
type Figure = fn(&Network, u64, &Kept) -> f64;

/// A figure, by seed, on the shared bottleneck of an experiment.
fn shared_each(
    runs: &Runs,
    figure: Figure,
    row: Row,
    experiment: &Experiment,
) -> Result<Vec<f64>, Error> {
    let network = experiment.shared(row.rival, None);
    let found = runs_of(runs, &network, row, seeds(runs))?;
    Ok(found.iter().map(|run| figure(&network, run.summary.seed, run)).collect())
}

/// A figure on its separate ones.
fn apart_one<T>(
    runs: &Runs,
    figure: fn(&Network, u64, &Kept) -> T,
    row: Row,
    experiment: &Experiment,
    factor: u32,
) -> Result<T, Error> {
    let network = experiment.apart(row.rival, factor, None);
    Ok(figure(&network, 1, &runs_of(runs, &network, row, 1)?[0]))
}

/// A figure of all networks with separate bottlenecks.
fn apart_all(runs: &Runs, figure: Figure, row: Row, factor: u32) -> Result<Vec<f64>, Error> {
    networks::experiments(runs)
        .iter()
        .map(|one| apart_one(runs, figure, row, one, factor))
        .collect()
}

/// The mean gain over one path on all networks of equal n/C.
fn gain_of(runs: &Runs, row: Row) -> Result<Option<Interval>, Error> {
    let over: Vec<f64> = apart_all(runs, over_best, row, 1)?.iter().map(|one| one - 1.0).collect();
    Ok(Interval::of(&over))
}

/// Equation 19.
fn jain(single: f64, multi: f64) -> f64 {
    (single + multi).powi(2) / (2.0 * (single.powi(2) + multi.powi(2)))
}

/// The connection's goodput over the mean of ten TCPs of both ways.
fn ratio(network: &Network, seed: u64, run: &Kept) -> f64 {
    let both = (0..2).flat_map(|path| network.of_path(path, run)).collect();
    mptcp(run) / mean(&network.choose(both, seed))
}

/// The ratio of each run, and Jain's index of it.
fn ratios(network: &Network, runs: &[Kept]) -> [Vec<f64>; 2] {
    let ratios: Vec<f64> = runs.iter().map(|run| ratio(network, run.summary.seed, run)).collect();
    let indexes = ratios.iter().map(|one| jain(1.0, *one)).collect();
    [ratios, indexes]
}

/// Jain's index of it.
fn index(network: &Network, seed: u64, run: &Kept) -> f64 {
    jain(1.0, ratio(network, seed, run))
}

/// By path, the mean of ten TCPs.
fn on_paths(network: &Network, seed: u64, run: &Kept) -> [f64; 2] {
    [0, 1].map(|path| mean(&network.choose(network.of_path(path, run), seed)))
}

/// Equation 20.
fn over_best(network: &Network, seed: u64, run: &Kept) -> f64 {
    let [first, second] = on_paths(network, seed, run);
    mptcp(run) / first.max(second)
}

/// Equation 20 of a connection that has a TCP's share on both paths.
fn possible(network: &Network, seed: u64, run: &Kept) -> f64 {
    let [first, second] = on_paths(network, seed, run);
    (first + second) / first.max(second)
}

/// The share of decisions that group the two paths though each has its bottleneck; none without a detector.
fn wrong(_: &Network, _: u64, run: &Kept) -> Option<f64> {
    run.summary.detection.first().and_then(|phase| phase.false_merge_rate)
}

/// How right the detector was, mean over runs.
fn right(runs: &[Kept]) -> Option<f64> {
    let found: Vec<f64> = runs.iter().filter_map(|run| run.summary.detection[0].accuracy).collect();
    (!found.is_empty()).then(|| mean(&found))
}

/// A gain in percent: `+57 ±25 %`.
fn gain_text(found: Option<Interval>) -> String {
    found.map_or("-".into(), |Interval { mean, half }| {
        let half = half.map_or(String::new(), |half| format!(" ±{:.0}", 100.0 * half));
        format!("{:+.0}{half} %", 100.0 * mean)
    })
}

/// Jain's index over seeds: reproduced within 0.02, better above that.
fn fair(indexes: &[f64], published: f64) -> crate::Verdict {
    crate::verdict::about(Interval::of(indexes), published, 0.02, crate::verdict::Side::More)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict::{Better, CannotBeTold, Reproduced, Worse};

    #[test]
    fn jain_is_of_the_mean_and_the_connection() {
        assert_eq!(jain(2.0, 2.0), 1.0);
        assert!((jain(1.0, 3.0) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn an_index_is_reproduced_within_2_hundredths() {
        for (found, verdict) in
            [(0.98, Reproduced), (0.9605, Reproduced), (0.959, Worse), (1.001, Better)]
        {
            assert_eq!(fair(&[found, found], 0.98), verdict, "{found}");
        }
        assert_eq!(fair(&[0.98], 0.98), CannotBeTold, "one run");
        assert_eq!(fair(&[0.9, 1.0], 0.98), CannotBeTold, "runs that differ by more");
    }

    #[test]
    fn rows_run_with_those_of_the_same_signal_and_tcps() {
        assert_eq!(ROWS[4].name(), "tr-lia, rtt, Reno");
        assert_eq!(ROWS[4].together().collect::<Vec<_>>(), ["ssc-lia", "tr-lia", "greno+xcorr"]);
        assert_eq!(ROWS[7].together().collect::<Vec<_>>(), ["cubic"]);
        assert_eq!((rows_of("tr").count(), beside_reno("ssc").len()), (3, 2));
    }
}
