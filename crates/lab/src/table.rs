//! Tables for people, at most 100 columns wide, and what their columns mean.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};

use crate::compare::{ListenerRow, Row};
use crate::detection::PhaseDetection;
use crate::host_id::HostId;
use crate::metrics::{
    CONNECTION, Form, LINK, LISTENER, ListenerSummary, Metric, PATH, TEST, TestSummary,
};
use crate::plan::Case;
use crate::scenario::{Bound, Published, Scenario};
use crate::summary::{Fitness, Summary};
use narrows_stats::Spread;

/// Metrics that share a head.
type Shown<T> = (&'static str, Vec<&'static Metric<T>>);

/// The metric that papers publish; beside it stand its median and what they found.
const RATIO: &str = "ratio";
const AT_RATIO: &str = "           \
1: one fair share if the paths share a bottleneck, their sum if each has its own;
           ";
const AT_MEDIAN: &str = "median [quartiles]; ";
const AT_PAPER: &str = "paper: the published value\n";

/// What the columns of a table of `rows` mean, to stand below it.
pub fn legend(rows: &[Row]) -> String {
    let mut text = String::new();
    // The tables of the cases may differ in it.
    let median = rows.chunk_by(|a, b| a.case == b.case).any(|of_case| has_median(&shown(of_case)));
    for (head, metrics) in shown(rows) {
        text.push_str(&explained(head, &metrics));
        if head == RATIO {
            text = text + AT_RATIO + if median { AT_MEDIAN } else { "" } + AT_PAPER;
        }
    }
    for (head, metrics) in heard_columns(rows.iter().flat_map(|row| &row.listeners)) {
        text.push_str(&explained(head, &metrics));
    }
    text + "all are means over the seeds; \u{b1}: half the 95 % interval\n"
}

/// What a column means, a line.
fn explained<T>(head: &str, metrics: &[&Metric<T>]) -> String {
    let about: Vec<&str> = metrics.iter().map(|metric| metric.about).collect();
    let unit = Some(metrics[0].unit).filter(|&unit| !["1", "segments"].contains(&unit));
    let unit = unit.map_or(String::new(), |unit| format!(", {unit}"));
    format!("{head:10} {}{unit}\n", about.join(" / "))
}

/// The columns of a table of `rows`. A sparse metric that no row has is left out.
fn shown(rows: &[Row]) -> Vec<Shown<TestSummary>> {
    let any = |metric: &Metric<_>| rows.iter().any(|row| row.metrics[metric.name].is_some());
    columns(TEST, |metric| !metric.sparse || any(metric))
}

/// Metrics by the head of their column, in the order of places.
fn columns<T>(table: &'static [Metric<T>], shown: impl Fn(&Metric<T>) -> bool) -> Vec<Shown<T>> {
    let metrics = table.iter().filter(|metric| shown(metric));
    let mut metrics: Vec<_> = metrics.filter_map(|metric| Some((metric.column?, metric))).collect();
    metrics.sort_by_key(|(column, _)| column.place);
    let same = metrics.chunk_by(|(one, _), (other, _)| one.head == other.head);
    same.map(|of| (of[0].0.head, of.iter().map(|(_, metric)| *metric).collect())).collect()
}

/// The values under a head: `12/20`.
fn cell<T>(metrics: &[&Metric<T>], value: impl Fn(&Metric<T>) -> Option<Spread>) -> String {
    let text = |metric: &&Metric<T>| Some(show(metric.column?.form, value(metric)?));
    let texts: Option<Vec<String>> = metrics.iter().map(text).collect();
    texts.map_or_else(|| "-".into(), |texts| texts.join("/"))
}

/// The values of one run under a head.
fn single<T>(metrics: &[&Metric<T>], part: &T) -> String {
    cell(metrics, |metric| (metric.get)(part).and_then(|value| Spread::of(&[value])))
}

fn show(form: Form, Spread { mean, ci95, .. }: Spread) -> String {
    match (form, ci95) {
        (Form::Interval(decimals), Some(half)) => format!("{mean:.decimals$} ±{half:.decimals$}"),
        (Form::Number(decimals) | Form::Interval(decimals), _) => format!("{mean:.decimals$}"),
        (Form::Percent(decimals), _) => format!("{:.decimals$}%", 100.0 * mean),
    }
}

