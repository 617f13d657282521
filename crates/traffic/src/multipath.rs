//! Which subflows a multipath connection has, and which of them sends the next data.

/// Which subflows a connection opens once it is fully established (Linux: after the first
/// acknowledgement in data sequence).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathManager {
    /// One on each path.
    #[default]
    Fullmesh,
    /// So many (1 to 8) on the only path of the configuration, distinguished by their ports.
    Ndiffports(u8),
}

/// The rule that gives data to subflows. Each uses backup paths only while no regular path works,
/// and none that makes no progress while others do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// As Linux: up to 64 kB to the subflow that would be the first to have sent all it holds, as
    /// far as its send buffer has room. What a subflow holds may wait for its window.
    #[default]
    Linux,
    /// Each segment to the subflow with the lowest smoothed RTT that has room in its window.
    MinRtt,
    /// The same as the default of out-of-tree MPTCP v0.89 had it: a full buffer makes it send what the
    /// receiver waits for again on a quicker subflow and halve the window of the slower, and a
    /// subflow gets no data after a timeout, before its losses are repaired.
    Mptcp089,
    /// The same, and after a subflow's timeout all that it had sent goes out again on others, each
    /// segment once, before anything new.
    Mptcp089Reinject,
    /// Each segment to the next subflow in turn that has room in its window.
    RoundRobin,
    /// Each segment on every subflow, unless it was acknowledged before that had room.
    Redundant,
}

impl Scheduler {
    /// The default of out-of-tree MPTCP v0.89, with its reinjection after a timeout or without.
    pub fn is_mptcp_089(self) -> bool {
        matches!(self, Scheduler::Mptcp089 | Scheduler::Mptcp089Reinject)
    }
}
