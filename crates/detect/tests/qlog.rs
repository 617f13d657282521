//! Logs of QUIC: what is read of each of its forms, and what each mistake is told as.

mod wire;

use narrows_detect::{Input, Limits, Observation, Signal, Source};
use wire::observations;

const ALL: Limits = Limits { flows: 16, packets: 1, at: None };

fn open(text: &str) -> Result<Source, String> {
    Source::open(Input::bytes("q.sqlog", text.as_bytes()), None, ALL).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    open(text).unwrap_err()
}

/// The header of a log whose times have this reference.
fn head(common: &str) -> String {
    format!(
        "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"NDJSON\",\"trace\":{{\"vantage_point\":{{\"type\":\"server\"}},\
         \"common_fields\":{{{common}}}}}}}\n"
    )
}

const DATED: &str = "\"time_format\":\"relative\",\"reference_time\":1700000000000";

/// An event of draft-02, a line.
fn event(ms: f64, name: &str, data: &str) -> String {
    format!("{{\"time\":{ms},\"name\":\"{name}\",\"data\":{{{data}}}}}\n")
}

fn metrics(ms: f64, data: &str) -> String {
    event(ms, "recovery:metrics_updated", data)
}

fn sent(ms: f64, path: u32, number: u32) -> String {
    let header = format!("\"packet_type\":\"1RTT\",\"packet_number\":{number},\"path_id\":{path}");
    event(
        ms,
        "transport:packet_sent",
        &format!("\"header\":{{{header}}},\"raw\":{{\"length\":1200}}"),
    )
}

fn acked(ms: f64, path: u32, largest: u32) -> String {
    let frame = format!(
        "{{\"frame_type\":\"path_ack\",\"path_id\":{path},\"acked_ranges\":[[0,{largest}]]}}"
    );
    let header = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":7}";
    event(ms, "transport:packet_received", &format!("{header},\"frames\":[{frame}]"))
}

fn told(flow: usize, now_us: u64, delay_us: i32, delivered: u32) -> Observation {
    Observation { flow, now_us, delay_us: Some(delay_us), delivered, lost: 0 }
}

fn lost(flow: usize, now_us: u64) -> Observation {
    Observation { flow, now_us, delay_us: None, delivered: 0, lost: 1 }
}

#[test]
fn every_form_tells_the_same() {
    // NDJSON of draft-02, with times since the beginning.
    let lines = [
        head(DATED),
        metrics(0.0, "\"latest_rtt\":50.5,\"path_id\":0"),
        metrics(2.25, "\"latest_rtt\":80,\"path_id\":1,\"congestion_window\":14720"),
        metrics(4.0, "\"congestion_window\":14720,\"path_id\":1"),
        event(5.0, "recovery:packet_lost", "\"header\":{\"packet_number\":3,\"path_id\":1}"),
        metrics(7.5, "\"latest_rtt\":\"51.25\",\"path_id\":0"),
    ]
    .concat();
    // JSON text sequences of the newest draft, with times since the event before.
    let sequence = "\x1e{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\
        \"application/qlog+json-seq\",\"trace\":{\"common_fields\":{\"time_format\":\"relative_to_previous_event\",\
        \"reference_time\":{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\",\"wall_clock_time\":\
        \"2026-01-02T03:04:05.678+01:00\"}},\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\"]}}\n\
        \x1e{\"data\":{\"latest_rtt\":50.5},\"name\":\"quic:recovery_metrics_updated\",\"tuple\":\"\",\n\"time\":0.5}\n\
        \x1e{\"time\":2.25,\"name\":\"quic:recovery_metrics_updated\",\"tuple\":\"b\",\"data\":{\"latest_rtt\":80}}\n\
        \x1e{\"time\":2.75,\"name\":\"quic:packet_lost\",\"tuple\":\"b\",\"data\":{\"header\":{\"packet_number\":3}}}\n\
        \x1e{\"time\":2.5,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"latest_rtt\":51.25}}\n";
    // As picoquic and mvfst write draft-00: arrays, in microseconds; the last is empty.
    let arrays = "{ \"qlog_version\": \"draft-00\", \"title\": \"x\", \"traces\": [\n\
        { \"vantage_point\": { \"type\": \"client\" }, \"description\": [[\"]\\\"\"]], \"event_fields\": [\"relative_time\", \
        \"path_id\", \"CATEGORY\", \"EVENT_TYPE\", \"TRIGGER\", \"DATA\"],\n\
        \"configuration\": {\"time_units\": \"us\"}, \"common_fields\": {\"reference_time\": \"11001\"},\n\"events\": [\n\
        [\"0\", 0, \"recovery\", \"metric_update\", \"default\", {\"latest_rtt\": 50500}],\n\
        [2250, 1, \"RECOVERY\", \"METRIC_UPDATE\", \"DEFAULT\", {\"latest_rtt\": 80000, \"cwnd\": 9}],\n\
        [5000, 1, \"RECOVERY\", \"PACKET_LOST\", \"UNKNOWN\", {\"packet_number\": \"3\"}],\n\
        [7500, 0, \"recovery\", \"metrics_updated\", \"default\", {\"latest_rtt\": 51250}],\n[]]}]}\n";
    // With a byte order mark, as some programs write text.
    let marked = format!("\u{feff}{lines}");
    for text in [&lines, sequence, arrays, &marked] {
        let source = open(text).unwrap();
        let recording = source.recording();
        assert_eq!(recording.signal, Signal::Rtt);
        assert_eq!(
            observations(&source),
            [told(0, 0, 0, 1), told(1, 2_250, 0, 1), lost(1, 5_000), told(0, 7_500, 750, 1)],
            "{text}"
        );
        assert_eq!(recording.flows.len(), 2, "{text}");
        assert!((recording.span.1 - 0.0075).abs() < 1e-6, "{recording:?}");
        assert!((recording.traffic[1].min_rtt_ms.unwrap() - 80.0).abs() < 1e-6);
    }
}

