//! A path that does not pay, in the simulator: it becomes a backup as `narrows kernel advise` makes it.

use std::sync::atomic::AtomicBool;

use narrows_lab::{Edits, Job, host, parse, run};

/// Mbit/s of each path from 20 s to 30 s; the fast one has 50 Mbit/s with `rtt`.
fn goodputs(rtt: &str, slow: &Slow, buffer: &str, advice: bool) -> Vec<f64> {
    let Slow { link, queue, rtt: slow_rtt } = slow;
    let text = format!(
        "name = \"drag\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"20 s\"\nduration = \"10 s\"\ntest = \"c\"\n\
         links.fast = {{ rate = \"50 Mbit/s\", queue = \"{rtt}\" }}\nlinks.slow = {{ {link}, queue = \"{queue}\" }}\n\
         routes.fast = {{ links = [\"fast\"], rtt = \"{rtt}\" }}\nroutes.slow = {{ links = [\"slow\"], rtt = \"{slow_rtt}\" }}\n\
         flows.c = {{ kind = \"mptcp\", routes = [\"fast\", \"slow\"], cc = \"cubic\", advice = {advice}, \
         send_buffer = \"{buffer}\", recv_buffer = \"{buffer}\" }}\n"
    );
    let scenario = parse(&text, &Edits::default()).unwrap();
    let stop = AtomicBool::new(false);
    let found = run(host("sim").unwrap(), Job::new(&scenario, &stop)).unwrap();
    let connection = found.summary.connections.into_iter().find(|one| one.name == "c").unwrap();
    connection.paths.iter().map(|path| path.goodput_mbps).collect()
}

/// The other link, its queue and round-trip time.
struct Slow {
    link: &'static str,
    queue: &'static str,
    rtt: &'static str,
}

/// By the rule: without the slow path 50 Mbit/s, with it a buffer each of its round trips.
#[test]
fn a_path_that_all_wait_for_becomes_a_backup() {
    let slow = Slow { link: "rate = \"1 Mbit/s\"", queue: "400 ms", rtt: "300 ms" };
    let [with, without] = [false, true].map(|advice| goodputs("20 ms", &slow, "500 kB", advice));
    assert!(with.iter().sum::<f64>() < 15.0, "{with:?}");
    assert!(without[0] > 40.0 && without[1] < 0.1, "{without:?}");
}

/// A buffer of two of the fast path's windows: it has some on its way all the time, and room for as much again, but
/// what the scheduler gives the slow path takes a quarter of a second.
#[test]
fn a_path_that_all_wait_for_becomes_a_backup_though_the_other_is_never_idle() {
    let slow = Slow { link: "rate = \"2 Mbit/s\"", queue: "70 ms", rtt: "50 ms" };
    let [with, without] = [false, true].map(|advice| goodputs("60 ms", &slow, "1 MB", advice));
    assert!(with.iter().sum::<f64>() < 32.0, "{with:?}");
    assert!(without[0] > 40.0 && without[1] < 0.1, "{without:?}");
}

#[test]
fn a_path_that_nobody_waits_for_stays() {
    let fast = Slow { link: "rate = \"50 Mbit/s\"", queue: "400 ms", rtt: "300 ms" };
    let [with, without] = [false, true].map(|advice| goodputs("20 ms", &fast, "20 MB", advice));
    assert_eq!(with, without);
}
