//! `narrows kernel` on this machine's kernel, in network and mount namespaces of its own: what was
//! there before is there afterwards, whatever happens in between. Needs root and BTF.

#![cfg(feature = "kernel")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_kernel::control::Registered;
use narrows_laws::Control;

mod advise;
mod errors;
mod gone;
mod guides;
mod host;
mod metrics;
mod names;
mod older;
mod operate;
mod operator;
mod paths;
mod receiver;
mod recommend;
mod trial;
mod upgrade;
mod user;
mod watch;

use host::{Host, refused};

#[test]
fn load_use_unuse_unload_and_everything_is_as_before() {
    let Some(host) = Host::new("round trip") else { return };
    let before = host.state();
    assert_eq!(
        host.does(&["load", "olia", "lia+disjoint"]),
        "nr_olia: loaded\nnr_lia_dj: loaded\n"
    );
    let loaded = host.state();
    assert!(loaded.contains("/sys/fs/bpf/narrows/nr_lia_dj/counters"), "{loaded}");
    assert_eq!(host.does(&["load", "nr_olia"]), "nr_olia: already loaded\n");
    assert_eq!(host.state(), loaded, "twice is the same");
    assert_eq!(host.begins(true), ["reno", "reno"], "loaded is not used");

    let used = "nr_olia: used in default for new connections instead of reno\n";
    assert_eq!(host.does(&["use", "olia", "--default"]), used);
    assert_eq!(host.default(), "nr_olia");
    let in_use = host.state();
    assert_eq!(host.does(&["use", "olia", "--default"]), used);
    assert_eq!(host.state(), in_use, "twice is the same");
    assert_eq!(host.begins(true), ["nr_olia", "nr_olia"]);
    // One default after the other: what was there before both is there after both.
    host.does(&["use", "lia+disjoint", "--default"]);
    assert_eq!(host.begins(true), ["nr_lia_dj", "nr_lia_dj"]);

    let undone = "the default: restored reno instead of nr_lia_dj\n";
    assert_eq!(host.does(&["unuse", "--default"]), undone);
    assert_eq!(host.state(), loaded);
    let nothing = "the default: no control of narrows is in use there\n";
    assert_eq!(host.does(&["unuse", "--default"]), nothing);

    assert_eq!(host.does(&["unload", "olia"]), "nr_olia: unloaded\n");
    assert_eq!(host.does(&["unload", "olia"]), "nr_olia: not loaded by narrows\n");
    assert_eq!(host.does(&["unload"]), "nr_lia_dj: unloaded\n");
    assert_eq!(host.state(), before);
    assert_eq!(host.does(&["unload"]), "nothing is loaded\n");
}

