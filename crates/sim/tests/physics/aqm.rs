//! Managed queues with TCP: RED's fixed point, CoDel's target, FQ-CoDel's fairness, ECN.

use crate::common::*;
use crate::figure::{figure, within};
use narrows_net::{CoDel, Discipline, FqCoDel, Limit, LinkConfig, LinkId, Nanos, Rate, Red};
use narrows_sim::{Sim, UdpConfig};
use narrows_traffic::{ConnId, SizeDist, Source};

/// Greedy flows with the given RTTs (ms) under one law over a managed link.
struct Managed {
    sim: Sim,
    link: LinkId,
    flows: Vec<ConnId>,
}

impl Managed {
    fn new(law: &str, rtts: &[u64], mbit: u64, discipline: Discipline, ecn: bool) -> Managed {
        let mut sim = Sim::new(1);
        let narrow = link("managed", Rate::Constant(mbit * MBIT), 0);
        let limit = Limit::Packets(2000);
        let link_id = add(&mut sim, LinkConfig { limit, discipline, ecn, ..narrow });
        let flows = rtts
            .iter()
            .enumerate()
            .map(|(n, &rtt)| {
                let half = link("access", Rate::Constant(1000 * MBIT), rtt * MS / 2);
                let [there, back] = [(); 2].map(|()| add(&mut sim, half.clone()));
                let path = path(&mut sim, &[there, link_id], &[back]);
                let mut config = greedy_delack(vec![path]);
                config.control = control(law);
                config.tcp.ecn = ecn;
                config.active = vec![(n as u64 * 100 * MS, Nanos::MAX)];
                sim.add_connection(config)
            })
            .collect();
        Managed { sim, link: link_id, flows }
    }

    /// Mbit/s of each flow after half a minute.
    fn run(&mut self, seconds: u64) -> Vec<f64> {
        goodput(&mut self.sim, &self.flows, 30 * S, (30 + seconds) * S)
    }

    /// Mean queueing delay, ms.
    fn queue_ms(&self) -> f64 {
        self.sim.network().counters(self.link).queue_delay.mean() as f64 / 1e6
    }
}

fn red(min: u32, max: u32, max_p: f64) -> Red {
    Red { min: Limit::Packets(min), max: Limit::Packets(max), max_p, ..Red::default() }
}

/// Twenty Reno flows, 100 Mbit/s, RTT 40 ms. The gaps between drops are uniform in 1 to 1/p_b
/// (Floyd and Jacobson 1993, section 7), so the drop rate is p = 2 p_b / (1 + p_b), where p_b rises
/// with the mean queue q as configured. The flows' windows are sqrt(1.5 / p) each (Mathis) and fill
/// the path and the queue: the two meet at one q.
fn fixed_point(red: &Red) -> (f64, f64) {
    let (Limit::Packets(min), Limit::Packets(max)) = (red.min, red.max) else { unreachable!() };
    let path = 100e6 / 1500.0 / 8.0 * 0.04;
    let drop_rate = |q: f64| {
        let p = red.max_p * (q - f64::from(min)) / f64::from(max - min);
        2.0 * p / (1.0 + p)
    };
    let (mut low, mut high) = (f64::from(min), f64::from(max));
    for _ in 0..60 {
        let q = (low + high) / 2.0;
        if 20.0 * (1.5 / drop_rate(q)).sqrt() > path + q {
            low = q;
        } else {
            high = q;
        }
    }
    (low, drop_rate(low))
}

fn meets_the_fixed_point(ecn: bool) {
    let config = red(20, 200, 0.005);
    let (queue, rate) = fixed_point(&config);
    let mut net = Managed::new("reno", &[40; 20], 100, Discipline::Red(config), ecn);
    net.run(120);
    let counters = net.sim.network().counters(net.link);
    let measured = if ecn { counters.marked } else { counters.dropped_aqm };
    let what = if ecn { "RED with ECN" } else { "RED" };
    let mean = net.queue_ms() / 0.12;
    figure("7", &format!("{what}: mean queue, packets"), mean, queue, within(10.0, queue));
    let measured = 100.0 * measured as f64 / counters.arrived as f64;
    let verb = if ecn { "marked" } else { "dropped" };
    figure("7", &format!("{what}: {verb}, %"), measured, 100.0 * rate, within(15.0, 100.0 * rate));
    if ecn {
        let dropped = counters.dropped() as f64;
        figure("7", "RED with ECN: packets dropped", dropped, 0.0, 0.0..=0.0);
    }
}

