//! Namespaces and cgroups that come, go and have each other's names.

use super::host::Host;
use std::process::Stdio;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

#[test]
fn containers_that_end_meanwhile_do_not_stop_an_unload() {
    let Some(host) = Host::new("containers") else { return };
    let before = host.state();
    // Some are always there, and none for long.
    let mut containers = host
        .command(&[
            "bash",
            "-c",
            "while read -rt 0.001 x; [ $? -gt 128 ]; do
                 for i in 1 2 3 4 5 6 7 8; do unshare --net sleep 0.02 & done; wait
             done",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..4 {
        host.does(&["load", "reno"]);
        host.does(&["use", "reno", "--default"]);
        let output = host.does(&["unload"]);
        assert!(output.starts_with("default: restored reno instead of nr_reno\n"), "{output}");
        assert!(output.ends_with("nr_reno: unloaded\n"), "{output}");
    }
    drop(containers.stdin.take());
    containers.wait().unwrap();
    assert_eq!(host.state(), before);
}

#[test]
fn a_namespace_that_only_its_file_holds_is_restored() {
    let Some(host) = Host::new("file of a namespace") else { return };
    let file = std::env::temp_dir().join(format!("nr-file-test-{}", std::process::id()));
    let file = file.to_str().unwrap();
    host.sh(&format!("touch {file}; unshare --net={file} sh -c 'echo reno > {DEFAULT}'"));
    host.does(&["load", "lia"]);
    host.does(&["use", "lia", "--netns", file]);
    let there = format!("nsenter --net={file} cat {DEFAULT}");
    assert_eq!(host.sh(&there), "nr_lia\n");
    let output = host.does(&["unload"]);
    assert_eq!(output, format!("{file}: restored reno instead of nr_lia\nnr_lia: unloaded\n"));
    assert_eq!(host.sh(&there), "reno\n");
    host.sh(&format!("umount {file}; rm {file}"));
}

#[test]
fn a_namespace_called_default_is_not_the_machines() {
    let Some(host) = Host::new("called default") else { return };
    host.does(&["load", "lia"]);
    host.does(&["use", "lia", "--default"]);
    host.sh("ip netns add default");
    host.does(&["use", "lia", "--netns", "default"]);
    let undone = "the default: restored reno instead of nr_lia\n";
    assert_eq!(host.does(&["unuse", "--default"]), undone);
    assert_eq!(host.sh(&format!("ip netns exec default cat {DEFAULT}")), "nr_lia\n");
    host.does(&["unload"]);
    host.sh("ip netns del default");
}

#[test]
fn what_has_gone_is_found_by_what_it_was_called() {
    let Some(host) = Host::new("gone") else { return };
    let before = host.state();
    host.sh("ip netns add nr-gone-test");
    let cgroup = host.cgroup("gone");
    let folder = format!("{}/", cgroup.folder);
    host.does(&["load", "lia"]);
    host.does(&["use", "lia", "--netns", "nr-gone-test", "--mptcp-only"]);
    host.does(&["use", "lia", "--cgroup", &folder]);
    host.sh(&format!("ip netns del nr-gone-test; rmdir {folder}"));
    let [netns, cgroup] =
        [["unuse", "--netns", "nr-gone-test"], ["unuse", "--cgroup", folder.as_str()]];
    let gone = "namespace nr-gone-test: no longer exists; nr_lia was in use there\n";
    assert_eq!(host.does(&netns), gone);
    assert_eq!(host.sh("bpftool -j map dump pinned /sys/fs/bpf/nr_plain"), "[]\n");
    assert_eq!(host.does(&cgroup), format!("cgroup {folder}: no longer nr_lia\n"));
    for again in [netns, cgroup] {
        assert!(host.does(&again).ends_with(": no control of narrows is in use there\n"));
    }
    assert_eq!(host.does(&["unload"]), "nr_lia: unloaded\n");
    assert_eq!(host.state(), before);
}
