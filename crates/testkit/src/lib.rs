//! What tests of several crates wire again and again. Known only under `[dev-dependencies]`.

pub mod machine;
pub mod net;
mod random;
pub mod root;
pub mod sysctls;
pub mod transfer;

pub use random::Random;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Polls until `state` is fine; panics with its last error after `seconds`.
pub fn wait_until(seconds: u64, mut state: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while let Err(state) = state() {
        assert!(Instant::now() < deadline, "after {seconds} s still: {state}");
        sleep(Duration::from_millis(20));
    }
}

/// Kills `child` once the file `journal` has so many lines; panics if that takes a minute.
pub fn kill_after_lines(child: &mut Child, journal: &Path, count: usize) {
    let lines = || std::fs::read(journal).map_or(0, |b| b.iter().filter(|&&b| b == b'\n').count());
    let patience = Instant::now() + Duration::from_secs(60);
    while lines() < count {
        assert!(Instant::now() < patience, "{} never has {count} lines", journal.display());
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Panics unless `found` is the text of the file `kept`. With `NARROWS_KEEP` set it writes the file
/// instead: what a user sees has changed, and the change is read where it is committed.
pub fn assert_kept(kept: &Path, found: &str) {
    if std::env::var_os("NARROWS_KEEP").is_some() {
        std::fs::write(kept, found).unwrap();
    }
    let text = std::fs::read_to_string(kept).unwrap_or_default();
    assert!(text == found, "{} has another text than this:\n{found}", kept.display());
}

/// The code of a page's fenced blocks of this kind, such as `sh` or `sh root`.
pub fn blocks<'a>(page: &'a str, kind: &str) -> impl Iterator<Item = &'a str> {
    let of_kind = move |block: &'a str| block.strip_prefix(kind)?.strip_prefix('\n');
    page.split("\n```").skip(1).step_by(2).filter_map(of_kind)
}

/// Recorded data, by its path below the folder that `NARROWS_TEST_DATA` names. None, and a word on the
/// terminal, where that is unset.
pub fn data(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("NARROWS_TEST_DATA") else {
        println!("skipped: NARROWS_TEST_DATA names no folder with recorded data");
        return None;
    };
    Some(PathBuf::from(folder).join(path))
}

/// An answer of Linux by netlink, by its name in `recorded/netlink.hex`.
pub fn recorded_netlink(name: &str) -> Vec<u8> {
    let all = include_str!("../recorded/netlink.hex");
    let hex = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = hex.unwrap_or_else(|| panic!("no answer {name}"));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
