//! Was the congestion window the limit? As Linux's tcp_cwnd_validate() and tcp_is_cwnd_limited():
//! a window that the application does not fill must not grow (RFC 7661 has the problem); and one
//! that was not used at all must shrink. One that is used in part stays: in Linux, too,
//! tcp_cwnd_application_limited() has nothing to do where acknowledgements come, as each of them
//! lets tcp_cong_avoid() renew the time since when it counts.

use narrows_net::Nanos;

/// RFC 6928, section 2: also the window that idleness leaves.
const INITIAL_WINDOW: u32 = 10;

/// How much of the congestion window has been used.
#[derive(Debug, Default)]
pub(crate) struct WindowUse {
    limited: bool,
    /// Most packets out in this window's worth of data, unless the window was the limit.
    max_packets_out: u32,
    /// The window's worth ends when this byte is acknowledged.
    window_end: u64,
}

impl WindowUse {
    /// To be called after each attempt to send that sent something or found the window full.
    pub fn validate(&mut self, full: bool, packets_out: u32, una: u64, nxt: u64) {
        // The strongest signal of each window's worth: full once is limited.
        if una >= self.window_end || full || (!self.limited && packets_out > self.max_packets_out) {
            self.limited = full;
            self.max_packets_out = packets_out;
            self.window_end = nxt;
        }
    }

    /// May the window grow? In slow start to twice what was used.
    pub fn is_limited(&self, cwnd: u32, ssthresh: u32) -> bool {
        self.limited || (cwnd < ssthresh && cwnd < 2 * self.max_packets_out)
    }
}

/// The window to start again with after an idle time: half of it for each timeout that has passed,
/// but not less than the initial window (RFC 2861, section 3.1; Linux: tcp_cwnd_restart()).
pub(crate) fn after_idle(cwnd: u32, idle: Nanos, rto: Nanos) -> u32 {
    let timeouts = (idle.saturating_sub(1) / rto).min(31);
    (cwnd >> timeouts).max(cwnd.min(INITIAL_WINDOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_halves_the_window_with_each_timeout() {
        let windows = [200, 201, 401, 601, 801, u64::MAX].map(|idle| after_idle(100, idle, 200));
        assert_eq!(windows, [100, 50, 25, 12, 10, 10]);
        assert_eq!(after_idle(4, 10_000, 200), 4);
    }

    #[test]
    fn slow_start_grows_to_twice_what_the_application_uses_and_then_stays() {
        let mut window = WindowUse::default();
        window.validate(false, 6, 0, 6000);
        assert!(window.is_limited(11, u32::MAX));
        assert!(!window.is_limited(12, u32::MAX));
        // In congestion avoidance a window that is not filled stays.
        assert!(!window.is_limited(11, 8));
    }

    #[test]
    fn full_once_counts_for_the_whole_window() {
        let mut window = WindowUse::default();
        window.validate(true, 10, 0, 10_000);
        window.validate(false, 9, 5_000, 14_000);
        assert!(window.is_limited(10, 5));
        window.validate(false, 3, 10_000, 15_000);
        assert!(!window.is_limited(10, 5));
    }
}
