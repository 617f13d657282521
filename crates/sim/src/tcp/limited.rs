//! Was the congestion window the limit? As Linux's tcp_cwnd_validate() and tcp_is_cwnd_limited():
//! a window that the application does not fill must not grow (RFC 7661 has the problem).

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
    /// To be told after each attempt to send that sent something or found the window full.
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

#[cfg(test)]
mod tests {
    use super::*;

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
