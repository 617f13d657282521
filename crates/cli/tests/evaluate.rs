//! `narrows evaluate`, by criteria of few and short runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn narrows(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).current_dir(folder).args(args).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_list_has_every_section() {
    let home = tempfile::tempdir().unwrap();
    let (code, text, _) = said(&narrows(home.path(), &["evaluate", "list"]));
    assert_eq!(code, Some(0));
    for expected in ["5.1.2/queue", "7.10/shared", "Multipath Transport", "8/security"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, text, _) = said(&narrows(home.path(), &["evaluate", "list", "--json"]));
    assert_eq!(json(&text)["heads"][0], "criterion");
}

#[test]
fn the_list_of_a_section_has_no_other() {
    let home = tempfile::tempdir().unwrap();
    let list = ["evaluate", "list", "--only", "5.3, 7.11/incast"];
    let (code, text, error) = said(&narrows(home.path(), &list));
    assert_eq!(code, Some(0), "{error}");
    let first = text.lines().filter(|line| !line.starts_with(' '));
    let criteria: Vec<&str> = first.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(criteria, ["5.3.1/principles", "5.3.2/deployment", "7.11/incast"]);
    let (_, text, _) = said(&narrows(home.path(), &[&list[..], &["--json"]].concat()));
    assert_eq!(json(&text)["rows"].as_array().unwrap().len(), 3, "{text}");
}

