//! Scenarios, runs and results, on the simulator.

mod advice;
mod base;
mod capture;
mod detection;
mod era;
mod events;
mod figure2;
mod journal;
mod media;
mod messages;
mod metrics;
mod never_worse;
#[cfg(feature = "parquet")]
mod parquet;
mod reproducible;
mod shipped;
mod short_queue;
mod whole;
