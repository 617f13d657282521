//! `narrows kernel check`, `status` and `trial merge`, on any machine and for any user.

#![cfg(feature = "kernel")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

fn narrows(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.arg("kernel").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn check_answers_by_its_exit_code_and_names_the_command() {
    let output = narrows(&["check"]).output().unwrap();
    let missing = stdout(&output).matches("\n  missing ").count();
    let code = i32::from(missing > 0);
    assert_eq!(output.status.code(), Some(code), "{}", stdout(&output));
    let ready = stdout(&output).lines().last().unwrap_or_default().starts_with("ready");
    assert_eq!(ready, missing == 0, "{}", stdout(&output));
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = if missing > 0 {
        format!("narrows: not ready: {missing} missing\n")
    } else {
        String::new()
    };
    assert_eq!(error, expected);
}

#[test]
fn a_namespace_that_is_not_there_is_wrong_input() {
    let output = narrows(&["check", "--netns", "nr-not-there"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("/run/netns/nr-not-there"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn status_is_one_json_object_with_the_current_namespace() {
    let output = narrows(&["status", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["format"], 3);
    assert!(status["interval_s"].as_f64().unwrap() >= 0.25);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(status["kernel"]["release"], release.trim());
    let current = |namespace: &&Value| namespace["is_current"] == true;
    assert_eq!(status["namespaces"].as_array().unwrap().iter().filter(current).count(), 1);
}

/// Reads the first two lines that hold `word`, then sends `signal`; the exit code. The pipe stays
/// open till the end, so that it is the signal that ends it.
fn two_then(mut child: Child, word: &str, signal: i32) -> (Vec<String>, Option<i32>) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen = lines.by_ref().filter(|line| line.contains(word)).take(2).collect();
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: kill() takes numbers only; the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    let code = child.wait().unwrap().code();
    drop(lines);
    (seen, code)
}

#[test]
fn watch_prints_block_after_block_where_there_is_no_terminal_and_ctrl_c_ends_it() {
    let child = narrows(&["status", "--watch"]).spawn().unwrap();
    let (seen, code) = two_then(child, "network namespace", libc::SIGINT);
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|line| !line.contains('\x1b')), "{seen:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn watch_as_json_is_an_object_a_line() {
    let child = narrows(&["status", "--watch", "--json"]).spawn().unwrap();
    let (seen, code) = two_then(child, "{", libc::SIGTERM);
    let intervals: Vec<Value> = seen
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["interval_s"].clone())
        .collect();
    assert_eq!(intervals[0], Value::Null);
    assert!((0.9..2.0).contains(&intervals[1].as_f64().unwrap()), "{intervals:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn watch_ends_when_its_reader_does() {
    let mut child = narrows(&["status", "--watch"]).spawn().unwrap();
    // The reader reads one line and closes the pipe.
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// As `trial status --json` prints it of a host: 100 connections in each arm, of 10 and of 5 Mbit/s.
fn found(host: &str) -> Value {
    let sums = |log2: u64| {
        json!({
            "n": 100, "goodput": 100 * log2, "goodput2": 100 * log2 * log2, "retrans": 0, "retrans2": 0,
            "bytes": 100_000_000, "busy_ms": 160_000, "segs": 70_000, "retrans_segs": 0, "paths": 200,
            "grouped": 100, "groups": 100, "silent_ms": 0,
        })
    };
    let bins = [[122, 60], [130, 40]];
    let arm = |control: &str| -> Value {
        json!({ "control": control, "connections": 120, "open": 20, "srtt_bins": bins })
    };
    json!({
        "format": 1, "version": env!("CARGO_PKG_VERSION"),
        "trials": [{ "host": host, "id": host, "ended": null }],
        "ran_s": 600.0, "lasts_s": 86400.0, "share": 0.5, "mptcp_only": false, "ports": [443],
        "guards": { "goodput": 0.9, "retransmits": null, "p95_srtt": null },
        "arms": [arm("cubic"), arm("nr_gcub_xc")],
        "strata": [{ "paths": 2, "bytes_from": 1_000_000, "sums": [sums(20_739), sums(19_715)] }],
        "planned_connections": 8000, "others": 3, "full": 0, "refused": 0, "given_again": 0, "put_back": 0,
        "longest_look_ms": 0.5, "a field of a later version": 1,
    })
}

#[test]
fn trials_of_several_hosts_are_added_up_by_anybody() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let merge =
        |args: &[&str]| narrows(&[&["trial", "merge"][..], args].concat()).output().unwrap();
    let does = |args: &[&str]| {
        let output = merge(args);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0));
        stdout(&output).to_owned()
    };
    // Lines of a timer, of which the last one counts; an object over several lines.
    let a = file("a.json", format!("not this\n{}\n\n", found("a")));
    let b = file("b.json", format!("{:#}\n", found("b")));
    let text = does(&[&a, &b]);
    let head = "nr_gcub_xc against cubic, 50 % of new connections: 2 trials, 0 of them ended\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with(" % less goodput than cubic.\n"), "{text}");
    let counted = text.lines().find(|line| line.starts_with("  with something to send")).unwrap();
    let counted: Vec<&str> = counted.split_whitespace().skip(4).collect();
    assert_eq!(counted, ["200", "200"]);

    let page = folder.path().join("page.html");
    let both = does(&[&a, &b, "--json", "--report", page.to_str().unwrap()]);
    let json: Value = serde_json::from_str(&both).unwrap();
    assert_eq!((&json["others"], &json["arms"][1]["open"]), (&6.into(), &40.into()));
    assert_eq!(json["goodput"]["differs"], true);
    assert!(std::fs::read_to_string(page).unwrap().contains("2 trials, 0 of them ended"));

    // One that was pooled, and one that a guard ended, on a host of a name to fear.
    let mut evil = found("ev\u{1b}[31m\nil");
    evil["trials"][0]["ended"] = "guard, goodput fell".into();
    let (both, evil) = (file("both.json", both), file("evil.json", evil.to_string()));
    let text = does(&[&both, &evil]);
    assert!(text.contains(": 3 trials, 1 of them ended\n"), "{text}");
    assert!(text.contains("\nended on ev\\u001b[31m\\nil: guard, goodput fell\n"), "{text}");

    let mut other = found("c");
    other["arms"][1]["control"] = "nr_greno".into();
    let other = file("other.json", other.to_string());
    let cut = file("cut.json", found("d").to_string()[..200].to_owned());
    // An object over several lines that lacks a field, and lines of which the last one does.
    let mut lacks = found("e");
    lacks.as_object_mut().unwrap().remove("others");
    let object = file("object.json", format!("{lacks:#}\n"));
    let lines = file("lines.json", format!("{}\n{lacks}\n", found("e")));
    let none = folder.path().join("none.json");
    let none = none.to_str().unwrap();
    let expected = "expected what narrows kernel trial status --json or stop --json prints: ";
    let differs = "the control that is tried is nr_greno, and nr_gcub_xc in";
    for (place, message) in [
        (&*other, format!("{differs} {a}: expected the same")),
        (&*both, format!("has the trial of host a that {a} has")),
        (&*cut, expected.to_owned()),
        (&*object, format!("{expected}missing field `others`")),
        (&*lines, format!("{expected}missing field `others`")),
        (none, "cannot read: No such file or directory".to_owned()),
    ] {
        let output = merge(&[&a, place]);
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.starts_with(&format!("narrows: {place}: {message}")), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    assert_eq!(merge(&[]).status.code(), Some(2), "a file, at least");
}
