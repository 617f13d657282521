//! Errors of commands.

use std::fmt;

/// One line with the place and the problem, and the exit code.
#[derive(Debug)]
pub struct Error {
    message: String,
    /// Lines that follow the message.
    details: String,
    code: u8,
}

impl Error {
    /// Wrong input, or a machine that is not as expected: the place, and what was expected.
    pub fn input(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), code: 2 }
    }

    /// A user's law that cannot be loaded; the compiler's messages follow in further lines.
    pub fn of_law(error: impl fmt::Display) -> Error {
        let text = error.to_string();
        let (message, details) = text.split_once('\n').unwrap_or((&text, ""));
        Error { message: message.into(), details: details.into(), code: 2 }
    }

    /// A check failed.
    pub fn no(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), code: 1 }
    }

    /// Ctrl-C or an equivalent signal.
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

#[cfg(feature = "quic")]
impl From<narrows_transfer::Error> for Error {
    fn from(error: narrows_transfer::Error) -> Error {
        let code = match error {
            narrows_transfer::Error::Input(..) => 2,
            narrows_transfer::Error::Failed(..) => 1,
            narrows_transfer::Error::Interrupted => 130,
        };
        Error { code, message: error.to_string(), details: String::new() }
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
