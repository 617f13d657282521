//! Model laws: BBR's window and pacing rate from samples of the delivery rate that controllers make of
//! noq's callbacks.

mod common;

use common::*;
use narrows_net::{CoDel, Discipline, LinkConfig, Loss, MILLISECOND, Nanos};
use narrows_quic::{Advice, Coupling, Factory};
use narrows_quic_sim::{Routes, Setup, Side, Sim, application};
use narrows_traffic::{ConnId, FlowId, Generator, Source};
use noq_proto::{PathId, PathStatus, VarInt};
use std::sync::Arc;

/// Two paths of one law through one link, and a connection of the same law beside it: goodput of the
/// first over that of the second, the mean over two seeds.
fn share(control: &str, law: &str) -> f64 {
    let (mut ours, mut rival) = (0.0, 0.0);
    for seed in 1..=2 {
        let mut sim = Sim::new(seed);
        let (up, down) = (sim.link(bottleneck()), sim.link(bottleneck()));
        let path = |sim: &mut Sim| -> Routes { sim.routes(&[up], &[down]) };
        let two = (0..2).map(|_| path(&mut sim)).collect();
        let one = vec![path(&mut sim)];
        let two = sim.connect(setup(two, Side::Client, &factory(control)));
        let one = sim.connect(setup(one, Side::Client, &factory(law)));
        sim.run(seconds(5));
        let before = [two, one].map(|connection| sim.received(connection));
        sim.run(seconds(25));
        ours += (sim.received(two) - before[0]) as f64;
        rival += (sim.received(one) - before[1]) as f64;
    }
    ours / rival
}

/// What the controller of a path takes the bandwidth for, Mbit/s.
fn estimate(sim: &mut Sim, connection: usize, path: u32) -> f64 {
    let state = sim.end(connection, Side::Client).congestion_state(PathId::from(path));
    let estimate = state.expect("an open path").metrics().bandwidth_estimate;
    estimate.expect("a sample") as f64 / 1e6
}

fn srtt_ms(factory: &Factory) -> f64 {
    factory.snapshot().paths[0].srtt.expect("a sample").as_secs_f64() * 1e3
}

#[test]
fn one_path_fills_its_link_and_leaves_its_queue_short() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(1);
        // Jitter behind the bottleneck makes samples too large, and BBR keeps the largest.
        let path = sim.path(&[LinkConfig { jitter: 0, ..deep() }]);
        let factory = factory(law);
        let connection = sim.connect(setup(vec![path], Side::Client, &factory));
        let rate = mbit(&mut sim, connection, seconds(5), seconds(25));
        assert!(rate > 18.0, "{law}: {rate:.1} Mbit/s");
        let estimate = estimate(&mut sim, connection, 0);
        assert!((18.5..21.0).contains(&estimate), "{law}: {estimate:.1} Mbit/s");
        // 40 ms without a queue; a window law would fill one of 40 s.
        let (mut sum, mut looks) = (0.0, 0.0);
        watch(&mut sim, seconds(40), 10 * MILLISECOND, |_| {
            sum += srtt_ms(&factory);
            looks += 1.0;
        });
        let mean = sum / looks;
        assert!(mean < 55.0, "{law}: {mean:.0} ms");
    }
}

#[test]
fn losses_without_congestion_do_not_slow_it_down() {
    let rate = |law| {
        let mut sim = Sim::new(2);
        let path = sim.path(&[LinkConfig { loss: Loss::Random(0.01), ..bottleneck() }]);
        let connection = sim.connect(setup(vec![path], Side::Client, &factory(law)));
        mbit(&mut sim, connection, seconds(5), seconds(35))
    };
    let (bbr, bbr3, reno) = (rate("bbr"), rate("bbr3"), rate("reno"));
    assert!(bbr > 17.0, "bbr: {bbr:.1} Mbit/s");
    assert!(bbr3 > 1.5 * reno, "bbr3: {bbr3:.1}, reno: {reno:.1} Mbit/s");
}

#[test]
fn a_recovery_lasts_until_a_packet_arrives_that_was_sent_since() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(7);
        // A packet in 1.2 s.
        let path = sim.path(&[LinkConfig { loss: Loss::Random(0.0005), ..deep() }]);
        let factory = factory(law);
        sim.connect(setup(vec![path], Side::Client, &factory));
        sim.run(seconds(5));
        let (mut times, mut lasts, mut longest) = (0, 0, 0);
        watch(&mut sim, seconds(25), MILLISECOND, |_| {
            lasts = if factory.snapshot().paths[0].recovering { lasts + 1 } else { 0 };
            times += u32::from(lasts == 1);
            longest = longest.max(lasts);
        });
        // Two of one round trip may follow each other.
        assert!(times > 5 && longest < 250, "{law}: {times} times, up to {longest} ms");
    }
}

