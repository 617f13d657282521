//! What the commands print and write.

#![cfg(feature = "lab")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Runs the command, which must succeed quietly; returns its standard output.
fn narrows(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {message}");
    assert_eq!(message, "", "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A short run of a shipped scenario.
const SHORT: [&str; 4] = ["--set", "warmup=1 s", "--set", "duration=2 s"];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn list_shows_all_there_is() {
    let all = narrows(&["list"]);
    for name in
        ["laws", "balia", "detectors", "disjoint", "scenarios", "sbd/sb-5", "phone/wifi-lte"]
    {
        assert!(all.contains(name), "{name}");
    }
    let laws = narrows(&["list", "laws"]);
    assert!(laws.contains("RFC 9438") && !laws.contains("sbd/"));
    let controls = narrows(&["list", "controls"]);
    let system = controls.split_once("  tr-lia ").unwrap().1;
    let system: Vec<&str> = system.split_whitespace().take(3).collect();
    assert_eq!(system, ["lia+tr", "--set", "detection.signal=rtt"]);
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
}

#[test]
fn fields_have_units_defaults_and_examples() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kept/fields-links.txt");
    narrows_testkit::assert_kept(Path::new(kept), &narrows(&["list", "fields", "links"]));
    let all = narrows(&["list", "fields"]);
    assert!(all.starts_with("At the top of the file\n") && all.contains("\n[ssc]\n"), "{all}");
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    let below = narrows(&["list", "fields", "links.reorder"]);
    assert!(below.starts_with("[links.NAME.reorder]\n") && !below.contains("policer"), "{below}");
    let unknown = "list fields: unknown table 'linkz' (did you mean 'links'?)";
    assert!(refused(&["list", "fields", "linkz"]).contains(unknown));
}

#[test]
fn help_has_examples_and_completions_are_made() {
    for command in ["run", "compare", "fuzz", "completions"] {
        assert!(narrows(&[command, "--help"]).contains("Example"), "{command}");
    }
    let help = narrows(&["--help"]);
    assert!(help.contains("Examples:"));
    // Also where it is left out; there it says how to get it.
    assert!(help.contains("\n  quic "), "{help}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(narrows(&["completions", shell]).contains("narrows"), "{shell}");
    }
}

/// Builds have all hosts that the compiler allows (`make install`).
#[test]
fn the_version_names_commit_and_features() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(narrows(&["-V"]), format!("narrows {version}\n"));
    let long = narrows(&["--version"]);
    let rest = long.trim_end().strip_prefix(&format!("narrows {version} (commit "));
    let (commit, features) =
        rest.and_then(|rest| rest.strip_suffix(')')?.split_once(", features: ")).unwrap();
    let hash = commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    assert!(hash || commit == "unknown", "{long}");
    for (feature, built) in [
        ("detect", cfg!(feature = "detect")),
        ("kernel", cfg!(feature = "kernel")),
        ("lab", cfg!(feature = "lab")),
        ("parquet", cfg!(feature = "parquet")),
        ("quic", cfg!(feature = "quic")),
        ("static", cfg!(feature = "static")),
    ] {
        assert_eq!(features.split(' ').any(|one| one == feature), built, "{long}");
    }
}