#[test]
fn for_mptcp_only_plain_tcp_goes_on_with_what_it_had() {
    let Some(host) = Host::new("MPTCP only") else { return };
    let before = host.state();
    host.does(&["load", "lia"]);
    host.does(&["use", "lia", "--default"]);
    assert_eq!(host.begins(false), ["nr_lia", "nr_lia"]);
    let output = host.does(&["use", "lia", "--default", "--mptcp-only"]);
    let used = "nr_lia: used in default for new MPTCP connections; plain TCP keeps reno\n";
    assert_eq!(output, used);
    assert_eq!(host.begins(false), ["reno", "reno"]);
    assert_eq!(host.begins(true), ["nr_lia", "nr_lia"]);
    host.does(&["use", "lia", "--default"]);
    assert_eq!(host.begins(false), ["nr_lia", "nr_lia"]);
    host.does(&["use", "lia", "--default", "--mptcp-only"]);
    host.does(&["unuse", "--default"]);
    assert_eq!(host.sh("bpftool -j map dump pinned /sys/fs/bpf/nr_plain"), "[]\n");
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn routes_with_a_control_of_their_own_are_named() {
    let Some(host) = Host::new("routes with a control") else { return };
    host.does(&["load", "lia"]);
    host.sh("ip route add 192.0.2.0/24 dev lo congctl cubic
        ip -6 route add 2001:db8::/32 dev lo congctl nr_lia
        ip route add default via 192.0.2.1 dev lo onlink congctl lock bbr table 300");
    let used = "nr_lia: used in default for new connections instead of reno\n";
    let over = "not used over routes with a control of their own:";
    let routes = format!("{over} default table 300 congctl bbr and 1 more\n");
    assert_eq!(host.does(&["use", "lia", "--default"]), format!("{used}{routes}"));
    let said = host.does(&["check"]);
    let note = "which comes before the default: 2, as default table 300 congctl bbr\n";
    assert!(said.contains(note), "{said}");
    host.does(&["unload"]);
}

#[test]
fn a_namespace_and_a_cgroup_have_choices_of_their_own() {
    let Some(host) = Host::new("namespace and cgroup") else { return };
    let before = host.state();
    host.sh("ip netns add nr-loader-test");
    let there = "ip netns exec nr-loader-test cat /proc/sys/net/ipv4/tcp_congestion_control";
    host.sh("ip netns exec nr-loader-test sh -c 'echo reno > /proc/sys/net/ipv4/tcp_congestion_control'");
    let cgroup = host.cgroup("loader");
    let folder = cgroup.folder.as_str();

    host.does(&["load", "balia", "olia"]);
    host.does(&["use", "balia", "--netns", "nr-loader-test"]);
    assert_eq!(host.sh(there), "nr_balia\n");
    assert_eq!(host.default(), "reno");
    host.does(&["use", "balia", "--cgroup", folder]);
    assert_eq!(host.begins_in(folder, false), ["nr_balia", "nr_balia"]);
    host.does(&["use", "olia", "--cgroup", folder, "--mptcp-only"]);
    assert_eq!(host.begins_in(folder, true), ["nr_olia", "nr_olia"]);
    assert_eq!(host.begins_in(folder, false), ["reno", "reno"]);
    assert_eq!(host.begins(true), ["reno", "reno"], "not in the cgroup");

    let undone = format!("cgroup {folder}: no longer nr_olia\n");
    assert_eq!(host.does(&["unuse", "--cgroup", folder]), undone);
    assert_eq!(host.begins_in(folder, true), ["reno", "reno"]);
    host.does(&["use", "olia", "--cgroup", folder]);
    // The other way round: unload undoes the uses, and those alone that are its.
    assert_eq!(
        host.does(&["unload", "balia"]),
        "nr-loader-test: restored reno instead of nr_balia\nnr_balia: unloaded\n"
    );
    assert_eq!(host.sh(there), "reno\n");
    assert_eq!(host.begins_in(folder, true), ["nr_olia", "nr_olia"]);
    // A cgroup of the same name is another one; a service's comes and goes with it.
    host.sh(&format!("rmdir {folder}; mkdir {folder}"));
    assert_eq!(host.begins_in(folder, true), ["reno", "reno"]);
    host.does(&["use", "olia", "--cgroup", folder]);
    assert_eq!(host.begins_in(folder, true), ["nr_olia", "nr_olia"]);
    let undone = format!("{folder}: no longer nr_olia\nnr_olia: unloaded\n");
    assert_eq!(host.does(&["unload"]), undone, "the other one is forgotten");
    assert_eq!(host.begins_in(folder, true), ["reno", "reno"]);
    host.sh("ip netns del nr-loader-test");
    assert_eq!(host.state(), before);
}

#[test]
fn what_somebody_else_changed_since_is_left_as_it_is() {
    let Some(host) = Host::new("changed since") else { return };
    host.does(&["load", "olia"]);
    host.does(&["use", "olia", "--default"]);
    host.sh("echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
    let left = "the default: left at reno: it was changed from nr_olia since\n";
    assert_eq!(host.does(&["unuse", "--default"]), left);
    assert_eq!(host.default(), "reno");

    // Somebody made it a default without us: it would go on with a control that is gone.
    host.sh("ip netns add nr-loader-test
        ip netns exec nr-loader-test sh -c 'echo nr_olia > /proc/sys/net/ipv4/tcp_congestion_control'");
    let output = host.does(&["unload"]);
    let undone = "namespace nr-loader-test: reno instead of the inherited nr_olia\n";
    assert!(output.contains(undone), "{output}");
    let there = "ip netns exec nr-loader-test cat /proc/sys/net/ipv4/tcp_congestion_control";
    assert_eq!(host.sh(there), "reno\n");
    host.sh("ip netns del nr-loader-test");
}

#[test]
fn a_newer_build_takes_the_place_of_an_older_one_also_where_it_is_the_default() {
    let Some(host) = Host::new("replace") else { return };
    let before = host.state();
    host.does(&["load", "olia"]);
    host.does(&["use", "olia", "--default"]);
    host.begins(true);
    let joins = |host: &Host| {
        let counters =
            "bpftool -j map lookup pinned /sys/fs/bpf/narrows/nr_olia/counters key 0 0 0 0";
        host.sh(counters)
    };
    assert!(joins(&host).contains("\"0x02\""), "both ends joined: {}", joins(&host));
    let pinned = host.state();
    host.sh("bpftool map update pinned /sys/fs/bpf/narrows/nr_olia/build key 0 0 0 0 value 1 2 3 4 5 6 7 8");
    let output = host.does(&["load", "olia"]);
    assert_eq!(
        output,
        "nr_olia: loaded, replacing another build or settings; open connections keep the old ones\n"
    );
    assert_eq!(host.state(), pinned);
    assert!(!joins(&host).contains("\"0x02\""), "counters of its own");
    assert_eq!(host.begins(true), ["nr_olia", "nr_olia"]);
    assert!(joins(&host).contains("\"0x02\""), "the default is the new build: {}", joins(&host));
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn a_failure_leaves_nothing_half_done() {
    let Some(host) = Host::new("failures") else { return };
    let before = host.state();
    let line = host.refuses(&["load", "olia", "ollia"]);
    assert!(line.starts_with("ollia: unknown law 'ollia' (did you mean 'olia'?)"), "{line}");
    assert_eq!(host.state(), before);

    let taken = Registered::register(Control::LIA).unwrap();
    let with_taken = host.state();
    assert_eq!(
        host.refuses(&["load", "olia", "lia"]),
        "nr_lia: a congestion control of this name is already registered, and narrows did not \
         load it (bpftool struct_ops list)"
    );
    assert_eq!(host.state(), with_taken);
    assert!(host.refuses(&["unload", "lia"]).starts_with("nr_lia: not loaded by narrows"));
    drop(taken);

    assert_eq!(
        host.refuses(&["use", "olia+disjoint", "--default"]),
        "nr_olia_dj: not loaded; first: narrows kernel load olia+disjoint"
    );
    host.does(&["load", "olia"]);
    let loaded = host.state();
    let line = host.refuses(&["use", "olia", "--netns", "nr-loader-none"]);
    assert!(line.starts_with("--netns nr-loader-none: "), "{line}");
    let line = host.refuses(&["use", "olia", "--netns", "/etc/passwd"]);
    assert_eq!(line, "--netns /etc/passwd: /etc/passwd is no network namespace");
    let root = host.cgroups();
    for path in ["/tmp".to_owned(), format!("{root}/cgroup.procs")] {
        let line = host.refuses(&["use", "olia", "--cgroup", &path]);
        assert_eq!(line, format!("--cgroup {path}: expected a folder of the cgroup2 file system"));
    }
    assert_eq!(host.state(), loaded);
    host.does(&["unload"]);
    host.sh("mkdir /tmp/nr-loader-test && touch /tmp/nr-loader-test/file
        ln -s /tmp/nr-loader-test /sys/fs/bpf/narrows");
    let line = host.refuses(&["unload"]);
    assert_eq!(line, "/sys/fs/bpf/narrows: is not a folder owned by root; remove it");
    host.sh("rm /tmp/nr-loader-test/file && rmdir /tmp/nr-loader-test && rm /sys/fs/bpf/narrows");

    // This machine may have one of its own below ours.
    host.sh("while mountpoint -q /sys/fs/bpf; do umount /sys/fs/bpf; done");
    let line = host.refuses(&["load", "balia"]);
    let mount = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf";
    assert_eq!(line, format!("/sys/fs/bpf: the BPF file system is not mounted here: {mount}"));
}

#[test]
fn ctrl_c_leaves_nothing_and_a_kill_nothing_that_the_next_command_does_not_find() {
    let Some(host) = Host::new("interrupts") else { return };
    let before = host.state();
    let many = ["load", "reno", "cubic", "lia", "olia", "balia", "lia+disjoint", "olia+disjoint"];
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let start = |args: &[&str]| {
        let words = [&[narrows, "kernel"], args].concat();
        let mut command = host.command(&words);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let end = |child: &Child, signal: &str| {
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    };

    // How long each takes is this machine's.
    let taken = |args: &[&str]| {
        let began = Instant::now();
        host.does(args);
        let taken = began.elapsed();
        host.does(&["unload"]);
        assert_eq!(host.state(), before);
        taken
    };
    let whole = taken(&many);
    let stopped = [0.6, 0.4, 0.2].iter().any(|part| {
        let load = start(&many);
        sleep(whole.mul_f64(*part));
        end(&load, "-INT");
        let output = load.wait_with_output().unwrap();
        if output.status.success() {
            // It was faster than before.
            host.does(&["unload"]);
            return false;
        }
        let line = String::from_utf8(output.stderr).unwrap();
        let interrupted = "narrows: interrupted, nothing was changed\n";
        assert_eq!((output.status.code(), line.as_str()), (Some(130), interrupted));
        true
    });
    assert!(stopped, "{whole:?}");
    assert_eq!(host.state(), before);

    // Over and over at another moment, also between two registrations at the end.
    let two = ["load", "olia", "lia"];
    let whole = taken(&two);
    for part in [0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.85, 0.9, 0.93, 0.96, 1.0, 1.1] {
        let mut load = start(&two);
        sleep(whole.mul_f64(part));
        end(&load, "-KILL");
        load.wait().unwrap();
        host.does(&["unload"]);
        assert_eq!(host.state(), before, "killed after {part} of {whole:?}");
    }
    host.does(&["load", "olia"]);
    for wait in 0..20 {
        let mut used = start(&["use", "olia", "--default", "--mptcp-only"]);
        sleep(Duration::from_millis(2 * wait));
        end(&used, "-KILL");
        used.wait().unwrap();
        host.does(&["unuse", "--default"]);
        assert_eq!(host.default(), "reno", "killed after {wait} ms");
    }
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}

#[test]
fn sockets_that_keep_an_unloaded_control_are_counted_and_their_processes_named() {
    let Some(host) = Host::new("sockets") else { return };
    host.does(&["load", "reno"]);
    host.does(&["use", "reno", "--default"]);
    let mut server = host
        .command(&[
            "python3",
            "-c",
            "import socket; a = socket.create_server(('', 0)); print(flush=True); import sys; sys.stdin.read()",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let output = host.does(&["unload"]);
    let kept = "nr_reno: unloaded; 1 socket keeps it until it closes";
    // nsenter has become python3.
    assert!(
        output.ends_with(&format!("{kept}, held by python3 (pid {})\n", server.id())),
        "{output}"
    );
    drop(server.stdin.take());
    server.wait().unwrap();
}

#[test]
fn what_is_done_at_the_start_of_the_machine_is_written_and_taken_back() {
    let Some(host) = Host::new("boot") else { return };
    let before = host.state();
    let unit = "/etc/systemd/system/narrows.service";
    let dry = host.does(&["use", "olia", "--default", "--mptcp-only", "--boot", "--dry-run"]);
    assert!(dry.starts_with("# /etc/systemd/system/narrows.service\n"), "{dry}");
    assert!(dry.contains("kernel use olia --default --mptcp-only\n"), "{dry}");
    assert!(dry.contains("net.mptcp.enabled = 1\n"), "{dry}");
    assert_eq!(host.state(), before, "--dry-run changes nothing");

    // What cannot be done now is not done at the start either.
    host.refuses(&["use", "olia", "--default", "--boot"]);
    assert_eq!(host.state(), before);
    let line = host.refuses(&["use", "olia", "--netns", "blue", "--boot"]);
    assert!(line.contains("ExecStartPre=+/") && line.ends_with("use olia --netns blue"), "{line}");
    let line = host.refuses(&["use", "olia", "--netns", "blue", "--mptcp-only", "--boot"]);
    assert!(line.ends_with("use olia --netns blue --mptcp-only"), "{line}");
    let line = host.refuses(&["unuse", "--netns", "blue", "--boot"]);
    assert!(line.ends_with("omit --boot"), "{line}");

    host.does(&["load", "olia", "--boot"]);
    host.does(&["use", "olia", "--default", "--mptcp-only", "--boot"]);
    let written = host.sh(&format!("cat {unit}"));
    assert!(dry.contains(&written), "as --dry-run said: {written}");
    host.does(&["unload"]);
    assert!(host.state().contains(unit), "unload is what the unit itself does at its end");

    // The unit's own lines, in its order.
    let lines = |key: &str| {
        let lines = written.lines().filter_map(|line| line.strip_prefix(key));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    host.sh(&lines("ExecStart="));
    assert_eq!(host.default(), "nr_olia");
    host.sh(&lines("ExecStop="));
    assert_eq!(host.default(), "reno");

    host.does(&["unuse", "--default", "--boot"]);
    assert!(!host.sh(&format!("cat {unit}")).contains("kernel use"));
    host.does(&["unload", "--boot"]);
    assert_eq!(host.state(), before);
}

#[test]
fn without_root_there_is_one_line() {
    // Where another user can read and run it.
    let narrows = std::env::temp_dir().join(format!("narrows-test-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_narrows"), &narrows).unwrap();
    for args in [
        &["load", "olia"][..],
        &["use", "olia", "--default"],
        &["unuse", "--default"],
        &["unload"],
        &["watch"],
        &["recommend"],
    ] {
        let mut command = Command::new(&narrows);
        command.arg("kernel").args(args);
        if narrows_kernel::available() != Err(narrows_kernel::Unavailable::NotRoot) {
            command.uid(65534);
        }
        let line = refused(args, command.output().unwrap());
        assert_eq!(line, "loading BPF programs needs root");
    }
    std::fs::remove_file(&narrows).unwrap();
}
