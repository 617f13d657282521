//! Errors of the lab, each in one line with its place.

use std::path::Path;

use thiserror::Error;

/// An error of the lab. Its message is one line.
#[derive(Debug, Error)]
pub enum Error {
    /// Wrong input: the place, and what was expected.
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
        /// The system's error.
        source: std::io::Error,
    },
    /// A run panicked or made no progress, an internal error.
    #[error("{scenario} under {cc}, seed {seed}: {message}")]
    Fault {
        /// Name of the scenario.
        scenario: String,
        /// Congestion control of the connection under test, `-` without one.
        cc: String,
        /// Seed of the run.
        seed: u64,
        /// The panic's message and place in the source.
        message: String,
    },
    /// A user's law ended a run.
    #[error("{place}: the law {reason} ({scenario}, seed {seed})")]
    Law {
        /// Its header.
        place: String,
        /// What it did.
        reason: String,
        /// Name of the scenario.
        scenario: String,
        /// Seed of the run.
        seed: u64,
    },
    /// The user interrupted the run.
    #[error("interrupted, no results were written")]
    Interrupted,
    /// A comparison ended early; its finished runs are kept.
    #[error("{error}; {kept} of {runs} runs are saved in {file}, --resume runs the rest")]
    Kept {
        /// What ended it.
        error: Box<Error>,
        /// Finished runs.
        kept: usize,
        /// All runs.
        runs: u64,
        /// The file they are kept in.
        file: String,
    },
    /// The user interrupted the runs of tables; finished ones are kept.
    #[error("interrupted; finished runs are saved in {folder}, --resume goes on with them")]
    KeptIn {
        /// The folder they are kept in.
        folder: String,
    },
}

impl Error {
    /// Something wrong at `place`.
    pub fn input(place: impl Into<String>, message: impl ToString) -> Error {
        // Messages of libraries and names that a user gives may have several lines.
        let message = message.to_string().trim().replace('\n', "; ");
        Error::Input { place: place.into().replace(['\n', '\r'], " "), message }
    }

    /// A failed action on a file; for use in `map_err`.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io { path: path.display().to_string(), action, source }
    }

    /// The exit code of a command that failed with this.
    pub fn exit_code(&self) -> u8 {
        match self {
            // 128 + SIGINT, as a shell shows a command that was killed by Ctrl-C.
            Error::Interrupted | Error::KeptIn { .. } => 130,
            Error::Input { .. } | Error::Io { .. } => 2,
            Error::Fault { .. } | Error::Law { .. } => 1,
            Error::Kept { error, .. } => error.exit_code(),
        }
    }
}
