//! Captures, read by others: tshark checks what it understands, the rest is computed from what it
//! shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use narrows_lab::{CaptureRequest, Edits, Job, Output, Run, host, load, run};
use pcap_file::pcapng::{Block, PcapNgReader};

/// Bytes that a capture keeps of a packet at most where nothing else is asked for.
const HEADERS: usize = 80;
/// Bytes of the file that travels.
const FILE: u64 = 3_000_000;

/// A file over two paths with short queues (or over the first by TCP), beside UDP.
const SCENARIO: &str = r#"
name = "capture"
title = "A file over two lossy paths"
source = "our choice"
warmup = "0 s"
duration = "6 s"
test = "file"

[links.fast]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "20 packets"

[links.slow]
rate = "4 Mbit/s"
delay = "30 ms"
queue = "20 packets"

[routes.near]
links = ["fast"]
rtt = "20 ms"

[routes.far]
links = ["slow"]
rtt = "60 ms"

[flows]
file = { kind = "KIND", routes = ROUTES, cc = "reno", source = { file = { size = "3000 kB" } } }
udp = { kind = "udp", routes = ["near"], source = { rate = { mean = "20 packets/s", size = { constant = "500 B" } } } }
other = { kind = "udp", routes = ["far"], source = { rate = { mean = "20 packets/s", size = { constant = "500 B" } } } }
"#;

struct Captured {
    folder: tempfile::TempDir,
    run: Run,
}

impl Captured {
    /// Runs the scenario with MPTCP or TCP and captures both hosts and the link `fast`.
    fn new(kind: &str, seed: u64, snaplen: Option<u32>) -> Captured {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        let routes = if kind == "mptcp" { r#"["near", "far"]"# } else { r#"["near"]"# };
        std::fs::write(&file, SCENARIO.replace("KIND", kind).replace("ROUTES", routes)).unwrap();
        let scenario = load(file.to_str().unwrap(), &Edits::default()).unwrap();
        let mut output = Output::new(folder.path()).unwrap();
        let names = ["file", "udp", "fast"].map(String::from);
        let capture = CaptureRequest { names: &names, snaplen, output: &mut output };
        let stop = AtomicBool::new(false);
        let job = Job { seed, series: true, capture: Some(capture), ..Job::new(&scenario, &stop) };
        let run = run(host("sim").unwrap(), job).unwrap();
        output.commit().unwrap();
        Captured { folder, run }
    }

    /// With all of every packet, so that checksums can be checked.
    fn full(kind: &str) -> Captured {
        Captured::new(kind, 1, Some(65_535))
    }

    /// The same run without captures.
    fn uncaptured(&self, seed: u64) -> Run {
        let file = self.folder.path().join("scenario.toml");
        let scenario = load(file.to_str().unwrap(), &Edits::default()).unwrap();
        let stop = AtomicBool::new(false);
        let job = Job { seed, series: true, ..Job::new(&scenario, &stop) };
        run(host("sim").unwrap(), job).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.pcapng"))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    /// The fields of the packets that pass the filter, as tshark tells them.
    fn tshark(&self, name: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        tshark(&self.file(name), filter, fields)
    }
}

/// Is there no tshark? Says so.
fn no_tshark() -> bool {
    let missing = Command::new("tshark").arg("--version").output().is_err();
    if missing {
        println!("skipped: there is no tshark; `scripts/setup capture` installs it");
    }
    missing
}

fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    for checksum in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{checksum}.check_checksum:TRUE")]);
    }
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(String::from).collect()).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("\"{text}\" is no number"))
}

const FILES: [&str; 5] =
    ["file.sender", "file.receiver", "udp.sender", "udp.receiver", "fast.link"];

#[test]
fn nothing_is_malformed_and_all_checksums_are_right() {
    if no_tshark() {
        return;
    }
    let fields =
        ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "_ws.malformed"];
    let right = |packet: &Vec<String>| {
        let found = [0, 1, 2, 3].map(|field| packet[field].as_str());
        found == ["1", "1", "", ""] || found == ["1", "", "1", ""]
    };
    for (kind, files) in [("tcp", &FILES[..1]), ("mptcp", &FILES)] {
        let captured = Captured::full(kind);
        for file in files {
            let packets = captured.tshark(file, "frame", &fields);
            assert!(packets.len() > 50, "{kind}: {file} is nearly empty");
            let wrong = packets.iter().position(|packet| !right(packet));
            assert!(wrong.is_none(), "{kind}: {file}: packet {wrong:?}");
            // A link shows all flows.
            let udp = packets.iter().filter(|packet| packet[2] == "1").count();
            assert_eq!(udp > 0, !file.starts_with("file"), "{file}");
        }
    }
}

