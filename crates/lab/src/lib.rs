//! Scenarios, runs, metrics and tables of Narrows.

mod error;
mod scenario;
pub mod stats;
pub mod units;

pub use error::Error;
pub use scenario::{
    Bound, Edits, Flow, FlowKind, FlowPath, Link, Phase, Published, Rival, Scenario, Shipped,
    Sweep, load, shipped,
};
