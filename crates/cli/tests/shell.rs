//! `narrows shell` and `narrows clean` in network namespaces of their own. Needs root, TUN devices and
//! MPTCP.

#![cfg(all(feature = "lab", feature = "kernel"))]

use narrows_testkit::machine::{self, mptcp, tools, tun};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PHONE: &str = "phone/wifi-lte";

/// False, and a word on the terminal, where there can be no hosts, or a tool is missing.
fn can_run(test: &str, wanted: &[&str]) -> bool {
    let needs =
        machine::root().and_then(|()| tun()).and_then(|()| mptcp()).and_then(|()| tools(wanted));
    machine::can_run(test, needs)
}

fn narrows(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `narrows shell`, its exit code and what it printed; it must say nothing else.
fn shell(args: &[&str]) -> (Option<i32>, String) {
    let output = narrows(&[&["shell"], args].concat()).output().unwrap();
    assert_eq!(errors(&output), "", "{args:?}");
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// What it says on standard error, but for that packets were late, which may well be.
fn errors(output: &Output) -> String {
    let lines = String::from_utf8_lossy(&output.stderr);
    lines.lines().filter(|line| !line.starts_with("narrows: the network deviated")).collect()
}

/// `narrows ...`, which must fail as wrong input does; the line it says.
fn refused(mut command: Command) -> String {
    let output = command.output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{command:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{command:?} says more than one line:\n{line}");
    line.trim_end().strip_prefix("narrows: ").expect("the line begins with the program").to_owned()
}

#[test]
fn a_command_runs_in_a_host_and_its_exit_code_is_the_commands() {
    if !can_run("exit code", &["ip"]) {
        return;
    }
    let before = root();
    let script = "echo $NARROWS_HOST $NARROWS_SERVER $NARROWS_SERVER6 $0 $1; \
                  ip -o -4 addr show scope global | cut -d' ' -f 2,7; exit 7";
    let printed = shell(&[PHONE, "--", "sh", "-c", script, "{server}", "[{server6}]"]);
    let receiver = "receiver 10.1.0.1 fd6e:72::1:1:1 10.1.0.1 [fd6e:72::1:1:1]\n\
                    wifi 10.101.0.1/32\nlte 10.102.0.1/32\n";
    assert_eq!(printed, (Some(7), receiver.into()));
    let printed =
        shell(&[PHONE, "--host", "sender", "--", "sh", "-c", "echo $NARROWS_SERVER; kill $$"]);
    assert_eq!(printed, (Some(128 + libc::SIGTERM), "10.101.0.1\n".into()));
    assert_eq!(root(), before, "the root namespace is as before");
}

/// Links, addresses, routes, rules and congestion control of the namespace this process is in.
fn root() -> String {
    let script = "ip -o link | cut -d: -f 2; ip -o addr | cut -d' ' -f 2-7; ip route; ip -6 route; \
                  ip rule; ip -6 rule; cat /proc/sys/net/ipv4/tcp_congestion_control; ip mptcp limits";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    // Lifetimes of addresses and routes that others gave run down.
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| {
        let words = line.split_whitespace().take_while(|word| *word != "expires");
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(words).collect::<Vec<_>>().join("\n")
}

/// Sends a number of bytes to whoever connects, by MPTCP.
const SERVER: &str = "
import socket
a = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 262)
a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
a.bind(('::', 80)); a.listen()
while True:
    b, _ = a.accept(); b.sendall(bytes(4000000)); b.shutdown(socket.SHUT_WR); b.recv(1); b.close()
";

/// Gets them from an address, and tells how many there were, and how many each device got.
const CLIENT: &str = "
import socket, sys
a = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_STREAM, 262)
a.connect((sys.argv[1], 80)); got = 0
while part := a.recv(1 << 16): got += len(part)
print(got)
for line in open('/proc/thread-self/net/dev'):
    name, _, counts = line.partition(':')
    if name.strip() in ('wifi', 'lte'): print(name.strip(), counts.split()[0])
";

#[test]
fn a_download_takes_both_paths_by_both_families_and_is_captured() {
    if !can_run("download", &["python3"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (server, pcap) = (home.path().join("server.py"), home.path().join("pcap"));
    fs::write(&server, SERVER).unwrap();
    let serve = format!("exec python3 {}", server.display());
    for address in ["{server}", "{server6}"] {
        let pcap = pcap.join(&address[1..address.len() - 1]);
        let options = [PHONE, "--serve", &serve, "--pcap", pcap.to_str().unwrap(), "--"];
        let (code, printed) = shell(&[&options[..], &["python3", "-c", CLIENT, address]].concat());
        let mut lines = printed.lines();
        assert_eq!((code, lines.next()), (Some(0), Some("4000000")), "{printed}");
        for path in ["wifi ", "lte "] {
            let line = lines.next().unwrap();
            let bytes: u64 = line.strip_prefix(path).expect(line).parse().unwrap();
            assert!(bytes > 400_000, "{address}: {printed}");
        }
        for host in ["sender", "receiver"] {
            check_capture(&pcap.join(format!("mptcp.{host}.pcapng")), host);
        }
    }
}

/// By tshark, if it is here: every packet is whole, and both interfaces have some.
fn check_capture(file: &Path, host: &str) {
    assert!(fs::metadata(file).unwrap().len() > 100_000, "{}", file.display());
    if tools(&["tshark"]).is_err() {
        println!("captures: not read, no tshark here");
        return;
    }
    let tshark = |args: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(file).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(tshark(&["-Y", "_ws.malformed"]), "", "{}", file.display());
    for path in ["wifi", "lte"] {
        let filter = format!("frame.interface_name == \"mptcp.{host}:{path}\" && tcp.len > 1000");
        let packets = tshark(&["-Y", &filter]).lines().count();
        assert!(packets > 200, "{packets} over {path} in {}", file.display());
    }
    let joins = tshark(&["-Y", "tcp.options.mptcp.subtype == 1 && tcp.flags.syn == 1"]);
    assert_eq!(joins.lines().count(), 2, "SYN and SYN/ACK of one join: {joins}");
}

/// A shell with a command that says where it is and goes on.
struct Going {
    shell: Child,
    /// The file of its namespace.
    place: PathBuf,
}

impl Going {
    fn new(script: &str) -> Going {
        Going::with(&[], script)
    }

    fn with(options: &[&str], script: &str) -> Going {
        let script = format!("ip netns identify $$; {script}");
        let command = ["--", "sh", "-c", &script];
        let mut command = narrows(&[&["shell", PHONE], options, &command].concat());
        // A terminal sends a key to a group of processes.
        let mut shell = command.process_group(0).spawn().unwrap();
        let mut line = String::new();
        // One byte at a time: what comes later is the test's.
        let mut out = BufReader::with_capacity(1, shell.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        let place = Path::new("/run/netns").join(line.trim());
        assert!(line.starts_with("nr-") && place.exists(), "{line}");
        Going { shell, place }
    }

    /// Sends a signal to the shell, or to all of its group.
    fn signal(&self, signal: i32, group: bool) {
        let pid = libc::pid_t::try_from(self.shell.id()).unwrap();
        // SAFETY: kill() takes numbers only; the process is our child and not yet waited for.
        assert_eq!(unsafe { libc::kill(if group { -pid } else { pid }, signal) }, 0);
    }

    /// Its exit code, and what else the command said.
    fn ends(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.shell.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it goes on");
            sleep(Duration::from_millis(20));
        }
        let mut printed = String::new();
        self.shell.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        (self.shell.wait().unwrap().code(), printed)
    }
}

#[test]
fn keys_are_the_commands_and_a_polite_kill_is_for_both() {
    if !can_run("signals", &["ip"]) {
        return;
    }
    let ends = |script: &str, signal, group| {
        let going = Going::new(script);
        let place = going.place.clone();
        going.signal(signal, group);
        let ended = going.ends();
        assert!(!place.exists(), "{} is left", place.display());
        ended
    };
    assert_eq!(ends("exec sleep 60", libc::SIGINT, true), (Some(130), String::new()));
    let catches = "trap 'echo caught; exit 3' INT; while :; do sleep 0.1; done";
    let deadline = Duration::from_millis(300);
    let going = Going::new(catches);
    sleep(deadline);
    going.signal(libc::SIGINT, true);
    assert_eq!(going.ends(), (Some(3), "caught\n".into()));
    assert_eq!(
        ends("exec sleep 60", libc::SIGTERM, false),
        (Some(128 + libc::SIGKILL), String::new())
    );
    assert_eq!(
        ends("exec sleep 60", libc::SIGHUP, false),
        (Some(128 + libc::SIGKILL), String::new())
    );
}

#[test]
fn a_key_is_not_for_the_server() {
    if !can_run("key", &["ip", "python3"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let client = home.path().join("client.py");
    let connect = "import os, socket; socket.create_connection((os.environ['NARROWS_SERVER'], 80))";
    fs::write(&client, connect).unwrap();
    let client = client.display();
    let script = format!(
        "trap 'python3 {client} && echo served; exit 3' INT; echo; while :; do sleep 0.1; done"
    );
    let mut going = Going::with(&["--serve", "exec python3 -m http.server 80"], &script);
    // The trap is set.
    going.shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    going.signal(libc::SIGINT, true);
    assert_eq!(going.ends(), (Some(3), "served\n".into()));
}

/// Two round trips, before and after a second: where nobody listens, the host answers.
const ROUND_TRIPS: &str = "
import socket, time, os
for _ in range(2):
    began = time.monotonic()
    try: socket.create_connection((os.environ['NARROWS_SERVER'], 9))
    except ConnectionRefusedError: print(time.monotonic() - began)
    time.sleep(1.5)
";

#[test]
fn links_change_when_the_scenario_says_so() {
    if !can_run("events", &["python3"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let [scenario, script] = ["late.toml", "rtt.py"].map(|name| home.path().join(name));
    let text = "name = \"late\"\ntitle = \"late\"\nsource = \"ours\"\nwarmup = \"1 s\"\nduration = \"1 s\"\n\
                test = \"f\"\n[links.l]\nrate = \"10 Mbit/s\"\n[routes.r]\nlinks = [\"l\"]\nrtt = \"4 ms\"\n\
                [flows]\nf = { kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }\n\
                [[events]]\nat = \"1 s\"\nlink = \"l\"\ndelay = \"1 s\"\n";
    fs::write(&scenario, text).unwrap();
    fs::write(&script, ROUND_TRIPS).unwrap();
    let [scenario, script] = [scenario, script].map(|path| path.display().to_string());
    let (code, printed) = shell(&[&scenario, "--host", "sender", "--", "python3", &script]);
    let seconds: Vec<f64> = printed.lines().map(|line| line.parse().expect(line)).collect();
    assert!(code == Some(0) && seconds[0] < 0.5 && seconds[1] > 1.0, "{code:?} {printed}");
}

#[test]
fn five_paths_have_the_endpoints_and_limits_that_they_need() {
    if !can_run("five paths", &["ip"]) {
        return;
    }
    let script = "ip mptcp limits; ip mptcp endpoint | wc -l";
    let (_, printed) = shell(&["sbd/sb-5", "--", "sh", "-c", script]);
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(words.join(" "), "add_addr_accepted 0 subflows 8 8");
}

#[test]
fn what_a_killed_shell_leaves_clean_removes() {
    if !can_run("clean", &["ip"]) {
        return;
    }
    let going = Going::new("exec sleep 60");
    let place = going.place.clone();
    let name = place.file_name().unwrap().to_str().unwrap().to_owned();
    // One whose owner lives is left alone.
    let run = |args: &[&str]| {
        let output = narrows(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (clean, dry) = (|| run(&["clean"]), || run(&["clean", "--dry-run"]));
    assert!(!dry().contains(&name) && !clean().contains(&name) && place.exists());
    going.signal(libc::SIGKILL, false);
    assert_eq!(going.ends().0, None);
    let shown = dry();
    assert!(shown.contains(&format!("would be removed: namespace {name}\n")), "{shown}");
    assert!(place.exists(), "--dry-run changes nothing");
    let printed = clean();
    assert!(!place.exists(), "{printed}");
    let of = |text: &str, begin: &str| -> Vec<String> {
        let ours = text.lines().filter(|line| line.contains(&name));
        ours.map(|line| line.strip_prefix(begin).unwrap().to_owned()).collect()
    };
    assert_eq!(of(&shown, "would be removed: "), of(&printed, "removed "));
    assert!(!clean().contains(&name));
}

#[test]
fn mistakes_are_one_line() {
    let shell = |args: &[&str]| refused(narrows(&[&["shell"], args].concat()));
    assert_eq!(
        shell(&[PHONE, "--host", "phone", "--", "true"]),
        "--host: no host \"phone\"; expected one of: sender, receiver"
    );
    assert!(shell(&["phone/none"]).starts_with("phone/none: "));
    assert!(shell(&[PHONE, "--cc", "ollia", "--", "true"]).starts_with("--cc: unknown law"));
    assert!(shell(&[PHONE, "--set", "links.wifi", "--", "true"]).starts_with("--set: "));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    let text = "name = \"none\"\ntitle = \"none\"\nsource = \"ours\"\nwarmup = \"1 s\"\nduration = \"1 s\"\n\
                [links.l]\nrate = \"1 Mbit/s\"\n[routes.r]\nlinks = [\"l\"]\nrtt = \"4 ms\"\n\
                [flows]\nf = { kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }\n";
    fs::write(&file, text).unwrap();
    let line = shell(&[file.to_str().unwrap(), "--", "true"]);
    assert!(line.starts_with("none: no flow is under test"), "{line}");
    if !can_run("mistakes", &[]) {
        return;
    }
    let line = shell(&[PHONE, "--", "nr-no-such-program"]);
    assert!(line.starts_with("nr-no-such-program: cannot be run: No such file"), "{line}");
    let line = shell(&[PHONE, "--cc", "kernel:none", "--", "true"]);
    assert!(line.starts_with("--cc: this kernel has no kernel:none"), "{line}");
    let line = shell(&[PHONE, "--serve", "exit 4", "--", "true"]);
    assert_eq!(line, "--serve: exit status: 4, before it listened");
}

#[test]
fn without_root_there_is_one_line() {
    // Where another user can read and run it.
    let program = std::env::temp_dir().join(format!("narrows-shell-test-{}", std::process::id()));
    fs::copy(env!("CARGO_BIN_EXE_narrows"), &program).unwrap();
    for args in [&["shell", PHONE, "--", "true"][..], &["clean"]] {
        let mut command = Command::new(&program);
        command.args(args);
        // SAFETY: it takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(65534);
        }
        let line = refused(command);
        assert!(line.contains("needs root"), "{line}");
    }
    fs::remove_file(&program).unwrap();
}
