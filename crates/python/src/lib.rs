//! The module `narrows._narrows`: what the Python package `narrows` is made of. The work is that of the crates
//! lab, papers and detect, and the command that of crate cli; here is what Python needs to see of it.
//!
//! Work runs in a thread of its own without the GIL, while the caller's thread looks for Ctrl-C ([`wait`]). All
//! errors are `narrows.Error`, a panic too ([`error`]). Tables go out by the Arrow PyCapsule interface
//! ([`table`]).

mod compare;
mod detect;
mod error;
mod law;
mod papers;
mod run;
mod scenario;
mod sweep;
mod table;
mod trace;
mod value;
mod wait;

use pyo3::prelude::*;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Scenarios, runs and tables of Narrows.
#[pymodule]
mod _narrows {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use narrows_lab::hosts::child;
    use pyo3::prelude::*;
    use pyo3::types::PyList;

    use crate::error::{Failure, raise};
    use crate::wait::quietly;

    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::detect::{Detection, detect};
    #[pymodule_export]
    use crate::papers::{PaperTable, papers};
    #[pymodule_export]
    use crate::run::{Run, run};
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sweep::{Sweep, work};
    #[pymodule_export]
    use crate::table::{Table, listed};

    /// Starts the command of the package that is in the folder of the first argument.
    const CHILD: &str = "import sys; sys.path.insert(0, sys.argv.pop(1)); \
        from narrows.__main__ import main; sys.exit(main())";

    /// Tells the crates where their code is, and how a child is started that runs a law of the user's.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let spec = module.getattr("__spec__").and_then(|spec| spec.getattr("origin"));
        let Ok(file) = spec.and_then(|file| file.extract::<PathBuf>()) else { return Ok(()) };
        // Its path may be relative, and the current folder another one later.
        let file = file.canonicalize().unwrap_or(file);
        let known = narrows_lab::is_in(&file).map_err(Failure::from);
        known.map_err(|failure| raise(py, failure))?;
        let python = py.import("sys")?.getattr("executable")?.extract::<Option<PathBuf>>()?;
        let python = python.filter(|python| !python.as_os_str().is_empty());
        if let (Some(python), Some(path)) = (python, file.parent().and_then(Path::parent)) {
            // Isolated: neither the current folder nor the environment names another package.
            let words = ["-I".into(), "-c".into(), CHILD.into(), path.into()];
            child::isolate(python, words.to_vec());
        }
        Ok(())
    }

    /// Does what the words of a command line say, the program first; returns the exit code.
    #[pyfunction]
    fn main(py: Python<'_>, words: &Bound<'_, PyList>) -> PyResult<u8> {
        let words: Vec<OsString> = words.extract()?;
        py.detach(|| quietly(|| Ok(narrows_cli::main(words)))).map_err(|failure| raise(py, failure))
    }

    /// What identifies this build: SHA-256 of the file with its code.
    #[pyfunction]
    fn build(py: Python<'_>) -> PyResult<String> {
        let program = py.detach(|| quietly(|| narrows_lab::program().map_err(Failure::from)));
        program.map_err(|failure| raise(py, failure))
    }
}
