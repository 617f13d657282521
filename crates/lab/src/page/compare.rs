//! The page of a comparison.

use std::collections::HashMap;

use narrows_report::{Colour, Curve, Page, Part, Plot, Section, Strip, Strips};

use super::{facts, table};
use crate::algorithm::Algorithm;
use crate::compare::Row;
use crate::host_id::HostId;
use crate::metrics::{Form, Metric, TEST, TestSummary};
use crate::plan::{Finished, Plan};
use crate::provenance::Provenance;
use crate::summary::Summary;
use crate::table::{self, ACCURACY, RATIO};

/// Metrics of which the distribution over seeds is drawn too.
const SPREAD: [&str; 5] =
    ["ratio_to_tcp", "goodput_mbps", "p95_queue_ms", "acknowledged_s", "p95_message_ms"];
/// Curves of a plot at most.
const MOST: usize = 24;

/// The page of the `finished` runs of a plan, and of `rows`, their means.
pub fn compare(provenance: &Provenance, plan: &Plan, rows: &[Row], finished: &[Finished]) -> Page {
    let mut names: Vec<&str> = plan.cases.iter().map(|case| case.scenario.name.as_str()).collect();
    names.dedup();
    let controls: Vec<String> = plan.controls.iter().map(ToString::to_string).collect();
    let hosts: Vec<String> = plan.hosts.iter().map(ToString::to_string).collect();
    let seeds = plan.seeds.all();
    let settings = plan.cases[0].scenario.settings.iter();
    let swept: Vec<&String> = plan.cases[0].set.iter().map(|point| &point.field).collect();
    let settings: Vec<String> = settings
        .filter(|(field, _)| !swept.contains(field))
        .map(|(field, value)| format!("{field} = {value}"))
        .collect();
    let or_none = |text: String| if text.is_empty() { "none".into() } else { text };
    let mut more = vec![
        ("scenarios", names.join(", ")),
        ("congestion controls", controls.join(", ")),
        ("hosts", hosts.join(", ")),
        ("seeds", format!("{} to {}", seeds.start(), seeds.end())),
        ("changed settings", or_none(settings.join("; "))),
    ];
    let axes: Vec<&str> = swept.iter().map(|field| field.as_str()).collect();
    more.extend((!axes.is_empty()).then(|| ("sweep", format!("of {}", axes.join(" and ")))));
    let all = All::new(plan, finished);
    let sections = table::tables(rows).into_iter().map(|rows| all.section(rows)).collect();
    Page {
        title: format!("{} compared", controls.join(", ")),
        lead: format!("On {}; runs of each row: {}.", names.join(", "), plan.seeds.count()),
        command: provenance.command_line(),
        facts: facts(provenance, more),
        sections,
        ..Page::default()
    }
}

/// What tells rows apart: case, control, signal and host.
type Key = (usize, Algorithm, Option<&'static str>, HostId);

/// All that ran.
struct All<'a> {
    plan: &'a Plan<'a>,
    /// The runs of each row that kept real time.
    runs: HashMap<Key, Vec<&'a Summary>>,
}

