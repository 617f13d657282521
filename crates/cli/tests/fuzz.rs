//! `narrows fuzz` finds what is wrong with a law, and says so again.

#![cfg(feature = "lab")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Uncoupled it is Reno; with a sibling it never grows once slow start is over.
const LAZY: &str = "#include \"law.h\"\n#include \"flows.h\"\n\
    NR_INLINE nr_s64 nr_lazy(NR_HOOK, nr_u32 set, nr_u32 *n)\n{\n\treturn 0;\n}\n\
    NR_LAW(lazy) = {\n    .name = \"lazy\", .code = \"lazy\", .about = \"a test\", .source = \"none\",\n    \
    .couples = 1, .credit = nr_lazy,\n};\n";

fn narrows(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).current_dir(home).output().unwrap()
}

/// Searches for what is wrong with the lazy law, with a fault in the end.
fn search(home: &Path, candidates: &str, more: &[&str]) -> String {
    let args =
        ["fuzz", "--law", "lazy.h", "--cc", "lazy", "--candidates", candidates, "--hops", "10000"];
    let output = narrows(home, &[&args[..], more].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_law_that_never_grows_is_found_and_found_again() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lazy.h"), LAZY).unwrap();
    let report = search(home.path(), "24", &["--shrink", "4", "--out", "out"]);
    assert!(report.contains("lazy: goodput 0."), "{report}");
    let file = home.path().join("out/lazy-goodput.toml");
    let scenario = fs::read_to_string(&file).unwrap();
    assert!(scenario.contains("title = \"lazy: goodput 0."), "{scenario}");

    assert_eq!(search(home.path(), "24", &["--shrink", "4", "--out", "out", "--resume"]), report);
    assert_eq!(fs::read_to_string(&file).unwrap(), scenario);

    // The command that the report names says the same.
    let judged =
        narrows(home.path(), &["fuzz", "out/lazy-goodput.toml", "--law", "lazy.h", "--cc", "lazy"]);
    let stdout = String::from_utf8(judged.stdout).unwrap();
    assert_eq!(judged.status.code(), Some(1), "{stdout}");
    let line = report.lines().find(|line| line.contains(": goodput")).unwrap();
    let measured = line.strip_prefix("lazy: ").unwrap();
    assert!(stdout.lines().any(|line| line.starts_with("  WRONG") && line.ends_with(measured)));
}

#[test]
fn what_cannot_be_searched_is_told_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let output = narrows(home.path(), &[&["fuzz"], args].concat());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{args:?}: {line}");
        line
    };
    assert!(refused(&["--cc", "reno", "--out", "o"]).contains("--cc: reno is uncoupled itself"));
    assert!(
        refused(&["--cc", "kernel:bbr", "--out", "o"]).contains("does not run in the simulator")
    );
    assert!(refused(&["--cc", "lia"]).contains("--out <DIR>"));
    let twice = refused(&["--cc", "lia,olia,lia", "--out", "o"]);
    assert_eq!(twice, "narrows: --cc: lia is named twice\n");
    for option in ["--seed", "--candidates", "--hops", "--shrink", "--jobs"] {
        let negative = refused(&["--cc", "lia", "--out", "o", option, "-1"]);
        assert!(negative.contains(&format!("invalid value '-1' for '{option} <")), "{negative}");
    }
    assert!(!home.path().join("o").exists());
    assert!(refused(&["--cc", "lia", "--out", "o", "--on", "moon"]).contains("--on: "));
    assert!(refused(&["none.toml", "--cc", "lia"]).contains("none.toml"));
    assert!(refused(&["sbd/sb-2", "--seed", "3"]).contains("--seed"));
    fs::create_dir(home.path().join("o")).unwrap();
    fs::write(home.path().join("o/judged.jsonl"), "{\"key\":\"x\",\"verdict\":null}\n").unwrap();
    let small = ["--cc", "lia", "--candidates", "1", "--out", "o"];
    assert!(refused(&small).contains("--resume continues it"));
    assert!(refused(&[&small[..], &["--resume"]].concat()).contains("another build"));
}

/// The networks are the same, and what is found is told with the host to find it on again.
#[cfg(feature = "quic")]
#[test]
fn connections_of_quic_are_searched_as_well() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lazy.h"), LAZY).unwrap();
    let report = search(home.path(), "10", &["--shrink", "0", "--out", "out", "--on", "quic"]);
    assert!(report.contains("--cc lazy --on quic\n"), "{report}");
    // What was judged on one host says nothing of another.
    let args = ["fuzz", "--law", "lazy.h", "--cc", "lazy", "--out", "out", "--resume"];
    let output = narrows(home.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
