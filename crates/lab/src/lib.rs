//! Scenarios, runs, metrics and tables of Narrows.
//!
//! A [`Scenario`] is [`load`]ed from TOML, [`run`] gives a [`Summary`] and a series, [`compare`]
//! runs many, on one host or several, and [`rows`] tells them as means with intervals. A simulated
//! result is a function of scenario and seed: the same bytes on any machine and with any number of
//! jobs.

mod algorithm;
mod build;
mod capture;
mod caught;
mod compare;
mod describe;
pub mod detection;
mod error;
mod estimate;
mod host;
mod journal;
#[cfg(feature = "kernel")]
pub mod kernel;
mod measured;
mod output;
mod recorder;
mod routes;
mod run;
mod scenario;
pub mod series;
mod summary;
mod table;
pub mod units;

pub use algorithm::{Algorithm, KernelName};
pub use capture::Capture;
pub use compare::{Case, Finished, Plan, Point, Row, compare, rows, write_csv};
pub use describe::describe;
pub use error::Error;
pub use estimate::{Estimate, HOPS_PER_SECOND};
pub use host::{Host, HostCapture, run_on};
pub use journal::Journal;
pub use narrows_laws::{Control, catalogue};
pub use narrows_traffic::Signal;
pub use output::Output;
pub use recorder::{Detail, Run};
pub use run::run;
pub use scenario::{
    Bound, Edits, Event, Flow, FlowKind, FlowPath, Happening, Link, Phase, Published, Rival,
    Scenario, Sweep, load, parse, shipped, source_text,
};
pub use summary::{
    ConnectionSummary, Fairness, Fitness, HeadOfLineSummary, LinkSummary, PathSummary, Summary,
};
pub use table::{legend, table};
