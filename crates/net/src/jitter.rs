//! Random delay of packets besides the propagation.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Delays, Nanos, rng};

/// How the jitter of a link varies from packet to packet, between 0 and [`crate::LinkConfig::jitter`].
/// The default is uniform, each packet alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variation {
    /// The distribution of each.
    pub distribution: Distribution,
    /// How alike neighbours are, in 0..1: the correlation of the normal numbers that the delays are made of
    /// (an autoregressive process of order 1). It leaves their distribution as it is, where netem's
    /// does not.
    pub correlation: f64,
}

/// The distribution of a jitter. What is beyond its bounds is at the bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Uniform,
    /// Normal.
    Normal {
        /// Its mean, ns.
        mean: Nanos,
        /// Its standard deviation, ns.
        deviation: Nanos,
    },
    /// Pareto's, from 0 on (Lomax).
    Pareto {
        /// Its mean without the bound, ns.
        mean: Nanos,
        /// Its tail index, above 1: a smaller one has more long delays. netem's table has 3.
        shape: f64,
    },
    /// Not drawn, but as they were measured over time.
    Recorded(Arc<Delays>),
}

impl Variation {
    /// What is out of range.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self.distribution {
            _ if !(0.0..1.0).contains(&self.correlation) => {
                Some("a jitter's correlation must be in 0..1")
            }
            Distribution::Pareto { shape, .. } if !(shape > 1.0 && shape <= 100.0) => {
                Some("a Pareto distribution's shape must be above 1 and at most 100")
            }
            Distribution::Recorded(_) if self.correlation != 0.0 => {
                Some("recorded delays are correlated as they are")
            }
            _ => None,
        }
    }
}

/// Draws the jitter of packets.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    max: Nanos,
    /// None of the default.
    variation: Option<Variation>,
    rng: Xoshiro256PlusPlus,
    /// The normal number of the last packet.
    last: Option<f64>,
}

impl Jitter {
    pub fn new(max: Nanos, variation: Variation, rng: Xoshiro256PlusPlus) -> Jitter {
        let variation = Some(variation).filter(|variation| *variation != Variation::default());
        Jitter { max, variation, rng, last: None }
    }

    /// Of a packet whose transmission ends at `now`.
    pub fn draw(&mut self, now: Nanos) -> Nanos {
        let Some(Variation { distribution, correlation }) = &self.variation else {
            return rng::below(&mut self.rng, self.max + 1);
        };
        let max = self.max as f64;
        let mut normal = || normal(&mut self.rng, &mut self.last, *correlation);
        let delay = match *distribution {
            Distribution::Uniform => max * upper_tail(-normal()),
            Distribution::Normal { mean, deviation } => mean as f64 + deviation as f64 * normal(),
            Distribution::Pareto { mean, shape } => {
                let ratio = libm::pow(upper_tail(normal()), -1.0 / shape);
                mean as f64 * (shape - 1.0) * (ratio - 1.0)
            }
            Distribution::Recorded(ref delays) => delays.at(now) as f64,
        };
        delay.clamp(0.0, max) as Nanos
    }
}

/// A normal number, correlated with the `last`.
fn normal(rng: &mut Xoshiro256PlusPlus, last: &mut Option<f64>, rho: f64) -> f64 {
    // Box and Muller, 1958; 1 - u is never 0.
    let [u, v] = [0; 2].map(|_| rng::uniform_f64(rng));
    let fresh = libm::sqrt(-2.0 * libm::log(1.0 - u)) * libm::cos(std::f64::consts::TAU * v);
    let normal = last.map_or(fresh, |last| rho * last + libm::sqrt(1.0 - rho * rho) * fresh);
    *last = Some(normal);
    normal
}

/// The probability that a normal number is above `z`.
fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}
