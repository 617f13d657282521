//! `narrows detect` on captures of the simulator, on logs of QUIC and on tables.

#![cfg(all(feature = "detect", feature = "lab"))]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = narrows(args);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = narrows(args);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?}");
    line.trim_end().strip_prefix("narrows: ").unwrap().to_owned()
}

/// What was captured of the two subflows of an uncoupled connection, at both of its hosts.
fn captured(scenario: &str, folder: &Path) -> [String; 2] {
    let out = folder.join("pcap");
    let out = out.to_str().unwrap();
    let args = ["--cc", "reno", "--pcap", out, "--capture", "mptcp", "--set", "duration=70 s"];
    printed(&[&["run", scenario], &args[..]].concat());
    ["sender", "receiver"].map(|host| format!("{out}/mptcp.{host}.pcapng"))
}

/// A capture of scripts/record-downloads.
fn capture(name: &str) -> String {
    format!("{}/tests/captures/{name}.pcap.gz", env!("CARGO_MANIFEST_DIR"))
}

/// Is this what is kept in `tests/kept`?
fn kept(name: &str, found: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kept");
    narrows_testkit::assert_kept(&Path::new(folder).join(name), found);
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(&[args, &["--json"]].concat())).unwrap()
}

/// An array of names.
fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// The verdicts on each two flows.
fn verdicts(result: &Value) -> Vec<&str> {
    let verdicts = result["verdicts"].as_array().unwrap();
    verdicts.iter().map(|verdict| verdict["verdict"].as_str().unwrap()).collect()
}

/// Groups in an order of their own.
fn sorted(mut groups: Vec<Vec<&str>>) -> Vec<Vec<&str>> {
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort();
    groups
}

/// Decisions from a time on, and those of them with exactly these groups.
fn decided(result: &Value, from_s: f64, groups: &[&[&str]]) -> (usize, usize) {
    let wanted = sorted(groups.iter().map(|group| group.to_vec()).collect());
    let decisions = result["decisions"].as_array().unwrap().iter();
    let late: Vec<&Value> =
        decisions.filter(|decision| decision["t_s"].as_f64().unwrap() >= from_s).collect();
    let right = late.iter().filter(|decision| {
        let groups = decision["groups"].as_array().unwrap().iter();
        sorted(groups.map(names).collect()) == wanted
    });
    (late.len(), right.count())
}

#[test]
fn subflows_are_told_apart_at_both_hosts() {
    for (scenario, verdict) in [("sbd/sb-2", "shared"), ("sbd/nsb-2", "separate")] {
        let home = tempfile::tempdir().unwrap();
        let [sender, receiver] = captured(scenario, home.path());
        let signals = [(&sender, "owd-sender"), (&receiver, "owd-receiver")];
        for (file, signal) in signals {
            let result = json(&["detect", file]);
            let by = (&result["detector"], &result["signal"]);
            assert_eq!(by, (&"xcorr".into(), &signal.into()));
            let names = names(&result["flows"]);
            // Both are known by the same connection.
            let token = |name: &str| name.split_once(" mptcp ").unwrap().1.to_owned();
            assert_eq!(token(names[0]), token(names[1]));
            assert_eq!((token(names[0]).len(), names.len()), (8, 2));
            assert!(names.iter().any(|name| name.starts_with("10.1.0.1:40001 > 10.101.0.1:5001 ")));
            // From 10 s on all decisions are right.
            let groups: &[&[&str]] = match verdict {
                "shared" => &[&names],
                _ => &[&names[..1], &names[1..]],
            };
            let (all, right) = decided(&result, 10.0, groups);
            assert!(all > 100 && right == all, "{scenario} {signal}: {right} of {all}");
            assert_eq!(verdicts(&result), [verdict], "{scenario} {signal}");
            let of = &result["verdicts"][0];
            assert_eq!(of["flows"], result["flows"]);
            assert!(of["since_s"].as_f64().unwrap() < 10.0, "{of}");
            let concordance = of["concordance"].as_f64().unwrap();
            assert_eq!(concordance > 0.5, verdict == "shared", "{of}");
            assert!(of["observations"].as_u64().unwrap() > 0, "{of}");
        }
    }
}

