//! When to acknowledge: RFC 5681, section 4.2, as Linux's __tcp_ack_snd_check().

use narrows_net::Nanos;

use super::NEVER;

/// Linux's TCP_DELACK_MIN.
pub(crate) const DELAY: Nanos = 40_000_000;
/// Acknowledgements sent at once after the handshake: Linux's TCP_MAX_QUICKACKS.
const QUICK_ACKS: u32 = 16;
/// Linux's TCP_MSS_DEFAULT, the first guess of the size of full segments.
const FIRST_GUESS: u32 = 536;

/// The delayed acknowledgement of one subflow.
#[derive(Debug)]
pub(crate) struct DelayedAck {
    /// Acknowledgements still to be sent at once: the sender is in slow start.
    quick: u32,
    /// Largest segment seen, bytes.
    full_segment: u32,
    deadline: Nanos,
}

impl Default for DelayedAck {
    fn default() -> Self {
        DelayedAck { quick: QUICK_ACKS, full_segment: FIRST_GUESS, deadline: NEVER }
    }
}

impl DelayedAck {
    /// A segment of `len` bytes arrived in order; `unacked` bytes wait with it. True if the
    /// acknowledgement is due now: at once in the beginning, at the latest with every second full
    /// segment (more than one full segment waits).
    pub fn on_segment(&mut self, len: u32, unacked: u64, now: Nanos) -> bool {
        self.full_segment = self.full_segment.max(len);
        if self.quick > 0 || unacked > u64::from(self.full_segment) {
            return true;
        }
        self.deadline = self.deadline.min(now + DELAY);
        false
    }

    /// An acknowledgement was sent.
    pub fn sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
        self.deadline = NEVER;
    }

    pub fn deadline(&self) -> Nanos {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1448;

    #[test]
    fn sixteen_quick_acks_then_every_second_segment_or_40_ms() {
        let mut delack = DelayedAck::default();
        for n in 0..16 {
            assert!(delack.on_segment(FULL, FULL.into(), n));
            delack.sent();
        }
        assert!(!delack.on_segment(FULL, FULL.into(), 100));
        assert_eq!(delack.deadline(), 100 + DELAY);
        assert!(delack.on_segment(FULL, 2 * u64::from(FULL), 200));
        delack.sent();
        assert_eq!(delack.deadline(), NEVER);
        // More than a full segment is enough, as Linux counts.
        assert!(!delack.on_segment(FULL, FULL.into(), 300));
        assert!(delack.on_segment(1, u64::from(FULL) + 1, 400));
    }

    #[test]
    fn small_segments_wait_for_the_first_deadline() {
        let mut delack = DelayedAck { quick: 0, ..DelayedAck::default() };
        assert!(!delack.on_segment(100, 100, 0));
        assert!(!delack.on_segment(100, 200, 1000));
        assert_eq!(delack.deadline(), DELAY);
    }
}