#[test]
fn a_compiler_that_is_too_old_leaves_quic_out_with_a_line() {
    let hosts = |version: &str| {
        let home = tempfile::tempdir().unwrap();
        let rustc = home.path().join("rustc");
        fs::write(&rustc, format!("#!/bin/sh\necho 'rustc {version} (abc 2025-01-01)'\n")).unwrap();
        fs::set_permissions(&rustc, PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/hosts");
        let output = Command::new(script).arg("kernel").env("PATH", path).output().unwrap();
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    for version in ["1.88.0", "1.95.0", "1.100.0-nightly", "2.0.0"] {
        assert_eq!(hosts(version), ["kernel,quic\n", ""], "{version}");
    }
    let [features, line] = hosts("1.87.0");
    assert_eq!(features, "kernel\n");
    assert_eq!(line, "left out: QUIC, which needs Rust 1.88 ('rustup update'); this is 1.87.0\n");
}

/// What bash suggests for the last of these words.
fn suggested(words: &[&str]) -> Vec<String> {
    let script = narrows(&["completions", "bash"]);
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (count, words) = (words.len(), words.join(" "));
    let ask = format!(
        "{script}\nCOMP_WORDS=({words}); COMP_CWORD={}; COMPREPLY=()\n\
         _narrows narrows \"${{COMP_WORDS[{}]}}\" \"${{COMP_WORDS[{}]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        count - 1,
        count - 1,
        count - 2,
    );
    // Longer than an argument may be.
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), ask).unwrap();
    let output = Command::new("bash").arg(file.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(String::from).collect()
}

#[test]
fn completions_know_scenarios_controls_and_fields() {
    let home = ["home/hybrid", "home/lossy", "home/starlink", "home/starlink-5g"];
    assert_eq!(suggested(&["narrows", "run", "home/"]), home);
    assert_eq!(suggested(&["narrows", "compare", "sbd/sb-2", "home/l"]), ["home/lossy"]);
    let controls = suggested(&["narrows", "run", "sbd/sb-2", "--cc", "mptcp-"]);
    assert_eq!(controls, ["mptcp-sbd"]);
    assert!(suggested(&["narrows", "compare", "--cc", "ol"]).contains(&"olia+ssc".into()));
    let fields = suggested(&["narrows", "run", "sbd/sb-2", "--set", "d"]);
    assert!(
        ["duration=", "detection.signal="].iter().all(|name| fields.contains(&name.to_string()))
    );
    assert!(!fields.iter().any(|field| field.contains("NAME")), "{fields:?}");
    assert_eq!(suggested(&["narrows", "list", "fields", "li"]), ["links", "lisa"]);
    let zsh = narrows(&["completions", "zsh"]);
    assert_eq!(
        zsh.matches("\" files:file:_files}' \\\n").count(),
        zsh.matches(" sbd/sb-2 ").count()
    );
    // What is suggested is what may be given, besides files, lists and values of fields.
    let help = narrows(&["run", "--help"]);
    assert!(!help.contains("sbd/nsb-3-red"), "{help}");
}

#[test]
fn man_pages_are_made_of_each_command() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("man");
    assert_eq!(narrows(&["man", folder.to_str().unwrap()]), "");
    for name in ["narrows", "narrows-run", "narrows-compare", "narrows-law-new"] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
    }
    let page = fs::read_to_string(folder.join("narrows-compare.1")).unwrap();
    assert!(page.contains("series\\-of") && page.contains("Examples:"), "{page}");
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(&["man", file.to_str().unwrap()]).contains("file: "));
    assert!(!narrows(&["--help"]).contains("man pages"), "for packages alone");
}

#[test]
fn lists_are_json_too() {
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&narrows(&[&["list"], args, &["--json"]].concat())).unwrap()
    };
    let all = json(&[]);
    let expected = ["controls", "detectors", "laws", "metrics", "params", "scenarios", "starts"];
    assert_eq!(keys(&all), expected);
    for part in expected {
        let one = json(&[part]);
        assert_eq!((keys(&one), &one[part]), (vec![part], &all[part]));
        let names = one[part].as_array().unwrap().iter().map(|entry| entry["name"].as_str());
        // In the order of the list for people.
        let text = narrows(&["list", part]);
        let mut at = 0;
        for name in names.map(Option::unwrap) {
            at += text[at..].find(name).unwrap_or_else(|| panic!("{name} is not in {text}"));
        }
    }
    let find = |part: &str, name: &str| {
        let found = all[part].as_array().unwrap().iter().find(|entry| entry["name"] == name);
        found.unwrap().clone()
    };
    assert_eq!(find("controls", "olia")["kernel"], "nr_olia");
    assert_eq!(find("params", "olia.floor")["takes"].as_str().map(str::is_empty), Some(false));
    assert_eq!(find("scenarios", "sbd/sb-2")["title"], "Two paths through one shared bottleneck");
    assert_eq!(find("metrics", "queue_ms")["unit"], "ms");
    let fields = json(&["fields", "links"]);
    let link = &fields["fields"][0];
    assert_eq!(link["name"], "links.NAME");
    let of = |name: &str| {
        let all = link["fields"].as_array().unwrap().iter();
        all.clone().find(|field| field["name"] == name).unwrap().clone()
    };
    assert_eq!((&of("ecn")["default"], &of("ecn")["required"]), (&"false".into(), &false.into()));
    assert_eq!(of("delay")["takes"], "a time such as \"20 ms\"");
    assert!(refused(&["list", "fields", "linkz", "--json"]).contains("unknown table 'linkz'"));
}

