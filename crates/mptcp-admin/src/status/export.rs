//! The status in the text format of Prometheus (version 0.0.4), and what rose between two of them.

use super::text::meaning;
use super::{Connection, Control, Detection, Found, Namespace, Status};
use crate::prometheus::{Samples, gauge, metric};
use std::collections::BTreeMap;
use std::fmt::Display;

/// The counters of the fallback law, by control, build and reason.
const FALLBACK: &str = "narrows_fallback_total";
/// The others: name, that of the controls' counter, and what it counts.
const COUNTERS: &[(&str, &str, &str)] = &[
    (
        "narrows_undetected_total",
        "undetected",
        "Subflows that joined without room for what the detector keeps.",
    ),
    (
        "narrows_decisions_total",
        "decisions",
        "Decisions of the detector which subflows share a bottleneck.",
    ),
    ("narrows_regroupings_total", "regroupings", "Decisions that changed the group of a subflow."),
    (
        "narrows_repaired_windows_total",
        "repaired",
        "Windows that were set right, as the kernel had left out a program.",
    ),
];
/// What the value of the label `build` is for a control that sockets can ask for; another one only
/// has the sockets that it had.
const REGISTERED: &str = "registered";
const OLDER: &str = "older";

impl Status {
    /// In the text format of Prometheus, without timestamps. Bytes and connections are those of the
    /// open ones, so they are gauges; counters are since the control was loaded.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        self.of_connections(&mut text);
        self.of_maps(&mut text);
        self.of_detections(&mut text);
        let fallback = self.counters(|counter| {
            let reason = counter.strip_prefix("fallback_")?;
            Some(vec![("reason", reason.to_owned())])
        });
        let help = "Subflows that began to run the fallback law, by reason.";
        metric(&mut text, FALLBACK, "counter", help, fallback);
        for (name, counter, help) in COUNTERS {
            let samples = self.counters(|one| (one == *counter).then(Vec::new));
            metric(&mut text, name, "counter", help, samples);
        }
        text
    }

    fn of_connections(&self, text: &mut String) {
        gauge(
            text,
            "narrows_connections",
            "Open connections: MPTCP, fallen back to TCP, and plain TCP under a control of narrows.",
            self.connections(),
        );
        let subflows = self.per_namespace(|one| one.connections.iter().map(subflows).sum());
        gauge(text, "narrows_subflows", "Open subflows, of connections of one path too.", subflows);
        gauge(
            text,
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
            text,
            "narrows_acked_bytes",
            "Bytes that peers acknowledged on the open connections.",
            sum(|subflow| subflow.bytes_acked),
        );
        gauge(
            text,
            "narrows_received_bytes",
            "Bytes received on the open connections.",
            sum(|subflow| subflow.bytes_received),
        );
    }

    fn of_maps(&self, text: &mut String) {
        let maps = [
            (
                self.map,
                "narrows_map",
                "Entries of the map of connections.",
                "Entries that the map of connections has room for.",
            ),
            (
                self.detection_map,
                "narrows_detection_map",
                "Entries of the map of what detectors keep of connections.",
                "Entries that this map has room for.",
            ),
        ];
        for (map, name, entries, room) in maps {
            let Some(map) = map else { continue };
            let alone = |value: u64| Samples::from([(Vec::new(), value)]);
            gauge(text, &format!("{name}_entries"), entries, alone(map.entries as u64));
            gauge(text, &format!("{name}_max_entries"), room, alone(map.entries_max.into()));
        }
    }

    fn of_detections(&self, text: &mut String) {
        gauge(
            text,
            "narrows_detected_subflows",
            "Subflows of connections that a detector looks at, by what it found.",
            self.detected(|detection| {
                let of = |found: Found| detection.groups.iter().filter(move |of| of.found == found);
                let count = |found| of(found).map(|group| group.paths.len() as u64).sum();
                Found::ALL.map(|found| ("found", found.name().to_owned(), count(found))).to_vec()
            }),
        );
        gauge(
            text,
            "narrows_detected_groups",
            "Groups of subflows that share a bottleneck, by the number of subflows.",
            self.detected(|detection| {
                let groups = detection.groups.iter().filter(|of| of.found == Found::Shared);
                groups.map(|group| ("subflows", group.paths.len().to_string(), 1)).collect()
            }),
        );
        gauge(
            text,
            "narrows_undetected_connections",
            "Connections without room for what the detector keeps.",
            self.per_namespace(|one| {
                let detections = one.connections.iter().filter_map(|of| of.detection.as_ref());
                detections.filter(|detection| !detection.runs).count() as u64
            }),
        );
    }

    fn per_namespace(&self, value: impl Fn(&Namespace) -> u64) -> Samples {
        let name = |one: &Namespace| vec![("netns", one.name.raw().to_owned())];
        self.namespaces.iter().map(|one| (name(one), value(one))).collect()
    }

    /// What `count` has of each detection, a label with its value and a number each, summed over the
    /// connections of a namespace under one detector.
    fn detected(&self, count: impl Fn(&Detection) -> Vec<(&'static str, String, u64)>) -> Samples {
        let mut samples: Samples = Samples::new();
        for namespace in &self.namespaces {
            for detection in namespace.connections.iter().filter_map(|of| of.detection.as_ref()) {
                for (label, value, n) in count(detection) {
                    let labels = vec![
                        ("netns", namespace.name.raw().to_owned()),
                        ("detector", detection.detector.to_owned()),
                        (label, value),
                    ];
                    *samples.entry(labels).or_default() += n;
                }
            }
        }
        samples
    }

    fn connections(&self) -> Samples {
        let mut samples: Samples = Samples::new();
        for namespace in &self.namespaces {
            for connection in &namespace.connections {
                let labels = vec![
                    ("netns", namespace.name.raw().to_owned()),
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
        let mut samples: Samples = Samples::new();
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
    use super::super::text::tests::status;
    use super::super::{Group, Map};
    use super::*;
    use narrows_kernel::state::COUNTERS;

    /// One that has a sample of every metric.
    fn full() -> Status {
        let mut status = status(1);
        status.map = Some(Map { entries: 1, entries_max: 262_144 });
        status.detection_map = Some(Map { entries: 1, entries_max: 32_768 });
        let group = |paths: &[u8], found| Group {
            paths: paths.to_vec(),
            found,
            for_s: Some(1.0),
            confidence: None,
            why: None,
        };
        status.namespaces[0].connections[0].detection = Some(Detection {
            detector: "xcorr",
            runs: true,
            receiver: None,
            decided_s: Some(0.1),
            groups: vec![group(&[0, 2], Found::Shared), group(&[1], Found::Alone)],
            pairs: Vec::new(),
            signals: Vec::new(),
        });
        status.controls = vec![Control {
            name: "lia+xcorr".into(),
            kernel_name: "nr_lia_xc".into(),
            registered: true,
            pinned: true,
            kept: None,
            default_in: Vec::new(),
            uses: None,
            signal: None,
            programs: Vec::new(),
            counters: COUNTERS.iter().map(|name| (*name, 7)).collect(),
        }];
        status
    }

    #[test]
    fn what_a_detector_found_is_counted() {
        let text = full().prometheus();
        let of = "{netns=\"current\",detector=\"xcorr\",";
        for line in [
            format!("narrows_detected_subflows{of}found=\"shared\"}} 2"),
            format!("narrows_detected_subflows{of}found=\"alone\"}} 1"),
            format!("narrows_detected_subflows{of}found=\"undecided\"}} 0"),
            format!("narrows_detected_groups{of}subflows=\"2\"}} 1"),
            "narrows_undetected_connections{netns=\"current\"} 0".into(),
            "narrows_decisions_total{control=\"nr_lia_xc\",build=\"registered\"} 7".into(),
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    /// The parts of `text` that follow `start`, each up to the first character that no name has.
    fn names<'a>(text: &'a str, start: &'static str) -> impl Iterator<Item = &'a str> {
        text.match_indices(start).map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        })
    }

    /// Is it about how much counters rose? Then of registered builds only: the count of an older one
    /// comes when it is replaced, and goes with its last socket.
    fn counts(expr: &str) -> bool {
        let rise = ["rate(narrows_", "increase(narrows_"].iter().any(|of| expr.contains(of));
        assert!(!rise || expr.contains("build=\"registered\""), "{expr}");
        rise
    }

    #[test]
    fn the_dashboard_asks_for_what_is_exported() {
        let text = full().prometheus();
        // Prometheus adds the host.
        let labels = |metric: &str| {
            let sample = text.lines().find(|line| {
                line.strip_prefix(metric).is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            sample.unwrap_or_else(|| panic!("{metric} is not exported")).to_owned()
                + "{instance=\"host\"}"
        };
        let dashboard = include_str!("../../../../packaging/grafana.json");
        let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let mut asked: Vec<&str> = Vec::new();
        for target in targets {
            let expr = target["expr"].as_str().unwrap();
            let metrics: Vec<&str> = names(expr, "narrows_").collect();
            assert!(!metrics.is_empty(), "{expr}");
            assert_eq!(counts(expr), metrics.iter().all(|metric| metric.ends_with("_total")));
            let by =
                expr.split_once("by (").map_or("", |(_, rest)| rest.split_once(')').unwrap().0);
            let shown = target["legendFormat"].as_str().unwrap();
            let shown = shown.split("{{").skip(1).map(|rest| rest.split_once("}}").unwrap().0);
            for label in by.split(", ").filter(|label| !label.is_empty()).chain(shown) {
                for metric in &metrics {
                    let has = labels(metric).contains(&format!("{label}=\""));
                    assert!(has, "{metric} has no label {label}: {expr}");
                }
            }
            metrics.iter().for_each(|metric| drop(labels(metric)));
            asked.extend(metrics);
        }
        let hosts = dashboard["templating"]["list"][1]["definition"].as_str().unwrap();
        asked.extend(names(hosts, "narrows_"));
        asked.iter().for_each(|metric| drop(labels(metric)));
        assert!(asked.contains(&"narrows_detected_groups"));
    }

    #[test]
    fn every_metric_is_in_the_guide() {
        let guide = include_str!("../../../../docs/guide/watch.md");
        assert!(guide.lines().any(counts), "docs/guide/watch.md has no rule");
        for line in full().prometheus().lines().filter(|line| line.starts_with("# TYPE ")) {
            let metric = line.split(' ').nth(2).unwrap();
            assert!(guide.contains(&format!("`{metric}`")), "docs/guide/watch.md has no {metric}");
        }
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
