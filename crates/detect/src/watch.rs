//! Who looks on while a file is read.

use crate::{Decision, Observation};

/// Sees what a detector does.
pub trait Watch {
    /// A decision.
    fn decided(&mut self, decision: &Decision);
    /// An observation, after the decisions that it made due.
    fn observed(&mut self, observation: &Observation);
}
