//! Runs under a user's law: each in a child process with a limit of CPU time, so that a law
//! that divides by zero, loops or writes where it must not fails its run with one line, and nothing
//! else.
//!
//! The child is the command itself, started with [`CHILD`]: it takes a job from its standard input and
//! leaves a result on its standard output, both JSON.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_foreign::harmless;
use narrows_laws::{Law, user};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::host::{Host, Job};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::estimate::Estimate;
use crate::host_id::HostId;
use crate::panics::catch;
use crate::recorder::Run;
use crate::scenario::{Edits, Made};

/// The word that makes the command a child of itself.
pub const CHILD: &str = "run-under-user-law";

/// CPU time of a run, at least, and how many times what it is estimated to take.
const CPU_SECONDS: u64 = 5;
const CPU_FACTOR: f64 = 20.0;
/// Bytes that are read of what it writes to standard error, and characters of that which are told.
const MAX_SAID: u64 = 1 << 20;
const TOLD: usize = 200;

/// The program whose children run jobs; none: they run here.
static PROGRAM: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// From now on, runs under the user's law are made by children: `program` with `arguments`, which calls
/// [`child`] if the argument after them is [`CHILD`]. The first call holds.
pub fn isolate(program: PathBuf, arguments: Vec<OsString>) {
    let _ = PROGRAM.set((program, arguments));
}

/// Are runs under the user's law made by children?
pub fn isolates() -> bool {
    PROGRAM.get().is_some()
}

/// What a child is to do.
#[derive(Serialize, Deserialize)]
struct Request {
    /// The law: its code, open; its header; which version it is.
    fd: i32,
    name: String,
    header: PathBuf,
    sha256: String,
    host: HostId,
    /// The scenario whole.
    scenario: Made,
    /// By name, which the child knows once it has the law.
    control: Option<String>,
    seed: u64,
    series: bool,
    cpu_seconds: u64,
}

/// How a child's run failed.
#[derive(Serialize, Deserialize)]
enum Failed {
    /// By an internal error.
    Fault(String),
    /// By anything else.
    Input(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        match error {
            Error::Fault { message, .. } => Failed::Fault(message),
            error => Failed::Input(error.to_string()),
        }
    }
}

/// Is a run to be made by a child?
pub fn is_asked(host: &dyn Host, job: &Job) -> bool {
    let user =
        |(_, algorithm): &(_, Algorithm)| algorithm.ours().is_some_and(|c| c.law == Law::USER);
    isolates() && !host.real_time() && job.controls().iter().any(user)
}

/// Has a child run `job` on `host`.
///
/// # Errors
/// What its run failed with; how the law ended it; a capture, which a child cannot write.
pub fn run(host: &dyn Host, job: &Job) -> Result<Run, Error> {
    let (Some((program, arguments)), Some(law)) = (PROGRAM.get(), user::loaded()) else {
        unreachable!("is_asked() has looked");
    };
    if job.capture.is_some() {
        let message = "not supported with --law";
        return Err(Error::input("--pcap", message));
    }
    let estimate = Estimate::of(job.scenario).seconds();
    let request = Request {
        fd: law.fd(),
        name: law.name().to_owned(),
        header: law.header().to_owned(),
        sha256: law.sha256().to_owned(),
        host: host.id(),
        scenario: Made::complete(job.scenario),
        control: job.control.map(|control| control.to_string()),
        seed: job.seed,
        series: job.series,
        cpu_seconds: CPU_SECONDS.max((CPU_FACTOR * estimate) as u64),
    };
    let place = program.display().to_string();
    let failed = |error| Error::input(&place, format!("cannot run a child: {error}"));
    let mut child = Command::new(program)
        .args(arguments)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is for this process, which then ends the child.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let json = serde_json::to_vec(&request).expect("a request has names for keys");
    let mut input = child.stdin.take().expect("it is piped");
    let mut output = child.stdout.take().expect("it is piped");
    let errors = child.stderr.take().expect("it is piped");
    let (status, result) = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // A child that dies early closes both; its status says why.
            let _ = input.write_all(&json);
            drop(input);
            let mut bytes = Vec::new();
            let _ = output.read_to_end(&mut bytes);
            bytes
        });
        let status = wait(&mut child, job.stop);
        (status, reader.join().unwrap_or_default())
    });
    let status = status.map_err(failed)?;
    if job.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let fault = |message: String| {
        let cc = request.control.clone().unwrap_or_else(|| "-".into());
        Error::Fault { scenario: job.scenario.name.clone(), cc, seed: job.seed, message }
    };
    if let Some(reason) = ended_by(status, request.cpu_seconds) {
        let place = law.header().display().to_string();
        let (scenario, seed) = (job.scenario.name.clone(), job.seed);
        return Err(match reason {
            Ok(reason) => Error::Law { place, reason, scenario, seed },
            Err(message) => fault(message),
        });
    }
    let result: Result<Run, Failed> = serde_json::from_slice(&result).map_err(|_| {
        let mut said = Vec::new();
        let _ = errors.take(MAX_SAID).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        // A law writes what it likes; the line of an end by an error of ours is the last.
        let line = said.trim().lines().last().unwrap_or_default();
        let line: String = line.chars().take(TOLD).collect();
        fault(format!("a run ended without a result: {}", harmless(&line)))
    })?;
    result.map_err(|failed| match failed {
        Failed::Fault(message) => fault(message),
        Failed::Input(message) => Error::input(&job.scenario.name, message),
    })
}

