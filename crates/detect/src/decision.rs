//! What a detector decided.

use narrows_laws::detect::FlowsDecision;

/// Who shares a bottleneck with whom, from one time on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// When it was made, seconds in the time of the file.
    pub t_s: f64,
    /// What was decided on the flows of the file.
    pub on: FlowsDecision,
}
