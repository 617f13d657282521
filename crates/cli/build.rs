//! The commit that `provenance.json` and `--version` name: that of `NARROWS_COMMIT`, else of the checkout
//! that is built; none outside of one, as in a tarball. And the features that `--version` names.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NARROWS_COMMIT");
    let commit = std::env::var("NARROWS_COMMIT").ok().or_else(checked_out);
    if let Some(commit) = &commit {
        println!("cargo::rustc-env=NARROWS_COMMIT={commit}");
    }
    // Cargo sets CARGO_FEATURE_NAME for each.
    let mut features: Vec<String> = std::env::vars()
        .filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase))
        .filter(|name| name != "default")
        .collect();
    features.sort();
    let commit = commit.as_deref().unwrap_or("unknown");
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=NARROWS_VERSION={version} (commit {commit}, features: {features})");
}

fn checked_out() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A file in a worktree (gitrepository-layout(5)).
    let git = match fs::read_to_string(root.join(".git")) {
        Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => root.join(".git"),
    };
    // Written with each commit and checkout, also where the names of branches are packed.
    let _ = read(git.join("logs/HEAD"));
    let head = read(git.join("HEAD"))?;
    let Some(branch) = head.strip_prefix("ref: ") else { return Some(head) };
    let common = read(git.join("commondir")).map_or(git.clone(), |common| git.join(common));
    read(common.join(branch)).or_else(|| {
        let packed = read(common.join("packed-refs"))?;
        let mut named = packed.lines().filter_map(|line| line.split_once(' '));
        named.find(|(_, name)| *name == branch).map(|(commit, _)| commit.to_owned())
    })
}

/// A file that the answer depends on, if it is there.
fn read(path: PathBuf) -> Option<String> {
    let text = fs::read_to_string(&path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
