//! The root namespace stays as it was, whatever the end of a testbed.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use narrows_emu::{DeviceConfig, Error, HostConfig, Removed, Testbed, clean};
use narrows_net::LinkConfig;
use narrows_testkit::root::Root;
use narrows_testkit::wait_until;
use support::{alone, hosts, left_and_right, pair, tcp, two_hosts, udp, v4};

/// A shell in a host with a child that outlives it: the shell, and the number of the child.
fn shell(testbed: &Testbed) -> (Child, u32) {
    let [left, _] = left_and_right(testbed);
    let mut shell = left.command("sh");
    let shell = shell.args(["-c", "setsid sleep 100 & echo $!; wait"]).stdout(Stdio::piped());
    let mut shell = shell.spawn().expect("sh");
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (shell, line.trim().parse().expect("a number"))
}

fn is_there(pid: u32) -> bool {
    // A zombie is in no namespace.
    fs::metadata(format!("/proc/{pid}/ns/net")).is_ok()
}

fn names() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn a_testbed_goes_with_all_that_runs_in_it() {
    let Some(_alone) = alone("a_testbed_goes_with_all_that_runs_in_it") else { return };
    let root = Root::now();
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let [left, right] = left_and_right(&testbed);
    assert_eq!(left.namespace(), format!("nr-{}-left", testbed.id()));
    assert!(names().contains(&left.namespace().to_owned()));
    assert_ne!(left.inum(), right.inum());
    let (mut shell, sleep) = shell(&testbed);
    let inside = fs::read_link(format!("/proc/{sleep}/ns/net")).unwrap();
    assert_eq!(inside.to_str().unwrap(), format!("net:[{}]", left.inum()));
    // As ip itself enters.
    let ip = Command::new("ip").args(["-n", right.namespace(), "-o", "link"]).output().unwrap();
    let links = String::from_utf8(ip.stdout).unwrap();
    assert!(links.contains("path1") && links.contains("qlen 10000"), "{links}");
    let id = testbed.id().to_owned();
    let lock = fs::metadata(format!("/run/narrows/{id}.lock")).unwrap();
    assert_eq!(lock.mode() & 0o077, 0, "it is nobody else's to lock");
    drop((wire, testbed));
    assert!(!is_there(sleep) && !is_there(shell.id()));
    shell.wait().unwrap();
    assert!(!names().iter().any(|name| name.starts_with(&format!("nr-{id}-"))));
    assert!(!Path::new(&format!("/run/narrows/{id}.lock")).exists());
    root.is_unchanged();
}

#[test]
fn a_command_ends_with_the_thread_that_spawned_it() {
    let Some(_alone) = alone("a_command_ends_with_the_thread_that_spawned_it") else {
        return;
    };
    let testbed = two_hosts(1);
    let [left, _] = left_and_right(&testbed);
    let spawn = || left.command("sleep").arg("100").spawn().unwrap();
    let mut child = std::thread::scope(|scope| scope.spawn(spawn).join().unwrap());
    assert!(!child.wait().unwrap().success());
}

