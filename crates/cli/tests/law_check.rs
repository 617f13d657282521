//! A law of one's own: written from the template, checked, and what the check finds.

#![cfg(feature = "lab")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// `narrows law` in a folder.
fn law(home: &Path, args: &[&str]) -> Output {
    narrows(home, &[&["law"], args].concat())
}

fn narrows(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).current_dir(home).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one line of a command that fails as bad input does.
fn refused(home: &Path, args: &[&str]) -> String {
    let output = law(home, args);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?} prints to standard output");
    line.trim_end().strip_prefix("narrows: ").unwrap().to_owned()
}

/// A folder with the template as mine.h, in which `from` stands as `to`.
fn mine(from: &str, to: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    assert!(law(home.path(), &["new", "mine.h"]).status.success());
    let file = home.path().join("mine.h");
    let template = fs::read_to_string(&file).unwrap();
    assert!(template.contains(from), "{from}");
    fs::write(file, template.replacen(from, to, 1)).unwrap();
    home
}

/// What a check that fails says: all lines, and those of the step called `step`.
fn fails(home: &TempDir, step: &str) -> Vec<String> {
    fails_as(&law(home.path(), &["check", "mine.h"]), step)
}

/// The same without a compiler for the kernel, which is most of a check's time: what fails fails before.
fn fails_natively(home: &TempDir, step: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    let command = command.args(["law", "check", "mine.h"]).current_dir(home.path());
    fails_as(&command.env("CLANG", "none").output().unwrap(), step)
}

fn fails_as(output: &Output, step: &str) -> Vec<String> {
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let mut lines = stdout.lines().skip_while(|line| !line.starts_with(step)).map(str::to_owned);
    let first = lines.next().unwrap_or_else(|| panic!("no step {step}: {stdout}"));
    assert!(first.contains(" failed: "), "{first}");
    let case = lines.take_while(|line| line.starts_with("    "));
    std::iter::once(first).chain(case).collect()
}

#[test]
fn the_template_is_a_law_that_keeps_all() {
    let home = tempfile::tempdir().unwrap();
    // The template's own name, one that begins with it, one that begins with a law's code.
    for name in ["mine", "mine_fast", "mineral", "balia_slow", "a"] {
        let file = format!("{name}.h");
        let output = law(home.path(), &["new", &file]);
        let command = env!("CARGO_BIN_EXE_narrows");
        assert_eq!(
            text(&output.stdout),
            format!("{file}: law {name}; next: {command} law check {file}\n")
        );
        // They differ by the name alone, and run under it.
        let short = ["--set", "duration=2 s", "--set", "warmup=1 s"];
        let run = ["run", "sbd/sb-2", "--law", &file, "--cc", name];
        let output = narrows(home.path(), &[&run[..], &short].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for file in ["mineral.h", "balia_slow.h"] {
        let output = law(home.path(), &["check", file]);
        let stdout = text(&output.stdout);
        assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
        assert!(stdout.lines().count() > 14, "{stdout}");
        let fine = |line: &str| line.contains(" ok") || line.contains(" skipped: ");
        assert!(stdout.lines().all(fine), "{stdout}");
    }
}

#[test]
fn what_is_no_law_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(law(home, &["new", "mine.h"]).status.success());
    let before = fs::read(home.join("mine.h")).unwrap();
    assert_eq!(refused(home, &["new", "mine.h"]), "mine.h: already exists and is not overwritten");
    assert_eq!(fs::read(home.join("mine.h")).unwrap(), before);
    assert_eq!(
        refused(home, &["new", "lia.h"]),
        "lia.h: the name 'lia' is taken; expected another for the file and its table"
    );
    assert_eq!(
        refused(home, &["new", "2fast.h"]),
        "2fast.h: '2fast' is not a name for a law; expected lower case letters, digits and _ before .h"
    );
    assert_eq!(refused(home, &["new", "mine.c"]), "mine.c: expected a C header, NAME.h");
    let missing = refused(home, &["check", "none.h"]);
    assert!(missing.starts_with("none.h: no such file"), "{missing}");
    fs::write(home.join("empty.h"), "").unwrap();
    assert_eq!(
        refused(home, &["check", "empty.h"]),
        "empty.h: not a law, expected a table NR_LAW(empty) = { ... };"
    );
    fs::write(home.join("two.h"), "NR_LAW(two) = {};\nNR_LAW(two) = {};\n").unwrap();
    assert_eq!(
        refused(home, &["check", "two.h"]),
        "two.h: two tables, in lines 1 and 2; expected one NR_LAW(two)"
    );
}

#[test]
fn the_compilers_words_are_shown_with_line_and_file() {
    let home = mine("return n;", "return m;");
    let output = law(home.path(), &["check", "mine.h"]);
    assert_eq!(output.status.code(), Some(2));
    let stdout = text(&output.stdout);
    assert!(
        stdout.contains("mine.h:") && stdout.contains("'m'") || stdout.contains("‘m’"),
        "{stdout}"
    );
    assert_eq!(text(&output.stderr), "narrows: mine.h: does not compile\n");
}

#[test]
fn a_law_that_depends_on_its_slot_is_found_with_a_handful_of_events() {
    let home = mine("paths * paths * p->cwnd", "(i + 1) * paths * p->cwnd");
    let found = fails_natively(&home, "slot order");
    assert!((2..=8).contains(&found.len()), "{found:#?}");
    assert!(found.iter().any(|line| line.contains(": NR_JOINED")), "{found:#?}");
}

#[test]
fn a_law_that_remembers_outside_its_state_is_found() {
    let home = mine("nr_u64 paths = ", "static nr_u64 calls;\n\tnr_u64 paths = calls++ % 3 + ");
    fails_natively(&home, "determinism");
}

#[test]
fn a_law_that_divides_by_zero_is_found_where_it_does() {
    let home = mine("paths * paths * p->cwnd", "paths * (p->cwnd - 3)");
    let found = fails(&home, "extremes");
    assert!(found[0].contains("undefined behaviour"), "{found:#?}");
    assert!(found[1].contains("path 0 at cwnd 3"), "{found:#?}");
}

#[test]
fn a_law_that_does_not_end_is_stopped() {
    let home = mine(
        "return (nr_s64)",
        "while (NR_READ(c->path[i & 7].cwnd) == 1000)\n\t\t;\n\treturn (nr_s64)",
    );
    let found = fails(&home, "extremes");
    assert!(found[0].contains("does not terminate"), "{found:#?}");
}

#[test]
fn a_law_that_grows_too_fast_or_takes_nothing_at_a_loss_is_found() {
    let home = mine("NR_ONE / (paths * paths * p->cwnd)", "NR_ONE * 2 / (p->cwnd * paths / paths)");
    let found = fails_natively(&home, "equal paths");
    assert!(found[1].contains("2 coupled paths at cwnd 2"), "{found:#?}");
    let home = mine("p->cwnd - cut", "p->cwnd + cut");
    fails_natively(&home, "loss");
}
