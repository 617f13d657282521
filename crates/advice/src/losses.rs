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
    /// Packets sent.
    pub sent: u64,
    /// Those lost.
    pub lost: u64,
    /// Mean of the round-trip time, µs.
    pub mean_rtt_us: f64,
    /// The smallest one, µs.
    pub min_rtt_us: f64,
}

impl Seen {
    /// The share of packets lost with its 95 % interval: low, found, high.
    pub fn share(&self) -> [f64; 3] {
        share(self.lost, self.sent.max(self.lost))
    }

    /// Is it held back by losses, as far as is sure?
    pub fn is_held_back(&self) -> bool {
        self.min_rtt_us > 0.0
            && self.mean_rtt_us < SMALL * self.min_rtt_us
            && self.share()[0] >= SHARE
    }
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

    const RADIO: Seen = Seen { sent: 10_000, lost: 30, mean_rtt_us: 52e3, min_rtt_us: 50e3 };

    #[test]
    fn losses_without_a_queue_hold_a_path_back() {
        assert!(RADIO.is_held_back());
        assert!(!Seen { mean_rtt_us: 80e3, ..RADIO }.is_held_back(), "a queue overflows");
        assert!(!Seen { lost: 0, ..RADIO }.is_held_back());
        assert!(!Seen { min_rtt_us: 0.0, mean_rtt_us: 0.0, ..RADIO }.is_held_back());
    }

    #[test]
    fn few_packets_are_not_enough_to_be_sure() {
        let [low, found, high] = RADIO.share();
        assert_eq!(found, 0.003);
        // By the exact binomial: 0.00203 to 0.00428.
        assert!((low - 0.0021).abs() < 1e-4 && (high - 0.0043).abs() < 1e-4, "{low} {high}");
        let one = Seen { sent: 10_000, lost: 1, ..RADIO };
        assert!(one.share()[0] > 0.0 && !one.is_held_back());
        assert_eq!(Seen::default().share()[0], 0.0);
    }
}
