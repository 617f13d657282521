//! What a command fails with.

use std::fmt;

/// One line that says what is wrong and where, and the exit code.
#[derive(Debug)]
pub struct Error {
    message: String,
    /// Lines that follow the message.
    details: String,
    code: u8,
}

impl Error {
    /// Something the user gave, or the machine, is not as expected: where, and what was expected.
    pub fn input(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), code: 2 }
    }

    /// A law of the user's own that cannot be loaded; what a compiler says has lines of its own.
    pub fn of_law(error: impl fmt::Display) -> Error {
        let text = error.to_string();
        let (message, details) = text.split_once('\n').unwrap_or((&text, ""));
        Error { message: message.into(), details: details.into(), code: 2 }
    }

    /// The answer to what was asked is no.
    pub fn no(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), code: 1 }
    }

    /// Ctrl-C, or what means the same.
    #[cfg(all(feature = "lab", feature = "kernel"))]
    pub fn interrupted() -> Error {
        // 128 + SIGINT, as a shell shows a command that was killed by Ctrl-C.
        Error { message: "interrupted".into(), details: String::new(), code: 130 }
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages of libraries and names that a user gives may have several lines.
        f.write_str(&self.message.trim().replace(['\n', '\r'], " "))?;
        if self.details.is_empty() { Ok(()) } else { write!(f, "\n{}", self.details) }
    }
}

#[cfg(feature = "lab")]
impl From<narrows_lab::Error> for Error {
    fn from(error: narrows_lab::Error) -> Error {
        Error { code: error.exit_code(), message: error.to_string(), details: String::new() }
    }
}

#[cfg(feature = "detect")]
impl From<narrows_detect::Error> for Error {
    fn from(error: narrows_detect::Error) -> Error {
        Error { message: error.to_string(), details: String::new(), code: 2 }
    }
}

#[cfg(feature = "kernel")]
impl From<narrows_kernel::Error> for Error {
    fn from(error: narrows_kernel::Error) -> Error {
        // 128 + SIGINT, as a shell shows a command that was killed by Ctrl-C.
        let code = if matches!(error, narrows_kernel::Error::Interrupted) { 130 } else { 2 };
        Error { code, message: error.to_string(), details: String::new() }
    }
}