/// The story of docs/results/bcp133.md.
#[test]
fn a_law_of_ones_own_is_judged_and_its_header_answers() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| said(&narrows(home.path(), args));
    assert_eq!(run(&["law", "new", "mine.h"]).0, Some(0));
    let header = home.path().join("mine.h");
    let text = fs::read_to_string(&header).unwrap();
    let answered =
        text.replacen("/*\n", "/*\n * BCP 133, 5.3.1: none,\n * it halves as Reno.\n *\n", 1);
    fs::write(&header, answered).unwrap();
    let evaluate = ["evaluate", "mine", "--law", "mine.h", "--quick"];
    let few = ["--only", "5.1.1/blackout,5.2/feedback,5.3"];
    let more = ["--json", "--out", "out", "--report", "mine.html"];
    let (code, text, error) = run(&[&evaluate[..], &few, &more].concat());
    assert_eq!(code, Some(0), "{error}");
    let found = json(&text);
    assert_eq!(
        (found[0]["law"].as_str(), found[0]["couples"].as_bool()),
        (Some("mine"), Some(true))
    );
    // As many as were run, whether they were asked for or not.
    assert_eq!(found[0]["seeds"], 5);
    assert!(!error.contains("cannot be told"), "{error}");
    let verdict = |name: &str| {
        let all = found[0]["criteria"].as_array().unwrap();
        let of = all.iter().find(|one| one["criterion"] == name).unwrap();
        (of["verdict"].as_str().unwrap().to_owned(), of["line"].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(verdict("5.1.1/blackout").0, "host");
    assert_eq!(verdict("5.2/feedback").0, "host");
    assert_eq!(verdict("5.3.1/principles"), ("answered".into(), "none, it halves as Reno.".into()));
    assert_eq!(verdict("5.3.2/deployment").0, "missing");
    let html = fs::read_to_string(home.path().join("mine.html")).unwrap();
    assert!(html.contains("mine: BCP 133") && html.contains("nothing returns, 2 paths"));

    // The runs are kept: again without one, and of another version of the law only those of the standards are used.
    let kept = || fs::read_dir(home.path().join("out/runs")).unwrap().count();
    let before = kept();
    let (_, _, error) = run(&[&evaluate[..], &few, &more].concat());
    assert!(error.contains("--resume goes on"), "{error}");
    let more = ["--json", "--out", "out", "--resume"];
    assert_eq!(run(&[&evaluate[..], &few, &more].concat()).1, text);
    assert_eq!(kept(), before);
    let other = fs::read_to_string(&header).unwrap().replacen("halves as Reno", "does not", 1);
    fs::write(&header, other).unwrap();
    let (code, text, error) = run(&[&evaluate[..], &few, &more].concat());
    assert!(code == Some(0) && text.contains("none, it does not."), "{error}");
    assert!(before < kept() && kept() < 2 * before, "{} runs, {before} before", kept());
    // Neither another law nor another selection takes the place of its tables.
    let of = |file: &str| fs::read_to_string(home.path().join("out").join(file)).unwrap();
    let of_these = "mine-quick-5.1.1-blackout+5.2-feedback+5.3";
    let [tables, table] = ["json", "md"].map(|kind| of(&format!("{of_these}.{kind}")));
    assert_eq!(json(&tables)["criteria"][0]["criterion"], "5.1.1/blackout");
    assert!(table.contains("| 5.3.2/deployment | MUST | missing |"), "{table}");
    let reno = ["evaluate", "reno", "--quick", "--only", "5.3", "--out", "out", "--resume"];
    assert_eq!(run(&reno).0, Some(0));
    let mine = ["--only", "5.3", "--out", "out", "--resume"];
    assert_eq!(run(&[&evaluate[..], &mine].concat()).0, Some(0));
    assert_eq!(of(&format!("{of_these}.json")), tables);
    for law in ["reno", "mine"] {
        assert!(home.path().join(format!("out/{law}-quick-5.3.md")).is_file(), "{law}");
    }
    // Nor does the whole form, or one path.
    let whole = ["evaluate", "mine", "--law", "mine.h", "--only", "5.3", "--paths", "1"];
    assert_eq!(run(&[&whole[..], &["--out", "out", "--resume"]].concat()).0, Some(0));
    assert!(home.path().join("out/mine-5.3-paths-1.md").is_file());
}

#[test]
fn tables_of_one_selection_have_one_name_and_those_of_other_seeds_another() {
    let home = tempfile::tempdir().unwrap();
    let tables = |more: &[&str]| {
        let args = ["evaluate", "reno", "--quick", "--out", "out", "--resume"];
        let (code, _, error) = said(&narrows(home.path(), &[&args[..], more].concat()));
        assert_eq!(code, Some(0), "{error}");
        let files = fs::read_dir(home.path().join("out")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
        names.sort_unstable();
        names
    };
    for only in ["5.3,8", "8,5.3", "5.3.2, 5.3.1,8/security", "8,5.3,5.3.1"] {
        assert_eq!(tables(&["--only", only]), ["reno-quick-5.3+8.md"], "{only}");
    }
    assert_eq!(tables(&["--only", "5.3,8", "--seeds", "5"]), ["reno-quick-5.3+8.md"]);
    let other = ["--only", "8,5.3", "--seeds", "20"];
    assert_eq!(tables(&other), ["reno-quick-5.3+8-seeds-20.md", "reno-quick-5.3+8.md"]);
}

#[test]
fn a_law_that_crashes_falls_short_by_its_line_and_the_rest_is_judged() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(said(&narrows(home.path(), &["law", "new", "mine.h"])).0, Some(0));
    let header = home.path().join("mine.h");
    let text = fs::read_to_string(&header).unwrap();
    // There are no eight paths.
    let crash = "return (nr_s64)(paths / NR_READ(c->path[7].cwnd));";
    let text = text.replace("return (nr_s64)(NR_ONE / (paths * paths * p->cwnd));", crash);
    assert!(text.contains(crash));
    fs::write(&header, text).unwrap();
    let args = ["evaluate", "mine", "--law", "mine.h", "--quick", "--seeds", "2"];
    let only = ["--only", "5.1.1/blackout,5.1.4/paths", "--json"];
    let (code, text, error) = said(&narrows(home.path(), &[&args[..], &only].concat()));
    assert_eq!(code, Some(0), "{error}");
    let found = json(&text);
    assert_eq!(found[0]["seeds"], 2);
    let few = "narrows: --seeds 2: from fewer than 5 every verdict on runs is `cannot be told`, unless the law ends one";
    assert_eq!(error.lines().filter(|line| *line == few).count(), 1, "{error}");
    let criterion = &found[0]["criteria"][1];
    assert_eq!(criterion["criterion"], "5.1.4/paths");
    assert_eq!(
        (&criterion["verdict"], &criterion["keyword"]),
        (&"falls-short".into(), &"should".into())
    );
    let line = criterion["line"].as_str().unwrap();
    assert!(line.contains("the law divides by zero") && line.lines().count() == 1, "{line}");
    assert_eq!(criterion["cells"].as_array().unwrap().len(), 0);
}

/// As by a law that ends its process, which leaves no result.
#[test]
fn an_internal_error_is_told_on_standard_error_and_the_rest_is_judged() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(said(&narrows(home.path(), &["law", "new", "mine.h"])).0, Some(0));
    let header = home.path().join("mine.h");
    let text = fs::read_to_string(&header).unwrap();
    let guard = "#define NARROWS_LAW_MINE_H\n";
    let text = text.replace(guard, &format!("{guard}void _exit(int);\n"));
    let growth = "\treturn (nr_s64)(NR_ONE / (paths * paths * p->cwnd));";
    let ends = format!("\tif (paths)\n\t\t_exit(0);\n{growth}");
    assert!(text.contains("void _exit") && text.contains(growth), "{text}");
    fs::write(&header, text.replace(growth, &ends)).unwrap();
    let args = ["evaluate", "mine", "--law", "mine.h", "--quick", "--json"];
    let only = ["--only", "5.1.4/paths,5.3.1"];
    let (code, text, error) = said(&narrows(home.path(), &[&args[..], &only].concat()));
    assert_eq!(code, Some(0), "{error}");
    let found = json(&text);
    let of = |number: usize, field: &str| found[0]["criteria"][number][field].clone();
    assert_eq!(of(0, "verdict"), "cannot-be-told", "{text}");
    assert_eq!(of(1, "verdict"), "missing");
    let line = "internal error: bcp133 under mine, seed 1: a run ended without a result: ";
    assert_eq!(of(0, "line"), line);
    let told = format!("narrows: mine, 5.1.4/paths: cannot be told: {line}");
    assert_eq!(error.lines().filter(|line| *line == told).count(), 1, "{error}");
}

