//! What the abstract and the conclusion rest on, and the text's other claims.

use narrows_lab::Error;
use narrows_stats::mean;

use super::apart::{gain_of_program, gain_of_rtts};
use super::bbr::{as_many, most};
use super::networks::{Experiment, RATIOS, experiments};
use super::{
    GAIN, ROWS, Row, apart_all, apart_one, beside_reno, fair, gain_of, gain_text, index, over_best,
    rows_of, runs_of, seeds, shared_each, wrong,
};
use crate::figures::percent;
use crate::runs::first_right;
use crate::verdict::{near, ranked, weakest};
use crate::{Cell, Grid, Judged, Runs, Verdict};

/// In which networks TR is fairer than SSC, by pairs of seeds.
fn fairer(runs: &Runs, tr: Row, ssc: Row) -> Result<Vec<Verdict>, Error> {
    let of = |one: &Experiment| -> Result<Verdict, Error> {
        larger(shared_each(runs, index, tr, one)?, shared_each(runs, index, ssc, one)?)
    };
    experiments(runs).iter().map(of).collect()
}

/// Is a figure of the first larger, by pairs?
fn larger(one: Vec<f64>, other: Vec<f64>) -> Result<Verdict, Error> {
    let [one, other] = [one, other].map(|values| values.into_iter().map(Some).collect::<Vec<_>>());
    Ok(ranked([(&one[..], &other[..])])[0])
}

/// Of all networks with separate bottlenecks, the share of the decisions that group the two paths.
fn wrong_each(runs: &Runs, row: Row) -> Result<Vec<f64>, Error> {
    let of = |one: &Experiment| Ok(apart_one(runs, wrong, row, one, 1)?.unwrap_or(0.0));
    experiments(runs).iter().map(of).collect()
}

fn is(so: bool) -> Verdict {
    if so { Verdict::Reproduced } else { Verdict::Worse }
}

/// The system's row with the signal and the TCPs of another's.
fn like(system: &str, other: Row) -> Row {
    let same = |row: &Row| (row.signal, row.rival) == (other.signal, other.rival);
    rows_of(system).find(same).expect("a row of each system")
}

/// The signal of a row, as rows name it.
fn signal(row: Row) -> &'static str {
    row.signal.unwrap_or_default()
}

/// Rows of the table: claim, published, ours, verdict, what decides it.
struct Headline<'a> {
    runs: &'a Runs<'a>,
    grid: Grid,
}

