//! Sysctls of this network namespace, as they are and what has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All below `folders`, which are paths below /proc/sys, but those that count or are drawn anew at each
/// reading.
pub fn sysctls(folders: &[&str]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    folders.iter().for_each(|folder| read(&Path::new("/proc/sys").join(folder), &mut all));
    all
}

fn read(folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.path().display().to_string());
        let lives = ["fastopen_key", "dead", "_count"].iter().any(|word| name.contains(word));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read(&path, all);
        } else if !lives {
            all.extend(fs::read_to_string(&path).map(|value| (name, value.trim().to_owned())));
        }
    }
}

/// Fine if both say the same, else what differs: name, before, now.
pub fn unchanged(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), String> {
    let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
    let changed = names.filter(|&name| before.get(name) != now.get(name));
    let changed: Vec<_> = changed.map(|name| (name, before.get(name), now.get(name))).collect();
    if changed.is_empty() { Ok(()) } else { Err(format!("{changed:#?}")) }
}
