//! A machine of its own, as far as `narrows kernel` sees.

use narrows_kernel::{reap, state};
use narrows_testkit::machine::{Turn, passes_in_a_process_of_its_own, turn, turn_of_scenarios};
use narrows_testkit::wait_until;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Its network, BPF file system, `/etc`.
pub struct Host {
    init: Child,
    _turn: Turn,
}

impl Host {
    /// None, and a word on the terminal, where this process cannot load BPF programs.
    pub fn new(test: &str) -> Option<Host> {
        Host::with(test, turn)
    }

    /// The same for a test that runs scenarios on this kernel itself.
    pub fn of_scenarios(test: &str) -> Option<Host> {
        Host::with(test, turn_of_scenarios)
    }

    fn with(test: &str, turn: fn(&str, Result<(), String>) -> Option<Turn>) -> Option<Host> {
        let able = narrows_kernel::available().map_err(|reason| reason.to_string());
        if able.is_ok() && passes_in_a_process_of_its_own() {
            return None;
        }
        let turn = turn(test, able)?;
        // Connections of the test before may still be closing; MPTCP waits a minute for the peer.
        wait_until(90, || match (reap(), state::connections()) {
            (Ok(_), Ok(left)) if left.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let script = "set -e
            ip link set lo up
            mount -t bpf -o mode=0700 bpf /sys/fs/bpf
            mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns
            mkdir -p /etc/systemd/system /etc/sysctl.d
            mount -t tmpfs tmpfs /etc/systemd/system && mount -t tmpfs tmpfs /etc/sysctl.d
            echo reno > /proc/sys/net/ipv4/tcp_congestion_control
            echo ready
            read -r end";
        let mut init = Command::new("unshare")
            .args(["--net", "--mount", "--propagation", "private", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(init.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Host { init, _turn: turn })
    }

    /// A command on this host.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // For the names that tests write; a container has no locale.
        command.env("LC_ALL", "C.UTF-8");
        command.args(["--net", "--mount", "-t", &self.init.id().to_string(), "--"]).args(words);
        command
    }

    pub fn narrows(&self, args: &[&str]) -> Output {
        let words = [&[env!("CARGO_BIN_EXE_narrows"), "kernel"], args].concat();
        self.command(&words).output().unwrap()
    }

    /// `narrows kernel ...`, which must succeed; what it says.
    pub fn does(&self, args: &[&str]) -> String {
        let output = self.narrows(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {stderr}");
        assert_eq!(stderr, "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `narrows kernel ...`, which must fail as wrong input does; the line it says.
    pub fn refuses(&self, args: &[&str]) -> String {
        refused(args, self.narrows(args))
    }

    /// A shell script, which must succeed; what it says.
    pub fn sh(&self, script: &str) -> String {
        let output = self.command(&["bash", "-euc", script]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that `narrows kernel` may change.
    pub fn state(&self) -> String {
        self.sh("find /sys/fs/bpf /etc/systemd/system /etc/sysctl.d | sort
            grep -o 'nr_[a-z_]*' /proc/sys/net/ipv4/tcp_available_congestion_control || true
            cat /proc/sys/net/ipv4/tcp_congestion_control")
    }

    /// Where cgroup2 is mounted.
    pub fn cgroups(&self) -> String {
        self.sh("findmnt -nt cgroup2 -o TARGET | head -1").trim().to_owned()
    }

    /// A cgroup for a test.
    pub fn cgroup(&self, name: &str) -> Cgroup {
        let folder = format!("{}/nr-{name}-test-{}", self.cgroups(), std::process::id());
        fs::create_dir(&folder).unwrap();
        Cgroup { folder }
    }

    pub fn default(&self) -> String {
        self.sh("cat /proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned()
    }

    /// The controls of both ends of a connection over loopback that begins now, as ss shows them.
    pub fn begins(&self, mptcp: bool) -> Vec<String> {
        self.begins_in("", mptcp)
    }

    /// The same in a cgroup.
    pub fn begins_in(&self, cgroup: &str, mptcp: bool) -> Vec<String> {
        let enter = match cgroup {
            "" => String::new(),
            folder => format!("echo $$ > {folder}/cgroup.procs"),
        };
        let protocol = if mptcp { 262 } else { 0 };
        let output = self.sh(&format!(
            "{enter}
            python3 -c '
import socket, subprocess
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {protocol})
a.bind((\"127.0.0.1\", 0)); a.listen()
b = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {protocol})
b.connect(a.getsockname()); c, _ = a.accept()
b.send(b\"x\" * 1000); c.recv(1000); c.send(b\"y\"); b.recv(1)
print(subprocess.run([\"ss\", \"-tinH\", \"state\", \"established\"], capture_output=True, text=True).stdout)
'"
        ));
        let known =
            |word: &&str| word.starts_with("nr_") || ["reno", "cubic", "bbr"].contains(word);
        output.split_whitespace().filter(known).map(str::to_owned).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind either: a link goes with its pin, what
        // has no links is unregistered by the command.
        let _ = self.narrows(&["unload"]);
        // What processes left whose peer will not answer any more.
        let aborted = "ss -tHK; for n in /run/netns/*; do nsenter --net=$n ss -tHK; done";
        let _ = self.command(&["sh", "-c", aborted]).output();
        let _ = self.init.kill();
        let _ = self.init.wait();
    }
}

/// Goes with the test, also with one that fails, and what is below it first.
pub struct Cgroup {
    pub folder: String,
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        fn remove(folder: &Path) {
            for below in fs::read_dir(folder).into_iter().flatten().flatten() {
                if below.file_type().is_ok_and(|kind| kind.is_dir()) {
                    remove(&below.path());
                }
            }
            // What has processes stays; of a test that has removed it there is nothing.
            let _ = fs::remove_dir(folder);
        }
        remove(Path::new(&self.folder));
    }
}

pub fn refused(args: &[&str], output: Output) -> String {
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?} says more than one line:\n{line}");
    assert!(output.stdout.is_empty(), "{args:?} prints to standard output");
    line.trim_end().strip_prefix("narrows: ").expect("the line begins with the program").to_owned()
}
