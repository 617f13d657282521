//! The clock of BPF programs.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CLOCK_MONOTONIC, now.
pub fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock").into()
}
