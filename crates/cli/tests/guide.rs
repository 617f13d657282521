//! What the guide tells its readers to type runs, in its smallest form: one seed, some seconds. A block `sh` is
//! run here, and `sh quic` where the command has QUIC; one with another second word (`sh root`, `sh network`,
//! `sh long`, `sh cluster`) is only held against the command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_testkit::{assert_kept, blocks};

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

/// Runs what a page says, in a folder of its own with the repository's captures and scenarios; `command` stands for ours.
fn typed(page: &Path, script: &str, command: &str) -> tempfile::TempDir {
    let tools = tempfile::tempdir().unwrap();
    let narrows = tools.path().join("narrows");
    fs::write(&narrows, command).unwrap();
    fs::set_permissions(&narrows, PermissionsExt::from_mode(0o755)).unwrap();
    let home = tempfile::tempdir().unwrap();
    for folder in ["crates", "scenarios"] {
        symlink(root().join(folder), home.path().join(folder)).unwrap();
    }
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-euxc", script])
        .current_dir(home.path())
        .env("PATH", &path)
        .env("NARROWS", env!("CARGO_BIN_EXE_narrows"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{error}", page.display());
    home
}

#[test]
fn what_the_guide_says_can_be_typed() {
    let mut pages = vec![root().join("README.md"), root().join("docs/README.md")];
    let guide = fs::read_dir(root().join("docs/guide")).unwrap();
    pages.extend(guide.map(|entry| entry.unwrap().path()));
    let kinds = if cfg!(feature = "quic") { &["sh", "sh quic"][..] } else { &["sh"] };
    let mut commands = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let code = kinds.iter().flat_map(|kind| blocks(&text, kind));
        let script: String = code.flat_map(|code| [code, "\n"]).collect();
        commands += script.lines().filter(|line| line.contains("narrows ")).count();
        typed(&page, &script, SMALLEST);
    }
    assert!(commands >= 35, "{commands} commands were run");
}

#[test]
fn the_pictures_of_xcorr_are_what_its_page_draws() {
    let page = root().join("docs/method/xcorr.md");
    let text = fs::read_to_string(&page).unwrap();
    let script: String = blocks(&text, "sh").collect();
    let home = typed(&page, &script, "#!/bin/sh\nexec \"$NARROWS\" \"$@\"\n");
    for name in ["xcorr-shared.svg", "xcorr-separate.svg"] {
        let drawn = fs::read_to_string(home.path().join(name)).unwrap();
        assert!(drawn.contains("<title ") && drawn.contains("<desc "), "{name}");
        assert_kept(&root().join("docs/img").join(name), &drawn);
    }
}
