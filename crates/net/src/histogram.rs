//! A log-linear histogram: quantiles of any spread of values with bounded relative error.

/// log2 of the number of buckets per factor of two.
const PRECISION: u32 = 5;

/// Values below this have a bucket each.
const LINEAR: u64 = 1 << (PRECISION + 1);

/// Counts values of any size in buckets whose width is at most 1/32 of their lower end.
///
/// Count, mean and maximum are exact; quantiles are off by at most 1/32 of their value. Memory
/// grows with the logarithm of the largest value (3.5 kB at one second in ns). A bucket counts to
/// 2^32 - 1 and no further.
// Each link has one: so it is small, and what is rarely there is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// None if no quantile will be asked for.
    buckets: Option<Box<Buckets>>,
    count: u64,
    /// Lower and upper half.
    sum: [u64; 2],
    max: u64,
}

/// How many values each bucket has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Buckets(Vec<u32>);

impl Buckets {
    fn count(&mut self, value: u64) {
        let Buckets(counts) = self;
        let bucket = bucket(value);
        if bucket >= counts.len() {
            // A whole octave, and no room for more: there are many histograms.
            let octaves = (bucket + 1).next_multiple_of(1 << PRECISION);
            counts.reserve_exact(octaves - counts.len());
            counts.resize(octaves, 0);
        }
        counts[bucket] = counts[bucket].saturating_add(1);
    }
}

/// The bucket of a value: 0..64 map to themselves, above that each octave has 32 buckets.
fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION;
    // The value's leading 6 bits are in 32..64; each octave starts 32 buckets further.
    ((shift << PRECISION) as u64 + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return bucket;
    }
    let shift = (bucket >> PRECISION) - 1;
    let leading = bucket - (shift << PRECISION);
    (leading << shift) + ((1 << shift) - 1)
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: Some(Box::default()), ..Histogram::without_quantiles() }
    }
}

impl Histogram {
    /// One that knows count, mean and maximum only, and takes no memory beyond its own size.
    pub fn without_quantiles() -> Self {
        Histogram { buckets: None, count: 0, sum: [0; 2], max: 0 }
    }

    /// An empty one of the same kind.
    pub(crate) fn emptied(&self) -> Self {
        match self.buckets {
            Some(_) => Histogram::default(),
            None => Histogram::without_quantiles(),
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if let Some(buckets) = &mut self.buckets {
            buckets.count(value);
        }
        self.count += 1;
        let [low, high] = &mut self.sum;
        let (sum, carry) = low.overflowing_add(value);
        (*low, *high) = (sum, *high + u64::from(carry));
        self.max = self.max.max(value);
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, rounded down; 0 if nothing was counted.
    pub fn mean(&self) -> u64 {
        let [low, high] = self.sum.map(u128::from);
        (high << 64 | low).checked_div(self.count.into()).unwrap_or(0) as u64
    }

    /// The largest value; 0 if nothing was counted.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that a fraction `q` of all values does not exceed, e.g. 0.95 for the 95th
    /// percentile (nearest rank); too large by at most 1/32. 0 if nothing was counted.
    ///
    /// # Panics
    /// If it was made [without quantiles](Histogram::without_quantiles).
    pub fn quantile(&self, q: f64) -> u64 {
        let Buckets(counts) = self.buckets.as_deref().expect("quantiles were not asked for");
        let rank = (libm::ceil(q * self.count as f64) as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return upper_end(bucket).min(self.max);
            }
        }
        // The rank is among what a full bucket did not count, or there is nothing.
        self.max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_tile_all_integers() {
        for b in 0..bucket(u64::MAX) {
            assert_eq!(bucket(upper_end(b)), b);
            assert_eq!(bucket(upper_end(b) + 1), b + 1);
        }
        assert_eq!(upper_end(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        let empty = Histogram::default();
        assert_eq!((empty.mean(), empty.quantile(0.5), empty.max()), (0, 0, 0));
    }

    #[test]
    fn without_quantiles_the_rest_is_known() {
        let mut histogram = Histogram::without_quantiles();
        [1, 2, 6].into_iter().for_each(|value| histogram.record(value));
        assert_eq!((histogram.count(), histogram.mean(), histogram.max()), (3, 3, 6));
        assert_eq!(histogram.emptied(), Histogram::without_quantiles());
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values_within_a_32nd(
            mut values in prop::collection::vec((0_u32..63).prop_flat_map(|b| 0..(1_u64 << b) + 1), 1..200),
            q in 0.0..=1.0,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            let rank = (libm::ceil(q * values.len() as f64) as usize).max(1);
            let exact = values[rank - 1];
            let measured = histogram.quantile(q);
            prop_assert!(measured >= exact && measured - exact <= exact / 32, "{measured} for {exact}");
            prop_assert_eq!(histogram.max(), *values.last().unwrap());
            let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
            prop_assert_eq!(u128::from(histogram.mean()), sum / values.len() as u128);
        }
    }
}
