//! What the guides tell their readers to type as root: each call of `narrows` in a block `sh root`, or of a walk-through, runs
//! in its smallest form, page by page and in their order. So do an operator's other lines, but for those that install and
//! start things.

use super::host::Host;
use narrows_testkit::blocks;
use narrows_testkit::machine::{can_run, mptcp, tools, tun, without_scenarios};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::scope;

/// In place of other programs: who may do it, what a table of theirs shows, where a router is, and what passes there.
const OTHERS: [(&str, &str); 4] = [
    ("sudo", "exec \"$@\""),
    ("jq", "cat"),
    ("ssh", "shift\nexec \"$@\""),
    ("tcpdump", "exec gzip -dc \"$CAPTURE\""),
];

/// The pages, in the order of an operator, how many calls each has at least, and what comes before them.
const OPERATOR: [(&str, usize, &str); 9] = [
    ("README.md", 5, ""),
    ("docs/guide/kernel.md", 6, ""),
    ("docs/guide/trial.md", 4, ""),
    ("docs/guide/trouble.md", 3, ""),
    ("docs/guide/use.md", 15, ""),
    ("docs/guide/watch.md", 16, ""),
    ("docs/guide/operator-day.md", 17, ""),
    ("docs/guide/write-a-law.md", 4, "narrows law new mine.h"),
    (
        "docs/guide/undo.md",
        2,
        "narrows kernel load gcubic+xcorr
        narrows kernel trial gcubic+xcorr --against reno --share 5% --for 1h",
    ),
];

/// The pages with networks of Narrows and captures, and how many calls each has at least.
const NETWORKS: [(&str, usize); 7] = [
    ("README.md", 1),
    ("docs/guide/detect.md", 3),
    ("docs/guide/first-run.md", 1),
    ("docs/guide/lab-on-kernel.md", 5),
    ("docs/guide/quic-get.md", 1),
    ("docs/guide/quic.md", 2),
    ("docs/guide/watch.md", 1),
];

fn page(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(name)).unwrap()
}

/// A folder with what stands for the commands, and a script's first lines.
fn prepared() -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let others = OTHERS.map(|(name, text)| (name, format!("#!/bin/sh\n{text}\n")));
    let ours = ("narrows", include_str!("../smallest.sh").to_owned());
    for (name, text) in others.into_iter().chain([ours]) {
        let path = home.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/three-wans.pcap.gz");
    let (there, narrows) = (home.path().display(), env!("CARGO_BIN_EXE_narrows"));
    let script = format!(
        "export PATH={there}:$PATH NARROWS={narrows} CAPTURE={capture}\ncd {there}\nset -x -o pipefail"
    );
    (home, script)
}

/// The calls of `narrows kernel` in a page, one a line.
fn of_operator(text: &str) -> Vec<&str> {
    let lines = blocks(text, "sh root").flat_map(str::lines);
    let calls = lines.map(|line| line.strip_prefix("sudo ").unwrap_or(line));
    calls.filter(|call| call.starts_with("narrows kernel ")).collect()
}

/// The lines of other programs, but of those that install and start things.
fn of_others(text: &str) -> Vec<&str> {
    const ELSEWHERE: [&str; 3] = ["make ", "narrows ", "systemctl "];
    let lines = blocks(text, "sh root").flat_map(str::lines);
    let calls = lines.map(|line| line.strip_prefix("sudo ").unwrap_or(line));
    // Behind a space a line goes on, or is typed into a shell that the one before opens.
    let calls = calls.filter(|call| !call.is_empty() && !call.starts_with(' '));
    calls.filter(|call| !ELSEWHERE.iter().any(|name| call.starts_with(name))).collect()
}

/// Those of a walk-through: behind `$ `, and as code in its sentences.
fn of_walk(text: &str) -> Vec<&str> {
    let calls = text.lines().flat_map(|line| match line.strip_prefix("$ ") {
        Some(call) => vec![call],
        None => line.split('`').skip(1).step_by(2).collect(),
    });
    calls.filter(|call| call.starts_with("narrows kernel ")).collect()
}

/// The other calls of a page that this build has, each with what is typed into a shell that it opens.
fn of_networks(text: &str) -> Vec<String> {
    const OURS: [&str; 4] =
        ["narrows run ", "narrows compare ", "narrows shell ", "narrows detect "];
    // Another stack is not here.
    let is_call =
        |line: &str| OURS.iter().any(|ours| line.contains(ours)) && !line.contains("picoquicdemo ");
    let mut calls: Vec<String> = Vec::new();
    for block in blocks(text, "sh root") {
        // A call goes on behind a backslash.
        for line in block.replace("\\\n", "").lines() {
            match (line.strip_prefix("    "), calls.last_mut()) {
                (Some(typed), Some(shell)) => *shell = format!("echo '{typed}' | {shell}"),
                _ if is_call(line) => calls.push(line.to_owned()),
                _ => {}
            }
        }
    }
    calls
}

/// Does a call show something alone? Once is enough.
fn only_shows(call: &str) -> bool {
    const SHOW: [&str; 5] = ["advise", "check", "recommend", "status", "watch"];
    call.split(' ').nth(2).is_some_and(|word| SHOW.contains(&word))
}

