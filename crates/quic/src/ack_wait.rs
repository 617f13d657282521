//! How long acknowledgements wait at the receiver.

/// After so many packets in a row that were acknowledged alone the next count as having waited so long.
const LONE: u32 = 8;

/// How a receiver delays acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckWait {
    /// More packets than this are acknowledged at once.
    pub threshold: u32,
    /// Fewer wait so long for others, µs.
    pub delay_us: u32,
}

/// RFC 9000, sections 13.2.2 and 18.2 (`max_ack_delay`), which noq's receiver has unless it is asked for
/// another one.
impl Default for AckWait {
    fn default() -> AckWait {
        AckWait { threshold: 1, delay_us: 25_000 }
    }
}

impl AckWait {
    /// How long the newest of `packets` that were acknowledged together waited, µs; none: it is not
    /// known. `lone`: how many packets in a row were acknowledged alone, this one included.
    pub fn dwell_us(&self, packets: u32, lone: u32, rtt_us: u64, min_rtt_us: u64) -> Option<u32> {
        if packets > self.threshold {
            return Some(0);
        }
        // One that came back within the wait and the least RTT has waited less: the peer's
        // max_ack_delay is another one, or it saw reordering or a mark.
        let waited = lone > LONE && rtt_us >= min_rtt_us.saturating_add(self.delay_us.into());
        waited.then_some(self.delay_us)
    }
}
