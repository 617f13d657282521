//! Ctrl-C: a flag that runs check, so that they end cleanly and leave no incomplete files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// A flag that Ctrl-C (or SIGTERM) sets.
///
/// # Errors
/// The system refuses to set a handler.
pub fn on_signal() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let nohup = hang_up_is_ignored();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Error::input("Ctrl-C handler", error))?;
    if nohup {
        // SAFETY: no handler of ours is given, only the wish to ignore the signal.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(stop)
}

/// Signals received while a child had the terminal.
#[cfg(all(feature = "lab", feature = "kernel"))]
#[derive(Default)]
pub struct Signals {
    /// SIGTERM, or the end of the terminal.
    pub end: Arc<AtomicBool>,
    /// Ctrl-C or Ctrl-\, which the children got, too.
    pub key: Arc<AtomicBool>,
}

#[cfg(all(feature = "lab", feature = "kernel"))]
impl Signals {
    /// Did any come?
    pub fn any(&self) -> bool {
        [&self.end, &self.key].iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Flags that signals set. This process continues; its children handle the signals themselves.
///
/// # Errors
/// The system refuses to set a handler.
#[cfg(all(feature = "lab", feature = "kernel"))]
pub fn beside_children() -> Result<Signals, Error> {
    let signals = Signals::default();
    let Signals { end, key } = &signals;
    let mut handled = vec![(libc::SIGINT, key), (libc::SIGQUIT, key), (libc::SIGTERM, end)];
    if !hang_up_is_ignored() {
        handled.push((libc::SIGHUP, end));
    }
    for (signal, flag) in handled {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|error| Error::input("signal handler", error))?;
    }
    Ok(signals)
}

/// Is SIGHUP ignored, as by `nohup`? The handler of ctrlc would replace that.
fn hang_up_is_ignored() -> bool {
    // SAFETY: all zeros are a valid sigaction, and without a new one the call only fills it.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        let result = libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now);
        result == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
