//! What a multipath connection gets.

use crate::common::*;
use crate::figure::{figure, within};
use narrows_net::{Discipline, Limit, LinkConfig, Nanos, Rate, Red};
use narrows_sim::{PathConfig, Sim};
use narrows_traffic::{Scheduler, SizeDist, Source};

/// Two links of their own, of 10 and 30 Mbit/s with RTTs of 40 and 20 ms and one bandwidth-delay
/// product of droptail queue each: the connection gets both, whatever the law, as nobody else is
/// there to be fair to. What waited for its order at the start may count: 0.5 %.
#[test]
fn disjoint_links_add_up() {
    for law in ["reno", "cubic", "lia", "olia", "balia"] {
        let mut sim = Sim::new(1);
        let paths: Vec<PathConfig> = [(10, 20), (30, 10)]
            .iter()
            .map(|&(mbit, ms)| {
                let narrow = link("path", Rate::Constant(mbit * MBIT), ms * MS);
                let limit = Limit::Packets((mbit * MBIT * 2 * ms / 1000 / 8 / 1500) as u32);
                let forward = add(&mut sim, LinkConfig { limit, jitter: MS, ..narrow });
                let back = add(&mut sim, link("back", Rate::Infinite, ms * MS));
                path(&mut sim, &[forward], &[back])
            })
            .collect();
        let mut config = greedy_delack(paths);
        config.control = control(law);
        let connection = sim.add_connection(config);
        let mbits = goodput(&mut sim, &[connection], 10 * S, 70 * S);
        let sum = 40.0 * 1424.0 / 1500.0;
        let what = format!("2 x {law} on 10 + 30 Mbit/s: goodput, Mbit/s");
        figure("8", &what, mbits[0], sum, sum * 0.95..=sum * 1.005);
    }
}

/// Share of a link of 20 Mbit/s, RTT 40 ms, that a connection of two subflows takes beside one
/// Reno TCP.
fn share(law: &str, seeds: u64) -> f64 {
    let mut share = 0.0;
    for seed in 0..seeds {
        let mut sim = Sim::new(seed);
        let net = Dumbbell::new(&mut sim, 3, 20 * MBIT, 40 * MS, 67, 2 * MS);
        let tcp = net.path(&mut sim, 0);
        let tcp = sim.add_connection(greedy_delack(vec![tcp]));
        let paths = [1, 2].map(|n| net.path(&mut sim, n)).to_vec();
        let mut config = greedy_delack(paths);
        config.control = control(law);
        let mptcp = sim.add_connection(config);
        let mbits = goodput(&mut sim, &[tcp, mptcp], 10 * S, 310 * S);
        share += mbits[1] / (mbits[0] + mbits[1]) / seeds as f64;
    }
    share
}

#[test]
#[ignore = "long: statistics"]
fn on_a_shared_link_uncoupled_takes_two_shares_of_three_and_coupled_one_of_two() {
    for (law, theory) in [("reno", 2.0 / 3.0), ("lia", 0.5), ("olia", 0.5), ("balia", 0.5)] {
        let what = format!("2 x {law}: share of a link beside one TCP");
        figure("8", &what, share(law, 4), theory, within(10.0, theory));
    }
}

/// The same on a link where RED drops each packet with the same probability, ten flows there or
/// fifteen: now as the laws have it, LIA a little more (see docs/method/measuring.md).
#[test]
fn on_a_link_with_red_the_shares_are_as_the_laws_have_them() {
    for (law, theory) in [("reno", 2.0 / 3.0), ("lia", 0.5), ("olia", 0.5), ("balia", 0.5)] {
        let mut sim = Sim::new(1);
        let mut narrow = link("managed", Rate::Constant(100 * MBIT), 20 * MS);
        let [min, max] = [20, 200].map(Limit::Packets);
        narrow.discipline = Discipline::Red(Red { min, max, max_p: 0.02, ..Red::default() });
        let narrow = add(&mut sim, narrow);
        let back = add(&mut sim, link("back", Rate::Infinite, 20 * MS));
        let connections: Vec<_> = (0..10)
            .map(|n| {
                let paths: Vec<PathConfig> =
                    (0..1 + n % 2).map(|_| path(&mut sim, &[narrow], &[back])).collect();
                let mut config = greedy_delack(paths);
                config.control = control(if n % 2 == 0 { "reno" } else { law });
                config.active = vec![(n as u64 * 10 * MS, Nanos::MAX)];
                sim.add_connection(config)
            })
            .collect();
        let mbits = goodput(&mut sim, &connections, 10 * S, 130 * S);
        let multipath: f64 = mbits.iter().skip(1).step_by(2).sum();
        let share = multipath / mbits.iter().sum::<f64>();
        let what = format!("2 x {law}, RED: share of a link beside as many TCP");
        figure("8", &what, share, theory, within(5.0, theory));
    }
}