/// Lines and columns as text; after the first `left` columns numbers are aligned.
fn render(heads: &[&str], left: usize, lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(heads).add_rows(lines);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The rows of each case as a table under its title.
pub fn table(cases: &[Case], rows: &[Row]) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|a, b| a.case == b.case) {
        let case = &cases[of_case[0].case];
        text.push_str(&case.scenario.name);
        if let Some(point) = &case.set {
            let _ = write!(text, " with {} = {}", point.field, point.value);
        }
        let seeds = of_case[0].seeds;
        let times = if seeds == 1 { "1 run".into() } else { format!("{seeds} runs each") };
        let _ = writeln!(text, ": {}; {times}", case.scenario.title);
        text.push_str(&one(case, of_case));
        text.push_str(&heard(of_case));
        of_case.iter().filter_map(unfit).for_each(|line| text.push_str(&line));
        differences(of_case).for_each(|line| text.push_str(&line));
        text.push('\n');
    }
    text
}

fn one(case: &Case, rows: &[Row]) -> String {
    let columns = shown(rows);
    let hosts = rows.iter().any(|row| row.host != HostId::SIM);
    let median = has_median(&columns);
    let mut heads = vec!["cc"];
    heads.extend(hosts.then_some("on"));
    for (head, _) in &columns {
        heads.push(head);
        if *head == RATIO {
            heads.extend(median.then_some("median"));
            heads.push("paper");
        }
    }
    let line = |(index, row): (usize, &Row)| {
        let mut line = vec![format!("  {}", label(row))];
        let before = index.checked_sub(1).map(|before| &rows[before]);
        let mark = before.and_then(|other| difference(other, row)).map_or("", |_| "*");
        line.extend(hosts.then(|| format!("{}{mark}", row.host)));
        for (head, metrics) in &columns {
            line.push(cell(metrics, |metric| row.metrics[metric.name]));
            if *head == RATIO {
                line.extend(median.then(|| quartiles(row.metrics[metrics[0].name])));
                line.push(case.scenario.published(row.control).map_or("-".into(), paper));
            }
        }
        line
    };
    render(&heads, 1 + usize::from(hosts), rows.iter().enumerate().map(line))
}

/// The median beside all metrics would make lines too long.
fn has_median(columns: &[Shown<TestSummary>]) -> bool {
    columns.iter().all(|(_, metrics)| metrics.iter().all(|metric| !metric.sparse))
}

/// What detectors that listened found, if any did.
fn heard(rows: &[Row]) -> String {
    let rows = rows.iter().flat_map(|row| row.listeners.iter().map(move |of| (row, of)));
    let columns = heard_columns(rows.clone().map(|(_, listener)| listener));
    let lines = rows.map(|(row, listener)| {
        let mut line =
            vec![format!("  {}", label(row)), listened(&listener.detector, &listener.signal)];
        let value = |metric: &Metric<_>| listener.metrics[metric.name];
        line.extend(columns.iter().map(|(_, metrics)| cell(metrics, value)));
        line
    });
    let lines: Vec<Vec<String>> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut heads = vec!["cc", "listened"];
    heads.extend(columns.iter().map(|(head, _)| *head));
    render(&heads, 2, lines)
}

/// The columns of what listeners found: those that one has.
fn heard_columns<'a>(
    listeners: impl Iterator<Item = &'a ListenerRow> + Clone,
) -> Vec<Shown<ListenerSummary>> {
    columns(LISTENER, |metric| {
        listeners.clone().any(|listener| listener.metrics[metric.name].is_some())
    })
}

/// `xcorr (rtt)`.
fn listened(detector: &str, signal: &str) -> String {
    format!("{detector} ({signal})")
}

