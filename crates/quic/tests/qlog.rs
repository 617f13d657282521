//! The qlog file of a connection whose paths a detector finds apart.

mod common;

use common::*;
use narrows_quic::QlogVersion;
use narrows_quic_sim::{Side, Sim};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A file in memory that is full after so many bytes.
#[derive(Clone)]
struct File(Arc<Mutex<Vec<u8>>>, usize);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap();
        if file.len() + bytes.len() > self.1 {
            return Err(ErrorKind::StorageFull.into());
        }
        file.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File {
    fn of(bytes: usize) -> File {
        File(Arc::default(), bytes)
    }

    /// Leaves it where scripts/test-qlog reads it.
    fn keep(&self, name: &str) {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(file, &*self.0.lock().unwrap()).unwrap();
    }

    /// Its records (RFC 7464): each begins with a record separator and ends with a line feed.
    fn records(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let records = text.strip_prefix('\u{1e}').expect("a record separator").split('\u{1e}');
        let whole = |record: &str| {
            assert!(record.ends_with('\n'), "{record:?}");
            serde_json::from_str(record).unwrap_or_else(|error| panic!("{error}: {record}"))
        };
        records.map(whole).collect()
    }
}

/// Is `value` of the type that the drafts' CDDL calls so?
fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "text" => value.is_string(),
        "float64" | "float32" => value.is_number(),
        "uint64" => value.is_u64(),
        "bool" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => panic!("{kind}"),
    }
}

/// Is `value` a map with the fields of a definition, `? NAME: TYPE` for one that may be missing, and no
/// others?
fn check(what: &str, value: &Value, definition: &str) {
    let map = value.as_object().unwrap_or_else(|| panic!("{what}: {value}"));
    let mut known = Vec::new();
    for line in definition.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (optional, field) = match line.strip_prefix("? ") {
            Some(field) => (true, field),
            None => (false, line),
        };
        let (name, kind) = field.split_once(": ").unwrap();
        match map.get(name) {
            Some(of) => assert!(is_a(kind, of), "{what}: {name} is {of}, expected {kind}"),
            None => assert!(optional, "{what}: no {name} in {value}"),
        }
        known.push(name);
    }
    let unknown: Vec<_> = map.keys().filter(|name| !known.contains(&&***name)).collect();
    assert!(unknown.is_empty(), "{what}: unknown {unknown:?}");
}

/// By draft-ietf-quic-qlog-main-schema-13, QlogFileSeq, TraceSeq, CommonFields and Event, and
/// draft-ietf-quic-qlog-quic-events-12, QUICRecoveryMetricsUpdated and QUICCongestionStateUpdated, without
/// their extensions.
fn follows_the_drafts(records: &[Value]) {
    let (file, events) = records.split_first().unwrap();
    check(
        "the file",
        file,
        "file_schema: text
         serialization_format: text
         ? title: text
         ? description: text
         trace: object",
    );
    let trace = &file["trace"];
    check(
        "its trace",
        trace,
        "? title: text
         ? description: text
         ? common_fields: object
         ? vantage_point: object
         event_schemas: array",
    );
    let schemas: Vec<_> = trace["event_schemas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|uri| uri.as_str().unwrap())
        .collect();
    let namespaces: Vec<&str> = schemas
        .iter()
        .map(|uri| uri.rsplit(':').next().unwrap().split('-').next().unwrap())
        .collect();
    for event in events {
        check(
            "an event",
            event,
            "time: float64
             name: text
             data: object
             ? tuple: text",
        );
        let name = event["name"].as_str().unwrap();
        let namespace = name.split_once(':').unwrap().0;
        assert!(namespaces.contains(&namespace), "{name} is of none of {schemas:?}");
        match name {
            "quic:recovery_metrics_updated" => check(
                name,
                &event["data"],
                "? min_rtt: float32
                 ? smoothed_rtt: float32
                 ? latest_rtt: float32
                 ? rtt_variance: float32
                 ? congestion_window: uint64
                 ? bytes_in_flight: uint64
                 ? ssthresh: uint64
                 ? packets_in_flight: uint64
                 ? pacing_rate: uint64",
            ),
            "quic:congestion_state_updated" => check(
                name,
                &event["data"],
                "? old: text
                 new: text
                 ? trigger: text",
            ),
            _ => assert_eq!(namespace, "narrows", "{name} is not checked"),
        }
    }
}

/// The data of the events of ours called `name`.
fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    let name = format!("narrows:{name}");
    events.iter().filter(|event| event["name"] == *name).map(|event| &event["data"]).collect()
}

