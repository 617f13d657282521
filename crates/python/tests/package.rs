//! The tests of the Python package, beside this file, over the library that cargo has just built. They need
//! `scripts/python venv`; without it they are skipped with a note. `make python` tests the wheel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folder of cargo's profile, `target/debug`.
fn built() -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    deps.parent().unwrap().to_owned()
}

#[test]
fn the_package_passes_its_own_tests() {
    let built = built();
    let python = built.parent().unwrap().join("python/venv/bin/python");
    if !python.exists() {
        println!("skipped: {} is missing; scripts/python venv makes it", python.display());
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = tempfile::tempdir().unwrap();
    let folder = package.path().join("narrows");
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(here.join("python/narrows")).unwrap() {
        let file = file.unwrap();
        if file.path().is_file() {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    fs::copy(built.join("deps/lib_narrows.so"), folder.join("_narrows.abi3.so")).unwrap();
    let status = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations", "5", "tests"])
        .current_dir(here)
        .env("PYTHONPATH", package.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .unwrap();
    assert!(status.success());
}
