//! The scenarios that come with Narrows, inside the program so that it runs anywhere.

use include_dir::{Dir, include_dir};

/// The folder `scenarios` of the repository.
static FOLDER: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// A shipped scenario.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name: the path of its file without `.toml`, as `sbd/nsb-2`.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// All shipped scenarios, by name.
pub fn shipped() -> Vec<Shipped> {
    let mut all = Vec::new();
    collect(&FOLDER, &mut all);
    all.sort_by_key(|scenario| scenario.name);
    all
}

fn collect(folder: &'static Dir, all: &mut Vec<Shipped>) {
    for file in folder.files() {
        let name = file.path().to_str().and_then(|path| path.strip_suffix(".toml"));
        if let (Some(name), Some(text)) = (name, file.contents_utf8()) {
            all.push(Shipped { name, text });
        }
    }
    folder.dirs().for_each(|sub| collect(sub, all));
}

/// The shipped file at `path` below the folder, for a trace that a shipped scenario names.
pub fn file(path: &str) -> Option<&'static [u8]> {
    FOLDER.get_file(path).map(|file| file.contents())
}
