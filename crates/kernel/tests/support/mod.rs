//! What the tests with sockets need: two network namespaces with paths between them, transfers that
//! are compared byte by byte, and a watch over what must not change. `cargo test -p narrows-kernel`
//! compiles it into each test that says so, and none uses all of it.
#![allow(dead_code)]

pub mod law;
pub mod net;
pub mod transfer;

use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Polls until `true`, or panics with what is told last.
pub fn wait_until(seconds: u64, mut state: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match state() {
            Ok(()) => return,
            Err(state) if Instant::now() > deadline => {
                panic!("after {seconds} s still: {state}")
            }
            Err(_) => sleep(Duration::from_millis(20)),
        }
    }
}

/// The kernel for one test alone: controls have global names, so one test after the other, also of
/// other processes. At the end nothing may be different from the beginning, and the kernel must not
/// have complained. Made first, so that it is dropped last.
pub struct Alone {
    test: &'static str,
    began: Instant,
    sysctls: BTreeMap<String, String>,
    log: KernelLog,
    _lock: Flock<File>,
}

impl Alone {
    /// None, and a word on the terminal, where this process cannot load BPF programs or lacks a
    /// tool.
    pub fn with(test: &'static str, tools: &[&str]) -> Option<Alone> {
        if let Err(reason) = narrows_kernel::available() {
            println!("{test}: skipped, {reason}");
            return None;
        }
        if let Err(reason) = fs::metadata("/proc/sys/net/mptcp/enabled") {
            println!("{test}: skipped, no MPTCP in this kernel: {reason}");
            return None;
        }
        if let Some(tool) = ["ip", "ss", "tc"].iter().chain(tools).find(|tool| !found(tool)) {
            println!("{test}: skipped, no {tool} here");
            return None;
        }
        if passes_in_a_process_of_its_own() {
            return None;
        }
        let file = File::create("/run/narrows-test.lock").expect("/run is root's");
        let lock = Flock::lock(file, FlockArg::LockExclusive).expect("flock");
        net::sweep();
        println!("{test}");
        Some(Alone {
            test,
            began: Instant::now(),
            sysctls: sysctls(),
            log: KernelLog::open(),
            _lock: lock,
        })
    }
}

/// A kernel that leaves programs out while process 1 is current (docs/kernel.md, Known limits) leaves a
/// slot taken now and then, or a socket without a law, and what is tested is not to blame. There a test
/// runs as a process first, and what fails so once more; what fails twice runs here.
fn passes_in_a_process_of_its_own() -> bool {
    const FIRST: &str = "NR_TEST_FIRST";
    if std::env::var_os(FIRST).is_some() {
        return false;
    }
    let btf = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    // What such a kernel calls the programs that it does run.
    let leaves_out = btf.windows(12).any(|word| word == b"\0init_owned\0");
    let thread = std::thread::current();
    let (Some(name), true) = (thread.name(), leaves_out) else { return false };
    let mut test = Command::new(std::env::current_exe().expect("a name"));
    test.args([name, "--exact", "--include-ignored", "--nocapture"]).env(FIRST, "1");
    for _ in 0..2 {
        let output = test.output().expect("this program again");
        let told = String::from_utf8_lossy(&output.stdout);
        // Another name than the thread's would run nothing.
        if output.status.success() && told.contains("\nrunning 1 test\n") {
            let of_harness = |line: &str| line.starts_with("running ") || line.starts_with("test ");
            let lines = told.lines().filter(|line| !line.is_empty() && !of_harness(line));
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
            while sysctls() != self.sysctls && Instant::now() < deadline {
                sleep(Duration::from_millis(20));
            }
            return;
        }
        assert!(complaints.is_empty(), "the kernel complains: {complaints:#?}");
        // A control goes when its last link is closed, a moment later.
        wait_until(10, || match sysctls() {
            now if now == self.sysctls => Ok(()),
            now => Err(format!("sysctls: {:?}", differences(&self.sysctls, &now))),
        });
        println!("{}: {:.1} s", self.test, self.began.elapsed().as_secs_f64());
    }
}

/// Is this command in the PATH, or where administrators' commands are?
pub fn found(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.any(|folder| folder.join(tool).is_file())
}

/// TCP's and MPTCP's sysctls of this namespace, the controls there are among them.
fn sysctls() -> BTreeMap<String, String> {
    // They count time, or are drawn anew at each reading or by others on this machine.
    let living = |name: &str| name.contains("fastopen_key") || name.contains("dead");
    let mut all = BTreeMap::new();
    for folder in ["/proc/sys/net/ipv4", "/proc/sys/net/mptcp"] {
        for entry in fs::read_dir(folder).expect("sysctls").flatten() {
            let name = entry.path().display().to_string();
            let Ok(value) = fs::read_to_string(entry.path()) else { continue };
            if !living(&name) {
                all.insert(name, value.trim().to_owned());
            }
        }
    }
    all
}

fn differences(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<(String, Option<String>, Option<String>)> {
    let names = before.keys().chain(now.keys());
    let of = |name: &String| (name.clone(), before.get(name).cloned(), now.get(name).cloned());
    names.map(of).filter(|(_, before, now)| before != now).collect()
}

/// The kernel's messages from here on.
struct KernelLog(File);

impl KernelLog {
    fn open() -> KernelLog {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nix::libc::O_NONBLOCK);
        let mut file = options.open("/dev/kmsg").expect("/dev/kmsg");
        file.seek(SeekFrom::End(0)).expect("the end of the kernel's log");
        KernelLog(file)
    }

    /// What must never be said.
    fn complaints(&mut self) -> Vec<String> {
        const BAD: [&str; 10] = [
            "WARNING:",
            "BUG:",
            "Oops",
            "rcu_sched",
            "rcu_preempt",
            "rcu_tasks",
            "general protection fault",
            "soft lockup",
            "refcount_t",
            "blocked for more than",
        ];
        let mut bad = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    if BAD.iter().any(|word| text.contains(word)) {
                        bad.push(text.trim_end().to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return bad,
                // EPIPE: records were overwritten before they were read; it goes on at the oldest.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => panic!("/dev/kmsg: {error}"),
            }
        }
    }
}
