//! Any program in place of the source of the flow under test.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::Host;
use narrows_mptcp::diag::{self, State};

use super::controls::kernel;
use crate::Error;
use crate::hosts::App;

/// Where the address of the receiver goes.
const SERVER: &str = "{server}";

/// How long a server may take until it listens; what listens on no TCP port is given so much time.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of what a program complains about is looked at.
const COMPLAINT: u64 = 4096;

/// A program that runs in a host. Dropped, it is killed.
pub struct Program {
    command: String,
    child: Child,
    complaints: File,
}

impl App {
    /// Starts the server, if there is one, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or it failed; [`Error::Interrupted`] once `stop` is set.
    pub(super) fn serve(
        &self,
        receiver: &Host,
        server: Ipv4Addr,
        stop: &AtomicBool,
    ) -> Result<Option<Program>, Error> {
        let Some(command) = &self.server else { return Ok(None) };
        let mut program = Program::start(receiver, command, server).map_err(failed("--serve"))?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if listens(receiver)? {
                break;
            }
            if let Some(message) = program.failed() {
                return Err(Error::input("--serve", message));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            sleep(Duration::from_millis(20));
        }
        Ok(Some(program))
    }

    /// Starts the client.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(&self, sender: &Host, server: Ipv4Addr) -> Result<Program, Error> {
        Program::start(sender, &self.client, server).map_err(failed("--app"))
    }
}

/// Does a TCP socket listen in a host?
///
/// # Errors
/// The kernel refuses the query.
pub fn listens(host: &Host) -> Result<bool, Error> {
    let sockets = host.run(diag::sockets).and_then(|sockets| sockets);
    Ok(sockets.map_err(kernel)?.iter().any(|socket| socket.state == State::Listen))
}

impl Program {
    /// What it prints goes where messages go, so that a result stays readable.
    fn start(host: &Host, command: &str, server: Ipv4Addr) -> io::Result<Program> {
        let command = command.replace(SERVER, &server.to_string());
        let complaints = tempfile::tempfile()?;
        let mut shell = host.command("sh");
        shell.arg("-c").arg(&command).stdin(Stdio::null()).stderr(complaints.try_clone()?);
        shell.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        Ok(Program { child: shell.spawn()?, command, complaints })
    }

    /// How it failed, if it has ended and did: its status and the last it complained of.
    pub fn failed(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten().filter(|status| !status.success())?;
        Some(self.message(status))
    }

    fn message(&mut self, status: ExitStatus) -> String {
        let mut message = Vec::new();
        let length = self.complaints.seek(SeekFrom::End(0)).unwrap_or(0);
        let start = SeekFrom::Start(length.saturating_sub(COMPLAINT));
        if self.complaints.seek(start).is_ok() {
            self.complaints.read_to_end(&mut message).ok();
        }
        let message = String::from_utf8_lossy(&message);
        let last = message.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output");
        format!("\"{}\" ended with {status}: {}", self.command, last.trim())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn failed(option: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::input(option, format!("cannot run it: {error}"))
}
