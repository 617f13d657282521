//! Everything that can go wrong, each as one line that says where.

use std::path::Path;

use thiserror::Error;

/// An error of the lab. Its message is one line.
#[derive(Debug, Error)]
pub enum Error {
    /// Something the user gave is wrong: where, and what was expected.
    #[error("{place}: {message}")]
    Input {
        /// File with line and field, or the option of the command line.
        place: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A file or folder could not be read or written.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file or folder.
        path: String,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The user interrupted the run; nothing was written.
    #[error("interrupted, nothing was written")]
    Interrupted,
}

impl Error {
    /// Something wrong at `place`.
    pub fn input(place: impl Into<String>, message: impl ToString) -> Error {
        // Messages of libraries may have several lines.
        let message = message.to_string().trim().replace('\n', "; ");
        Error::Input { place: place.into(), message }
    }

    /// A failed action on a file; for use in `map_err`.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io { path: path.display().to_string(), action, source }
    }

    /// The exit code of a command that failed with this.
    pub fn exit_code(&self) -> u8 {
        match self {
            // 128 + SIGINT, as a shell shows a command that was ended by Ctrl-C.
            Error::Interrupted => 130,
            Error::Input { .. } | Error::Io { .. } => 2,
        }
    }
}
