//! Packets that arrive later than those sent after them.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Nanos, rng};

/// A share of the packets propagates longer and is overtaken by what is sent meanwhile, as with
/// two routes of different length behind a link. The others keep their order, and so do those that
/// take the longer way among themselves.
///
/// netem's `reorder` is the complement: there the share is sent without the delay of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the packets, each alone, in 0..=1.
    pub share: f64,
    /// Their additional delay, ns.
    pub delay: Nanos,
}

/// Which packets are delayed.
#[derive(Clone, Debug)]
pub(crate) struct Detour {
    config: Reorder,
    rng: Xoshiro256PlusPlus,
}

impl Detour {
    pub fn new(config: Reorder, rng: Xoshiro256PlusPlus) -> Detour {
        Detour { config, rng }
    }

    /// The additional delay of the next packet, if it takes the detour.
    pub fn draw(&mut self) -> Option<Nanos> {
        (rng::uniform_f64(&mut self.rng) < self.config.share).then_some(self.config.delay)
    }
}
