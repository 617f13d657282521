//! Plain TCP over one path, without competitors.

use crate::common;

use common::*;
use narrows_net::{LinkConfig, LinkId, Loss, Rate};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::{ConnId, ReceiverAcks, SizeDist, Source, TcpConfig};

const MSS: u64 = 1448;

/// One TCP connection over a pair of links; returns the links too.
fn pair(
    sim: &mut Sim,
    forward: LinkConfig,
    back: LinkConfig,
    bytes: Option<u64>,
) -> (ConnId, LinkId, LinkId) {
    let (forward, back) = (add(sim, forward), add(sim, back));
    let path = path(sim, &[forward], &[back]);
    let config = match bytes {
        Some(bytes) => file(bytes, vec![path]),
        None => greedy(vec![path]),
    };
    (sim.add_connection(config), forward, back)
}

/// Two ideal links of 50 ms each.
fn ideal(sim: &mut Sim, bytes: u64) -> ConnId {
    let [forward, back] = [(); 2].map(|()| link("ideal", Rate::Infinite, 50 * MS));
    pair(sim, forward, back, Some(bytes)).0
}

/// Without loss and at infinite rate a file takes a round trip for the handshake, half of one to
/// arrive, and one for each further window: 10, 20, 40... packets (b = 1; RFC 6928).
#[test]
fn a_file_takes_the_round_trips_of_slow_start() {
    for packets in [1, 10, 11, 30, 31, 70, 500, 5000] {
        let mut sim = Sim::new(1);
        let connection = ideal(&mut sim, packets * MSS - 100);
        sim.run_until(10 * S);
        let mut windows = 1;
        while 10 * ((1 << windows) - 1) < packets {
            windows += 1;
        }
        let stats = sim.connection(connection);
        let expected = 100 * MS + 50 * MS + (windows - 1) * 100 * MS;
        assert_eq!(stats.completed, Some(expected), "{packets} packets");
        assert_eq!(stats.delivered_bytes, packets * MSS - 100);
        assert_eq!(stats.paths[0].sent_packets, packets);
        assert_eq!(stats.retransmits, 0);
    }
}

/// Windows of 10, 20 and 1 packets: the last segment is alone, past the quick ACKs, and has PSH.
/// Linux acknowledges it at once; before October 2023 as long as it was full-sized after 40 ms.
#[test]
fn the_last_segment_alone_is_acknowledged_when_it_is_read_or_after_40_ms() {
    for (receiver_acks, wait) in [
        (ReceiverAcks::Linux66, 0),
        (ReceiverAcks::Linux65, 40 * MS),
        (ReceiverAcks::EveryPacket, 0),
    ] {
        let mut sim = Sim::new(1);
        let links = [(); 2].map(|()| add(&mut sim, link("ideal", Rate::Infinite, 50 * MS)));
        let path = path(&mut sim, &links[..1], &links[1..]);
        let tcp = TcpConfig { receiver_acks, ..TcpConfig::default() };
        let config = ConnectionConfig { tcp, ..file(31 * MSS, vec![path]) };
        let connection = sim.add_connection(config);
        let completed = 350 * MS;
        let acknowledged = completed + wait + 50 * MS;
        sim.run_until(acknowledged - 1);
        assert_eq!(sim.connection(connection).completed, Some(completed));
        assert_eq!(sim.connection(connection).paths[0].inflight, 1);
        sim.run_until(acknowledged);
        assert_eq!(sim.connection(connection).paths[0].inflight, 0);
    }
}

/// A SYN is sent again after 1, 2, 4... s: with loss each way, the handshake ends a round trip
/// after 0, 1, 3, 7... s.
#[test]
fn a_lost_syn_is_sent_again_after_one_second_and_backs_off() {
    let mut tries = [0; 5];
    for seed in 0..60 {
        let mut sim = Sim::new(seed);
        let lossy =
            LinkConfig { loss: Loss::Random(0.3), ..link("lossy", Rate::Infinite, 50 * MS) };
        let (connection, ..) = pair(&mut sim, lossy.clone(), lossy, Some(MSS));
        sim.run_until(20 * S);
        if let Some(established) = sim.connection(connection).established {
            let tried = (0..5).find(|n| established == ((1 << n) - 1) * S + 100 * MS);
            tries[tried.unwrap_or_else(|| panic!("established after {established} ns"))] += 1;
        }
    }
    // Half of the handshakes fail each time.
    assert!(tries[0] > 15 && tries[1] > 6 && tries[2] > 1, "{tries:?}");
}

