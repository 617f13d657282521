//! Many short connections for a long time, while clients and servers are killed and process 1 reaps
//! orphans: entries of the map that were left behind are reaped, and in the end it is empty.

mod support;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_kernel::control::Registered;
use narrows_kernel::reap;
use narrows_kernel::state::{self, USERS};
use narrows_laws::{Control, Detector};
use narrows_netns::Namespace;
use narrows_testkit::{machine::leaves_programs_out, net};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, counted, counter, detections, slots};

const LAW: Control = Control { detector: Detector::XCORR, ..Control::OLIA };
const CLIENTS: usize = 8;
/// A client is killed so often, each in turn.
const KILL: Duration = Duration::from_millis(500);
/// The server is killed after so many of them: some 20 s.
const KILLS: usize = 40;
/// Orphans for process 1, some hundred a second.
const ORPHANS: &str = "while :; do (setsid true &); sleep 0.01; done";

/// A process that is killed with -9 when dropped; until then it must not end.
struct Process(Child);

impl Process {
    fn short(host: &Namespace, what: &str) -> Process {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/soak/short.py");
        Process::start(net::command(host, "python3").args([script, what]))
    }

    fn start(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn kill(mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "it ended by itself");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The minutes that `NARROWS_SOAK_MINUTES` asks for.
fn minutes() -> u32 {
    std::env::var("NARROWS_SOAK_MINUTES").map_or(20, |text| text.parse().expect("whole minutes"))
}

#[test]
#[ignore = "20 minutes"]
fn short_connections_kills_and_orphans_leave_nothing() {
    let Some(_alone) = Alone::once("soak", &["python3", "setpriv"]) else { return };
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let reaped = soak(&net, &law, minutes());

    (*net).drained(|| 0);
    let left = state::connections().unwrap().len();
    let reaped = reaped + reap().unwrap();
    println!("  left at the end {left}, reaped in all {reaped}; {}", counted(&law));
    assert!(state::connections().unwrap().is_empty());
    assert_eq!(detections(&law), 0);
    let users = law.loaded().object().maps().find(|map| map.name() == USERS).unwrap();
    let users = MapHandle::try_from(&users).unwrap();
    let batches = users.lookup_batch(4096, MapFlags::ANY, MapFlags::ANY).unwrap();
    let counted: Vec<_> = batches.filter(|(_, entries)| entries.iter().any(|b| *b != 0)).collect();
    assert!(counted.is_empty(), "users with entries: {counted:?}");
    assert!(counter(&law, "joins") > 0);
    // Whoever has a slot is not taken for one that left.
    assert_eq!(counter(&law, "fallback_lost"), 0);
    if !leaves_programs_out() {
        assert_eq!((slots(&law), left, reaped, counter(&law, "repaired")), (0, 0, 0, 0));
    }
}

/// What the kernel itself has of the machine's memory and cannot give back, whoever it is for.
fn kernel_memory_mb() -> u32 {
    let all = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix("SUnreclaim:"));
    line.unwrap().trim().split(' ').next().unwrap().parse::<u32>().unwrap() / 1024
}

/// Returns how many entries were reaped meanwhile.
fn soak(net: &Net, law: &Registered, minutes: u32) -> u32 {
    let mut server = Process::short(&net.server, "serve");
    let ask = || Process::short(&net.client, "ask");
    let mut clients: Vec<Process> = (0..CLIENTS).map(|_| ask()).collect();
    let orphans = ["--pdeathsig", "KILL", "sh", "-c", ORPHANS];
    let orphans = Process::start(Command::new("setpriv").args(orphans));
    let mut kills = 0;
    let mut reaped = 0;
    for minute in 1..=minutes {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            sleep(KILL);
            std::mem::replace(&mut clients[kills % CLIENTS], ask()).kill();
            kills += 1;
            if kills % KILLS == 0 {
                server.kill();
                server = Process::short(&net.server, "serve");
            }
        }
        let entries = state::connections().unwrap().len();
        let detections = detections(law);
        let some = reap().unwrap();
        reaped += some;
        println!(
            "  {minute} min: {entries} entries, {some} of them reaped, {detections} detections, {} MB of \
             the kernel's; {}",
            kernel_memory_mb(),
            counted(law)
        );
    }
    for process in clients.into_iter().chain([server, orphans]) {
        process.kill();
    }
    reaped
}
