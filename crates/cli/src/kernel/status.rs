//! `narrows kernel status`.

use std::io::{self, IsTerminal};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_mptcp_admin::status::{Fit, Sample, Status};
use narrows_netns::Namespace;

use super::wait;
use crate::args::kernel::StatusArgs;
use crate::error::Error;
use crate::terminal::{command, harmless, print_while_read};
use crate::{print, stop};

/// Time between the two samples of one status.
const GLANCE: Duration = Duration::from_millis(250);
/// Time between the samples of --watch.
const TICK: Duration = Duration::from_secs(1);

/// Shows controls and connections, once or until Ctrl-C.
pub fn status(args: &StatusArgs) -> Result<(), Error> {
    let only = args.netns.as_deref().map(Namespace::named).transpose();
    let only = only.map_err(|error| Error::input("--netns", error))?;
    if args.watch {
        return watch(args, look(only));
    }
    let before = Sample::look(only.as_ref());
    sleep(GLANCE);
    let mut status = look(only);
    status.measure(&before);
    if args.json {
        return print(&json(&status, true)?);
    }
    let fit = match args.top {
        Some(n) => Fit::Top(n),
        None if io::stdout().is_terminal() => Fit::Lines(rows() - 1),
        None => Fit::All,
    };
    print(&status.text(fit))
}

fn look(only: Option<Namespace>) -> Status {
    only.map_or_else(Status::look, Status::look_in)
}

fn watch(args: &StatusArgs, mut status: Status) -> Result<(), Error> {
    let as_json = args.json;
    let fit = args.top.map_or(Fit::All, Fit::Top);
    let stop = stop::on_signal()?;
    let screen = (!as_json && io::stdout().is_terminal()).then(Screen::open).transpose()?;
    let mut next = Instant::now();
    loop {
        let read = match (&screen, as_json) {
            (Some(screen), _) => command(&screen.frame(&status, args.top))?,
            (None, true) => print_while_read(&json(&status, false)?)?,
            (None, false) => print_while_read(&(status.text(fit) + "\n"))?,
        };
        if !read {
            return Ok(());
        }
        // After a pause (Ctrl-Z) or a slow sample missed ticks are skipped.
        next = (next + TICK).max(Instant::now());
        if !wait(next, &stop) {
            return Ok(());
        }
        status = status.again();
    }
}

fn json(status: &Status, pretty: bool) -> Result<String, Error> {
    let text = match pretty {
        true => serde_json::to_string_pretty(status),
        false => serde_json::to_string(status),
    };
    Ok(text.map_err(|error| Error::input("JSON", error))? + "\n")
}

/// The terminal's alternate screen (xterm's control sequences); the first one is restored at the
/// end.
struct Screen;

impl Screen {
    /// Second screen, no cursor, lines cut at the edge.
    fn open() -> Result<Screen, Error> {
        command("\x1b[?1049h\x1b[?25l\x1b[?7l")?;
        Ok(Screen)
    }

    /// What overwrites the screen without flicker.
    fn frame(&self, status: &Status, top: Option<usize>) -> String {
        let rows = rows();
        let text = status.text(top.map_or(Fit::Lines(rows - 1), Fit::Top));
        let lines = harmless(&text);
        let lines = lines.lines().take(rows - 1).map(|line| format!("{line}\x1b[K\n"));
        format!("\x1b[H{}\x1b[J", lines.collect::<String>())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = command("\x1b[?7h\x1b[?25h\x1b[?1049l");
    }
}

/// Lines of the terminal, two at least.
fn rows() -> usize {
    // SAFETY: all zeros are a valid winsize, and the call only fills it.
    let (result, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size), size)
    };
    let rows = if result == 0 && size.ws_row > 0 { size.ws_row.into() } else { 24 };
    rows.max(2)
}
