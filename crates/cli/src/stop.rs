//! Ctrl-C: a flag that the runs look at, so that they end in order and leave no half-written file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_lab::Error;

/// A flag that Ctrl-C (or a polite kill) sets.
///
/// # Errors
/// The system refuses to set a handler.
pub fn on_signal() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Error::input("Ctrl-C handler", error))?;
    Ok(stop)
}
