//! Ctrl-C and closed pipes.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use narrows_testkit::kill_after_lines;

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
fn a_folder_is_of_the_command_that_writes_in_it() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let long = ["compare", "sbd/nsb-5", "--cc", "lia", "--seeds", "100000", "--out"];
    let mut child = narrows(&long).arg(&out).spawn().unwrap();
    wait_for_runs(&out);
    let resumed = [&long[..6], &["--resume", "--out"]].concat();
    for more in [&long[..], &resumed[..], &["papers", "laws", "--out"]] {
        let output = narrows(more).arg(&out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let busy = ": another narrows is writing here; expected another folder\n";
        assert!(said.ends_with(busy) && output.status.code() == Some(2), "{more:?}: {said}");
    }
    assert_eq!(child.try_wait().unwrap(), None, "the first goes on");
    signal(&child, libc::SIGINT);
    child.wait().unwrap();
}

#[test]
fn ctrl_c_ends_a_comparison_at_once_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("results/here");
    let args = ["compare", "sbd/nsb-5", "--cc", "lia", "--seeds", "100000", "--out"];
    let plots = home.path().join("plots");
    let mut child = narrows(&args).arg(&out).arg("--plots").arg(plots).spawn().unwrap();
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
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(status.code(), Some(130), "{message}");
    let message: Vec<&str> = message.lines().collect();
    assert!(message[0].contains("million packet-hops)"), "{message:?}");
    assert_eq!(message.len(), 2, "{message:?}");
    let line = message[1].strip_prefix("narrows: interrupted, no results were written").unwrap();
    // A fast machine may have finished a run.
    if line.is_empty() {
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "something was left behind");
    } else {
        assert!(line.contains(" of 100000 runs are saved in "), "{line}");
        assert!(!home.path().join("plots").exists(), "no plots of a part");
    }
}

/// All results below the folder, by name; not where they come from, which has the time in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if !path.ends_with("provenance.json") {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn a_killed_comparison_goes_on_and_gives_the_same_bytes() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let base = ["compare", "sbd/sb-2", "--cc", "reno,lia", "--seeds", "6", "--set"];
    let compare = |more: &[&str]| {
        let args = [&base, &["duration=4 s", "--out", out.to_str().unwrap()][..], more].concat();
        narrows(&args).current_dir(home.path()).spawn().unwrap()
    };
    assert!(compare(&[]).wait().unwrap().success());
    let whole = files(&out);
    assert!(whole.len() > 12, "{:?}", whole.keys());
    fs::remove_dir_all(&out).unwrap();

    let journal = out.join("unfinished.jsonl");
    let mut child = compare(&[]);
    kill_after_lines(&mut child, &journal, 3);
    let left: Vec<PathBuf> = files(&out).into_keys().collect();
    assert_eq!(left, [journal], "finished before it could be killed?");

    let refused = compare(&[]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        message.contains("an interrupted comparison is in this folder; --resume continues"),
        "{message}"
    );
    let refused = compare(&["--resume", "--set", "warmup=1 s"]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("belongs to other arguments"), "{message}");

    assert!(compare(&["--resume", "--jobs", "1"]).wait().unwrap().success());
    let resumed = files(&out);
    assert_eq!(resumed.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
    assert!(resumed == whole, "the same files, but other bytes");
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

#[test]
fn ctrl_c_leaves_no_capture() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("pcap");
    let mut child = narrows(&["run", "sbd/nsb-5", "--set", "duration=9000 s", "--pcap"]);
    let mut child = child.arg(&out).spawn().unwrap();
    wait_for_runs(&out);
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!out.exists());
}
