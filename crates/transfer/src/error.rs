//! Why a file is not served or not fetched.

use std::fmt::Display;

/// In one line: the place, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Wrong input: nothing was begun.
    #[error("{0}: {1}")]
    Input(String, String),
    /// The transfer failed; no file was left.
    #[error("{0}: {1}")]
    Failed(String, String),
    /// The caller asked to stop; no file was left.
    #[error("interrupted, no file was written")]
    Interrupted,
}

impl Error {
    pub(crate) fn input(place: impl Display, message: impl Display) -> Error {
        Error::Input(place.to_string(), message.to_string())
    }

    pub(crate) fn failed(place: impl Display, message: impl Display) -> Error {
        Error::Failed(place.to_string(), message.to_string())
    }
}
