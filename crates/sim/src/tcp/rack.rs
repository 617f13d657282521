//! RACK loss detection, RFC 8985: a segment is lost when one sent later has arrived and its own
//! time is up.

use narrows_net::Nanos;

/// SACKed segments that make loss likely without regard to time: RFC 8985's DupThresh.
const DUP_THRESH: u32 = 3;

/// The newest delivered segment and what is known of reordering.
#[derive(Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts: when the newest delivered segment was sent.
    sent: Nanos,
    /// RACK.end_seq: its end.
    end: u64,
    /// RACK.rtt: its round trip.
    rtt: Nanos,
    reordering_seen: bool,
    /// Some segment has been delivered since the last look.
    advanced: bool,
}

impl Rack {
    /// A segment ending at `end`, last sent at `sent`, arrived. RFC 8985, section 6.2, step 2.
    pub fn delivered(
        &mut self,
        sent: Nanos,
        end: u64,
        retransmitted: bool,
        now: Nanos,
        min_rtt: Nanos,
    ) {
        let rtt = now - sent;
        // The acknowledgement may belong to the original: too soon for the retransmission.
        if retransmitted && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (sent, end) > (self.sent, self.end) {
            (self.sent, self.end) = (sent, end);
        }
    }

    /// A segment arrived behind one above it without having been sent again. Step 3.
    pub fn reordered(&mut self) {
        self.reordering_seen = true;
    }

    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// Has a segment been delivered since the last call?
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Lets the next look find something though nothing was delivered: time has passed.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Was a segment sent before the newest delivered one? Ties go by sequence.
    pub fn sent_before(&self, sent: Nanos, end: u64) -> bool {
        (sent, end) < (self.sent, self.end)
    }

    /// How long to wait still for a segment before it counts as lost.
    pub fn remaining(&self, sent: Nanos, reo_wnd: Nanos, now: Nanos) -> Nanos {
        (sent + self.rtt + reo_wnd).saturating_sub(now)
    }

    /// The reordering window. Step 4: none while no reordering has been seen and loss is likely;
    /// a quarter of the smallest RTT otherwise, the smoothed RTT at most.
    pub fn reo_wnd(&self, recovering: bool, sacked_out: u32, min_rtt: Nanos, srtt: Nanos) -> Nanos {
        if !self.reordering_seen && (recovering || sacked_out >= DUP_THRESH) {
            return 0;
        }
        (min_rtt / 4).min(srtt)
    }
}
