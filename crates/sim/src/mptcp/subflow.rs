//! A subflow as the connection sees it: its two ends, what waits for its window, how it stands.

use std::collections::VecDeque;
use std::mem::offset_of;

use narrows_laws::Advice;
use narrows_net::{Nanos, RouteId, SECOND, prefetch};
use narrows_traffic::{Scheduler, TcpConfig};

use super::scheduler::Lane;
use crate::tcp::NEVER;
use crate::tcp::psh::Behind;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;

/// Configuration of a new subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSetup {
    pub forward: RouteId,
    pub reverse: RouteId,
    pub mss: u32,
    pub backup: bool,
    pub strips_mptcp: bool,
}

/// Some bytes in data sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub dsn: u64,
    pub len: u32,
}

/// A slot of the connection: a subflow, or none since its path was removed.
///
/// In this order: what data needs, what both need, what acknowledgements need, so that a packet
/// touches half of the cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Subflow {
    pub receiver: Receiver,
    pub reverse: RouteId,
    /// How many paths this slot had before. Their packets may still be in the network.
    pub generation: u8,
    pub present: bool,
    /// To be used only if no regular subflow is usable (RFC 8684, section 3.3.8), as the peer was
    /// told at the join or since.
    pub backup: bool,
    /// A middlebox removes the options of MPTCP.
    pub strips_mptcp: bool,
    /// What the law last asked about the path.
    pub advice: Advice,
    /// No acknowledgement came for long while others made progress (Linux: stale).
    pub stale: bool,
    /// Periods of the connection's retransmission timer without an acknowledgement.
    stale_count: u8,
    /// Mean of the pacing rate when data was handed over, bytes/s (Linux: avg_pacing_rate).
    pace: u64,
    /// Send buffer, bytes, as grown by the window.
    buffer: u64,
    /// When the last acknowledgement came (Linux: rcv_tstamp), and that at the last look.
    last_arrival: Nanos,
    stale_since: Nanos,
    pub sender: Sender,
    /// Data handed to the subflow that has not left yet.
    queue: VecDeque<Chunk>,
    /// Bytes in `queue`.
    queued: u64,
    /// Since when it has had something to send, or out.
    busy_since: Option<Nanos>,
    /// How long it had before.
    busy: Nanos,
    /// Redundant scheduler: next byte for this subflow.
    pub cursor: u64,
    /// When a slower subflow's window was last halved because this one had to wait for its data.
    pub penalised: Nanos,
    /// Bytes of this subflow up to here were taken to be sent again on others after a timeout.
    pub reinjected: u64,
}

impl Subflow {
    pub fn new(slot: usize, setup: &PathSetup, tcp: &TcpConfig) -> Self {
        Subflow {
            sender: Sender::new(slot, setup.forward, setup.mss, tcp),
            receiver: Receiver::new(tcp),
            reverse: setup.reverse,
            generation: 0,
            present: true,
            backup: setup.backup,
            strips_mptcp: setup.strips_mptcp,
            advice: Advice::None,
            stale: false,
            stale_count: 0,
            last_arrival: 0,
            stale_since: 0,
            queue: VecDeque::new(),
            queued: 0,
            busy_since: None,
            busy: 0,
            pace: 0,
            buffer: 0,
            cursor: 0,
            penalised: 0,
            reinjected: 0,
        }
    }

    /// Data will arrive: begins to load what it needs.
    pub fn prefetch_data(&self) {
        prefetch(self, offset_of!(Subflow, advice));
    }

    /// An acknowledgement will arrive: begins to load what it needs.
    pub fn prefetch_ack(&self) {
        prefetch(&self.advice, size_of::<Subflow>() - offset_of!(Subflow, advice));
    }

    /// Puts a new path into this slot. The counters go on.
    pub fn replace(&mut self, slot: usize, setup: &PathSetup, tcp: &TcpConfig) {
        let generation = self.generation;
        let counters = std::mem::take(&mut self.sender.counters);
        *self = Subflow { generation, ..Subflow::new(slot, setup, tcp) };
        self.sender.counters = counters;
    }

    /// A regular path over the same routes.
    pub fn setup(&self) -> PathSetup {
        PathSetup {
            forward: self.sender.route(),
            reverse: self.reverse,
            mss: self.sender.mss(),
            backup: false,
            strips_mptcp: false,
        }
    }

    /// The path is gone: nothing but its counters stays.
    pub fn clear(&mut self, slot: usize) {
        self.replace(slot, &self.setup(), &TcpConfig::default());
        self.present = false;
        self.generation = self.generation.wrapping_add(1);
    }

    /// May carry data as far as its own state goes.
    pub fn is_active(&self) -> bool {
        self.present && !self.stale && self.sender.is_established()
    }

    /// Nothing is underway or waits to be.
    pub fn is_empty(&self) -> bool {
        self.sender.packets_out() == 0 && self.queue.is_empty()
    }

    /// All that may leave has left: is it busy still?
    pub fn note_busy(&mut self, now: Nanos) {
        match (self.busy_since, self.is_empty()) {
            (None, false) => self.busy_since = Some(now),
            (Some(since), true) => {
                self.busy += now - since;
                self.busy_since = None;
            }
            _ => {}
        }
    }

