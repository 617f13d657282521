//! `narrows papers`, by a table that needs no run, and one that needs few.

use std::fs;
use std::process::{Command, Output};

const NAME: &str = "detectors/drawn-levels";

fn papers(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).arg("papers").args(args).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_list_has_every_table_and_what_was_made_of_it() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out").display().to_string();
    let (code, text, _) = said(&papers(&["list"]));
    assert_eq!(code, Some(0));
    assert!(
        text.contains("  sbd/table-2 ") && text.contains("  lisa/claims ") && !text.contains('['),
        "{text}"
    );

    assert_eq!(said(&papers(&[NAME, "--out", &out])).0, Some(0));
    let (_, text, _) = said(&papers(&["list", "--out", &out]));
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(line(NAME).contains("  [made] "), "{}", line(NAME));
    assert!(line("laws/ratios").contains("  [not made] "), "{}", line("laws/ratios"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_table_is_printed_as_columns_as_json_and_into_its_page() {
    let (_, text, _) = said(&papers(&[NAME]));
    assert!(text.contains("separate, drawn 2"), "{text}");
    let (_, text, _) = said(&papers(&[NAME, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (json[0]["paper"].as_str(), json[0]["rows"].as_array().unwrap().len()),
        (Some("detectors"), 30)
    );

    let home = tempfile::tempdir().unwrap();
    let html = home.path().join("a.html");
    assert_eq!(said(&papers(&[NAME, "--report", html.to_str().unwrap()])).0, Some(0));
    let html = fs::read_to_string(html).unwrap();
    assert!(html.contains("what the drawn cells are") && html.contains("separate, drawn 2"));

    let docs = tempfile::tempdir().unwrap();
    let results = docs.path().join("results");
    fs::create_dir(&results).unwrap();
    let page = results.join("detectors-compared.md");
    fs::write(&page, "Before\n<!-- table drawn-levels -->\nold\n<!-- end -->\nafter\n").unwrap();
    let folder = docs.path().display().to_string();
    let (code, _, error) = said(&papers(&[NAME, "--docs", &folder, "--check"]));
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("not as made now: detectors/drawn-levels"), "{error}");
    assert!(fs::read_to_string(&page).unwrap().contains("old"), "a check leaves the page alone");
    assert_eq!(said(&papers(&[NAME, "--docs", &folder])).0, Some(0));
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        text.starts_with("Before\n")
            && text.ends_with("<!-- end -->\nafter\n")
            && !text.contains("old"),
        "{text}"
    );
    assert_eq!(said(&papers(&[NAME, "--docs", &folder, "--check"])).0, Some(0));
    assert_eq!(fs::read_dir(&results).unwrap().count(), 1, "no other file is left");
}

/// Where a call makes all tables of a page; a page that has them already stays as it is, whatever the day.
#[test]
fn a_page_tells_in_its_second_line_when_and_by_which_build_it_was_made() {
    let (_, text, _) = said(&papers(&[NAME, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    // A build outside of a checkout knows no commit.
    let Some(commit) = json[0]["commit"].as_str() else { return };
    let docs = tempfile::tempdir().unwrap();
    fs::create_dir(docs.path().join("results")).unwrap();
    let page = docs.path().join("results/detectors-compared.md");
    let write = |line: &str, other: &str| {
        let table = "<!-- table drawn-levels -->\n\n<!-- end -->\n";
        fs::write(&page, format!("# Title\n{line}\n{table}{other}")).unwrap();
    };
    let read = || fs::read_to_string(&page).unwrap();
    let folder = docs.path().display().to_string();
    let made = || said(&papers(&[NAME, "--docs", &folder])).0;

    let old = "*Measured 8 May 2020, version 0.0.1, commit 00000000; more.*";
    write(old, "");
    let today = || {
        let date = Command::new("date").args(["-u", "+%-d %B %Y"]).env("LC_ALL", "C").output();
        said(&date.unwrap()).1.trim().to_owned()
    };
    let before = today();
    assert_eq!(made(), Some(0));
    let days = [before, today()];
    let text = read();
    let new = text.lines().nth(1).unwrap().to_owned();
    let commit = commit.get(..8).unwrap_or(commit);
    let build = format!("version {}, commit {commit}", env!("CARGO_PKG_VERSION"));
    let expected = days.map(|day| format!("*Measured {day}, {build}; more.*"));
    assert!(expected.contains(&new), "{new}, not {expected:?}");

    let earlier = text.replace(&new, old);
    fs::write(&page, &earlier).unwrap();
    assert_eq!(said(&papers(&[NAME, "--docs", &folder, "--check"])).0, Some(0));
    assert_eq!((made(), read()), (Some(0), earlier), "with the tables that it has");

    write(old, "<!-- table calibration -->\n<!-- end -->\n");
    assert_eq!(made(), Some(0));
    let text = read();
    assert!(text.contains("separate, drawn 2") && text.lines().nth(1) == Some(old), "{text}");
}

#[test]
fn what_is_wrong_is_one_line_and_nothing_is_made() {
    let home = tempfile::tempdir().unwrap();
    let (empty, out) = (home.path().display().to_string(), home.path().join("out"));
    let out = out.display().to_string();
    for (args, expected) in [
        (
            &["lissa"][..],
            "lissa: no such paper (did you mean 'lisa'?); expected list, all or one of",
        ),
        (&[""], "narrows: '': no such paper; expected list, all or one of"),
        (&["list", "lisa"], "list: has all there are; expected no other name with it"),
        (&["list", "--out", &out], "out: expected a folder of results"),
        (&["list", "--report", "a.html"], "--report: list makes no tables; expected only --out"),
        (&["sbd/"], "no table of sbd begins with ''"),
        (&["lisa/figure-60"], "no table of lisa begins with 'figure-60'"),
        (&[NAME, "--docs", &empty], "results/detectors-compared.md: cannot read"),
        (&[NAME, "--docs", &empty, "--quick"], "--quick: pages have the tables as a whole"),
        (&[NAME, "--resume"], "--out"),
        (&[NAME, "--adaptive"], "--out"),
        (&[NAME, "--adaptive", "--out", &out], "--adaptive: none of these stops before all seeds"),
        (&[NAME, "--on", "mars"], "--on: unknown host 'mars'"),
        (&[NAME, "--report", &empty], "expected a name that ends with .html"),
        (&[NAME, "--seeds", "0", "--out", &out], "--seeds"),
        (&[NAME, "--seeds", "-1", "--out", &out], "invalid value '-1' for '--seeds <K>'"),
        (&[NAME, "--seeds", "99999999999999999999"], "'--seeds <K>': too large"),
    ] {
        let (code, text, error) = said(&papers(args));
        assert_eq!((code, text.as_str()), (Some(2), ""), "{args:?}: {error}");
        assert!(
            error.contains(expected) && error.trim_end().lines().count() == 1,
            "{args:?}: {error}"
        );
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);

    // Plots may be in the folder of the runs.
    let plots = format!("{out}/plots");
    assert_eq!(said(&papers(&[NAME, "--out", &out, "--plots", &plots])).0, Some(0));
    let (code, _, error) = said(&papers(&[NAME, "--out", &out]));
    assert_eq!(code, Some(2));
    assert!(error.contains("has results already; --resume goes on with them"), "{error}");
    assert_eq!(said(&papers(&[NAME, "--out", &out, "--resume"])).0, Some(0));
    fs::write(home.path().join("out/program.sha256"), "another").unwrap();
    let (code, _, error) = said(&papers(&[NAME, "--out", &out, "--resume"]));
    assert_eq!(code, Some(2));
    assert!(error.contains("has runs of another build"), "{error}");

    // A folder of something else stays as it is.
    fs::remove_file(home.path().join("out/program.sha256")).unwrap();
    let all = || fs::read_dir(&out).unwrap().count();
    let before = all();
    for args in [&[NAME, "--out", &out][..], &[NAME, "--out", &out, "--resume"]] {
        let (code, text, error) = said(&papers(args));
        assert_eq!((code, text.as_str(), all()), (Some(2), "", before), "{error}");
        let line = "out: has files of something else; expected an empty folder or a new one\n";
        assert!(error.ends_with(line) && error.lines().count() == 1, "{error}");
    }
}

#[cfg(feature = "quic")]
#[test]
fn tables_of_another_host_bear_its_name_and_what_it_cannot_run_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out").display().to_string();
    let (code, text, error) =
        said(&papers(&[NAME, "detectors/calibration", "--on", "quic", "--out", &out]));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(text.starts_with(&format!("{NAME} on quic: ")), "{text}");
    let (_, left_out) = text.split_once("\nLeft out, as quic cannot run them (1 of 2):\n").unwrap();
    assert!(left_out.starts_with("  detectors/calibration: sbd/nsb-2: detection.passive: "));
    let made = home.path().join("out/detectors");
    let mut names: Vec<_> =
        fs::read_dir(&made).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["drawn-levels-on-quic.json", "drawn-levels-on-quic.md"]);

    let (code, _, error) = said(&papers(&["detectors/calibration", "--on", "quic"]));
    assert_eq!(code, Some(2));
    assert!(error.contains("--on quic: none can run there; detectors/calibration: "), "{error}");
    let (code, _, error) = said(&papers(&[NAME, "--on", "quic", "--docs", &out]));
    assert_eq!(code, Some(2));
    assert!(error.contains("--on quic: pages have the simulator's tables"), "{error}");
}

#[cfg(not(feature = "quic"))]
#[test]
fn tables_of_a_host_that_this_build_lacks_are_left_out() {
    let why = "built without quic support; `cargo build --release -p narrows --features quic`";
    let (code, text, error) = said(&papers(&["tr/figure-1", NAME]));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(text.starts_with(&format!("{NAME}: ")), "{text}");
    let head = "\nLeft out, as this build cannot run them (1 of 2):\n";
    let (_, left_out) = text.split_once(head).unwrap();
    assert_eq!(left_out, format!("  tr/figure-1: {why} includes it\n"));
    let (code, text, error) = said(&papers(&["tr"]));
    assert_eq!((code, text.as_str()), (Some(2), ""));
    let line = format!("tr: none can run in this build; tr/headline: {why} includes it\n");
    assert!(error.ends_with(&line) && error.lines().count() == 1, "{error}");
}
