//! `run --live`, `compare --live` and `detect -` on a terminal that `script` of util-linux makes.

#![cfg(feature = "lab")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A command on a terminal of its own, and what it wrote there.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    wrote: Arc<Mutex<String>>,
}

impl OnTerminal {
    /// Lines of a shell; none where there is no `script`.
    fn new(lines: &str) -> Option<OnTerminal> {
        let mut command = Command::new("script");
        command.args(["-qec", lines, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = command else {
            eprintln!("skipped: script is not installed");
            return None;
        };
        let (keys, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let wrote = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&wrote);
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                *to.lock().unwrap() += &String::from_utf8_lossy(&bytes[..read]);
            }
        });
        Some(OnTerminal { child, keys, wrote })
    }

    /// A command, with the terminal's settings before, as [`narrows`] has them, and after it.
    fn with_settings(run: &str) -> Option<OnTerminal> {
        OnTerminal::new(&format!("{run}; code=$?; printf 'then '; stty -g; exit $code"))
    }

    fn wrote(&self) -> String {
        self.wrote.lock().unwrap().clone()
    }

    fn wait(&self, what: &str) {
        let patience = Instant::now() + Duration::from_secs(60);
        while !self.wrote().contains(what) {
            assert!(Instant::now() < patience, "no {what:?} on the terminal");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, key: &[u8]) {
        self.keys.write_all(key).unwrap();
        self.keys.flush().unwrap();
    }

    /// What it wrote between the settings, which must be the same before and after, once it has ended with this code.
    fn ends(mut self, code: i32) -> String {
        self.wait("then ");
        let ended = self.child.wait().unwrap().code();
        let wrote = self.wrote();
        let (before, between, after) = settings(&wrote);
        assert_eq!((before, ended), (after, Some(code)), "{wrote:?}");
        between.to_owned()
    }
}

fn narrows(args: &str) -> String {
    format!("stty rows 30 cols 100; stty -g; {} {args}", env!("CARGO_BIN_EXE_narrows"))
}

/// The settings of the terminal before and after, as `stty -g` says them, and what was written between.
fn settings(wrote: &str) -> (&str, &str, &str) {
    let (before, rest) = wrote.split_once("\r\n").unwrap();
    let (between, after) = rest.split_once("then ").unwrap();
    (before, between, after.lines().next().unwrap())
}

const LEFT: &str = "\u{1b}[?1049l";

