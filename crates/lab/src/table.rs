//! Tables for people, at most 80 columns wide, and what their columns mean.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use narrows_foreign::Foreign;

use crate::compare::{PassiveRow, Row};
use crate::detection::PhaseDetection;
use crate::host_id::HostId;
use crate::metrics::{
    CONNECTION, ConnectionSummary, Form, LINK, LinkSummary, Metric, PASSIVE, PATH, PassiveSummary,
    TEST, TestSummary,
};
use crate::plan::{Case, Point};
use crate::scenario::{Bound, Published, Scenario};
use crate::summary::{Fitness, Summary};
use narrows_stats::Spread;
use narrows_traffic::Source;

/// Columns of a table at most, so that it fits a terminal.
const WIDTH: usize = 80;

/// Metrics that share a head.
type Shown<T> = (&'static str, Vec<&'static Metric<T>>);

/// The metrics that papers publish.
pub const RATIO: &str = "ratio";
/// See [`RATIO`].
pub const ACCURACY: &str = "accuracy";
const AT_RATIO: &str =
    "1: one fair share if the paths share a bottleneck, their sum if each has its own";

const MEDIAN: &str = "median";
const PAPER: &str = "paper";

/// What a comparison leaves out of lines that are too long, the first first. All is in JSON.
const LESS: [&str; 8] = [MEDIAN, "Jain", "retx", "loss", "queue", "RTT", "slow start", "goodput"];
/// The same of passive detectors.
const LESS_PASSIVE: [&str; 3] = ["unsure", "switch", "first"];
/// The same of a run.
const LESS_OF_RUN: [&str; 3] = ["p95 ms", "cwnd", "retx"];

/// What a comparison prints: the rows of each scenario, or of all points of a sweep, as a table under
/// its title, and what the columns mean.
pub fn report(cases: &[Case], rows: &[Row]) -> String {
    let tables = tables(rows);
    let columns = shown(cases, rows);
    let one = |without: &[&str]| -> Vec<String> {
        tables.iter().map(|rows| one(cases, rows, &columns, without)).collect()
    };
    let of_passive = passive_columns(rows.iter().flat_map(|row| &row.passive));
    let passive = |without: &[&str]| -> Vec<String> {
        tables.iter().map(|rows| passive(rows, &of_passive, without)).collect()
    };
    let (mut left_out, ones) = fitting(&LESS, one);
    let (more, passives) = fitting(&LESS_PASSIVE, passive);
    left_out.extend(more);
    let mut text = String::new();
    for (rows, (one, passive)) in tables.iter().zip(ones.into_iter().zip(passives)) {
        text = text + &title(cases, rows) + &one + &passive;
        rows.iter().filter_map(unfit).for_each(|line| text.push_str(&line));
        differences(rows).for_each(|line| text.push_str(&line));
        text.push('\n');
    }
    let points = rows.first().map_or(&[][..], |row| &row.set);
    for (head, point) in swept(points).into_iter().zip(points) {
        if head != point.field {
            text.push_str(&fold(&format!("{head:10} {}", point.field), 11));
        }
    }
    let remain = |column: &&Column| !left_out.contains(&column.head());
    text.extend(columns.iter().filter(remain).map(Column::explained));
    for (head, metrics) in &of_passive {
        if !left_out.contains(head) {
            text.push_str(&explained(head, metrics));
        }
    }
    text.push_str("all are means over the seeds; \u{b1}: half the 95 % interval\n");
    text + &said_left_out(&left_out)
}

/// The rows that make a table: those of a scenario, or of all points of a sweep.
pub fn tables(rows: &[Row]) -> Vec<&[Row]> {
    let same = |a: &Row, b: &Row| {
        a.case == b.case || a.scenario == b.scenario && !a.set.is_empty() && !b.set.is_empty()
    };
    rows.chunk_by(same).collect()
}

/// `left out, as lines end at 80 columns: Jain, retx (in --json)`, if any is.
fn said_left_out(heads: &[&str]) -> String {
    match heads.join(", ").as_str() {
        "" => String::new(),
        heads => {
            fold(&format!("left out, as lines end at {WIDTH} columns: {heads} (in --json)"), 2)
        }
    }
}

