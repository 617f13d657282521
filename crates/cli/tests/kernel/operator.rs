//! What docs/guide/kernel.md tells an operator to do, in its order: watch, load a control with a detector, use
//! it, see what it found and what it changed, undo all.

use super::host::Host;
use super::paths::{Paths, Process};
use narrows_testkit::wait_until;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The names of two clients: the paths of one meet in a link, those of the other do not.
const CLIENTS: [&str; 2] = ["shared-client", "apart-client"];
/// For so long shares are measured.
const MEASURED: Duration = Duration::from_secs(20);

/// Bytes acknowledged at a client: of its MPTCP connection, and of its TCP connections in the mean.
fn acked(host: &Host, client: &str) -> [f64; 2] {
    let sockets = host.sh(&format!("ip netns exec {client} ss -tinHO state established"));
    let (mut mptcp, mut tcp, mut connections) = (0.0, 0.0, 0.0);
    for socket in sockets.lines() {
        let acked = socket.split_once(" bytes_acked:").map_or("0", |(_, rest)| rest);
        let acked: f64 = acked.split(' ').next().unwrap().parse().unwrap();
        if socket.contains(" tcp-ulp-mptcp ") {
            mptcp += acked;
        } else {
            tcp += acked;
            connections += 1.0;
        }
    }
    [mptcp, tcp / connections]
}

/// What was acknowledged when a measurement of shares began.
struct Shares {
    began: Instant,
    before: [[f64; 2]; 2],
}

impl Shares {
    fn begin(host: &Host) -> Shares {
        Shares { before: CLIENTS.map(|client| acked(host, client)), began: Instant::now() }
    }

    /// What the MPTCP connection of each client gets, in shares of the TCP connections beside it.
    fn end(self, host: &Host) -> [f64; 2] {
        sleep(MEASURED.saturating_sub(self.began.elapsed()));
        let (before, now) = (self.before, CLIENTS.map(|client| acked(host, client)));
        [0, 1].map(|n| (now[n][0] - before[n][0]) / (now[n][1] - before[n][1]))
    }
}

/// The connection of a client's namespace in the JSON of the status.
fn connection(status: &Value, client: &str) -> Option<Value> {
    let namespaces = status["namespaces"].as_array().unwrap();
    let namespace = namespaces.iter().find(|namespace| namespace["name"] == client)?;
    let connections = namespace["connections"].as_array().unwrap();
    connections.iter().find(|connection| !connection["token"].is_null()).cloned()
}

/// What `narrows detect` finds of a client's flows as they come, over all its interfaces; it ends by itself.
fn capture(host: &Host, client: &str) -> Process {
    let command = format!("{} detect -i any --for 12 --json 2>&1", env!("CARGO_BIN_EXE_narrows"));
    Process::start(host, &["ip", "netns", "exec", client, "sh", "-c", &command])
}

/// Names of programs, maps and struct_ops of narrows in the kernel.
fn ours(host: &Host) -> String {
    host.sh("{ bpftool prog show; bpftool map show; } | grep -oE 'name nr_[a-z_]*' | sort || true")
}