/// The link stands still from 2 s to 30 s: the timer expires srtt + 200 ms or a little more after
/// the last acknowledgement, or the tail loss probe (RFC 8985, section 7.3), then each time after twice as long, until an acknowledgement comes back.
#[test]
fn the_retransmission_timer_backs_off_and_recovers() {
    let mut sim = Sim::new(1);
    let outage = with_outages("radio", &[(2_000, 30_000)], 5);
    let back = link("back", Rate::Infinite, 10 * MS);
    let (connection, ..) = pair(&mut sim, outage, back, None);
    let mut expiries = vec![];
    let (mut probes, mut began) = (0, 2_000);
    for ms in 2_000..30_000 {
        sim.run_until(ms * MS);
        let stats = sim.connection(connection);
        if stats.paths[0].probes > probes && expiries.is_empty() {
            (probes, began) = (stats.paths[0].probes, ms);
        }
        expiries.resize((stats.timeouts as usize).max(expiries.len()), ms);
    }
    let gaps: Vec<_> = expiries.windows(2).map(|e| e[1] - e[0]).collect();
    println!("from {began} ms on, expiries at {expiries:?} ms, gaps {gaps:?}");
    assert!((began + 200..began + 300).contains(&expiries[0]), "{began}: {expiries:?}");
    assert!(gaps.len() >= 5 && gaps.windows(2).all(|g| g[1].abs_diff(2 * g[0]) <= 3), "{gaps:?}");
    let before = sim.connection(connection);
    assert_eq!(before.paths[0].cwnd, 1);
    sim.run_until(50 * S);
    let after = sim.connection(connection);
    assert!(after.delivered_bytes > before.delivered_bytes + 1_000_000, "{after:?}");
}

/// The application stops reading: the sender fills the buffer, then asks at doubling intervals;
/// when reading resumes the window update starts it again at once.
#[test]
fn a_zero_window_stops_the_sender_and_an_update_starts_it() {
    let mut sim = Sim::new(1);
    let [forward, back] = [(); 2].map(|()| link("link", Rate::Infinite, 10 * MS));
    let (forward, back) = (add(&mut sim, forward), add(&mut sim, back));
    let path = path(&mut sim, &[forward], &[back]);
    let buffer = 100 * MSS + 700;
    let mut config = file(300 * MSS, vec![path]);
    config.recv_buffer = buffer;
    let connection = sim.add_connection(config);
    sim.set_reading(connection, false);
    sim.run_until(10 * S);
    let stats = sim.connection(connection);
    assert_eq!((stats.delivered_bytes, stats.paths[0].delivered_bytes), (0, buffer));
    assert_eq!((stats.paths[0].inflight, stats.timeouts), (0, 0));
    // SYN, third, 101 data packets; the rest are probes, 220 ms apart and then doubling.
    let probes = sim.network().counters(forward).sent - 2 - 101;
    assert!((4..=6).contains(&probes), "{probes} probes");
    sim.set_reading(connection, true);
    sim.run_until(10 * S + 19 * MS);
    assert_eq!(sim.connection(connection).delivered_bytes, buffer);
    sim.run_until(10 * S + 21 * MS);
    assert!(sim.connection(connection).delivered_bytes > buffer);
    sim.run_until(11 * S);
    assert_eq!(sim.connection(connection).delivered_bytes, 300 * MSS);
}

/// The window update is lost: only a probe brings the transfer back to life.
#[test]
fn the_persist_timer_survives_a_lost_window_update() {
    let mut sim = Sim::new(1);
    let forward = link("forward", Rate::Infinite, 10 * MS);
    // From 3 s to 8 s nothing comes back; one packet waits, those after it are lost.
    let back = with_outages("back", &[(3_000, 8_000)], 1);
    let (forward, back) = (add(&mut sim, forward), add(&mut sim, back));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = file(300 * MSS, vec![path]);
    config.recv_buffer = 50 * MSS;
    let connection = sim.add_connection(config);
    sim.set_reading(connection, false);
    sim.run_until(7 * S);
    assert_eq!(sim.network().queue_packets(back, sim.now()), 1, "a probe's answer waits");
    sim.set_reading(connection, true);
    sim.run_until(8 * S + 100 * MS);
    assert_eq!(sim.connection(connection).delivered_bytes, 50 * MSS, "the update was lost");
    sim.run_until(20 * S);
    assert_eq!(sim.connection(connection).delivered_bytes, 300 * MSS);
}

