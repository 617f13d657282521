//! More seeds of a comparison, added to its results or merged with them: the bytes of one comparison over all
//! seeds.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use narrows_testkit::kill_after_lines;

fn run(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(args).current_dir(home).output().unwrap()
}

/// A small comparison with these seeds into `out`.
fn compare(home: &Path, seeds: &str, out: &str, more: &[&str]) -> Output {
    let base = ["compare", "mine.toml", "--cc", "reno,olia+ssc", "--set", "duration=4 s"];
    run(home, &[&base, &["--seeds", seeds, "--out", out][..], more].concat())
}

fn done(output: Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The one line of a refusal.
fn refused(output: Output) -> String {
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    message.trim_end().trim_start_matches("narrows: ").to_owned()
}

/// All results in a folder by name; not where they come from, which has the time in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(root, &path, all);
            } else if !path.ends_with("provenance.json") {
                all.insert(path.strip_prefix(root).unwrap().into(), fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    add(folder, folder, &mut all);
    all
}

fn same(one: &Path, other: &Path) {
    let [one, other] = [one, other].map(files);
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{} differs", name.display());
    }
}

/// A folder with a scenario of its own.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(
        home.path().join("mine.toml"),
        "base = \"sbd/sb-2\"\nname = \"mine\"\ntitle = \"Mine\"\nsource = \"none\"\nwarmup = \"2 s\"\n",
    )
    .unwrap();
    home
}

#[test]
fn seeds_are_added_to_a_finished_comparison() {
    let home = home();
    let home = home.path();
    for series in ["first", "all", "none"] {
        let (whole, parts) = (format!("whole-{series}"), format!("parts-{series}"));
        let more = ["--series-of", series];
        done(compare(home, "4", &whole, &more));
        done(compare(home, "2..3", &parts, &more));
        let kept = home.join(&parts).join("runs/mine/reno/seed-2.json");
        let before = fs::metadata(&kept).unwrap().modified().unwrap();
        done(compare(home, "1..4", &parts, &[&more[..], &["--resume"]].concat()));
        assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), before, "it ran again");
        same(&home.join(&whole), &home.join(&parts));
    }
    // A summary that is lost is made again.
    fs::remove_file(home.join("parts-first/runs/mine/reno/seed-2.json")).unwrap();
    done(compare(home, "4", "parts-first", &["--resume"]));
    same(&home.join("whole-first"), &home.join("parts-first"));

    let line = refused(compare(home, "5", "parts-all", &["--series-of", "all"]));
    assert!(line.starts_with("parts-all: holds other results, those of "), "{line}");
    assert!(line.contains(" (--resume adds seeds to them); choose another folder"), "{line}");
    let line = refused(compare(home, "2..9", "parts-first", &["--resume"]));
    let expected =
        "parts-first: cannot be resumed: it holds seeds 1..4; expected --seeds with all of them";
    assert_eq!(line, expected);
    for (more, what) in [
        (&["--set", "warmup=1 s"][..], "other settings"),
        (&["--series-of", "all"], "another choice of series (--series-of)"),
        (&["--signal", "rtt"], "other signals (--signal)"),
    ] {
        let line = refused(compare(home, "5", "parts-first", &[more, &["--resume"]].concat()));
        assert!(
            line.starts_with(&format!("parts-first: cannot be resumed: {what}; it holds ")),
            "{line}"
        );
    }
}

#[test]
fn seeds_are_added_in_parts_too() {
    let home = home();
    let home = home.path();
    done(compare(home, "8", "whole", &[]));
    done(compare(home, "2", "parts", &[]));
    let mut more = Command::new(env!("CARGO_BIN_EXE_narrows"));
    more.args([
        "compare",
        "mine.toml",
        "--cc",
        "reno,olia+ssc",
        "--set",
        "duration=4 s",
        "--jobs",
        "1",
    ]);
    more.args(["--seeds", "8", "--out", "parts", "--resume"]).current_dir(home);
    let mut child = more.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journal = home.join("parts/unfinished.jsonl");
    kill_after_lines(&mut child, &journal, 3);
    assert!(journal.exists(), "finished before it could be killed?");
    let line = refused(run(home, &["merge", "parts", "whole", "--out", "all"]));
    assert_eq!(line, "parts: the comparison is not finished; --resume continues it");
    let line = refused(compare(home, "8", "parts", &[]));
    assert!(line.contains("parts: holds other results"), "{line}");
    done(compare(home, "8", "parts", &["--resume"]));
    same(&home.join("whole"), &home.join("parts"));
}