#[test]
fn an_operator_watches_loads_a_control_sees_shares_change_and_undoes_it() {
    let Some(host) = Host::new("an operator's way") else { return };
    let (before, loaded) = (host.state(), ours(&host));
    let shared = Paths::new(&host, "shared-", "12000");
    let apart = Paths::new(&host, "apart-", "7000 9000");
    for client in CLIENTS {
        host.sh(&format!("ip netns exec {client} sysctl -qw net.ipv4.tcp_congestion_control=reno"));
    }
    let _servers = [shared.serve("262"), apart.serve("262")];
    // TCP connections through each link.
    let _rivals =
        [shared.send("0", "", &["10.99.1.2"]), apart.send("0", "", &["10.99.1.2", "10.99.2.2"])];
    let send = || [&shared, &apart].map(|paths| paths.send("262", "", &["10.99.1.2"]));
    let senders = send();

    let captures = CLIENTS.map(|client| capture(&host, client));
    let mut watch = Process::watch(&host, &["--json"]);
    let found = watch.until(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        let connections = report["connections"].as_array().unwrap();
        let groups = |client: &str, groups: Value| {
            connections
                .iter()
                .any(|one| one["paths"][0]["netns"] == client && one["groups"] == groups)
        };
        let right = groups(CLIENTS[0], json!([[1, 2]])) && groups(CLIENTS[1], json!([[1], [2]]));
        right.then_some(report)
    });
    println!("  both connections have the right groups after {} s", found["t_s"]);
    let sentences: Vec<&str> = found["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|connection| connection["sentence"].as_str().unwrap())
        .collect();
    assert!(sentences.iter().any(|one| one.contains("coupled they would take one share there")));
    watch.end(&host, "-INT");
    let uncoupled = Shares::begin(&host);
    for (client, capture) in CLIENTS.into_iter().zip(captures) {
        let said = capture.rest();
        // By the links their packets go to.
        let right = |groups: &Value| {
            let link = |flow: &Value| flow.as_str().unwrap().contains("> 10.99.2.");
            let groups = groups.as_array().unwrap().iter().map(|group| group.as_array().unwrap());
            let groups: Vec<_> = groups.filter(|group| group.len() > 1).collect();
            match client {
                "shared-client" => groups.len() == 1 && groups[0].len() == 3,
                _ => groups.len() == 2 && groups.iter().all(|of| link(&of[0]) == link(&of[1])),
            }
        };
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.collect();
        let decisions = lines.iter().filter(|line| line["groups"].is_array());
        let decided: Vec<_> =
            decisions.map(|line| (right(&line["groups"]), &line["t_s"])).collect();
        let first = decided.iter().position(|(right, _)| *right);
        let first = first.unwrap_or_else(|| panic!("{client}, never right:\n{said}"));
        println!("  narrows detect at {client}: right after {} s", decided[first].1);
        let (since, of) = (&decided[first..], decided.len() - first);
        let right = since.iter().filter(|(right, _)| *right).count();
        assert!(2 * right > of, "{client}: right in {right} of {of}:\n{said}");
    }
    let uncoupled = uncoupled.end(&host);

    host.does(&["load", "greno+xcorr"]);
    for client in CLIENTS {
        host.does(&["use", "greno+xcorr", "--netns", client, "--mptcp-only"]);
    }
    drop(senders);
    let senders = send();
    let groups = |client: &str| {
        let status: Value = serde_json::from_str(&host.does(&["status", "--json"])).unwrap();
        let detection = connection(&status, client).map(|one| one["detection"].clone());
        let detection = detection.unwrap_or_default();
        let groups = detection["groups"].as_array().cloned().unwrap_or_default();
        groups.iter().map(|group| (group["found"].clone(), group["paths"].clone())).collect()
    };
    for (client, expected) in CLIENTS.into_iter().zip([
        vec![(json!("shared"), json!([1, 2]))],
        vec![(json!("alone"), json!([1])), (json!("alone"), json!([2]))],
    ]) {
        wait_until(60, || {
            let found: Vec<(Value, Value)> = groups(client);
            if found == expected { Ok(()) } else { Err(format!("{client}: {found:?}")) }
        });
    }
    let coupled = Shares::begin(&host).end(&host);
    println!("  shares of TCP, without and with the control: {uncoupled:.2?}, {coupled:.2?}");
    let kept = [0, 1].map(|n| coupled[n] / uncoupled[n]);
    assert!(kept[0] < 0.85, "where they meet it takes less");
    assert!(kept[1] > kept[0], "where they do not, it keeps more");

    host.does(&["unload"]);
    for client in CLIENTS {
        let default =
            host.sh(&format!("ip netns exec {client} sysctl -n net.ipv4.tcp_congestion_control"));
        assert_eq!(default, "reno\n");
    }
    assert_eq!(host.state(), before);
    // What is open keeps its control until it ends.
    drop(senders);
    wait_until(20, || {
        let left = ours(&host);
        // Of what was there before some may have gone.
        let count = |all: &str, name| all.lines().filter(|one| *one == name).count();
        match left.lines().all(|name| count(&left, name) <= count(&loaded, name)) {
            true => Ok(()),
            false => Err(left),
        }
    });
}