#[test]
fn a_dry_run_shows_links_flows_and_size() {
    let text = narrows(&["run", "sbd/nsb-2", "--dry-run"]);
    assert!(text.contains("bottleneck2: 20 Mbit/s, delay 5 ms, droptail 35 packets, MTU 1500"));
    assert!(text.contains("mptcp: mptcp olia, greedy, over path1 (RTT 20 ms, bottleneck1), path2"));
    assert!(text.contains("tcp2: tcp reno, greedy, over path2 (RTT 20 ms, bottleneck2) (rival on"));
    assert!(text.contains("background flows"));
    assert!(text.contains("million packet-hops (data and acknowledgements) and "));
    let text = narrows(&["run", "sbd/nsb-2", "--cc", "balia", "--dry-run"]);
    assert!(text.contains("mptcp: mptcp balia, "), "{text}");
}

#[test]
fn a_run_says_on_how_many_threads_and_is_the_same_on_any_number() {
    let last = |scenario: &str, threads: &str| {
        let text = narrows(&["run", scenario, "--threads", threads, "--dry-run"]);
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(last("sbd/nsb-2", "8"), "on one thread");
    assert_eq!(last("lisa/fat-tree", "1"), "on one thread");
    let two = last("lisa/fat-tree", "2");
    assert!(two.starts_with("on 2 threads, in ") && two.ends_with(" us"), "{two}");
    let run = |threads: &str| {
        let set = "duration=1 s";
        narrows(&["run", "lisa/fat-tree", "--set", set, "--threads", threads, "--json"])
    };
    assert!(run("1") == run("3"));
    let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["run", "sbd/nsb-2", "--on", "kernel", "--threads", "2", "--dry-run"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn phases_are_shown_and_how_right_the_detector_was_in_each() {
    let text = narrows(&["run", "sbd/shifting-30", "--dry-run"]);
    let phases = "\nphases: bottlenecks of the paths under test, + where several meet in one\n  \
                  from 0 s: path1 + path2\n  from 50 s: path1 | path2\n";
    assert!(text.contains(phases), "{text}");
    let groups = "\ngroups: bottlenecks of the paths under test, + where several meet in one\n  path1 + path2\n";
    assert!(narrows(&["run", "sbd/sb-2", "--dry-run"]).contains(groups));

    let text = narrows(&[
        "run",
        "sbd/sb-2",
        "--cc",
        "lia+xcorr",
        "--signal",
        "rtt",
        "--set",
        "duration=10 s",
    ]);
    let table = text.split("\n\n").find(|table| table.starts_with("detector "));
    let lines: Vec<&str> = table.expect("how right it was").lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines[0], "detector  signal  decisions  accuracy  first right s");
    assert_eq!(words(lines[1])[..4], ["from", "0", "s", "rtt"]);
    assert!(words(lines[1])[5].parse::<f64>().unwrap() <= 1.0, "{text}");
    assert!(
        !narrows(&[&["run", "sbd/sb-2", "--cc", "lia"], &SHORT[..]].concat()).contains("detector")
    );
}

#[test]
fn a_table_explains_its_columns_and_the_next_command_has_the_same_settings() {
    let seeds =
        ["--cc", "lia+xcorr", "--seeds", "2", "--signal", "rtt", "--set", "duration='10 s'"];
    let text = narrows(&[&["compare", "sbd/sb-2"], &seeds[..]].concat());
    assert!(text.contains("\naccuracy   share"), "{text}");
    let next =
        " run sbd/sb-2 --cc lia+xcorr --set 'duration='\\''10 s'\\''' --signal rtt --out out/one ";
    assert!(text.contains(next), "{text}");
}

/// Whole outputs, as users see them.
#[test]
fn tables() {
    let kept = |name: &str, args: &[&str]| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kept");
        let text = narrows(&[args, &["--set", "duration=4 s"]].concat());
        let text = text.replace(env!("CARGO_BIN_EXE_narrows"), "narrows");
        assert!(
            text.split("\nNext:").next().unwrap().lines().all(|line| line.chars().count() <= 80)
        );
        narrows_testkit::assert_kept(&Path::new(folder).join(name), &text);
    };
    let two = ["compare", "sbd/nsb-2", "sbd/sb-2", "--cc", "lia,gcubic+xcorr", "--seeds", "2"];
    kept("compare.txt", &two);
    let passive = ["--signal", "rtt", "--set", "detection.passive=[\"xcorr:rtt\", \"ssc\"]"];
    kept("compare-passive.txt", &[&two[..], &passive].concat());
    kept("sweep.txt", &[&two[..], &["--sweep", "jitter=0..3 packets:2"]].concat());
    kept("run.txt", &["run", "sbd/nsb-2", "--cc", "gcubic+xcorr", "--signal", "rtt"]);
}

#[test]
fn what_was_published_stands_beside_ours_in_the_shipped_scenario() {
    let of = |more: &[&str]| {
        let text = narrows(
            &[&["compare", "sbd/nsb-2", "--cc", "mptcp-sbd", "--seeds", "1"], more].concat(),
        );
        let row = text.lines().find(|line| line.starts_with("  mptcp-sbd")).unwrap().to_owned();
        (row.contains("  ~0.75"), text.contains("\npaper      the published accuracy\n"))
    };
    assert_eq!(of(&[]), (true, true));
    assert_eq!(of(&SHORT), (false, false), "another network");
}

#[test]
fn a_phase_whose_bottleneck_has_no_rival_warns() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mine.toml");
    let text = narrows(&["show", "sbd/shifting-30"]);
    let rivals = "bottleneck3 = \"tcp3\"";
    assert!(text.contains(rivals), "{text}");
    fs::write(&file, text.replace(rivals, "")).unwrap();
    let text = narrows(&["run", file.to_str().unwrap(), "--dry-run"]);
    let warning = "from 0 s on the bottleneck of path path1, path2 is link bottleneck3, which no rival \
                   crosses: the ratio compares with nothing there";
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!(" warning: {warning}")), "{text}");
    assert!(!text.contains("from 50 s on"), "{text}");
    let run = ["run", file.to_str().unwrap()];
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(run).output().unwrap();
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(warned, format!("narrows: sbd/shifting-30: {warning}\n"));
}

