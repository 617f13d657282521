//! What a multipath connection gets.

use crate::common::*;
use narrows_sim::Sim;

/// Share of a link of 20 Mbit/s, RTT 40 ms, that a connection of two subflows takes beside one
/// Reno TCP.
fn share(law: &str, seeds: u64) -> f64 {
    let mut share = 0.0;
    for seed in 0..seeds {
        let mut sim = Sim::new(seed);
        let net = Dumbbell::new(&mut sim, 3, 20 * MBIT, 40 * MS, 67, 2 * MS);
        let tcp = net.path(&mut sim, 0);
        let tcp = sim.add_connection(greedy(vec![tcp]));
        let paths = [1, 2].map(|n| net.path(&mut sim, n)).to_vec();
        let mut config = greedy(paths);
        config.control = control(law);
        let mptcp = sim.add_connection(config);
        let mbits = goodput(&mut sim, &[tcp, mptcp], 10 * S, 310 * S);
        share += mbits[1] / (mbits[0] + mbits[1]) / seeds as f64;
    }
    share
}

#[test]
fn on_a_shared_link_uncoupled_takes_two_shares_of_three_and_coupled_one_of_two() {
    for (law, theory) in [("reno", 2.0 / 3.0), ("lia", 0.5), ("olia", 0.5), ("balia", 0.5)] {
        let what = format!("2 x {law}: share of a link beside one TCP");
        figure("8", &what, share(law, 4), theory, within(10.0, theory));
    }
}
