//! Slow start that looks ahead, HyStart and HyStart++, beside the standard one.

use crate::common;

use common::*;
use narrows_net::{Limit, LinkConfig, Rate};
use narrows_sim::{ConnectionConfig, Sim};
use narrows_traffic::{Opener, Source, TcpConfig};

/// One flow for 3 s on a link of 100 Mbit/s, RTT 100 ms, that holds 833 packets on the way and twice
/// as many in its queue. Returns what was dropped, the longest queue, and the packets delivered.
fn long_path(name: &str, pacing: bool) -> (u64, u64, u64) {
    let mut sim = Sim::new(1);
    let limit = Limit::Packets(1666);
    let bottleneck = link("bottleneck", Rate::Constant(100 * MBIT), 50 * MS);
    let bottleneck = add(&mut sim, LinkConfig { limit, ..bottleneck });
    let back = add(&mut sim, link("back", Rate::Infinite, 50 * MS));
    let path = path(&mut sim, &[bottleneck], &[back]);
    let tcp = TcpConfig { pacing, ..TcpConfig::default() };
    let config = ConnectionConfig { control: control(name), tcp, ..greedy(vec![path]) };
    let connection = sim.add_connection(config);
    let queue = |ms| {
        sim.run_until(ms * MS);
        sim.network().queue_packets(bottleneck, sim.now()) as u64
    };
    let peak = (0..3_000).map(queue).max().expect("there are some");
    let delivered = sim.connection(connection).delivered_bytes / 1448;
    (sim.network().counters(bottleneck).dropped_queue, peak, delivered)
}

/// Path and queue hold 2500 packets. Standard slow start learns of the first drop a full RTT later
/// and by then has doubled its window once more: 2500 are lost. HyStart++ sees the standing queue of
/// the window of 1280 when its window is 2560, too late to lose nothing, and from there on grows by
/// a quarter: about 640 are lost. HyStart stops when acknowledgements have come in for half of an
/// RTT: half of the path is full then, the window becomes 833 and some, and nothing is lost.
#[test]
fn a_long_path_is_not_overrun() {
    for pacing in [false, true] {
        let (lost, _, full) = long_path("reno", pacing);
        assert!((2_400..2_600).contains(&lost), "{lost} lost");
        for name in ["reno+hystart++", "cubic+hystart++"] {
            let (lost, peak, delivered) = long_path(name, pacing);
            assert!((500..850).contains(&lost) && peak == 1666, "{name}: {lost} lost");
            assert!(delivered > full * 99 / 100, "{name}: {delivered} of {full}");
        }
        let (lost, peak, delivered) = long_path("cubic", pacing);
        // A train is twice as long where it is paced.
        let most = if pacing { 1400 } else { 450 };
        assert!(lost == 0 && peak < most, "{lost} lost, {peak} in the queue");
        assert!(delivered > full * 99 / 100, "{delivered} of {full}");
    }
}

/// Packets come up to 3 ms late, at random, and the link is never full: less than an eighth of the
/// RTT, so slow start goes on as the standard one, to 10 * 2^8 packets in eight round trips. That no
/// packet of a round waits for the next takes acknowledgements of just every second segment.
#[test]
fn jitter_does_not_end_slow_start() {
    for name in ["reno", "reno+hystart++", "cubic"] {
        let mut sim = Sim::new(1);
        let forward = link("forward", Rate::Constant(10_000 * MBIT), 50 * MS);
        let forward = add(&mut sim, LinkConfig { jitter: 3 * MS, ..forward });
        let back = add(&mut sim, link("back", Rate::Infinite, 50 * MS));
        let path = path(&mut sim, &[forward], &[back]);
        let config = ConnectionConfig { control: control(name), ..greedy_delack(vec![path]) };
        let connection = sim.add_connection(config);
        sim.run_until(950 * MS);
        let path = &sim.connection(connection).paths[0];
        assert_eq!((path.cwnd, path.ssthresh), (2560, 0x7fff_ffff), "{name}");
    }
}

/// Two subflows without a bottleneck, RTT 100 ms. The second joins after four round trips (handshake,
/// data, and the four packets of a join), when the first has 80 packets in flight. LISA lends it 10:
/// the first ignores as many acknowledged packets and doubles the other 70.
#[test]
fn a_subflow_that_joins_takes_its_window_from_its_sibling() {
    for (name, later) in [("olia", [160, 20]), ("olia+lisa", [140, 20])] {
        let mut sim = Sim::new(1);
        let paths = ["a", "b"].map(|name| {
            let forward = add(&mut sim, link(name, Rate::Infinite, 50 * MS));
            let back = add(&mut sim, link("back", Rate::Infinite, 50 * MS));
            path(&mut sim, &[forward], &[back])
        });
        let connection = sim
            .add_connection(ConnectionConfig { control: control(name), ..greedy(paths.to_vec()) });
        let mut windows = |ms| {
            sim.run_until(ms * MS);
            let stats = sim.connection(connection);
            [stats.paths[0].cwnd, stats.paths[1].cwnd]
        };
        assert_eq!(windows(450), [80, 10], "{name}: settled with the next acknowledgement");
        assert_eq!(windows(550), later, "{name}");
    }
}

/// The same download: the sender need not wait for a fourth packet, so the second subflow joins a
/// round trip earlier after the data began, at 40 packets of the first.
#[test]
fn in_a_download_a_subflow_joins_two_round_trips_after_the_data() {
    let mut sim = Sim::new(1);
    let paths = ["a", "b"].map(|name| {
        let forward = add(&mut sim, link(name, Rate::Infinite, 50 * MS));
        let back = add(&mut sim, link("back", Rate::Infinite, 50 * MS));
        path(&mut sim, &[forward], &[back])
    });
    let tcp = TcpConfig { opener: Opener::Receiver, ..TcpConfig::default() };
    let source = Source::File { bytes: 500_000 };
    let config =
        ConnectionConfig { control: control("olia+lisa"), tcp, source, ..greedy(paths.to_vec()) };
    let connection = sim.add_connection(config);
    let mut windows = |ms| {
        sim.run_until(ms * MS);
        let stats = sim.connection(connection);
        [stats.paths[0].cwnd, stats.paths[1].cwnd]
    };
    assert_eq!([windows(149), windows(151)], [[0, 0], [10, 0]], "the third packet");
    assert_eq!([windows(251), windows(349), windows(351)], [[20, 0], [20, 0], [40, 10]]);
    assert_eq!(windows(451), [60, 20], "30 left, doubled");
    sim.run_until(3_000 * MS);
    let stats = sim.connection(connection);
    assert_eq!(stats.established, Some(150 * MS));
    // The receiver has the file half a round trip before the sender has its acknowledgement.
    assert_eq!(stats.acknowledged.unwrap() - stats.completed.unwrap(), 50 * MS);
    assert_eq!((stats.retransmits, stats.first_loss, stats.slow_start_end), (0, None, None));
}

/// A backup that joins sends nothing, so it takes nothing.
#[test]
fn a_backup_that_joins_takes_no_window() {
    let mut sim = Sim::new(1);
    let mut paths = ["a", "b"].map(|name| {
        let forward = add(&mut sim, link(name, Rate::Infinite, 50 * MS));
        let back = add(&mut sim, link("back", Rate::Infinite, 50 * MS));
        path(&mut sim, &[forward], &[back])
    });
    paths[1].backup = true;
    let config = ConnectionConfig { control: control("olia+lisa"), ..greedy(paths.to_vec()) };
    let connection = sim.add_connection(config);
    sim.run_until(550 * MS);
    assert_eq!(sim.connection(connection).paths[0].cwnd, 160);
}
