//! `narrows kernel recommend`: what it says of networks of which it is known what is wrong, and nothing stays.

use super::host::Host;
use super::paths::{Paths, Process};
use super::watch::{loaded, unloaded};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

/// One of its links loses packets at random.
const LOSSY: &str = r#"
name = "lossy"
title = "1 % of the packets of a link are lost"
source = "a test"
warmup = "1 s"
duration = "60 s"
test = "c"
links.clean = { rate = "5 Mbit/s", queue = "60 ms" }
links.lossy = { rate = "10 Mbit/s", queue = "60 ms", loss = "1 %" }
routes.clean = { links = ["clean"], rtt = "80 ms" }
routes.lossy = { links = ["lossy"], rtt = "80 ms" }
flows.c = { kind = "mptcp", routes = ["clean", "lossy"], cc = "cubic" }
"#;

const SERVER: &str = "
import socket
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.bind(('', 5000)); a.listen(); b, _ = a.accept()
while b.recv(1 << 20): pass";

const CLIENT: &str = "
import socket, sys
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
a.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'cubic')
a.connect((sys.argv[1], 5000)); print('ready', flush=True)
while True: a.sendall(bytes(1 << 16))";

/// What is recommended to the namespace whose name has this in it.
fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["namespaces"].as_array().unwrap();
    let found = all.iter().find(|one| one["netns"].as_str().unwrap().contains(name));
    found.unwrap_or_else(|| panic!("no namespace {name}: {report:#}"))
}

#[test]
fn what_is_recommended_fits_what_is_wrong_with_a_network() {
    let Some(host) = Host::new("recommend") else { return };
    let (before, programs) = (host.state(), loaded(&host));
    let one = Paths::new(&host, "nr-one-", "12000");
    let two = Paths::new(&host, "nr-two-", "7000 11000");
    let slow = Paths::new(&host, "nr-slow-", "30000 1500");
    // A buffer that does not last for the slow link.
    host.sh("ip netns exec nr-slow-server sysctl -qw net.ipv4.tcp_rmem='4096 131072 400000'");
    let traffic = [&one, &two, &slow]
        .map(|paths| [paths.serve("262"), paths.send("262", "cubic", &["10.99.1.2"])]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = [("net.toml", LOSSY), ("server.py", SERVER), ("client.py", CLIENT)];
    files.iter().for_each(|(name, text)| std::fs::write(path(name), text).unwrap());
    let (scenario, client) = (path("net.toml"), path("client.py"));
    let serve = format!("exec python3 {}", path("server.py"));
    let shell = [env!("CARGO_BIN_EXE_narrows"), "shell", &scenario, "--host", "sender"];
    let words = ["--serve", &serve, "--", "python3", &client, "{server}"];
    let mut lossy = Process::start(&host, &[&shell[..], &words].concat());
    assert_eq!(lossy.line(), "ready");
    sleep(Duration::from_secs(1));

    // Ctrl-C: what it knows so far.
    let watch = || -> Value {
        let words = [env!("CARGO_BIN_EXE_narrows"), "kernel", "recommend", "--json"];
        let recommend = Process::start(&host, &words);
        sleep(Duration::from_millis(11_500));
        let (said, code) = recommend.end(&host, "-INT");
        assert_eq!(code, Some(0));
        serde_json::from_str(&said).unwrap()
    };
    // On a busy machine the detector's first answer may take longer.
    let mut report = watch();
    if of(&report, "nr-one-client")["shared"] == serde_json::json!([]) {
        report = watch();
    }
    assert_eq!(report["format"], 1);
    let found = |name: &str| {
        let found = of(&report, name);
        println!("  {name}: {}", found["sentence"]);
        (found["recommended"].clone(), found["without"].clone())
    };
    assert_eq!(found("nr-one-client"), ("gcubic+xcorr".into(), Value::Null));
    assert_eq!(of(&report, "nr-one-client")["shared"], serde_json::json!([["v1", "v2"]]));
    assert_eq!(found("nr-two-client"), (Value::Null, Value::Null), "nothing is wrong");
    assert_eq!(found("nr-slow-client"), (Value::Null, "v2".into()));
    assert_eq!(found("-sender"), ("bbr+xcorr".into(), Value::Null));

    let said = host.does(&["recommend", "--for", "2", "--port", "9"]);
    assert_eq!(said, "no MPTCP connection of two subflows delivered anything\n");
    lossy.end(&host, "-TERM");
    drop(traffic);
    unloaded(&host, programs);
    assert_eq!(host.state(), before, "no control was changed");
    for (args, expected) in [
        (["--netns", "nr-not-there"], "--netns: no network namespace /run/netns/nr-not-there"),
        (["--cgroup", "/tmp"], "--cgroup /tmp: expected a folder of the cgroup2 file system"),
        (["--for", "soon"], "command line: invalid value 'soon' for '--for <SECONDS>': expected"),
        (["--port", "0"], "command line: invalid value '0' for '--port <PORT>': expected a port"),
    ] {
        let line = host.refuses(&["recommend", args[0], args[1]]);
        assert!(line.starts_with(expected), "{line}");
    }
}
