//! What the default scheduler of out-of-tree MPTCP did when a full buffer let nothing new out:
//! "opportunistic retransmission" and "penalization" (Raiciu et al., "How Hard Can It Be?", NSDI 2012,
//! section 4.2), as in v0.89, net/mptcp/mptcp_sched.c, mptcp_rcv_buf_optimization().

use narrows_net::Nanos;

use super::connection::Connection;
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
        // The newest is the first in the kernel's list (mptcp_ctrl.c, mptcp_add_sock()).
        let holders: Vec<usize> = (0..self.subflows.len())
            .rev()
            .filter(|&other| other != path && self.subflows[other].sender.holds(head))
            .collect();
        let Some(&slower) = holders.first() else { return false };
        let srtt = self.subflows[path].sender.srtt();
        if wire.now - self.subflows[path].penalised >= srtt
            && srtt < self.subflows[slower].sender.srtt()
            && self.subflows[slower].sender.halve(wire.now, &mut self.controller)
        {
            self.subflows[path].penalised = wire.now;
            self.lanes[slower] = self.subflows[slower].lane(self.scheduler, self.windows);
            self.touched |= 1 << slower;
        }
        let senders = holders.iter().map(|&other| &self.subflows[other].sender);
        let again = !self.subflows[path].sender.holds(head)
            && goes_again(srtt, senders.map(|sender| (sender.cwnd(), sender.srtt())));
        if again {
            let mss = self.subflows[path].sender.mss();
            self.reinjections += 1;
            self.send_segment(path, head, (next - head).min(mss.into()) as u32, wire);
        }
        again
    }
}

/// Is a segment sent again on a subflow of this RTT? Of those that have it, with their windows and
/// RTTs, the first that has a small window or is not much slower decides.
fn goes_again(srtt: Nanos, holders: impl IntoIterator<Item = (u32, Nanos)>) -> bool {
    for (cwnd, slower) in holders {
        if cwnd <= SMALL {
            return true;
        }
        if SLOW * srtt >= slower {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_goes_again_for_a_small_window_or_a_much_quicker_subflow() {
        let cases: [(&[(u32, Nanos)], bool); 7] = [
            (&[(5, 40)], false),
            (&[(5, 41)], true),
            (&[(4, 10)], true),
            (&[(5, 41), (5, 41)], true),
            (&[(5, 41), (5, 40)], false),
            (&[(5, 40), (4, 41)], false),
            (&[(4, 41), (5, 40)], true),
        ];
        for (holders, again) in cases {
            assert_eq!(goes_again(10, holders.iter().copied()), again, "{holders:?}");
        }
    }
}
