//! What the search has found: networks in which a control was wrong, each with what is right there.
//! `corpus/finds.toml` lists them; those with `stands = true` are faults that are known and not mended
//! yet.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use narrows_adversary::{Blame, CHARGES, Charge, FRESH, agreed, judge};
use narrows_lab::{Algorithm, Edits, host, load};
use rayon::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Finds {
    find: Vec<Find>,
}

#[derive(Deserialize)]
struct Find {
    /// The scenario beside the list.
    file: String,
    cc: Algorithm,
    charge: String,
    /// The value that is just right.
    right: f64,
    /// It is wrong today.
    #[serde(default)]
    stands: bool,
}

/// What is not as the list says.
fn unexpected(folder: &Path, find: &Find) -> Option<String> {
    let Find { file, cc, charge, right, stands } = find;
    let path = folder.join(file);
    let scenario = load(path.to_str()?, &Edits::default()).unwrap();
    let stop = AtomicBool::new(false);
    let verdict = |&seed: &u64| judge(host("sim").unwrap(), &scenario, *cc, seed, &stop).unwrap();
    let verdicts: Vec<_> = FRESH.par_iter().map(verdict).collect();
    let known = CHARGES.into_iter().find(|known| known.name() == charge);
    let charge = known.unwrap_or_else(|| panic!("{file}: no charge {charge}"));
    let (blame, measure) = agreed(charge, &verdicts).unzip();
    let wrong = blame == Some(Some(Blame::Law));
    // Fewer retransmissions than count are right.
    if measure.is_none() && charge != Charge::Retransmits {
        return Some(format!("{file}: {} of {cc} is no question", charge.name()));
    }
    if measure.is_some_and(|measure| (measure.limit - right).abs() > 0.005) {
        return Some(format!("{file}: {right} is not what is right: {measure:?}"));
    }
    match (wrong, stands) {
        (true, false) => Some(format!("{file}: {} of {cc} is wrong: {measure:?}", charge.name())),
        (false, true) => {
            Some(format!("{file}: {} of {cc} is mended: remove stands = true", charge.name()))
        }
        _ => None,
    }
}

#[test]
fn what_was_found_once_stays_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let list = std::fs::read_to_string(folder.join("finds.toml")).unwrap();
    let list: Finds = toml::from_str(&list).unwrap();
    let all = list.find.par_iter().with_max_len(1);
    let all: Vec<String> = all.filter_map(|find| unexpected(&folder, find)).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|of| of.unwrap()).collect();
    files.retain(|file| {
        let name = file.file_name();
        name != "finds.toml" && !list.find.iter().any(|find| *find.file == *name)
    });
    assert!(files.is_empty(), "not in the list: {files:?}");
}