#[test]
fn data_that_nobody_takes_does_not_keep_a_namespace() {
    let Some(_alone) = alone("data_that_nobody_takes_does_not_keep_a_namespace") else {
        return;
    };
    let other = two_hosts(1);
    let [elsewhere, _] = left_and_right(&other);
    let (testbed, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let [left, right] = left_and_right(&testbed);
    // Its far end goes with the namespace of the near one.
    let link = ["link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns"];
    let made = left.command("ip").args(link).arg(elsewhere.namespace()).status().unwrap();
    assert!(made.success());
    let is_there = || {
        let reported =
            elsewhere.command("ip").args(["link", "show", "dev", "v1"]).output().unwrap();
        reported.status.success()
    };
    assert!(is_there());
    let [mut client, server] = tcp([left, right], v4(2, 1), 80);
    client.set_nonblocking(true).unwrap();
    while client.write(&[0; 1 << 16]).is_ok() {}
    drop((wire, client, server, testbed));
    wait_until(20, || if is_there() { Err("it is still there".into()) } else { Ok(()) });
}

#[test]
fn a_command_has_nothing_open_that_its_testbed_has() {
    let Some(_alone) = alone("a_command_has_nothing_open_that_its_testbed_has") else {
        return;
    };
    let open = |mut ls: Command| {
        let listed = ls.args(["-l", "/proc/self/fd"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        listed.lines().filter(|line| line.contains(" -> /")).count()
    };
    let before = open(Command::new("ls"));
    let (testbed, _wire) = pair(LinkConfig::default(), LinkConfig::default());
    let [left, _] = left_and_right(&testbed);
    // A lock or a device that is open there would live as long as the command.
    assert_eq!(open(left.command("ls")), before);
}

#[test]
fn whatever_step_a_process_was_killed_at_clean_removes_the_rest() {
    let test = "whatever_step_a_process_was_killed_at_clean_removes_the_rest";
    let Some(_alone) = alone(test) else { return };
    let lock = Path::new("/run/narrows/zzz0.lock");
    let name = "nr-zzz0-left";
    let place = Path::new("/run/netns").join(name);
    drop(two_hosts(1));
    fs::write(lock, "").unwrap();
    assert_eq!(clean().unwrap(), [Removed::Lock(lock.into())]);
    // A namespace that is not mounted yet, and one that is.
    for mounted in [false, true] {
        fs::write(lock, "").unwrap();
        if mounted {
            Command::new("ip").args(["netns", "add", name]).status().unwrap();
        } else {
            fs::write(&place, "").unwrap();
        }
        assert!(place.exists());
        let expected = [Removed::Namespace(name.into()), Removed::Lock(lock.into())];
        assert_eq!(clean().unwrap(), expected);
        assert!(!place.exists() && !lock.exists());
    }
}

#[test]
fn an_error_in_the_middle_leaves_nothing() {
    let Some(_alone) = alone("an_error_in_the_middle_leaves_nothing") else { return };
    let root = Root::now();
    let mut hosts = hosts(1);
    hosts[1].devices[0].name = "a-name-of-more-than-15-bytes".into();
    let error = Testbed::new(&hosts).expect_err("the kernel has shorter names").to_string();
    let expected = "-right: cannot make device a-name-of-more-than-15-bytes: the name is too long";
    assert!(error.starts_with("nr-") && error.ends_with(expected), "{error}");
    hosts[1].devices[0].name = "path1".into();
    hosts[1].devices[0].addresses[0] = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let error = Testbed::new(&hosts).expect_err("no address").to_string();
    assert!(error.contains("-right: cannot add :: to path1: "), "{error}");
    hosts[1].devices[0].addresses[0] = v4(1, 1);
    let error = Testbed::new(&hosts).expect_err("two have it").to_string();
    assert_eq!(error, "host right: 10.1.0.1 is an address of left already");
    hosts[1].name = "a b".into();
    assert!(matches!(Testbed::new(&hosts), Err(Error::Host { host, .. }) if host == "a b"));
    root.is_unchanged();
}

#[test]
fn a_panic_leaves_nothing() {
    let Some(_alone) = alone("a_panic_leaves_nothing") else { return };
    let root = Root::now();
    let panics = AssertUnwindSafe(|| {
        let (testbed, _wire) = pair(LinkConfig::default(), LinkConfig::default());
        let (_shell, sleep) = shell(&testbed);
        std::panic::resume_unwind(Box::new(sleep));
    });
    let sleep = catch_unwind(panics).expect_err("it panics");
    assert!(!is_there(*sleep.downcast::<u32>().unwrap()));
    // The shell is a zombie that nobody waited for.
    while nix::sys::wait::wait().is_ok() {}
    root.is_unchanged();
}

/// Not a test: what the next one kills.
#[test]
fn holds_a_testbed_until_it_is_killed() {
    if std::env::var_os("NR_HOLD").is_none() {
        return;
    }
    let (testbed, _wire) = pair(LinkConfig::default(), LinkConfig::default());
    let (shell, sleep) = shell(&testbed);
    println!("holds {} {} {sleep}", testbed.id(), shell.id());
    std::thread::sleep(std::time::Duration::from_secs(100));
}

fn holder_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "holds_a_testbed_until_it_is_killed";
    command.args(["--exact", test, "--nocapture"]).env("NR_HOLD", "1").stdout(Stdio::piped());
    command
}

/// A child that does not outlive a failure.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A namespace that another program made, under a name like ours.
struct Other(&'static str);

impl Other {
    fn new(name: &'static str) -> Other {
        assert!(Command::new("ip").args(["netns", "add", name]).status().unwrap().success());
        Other(name)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", self.0]).status().ok();
    }
}

#[test]
fn what_a_killed_process_leaves_is_removed_and_nothing_else() {
    let test = "what_a_killed_process_leaves_is_removed_and_nothing_else";
    let Some(_alone) = alone(test) else { return };
    let root = Root::now();
    let other = Other::new("nr-1-other");
    let (living, wire) = pair(LinkConfig::default(), LinkConfig::default());
    let mut holder = Killed(holder_command().spawn().unwrap());
    let lines = BufReader::new(holder.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let held = lines.map(|line| line.split_once("holds ").map(|(_, held)| held.to_owned()));
    let held = held.flatten().next().expect("it holds a testbed");
    let [id, shell, sleep] = *held.split(' ').collect::<Vec<_>>() else { panic!("{held}") };
    let [shell, sleep] = [shell, sleep].map(|pid| pid.parse::<u32>().unwrap());
    // While it lives, it is not touched.
    assert_eq!(clean().unwrap(), []);
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    wait_until(20, || if is_there(shell) { Err("the shell lives".into()) } else { Ok(()) });
    assert!(is_there(sleep));
    let expected = [
        Removed::Process { pid: sleep as i32, name: "sleep".into() },
        Removed::Namespace(format!("nr-{id}-left")),
        Removed::Namespace(format!("nr-{id}-right")),
        Removed::Lock(format!("/run/narrows/{id}.lock").into()),
    ];
    assert_eq!(clean().unwrap(), expected);
    assert!(!is_there(sleep));
    assert!(names().contains(&other.0.to_owned()), "it is not ours");
    let [left, right] = left_and_right(&living);
    let (left, right) = (udp(left, v4(1, 1), 7), udp(right, v4(2, 1), 7));
    left.send_to(&[7; 60], right.local_addr().unwrap()).unwrap();
    right.recv(&mut [0; 60]).expect("the living one still carries");
    drop((wire, living, other));
    root.is_unchanged();
}

#[test]
fn ten_hosts_and_two_hundred_addresses_take_no_time() {
    let Some(_alone) = alone("ten_hosts_and_two_hundred_addresses_take_no_time") else {
        return;
    };
    let host = |n: u8| {
        let addresses: Vec<IpAddr> = match n {
            0 => (0..200).map(|x| IpAddr::from([10, 0, 1, x])).collect(),
            n => vec![v4(n, 1)],
        };
        let mut devices = vec![DeviceConfig { name: "a".into(), mtu: 1500, addresses }];
        if n % 2 == 1 {
            devices.push(DeviceConfig { name: "b".into(), mtu: 1400, addresses: vec![v4(n, 2)] });
        }
        HostConfig { name: format!("host{n}"), devices }
    };
    let hosts: Vec<_> = (0..10).map(host).collect();
    let began = Instant::now();
    let testbed = Testbed::new(&hosts).unwrap();
    let (made, began) = (began.elapsed(), Instant::now());
    assert_eq!(testbed.hosts().count(), 10);
    drop(testbed);
    println!("made in {made:?}, removed in {:?}", began.elapsed());
    assert!(made.as_secs() < 5 && began.elapsed().as_secs() < 5);
}
