//! The Python package over the library that cargo has just built.

use std::path::{Path, PathBuf};
use std::{env, fs};

use tempfile::TempDir;

/// The folder of cargo's profile, `target/debug`.
pub fn built() -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    deps.parent().unwrap().to_owned()
}

/// The folder of this crate.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder with the package, for PYTHONPATH.
pub fn package() -> TempDir {
    let package = tempfile::tempdir().unwrap();
    let folder = package.path().join("narrows");
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(here().join("python/narrows")).unwrap() {
        let file = file.unwrap();
        if file.path().is_file() {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    fs::copy(built().join("deps/lib_narrows.so"), folder.join("_narrows.abi3.so")).unwrap();
    package
}