#[test]
fn two_paths_of_a_group_are_one_flow_and_two_of_their_own_are_two() {
    let (coupled, uncoupled) = (share("bbr", "bbr"), share("u-mpbbr", "bbr"));
    assert!((0.75..1.3).contains(&coupled), "bbr: {coupled:.2} of one");
    assert!((1.6..2.4).contains(&uncoupled), "u-mpbbr: {uncoupled:.2} of one");
    let coupled = share("bbr3", "bbr3");
    assert!((0.65..1.3).contains(&coupled), "bbr3: {coupled:.2} of one");
}

#[test]
fn the_published_coupled_ones_fill_two_links() {
    for control in ["c-mpbbr", "bbr", "bbr3+btlbw"] {
        let mut sim = Sim::new(3);
        let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        let connection = sim.connect(setup(paths, Side::Client, &factory(control)));
        let rate = mbit(&mut sim, connection, seconds(5), seconds(15));
        // The published ones take two paths of one bandwidth for a group, and send less.
        let least = if control == "c-mpbbr" { 18.0 } else { 33.0 };
        assert!(rate > least, "{control}: {rate:.1} Mbit/s");
    }
}

#[test]
fn after_a_pause_it_goes_on_at_the_bandwidth_that_it_knew() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(4);
        let path = sim.path(&[bottleneck()]);
        // Longer than the 10 s after which it would look for the least RTT: in the pause it was idle.
        let active = vec![(0, seconds(5)), (seconds(17) + 500 * MILLISECOND, Nanos::MAX)];
        let greedy = Generator::new(0, FlowId::Connection(ConnId(0)), Source::Greedy, active);
        let mut setup = setup(vec![path], Side::Client, &factory(law));
        // Nor are there pings, in which it could look.
        for transport in [&mut setup.client, &mut setup.server] {
            transport.default_path_max_idle_timeout(None);
        }
        let connection = sim.connect(Setup { application: greedy, ping: None, ..setup });
        sim.run(seconds(17));
        let before = estimate(&mut sim, connection, 0);
        assert!(before > 18.0, "{law}: {before:.1} Mbit/s");
        // The first round trip brings nothing; twenty: twice as many as the estimate is of.
        let start = seconds(17) + 550 * MILLISECOND;
        let mut rates = Vec::new();
        for tenth in 0..8 {
            let from = start + tenth * 100 * MILLISECOND;
            rates.push(mbit(&mut sim, connection, from, from + 100 * MILLISECOND));
        }
        // A lost packet holds up what is after it for a round trip.
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!(mean > 18.0 && rates.iter().all(|rate| *rate > 10.0), "{law}: {rates:.1?} Mbit/s");
    }
}

#[test]
fn what_an_application_sends_is_not_taken_for_the_bandwidth() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(5);
        let path = sim.path(&[bottleneck()]);
        // 4 of 20 Mbit/s, as even as can be; and in the third second as much as the link takes.
        let messages = Source::Messages { bytes: 1000, interval: 2 * MILLISECOND, poisson: false };
        let setup = setup(vec![path], Side::Client, &factory(law));
        let connection = sim.connect(Setup { application: application(messages), ..setup });
        sim.run(seconds(2));
        watch(&mut sim, seconds(3), MILLISECOND, |sim| {
            let mut datagrams = sim.end(connection, Side::Client).datagrams();
            while datagrams.send(vec![0; 1000].into(), false).is_ok() {}
        });
        sim.run(seconds(4));
        let before = estimate(&mut sim, connection, 0);
        assert!(before > 15.0, "{law}: {before:.1} Mbit/s");
        let received = sim.received(connection);
        sim.run(seconds(30));
        let rate = (sim.received(connection) - received) as f64 * 8e-6 / 26.0;
        assert!((3.6..4.4).contains(&rate), "{law}: {rate:.2} Mbit/s");
        // All samples since are of what the application sends.
        let after = estimate(&mut sim, connection, 0);
        assert!(after > 15.0, "{law}: {after:.1} Mbit/s");
    }
}

#[test]
fn version_3_answers_marks_and_keeps_its_rate() {
    let marks = LinkConfig {
        discipline: Discipline::CoDel(CoDel::default()),
        ecn: true,
        limit: deep().limit,
        ..bottleneck()
    };
    // Version 1 does not heed them.
    let [heeds, ignores] = ["bbr3", "bbr"].map(|law| {
        let mut sim = Sim::new(6);
        let path = sim.path(std::slice::from_ref(&marks));
        // Two: one alone leaves little to mark.
        let two = [(); 2].map(|()| sim.connect(setup(vec![path], Side::Client, &factory(law))));
        sim.run(seconds(5));
        let before = two.map(|one| sim.received(one));
        sim.run(seconds(25));
        let bytes: u64 = two.iter().zip(before).map(|(one, at)| sim.received(*one) - at).sum();
        let rate = bytes as f64 * 8e-6 / 20.0;
        assert!(rate > 17.0, "{law}: {rate:.1} Mbit/s");
        let link = sim.net.network().route(path.up).next().unwrap();
        let counters = sim.net.network().counters(link);
        assert_eq!(counters.dropped(), 0, "{counters:?}");
        counters.marked
    });
    assert!(heeds > 5 && heeds < ignores / 3, "{heeds} and {ignores} marks");
}