/// Packets take turns on two paths of 10 and 50 ms, and come every 2 ms at random. One on the quick
/// path waits for the packet before it, 40 ms less the gap between them: 38 ms in the mean. The
/// others find all there.
#[test]
fn order_costs_what_the_slow_path_is_later() {
    let mut sim = Sim::new(1);
    let paths = [10, 50].map(|delay| {
        let [there, back] =
            [(); 2].map(|()| add(&mut sim, link("ideal", Rate::Infinite, delay * MS)));
        path(&mut sim, &[there], &[back])
    });
    let mut config = greedy_delack(paths.to_vec());
    config.scheduler = Scheduler::RoundRobin;
    config.source = Source::Rate { mean_pps: 500.0, size: SizeDist::Constant(1400) };
    let connection = sim.add_connection(config);
    sim.run_until(100 * S);
    let order = sim.connection(connection).head_of_line;
    let mean = order.mean as f64 / 1e6;
    figure("9", "head of line: mean wait, ms", mean, 19.0, within(5.0, 19.0));
    let waited = order.waited as f64 / order.packets as f64;
    figure("9", "head of line: share of packets that wait", waited, 0.5, within(5.0, 0.5));
}

/// Mean goodput of a TCP connection and of an MPTCP connection of two subflows, five of each on one
/// link of 100 Mbit/s, as in the phase-effects experiment: `jitter` at the senders' links.
fn sharing(law: &str, jitter: Nanos, seed: u64) -> (f64, f64) {
    let mut sim = Sim::new(seed);
    let net = Dumbbell::new(&mut sim, 15, 100 * MBIT, 20 * MS, 166, jitter);
    let mut connections = vec![];
    for n in 0..10 {
        let paths = if n < 5 { vec![n] } else { vec![n, n + 5] };
        let paths = paths.into_iter().map(|sender| net.path(&mut sim, sender)).collect();
        let mut config = greedy_delack(paths);
        config.control = control(if n < 5 { "reno" } else { law });
        config.active = vec![(n as u64 * 10 * MS, u64::MAX)];
        connections.push(sim.add_connection(config));
    }
    let bytes = |sim: &Sim, of: std::ops::Range<usize>| -> f64 {
        connections[of].iter().map(|&c| sim.connection(c).delivered_bytes as f64).sum()
    };
    sim.run_until(10 * S);
    let before = (bytes(&sim, 0..5), bytes(&sim, 5..10));
    sim.run_until(60 * S);
    let mbit = |now: f64, then: f64| (now - then) * 8.0 / 50e6 / 5.0;
    (mbit(bytes(&sim, 0..5), before.0), mbit(bytes(&sim, 5..10), before.1))
}

/// What an MPTCP connection gets for each bit of a TCP connection, mean of some seeds.
fn advantage(law: &str, jitter: Nanos) -> f64 {
    let ratios = (1..=2).map(|seed| sharing(law, jitter, seed)).map(|(tcp, mptcp)| mptcp / tcp);
    ratios.sum::<f64>() / 2.0
}

/// Phase effects: with exact timing a droptail queue drops by rhythm, not by share of the load,
/// and coupling does nothing. A jitter of four packet times at the senders (480 us) is enough to
/// bring back chance.
#[test]
fn with_jitter_uncoupled_takes_two_shares_and_coupled_about_one() {
    let uncoupled = advantage("reno", 480_000);
    figure("10", "phases: MPTCP/TCP, 2 x reno, jitter 480 us", uncoupled, 2.0, within(10.0, 2.0));
    let coupled = advantage("lia", 480_000);
    figure("10", "phases: MPTCP/TCP, 2 x lia, jitter 480 us", coupled, 1.0, within(25.0, 1.0));
    let exact = advantage("lia", 0);
    let band = coupled * 1.1..=2.2;
    figure("10", "phases: MPTCP/TCP, 2 x lia, no jitter: coupling fails", exact, 1.0, band);
}
