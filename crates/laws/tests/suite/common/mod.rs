//! The laws, and a connection under one of them.

pub mod paths;
pub mod queue;

pub use narrows_laws::check::Host;
use narrows_laws::{Control, Law};

/// Every law, with its own detector.
pub fn every_law() -> impl Iterator<Item = Control> {
    Law::all().map(Control::of)
}

/// Every window law, with its own detector.
pub fn every_window_law() -> impl Iterator<Item = Control> {
    every_law().filter(|control| !control.law.is_model())
}
