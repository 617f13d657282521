//! CUBIC's RTT-independent region: the window grows with the time since the last loss, not with
//! round trips (RFC 9438, sections 4.2 and 5.1).

use crate::common::*;
use crate::figure::{figure, within};
use narrows_net::{Limit, LinkConfig, Loss, Rate, rng};
use narrows_sim::Sim;

const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// Mean of the seconds between the losses of one CUBIC flow on a droptail link that overflows at
/// a window of `packets`, three quarters of it the path and one quarter the queue.
fn period(rtt: f64, packets: f64) -> f64 {
    let mut sim = Sim::new(1);
    let bits = packets * 0.75 * 1500.0 * 8.0 / rtt;
    let delay = (rtt / 2.0 * 1e9) as u64;
    let narrow = link("narrow", Rate::Constant(bits as u64), delay);
    let limit = Limit::Packets((packets * 0.25) as u32);
    let forward = add(&mut sim, LinkConfig { limit, ..narrow });
    let back = add(&mut sim, link("back", Rate::Infinite, delay));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = greedy_delack(vec![path]);
    config.control = control("cubic");
    let connection = sim.add_connection(config);
    let mut losses = vec![];
    let mut before = 0;
    for tick in 2_000..20_000 {
        sim.run_until(tick * 10 * MS);
        let ssthresh = sim.connection(connection).paths[0].ssthresh;
        if before != 0 && ssthresh != before {
            losses.push(tick as f64 / 100.0);
        }
        before = ssthresh;
    }
    // Two kinds of epochs take turns, see below; count as many of each.
    let last = (losses.len() - 1) / 2 * 2;
    (losses[last] - losses[0]) / last as f64
}

/// The window of the overflow is the same each time, W. After a loss at W and a little, the next
/// comes at W, before the plateau is reached, so fast convergence (section 4.7) sets the plateau to
/// 0.85 W. From 0.7 W to there and from there to W takes cbrt(0.15 W / C) each. That ends steeply,
/// and until the sender knows of the overflow, a round trip later, the window has grown by that
/// little, x. The next plateau is at W + x, from which W is cbrt(x / C) away. Detection and
/// recovery take a round trip each. So the RTT's part is small, and Reno's time would be 0.5 W RTT.
#[test]
fn the_time_between_losses_hardly_knows_the_rtt() {
    let w = 400.0;
    for rtt in [0.05, 0.1, 0.2] {
        let full = rtt * 4.0 / 3.0;
        let half = (0.15 * w / C).cbrt();
        let x = 3.0 * C * half * half * full;
        let plain = ((1.0 - BETA) * (w + x) / C).cbrt() - (x / C).cbrt();
        let theory = (2.0 * half + plain) / 2.0 + 2.0 * full;
        let what = format!("CUBIC: s between losses at W = 400, base RTT {:.0} ms", rtt * 1e3);
        figure("3", &what, period(rtt, w), theory, within(5.0, theory));
    }
}

/// Mean window of a CUBIC flow that loses each packet with probability `loss`.
fn window(loss: f64, rtt: f64, losses: f64, seed: u64) -> f64 {
    let mut sim = Sim::new(seed);
    let delay = (rtt / 2.0 * 1e9) as u64;
    let lossy = LinkConfig { loss: Loss::Random(loss), ..link("lossy", Rate::Infinite, delay) };
    let (forward, back) =
        (add(&mut sim, lossy), add(&mut sim, link("back", Rate::Infinite, delay)));
    let path = path(&mut sim, &[forward], &[back]);
    let mut config = greedy_delack(vec![path]);
    config.control = control("cubic");
    let connection = sim.add_connection(config);
    let seconds = (losses / loss * rtt / fluid(loss, rtt)) as u64;
    let mbits = goodput(&mut sim, &[connection], 100 * S, (100 + seconds) * S);
    mbits[0] * 1e6 / 8.0 / 1448.0 * rtt
}

/// RFC 9438, equation (5): the mean window under one loss in every 1/p packets exactly.
fn fluid(loss: f64, rtt: f64) -> f64 {
    (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt / loss).powf(0.75)
}

/// The same without that exactness: the cubic of section 4.2 with fast convergence (4.7), losing
/// each packet with probability p, in steps of a twentieth of an RTT. The loss becomes known, and
/// growth ends, a round trip later; for another, recovery's, the window stands at its new value.
fn model(loss: f64, rtt: f64) -> f64 {
    let mut random = rng::stream(1, 0);
    let mut w_max = fluid(loss, rtt);
    let mut start = w_max * BETA;
    let (mut sum, mut time, dt) = (0.0, 0.0, rtt / 20.0);
    for _ in 0..10_000 {
        let k = ((w_max - start) / C).cbrt();
        let mut left = -(1.0 - rng::uniform_f64(&mut random)).ln() / loss;
        let (mut t, mut w, mut known) = (-rtt, start, f64::INFINITY);
        while t < known {
            w = C * (f64::max(t, 0.0) - k).powi(3) + w_max;
            left -= w * dt / rtt;
            if left <= 0.0 {
                known = f64::min(known, t + rtt);
            }
            sum += w * dt;
            t += dt;
        }
        time += t + rtt;
        start = w * BETA;
        w_max = if w < w_max { w * (1.0 + BETA) / 2.0 } else { w };
    }
    sum / time
}

fn follows_the_law(cases: &[(f64, f64)], losses: f64) {
    for &(loss, rtt) in cases {
        let (measured, theory) = (window(loss, rtt, losses, 1), model(loss, rtt));
        let what = format!(
            "CUBIC: mean window at loss {loss}, RTT {rtt} s (equally spaced losses: {:.1})",
            fluid(loss, rtt)
        );
        figure("3", &what, measured, theory, within(5.0, theory));
    }
}

#[test]
fn the_window_goes_with_the_three_quarters_power_of_rtt_over_loss() {
    follows_the_law(&[(1e-3, 0.4)], 2000.0);
}

#[test]
#[ignore = "long: statistics"]
fn the_window_goes_with_the_three_quarters_power_of_rtt_over_loss_at_low_loss() {
    follows_the_law(&[(1e-4, 0.1), (1e-4, 0.4)], 800.0);
}
