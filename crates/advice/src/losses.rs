//! Which path's losses hold a window law back.
//!
//! At a loss CUBIC goes on with 0.7 of its window (RFC 9438, section 4.6), Reno with half of it. Where a queue
//! overflows that holds k bandwidth-delay products, CUBIC's window is between 0.7 (1 + k) and 1 + k of them, and
//! the mean, near its plateau, about 0.9 (1 + k): so is the mean round-trip time over the smallest one, if that
//! is more than 1. With k less than 0.43 the link is idle after each loss, as 0.7 (1 + k) is less than 1; then
//! the quotient is less than 1.29. Losses that no queue makes, as of a radio link, come at any window, and the
//! quotient is 1. So in both cases, and only then, losses are what holds a path back whose quotient is less than
//! `SMALL`. A model law is not held back by losses of less than some percent.
//!
//! Jitter makes the quotient larger, so that on a short path with much of it losses are overlooked.

/// Mean round-trip time over the smallest.
const SMALL: f64 = 1.25;
/// A window law has on average 1.22 / sqrt(share) packets (Mathis et al., CCR 27(3), 1997), with this share of
/// losses 122: all that a path of 29 Mbit/s and 50 ms needs. Fewer losses hold back only faster paths.
const SHARE: f64 = 0.0001;

/// What was seen of a path under a window law.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// The share of packets lost with its 95 % interval: low, found, high; none where none was sent.
    pub lost: Option<[f64; 3]>,
    /// Mean of the round-trip time, µs.
    pub mean_rtt_us: f64,
    /// The smallest one, µs.
    pub min_rtt_us: f64,
}

impl Seen {
    /// The least share of losses, by its interval.
    pub(crate) fn least(&self) -> f64 {
        self.lost.map_or(0.0, |[low, ..]| low)
    }

    /// Is it held back by losses, as far as is sure?
    pub fn is_held_back(&self) -> bool {
        self.min_rtt_us > 0.0 && self.mean_rtt_us < SMALL * self.min_rtt_us && self.least() >= SHARE
    }
}

/// The share of packets lost, of so many sent and lost, in all and in parts of the time.
///
/// Its interval is the wider of two: of losses that are independent of each other, and of the parts in which something
/// was sent, as losses come in bursts (the variance of a ratio: Cochran, Sampling Techniques, 1977, section 6.4).
pub(crate) fn lost([sent, lost]: [u64; 2], parts: &[[u64; 2]]) -> Option<[f64; 3]> {
    let [low, found, high] = share(lost, sent.max(lost));
    let parts: Vec<_> = parts.iter().filter(|[sent, _]| *sent > 0).collect();
    let all: u64 = parts.iter().map(|[sent, _]| sent).sum();
    let mean = all as f64 / parts.len() as f64;
    let of = |&&[sent, lost]: &&[u64; 2]| (lost as f64 - found * sent as f64) / mean;
    let half = narrows_stats::ci95(&parts.iter().map(of).collect::<Vec<_>>());
    // One part says nothing of bursts.
    let [least, most] = half.map_or([0.0, 1.0], |half| [found - half, found + half]);
    (sent > 0).then(|| [low.min(least).max(0.0), found, high.max(most)])
}

/// `some` of `all` as a share, with its 95 % interval: low, found, high (Wilson's, JASA 22, 1927).
pub(crate) fn share(some: u64, all: u64) -> [f64; 3] {
    const Z: f64 = 1.96;
    if all == 0 {
        return [0.0, 0.0, 1.0];
    }
    let n = all as f64;
    let found = some as f64 / n;
    let middle = (found + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (found * (1.0 - found) / n + Z * Z / (4.0 * n * n)).sqrt();
    [(middle - half).max(0.0), found, middle + half]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3,000 packets in each of ten parts.
    fn seen(lost_in: [u64; 10], mean_rtt_us: f64) -> Seen {
        let parts = lost_in.map(|lost| [3000, lost]);
        let lost = lost([30_000, lost_in.iter().sum()], &parts);
        Seen { lost, mean_rtt_us, min_rtt_us: 50e3 }
    }

    const RADIO: [u64; 10] = [9, 10, 8, 7, 12, 9, 6, 11, 10, 8];

    #[test]
    fn losses_without_a_queue_hold_a_path_back() {
        assert!(seen(RADIO, 52e3).is_held_back());
        assert!(!seen(RADIO, 80e3).is_held_back(), "a queue overflows");
        assert!(!seen([0; 10], 52e3).is_held_back());
        assert!(!Seen { min_rtt_us: 0.0, ..seen(RADIO, 0.0) }.is_held_back());
        assert!(!Seen { lost: None, ..seen(RADIO, 52e3) }.is_held_back());
    }

    #[test]
    fn losses_that_come_in_bursts_are_not_known_by_a_few_of_them() {
        let some = |bursts: usize| std::array::from_fn(|at| 90 * u64::from(at < bursts));
        let sure: Vec<bool> = (1..=5).map(|many| seen(some(many), 52e3).is_held_back()).collect();
        // By Student's t with 9 degrees, 2.262: of k in ten parts the half-width is 2.262 sqrt((10/k - 1) / 9) of the
        // mean, which is less than that from 4 on.
        assert_eq!(sure, [false, false, false, true, true]);
        let [low, found, high] = seen(some(4), 52e3).lost.unwrap();
        assert!((found - 0.012).abs() < 1e-9);
        let half = 0.012 * 2.262 * (1.5_f64 / 9.0).sqrt();
        assert!((low - (0.012 - half)).abs() < 1e-5 && (high - (0.012 + half)).abs() < 1e-5);
    }

    #[test]
    fn few_packets_are_not_enough_to_be_sure() {
        let [low, found, high] = share(30, 10_000);
        assert_eq!(found, 0.003);
        // By the exact binomial: 0.00203 to 0.00428.
        assert!((low - 0.0021).abs() < 1e-4 && (high - 0.0043).abs() < 1e-4, "{low} {high}");
        let one = lost([10_000, 1], &[[1000, 0]; 10]).unwrap();
        assert!(one[0] > 0.0 && one[0] < SHARE, "{one:?}");
        assert_eq!(lost([0, 0], &[]), None);
        assert_eq!(lost([10, 0], &[]), Some([0.0, 0.0, 1.0]));
        assert_eq!(lost([3000, 90], &[[0, 0], [3000, 90]]), Some([0.0, 0.03, 1.0]), "one burst");
    }
}