#[test]
fn detectors_beside_each_other() {
    let file = capture("mptcp-shared");
    let results = json(&["detect", &file, "--detector", "all"]);
    let results = results.as_array().unwrap();
    let names: Vec<&str> =
        results.iter().map(|result| result["detector"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["xcorr", "ssc", "tr"]), "{names:?}");
    // Each is as when it is alone.
    for (name, result) in names.iter().zip(results) {
        assert_eq!(*result, json(&["detect", &file, "--detector", name]));
    }
    // A detector that groups flows says in how many decisions.
    let of = &results[1]["verdicts"][0];
    assert_eq!((&of["verdict"], &of["agree"]), (&"shared".into(), &4.into()), "{of}");
    assert_eq!(of["decisions"], 4, "from 24.5 s on");

    let text = printed(&["detect", &file, "--detector", "ssc,xcorr,ssc"]);
    assert!(text.starts_with("ssc    The 2 flows share a bottleneck.\nxcorr  The 2 "), "{text}");
    let row = text.lines().last().unwrap();
    assert_eq!((row.matches("shared, ").count(), &row[..11]), (2, "  #1  #2  s"), "{text}");
}

#[test]
fn text_plots_and_damage() {
    let home = tempfile::tempdir().unwrap();
    let [sender, _] = captured("sbd/sb-2", home.path());
    for (name, magic) in [("p.svg", "<svg".as_bytes()), ("p.png", b"\x89PNG")] {
        let plot = home.path().join(name);
        let text = printed(&["detect", &sender, "--plot", plot.to_str().unwrap()]);
        assert!(
            text.starts_with("The 2 flows share a bottleneck.\n\nxcorr on 2 flows, "),
            "{text}"
        );
        assert!(
            text.contains("\n  #1  #2  shared  ") && text.contains(" concordance 0.9"),
            "{text}"
        );
        assert!(text.contains("undecided: #1, #2\n") && text.ends_with("  #1+#2\n"), "{text}");
        let drawn = fs::read(&plot).unwrap();
        assert!(drawn.starts_with(magic) && drawn.len() < 300_000, "{name}: {}", drawn.len());
        if let Some(head) = str::from_utf8(&drawn).ok().and_then(|svg| svg.get(..600)) {
            assert!(
                head.starts_with("<svg role=\"img\" aria-labelledby=\"title desc\" "),
                "{head}"
            );
            assert!(head.contains("><title id=\"title\">one-way delay"), "{head}");
            assert!(head.contains("<desc id=\"desc\">2 flows, #1 the first"), "{head}");
        }
    }
    let ssc = ["detect", &sender, "--detector", "ssc"];
    let text = printed(&ssc);
    assert!(text.contains(" decisions\n") && text.contains("  #1+#2 ("), "{text}");
    let set = |one, other| printed(&[&ssc[..], &["--json", "--set", one, "--set", other]].concat());
    let (preset, own) = ("ssc.preset=mptcp-sbd", "ssc.t_ms=500");
    assert_eq!(set(preset, own), set(own, preset));
    // Nothing else is left behind.
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3);

    let whole = fs::read(&sender).unwrap();
    let cut = home.path().join("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() / 2 + 3]).unwrap();
    let output = narrows(&["detect", cut.to_str().unwrap()]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.lines().count() == 1, "{warning}");
    assert!(warning.contains("cut.pcapng: it ends within the packet at byte"), "{warning}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("who shares a bottleneck"));
}

#[test]
fn mistakes_are_reported_before_anything_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("t.csv");
    fs::write(&table, "flow,t_s,owd_ms\na,1,2\nb,2,3\n").unwrap();
    let table = table.to_str().unwrap();
    let of = |args: &[&str]| refused(&[&["detect", table, "--min-packets", "1"], args].concat());
    assert_eq!(
        of(&["--detector", "magic"]),
        "--detector: unknown detector of captures and tables 'magic'; expected one of: xcorr, ssc, tr, dcw, all"
    );
    assert!(
        of(&["--detector", "ssc,magic"])
            .contains("unknown detector of captures and tables 'magic'")
    );
    assert!(
        of(&["--detector", "btlbw"]).contains("unknown detector of captures and tables 'btlbw'")
    );
    assert!(of(&["--set", "ssc.p_s"]).contains("--set: expected NAME=VALUE, found \"ssc.p_s\""));
    assert!(
        of(&["--set", "decision.together=11"]).contains("--set: decision.together: '11' is not")
    );
    assert!(of(&["--set", "ssc.p_s=much"]).contains("--set: ssc.p_s: 'much' is not a number"));
    assert_eq!(
        of(&["--set", "ssc.p_s=0.1"]),
        "--set ssc.p_s: ssc does not run; expected --detector with ssc"
    );
    assert_eq!(
        of(&["--set", "olia.floor=2"]),
        "--set olia.floor: expected a parameter of a detector, such as ssc.p_s"
    );
    assert!(
        refused(&["detect", "-i", "lo", "--for", "0s"]).contains("expected seconds above 0, such")
    );
    assert!(of(&["--flows", "65"]).contains("--flows"));
    assert!(
        of(&["--plot", "p.pdf"]).contains("p.pdf: expected a name that ends with .svg or .png")
    );
    assert_eq!(
        of(&["--plot", "/nowhere/p.svg"]),
        "/nowhere/p.svg: cannot write: No such file or directory (os error 2)"
    );
    let folder = home.path().join("p.svg");
    fs::create_dir(&folder).unwrap();
    assert!(
        of(&["--plot", folder.to_str().unwrap()])
            .contains("p.svg: expected a file, found a folder")
    );
    // One line, before the file is read: not after a note about it.
    let few = |args: &[&str]| refused(&[&["detect", table], args].concat());
    for (option, name, expected) in [
        ("--plot", "p.pdf", "expected a name that ends with .svg or .png"),
        ("--report", "p.txt", "expected a name that ends with .html or .htm"),
        ("--report", "/nowhere/p.html", "cannot write: No such file or directory (os error 2)"),
    ] {
        assert_eq!(few(&[option, name]), format!("{name}: {expected}"));
        assert_eq!(
            refused(&["detect", "/nowhere.pcap", option, name]),
            format!("{name}: {expected}")
        );
    }
    assert_eq!(few(&["-"]), "-: standard input is read alone");
    for option in ["--flows", "--min-packets"] {
        let line = few(&[option, "-1"]);
        assert!(line.contains(&format!("invalid value '-1' for '{option} <N>'")), "{line}");
    }
    let losses = home.path().join("losses.csv");
    fs::write(&losses, "flow,t_s,owd_ms\na,1,\n").unwrap();
    let text = printed(&["detect", table, "--losses", losses.to_str().unwrap()]);
    assert!(text.starts_with("Cannot tell"), "a table of losses has other columns: {text}");
    assert!(of(&["--losses", "/nowhere.csv"]).contains("/nowhere.csv: cannot read"));
    assert!(refused(&["detect", "/nowhere.pcap"]).contains("/nowhere.pcap: cannot read"));
    let folder = home.path().to_str().unwrap();
    assert!(refused(&["detect", folder]).contains("expected a file, as it is read twice"));
    let text = printed(&["detect", table, "--detector", "ssc"]);
    assert!(
        text.starts_with("Cannot tell whether the 2 flows share a bottleneck, because too few of ")
    );
    assert!(
        text.ends_with("too few delays: ssc needs about 21 s in which both flows send\n"),
        "{text}"
    );
    let result = json(&["detect", table, "--detector", "ssc"]);
    assert_eq!(result["decisions"], Value::Array(vec![]));
    assert_eq!(
        result["verdicts"].to_string(),
        r#"[{"flows":["a","b"],"needs":"about 21 s in which both flows send","verdict":"cannot tell","why":"too few delays"}]"#
    );
    let text = printed(&["detect", table, "--detector", "ssc,xcorr"]);
    let needs = "too few delays: ssc needs about 21 s in which both flows send\n\
                 too few delays: xcorr needs about 4 s in which both flows send\n";
    assert!(text.ends_with(needs), "{text}");
}

