//! What the guides tell operators to type: each `narrows kernel ..` of a block `sh root` runs, page by page and in their
//! order. What other programs do, and what waits for an operator, does not.

use super::host::Host;
use narrows_testkit::blocks;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// In place of the command: what shows until Ctrl-C is pressed gets that after a second.
const TYPED: &str = r#"#!/bin/sh
case " $* " in
*" watch "* | *" --watch "* | *" advise "* | *" receiver "* | *" recommend "*)
	timeout --preserve-status -s INT 1 "$NARROWS" "$@"
	exit
	;;
esac
exec "$NARROWS" "$@"
"#;

/// The pages, in the order of an operator, and how many calls each has at least.
const PAGES: [(&str, usize); 7] = [
    ("README.md", 5),
    ("docs/guide/kernel.md", 6),
    ("docs/guide/trial.md", 4),
    ("docs/guide/trouble.md", 3),
    ("docs/guide/use.md", 15),
    ("docs/guide/watch.md", 15),
    ("docs/guide/undo.md", 2),
];

/// The calls of a page, one a line.
fn calls(text: &str) -> Vec<&str> {
    let lines = blocks(text, "sh root").flat_map(str::lines);
    let calls = lines.map(|line| line.strip_prefix("sudo ").unwrap_or(line));
    // Where a lab runs in another terminal, its names are not known.
    calls.filter(|call| call.starts_with("narrows kernel ") && !call.contains("$(")).collect()
}

#[test]
fn what_guides_tell_operators_to_type_runs() {
    let Some(host) = Host::new("the guides' commands") else { return };
    let before = host.state();
    let home = tempfile::tempdir().unwrap();
    for (name, text) in [("narrows", TYPED), ("jq", "#!/bin/sh\ncat\n")] {
        let path = home.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    host.sh("ip netns add blue");
    let cgroup = host.cgroup("guides");
    let there = home.path().display();
    let prepare = format!(
        "export PATH={there}:$PATH NARROWS={}\ncd {there}\nset -x -o pipefail",
        env!("CARGO_BIN_EXE_narrows")
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (page, least) in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let calls = calls(&text);
        if page.ends_with("undo.md") {
            host.does(&["load", "gcubic+xcorr"]);
            let trial = "trial gcubic+xcorr --against reno --share 5% --for 1h";
            host.does(&trial.split(' ').collect::<Vec<_>>());
        }
        assert!(calls.len() >= least, "{page}: {} calls, expected {least} at least", calls.len());
        let calls = calls
            .join("\n")
            .replace("NAME", "blue")
            .replace("/sys/fs/cgroup/system.slice/nginx.service", &cgroup.folder);
        let calls = calls.replace("/var/lib/prometheus/node-exporter", &there.to_string());
        host.sh(&format!("{prepare}\n{calls}"));
    }
    assert_eq!(host.state(), before, "after undo");
    host.sh("ip netns del blue");
}
