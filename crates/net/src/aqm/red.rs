//! RED: random early detection.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1993; parameters and the gentle part from Floyd's notes on RED (1997, 2000).

use rand_xoshiro::Xoshiro256PlusPlus;

use super::Verdict;
use crate::{Limit, Nanos, SECOND, rng};

/// Random early detection: packets are dropped with a probability that grows with the average
/// queue.
///
/// The average is updated at every arrival, `avg += weight (q - avg)`. An arrival that finds the
/// link idle since a time t counts as if t / s packets had found it so, s being the transmission
/// time of an MTU. Below [`Red::min`] nothing is dropped. Up to [`Red::max`] the
/// probability p rises linearly to [`Red::max_p`]; the number of packets from one drop to the next
/// is made uniform in 1..=1/p. A gentle queue lets it rise on to 1 at twice the maximum; others
/// drop everything from the maximum on. What would be dropped with probability 1 is dropped also
/// where the link marks ([`crate::LinkConfig::ecn`]).
///
/// The default is Floyd's: 5 and 15 packets, 0.1, 0.002, gentle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Average queue below which nothing is dropped: in packets, bytes, or time to wait. In bytes
    /// also the probability is proportional to a packet's size, 1 being the MTU.
    pub min: Limit,
    /// Average queue at which p is [`Red::max_p`], in the same unit. Floyd: 3 times the minimum.
    pub max: Limit,
    /// p at [`Red::max`], in 0..=1.
    pub max_p: f64,
    /// Weight of a new sample in the average.
    pub weight: Weight,
    /// Whether p rises to 1 between `max` and twice that, instead of jumping there.
    pub gentle: bool,
}

/// Weight of a new sample in RED's average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// w_q, in 0..=1 without 0.
    Fixed(f64),
    /// 1 - exp(-1 / (C t)) with the rate C in MTUs per second, so that the average forgets with
    /// time constant t whatever the rate (Floyd, Gummadi and Shenker, "Adaptive RED", 2001, with
    /// t = 1 s).
    TimeConstant(Nanos),
}

impl Default for Red {
    fn default() -> Self {
        Red {
            min: Limit::Packets(5),
            max: Limit::Packets(15),
            max_p: 0.1,
            weight: Weight::Fixed(0.002),
            gentle: true,
        }
    }
}

impl Red {
    /// What is wrong, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let weight = match self.weight {
            Weight::Fixed(weight) => weight > 0.0 && weight <= 1.0,
            Weight::TimeConstant(time) => time > 0,
        };
        if !matches!(
            (self.min, self.max),
            (Limit::Packets(_), Limit::Packets(_))
                | (Limit::Bytes(_), Limit::Bytes(_))
                | (Limit::Time(_), Limit::Time(_))
        ) {
            Some("both thresholds of RED must be in packets, in bytes or in time")
        } else if level(self.min) == 0.0 || level(self.min) >= level(self.max) {
            Some("RED's minimum must be above 0 and below its maximum")
        } else if !(0.0..=1.0).contains(&self.max_p) {
            Some("RED's max_p must be a probability in 0..=1")
        } else if !weight {
            Some("RED's weight must be in 0..=1 and not 0, its time constant not 0")
        } else {
            None
        }
    }
}

/// A threshold as a number, in its unit.
fn level(limit: Limit) -> f64 {
    match limit {
        Limit::Unlimited => f64::INFINITY,
        Limit::Packets(packets) => f64::from(packets),
        Limit::Bytes(bytes) => bytes as f64,
        Limit::Time(time) => time as f64,
    }
}

/// What RED knows of the queue a packet meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub now: Nanos,
    /// Bytes of the packet.
    pub size: u32,
    /// Largest packet of the link.
    pub mtu: u32,
    /// The link's mean rate in bit/s.
    pub rate: f64,
    /// End of the last transmission.
    pub busy_until: Nanos,
    /// Packets and bytes that wait.
    pub packets: usize,
    pub bytes: u64,
}

/// RED's state on one link.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: Red,
    average: f64,
    /// Packets let through since the last drop; where bytes count, in MTUs.
    count: f64,
    last_arrival: Nanos,
    rng: Xoshiro256PlusPlus,
}