/// Which of its three words for it tshark uses is a guess from the time since the last segment and
/// from duplicate acknowledgements.
#[test]
fn what_was_sent_again_is_what_the_simulator_counted() {
    if no_tshark() {
        return;
    }
    let again = "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.fast_retransmission \
                 || tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order)";
    for kind in ["tcp", "mptcp"] {
        let captured = Captured::full(kind);
        let retransmits = captured.run.summary.connections[0].retransmits as usize;
        assert!(retransmits > 20, "{kind}: {retransmits} retransmissions are too few to tell");
        let seen = captured.tshark("file.sender", again, &["frame.number"]);
        assert_eq!(seen.len(), retransmits, "{kind}");
    }
}

/// tshark derives the token and the initial data sequence number from the keys of MP_CAPABLE and
/// finds the connection of a join by them.
#[test]
fn subflows_are_of_one_connection() {
    if no_tshark() {
        return;
    }
    let captured = Captured::full("mptcp");
    for host in ["file.sender", "file.receiver"] {
        let faults = [
            "mptcp.connection.echoed_key_mismatch",
            "mptcp.connection.unsupported_algorithm",
            "mptcp.dss.missing_mapping",
            "mptcp.dss.infinite_mapping",
        ];
        let fields = [&["tcp.stream", "mptcp.stream"][..], &faults].concat();
        let packets = captured.tshark(host, "tcp", &fields);
        // The first packet of all is not yet known to be of a connection.
        let known: BTreeSet<_> = packets[1..].iter().map(|packet| packet.join(" ")).collect();
        assert_eq!(known.iter().map(|subflow| subflow.trim()).collect::<Vec<_>>(), ["0 0", "1 0"]);
    }
}

/// RFC 8684, section 3.3: each byte of a subflow is mapped to one of the file, and all subflows
/// together to all of the file.
#[test]
fn mappings_cover_the_file_and_each_subflow() {
    if no_tshark() {
        return;
    }
    let captured = Captured::full("mptcp");
    let fields = [
        "tcp.stream",
        "tcp.seq",
        "tcp.len",
        "tcp.options.mptcp.subflowseqno",
        "tcp.options.mptcp.datalvllen",
        "tcp.options.mptcp.rawdataseqno",
    ];
    let segments = captured.tshark("file.sender", "tcp.len > 0", &fields);
    // Of each subflow: where its segments start, how long they are and where they belong.
    let mut subflows = BTreeMap::<u64, BTreeMap<u64, (u64, Option<u64>)>>::new();
    for segment in &segments {
        let [stream, seq, len] = [0, 1, 2].map(|field| number(&segment[field]));
        assert_eq!(number(&segment[4]), len);
        // The first segment has MP_CAPABLE instead, which maps to the beginning.
        let data = (!segment[5].is_empty()).then(|| number(&segment[5]));
        assert!(data.is_none() && seq == 1 || number(&segment[3]) == seq, "{segment:?}");
        let known = subflows.entry(stream).or_default().insert(seq, (len, data));
        assert!(known.is_none_or(|known| known == (len, data)), "mapped in two ways: {segment:?}");
    }
    assert_eq!(subflows.len(), 2);
    let mut pieces = Vec::new();
    for subflow in subflows.values() {
        let mut next = 1;
        for (&seq, &(len, data)) in subflow {
            assert_eq!(seq, next);
            next = seq + len;
            pieces.push((data, len));
        }
    }
    let (first, first_len) = *pieces.iter().find(|(data, _)| data.is_none()).unwrap();
    assert!(first.is_none());
    let start = pieces.iter().filter_map(|piece| piece.0).min().unwrap() - first_len;
    let mut pieces: Vec<_> =
        pieces.into_iter().map(|(data, len)| (data.unwrap_or(start) - start, len)).collect();
    pieces.sort_unstable();
    let mut covered = 0;
    for (data, len) in pieces {
        assert!(data <= covered, "a gap from {covered} to {data}");
        covered = covered.max(data + len);
    }
    assert_eq!(covered, FILE);
}

