//! Which segments carry PSH, as Linux's senders set it.
//!
//! Segments that leave together are one skb on their way to the link, which splits it: at most
//! tcp_tso_autosize() of them, and half of the window (tcp_cwnd_test()). Since Linux 5.5 (commit
//! 051ba67447de, "tcp: force a PSH flag on TSO packets") __tcp_transmit_skb() sets PSH on every
//! skb of two and more segments, and the split leaves it on the last of them. A segment that leaves
//! alone has it only at the end of what the application has written: tcp_push().

use narrows_net::Nanos;

use super::sender::Sender;

/// What lies behind a new segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behind {
    /// Bytes that may follow as far as the peer's window goes.
    pub ready: u64,
    /// Bytes written.
    pub written: u64,
}

#[cfg(test)]
impl Behind {
    /// Of a greedy source.
    pub const ENDLESS: Behind = Behind { ready: u64::MAX, written: u64::MAX };
}

/// The segments that leave as one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Burst {
    segments: u32,
    /// Of them have yet to leave.
    left: u32,
    at: Nanos,
}

impl Sender {
    /// Does the new segment that leaves now, with so much `behind` it, carry PSH?
    pub(super) fn pushes(&mut self, behind: Behind, now: Nanos) -> bool {
        if self.burst.left == 0 || self.burst.at != now {
            let room = self.cwnd.saturating_sub(self.board.in_flight());
            let ready = behind.ready.div_ceil(self.mss.into()).saturating_add(1);
            let most = u64::from(room.min(self.cwnd / 2)).min(ready) as u32;
            // No rate is so low that a burst is of less than two.
            let segments = if most > 2 { most.min(self.autosize()) } else { most.max(1) };
            self.burst = Burst { segments, left: segments, at: now };
        }
        self.burst.left -= 1;
        (self.burst.left == 0 && self.burst.segments > 1) || behind.written == 0
    }
}

#[cfg(test)]
mod tests {
    use narrows_net::{MILLISECOND, RouteId};
    use narrows_traffic::TcpConfig;

    use super::*;

    const MSS: u32 = 1000;

    /// A sender with this window, of which nothing is in flight.
    fn sender(cwnd: u32) -> Sender {
        let mut sender = Sender::new(0, RouteId(0), MSS, &TcpConfig::default());
        sender.cwnd = cwnd;
        sender.rtt.sample_min(20 * MILLISECOND, 0);
        sender.rtt.sample(20 * MILLISECOND, 0, 0);
        sender
    }

    /// Which of the segments carry PSH that leave at once, with `written` bytes to send, if the
    /// window of `cwnd` has room for `room` of them.
    fn pushes(cwnd: u32, room: u64, written: u64) -> Vec<bool> {
        let mut sender = sender(cwnd);
        for _ in room..cwnd.into() {
            sender.board.send_new(0, MSS, 0);
        }
        let push = |n: u64| {
            let left = written - (n + 1) * u64::from(MSS);
            let psh = sender.pushes(Behind { ready: left, written: left }, 1);
            sender.board.send_new(0, MSS, 1);
            psh
        };
        (0..room.min(written / u64::from(MSS))).map(push).collect()
    }

    /// 12 packets in 20 ms are 0.6 MB/s: bursts are of two.
    #[test]
    fn bursts_of_two_end_with_psh_and_what_leaves_alone_has_none() {
        assert_eq!(pushes(12, 1, 1 << 20), [false]);
        assert_eq!(pushes(12, 2, 1 << 20), [false, true]);
        assert_eq!(pushes(12, 3, 1 << 20), [false, true, false]);
        assert_eq!(pushes(12, 4, 1 << 20), [false, true, false, true]);
    }

    #[test]
    fn the_end_of_what_was_written_has_psh() {
        assert_eq!(pushes(12, 3, 1000), [true]);
        assert_eq!(pushes(12, 3, 3000), [false, true, true]);
    }

    /// Half of three packets is one.
    #[test]
    fn a_burst_is_at_most_half_of_the_window() {
        assert_eq!(pushes(3, 2, 1 << 20), [false, false]);
        assert_eq!(pushes(4, 2, 1 << 20), [false, true]);
    }

    /// 1,000 packets in 20 ms, paced at 60 MB/s: 58.6 kB in 2^-10 s.
    #[test]
    fn fast_senders_have_long_bursts() {
        let carriers = pushes(1000, 200, 1 << 20);
        assert_eq!(carriers.iter().position(|&psh| psh), Some(57));
    }
}
