//! Loss recovery from end to end: what a loss, a delay or reordering costs a transfer.

use crate::common;

use common::*;
use narrows_net::{Limit, LinkConfig, Loss, Rate, Reorder};
use narrows_sim::{PathStats, Sim};
use narrows_traffic::ConnId;

const MSS: u64 = 1448;

/// A TCP connection over a pair of links; a file of so many bytes, or greedy.
fn pair(sim: &mut Sim, forward: LinkConfig, back: LinkConfig, bytes: Option<u64>) -> ConnId {
    let (forward, back) = (add(sim, forward), add(sim, back));
    let path = path(sim, &[forward], &[back]);
    sim.add_connection(match bytes {
        Some(bytes) => file(bytes, vec![path]),
        None => greedy(vec![path]),
    })
}

fn stats(sim: &Sim, connection: ConnId) -> PathStats {
    sim.connection(connection).paths[0].clone()
}

/// A file of ten packets goes out at once into a queue that has room for all but the last `lost`.
/// 1 ms per packet, RTT 20 ms.
fn tail_loss(lost: u32) -> (f64, PathStats) {
    let mut sim = Sim::new(1);
    let limit = Limit::Packets(10 - lost);
    let forward = LinkConfig { limit, ..link("forward", Rate::Constant(12 * MBIT), 10 * MS) };
    let back = link("back", Rate::Infinite, 10 * MS);
    let connection = pair(&mut sim, forward, back, Some(10 * MSS));
    sim.run_until(10 * S);
    let completed = sim.connection(connection).completed.expect("it arrives");
    (completed as f64 / 1e6, stats(&sim, connection))
}

/// The last two of ten packets are lost. Two round trips after the last acknowledgement the probe
/// sends the last one again, its SACK tells of the other, and all is there another round trip
/// later: long before the timer, after an RTT and 200 ms, would have begun. And the window is
/// halved, as it must be.
#[test]
fn a_probe_repairs_a_tail_within_a_few_round_trips() {
    let (completed, path) = tail_loss(2);
    // Handshake 20 ms; the eighth packet is acknowledged 8 ms after the first RTT; srtt is then
    // near 23 ms.
    let acknowledged = 20.0 + 20.0 + 8.0;
    let expected = acknowledged + 2.0 * 23.0 + 2.0 + 21.0 + 11.0;
    println!("complete after {completed} ms, expected {expected} ms");
    assert!((completed - expected).abs() < 3.0, "{completed} ms for {expected}");
    assert_eq!((path.probes, path.timeouts, path.retransmits), (1, 0, 2), "{path:?}");
    assert!(path.cwnd <= 12 && path.ssthresh < 12, "{path:?}");
}

/// Only the last is lost. It could as well wait for its delayed acknowledgement, so Linux allows
/// 200 ms and the probe comes when the timer would; but it does not close the window.
#[test]
fn a_probe_of_a_lone_segment_waits_for_its_delayed_acknowledgement() {
    let (completed, path) = tail_loss(1);
    let acknowledged = 20.0 + 20.0 + 9.0;
    let expected = acknowledged + 24.0 + 200.0 + 11.0;
    println!("complete after {completed} ms, expected {expected} ms");
    assert!((completed - expected).abs() < 5.0, "{completed} ms for {expected}");
    assert_eq!((path.probes, path.timeouts, path.retransmits), (1, 0, 1), "{path:?}");
    assert!(path.cwnd >= 10, "{path:?}");
}

/// The link stands still for 400 ms and nothing is lost. The timer expires, but what then arrives
/// was sent before the timer did: no segment but the probe and the first is sent again, and the
/// window is as before.
#[test]
fn a_delay_spike_costs_two_segments_and_no_window() {
    let mut sim = Sim::new(1);
    let forward = with_outages("radio", &[(2_000, 2_400)], 1000);
    let (forward, back) =
        (add(&mut sim, forward), add(&mut sim, link("back", Rate::Infinite, 10 * MS)));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = greedy(vec![path]);
    config.recv_buffer = 30 * MSS;
    let connection = sim.add_connection(config);
    sim.run_until(2 * S);
    let before = stats(&sim, connection);
    sim.run_until(2_399 * MS);
    let during = stats(&sim, connection);
    assert_eq!((during.probes, during.timeouts, during.cwnd), (1, 1, 1), "{during:?}");
    sim.run_until(2_500 * MS);
    let after = stats(&sim, connection);
    println!("before {before:?}\nafter {after:?}");
    assert_eq!((after.undos, after.retransmits), (1, 2), "{after:?}");
    assert!((after.cwnd, after.ssthresh) >= (before.cwnd, before.ssthresh), "{after:?}");
    sim.run_until(10 * S);
    assert_eq!(stats(&sim, connection).retransmits, 2, "nothing more comes of it");
}

/// Nothing is late and packets get lost by chance: no reduction is undone, whatever the timers do.
#[test]
fn real_losses_are_not_undone() {
    for (loss, seconds) in [(0.01, 200), (0.1, 200), (0.3, 1000)] {
        let mut sim = Sim::new(1);
        let forward =
            LinkConfig { loss: Loss::Random(loss), ..link("lossy", Rate::Infinite, 25 * MS) };
        let back = link("back", Rate::Infinite, 25 * MS);
        let connection = pair(&mut sim, forward, back, None);
        sim.run_until(seconds * S);
        let path = stats(&sim, connection);
        println!("{loss}: {path:?}");
        assert!(path.retransmits > 500, "{path:?}");
        assert_eq!(path.timeouts > 10, loss > 0.05, "{path:?}");
        assert_eq!(path.undos, 0, "{loss}: {path:?}");
    }
}

/// One packet in fifty takes 30 ms longer, with an RTT of 40 ms: more than the quarter of it that
/// RACK waits at first. Retransmissions that were for nothing are told by DSACK or timestamp, the
/// reductions undone, and RACK learns to wait: less is sent again for nothing, and the link of
/// 12 Mbit/s stays nearly full.
#[test]
fn heavy_reordering_costs_little_once_it_is_known() {
    let mut sim = Sim::new(1);
    let reorder = Some(Reorder { share: 0.02, delay: 30 * MS });
    let forward = LinkConfig {
        reorder,
        limit: Limit::Packets(40),
        ..link("forward", Rate::Constant(12 * MBIT), 20 * MS)
    };
    let back = link("back", Rate::Infinite, 20 * MS);
    let connection = pair(&mut sim, forward, back, None);
    sim.run_until(5 * S);
    let early = stats(&sim, connection);
    sim.run_until(60 * S);
    let late = stats(&sim, connection);
    println!("early {early:?}\nlate {late:?}");
    let mbits = (late.delivered_bytes - early.delivered_bytes) as f64 * 8.0 / 55e6;
    println!("{mbits} Mbit/s");
    assert!(early.undos >= 1 && late.undos < 10, "{late:?}");
    // 12 losses each second overtaken by three others, if all were taken for losses.
    let again = late.retransmits - early.retransmits;
    assert!(again < 100, "{again} sent again, of about 1000 that were late");
    assert!(mbits > 0.99 * 12.0 * 1448.0 / 1500.0, "{mbits} Mbit/s");
}
