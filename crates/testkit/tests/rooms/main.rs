//! Who may know whom: between the crates of the workspace, and between the files of a crate, its C too.

mod files;
mod headers;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each crate, and those that it may depend on. A new crate needs a line, and so does a new arrow.
const ROOMS: &[(&str, &[&str])] = &[
    ("laws", &[]),
    ("net", &[]),
    ("stats", &[]),
    ("foreign", &[]),
    ("advice", &["stats"]),
    ("report", &["foreign"]),
    // The figures of a page, which those who only write pages need not compile.
    ("plots", &["foreign", "report"]),
    ("netns", &["foreign"]),
    ("mptcp", &["foreign", "netns"]),
    ("traffic", &["net"]),
    ("sim", &["laws", "net", "traffic"]),
    ("kernel", &["foreign", "laws"]),
    (
        "mptcp-admin",
        &["advice", "detect", "foreign", "kernel", "laws", "mptcp", "netns", "report", "stats"],
    ),
    ("quic", &["laws"]),
    ("quic-sockets", &[]),
    ("transfer", &["foreign", "laws", "quic", "quic-sockets"]),
    ("quic-sim", &["net", "sim", "traffic"]),
    ("detect", &["foreign", "laws", "report"]),
    ("emu", &["net", "netns"]),
    (
        "lab",
        &[
            "advice",
            "emu",
            "foreign",
            "kernel",
            "laws",
            "mptcp",
            "net",
            "netns",
            "quic",
            "quic-sim",
            "quic-sockets",
            "report",
            "sim",
            "stats",
            "traffic",
        ],
    ),
    ("adversary", &["lab", "laws", "net", "traffic"]),
    ("papers", &["advice", "lab", "net", "report", "stats"]),
    // On the runner, the store and the intervals of papers; laws for the headers that answer in prose.
    ("evaluate", &["lab", "laws", "papers", "report", "stats"]),
    (
        "cli",
        &[
            "adversary",
            "detect",
            "emu",
            "evaluate",
            "foreign",
            "kernel",
            "lab",
            "laws",
            "mptcp-admin",
            "netns",
            "papers",
            "plots",
            "transfer",
        ],
    ),
    // The lab for a page; laws for the catalogue, net for the values of links.
    ("web", &["lab", "laws", "net", "report"]),
    // The command comes with the wheel.
    ("python", &["cli", "detect", "foreign", "lab", "laws", "papers", "report"]),
    ("testkit", &["netns"]),
];

/// The folder of all crates.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates of the workspace by the names of their folders, each with those that `sections` of its
/// manifest name.
fn arrows(sections: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut manifests = BTreeMap::new();
    for folder in std::fs::read_dir(crates()).unwrap() {
        let folder = folder.unwrap().path();
        let Ok(text) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        manifests.insert(name, text.parse::<toml::Table>().unwrap());
    }
    let package = |manifest: &toml::Table| manifest["package"]["name"].as_str().unwrap().to_owned();
    let folders: BTreeMap<String, String> =
        manifests.iter().map(|(folder, manifest)| (package(manifest), folder.clone())).collect();
    let of = |manifest: &toml::Table| -> BTreeSet<String> {
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        let targets = targets.into_iter().flat_map(|targets| targets.values());
        let tables = [manifest].into_iter().chain(targets.filter_map(toml::Value::as_table));
        let tables = tables.flat_map(|table| sections.iter().filter_map(|name| table.get(*name)));
        let names = tables.filter_map(toml::Value::as_table).flat_map(|table| table.keys());
        names.filter_map(|name| folders.get(name).cloned()).collect()
    };
    manifests.iter().map(|(folder, manifest)| (folder.clone(), of(manifest))).collect()
}

