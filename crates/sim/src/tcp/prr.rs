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
    /// `in_flight`. `safe_ack`: it advanced the cumulative ACK and showed no further loss.
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

    /// RFC 6937, section 3.1: of 20 packets in flight the first `lost` are lost. Two
    /// acknowledgements release new data (limited transmit), so 22 are out when the third begins
    /// recovery, and ssthresh is 11. Returns what is in flight after each acknowledgement, and what
    /// then leaves.
    fn rfc_6937(lost: u32) -> (Vec<u32>, Vec<u32>) {
        let mut prr = Prr::default();
        prr.begin(22);
        let mut in_flight = 22 - lost - 3;
        let (mut pipe, mut sent) = (vec![19, 19], vec![1, 1]);
        for _ in 3..=20 - lost {
            let due = prr.window(1, 11, in_flight, false) - in_flight;
            (0..due).for_each(|_| prr.sent());
            pipe.push(in_flight);
            sent.push(due);
            in_flight = in_flight + due - 1;
        }
        (pipe, sent)
    }

    /// One loss: what leaves is the RFC's row, acknowledgement by acknowledgement. (In its row
    /// of the pipe the third 18 is one too many.)
    #[test]
    fn one_loss_is_the_trace_of_rfc_6937() {
        let (pipe, sent) = rfc_6937(1);
        assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(pipe[2..], [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10]);
    }

    /// The first 15 are lost. Acknowledgements that do not advance are not safe, so one packet
    /// leaves for each that arrives: the RFC's PRR-CRB.
    #[test]
    fn a_burst_of_losses_is_the_trace_of_rfc_6937() {
        assert_eq!(rfc_6937(15), (vec![19, 19, 4, 4, 4], vec![1, 1, 1, 1, 1]));
    }

    /// Most of the window is lost: in flight is below ssthresh, and the window grows back by slow
    /// start on safe ACKs, by packet conservation on those that show more loss.
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
