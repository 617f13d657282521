//! Messages take as long as the network does: on its way, in its queues, and until a loss is repaired.

use std::sync::atomic::AtomicBool;

use narrows_lab::{ConnectionSummary, Edits, Job, host, parse, run};

/// The virtual hosts that this program was built with.
const HOSTS: &[&str] = if cfg!(feature = "quic") { &["sim", "quic"] } else { &["sim"] };

/// A message of 1000 B every 20 ms, 50 s of them, over a link of 12 Mbit/s: 1 ms for 1500 B, with 20 ms
/// from end to end.
const EVEN: &str = r#"
    name = "messages"
    title = ""
    source = ""
    warmup = "1 s"
    duration = "50 s"
    jitter = "0 packets"
    test = "test"
    links.wire = { rate = "12 Mbit/s", queue = "100 packets", delay = "10 ms", loss = "0 %" }
    routes.way = { links = ["wire"], rtt = "40 ms" }
    [flows.test]
    kind = "mptcp"
    routes = ["way"]
    cc = "reno"
    source.messages = { size = "1000 B", interval = "20 ms", gaps = "constant" }
"#;

fn of(text: &str, on: &str, seed: u64) -> ConnectionSummary {
    let scenario = parse(text, &Edits::default()).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let run = run(host(on).unwrap(), Job { seed, ..Job::new(&scenario, &stop) }).unwrap();
    let test = run.summary.test.unwrap();
    let [connection] = run.summary.connections.try_into().expect("one flow");
    assert_eq!(test.p95_message_ms, connection.p95_message_ms);
    assert_eq!(test.messages, connection.messages);
    connection
}

#[test]
fn on_an_idle_path_a_message_takes_the_delay_and_its_transmission() {
    for on in HOSTS {
        let of = of(EVEN, on, 1);
        assert_eq!(of.messages, Some(2500), "{on}");
        // The last is under way at the end.
        assert!(of.undelivered_messages.unwrap() <= 1, "{on}: {of:?}");
        for latency in [of.p50_message_ms, of.p95_message_ms, of.p99_message_ms] {
            let latency = latency.unwrap();
            assert!((20.6..21.0).contains(&latency), "{on}: {latency} ms");
        }
    }
}

/// One in fifty is lost, and those behind it wait: it is sent again after 40 ms and more.
#[test]
fn a_loss_delays_a_message_and_those_behind_it() {
    for on in HOSTS {
        let of = of(&EVEN.replace("0 %", "2 %"), on, 1);
        assert!(of.p50_message_ms.unwrap() < 21.0, "{on}: {of:?}");
        assert!(of.p99_message_ms.unwrap() > 60.0, "{on}: {of:?}");
        assert!(of.undelivered_messages.unwrap() <= 5, "{on}: what is lost is sent again: {of:?}");
    }
}

/// Twice as many as the link carries: what is not given up waits for the send buffer.
#[test]
fn what_the_network_does_not_carry_is_given_up_and_counts() {
    for on in HOSTS {
        let text = EVEN.replace("12 Mbit/s", "200 kbit/s");
        let of = of(&text, on, 1);
        let [written, not] = [of.messages, of.undelivered_messages].map(Option::unwrap);
        assert_eq!(written, 2500, "{on}");
        assert!((0.4..0.65).contains(&(not as f64 / written as f64)), "{on}: {not}");
        assert_eq!((of.p95_message_ms, of.p99_message_ms), (None, None), "{on}");
    }
}

#[test]
fn the_seed_fixes_when_messages_come() {
    let text = EVEN.replace("constant", "poisson").replace("12 Mbit/s", "1 Mbit/s");
    for on in HOSTS {
        let [one, again, other] = [1, 1, 2].map(|seed| of(&text, on, seed));
        assert_eq!(one, again, "{on}");
        assert_ne!(one.messages, other.messages, "{on}");
        assert!((2300..2700).contains(&one.messages.unwrap()), "{on}: {one:?}");
        // Some come while others are being sent.
        assert!(one.p99_message_ms.unwrap() > one.p50_message_ms.unwrap() + 4.0, "{on}: {one:?}");
    }
}