/// Whole outputs, as users see them.
#[test]
fn reports() {
    let of = |args: &[&str]| printed(&[&["detect"], args].concat());
    let (pairs, subflows) = (capture("four-in-pairs"), capture("mptcp-shared"));
    kept("detect-pairs.txt", &of(&[&pairs]));
    kept("detect-all.txt", &of(&[&subflows, "--detector", "all"]));
    let json = of(&[&subflows, "--json"]);
    let last: Vec<&str> = json.lines().rev().take(8).collect();
    kept("detect-json-end.txt", &(last.into_iter().rev().collect::<Vec<_>>().join("\n") + "\n"));
}

#[test]
fn standard_input_and_compressed_files_are_read_as_files_are() {
    let capture = capture("cubic-shared");
    let expected = printed(&["detect", &capture]);
    let home = tempfile::tempdir().unwrap();
    let plain = Command::new("gunzip").args(["-c", &capture]).output().unwrap().stdout;
    let (first, second) = plain.split_at(plain.len() / 2);
    let packed = [zstd_frame(first), zstd_frame(second)].concat();
    let file = home.path().join("c.pcap.zst");
    fs::write(&file, &packed).unwrap();
    assert_eq!(printed(&["detect", file.to_str().unwrap()]), expected);
    for packed in [capture.as_str(), file.to_str().unwrap()] {
        let from = fs::File::open(packed).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
            .args(["detect", "-"])
            .stdin(from)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    }
}