    /// How long it has had something to send, or out (Linux: `tcpi_busy_time`).
    pub fn busy(&self, now: Nanos) -> Nanos {
        self.busy + self.busy_since.map_or(0, |since| now - since)
    }

    /// Hands data to the subflow.
    pub fn enqueue(&mut self, dsn: u64, len: u32) {
        self.queued += u64::from(len);
        if let Some(last) = self.queue.back_mut() {
            let follows = last.dsn + u64::from(last.len) == dsn;
            if let Some(sum) = last.len.checked_add(len).filter(|_| follows) {
                last.len = sum;
                return;
            }
        }
        self.queue.push_back(Chunk { dsn, len });
    }

    /// The next segment of what was handed over, if the window has room for it.
    pub fn dequeue(&mut self) -> Option<Chunk> {
        if self.queue.is_empty() || !self.sender.has_room() {
            return None;
        }
        self.take_front()
    }

    /// The next segment of what was handed over, whatever the window.
    pub fn take_front(&mut self) -> Option<Chunk> {
        let front = self.queue.front_mut()?;
        let len = front.len.min(self.sender.mss());
        let chunk = Chunk { dsn: front.dsn, len };
        self.queued -= u64::from(len);
        front.dsn += u64::from(len);
        front.len -= len;
        if front.len == 0 {
            self.queue.pop_front();
        }
        Some(chunk)
    }

    /// An acknowledgement came. True if it ends staleness (Linux: mptcp_subflow_active()).
    pub fn acknowledged(&mut self, now: Nanos) -> bool {
        self.last_arrival = now;
        std::mem::take(&mut self.stale)
    }

    /// A period of the connection's retransmission timer has passed with data outstanding: keeps
    /// count of those without any acknowledgement (Linux: mptcp_pm_subflow_chk_stale()).
    pub fn count_silence(&mut self) -> u8 {
        if self.stale_count == 0 {
            self.stale_since = self.last_arrival;
            self.stale_count = 1;
        } else if self.stale_since == self.last_arrival {
            self.stale_count = self.stale_count.saturating_add(1);
        } else {
            self.stale_count = 0;
        }
        self.stale_count
    }

    pub fn stale_count(&self) -> u8 {
        self.stale_count
    }

    /// Bytes handed over that have not left.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// The same, behind a segment that leaves. Linux's __mptcp_push_pending() ends what it hands over
    /// with tcp_push(), as an application would.
    pub fn behind(&self) -> Behind {
        Behind { ready: self.queued, written: self.queued }
    }

    /// Bytes that the send buffer has grown to.
    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Bytes handed over and not acknowledged: Linux's sk_wmem_queued, but for its overhead.
    fn held(&self) -> u64 {
        self.sender.outstanding() + self.queued
    }

    /// The scheduler has chosen this subflow for so many bytes of the window, if it has any (the end
    /// of Linux's mptcp_subflow_get_send()).
    pub fn note_choice(&mut self, burst: u64) {
        if burst > 0 {
            let (held, burst) = (u128::from(self.held()), u128::from(burst));
            let sum = u128::from(self.pace) * held + u128::from(self.sender.pacing_rate()) * burst;
            self.pace = (sum / (burst + held)) as u64;
        }
    }

    /// What the scheduler and the connection's timer need to know. A subflow that may not carry data
    /// yet, or none, has no part in either: its timer, that of a SYN, backs off for minutes.
    pub fn lane(&mut self, scheduler: Scheduler, windows: u64) -> Lane {
        if !self.sender.is_established() {
            return Lane::default();
        }
        let rtx_at = match self.sender.rtx_at() {
            NEVER => 0,
            _ if self.stale_count > 0 => 0,
            at => at,
        };
        if scheduler != Scheduler::Linux {
            let barred = scheduler.is_mptcp_089() && self.sender.repairs_timeout();
            let has_room = self.sender.has_room() && self.queue.is_empty() && !barred;
            return Lane { cost: self.sender.srtt(), has_room, rtx_at };
        }
        if self.pace == 0 {
            self.pace = self.sender.pacing_rate();
        }
        let held = self.held();
        let cost = held.saturating_mul(SECOND) / self.pace.max(1);
        Lane { cost, has_room: held < self.grow_buffer(windows), rtx_at }
    }

    /// The send buffer, bytes: so many of the largest window that it had, in packets as they lie in
    /// memory, 320 bytes each for headers and for the list of fragments, the sum a power of two, and
    /// 256 bytes that describe the packet (Linux: tcp_sndbuf_expand()). Linux has a bound, tcp_wmem;
    /// here the connection's send buffer bounds the sum of all subflows.
    pub fn grow_buffer(&mut self, windows: u64) -> u64 {
        let packet = u64::from(self.sender.mss() + 640).next_power_of_two() + 256;
        let bytes = windows * u64::from(self.sender.cwnd().max(10)) * packet;
        self.buffer = self.buffer.max(bytes);
        self.buffer
    }
}