#[test]
fn a_group_without_a_link_in_common_warns() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mine.toml");
    let apart = narrows(&["show", "sbd/nsb-2", "--resolved"]);
    let groups = apart.lines().find(|line| line.starts_with("groups = ")).unwrap();
    fs::write(&file, apart.replace(groups, "groups = [[\"path1\", \"path2\"]]")).unwrap();
    let text = narrows(&["run", file.to_str().unwrap(), "--dry-run"]);
    let warning = "warning: the group of path1, path2 has no link in common";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn a_link_that_a_generator_makes_replays_a_trace() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("steady");
    fs::write(&file, "1\n2\n").unwrap();
    let option = format!("bottleneck2={}", file.display());
    let text = narrows(&["run", "sbd/nsb-2", "--trace", &option, "--dry-run"]);
    assert!(text.contains("bottleneck1: 20 Mbit/s"), "{text}");
    assert!(text.contains("steady, 12.032 Mbit/s on average over 2 ms"), "{text}");
}

#[test]
fn a_connection_that_begins_late_has_no_rtt_before() {
    let late = ["run", "phone/wifi-lte", "--json", "--set", "flows.mptcp.start=2.5 s"];
    let summary: Value = serde_json::from_str(&narrows(&[&late[..], &SHORT].concat())).unwrap();
    for (path, rtt) in [(0, 20.0), (1, 60.0)] {
        let path = &summary["connections"][0]["paths"][path];
        assert!(path["mean_srtt_ms"].as_f64().unwrap() >= rtt, "{path}");
        assert!(path["mean_cwnd_packets"].as_f64().unwrap() >= 1.0, "{path}");
    }
}

#[test]
fn before_a_connection_starts_its_series_is_empty() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let late = ["run", "phone/wifi-lte", "--set", "flows.mptcp.start=1.5 s", "--out"];
    narrows(&[&late[..], &[out.to_str().unwrap()], &SHORT].concat());
    let series = fs::read_to_string(out.join("series.csv")).unwrap();
    let of = |time: &str| {
        let line = |line: &&str| line.starts_with(&format!("{time},mptcp,wifi,"));
        series.lines().find(line).unwrap().split(',').map(String::from).collect::<Vec<_>>()
    };
    // The queue of the link is there without it.
    assert_eq!(of("1.5")[3..8], [""; 5]);
    assert_ne!(of("1.5")[8], "");
    let started = of("1.6");
    assert!([3, 5, 6, 7].into_iter().all(|column| !started[column].is_empty()), "{started:?}");
}

