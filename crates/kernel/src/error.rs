//! Errors of the kernel host, each in one line.

use crate::available::Unavailable;
use std::io;
use std::path::{Path, PathBuf};

/// Why a control is not loaded, used or undone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// BPF cannot be used here at all.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The kernel lacks a feature needed for congestion control in BPF, or for MPTCP.
    #[error("this kernel has no {0}")]
    OldKernel(&'static str),
    /// A control of this name is registered.
    #[error("{0}: a congestion control of this name is already registered{1}")]
    NameTaken(String, &'static str),
    /// The verifier, or libbpf, rejected the control.
    #[error("{name}: rejected by the kernel's verifier: {last}{}", full(log))]
    Refused {
        /// The control's name in the kernel.
        name: String,
        /// The last lines of the log, joined into one.
        last: String,
        /// File of the full log.
        log: Option<PathBuf>,
    },
    /// A state map of another layout exists: its connections could not be shared with this build.
    #[error(
        "{name}: connections of another build of narrows have their state in the kernel (map {map}, \
         id {id}; {differs}): unload it and let its connections end"
    )]
    Layout {
        /// The control's name in the kernel.
        name: String,
        /// The map's name.
        map: String,
        /// Its id.
        id: u32,
        /// In what it differs from the one of this build.
        differs: String,
    },
    /// A bpf call failed.
    #[error("{what}: cannot {doing}: {source:#}")]
    Bpf {
        /// The control, map or path.
        what: String,
        /// What was tried.
        doing: &'static str,
        /// The error of libbpf or the kernel.
        source: libbpf_rs::Error,
    },
    /// A file could not be read or written.
    #[error("{path}: cannot {doing}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Wrong input, or an unsuitable machine.
    #[error("{place}: {message}")]
    Input {
        /// The option, control or path.
        place: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// Interrupted by the user; changes are undone.
    #[error("interrupted, nothing was changed")]
    Interrupted,
}

impl Error {
    /// A failed bpf call; for use in `map_err`.
    pub fn bpf(
        what: impl Into<String>,
        doing: &'static str,
    ) -> impl FnOnce(libbpf_rs::Error) -> Error {
        move |source| Error::Bpf { what: what.into(), doing, source }
    }

    /// A failed action on a file; for use in `map_err`.
    pub fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), doing, source }
    }

    /// Something does not fit.
    pub fn input(place: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Input { place: place.into(), message: message.into() }
    }
}

fn full(log: &Option<PathBuf>) -> String {
    log.as_ref().map(|log| format!(" (full log: {})", log.display())).unwrap_or_default()
}