impl State {
    pub fn new(config: Red, rng: Xoshiro256PlusPlus) -> State {
        State { config, average: 0.0, count: 0.0, last_arrival: 0, rng }
    }

    /// Judges a packet that enters and would `wait` so long.
    pub fn judge(&mut self, arrival: &Arrival, wait: impl FnOnce() -> Nanos) -> Verdict {
        self.measure(arrival, wait);
        let (min, max) = (level(self.config.min), level(self.config.max));
        let max_p = self.config.max_p;
        if self.average < min {
            self.count = 0.0;
            return Verdict::Pass;
        }
        let p = if self.average < max {
            max_p * (self.average - min) / (max - min)
        } else if self.config.gentle && self.average < 2.0 * max {
            max_p + (1.0 - max_p) * (self.average - max) / max
        } else {
            self.count = 0.0;
            return Verdict::Drop;
        };
        let share = match self.config.min {
            Limit::Bytes(_) => f64::from(arrival.size) / f64::from(arrival.mtu),
            _ => 1.0,
        };
        // p / (1 - count p): the gap to the next drop is uniform in 1..=1/p (section 8 of the
        // paper).
        let left = 1.0 - self.count * p;
        let chance = rng::uniform_f64(&mut self.rng);
        if left <= p || chance * left < p * share {
            self.count = 0.0;
            Verdict::Signal
        } else {
            self.count += share;
            Verdict::Pass
        }
    }

    fn measure(&mut self, arrival: &Arrival, wait: impl FnOnce() -> Nanos) {
        let mtus_per_ns = arrival.rate / (8.0 * f64::from(arrival.mtu) * SECOND as f64);
        let weight = match self.config.weight {
            Weight::Fixed(weight) => weight,
            Weight::TimeConstant(time) => -libm::expm1(-1.0 / (mtus_per_ns * time as f64)),
        };
        let queue = match self.config.min {
            Limit::Bytes(_) => arrival.bytes as f64,
            Limit::Time(_) => wait() as f64,
            _ => arrival.packets as f64,
        };
        // Small packets that a busy link could have sent since it is idle. A drop ends no idle
        // time, so it must not be counted twice.
        let idle_since = arrival.busy_until.max(self.last_arrival);
        let missed = arrival.now.saturating_sub(idle_since) as f64 * mtus_per_ns;
        self.last_arrival = arrival.now;
        if arrival.packets == 0 {
            self.average *= libm::pow(1.0 - weight, missed);
        }
        self.average += weight * (queue - self.average);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a packet of this size makes of a queue that holds so many MTUs, and is its own average,
    /// when `count` packets have passed.
    fn judged(unit: fn(u32) -> Limit, count: f64, packets: u32, size: u32) -> (Verdict, f64) {
        let (min, max, weight) = (unit(5), unit(15), Weight::Fixed(1.0));
        let red = Red { min, max, weight, max_p: 0.02, ..Red::default() };
        let mut state = State { count, ..State::new(red, rng::stream(1, 0)) };
        let arrival = Arrival {
            now: 0,
            size,
            mtu: 1500,
            rate: 12e6,
            busy_until: 0,
            packets: packets as usize,
            bytes: u64::from(packets) * 1500,
        };
        (state.judge(&arrival, || 0), state.count)
    }

    /// p is 0.01 at 10 packets, so the 100th is dropped for certain.
    #[test]
    fn the_count_goes_from_drop_to_drop_and_begins_anew_below_the_minimum() {
        let judged = |count, packets| judged(Limit::Packets, count, packets, 1500);
        assert_eq!(judged(7.0, 10), (Verdict::Pass, 8.0));
        assert_eq!(judged(99.0, 10), (Verdict::Signal, 0.0));
        assert_eq!(judged(7.0, 4), (Verdict::Pass, 0.0));
        assert_eq!(judged(7.0, 30), (Verdict::Drop, 0.0));
    }

    #[test]
    fn where_bytes_count_the_count_is_of_bytes() {
        let judged = |count, size| judged(|n| Limit::Bytes(u64::from(n) * 1500), count, 10, size);
        assert_eq!(judged(7.0, 750), (Verdict::Pass, 7.5));
        assert_eq!(judged(99.5, 15), (Verdict::Signal, 0.0));
    }
}
