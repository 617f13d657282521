//! Proportional rate reduction, RFC 9937 (before: RFC 6937), as Linux's tcp_cwnd_reduction().

/// How many packets may leave in recovery for those that arrived.
#[derive(Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: window when recovery began, packets.
    prior_cwnd: u32,
    /// Packets delivered in this recovery.
    delivered: u32,
    /// Packets sent in this recovery.
    out: u32,
}

impl Prr {
    /// Recovery begins with a window of `cwnd` packets.
    pub fn begin(&mut self, cwnd: u32) {
        *self = Prr { prior_cwnd: cwnd.max(1), delivered: 0, out: 0 };
    }

    /// A packet left, new or again.
    pub fn sent(&mut self) {
        self.out += 1;
    }

    /// The window after an acknowledgement that newly delivered `delivered` packets and leaves
    /// `in_flight`. `safe_ack`: it advanced the cumulative ACK and told of no further loss.
    pub fn window(&mut self, delivered: u32, ssthresh: u32, in_flight: u32, safe_ack: bool) -> u32 {
        self.delivered += delivered;
        let due = if in_flight > ssthresh {
            // RFC 9937, section 6.2: proportional, so that the window has come down to ssthresh
            // when a window's worth has arrived.
            let share = u64::from(ssthresh) * u64::from(self.delivered);
            share.div_ceil(u64::from(self.prior_cwnd)) as i64 - i64::from(self.out)
        } else {
            // Reduction bound: packet conservation, and slow start where the ACK is safe.
            let conserved = i64::from(self.delivered) - i64::from(self.out);
            let bound = conserved.max(i64::from(delivered)) + i64::from(safe_ack);
            bound.min(i64::from(ssthresh - in_flight))
        };
        // The first retransmission goes out with the ACK that began recovery.
        let due = due.max(i64::from(self.out == 0));
        in_flight + due as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 packets in flight, one lost, window to be halved: after the first retransmission one
    /// packet leaves for every two that arrive, and the window ends at ssthresh.
    #[test]
    fn one_loss_spreads_the_reduction_over_the_round_trip() {
        let mut prr = Prr::default();
        prr.begin(20);
        // Packet 0 is lost and three SACKs have come: 16 in flight, the third enters recovery.
        let mut in_flight = 16;
        let mut trace = vec![];
        for _ in 0..17 {
            let cwnd = prr.window(1, 10, in_flight, false);
            let mut sent = 0;
            while in_flight < cwnd {
                prr.sent();
                in_flight += 1;
                sent += 1;
            }
            trace.push(sent);
            in_flight -= 1;
        }
        // In the thirteenth round ssthresh is reached; from there one leaves for each that comes.
        assert_eq!(trace, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1]);
        assert_eq!(in_flight, 9, "and one more at each acknowledgement: ssthresh");
    }

    /// Most of the window is lost: in flight is below ssthresh, and the window grows back by slow
    /// start on safe ACKs, by packet conservation on those that tell of more loss.
    #[test]
    fn heavy_loss_slow_starts_on_safe_acks_only() {
        let mut prr = Prr::default();
        prr.begin(20);
        assert_eq!(prr.window(1, 10, 2, false), 3);
        prr.sent();
        assert_eq!(prr.window(1, 10, 2, true), 4);
        prr.sent();
        prr.sent();
        assert_eq!(prr.window(1, 10, 3, false), 4);
        prr.sent();
        // Never beyond ssthresh, but for the first retransmission.
        assert_eq!(prr.window(8, 10, 8, true), 10);
        prr.begin(20);
        assert_eq!(prr.window(1, 10, 10, false), 11);
    }
}
