//! What a connection sends, and on which subflows.

use narrows_net::Nanos;
use narrows_traffic::Scheduler;

use super::connection::Connection;
use super::scheduler::{self, BURST};
use super::subflow::{Chunk, Subflow};
use crate::tcp::NEVER;
use crate::tcp::rto::RTO_MAX;
use crate::wire::Wire;

impl Connection {
    /// Sends what may be sent, after something happened to the subflow `path`.
    pub(super) fn push(&mut self, path: usize, wire: &mut Wire) {
        self.grow_buffer(path);
        if self.multipath {
            self.drain(path, wire);
            match self.scheduler {
                Scheduler::Linux => while self.hand_over(wire) {},
                Scheduler::MinRtt
                | Scheduler::Mptcp089
                | Scheduler::Mptcp089Reinject
                | Scheduler::RoundRobin => while self.push_segment(wire) {},
                Scheduler::Redundant => self.push_redundant(wire),
            }
            if self.rtx_at == NEVER {
                self.restart_rtx_timer(wire.now);
            }
        } else {
            self.push_tcp(path, wire);
        }
        self.set_probe_timer(wire.now);
    }

    /// The send buffer of a model law grows with the windows of the subflows, as all do in Linux, where
    /// the connection's is their sum (__mptcp_sync_sndbuf()). A window law's is large enough from the
    /// start for two windows of all that path and queue hold. A model law's window is more while it
    /// starts up, and where the buffer holds it back then, it takes the application to be the limit
    /// and does not see that the pipe is full. Unlike Linux's it begins with what path and queue hold,
    /// not with ten packets a subflow, and grows whether it is full or not
    /// (tcp_should_expand_sndbuf()).
    fn grow_buffer(&mut self, path: usize) {
        if self.stream.buffer() < self.buffer_max {
            self.subflows[path].grow_buffer(self.windows);
            let sum = self.subflows.iter().map(Subflow::buffer).sum();
            self.stream.grow(self.buffer_max.min(sum));
        }
    }

    /// Plain TCP: there is nothing to choose.
    fn push_tcp(&mut self, path: usize, wire: &mut Wire) {
        if let Some(unsent) = self.stream.take_waited() {
            self.subflows[path].sender.check_app_limited(unsent);
        }
        while self.subflows[path].sender.has_room() {
            let from = self.stream.next();
            let len = self.next_len(path, from, 1);
            if len == 0 {
                break;
            }
            self.stream.take(from, len);
            let behind = self.stream.behind(self.stream.next());
            self.subflows[path].sender.send_new(from, len, behind, wire, &mut self.controller);
        }
        self.subflows[path].sender.note_window_use(wire.now);
    }

    /// Sends of what a subflow was handed as much as its window allows.
    pub(super) fn drain(&mut self, path: usize, wire: &mut Wire) {
        let subflow = &mut self.subflows[path];
        while let Some(chunk) = subflow.dequeue() {
            let behind = subflow.behind();
            subflow.sender.send_new(chunk.dsn, chunk.len, behind, wire, &mut self.controller);
        }
        self.settle(path, wire.now);
    }

    /// All that may leave on a subflow has left, as far as is known.
    fn settle(&mut self, path: usize, now: Nanos) {
        let subflow = &mut self.subflows[path];
        let next = match self.scheduler {
            Scheduler::Redundant => subflow.cursor.max(self.stream.una()),
            _ => self.stream.next(),
        };
        let unsent = subflow.queued() + self.stream.written_from(next);
        // Linux never asks a subflow; what our detectors see of window laws is ours, and that data comes
        // after a silence is known to model laws on all hosts.
        if !self.controller.control().law.is_model() || subflow.sender.packets_out() == 0 {
            subflow.sender.check_app_limited(unsent);
        }
        subflow.sender.note_window_use(now);
        subflow.note_busy(now);
        self.lanes[path] = subflow.lane(self.scheduler, self.windows);
        self.touched |= 1 << path;
    }

    /// Hands a burst to the subflow of the scheduler's choice, as Linux's __mptcp_push_pending().
    fn hand_over(&mut self, wire: &mut Wire) -> bool {
        let Some(path) = self.pick() else { return false };
        let mss = self.subflows[path].sender.mss();
        let from = self.stream.next();
        let len = self.next_len(path, from, BURST.div_ceil(mss));
        if len == 0 {
            return false;
        }
        let window = self.stream.window_left();
        let again = self.stream.take(from, len);
        self.count(again, len.div_ceil(mss));
        let subflow = &mut self.subflows[path];
        subflow.note_choice(window.min(BURST.into()));
        subflow.enqueue(from, len);
        self.last = path;
        self.drain(path, wire);
        true
    }

