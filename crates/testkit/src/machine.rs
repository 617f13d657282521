//! The machine for one test at a time, and what the kernel logs meanwhile.

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread;

/// Held by a test that has the machine for itself, also among other processes: controls have global
/// names, and what one test measures would be the load of another.
pub struct Turn {
    _test: Flock<File>,
    _controls: Option<Flock<File>>,
}

/// Can this test run? If not there is a word on the terminal: `NARROWS_SKIP_KERNEL` is set, or something
/// it needs is missing, which is the error of one of the functions below or of one's own.
pub fn can_run(test: &str, needs: Result<(), String>) -> bool {
    let able = wanted().and(needs);
    if let Err(reason) = &able {
        println!("{test}: skipped, {reason}");
    }
    able.is_ok()
}

/// Waits for this test's turn, in which nobody runs scenarios on this kernel. None if it
/// [cannot run](can_run).
pub fn turn(test: &str, needs: Result<(), String>) -> Option<Turn> {
    let turn = turn_of_scenarios(test, needs)?;
    Some(Turn { _controls: Some(hold_controls()), ..turn })
}

/// The same for a test that runs scenarios on this kernel itself: between them others may.
pub fn turn_of_scenarios(test: &str, needs: Result<(), String>) -> Option<Turn> {
    if !can_run(test, needs) {
        return None;
    }
    let turn = Turn { _test: lock("/run/narrows-test.lock"), _controls: None };
    println!("{test}");
    Some(turn)
}

/// Does `look` while nobody runs scenarios on this kernel.
pub fn without_scenarios<T>(look: impl FnOnce() -> T) -> T {
    let _held = hold_controls();
    look()
}

/// Waits until no process has controls for its scenarios; while this lives none gets them.
pub fn hold_controls() -> Flock<File> {
    lock("/run/narrows-controls.lock")
}

fn lock(path: &str) -> Flock<File> {
    let file = File::create(path).expect("/run is root's");
    Flock::lock(file, FlockArg::LockExclusive).expect("flock")
}

/// Does `work` where the BPF file system is one of its own, which nobody else sees. Namespaces are named
/// before: a name is a mount.
pub fn with_own_pins<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let none: Option<&str> = None;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
            mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), Some("mode=0700"))
                .unwrap();
            work()
        });
        thread.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Is this root?
pub fn root() -> Result<(), String> {
    if nix::unistd::Uid::effective().is_root() { Ok(()) } else { Err("this is not root".into()) }
}

/// Are tests on the kernel wanted?
fn wanted() -> Result<(), String> {
    match std::env::var_os("NARROWS_SKIP_KERNEL") {
        Some(_) => Err("NARROWS_SKIP_KERNEL is set".into()),
        None => Ok(()),
    }
}

/// Can TUN devices be made?
pub fn tun() -> Result<(), String> {
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    tun.map(drop).map_err(|reason| format!("/dev/net/tun: {reason}"))
}

/// Does this kernel speak MPTCP?
pub fn mptcp() -> Result<(), String> {
    let sysctl = fs::metadata("/proc/sys/net/mptcp/enabled");
    sysctl.map(drop).map_err(|reason| format!("no MPTCP in this kernel: {reason}"))
}

/// Are these commands in the PATH, or where administrators' commands are?
pub fn tools(tools: &[&str]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let folders: Vec<_> = folders.collect();
    let missing = |tool: &&&str| !folders.iter().any(|folder| folder.join(tool).is_file());
    match tools.iter().find(missing) {
        Some(tool) => Err(format!("no {tool} here")),
        None => Ok(()),
    }
}

/// Does this kernel leave programs out while process 1 is current (docs/guide/trouble.md)?
pub fn leaves_programs_out() -> bool {
    let btf = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    // What such a kernel calls the programs that it does run.
    btf.windows(12).any(|word| word == b"\0init_owned\0")
}

/// A kernel that leaves programs out while process 1 is current (docs/guide/trouble.md) leaves a
/// slot taken now and then, or a socket without a law, and what is tested is not to blame. There a test
/// runs as a process first, and what fails so once more; what fails twice runs here.
pub fn passes_in_a_process_of_its_own() -> bool {
    const FIRST: &str = "NR_TEST_FIRST";
    if wanted().is_err() || std::env::var_os(FIRST).is_some() {
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

/// The kernel's messages from here on.
pub struct KernelLog(File);

impl KernelLog {
    /// Begins at the log's end.
    pub fn open() -> KernelLog {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nix::libc::O_NONBLOCK);
        let mut file = options.open("/dev/kmsg").expect("/dev/kmsg");
        file.seek(SeekFrom::End(0)).expect("the end of the kernel's log");
        KernelLog(file)
    }

    /// The messages since then, or since the last call, that no test may cause.
    pub fn complaints(&mut self) -> Vec<String> {
        const BAD: [&str; 11] = [
            "WARNING:",
            "BUG:",
            "Oops",
            "Call Trace:",
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
