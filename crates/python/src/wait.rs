//! Work without the GIL, in a thread of its own, while the caller's thread looks for Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{Failure, raise};

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);

/// Does `work`, which ends soon after its flag is set; that is done by Ctrl-C, or where `look` fails, which is
/// called now and then.
///
/// # Errors
/// KeyboardInterrupt, what `look` fails with, or that of `work`; the system gives no thread.
pub fn wait<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> Result<T, Failure> + Send,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (alive, mut ended) = channel::<()>();
    let (result, raised) = thread::scope(|scope| {
        let flag = Arc::clone(&stop);
        let thread = thread::Builder::new().spawn_scoped(scope, move || {
            let _alive = alive;
            quietly(|| work(&flag))
        });
        let worker = match thread {
            Ok(worker) => worker,
            Err(error) => return (Err(no_thread(&error)), None),
        };
        let mut raised = None;
        loop {
            let ended = &mut ended;
            let waited = py.detach(move || ended.recv_timeout(LOOK));
            if waited != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if raised.is_none() {
                raised = py.check_signals().and_then(|()| look(py)).err();
                stop.store(raised.is_some(), Ordering::Relaxed);
            }
        }
        (worker.join().unwrap_or_else(|_| Err(died())), raised)
    });
    match raised {
        Some(raised) => Err(raised),
        None => {
            look(py)?;
            result.map_err(|failure| raise(py, failure))
        }
    }
}

/// Does `work` without the GIL. It cannot be stopped, so that by Ctrl-C it goes on alone, for nobody: it changes nothing
/// that lasts.
///
/// # Errors
/// KeyboardInterrupt, or that of `work`; the system gives no thread.
pub fn alone<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (give, mut made) = channel();
    let thread = thread::Builder::new().spawn(move || {
        let _ = give.send(quietly(work));
    });
    thread.map_err(|error| raise(py, no_thread(&error)))?;
    loop {
        let made = &mut made;
        match py.detach(move || made.recv_timeout(LOOK)) {
            Ok(result) => return result.map_err(|failure| raise(py, failure)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(raise(py, died())),
        }
    }
}

/// A limit on processes or memory, as batch systems set.
fn no_thread(error: &std::io::Error) -> Failure {
    Failure::Line(format!("narrows: cannot start a thread: {error}"))
}

fn died() -> Failure {
    Failure::Line("narrows: a thread died".into())
}

/// Does `work` that takes no time to speak of, in the caller's thread.
///
/// # Errors
/// That of `work`.
pub fn at_once<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    quietly(work).map_err(|failure| raise(py, failure))
}

/// A panic, which is a fault of this program, is an error like others.
///
/// # Errors
/// That of `work`, or the panic's message.
pub fn quietly<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // Nothing that the panic left half done is looked at again.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        Err(Failure::Line(format!("narrows: internal error: {text}")))
    })
}