/// The rate that acknowledgements tell is the link's, less the headers, whether the queue is long or
/// short; and an application that pauses for most of the time does not make it less.
#[test]
fn the_delivery_rate_is_the_link_s() {
    let link_rate = 12e6 / 8.0 * MSS as f64 / 1500.0;
    for source in [
        Source::Greedy,
        Source::OnOff {
            pps: 100.0,
            size: SizeDist::Constant(20 * MSS as u32),
            on_mean_s: 0.5,
            on_shape: 1.5,
            off_mean_s: 5.0,
        },
    ] {
        let mut sim = Sim::new(1);
        let limit = narrows_net::Limit::Packets(40);
        let forward = LinkConfig { limit, ..link("forward", Rate::Constant(12 * MBIT), 20 * MS) };
        let (forward, back) = (add(&mut sim, forward), link("back", Rate::Infinite, 20 * MS));
        let back = add(&mut sim, back);
        let path = path(&mut sim, &[forward], &[back]);
        let connection = sim.add_connection(ConnectionConfig { source, ..greedy(vec![path]) });
        for second in [10, 20, 30] {
            sim.run_until(second * S);
            let rate = sim.connection(connection).paths[0].delivery_rate as f64;
            assert!(
                (0.97..1.03).contains(&(rate / link_rate)),
                "{source:?}: {rate} of {link_rate}"
            );
        }
    }
}

/// A source of 100 small messages per second never fills its window, so the window stays small.
#[test]
fn an_application_limited_window_does_not_grow() {
    let mut sim = Sim::new(1);
    let [forward, back] = [(); 2].map(|()| link("ideal", Rate::Infinite, 50 * MS));
    let (forward, back) = (add(&mut sim, forward), add(&mut sim, back));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = greedy(vec![path]);
    config.source = Source::Rate { mean_pps: 100.0, size: SizeDist::Constant(1000) };
    let connection = sim.add_connection(config);
    sim.run_until(60 * S);
    let stats = sim.connection(connection);
    let rate = stats.delivered_bytes as f64 / 60.0;
    assert!((rate / 100_000.0 - 1.0).abs() < 0.05, "{rate} bytes/s");
    // Ten messages per round trip, thirty at the very most: slow start stops at twice that.
    assert!((20..=60).contains(&stats.paths[0].cwnd), "{stats:?}");
}

/// One flow on a droptail link of 12 Mbit/s, RTT 40 ms, 40 packets of buffer. The link overflows
/// at a window W of 40 + 40 packets and the one in transmission. From W/2 to W takes W/2 round
/// trips and 3/8 W^2 packets, and recovery about W more. A cycle costs one packet, or two if the
/// next increase comes before the news; they are repaired without a timeout and the link stays full.
#[test]
fn one_flow_is_a_saw_tooth() {
    saw_tooth(greedy, 0.375 * 82.0 * 82.0 + 82.0);
}

/// As Linux 3.14 sends: two packets for each acknowledgement that counts, so twice the round trips, less those
/// of the packet that slow start adds.
#[test]
fn one_flow_of_linux_3_14_is_a_longer_saw_tooth() {
    saw_tooth(greedy_linux_3_14, 2.0 * (0.375 * 82.0 * 82.0 - 41.0) + 82.0);
}

/// `cycle`: packets from one loss to the next.
fn saw_tooth(greedy: fn(Vec<PathConfig>) -> ConnectionConfig, cycle: f64) {
    let mut sim = Sim::new(1);
    let limit = narrows_net::Limit::Packets(40);
    let forward = LinkConfig { limit, ..link("forward", Rate::Constant(12 * MBIT), 20 * MS) };
    let back = link("back", Rate::Infinite, 20 * MS);
    let (forward, back) = (add(&mut sim, forward), add(&mut sim, back));
    let path = path(&mut sim, &[forward], &[back]);
    let connection = sim.add_connection(greedy(vec![path]));
    sim.run_until(20 * S);
    let before = sim.connection(connection);
    let mut windows = vec![];
    for tick in 1..=10_000 {
        sim.run_until(20 * S + tick * 10 * MS);
        windows.push(sim.connection(connection).paths[0].cwnd);
    }
    let after = sim.connection(connection);
    let cycles = windows.windows(2).filter(|w| w[0] >= 50 && w[1] < 50).count() as f64;
    let expected = 100_000.0 / cycle;
    let lost = (after.retransmits - before.retransmits) as f64;
    let packets = (after.delivered_bytes - before.delivered_bytes) as f64 / MSS as f64;
    let (low, high) = (windows.iter().min().unwrap(), windows.iter().max().unwrap());
    println!("{cycles} cycles, {lost} lost, window {low} to {high}, {packets} packets");
    assert!((cycles - expected).abs() < 2.0, "{cycles} cycles for {expected}");
    assert!((cycles..=2.0 * cycles).contains(&lost), "{lost} lost in {cycles} cycles");
    assert_eq!(after.timeouts, 0);
    assert!((40..=42).contains(low) && (81..=84).contains(high), "window {low} to {high}");
    assert!(packets > 0.999 * 100_000.0, "{packets} of 100000 packets");
}
