//! Names that others chose, of namespaces and in arguments, do not command the terminal.

use super::host::Host;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// A process with a connection.
const PROCESS: &str = r#"
import socket, time
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
b.connect(a.getsockname()); c, _ = a.accept()
b.send(b"x"); c.recv(1)
print("ready", flush=True); time.sleep(60)"#;

#[test]
fn names_that_others_chose_do_not_command_the_terminal() {
    let Some(host) = Host::new("names of others") else { return };
    host.sh(r#"name=$'ev\e[31m\n\u202e'; ip netns add "$name"; ip -n "$name" link set lo up"#);
    let mut process = host
        .command(&[
            "bash",
            "-c",
            "exec ip netns exec $'ev\\e[31m\\n\\u202e' python3 -c \"$0\"",
            PROCESS,
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    host.does(&["load", "lia"]);
    let checked = host.narrows(&["check"]);
    let all = [
        host.does(&["status"]),
        host.does(&["status", "--json"]),
        String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap(),
        host.refuses(&["use", "lia", "--netns", "n\u{1b}[2J\n\u{202e}"]),
    ];
    let _ = process.kill();
    let _ = process.wait();
    for text in &all {
        let bad = |one: char| one == '\u{202e}' || one.is_control() && !['\n', '\t'].contains(&one);
        assert!(!text.contains(bad), "{text:?}");
    }
    assert!(all[0].contains("network namespace ev\\u001b[31m\\n\\u202e, "), "{}", all[0]);
}