/// Tables without as many of these heads, the first first, as it takes for their lines to fit, and the
/// heads that this left out.
fn fitting(
    less: &'static [&'static str],
    tables: impl Fn(&[&str]) -> Vec<String>,
) -> (Vec<&'static str>, Vec<String>) {
    let mut left_out = Vec::new();
    let mut made = tables(&[]);
    for head in less {
        let too_wide = |line: &str| line.chars().count() > WIDTH;
        if !made.iter().flat_map(|table| table.lines()).any(too_wide) {
            break;
        }
        left_out.push(*head);
        let narrower = tables(&left_out);
        if narrower == made {
            // There is no such column.
            left_out.pop();
        }
        made = narrower;
    }
    (left_out, made)
}

/// `sbd/sb-2: Two paths ..; 10 runs each`, and what the command line changed.
fn title(cases: &[Case], rows: &[Row]) -> String {
    let (row, case) = (&rows[0], &cases[rows[0].case]);
    let times = if row.seeds == 1 { "1 run".into() } else { format!("{} runs each", row.seeds) };
    let title = Foreign::from(case.scenario.title.as_str());
    let title = format!("{}: {title}; {times}", case.scenario.name);
    let swept = |field: &String| case.set.iter().any(|point| point.field == *field);
    let settings = case.scenario.settings.iter().filter(|(field, _)| !swept(field));
    fold(&title, 2) + &changes(settings)
}

/// `  with duration = 20 s; jitter = 0 packets`, a line, if there is any.
fn changes<'a>(settings: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let settings: Vec<String> = settings
        .map(|(field, value)| format!("{field} = {}", Foreign::from(value.as_str())))
        .collect();
    match settings.is_empty() {
        true => String::new(),
        false => fold(&format!("  with {}", settings.join("; ")), 7),
    }
}

/// Text as lines of at most 80 columns, all but the first behind `indent` spaces.
pub fn fold(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    // Spaces between columns stay, and a number is not parted from its percent sign.
    for word in text.replace(" %", "\u{a0}%").split_inclusive(' ') {
        if line.chars().count() + word.trim_end().chars().count() > WIDTH && !line.trim().is_empty()
        {
            lines = lines + line.trim_end() + "\n";
            line = " ".repeat(indent);
        }
        line.push_str(word);
    }
    (lines + line.trim_end() + "\n").replace('\u{a0}', " ")
}

