//! Goodputs of a run, Mbit/s.

use crate::Kept;

/// Of a connection or flow.
pub fn goodput(run: &Kept, name: &str) -> f64 {
    run.connection(name).goodput_mbps
}

/// Of the connection that a paper's scenarios name `mptcp`.
pub fn mptcp(run: &Kept) -> f64 {
    goodput(run, "mptcp")
}

/// Of the connection under test.
pub fn under_test(run: &Kept) -> f64 {
    run.test().goodput_mbps
}
