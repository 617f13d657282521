//! Scenarios on this machine's kernel: hosts in network namespaces, and the scenario's network
//! between them in real time.

mod plan;
mod shell;

pub use plan::{Addresses, FlowPlan, PathPlan, Plan, RECEIVER, SENDER};
pub use shell::Shell;
