//! `narrows kernel check` and `status`, on any machine and for any user.

#![cfg(feature = "kernel")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

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