/// A column of a comparison.
#[derive(Clone, Debug)]
enum Column {
    /// Of metrics that share a head.
    Metrics(&'static str, Vec<&'static Metric<TestSummary>>),
    /// The median of a metric, with its quartiles.
    Median(&'static str),
    /// The published value of the metric under a head.
    Paper(&'static str),
}

impl Column {
    fn head(&self) -> &'static str {
        match self {
            Column::Metrics(head, _) => head,
            Column::Median(_) => MEDIAN,
            Column::Paper(_) => PAPER,
        }
    }

    fn cell(&self, case: &Case, row: &Row) -> String {
        match self {
            Column::Metrics(_, metrics) => cell(metrics, |metric| row.metrics[metric.name]),
            Column::Median(metric) => quartiles(row.metrics[*metric]),
            Column::Paper(head) => paper(case, row, head).unwrap_or_else(|| "-".into()),
        }
    }

    /// What it means, in a line.
    fn about(&self) -> String {
        match self {
            Column::Metrics(_, metrics) => about(metrics),
            Column::Median(_) => "of the ratio [quartiles]".into(),
            Column::Paper(head) => format!("the published {head}"),
        }
    }

    /// What it means, below the table.
    fn explained(&self) -> String {
        match self {
            Column::Metrics(head, metrics) if *head == RATIO => {
                explained(head, metrics) + &fold(&format!("{:10} {AT_RATIO}", ""), 11)
            }
            Column::Metrics(head, metrics) => explained(head, metrics),
            other => format!("{:10} {}\n", other.head(), other.about()),
        }
    }
}

/// What a column means, with the unit.
fn about<T>(metrics: &[&Metric<T>]) -> String {
    let about: Vec<&str> = metrics.iter().map(|metric| metric.about).collect();
    let unit = Some(metrics[0].unit).filter(|&unit| !["1", "segments"].contains(&unit));
    about.join(" / ") + &unit.map_or(String::new(), |unit| format!(", {unit}"))
}

/// The same below a table.
fn explained<T>(head: &str, metrics: &[&Metric<T>]) -> String {
    fold(&format!("{head:10} {}", about(metrics)), 11)
}

/// The columns of a comparison: of metrics that a row has, and of published values if there is one.
fn shown(cases: &[Case], rows: &[Row]) -> Vec<Column> {
    let any = |metric: &Metric<_>| rows.iter().any(|row| row.metrics[metric.name].is_some());
    let mut shown = Vec::new();
    for (head, metrics) in columns(TEST, any) {
        let median = (head == RATIO).then_some(Column::Median(metrics[0].name));
        let published = rows.iter().any(|row| paper(&cases[row.case], row, head).is_some());
        shown.push(Column::Metrics(head, metrics));
        shown.extend(median);
        shown.extend(published.then_some(Column::Paper(head)));
    }
    shown
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

/// Lines and columns as text, without the columns of some heads; after the first `left` columns numbers
/// are aligned.
fn render(
    heads: &[&str],
    left: usize,
    without: &[&str],
    lines: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let remain = |cells: Vec<String>| -> Vec<String> {
        let remain = |(_, head): &(String, &&str)| !without.contains(head);
        cells.into_iter().zip(heads).filter(remain).map(|(cell, _)| cell).collect()
    };
    table.set_header(remain(heads.iter().map(|head| (*head).to_owned()).collect()));
    table.add_rows(lines.into_iter().map(remain));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The rows of a scenario, or of all points of a sweep.
fn one(cases: &[Case], rows: &[Row], columns: &[Column], without: &[&str]) -> String {
    lines(cases, rows, columns).render(without)
}

/// The same with all columns that these rows have.
pub fn row_lines(cases: &[Case], rows: &[Row]) -> Lines {
    lines(cases, rows, &shown(cases, rows))
}

fn lines(cases: &[Case], rows: &[Row], columns: &[Column]) -> Lines {
    let hosts = rows.iter().any(|row| row.host != HostId::SIM);
    let swept = swept(&rows[0].set).into_iter().zip(&rows[0].set);
    let mut heads: Vec<(String, String)> =
        swept.map(|(head, point)| (head.to_owned(), point.field.clone())).collect();
    heads.push(("cc".into(), String::new()));
    heads.extend(hosts.then(|| ("on".into(), String::new())));
    let left = heads.len();
    heads.extend(columns.iter().map(|column| (column.head().to_owned(), column.about())));
    let line = |(index, row): (usize, &Row)| {
        let before = index.checked_sub(1).map(|before| &rows[before]);
        let mut line = point(before, row);
        let mark = before.and_then(|other| difference(other, row)).map_or("", |_| "*");
        line.extend(hosts.then(|| format!("{}{mark}", row.host)));
        line.extend(columns.iter().map(|column| column.cell(&cases[row.case], row)));
        line
    };
    Lines { heads, left, lines: rows.iter().enumerate().map(line).collect() }
}

/// The heads of swept fields: the last part of the name, or the whole where that is another's, too.
fn swept(set: &[Point]) -> Vec<&str> {
    fn short(point: &Point) -> &str {
        point.field.rsplit('.').next().unwrap_or_default()
    }
    let metric = |head: &str| {
        let heads = TEST.iter().filter_map(|metric| metric.column).map(|column| column.head);
        let passive = PASSIVE.iter().filter_map(|metric| metric.column).map(|column| column.head);
        heads.chain(passive).chain([MEDIAN, PAPER, "cc", "on", "passive"]).any(|one| one == head)
    };
    let head = |point| {
        let head = short(point);
        let same = set.iter().filter(|other| short(other) == head).count();
        if same > 1 || metric(head) { &point.field[..] } else { head }
    };
    set.iter().map(head).collect()
}

/// The first cells of a row: the point of a sweep, where it is another than before, and the control.
fn point(before: Option<&Row>, row: &Row) -> Vec<String> {
    let same = before.is_some_and(|before| before.set == row.set);
    let value = |point: &Point| if same { String::new() } else { point.value.clone() };
    let mut cells: Vec<String> = row.set.iter().map(value).collect();
    cells.push(label(row));
    if row.set.is_empty() || !same {
        cells[0].insert_str(0, "  ");
    }
    cells
}

/// What passive detectors found, if there are any.
fn passive(rows: &[Row], columns: &[Shown<PassiveSummary>], without: &[&str]) -> String {
    let mut heads = swept(&rows[0].set);
    heads.extend(["cc", "passive"]);
    let left = heads.len();
    columns.iter().for_each(|(head, _)| heads.push(head));
    let mut lines = Vec::new();
    let mut before = None;
    for row in rows {
        for detector in &row.passive {
            let mut line = point(before, row);
            line.push(with_signal(&detector.detector, &detector.signal));
            let value = |metric: &Metric<_>| detector.metrics[metric.name];
            line.extend(columns.iter().map(|(_, metrics)| cell(metrics, value)));
            lines.push(line);
            before = Some(row);
        }
    }
    if lines.is_empty() { String::new() } else { render(&heads, left, without, lines) }
}

/// The columns of what passive detectors found: those that one has.
fn passive_columns<'a>(
    passive: impl Iterator<Item = &'a PassiveRow> + Clone,
) -> Vec<Shown<PassiveSummary>> {
    columns(PASSIVE, |metric| {
        passive.clone().any(|detector| detector.metrics[metric.name].is_some())
    })
}

/// `xcorr (rtt)`.
fn with_signal(detector: &str, signal: &str) -> String {
    format!("{detector} ({signal})")
}

/// `olia`, `olia+ssc (rtt)`.
pub fn label(row: &Row) -> String {
    match row.signal {
        Some(signal) => format!("{} ({signal})", row.cc),
        None => row.cc.clone(),
    }
}

/// ` at 5 Mbit/s, 20 ms`, of a sweep.
fn at(row: &Row) -> String {
    let values: Vec<&str> = row.set.iter().map(|point| point.value.as_str()).collect();
    if values.is_empty() { String::new() } else { format!(" at {}", values.join(", ")) }
}

/// `  olia on kernel: 9 of 10 runs (1 unfit: late)`, if any is.
fn unfit(row: &Row) -> Option<String> {
    let Row { host, seeds, unfit, why, .. } = row;
    let cc = label(row) + &at(row);
    let first = if *unfit == 1 { "" } else { ", the first" };
    let why = why.as_ref().map_or(String::new(), |why| format!("{first}: {why}"));
    let fit = seeds - unfit;
    (*unfit > 0).then(|| format!("  {cc} on {host}: {fit} of {seeds} runs ({unfit} unfit{why})\n"))
}

/// The metric in which two hosts differ for the same control, as its 95 % intervals do not meet, and
/// its two spreads. It is the ratio, without rivals the goodput.
fn difference(one: &Row, other: &Row) -> Option<(&'static Metric<TestSummary>, [Spread; 2])> {
    if (one.case, one.control, one.signal) != (other.case, other.control, other.signal) {
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
        let (first, second, metric) = (pair[0].host, pair[1].host, column.head);
        let cc = pair[0].cc.clone() + &at(&pair[0]);
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

/// What was published beside the metric under a head: `~0.60`, `<0.40`.
pub fn paper(case: &Case, row: &Row, head: &str) -> Option<String> {
    let value = |paper: &Published| match head {
        RATIO => paper.ratio_to_tcp,
        ACCURACY => paper.accuracy,
        _ => None,
    };
    let of_control = case.scenario.paper.iter().filter(|of| of.controls.contains(&row.control));
    let (bound, value) = of_control.filter_map(|of| Some((of.bound, value(of)?))).next()?;
    let sign = match bound {
        Bound::About => '~',
        Bound::Below => '<',
        Bound::Above => '>',
    };
    Some(format!("{sign}{value:.2}"))
}

/// One run: its listed connections with their paths, then the links.
pub fn summary_table(scenario: &Scenario, summary: &Summary) -> String {
    let on = match summary.host {
        HostId::SIM => String::new(),
        host => format!(" on {host}"),
    };
    let cc = summary.cc.as_deref().unwrap_or("-");
    let Summary { scenario: name, seed, duration_s, .. } = summary;
    let mut text = format!("{name} under {cc}{on}, seed {seed}, {duration_s} s analysed\n");
    text = text + &changes(scenario.settings.iter()) + "\n";
    let (connections, background) = connection_lines(scenario, summary);
    let (left_out, connections) =
        fitting(&LESS_OF_RUN, |without| vec![connections.render(without)]);
    text = text + &connections.concat() + &said_left_out(&left_out);
    if let Some(background) = background {
        let _ = writeln!(text, "{background}");
    }
    text = text + "\n" + &link_lines(summary).render(&[]);
    for more in [passive_lines(summary), detection_lines(summary)].into_iter().flatten() {
        text = text + "\n" + &more.render(&[]);
    }
    let of = if scenario.rivals.is_empty() { " of all listed flows" } else { "" };
    let _ = writeln!(text, "\nJain's index {:.3}{of}", summary.fairness.jain);
    text = text + &file_lines(scenario, summary) + &message_lines(summary);
    if let Some(fitness) = &summary.fitness {
        let _ = writeln!(text, "{}", show_fitness(fitness));
    }
    text
}

/// When files were received, of flows that are no background.
fn file_lines(scenario: &Scenario, summary: &Summary) -> String {
    let flows = scenario.flows.iter().zip(&summary.connections);
    let files: Vec<_> = flows
        .filter(|(flow, _)| !flow.background && matches!(flow.source, Source::File { .. }))
        .map(|(flow, connection)| (&flow.name, connection.completion_s))
        .collect();
    match &files[..] {
        [] => String::new(),
        [(name, Some(after))] => format!("{name}: file received after {after:.3} s\n"),
        [(name, None)] => format!("{name}: file not received\n"),
        all => {
            let mut after: Vec<f64> = all.iter().filter_map(|(_, after)| *after).collect();
            after.sort_by(f64::total_cmp);
            let times = match (after.first(), after.last()) {
                (Some(first), Some(last)) => format!(", after {first:.3} to {last:.3} s"),
                _ => String::new(),
            };
            format!("{} of {} files received{times}\n", after.len(), all.len())
        }
    }
}

/// How long messages took, a line for each connection with some.
fn message_lines(summary: &Summary) -> String {
    let line = |connection: &ConnectionSummary| {
        let quantiles = [
            ("median", connection.p50_message_ms),
            ("95 %", connection.p95_message_ms),
            ("99 %", connection.p99_message_ms),
        ];
        let shown = quantiles.map(|(of, ms)| match ms {
            Some(ms) => format!("{of} {ms:.0} ms"),
            None => format!("{of} not delivered"),
        });
        Some(format!(
            "{}: {} messages, {}; {} undelivered\n",
            connection.name,
            connection.messages?,
            shown.join(", "),
            connection.undelivered_messages.unwrap_or_default(),
        ))
    };
    summary.connections.iter().filter_map(line).collect()
}

/// Lines of a table, and what its columns mean.
pub struct Lines {
    /// What stands above the columns, each with what it means.
    pub heads: Vec<(String, String)>,
    /// Columns of text, on the left; the others are numbers.
    pub left: usize,
    /// The lines.
    pub lines: Vec<Vec<String>>,
}

impl Lines {
    /// With `first` columns of text, and those of metrics.
    fn new<T>(first: &[&str], of: &[Shown<T>], lines: Vec<Vec<String>>) -> Lines {
        let mut heads: Vec<_> =
            first.iter().map(|head| ((*head).to_owned(), String::new())).collect();
        heads.extend(of.iter().map(|(head, metrics)| ((*head).to_owned(), about(metrics))));
        Lines { heads, left: first.len(), lines }
    }

    fn render(&self, without: &[&str]) -> String {
        let heads: Vec<&str> = self.heads.iter().map(|(head, _)| head.as_str()).collect();
        render(&heads, self.left, without, self.lines.iter().cloned())
    }
}

/// The listed connections of a run with their paths, and a line on those of the background, if any.
pub fn connection_lines(scenario: &Scenario, summary: &Summary) -> (Lines, Option<String>) {
    let (of_connection, of_path) = (columns(CONNECTION, |_| true), columns(PATH, |_| true));
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
    // What connections have, paths have too, and first.
    let lines = Lines::new(&["connection", "kind", "cc"], &of_path, lines);
    let (flows, total) = (background.len(), background.iter().sum::<f64>());
    let said = format!("{flows} background flows: {total:.2} Mbit/s");
    (lines, (flows > 0).then_some(said))
}

/// The links of a run.
pub fn link_lines(summary: &Summary) -> Lines {
    let of_link = columns(LINK, |_| true);
    let line = |link: &LinkSummary| {
        let cells = of_link.iter().map(|(_, metrics)| single(metrics, link));
        [link.name.clone()].into_iter().chain(cells).collect()
    };
    Lines::new(&["link"], &of_link, summary.links.iter().map(line).collect())
}

/// What the passive detectors of a run found, if it has any.
pub fn passive_lines(summary: &Summary) -> Option<Lines> {
    let has = |metric: &Metric<_>| summary.passive.iter().any(|of| (metric.get)(of).is_some());
    let columns = columns(PASSIVE, has);
    let line = |detector: &PassiveSummary| {
        let cells = columns.iter().map(|(_, metrics)| single(metrics, detector));
        let name = with_signal(&detector.detector, &detector.signal);
        [name].into_iter().chain(cells).collect()
    };
    let lines: Vec<_> = summary.passive.iter().map(line).collect();
    (!lines.is_empty()).then(|| Lines::new(&["passive"], &columns, lines))
}

/// How right the detector of the connection under test was, a line for each phase.
pub fn detection_lines(summary: &Summary) -> Option<Lines> {
    let or_none = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
    };
    let line = |phase: &PhaseDetection| {
        vec![
            format!("from {} s", phase.start_s),
            phase.signal.clone(),
            phase.decisions.to_string(),
            or_none(phase.accuracy, 2),
            or_none(phase.first_correct_s, 1),
        ]
    };
    let heads = [
        ("detector", ""),
        ("signal", "what it sampled"),
        ("decisions", "those after the warm-ups"),
        ("accuracy", "share of them with the right groups"),
        ("first right s", "when the first right decision was made"),
    ];
    let heads = heads.map(|(head, about)| (head.to_owned(), about.to_owned())).to_vec();
    let lines: Vec<_> = summary.detection.iter().map(line).collect();
    (!lines.is_empty()).then_some(Lines { heads, left: 2, lines })
}

/// `fit: packets 0.02 ms late in the median, 0.21 at 99 %, at most 1.30; worst second 0.4 % off`.
pub fn show_fitness(fitness: &Fitness) -> String {
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
        report(&[case()], &rows(&plan(&[case()]), &all))
    }

    #[test]
    fn of_the_simulator_alone_the_table_says_nothing_of_hosts() {
        let text = shown(&[("lia", HostId::SIM, 10.0, None), ("lia", HostId::SIM, 12.0, None)]);
        assert_eq!(
            text.split("\n\n").next().unwrap(),
            "sbd/nsb-2: Two paths, each with a bottleneck of its own; 2 runs each\n\
             cc          ratio            median  paper     goodput  Jain  queue  RTT  retx\n  \
             lia  1.10 ±1.27  1.10 [1.05 1.15]  ~0.60  11.0 ±12.7  0.90  12/20  0/0     7"
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
        assert_eq!(lines[8..10], [message, ""]);
    }

    #[test]
    fn accuracy_is_a_column_if_a_row_has_it_and_only_then_explained() {
        let runs = |cc: &str| [1, 2].map(|seed| finished(cc, HostId::SIM, seed, 10.0, None));
        let judged = |accuracy| move |run| with(run, |test| test.accuracy = Some(accuracy));
        let shown = |all: Vec<Finished>| {
            let text = report(&[case()], &rows(&plan(&[case()]), &all));
            let lines = text
                .lines()
                .skip(1)
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            (lines.collect::<Vec<_>>(), text.contains("\naccuracy   share of"))
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
        let text = report(&[case()], &rows(&plan(&[case()]), &all));
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
