//! What noq does to a controller that knows of other paths, each through simulated connections.

mod common;

use common::*;
use narrows_laws::catalogue;
use narrows_net::{CoDel, Discipline, LinkConfig, MILLISECOND, Reorder};
use narrows_quic_sim::{Setup, Side, Sim, application};
use narrows_traffic::{SizeDist, Source};
use noq_proto::{AckFrequencyConfig, PathEvent, PathId, VarInt};

#[test]
fn every_control_of_the_catalogue_transfers_a_file_over_two_paths() {
    for control in catalogue::controls() {
        let mut sim = Sim::new(7);
        let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        let factory = factory(&control.to_string());
        let connection = transfer(&mut sim, paths, Side::Client, &factory, 4_000_000);
        sim.run(seconds(8));
        // 4 MB take 1.6 s at 20 Mbit/s.
        assert!(sim.finished(connection).is_some(), "{control}: {}", sim.received(connection));
        assert_eq!(factory.snapshot().alone, 0, "{control}");
        let coupled = factory.snapshot().paths.iter().any(|path| path.coupled == 0b11);
        let expected = control.law.couples() && control.detector.name() == "shared";
        assert!(coupled || !expected, "{control}");
    }
}

#[test]
fn a_download_is_coupled_as_an_upload_is() {
    for sender in [Side::Client, Side::Server] {
        let mut sim = Sim::new(1);
        let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        let factory = factory("olia");
        let connection = transfer(&mut sim, paths, sender, &factory, 10_000_000);
        sim.run(seconds(20));
        assert!(sim.finished(connection).is_some_and(|at| at < seconds(6)), "{sender:?}");
        let snapshot = factory.snapshot();
        let paths: Vec<_> = snapshot.paths.iter().map(|path| (path.slot, path.coupled)).collect();
        assert_eq!((paths, snapshot.alone), (vec![(0, 0b11), (1, 0b11)], 0), "{sender:?}");
    }
}

#[test]
fn a_clone_takes_over_at_a_rebinding_and_a_snapshot_does_not() {
    let mut sim = Sim::new(2);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let factory = factory("lia");
    let connection = transfer(&mut sim, paths, Side::Server, &factory, 30_000_000);
    sim.run(seconds(3));
    let before = windows(&factory);
    for path in 0..2 {
        // What Connection::congestion_state returns, kept for the whole transfer.
        let path = sim.end(connection, Side::Server).congestion_state(PathId::from(path as u32));
        let clone = path.unwrap().clone_box();
        assert!(factory.path(clone).is_some());
    }
    sim.rebind(connection, 1);
    sim.run(seconds(4));
    sim.rebind(connection, 0);
    sim.run(seconds(5));
    let snapshot = factory.snapshot();
    let slots: Vec<_> = snapshot.paths.iter().map(|path| (path.slot, path.coupled)).collect();
    assert_eq!((slots, snapshot.alone), (vec![(0, 0b11), (1, 0b11)], 0));
    // Neither began anew.
    let after = windows(&factory);
    assert!(
        after.iter().zip(&before).all(|(after, before)| *after > before / 4),
        "{before:?} {after:?}"
    );
    sim.run(seconds(20));
    assert!(sim.finished(connection).is_some());
}

#[test]
fn an_abandoned_path_leaves_at_once_where_it_is_told_and_when_noq_discards_it_otherwise() {
    for told in [true, false] {
        let mut sim = Sim::new(3);
        let paths = [sim.path(&[deep()]), sim.path(&[deep()])];
        let factory = factory("greno");
        let connection = sim.connect(setup(paths.to_vec(), Side::Client, &factory));
        sim.run(seconds(1));
        let link = sim.net.network().route(paths[1].up).next().unwrap();
        sim.net.set_link_up(link, false);
        sim.close_path(connection, 1);
        if told {
            let state = sim.end(connection, Side::Client).congestion_state(PathId::from(1u32));
            factory.abandoned(state.expect("noq keeps it for a while").clone_box());
            assert_eq!(factory.snapshot().paths.len(), 1);
        }
        // noq counts what was in flight as lost when it discards the path. That is no congestion:
        // greno would cut its sibling, too, whose queue is never full.
        let before = windows(&factory)[0];
        let mut least = u64::MAX;
        watch(&mut sim, seconds(4), MILLISECOND, |_| least = least.min(windows(&factory)[0]));
        assert!(least >= before, "told {told}: {before} bytes fell to {least}");
        let discarded = |event: &PathEvent| matches!(event, PathEvent::Discarded { .. });
        assert!(sim.path_events(connection, Side::Client).iter().any(discarded));
        assert_eq!(factory.snapshot().paths.len(), 1, "told {told}");
    }
}

