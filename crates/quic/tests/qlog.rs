//! The qlog file of a connection whose paths a detector finds apart.

mod common;

use common::*;
use narrows_quic_sim::{Side, Sim};
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Write};
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

/// The data of the events called `name`.
fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    let name = format!("narrows:{name}");
    events.iter().filter(|event| event["name"] == *name).map(|event| &event["data"]).collect()
}

#[test]
fn a_file_has_the_paths_the_decision_and_the_groups() {
    let (file, factory) = (File::of(usize::MAX), factory("lia+xcorr"));
    let reference = Instant::now();
    factory.qlog(Box::new(file.clone()), reference).unwrap();
    let twice = factory.qlog(Box::new(File::of(usize::MAX)), Instant::now());
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

    for slot in [0, 1] {
        let metrics = named(events, "metrics_updated");
        let of: Vec<_> = metrics.iter().filter(|data| data["slot"] == slot).collect();
        assert!(of.len() > 100, "{}", of.len());
        assert!(
            of.iter().all(|data| data["congestion_window"].as_u64().is_some_and(|cwnd| cwnd > 0))
        );
        let rtt = of.last().unwrap()["smoothed_rtt"].as_f64().unwrap();
        assert!((40.0..160.0).contains(&rtt), "{rtt} ms");
    }
}

#[test]
fn a_full_disk_ends_the_file_and_not_the_connection() {
    let (file, factory) = (File::of(2000), factory("lia"));
    factory.qlog(Box::new(file.clone()), Instant::now()).unwrap();
    let mut sim = Sim::new(1);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let connection = transfer(&mut sim, paths, Side::Client, &factory, 2_000_000);
    sim.run(seconds(5));
    assert!(sim.finished(connection).is_some());
    assert!((1000..=2000).contains(&file.0.lock().unwrap().len()));
    let none = self::factory("lia").qlog(Box::new(File::of(0)), Instant::now());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::StorageFull);
}
