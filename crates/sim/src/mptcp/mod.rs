//! The connection above its subflows: data sequence, scheduling, reassembly, one window. Plain
//! TCP is a connection of one subflow whose two sequences are the same.

pub(crate) mod connection;
mod head_of_line;
mod paths;
pub(crate) mod reassembly;
mod retransmit;
mod scheduler;
mod send;
mod stream;
pub(crate) mod subflow;
