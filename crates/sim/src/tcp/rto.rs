//! RTT estimator and retransmission timeout, as Linux's tcp_rtt_estimator().

use narrows_net::Nanos;

use super::min_rtt::MinRtt;

const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;

/// Timeout of a SYN. RFC 6298, section 2.1.
pub(crate) const RTO_INITIAL: Nanos = 1_000 * MS;
/// RFC 6298, section 2.5, allows a bound of 60 s or more; Linux has TCP_RTO_MAX.
pub(crate) const RTO_MAX: Nanos = 120_000 * MS;
/// Floor of the variance term (not of the timeout): Linux's TCP_RTO_MIN. RFC 6298, section 2.4,
/// asks for a timeout of 1 s at least; Linux departs from it.
pub(crate) const RTO_MIN: Nanos = 200 * MS;
const RTTVAR_MIN_US: u64 = RTO_MIN / US;

/// Smoothed RTT and timeout of a subflow.
#[derive(Debug, Default)]
pub(crate) struct RttEstimator {
    /// In 1/8 us; 0 before the first sample.
    srtt8_us: u64,
    /// Mean deviation, in 1/4 us.
    mdev4_us: u64,
    /// Largest mean deviation in this round trip, in 1/4 us.
    mdev_max4_us: u64,
    /// Four deviations: the variance term of the timeout, us.
    rttvar_us: u64,
    /// The round trip of `mdev_max4_us` ends when this byte is acknowledged.
    round_end: u64,
    min_rtt: MinRtt,
    backoff: u32,
}

impl RttEstimator {
    /// Takes a sample at an acknowledgement that makes `una` the first unacknowledged byte, with
    /// `nxt` the next to send. RFC 6298, sections 2.2 and 2.3; two departures, both Linux's: the
    /// variance shrinks slowly when the RTT falls, and once per round trip at most.
    pub fn sample(&mut self, rtt: Nanos, una: u64, nxt: u64) {
        let m = (rtt / US).max(1);
        if self.srtt8_us == 0 {
            self.srtt8_us = m << 3;
            self.mdev4_us = m << 1;
            self.rttvar_us = self.mdev4_us.max(RTTVAR_MIN_US);
            self.mdev_max4_us = self.rttvar_us;
            self.round_end = nxt;
            return;
        }
        let error = m as i64 - (self.srtt8_us >> 3) as i64;
        self.srtt8_us = (self.srtt8_us as i64 + error).max(1) as u64;
        let mut change = error.abs() - (self.mdev4_us >> 2) as i64;
        if error < 0 && change > 0 {
            // A falling RTT is no variance: RFC 6298 would take it for some.
            change >>= 3;
        }
        self.mdev4_us = (self.mdev4_us as i64 + change) as u64;
        if self.mdev4_us > self.mdev_max4_us {
            self.mdev_max4_us = self.mdev4_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max4_us);
        }
        if una > self.round_end {
            if self.mdev_max4_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max4_us) >> 2;
            }
            self.round_end = nxt;
            self.mdev_max4_us = RTTVAR_MIN_US;
        }
    }

    /// Tells the smallest RTT what the newest of several acknowledged segments saw.
    pub fn sample_min(&mut self, rtt: Nanos, now: Nanos) {
        self.min_rtt.sample(rtt, now);
    }

    /// Smallest RTT of five minutes, `Nanos::MAX` before the first sample.
    pub fn min_rtt(&self) -> Nanos {
        self.min_rtt.get()
    }

    /// Smoothed RTT in 1/8 us, 0 before the first sample.
    pub fn srtt8_us(&self) -> u64 {
        self.srtt8_us
    }

    /// Smoothed RTT, 0 before the first sample.
    pub fn srtt(&self) -> Nanos {
        self.srtt8_us * US / 8
    }

    /// The timeout: srtt plus four deviations, doubled by each expiry since the last sample.
    pub fn rto(&self) -> Nanos {
        let base = match self.srtt8_us {
            0 => RTO_INITIAL,
            srtt8 => ((srtt8 >> 3) + self.rttvar_us) * US,
        };
        base.saturating_mul(1 << self.backoff.min(20)).min(RTO_MAX)
    }

    /// The timer expired. RFC 6298, section 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Expiries since the last sample.
    pub fn expiries(&self) -> u32 {
        self.backoff
    }

    /// A sample of new data ends the backoff. RFC 6298, section 5.7.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_srtt_and_a_timeout_200_ms_above() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), 1_000 * MS);
        rtt.sample(20 * MS, 0, 0);
        assert_eq!(rtt.srtt(), 20 * MS);
        assert_eq!(rtt.rto(), 220 * MS);
    }

    #[test]
    fn a_steady_rtt_keeps_200_ms_and_a_jump_adds_its_deviation() {
        let mut rtt = RttEstimator::default();
        for round in 0..50 {
            rtt.sample(100 * MS, round + 1, round + 1);
        }
        assert_eq!(rtt.rto(), 300 * MS);
        rtt.sample(500 * MS, 60, 60);
        assert_eq!(rtt.srtt(), 150 * MS);
        // mdev 0 -> 400 ms: the variance term takes the largest deviation at once.
        assert!(rtt.rto() > 520 * MS, "{}", rtt.rto());
        // Later round trips forget it, a quarter each.
        for round in 100..200 {
            rtt.sample(100 * MS, round + 1, round + 1);
        }
        assert!((300 * MS..302 * MS).contains(&rtt.rto()), "{}", rtt.rto());
    }

    #[test]
    fn a_falling_rtt_is_no_variance() {
        let mut rtt = RttEstimator::default();
        for round in 0..50 {
            rtt.sample(1_000 * MS, round + 1, round + 1);
        }
        rtt.sample(200 * MS, 60, 60);
        assert_eq!(rtt.srtt(), 900 * MS);
        assert!((1_100 * MS..1_101 * MS).contains(&rtt.rto()), "{}", rtt.rto());
    }

    #[test]
    fn each_expiry_doubles_the_timeout_up_to_two_minutes() {
        let mut rtt = RttEstimator::default();
        rtt.sample(50 * MS, 0, 0);
        let rtos: Vec<_> = (0..12)
            .map(|_| {
                let rto = rtt.rto() / MS;
                rtt.back_off();
                rto
            })
            .collect();
        assert_eq!(rtos[..5], [250, 500, 1000, 2000, 4000]);
        assert_eq!(rtos[9..], [120_000; 3]);
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), 250 * MS);
    }
}