/// What picoquic writes of a connection with two paths (its picoquictest/multipath_qlog_ref.txt and
/// loglib/qlog.c); the numbers are ours. A path has a round-trip time of 0 before it has one, and all metrics are
/// there again when the path is another.
#[test]
fn picoquics_log() {
    let text = "{ \"qlog_version\": \"draft-00\", \"title\": \"picoquic\", \"traces\": [\n\
        { \"vantage_point\": { \"name\": \"backend-67\", \"type\": \"server\" },\n\
        \"title\": \"picoquic\", \"description\": \"01\",\"event_fields\": [\"relative_time\", \"path_id\", \"category\", \"event\", \"data\"],\n\
        \"configuration\": {\"time_units\": \"us\"},\n\
        \"common_fields\": { \"protocol_type\": \"QUIC_HTTP3\", \"reference_time\": \"5000\"},\n\"events\": [\n\
        [0, 0, \"transport\", \"datagram_received\", { \"byte_length\": 1252, \"addr_from\" : {\"ip_v4\": \"10.0.0.2\", \"port_v4\":1234}}],\n\
        [0, 0, \"transport\", \"packet_sent\", { \"packet_type\": \"initial\", \"header\": { \"packet_size\": 162, \"packet_number\": 0 }, \
        \"frames\": [{ \n    \"frame_type\": \"crypto\", \"offset\": 0, \"length\": 123}]}],\n\
        [0, 0, \"transport\", \"packet_sent\", { \"packet_type\": \"1RTT\", \"header\": { \"packet_size\": 1400, \"packet_number\": 0, \
        \"dcid\": \"09\", \"key_phase\": 0 }, \"frames\": [{ \n    \"frame_type\": \"ping\"}, { \n    \"frame_type\": \"padding\"}]}],\n\
        [0, 0, \"recovery\", \"metrics_updated\", {\"cwnd\": 15360,\"bytes_in_flight\": 1774}],\n\
        [20000, 0, \"transport\", \"packet_received\", { \"packet_type\": \"1RTT\", \"header\": { \"packet_size\": 55, \"packet_number\": 2 }, \
        \"frames\": [{ \n    \"frame_type\": \"time_stamp\", \"time_stamp\": 3146}, { \n    \"frame_type\": \"ack_mp\", \"path_id\": 0, \
        \"ack_delay\": 0, \"acked_ranges\": [[0, 0]]}]}],\n\
        [20000, 0, \"recovery\", \"metrics_updated\", {\"pacing_rate\": 7300291,\"smoothed_rtt\": 20000,\"min_rtt\": 20000,\"latest_rtt\": 20000}],\n\
        [20000, 0, \"transport\", \"spin_bit_updated\", { \"state\": true }],\n\
        [21000, 1, \"transport\", \"packet_sent\", { \"packet_type\": \"1RTT\", \"header\": { \"packet_size\": 1236, \"packet_number\": 0 }, \
        \"frames\": [{ \n    \"frame_type\": \"path_challenge\", \"path_challenge\": \"00\"}]}],\n\
        [21000, 1, \"recovery\", \"metrics_updated\", {\"pacing_rate\": 10016000000,\"bytes_in_flight\": 1252,\"min_rtt\": 0,\"latest_rtt\": 0}],\n\
        [22000, 0, \"transport\", \"packet_sent\", { \"packet_type\": \"1RTT\", \"header\": { \"packet_size\": 1400, \"packet_number\": 1 }, \
        \"frames\": [{ \n    \"frame_type\": \"stream\", \"id\": 4, \"offset\": 0, \"length\": 1350, \"fin\": false }]}],\n\
        [22000, 0, \"recovery\", \"metrics_updated\", {\"pacing_rate\": 7191011,\"smoothed_rtt\": 20000,\"min_rtt\": 20000,\"latest_rtt\": 20000}],\n\
        [51000, 0, \"transport\", \"packet_received\", { \"packet_type\": \"1RTT\", \"header\": { \"packet_size\": 55, \"packet_number\": 3 }, \
        \"frames\": [{ \n    \"frame_type\": \"ack_mp\", \"path_id\": 0, \"ack_delay\": 0, \"acked_ranges\": [[0, 0]]}, { \n    \"frame_type\": \
        \"ack_mp\", \"path_id\": 1, \"ack_delay\": 0, \"acked_ranges\": [[0, 0]]}]}],\n\
        [51000, 1, \"recovery\", \"metrics_updated\", {\"bytes_in_flight\": 0,\"smoothed_rtt\": 30000,\"min_rtt\": 30000,\"latest_rtt\": 30000}],\n\
        [52000, 0, \"recovery\", \"packet_lost\", {\n    \"packet_type\" : \"1RTT\",\n    \"packet_number\" : 1,\n    \"trigger\": \"timer\",\n    \
        \"header\": {\n        \"packet_type\" : \"1RTT\",\n        \"packet_number\" : 1,\n        \"packet_size\" : 1400}}]]}]}\n";
    let source = open(text).unwrap();
    assert_eq!(
        observations(&source),
        [told(0, 20_000, 0, 1), told(1, 51_000, 0, 1), lost(0, 52_000)]
    );
    let [first, second] = source.recording().traffic[..] else { panic!("two paths") };
    assert_eq!((first.packets, first.bytes), (2, Some(2800)));
    assert_eq!((second.packets, second.bytes), (1, Some(1236)));
    assert!((second.min_rtt_ms.unwrap() - 30.0).abs() < 1e-6, "{second:?}");
    assert_eq!(source.recording().notes, [""; 0]);
}

