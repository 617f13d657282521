//! What the guide tells its readers to type runs, in its smallest form: one seed, some seconds. A block `sh` is
//! run here; one with a second word (`sh root`, `sh network`, `sh long`) is only held against the command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_testkit::blocks;

/// A command of its own before ours: one seed (where there are ranges, the first or the second one), some seconds.
const SMALLEST: &str = r#"#!/bin/sh
set -eu
case "$*" in
*--dry-run*) ;;
run\ * | compare\ *) set -- "$@" --set warmup='1 s' --set duration='1500 ms' ;;
esac
last=
for word in "$@"; do
	shift
	if [ "$last" = --seeds ]; then
		case $word in
		1..*) word=1..1 ;;
		*..*) word=2..2 ;;
		*) word=1 ;;
		esac
	fi
	last=$word
	set -- "$@" "$word"
done
exec "$NARROWS" "$@"
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn what_the_guide_says_can_be_typed() {
    let tools = tempfile::tempdir().unwrap();
    let narrows = tools.path().join("narrows");
    fs::write(&narrows, SMALLEST).unwrap();
    fs::set_permissions(&narrows, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let mut pages = vec![root().join("README.md"), root().join("docs/README.md")];
    let guide = fs::read_dir(root().join("docs/guide")).unwrap();
    pages.extend(guide.map(|entry| entry.unwrap().path()));
    let mut commands = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let script: String = blocks(&text, "sh").flat_map(|code| [code, "\n"]).collect();
        commands += script.lines().filter(|line| line.contains("narrows ")).count();
        let home = tempfile::tempdir().unwrap();
        // The repository's captures are named as from its root.
        symlink(root().join("crates"), home.path().join("crates")).unwrap();
        let output = Command::new("sh")
            .args(["-euxc", &script])
            .current_dir(home.path())
            .env("PATH", &path)
            .env("NARROWS", env!("CARGO_BIN_EXE_narrows"))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{error}", page.display());
    }
    assert!(commands >= 15, "{commands} commands were run");
}
