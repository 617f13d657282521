//! The connection above its subflows: data sequence, scheduling, reassembly, one window. Plain
//! TCP is a connection of one subflow whose two sequences are the same.
//!
//! As RFC 8684 and stock Linux (net/mptcp/protocol.c, pm.c), with these departures:
//! - What a subflow holds counts as its payload; Linux adds what describes the packets in memory.
//!   The send buffer of a subflow grows with its window at once and has no bound of its own.
//! - The head of the retransmission queue is up to 32 kB; Linux sends one data fragment again, which
//!   is as long as the application's writes were, up to that.
//! - A lost address is known to both ends at once, and a connection that has lost all its paths
//!   waits for a new one instead of failing.
//! - Handshakes are tried for ever, subflows never time out, and there is no DATA_FIN.

pub(crate) mod connection;
mod ends;
mod head_of_line;
mod paths;
pub(crate) mod reassembly;
pub(crate) mod receiver_detector;
mod reinject;
mod retransmit;
mod scheduler;
mod send;
mod stream;
pub(crate) mod subflow;
mod unblock;
