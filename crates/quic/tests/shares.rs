//! What coupled and uncoupled connections take: beside a NewReno connection of noq's on one link, and
//! over two links of their own. `examples/figures.rs` measures the same for all controls, and longer.

mod common;

use common::*;
use narrows_quic_sim::{Routes, Side, Sim};
use noq_proto::congestion::NewRenoConfig;
use std::sync::Arc;

/// So many paths under `control` and a NewReno connection through one link: the goodput of the first
/// over that of the second, by their means over three seeds.
fn share(control: &str, paths: usize) -> f64 {
    let (mut ours, mut rival) = (0.0, 0.0);
    for seed in 1..=3 {
        let mut sim = Sim::new(seed);
        let (up, down) = (sim.link(bottleneck()), sim.link(bottleneck()));
        let path = |sim: &mut Sim| -> Routes { sim.routes(&[up], &[down]) };
        let paths = (0..paths).map(|_| path(&mut sim)).collect();
        let alone = vec![path(&mut sim)];
        let coupled = sim.connect(setup(paths, Side::Client, &factory(control)));
        let client = transport(Arc::new(NewRenoConfig::default()));
        let setup = narrows_quic_sim::Setup::new(alone, Side::Client);
        let single = sim.connect(narrows_quic_sim::Setup { client, ..setup });
        sim.run(seconds(10));
        let before = [coupled, single].map(|connection| sim.received(connection));
        sim.run(seconds(50));
        ours += (sim.received(coupled) - before[0]) as f64;
        rival += (sim.received(single) - before[1]) as f64;
    }
    ours / rival
}

#[test]
fn on_one_link_coupled_paths_are_one_flow_and_uncoupled_ones_are_two() {
    let uncoupled = share("reno", 2);
    assert!(uncoupled > 1.5, "reno: {uncoupled:.2} of NewReno");
    for control in ["lia", "olia", "greno+xcorr"] {
        let coupled = share(control, 2);
        assert!((0.8..1.25).contains(&coupled), "{control}: {coupled:.2} of NewReno");
    }
}

#[test]
fn one_path_of_our_reno_is_noq_s_newreno() {
    let share = share("reno", 1);
    assert!((0.9..1.1).contains(&share), "{share:.2} of NewReno");
}

#[test]
fn over_two_links_of_their_own_paths_have_both() {
    for control in ["reno", "cubic", "lia+xcorr", "gcubic+xcorr"] {
        let mut sim = Sim::new(1);
        let paths = vec![sim.path(&[bottleneck()]), sim.path(&[bottleneck()])];
        let connection = sim.connect(setup(paths, Side::Client, &factory(control)));
        let rate = mbit(&mut sim, connection, seconds(5), seconds(35));
        assert!(rate > 37.5, "{control}: {rate:.1} Mbit/s");
    }
}

#[test]
fn xcorr_tells_a_shared_link_from_two_with_rivals_on_each() {
    for shared in [true, false] {
        let mut sim = Sim::new(3);
        let ups = [sim.link(bottleneck()), sim.link(bottleneck())];
        let ups = if shared { [ups[0]; 2] } else { ups };
        let downs = ups.map(|_| sim.link(bottleneck()));
        let paths = [0, 1].map(|i| sim.routes(&[ups[i]], &[downs[i]]));
        let factory = factory("lia+xcorr");
        sim.connect(setup(paths.to_vec(), Side::Client, &factory));
        for path in paths {
            sim.connect(narrows_quic_sim::Setup::new(vec![path], Side::Client));
        }
        sim.run(seconds(20));
        let mut right = 0;
        watch(&mut sim, seconds(60), seconds(1), |_| {
            let coupled = factory.snapshot().paths.iter().all(|path| path.coupled == 0b11);
            right += u32::from(coupled == shared);
        });
        assert!(right >= 36, "shared {shared}: right in {right} of 40 s");
        // What it knows of the pair is there to be looked at.
        let pairs = factory.snapshot().pairs;
        assert!(
            pairs.iter().any(|pair| pair.shared == shared && pair.confidence > 0.9),
            "{pairs:?}"
        );
    }
}