#[test]
fn red_with_reno_meets_its_fixed_point() {
    meets_the_fixed_point(false);
}

#[test]
fn red_with_ecn_meets_the_same_point_without_loss() {
    meets_the_fixed_point(true);
}

/// One flow, 50 Mbit/s, RTT 40 ms. CoDel drops when the delay has been above the target of 5 ms for
/// an interval of 100 ms, and the sender, whose window grows by a packet each round trip of 45 ms,
/// knows a round trip later: the queue's peak is the target and 145/45 packets of 0.24 ms.
///
/// With more flows the mean tells (Nichols and Jacobson, "Controlling Queue Delay", 2012: near
/// the target). Each drop comes after (2/3) W^2 packets. For five flows that is 0.23 s, so one drop
/// ends each episode above the target; ten flows need one in 56 ms, which the control law's 100
/// ms / sqrt(count) gives at a count of three only. So the mean grows from below to above the target.
#[test]
fn codel_holds_the_delay_near_its_target() {
    let run = |flows: usize| {
        let discipline = Discipline::CoDel(CoDel::default());
        let mut net = Managed::new("reno", &vec![40; flows], 50, discipline, false);
        net.run(60);
        let peak = net.sim.network().counters(net.link).queue_delay.max() as f64 / 1e6;
        (peak, net.queue_ms())
    };
    let theory = 5.0 + 0.24 * 145.0 / 45.0;
    figure("7", "CoDel, one flow: peak delay, ms", run(1).0, theory, within(10.0, theory));
    figure("7", "CoDel, 5 flows: mean delay, ms", run(5).1, 5.0, 2.5..=7.5);
    figure("7", "CoDel, 10 flows: mean delay, ms", run(10).1, 5.0, 2.5..=10.0);
}

/// UDP of 20 Mbit/s on a link of 20 Mbit/s leaves a TCP half of it under FQ-CoDel.
#[test]
fn fq_codel_keeps_tcp_from_harm() {
    let discipline = Discipline::FqCoDel(FqCoDel::default());
    let mut net = Managed::new("reno", &[10], 20, discipline, false);
    let route = route(&mut net.sim, &[net.link]);
    let source = Source::Rate { mean_pps: 20e6 / 12e3, size: SizeDist::Constant(1500) };
    let active = vec![(0, Nanos::MAX)];
    net.sim.add_udp(UdpConfig { name: "udp".into(), route, back: None, source, active });
    let half = 10.0 * 1448.0 / 1500.0;
    let what = "FQ-CoDel: TCP beside UDP as fast as the link, Mbit/s";
    figure("7", what, net.run(60)[0], half, within(5.0, half));
}

/// The exponent a in rate ~ RTT^-a of flows with two RTTs (ms), in turn.
fn exponent(law: &str, rtts: [u64; 2], flows: usize, mbit: u64, red: Red, seconds: u64) -> f64 {
    let all: Vec<u64> = (0..2 * flows).map(|n| rtts[n % 2]).collect();
    let mut net = Managed::new(law, &all, mbit, Discipline::Red(red), false);
    let mbits = net.run(seconds);
    let sum = |odd: usize| mbits.iter().skip(odd).step_by(2).sum::<f64>();
    let waiting = net.queue_ms();
    let [short, long] = rtts.map(|rtt| rtt as f64 + waiting);
    (sum(0) / sum(1)).ln() / (long / short).ln()
}

/// RED drops each packet with the same probability. Then Reno's window is the same for all RTTs
/// (Mathis), and CUBIC's goes with RTT^(3/4) (RFC 9438, section 5.1).
#[test]
fn where_losses_come_by_chance_reno_goes_with_the_rtt() {
    let a = exponent("reno", [20, 80], 5, 50, red(10, 100, 0.02), 120);
    figure("4", "Reno, RED: a in rate ~ RTT^-a", a, 1.0, 0.9..=1.1);
}

#[test]
#[ignore = "long: statistics"]
fn where_losses_come_by_chance_cubic_goes_with_the_fourth_root_of_the_rtt() {
    let a = exponent("cubic", [100, 400], 4, 100, red(20, 400, 0.001), 200);
    figure("4", "CUBIC, RED: a in rate ~ RTT^-a", a, 0.25, 0.15..=0.35);
}
