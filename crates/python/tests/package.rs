//! The tests of the Python package, beside this file, and the notebooks of docs, over the library that cargo has just
//! built. They need `scripts/python venv`; without it they are skipped, and say so. `make python` tests the wheel.

mod library;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use library::{built, here, package};
use narrows_testkit::blocks;

/// Python of `scripts/python venv`, where it was made.
fn python() -> Option<PathBuf> {
    let python = built().parent().unwrap().join("python/venv/bin/python");
    if !python.exists() {
        // cargo keeps what a test that passes prints, but not this.
        let note = format!(
            "SKIPPED: no test of the Python package was run, as {} is missing; `scripts/python venv` makes it\n",
            python.display()
        );
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    Some(python)
}

/// Some tests are on how long things take.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs pytest in a folder.
fn pytest(folder: &Path, arguments: &[&str]) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(python) = python() else { return };
    let package = package();
    let status = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations", "5"])
        .args(arguments)
        .current_dir(folder)
        .env("PYTHONPATH", package.path())
        // Beside no source, and once for all processes.
        .env("PYTHONPYCACHEPREFIX", built().parent().unwrap().join("python/bytecode"))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn the_package_passes_its_own_tests() {
    pytest(here(), &["tests"]);
}

#[test]
#[ignore = "minutes"]
fn the_package_passes_its_slow_tests() {
    pytest(here(), &["-m", "slow", "tests"]);
}

/// In place of a cluster a thread.
const CLUSTER: &str = "
from dask.distributed import LocalCluster
class SLURMCluster(LocalCluster):
    def __init__(self, **_): super().__init__(n_workers=1, processes=False, dashboard_address=None)
    def scale(self, jobs): pass
";

/// docs/guide/python.md, over seconds of its networks.
#[test]
fn the_code_of_its_page_runs() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(python) = python() else { return };
    let page = fs::read_to_string(here().join("../../docs/guide/python.md")).unwrap();
    let mut code: String = blocks(&page, "python").flat_map(|code| [code, "\n"]).collect();
    for (whole, small) in [
        ("\"sbd/nsb-2\"", "brief(\"sbd/nsb-2\")"),
        ("\"sbd/nsb-5\"", "brief(\"sbd/nsb-5\")"),
        ("seeds=500", "seeds=2"),
        (":8:log", ":2:log"),
        ("/shared/sweep", "sweep"),
    ] {
        assert!(code.contains(whole), "{whole}");
        code = code.replace(whole, small);
    }
    let folder = tempfile::tempdir().unwrap();
    let conftest = here().join("tests/conftest.py");
    fs::copy(conftest, folder.path().join("conftest.py")).unwrap();
    fs::write(folder.path().join("dask_jobqueue.py"), CLUSTER).unwrap();
    let code = format!("from conftest import brief\n{code}assert len(comparison.runs) == 16\n");
    fs::write(folder.path().join("page.py"), code).unwrap();
    let package = package();
    let status = Command::new(python)
        .arg("page.py")
        .current_dir(folder.path())
        .env("PYTHONPATH", package.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MPLBACKEND", "Agg")
        .status()
        .unwrap();
    assert!(status.success());
}

/// With two seeds, which have a mean and an interval, too; as they are `make python` runs them.
#[test]
fn the_notebooks_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for file in fs::read_dir(here().join("../../docs/notebooks")).unwrap() {
        let file = file.unwrap();
        let (name, text) = (file.file_name(), fs::read_to_string(file.path()).unwrap());
        let seeds = text.match_indices("seeds=").collect::<Vec<_>>();
        compared += seeds.len();
        let text = text.replace("seeds=10)", "seeds=2)").replace("seeds=5,", "seeds=2,");
        assert_eq!(text.matches("seeds=2").count(), seeds.len(), "{}", name.display());
        fs::write(folder.path().join(name), text).unwrap();
    }
    assert!(compared > 0, "no notebook compares");
    let text = fs::read_to_string(folder.path().join("first-figure.ipynb")).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap();
    let figure = cells.iter().find(|cell| cell["cell_type"] == "code").unwrap();
    assert!(figure["source"].as_array().unwrap().len() < 20, "a first figure is short");
    pytest(folder.path(), &["--nbmake", "--nbmake-timeout", "600", "."]);
}