#[test]
fn a_file_has_the_paths_the_decision_and_the_groups() {
    let (file, factory) = (File::of(usize::MAX), factory("lia+xcorr"));
    let reference = Instant::now();
    factory.qlog(QlogVersion::Draft13, Box::new(file.clone()), reference).unwrap();
    let twice = factory.qlog(QlogVersion::Draft13, Box::new(File::of(usize::MAX)), Instant::now());
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let mut sim = Sim::new(1);
    // The simulator's time 0 lies between the file's and now.
    let late = reference.elapsed();
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let mut rivals = Vec::new();
    for path in &paths {
        rivals.push(sim.connect(setup(vec![*path], Side::Client, &self::factory("reno"))));
    }
    let connection = sim.connect(setup(paths, Side::Client, &factory));
    sim.run(seconds(20));
    let apart = |factory: &narrows_quic::Factory| {
        let paths = factory.snapshot().paths;
        paths.iter().map(|path| path.coupled).eq([0b01, 0b10])
    };
    assert!(apart(&factory), "{:?}", factory.snapshot());
    sim.close_path(connection, 1);
    sim.run(seconds(25));

    file.keep("draft13.sqlog");
    let records = file.records();
    let (head, events) = records.split_first().unwrap();
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(head["serialization_format"], "application/qlog+json-seq");
    let reference = &head["trace"]["common_fields"]["reference_time"];
    assert_eq!(*reference, json!({ "clock_type": "monotonic", "epoch": "unknown" }));
    let times: Vec<f64> = events.iter().map(|event| event["time"].as_f64().unwrap()).collect();
    // Microseconds, rounded.
    let end = 25_000.001 + late.as_secs_f64() * 1e3;
    assert!(times.is_sorted() && times[0] >= 0.0 && times[times.len() - 1] <= end, "{end}");

    let slots =
        |name| named(events, name).iter().map(|data| data["slot"].clone()).collect::<Vec<_>>();
    assert_eq!(slots("path_joined"), [0, 1]);
    assert_eq!(slots("path_left"), [1]);
    let groups: Vec<_> =
        named(events, "groups_updated").iter().map(|data| &data["groups"]).collect();
    // The first path, the second beside it, as nothing is known, and the first again.
    assert_eq!(*groups[0], json!([[0]]));
    assert_eq!(*groups[1], json!([[0], [1]]));
    assert_eq!(**groups.last().unwrap(), json!([[0]]));
    assert!(groups.windows(2).all(|pair| pair[0] != pair[1]), "{groups:?}");

    let decisions = named(events, "detector_decided");
    let numbers = decisions.iter().map(|data| data["decision"].as_u64().unwrap());
    assert!(numbers.clone().is_sorted_by(|one, next| one < next) && numbers.count() > 1);
    let apart = decisions.iter().find(|data| data["pairs"][0]["shared"] == false).unwrap();
    assert_eq!(apart["pairs"][0]["slots"], json!([0, 1]));
    assert!(apart["pairs"][0]["confidence"].as_f64().is_some_and(|sure| sure > 0.5), "{apart}");
    assert_eq!(apart["places"].as_array().map(Vec::len), Some(2));

    follows_the_drafts(&records);
    for slot in ["0", "1"] {
        let of = |name: &str| -> Vec<&Value> {
            let of = events.iter().filter(|event| event["name"] == name && event["tuple"] == slot);
            of.map(|event| &event["data"]).collect()
        };
        let metrics = of("quic:recovery_metrics_updated");
        assert!(metrics.len() > 100, "{}", metrics.len());
        assert!(
            metrics
                .iter()
                .all(|data| data["congestion_window"].as_u64().is_some_and(|cwnd| cwnd > 0))
        );
        let rtt = metrics.last().unwrap()["smoothed_rtt"].as_f64().unwrap();
        assert!((40.0..160.0).contains(&rtt), "{rtt} ms");
        // Slow start, its first loss, and from then on by turns.
        let states = of("quic:congestion_state_updated");
        assert_eq!(*states[0], json!({ "new": "slow_start" }));
        assert!(states.windows(2).all(|two| two[0]["new"] == two[1]["old"]), "{states:?}");
        assert!(states.iter().all(|state| state["old"] != state["new"]));
        for new in ["recovery", "congestion_avoidance"] {
            assert!(states.iter().any(|state| state["new"] == new), "{new}: {states:?}");
        }
    }
}