/// Waits for the child, and ends it if `stop` is set.
fn wait(child: &mut Child, stop: &AtomicBool) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            // It may just have ended.
            let _ = child.kill();
            return child.wait();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// What the law did, if a signal ended its process; as an error a signal that the law does not raise.
fn ended_by(status: ExitStatus, cpu_seconds: u64) -> Option<Result<String, String>> {
    Some(match Signal::try_from(status.signal()?) {
        Ok(Signal::SIGFPE) => Ok("divides by zero, or overflows a division".into()),
        Ok(Signal::SIGXCPU) => {
            Ok(format!("takes more than {cpu_seconds} s of CPU time for a run; does it loop?"))
        }
        Ok(Signal::SIGSEGV | Signal::SIGBUS) => Ok("accesses invalid memory".into()),
        Ok(Signal::SIGILL | Signal::SIGTRAP) => Ok("has undefined behaviour".into()),
        Ok(Signal::SIGABRT) => Ok("overflows the stack; does it recurse?".into()),
        Ok(signal) => {
            Err(format!("its process was killed by {signal}, perhaps for want of memory"))
        }
        Err(_) => Err("its process was killed by a signal".into()),
    })
}

/// The child's part: runs the job of standard input; its result goes to standard output.
///
/// # Errors
/// A request, or a law, that cannot be read.
pub fn child() -> Result<(), Error> {
    let place = "standard input";
    let mut json = Vec::new();
    std::io::stdin().read_to_end(&mut json).map_err(|error| Error::input(place, error))?;
    let request: Request =
        serde_json::from_slice(&json).map_err(|error| Error::input(place, error))?;
    let limit = request.cpu_seconds;
    setrlimit(Resource::RLIMIT_CPU, limit, limit + 5).map_err(|e| Error::input(place, e))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| Error::input(place, error))?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| Error::input(place, e))?;
    // SAFETY: the parent opened it for its children, and this process has it for itself.
    unsafe { user::adopt(request.fd, &request.name, &request.header, &request.sha256) }
        .map_err(|error| Error::input(place, error))?;
    let result = simulate(&request).map_err(Failed::from);
    let json = serde_json::to_vec(&result).expect("a result has names for keys");
    let mut out = std::io::stdout().lock();
    // In a library nobody does so at the end.
    let written = out.write_all(&json).and_then(|()| out.flush());
    written.map_err(|error| Error::input("standard output", error))
}

fn simulate(request: &Request) -> Result<Run, Error> {
    let scenario = request.scenario.load(&Edits::default())?;
    let stop = AtomicBool::new(false);
    let control = request.control.as_deref().map(str::parse::<Algorithm>).transpose();
    let job = Job {
        control: control.map_err(|error| Error::input("--cc", error))?,
        seed: request.seed,
        series: request.series,
        ..Job::new(&scenario, &stop)
    };
    let host = super::host(request.host.as_str())?;
    catch(|| host.run(job)).unwrap_or_else(|message| {
        let cc = request.control.clone().unwrap_or_else(|| "-".into());
        let (scenario, seed) = (scenario.name.clone(), request.seed);
        Err(Error::Fault { scenario, cc, seed, message })
    })
}