    /// Sends a segment on the subflow of the scheduler's choice.
    fn push_segment(&mut self, wire: &mut Wire) -> bool {
        if let Some(sent) = self.push_again(wire) {
            return sent;
        }
        let Some(path) = self.pick() else { return false };
        let from = self.stream.next();
        let len = self.next_len(path, from, 1);
        if len == 0 {
            return self.scheduler.is_mptcp_089() && self.unblock(path, wire);
        }
        let again = self.stream.take(from, len);
        self.count(again, 1);
        self.send_segment(path, from, len, wire);
        true
    }

    /// Sends on each subflow what it has not sent yet and the peer has not acknowledged.
    fn push_redundant(&mut self, wire: &mut Wire) {
        for path in 0..self.lanes.len() {
            while self.usable & (1 << path) != 0 && self.lanes[path].has_room {
                let from = self.subflows[path].cursor.max(self.stream.una());
                let len = self.next_len(path, from, 1);
                if len == 0 {
                    break;
                }
                self.stream.take(from, len);
                self.subflows[path].cursor = from + u64::from(len);
                self.send_segment(path, from, len, wire);
            }
        }
    }

    pub(super) fn send_segment(&mut self, path: usize, dsn: u64, len: u32, wire: &mut Wire) {
        let behind = self.stream.behind(dsn + u64::from(len));
        self.subflows[path].sender.send_new(dsn, len, behind, wire, &mut self.controller);
        self.settle(path, wire.now);
        self.last = path;
    }

    /// Sends the tail loss probe of a subflow: new data if it has some (RFC 8985, section 7.3), but
    /// for MPTCP only what it was handed.
    pub(super) fn probe_tail(&mut self, path: usize, wire: &mut Wire) {
        let subflow = &mut self.subflows[path];
        let new = if self.multipath {
            subflow.take_front().map(|Chunk { dsn, len }| (dsn, len, subflow.behind()))
        } else {
            let from = self.stream.next();
            let len = self.stream.len_from(from, subflow.sender.mss(), 1, true);
            self.stream.take(from, len);
            (len > 0).then(|| (from, len, self.stream.behind(self.stream.next())))
        };
        subflow.sender.send_probe(new, wire, &mut self.controller);
    }

    fn pick(&self) -> Option<usize> {
        scheduler::pick(self.scheduler, self.last, self.usable, &self.lanes)
    }

    fn next_len(&self, path: usize, from: u64, most: u32) -> u32 {
        let mss = self.subflows[path].sender.mss();
        match self.stream.len_from(from, mss, most, false) {
            0 if self.is_idle() => self.stream.len_from(from, mss, most, true),
            len => len,
        }
    }

    /// Segments were sent; `again` by the connection.
    fn count(&mut self, again: bool, segments: u32) {
        if again {
            self.reinjections += u64::from(segments);
        }
    }

    /// Nothing is underway that will be answered. What a stale subflow holds has gone out on others.
    fn is_idle(&self) -> bool {
        self.subflows.iter().all(|subflow| subflow.stale || subflow.is_empty())
    }

    /// RFC 9293, section 3.8.6.1: while the window is closed and nothing is underway that would
    /// bring news of it, ask, at doubling intervals.
    fn set_probe_timer(&mut self, now: Nanos) {
        if !(self.stream.is_blocked() && self.is_idle() && self.established.is_some()) {
            (self.probe_at, self.probes) = (NEVER, 0);
        } else if self.probe_at == NEVER {
            let rto = self.probe_path().map_or(RTO_MAX, |path| self.subflows[path].sender.rto());
            self.probe_at = now + (rto << self.probes.min(10)).min(RTO_MAX);
        }
    }

    /// The persist timer expired.
    pub(super) fn probe_window(&mut self, wire: &mut Wire) {
        if let Some(path) = self.probe_path() {
            self.subflows[path].sender.probe_window(wire);
        }
        self.probes += 1;
        self.probe_at = NEVER;
        self.set_probe_timer(wire.now);
    }

    /// Any path that works is good to ask on: one after the other, if there are several.
    fn probe_path(&self) -> Option<usize> {
        let works = |&path: &usize| self.subflows[path].is_active();
        let paths = self.subflows.len();
        let turn = self.probes as usize % paths;
        (turn..paths).chain(0..turn).find(works)
    }
}