/// What mvfst writes (its quic/logging/QLoggerTypes.cpp and test/QLoggerTest.cpp), names in alphabetical order;
/// the numbers are ours. Times are of its own clock, as text; losses are counts.
#[test]
fn mvfsts_log() {
    let text = "{\"description\": \"Converted from file\", \"qlog_version\": \"draft-00\", \"summary\": {\"max_duration\": 87000, \
        \"total_event_count\": 9, \"trace_count\": 1}, \"title\": \"mvfst qlog\", \"traces\": [{\n\
        \"common_fields\": {\"dcid\": \"15\", \"protocol_type\": \"QUIC_HTTP3\", \"reference_time\": \"0\", \"scid\": \"\"},\n\
        \"configuration\": {\"time_offset\": 0, \"time_units\": \"us\"}, \"description\": \"Generated qlog from connection\",\n\
        \"event_fields\": [\"relative_time\", \"category\", \"event\", \"data\"], \"events\": [\n\
        [\"103453000000\", \"transport\", \"packet_sent\", {\"frames\": [{\"fin\": false, \"frame_type\": \"stream\", \"length\": 1200, \
        \"offset\": 0, \"stream_id\": \"0\"}], \"header\": {\"packet_number\": 7, \"packet_size\": 1252}, \"packet_type\": \"1RTT\"}],\n\
        [\"103453040000\", \"transport\", \"packet_received\", {\"frames\": [{\"ack_delay\": 12, \"acked_ranges\": [[0, 7]], \
        \"frame_type\": \"ack\"}], \"header\": {\"packet_number\": 5, \"packet_size\": 40}, \"packet_type\": \"1RTT\"}],\n\
        [\"103453040000\", \"transport\", \"packet_ack\", {\"packet_num\": 7, \"packet_num_space\": \"2\"}],\n\
        [\"103453040000\", \"recovery\", \"metric_update\", {\"ack_delay\": 12, \"latest_rtt\": 40000, \"min_rtt\": 40000, \"smoothed_rtt\": 40000}],\n\
        [\"103453040000\", \"metric_update\", \"congestion_metric_update\", {\"bytes_in_flight\": 0, \"congestion_event\": \"packet ack\", \
        \"current_cwnd\": 14000, \"recovery_state\": \"\", \"state\": \"\"}],\n\
        [\"103453041000\", \"loss\", \"packets_lost\", {\"largest_lost_packet_num\": 6, \"lost_bytes\": 2504, \"lost_packets\": 2}],\n\
        [\"103453042000\", \"transport\", \"packet_sent\", {\"frames\": [], \"header\": {\"packet_number\": 8, \"packet_size\": 1252}, \
        \"packet_type\": \"1RTT\"}],\n\
        [\"103453087000\", \"transport\", \"packet_received\", {\"frames\": [{\"ack_delay\": 9, \"acked_ranges\": [[8, 8]], \
        \"frame_type\": \"ack\"}], \"header\": {\"packet_number\": 6, \"packet_size\": 40}, \"packet_type\": \"1RTT\"}],\n\
        [\"103453087000\", \"recovery\", \"metric_update\", {\"ack_delay\": 9, \"latest_rtt\": 45000, \"min_rtt\": 40000, \"smoothed_rtt\": 40625}]],\n\
        \"title\": \"mvfst qlog from single connection\", \"vantage_point\": {\"name\": \"client\", \"type\": \"client\"}}]}\n";
    let source = open(text).unwrap();
    let two_lost = Observation { lost: 2, ..lost(0, 41_000) };
    assert_eq!(observations(&source), [told(0, 40_000, 0, 1), two_lost, told(0, 87_000, 5_000, 1)]);
    let traffic = source.recording().traffic[0];
    assert_eq!((traffic.packets, traffic.bytes), (2, Some(2504)));
}