#[test]
fn no_crate_knows_another_that_it_must_not() {
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (from, to) in arrows(&["dependencies", "build-dependencies"]) {
        let Some(allowed) = rooms.get(from.as_str()) else {
            wrong.push(format!("crates/{from} has no line in ROOMS"));
            continue;
        };
        let to = to.iter().filter(|to| !allowed.contains(&to.as_str()));
        wrong.extend(to.map(|to| format!("crates/{from} must not depend on crates/{to}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cargo lets development dependencies lead back; here they do not either.
#[test]
fn crates_make_no_circle_with_their_tests_and_benches() {
    let arrows = arrows(&["dependencies", "build-dependencies", "dev-dependencies"]);
    assert_eq!(circles(&arrows), Vec::<Vec<String>>::new());
}

/// Circles that are left, each with its crate. One that is gone loses its line.
const LEFT: &[(&str, &[&str])] = &[
    // A mechanism each, of one sender whose state they share.
    (
        "sim",
        &[
            "tcp/ecn.rs",
            "tcp/handshake.rs",
            "tcp/pacing.rs",
            "tcp/psh.rs",
            "tcp/recovery.rs",
            "tcp/sender.rs",
            "tcp/tlp.rs",
            "tcp/undo.rs",
        ],
    ),
    // The file's tables stand with the code that resolves them, which is given the whole file.
    (
        "lab",
        &["scenario/detection.rs", "scenario/events.rs", "scenario/file.rs", "scenario/link.rs"],
    ),
];

#[test]
fn files_of_a_crate_make_no_circle() {
    let mut all = Vec::new();
    let mut left = LEFT.to_vec();
    for (name, _) in ROOMS {
        let crate_ = crates().join(name).join("src");
        let arrows = files::arrows(&crate_);
        for circle in circles(&arrows) {
            if let Some(at) = left.iter().position(|&(of, known)| of == *name && circle == known) {
                left.remove(at);
                continue;
            }
            all.push(format!("crates/{name}/src:"));
            for from in &circle {
                let to: Vec<_> = arrows[from].iter().filter(|to| circle.contains(to)).collect();
                all.push(format!("  {from} needs {to:?}"));
            }
        }
    }
    assert!(all.is_empty(), "files that need each other:\n{}", all.join("\n"));
    assert!(left.is_empty(), "no circles any more, to be taken off the list: {left:?}");
}

#[test]
fn headers_of_a_folder_make_no_circle() {
    for folder in ["laws/c", "kernel/src/bpf"] {
        let arrows = headers::arrows(&crates().join(folder));
        assert!(arrows.values().any(|to| !to.is_empty()), "crates/{folder}: {arrows:?}");
        assert_eq!(circles(&arrows), Vec::<Vec<String>>::new(), "crates/{folder}");
    }
}

#[test]
fn a_header_needs_what_it_includes_and_who_defines_what_it_declares() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    for (name, text) in [
        ("a.h", "#include \"inner/b.h\"\nstatic int given(int n,\n\tint m);\n"),
        ("inner/b.h", "#include <stdio.h>\n#include \"c.h\"\n#include \"../d.h\"\n"),
        ("d.h", "static const int one[] = {1};\nNR_INLINE int given(int n, int m)\n{\n}\n"),
        ("c.h", "static int given(int n, int m);\n#include \"elsewhere.h\"\n"),
        ("c.c", "#include \"a.h\"\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let arrows = headers::arrows(folder.path());
    let arrows: Vec<String> = arrows.iter().map(|(from, to)| format!("{from}: {to:?}")).collect();
    let expected = [
        r#"a.h: {"d.h", "inner/b.h"}"#,
        r#"c.h: {"d.h"}"#,
        "d.h: {}",
        r#"inner/b.h: {"c.h", "d.h"}"#,
    ];
    assert_eq!(arrows, expected);
}

/// The largest sets of two and more that all lead to each other.
fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            let to = arrows.get(at).into_iter().flatten();
            next.extend(to.filter(|to| reached.insert((*to).clone())));
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|from| (from, reached(from))).collect();
    let with = |from: &String| -> Vec<String> {
        let back = |to: &&&String| reached[from].contains(**to) && reached[**to].contains(from);
        reached.keys().filter(back).map(|to| (*to).clone()).collect()
    };
    let all: BTreeSet<Vec<String>> = arrows.keys().map(with).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// Who writes to the terminal, or hands it on, beside `terminal.rs` of the command, which lets no character
/// through that a terminal obeys. One that no longer does loses its line.
const SAYS: &[(&str, &str, &str)] = &[
    // The kernel's complaints outside of a load, by the same function.
    ("kernel", "libbpf_log.rs", "eprint!"),
    // JSON for the parent, through a pipe.
    ("lab", "hosts/child.rs", "stdout()"),
    // A program of the user's, which has the terminal for itself.
    ("lab", "hosts/kernel/app.rs", "stderr()"),
    ("cli", "shell.rs", "stderr()"),
];

#[test]
fn all_that_is_said_passes_one_place() {
    let mut found = Vec::new();
    for (name, _) in ROOMS.iter().filter(|(name, _)| *name != "testkit") {
        let folder = crates().join(name).join("src");
        for file in files::arrows(&folder).into_keys() {
            let text = std::fs::read_to_string(folder.join(&file)).unwrap();
            let said = said::by(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
            found.extend(said.into_iter().map(|what| (*name, file.clone(), what)));
        }
    }
    // It is what it is for.
    found.retain(|(name, file, _)| (*name, file.as_str()) != ("cli", "terminal.rs"));
    let found: BTreeSet<(&str, &str, &str)> =
        found.iter().map(|(name, file, what)| (*name, file.as_str(), what.as_str())).collect();
    assert_eq!(found, SAYS.iter().copied().collect(), "left: found, right: allowed");
}

#[test]
fn what_is_said_is_found_and_tests_and_questions_are_not() {
    let found = |text| said::by(text).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(
        found("fn f() { println!(); std::io::stderr().flush(); }"),
        ["println!", "stderr()"]
    );
    assert_eq!(found("fn f() { write!(io::stdout(), \"\"); dbg!(1) }"), ["dbg!", "stdout()"]);
    assert_eq!(
        found("fn f() { bar.set_message(\"\"); a.map(io::stderr) }"),
        [".set_message", "stderr()"]
    );
    assert_eq!(
        found(
            "fn f() { ratatui::crossterm::terminal::enable_raw_mode(); B(CrosstermBackend::new(x)) }"
        ),
        ["CrosstermBackend", "enable_raw_mode"]
    );
    let quiet = "fn f() { command.stdout(x); io::stderr().is_terminal(); }
        #[cfg(test)] mod tests { fn f() { println!() } } #[test] fn g() { eprintln!() }";
    assert!(found(quiet).is_empty());
}

#[test]
fn a_circle_is_found_and_a_row_is_none() {
    let arrows = |all: &[(&str, &str)]| {
        let mut arrows = BTreeMap::<String, BTreeSet<String>>::new();
        for (from, to) in all {
            arrows.entry((*from).into()).or_default().insert((*to).into());
            arrows.entry((*to).into()).or_default();
        }
        circles(&arrows)
    };
    assert_eq!(arrows(&[("a", "b"), ("b", "c"), ("a", "c")]), Vec::<Vec<String>>::new());
    assert_eq!(arrows(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]), [["b", "c"]]);
}
