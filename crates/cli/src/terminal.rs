//! What is said on the terminal. Names of processes, interfaces, namespaces and files are others' choice,
//! and a terminal obeys control characters in them: none gets there but our own.
//!
//! All output passes here, so that no name can be forgotten, and a test (`rooms` of crates/testkit) keeps
//! it so. What stands in columns, or must stay on one line, is a [`Foreign`](narrows_foreign::Foreign)
//! besides, where it enters: here nobody knows any more which new lines are ours.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, ErrorKind, Write};

#[cfg(feature = "lab")]
use indicatif::ProgressBar;
pub use narrows_foreign::harmless;

use crate::error::Error;

/// Writes to standard output. A reader that has gone away, as in `narrows list | head`, is no
/// error.
pub fn print(text: &str) -> Result<(), Error> {
    print_while_read(text).map(drop)
}

/// The same; false: the reader has gone away.
pub fn print_while_read(text: &str) -> Result<bool, Error> {
    command(&harmless(text))
}

/// The same of text that may command the terminal.
pub fn command(text: &str) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::input("standard output", format!("cannot write: {error}"))),
        Ok(()) => Ok(true),
    }
}

/// Writes a line, or more, to standard error. If that is closed there is nothing to report to.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

/// Shows a line beside a progress bar.
#[cfg(feature = "lab")]
pub fn show(bar: &ProgressBar, text: &str) {
    bar.set_message(harmless(text).into_owned());
}

/// Panics, too, may speak of names: from now on they say here what the standard library's hook says.
pub fn take_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        note(&format!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>")));
        let backtrace = Backtrace::capture();
        match backtrace.status() {
            BacktraceStatus::Captured => note(&backtrace.to_string()),
            _ => note(
                "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            ),
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a process of its own, as it is of a whole process and ends in it.
    #[test]
    fn a_panic_speaks_of_names_without_commanding_the_terminal() {
        const INSIDE: &str = "NARROWS_TEST_PANICS";
        if std::env::var_os(INSIDE).is_some() {
            take_panics();
            panic!("no ev\u{1b}[2J\u{202e}");
        }
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "--nocapture"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0");
        let name = "terminal::tests::a_panic_speaks_of_names_without_commanding_the_terminal";
        let output = again.arg(name).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(text.contains("no ev\\u001b[2J\\u202e") && text.contains("terminal.rs:"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
