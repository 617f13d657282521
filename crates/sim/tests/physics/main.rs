//! The physics: what simulated flows do, beside what theory says they must. Every figure is in
//! docs/method/fidelity.md with its formula and source; `scripts/fidelity` prints them all.

#[path = "../common/mod.rs"]
mod common;

mod aqm;
mod cubic;
mod dumbbell;
mod figure;
mod loss;
mod rtt;
mod sharing;
mod slow_start;
