//! Ctrl-C and closed pipes.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn narrows(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until a comparison with this output folder is in its runs.
fn wait_for_runs(out: &std::path::Path) {
    // The folder is there once the runs are about to begin.
    let patience = Instant::now() + Duration::from_secs(60);
    while !out.exists() {
        assert!(Instant::now() < patience, "the command never started");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
}

fn signal(child: &std::process::Child, signal: i32) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: kill() takes numbers only; the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn nohup_outlives_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_narrows")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let args = ["compare", "sbd/nsb-5", "--cc", "lia", "--seeds", "100000", "--out"];
    let mut child = command.args(args).arg(&out).spawn().unwrap();
    wait_for_runs(&out);
    signal(&child, libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(500));
    let status = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status, None, "a hang-up ended the command");
}

#[test]
fn ctrl_c_ends_a_comparison_at_once_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("results/here");
    let args = ["compare", "sbd/nsb-5", "--cc", "lia", "--seeds", "100000", "--out"];
    let mut child = narrows(&args).arg(&out).spawn().unwrap();
    wait_for_runs(&out);
    signal(&child, libc::SIGINT);
    let patience = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > patience {
            child.kill().unwrap();
            panic!("the command goes on after Ctrl-C");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(status.code(), Some(130), "{told}");
    let told: Vec<&str> = told.lines().collect();
    assert!(told[0].contains("million transmissions ahead, which may take hours"), "{told:?}");
    assert_eq!(told[1..], ["narrows: interrupted, nothing was written"]);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "something was left behind");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [&["list"][..], &["completions", "bash"], &["run", "sbd/nsb-5", "--dry-run"]] {
        let mut child = narrows(args).spawn().unwrap();
        // Closes the pipe before anything is read.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}
