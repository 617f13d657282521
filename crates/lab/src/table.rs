//! Tables for people, at most 100 columns wide.

use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};

use crate::compare::{Case, Row};
use crate::host_id::HostId;
use crate::scenario::{Bound, Published};
use narrows_stats::Spread;

/// What the columns of a table of `rows` mean, to stand below it.
pub fn legend(rows: &[Row]) -> String {
    let accuracy = if has_accuracy(rows) { ACCURACY } else { "" };
    format!("{RATIO}{accuracy}{OTHERS}")
}

const RATIO: &str = "\
ratio      goodput of the multipath connection / sum of the rival TCPs' at its bottlenecks:
           mean with 95 % interval, median with quartiles; paper: the published value;
           1: one fair share where the paths share a bottleneck, all of them where each has its own
";
const ACCURACY: &str = "\
accuracy   share of the detector's decisions that found the right groups, mean with 95 % interval
";
const OTHERS: &str = "\
goodput    payload of the multipath connection, Mbit/s, mean with 95 % interval
Jain       fairness between the connection and the rival at each bottleneck, 1 is equal
queue, RTT queueing delay at the bottlenecks, smoothed RTT: median/95 % quantile, ms
retx       segments of the connection sent again
";

/// Has a detector been judged in any of them?
fn has_accuracy(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.accuracy.is_some())
}

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
        of_case.iter().filter_map(unfit).for_each(|line| text.push_str(&line));
        differences(of_case).for_each(|line| text.push_str(&line));
        text.push('\n');
    }
    text
}

