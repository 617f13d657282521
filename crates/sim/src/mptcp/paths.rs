//! Path management: which subflows there are, and which of them may carry data.

use narrows_laws::{Advice, MAX_PATHS, State};
use narrows_net::Nanos;

use super::connection::Connection;
use super::scheduler::Lane;
use super::subflow::{PathSetup, Subflow};
use crate::packet::Wire;

impl Connection {
    /// Opens what may be opened now: the first path, and the others when the connection is fully
    /// established (Linux: mptcp_pm_fully_established()).
    pub(super) fn open_subflows(&mut self, wire: &mut Wire) {
        let waits = |subflow: &Subflow| subflow.present && subflow.sender.is_closed();
        if self.established.is_some() {
            if self.fully_established && self.multipath {
                for subflow in self.subflows.iter_mut().filter(|s| waits(s)) {
                    subflow.sender.open(true, wire);
                }
            }
        } else if !self.subflows.iter().any(|s| s.present && !s.sender.is_closed()) {
            if let Some(first) = self.subflows.iter_mut().find(|s| waits(s)) {
                first.sender.open(false, wire);
            }
        }
    }

    /// A subflow may carry data.
    pub(super) fn on_established(&mut self, path: usize, wire: &mut Wire) {
        self.established.get_or_insert(wire.now);
        self.last = path;
        self.update_usable(wire.now);
        self.push(path, wire);
    }

    /// A SYN arrived. If a middlebox took its options the connection is one of plain TCP (RFC
    /// 8684, section 3.7).
    pub(super) fn pass_middlebox(&mut self, path: usize, wire: &mut Wire) {
        let Subflow { sender, strips_mptcp, .. } = &mut self.subflows[path];
        if self.multipath && *strips_mptcp && !sender.joins() {
            sender.fall_back();
            (self.multipath, wire.multipath) = (false, false);
            self.fallback = true;
        }
    }

    /// A SYN/ACK arrived. If a middlebox took the option of a join, both ends reset the subflow
    /// (RFC 8684, section 3.2).
    pub(super) fn refuse_join(&mut self, path: usize) -> bool {
        let Subflow { sender, strips_mptcp, .. } = &self.subflows[path];
        let refused = *strips_mptcp && sender.joins();
        if refused {
            self.failed_joins += 1;
            self.clear(path);
        }
        refused
    }

    /// The subflow is to be used only if no regular one is usable.
    pub(super) fn is_backup(&self, path: usize) -> bool {
        self.subflows[path].backup || self.law.advice(path) == Advice::Backup
    }

    /// Something changed in what may carry data: finds the subflows that the scheduler may use,
    /// and tells the law how the others stand.
    pub(super) fn update_usable(&mut self, now: Nanos) {
        let (mut regular, mut backup) = (0, 0);
        for (path, _) in self.subflows.iter().enumerate().filter(|(_, s)| s.is_active()) {
            let kind = if self.is_backup(path) { &mut backup } else { &mut regular };
            *kind |= 1 << path;
        }
        self.usable = if regular != 0 { regular } else { backup };
        for (path, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.sender.is_established() {
                let standing = match (subflow.stale, self.usable & (1 << path)) {
                    (true, _) => State::Failed,
                    (false, 0) => State::Backup,
                    (false, _) => State::Active,
                };
                subflow.sender.stand(standing, now, &mut self.law);
            }
        }
    }

    /// Does what the law asks about a path after an event there.
    pub(super) fn heed_advice(&mut self, path: usize, wire: &mut Wire) {
        let advice = self.law.advice(path);
        if advice == self.subflows[path].advice {
            return;
        }
        self.subflows[path].advice = advice;
        let alone = self.subflows.iter().filter(|subflow| subflow.is_active()).count() < 2;
        if advice == Advice::Close && !alone {
            self.remove_path(path, wire);
        } else {
            self.update_usable(wire.now);
        }
    }

    /// The address of a path is lost: both ends drop the subflow at once, and what the connection
    /// has outstanding goes out on others (Linux: __mptcp_close_ssk()). False if there is none.
    pub fn remove_path(&mut self, path: usize, wire: &mut Wire) -> bool {
        if !self.subflows.get(path).is_some_and(|subflow| subflow.present) {
            return false;
        }
        self.subflows[path].sender.leave(wire.now, &mut self.law);
        self.clear(path);
        // Lost before it was fully established, a connection fails in Linux, and the application
        // opens another; here the next path joins all the same.
        self.fully_established |= self.established.is_some();
        if self.opened {
            self.open_subflows(wire);
        }
        if self.multipath {
            self.update_usable(wire.now);
            self.resend_all(wire);
        }
        true
    }

    /// A new path, in the first free place, that joins as soon as it may. Its place, or none if
    /// there is no room for it or the connection is plain TCP.
    pub fn add_path(&mut self, setup: &PathSetup, wire: &mut Wire) -> Option<usize> {
        if !self.multipath {
            return None;
        }
        let free = self.subflows.iter().position(|subflow| !subflow.present);
        let path = free.unwrap_or(self.subflows.len());
        if path == MAX_PATHS {
            return None;
        }
        if path == self.subflows.len() {
            self.subflows.push(Subflow::new(path, setup, &self.tcp));
            self.lanes.push(Lane::default());
        } else {
            self.subflows[path].replace(path, setup, &self.tcp);
        }
        if self.opened {
            self.open_subflows(wire);
        }
        Some(path)
    }

    /// Empties a slot. What the network still has of it is of an old generation.
    fn clear(&mut self, path: usize) {
        self.subflows[path].clear(path);
        self.generations &= !(0xff << (8 * path));
        self.generations |= u64::from(self.subflows[path].generation) << (8 * path);
        if self.multipath {
            self.lanes[path] = Lane::default();
        }
    }
}