/// What quiche writes (its qlog crate and quiche/src/recovery/mod.rs), as JSON text sequences of 0.3 and of the
/// schema of today; the numbers are ours. It logs what of its metrics has changed, and losses as one of these.
#[test]
fn quiches_log() {
    let about = "\"title\":\"quiche-server qlog\",\"description\":\"quiche-server qlog id=a1\"";
    let old = format!(
        "\u{1e}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",{about},\"trace\":{{\"vantage_point\":{{\"type\":\"server\"}},\
         {about},\"configuration\":{{\"time_offset\":0.0}}}}}}\n"
    );
    let new = format!(
        "\u{1e}{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\"JSON-SEQ\",{about},\"trace\":\
         {{{about},\"vantage_point\":{{\"type\":\"server\"}},\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\"],\
         \"common_fields\":{{\"reference_time\":{{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\",\
         \"wall_clock_time\":\"2026-01-02T03:04:05.678Z\"}}}}}}}}\n"
    );
    let sent = |ms: f64, number: u32| {
        let header = format!("\"packet_type\":\"1RTT\",\"packet_number\":{number}");
        let raw = "\"raw\":{\"length\":1200,\"payload_length\":1180},\"send_at_time\":1.0";
        event(ms, "transport:packet_sent", &format!("\"header\":{{{header}}},{raw},\"frames\":[]"))
    };
    let acked = |ms: f64, ranges: &str| {
        let header = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":4}";
        let ack = format!("{{\"frame_type\":\"ack\",\"ack_delay\":0.1,\"acked_ranges\":{ranges}}}");
        let raw = "\"raw\":{\"length\":40,\"payload_length\":20}";
        event(ms, "transport:packet_received", &format!("{header},{raw},\"frames\":[{ack}]"))
    };
    let events = [
        sent(0.0, 3),
        metrics(0.0, "\"congestion_window\":12000,\"bytes_in_flight\":1200"),
        acked(31.5, "[[0,3]]"),
        metrics(
            31.5,
            "\"min_rtt\":31.5,\"smoothed_rtt\":31.5,\"latest_rtt\":31.5,\"rtt_variance\":15.75",
        ),
        sent(32.0, 5),
        metrics(32.0, "\"bytes_in_flight\":2400"),
        // A range of one packet, of which the first is not there.
        acked(66.0, "[[5]]"),
        metrics(66.0, "\"cf_lost_packets\":{\"total\":3,\"delta\":3},\"latest_rtt\":34.0"),
        metrics(
            67.0,
            "\"cf_lost_packets\":{\"total\":4,\"delta\":1},\"cf_lost_bytes\":{\"total\":4800,\"delta\":1200}",
        ),
    ];
    let events = events.map(|event| format!("\u{1e}{event}")).concat();
    let renamed = events.replace("transport:", "quic:").replace("recovery:", "quic:recovery_");
    for text in [old + &events, new + &renamed] {
        let source = open(&text).unwrap();
        let seen = [
            told(0, 31_500, 0, 1),
            told(0, 66_000, 2_500, 2),
            Observation { lost: 3, ..lost(0, 66_000) },
            lost(0, 67_000),
        ];
        assert_eq!(observations(&source), seen, "{text}");
        let traffic = source.recording().traffic[0];
        assert_eq!((traffic.packets, traffic.bytes), (2, Some(2400)));
    }
}

