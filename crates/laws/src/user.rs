//! A law that is loaded at run time.

use crate::raw::Module;
use std::sync::OnceLock;

static MODULE: OnceLock<&'static Module> = OnceLock::new();

pub(crate) fn module() -> Option<&'static Module> {
    MODULE.get().copied()
}