/// `olia`, `olia+ssc (rtt)`.
fn label(row: &Row) -> String {
    match row.signal {
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

/// The metric in which two hosts differ for the same control, as its 95 % intervals do not meet, and
/// its two spreads. It is the ratio, without rivals the goodput.
fn difference(one: &Row, other: &Row) -> Option<(&'static Metric<TestSummary>, [Spread; 2])> {
    if (one.control, one.signal) != (other.control, other.signal) {
        return None;
    }
    let both = |name: &str| Some([one.metrics[name]?, other.metrics[name]?]);
    let names = ["ratio_to_tcp", "goodput_mbps"].into_iter();
    let (name, spreads) = names.filter_map(|name| Some((name, both(name)?))).next()?;
    let [first, second] = spreads;
    let apart = (first.mean - second.mean).abs() > first.ci95? + second.ci95?;
    TEST.iter().find(|metric| apart && metric.name == name).map(|metric| (metric, spreads))
}

/// `* olia disagrees: ratio 0.52 ±0.03 on kernel, 0.37 ±0.02 on sim (+41 %)`.
fn differences(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.windows(2).filter_map(|pair| {
        let (metric, [one, other]) = difference(&pair[0], &pair[1])?;
        let percent = 100.0 * (other.mean / one.mean - 1.0);
        let column = metric.column?;
        let [one, other] = [one, other].map(|spread| show(column.form, spread));
        let (cc, first, second, metric) = (&pair[0].cc, pair[0].host, pair[1].host, column.head);
        Some(format!(
            "* {cc} disagrees: {metric} {other} on {second}, {one} on {first} ({percent:+.0} %)\n"
        ))
    })
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

/// One run: its listed connections with their paths, then the links.
pub fn summary_table(scenario: &Scenario, summary: &Summary) -> String {
    let on = match summary.host {
        HostId::SIM => String::new(),
        host => format!(" on {host}"),
    };
    let cc = summary.cc.as_deref().unwrap_or("-");
    let Summary { scenario: name, seed, duration_s, .. } = summary;
    let mut text = format!("{name} under {cc}{on}, seed {seed}, {duration_s} s analysed\n\n");
    let (of_connection, of_path) = (columns(CONNECTION, |_| true), columns(PATH, |_| true));
    // What connections have, paths have too, and first.
    let heads: Vec<&str> = of_path.iter().map(|(head, _)| *head).collect();
    let mut lines = Vec::new();
    let mut background = Vec::new();
    for (flow, connection) in scenario.flows.iter().zip(&summary.connections) {
        if flow.background {
            background.push(connection.goodput_mbps);
            continue;
        }
        let cc = connection.cc.as_deref().unwrap_or("-");
        let mut line = [&connection.name, connection.kind.name(), cc].map(String::from).to_vec();
        line.extend(of_connection.iter().map(|(_, metrics)| single(metrics, connection)));
        lines.push(line);
        for path in &connection.paths {
            let mut line = vec![format!("  {}", path.name), String::new(), String::new()];
            line.extend(of_path.iter().map(|(_, metrics)| single(metrics, path)));
            lines.push(line);
        }
    }
    text += &render(&[&["connection", "kind", "cc"], &heads[..]].concat(), 3, lines);
    if !background.is_empty() {
        let (flows, total) = (background.len(), background.iter().sum::<f64>());
        let _ = writeln!(text, "{flows} background flows: {total:.2} Mbit/s");
    }
    let of_link = columns(LINK, |_| true);
    let heads: Vec<&str> = of_link.iter().map(|(head, _)| *head).collect();
    let lines = summary.links.iter().map(|link| {
        let cells = of_link.iter().map(|(_, metrics)| single(metrics, link));
        [link.name.clone()].into_iter().chain(cells).collect()
    });
    text = text + "\n" + &render(&[&["link"], &heads[..]].concat(), 1, lines);
    if !summary.listeners.is_empty() {
        let has =
            |metric: &Metric<_>| summary.listeners.iter().any(|of| (metric.get)(of).is_some());
        let columns = columns(LISTENER, has);
        let lines = summary.listeners.iter().map(|listener| {
            let cells = columns.iter().map(|(_, metrics)| single(metrics, listener));
            let name = listened(&listener.detector, &listener.signal);
            [name].into_iter().chain(cells).collect()
        });
        let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        text = text + "\n" + &render(&[&["listened"], &heads[..]].concat(), 1, lines);
    }
    if !summary.detection.is_empty() {
        text = text + "\n" + &detected(&summary.detection);
    }
    let _ = writeln!(text, "\nJain's index {:.3}", summary.fairness.jain);
    if let Some(fitness) = &summary.fitness {
        let _ = writeln!(text, "{}", show_fitness(fitness));
    }
    text
}

/// How right the detector of the connection under test was, a line for each phase.
fn detected(phases: &[PhaseDetection]) -> String {
    let or_none = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
    };
    let lines = phases.iter().map(|phase| {
        vec![
            format!("from {} s", phase.start_s),
            phase.signal.clone(),
            phase.decisions.to_string(),
            or_none(phase.accuracy, 2),
            or_none(phase.first_correct_s, 1),
        ]
    });
    render(&["detector", "signal", "decisions", "accuracy", "first right s"], 2, lines)
}

/// `fit: packets 0.02 ms late in the median, 0.21 at 99 %, at most 1.30; worst second 0.4 % off`.
fn show_fitness(fitness: &Fitness) -> String {
    let Fitness { lateness_p50_ms, lateness_p99_ms, lateness_max_ms, worst_second, .. } = fitness;
    let verdict = match (fitness.fit, &fitness.why) {
        (true, _) => "fit".into(),
        (false, Some(why)) => format!("unfit ({why})"),
        (false, None) => "unfit".into(),
    };
    format!(
        "{verdict}: packets {lateness_p50_ms:.2} ms late in the median, {lateness_p99_ms:.2} at \
         99 %, at most {lateness_max_ms:.2}; worst second {:.1} % off",
        100.0 * worst_second
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows;
    use crate::compare::tests::{case, finished, plan, with};
    use crate::plan::Finished;

    /// What a table shows of runs with these goodputs, on which host, and why they missed real time.
    fn shown(runs: &[(&str, HostId, f64, Option<&str>)]) -> String {
        let run = |(seed, &(cc, host, goodput, why)): (u64, &(&str, HostId, f64, Option<&str>))| {
            finished(cc, host, seed, goodput, why)
        };
        let all: Vec<_> = (1..).zip(runs).map(run).collect();
        table(&[case()], &rows(&plan(&[case()]), &all))
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
    fn hosts_are_listed_together_and_disagreements_noted() {
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
        let message = "* lia disagrees: ratio 1.51 ±0.13 on kernel, 1.01 ±0.13 on sim (+50 %)";
        assert_eq!(lines[8..], [message, ""]);
    }

    #[test]
    fn accuracy_is_a_column_if_a_row_has_it_and_only_then_explained() {
        let runs = |cc: &str| [1, 2].map(|seed| finished(cc, HostId::SIM, seed, 10.0, None));
        let judged = |accuracy| move |run| with(run, |test| test.accuracy = Some(accuracy));
        let shown = |all: Vec<Finished>| {
            let rows = rows(&plan(&[case()]), &all);
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
        let all = [
            finished("lia", HostId::SIM, 1, 10.0, None),
            finished("lia", HostId::SIM, 2, 10.02, None),
            finished("lia", HostId::new("kernel"), 1, 8.0, None),
            finished("lia", HostId::new("kernel"), 2, 8.02, None),
        ];
        let all = all.map(|run| with(run, |test| test.ratio_to_tcp = None));
        let text = table(&[case()], &rows(&plan(&[case()]), &all));
        let message = "* lia disagrees: goodput 8.0 ±0.1 on kernel, 10.0 ±0.1 on sim (-20 %)\n";
        assert!(text.contains(message), "{text}");
    }

    #[test]
    fn unfit_runs_are_shown() {
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

    #[test]
    fn fitness_is_a_line() {
        let mut fitness = Fitness {
            lateness_p50_ms: 0.02,
            lateness_p99_ms: 0.214,
            lateness_max_ms: 1.3,
            worst_second: 0.004,
            fit: true,
            why: None,
        };
        let line = "packets 0.02 ms late in the median, 0.21 at 99 %, at most 1.30; worst second \
                    0.4 % off";
        assert_eq!(show_fitness(&fitness), format!("fit: {line}"));
        fitness = Fitness { fit: false, why: Some("late".into()), ..fitness };
        assert_eq!(show_fitness(&fitness), format!("unfit (late): {line}"));
    }
}