#[test]
fn what_guides_tell_operators_to_type_runs() {
    let Some(host) = Host::new("the guides' commands") else { return };
    let before = host.state();
    let (home, prepare) = prepared();
    // As a lab in another terminal has them.
    host.sh("ip netns add blue; ip netns add nr-guides-sender");
    let cgroup = host.cgroup("guides");
    let there = home.path().display().to_string();
    let mut shown = BTreeSet::new();
    for (name, least, first) in OPERATOR {
        let text = page(name);
        let mut calls = if name.ends_with("-day.md") { of_walk(&text) } else { of_operator(&text) };
        assert!(calls.len() >= least, "{name}: {} calls, expected {least} at least", calls.len());
        calls.retain(|call| {
            let bare = call.split(" #").next().unwrap_or_default().trim_end();
            !only_shows(bare) || shown.insert(bare.to_owned())
        });
        let calls = calls
            .join("\n")
            .replace("NAME", "blue")
            .replace("/sys/fs/cgroup/system.slice/nginx.service", &cgroup.folder)
            .replace("/var/lib/prometheus/node-exporter", &there);
        host.sh(&format!("{prepare}\n{first}\n{calls}"));
    }
    assert_eq!(host.state(), before, "after undo");
    host.sh("ip netns del blue; ip netns del nr-guides-sender");
}

/// On this host's interface, with an address for each line.
#[test]
fn what_guides_tell_operators_to_type_of_other_programs_runs() {
    let test = "the guides' other programs";
    let wanted = tools(&["bpftool", "comm", "ip", "python3", "sysctl"]);
    if !can_run(test, mptcp().and(wanted)) {
        return;
    }
    let Some(host) = Host::new(test) else { return };
    let before = host.state();
    let (home, prepare) = prepared();
    let objects = home.path().join("objects").display().to_string();
    host.does(&["objects", &objects]);
    host.sh("ip netns add blue
        ip link add wan type veth peer name lan
        ip link set lan up && ip link set wan up
        ip address add 192.0.2.100/24 dev wan && ip route add default via 192.0.2.101");
    let pages = OPERATOR.map(|(name, ..)| page(name));
    let calls = pages.iter().flat_map(|text| of_others(text)).enumerate().map(|(n, call)| {
        let call = call.split(" #").next().unwrap_or_default().trim_end();
        let call = call
            .replace("ADDR dev IF", &format!("192.0.2.{} dev wan", n + 1))
            .replace("netns exec NAME", "netns exec blue")
            .replace("/usr/local/lib/narrows", &objects)
            .replace(" id ID", " id $(made)")
            // Which the first namespace alone may have as its default, where the kernel's is another.
            .replace("tcp_congestion_control=cubic", "tcp_congestion_control=reno");
        // Known to iproute2 from 6.7 on.
        let usec = call.contains("tcp_usec_ts");
        let or = if usec { " 2> error || grep '\"tcp_usec_ts\" is wrong' error" } else { "" };
        call + or
    });
    let calls: Vec<String> = calls.collect();
    assert_eq!(calls.len(), 12, "{calls:?}");
    // What bpftool registered is unregistered also where a line fails.
    let said = host.sh(&format!(
        "{prepare}
        ids() {{ bpftool struct_ops list | sed -n 's/: nr_ops .*//p' | sort; }}
        made() {{ ids | comm -13 others -; }}
        ids > others
        trap 'for id in $(made); do bpftool struct_ops unregister id $id; done' EXIT
        {}
        ip mptcp endpoint show",
        calls.join("\n")
    ));
    for shown in ["tcp_congestion_control = nr_olia\n", " signal dev wan", " subflow dev wan"] {
        assert!(said.contains(shown), "no {shown}: {said}");
    }
    let byte = |word: &str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
    let cookie = |line: &str| line.split(' ').count() == 8 && line.split(' ').all(byte);
    assert!(said.lines().any(cookie), "no cookie of a namespace: {said}");
    host.sh("ip netns del blue");
    assert_eq!(host.state(), before, "after the last line");
}

/// Each page beside the others, in a folder of its own.
#[test]
fn what_guides_tell_to_type_of_networks_runs() {
    let test = "the guides' networks";
    let wanted = tools(&["curl", "gzip", "iperf3", "mptcpize", "python3"]);
    if !can_run(test, tun().and_then(|()| mptcp()).and(wanted)) {
        return;
    }
    let Some(host) = Host::of_scenarios(test) else { return };
    let before = without_scenarios(|| host.state());
    let (home, prepare) = prepared();
    let run = |name: &str, least: usize| {
        let mut calls = of_networks(&page(name));
        assert!(calls.len() >= least, "{name}: {} calls, expected {least} at least", calls.len());
        calls.retain(|call| cfg!(feature = "quic") || !call.contains("quic"));
        let calls = calls
            .join("\n")
            .replace(" -d /srv", " -d files")
            .replace(" serve DIR ", " serve files ")
            .replace(" -t 30", " -t 1");
        let folder: PathBuf = home.path().join("pages").join(name.replace('/', "-"));
        fs::create_dir_all(folder.join("files")).unwrap();
        for file in ["file", "60MB"] {
            fs::write(folder.join("files").join(file), vec![0_u8; 300_000]).unwrap();
        }
        let there = folder.display();
        host.sh(&format!("{prepare}\ncd {there}\nln -s $CAPTURE wans.pcap\n{calls}"));
    };
    scope(|scope| {
        for (name, least) in NETWORKS {
            scope.spawn(move || run(name, least));
        }
    });
    assert_eq!(without_scenarios(|| host.state()), before, "afterwards");
}
