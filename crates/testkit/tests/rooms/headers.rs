//! Which headers of a folder of C need which.
//!
//! A header needs those that it includes. And one that declares a function for whoever includes it to
//! provide needs the header that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// What the declaration of a function in a header begins with.
const STATIC: [&str; 3] = ["static", "NR_INLINE", "NR_NOINLINE"];

/// The headers under `folder`, which the compiler is given, each with those of them that it needs.
pub fn arrows(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    read(folder, Path::new(""), &mut headers);
    let mut defined = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (file, text) in &headers {
        for (name, _) in functions(text).into_iter().filter(|(_, has_body)| *has_body) {
            defined.entry(name).or_default().insert(file);
        }
    }
    let needs = |file: &String, text: &String| -> BTreeSet<String> {
        let folder = Path::new(file).parent().unwrap();
        let names =
            text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
        let included = names.filter_map(|name| {
            let places = [folder.join(name), PathBuf::from(name)];
            places.iter().map(|path| plain(path)).find(|path| headers.contains_key(path))
        });
        let declared = functions(text).into_iter().filter(|(_, has_body)| !has_body);
        let provided = declared.filter_map(|(name, _)| defined.get(name)).flatten();
        let provided = provided.map(|by| (*by).to_owned()).filter(|by| by != file);
        included.chain(provided).collect()
    };
    headers.iter().map(|(file, text)| (file.clone(), needs(file, text))).collect()
}

/// Reads the headers in `inner`, a folder in `folder`, and below.
fn read(folder: &Path, inner: &Path, headers: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder.join(inner)).unwrap() {
        let entry = entry.unwrap();
        let path = inner.join(entry.file_name());
        if entry.path().is_dir() {
            read(folder, &path, headers);
        } else if path.extension().is_some_and(|end| end == "h" || end == "def") {
            headers.insert(plain(&path), std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// A path without `..`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part.as_os_str().to_str().unwrap()),
        }
    }
    parts.join("/")
}

/// The functions of a header by name, each with whether it has its body there.
fn functions(text: &str) -> Vec<(&str, bool)> {
    let other = |c: char| !c.is_alphanumeric() && c != '_';
    let mut functions: Vec<(&str, bool)> = Vec::new();
    let mut rest = text;
    while let Some((line, next)) = rest.split_once('\n') {
        let begins = line.split(other).next().is_some_and(|word| STATIC.contains(&word));
        if let Some(end) = rest.find([';', '{', '=']).filter(|_| begins) {
            let name =
                rest[..end].split_once('(').and_then(|(before, _)| before.rsplit(other).next());
            let has_body = rest[end..].starts_with('{');
            functions.extend(name.map(|name| (name, has_body)));
        }
        rest = next;
    }
    functions
}
