//! How a command ends.

/// The exit codes; docs/reference/commands.md has them as a table. `shell` returns that of its command instead, or 128 and
/// the number of the signal that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// It ran, and failed or says no.
    No = 1,
    /// It could not begin, or not go on.
    Input = 2,
    /// 128 + SIGINT, as a shell shows a command that was killed by Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them.
    pub const ALL: [Exit; 4] = [Exit::Done, Exit::No, Exit::Input, Exit::Interrupted];

    /// The one of a code.
    #[cfg(feature = "lab")]
    pub(crate) fn of(code: u8) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| *exit as u8 == code)
    }

    /// What it means, and when it comes.
    pub fn about(self) -> [&'static str; 2] {
        match self {
            Exit::Done => [
                "success",
                "It did what was asked, or nobody reads its output any more. Verdicts of `papers` and \
                 `evaluate` are results, not failures. Ctrl-C is the end of `detect` of an interface \
                 or of standard input, `kernel watch`, `recommend`, `advise`, `receiver` and `status \
                 --watch`, and of `quic serve`.",
            ],
            Exit::No => [
                "it ran, and failed or says no",
                "A run, also one of a comparison, panicked, stood still or was ended by its law; \
                 `kernel check` found something missing, `law check` a failed check, `fuzz` a fault, \
                 `papers --check` a page that differs; there is no trial, or what it found is lost; a \
                 file was not received.",
            ],
            Exit::Input => [
                "wrong input, or it could not begin",
                "The command line, a scenario, a capture or another file is wrong, or cannot be read or \
                 written; the kernel, a program or a right that it needs is not there; the kernel \
                 refuses a control.",
            ],
            Exit::Interrupted => [
                "interrupted",
                "Ctrl-C, SIGTERM, the end of the terminal, or `q` in `--live`. What was loaded so far \
                 is undone; no results are written, but with `--out` `compare`, `papers` and `evaluate` \
                 keep their finished runs for `--resume`.",
            ],
        }
    }
}
