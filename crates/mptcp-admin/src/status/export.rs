//! The status in the text format of Prometheus (version 0.0.4), and what rose between two of them.

use super::text::meaning;
use super::{Connection, Control, Namespace, Status};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The counters of the fallback law, by control, build and reason.
const FALLBACK: &str = "narrows_fallback_total";
/// What the value of the label `build` is for a control that sockets can ask for; another one only
/// has the sockets that it had.
const REGISTERED: &str = "registered";
const OLDER: &str = "older";

/// Samples of a metric by their labels, which are sorted so.
type Samples = BTreeMap<Vec<(&'static str, String)>, u64>;

/// A metric's text: what it is, then its samples; nothing without a sample.
fn metric(text: &mut String, name: &str, kind: &str, help: &str, samples: Samples) {
    if samples.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Status {
    /// In the text format of Prometheus, without timestamps. Bytes and connections are those of the
    /// open ones, so they are gauges; counters are since the control was loaded.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut gauge = |name, help, samples| metric(&mut text, name, "gauge", help, samples);
        gauge(
            "narrows_connections",
            "Open connections: MPTCP, fallen back to TCP, and plain TCP under a control of narrows.",
            self.connections(),
        );
        let subflows = self.per_namespace(|one| one.connections.iter().map(subflows).sum());
        gauge("narrows_subflows", "Open subflows, of connections of one path too.", subflows);
        gauge(
            "narrows_fallback_subflows",
            "Subflows that run the fallback law, as they could not be coupled.",
            self.per_namespace(|one| one.connections.iter().map(in_fallback).sum()),
        );
        let sum = |of: fn(&super::Subflow) -> u64| {
            self.per_namespace(|one| {
                one.connections.iter().flat_map(|connection| &connection.subflows).map(of).sum()
            })
        };
        gauge(
            "narrows_acked_bytes",
            "Bytes that peers acknowledged on the open connections.",
            sum(|subflow| subflow.bytes_acked),
        );
        gauge(
            "narrows_received_bytes",
            "Bytes received on the open connections.",
            sum(|subflow| subflow.bytes_received),
        );
        if let Some(map) = self.map {
            let alone = |value| Samples::from([(Vec::new(), value)]);
            let entries = map.entries as u64;
            gauge("narrows_map_entries", "Entries of the map of connections.", alone(entries));
            gauge(
                "narrows_map_max_entries",
                "Entries that the map of connections has room for.",
                alone(map.entries_max.into()),
            );
        }
        metric(
            &mut text,
            FALLBACK,
            "counter",
            "Subflows that began to run the fallback law, by reason.",
            self.counters(|counter| {
                let reason = counter.strip_prefix("fallback_")?;
                Some(vec![("reason", reason.to_owned())])
            }),
        );
        metric(
            &mut text,
            "narrows_undetected_total",
            "counter",
            "Subflows that joined without room for what the detector keeps.",
            self.counters(|counter| (counter == "undetected").then(Vec::new)),
        );
        metric(
            &mut text,
            "narrows_repaired_windows_total",
            "counter",
            "Windows that were set right, as the kernel had left out a program.",
            self.counters(|counter| (counter == "repaired").then(Vec::new)),
        );
        text
    }

    fn per_namespace(&self, value: impl Fn(&Namespace) -> u64) -> Samples {
        let name = |one: &Namespace| vec![("netns", one.name.clone())];
        self.namespaces.iter().map(|one| (name(one), value(one))).collect()
    }

    fn connections(&self) -> Samples {
        let mut samples = Samples::new();
        for namespace in &self.namespaces {
            for connection in &namespace.connections {
                let labels = vec![
                    ("netns", namespace.name.clone()),
                    ("law", connection.law.clone().unwrap_or_else(|| "other".into())),
                    ("protocol", protocol(connection).to_owned()),
                ];
                *samples.entry(labels).or_default() += 1;
            }
        }
        samples
    }

    /// Those of the controls' counters that `more` has labels for, summed over older builds.
    fn counters(&self, more: impl Fn(&str) -> Option<Vec<(&'static str, String)>>) -> Samples {
        let mut samples = Samples::new();
        for control in &self.controls {
            for (name, value) in &control.counters {
                let Some(more) = more(name) else { continue };
                let mut labels = vec![
                    ("control", control.kernel_name.clone()),
                    ("build", build(control).to_owned()),
                ];
                labels.extend(more);
                *samples.entry(labels).or_default() += value;
            }
        }
        samples
    }
}

fn protocol(connection: &Connection) -> &'static str {
    match (connection.token, connection.fell_back) {
        (None, _) => "tcp",
        (_, true) => "fallen-back",
        (_, false) => "mptcp",
    }
}

fn build(control: &Control) -> &'static str {
    if control.registered { REGISTERED } else { OLDER }
}

