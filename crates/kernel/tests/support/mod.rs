//! What the tests with sockets need beside the testkit: a watch over what must not change, and what the
//! state map says. `cargo test -p narrows-kernel` compiles it into each test that says so, and none uses
//! all of it.
#![allow(dead_code)]

pub mod law;

use narrows_kernel::{reap, state};
use narrows_laws::Control;
use narrows_testkit::machine::{
    KernelLog, Turn, mptcp, passes_in_a_process_of_its_own, tools, turn,
};
use narrows_testkit::sysctls::{sysctls, unchanged};
use narrows_testkit::wait_until;
use std::collections::BTreeMap;
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
        let turn = turn_without_connections(test, able(wanted))?;
        let (sysctls, log) = (sysctls(&SYSCTLS), KernelLog::open());
        Some(Alone { test, began: Instant::now(), sysctls, log, _turn: turn })
    }
}

/// Waits for this test's turn, and for the connections of the tests before, which may still be closing:
/// MPTCP waits a minute for the peer.
pub fn turn_without_connections(test: &str, needs: Result<(), String>) -> Option<Turn> {
    let turn = turn(test, needs)?;
    wait_until(90, || match (reap(), state::connections()) {
        (Ok(_), Ok(left)) if left.is_empty() => Ok(()),
        other => Err(format!("{other:?}")),
    });
    Some(turn)
}

/// Instructions that the verifier follows in a program of a control at most, twice as many as of the
/// dearest of today, or half as many again where its detector decides: more are seconds of loading, and
/// a sign of a loop whose every turn it takes in turn.
pub fn verified_max(control: Control) -> u32 {
    if control.detector.decides() { 210_000 } else { 150_000 }
}

/// Is all here that a test needs, with these tools?
fn able(wanted: &[&str]) -> Result<(), String> {
    let here = narrows_kernel::available().map_err(|reason| reason.to_string());
    here.and_then(|()| mptcp())
        .and_then(|()| tools(&["ip", "ss", "tc"]))
        .and_then(|()| tools(wanted))
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