/// A frame of zstd with raw blocks (RFC 8878, section 3.1.1).
fn zstd_frame(data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    frame.extend((data.len() as u32).to_le_bytes());
    let blocks = data.chunks(1 << 16);
    let last = blocks.len() - 1;
    for (index, block) in blocks.enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(index == last);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}

/// Control connections, damaged times, and packets that were cut too short.
#[test]
fn what_a_capture_has_besides_is_said() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("t.csv");
    let mut table = "flow,t_s,rtt_ms\n".to_owned();
    for row in 0..300 {
        table += &format!("30,{row},20.5\n31,{row}.2,{}\n", row % 7);
        if row % 100 == 0 {
            table += &format!("control,{row}.3,1\n");
        }
    }
    fs::write(&file, table).unwrap();
    let file = file.to_str().unwrap();
    let output = narrows(&["detect", file]);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "narrows: hidden: 1 flow of fewer than 100 packets, with 0.5 % of the rows (--min-packets 1 \
         shows all)\n"
    );
    let notes = &json(&["detect", file])["notes"];
    let said = format!("narrows: {}\n", notes[0].as_str().unwrap());
    assert_eq!(said, String::from_utf8_lossy(&output.stderr), "{notes}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\n  #1      300       1.00        20.5   0.0%  30\n"), "{text}");
    // As of what comes.
    assert_eq!(
        refused(&["detect", file, "--min-packets", "1000"]),
        format!("{file}: no flow has 1000 packets or more (--min-packets)")
    );
    let all = printed(&["detect", file, "--min-packets", "1"]);
    assert!(all.contains("\n  #3        3       0.01         1.0   0.0%  control\n"), "{all}");

    let out = home.path().join("pcap");
    let run = |snaplen: &str| {
        let set = ["--set", "duration=4 s", "--set", "warmup=1 s"];
        let out = out.to_str().unwrap();
        let pcap = ["--pcap", out, "--capture", "mptcp", "--snaplen", snaplen];
        printed(&[&["run", "sbd/sb-2"], &set[..], &pcap].concat());
        let _ = fs::remove_file(out.to_owned() + "/provenance.json");
        format!("{out}/mptcp.receiver.pcapng")
    };
    let short = refused(&["detect", &run("40")]);
    assert!(
        short.ends_with(
            "flows with 100 % of the data give no delay; capture 128 bytes of each packet (tcpdump \
             -s 128)"
        ),
        "{short}"
    );
}

/// Two flows whose delay rises and falls, the second 0.3 s after the first, and two that have no queue.
#[test]
fn a_reason_where_it_cannot_be_told() {
    let home = tempfile::tempdir().unwrap();
    let mut table = "flow,t_s,owd_ms\n".to_owned();
    for row in 0..6000 {
        let t_s = f64::from(row) / 200.0;
        let wave = |t_s: f64| 50.0 + 20.0 * (t_s * 5.0).sin() * (t_s * 1.7).cos();
        let delays = [("a", wave(t_s)), ("b", wave(t_s - 0.3)), ("c", 50.0), ("d", 20.0)];
        for (name, delay) in delays {
            table += &format!("{name},{t_s},{delay:.3}\n");
        }
    }
    let file = home.path().join("t.csv");
    fs::write(&file, table).unwrap();
    let file = file.to_str().unwrap();
    let result = json(&["detect", file]);
    let of = |pair: usize| {
        let of = &result["verdicts"][pair];
        let told = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
        (names(&of["flows"]), told("verdict"), told("why"))
    };
    let separate = || ("separate".to_owned(), String::new());
    for pair in 0..5 {
        let (flows, verdict, why) = of(pair);
        assert_eq!((verdict, why), separate(), "{flows:?}");
    }
    assert_eq!(of(5), (vec!["c", "d"], "cannot tell".into(), "no queue".into()));
    assert!(printed(&["detect", file]).starts_with(
        "No flows are known to share a bottleneck; for 1 of the 6 pairs it cannot be told, because "
    ));
}

