//! Scenarios, runs, metrics and tables of Narrows.
//!
//! A [`Scenario`] is [`load`]ed from TOML, [`run`] gives a [`Summary`] and a series on a [`host`],
//! [`compare`] runs many, on one host or several, and [`rows`] are their means with intervals. A simulated
//! result is a function of scenario and seed: the same bytes on any machine and with any number of
//! jobs.

mod algorithm;
mod asked;
mod capture;
mod compare;
mod comparison;
mod describe;
pub mod detection;
mod error;
mod estimate;
mod host_id;
pub mod hosts;
mod journal;
mod lock;
mod measured;
pub mod metrics;
mod output;
pub mod page;
mod panics;
pub mod passive;
mod pcapng;
mod plan;
mod provenance;
mod recorder;
mod routes;
mod scenario;
pub mod series;
mod setup;
mod silence;
mod summary;
mod table;
#[cfg(feature = "arrow")]
pub mod tables;
pub mod units;
mod user_law;
mod watched;

pub use algorithm::{Algorithm, KernelName};
pub use asked::{Asked, control, signals};
pub use capture::CaptureRequest;
pub use compare::{PassiveRow, PathRow, Row, Spreads, compare, rows, write_csv};
pub use comparison::Comparison;
pub use describe::describe;
pub use error::Error;
pub use estimate::{Estimate, HOPS_PER_SECOND};
pub use host_id::HostId;
pub use hosts::{App, Host, Job, Join, Live, Seen, host, join, parts, run};
pub use journal::Journal;
pub use lock::Lock;
pub use metrics::{
    ConnectionSummary, HeadOfLineSummary, LinkSummary, PassiveSummary, PathSummary, TestSummary,
};
pub use narrows_laws::{Control, catalogue};
pub use narrows_sim::PassiveDetector;
pub use narrows_stats::Spread;
pub use narrows_traffic::Signal;
pub use output::{Output, json};
pub use plan::{Case, Finished, Plan, Point, Seeds, SeriesOf, Shard, Task};
pub use provenance::Provenance;
pub use recorder::Run;
pub use scenario::{
    Bound, Edits, Event, EventKind, Field, Flow, FlowKind, FlowPath, Link, Made, Phase, Published,
    Rival, Scenario, Sweep, Table, load, parse, reference, shipped, source_text,
};
pub use setup::{Setup, included_by, is_in, program, sha256};
pub use summary::{Fairness, Fitness, Summary};
pub use table::{fold, report, summary_table};