#[test]
fn a_summary_has_exactly_the_documented_fields() {
    let mut args = vec!["run", "sbd/nsb-2", "--cc", "lia", "--seed", "3", "--json"];
    args.extend(SHORT);
    let summary: Value = serde_json::from_str(&narrows(&args)).unwrap();
    assert_eq!(
        keys(&summary),
        [
            "cc",
            "connections",
            "duration_s",
            "fairness",
            "host",
            "links",
            "scenario",
            "seed",
            "setup",
            "test"
        ]
    );
    assert_eq!(keys(&summary["setup"]), ["scenario_sha256", "settings"]);
    let resolved = narrows(&[&["show", "sbd/nsb-2", "--resolved"][..], &SHORT].concat());
    let hash: String = Sha256::digest(resolved).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(summary["setup"]["scenario_sha256"], hash);
    assert_eq!(summary["setup"]["settings"], json!({ "warmup": "1 s", "duration": "2 s" }));
    assert_eq!(summary["scenario"], "sbd/nsb-2");
    assert_eq!(summary["cc"], "lia");
    assert_eq!(summary["host"], "sim");
    assert_eq!(summary["seed"], 3);
    assert_eq!(summary["duration_s"], 2.0);
    let mptcp = &summary["connections"][0];
    assert_eq!(
        keys(mptcp),
        [
            "acknowledged_s",
            "cc",
            "completion_s",
            "fallback",
            "first_loss_s",
            "goodput_mbps",
            "head_of_line",
            "kind",
            "messages",
            "name",
            "p50_message_ms",
            "p95_message_ms",
            "p99_message_ms",
            "paths",
            "ratio_to_tcp",
            "reinjections",
            "retransmits",
            "silence_s",
            "slow_start_cwnd_packets",
            "slow_start_retransmits",
            "undelivered_messages"
        ]
    );
    assert_eq!(keys(&mptcp["head_of_line"]), ["max_ms", "mean_ms", "p95_ms"]);
    assert_eq!(
        keys(&mptcp["paths"][0]),
        [
            "goodput_mbps",
            "mean_cwnd_packets",
            "mean_srtt_ms",
            "name",
            "p95_srtt_ms",
            "ratio_to_tcp",
            "retransmits",
            "share"
        ]
    );
    assert_eq!(
        keys(&summary["links"][0]),
        ["aqm_drops", "drops", "marks", "mean_queue_ms", "name", "p95_queue_ms", "utilization"]
    );
    assert_eq!(keys(&summary["fairness"]), ["jain"]);

    // The ratio is over the sum of the rivals: tcp1 on one bottleneck, tcp2 on the other.
    let goodput = |index: usize| summary["connections"][index]["goodput_mbps"].as_f64().unwrap();
    let ratio = mptcp["ratio_to_tcp"].as_f64().unwrap();
    assert!((ratio - goodput(0) / (goodput(1) + goodput(2))).abs() < 1e-5, "{ratio}");
    let path = mptcp["paths"][1]["ratio_to_tcp"].as_f64().unwrap();
    let own = mptcp["paths"][1]["goodput_mbps"].as_f64().unwrap();
    assert!((path - own / goodput(2)).abs() < 1e-5, "{path}");
    // A rival has no ratio to itself.
    assert!(summary["connections"][1]["ratio_to_tcp"].is_null());
}

#[test]
fn a_run_writes_its_summary_and_a_series_with_units() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut args = vec!["run", "sbd/sb-2", "--json", "--out", out.to_str().unwrap()];
    args.extend(SHORT);
    let shown = narrows(&args);
    assert_eq!(fs::read_to_string(out.join("summary.json")).unwrap(), shown);
    let series = fs::read_to_string(out.join("series.csv")).unwrap();
    let mut lines = series.lines();
    assert_eq!(
        lines.next(),
        Some(
            "time_s,connection,path,cwnd_packets,ssthresh_packets,srtt_ms,inflight_packets,\
             goodput_mbps,queue_ms"
        )
    );
    // Three paths (two of the multipath connection, one of the rival), 3 s, ten samples a second.
    assert_eq!(lines.count(), 3 * 30);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3, "no temporary files are left");

    let provenance = fs::read_to_string(out.join("provenance.json")).unwrap();
    let provenance: Value = serde_json::from_str(&provenance).unwrap();
    assert_eq!(provenance["kind"], "run");
    assert_eq!(provenance["command"][2], "sbd/sb-2");
    assert_eq!(provenance["version"], env!("CARGO_PKG_VERSION"));
    assert!(provenance["started"].as_str().unwrap().ends_with('Z'), "{provenance}");
    assert!(provenance["kernel"].is_null(), "the simulator ran it");
}

