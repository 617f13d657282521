//! A law of the user's.

use std::path::Path;
use std::sync::Mutex;

use narrows_laws::user::{self, Checks};

use crate::error::Failure;

/// Loads the law in `header`, once in a process.
///
/// # Errors
/// It is no law, does not compile, or another one is loaded.
pub fn load(header: Option<&Path>) -> Result<(), Failure> {
    static ONE: Mutex<()> = Mutex::new(());
    let Some(header) = header else { return Ok(()) };
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some(law) = user::loaded() else {
        let loaded = user::load(header, Checks::None);
        return loaded.map(drop).map_err(|error| Failure::Line(error.to_string()));
    };
    let same = std::fs::canonicalize(header).is_ok_and(|path| path == law.header());
    if same && law.is_unchanged() {
        return Ok(());
    }
    let there = law.header().display();
    Err(Failure::of(
        "law",
        format!(
            "this process has {there} loaded, and has one law of its own at most; expected a new process for another"
        ),
    ))
}
