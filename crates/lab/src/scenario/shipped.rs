//! The scenarios that come with Narrows, inside the program so that it runs anywhere.

use include_dir::{Dir, include_dir};

/// The folder `scenarios` of the repository.
static FOLDER: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// The names of all shipped scenarios, in order: the paths of their files without `.toml`, as
/// `sbd/nsb-2`. A file that gives itself no name is no scenario but a base of others.
pub fn shipped() -> Vec<&'static str> {
    let mut all = Vec::new();
    collect(&FOLDER, &mut all);
    all.sort_unstable();
    all
}

fn collect(folder: &'static Dir, all: &mut Vec<&'static str>) {
    for file in folder.files() {
        let name = file.path().to_str().and_then(|path| path.strip_suffix(".toml"));
        let table = file.contents_utf8().and_then(|text| text.parse::<toml::Table>().ok());
        if let (Some(name), Some(true)) = (name, table.map(|table| table.contains_key("name"))) {
            all.push(name);
        }
    }
    folder.dirs().for_each(|sub| collect(sub, all));
}

/// The shipped file at `path` below the folder.
pub fn file(path: &str) -> Option<&'static [u8]> {
    FOLDER.get_file(path).map(|file| file.contents())
}