/// Recordings of ns-3: flows 0 and 1 in one place, 30 and 31 in the other or in the same.
#[test]
fn recordings_of_another_simulator() {
    let Some(folder) = narrows_testkit::data("traces/ns3") else { return };
    for signal in ["owd", "rtt"] {
        for (name, groups) in [
            ("shared", &[&["0", "1", "30", "31"][..]][..]),
            ("sepeq", &[&["0", "1"], &["30", "31"]]),
        ] {
            let file = folder.join(format!("E3_droptail_cubic_{name}.{signal}.csv.gz"));
            let result = json(&["detect", file.to_str().unwrap()]);
            assert_eq!(result["signal"], signal);
            // Their queues are smooth: it takes longer to know that they are not in step.
            let (all, right) = decided(&result, 15.0, groups);
            assert!(all > 400 && right == all, "{name} {signal}: {right} of {all}");
            let shared = verdicts(&result).iter().filter(|verdict| **verdict == "shared").count();
            let separate =
                verdicts(&result).iter().filter(|verdict| **verdict == "separate").count();
            let wanted = if name == "shared" { (6, 0) } else { (2, 4) };
            assert_eq!((shared, separate), wanted, "{name} {signal}");
        }
    }
}

/// Downloads through queues of a kernel, with the queue of each path. From 10 s on all decisions are
/// right.
#[test]
fn real_downloads() {
    let captures = [
        ("reno-shared", &[1, 1][..]),
        ("reno-separate", &[1, 2]),
        ("cubic-shared", &[1, 1]),
        ("cubic-separate", &[1, 2]),
        ("bbr-shared", &[1, 1]),
        ("bbr-separate", &[1, 2]),
        ("ipv6-shared", &[1, 1]),
        ("ipv6-separate", &[1, 2]),
        ("mptcp-shared", &[1, 1]),
        ("mptcp-bbr-shared", &[1, 1]),
        ("four-in-pairs", &[1, 1, 2, 2]),
        ("three-wans", &[1, 1, 2]),
    ];
    for (name, queues) in captures {
        let file = capture(name);
        let result = json(&["detect", &file]);
        let flows = names(&result["flows"]);
        assert_eq!(flows.len(), queues.len(), "{name}: {flows:?}");
        // Path 1 is 10.1.0.0/16 and fd00:1::/32.
        let queue = |flow: &str| {
            let path = |path: &usize| {
                flow.starts_with(&format!("10.{path}."))
                    || flow.starts_with(&format!("[fd00:{path}:"))
            };
            queues[(1..=queues.len()).find(path).unwrap() - 1]
        };
        let mut groups: [Vec<&str>; 2] = Default::default();
        for flow in flows {
            groups[queue(flow) - 1].push(flow);
        }
        let groups = groups.iter().filter(|group| !group.is_empty());
        let (all, right) =
            decided(&result, 10.0, &groups.map(|group| &group[..]).collect::<Vec<_>>());
        assert!(all > 100 && right == all, "{name}: {right} of {all}");
        for verdict in result["verdicts"].as_array().unwrap() {
            let [a, b] = [0, 1].map(|of| queue(verdict["flows"][of].as_str().unwrap()));
            let wanted = if a == b { "shared" } else { "separate" };
            assert_eq!(verdict["verdict"], wanted, "{name}: {verdict}");
        }
    }
}

