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
    let mut config = greedy_delack(vec![path]);
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

/// HyStart (Ha and Rhee 2011, in Linux's CUBIC) sees within the round trip that the trains grow long
/// and that the RTT rises, and leaves slow start in time.
///
/// HyStart++ (RFC 9406) compares the smallest RTTs of two round trips, and a train's first packets
/// find no queue until the path is full all the time. In packet times: the train of 160 fills the
/// queue to 160. At 200 the next begins, finds 120, and fills the queue at 280; from then on it
/// loses each second packet. It ends at 520, and eight samples later the RTT is seen to have
/// risen. Conservative slow start grows a quarter as fast until the loss is known, at 680: 248 and
/// 152/4 packets are lost.
#[test]
fn hystart_leaves_in_time_and_hystart_plus_plus_half_way() {
    let what = |law| format!("packets lost at the first overshoot: path 200, queue 200, {law}");
    figure("6", &what("cubic"), overshoot("cubic", 200), 0.0, 0.0..=0.0);
    let lost = overshoot("reno+hystart++", 200);
    figure("6", &what("reno+hystart++"), lost, 286.0, within(5.0, 286.0));
}

/// Longest queue, packets, before the link of 80 Mbit/s, RTT 60 ms (400 packets), while a file of
/// five windows goes out: 10, 20, 40, 80, 160.
fn longest_queue(pacing: bool) -> f64 {
    let mut sim = Sim::new(1);
    let forward = add(&mut sim, link("narrow", Rate::Constant(80 * MBIT), 30 * MS));
    let back = add(&mut sim, link("back", Rate::Infinite, 30 * MS));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = file(310 * 1448, vec![path]);
    config.tcp.pacing = pacing;
    sim.add_connection(config);
    sim.run_until(S);
    sim.network().counters(forward).queue_delay.max() as f64 / 150_000.0
}

/// Acknowledgements come as fast as the link brought the packets, and each lets two out: of the
/// last window of 160 the half waits. Paced at twice the window per round trip, 320 packets of the
/// link's 400, nothing does but the first ten packets, which Linux never paces
/// (tcp_update_skb_after_send()).
#[test]
fn pacing_keeps_the_queue_short() {
    let unpaced = longest_queue(false);
    figure("9", "slow start: longest queue, packets, not paced", unpaced, 80.0, 78.0..=82.0);
    let paced = longest_queue(true);
    figure("9", "slow start: longest queue, packets, paced", paced, 9.0, 8.0..=10.0);
}
