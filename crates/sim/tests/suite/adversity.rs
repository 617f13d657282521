//! Bad networks: whatever they do, a file arrives, whole and once, and the network empties.

use crate::common;

use std::sync::Arc;

use common::*;
use narrows_net::{Limit, LinkConfig, Loss, Nanos, Rate, Reorder, Trace};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use proptest::prelude::*;
use proptest::sample::select;

/// One direction of a path: its loss is spread over the hops.
#[derive(Clone, Debug)]
struct Way {
    hops: usize,
    bits: u64,
    delay: Nanos,
    jitter: Nanos,
    loss: f64,
    packets: u32,
    mtu: u32,
    /// Packets of the first hop that are overtaken.
    reorder: Option<Reorder>,
}

fn any_way() -> impl Strategy<Value = Way> {
    (
        1_usize..4,
        select(vec![10_000, 100_000, MBIT, 10 * MBIT, 1000 * MBIT, 100_000 * MBIT]),
        (5_000_u64..1_000_000, select(vec![1, 10, 100, 1000])),
        0_u64..3,
        prop_oneof![Just(0.0), 0.0..0.3],
        1_u32..40,
        select(vec![576, 1280, 1500, 9000]),
        prop_oneof![Just(None), (0.0..0.5, 0.0..3.0).prop_map(Some)],
    )
        .prop_map(|(hops, bits, (delay, scale), jitters, loss, packets, mtu, late)| {
            let delay = delay * scale;
            let reorder = late.map(|(share, by): (f64, f64)| Reorder {
                share,
                delay: (delay as f64 * by) as Nanos,
            });
            Way { hops, bits, delay, jitter: jitters * delay / 2, loss, packets, mtu, reorder }
        })
}

fn build(sim: &mut Sim, way: &Way, mtu: u32) -> narrows_net::RouteId {
    let hops = way.hops as u64;
    let links: Vec<_> = (0..hops)
        .map(|hop| {
            let config = LinkConfig {
                jitter: way.jitter / hops,
                loss: Loss::Random(way.loss / hops as f64),
                limit: Limit::Packets(way.packets),
                // Only one hop is narrow.
                mtu: if hop == 0 { mtu } else { 9000 },
                reorder: way.reorder.filter(|_| hop == 0),
                ..link("hop", Rate::Constant(way.bits), way.delay / hops)
            };
            add(sim, config)
        })
        .collect();
    route(sim, &links)
}

/// The file arrives within the time, each byte once.
fn arrives(sim: &mut Sim, config: ConnectionConfig, bytes: u64, within: Nanos) {
    let paths = config.paths.len();
    let connection = sim.add_connection(config);
    let mut time = S;
    while sim.connection(connection).completed.is_none() && time < within {
        time = (time * 2).min(within);
        sim.run_until(time);
        assert!(sim.network().is_conserved());
    }
    let stats = sim.connection(connection);
    if stats.paths.iter().all(|path| path.delivered_bytes == 0) {
        // The first path died before an acknowledgement of data; no other could join.
        return;
    }
    assert!(stats.completed.is_some(), "stuck: {stats:#?}");
    assert_eq!(stats.delivered_bytes, bytes);
    let acked: u64 = stats.paths.iter().map(|p| p.delivered_bytes).sum();
    assert!(paths > 1 || acked <= bytes, "{acked} bytes acknowledged of {bytes}");
}

/// A radio link of 12 Mbit/s that stands still once.
#[derive(Clone, Debug)]
struct Radio {
    delay: u64,
    from: u64,
    length: u64,
    loss: f64,
    packets: u32,
}