#[test]
fn a_value_once_more_is_a_sample_if_something_was_acknowledged() {
    let text = [
        head(DATED),
        // What stands for a round-trip time before there is one.
        metrics(0.0, "\"latest_rtt\":333,\"smoothed_rtt\":333"),
        sent(0.0, 0, 1),
        metrics(40.0, "\"latest_rtt\":40"),
        metrics(45.0, "\"latest_rtt\":40,\"bytes_in_flight\":2400"),
        sent(45.0, 0, 3),
        acked(85.0, 0, 1),
        acked(85.0, 0, 3),
        metrics(85.0, "\"latest_rtt\":40,\"bytes_in_flight\":1200"),
        metrics(86.0, "\"latest_rtt\":40,\"bytes_in_flight\":0"),
    ];
    let source = open(&text.concat()).unwrap();
    assert_eq!(observations(&source), [told(0, 40_000, 0, 1), told(0, 85_000, 0, 3)]);
    let traffic = source.recording().traffic[0];
    assert_eq!((traffic.packets, traffic.bytes), (2, Some(2400)));
    // Where no acknowledgements are logged it may be one.
    let text = [0.0, 20.0, 40.0].map(|ms| metrics(ms, "\"latest_rtt\":40"));
    let source = open(&[head(DATED), text.concat()].concat()).unwrap();
    assert_eq!(observations(&source), [0, 20_000, 40_000].map(|at| told(0, at, 0, 1)));
    assert_eq!(source.recording().traffic[0].packets, 3);
}

#[test]
fn a_loss_without_a_path_is_of_the_packet_of_its_number_that_was_sent_last() {
    let lost_without = |ms, number| {
        let header = format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}");
        event(ms, "quic:packet_lost", &header)
    };
    let text = [
        head(DATED),
        metrics(0.0, "\"latest_rtt\":40,\"path_id\":0"),
        metrics(0.0, "\"latest_rtt\":40,\"path_id\":1"),
        sent(1.0, 0, 7),
        sent(2.0, 0, 8),
        lost_without(60.0, 7),
        sent(500.0, 1, 7),
        lost_without(600.0, 7),
        lost_without(601.0, 8),
        // Of a packet that the log does not have.
        lost_without(602.0, 9),
    ];
    let seen = observations(&open(&text.concat()).unwrap());
    assert_eq!(seen[2..], [lost(0, 60_000), lost(1, 600_000), lost(0, 601_000)]);
}