#[test]
fn ctrl_c_ends_the_run_and_gives_the_terminal_back() {
    let run = narrows("run sbd/sb-2 --cc lia+xcorr --set duration='100 min' --live");
    // Last, a signal from elsewhere.
    for key in [Some(b"\x03"), Some(b"q"), None] {
        let by = if key.is_none() { "timeout --foreground -s TERM 3 " } else { "" };
        let run = run.replace("stty -g; ", &format!("stty -g; {by}"));
        let Some(mut terminal) = OnTerminal::with_settings(&run) else { return };
        terminal.wait("simulated");
        if let Some(key) = key {
            terminal.wait("group");
            terminal.press(key);
        }
        // `timeout` has a code of its own.
        let between = terminal.ends(if key.is_some() { 130 } else { 124 });
        let (_, said) = between.rsplit_once(LEFT).unwrap();
        assert!(said.contains("narrows: interrupted"), "{said:?}");
        assert!(said.contains("\u{1b}[?25h"), "the cursor is back: {said:?}");
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_command() {
    for run in ["run sbd/sb-2 --cc lia", "compare sbd/sb-2 --cc lia --seeds 1"] {
        let run = narrows(&format!("{run} --set duration='100 min' --live"));
        let run = run.replacen("stty -g; ", "echo process $$; exec ", 1);
        let Some(mut terminal) = OnTerminal::new(&run) else { return };
        terminal.wait("\u{1b}[?1049h");
        let wrote = terminal.wrote();
        let process = wrote.split_once("process ").unwrap().1.split_whitespace().next().unwrap();
        let process = Path::new("/proc").join(process);
        assert!(process.exists());
        terminal.child.kill().unwrap();
        terminal.child.wait().unwrap();
        let patience = Instant::now() + Duration::from_secs(30);
        // Nobody may wait for it.
        let lives = || {
            let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
        };
        while lives() {
            assert!(Instant::now() < patience, "{run} goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn at_the_end_a_key_shows_the_results() {
    let run = narrows("run sbd/sb-2 --cc lia --set duration='5 s' --live");
    let Some(mut terminal) = OnTerminal::with_settings(&run) else { return };
    // Of "The run has ended" only the letters come that differ from what stood there.
    terminal.wait("a key shows");
    terminal.press(b" ");
    let between = terminal.ends(0);
    let (view, said) = between.rsplit_once(LEFT).unwrap();
    assert!(said.contains("Jain's index") && !view.contains("Jain's index"), "{said:?}");
}

#[test]
fn a_comparison_shows_its_rows_and_ends_with_its_report() {
    let run = narrows(
        "compare sbd/sb-2 --cc reno,lia --seeds 4 --set duration='2 s' --set warmup='1 s' --live",
    );
    let Some(terminal) = OnTerminal::with_settings(&run) else { return };
    let between = terminal.ends(0);
    let (view, said) = between.rsplit_once(LEFT).unwrap();
    assert!(view.contains("seeds 1 to 4") && view.contains("lia"), "{view:?}");
    assert!(said.contains("4 runs each") && !view.contains("4 runs each"), "{said:?}");
}

#[test]
fn ctrl_c_ends_a_comparison_and_keeps_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("c");
    let of =
        "compare sbd/sb-2 --cc reno --seeds 20000 --set duration='2 s' --set warmup='1 s' --live";
    let run = narrows(&format!("{of} --out {}", out.display()));
    let Some(mut terminal) = OnTerminal::with_settings(&run) else { return };
    terminal.wait("Mbit/s");
    terminal.press(b"\x03");
    let between = terminal.ends(130);
    let (_, said) = between.rsplit_once(LEFT).unwrap();
    assert!(
        said.contains("narrows: interrupted") && said.contains(" of 20000 runs are saved in"),
        "{said:?}"
    );
}

/// What is left on a terminal: lines to which the cursor went up are gone.
#[cfg(feature = "detect")]
fn left(wrote: &str) -> String {
    let mut parts = wrote.split("\u{1b}[");
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|of: char| of.is_ascii_alphabetic()).unwrap();
        if part[end..].starts_with('A') {
            let lines = part[..end].parse().unwrap();
            let kept = shown.rmatch_indices('\n').nth(lines).map_or(0, |(at, _)| at + 1);
            shown.truncate(kept);
        }
        shown += &part[end + 1..];
    }
    shown
}

#[cfg(feature = "detect")]
#[test]
fn the_table_of_what_comes_is_drawn_again_and_taken_away() {
    let home = tempfile::tempdir().unwrap();
    let file = format!("{}/tests/captures/cubic-shared.pcap.gz", env!("CARGO_MANIFEST_DIR"));
    let capture = Command::new("gunzip").args(["-c", &file]).output().unwrap().stdout;
    let (most, rest) = capture.split_at(capture.len() / 2);
    std::fs::write(home.path().join("most"), most).unwrap();
    std::fs::write(home.path().join("rest"), rest).unwrap();
    let folder = home.path().display();
    let comes = format!(
        "{{ cat {folder}/most; until [ -e {folder}/go ]; do sleep 0.05; done; cat {folder}/rest; }} | "
    );
    let run = narrows("detect -").replace("stty -g; ", &format!("stty -g; {comes}"));
    let Some(terminal) = OnTerminal::with_settings(&run) else { return };
    // The rest is not there yet: a head, a line for each of two flows, who shares, and what is above the head.
    let (head, away) = ("s      Mbit/s  flow\r\n", "\u{1b}[5A\u{1b}[J");
    terminal.wait(head);
    terminal.wait(away);
    let shares = "The 2 flows share a bottleneck.";
    assert!(!terminal.wrote().contains(shares));
    std::fs::write(home.path().join("go"), "").unwrap();
    let between = terminal.ends(0);
    let drawn = between.matches(head).count();
    // A second each, of half a minute.
    assert!(drawn > 20 && drawn == between.matches("A\u{1b}[J").count(), "{between:?}");
    let left = left(&between);
    assert!(left.contains(shares) && !left.contains(head), "{left:?}");
}

#[test]
fn without_a_terminal_it_is_refused_in_a_line() {
    for args in [&["run", "sbd/sb-2"][..], &["compare", "sbd/sb-2", "--cc", "lia"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        let output = command.args(args).arg("--live").output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(line, "narrows: --live: expected a terminal as standard output\n");
    }
}