/// RFC 2018: blocks lie between the acknowledgement and what was sent; RFC 2883: the first may tell
/// of a duplicate.
#[test]
fn sack_blocks_are_of_what_was_sent() {
    if no_tshark() {
        return;
    }
    for (kind, most) in [("tcp", 3), ("mptcp", 1)] {
        let captured = Captured::full(kind);
        let sack = ["tcp.options.sack_le", "tcp.options.sack_re"];
        let fields = [&["tcp.stream", "tcp.ack", "tcp.nxtseq"][..], &sack].concat();
        let packets = captured.tshark("file.sender", "tcp.len > 0 || tcp.options.sack_le", &fields);
        let mut highest = BTreeMap::<String, u64>::new();
        let mut acks = 0;
        for ack in packets {
            if ack[3].is_empty() {
                let highest = highest.entry(ack[0].clone()).or_default();
                *highest = number(&ack[2]).max(*highest);
                continue;
            }
            acks += 1;
            let edges = |field: usize| ack[field].split(',').map(number).collect::<Vec<_>>();
            let (left, right) = (edges(3), edges(4));
            assert!(left.len() <= most, "{kind}: {ack:?}");
            for (index, (&left, &right)) in left.iter().zip(&right).enumerate() {
                assert!(left < right && right <= highest[&ack[0]], "{kind}: {ack:?}");
                assert!(index == 0 || left > number(&ack[1]), "{kind}: {ack:?}");
            }
        }
        assert!(acks > 100, "{kind}: {acks} acknowledgements with SACK");
    }
}

#[test]
fn the_round_trip_that_tshark_sees_is_the_one_the_sender_measured() {
    if no_tshark() {
        return;
    }
    let captured = Captured::full("mptcp");
    for (stream, name) in [("0", "near"), ("1", "far")] {
        let filter =
            format!("tcp.stream == {stream} && tcp.analysis.ack_rtt && tcp.srcport == 5001");
        let seen = captured.tshark("file.sender", &filter, &["tcp.analysis.ack_rtt"]);
        let seen = median(seen.iter().map(|packet| packet[0].parse::<f64>().unwrap() * 1e3));
        let busy = captured.run.series.iter().filter(|sample| sample.inflight_packets > Some(0));
        let samples = busy.filter(|sample| sample.path == name);
        let measured = median(samples.filter_map(|sample| sample.srtt_ms));
        assert!((seen / measured - 1.0).abs() < 0.15, "{name}: {seen} ms, {measured} ms");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_seed_gives_the_same_bytes_and_nobody_feels_watched() {
    let [one, again, other] = [1, 1, 2].map(|seed| Captured::new("mptcp", seed, None));
    for file in FILES {
        assert_eq!(one.bytes(file), again.bytes(file), "{file}");
        assert_ne!(one.bytes(file), other.bytes(file), "{file}");
    }
    let alone = one.uncaptured(1);
    assert_eq!(format!("{:?}", alone.series), format!("{:?}", one.run.series));
    assert_eq!(format!("{:?}", alone.summary), format!("{:?}", one.run.summary));
}

/// By default only headers are kept, and the file says how long packets were.
#[test]
fn headers_are_kept_and_lengths_are_reported() {
    let [full, headers] = [Some(65_535), None].map(|snap| Captured::new("mptcp", 1, snap));
    let (full, headers) = (full.bytes("file.sender"), headers.bytes("file.sender"));
    assert!(headers.len() < full.len() / 4);
    let [full, headers] = [full, headers].map(|bytes| {
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                packets.push((packet.timestamp, packet.original_len, packet.data.to_vec()));
            }
        }
        packets
    });
    assert_eq!(full.len(), headers.len());
    for ((time, length, all), (its_time, its_length, kept)) in full.iter().zip(&headers) {
        assert_eq!((time, length), (its_time, its_length));
        assert_eq!(all.len(), *length as usize);
        assert_eq!(kept[..], all[..all.len().min(HEADERS)]);
    }
}