/// The log of a connection for 20 s: each 20 ms a round-trip time on each of its paths, in the queues of
/// these numbers.
fn qlog(queues: &[u64]) -> String {
    let mut log =
        "{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{\"common_fields\":\
                   {\"reference_time\":{\"epoch\":\"2026-01-01T00:00:00Z\"}}}}\n"
            .to_owned();
    let mut delays: Vec<(u64, f64)> = queues.iter().map(|&queue| (queue, 20.0)).collect();
    for step in 0..1000_u64 {
        for (path, (queue, delay)) in delays.iter_mut().enumerate() {
            // A queue grows and shrinks for some time each, by its number and the time alone.
            let mut hash =
                (step / 10 + 1).wrapping_mul(queue.wrapping_mul(2) + 0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let change = ((hash >> 40) % 9) as f64 - 4.0;
            *delay = (*delay + change).clamp(0.0, 60.0);
            let (ms, rtt) = (step as f64 * 20.0 + path as f64, 40.0 + *delay);
            log += &format!(
                "{{\"time\":{ms},\"name\":\"quic:recovery_metrics_updated\",\
                 \"data\":{{\"latest_rtt\":{rtt},\"path_id\":{path}}}}}\n"
            );
        }
    }
    log
}

#[test]
fn paths_of_a_connection_of_quic_and_connections_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let shared = json(&["detect", &file("shared.sqlog", &qlog(&[1, 1]))]);
    assert_eq!(names(&shared["flows"]), ["path 0", "path 1"]);
    assert_eq!((&shared["signal"], verdicts(&shared)), (&"rtt".into(), vec!["shared"]));
    let separate = json(&["detect", &file("separate.sqlog", &qlog(&[1, 2]))]);
    assert_eq!(verdicts(&separate), ["separate"]);
    let [a, b, c] = [("a", 1), ("b", 1), ("c", 2)]
        .map(|(name, queue)| file(&format!("{name}.sqlog"), &qlog(&[queue])));
    let three = json(&["detect", &a, &b, &c]);
    assert_eq!(names(&three["flows"]), ["a.sqlog", "b.sqlog", "c.sqlog"]);
    assert_eq!(verdicts(&three), ["shared", "separate", "separate"]);

    let cut = file("cut.sqlog", &qlog(&[1])[..5000]);
    let lines = qlog(&[1])[..5000].lines().count();
    assert_eq!(refused(&["detect", &cut]), format!("{cut} line {lines}: ends within an object"));
    let capture = capture("bbr-shared");
    let expected =
        "expected a qlog: of captures and tables one file is read (mergecap joins captures)";
    assert_eq!(refused(&["detect", &a, &capture]), format!("{capture}: {expected}"));
    assert!(refused(&["detect", &a, "--at", "sender"]).contains("expected a capture for FILE"));
    let losses = refused(&["detect", &a, &b, "--losses", &c]);
    assert_eq!(losses, "--losses: a qlog includes losses; expected one CSV for FILE");
}

/// 20 small flows with acknowledgements hide one of 300 packets that nobody acknowledges.
#[test]
fn where_no_flow_of_enough_packets_gives_a_delay_there_is_an_error_that_says_so() {
    let Some(file) = narrows_testkit::data("cases/no-flow-left/none.pcap") else { return };
    let line = refused(&["detect", file.to_str().unwrap()]);
    assert!(line.contains("hidden: 20 flows of fewer than "), "{line}");
    assert!(line.contains("; no flow gives a delay: "), "{line}");
}

#[test]
fn subflows_of_version_0_of_mptcp_have_their_connections_token() {
    let Some(file) = narrows_testkit::data("cases/mptcp-v0-token/v0.pcap") else { return };
    let result = json(&["detect", "--min-packets", "1", file.to_str().unwrap()]);
    let flows = names(&result["flows"]);
    let tokens: Vec<_> = flows.iter().filter_map(|flow| flow.split_once(" mptcp ")).collect();
    assert!(matches!(tokens[..], [(_, one), (_, other)] if one == other), "{flows:?}");
}

/// As `any` over a bond has them; without IP's identification.
#[test]
fn each_packet_twice_is_as_each_packet_once() {
    let Some(folder) = narrows_testkit::data("cases/each-packet-twice") else { return };
    for host in ["receiver", "sender"] {
        let of = |name: String| json(&["detect", folder.join(name).to_str().unwrap()]);
        let (mut twice, mut once) =
            (of(format!("{host}.pcap.gz")), of(format!("once-{host}.pcap.gz")));
        assert_eq!(verdicts(&twice), ["shared"], "{host}");
        // The copies are told.
        assert_ne!(twice["notes"].take(), once["notes"].take(), "{host}");
        assert_eq!(twice, once, "{host}");
    }
}

