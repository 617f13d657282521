//! `narrows shell` and `narrows clean`.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::Host;
use narrows_lab::hosts::kernel::{Addresses, Shell, alone, listens};
use narrows_lab::{CaptureRequest, Output, Provenance, Setup, control, load, sha256};

use crate::args::shell::ShellArgs;
use crate::error::Error;
use crate::stop::{self, Signals};
use crate::terminal::note;
use crate::{COMMIT, print, words};

/// The seed of the network.
const SEED: u64 = 1;
/// Interval of polling a child: has it ended, or does it listen?
const LOOK: Duration = Duration::from_millis(10);
/// How long to wait for a server that does not listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a command in a host of a scenario, and returns its exit code.
pub fn shell(args: &ShellArgs) -> Result<u8, Error> {
    if args.command.first().is_some_and(|program| program.is_empty()) {
        return Err(Error::input("CMD", "expected a program, found \"\""));
    }
    args.edit.load_law()?;
    let scenario = alone(load(&args.scenario, &args.edit.edits()?)?)?;
    let control = args.cc.as_deref().map(control).transpose()?;
    let results = sha256(&(Setup::of(&scenario, control.as_slice()), control, &args.host));
    let provenance = Provenance::new("shell", results, true, COMMIT, words());
    let of = |folder| Output::of(folder, &provenance);
    let mut pcap = args.pcap.as_deref().map(of).transpose()?;
    let request = |output| CaptureRequest { names: &[], snaplen: args.snaplen, output };
    let capture = pcap.as_mut().map(request);
    let signals = stop::beside_children()?;
    let shell = Shell::new(scenario, &args.host, SEED, control, capture)?;
    let status = shell.during(|| run(args, &shell, &signals))??;
    let fitness = shell.end()?;
    pcap.map_or(Ok(()), Output::commit)?;
    if let Some(why) = fitness.why {
        note(&format!(
            "narrows: the network deviated from the scenario ({why}): measurements are invalid"
        ));
    }
    // As a shell shows a command that a signal ended.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

fn run(args: &ShellArgs, shell: &Shell, signals: &Signals) -> Result<ExitStatus, Error> {
    let server = shell.server();
    let serve = args.serve.as_deref().map(|text| serve(text, shell.other(), server));
    let mut serve = serve.transpose()?;
    if let Some(serve) = &mut serve {
        serve.listens(shell.other(), signals)?;
    }
    let (program, arguments) = match args.command.split_first() {
        Some((program, arguments)) => (fill(program, server), arguments),
        None => (std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()), &[][..]),
    };
    if args.command.is_empty() && std::io::stderr().is_terminal() {
        let text = shell.describe();
        note(text.strip_suffix('\n').unwrap_or(&text));
    }
    if signals.any() {
        return Err(Error::interrupted());
    }
    let mut command = shell.own().command(&program);
    command.args(arguments.iter().map(|argument| fill(argument, server)));
    describe(&mut command, shell.own(), server);
    let mut child = Running::new(&mut command, &program)?;
    loop {
        if let Some(status) = child.ended()? {
            return Ok(status);
        }
        // Keys are handled by the command, which got the signal too.
        if signals.end.load(Ordering::Relaxed) {
            // Do not wait for its reaction: the terminal may be gone.
            return child.kill();
        }
        sleep(LOOK);
    }
}

/// Removes what killed runs left behind, or only shows it.
pub fn clean(dry_run: bool) -> Result<(), Error> {
    let (all, done) = match dry_run {
        true => (narrows_emu::left(), "would be removed:"),
        false => (narrows_emu::clean(), "removed"),
    };
    let all = all.map_err(|error| Error::input("clean", error))?;
    if all.is_empty() {
        return print("nothing was left behind\n");
    }
    print(&all.iter().map(|one| format!("{done} {one}\n")).collect::<String>())
}

/// A child that does not outlive its value.
struct Running {
    name: OsString,
    child: Child,
}

impl Running {
    fn new(command: &mut Command, name: &OsStr) -> Result<Running, Error> {
        let child = command.spawn().map_err(|error| cannot(name, error))?;
        Ok(Running { name: name.to_owned(), child })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|error| cannot(&self.name, error))
    }

    fn kill(&mut self) -> Result<ExitStatus, Error> {
        // Ended already: it has its status.
        self.child.kill().ok();
        self.child.wait().map_err(|error| cannot(&self.name, error))
    }

    /// Waits until something listens in its host.
    fn listens(&mut self, host: &Host, signals: &Signals) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !signals.any() {
            if listens(host)? {
                return Ok(());
            }
            match self.ended()? {
                // A server that continues in the background exits with success.
                Some(status) if !status.success() => {
                    return Err(Error::input("--serve", format!("{status}, before it listened")));
                }
                _ => sleep(LOOK),
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill().ok();
    }
}

fn cannot(program: &OsStr, error: std::io::Error) -> Error {
    Error::input(program.to_string_lossy(), format!("cannot be run: {error}"))
}

/// Starts a server, without the terminal's Ctrl-C; standard output is for the command alone.
fn serve(text: &str, host: &Host, server: Addresses) -> Result<Running, Error> {
    let mut command = host.command("sh");
    command.arg("-c").arg(fill(text.as_ref(), server)).stdin(Stdio::null()).process_group(0);
    command.stdout(std::io::stderr());
    describe(&mut command, host, server);
    Running::new(&mut command, "sh".as_ref())
}

/// Sets the environment of a program.
fn describe(command: &mut Command, host: &Host, server: Addresses) {
    command.env("NARROWS_HOST", host.name()).env("NARROWS_SERVER", server.v4.to_string());
    if let Some(v6) = server.v6 {
        command.env("NARROWS_SERVER6", v6.to_string());
    }
}

/// Replaces the placeholders by the addresses of the other host.
fn fill(text: &OsStr, server: Addresses) -> OsString {
    let v6 = server.v6.map(|v6| v6.to_string()).unwrap_or_default();
    let filled = replace(text.as_bytes(), b"{server}", server.v4.to_string().as_bytes());
    OsString::from_vec(replace(&filled, b"{server6}", v6.as_bytes()))
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
