//! A path that does not pay, in the simulator: it becomes a backup as `narrows kernel advise` makes it.

use std::sync::atomic::AtomicBool;

use narrows_lab::{Edits, Job, host, parse, run};

/// Mbit/s of each path from 20 s to 30 s; `slow`, with 300 ms, is beside 50 Mbit/s with 20 ms.
fn goodputs(slow: &str, buffer: &str, advice: bool) -> Vec<f64> {
    let text = format!(
        "name = \"drag\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"20 s\"\nduration = \"10 s\"\ntest = \"c\"\n\
         links.fast = {{ rate = \"50 Mbit/s\", queue = \"20 ms\" }}\nlinks.slow = {{ {slow}, queue = \"400 ms\" }}\n\
         routes.fast = {{ links = [\"fast\"], rtt = \"20 ms\" }}\nroutes.slow = {{ links = [\"slow\"], rtt = \"300 ms\" }}\n\
         flows.c = {{ kind = \"mptcp\", routes = [\"fast\", \"slow\"], cc = \"cubic\", advice = {advice}, \
         send_buffer = \"{buffer}\", recv_buffer = \"{buffer}\" }}\n"
    );
    let scenario = parse(&text, &Edits::default()).unwrap();
    let stop = AtomicBool::new(false);
    let found = run(host("sim").unwrap(), Job::new(&scenario, &stop)).unwrap();
    let connection = found.summary.connections.into_iter().find(|one| one.name == "c").unwrap();
    connection.paths.iter().map(|path| path.goodput_mbps).collect()
}

/// By the rule: without the slow path 50 Mbit/s, with it a buffer each of its round trips.
#[test]
fn a_path_that_all_wait_for_becomes_a_backup() {
    let slow = "rate = \"1 Mbit/s\"";
    let [with, without] = [false, true].map(|advice| goodputs(slow, "500 kB", advice));
    assert!(with.iter().sum::<f64>() < 15.0, "{with:?}");
    assert!(without[0] > 40.0 && without[1] < 0.1, "{without:?}");
}

#[test]
fn a_path_that_nobody_waits_for_stays() {
    let fast = "rate = \"50 Mbit/s\"";
    assert_eq!(goodputs(fast, "20 MB", false), goodputs(fast, "20 MB", true));
}
