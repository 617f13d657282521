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
            // A panic must not run what is its parent's to clean up.
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(case))
                .unwrap_or_else(|_| {
                    // SAFETY: ends the process.
                    unsafe { libc::_exit(101) }
                });
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
                WaitStatus::Exited(_, 1) => Ok(Err(Failure::of_lines(&text))),
                WaitStatus::Signaled(_, signal, _) => Err(Died(words(signal, limit))),
                other => Err(Died(format!("its process stopped: {other:?}"))),
            }
        }
    }
}

/// SIGPROF after `limit` of CPU time of all threads, SIGALRM after ten times as long; no core dumps, and
/// nothing on standard error.
fn limit_cpu(limit: Duration) {
    let timer = |after: Duration| libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: after.as_secs() as _,
            tv_usec: after.subsec_micros() as _,
        },
    };
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: all structs are valid for the calls, and the path is a string.
    unsafe {
        libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY), libc::STDERR_FILENO);
        libc::setitimer(libc::ITIMER_PROF, &timer(limit), std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &timer(10 * limit), std::ptr::null_mut());
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
        Signal::SIGALRM => "does not terminate: it waits for something".into(),
        Signal::SIGABRT => "stack overflow; does it recurse?".into(),
        other => format!("killed by {other}"),
    }
}