#[test]
fn without_logged_times_packets_and_their_acknowledgements_have_them() {
    let packets =
        |ms| [sent(ms, 0, 1), sent(ms, 1, 1), acked(ms + 30.0, 0, 1), acked(ms + 90.0, 1, 1)];
    let more = [sent(100.0, 0, 5), acked(131.0, 0, 5)];
    let seen = [told(0, 30_000, 0, 1), told(1, 90_000, 0, 1), told(0, 131_000, 1_000, 4)];
    let text = [&[head(DATED)][..], &packets(0.0), &more].concat().concat();
    let source = open(&text).unwrap();
    assert_eq!(observations(&source), seen);
    assert_eq!(
        source.recording().notes,
        ["q.sqlog: no latest_rtt; round-trip times are from packets to their acknowledgements"]
    );
    // By their events, and not those of the handshake.
    let acked = |ms, space: &str, largest: u32| {
        let numbers =
            format!("\"packet_number_space\":\"{space}\",\"packet_numbers\":[0,{largest}]");
        event(ms, "quic:packets_acked", &numbers)
    };
    let packets = [sent(0.0, 0, 1), acked(5.0, "handshake", 1), acked(30.0, "application data", 1)];
    let source = open(&[head(DATED), packets.concat()].concat()).unwrap();
    assert_eq!(observations(&source), [told(0, 30_000, 0, 1)]);
    // As xquic's: the times do not say of which of two paths they are.
    let unplaced = [metrics(140.0, "\"latest_rtt\":31000"), metrics(141.0, "\"latest_rtt\":90000")];
    let source = open(&[text, unplaced.concat()].concat()).unwrap();
    assert_eq!(observations(&source), seen);
    assert!(source.recording().notes[0].contains("does not say of which path"));
}

#[test]
fn the_unit_of_logged_times_is_what_packets_show() {
    for (scale, unit) in [(1e-3, Some("seconds")), (1.0, None), (1e3, Some("microseconds"))] {
        let mut text = head(DATED);
        for number in 0..5_u32 {
            let (at, rtt) = (f64::from(number) * 100.0, 40.0 + f64::from(number));
            text += &sent(at, 0, number);
            text += &acked(at + rtt, 0, number);
            text += &metrics(at + rtt, &format!("\"latest_rtt\":{}", rtt * scale));
        }
        let source = open(&text).unwrap();
        let delays: Vec<_> = observations(&source).iter().filter_map(|of| of.delay_us).collect();
        assert_eq!(delays, [0, 1_000, 2_000, 3_000, 4_000]);
        let notes = &source.recording().notes;
        assert_eq!(notes.iter().any(|note| note.contains("is taken for")), unit.is_some());
        assert!(unit.is_none_or(|unit| notes[0].contains(unit)), "{notes:?}");
    }
}

#[test]
fn several_logs_are_on_one_clock() {
    let log = |name: &str, begins: &str, rtt: u32| {
        let metrics =
            [0.0, 10.0].map(|ms| metrics(ms, &format!("\"latest_rtt\":{}", f64::from(rtt) + ms)));
        let text = format!("{}{}", head(&format!("\"reference_time\":{begins}")), metrics.concat());
        Input::bytes(name, text.into_bytes())
    };
    let logs = vec![
        log("out/a.qlog", "1700000000005", 20),
        log("out/b.qlog", "{\"clock_type\":\"system\",\"epoch\":\"2023-11-14T22:13:20Z\"}", 30),
    ];
    let source = Source::logs(logs, ALL).unwrap();
    assert_eq!(source.recording().flows, ["a.qlog", "b.qlog"]);
    assert_eq!(
        observations(&source),
        [
            told(1, 0, 0, 1),
            told(0, 5_000, 0, 1),
            told(1, 10_000, 10_000, 1),
            told(0, 15_000, 10_000, 1)
        ]
    );
    let alike = vec![log("a/x", "1700000000005", 20), log("b/x", "1700000000005", 20)];
    assert_eq!(Source::logs(alike, ALL).unwrap().recording().flows, ["a/x", "b/x"]);
    let undated = vec![log("a", "1700000000005", 20), log("b", "0", 30)];
    assert_eq!(
        Source::logs(undated, ALL).unwrap_err().to_string(),
        "b: expected a reference_time with a date, to compare it with another trace, found none"
    );
    let other = vec![log("a", "1700000000005", 20), Input::bytes("t.csv", *b"flow,t_s,rtt_ms\n")];
    assert!(
        Source::logs(other, ALL).unwrap_err().to_string().starts_with("t.csv: expected a qlog")
    );
}

