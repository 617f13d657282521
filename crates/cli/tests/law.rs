//! A user's law, from its header to a table: the same bytes as if it were built in, and
//! what becomes of one that is none, or misbehaves.

#![cfg(feature = "lab")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use narrows_testkit::wait_until;

/// LIA once more, under another name.
fn lib() -> String {
    let lia = concat!(env!("CARGO_MANIFEST_DIR"), "/../laws/c/laws/lia.h");
    let lia = fs::read_to_string(lia).unwrap();
    lia.replace("lia", "lib").replace("\"../", "\"").replace("\"reno.h\"", "\"laws/reno.h\"")
}

/// A law with `body` for its growth.
fn law(name: &str, body: &str) -> String {
    format!(
        "#include \"law.h\"\n#include \"flows.h\"\n\
         NR_INLINE nr_s64 nr_growth(NR_HOOK, nr_u32 set, nr_u32 *n)\n{{\n\t{body}\n}}\n\
         NR_LAW({name}) = {{\n    .name = \"{name}\", .code = \"{name}\", .about = \"a test\",\n    \
         .source = \"none\", .couples = 1, .credit = nr_growth,\n}};\n"
    )
}

fn narrows(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).current_dir(home).output().unwrap()
}

/// What the command says of a header that it refuses.
fn refused(file: &str, text: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    if !text.is_empty() {
        fs::write(home.path().join(file), text).unwrap();
    }
    let output = narrows(home.path(), &["run", "sbd/sb-2", "--law", file, "--cc", "mine"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    stderr.trim_end().strip_prefix("narrows: ").unwrap().to_owned()
}

const SHORT: [&str; 4] = ["--set", "warmup=1 s", "--set", "duration=4 s"];

#[test]
fn a_law_loaded_at_run_time_gives_the_bytes_of_the_same_law_built_in() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lib.h"), lib()).unwrap();
    let run = |cc: &str, out: &str| {
        let mut args = vec!["run", "sbd/nsb-2", "--law", "lib.h", "--cc", cc, "--out", out];
        args.extend(SHORT);
        let output = narrows(home.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| fs::read_to_string(home.path().join(out).join(name)).unwrap();
        (read("series.csv"), read("summary.json"))
    };
    let (own, built_in) = (run("lib", "own"), run("lia", "built-in"));
    assert_eq!(own.0, built_in.0);
    let (version, rest): (Vec<&str>, Vec<&str>) =
        own.1.lines().partition(|line| line.contains("lib sha256 "));
    assert_eq!(version.len(), 1, "the law's version is part of its result, and of no other");
    assert_eq!(rest.join("\n").replace("\"lib\"", "\"lia\""), built_in.1.trim_end());
    // With a detector, at the receiver.
    let detected = (run("lib+ssc", "own-ssc"), run("lia+ssc", "built-in-ssc"));
    assert_eq!(detected.0.0, detected.1.0);
}

#[test]
fn another_version_of_a_law_is_another_result() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lib.h"), lib()).unwrap();
    let mut args = vec!["compare", "sbd/sb-2", "--law", "lib.h", "--cc", "lib", "--out", "out"];
    args.extend(["--seeds", "1"]);
    args.extend(SHORT);
    let first = narrows(home.path(), &args);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    fs::write(home.path().join("lib.h"), lib() + "\n/* changed */\n").unwrap();
    args.push("--resume");
    let second = narrows(home.path(), &args);
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn an_interrupted_comparison_goes_on_with_the_same_version_alone() {
    let home = tempfile::tempdir().unwrap();
    let header = home.path().join("my laws $/lib.h"); // what make would escape
    fs::create_dir(header.parent().unwrap()).unwrap();
    fs::write(&header, lib()).unwrap();
    let mut args = vec!["compare", "sbd/sb-2", "--law", "my laws $/lib.h", "--cc", "lib"];
    args.extend(["--out", "out", "--seeds", "40", "--jobs", "1"]);
    args.extend(SHORT);
    let mut first = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(&args)
        .current_dir(home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = home.path().join("out/unfinished.jsonl");
    let runs = || fs::read(&journal).map_or(0, |text| text.split(|byte| *byte == b'\n').count());
    wait_until(60, || if runs() > 2 { Ok(()) } else { Err("no run has ended".into()) });
    first.kill().unwrap();
    first.wait().unwrap();
    args.push("--resume");
    fs::write(&header, lib() + "\n/* changed */\n").unwrap();
    let output = narrows(home.path(), &args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("belongs to other arguments"), "{said}");
}

#[test]
fn a_law_runs_over_a_trace_from_a_header_that_has_gone() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::write(at("elsewhere.h"), lib()).unwrap();
    std::os::unix::fs::symlink("elsewhere.h", at("lib.h")).unwrap();
    fs::write(at("trace"), "1\n2\n3\n").unwrap();
    let mut args = vec!["run", "sbd/nsb-2", "--law", "lib.h", "--cc", "lib"];
    args.extend(["--trace", "bottleneck1=trace"]);
    args.extend(SHORT);
    let output = narrows(home.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_law_that_divides_by_zero_or_loops_fails_its_run_with_one_line() {
    let cases = [
        ("return (nr_s64)(NR_ONE / NR_READ(c->path[7].cwnd));", "divides by zero"),
        ("while (NR_READ(c->masks)) {}\n\treturn 0;", "CPU time for a run; does it loop?"),
        ("*(volatile nr_u32 *)(nr_u64)set = 1;\n\treturn 0;", "accesses invalid memory"),
    ];
    let home = tempfile::tempdir().unwrap();
    for (body, expected) in cases {
        fs::write(home.path().join("mine.h"), law("mine", body)).unwrap();
        let mut args = vec!["run", "sbd/sb-2", "--law", "mine.h", "--cc", "mine", "--out", "out"];
        args.extend(SHORT);
        let output = narrows(home.path(), &args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the header is there: {left:?}");
    }
}

#[test]
fn what_is_no_law_is_refused_in_one_line() {
    let table = |name: &str| law(name, "return 0;");
    let stderr = refused("mine.h", "");
    assert_eq!(stderr, "mine.h: no such file; `narrows law new FILE` writes a template");
    let stderr = refused("mine.h", "int x;\n");
    assert_eq!(stderr, "mine.h: not a law, expected a table NR_LAW(mine) = { ... };");
    let stderr = refused("mine.h", &table("other"));
    assert_eq!(stderr, "mine.h: line 7: expected NR_LAW(mine), as the file is called");
    let stderr = refused("mine.h", &(table("mine") + &table("mine")));
    assert_eq!(stderr, "mine.h: two tables, in lines 7 and 17; expected one NR_LAW(mine)");
    let stderr = refused("olia.h", &table("olia"));
    assert_eq!(
        stderr,
        "olia.h: the name 'olia' is taken; expected another for the file and its table"
    );
    let stderr = refused("My-Law.h", &table("mine"));
    assert!(stderr.contains("'My-Law' is not a name for a law"), "{stderr}");
    let stderr = refused("mine.c", &table("mine"));
    assert_eq!(stderr, "mine.c: not a law, expected a C header NAME.h");
    let long = table("mine").replace(".code = \"mine\"", ".code = \"minelong\"");
    assert!(refused("mine.h", &long).contains("expected at most 15"));
    let stderr = refused("mine.h", &table("mine").replace(".source = \"none\", ", ""));
    assert_eq!(stderr, "mine.h: its table lacks one of .name, .code, .about and .source");
    let model = table("mine").replace(".couples = 1", ".kind = NR_MODEL");
    let stderr = refused("mine.h", &model);
    assert_eq!(stderr, "mine.h: expected .kind = NR_WINDOW, or NR_MODEL with .event");
    let stderr = refused("mine.h", &table("mine").replace(".couples = 1", ".params = 4"));
    assert!(stderr.contains("expected both .param and .params, or none"), "{stderr}");
    let stderr = refused("mine.h", &table("mine").replace("\"a test\"", "\"\\xfc\""));
    assert!(stderr.contains("expected ASCII"), "{stderr}");
    let params = "#define P(X) X(hold_us, hold_s, SECONDS, 5000, 0, 10000, \"\", \"\")\n\
                  NR_LAW_PARAMETERS(mine, P)\nNR_LAW(";
    let wide = table("mine").replace("NR_LAW(", params);
    let wide = wide.replace(".couples = 1", ".couples = 1, NR_TAKES(mine)");
    let stderr = refused("mine.h", &wide);
    assert_eq!(
        stderr,
        "mine.h: parameter hold_s: expected lowest <= default <= highest, in Seconds from 0 to 4294"
    );
    let stderr = refused("flows.h", &table("flows"));
    assert!(stderr.contains("is a word of scenario files or a header of narrows"), "{stderr}");
    let outside = law("mine", "extern int other(void);\n\treturn other();");
    assert!(refused("mine.h", &outside).contains("undefined reference to `other'"));
    let large = table("mine").replace(".couples = 1", ".couples = 1, .state = 137");
    assert!(refused("mine.h", &large).contains("137 bytes of state"), "{large}");
}

#[test]
fn the_compilers_errors_name_file_and_line_of_the_users_header() {
    let text = law("mine", "return 3x;");
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("mine.h"), &text).unwrap();
    let output = narrows(home.path(), &["run", "sbd/sb-2", "--law", "mine.h", "--cc", "mine"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.starts_with("narrows: mine.h: does not compile\n"), "{stderr}");
    let line = text.lines().position(|line| line.contains("3x")).unwrap() + 1;
    assert!(stderr.contains(&format!("mine.h:{line}:")), "{stderr}");
    assert!(!stderr.contains("module.c"), "{stderr}");
    // Written for another version of the contract.
    let other =
        "#include \"law.h\"\nNR_STATIC_ASSERT(NR_VERSION == 3, \"written for version 3\");\n";
    fs::write(home.path().join("mine.h"), other.to_owned() + &law("mine", "return 0;")).unwrap();
    let output = narrows(home.path(), &["run", "sbd/sb-2", "--law", "mine.h", "--cc", "mine"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("written for version 3"));
    // No compiler at all.
    let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["run", "sbd/sb-2", "--law", "mine.h", "--cc", "mine"])
        .env("CC", "no-such-compiler")
        .current_dir(home.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("no C compiler (no-such-compiler); install gcc or clang"), "{stderr}");
}
