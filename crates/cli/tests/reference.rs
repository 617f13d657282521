//! The pages of docs/reference are what the program says of itself: with `NARROWS_KEEP` set this writes them. What other
//! pages say of fields, laws and options in words of their own is held against it.

#![cfg(all(feature = "lab", feature = "detect"))]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_cli::Exit;
use serde_json::Value;

fn narrows(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap();
    assert!(output.status.success(), "narrows {}", args.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a page with what it must be, below its title and a line about it.
fn kept(page: &str, title: &str, about: &str, text: &str) {
    let file = format!("{}/../../docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let by = "<!-- written by `NARROWS_KEEP=1 cargo test -p narrows --test reference` -->";
    narrows_testkit::assert_kept(
        Path::new(&file),
        &format!("# {title}\n\n{by}\n\n{about}\n{text}"),
    );
}

/// The commands below one, each with those below it.
fn commands_of(above: &str) -> Vec<String> {
    let words: Vec<&str> = above.split_whitespace().chain(["--help"]).collect();
    let said = narrows(&words);
    let lines = said.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What a command is about may go on in a line of its own, farther in.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut commands = Vec::new();
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        let command = format!("{above} {name}").trim_start().to_owned();
        // A build without it has no help of it.
        let below = if command == "quic" && cfg!(not(feature = "quic")) {
            Vec::new()
        } else {
            commands_of(&command)
        };
        commands.push(command);
        commands.extend(below);
    }
    commands
}

/// What `--help` says of the commands whose first word is accepted.
fn help(accepted: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for command in commands_of("") {
        let mut words: Vec<&str> = command.split(' ').collect();
        if !accepted(words[0]) {
            continue;
        }
        words.push("--help");
        let said = narrows(&words);
        let lines = said.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        write!(text, "\n## narrows {command}\n\n```text\n{lines}\n```\n").unwrap();
    }
    text
}

/// A table of what `list` has: of each entry the named members, the first as code.
fn table(entries: &Value, members: &[&str]) -> String {
    let mut text = format!("| {} |\n|{}\n", members.join(" | "), "---|".repeat(members.len()));
    for entry in entries.as_array().unwrap() {
        let cell = |(n, member): (usize, &&str)| match &entry[*member] {
            Value::Null => String::new(),
            Value::String(text) if n == 0 => format!("`{text}`"),
            Value::String(text) => text.replace('|', "\\|").replace('<', "&lt;"),
            other => other.to_string(),
        };
        let cells: Vec<String> = members.iter().enumerate().map(cell).collect();
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    }
    text
}

fn listed(args: &[&str]) -> Value {
    serde_json::from_str(&narrows(&[&["list"], args, &["--json"]].concat())).unwrap()
}

#[test]
fn laws_detectors_and_parameters() {
    let all = listed(&[]);
    let mut text = String::new();
    for (part, title, members) in [
        ("laws", "Laws", &["name", "about", "source"][..]),
        ("detectors", "Detectors", &["name", "about", "source"]),
        ("starts", "Slow starts", &["name", "about", "source"]),
        ("params", "Parameters", &["name", "default", "takes", "about", "source"]),
        ("controls", "Controls and their names in the kernel", &["name", "kernel", "is"]),
    ] {
        write!(text, "\n## {title}\n\n{}", table(&all[part], members)).unwrap();
    }
    let about = "A control is `LAW[+DETECTOR][+START]`; `--set NAME=VALUE` sets a parameter. `narrows list` prints all of it.";
    kept("controls", "Laws, detectors, parameters", about, &text);
}

#[test]
fn fields_of_a_scenario() {
    let mut text = String::new();
    for one in listed(&["fields"])["fields"].as_array().unwrap() {
        let title = match one["name"].as_str().unwrap() {
            "" => "At the top of the file".to_owned(),
            name => format!("`[{name}]`"),
        };
        let fields = table(&one["fields"], &["name", "takes", "default", "about"]);
        write!(text, "\n## {title}\n\n{}\n\n{fields}", one["about"].as_str().unwrap()).unwrap();
    }
    let about = "What a scenario's file takes, table by table: [how to write one](../../scenarios/README.md). `narrows list fields TABLE` prints it.";
    kept("fields", "Fields of a scenario", about, &text);
}

/// A path of the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

/// The code in a page's sentences and tables.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The names in a page's code, also where it is indented: `links` and `rate` of `[links.NAME]` and `rate = "1 Mbit/s"`.
fn names_in(text: &str) -> BTreeSet<&str> {
    let indented = text.lines().filter(|line| line.starts_with("    "));
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words = spans(text).chain(indented).flat_map(|code| code.split(move |c: char| !of_name(c)));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// The cells of each row of a page's table with this head.
fn rows<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let (_, table) = page.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').collect()).collect()
}

/// The names of the fields of a table of `list fields`.
fn fields_of(table: &Value) -> BTreeSet<&str> {
    let fields = table["fields"].as_array().unwrap();
    fields.iter().map(|field| field["name"].as_str().unwrap()).collect()
}

/// Each field but the parameters is there, the tables name no other, and the defaults of disciplines are as listed.
#[test]
fn the_guide_to_scenarios_has_the_fields() {
    let (page, listed) = (read("scenarios/README.md"), listed(&["fields"]));
    let tables = listed["fields"].as_array().unwrap().iter();
    let tables = tables.map(|table| (table["name"].as_str().unwrap(), table));
    let (of_params, tables): (BTreeMap<&str, &Value>, BTreeMap<&str, &Value>) =
        tables.partition(|(_, table)| table["about"].as_str().unwrap().starts_with("Parameters "));

    let all = names_in(&page);
    for (name, table) in &tables {
        let missing: Vec<&str> = fields_of(table).difference(&all).copied().collect();
        assert!(missing.is_empty(), "scenarios/README.md: of [{name}] missing: {missing:?}");
    }

    let of_file = rows(&page, "\n| field | meaning |");
    let mut top: BTreeSet<&str> = of_file.iter().flat_map(|row| names_in(row[0])).collect();
    top.retain(|name| !of_params.contains_key(name));
    assert!(top.remove("base"), "what bases are is no field of a whole scenario");
    assert_eq!(top, fields_of(tables[""]), "scenarios/README.md: Fields");

    let generators = rows(&page, "\n| `KIND` | makes | fields |");
    let generators = generators.iter().map(|row| {
        let mut fields = names_in(row[2]);
        fields.extend(["rate", "delay", "queue"]);
        (spans(row[0]).next().unwrap(), fields)
    });
    let kinds = tables.iter().filter_map(|(name, table)| {
        let kind = name.strip_prefix("generator.").filter(|kind| !kind.contains('.'))?;
        Some((kind, fields_of(table)))
    });
    let [told, kinds]: [BTreeMap<&str, BTreeSet<&str>>; 2] =
        [generators.collect(), kinds.collect()];
    assert_eq!(told, kinds, "scenarios/README.md: generators");

    let links = rows(&page, "\n| field of a link | meaning, and its defaults |");
    let links: BTreeMap<&str, &str> =
        links.iter().map(|row| (spans(row[0]).next().unwrap(), row[1])).collect();
    for (name, table) in &tables {
        let Some(of) = name.strip_prefix("links.NAME.") else { continue };
        // Distributions of the jitter are in one row.
        let row = links.get(of).or_else(|| links.get(of.split('.').next()?));
        let mut says = row.unwrap_or_else(|| panic!("no row {of}")).to_string();
        if says.contains("those of CoDel") {
            says += links["aqm.codel"];
        }
        for field in table["fields"].as_array().unwrap() {
            let name = field["name"].as_str().unwrap();
            assert!(names_in(&says).contains(name), "no {name} in the row of {of}: {says}");
            let default = field["default"].as_str().filter(|_| links.contains_key(of));
            let default = default.map(|default| format!("{name} = {default}"));
            assert!(default.is_none_or(|it| says.contains(&it)), "{of}, {field}: {says}");
        }
    }
    let link = of_file.iter().find(|row| row[0].contains("[links.NAME]")).unwrap()[1];
    let known: BTreeSet<&str> = names_in(link).into_iter().chain(links.keys().copied()).collect();
    let missing: Vec<&str> = fields_of(tables["links.NAME"]).difference(&known).copied().collect();
    assert!(missing.is_empty(), "scenarios/README.md: of a link missing: {missing:?}");
}

/// All but `fallback`, which no control is named after.
#[test]
fn each_law_has_its_row_where_one_is_chosen() {
    let (page, listed) = (read("docs/guide/choose.md"), listed(&["laws"]));
    let rows = rows(&page, "\n| law | use it if | cost |");
    let told: BTreeSet<&str> = rows.iter().flat_map(|row| names_in(row[0])).collect();
    let laws = listed["laws"].as_array().unwrap().iter().map(|law| law["name"].as_str().unwrap());
    let laws: BTreeSet<&str> = laws.filter(|law| *law != "fallback").collect();
    assert_eq!(told, laws, "docs/guide/choose.md");
}

/// The options in a text.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let named = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
    words.filter(move |word| word.strip_prefix("--").is_some_and(named))
}

/// In sentences and tables, by the pages of docs/reference, which have the help of all commands in every build.
/// `args/pages.rs` parses whole calls.
#[test]
fn each_option_of_a_guide_is_one_of_the_program() {
    let mut help = narrows(&["--help"]);
    for page in ["commands", "kernel", "quic"] {
        help += &read(&format!("docs/reference/{page}.md"));
    }
    let known: BTreeSet<&str> = options(&help).collect();
    let mut pages: Vec<PathBuf> =
        ["README.md", "docs/README.md", "scenarios/README.md"].map(path).into();
    for folder in ["docs/guide", "docs/method"] {
        pages.extend(std::fs::read_dir(path(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        // Of other programs each call begins with their name, but for cargo's choice of parts.
        let ours = spans(&text).filter(|code| {
            let of_cargo = code.starts_with("--no-default-features");
            (code.starts_with("--") || code.starts_with("narrows ")) && !of_cargo
        });
        for option in ours.flat_map(options) {
            count += 1;
            if !known.contains(option) {
                wrong.push(format!("{}: {option}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "no such option: {}", wrong.join(", "));
    assert!(count >= 100, "{count} options");
}

/// All of them but how to see what would come, and the limits that hold where none are given.
#[test]
fn the_guide_to_trials_has_the_options() {
    let (page, kernel) = (read("docs/guide/trial.md"), read("docs/reference/kernel.md"));
    let (_, trial) = kernel.split_once("\n## narrows kernel trial\n").unwrap();
    let (_, trial) = trial.split_once("\nOptions:\n").unwrap();
    let (trial, _) = trial.split_once("\nExamples:\n").unwrap();
    let rows = rows(&page, "\n| option | |");
    let told: BTreeSet<&str> = rows.iter().flat_map(|row| options(row[0])).collect();
    let mut given: BTreeSet<&str> = options(trial).collect();
    given.retain(|option| !["--dry-run", "--help"].contains(option));
    assert_eq!(told, given, "docs/guide/trial.md");
    let (_, limits) = trial.split_once("--guard ").unwrap();
    let (_, limits) = limits.split_once("[default:").unwrap();
    let limits = format!("default `{}`", limits.split(']').next().unwrap().trim());
    assert!(rows.iter().any(|row| row[1].contains(&limits)), "docs/guide/trial.md: no {limits}");
}

#[test]
fn scenarios() {
    let text = table(&listed(&["scenarios"])["scenarios"], &["name", "title", "source"]);
    let about = "Each runs by its name: `narrows run NAME`. `narrows show NAME > mine.toml` makes a copy to edit.\n";
    kept("scenarios", "Shipped scenarios", about, &text);
}

#[test]
fn metrics() {
    let listed = listed(&["metrics"]);
    let mut text = String::from("| key | unit | what it is |\n|---|---|---|\n");
    for one in listed["metrics"].as_array().unwrap() {
        let [of, name, unit, about] =
            ["of", "name", "unit", "about"].map(|member| one[member].as_str().unwrap());
        writeln!(text, "| `{of}.{name}` | {unit} | {about} |").unwrap();
    }
    let about = "Keys of `summary.json`. Those of `test`, the connection under test, are also the columns of `compare`, of its rows in\n\
         JSON (each with `mean`, `ci95`, `median`, `q1`, `q3` over the seeds) and of its CSV (`goodput_mbps_mean`, ...). 1 is the\n\
         unit of a ratio. [How they are measured](../method/measuring.md).\n";
    kept("metrics", "Metrics", about, &text);
}

/// The exit codes, and the help of the commands that every build has.
#[test]
fn commands() {
    let mut codes = String::from("| exit code | meaning | when |\n|---|---|---|\n");
    for exit in Exit::ALL {
        let [meaning, when] = exit.about();
        writeln!(codes, "| {} | {meaning} | {when} |", exit as u8).unwrap();
    }
    codes += "\n`shell` returns the exit code of its command, 128 and the signal's number if one ended it.";
    let others = ["kernel", "shell", "clean", "quic"];
    let text = help(|command| !others.contains(&command));
    kept("commands", "Commands", &codes, &text);
}

/// Files of the mistakes in [`MISTAKES`].
#[cfg(all(feature = "kernel", feature = "quic"))]
const FILES: [(&str, &str); 9] = [
    (
        "typo.toml",
        "base = \"sbd/sb-2\"\nname = \"mine\"\ntitle = \"\"\nsource = \"\"\nduraton = \"10 s\"\n",
    ),
    (
        "unit.toml",
        "base = \"sbd/sb-2\"\nname = \"mine\"\ntitle = \"\"\nsource = \"\"\n[links.bottleneck1]\nrate = \"20 Mbps\"\n",
    ),
    ("quote.toml", "name = \"mine\n"),
    ("order.trace", "12\n7\n"),
    ("rates.trace", "20.5\n"),
    ("kilo.trace", "0 12000\n1 15000\n"),
    ("broken.pcap", "junk\n"),
    ("delays.csv", "t_s,flow,delay\n0,a,1\n"),
    ("mine.h", "int law;\n"),
];

/// Command lines with a mistake each, by what they are of.
#[cfg(all(feature = "kernel", feature = "quic"))]
const MISTAKES: [(&str, &[&str]); 11] = [
    (
        "Command line",
        &[
            "fly",
            "law",
            "run",
            "run sbd/sb-2 --sed 3",
            "run sbd/sb-2 --seed -1",
            "run sbd/sb-2 --live",
            "completions fishy",
        ],
    ),
    (
        "Scenarios and their fields",
        &[
            "run sbd/sb-3x",
            "run typo.toml",
            "run unit.toml",
            "run quote.toml",
            "run sbd/sb-2 --set duration",
            "run sbd/sb-2 --set duration=10",
            "run sbd/sb-2 --set links.none.rate='1 Mbit/s'",
            "run sbd/nsb-2 --set links.bottleneck1.delay='50 ms'",
            "list fields lunks",
        ],
    ),
    (
        "Controls, parameters, signals, hosts",
        &[
            "run sbd/sb-2 --cc lya",
            "run sbd/sb-2 --cc lia+xcor",
            "run sbd/sb-2 --cc bbr+lisa",
            "run sbd/sb-2 --cc lia+btlbw",
            "run sbd/sb-2 --set olia.flor=1",
            "run sbd/sb-2 --cc olia+ssc --signal rrt",
            "run sbd/sb-2 --on mars",
        ],
    ),
    (
        "Traces",
        &[
            "run sbd/sb-2 --trace bottleneck=order.trace",
            "run sbd/sb-2 --trace bottleneck1=no.trace",
            "run sbd/sb-2 --trace bottleneck1=order.trace",
            "run sbd/sb-2 --trace bottleneck1=rates.trace",
            "run sbd/sb-2 --trace bottleneck1=kilo.trace --set 'links.bottleneck1.format=s Gbit/s'",
            "run sbd/sb-2 --set links.bottleneck1.format=us",
        ],
    ),
    (
        "Comparisons",
        &[
            "compare sbd/sb-2 --cc lia,lia",
            "compare sbd/sb-2 sbd/sb-2 --cc lia",
            "compare sbd/sb-2 --cc lia --seeds 9..3",
            "compare sbd/sb-2 --cc reno,lia,olia --seeds 100000",
            "compare sbd/sb-2 --cc lia --sweep duration='1 s'",
            "compare sbd/nsb-2 --cc lia --sweep links.bottleneck1.delay='5..50 ms:2'",
            "compare sbd/sb-2 --cc lia --resume",
            "run sbd/sb-2 --report page.pdf",
            "merge one two --out all",
        ],
    ),
    (
        "Papers and criteria",
        &[
            "papers lissa",
            "papers laws/figure",
            "papers laws --docs nowhere",
            "papers list --out nowhere",
            "evaluate lya",
            "evaluate lia --only 9.9",
        ],
    ),
    ("Captures", &["detect no.pcap", "detect broken.pcap", "detect delays.csv"]),
    (
        "Laws of one's own",
        &["law new mine.txt", "law check mine.h", "run sbd/sb-2 --cc mine --law mine.h"],
    ),
    (
        "Controls in this machine's kernel",
        &[
            "run sbd/sb-2 --cc kernel:bbr",
            "run sbd/sb-2 --app 'curl {server}'",
            "shell sbd/sb-2 --host phone -- true",
            "kernel load gcubic+xcor",
            "kernel load cubic+xcorr",
            "kernel load olia+dcw",
            "kernel load lia --signal sender-us",
            "kernel load lia+xcorr --set olia.floor=2",
            "kernel load ./none.h",
            "kernel use gcubic+xcorr",
            "kernel use gcubic+xcorr --default --netns blue",
            "kernel watch --tcp 1",
            "kernel watch --port 0",
            "kernel watch --for 1x",
        ],
    ),
    (
        "Trials",
        &[
            "kernel trial gcubic+xcorr",
            "kernel trial gcubic+xcorr --against cubic --share 0",
            "kernel trial gcubic+xcorr --against cubic --for 8d",
            "kernel trial gcubic+xcorr --against cubic --guard 'goodput>=2x'",
        ],
    ),
    (
        "QUIC",
        &[
            "run sbd/sb-2 --on quic --pcap out",
            "run sbd/sb-2 --on quic --cc olia+ssc --signal sender-us",
            "quic serve nowhere",
            "quic serve . --listen 4433",
            "quic serve . --cc mptcp-sbd",
            "quic get http://192.0.2.1/file",
            "quic get quic://192.0.2.1:4433/file",
            "quic get https://192.0.2.1/",
            "quic get https://192.0.2.1/file --path a/b",
            "quic get https://192.0.2.1/file --ca nowhere",
        ],
    ),
];

/// What root's mistakes on the kernel are answered with, a line each: the exit code, the command line, the message.
/// `tests/kernel/errors.rs` writes it.
#[cfg(all(feature = "kernel", feature = "quic"))]
const OF_ROOT: &str = include_str!("kept/errors-of-root.tsv");

/// The head of a table of errors, below its title.
#[cfg(all(feature = "kernel", feature = "quic"))]
fn errors_of(title: &str) -> String {
    format!("\n## {title}\n\n| message | of `narrows ..` | exit code |\n|---|---|---|\n")
}

#[cfg(all(feature = "kernel", feature = "quic"))]
fn error_row(message: &str, line: &str, code: &str) -> String {
    let plain = message.trim_end().replace('|', "\\|").replace('<', "&lt;").replace('`', "'");
    format!("| {plain} | `{}` | {code} |\n", line.replace('|', "\\|"))
}

/// What common mistakes are answered with.
#[cfg(all(feature = "kernel", feature = "quic"))]
#[test]
fn errors() {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    let mut text = String::new();
    for (of, lines) in MISTAKES {
        text += &errors_of(of);
        for line in lines {
            // As a shell has them, with single quotes alone.
            let mut quoted = false;
            let words = line.split(|c| {
                quoted ^= c == '\'';
                c == ' ' && !quoted
            });
            let words = words.map(|word| word.replace('\'', ""));
            let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
            let output = command.args(words).current_dir(home.path()).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            let said = said.strip_prefix("narrows: ").unwrap_or_else(|| panic!("{line}: {said:?}"));
            assert_eq!(said.lines().count(), 1, "{line}: {said}");
            let code = output.status.code().unwrap();
            assert_ne!(code, 0, "{line}: {said}");
            text += &error_row(said, line, &code.to_string());
        }
    }
    text += &errors_of("As root in this machine's kernel");
    for line in OF_ROOT.lines() {
        let [code, line, message]: [&str; 3] =
            line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        text += &error_row(message, line, code);
    }
    let about = "Each error is one line on standard error that names the place (a file with its line, a field, an option) and what was \
                 expected. These are what common mistakes are answered with; [exit codes](commands.md), [more trouble](../guide/trouble.md).";
    kept("errors", "Errors", about, &text);
}

#[cfg(feature = "kernel")]
#[test]
fn commands_of_builds_with_the_kernel() {
    let about = "Commands of builds with `--features kernel` (`make install`). [What needs root](../guide/security.md).";
    kept(
        "kernel",
        "Commands for this machine's kernel",
        about,
        &help(|command| ["kernel", "shell", "clean"].contains(&command)),
    );
}

#[cfg(feature = "quic")]
#[test]
fn commands_of_builds_with_quic() {
    let about =
        "Commands of builds with `--features quic`. [Files over QUIC](../guide/quic-get.md).";
    kept("quic", "Commands for QUIC", about, &help(|command| command == "quic"));
}