/// A control of one path is not charged with what it does as several.
#[test]
fn with_one_path_cells_of_several_are_left_out() {
    let home = tempfile::tempdir().unwrap();
    let args = ["evaluate", "reno", "--quick", "--only", "5.1.3,7.10/coupled-limit"];
    let (code, text, error) =
        said(&narrows(home.path(), &[&args[..], &["--paths", "1", "--json"]].concat()));
    assert_eq!(code, Some(0), "{error}");
    let found = json(&text);
    assert_eq!(found[0]["paths"], 1);
    let of = |number: usize| found[0]["criteria"][number].clone();
    assert_eq!(of(0)["verdict"], "meets", "{text}");
    let cells = of(0)["cells"].as_array().unwrap().clone();
    let places = cells.iter().map(|cell| cell["place"].as_str().unwrap());
    assert!(places.clone().all(|place| place.ends_with("of one path")), "{text}");
    assert_eq!((&of(1)["verdict"], &of(1)["runs"]), (&"left-out".into(), &0.into()));
    assert_eq!(of(1)["line"], "the law has several paths in all cells");
}

#[test]
fn a_law_of_a_file_that_is_not_evaluated_is_a_mistake() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(said(&narrows(home.path(), &["law", "new", "mine.h"])).0, Some(0));
    let args = ["evaluate", "lia", "--law", "mine.h", "--only", "5.3"];
    let (code, text, error) = said(&narrows(home.path(), &args));
    assert_eq!((code, text.as_str()), (Some(2), ""), "{error}");
    let expected = "mine.h: its law is not evaluated; expected mine among the names";
    assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    // With a detector it is.
    let args = ["evaluate", "lia", "mine+xcorr", "--law", "mine.h", "--only", "5.3"];
    assert_eq!(said(&narrows(home.path(), &args)).0, Some(0));
}

/// Receivers of QUIC do not misbehave; what else these criteria need it has.
#[cfg(feature = "quic")]
#[test]
fn what_a_host_lacks_is_left_out_and_the_rest_is_judged_there() {
    let home = tempfile::tempdir().unwrap();
    let args = ["evaluate", "lia", "--quick", "--only", "5.1.1/blackout,7.6/receivers"];
    let on = ["--on", "quic", "--out", "out"];
    let (code, text, error) = said(&narrows(home.path(), &[&args[..], &on].concat()));
    assert_eq!(code, Some(0), "{error}");
    assert!(text.starts_with("lia, by RFC 9743 (BCP 133) on quic\n"), "{text}");
    assert!(text.contains("lia: 1 the host's, 1 left out"), "{text}");
    assert!(text.contains("schedulers and acknowledgements of their own"), "{text}");
    let name = "out/lia-quick-5.1.1-blackout+7.6-receivers-on-quic.json";
    let kept = json(&fs::read_to_string(home.path().join(name)).unwrap());
    let of = |number: usize| kept["criteria"][number].clone();
    assert_eq!((&kept["host"], &of(0)["verdict"]), (&"quic".into(), &"host".into()));
    assert_eq!((&of(1)["verdict"], &of(1)["runs"]), (&"left-out".into(), &0.into()));
    let line = of(1)["line"].as_str().unwrap().to_owned();
    assert!(line.contains("flows.law.tcp.receiver_hides: receivers misbehave"), "{line}");
    // The page of docs has the simulator's.
    let docs = ["--on", "quic", "--docs", "docs"];
    let (code, _, error) = said(&narrows(home.path(), &[&["evaluate", "lia"][..], &docs].concat()));
    assert_eq!(code, Some(2));
    assert!(error.contains("--on quic: the page has the simulator's tables"), "{error}");
}