#[test]
fn a_comparison_gives_a_table_and_rows() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let base = ["compare", "sbd/nsb-2", "sbd/sb-2", "--cc", "reno,lia", "--seeds", "2"];
    let with = |more: &[&str]| narrows(&[&base[..], &SHORT, more].concat());

    let text = with(&["--out", out.to_str().unwrap()]);
    assert!(text.starts_with("sbd/nsb-2: Two paths, each with a bottleneck of its own; 2 runs"));
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains("narrows ")));
    assert!(text.contains("sbd/sb-2: Two paths through one shared bottleneck; 2 runs each"));
    assert_eq!(text.split("\nNext:\n").nth(1).unwrap().lines().count(), 3);
    for file in ["report.txt", "rows.csv", "rows.json", "runs/sbd/sb-2/lia/seed-2.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(out.join("runs/sbd/nsb-2/reno/seed-1.csv").is_file());

    let json = with(&["--json"]);
    assert_eq!(fs::read_to_string(out.join("rows.json")).unwrap(), json);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(keys(&json), ["rows"]);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        keys(&rows[0]),
        [
            "accuracy",
            "acknowledged_s",
            "cc",
            "first_loss_s",
            "goodput_mbps",
            "host",
            "jain",
            "jain_mean",
            "messages",
            "p50_message_ms",
            "p50_queue_ms",
            "p50_rtt_ms",
            "p95_message_ms",
            "p95_queue_ms",
            "p95_rtt_ms",
            "p99_message_ms",
            "paths",
            "queue_ms",
            "ratio_to_best",
            "ratio_to_tcp",
            "retransmits",
            "scenario",
            "seeds",
            "setup",
            "silence_s",
            "slow_start_cwnd_packets",
            "slow_start_retransmits",
            "undelivered_messages",
            "unfit"
        ]
    );
    // A run alone and in a comparison is of the same setup.
    let run = [&["run", "sbd/nsb-2", "--cc", "lia", "--json"][..], &SHORT].concat();
    let run: Value = serde_json::from_str(&narrows(&run)).unwrap();
    assert_eq!(rows[1]["setup"], run["setup"]);
    assert_eq!(keys(&rows[0]["ratio_to_tcp"]), ["ci95", "mean", "median", "q1", "q3"]);
    assert_eq!((&rows[1]["scenario"], &rows[1]["cc"]), (&"sbd/nsb-2".into(), &"lia".into()));
    assert_eq!((&rows[1]["seeds"], &rows[1]["unfit"]), (&2.into(), &0.into()));
    assert_eq!(rows[1]["host"], "sim");

    let csv = with(&["--csv"]);
    assert!(
        csv.starts_with("scenario,set_field,set_value,cc,signal,host,seeds,unfit,goodput_mbps_")
    );
    assert_eq!(csv.lines().count(), 5);

    // The number of threads changes nothing.
    assert_eq!(with(&["--csv", "--jobs", "1"]), with(&["--csv", "--jobs", "3"]));
}

/// Alone and in a comparison, with what `--set` and `--signal` say; the folder has its name.
#[test]
fn a_system_keeps_its_name_and_brings_its_settings() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let more = ["--cc", "mptcp-sbd", "--json", "--set", "ssc.p_s=0.2", "--signal", "rtt"];
    let with = |args: &[&str]| -> Value {
        serde_json::from_str(&narrows(&[args, &SHORT, &more].concat())).unwrap()
    };
    let compare = ["compare", "sbd/nsb-2", "--seeds", "1", "--out", out.to_str().unwrap()];
    let (run, rows) = (with(&["run", "sbd/nsb-2"]), with(&compare));
    assert_eq!((&run["cc"], &rows["rows"][0]["cc"]), (&"mptcp-sbd".into(), &"mptcp-sbd".into()));
    assert!(out.join("runs/sbd/nsb-2/mptcp-sbd/rtt/seed-1.json").is_file());
    let settings = &run["setup"]["settings"];
    let of = ["decision.clear", "ssc.p_s", "ssc.trusted", "detection.signal"];
    assert_eq!(of.map(|field| settings[field].as_str().unwrap()), ["all", "0.2", "50", "rtt"]);
    assert_eq!(run["setup"], rows["rows"][0]["setup"]);
    assert_eq!(run["detection"][0]["signal"], "rtt");
}

