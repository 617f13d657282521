//! Names and texts that others chose, in files and arguments: no character of them commands the
//! terminal, hides what stands beside it or begins a line of its own.

#![cfg(all(feature = "detect", feature = "lab"))]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// What the command says, on both streams; nothing in it is obeyed, or has no width.
fn says(args: &[&OsStr]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let bad = |one: char| {
        one.is_control() && !['\n', '\t'].contains(&one)
            || matches!(one, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    assert!(!text.contains(bad), "{args:?} says {text:?}");
    text
}

/// The same of a refusal, which is one line.
fn refuses(args: &[&OsStr]) -> String {
    let text = says(args);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("narrows: "), "{text}");
    text
}

fn words<'a>(words: &'a [&'a str]) -> Vec<&'a OsStr> {
    words.iter().map(OsStr::new).collect()
}

/// A scenario whose title somebody else wrote.
const SMALL: &str = r#"name = "small"
title = "ev\u001b[2J\u202e\u2028il\nall is well"
source = "a\u009b2J\u2066b\nall is well"
warmup = "0 s"
duration = "1 s"
test = "a"
links.wire = { rate = "10 Mbit/s", queue = "20 packets" }
routes.way = { links = ["wire"], rtt = "20 ms" }
flows.a = { kind = "tcp", routes = ["way"], cc = "reno" }
"#;

/// `text` as a file in a new folder.
fn written(name: impl AsRef<OsStr>, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(Path::new(name.as_ref()));
    fs::write(&file, text).unwrap();
    (home, file)
}

#[test]
fn a_title_is_on_one_line_and_a_source_too() {
    let (_home, file) = written("s.toml", SMALL);
    let file = file.as_os_str();
    let title = "small: ev\\u001b[2J\\u202e\\u2028il\\nall is well";
    let text = says(&[OsStr::new("run"), OsStr::new("--dry-run"), file]);
    assert!(text.lines().any(|line| line == title), "{text}");
    assert!(text.lines().any(|line| line == "source: a\\u009b2J\\u2066b\\nall is well"), "{text}");
    let text = says(&[words(&["compare", "--cc", "reno", "--seeds", "1"]), vec![file]].concat());
    assert!(text.lines().any(|line| line.starts_with(title)), "{text}");
    for show in [&["show", "--resolved"][..], &["show"]] {
        says(&[words(show), vec![file]].concat());
    }
}

#[test]
fn the_file_itself_is_shown_without_what_a_terminal_obeys() {
    // A comment of TOML may have all but controls.
    let (_home, file) = written("s.toml", &format!("# \u{202e}\u{2028}\u{200b}\n{SMALL}"));
    let text = says(&[OsStr::new("show"), file.as_os_str()]);
    assert!(text.starts_with("# \\u202e\\u2028\\u200b\nname = "), "{text}");
}

#[test]
fn keys_and_values_of_a_file_are_refused_on_one_line() {
    for (from, to) in [
        ("test = ", "\"ev\\u001b[2J\\nil\" = 1\ntest = "),
        ("links.wire", "links.\"ev\\u001b[2J\\nil\""),
        ("cc = \"reno\"", "cc = \"ev\\u001b[2J\\nil\""),
        ("\"10 Mbit/s\"", "\"10 ev\\u001b[2J\\nil\""),
        ("name = \"small\"", "name = \"ev\\u001b[2J\\nil\""),
        // TOML forbids it; its parser may quote the line.
        ("\"1 s\"", "\"1 \u{1b}[2J\""),
    ] {
        assert!(SMALL.contains(from));
        let (_home, file) = written("s.toml", &SMALL.replacen(from, to, 1));
        refuses(&[OsStr::new("run"), file.as_os_str()]);
    }
}

#[test]
fn names_of_files_are_told_on_one_line() {
    let home = tempfile::tempdir().unwrap();
    let named = |rest: &[u8]| {
        let name = [b"ev\x1b[2J\nil", rest].concat();
        home.path().join(OsStr::from_bytes(&name)).into_os_string()
    };
    for (command, rest) in
        [(&["run"][..], &b".toml"[..]), (&["detect"], b"\xff.pcap"), (&["law", "check"], b"\xff.h")]
    {
        // First there is none, then nothing in it.
        let named = named(rest);
        let line = refuses(&[words(command), vec![&named]].concat());
        assert!(line.contains("ev\\u001b[2J"), "{line}");
        fs::write(&named, "?\n").unwrap();
        let line = refuses(&[words(command), vec![&named]].concat());
        assert!(line.contains("ev\\u001b[2J"), "{line}");
    }
    let header = named(b"\xff.h");
    refuses(&[words(&["run", "sbd/sb-2", "--law"]), vec![&header]].concat());
}

#[test]
fn arguments_are_told_on_one_line() {
    // The parser of arguments leaves sequences of terminals out itself.
    for args in [
        &["ev\u{9b}2J\u{202e}\nil"][..],
        &["run", "--ev\u{9b}2J\u{202e}\nil"],
        &["run", "sbd/sb-2", "--seed", "ev\u{9b}2J\u{202e}\nil"],
    ] {
        assert!(refuses(&words(args)).contains("\\u202e"));
    }
    for args in [
        &["run", "ev\u{1b}[2J\nil"][..],
        &["run", "sbd/sb-2", "--cc", "ev\u{1b}[2J\nil"],
        &["run", "sbd/sb-2", "--set", "ev\u{1b}[2J\nil=1"],
        &["run", "sbd/sb-2", "--set", "duration=ev\u{1b}[2J\nil"],
        &["run", "sbd/sb-2", "--on", "ev\u{1b}[2J\nil"],
        &["list", "fields", "ev\u{1b}[2J\nil"],
    ] {
        let line = refuses(&words(args));
        assert!(line.contains("ev\\u001b[2J"), "{line}");
    }
}

#[test]
fn what_the_compiler_says_of_a_law_is_told_as_text() {
    let law = "#error \"\u{1b}[2J\u{202e}\"\nNR_LAW(mine) = { };\n";
    let (_home, file) = written("mine.h", law);
    let text = says(&[words(&["law", "check"]), vec![file.as_os_str()]].concat());
    assert!(text.contains("\\u202e"), "{text}");
}

#[test]
fn what_a_capture_says_of_itself_is_not_told() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("pcap");
    let run = ["run", "sbd/sb-2", "--set", "duration=5 s", "--set", "warmup=0 s", "--pcap"];
    says(&[words(&run), vec![folder.as_os_str()]].concat());
    let mut found = 0;
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension() != Some(OsStr::new("pcapng")) {
            continue;
        }
        // The program that wrote it, in the header of its section.
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.windows(7).position(|word| word == b"narrows").unwrap();
        bytes[at..at + 7].copy_from_slice(b"\x1b[31m\nx");
        // The first interface's name: option 2 of the block behind it.
        let name = at + bytes[at..].windows(4).position(|word| word == 1u32.to_le_bytes()).unwrap();
        let name = name + 16;
        assert_eq!(bytes[name..name + 2], 2u16.to_le_bytes(), "an interface without a name");
        bytes[name + 4] = 0x1b;
        fs::write(&file, bytes).unwrap();
        says(&[OsStr::new("detect"), file.as_os_str()]);
        says(&[OsStr::new("detect"), OsStr::new("--json"), file.as_os_str()]);
        found += 1;
    }
    assert!(found > 0);
}
