//! The commands that pages show are ones that the command line takes.

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Args;

/// The pages with commands.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "scenarios/README.md", "crates/quic/README.md"]
            .map(|page| root.join(page))
            .to_vec();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// What a shell makes of a word: all files of a folder, and the numbers that a job of a cluster finds in its environment.
fn expanded(word: &str) -> Vec<String> {
    if let Some(folder) = word.strip_suffix("/*") {
        return vec![format!("{folder}/1"), format!("{folder}/2")];
    }
    vec![word.replace("$SLURM_ARRAY_TASK_ID", "1").replace("$SLURM_ARRAY_TASK_COUNT", "2")]
}

/// The words of each call of `narrows` in a line's.
fn of_line(words: &[String]) -> Vec<Vec<String>> {
    const ENDS: [&str; 8] = ["|", "||", "&&", "&", ";", ">", ">>", "<"];
    let commands = words.split(|word| ENDS.contains(&word.as_str())).map(|command| {
        let words = command.iter().skip_while(|word| *word == "sudo" || word.contains('='));
        words.flat_map(|word| expanded(word)).collect::<Vec<_>>()
    });
    commands.filter(|words| words.first().is_some_and(|word| word == "narrows")).collect()
}

/// The words of each call that a page's sentences and tables have as code, but where some are left out.
fn in_sentences(text: &str) -> Vec<Vec<String>> {
    let mut fenced = false;
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    });
    let prose: String = prose.flat_map(|line| [line, "\n"]).collect();
    let code = prose.split('`').skip(1).step_by(2);
    let calls = code.filter_map(shlex::split).flat_map(|words| of_line(&words));
    calls.filter(|words| words.iter().all(|word| word != ".." && word != "COMMAND")).collect()
}

/// The words of each call of `narrows` in the blocks `sh` and `bash` of a page, and behind the `$ ` of what a
/// terminal shows (`text`), and the lines with calls that stand in no such block.
fn calls(text: &str) -> (Vec<Vec<String>>, Vec<&str>) {
    let (mut calls, mut outside) = (Vec::new(), Vec::new());
    let (mut fence, mut open) = (None, String::new());
    for line in text.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            assert!(open.trim().is_empty(), "a command that does not end: {open}");
            fence = if fence.is_none() { Some(info) } else { None };
            continue;
        }
        let Some(info) = fence else {
            let code = line.strip_prefix("    ").map(str::trim_start);
            let call =
                |code: &str| code.starts_with("narrows ") || code.starts_with("sudo narrows ");
            outside.extend(code.filter(|code| call(code)));
            continue;
        };
        open += match info.split(' ').next() {
            Some("sh" | "bash") => line,
            Some("text") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        // A command goes on behind a backslash, and in quotes.
        if open.ends_with('\\') {
            open.pop();
        } else if let Some(words) = shlex::split(&open) {
            calls.extend(of_line(&words));
            open.clear();
        } else {
            open.push('\n');
        }
    }
    (calls, outside)
}

/// Does this build have the command?
fn has(command: &str) -> bool {
    match command {
        "kernel" => cfg!(feature = "kernel"),
        "shell" | "clean" => cfg!(all(feature = "lab", feature = "kernel")),
        "quic" => cfg!(feature = "quic"),
        "detect" => cfg!(feature = "detect"),
        "list" | "law" | "completions" | "man" => true,
        _ => cfg!(feature = "lab"),
    }
}

#[test]
fn every_command_of_a_page_is_taken() {
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let (calls, outside) = calls(&text);
        let page = page.display();
        wrong.extend(outside.iter().map(|line| format!("{page}: in no block `sh`: {line}")));
        for words in calls.iter().filter(|words| words.get(1).is_some_and(|word| has(word))) {
            match Args::try_parse_from(words) {
                Ok(_) => taken += 1,
                Err(error) if !error.use_stderr() => taken += 1,
                Err(error) => wrong.push(format!("{page}: {}\n  {error}", words.join(" "))),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken >= 60, "{taken} commands");
}

/// Is nothing wrong with a call but that it leaves out what its command or its last option needs?
fn goes_on(words: &[String], error: &clap::Error) -> bool {
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue => words.last().is_some_and(|word| word.starts_with("--")),
        // An address is looked at, and a sentence has a word for one.
        ErrorKind::ValueValidation => words.iter().any(|word| word == "URL"),
        _ => false,
    }
}

#[test]
fn every_command_of_a_sentence_is_taken() {
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let calls = in_sentences(&text);
        for words in calls.iter().filter(|words| words.get(1).is_some_and(|word| has(word))) {
            match Args::try_parse_from(words) {
                Err(error) if error.use_stderr() && !goes_on(words, &error) => {
                    wrong.push(format!("{}: {}\n  {error}", page.display(), words.join(" ")));
                }
                _ => taken += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken >= 80, "{taken} commands");
}

#[test]
fn calls_are_found_in_sentences() {
    let text = "`narrows\nlist` and `sudo narrows show 'a b' >> c`; `narrows run ..`, `narrows COMMAND --help`, `narrow`\n\
                ```sh\nnarrows `narrows law`\n```\n    `narrows law`\n| `narrows merge A B` |\n";
    let words: Vec<String> = in_sentences(text).iter().map(|words| words.join("/")).collect();
    assert_eq!(words, ["narrows/list", "narrows/show/a b", "narrows/merge/A/B"]);
    let unfinished = |line: &str| {
        let words = shlex::split(line).unwrap();
        let error = Args::try_parse_from(&words).unwrap_err();
        goes_on(&words, &error)
    };
    assert!(unfinished("narrows law new"));
    assert!(!unfinished("narrows law make") && !unfinished("narrows list --jsn"));
}

#[test]
fn calls_are_found_in_blocks_alone() {
    let text = "```sh root\nsudo narrows kernel load \\\n  olia   # a word\nX=1 narrows list | narrows show 'a\nb'\n```\n    narrows run a\n```text\n$ narrows law new b.h  # c\nnarrows no\n```\n\
                ```bash\n#!/bin/bash\nnarrows merge $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT \\\n  a/*\n```\n";
    let (calls, outside) = calls(text);
    let words: Vec<Vec<&str>> =
        calls.iter().map(|call| call.iter().map(String::as_str).collect()).collect();
    let expected = [
        vec!["narrows", "kernel", "load", "olia"],
        vec!["narrows", "list"],
        vec!["narrows", "show", "a\nb"],
        vec!["narrows", "law", "new", "b.h"],
        vec!["narrows", "merge", "1/2", "a/1", "a/2"],
    ];
    assert_eq!(words, expected);
    assert_eq!(outside, ["narrows run a"]);
}
