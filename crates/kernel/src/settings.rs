//! What a control is loaded with.

use crate::Signal;
use narrows_laws::Params;

/// What a control is loaded with, as constants of its programs.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The parameters of its law, its detector and its slow start.
    pub params: Params,
    /// What its detector samples, if it decides.
    pub signal: Signal,
}
