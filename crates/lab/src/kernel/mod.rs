//! Scenarios on this machine's kernel: hosts in network namespaces, and the scenario's network
//! between them in real time.

mod app;
mod capture;
mod change;
mod controls;
mod plan;
mod prepare;
mod run;
mod sample;
mod shell;
mod sources;

pub use app::{App, listens};
pub use capture::Capture;
pub use plan::{Addresses, FlowPlan, PathPlan, Plan, RECEIVER, SENDER};
pub(crate) use run::ready;
pub use run::{check, run};
pub use shell::{Shell, alone};
