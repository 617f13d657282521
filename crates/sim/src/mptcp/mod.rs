//! The connection above its subflows: data sequence, scheduling, reassembly, one window. Plain
//! TCP is a connection of one subflow whose two sequences are the same.

pub(crate) mod connection;
pub(crate) mod reassembly;
pub(crate) mod scheduler;
pub(crate) mod stream;