/// A capture of scripts/record-downloads as tcpdump wrote it.
fn plain(name: &str) -> Vec<u8> {
    Command::new("gunzip").args(["-c", &capture(name)]).output().unwrap().stdout
}

/// `narrows detect` with its standard input and output open.
fn piped(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.arg("detect").args(args).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

#[test]
fn what_comes_is_answered_while_it_comes() {
    let capture = plain("cubic-shared");
    let (most, rest) = capture.split_at(capture.len() / 2);
    let mut child = piped(&["-", "--json"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    stdin.write_all(most).unwrap();
    stdin.flush().unwrap();
    // The rest is not there yet.
    let mut flows = Vec::new();
    let shared = loop {
        let line = next();
        flows.extend(line["joined"].as_str().map(str::to_owned));
        if line["groups"][0].as_array().is_some_and(|group| group.len() == 2) {
            break line;
        }
    };
    assert_eq!(flows.len(), 2);
    assert!(shared["t_s"].as_f64().unwrap() < 20.0, "{shared}");
    stdin.write_all(rest).unwrap();
    drop(stdin);
    let mut line = next();
    while line["verdicts"].is_null() {
        line = next();
    }
    assert_eq!(line["verdicts"][0]["verdict"], "shared");
    assert_eq!(line["traffic"].as_array().unwrap().len(), 2);
    assert!(line["notes"].is_array(), "{line}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn ctrl_c_ends_what_comes_with_the_answer() {
    let mut child = piped(&["-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&plain("bbr-shared")).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = |line: std::io::Result<String>| line.unwrap().ends_with("  #1+#2");
    assert!(lines.by_ref().any(told));
    interrupt(&child);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line == "The 2 flows share a bottleneck."), "{rest:?}");
    assert!(child.wait().unwrap().success());
    drop(stdin);
}

/// With a tcpdump of ours, which has a capture in place of an interface.
#[test]
fn an_interface_is_captured_until_the_end_of_the_time_and_drops_are_said() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("capture"), plain("cubic-separate")).unwrap();
    let program = home.path().join("tcpdump");
    let script = "#!/bin/sh\n\
        cd \"$(dirname \"$0\")\" || exit\n\
        echo \"$@\" > arguments\n\
        [ \"$2\" = nr0 ] || { echo \"tcpdump: $2: No such device exists\" >&2; exit 1; }\n\
        trap 'echo 12 packets dropped by kernel >&2; exit 0' INT\n\
        /bin/cat capture\n\
        while :; do /bin/sleep 0.05; done\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let detect = |args: &[&str], path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        let path = format!("{}:/usr/bin:/bin", path.display());
        command.arg("detect").args(args).env("PATH", path).output().unwrap()
    };
    let arguments = ["-i", "nr0", "--for", "2s", "--filter", "tcp port 5201"];
    let output = detect(&arguments, home.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("The 2 flows have separate bottlenecks."), "{text}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "narrows: nr0: 12 packets dropped by kernel\n");
    let given = fs::read_to_string(home.path().join("arguments")).unwrap();
    assert_eq!(given, "-i nr0 -s 192 -U -w - -- tcp port 5201\n");
    // It ends on its own: what was found until then is not lost.
    let ends =
        script.replace("while :; do /bin/sleep 0.05; done", "echo nr0: it went down >&2; exit 1");
    fs::write(&program, ends).unwrap();
    let output = detect(&["-i", "nr0"], home.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("The 2 flows have separate bottlenecks."), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "narrows: nr0: tcpdump: it went down\n");
    assert_eq!(output.status.code(), Some(2));
    fs::write(&program, script.replace("while :; do /bin/sleep 0.05; done", "kill -9 $$")).unwrap();
    let said = String::from_utf8_lossy(&detect(&["-i", "nr0"], home.path()).stderr).into_owned();
    assert!(said.starts_with("narrows: nr0: tcpdump was killed (signal: 9"), "{said}");
    fs::write(&program, script).unwrap();
    let output = detect(&["-i", "nr1"], home.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "narrows: nr1: tcpdump: No such device exists\n");
    assert_eq!(output.status.code(), Some(2));
}