fn any_radio() -> impl Strategy<Value = Radio> {
    (1_u64..200, 0_u64..4_000, 0_u64..3_000, prop_oneof![Just(0.0), 0.0..0.1], 1_u32..100).prop_map(
        |(delay, from, length, loss, packets)| Radio { delay, from, length, loss, packets },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// One to eight paths of any rate, delay, loss, jitter, queue and MTU.
    #[test]
    fn a_file_arrives_over_any_paths(
        ways in prop::collection::vec((any_way(), any_way()), 1..9),
        bytes in 1_u64..400_000,
        seed in any::<u64>(),
        law in select(vec!["reno", "cubic", "lia", "olia", "balia"]),
        scheduler in select(common::SCHEDULERS.to_vec()),
        buffer in 20_000_u64..1_000_000,
    ) {
        let mut sim = Sim::new(seed);
        let paths: Vec<PathConfig> = ways
            .iter()
            .map(|(there, back)| {
                let forward = build(&mut sim, there, there.mtu);
                PathConfig::new("path", forward, build(&mut sim, back, 1500))
            })
            .collect();
        let config = ConnectionConfig {
            control: control(law),
            scheduler,
            recv_buffer: buffer,
            send_buffer: buffer,
            ..file(bytes, paths)
        };
        arrives(&mut sim, config, bytes, 8 * 3600 * S);
        // What was sent twice is acknowledged too, and then nobody sends any more.
        sim.run_until(24 * 3600 * S);
        let stats = sim.connection(narrows_traffic::ConnId(0));
        prop_assert!(stats.paths.iter().all(|p| p.inflight == 0), "{:#?}", stats);
        prop_assert_eq!(sim.network().packets(), 0);
    }

    /// Paths stand still for a while or for ever; the last one always comes back.
    #[test]
    fn a_file_arrives_while_one_path_lives(
        outages in prop::collection::vec((50_u64..3_000, prop::option::of(10_u64..3_000)), 1..5),
        survivor in (50_u64..3_000, 10_u64..3_000),
        delays in prop::collection::vec(1_u64..200, 5),
        first in any::<prop::sample::Index>(),
        packets in 1_u32..100,
        loss in prop_oneof![Just(0.0), 0.0..0.1],
        seed in any::<u64>(),
    ) {
        let mut sim = Sim::new(seed);
        let mut all: Vec<(u64, Option<u64>)> = outages;
        let at = first.index(all.len() + 1);
        all.insert(at, (survivor.0, Some(survivor.1)));
        let paths: Vec<PathConfig> = all
            .iter()
            .zip(&delays)
            .map(|(&(from, length), &delay)| {
                // 3 Mbit/s; for ever is 49 days.
                let mut lines: Vec<u64> = (1..from / 4 + 1).map(|n| 4 * n).collect();
                match length {
                    Some(length) => lines.extend((from + length..60_000).step_by(4)),
                    None => lines.push(4_000_000_000),
                }
                let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
                let trace = Trace::parse(lines.join("\n").as_bytes(), "radio").unwrap();
                let rate = Rate::Trace(Arc::new(trace));
                let forward = LinkConfig { loss: Loss::Random(loss), limit: Limit::Packets(packets), ..link("radio", rate, delay * MS) };
                let forward = add(&mut sim, forward);
                let back = add(&mut sim, link("back", Rate::Infinite, delay * MS));
                path(&mut sim, &[forward], &[back])
            })
            .collect();
        let bytes = 1_000_000;
        arrives(&mut sim, file(bytes, paths), bytes, 1000 * S);
    }

    /// Paths are removed and added again at any time, stand still for a while, lose packets and
    /// acknowledgements, are backups or not, their buffers are small, and the application does not
    /// always read: as soon as one works the file goes on.
    #[test]
    fn a_file_arrives_while_paths_come_and_go(
        ways in prop::collection::vec((any_radio(), any::<bool>()), 2..5),
        events in prop::collection::vec((0_u64..4_000, any::<prop::sample::Index>()), 0..12),
        bytes in 1_u64..300_000,
        scheduler in select(SCHEDULERS.to_vec()),
        law in select(vec!["reno", "lia", "olia"]),
        buffer in 20_000_u64..500_000,
        seed in any::<u64>(),
    ) {
        let mut sim = Sim::new(seed);
        let paths: Vec<PathConfig> = ways
            .iter()
            .map(|(radio, backup)| {
                let outage = [(radio.from, radio.from + radio.length)];
                let there = with_outages("radio", &outage, radio.packets);
                let there =
                    LinkConfig { delay: radio.delay * MS, loss: Loss::Random(radio.loss), ..there };
                let back = LinkConfig {
                    loss: Loss::Random(radio.loss),
                    ..link("back", Rate::Infinite, radio.delay * MS)
                };
                let (there, back) = (add(&mut sim, there), add(&mut sim, back));
                PathConfig { backup: *backup, ..path(&mut sim, &[there], &[back]) }
            })
            .collect();
        let config = ConnectionConfig {
            control: control(law),
            scheduler,
            recv_buffer: buffer,
            send_buffer: buffer,
            ..file(bytes, paths.clone())
        };
        let connection = sim.add_connection(config);
        let mut events: Vec<(u64, usize)> =
            events.iter().map(|(time, path)| (*time, path.index(paths.len() + 1))).collect();
        events.sort_unstable();
        let mut reading = true;
        // In each slot the path that is there.
        let mut slots: Vec<Option<usize>> = (0..paths.len()).map(Some).collect();
        for (time, which) in events {
            sim.run_until(time * MS);
            if which == paths.len() {
                reading = !reading;
                sim.set_reading(connection, reading);
                continue;
            }
            match slots.iter().position(|&path| path == Some(which)) {
                Some(slot) => {
                    prop_assert!(sim.remove_path(connection, slot));
                    slots[slot] = None;
                }
                None => {
                    let slot = sim.add_path(connection, &paths[which]).expect("there is room");
                    prop_assert_eq!(slots[slot], None);
                    slots[slot] = Some(which);
                }
            }
            prop_assert!(sim.network().is_conserved());
        }
        sim.set_reading(connection, true);
        if slots.iter().all(Option::is_none) {
            sim.add_path(connection, &paths[0]).expect("there is room");
        }
        // Slow it may be, but never without progress for longer than a timeout may have grown.
        let mut before = 0;
        while sim.connection(connection).completed.is_none() {
            sim.run_until(sim.now() + 60 * S);
            let stats = sim.connection(connection);
            prop_assert!(stats.delivered_bytes > before, "stuck: {:#?}", stats);
            before = stats.delivered_bytes;
        }
        prop_assert_eq!(sim.connection(connection).delivered_bytes, bytes);
        // What was sent twice is acknowledged too, and then nobody sends any more.
        sim.run_until(sim.now() + 1000 * S);
        let stats = sim.connection(connection);
        prop_assert!(stats.paths.iter().all(|p| p.inflight == 0), "{:#?}", stats);
        prop_assert_eq!(sim.network().packets(), 0);
    }
}
