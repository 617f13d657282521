//! What the default scheduler of out-of-tree MPTCP did when a full buffer let nothing new out:
//! "opportunistic retransmission" and "penalization" (Raiciu et al., "How Hard Can It Be?", NSDI 2012,
//! section 4.2), as in v0.89, net/mptcp/mptcp_sched.c, mptcp_rcv_buf_optimization().

use super::connection::Connection;
use crate::tcp::sender::Sender;
use crate::wire::Wire;

/// From this RTT on, in those of the quicker subflow, the slower one's data is sent again.
const SLOW: u64 = 4;
/// Up to this window it is, whatever the RTT.
const SMALL: u32 = 4;

impl Connection {
    /// The subflow `path` has room, the buffers have none: sends on it the segment that the receiver
    /// waits for, once, if that is underway on a much slower subflow, and halves the window of a slower
    /// one, at most once per RTT of `path`. True if it was sent.
    pub(super) fn unblock(&mut self, path: usize, wire: &mut Wire) -> bool {
        let (head, next) = (self.stream.una(), self.stream.next());
        if head >= next || self.stream.is_drained() {
            return false;
        }
        let holders: Vec<usize> = (0..self.subflows.len())
            .filter(|&other| other != path && self.subflows[other].sender.holds(head))
            .collect();
        let Some(&slower) = holders.first() else { return false };
        let srtt = self.subflows[path].sender.srtt();
        if wire.now - self.subflows[path].penalised >= srtt
            && srtt < self.subflows[slower].sender.srtt()
            && self.subflows[slower].sender.halve(wire.now, &mut self.law)
        {
            self.subflows[path].penalised = wire.now;
            self.lanes[slower] = self.subflows[slower].lane(self.scheduler);
            self.touched |= 1 << slower;
        }
        let decides = |sender: &Sender| {
            if sender.cwnd() <= SMALL {
                return Some(true);
            }
            (SLOW * srtt >= sender.srtt()).then_some(false)
        };
        let again = !self.subflows[path].sender.holds(head)
            && holders
                .iter()
                .find_map(|&other| decides(&self.subflows[other].sender))
                .unwrap_or(true);
        if again {
            let mss = self.subflows[path].sender.mss();
            self.reinjections += 1;
            self.send_segment(path, head, (next - head).min(mss.into()) as u32, wire);
        }
        again
    }
}
