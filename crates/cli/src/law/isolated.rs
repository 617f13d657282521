//! Runs code that may crash in a separate process.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use narrows_laws::check::Failure;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, pipe};

/// How the process died, in words.
pub struct Died(pub String);

/// Runs `case` in a child process, which may take `limit` of CPU time.
pub fn isolated(
    limit: Duration,
    case: impl FnOnce() -> Result<(), Failure>,
) -> Result<Result<(), Failure>, Died> {
    let system = |error: nix::Error| Died(format!("cannot run it in a process: {error}"));
    let (read, write) = pipe().map_err(system)?;
    // SAFETY: this process has one thread, so that the child finds all locks free.
    match unsafe { fork() }.map_err(system)? {
        ForkResult::Child => {
            drop(read);
            limit_cpu(limit);
            let found = case();
            let text = match &found {
                Ok(()) => String::new(),
                Err(failure) => {
                    let lines = std::iter::once(&failure.what).chain(&failure.case);
                    lines.map(|line| line.replace('\n', " ") + "\n").collect()
                }
            };
            let written = File::from(write).write_all(text.as_bytes());
            let code = if written.is_ok() { i32::from(found.is_err()) } else { 2 };
            // SAFETY: ends the process; what its parent has to clean up stays.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            drop(write);
            let mut text = String::new();
            let _ = File::from(read).read_to_string(&mut text); // what there is before it died
            match waitpid(child, None).map_err(system)? {
                WaitStatus::Exited(_, 0) => Ok(Ok(())),
                WaitStatus::Exited(_, 1) => {
                    let mut lines = text.lines().map(str::to_owned);
                    let what = lines.next().unwrap_or_default();
                    Ok(Err(Failure { what, case: lines.collect() }))
                }
                WaitStatus::Signaled(_, signal, _) => Err(Died(words(signal, limit))),
                other => Err(Died(format!("its process stopped: {other:?}"))),
            }
        }
    }
}

/// SIGPROF after `limit` of CPU time of all threads; no core dumps.
fn limit_cpu(limit: Duration) {
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval {
        it_interval: zero,
        it_value: libc::timeval {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_usec: limit.subsec_micros() as libc::suseconds_t,
        },
    };
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both structs are valid for the calls.
    unsafe {
        libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut());
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
}

fn words(signal: Signal, limit: Duration) -> String {
    match signal {
        Signal::SIGILL | Signal::SIGTRAP => {
            "undefined behaviour: a division by zero, a signed overflow, a shift by too much, an \
             index out of range or the like"
                .into()
        }
        Signal::SIGFPE => "division by zero".into(),
        Signal::SIGSEGV | Signal::SIGBUS => "invalid memory access".into(),
        Signal::SIGPROF => format!("does not terminate: took {limit:?} of CPU time"),
        other => format!("killed by {other}"),
    }
}