#[test]
fn paths_are_called_by_number_and_addresses_and_connection() {
    let ends = "\"tuple_local\":{\"ip_v4\":\"10.0.0.1\",\"port_v4\":443},\"tuple_remote\":{\"ip_v6\":\"2001:db8::1\"}";
    let assigned = event(0.0, "quic:tuple_assigned", &format!("\"tuple_id\":\"p1\",{ends}"));
    let on = sent(1.0, 1, 1).replace("\"data\"", "\"tuple\":\"p1\",\"data\"");
    let other =
        metrics(2.0, "\"latest_rtt\":9").replace("\"data\"", "\"group_id\":\"a\\u001bb\",\"data\"");
    let text =
        [head(DATED), assigned, on, metrics(1.0, "\"latest_rtt\":8,\"path_id\":1"), other].concat();
    let source = open(&text).unwrap();
    let names = ["path 1 10.0.0.1:443 > 2001:db8::1", "connection a\\u{1b}b path 0"];
    assert_eq!(source.recording().flows, names);
}

#[test]
fn mistakes_are_reported_with_file_and_line() {
    let metrics = || metrics(0.0, "\"latest_rtt\":50");
    let log = |rest: &str| refused(&[&head(DATED), &metrics(), rest].concat());
    assert_eq!(log("{\"time\":1.5,\"na"), "q.sqlog line 3: ends within an object");
    let cut = "q.sqlog line 4: ends within the object that begins in line 3";
    assert_eq!(log("{\"time\":1.5,\n\"na"), cut);
    assert_eq!(log("{\"time\":1}\nhello\n"), "q.sqlog line 4: expected JSON, found none");
    assert_eq!(
        log("{\"name\":\"x\"}\n"),
        "q.sqlog line 3: expected an event with a time, a number"
    );
    assert_eq!(
        log("17\n"),
        "q.sqlog line 3: invalid type: integer `17`, expected an event, an object or an array"
    );
    let versions = "expected qlog_version draft-00 to draft-02 or 0.1 to 0.4, or file_schema \
                    urn:ietf:params:qlog:file:.., found";
    assert_eq!(
        refused("{\n\"qlog_version\": \"0.9\\u001b\"}"),
        format!("q.sqlog line 2: {versions} \"0.9\\u{{1b}}\"")
    );
    assert_eq!(refused("{\"log\":1}\n{}"), format!("q.sqlog line 1: {versions} neither"));
    let none = "q.sqlog line 1: expected traces, or a trace and events, found none";
    assert_eq!(refused("{\"qlog_version\":\"0.4\"}"), none);
    let whole =
        |trace: &str| refused(&format!("{{\"qlog_version\":\"0.4\",\"traces\":[{{{trace}}}]}}"));
    assert!(whole("").contains("expected events recovery:metrics_updated with latest_rtt"));
    assert!(whole("\"events\":[{\"time\":5,\"name\":\"a:b\"}]").contains("among the 1 events"));
    assert!(
        whole("\"events\":[{\"time\":5}],\"common_fields\":{}")
            .contains("common_fields before events")
    );
    assert!(
        whole("\"common_fields\":{\"time_format\":\"odd\"}")
            .contains("time_format relative_to_epoch")
    );
    assert!(whole("\"events\":[{\"time\":1e300}]").contains("expected a time of at most"));
    // A log of any size is read, but not any depth or name.
    assert!(log(&format!("{{\"a\":{}", "[".repeat(99))).contains("more than 64 deep"));
    assert!(
        log(&format!("{{\"a\":\"{}", "x".repeat(2_000_000)))
            .contains("a string of more than 1 MiB")
    );
    let losses = Some(Input::bytes("l", *b""));
    let refused = Source::open(Input::bytes("q", head(DATED).into_bytes()), losses, ALL);
    assert!(refused.unwrap_err().to_string().starts_with("--losses: a qlog includes losses"));
}
