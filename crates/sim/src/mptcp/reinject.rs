//! What out-of-tree MPTCP did when a subflow's timer had expired: all that the subflow held went out
//! again on others, each segment once, before anything new, as in v0.89, net/mptcp/mptcp_output.c,
//! mptcp_sub_retransmit_timer() and mptcp_reinject_data(), and mptcp_sched.c, get_available_subflow().

use super::connection::Connection;
use super::scheduler;
use crate::wire::Wire;

impl Connection {
    /// The timer of `path` has expired: what it sent since the last time, and the peer has not
    /// acknowledged in data sequence, is to go out again.
    pub(super) fn reinject(&mut self, path: usize) {
        let una = self.stream.una();
        let subflow = &mut self.subflows[path];
        for (dsn, len) in subflow.sender.sent_since(subflow.reinjected) {
            if dsn + u64::from(len) > una {
                self.again.insert(dsn, len);
            }
        }
        subflow.reinjected = subflow.sender.nxt();
    }

    /// Sends the first segment that is to go out again, on the quickest subflow with room that does
    /// not hold it, else on one that does. None if there is no such segment; false if there is no room,
    /// which holds new data back, too.
    pub(super) fn push_again(&mut self, wire: &mut Wire) -> Option<bool> {
        let (dsn, len) = loop {
            let (dsn, len) = self.again.pop_first()?;
            if dsn + u64::from(len) > self.stream.una() {
                break (dsn, len);
            }
        };
        let free = |path: &usize| !self.subflows[*path].sender.holds(dsn);
        let free = (0..self.subflows.len()).filter(free).fold(0, |set, path| set | 1 << path);
        let pick = |usable| scheduler::pick(self.scheduler, self.last, usable, &self.lanes);
        let Some(path) = pick(self.usable & free).or_else(|| pick(self.usable)) else {
            self.again.insert(dsn, len);
            return Some(false);
        };
        let fits = len.min(self.subflows[path].sender.mss());
        if fits < len {
            self.again.insert(dsn + u64::from(fits), len - fits);
        }
        self.reinjections += 1;
        self.send_segment(path, dsn, fits, wire);
        Some(true)
    }
}
