//! The first overshoot of slow start.

use crate::common::*;
use crate::figure::{figure, within};
use narrows_net::{Limit, LinkConfig, Rate};
use narrows_sim::Sim;

/// Packets that one flow loses on 40 Mbit/s with an RTT of 60 ms (200 packets) in its first 2 s.
fn overshoot(law: &str, queue: u32) -> f64 {
    let mut sim = Sim::new(1);
    let narrow = link("narrow", Rate::Constant(40 * MBIT), 30 * MS);
    let forward = add(&mut sim, LinkConfig { limit: Limit::Packets(queue), ..narrow });
    let back = add(&mut sim, link("back", Rate::Infinite, 30 * MS));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = greedy(vec![path]);
    config.control = control(law);
    sim.add_connection(config);
    sim.run_until(2 * S);
    sim.network().counters(forward).dropped_queue as f64
}

/// While the queue is full, each packet that leaves it lets two in. The sender learns of the first
/// drop a full pipe later, and by then has lost one for each packet that left: the pipe.
///
/// With less queue than path, windows still come as trains when the queue first overflows. Of the
/// train of 160 (initial window 10, doubled four times) 100 fill the queue and 60 are lost. A round
/// trip of 200 packet times after its begin the next train finds 60 in the queue, after 40 it is
/// full, and the news comes at 400: 160 more.
#[test]
fn standard_slow_start_loses_a_whole_pipe() {
    for (queue, theory) in [(100, 220.0), (200, 401.0), (400, 601.0)] {
        let what = format!("packets lost at the first overshoot: path 200, queue {queue}");
        figure("6", &what, overshoot("reno", queue), theory, within(5.0, theory));
    }
}
