//! Random streams: each user of randomness has its own, so that drawing more in one place changes
//! nothing elsewhere.

use rand_core::SeedableRng;
use rand_xoshiro::SplitMix64;

pub use rand_core::RngCore;
pub use rand_xoshiro::Xoshiro256PlusPlus;

/// Stream numbers from here on belong to the links of a [`crate::Network`]; other users of the same
/// seed number theirs from 0.
pub const LINK_STREAMS: u64 = 1 << 63;

/// What a link draws random numbers for. The numbers of the streams follow from the order here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Loss,
    Jitter,
    Reorder,
    Queue,
    Access,
}

/// The random stream of one link for one purpose.
pub(crate) fn link_stream(seed: u64, link: u32, purpose: Purpose) -> Xoshiro256PlusPlus {
    stream(seed, LINK_STREAMS | (purpose as u64) << 32 | u64::from(link))
}

/// The random stream `n` of a run with the given seed.
///
/// Seed and number pass through SplitMix64, as its authors advise for seeding xoshiro, so that
/// neighbouring seeds and numbers give unrelated streams.
pub fn stream(seed: u64, n: u64) -> Xoshiro256PlusPlus {
    let base = SplitMix64::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(base ^ n)
}

/// A uniform number in [0, 1), a multiple of 2^-53.
pub fn uniform_f64(rng: &mut impl RngCore) -> f64 {
    const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
    (rng.next_u64() >> 11) as f64 * SCALE
}

/// A uniform integer in 0..n, without bias.
///
/// Lemire, "Fast random integer generation in an interval", ACM TOMACS 2019.
///
/// # Panics
/// If `n` is 0.
pub fn below(rng: &mut impl RngCore, n: u64) -> u64 {
    assert!(n > 0, "an empty range");
    let mut product = u128::from(rng.next_u64()) * u128::from(n);
    if (product as u64) < n {
        let threshold = n.wrapping_neg() % n;
        while (product as u64) < threshold {
            product = u128::from(rng.next_u64()) * u128::from(n);
        }
    }
    (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_function_of_seed_and_number() {
        let first = |seed, n| stream(seed, n).next_u64();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
        assert_ne!(first(7, 0), first(8, 0));
        assert_ne!(first(0, 1), first(1, 0));
    }

    #[test]
    fn a_link_has_a_stream_for_each_purpose() {
        use Purpose::{Access, Jitter, Loss, Queue, Reorder};
        let mut first: Vec<u64> = [Loss, Jitter, Reorder, Queue, Access]
            .into_iter()
            .flat_map(|purpose| (0..10).map(move |link| link_stream(1, link, purpose).next_u64()))
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 50);
    }

    #[test]
    fn below_is_uniform_over_its_range() {
        let mut rng = stream(1, 0);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut rng, 7) as usize] += 1;
        }
        // Each count is binomial with mean 10,000 and deviation 93.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 500), "{counts:?}");
    }

    #[test]
    fn uniform_fills_the_unit_interval() {
        let mut rng = stream(1, 0);
        let values: Vec<f64> = (0..10_000).map(|_| uniform_f64(&mut rng)).collect();
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        let mean = values.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.015, "{mean}");
    }
}
