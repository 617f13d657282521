//! A dumbbell of flows under one law: each sender and each receiver has an access link, and two routers
//! share one droptail bottleneck; acknowledgements come back the same way.

use narrows_laws::Control;
use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND, Nanos, Rate, SECOND};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};

use super::{Built, add};

const MBIT: u64 = 1_000_000;

pub struct Dumbbell {
    pub flows: u64,
    pub bits: u64,
    pub access_bits: u64,
    /// Queue of the bottleneck, packets: the product of rate and RTT.
    pub queue: u32,
    pub seconds: u64,
}

pub const A: Dumbbell =
    Dumbbell { flows: 10, bits: 100 * MBIT, access_bits: 1000 * MBIT, queue: 166, seconds: 60 };

pub const B: Dumbbell = Dumbbell {
    flows: 100,
    bits: 1000 * MBIT,
    access_bits: 10_000 * MBIT,
    queue: 1664,
    seconds: 10,
};

fn link(sim: &mut Sim, bits: u64, delay: Nanos, jitter: Nanos, limit: Limit) -> LinkId {
    let rate = Rate::Constant(bits);
    add(sim, LinkConfig { rate, delay, jitter, limit, quantiles: false, ..LinkConfig::default() })
}

/// A network whose flows start 10 ms apart, RTT 20 ms.
pub fn build(case: &Dumbbell, law: &str) -> Built {
    let mut sim = Sim::new(1);
    let control: Control = law.parse().expect("a control");
    let limit = Limit::Packets(case.queue);
    let bottleneck = [(); 2].map(|()| link(&mut sim, case.bits, 8 * MILLISECOND, 0, limit));
    // Four packet times of the bottleneck.
    let jitter = 4 * 1500 * 8 * SECOND / case.bits;
    let connections = (0..case.flows)
        .map(|n| {
            let mut access =
                |jitter| link(&mut sim, case.access_bits, MILLISECOND, jitter, Limit::Unlimited);
            let (out, deliver) = (access(jitter), access(0));
            let (back, home) = (access(0), access(0));
            let mut route = |links: [LinkId; 3]| sim.add_route(&links).expect("a valid route");
            let forward = route([out, bottleneck[0], deliver]);
            let path = PathConfig::new("path", forward, route([back, bottleneck[1], home]));
            sim.add_connection(ConnectionConfig {
                name: format!("flow {n}"),
                control,
                paths: vec![path],
                active: vec![(n * 10 * MILLISECOND, Nanos::MAX)],
                send_buffer: 16 << 20,
                recv_buffer: 16 << 20,
                ..ConnectionConfig::default()
            })
        })
        .collect();
    Built { sim, connections, mss: 1448, until: case.seconds * SECOND }
}