/// Runs the command, which must be refused; returns its line.
fn refused(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_folder_holds_results_of_one_command() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let with =
        |args: &[&'static str]| [args, &SHORT, &["--out", out.to_str().unwrap()]].concat::<&str>();
    let run = with(&["run", "sbd/sb-2", "--cc", "lia"]);
    narrows(&run);
    let bytes = || fs::read(out.join("summary.json")).unwrap();
    let first = bytes();
    for other in [
        &["run", "sbd/sb-2", "--cc", "olia"][..],
        &["run", "sbd/sb-2", "--cc", "lia", "--seed", "2"],
        &["run", "sbd/nsb-2", "--cc", "lia"],
        &["run", "sbd/sb-2", "--cc", "lia", "--set", "jitter=0 packets"],
        &["compare", "sbd/sb-2", "--cc", "lia", "--seeds", "1"],
        &["compare", "sbd/sb-2", "--cc", "lia", "--seeds", "1", "--resume"],
    ] {
        let line = refused(&with(other));
        let message = "out: holds other results, those of \"";
        assert!(line.contains(message) && line.contains(" run sbd/sb-2 --cc lia "), "{line}");
        assert!(line.ends_with("choose another folder, or remove this one first\n"), "{line}");
    }
    narrows(&run);
    assert_eq!(bytes(), first);

    let file = out.join("provenance.json");
    let old = fs::read_to_string(&file).unwrap().replace("\"format\": 2", "\"format\": 1");
    fs::write(&file, old).unwrap();
    assert!(refused(&run).contains("out: holds results in format 1, not 2;"));
    fs::remove_file(&file).unwrap();
    assert!(refused(&run).contains("out: holds results without a provenance.json;"));
    fs::remove_file(out.join("summary.json")).unwrap();
    fs::write(out.join("unfinished.jsonl"), "").unwrap();
    assert!(refused(&run).contains("out: holds an interrupted comparison;"));
}

#[test]
fn a_sweep_runs_each_value_of_a_field() {
    let mut args = vec!["compare", "sbd/nsb-2", "--cc", "reno", "--seeds", "1", "--json"];
    args.extend(["--sweep", "links.bottleneck1.rate=5..20 Mbit/s:4"]);
    args.extend(SHORT);
    let json: Value = serde_json::from_str(&narrows(&args)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let values: Vec<&str> =
        rows.iter().map(|row| row["set"][0]["value"].as_str().unwrap()).collect();
    assert_eq!(values, ["5 Mbit/s", "10 Mbit/s", "15 Mbit/s", "20 Mbit/s"]);
    let goodput = |row: &Value| row["goodput_mbps"]["mean"].as_f64().unwrap();
    assert!(goodput(&rows[0]) < goodput(&rows[3]), "a faster link carries more");
}

#[test]
fn a_sweep_of_several_fields_runs_every_combination() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut args = vec!["compare", "sbd/nsb-2", "--cc", "reno", "--seeds", "1"];
    args.extend(["--sweep", "links.bottleneck1.rate=1..9 Mbit/s:3:log"]);
    args.extend(["--sweep", "flows.mptcp.scheduler=min-rtt,round-robin"]);
    args.extend(SHORT);
    let json: Value = serde_json::from_str(&narrows(&[&args[..], &["--json"]].concat())).unwrap();
    let point = |field: &str, value: &str, number: Value, unit: Value| json!({ "field": field, "value": value, "number": number, "unit": unit });
    let rows = json["rows"].as_array().unwrap();
    let sets: Vec<&Value> = rows.iter().map(|row| &row["set"]).collect();
    let mut expected = Vec::new();
    for rate in [1.0, 3.0, 9.0] {
        for scheduler in ["min-rtt", "round-robin"] {
            let unit = "Mbit/s".into();
            expected.push(json!([
                point("links.bottleneck1.rate", &format!("{rate} Mbit/s"), rate.into(), unit),
                point("flows.mptcp.scheduler", scheduler, Value::Null, Value::Null),
            ]));
        }
    }
    assert_eq!(sets, expected.iter().collect::<Vec<_>>());
    assert_ne!(rows[0]["setup"]["scenario_sha256"], rows[1]["setup"]["scenario_sha256"]);

    let csv = narrows(&[&args[..], &["--csv"]].concat());
    let mut lines = csv.lines();
    let set = "set_field,set_value,set_number,set_unit,set2_field,set2_value,set2_number,set2_unit";
    assert!(lines.next().unwrap().starts_with(&format!("scenario,{set},cc,signal,")), "{csv}");
    let set = "links.bottleneck1.rate,1 Mbit/s,1,Mbit/s,flows.mptcp.scheduler,min-rtt,,";
    assert!(lines.next().unwrap().starts_with(&format!("sbd/nsb-2,{set},reno,,sim,1,0,")), "{csv}");

    let text = narrows(&[&args[..], &["--out", out.to_str().unwrap()]].concat());
    assert!(text.contains("\nrate        scheduler    cc    "), "{text}");
    assert!(text.contains("\n  3 Mbit/s  round-robin  reno "), "{text}");
    assert!(text.contains("\nscheduler  flows.mptcp.scheduler\n"), "{text}");
    assert!(text.contains("\nqueue      "), "there is room for metrics: {text}");
    assert!(
        text.contains(" --set 'links.bottleneck1.rate=9 Mbit/s' --set flows.mptcp.sched"),
        "{text}"
    );
    let one =
        "runs/sbd/nsb-2/links.bottleneck1.rate=3_Mbit_s/flows.mptcp.scheduler=round_robin/reno";
    assert!(out.join(one).join("seed-1.json").is_file());
    assert!(text.contains("\n  runs/SCENARIO/FIELD=VALUE/FIELD=VALUE/CC/\n"), "{text}");

    let twice = ["--sweep", "flows.mptcp.scheduler=min-rtt,round-robin"];
    let line = refused(&[&args[..], &twice].concat());
    assert!(line.contains("--sweep flows.mptcp.scheduler: is swept twice;"), "{line}");
    let many = ["duration", "warmup", "seed"].map(|field| format!("{field}=1..1000 s:1000"));
    let many = [&args[..], &["--sweep", &many[0], "--sweep", &many[1], "--sweep", &many[2]]];
    let line = refused(&many.concat());
    assert!(line.contains("--sweep: 6000000000 points are too many; expected at most"), "{line}");
}

#[test]
fn a_run_writes_captures() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("pcap");
    let there = folder.to_str().unwrap();
    let mut args = vec!["run", "phone/wifi-lte", "--pcap", there, "--capture", "tcp-lte,lte"];
    args.extend(SHORT);
    let text = narrows(&args);
    let files = ["tcp-lte.sender.pcapng", "tcp-lte.receiver.pcapng", "lte.link.pcapng"];
    assert!(text.contains(&format!("Captures in {there}: {}", files.join(", "))), "{text}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), files.len() + 1, "and provenance.json");
    for file in files {
        // A section header block (draft-ietf-opsawg-pcapng, section 4.1), and then some packets.
        let bytes = fs::read(folder.join(file)).unwrap();
        assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && bytes.len() > 10_000, "{file}");
    }
}

/// Started from a shipped one: its base and its trace are found, wherever the file is.
#[test]
fn a_shown_file_runs_from_any_folder() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mine.toml");
    for name in ["sbd/nsb-3-red", "phone/wifi-lte"] {
        for args in [&["show", name][..], &["show", name, "--resolved"]] {
            fs::write(&file, narrows(args)).unwrap();
            let shown = narrows(&["run", file.to_str().unwrap(), "--dry-run"]);
            assert_eq!(shown, narrows(&["run", name, "--dry-run"]), "{args:?}");
        }
    }
    let red = ["show", "sbd/sb-2", "--resolved", "--set", "links.bottleneck1.aqm=red"];
    assert!(narrows(&red).contains("[links.bottleneck1.aqm.red]\nmin = \"5 packets\""));
}
