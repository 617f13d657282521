//! A user's law, which the next command knows by its name in the kernel alone.

use super::host::Host;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const LAW: &str = r#"
#include "law.h"
#include "laws/reno.h"
NR_INLINE nr_s64 nr_mine_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return nr_reno_credit(p->cwnd) / 2;
}
NR_LAW(mine) = {
    .name = "mine",
    .code = "mine",
    .about = "half of Reno's growth",
    .source = "a test",
    .credit = nr_mine_credit,
};
"#;

/// An MPTCP connection over loopback that has sent both ways, until the input ends.
const TRANSFER: &str = r#"
import socket, sys
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
b.connect(a.getsockname()); c, _ = a.accept()
b.send(b"x" * 1000); c.recv(1000); c.send(b"y"); b.recv(1)
print(flush=True); sys.stdin.read()
"#;

#[test]
fn a_law_of_the_users_own_is_used_shown_and_unloaded_by_its_kernel_name() {
    let Some(host) = Host::new("law of the user's own") else { return };
    let before = host.state();
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("mine.h");
    std::fs::write(&header, LAW).unwrap();
    let header = header.to_str().unwrap();

    assert_eq!(host.does(&["load", header, "lia"]), "nr_mine: loaded\nnr_lia: loaded\n");
    assert_eq!(host.does(&["load", header]), "nr_mine: already loaded\n");
    // From another folder: still the same build.
    let program = env!("CARGO_BIN_EXE_narrows");
    let path = folder.path().display();
    let same = host.sh(&format!("cd {path} && {program} kernel load ./mine.h"));
    assert_eq!(same, "nr_mine: already loaded\n");
    // Another law under the same name in the kernel never takes its place.
    let other = folder.path().join("other law/mine2.h");
    std::fs::create_dir(other.parent().unwrap()).unwrap();
    let text = LAW.replace("mine", "mine2").replace(".code = \"mine2\"", ".code = \"mine\"");
    std::fs::write(&other, text).unwrap();
    let line = host.refuses(&["load", other.to_str().unwrap()]);
    assert!(line.starts_with("nr_mine: another law with the same .code is loaded"), "{line}");
    let used = "nr_mine: used in default for new connections instead of reno\n";
    assert_eq!(host.does(&["use", "nr_mine", "--default"]), used);
    let line = host.refuses(&["use", "nr_mine", "--default", "--boot"]);
    assert!(line.starts_with("--boot: only for the laws of narrows"), "{line}");
    let mut transfer = host
        .command(&["python3", "-c", TRANSFER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(transfer.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();

    let text = host.does(&["status"]);
    assert!(text.contains("\nnr_mine: loaded; default of default\n"), "{text}");
    let title = |line: &str| line.split_whitespace().nth(1) == Some("nr_mine");
    assert_eq!(text.lines().filter(|line| title(line)).count(), 2, "both ends: {text}");
    let status: serde_json::Value =
        serde_json::from_str(&host.does(&["status", "--json"])).unwrap();
    let controls = status["controls"].as_array().unwrap();
    let control = controls.iter().find(|control| control["kernel_name"] == "nr_mine").unwrap();
    assert_eq!(control["name"], "nr_mine");
    assert_eq!(control["counters"]["joins"], 2, "{control}");

    drop(transfer.stdin.take());
    transfer.wait().unwrap();
    let undone = "default: restored reno instead of nr_mine\nnr_mine: unloaded\n";
    assert_eq!(host.does(&["unload", "nr_mine"]), undone);
    let line = host.refuses(&["use", "nr_mine", "--default"]);
    assert!(line.contains("unknown"), "{line}");
    host.does(&["load", header]);
    assert_eq!(host.does(&["unload"]), "nr_lia: unloaded\nnr_mine: unloaded\n");
    assert_eq!(host.state(), before);
}
