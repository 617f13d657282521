//! Retransmission by the connection: data that one subflow does not deliver goes out on another.
//!
//! As in Linux, not a subflow's timer but the connection's own decides: it runs since the last
//! progress in data sequence. Its expiries count against the subflows that are silent; one that is
//! silent for long while another is not is stale, gets nothing more, and all that the connection
//! has outstanding goes out again. A subflow with nothing else to do sends what the receiver waits
//! for even before.

use narrows_net::Nanos;
use narrows_traffic::Scheduler;

use super::connection::{Connection, paths};
use crate::tcp::NEVER;
use crate::wire::Wire;

/// Periods of silence that a subflow may have: Linux's net.mptcp.stale_loss_cnt.
const STALE_LOSS_CNT: u8 = 4;
/// The timer while no subflow's own is known: Linux's TCP_RTO_MIN.
const INTERVAL_MIN: Nanos = 200_000_000;
/// Most bytes sent again at an expiry: Linux's data fragment, 32 kB of pages.
const FRAGMENT: u64 = 32 << 10;

impl Connection {
    /// An acknowledgement arrived on a subflow of MPTCP; `progress` in data sequence.
    pub(super) fn on_mptcp_ack(&mut self, path: usize, progress: bool, wire: &mut Wire) {
        if !self.fully_established {
            self.fully_established = true;
            self.open_subflows(wire);
        }
        if self.subflows[path].acknowledged(wire.now) {
            self.update_usable(wire.now);
        }
        if progress {
            self.restart_rtx_timer(wire.now);
        }
        // A path that carries nothing has its advice withdrawn by the others.
        for path in paths(self.advised | 1 << path) {
            let advice = self.controller.advice(path);
            if advice != self.subflows[path].advice {
                self.heed(advice, path, wire);
            }
        }
    }

    /// The connection's timers.
    pub(super) fn on_connection_timer(&mut self, wire: &mut Wire) {
        if self.probe_at <= wire.now {
            self.probe_window(wire);
        }
        if self.rtx_at <= wire.now {
            self.retransmit(wire);
            self.restart_rtx_timer(wire.now);
        }
    }

    /// The subflow whose timer expires last sets the interval: before, it may help itself
    /// (Linux: mptcp_subflow_get_send() and mptcp_reset_rtx_timer()).
    pub(super) fn restart_rtx_timer(&mut self, now: Nanos) {
        if self.usable == 0 || !self.stream.is_pending() {
            self.rtx_at = NEVER;
            return;
        }
        let last = self.lanes.iter().map(|lane| lane.rtx_at).max().unwrap_or(0);
        let interval = last.saturating_sub(now);
        self.rtx_at = now + if interval > 0 { interval } else { INTERVAL_MIN };
    }

    /// No progress for long (Linux: __mptcp_retrans() and mptcp_subflow_get_retrans()).
    fn retransmit(&mut self, wire: &mut Wire) {
        let mut least = u8::MAX;
        let (mut regular, mut backup) = (None, None);
        for path in 0..self.subflows.len() {
            let subflow = &self.subflows[path];
            if !subflow.sender.is_established() {
                continue;
            }
            if subflow.is_empty() {
                let kind = if self.is_backup(path) { &mut backup } else { &mut regular };
                kind.get_or_insert(path);
                continue;
            }
            self.check_stale(path, wire);
            least = least.min(self.subflows[path].stale_count());
        }
        // A backup only if nobody else gets on.
        if let Some(path) = regular.or(backup.filter(|_| least > 1)) {
            self.retransmit_head(path, wire);
        }
    }

    /// Counts the silence of a subflow with data outstanding; gives it up if another does better
    /// (Linux: mptcp_pm_nl_subflow_chk_stale()).
    fn check_stale(&mut self, path: usize, wire: &mut Wire) {
        let silent = self.subflows[path].count_silence();
        self.lanes[path] = self.subflows[path].lane(self.scheduler, self.windows);
        if silent <= STALE_LOSS_CNT || self.subflows[path].stale {
            return;
        }
        let better = |(other, subflow): (usize, &super::subflow::Subflow)| {
            other != path && subflow.is_active() && subflow.stale_count() < STALE_LOSS_CNT - 1
        };
        if self.subflows.iter().enumerate().any(better) {
            self.subflows[path].stale = true;
            self.update_usable(wire.now);
            self.retransmit_all(wire);
        }
    }

    /// All that is outstanding goes out again, by the choice of the scheduler.
    pub(super) fn retransmit_all(&mut self, wire: &mut Wire) {
        if self.scheduler != Scheduler::Redundant {
            self.stream.rewind();
        }
        self.push(self.last, wire);
    }

    /// Sends again what the receiver waits for. With the redundant scheduler every subflow sends
    /// it anyway.
    fn retransmit_head(&mut self, path: usize, wire: &mut Wire) {
        let (una, next) = (self.stream.una(), self.stream.next());
        let len = (next - una).min(FRAGMENT) as u32;
        if len == 0 || self.scheduler == Scheduler::Redundant {
            return;
        }
        let subflow = &mut self.subflows[path];
        subflow.enqueue(una, len);
        let segments = len.div_ceil(subflow.sender.mss());
        self.reinjections += u64::from(segments);
        self.drain(path, wire);
    }
}