impl<'a> All<'a> {
    fn new(plan: &'a Plan, finished: &'a [Finished]) -> All<'a> {
        let mut runs = HashMap::<Key, Vec<&Summary>>::new();
        for run in finished {
            let Finished { case, control, signal, ref summary, .. } = *run;
            if summary.fitness.as_ref().is_none_or(|fitness| fitness.fit) {
                let signal = signal.map(|signal| plan.signals[signal].name());
                runs.entry((case, control, signal, summary.host)).or_default().push(summary);
            }
        }
        All { plan, runs }
    }

    /// A scenario, or all points of a sweep of one.
    fn section(&self, rows: &[Row]) -> Section {
        let case = &self.plan.cases[rows[0].case];
        let any = |metric: &Metric<_>| rows.iter().any(|row| row.metrics[metric.name].is_some());
        let mut metrics: Vec<&Metric<TestSummary>> =
            TEST.iter().filter(|metric| metric.column.is_some() && any(metric)).collect();
        metrics.sort_by_key(|metric| metric.column.map(|column| column.place));
        let mut parts: Vec<Part> = Vec::new();
        for metric in &metrics {
            let swept = self.swept(rows, metric);
            let apart = if swept.is_some() { None } else { self.distribution(rows, metric) };
            parts.extend(swept.map(Part::Plot));
            parts.push(Part::Strips(self.strips(rows, metric)));
            parts.extend(apart.map(Part::Plot));
        }
        let lines = table::row_lines(self.plan.cases, rows);
        let about = "Means over the seeds; ±: half the 95 % interval.";
        parts.insert(0, Part::Table(table("", about, lines)));
        Section { title: case.scenario.name.clone(), about: case.scenario.title.clone(), parts }
    }

    /// A metric of the runs of a row, with their seeds.
    fn values(&self, row: &Row, metric: &Metric<TestSummary>) -> Vec<(u64, f64)> {
        let runs = self.runs.get(&(row.case, row.control, row.signal, row.host));
        let value = |run: &&Summary| Some((run.seed, (metric.get)(run.test.as_ref()?)?));
        runs.into_iter().flatten().filter_map(value).collect()
    }

    /// A control has its colour wherever it stands.
    fn colour(&self, row: &Row) -> Colour {
        let place = self.plan.controls.iter().position(|&control| control == row.control);
        Colour::Number(place.unwrap_or(0))
    }

    /// `reno on kernel, 5 Mbit/s`.
    fn name(&self, row: &Row) -> String {
        let mut name = table::label(row);
        if self.plan.hosts != [HostId::SIM] {
            name += &format!(" on {}", row.host);
        }
        for point in &row.set {
            name += &format!(", {}", point.value);
        }
        name
    }

    fn strips(&self, rows: &[Row], metric: &Metric<TestSummary>) -> Strips {
        let head = metric.column.map_or("", |column| column.head);
        let shares = [RATIO, ACCURACY].contains(&head);
        let strip = |row: &Row| {
            let spread = row.metrics[metric.name];
            let text = table::paper(&self.plan.cases[row.case], row, head);
            let published = text.and_then(|text| {
                let value = text.trim_start_matches(['~', '<', '>']).parse().ok()?;
                Some((text, value))
            });
            let values = self.values(row, metric).into_iter();
            Strip {
                name: self.name(row),
                colour: self.colour(row),
                values: values.map(|(seed, value)| (format!("seed {seed}"), value)).collect(),
                mean: spread.map(|spread| spread.mean),
                ci95: spread.and_then(|spread| spread.ci95),
                bounds: None,
                quartiles: spread.map(|spread| [spread.q1, spread.median, spread.q3]),
                published,
            }
        };
        let decimals = match metric.column.map(|column| column.form) {
            Some(Form::Number(decimals) | Form::Interval(decimals)) => decimals,
            Some(Form::Percent(decimals)) => decimals + 2,
            None => 2,
        };
        Strips {
            title: title(metric),
            about: Some(metric.about)
                .filter(|about| !about.starts_with("the same"))
                .map_or_else(String::new, sentence),
            label: if metric.unit == "1" { String::new() } else { metric.unit.into() },
            decimals,
            bars: shares,
            reference: (head == RATIO).then_some(1.0),
            rows: rows.iter().map(strip).collect(),
        }
    }

    /// The share of seeds up to each value, of as many rows as a plot has curves.
    fn distribution(&self, all: &[Row], metric: &Metric<TestSummary>) -> Option<Plot> {
        if !SPREAD.contains(&metric.name) {
            return None;
        }
        let rows = &all[..all.len().min(MOST)];
        let left_out = match all.len() - rows.len() {
            0 => String::new(),
            _ => format!(
                " Drawn are the first {MOST} of {} rows: a comparison of fewer draws the others.",
                all.len()
            ),
        };
        let sorted = |row: &Row| {
            let values = self.values(row, metric).into_iter().map(|(_, value)| value);
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let each: Vec<Vec<f64>> = rows.iter().map(sorted).collect();
        if each.iter().all(|values| values.len() < 3) {
            return None;
        }
        let mut x: Vec<f64> = each.iter().flatten().copied().collect();
        x.sort_by(f64::total_cmp);
        // From 0 on before the first, and to the edge behind the last.
        let margin = (x[x.len() - 1] - x[0]).max(1e-3) / 20.0;
        x.insert(0, x[0] - margin);
        x.push(x[x.len() - 1] + margin);
        x.dedup();
        let curve = |(row, values): (&Row, &Vec<f64>)| {
            let share = |x: &f64| {
                let below = values.partition_point(|value| value <= x);
                (!values.is_empty()).then(|| below as f64 / values.len() as f64)
            };
            let y = x.iter().map(share).collect();
            Curve { steps: true, ..Curve::new(self.name(row), self.colour(row), y) }
        };
        let curves = rows.iter().zip(&each).map(curve).collect();
        let unit = if metric.unit == "1" { String::new() } else { format!(", {}", metric.unit) };
        Some(Plot {
            title: format!("{} over seeds", title(metric)),
            about: format!("Share of the seeds with at most this value.{left_out}"),
            x_label: format!("{}{unit}", name(metric)),
            y_label: "share of seeds".into(),
            top: Some(1.0),
            x,
            curves,
            ..Plot::default()
        })
    }

    /// The mean over the values of a sweep of one field, where these are numbers.
    fn swept(&self, rows: &[Row], metric: &Metric<TestSummary>) -> Option<Plot> {
        if !SPREAD.contains(&metric.name) {
            return None;
        }
        let [point] = &rows[0].set[..] else { return None };
        let value = |row: &Row| row.set.first()?.number;
        let mut points: Vec<(f64, &Row)> =
            rows.iter().map(|row| Some((value(row)?, row))).collect::<Option<_>>()?;
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut x: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
        x.dedup();
        if x.len() < 2 {
            return None;
        }
        let of = |row: &Row| (row.control, row.signal, row.host);
        let mut each: Vec<&Row> = Vec::new();
        for row in rows {
            if !each.iter().any(|other| of(other) == of(row)) {
                each.push(row);
            }
        }
        let curve = |first: &&Row| {
            let spread = |x: &f64| {
                let same = |(at, row): &&(f64, &Row)| at == x && of(row) == of(first);
                points.iter().find(same).and_then(|(_, row)| row.metrics[metric.name])
            };
            let end = |sign: f64| {
                let end = |x: &f64| {
                    spread(x).map(|spread| spread.mean + sign * spread.ci95.unwrap_or(0.0))
                };
                x.iter().map(end).collect::<Vec<_>>()
            };
            let name = self.name(&Row { set: Vec::new(), ..(*first).clone() });
            let mean = x.iter().map(|x| spread(x).map(|spread| spread.mean)).collect();
            let (low, high) = (end(-1.0), end(1.0));
            Curve { low, high, ..Curve::new(name, self.colour(first), mean) }
        };
        let unit = point.unit.as_deref().unwrap_or("");
        Some(Plot {
            title: format!("{} over {}", title(metric), point.field),
            about: "The mean over the seeds within its 95 % interval.".into(),
            x_label: [point.field.as_str(), unit].join(", ").trim_end_matches(", ").into(),
            y_label: title(metric),
            unit: if metric.unit == "1" { String::new() } else { metric.unit.into() },
            x: x.clone(),
            curves: each.iter().map(curve).collect(),
            ..Plot::default()
        })
    }
}

