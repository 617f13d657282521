//! Errors, each in one line with its place.

/// An error of detection. Its message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something the user gave is wrong: where (a file, with its line, or an option), and what was
    /// expected.
    #[error("{place}: {message}")]
    Input {
        /// File, with line, or option.
        place: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What was tried.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    /// Something wrong at `place`.
    pub fn input(place: impl ToString, message: impl ToString) -> Error {
        Error::Input { place: place.to_string(), message: message.to_string() }
    }

    /// A failed action on a file; for use in `map_err`.
    pub fn io(path: &str, action: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, action, source }
    }
}