#[test]
fn files_half_moved_into_place_are_used_as_far_as_they_are_there() {
    let home = home();
    let home = home.path();
    done(compare(home, "4", "whole", &[]));
    done(compare(home, "2", "parts", &[]));
    let provenance = fs::read(home.join("parts/provenance.json")).unwrap();
    done(compare(home, "4", "parts", &["--resume"]));
    same(&home.join("whole"), &home.join("parts"));
    // As if killed while the files were moved into place: the provenance is new, a run is not there yet.
    fs::remove_file(home.join("parts/runs/mine/reno/seed-4.json")).unwrap();
    done(compare(home, "4", "parts", &["--resume"]));
    same(&home.join("whole"), &home.join("parts"));
    // Or the other way round.
    fs::write(home.join("parts/provenance.json"), provenance).unwrap();
    done(compare(home, "4", "parts", &["--resume"]));
    same(&home.join("whole"), &home.join("parts"));
}

#[test]
fn ranges_of_seeds_are_merged() {
    let home = home();
    let home = home.path();
    for series in ["first", "all"] {
        let more = ["--series-of", series];
        let name = |part: &str| format!("{part}-{series}");
        done(compare(home, "5", &name("whole"), &more));
        done(compare(home, "1..2", &name("a"), &more));
        done(compare(home, "3..3", &name("b"), &more));
        done(compare(home, "4..5", &name("c"), &more));
        // In any order.
        let parts = [name("b"), name("c"), name("a")];
        let parts = [&parts[0][..], &parts[1], &parts[2]];
        done(run(home, &[&["merge"], &parts[..], &["--out", &name("all")]].concat()));
        same(&home.join(name("whole")), &home.join(name("all")));
        // What was merged is as good as one comparison: it goes on, and merges again.
        done(compare(home, "6..6", &name("d"), &more));
        done(run(home, &["merge", &name("all"), &name("d"), "--out", &name("more")]));
        done(compare(home, "6", &name("all"), &[&more[..], &["--resume"]].concat()));
        same(&home.join(name("more")), &home.join(name("all")));
    }
}

#[test]
fn what_is_merged_has_the_page_and_the_plots_of_one_comparison() {
    let home = home();
    let home = home.path();
    done(compare(home, "4", "whole", &["--report", "whole.html", "--plots", "whole-plots"]));
    done(compare(home, "1..2", "a", &["--report", "a.html", "--plots=a-plots"]));
    done(compare(home, "3..4", "b", &[]));
    let line = refused(run(home, &["merge", "a", "b", "--out", "all", "--report", "all.txt"]));
    assert_eq!(line, "all.txt: expected a name that ends with .html");
    assert!(!home.join("all").exists());
    let pages = ["--report", "all.html", "--plots", "all-plots"];
    let output = run(home, &[&["merge", "a", "b", "--out", "all"][..], &pages].concat());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    done(output);
    assert!(text.contains("\nPage for a browser: all.html\n"), "{text}");
    assert!(text.contains("\nPlots in all-plots: "), "{text}");
    same(&home.join("whole"), &home.join("all"));
    same(&home.join("whole-plots"), &home.join("all-plots"));
    let [whole, all] = ["whole.html", "all.html"].map(|name| {
        let html = fs::read_to_string(home.join(name)).unwrap();
        let (head, results) = html.split_once("<main id=\"results\">").unwrap();
        (head.to_owned(), results.to_owned())
    });
    assert!(whole.1 == all.1, "of other results");
    assert!(!all.0.contains("a.html") && !all.0.contains("a-plots"), "{}", all.0);
}

