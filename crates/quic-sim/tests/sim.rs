//! A run is a function of its seed; time and loss are those of the network.

use narrows_net::{Limit, LinkConfig, Loss, MILLISECOND, Rate, SECOND};
use narrows_quic_sim::{Setup, Side, Sim, application};
use narrows_traffic::{SizeDist, Source};

/// 20 Mbit/s, 20 ms, a queue of 40 ms.
fn link() -> LinkConfig {
    LinkConfig {
        rate: Rate::Constant(20_000_000),
        delay: 20 * MILLISECOND,
        jitter: MILLISECOND,
        limit: Limit::Bytes(100_000),
        ..LinkConfig::default()
    }
}

/// Transfers 5 MB over two paths that lose one packet in a hundred; returns when, and the trace.
fn run(seed: u64, sender: Side) -> (u64, u64) {
    let mut sim = Sim::new(seed);
    let lossy = LinkConfig { loss: Loss::Random(0.01), ..link() };
    let paths = vec![sim.path(std::slice::from_ref(&lossy)), sim.path(&[lossy])];
    let application = application(Source::File { bytes: 5_000_000 });
    let connection = sim.connect(Setup { application, ..Setup::new(paths, sender) });
    sim.run(60 * SECOND);
    assert_eq!(sim.received(connection), 5_000_000);
    (sim.finished(connection).expect("all has arrived"), sim.trace())
}

#[test]
fn the_same_seed_sends_the_same_datagrams_at_the_same_times() {
    for sender in [Side::Client, Side::Server] {
        assert_eq!(run(1, sender), run(1, sender));
        assert_ne!(run(1, sender).1, run(2, sender).1);
    }
}

#[test]
fn a_transfer_takes_the_handshake_slow_start_and_the_rate_of_its_links() {
    let mut sim = Sim::new(1);
    let paths = vec![sim.path(&[link()]), sim.path(&[link()])];
    let application = application(Source::File { bytes: 25_000_000 });
    let connection = sim.connect(Setup { application, ..Setup::new(paths, Side::Client) });
    sim.run(10 * SECOND);
    // 5 s at 40 Mbit/s; one path alone takes 10.
    let seconds = sim.finished(connection).expect("10 s are enough") as f64 / SECOND as f64;
    assert!((5.0..6.0).contains(&seconds), "{seconds} s");
}

#[test]
fn an_application_that_writes_slowly_is_the_limit() {
    let mut sim = Sim::new(1);
    let path = sim.path(&[link()]);
    let size = SizeDist::Constant(1000);
    let application = application(Source::Rate { mean_pps: 100.0, size });
    let connection = sim.connect(Setup { application, ..Setup::new(vec![path], Side::Server) });
    sim.run(10 * SECOND);
    let received = sim.received(connection);
    // A Poisson process of 1000 messages: three deviations.
    assert!((900_000..=1_100_000).contains(&received), "{received}");
}
