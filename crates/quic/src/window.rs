//! Windows: bytes for noq, packets for laws.

use narrows_laws::raw::{ONE_PACKET, SSTHRESH_MAX};

/// RFC 9002, section 7.2: packets that a window has at least.
const MINIMUM: u64 = 2;

/// The same: bytes that the first window has at most, if it has more than [`MINIMUM`] packets.
const INITIAL_BYTES: u64 = 14_720;

/// A path's window in packets and the fraction of one that it has earned, and what they are in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Bytes of a full datagram when the law counted its packets.
    pub mss: u64,
    /// Packets.
    pub cwnd: u32,
    /// Slow start threshold, packets.
    pub ssthresh: u32,
    /// Earned but not yet grown by, in 2^-40 packet; may be negative.
    credit: i64,
    /// What was left over when packets became larger or smaller, bytes; less than a packet.
    spare: u64,
}

impl Window {
    /// Before a law has set one: RFC 9002, section 7.2.
    pub fn initial(mtu: u16) -> Window {
        let mss = u64::from(mtu).max(1);
        let cwnd = (INITIAL_BYTES / mss).clamp(MINIMUM, 10) as u32;
        Window { mss, cwnd, ssthresh: SSTHRESH_MAX, credit: 0, spare: 0 }
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        let part = i128::from(self.credit) * i128::from(self.mss) / i128::from(ONE_PACKET);
        let bytes = (u64::from(self.cwnd) * self.mss).saturating_add_signed(part as i64);
        (bytes + self.spare).max(MINIMUM * self.mss)
    }

    /// Slow start threshold in bytes, once there is one.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        (self.ssthresh < SSTHRESH_MAX).then(|| u64::from(self.ssthresh) * self.mss)
    }

    /// A law has set it.
    pub fn set(&mut self, cwnd: u32, ssthresh: u32, credit: i64) {
        if cwnd < self.cwnd {
            self.spare = 0;
        }
        let cwnd = cwnd.max(MINIMUM as u32);
        (self.cwnd, self.ssthresh, self.credit) = (cwnd, ssthresh, credit);
    }

    /// Packets have another size from now on: the same bytes are another number of them.
    pub fn resize(&mut self, mtu: u16) {
        let (bytes, before) = (self.bytes(), self.mss);
        self.mss = u64::from(mtu).max(1);
        self.cwnd = u32::try_from(bytes / self.mss).unwrap_or(u32::MAX).max(MINIMUM as u32);
        self.spare = bytes.saturating_sub(u64::from(self.cwnd) * self.mss);
        self.credit = 0;
        if self.ssthresh < SSTHRESH_MAX {
            let packets = (u64::from(self.ssthresh) * before).div_ceil(self.mss);
            self.ssthresh = packets.clamp(MINIMUM, u64::from(SSTHRESH_MAX) - 1) as u32;
        }
    }
}

/// Bytes that become packets, whole ones as they fill; the rest waits for more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packets(u64);

impl Packets {
    /// How many packets are full with `bytes` more.
    pub fn add(&mut self, bytes: u64, mss: u64) -> u32 {
        self.0 = self.0.saturating_add(bytes);
        let packets = self.0 / mss;
        self.0 %= mss;
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_has_ten_packets_up_to_14720_bytes_and_two_of_any_size() {
        let initial = |mtu| (Window::initial(mtu).cwnd, Window::initial(mtu).bytes());
        assert_eq!(initial(1200), (10, 12_000));
        assert_eq!(initial(1472), (10, 14_720));
        assert_eq!(initial(1500), (9, 13_500));
        assert_eq!(initial(9000), (2, 18_000));
        assert_eq!(initial(u16::MAX), (2, 131_070));
    }

    #[test]
    fn a_fraction_of_a_packet_is_bytes_of_the_window() {
        let mut window = Window::initial(1200);
        window.set(10, SSTHRESH_MAX, ONE_PACKET / 4);
        assert_eq!(window.bytes(), 12_300);
        window.set(10, SSTHRESH_MAX, -ONE_PACKET / 2);
        assert_eq!(window.bytes(), 11_400);
        assert_eq!(window.ssthresh_bytes(), None);
    }

    #[test]
    fn a_window_has_two_packets_at_least() {
        let mut window = Window::initial(1200);
        window.set(1, 5, 0);
        assert_eq!((window.cwnd, window.bytes()), (2, 2400));
    }

    #[test]
    fn larger_packets_leave_the_bytes_of_window_and_threshold() {
        let mut window = Window::initial(1200);
        window.set(101, 50, 0);
        window.resize(1452);
        assert_eq!((window.cwnd, window.bytes()), (83, 121_200));
        assert_eq!(window.ssthresh, 42); // 60,000 bytes, rounded up
        // The left over bytes stay while it grows, and go when it is cut.
        window.set(84, 42, 0);
        assert_eq!(window.bytes(), 121_200 + 1452);
        window.set(42, 42, 0);
        assert_eq!(window.bytes(), 42 * 1452);
    }

    #[test]
    fn small_datagrams_make_packets_together() {
        let mut packets = Packets::default();
        let full: u32 = (0..100).map(|_| packets.add(130, 1200)).sum();
        assert_eq!((full, packets.0), (10, 1000));
    }
}