#[test]
fn an_outage_leaves_little_in_flight_and_then_the_model_holds_again() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(8);
        let path = sim.path(&[bottleneck()]);
        let factory: Arc<Factory> = factory(law);
        let connection = sim.connect(setup(vec![path], Side::Client, &factory));
        sim.run(seconds(3));
        let before = windows(&factory)[0];
        let link = sim.net.network().route(path.up).next().unwrap();
        sim.net.set_link_up(link, false);
        sim.run(seconds(6));
        sim.net.set_link_up(link, true);
        let mut least = u64::MAX;
        watch(&mut sim, seconds(10), MILLISECOND, |_| least = least.min(windows(&factory)[0]));
        // What is in flight after the timeout, and one more.
        assert!(least <= 3 * 1452, "{law}: {before} bytes fell to {least}");
        let rate = mbit(&mut sim, connection, seconds(10), seconds(20));
        assert!(rate > 17.0, "{law}: {rate:.1} Mbit/s");
    }
}

#[test]
fn a_path_that_is_abandoned_leaves_its_part_to_the_other() {
    for control in ["bbr", "bbr3", "c-mpbbr"] {
        let mut sim = Sim::new(9);
        let paths = [sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        let factory = factory(control);
        let connection = sim.connect(setup(paths.to_vec(), Side::Client, &factory));
        sim.run(seconds(5));
        sim.close_path(connection, 1);
        let state = sim.end(connection, Side::Client).congestion_state(PathId::from(1u32));
        factory.abandoned(state.expect("noq keeps it for a while").clone_box());
        let rate = mbit(&mut sim, connection, seconds(7), seconds(17));
        assert!(rate > 17.0, "{control}: {rate:.1} Mbit/s");
        assert_eq!(factory.snapshot().alone, 0, "{control}");
    }
}

/// 0.1 Mbit/s and 1 s fill buffers of 40 kB with what comes after it on 4 Mbit/s.
#[test]
fn a_parked_path_stays_parked_for_a_minute_though_it_is_pinged() {
    let mut sim = Sim::new(10);
    let link = |bps, ms, bytes| LinkConfig {
        rate: narrows_net::Rate::Constant(bps),
        delay: ms * MILLISECOND,
        limit: narrows_net::Limit::Bytes(bytes),
        ..bottleneck()
    };
    let paths =
        vec![sim.path(&[link(4_000_000, 10, 20_000)]), sim.path(&[link(100_000, 500, 50_000)])];
    let coupling = Coupling::new("bbr+disjoint").unwrap().with("bbr.close", "0.6").unwrap();
    let factory = coupling.factory();
    let mut setup = setup(paths, Side::Client, &factory);
    setup.client.send_window(40_000);
    setup.server.receive_window(VarInt::from_u32(40_000));
    let connection = sim.connect(setup);
    let mut parked = false;
    let mut changes = Vec::new();
    watch(&mut sim, seconds(100), 100 * MILLISECOND, |sim| {
        let now = sim.now();
        let end = sim.end(connection, Side::Client);
        let second = PathId::from(1u32);
        let state = || end.congestion_state(second).map(|state| state.clone_box());
        let Some(path) = state().and_then(|state| factory.path(state)) else { return };
        if parked == (path.advice == Advice::Backup) {
            return;
        }
        parked = !parked;
        factory.parked(state().unwrap(), parked);
        let status = if parked { PathStatus::Backup } else { PathStatus::Available };
        end.set_path_status(second, status).unwrap();
        changes.push(now as f64 / 1e9);
    });
    assert!(changes.len() >= 2, "parked, and tried again: {changes:?} s");
    let rested = changes[1] - changes[0];
    assert!((59.0..65.0).contains(&rested), "{changes:?} s");
}

/// What is sent to the old port for half a round trip is lost, and says nothing of the new one.
#[test]
fn a_rebinding_leaves_window_and_rate() {
    for law in ["bbr", "bbr3"] {
        let mut sim = Sim::new(11);
        let path = sim.path(&[LinkConfig { delay: 80 * MILLISECOND, ..deep() }]);
        let factory = factory(law);
        let connection = sim.connect(setup(vec![path], Side::Server, &factory));
        sim.run(seconds(5));
        let before = windows(&factory)[0];
        sim.rebind(connection, 0);
        let mut least = u64::MAX;
        watch(&mut sim, seconds(7), MILLISECOND, |_| least = least.min(windows(&factory)[0]));
        assert!(least > before * 9 / 10, "{law}: {before} bytes fell to {least}");
        let rate = mbit(&mut sim, connection, seconds(7), seconds(9));
        assert!(rate > 17.0, "{law}: {rate:.1} Mbit/s");
    }
}
