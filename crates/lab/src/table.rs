//! Tables for people, at most 100 columns wide.

use comfy_table::{CellAlignment, Table, presets};

use crate::compare::{Case, Row};
use crate::scenario::{Bound, Published};
use crate::stats::Spread;

/// What the columns mean, to stand below a table.
pub const LEGEND: &str = "\
ratio      goodput of the multipath connection / sum of the rival TCPs' at its bottlenecks:
           mean with 95 % interval, median with quartiles; paper: the published value
goodput    payload of the multipath connection, Mbit/s, mean with 95 % interval
Jain       fairness between the connection and the rival at each bottleneck, 1 is equal
queue, RTT queueing delay at the bottlenecks, smoothed RTT: median/95 % quantile, ms
retx       segments of the connection sent again";

/// The rows of each case as a table under its title.
pub fn table(cases: &[Case], rows: &[Row]) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|a, b| a.case == b.case) {
        let case = &cases[of_case[0].case];
        text.push_str(&case.scenario.name);
        if let Some(point) = &case.set {
            text.push_str(&format!(" with {} = {}", point.field, point.value));
        }
        let seeds = of_case[0].seeds;
        let times = if seeds == 1 { "1 run".into() } else { format!("{seeds} runs each") };
        text.push_str(&format!(": {}; {times}\n", case.scenario.title));
        text.push_str(&one(case, of_case));
        text.push('\n');
    }
    text
}

fn one(case: &Case, rows: &[Row]) -> String {
    const NAMES: [&str; 9] =
        ["cc", "ratio", "median", "paper", "goodput", "Jain", "queue", "RTT", "retx"];
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(NAMES);
    for row in rows {
        let detail = &row.detail;
        table.add_row([
            format!("  {}", row.cc),
            interval(row.ratio_to_tcp, 2),
            quartiles(row.ratio_to_tcp),
            case.scenario.published(row.control).map(paper).unwrap_or_else(|| "-".into()),
            interval(row.goodput_mbps, 1),
            row.jain.map_or_else(|| "-".into(), |jain| format!("{:.2}", jain.mean)),
            format!("{:.0}/{:.0}", detail.p50_queue_ms, detail.p95_queue_ms),
            format!("{:.0}/{:.0}", detail.p50_rtt_ms, detail.p95_rtt_ms),
            row.retransmits.map_or_else(|| "-".into(), |retx| format!("{:.0}", retx.mean)),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// `0.62 ±0.03`.
fn interval(spread: Option<Spread>, decimals: usize) -> String {
    match spread {
        Some(Spread { mean, ci95: Some(half), .. }) => {
            format!("{mean:.decimals$} ±{half:.decimals$}")
        }
        Some(Spread { mean, .. }) => format!("{mean:.decimals$}"),
        None => "-".into(),
    }
}

/// `0.61 [0.55 0.70]`.
fn quartiles(spread: Option<Spread>) -> String {
    match spread {
        Some(s) => format!("{:.2} [{:.2} {:.2}]", s.median, s.q1, s.q3),
        None => "-".into(),
    }
}

/// `~0.60`, `<0.40`.
fn paper(paper: &Published) -> String {
    let sign = match paper.bound {
        Bound::About => '~',
        Bound::Below => '<',
        Bound::Above => '>',
    };
    format!("{sign}{:.2}", paper.ratio_to_tcp)
}