/// Each with tables of its own; what one lacks is left out there alone.
#[cfg(feature = "quic")]
#[test]
fn several_hosts_are_judged_one_after_the_other() {
    let home = tempfile::tempdir().unwrap();
    let args = ["evaluate", "lia", "--quick", "--seeds", "1"];
    let only = ["--only", "5.1.1/blackout,7.6/receivers", "--on", "sim,quic"];
    let more = ["--json", "--out", "out", "--report", "lia.html"];
    let (code, text, error) = said(&narrows(home.path(), &[&args[..], &only, &more].concat()));
    assert_eq!(code, Some(0), "{error}");
    let found = json(&text);
    let of = |number: usize| {
        let criteria = found[number]["criteria"].as_array().unwrap().iter();
        let verdicts: Vec<&str> = criteria.map(|one| one["verdict"].as_str().unwrap()).collect();
        (found[number]["host"].as_str().unwrap(), verdicts)
    };
    assert_eq!(of(0), ("sim", vec!["cannot-be-told", "cannot-be-told"]));
    assert_eq!(of(1), ("quic", vec!["cannot-be-told", "left-out"]));
    assert_eq!(found.as_array().unwrap().len(), 2);
    let files = fs::read_dir(home.path().join("out")).unwrap();
    let names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    for end in ["-seeds-1.json", "-seeds-1.md", "-seeds-1-on-quic.json", "-seeds-1-on-quic.md"] {
        assert_eq!(names.iter().filter(|name| name.ends_with(end)).count(), 1, "{end}: {names:?}");
    }
    let html = fs::read_to_string(home.path().join("lia.html")).unwrap();
    assert!(html.contains("lia on quic"), "{html}");
}

#[test]
fn what_is_wrong_is_one_line_and_nothing_is_left() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("docs/results")).unwrap();
    fs::write(home.path().join("docs/results/bcp133.md"), "no marks\n").unwrap();
    for (args, expected) in [
        (&["lia", "--only", "7.12"][..], "7.12: no such section; expected 3.1, 3.2, 4, 5.1.1,"),
        (
            &["lia", "--only", "5.1.1/lost"],
            "5.1.1/lost: no such criterion (did you mean '5.1.1/loss'?)",
        ),
        (&["lia", "list"], "list: has all there are; expected no other name with it"),
        (&["list", "--only", "99"], "99: no such section; expected 3.1, 3.2, 4, 5.1.1,"),
        (&["list", "--law", "none.h"], "--law: list runs nothing; expected only --only or --json"),
        (&["list", "--quick"], "--quick: list runs nothing"),
        (&["list", "--seeds", "5"], "--seeds: list runs nothing"),
        (&["list", "--on", "sim,quic"], "--on: list runs nothing"),
        (&["list", "--jobs", "2"], "--jobs: list runs nothing"),
        (&["list", "--out", "out", "--resume"], "--out: list runs nothing"),
        (&["list", "--report", "a.html"], "--report: list runs nothing"),
        (&["list", "--docs", "docs"], "--docs: list runs nothing"),
        (&["lai"], "lai: "),
        (&["kernel:cubic"], "kernel:cubic: expected a law that the simulator runs"),
        (&["lia", "reno", "lia"], "lia: lia is named twice"),
        (&["lia", "--law", "none.h"], "none.h: no such file"),
        (&["mine"], "; a law of your own by --law FILE.h"),
        (&["lia", "--paths", "0"], "invalid value '0' for '--paths <N>'"),
        (&["lia", "--paths", "1", "--docs", "docs"], "--docs"),
        (&["list", "--paths", "1"], "--paths: list runs nothing"),
        (&["lia", "--docs", "docs"], "expected <!-- table criteria --> and <!-- end -->"),
        (&["lia", "--docs", "nowhere"], "nowhere/results/bcp133.md: cannot read"),
        (&["lia", "--only", "5.3", "--out", "docs"], "docs: has files of something else;"),
        (&["lia", "--report", "a.txt"], "expected a name that ends with .html"),
        (&["lia", "--seeds", "0"], "--seeds"),
        (&["lia", "--seeds", "-1"], "invalid value '-1' for '--seeds <K>'"),
        (&["lia", "--jobs", "-1"], "invalid value '-1' for '--jobs <J>'"),
        (&["lia", "--resume"], "--out"),
        (&["lia", "--on", "moon"], "--on: "),
        (&["lia", "--on", "sim,moon"], "unknown host 'moon'"),
        (&["lia", "--on", "sim, sim"], "--on: sim is named twice"),
        (&[], "LAW[+DETECTOR]"),
    ] {
        let output = narrows(home.path(), &[&["evaluate"][..], args].concat());
        let (code, text, error) = said(&output);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{args:?}: {error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{args:?}: {error}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "only docs");
}
