//! DualPI2 with TCP: classic flows beside scalable ones (RFC 9332, RFC 8257).

use crate::common;

use common::*;
use narrows_net::{Discipline, DualPi2, Limit, LinkConfig, LinkId, Rate};
use narrows_sim::Sim;
use narrows_traffic::{ConnId, TcpConfig};

/// Greedy flows over 40 Mbit/s and 40 ms with DualPI2: each its law, and whether it uses ECN as a scalable sender.
struct Dual {
    sim: Sim,
    link: LinkId,
    flows: Vec<ConnId>,
}

/// Base RTT, ms.
const RTT_MS: u64 = 40;

impl Dual {
    fn new(laws: &[(&str, bool)]) -> Dual {
        let mut sim = Sim::new(1);
        let narrow = link("dual", Rate::Constant(40 * MBIT), 0);
        let discipline = Discipline::DualPi2(DualPi2::default());
        let limit = Limit::Packets(2000);
        let dual = add(&mut sim, LinkConfig { limit, discipline, ecn: true, ..narrow });
        let flows = laws
            .iter()
            .map(|&(law, scalable)| {
                let half = link("access", Rate::Constant(1000 * MBIT), RTT_MS * MS / 2);
                let [there, back] = [(); 2].map(|()| add(&mut sim, half.clone()));
                let path = path(&mut sim, &[there, dual], &[back]);
                let mut config = greedy_delack(vec![path]);
                config.control = control(law);
                config.tcp = TcpConfig { ecn: scalable, scalable, ..config.tcp };
                sim.add_connection(config)
            })
            .collect();
        Dual { sim, link: dual, flows }
    }

    /// Mbit/s of each after 20 s, for a minute, and the mean of its smoothed RTT above the base, ms.
    fn run(&mut self) -> Vec<(f64, f64)> {
        self.sim.run_until(20 * S);
        self.sim.reset_link_counters();
        let bytes = |sim: &Sim, flow: ConnId| sim.connection(flow).delivered_bytes;
        let before: Vec<u64> = self.flows.iter().map(|&flow| bytes(&self.sim, flow)).collect();
        let mut waits = vec![0.0; self.flows.len()];
        for tick in 1..=600 {
            self.sim.run_until(20 * S + tick * 100 * MS);
            for (wait, &flow) in waits.iter_mut().zip(&self.flows) {
                *wait += self.sim.connection(flow).paths[0].srtt as f64 / MS as f64 / 600.0;
            }
        }
        let rate = |(number, &flow): (usize, &ConnId)| {
            let mbits = (bytes(&self.sim, flow) - before[number]) as f64 * 8.0 / 60e6;
            (mbits, waits[number] - RTT_MS as f64)
        };
        self.flows.iter().enumerate().map(rate).collect()
    }
}

/// Alone, scalable flows fill the link and wait for about a millisecond, and nothing is lost.
#[test]
fn scalable_flows_keep_the_l_queue_short() {
    let mut dual = Dual::new(&[("dctcp", true), ("dctcp", true)]);
    let flows = dual.run();
    let all: f64 = flows.iter().map(|(mbits, _)| mbits).sum();
    assert!(all > 0.9 * 40.0 * 1448.0 / 1500.0, "{flows:?}");
    assert!(flows.iter().all(|(_, wait)| (0.2..2.0).contains(wait)), "{flows:?}");
    assert!((0.7..1.4).contains(&(flows[0].0 / flows[1].0)), "{flows:?}");
    assert_eq!(dual.sim.network().counters(dual.link).dropped(), 0);
}

/// Windows are 2 / p_L of DCTCP (RFC 8257's law at a steady share of marks) and sqrt(3 / 2 / p_C) of Reno (Mathis et al., 1997), p_L = 2 p' and
/// p_C = p'^2: of Reno 1.22 times that of DCTCP, which waits less. The C queue is held at the target.
#[test]
fn classic_flows_and_scalable_ones_share_about_equally() {
    // Several, as p' is 0 half of the time with one.
    let laws = [[("reno", false), ("dctcp", true)]; 4].concat();
    let mut dual = Dual::new(&laws);
    let flows = dual.run();
    let mean = |odd: usize| {
        let of = || flows.iter().skip(odd).step_by(2);
        let mean = |of: f64| of / 4.0;
        (mean(of().map(|flow| flow.0).sum()), mean(of().map(|flow| flow.1).sum()))
    };
    let [(classic, long), (scalable, short)] = [mean(0), mean(1)];
    // With its transmission, what is left of a classic packet's, and bursts of delayed acknowledgements.
    assert!((0.2..3.0).contains(&short), "{flows:?}");
    assert!((10.0..20.0).contains(&long), "{flows:?}");
    let theory = (RTT_MS as f64 + long) / (RTT_MS as f64 + short) / 1.22;
    assert!((0.85..1.15).contains(&(scalable / classic / theory)), "{flows:?}, in theory {theory}");
    // Drops are all of the C queue and marks of the L queue.
    let counters = dual.sim.network().counters(dual.link);
    let packets = |mbits: f64| 4.0 * mbits * 60e6 / 8.0 / 1448.0;
    let p_c = counters.dropped_aqm as f64 / packets(classic);
    let p_l = counters.marked as f64 / packets(scalable);
    let coupling = p_l / p_c.sqrt();
    println!("{scalable} beside {classic} Mbit/s, {short} and {long} ms; p_L {p_l}, p_C {p_c}");
    assert!((1.6..2.6).contains(&coupling), "p_L {p_l}, p_C {p_c}: {coupling}");
}