impl Headline<'_> {
    fn add(
        &mut self,
        claim: impl Into<String>,
        published: &str,
        ours: String,
        judged: impl Into<Judged>,
        why: impl Into<String>,
    ) {
        let cells = [
            Cell::from(claim.into()),
            published.into(),
            ours.into(),
            Cell::Verdict(judged.into()),
            why.into().into(),
        ];
        self.grid.row(cells);
    }

    /// Two subflows over one path.
    fn gains(&mut self) -> Result<(), Error> {
        let runs = self.runs;
        let tr = beside_reno("tr");
        let [reno, cubic] = ["reno", "cubic"]
            .map(|law| ROWS.into_iter().find(|row| row.control == law).expect("a row"));
        let alone = [gain_text(gain_of(runs, reno)?), gain_text(gain_of(runs, cubic)?)];
        let mut ours = Vec::new();
        let mut verdicts = Vec::new();
        for row in tr {
            let gain = gain_of(runs, row)?;
            ours.push(format!("{} {}", signal(row), gain_text(gain)));
            verdicts.push(near(gain, GAIN));
        }
        let why = format!(
            "like slopes n/(C r) couple; no coupling has {} beside Reno, {} beside CUBIC",
            alone[0], alone[1]
        );
        self.add(
            "two subflows over one path, separate bottlenecks",
            "+74 %",
            ours.join("; "),
            weakest(&verdicts),
            why,
        );
        for signal in ["rtt", "srtt"] {
            for ratio in RATIOS {
                let gain = gain_of_rtts(runs, ("tr-lia", Some(signal)), ratio)?;
                let claim = format!("the same, RTTs as 1 : {ratio}, {signal}");
                self.add(
                    claim,
                    "+74 %",
                    gain_text(gain),
                    near(gain, GAIN),
                    "how unlike the slopes are",
                );
            }
        }
        let gain = gain_of_program(runs)?;
        let why = "matches of 100 ms in all of three periods, not one of 5 s";
        self.add(
            "the same, by the rule of the author's program, rtt",
            "+74 %",
            gain_text(gain),
            near(gain, GAIN),
            why,
        );
        Ok(())
    }

    /// Its trace experiments, which run on TCP.
    fn traces(&mut self) -> Result<(), Error> {
        let found = crate::sbd::firsts(self.runs, self.runs.seeds(20, 1))?;
        let earlier: Vec<Verdict> =
            found.iter().map(|one| is(one.times[0] < one.times[1])).collect();
        let judged = as_many(&earlier, [13, 16]);
        let (ours, judged) = (judged.because, judged.verdict);
        let why = "SSC as published waits for 60 intervals, 21 s";
        self.add("TR finds a shared bottleneck before SSC, traces", "13 of 16", ours, judged, why);
        let failed =
            found.iter().find(|one| (one.experiment, one.queue, one.law) == ("e3", "", "reno"));
        if let Some(one) = failed {
            let ours = if one.times[1].is_finite() {
                let right = percent(one.right[1]);
                format!("finds it after {:.1} s, right in {right} %", one.times[1])
            } else {
                "finds it in less than half of the runs".into()
            };
            let verdict =
                if one.times[1].is_finite() { Verdict::Worse } else { Verdict::Reproduced };
            let why = "not known; the author's program has another SSC: variabilities may differ by \
                       0.1 ms, not by a tenth, and no path is asked whether it is congested";
            self.add("SSC fails, traces, E3, droptail, Reno", "yes", ours, verdict, why);
        }
        Ok(())
    }

    /// Tables 3 and 4, and TR against SSC.
    fn systems(&mut self) -> Result<(), Error> {
        let runs = self.runs;
        for row in rows_of("tr") {
            let mut verdicts = Vec::new();
            for one in experiments(runs) {
                verdicts.push(fair(&shared_each(runs, index, row, &one)?, one.jain[1]));
            }
            let why = if row.rival == "cubic" { "the law of the TCPs beside it" } else { "" };
            self.add(
                format!("TR-LIA's J, Tables 3 and 4: {}", row.name()),
                "0.81 to 1.00",
                String::new(),
                weakest(&verdicts),
                why,
            );
        }
        for row in beside_reno("tr") {
            let judged = as_many(&fairer(runs, row, like("ssc", row))?, [7, 9]);
            let claim = format!("TR is fairer than SSC, {}, beside Reno", signal(row));
            self.add(
                claim,
                "in 7 of 9",
                judged.because,
                judged.verdict,
                "whether and when SSC finds it",
            );
        }
        let (mut ours, mut verdicts) = (Vec::new(), Vec::new());
        for row in beside_reno("tr") {
            let ssc = like("ssc", row);
            let [one, other] = [gain_of(runs, row)?, gain_of(runs, ssc)?].map(gain_text);
            ours.push(format!("{}: {one} and {other}", signal(row)));
            let all = |row| apart_all(runs, over_best, row, 1);
            verdicts.push(larger(all(row)?, all(ssc)?)?);
        }
        let why = "where SSC couples nothing it has what no coupling has";
        self.add(
            "TR has more than SSC, separate bottlenecks, beside Reno",
            "yes",
            ours.join("; "),
            weakest(&verdicts),
            why,
        );
        let (mut ours, mut verdicts) = (Vec::new(), Vec::new());
        for row in beside_reno("tr") {
            let [tr, ssc] = [wrong_each(runs, row)?, wrong_each(runs, like("ssc", row))?];
            let [of_tr, of_ssc] = [&tr, &ssc].map(|each| percent(Some(mean(each))));
            ours.push(format!("{}: {of_tr} and {of_ssc} %", signal(row)));
            verdicts.push(larger(ssc, tr)?);
        }
        self.add(
            "TR groups separate bottlenecks less often than SSC, beside Reno",
            "yes",
            ours.join("; "),
            weakest(&verdicts),
            "like slopes n/(C r) match, and one match couples for 100 s",
        );
        Ok(())
    }
}

/// What the paper's abstract and conclusion rest on.
pub fn headline(runs: &Runs) -> Result<Grid, Error> {
    let mut headline = Headline {
        runs,
        grid: Grid::new(["claim", "published", "ours", "verdict", "what decides it"]),
    };
    headline.gains()?;
    headline.traces()?;
    headline.systems()?;
    Ok(headline.grid)
}

/// The text's other claims, for each signal and each law of the TCPs.
pub fn claims(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new(["claim", "paper", "ours"]);
    let all = experiments(runs);
    for tr in rows_of("tr") {
        let ssc = like("ssc", tr);
        let mut earlier = 0;
        for one in &all {
            let network = one.shared(tr.rival, None);
            let time = |row| -> Result<f64, Error> {
                Ok(first_right(&runs_of(runs, &network, row, seeds(runs))?))
            };
            earlier += usize::from(time(tr)? < time(ssc)?);
        }
        let (mut more, mut r) = (Vec::new(), Vec::new());
        for factor in [1, 2] {
            let all = |row| apart_all(runs, over_best, row, factor);
            let [own, others] = [all(tr)?, all(ssc)?];
            r.push(format!("{:.2} and {:.2}", mean(&own), mean(&others)));
            more.push(larger(own, others)?);
        }
        let place = format!(
            "{}, beside {}",
            signal(tr),
            if tr.rival == "cubic" { "CUBIC" } else { "Reno" }
        );
        let mut add = |claim: String, paper: &str, judged: Judged| {
            grid.row([Cell::from(claim), paper.into(), judged.into()]);
        };
        let fairer = as_many(&fairer(runs, tr, ssc)?, [7, 9]);
        add(format!("TR is fairer than SSC, {place}"), "in 7 of 9", fairer);
        let earlier = most(earlier, all.len(), Verdict::Worse);
        add(format!("TR finds it earlier, {place}"), "yes", earlier);
        let claim =
            format!("separate, equal; factor 2: TR has more than SSC, {place}: R {}", r.join("; "));
        add(claim, "yes", weakest(&more));
    }
    Ok(grid)
}
