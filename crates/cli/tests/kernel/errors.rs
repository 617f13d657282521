//! What root's mistakes are answered with, for docs/reference/errors.md: with `NARROWS_KEEP` set this writes
//! `tests/kept/errors-of-root.tsv`, of which `tests/reference.rs` makes a part of that page.

use super::host::Host;
use narrows_testkit::assert_kept;
use std::fmt::Write;
use std::path::Path;

/// What was done before, where `n` is `narrows kernel`, and a mistake.
const MISTAKES: [(&str, &str); 10] = [
    ("", "use gcubic+xcorr --default"),
    ("", "trial status"),
    ("n load olia", "use olia --netns none"),
    ("", "use olia --netns /etc/passwd"),
    ("", "use olia --cgroup /tmp"),
    ("", "trial olia --against none"),
    ("", "trial olia --against olia"),
    ("n trial olia --against reno", "trial olia --against reno"),
    ("n unload; chmod 1777 /sys/fs/bpf", "load olia"),
    ("while mountpoint -q /sys/fs/bpf; do umount /sys/fs/bpf; done", "load lia"),
];

#[test]
fn what_roots_mistakes_are_answered_with() {
    let Some(host) = Host::new("root's mistakes") else { return };
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let mut text = String::new();
    for (before, line) in MISTAKES {
        host.sh(&format!("n() {{ {narrows} kernel \"$@\"; }}\n{before}"));
        let output = host.narrows(&line.split(' ').collect::<Vec<_>>());
        let said = String::from_utf8(output.stderr).unwrap();
        let message = said.strip_prefix("narrows: ").unwrap_or_else(|| panic!("{line}: {said:?}"));
        assert_eq!(message.lines().count(), 1, "{line}: {said}");
        let code = output.status.code().unwrap();
        assert_ne!(code, 0, "{line}: {said}");
        // Writing to a string cannot fail.
        let _ = write!(text, "{code}\tkernel {line}\t{message}");
    }
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kept/errors-of-root.tsv");
    assert_kept(Path::new(kept), &text);
}
