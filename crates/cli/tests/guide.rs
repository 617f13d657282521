//! What the guide tells its readers to type runs, in its smallest form: one seed, some seconds. A block `sh` is
//! run here, `sh quic` where the command has QUIC, and `sh long` in `make test-long`. `sh root` is run on the kernel
//! (`kernel/guides.rs`), and `sh cluster` with something in place of the cluster; `sh network` is only held against the
//! command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_testkit::{assert_kept, blocks};

/// A command of its own before ours: one seed, some seconds.
const SMALLEST: &str = include_str!("smallest.sh");

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

/// The pages of the guide, with their text.
fn guide() -> impl Iterator<Item = (PathBuf, String)> {
    let guide = fs::read_dir(root().join("docs/guide")).unwrap();
    let first =
        ["README.md", "docs/README.md", "scenarios/README.md"].map(|page| root().join(page));
    let pages = first.into_iter().chain(guide.map(|entry| entry.unwrap().path()));
    pages.map(|page| {
        let text = fs::read_to_string(&page).unwrap();
        (page, text)
    })
}

#[test]
fn what_the_guide_says_can_be_typed() {
    let kinds = if cfg!(feature = "quic") { &["sh", "sh quic"][..] } else { &["sh"] };
    let mut commands = 0;
    for (page, text) in guide() {
        let code = kinds.iter().flat_map(|kind| blocks(&text, kind));
        let script: String = code.flat_map(|code| [code, "\n"]).collect();
        commands += script.lines().filter(|line| line.contains("narrows ")).count();
        typed(&page, &script, SMALLEST);
    }
    assert!(commands >= 40, "{commands} commands were run");
}

/// With few seeds, of the criteria one section, and after what the page has before.
#[test]
#[ignore = "minutes: make test-long"]
fn what_the_guide_says_takes_minutes_can_be_typed() {
    let mut commands = 0;
    for (page, text) in guide() {
        let long: Vec<&str> = blocks(&text, "sh long").flat_map(str::lines).collect();
        if long.is_empty() {
            continue;
        }
        commands += long.iter().filter(|line| line.contains("narrows ")).count();
        let before: String = blocks(&text, "sh").flat_map(|code| [code, "\n"]).collect();
        let capture = "ln -s crates/cli/tests/captures/three-wans.pcap.gz two.pcap";
        let script = format!("{before}{capture}\n{}", long.join("\n"));
        typed(&page, &script, SMALLEST);
    }
    assert!(commands >= 8, "{commands} commands were run");
}

/// In place of SLURM's command: the tasks that the script's head asks for, one after the other.
const SBATCH: &str = r#"
sbatch() {
    tasks=$(sed -n 's/^#SBATCH --array=1-//p' "$1")
    for task in $(seq "$tasks"); do
        SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$tasks bash "$1"
    done
}
"#;

/// The array of python.md, over two tasks, seeds and values: what is merged is what one task over all seeds writes.
#[test]
fn what_the_guide_says_of_a_cluster_can_be_typed() {
    let page = root().join("docs/guide/python.md");
    let text = fs::read_to_string(&page).unwrap();
    let mut array: String = blocks(&text, "bash").collect();
    for (whole, small) in [("=1-50", "=1-2"), ("--seeds 500", "--seeds 2"), (":8:log", ":2:log")] {
        assert!(array.contains(whole), "{whole}");
        array = array.replace(whole, small);
    }
    let cluster: String = blocks(&text, "sh cluster").collect();
    assert!(cluster.contains("sbatch array.sh") && cluster.contains("narrows merge"), "{cluster}");
    let one = "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=1 bash ../array.sh";
    let script = format!(
        "cat > array.sh <<'END'\n{array}\nEND\n{SBATCH}\n{cluster}\n\
         mkdir one\n(cd one; {one})\ndiff -r -x provenance.json one/shards/1 all"
    );
    // Seconds of its network.
    let command = "#!/bin/sh\nset -eu\n\
        [ \"$1\" = merge ] || set -- \"$@\" --set warmup='1 s' --set duration='1500 ms'\n\
        exec \"$NARROWS\" \"$@\"\n";
    let home = typed(&page, &script, command);
    let rows = fs::read_to_string(home.path().join("all/rows.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 2 * 4, "two values, four controls: {rows}");
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
