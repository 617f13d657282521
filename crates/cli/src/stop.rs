//! Ctrl-C: a flag that the runs look at, so that they end in order and leave no half-written file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// A flag that Ctrl-C (or a polite kill) sets.
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

/// What came while a child had the terminal.
#[cfg(all(feature = "lab", feature = "kernel"))]
#[derive(Default)]
pub struct Signals {
    /// A polite kill, or the end of the terminal.
    pub end: Arc<AtomicBool>,
    /// A key that means an end: also the children got it.
    pub key: Arc<AtomicBool>,
}

#[cfg(all(feature = "lab", feature = "kernel"))]
impl Signals {
    /// Did any come?
    pub fn any(&self) -> bool {
        [&self.end, &self.key].iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Flags that signals set. This process goes on; what they do to its children is the children's.
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

/// Does `nohup` ask us to outlive the terminal? ctrlc's handler would take its place.
fn hang_up_is_ignored() -> bool {
    // SAFETY: all zeros are a valid sigaction, and without a new one the call only fills it.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        let result = libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now);
        result == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