#[test]
fn shards_in_any_order_one_of_them_twice_are_the_whole() {
    let home = home();
    let home = home.path();
    done(compare(home, "5", "whole", &[]));
    let mut folders: Vec<String> = [2, 3, 1].map(|index| format!("shard-{index}")).to_vec();
    for folder in &folders {
        let shard = format!("{}/3", folder.trim_start_matches("shard-"));
        done(compare(home, "5", folder, &["--shard", &shard]));
    }
    done(compare(home, "5", "again", &["--shard=2/3"]));
    folders.push("again".into());
    let mut merge = vec!["merge", "--out", "all"];
    merge.extend(folders.iter().map(String::as_str));
    done(run(home, &merge));
    same(&home.join("whole"), &home.join("all"));
    let line = refused(compare(home, "5", "none", &["--shard", "1/6"]));
    assert_eq!(line, "--shard: expected at most 5 shards of 5 seeds, found 6");
    let line = refused(compare(home, "5", "none", &["--shard", "4/3"]));
    assert!(line.contains("expected I/N, the Ith of N shards from 1, such as 3/7"), "{line}");
    assert!(!home.join("none").exists());
}

#[test]
fn a_shard_with_a_damaged_file_is_refused() {
    let home = home();
    let home = home.path();
    done(compare(home, "2", "whole", &[]));
    for shard in ["1", "2"] {
        done(compare(home, "2", shard, &["--shard", &format!("{shard}/2")]));
    }
    let merge = || run(home, &["merge", "1", "2", "--out", "all"]);
    let number: fn(&str) -> String = |text| {
        let (before, after) = text.split_once("\"goodput_mbps\": ").unwrap();
        format!("{before}\"goodput_mbps\": 1{after}")
    };
    let half: fn(&str) -> String = |text| {
        let lines: Vec<&str> = text.lines().collect();
        lines[..lines.len() / 2].join("\n") + "\n"
    };
    let damages = [
        ("1/runs/mine/reno/seed-1.csv", half),
        ("2/runs/mine/olia+ssc/seed-2.decisions.csv", half),
        ("2/runs/mine/reno/seed-2.json", number),
    ];
    for (name, damage) in damages {
        let path = home.join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, damage(&text)).unwrap();
        let line = refused(merge());
        assert!(line.starts_with(&format!("{name}: is damaged, as its SHA-256 ")), "{line}");
        assert!(!home.join("all").exists(), "half of it was written");
        // What goes on with it reads it, too.
        let shard = &name[..1];
        let resume = ["--shard", &format!("{shard}/2"), "--resume"];
        assert_eq!(refused(compare(home, "2", shard, &resume)), line);
        fs::remove_file(&path).unwrap();
        let line = refused(merge());
        assert!(line.starts_with("merge: no folder has runs/mine/"), "{line}");
        done(compare(home, "2", shard, &resume));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // As of a version that wrote down no hashes.
    let path = home.join("2/provenance.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut provenance: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(provenance.as_object_mut().unwrap().remove("files").is_some());
    fs::write(&path, provenance.to_string()).unwrap();
    let line = refused(merge());
    assert!(line.contains("has no SHA-256 of it; expected the results of this version"), "{line}");
    fs::write(&path, text).unwrap();
    done(merge());
    same(&home.join("whole"), &home.join("all"));
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let home = home();
    let home = home.path();
    let merge =
        |folders: &[&str]| refused(run(home, &[&["merge"], folders, &["--out", "all"]].concat()));
    done(compare(home, "1..2", "a", &[]));
    done(compare(home, "3..3", "b", &[]));
    done(compare(home, "2..3", "over", &[]));
    done(compare(home, "5..5", "gap", &[]));
    done(compare(home, "3..3", "settings", &["--set", "warmup=1 s"]));
    done(compare(home, "3..3", "signal", &["--signal", "rtt"]));
    let other = ["compare", "sbd/sb-2", "--cc", "reno", "--seeds", "3..3", "--set", "duration=4 s"];
    done(run(home, &[&other[..], &["--out", "scenario"]].concat()));
    done(run(home, &["run", "sbd/sb-2", "--set", "duration=4 s", "--out", "one"]));
    assert_eq!(merge(&["a", "over"]), "over: holds seeds 2..3, which do not follow 1..2 of a");
    assert_eq!(merge(&["b", "gap", "a"]), "gap: holds seeds 5..5, which do not follow 3..3 of b");
    assert_eq!(merge(&["a", "settings"]), "settings: cannot be merged with a: other settings");
    assert_eq!(
        merge(&["a", "signal"]),
        "signal: cannot be merged with a: other signals (--signal)"
    );
    assert_eq!(merge(&["a", "scenario"]), "scenario: cannot be merged with a: other scenarios");
    let expected = "expected the --out folder of a finished `narrows compare` of this version";
    for folder in ["one", "nowhere"] {
        assert_eq!(merge(&["a", folder]), format!("{folder}: {expected}"));
    }
    let change = |folder: &str, of: &str, to: &str| {
        let path = home.join(folder).join("provenance.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(of), "{text}");
        fs::write(path, text.replace(of, to)).unwrap();
    };
    change("b", "\"program_sha256\": \"", "\"program_sha256\": \"0");
    assert_eq!(merge(&["a", "b"]), "b: cannot be merged with a: another build of narrows");
    change("a", "\"program_sha256\": \"", "\"program_sha256\": \"0");
    assert_eq!(merge(&["a", "b"]), "a: cannot be made again here: another build of narrows");
    // Unless it is said that builds may differ: what comes of it is of both.
    done(run(home, &["merge", "a", "b", "--any-build", "--out", "both"]));
    let again = refused(compare(home, "1..4", "both", &["--resume"]));
    assert!(again.contains("cannot be resumed: another build of narrows"), "{again}");
    change("b", "\"program_sha256\": \"0", "\"program_sha256\": \"00");
    done(run(home, &["merge", "a", "b", "--any-build", "--out", "three"]));
    change("b", "\"program_sha256\": \"00", "\"program_sha256\": \"0");
    assert_eq!(
        merge(&["a", "settings", "--any-build"]),
        "settings: cannot be merged with a: other settings"
    );
    done(compare(home, "1..3", "whole", &[]));
    same(&home.join("whole"), &home.join("both"));
    for folder in ["a", "b"] {
        change(folder, "\"program_sha256\": \"0", "\"program_sha256\": \"");
    }
    fs::remove_file(home.join("b/runs/mine/olia+ssc/seed-3.json")).unwrap();
    let expected = "merge: no folder has runs/mine/olia+ssc/seed-3.json with its series";
    assert_eq!(merge(&["a", "b"]), expected);
    assert!(!home.join("all").exists(), "half of it was written");
    let scenario = fs::read_to_string(home.join("mine.toml")).unwrap();
    fs::write(home.join("mine.toml"), scenario + "jitter = \"0 packets\"\n").unwrap();
    let expected = "cannot be made again here: a scenario, trace or law that has changed";
    assert_eq!(merge(&["a", "b"]), format!("a: {expected}"));
    fs::remove_file(home.join("mine.toml")).unwrap();
    assert!(merge(&["a", "b"]).starts_with("mine.toml: "));
    assert_eq!(refused(run(home, &["merge", "a", "--out", "all"])).lines().count(), 1);
    assert!(!home.join("all").exists(), "half of it was written");
}

#[test]
fn series_are_of_the_seeds_asked_for() {
    let home = home();
    let home = home.path();
    let line = refused(compare(home, "2", "out", &["--series-of", "last"]));
    assert!(line.contains("'last'") && line.contains("all, first, none"), "{line}");
    let base = ["compare", "mine.toml", "--cc", "lia", "--set", "duration=4 s", "--seeds", "3"];
    let line = refused(run(home, &[&base[..], &["--series-of", "all"]].concat()));
    assert!(line.contains("--out"), "{line}");
    for (series, expected) in [("all", 3), ("first", 1), ("none", 0)] {
        done(run(home, &[&base[..], &["--out", series, "--series-of", series]].concat()));
        let names = files(&home.join(series)).into_keys();
        let names = names.filter(|name| name.extension().is_some_and(|end| end == "csv"));
        let of_runs = names.filter(|name| name.starts_with("runs"));
        assert_eq!(of_runs.count(), expected, "{series}");
    }
    // A run writes the same.
    let one = ["run", "mine.toml", "--cc", "lia", "--set", "duration=4 s", "--seed", "3"];
    done(run(home, &[&one[..], &["--out", "one"]].concat()));
    let [one, of] = ["one/series.csv", "all/runs/mine/lia/seed-3.csv"]
        .map(|name| fs::read(home.join(name)).unwrap());
    assert!(one == of);
}
