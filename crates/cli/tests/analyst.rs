//! An analyst's captures of two downloads, as simulated: through one queue or two, with CUBIC or BBR, with
//! timestamps or without, at the sender, behind the queues or at the receiver. Each is answered right, or it is
//! said what it lacks.

#![cfg(all(feature = "detect", feature = "lab"))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn narrows(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).current_dir(folder).output().unwrap()
}

/// Two downloads that begin 1.3 s apart, through `queues` of 20 Mbit/s and 60 ms, and behind these over one fast
/// link each way.
fn scenario(queues: usize, cc: &str) -> String {
    let mut text =
        "name = \"two\"\ntitle = \"Two downloads\"\nsource = \"our choice\"\nwarmup = \"1 s\"\n\
                    duration = \"9 s\"\ntest = \"flow1\"\n"
            .to_owned();
    for queue in 1..=queues {
        text += &format!(
            "links.queue{queue} = {{ rate = \"20 Mbit/s\", delay = \"5 ms\", queue = \"60 ms\" }}\n"
        );
    }
    for link in ["core", "home"] {
        text += &format!(
            "links.{link} = {{ rate = \"1 Gbit/s\", delay = \"1 ms\", queue = \"50 ms\" }}\n"
        );
    }
    for (flow, rtt, start) in [(1, "30 ms", "0 s"), (2, "40 ms", "1.3 s")] {
        let queue = flow.min(queues);
        text += &format!(
            "routes.path{flow} = {{ links = [\"queue{queue}\", \"core\"], back = [\"home\"], rtt = \"{rtt}\" }}\n\
             flows.flow{flow} = {{ kind = \"tcp\", routes = [\"path{flow}\"], cc = \"{cc}\", start = \"{start}\" }}\n"
        );
    }
    text + "[[phases]]\nstart = \"0 s\"\ngroups = [[\"path1\"]]\n"
}

/// The packets of a pcapng file of raw IPv4, whose timestamps become no-operations (RFC 9293, 3.2).
fn without_timestamps(mut file: Vec<u8>) -> Vec<u8> {
    const ENHANCED_PACKET: u32 = 6;
    let (mut at, mut taken) = (0, 0);
    while at < file.len() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (kind, length) = (word(at), word(at + 4) as usize);
        if kind == ENHANCED_PACKET {
            let ip = at + 28;
            let tcp = ip + 4 * usize::from(file[ip] & 15);
            let end = tcp + 4 * usize::from(file[tcp + 12] >> 4);
            let mut option = tcp + 20;
            while option < end && file[option] != 0 {
                let (kind, length) = (file[option], usize::from(file[option + 1]));
                match kind {
                    1 => option += 1,
                    8 => {
                        file[option..option + length].fill(1);
                        taken += 1;
                    }
                    _ => option += length,
                }
            }
        }
        at += length;
    }
    assert!(taken > 1000, "{taken}");
    file
}

/// What is said of a capture: the verdict, or why there is none.
fn said(folder: &Path) -> Result<String, String> {
    let output = narrows(folder, &["detect", "capture", "--json"]);
    if output.status.success() {
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        return Ok(json["verdicts"][0]["verdict"].as_str().unwrap().to_owned());
    }
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    Err(line)
}

#[test]
#[ignore = "four runs and 24 captures: make test-long"]
fn two_downloads_in_24_captures() {
    let mut table =
        "| | | | sender | behind the queues | receiver |\n|---|---|---|---|---|---|\n".to_owned();
    for (queues, answer) in [(1, "shared"), (2, "separate")] {
        for cc in ["cubic", "bbr"] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            fs::write(folder.join("two.toml"), scenario(queues, cc)).unwrap();
            let captured = ["--pcap", "pcap", "--capture", "flow1,flow2,core,home"];
            let ran = narrows(folder, &[&["run", "two.toml"][..], &captured].concat());
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            // The files of one place stand one after the other in a capture, as by `mergecap -a`.
            let places = [
                ["flow1.sender", "flow2.sender"],
                ["core.link", "home.link"],
                ["flow1.receiver", "flow2.receiver"],
            ]
            .map(|parts| {
                let part = |name| fs::read(folder.join(format!("pcap/{name}.pcapng"))).unwrap();
                parts.map(part).concat()
            });
            for timestamps in [true, false] {
                let stamped = if timestamps { "with timestamps" } else { "without" };
                table += &format!("| {answer} | {cc} | {stamped} |");
                for (place, capture) in places.iter().enumerate() {
                    let capture = capture.clone();
                    let capture = if timestamps { capture } else { without_timestamps(capture) };
                    fs::write(folder.join("capture"), capture).unwrap();
                    let case = format!("{answer}, {cc}, {stamped}, place {place}");
                    // Behind the queue only timestamps tell how long a packet waited in it.
                    let cell = match said(folder) {
                        Ok(verdict) => {
                            assert_eq!(verdict, answer, "{case}");
                            "right"
                        }
                        Err(line) => {
                            assert!(!timestamps && place > 0, "{case}: {line}");
                            let lacks = "no flow gives a delay: expected packets of at least a second with TCP \
                                         timestamps, or, captured near the sender, with their acknowledgements; \
                                         found without timestamps: 2 flows, with 100.0 % of the data";
                            assert!(line.contains(lacks), "{case}: {line}");
                            "refused"
                        }
                    };
                    table += &format!(" {cell} |");
                }
                table += "\n";
            }
        }
    }
    let page = include_str!("../../../docs/results/captures.md");
    assert!(page.contains(&table), "docs/results/captures.md has another table than\n{table}");
}
