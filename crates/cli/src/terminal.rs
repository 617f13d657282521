//! What is said on the terminal. Names of processes, interfaces, namespaces and files are others' choice,
//! and a terminal obeys control characters in them: none gets there but our own.
//!
//! All output passes here, so that no name can be forgotten, and a test (`rooms` of crates/testkit) keeps
//! it so. What stands in columns, or must stay on one line, is a [`Foreign`](narrows_foreign::Foreign)
//! besides, where it enters: here nobody knows any more which new lines are ours.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, ErrorKind, Write};
#[cfg(feature = "lab")]
use std::{
    fs::File,
    io::{IsTerminal, Read},
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

#[cfg(feature = "lab")]
use indicatif::ProgressBar;
pub use narrows_foreign::harmless;
#[cfg(feature = "lab")]
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
#[cfg(feature = "lab")]
use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

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

/// The whole terminal, for a view of what goes on. What was there before comes back when this is dropped, and
/// before a panic speaks.
#[cfg(feature = "lab")]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    /// Where keys come from.
    keys: File,
}

/// Is there a [`Screen`]?
#[cfg(feature = "lab")]
static SCREEN: AtomicBool = AtomicBool::new(false);

/// A key.
#[cfg(feature = "lab")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Ctrl-C or q.
    Interrupt,
    /// Another one.
    Other,
}

#[cfg(feature = "lab")]
impl Screen {
    /// Is standard output a terminal?
    ///
    /// # Errors
    /// It is not.
    pub fn check() -> Result<(), Error> {
        match io::stdout().is_terminal() {
            true => Ok(()),
            false => Err(Error::input("--live", "expected a terminal as standard output")),
        }
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// It is none, or refuses.
    pub fn open() -> Result<Screen, Error> {
        Screen::check()?;
        let opened = enable_raw_mode().and_then(|()| {
            SCREEN.store(true, Ordering::Relaxed);
            execute!(io::stdout(), EnterAlternateScreen, Hide)?;
            let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            Ok(Screen { terminal, keys: keys()? })
        });
        opened.map_err(refused).inspect_err(|_| leave())
    }

    /// Draws all of it. Names of others must be [`Foreign`](narrows_foreign::Foreign) in it.
    ///
    /// # Errors
    /// The terminal has gone away, or a panic has spoken on it.
    pub fn draw(&mut self, view: impl FnOnce(&mut Frame)) -> Result<(), Error> {
        if !SCREEN.load(Ordering::Relaxed) {
            return Err(Error::input("standard output", "no longer for a view"));
        }
        self.terminal.draw(view).map(drop).map_err(refused)
    }

    /// The key that came within `wait`, if one did; [`Key::Interrupt`] if it is among several.
    ///
    /// # Errors
    /// The terminal has gone away.
    pub fn key(&mut self, wait: Duration) -> Result<Option<Key>, Error> {
        if !self.has_keys(wait).map_err(refused)? {
            return Ok(None);
        }
        // Not by crossterm, which waits for ever for the rest of a key at a terminal that has hung up.
        let mut bytes = [0; 1024];
        let count = self.keys.read(&mut bytes).map_err(refused)?;
        let interrupt = match bytes[..count] {
            [] => return Err(refused(io::Error::other("it has hung up"))),
            // A key that is written as several.
            [0x1b, ..] => false,
            ref typed => typed.iter().any(|byte| [0x03, b'q'].contains(byte)),
        };
        Ok(Some(if interrupt { Key::Interrupt } else { Key::Other }))
    }

    /// Do keys come within `wait`?
    fn has_keys(&self, wait: Duration) -> io::Result<bool> {
        let mut keys = [PollFd::new(self.keys.as_fd(), PollFlags::POLLIN)];
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut keys, wait) {
            // A signal ends waiting.
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            polled => polled?,
        };
        match keys[0].revents() {
            Some(PollFlags::POLLIN) => Ok(true),
            _ => Err(io::Error::other("it has hung up")),
        }
    }
}

/// The terminal, from which keys are read.
#[cfg(feature = "lab")]
fn keys() -> io::Result<File> {
    let stdin = io::stdin();
    match stdin.is_terminal() {
        true => stdin.as_fd().try_clone_to_owned().map(File::from),
        false => File::open("/dev/tty"),
    }
}

#[cfg(feature = "lab")]
impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, once.
#[cfg(feature = "lab")]
fn leave() {
    if SCREEN.swap(false, Ordering::Relaxed) {
        // If it has gone away there is nothing to give back.
        let _ = disable_raw_mode();
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    }
}

#[cfg(feature = "lab")]
fn refused(error: io::Error) -> Error {
    Error::input("terminal", error)
}

/// Panics, too, may speak of names: from now on they say here what the standard library's hook says.
pub fn take_panics() {
    std::panic::set_hook(Box::new(|panic| {
        #[cfg(feature = "lab")]
        leave();
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

    /// On a terminal and in a process of its own, where `script` makes one.
    #[cfg(feature = "lab")]
    #[test]
    fn a_panic_speaks_on_the_terminal_that_was_before_the_view() {
        const INSIDE: &str = "NARROWS_TEST_SCREEN";
        if std::env::var_os(INSIDE).is_some() {
            take_panics();
            let _screen = Screen::open().unwrap();
            panic!("out of the view");
        }
        let name = "terminal::tests::a_panic_speaks_on_the_terminal_that_was_before_the_view";
        let again = std::env::current_exe().unwrap();
        let line = format!("{} --exact --nocapture {name}", again.display());
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0");
        let script = script.env("TERM", "xterm").stdin(std::process::Stdio::null());
        let Ok(output) = script.output() else {
            println!("skipped: script is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, after) = text.split_once("\u{1b}[?1049h").unwrap_or_else(|| panic!("{text:?}"));
        let (view, said) = after.split_once("\u{1b}[?1049l").unwrap();
        assert!(said.contains("out of the view") && !view.contains("out of"), "{text:?}");
    }

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
