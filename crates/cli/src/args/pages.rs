//! The commands that pages show are ones that the command line takes.

use std::path::{Path, PathBuf};

use clap::Parser;

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
            let ends =
                |word: &String| ["|", "||", "&&", "&", ";", ">", "<"].contains(&word.as_str());
            for command in words.split(ends) {
                let words = command.iter().skip_while(|word| *word == "sudo" || word.contains('='));
                let words: Vec<String> = words.flat_map(|word| expanded(word)).collect();
                if words.first().is_some_and(|word| word == "narrows") {
                    calls.push(words);
                }
            }
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
