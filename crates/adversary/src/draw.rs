//! Random draws. The same stream gives the same draws on any machine.

use narrows_net::rng::{self, Xoshiro256PlusPlus};

/// A stream of random numbers.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The stream `n` of a seed.
    pub fn new(seed: u64, n: u64) -> Draw {
        Draw(rng::stream(seed, n))
    }

    /// One of `0..n`; of none, 0.
    pub fn below(&mut self, n: usize) -> usize {
        rng::below(&mut self.0, n.max(1) as u64) as usize
    }

    /// Is it one of so many percent?
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// From `low` to `high`, each factor as likely as the same factor elsewhere.
    pub fn log(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, rng::uniform_f64(&mut self.0))
    }

    /// The same, a whole number.
    pub fn log_int(&mut self, low: u32, high: u32) -> u32 {
        libm::round(self.log(f64::from(low), f64::from(high))) as u32
    }

    /// One of some, which are not none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