fn subflows(connection: &Connection) -> u64 {
    connection.subflows.len() as u64
}

fn in_fallback(connection: &Connection) -> u64 {
    connection.subflows.iter().filter(|one| one.fallback_law == Some(true)).count() as u64
}

/// The counters of the fallback law that rose from one text of [`Status::prometheus`] to a later one,
/// each a line.
pub fn rises(before: &str, now: &str) -> Vec<String> {
    let before: BTreeMap<&str, u64> = fallbacks(before).collect();
    let mut rises = Vec::new();
    for (series, now) in fallbacks(now) {
        let then = match (before.get(series), label(series, "build") == Some(OLDER)) {
            // A build that was replaced brings its count along, and takes it away when it goes.
            (None, true) => continue,
            (Some(then), true) if now < *then => continue,
            // Loaded again since, or anew.
            (Some(then), false) if now < *then => 0,
            (then, _) => then.copied().unwrap_or(0),
        };
        if let (true, Some(control), Some(reason)) =
            (now > then, label(series, "control"), label(series, "reason"))
        {
            let counter = format!("fallback_{reason}");
            let meaning = meaning(&counter);
            rises.push(format!("{control}: {counter} rose by {} to {now}: {meaning}", now - then));
        }
    }
    rises
}

/// The series of [`FALLBACK`], as they are written, with their values.
fn fallbacks(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let series = text.lines().filter_map(|line| line.strip_prefix(FALLBACK)?.rsplit_once(' '));
    series.filter_map(|(labels, value)| Some((labels, value.parse().ok()?)))
}

/// A label of a series; those here have nothing to escape.
fn label(series: &str, name: impl Display) -> Option<&str> {
    series.split_once(&format!("{name}=\""))?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let samples = Samples::from([(vec![("netns", "a\"b\\c\nd".to_owned())], 3)]);
        let mut text = String::new();
        metric(&mut text, "m", "gauge", "help", samples);
        let expected = "# HELP m help\n# TYPE m gauge\nm{netns=\"a\\\"b\\\\c\\nd\"} 3\n";
        assert_eq!(text, expected);
    }

    fn counter(build: &str, reason: &str, value: u64) -> String {
        format!("{FALLBACK}{{control=\"nr_olia\",build=\"{build}\",reason=\"{reason}\"}} {value}\n")
    }

    #[test]
    fn what_rose_is_said_once_and_why() {
        let before = counter(REGISTERED, "full", 5) + &counter(REGISTERED, "law", 2);
        let now = counter(REGISTERED, "full", 12) + &counter(REGISTERED, "law", 2);
        let rises = rises(&before, &now);
        assert_eq!(
            rises,
            ["nr_olia: fallback_full rose by 7 to 12: subflows ran the fallback law, the map of \
              connections was full"]
        );
    }

    #[test]
    fn a_control_that_is_loaded_anew_counts_from_nothing_and_one_that_was_replaced_did_not_rise() {
        let one = |build, value| counter(build, "full", value);
        let count = |before: &str, now: &str| rises(before, now).len();
        assert_eq!(count("", &one(REGISTERED, 3)), 1);
        assert_eq!(count(&one(REGISTERED, 9), &one(REGISTERED, 3)), 1);
        assert_eq!(count(&one(REGISTERED, 9), &one(REGISTERED, 0)), 0);
        let replaced = one(REGISTERED, 0) + &one(OLDER, 9);
        assert_eq!(count(&one(REGISTERED, 9), &replaced), 0);
        assert_eq!(count(&replaced, &(one(REGISTERED, 0) + &one(OLDER, 10))), 1);
        assert_eq!(count(&one(OLDER, 9), &one(OLDER, 4)), 0);
    }
}
