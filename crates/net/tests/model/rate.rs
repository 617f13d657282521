//! A link of constant rate is never above its rate and, while it has work, never below.

use narrows_net::{LinkConfig, Nanos, Rate, SECOND};
use proptest::prelude::*;

use crate::{one_link, run};

const NANOSECONDS: u128 = SECOND as u128;

#[test]
fn a_million_packets_take_their_exact_time() {
    // 1 / 70 MHz is no whole number of nanoseconds; rounding each packet would be off by 0.4 ms.
    let rate = 70_000_000;
    let (mut network, route) =
        one_link(LinkConfig { rate: Rate::Constant(rate), ..LinkConfig::default() });
    let packets = 1_000_000;
    let deliveries = run(&mut network, &vec![(0, route, 1500); packets]);
    let bits = packets as u128 * 1500 * 8;
    let exact = (bits * NANOSECONDS).div_ceil(u128::from(rate));
    assert_eq!(deliveries.last().map(|d| u128::from(d.time)), Some(exact));
}

proptest! {
    #[test]
    fn every_window_between_departures_keeps_the_rate(
        rate in 1_000_u64..100_000_000_000,
        load in 0.1..3.0,
        sizes in prop::collection::vec((1_u32..=1500, 0.0..2.0), 1..150),
    ) {
        let (mut network, route) =
            one_link(LinkConfig { rate: Rate::Constant(rate), ..LinkConfig::default() });
        let mut now = 0;
        let sends: Vec<_> = sizes.iter().map(|&(size, gap)| {
            now += (gap * 750.0 * 8e9 / rate as f64 / load) as Nanos;
            (now, route, size)
        }).collect();
        let deliveries = run(&mut network, &sends);
        prop_assert_eq!(deliveries.len(), sends.len());

        // The exact end of each transmission, in units of 1/rate ns.
        let rate = u128::from(rate);
        let mut free_at = 0;
        for (&(now, _, size), delivery) in sends.iter().zip(&deliveries) {
            free_at = free_at.max(u128::from(now) * rate) + u128::from(size) * 8 * NANOSECONDS;
            prop_assert_eq!(u128::from(delivery.time), free_at.div_ceil(rate));
        }

        for first in 0..deliveries.len() {
            let mut bits = 0;
            for later in &deliveries[first + 1..] {
                bits += u128::from(later.size) * 8;
                // Departures are told in whole ns, hence the one more.
                let window = u128::from(later.time - deliveries[first].time) + 1;
                prop_assert!(bits * NANOSECONDS <= rate * window);
            }
        }
    }
}