#[test]
fn a_path_comes_back_in_the_slot_of_one_that_was_closed() {
    let mut sim = Sim::new(4);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let factory = factory("olia");
    let connection = transfer(&mut sim, paths, Side::Client, &factory, 20_000_000);
    for again in 0..4 {
        sim.run(seconds(1 + again));
        sim.close_path(connection, 1 + again as usize);
        let path = sim.path(&[bottleneck()]);
        sim.add_path(connection, path);
    }
    sim.run(seconds(8));
    let slots: Vec<_> = factory.snapshot().paths.iter().map(|path| path.slot).collect();
    assert_eq!(slots.len(), 2);
    assert_eq!(factory.snapshot().alone, 0);
    sim.run(seconds(30));
    assert!(sim.finished(connection).is_some());
}

#[test]
fn a_transfer_survives_a_path_that_dies_and_one_that_loses_one_packet_in_a_hundred() {
    for sender in [Side::Client, Side::Server] {
        let mut sim = Sim::new(5);
        let lossy = LinkConfig { loss: narrows_net::Loss::Random(0.01), ..bottleneck() };
        let (dying, lossy) = (sim.path(&[bottleneck()]), sim.path(&[lossy]));
        let factory = factory("balia");
        let connection = transfer(&mut sim, vec![dying, lossy], sender, &factory, 10_000_000);
        while sim.received(connection) < 5_000_000 {
            let next = sim.now() + 10 * MILLISECOND;
            sim.run(next);
        }
        for route in [dying.up, dying.down] {
            let link = sim.net.network().route(route).next().unwrap();
            sim.net.set_link_up(link, false);
        }
        sim.run(seconds(60));
        assert!(
            sim.finished(connection).is_some(),
            "{sender:?}: {:?}",
            sim.lost(connection, sender)
        );
    }
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    let mut sim = Sim::new(6);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let factory = factory("olia");
    // 4 Mbit/s: 20 kB in a round trip of 40 ms.
    let application = application(Source::Rate { mean_pps: 500.0, size: SizeDist::Constant(1000) });
    sim.connect(Setup { application, ..setup(paths, Side::Client, &factory) });
    sim.run(seconds(60));
    // In slow start to twice what was used: 40 kB had gathered when the connection was there.
    let windows = windows(&factory);
    assert!(windows.iter().all(|window| *window < 100_000), "{windows:?}");
}

#[test]
fn persistent_congestion_leaves_two_packets_from_which_slow_start_grows() {
    let mut sim = Sim::new(8);
    let path = sim.path(&[bottleneck()]);
    let factory = factory("reno");
    let connection = sim.connect(setup(vec![path], Side::Client, &factory));
    sim.run(seconds(3));
    let link = sim.net.network().route(path.up).next().unwrap();
    sim.net.set_link_up(link, false);
    sim.run(seconds(6));
    sim.net.set_link_up(link, true);
    let mut least = u64::MAX;
    watch(&mut sim, seconds(20), MILLISECOND, |_| least = least.min(windows(&factory)[0]));
    let mtu = sim.end(connection, Side::Client).path_stats(PathId::ZERO).unwrap().current_mtu;
    assert!(least <= 3 * u64::from(mtu), "{least} bytes");
    let rate = mbit(&mut sim, connection, seconds(20), seconds(30));
    assert!(rate > 18.0, "{rate} Mbit/s");
}

#[test]
fn a_reduction_for_packets_that_only_came_late_is_undone() {
    let mut sim = Sim::new(9);
    // One packet in a thousand is overtaken by 15 ms of others.
    let reorder = Some(Reorder { share: 0.001, delay: 15 * MILLISECOND });
    let path = sim.path(&[LinkConfig { reorder, jitter: 0, ..bottleneck() }]);
    let factory = factory("reno");
    let connection = sim.connect(setup(vec![path], Side::Client, &factory));
    let rate = mbit(&mut sim, connection, seconds(2), seconds(32));
    let stats = sim.end(connection, Side::Client).path_stats(PathId::ZERO).unwrap();
    assert!(stats.spurious_congestion_events > 20, "{}", stats.spurious_congestion_events);
    // Were each of them a loss, it would have half of that (RFC 5681 at a loss of 0.1 %).
    assert!(rate > 18.0, "{rate} Mbit/s");
}

