//! What the tests with sockets need beside the testkit: a watch over what must not change, and what the
//! state map says. `cargo test -p narrows-kernel` compiles it into each test that says so, and none uses
//! all of it.
#![allow(dead_code)]

pub mod law;

use narrows_testkit::machine::{KernelLog, Turn, mptcp, tools, turn};
use narrows_testkit::sysctls::{sysctls, unchanged};
use narrows_testkit::wait_until;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// TCP's and MPTCP's, the controls there are among them.
const SYSCTLS: [&str; 2] = ["net/ipv4", "net/mptcp"];

/// The kernel for one test alone: controls have global names, so one test after the other, also of
/// other processes. At the end nothing may be different from the beginning, and the kernel must not
/// have complained. Made first, so that it is dropped last.
pub struct Alone {
    test: &'static str,
    began: Instant,
    sysctls: BTreeMap<String, String>,
    log: KernelLog,
    _turn: Turn,
}

impl Alone {
    /// None, and a word on the terminal, where this process cannot load BPF programs or lacks a
    /// tool.
    pub fn with(test: &'static str, wanted: &[&str]) -> Option<Alone> {
        if able(wanted).is_ok() && passes_in_a_process_of_its_own() {
            return None;
        }
        Alone::once(test, wanted)
    }

    /// The same for a test that takes into account that programs may be left out.
    pub fn once(test: &'static str, wanted: &[&str]) -> Option<Alone> {
        let turn = turn(test, able(wanted))?;
        let (sysctls, log) = (sysctls(&SYSCTLS), KernelLog::open());
        Some(Alone { test, began: Instant::now(), sysctls, log, _turn: turn })
    }
}

/// Is all here that a test needs, with these tools?
fn able(wanted: &[&str]) -> Result<(), String> {
    let here = narrows_kernel::available().map_err(|reason| reason.to_string());
    here.and_then(|()| mptcp())
        .and_then(|()| tools(&["ip", "ss", "tc"]))
        .and_then(|()| tools(wanted))
}

/// Does this kernel leave programs out while process 1 is current (docs/kernel.md, Known limits)?
pub fn leaves_programs_out() -> bool {
    let btf = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    // What such a kernel calls the programs that it does run.
    btf.windows(12).any(|word| word == b"\0init_owned\0")
}

/// A kernel that leaves programs out while process 1 is current (docs/kernel.md, Known limits) leaves a
/// slot taken now and then, or a socket without a law, and what is tested is not to blame. There a test
/// runs as a process first, and what fails so once more; what fails twice runs here.
fn passes_in_a_process_of_its_own() -> bool {
    const FIRST: &str = "NR_TEST_FIRST";
    if std::env::var_os(FIRST).is_some() {
        return false;
    }
    let thread = std::thread::current();
    let (Some(name), true) = (thread.name(), leaves_programs_out()) else { return false };
    let mut test = Command::new(std::env::current_exe().expect("a name"));
    test.args([name, "--exact", "--include-ignored", "--nocapture"]).env(FIRST, "1");
    for _ in 0..2 {
        let output = test.output().expect("this program again");
        let printed = String::from_utf8_lossy(&output.stdout);
        // Another name than the thread's would run nothing.
        if output.status.success() && printed.contains("\nrunning 1 test\n") {
            let of_harness = |line: &str| line.starts_with("running ") || line.starts_with("test ");
            let lines = printed.lines().filter(|line| !line.is_empty() && !of_harness(line));
            lines.for_each(|line| println!("{line}"));
            return true;
        }
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.split("stack backtrace").next().unwrap_or_default().trim();
        eprintln!("{name}: once more, as this kernel leaves programs out: {why}");
    }
    false
}

impl Drop for Alone {
    fn drop(&mut self) {
        // What the kernel says explains a failure, too.
        let complaints = self.log.complaints();
        if std::thread::panicking() {
            for complaint in complaints {
                eprintln!("kernel: {complaint}");
            }
            // The next test is to find its names free.
            let deadline = Instant::now() + Duration::from_secs(5);
            while sysctls(&SYSCTLS) != self.sysctls && Instant::now() < deadline {
                sleep(Duration::from_millis(20));
            }
            return;
        }
        assert!(complaints.is_empty(), "the kernel complains: {complaints:#?}");
        // A control goes when its last link is closed, a moment later.
        wait_until(10, || unchanged(&self.sysctls, &sysctls(&SYSCTLS)));
        println!("{}: {:.1} s", self.test, self.began.elapsed().as_secs_f64());
    }
}
