//! The laws, and a connection under one of them.

pub mod orders;
pub mod paths;
pub mod queue;

pub use narrows_laws::check::Host;
use narrows_laws::raw::{self, Detection, MAX_PATHS};
use narrows_laws::{Control, Detector, Event, Law};

/// Every law, with its own detector.
pub fn every_law() -> impl Iterator<Item = Control> {
    Law::all().map(Control::of)
}

/// Every window law, with its own detector.
pub fn every_window_law() -> impl Iterator<Item = Control> {
    every_law().filter(|control| !control.law.is_model())
}

/// Gives a detector an event of a path of a connection whose law is the test.
pub fn detect(
    detector: Detector,
    conn: &mut raw::Conn,
    detection: &mut Detection,
    path: usize,
    event: &Event,
) {
    assert!(path < MAX_PATHS);
    // SAFETY: the pointers are valid and exclusive, and the path is in range.
    unsafe { raw::narrows_detect(detector.number(), conn, detection, path as u32, event) };
}
