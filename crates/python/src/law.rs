//! A law of the user's.

use std::path::Path;
use std::sync::Mutex;

use narrows_lab::hosts::child;
use narrows_lab::{Algorithm, Scenario};
use narrows_laws::user::{self, Checks};

use pyo3::prelude::*;

use crate::error::Failure;
use crate::value::path;

/// The option of the command that loads the law which a scenario under some controls takes.
pub fn option(scenario: &Scenario, controls: &[Algorithm]) -> Option<String> {
    let law = user::loaded().filter(|_| scenario.takes_user_law(controls))?;
    Some(format!("--law={}", law.header().display()))
}

/// Loads the law in `header`, once in a process.
///
/// # Errors
/// It is no law, does not compile, or another one is loaded.
pub fn load(header: Option<&Bound<'_, PyAny>>) -> Result<(), Failure> {
    match header {
        Some(header) => load_from(&path(header, "law")?),
        None => Ok(()),
    }
}

/// The same of a file.
///
/// # Errors
/// As of [`load`].
pub fn load_from(header: &Path) -> Result<(), Failure> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !child::isolates() {
        let message = "runs in a process of its own, and Python does not say its program; expected sys.executable";
        return Err(Failure::of("law", message));
    }
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
