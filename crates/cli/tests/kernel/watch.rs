//! `narrows kernel watch`: which paths of a connection meet in one bottleneck, under stock controls,
//! and nothing stays.

use super::host::Host;
use super::paths::{Paths, Process};
use narrows_testkit::wait_until;
use serde_json::Value;

/// Programs, links and maps of the watch in the kernel.
pub fn loaded(host: &Host) -> usize {
    let script =
        "{ bpftool prog show; bpftool map show; } | grep -cE 'name nr_sample(d|s)? ' || true";
    host.sh(script).trim().parse().unwrap()
}

/// Waits until there are so many: the kernel frees them after a grace period of RCU.
pub fn unloaded(host: &Host, before: usize) {
    wait_until(20, || match loaded(host) {
        left if left <= before => Ok(()),
        left => Err(format!("{left} programs and maps, {before} before")),
    });
}

/// The connection of a report whose groups are those, if there is one.
pub fn connection(line: &str, groups: &Value) -> Option<Value> {
    let report: Value = serde_json::from_str(line).unwrap();
    assert_eq!(report["format"], 1);
    let connections = report["connections"].as_array().unwrap();
    connections.iter().find(|one| one["groups"] == *groups).cloned()
}

#[test]
fn paths_of_one_bottleneck_are_found_under_the_stock_control_and_nothing_stays() {
    let Some(host) = Host::new("watch, shared") else { return };
    let (before, programs) = (host.state(), loaded(&host));
    let paths = Paths::new(&host, "", "12000");
    let _traffic = [paths.serve("262"), paths.send("262", "cubic", &["10.99.1.2"])];
    let with_traffic = host.state();

    let mut watch = Process::watch(&host, &["--json", "--port", "5000"]);
    let shared = watch.until(|line| connection(line, &serde_json::json!([[1, 2]])));
    assert!(loaded(&host) > programs);
    let paths = shared["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path["control"] == "cubic"));
    assert_eq!((&paths[0]["interface"], &paths[1]["interface"]), (&"v1".into(), &"v2".into()));
    let rate: f64 = paths.iter().map(|path| path["mbit_per_s"].as_f64().unwrap()).sum();
    assert!((1.0..13.0).contains(&rate), "{rate} Mbit/s through 12");
    assert_eq!(shared["verdicts"][0]["verdict"], "shared");
    assert!(shared["verdicts"][0]["confidence"].as_f64().unwrap() >= 0.99);
    let (_, code) = watch.end(&host, "-INT");
    assert_eq!(code, Some(0));
    unloaded(&host, programs);

    let mut watch = Process::watch(&host, &[]);
    watch.until(|line| line.ends_with("#1+#2").then_some(()));
    let (said, code) = watch.end(&host, "-INT");
    assert_eq!(code, Some(0));
    let sentence = "both paths meet in one bottleneck 100 % of the time; coupled they would take \
                    one share there, not two.";
    assert!(said.contains(sentence), "{said}");

    let mut watch = Process::watch(&host, &["--json"]);
    watch.line();
    assert!(loaded(&host) > programs);
    watch.end(&host, "-KILL");
    unloaded(&host, programs);
    assert_eq!(host.state(), with_traffic, "no control was changed");
    assert!(with_traffic.starts_with(before.split("reno").next().unwrap()));

    // In other places there is nothing to watch.
    for scope in [["--netns", "router"], ["--port", "5001"]] {
        let said = host.does(&["watch", "--for", "2s", scope[0], scope[1]]);
        assert_eq!(said, "no MPTCP connection of two subflows sent anything\n");
    }
}

#[test]
fn paths_with_a_bottleneck_each_are_told_apart() {
    let Some(host) = Host::new("watch, separate") else { return };
    let paths = Paths::new(&host, "", "7000 11000");
    let _traffic = [paths.serve("262"), paths.send("262", "reno", &["10.99.1.2"])];
    let mut watch = Process::watch(&host, &["--json"]);
    // What was found first, while they started, may have been wrong: the sentence is of the whole time.
    let sentence = "the two paths have separate bottlenecks";
    let separate = watch.until(|line| {
        connection(line, &serde_json::json!([[1], [2]]))
            .filter(|one| one["sentence"].as_str().unwrap().starts_with(sentence))
    });
    assert_eq!(separate["verdicts"][0]["verdict"], "separate");
    watch.end(&host, "-INT");
}

#[test]
fn tcp_flows_are_compared_where_that_is_asked_for() {
    let Some(host) = Host::new("watch, TCP") else { return };
    let to = ["10.99.1.2", "10.99.1.2", "10.99.2.2"];
    let paths = Paths::new(&host, "", "7000 11000");
    let _traffic = [paths.serve("0"), paths.send("0", "reno", &to)];
    let mut watch = Process::watch(&host, &["--json", "--tcp", "3"]);
    let found = watch.until(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        let flows = report["connections"].get(0)?;
        let groups = flows["groups"].as_array().unwrap();
        (groups.len() == 2).then(|| flows.clone())
    });
    // Flows to one address take one link.
    let of = |number: &Value| {
        let path = &found["paths"][number.as_u64().unwrap() as usize - 1];
        path["remote"].as_str().unwrap().to_owned()
    };
    for group in found["groups"].as_array().unwrap() {
        let remotes: Vec<String> = group.as_array().unwrap().iter().map(of).collect();
        assert!(remotes.iter().all(|remote| *remote == remotes[0]), "{remotes:?}");
    }
    watch.end(&host, "-INT");
}

