//! Scenarios on this machine's kernel: hosts in network namespaces, and the scenario's network
//! between them in real time.

mod plan;

pub use plan::{Addresses, FlowPlan, PathPlan, Plan, RECEIVER, SENDER};
