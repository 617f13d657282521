//! Errors of commands.

use std::fmt;

use crate::exit::Exit;

/// One line with the place and the problem, and the exit code.
#[derive(Debug)]
pub struct Error {
    message: String,
    /// Lines that follow the message.
    details: String,
    exit: Exit,
}

impl Error {
    /// Wrong input, or a machine that is not as expected: the place, and what was expected.
    pub fn input(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), exit: Exit::Input }
    }

    /// A user's law that cannot be loaded; the compiler's messages follow in further lines.
    pub fn of_law(error: impl fmt::Display) -> Error {
        let text = error.to_string();
        let (message, details) = text.split_once('\n').unwrap_or((&text, ""));
        Error { message: message.into(), details: details.into(), exit: Exit::Input }
    }

    /// A check failed.
    pub fn no(place: impl fmt::Display, message: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {message}"), details: String::new(), exit: Exit::No }
    }

    /// Ctrl-C or an equivalent signal.
    #[cfg(all(feature = "lab", feature = "kernel"))]
    pub fn interrupted() -> Error {
        Error { message: "interrupted".into(), details: String::new(), exit: Exit::Interrupted }
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        self.exit as u8
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages of libraries and names that a user gives may have several lines.
        let line = self.message.trim().replace(['\n', '\r'], " ");
        // An empty name is a place, too.
        write!(f, "{}{line}", if line.starts_with(": ") { "''" } else { "" })?;
        if self.details.is_empty() { Ok(()) } else { write!(f, "\n{}", self.details) }
    }
}

#[cfg(feature = "lab")]
impl From<narrows_lab::Error> for Error {
    fn from(error: narrows_lab::Error) -> Error {
        let exit = Exit::of(error.exit_code()).unwrap_or(Exit::Input);
        Error { exit, message: error.to_string(), details: String::new() }
    }
}

#[cfg(feature = "detect")]
impl From<narrows_detect::Error> for Error {
    fn from(error: narrows_detect::Error) -> Error {
        Error { message: error.to_string(), details: String::new(), exit: Exit::Input }
    }
}

#[cfg(feature = "quic")]
impl From<narrows_transfer::Error> for Error {
    fn from(error: narrows_transfer::Error) -> Error {
        let exit = match error {
            narrows_transfer::Error::Input(..) => Exit::Input,
            narrows_transfer::Error::Failed(..) => Exit::No,
            narrows_transfer::Error::Interrupted => Exit::Interrupted,
        };
        Error { exit, message: error.to_string(), details: String::new() }
    }
}

#[cfg(feature = "kernel")]
impl From<narrows_kernel::Error> for Error {
    fn from(error: narrows_kernel::Error) -> Error {
        let exit = match error {
            narrows_kernel::Error::Interrupted => Exit::Interrupted,
            _ => Exit::Input,
        };
        Error { exit, message: error.to_string(), details: String::new() }
    }
}