#[test]
fn what_cannot_be_watched_is_refused_in_one_line() {
    let Some(host) = Host::new("watch, refused") else { return };
    let before = loaded(&host);
    for (args, expected) in [
        (["--netns", "nr-not-there"], "--netns: no network namespace /run/netns/nr-not-there"),
        (["--cgroup", "/tmp"], "--cgroup /tmp: expected a folder of the cgroup2 file system"),
        (["--tcp", "1"], "command line: invalid value '1' for '--tcp <N>': "),
        (
            ["--for", "soon"],
            "command line: invalid value 'soon' for '--for <SECONDS>': expected seconds",
        ),
        (
            ["--port", "70000"],
            "command line: invalid value '70000' for '--port <PORT>': expected a port, 1 to 65535",
        ),
        (
            ["--port", "80,,443"],
            "command line: invalid value '' for '--port <PORT>': expected a port, 1 to 65535",
        ),
        (
            ["--port", "0"],
            "command line: invalid value '0' for '--port <PORT>': expected a port, 1 to 65535",
        ),
    ] {
        let line = host.refuses(&["watch", args[0], args[1]]);
        assert!(line.starts_with(expected), "{line}");
    }
    unloaded(&host, before);
}

#[test]
fn of_a_cgroup_only_its_connections_are_watched() {
    let Some(host) = Host::new("watch, cgroup") else { return };
    let cgroup = host.cgroup("watch");
    let folder = cgroup.folder.as_str();
    host.sh(&format!("mkdir {folder}/below"));
    let paths = Paths::new(&host, "", "12000");
    let _outside = [paths.serve("262"), paths.send("262", "reno", &["10.99.1.2"])];
    let inside = paths.send_in(&format!("{folder}/below"), "262", "reno", &["10.99.1.2"]);
    let count = |line: &str| {
        let report: Value = serde_json::from_str(line).unwrap();
        report["connections"].as_array().unwrap().len()
    };
    let mut all = Process::watch(&host, &["--json"]);
    all.until(|line| (count(line) == 2).then_some(()));
    all.end(&host, "-INT");
    let mut watch = Process::watch(&host, &["--json", "--cgroup", folder]);
    let report = watch.until(|line| (count(line) > 0).then(|| line.to_owned()));
    assert_eq!(count(&report), 1, "{report}");
    let sockets = host.sh(&format!("ss -tnHp dport 5000 | grep pid={},", inside.id()));
    let report: Value = serde_json::from_str(&report).unwrap();
    let local = report["connections"][0]["paths"][0]["local"].as_str().unwrap();
    assert!(sockets.contains(local), "{local} in {sockets}");
    watch.end(&host, "-INT");
    drop(inside);
}