#[test]
fn marks_are_congestion_without_loss() {
    let mut sim = Sim::new(10);
    let marks = |limit| LinkConfig {
        discipline: Discipline::CoDel(CoDel::default()),
        ecn: true,
        limit,
        ..bottleneck()
    };
    let link = marks(deep().limit);
    let paths = [sim.path(std::slice::from_ref(&link)), sim.path(&[link])];
    let factory = factory("olia");
    let connection = sim.connect(setup(paths.to_vec(), Side::Client, &factory));
    let rate = mbit(&mut sim, connection, seconds(5), seconds(25));
    for (path, routes) in paths.into_iter().enumerate() {
        let counters =
            sim.net.network().counters(sim.net.network().route(routes.up).next().unwrap());
        assert_eq!((counters.dropped(), counters.marked > 5), (0, true), "{counters:?}");
        let stats =
            sim.end(connection, Side::Client).path_stats(PathId::from(path as u32)).unwrap();
        assert!(stats.congestion_events > 5, "{}", stats.congestion_events);
    }
    assert!(rate > 30.0, "{rate} Mbit/s");
    // One reduction for all marks of a round trip: else it would stay at two packets.
    assert!(windows(&factory).iter().sum::<u64>() > 50_000, "{:?}", windows(&factory));
}

#[test]
fn a_window_keeps_its_bytes_when_noq_finds_that_larger_packets_pass() {
    let mut sim = Sim::new(11);
    let path = sim.path(&[deep()]);
    let factory = factory("lia");
    let connection = sim.connect(setup(vec![path], Side::Client, &factory));
    let (mut before, mut mtus) = (0, Vec::new());
    watch(&mut sim, seconds(2), MILLISECOND, |sim| {
        let Some(&window) = windows(&factory).first() else { return };
        // In a ms arrive 2500 bytes; packets that become larger add a fifth of the window at once.
        let grown = window.checked_sub(before).filter(|grown| before == 0 || *grown < 10_000);
        assert!(grown.is_some(), "{before} bytes became {window}");
        before = window;
        let stats = sim.end(connection, Side::Client).path_stats(PathId::ZERO).unwrap();
        mtus.push(stats.current_mtu);
    });
    mtus.dedup();
    assert!(mtus.len() > 1 && mtus.is_sorted(), "{mtus:?}");
}

#[test]
fn fewer_acknowledgements_leave_the_rate_as_it_is() {
    let mut sim = Sim::new(12);
    let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
    let factory = factory("reno");
    let mut setup = setup(paths, Side::Client, &factory);
    let mut frequency = AckFrequencyConfig::default();
    frequency.ack_eliciting_threshold(VarInt::from_u32(20));
    setup.client.ack_frequency_config(Some(frequency));
    let connection = sim.connect(setup);
    let rate = mbit(&mut sim, connection, seconds(5), seconds(25));
    assert!(rate > 36.0, "{rate} Mbit/s");
}

#[test]
fn one_factory_for_two_connections_is_noticed_and_each_path_is_alone() {
    let mut sim = Sim::new(13);
    let factory = factory("lia");
    let connections: Vec<usize> = (0..2)
        .map(|_| {
            let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
            transfer(&mut sim, paths, Side::Client, &factory, 10_000_000)
        })
        .collect();
    sim.run(seconds(10));
    assert_eq!(factory.snapshot().alone, 4);
    // Alone a path has the rate of an uncoupled one: 10 MB take 2.2 s.
    for connection in connections {
        assert!(sim.finished(connection).is_some_and(|at| at < seconds(4)));
    }
}

#[test]
fn more_paths_than_laws_can_count_run_alone() {
    let mut sim = Sim::new(14);
    let paths: Vec<_> = (0..10).map(|_| sim.path(&[bottleneck()])).collect();
    let factory = factory("olia");
    let mut setup = setup(paths, Side::Client, &factory);
    for transport in [&mut setup.client, &mut setup.server] {
        transport.max_concurrent_multipath_paths(12);
    }
    let application = application(Source::File { bytes: 20_000_000 });
    let connection = sim.connect(Setup { application, ..setup });
    sim.run(seconds(20));
    assert!(sim.finished(connection).is_some());
    assert_eq!((factory.snapshot().paths.len(), factory.snapshot().alone), (8, 2));
}
