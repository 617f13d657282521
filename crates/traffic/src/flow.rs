//! Which flow of a run.

/// A connection of a run: TCP or MPTCP. Counted from 0 in the order of the scenario, apart from UDP
/// flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// A UDP flow of a run. Counted from 0 in the order of the scenario, apart from connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId(pub u32);

/// A flow of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowId {
    /// TCP or MPTCP.
    Connection(ConnId),
    /// UDP.
    Udp(UdpId),
}