fn one(case: &Case, rows: &[Row]) -> String {
    const NAMES: [&str; 11] = [
        "cc", "on", "ratio", "median", "paper", "accuracy", "goodput", "Jain", "queue", "RTT",
        "retx",
    ];
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(NAMES);
    let mut before = None;
    for row in rows {
        let detail = &row.detail;
        let measured = |text: String| if row.unfit < row.seeds { text } else { "-".into() };
        let mark = before.replace(row).and_then(|other| difference(other, row)).map_or("", |_| "*");
        table.add_row([
            format!("  {}", label(row)),
            format!("{}{mark}", row.host),
            interval(row.ratio_to_tcp, 2),
            quartiles(row.ratio_to_tcp),
            case.scenario.published(row.control).map(paper).unwrap_or_else(|| "-".into()),
            interval(row.accuracy, 2),
            interval(row.goodput_mbps, 1),
            row.jain.map_or_else(|| "-".into(), |jain| format!("{:.2}", jain.mean)),
            measured(format!("{:.0}/{:.0}", detail.p50_queue_ms, detail.p95_queue_ms)),
            measured(format!("{:.0}/{:.0}", detail.p50_rtt_ms, detail.p95_rtt_ms)),
            row.retransmits.map_or_else(|| "-".into(), |retx| format!("{:.0}", retx.mean)),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Both would make lines too long.
    let (median, accuracy) = (3, 5);
    let unused = if has_accuracy(rows) { median } else { accuracy };
    let on = rows.iter().all(|row| row.host == HostId::SIM).then_some(1);
    for hidden in on.into_iter().chain([unused]) {
        if let Some(column) = table.column_mut(hidden) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// `olia`, `olia+ssc (rtt)`.
fn label(row: &Row) -> String {
    match &row.signal {
        Some(signal) => format!("{} ({signal})", row.cc),
        None => row.cc.clone(),
    }
}

/// `  olia on kernel: 9 of 10 runs (1 unfit: late)`, if any is.
fn unfit(row: &Row) -> Option<String> {
    let Row { host, seeds, unfit, why, .. } = row;
    let cc = label(row);
    let first = if *unfit == 1 { "" } else { ", the first" };
    let why = why.as_ref().map_or(String::new(), |why| format!("{first}: {why}"));
    let fit = seeds - unfit;
    (*unfit > 0).then(|| format!("  {cc} on {host}: {fit} of {seeds} runs ({unfit} unfit{why})\n"))
}

/// What two hosts say of the same control, if their 95 % intervals do not meet: the metric, its
/// decimals, and its two means with half the intervals' widths. It is the ratio, without rivals the
/// goodput.
fn difference(one: &Row, other: &Row) -> Option<(&'static str, usize, [Spread; 2])> {
    if (one.control, &one.signal) != (other.control, &other.signal) {
        return None;
    }
    let (metric, decimals, one, other) = match (one.ratio_to_tcp, other.ratio_to_tcp) {
        (Some(one), Some(other)) => ("ratio", 2, one, other),
        _ => ("goodput", 1, one.goodput_mbps?, other.goodput_mbps?),
    };
    let apart = (one.mean - other.mean).abs() > one.ci95? + other.ci95?;
    apart.then_some((metric, decimals, [one, other]))
}

/// `* olia disagrees: ratio 0.52 ±0.03 on kernel, 0.37 ±0.02 on sim (+41 %)`.
fn differences(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.windows(2).filter_map(|pair| {
        let (metric, decimals, [one, other]) = difference(&pair[0], &pair[1])?;
        let percent = 100.0 * (other.mean / one.mean - 1.0);
        let [one, other] = [one, other].map(|spread| interval(Some(spread), decimals));
        let (cc, first, second) = (&pair[0].cc, pair[0].host, pair[1].host);
        Some(format!(
            "* {cc} disagrees: {metric} {other} on {second}, {one} on {first} ({percent:+.0} %)\n"
        ))
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Finished;
    use crate::compare::rows;
    use crate::compare::tests::{case, detected, finished};

    /// What a table shows of runs with these goodputs, on which host, and why they are not fit.
    fn shown(runs: &[(&str, HostId, f64, Option<&str>)]) -> String {
        let run = |(seed, &(cc, host, goodput, why)): (u64, &(&str, HostId, f64, Option<&str>))| {
            finished(cc, host, seed, goodput, why)
        };
        let all: Vec<_> = (1..).zip(runs).map(run).collect();
        table(&[case()], &rows(&[case()], &all))
    }

    #[test]
    fn of_the_simulator_alone_the_table_says_nothing_of_hosts() {
        let text = shown(&[("lia", HostId::SIM, 10.0, None), ("lia", HostId::SIM, 12.0, None)]);
        assert_eq!(
            text,
            "sbd/nsb-2: Two paths, each with a bottleneck of its own; 2 runs each\n\
             cc          ratio            median  paper     goodput  Jain  queue  RTT  retx\n  \
             lia  1.10 ±1.27  1.10 [1.05 1.15]  ~0.60  11.0 ±12.7  0.90  12/20  0/0     7\n\n"
        );
    }

    #[test]
    fn hosts_stand_below_each_other_and_where_they_disagree_it_is_said() {
        let (sim, kernel) = (HostId::SIM, HostId::new("kernel"));
        let text = shown(&[
            ("lia", sim, 10.0, None),
            ("lia", sim, 10.2, None),
            ("lia", kernel, 15.0, None),
            ("lia", kernel, 15.2, None),
            // Their intervals meet.
            ("olia", sim, 10.0, None),
            ("olia", sim, 10.2, None),
            ("olia", kernel, 12.0, None),
            ("olia", kernel, 12.2, None),
            // One run has no interval.
            ("balia", sim, 10.0, None),
            ("balia", kernel, 90.0, None),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("cc       on "), "{text}");
        assert!(lines[2].starts_with("  lia    sim "), "{text}");
        assert!(lines[3].starts_with("  lia    kernel* "), "{text}");
        assert!(lines[5].starts_with("  olia   kernel "), "{text}");
        assert!(lines[7].starts_with("  balia  kernel "), "{text}");
        let told = "* lia disagrees: ratio 1.51 ±0.13 on kernel, 1.01 ±0.13 on sim (+50 %)";
        assert_eq!(lines[8..], [told, ""]);
    }

    #[test]
    fn accuracy_is_a_column_if_a_row_has_it_and_only_then_explained() {
        let runs = |cc: &str| [1, 2].map(|seed| finished(cc, HostId::SIM, seed, 10.0, None));
        let judged = |accuracy| move |run| detected(run, Some(accuracy), 10);
        let shown = |all: Vec<Finished>| {
            let rows = rows(&[case()], &all);
            let text = table(&[case()], &rows);
            let lines = text
                .lines()
                .skip(1)
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            (lines.collect::<Vec<_>>(), legend(&rows).contains("\naccuracy   share of"))
        };
        let (lines, explained) = shown(runs("olia").into());
        assert_eq!(lines[0], "cc ratio median paper goodput Jain queue RTT retx");
        assert!(!explained);
        let with = runs("olia").into_iter().chain(runs("olia+ssc").map(judged(0.5)));
        let (lines, explained) = shown(with.collect());
        assert_eq!(lines[0], "cc ratio paper accuracy goodput Jain queue RTT retx");
        assert_eq!(lines[1], "olia 1.00 ±0.00 ~0.60 - 10.0 ±0.0 0.90 12/20 0/0 7");
        assert_eq!(lines[2], "olia+ssc 1.00 ±0.00 - 0.50 ±0.00 10.0 ±0.0 0.90 12/20 0/0 7");
        assert!(explained);
    }

    #[test]
    fn without_rivals_hosts_are_compared_by_goodput() {
        let mut all = vec![
            finished("lia", HostId::SIM, 1, 10.0, None),
            finished("lia", HostId::SIM, 2, 10.02, None),
            finished("lia", HostId::new("kernel"), 1, 8.0, None),
            finished("lia", HostId::new("kernel"), 2, 8.02, None),
        ];
        all.iter_mut().for_each(|run| run.summary.connections[0].ratio_to_tcp = None);
        let text = table(&[case()], &rows(&[case()], &all));
        let told = "* lia disagrees: goodput 8.0 ±0.1 on kernel, 10.0 ±0.1 on sim (-20 %)\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn runs_that_are_not_fit_are_told() {
        let kernel = HostId::new("kernel");
        let text = shown(&[
            ("lia", kernel, 10.0, None),
            ("lia", kernel, 90.0, Some("late")),
            ("olia", kernel, 90.0, Some("late")),
            ("olia", kernel, 90.0, Some("rate")),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  lia   kernel   1.00 "), "{text}");
        let values: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(values, ["olia", "kernel", "-", "-", "~0.60", "-", "-", "-", "-", "-"]);
        assert_eq!(lines[4], "  lia on kernel: 1 of 2 runs (1 unfit: late)");
        assert_eq!(lines[5], "  olia on kernel: 0 of 2 runs (2 unfit, the first: late)");
    }
}