/// A metric by its name in words: `p95_queue_ms` is `Queueing delay, 95 % quantile`.
fn title(metric: &Metric<TestSummary>) -> String {
    sentence(&name(metric)).trim_end_matches('.').into()
}

/// The same within a sentence.
fn name(metric: &Metric<TestSummary>) -> String {
    let units = ["_mbps", "_ms", "_s", "_packets"].into_iter();
    let plain = units.fold(metric.name, |name, unit| name.strip_suffix(unit).unwrap_or(name));
    let quantiles =
        [("p50_", ", median"), ("p95_", ", 95 % quantile"), ("p99_", ", 99 % quantile")];
    let quantile =
        quantiles.into_iter().find_map(|(prefix, of)| Some((plain.strip_prefix(prefix)?, of)));
    let (plain, of) = quantile.unwrap_or((plain, ""));
    let words = match plain {
        "ratio_to_tcp" => "ratio to TCP",
        "jain" => "Jain's index",
        "accuracy" => "right decisions",
        "retransmits" => "segments sent again",
        "queue" => "queueing delay",
        "rtt" => "smoothed RTT",
        "message" => "delay of messages",
        "acknowledged" => "time of a file",
        plain => &plain.replace('_', " "),
    };
    format!("{words}{of}")
}

/// With a capital at its beginning and a stop at its end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