/// The connections that qvis makes of a file whose name ends with `.sqlog`, each with its events, as its
/// visualizations/src (72c8c4b) does: textsequencejsontoqlog.ts, QlogLoader.ts and QlogLoaderV2.ts.
fn in_qvis(records: &[Value]) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let (header, events) = records.split_first().ok_or("no entries")?;
    if header.get("qlog_version").is_none()
        || header["qlog_format"] != "JSON-SEQ"
        || header.get("trace").is_none()
    {
        return Err("no proper header".to_owned());
    }
    let version = header["qlog_version"].as_str().ok_or("no text")?;
    if !["draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3"].contains(&version) {
        return Err(format!("unknown version {version}"));
    }
    let common = &header["trace"]["common_fields"];
    if common["time_format"] != "relative" || !common["reference_time"].is_number() {
        return Err(format!("times are not understood: {common}"));
    }
    // In groups if the first event has one; one without is in the group `undefined` then.
    let split = events.first().ok_or("no event")?.get("group_id").is_some();
    let mut connections = BTreeMap::<String, Vec<Value>>::new();
    for event in events {
        let group = event.get("group_id").map_or("undefined", |id| id.as_str().unwrap());
        connections
            .entry(if split { group.into() } else { String::new() })
            .or_default()
            .push(event.clone());
    }
    for (group, events) in &connections {
        let time = |event: &Value| event["time"].as_f64().unwrap();
        if !events.is_sorted_by(|one, next| time(one) <= time(next)) {
            return Err(format!("{group} is not in the order of time"));
        }
    }
    Ok(connections)
}

#[test]
fn qvis_loads_a_file_of_its_version_with_a_connection_for_each_path() {
    let records = |version, name| {
        let (file, factory) = (File::of(usize::MAX), factory("lia+xcorr"));
        factory.qlog(version, Box::new(file.clone()), Instant::now()).unwrap();
        let mut sim = Sim::new(1);
        let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        transfer(&mut sim, paths, Side::Client, &factory, 20_000_000);
        sim.run(seconds(15));
        file.keep(name);
        file.records()
    };
    assert_eq!(
        in_qvis(&records(QlogVersion::Draft13, "draft13-transfer.sqlog")).unwrap_err(),
        "no proper header"
    );

    let connections = in_qvis(&records(QlogVersion::V03, "v03.sqlog")).unwrap();
    assert_eq!(connections.keys().collect::<Vec<_>>(), ["coupling", "path 0", "path 1"]);
    for path in ["path 0", "path 1"] {
        // Its Connection.lookup, with the names of QlogSchema02.ts, and what CongestionGraphD3Renderer.ts reads.
        let lookup = |category: &str, name: &str| -> Vec<&Value> {
            let name = format!("{category}:{name}");
            let events = connections[path].iter().filter(|event| event["name"] == *name);
            events.map(|event| &event["data"]).collect()
        };
        let metrics = lookup("recovery", "metrics_updated");
        assert!(metrics.len() > 100, "{path}: {}", metrics.len());
        for data in &metrics {
            assert!(
                data["congestion_window"].is_u64() && data["bytes_in_flight"].is_u64(),
                "{data}"
            );
        }
        assert!(metrics.iter().any(|data| data["smoothed_rtt"].is_number()));
        let states = lookup("recovery", "congestion_state_updated");
        assert_eq!(*states[0], json!({ "new": "slow_start" }));
        assert_eq!(metrics.len() + states.len(), connections[path].len());
    }
    let ours = connections["coupling"].iter().map(|event| event["name"].as_str().unwrap());
    assert!(ours.clone().all(|name| name.starts_with("narrows:")));
    assert!(ours.clone().any(|name| name == "narrows:detector_decided"));
}

#[test]
fn a_full_disk_ends_the_file_and_not_the_connection() {
    let (file, factory) = (File::of(2000), factory("lia"));
    factory.qlog(QlogVersion::Draft13, Box::new(file.clone()), Instant::now()).unwrap();
    let mut sim = Sim::new(1);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let connection = transfer(&mut sim, paths, Side::Client, &factory, 2_000_000);
    sim.run(seconds(5));
    assert!(sim.finished(connection).is_some());
    assert!((1000..=2000).contains(&file.0.lock().unwrap().len()));
    let none = self::factory("lia").qlog(QlogVersion::V03, Box::new(File::of(0)), Instant::now());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::StorageFull);
}
