//! Bad input: each mistake is told in one line that names the place, with exit code 2, and leaves
//! no file behind.

#![cfg(feature = "lab")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

/// Runs the command, which must fail as bad input does; returns the line it says.
fn refused(args: &[&str]) -> String {
    let output = narrows(args);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?} says more than one line:\n{line}");
    assert!(output.stdout.is_empty(), "{args:?} prints to standard output");
    line.trim_end().strip_prefix("narrows: ").expect("the line begins with the program").to_owned()
}

/// A small scenario, valid as it is.
const SMALL: &str = r#"name = "small"
title = "One link"
source = "test"
warmup = "0 s"
duration = "1 s"
test = "a"

[links.wire]
rate = "10 Mbit/s"
queue = "20 packets"

[routes.way]
links = ["wire"]
rtt = "20 ms"

[flows]
a = { kind = "tcp", routes = ["way"], cc = "reno" }
"#;

/// The small scenario with `from` replaced by `to`, run; returns the line without the folder.
fn broken(from: &str, to: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    assert!(SMALL.contains(from), "{from}");
    fs::write(&file, SMALL.replacen(from, to, 1)).unwrap();
    let line = refused(&["run", file.to_str().unwrap()]);
    line.replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_parameter_of_a_law_that_no_flow_runs_is_refused() {
    let short = ["--set", "duration=1 s"];
    let law = ["--cc", "lia", "--set", "bbr.share=han"];
    for command in ["run", "compare"] {
        let line = refused(&[&[command, "cmpbbr/one"], &law[..], &short].concat());
        assert_eq!(line, "--set bbr.share: no flow runs bbr; expected --cc with bbr");
        let detector = ["--cc", "lia", "--set", "ssc.p_s=0.1"];
        let line = refused(&[&[command, "cmpbbr/one"], &detector[..], &short].concat());
        assert_eq!(line, "--set ssc.p_s: no flow runs ssc; expected --cc with ssc");
    }
    let swept = ["--sweep", "duration=2s,3s", "--set", "duration=1 s"];
    let line = refused(&[&["compare", "cmpbbr/one", "--cc", "lia"], &swept[..]].concat());
    assert_eq!(
        line,
        "--set duration: is swept, too; expected one of --set and --sweep for a field"
    );
    let swept = ["--sweep", "olia.floor=1,2", "--set", "duration=1 s"];
    let line = refused(&[&["compare", "cmpbbr/one", "--cc", "lia"], &swept[..]].concat());
    assert_eq!(line, "--sweep olia.floor: no flow runs olia; expected --cc with olia");
    let traces = ["--trace", "lte=a", "--trace", "lte=b"];
    let line = refused(&[&["run", "phone/wifi-lte"], &traces[..]].concat());
    assert_eq!(line, "--trace lte: has two traces; expected one for a link");
    // One of several, and a rival.
    let set = ["--set", "bbr.share=han", "--set", "duration=1 s"];
    let others: [&[&str]; 2] = [
        &["compare", "cmpbbr/one", "--cc", "lia,bbr", "--seeds", "1"],
        &["run", "cmpbbr/two", "--cc", "lia"],
    ];
    for other in others {
        let done = narrows(&[other, &set[..]].concat());
        assert!(done.status.success(), "{other:?}");
    }
}

#[test]
fn a_key_that_is_there_twice_is_named() {
    let line = broken("rate = \"10 Mbit/s\"", "rate = \"10 Mbit/s\"\nrate = \"20 Mbit/s\"");
    assert_eq!(line, "s.toml:10: duplicate key rate");
}

#[test]
fn the_small_scenario_runs() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    fs::write(&file, SMALL).unwrap();
    let output = narrows(&["run", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn signals_need_a_delay_based_detector() {
    let message =
        |cc: &str, signal: &str| refused(&["compare", "sbd/nsb-2", "--cc", cc, "--signal", signal]);
    assert_eq!(
        message("olia,reno", "rtt"),
        "--signal: needs a delay-based detector, e.g. olia+ssc"
    );
    assert_eq!(
        message("olia+ssc", "owd"),
        "--signal: unknown signal \"owd\"; expected one of: receiver-us, sender-us, sender-ms, rtt, srtt"
    );
    assert_eq!(message("olia+ssc", "rtt,rtt"), "--signal: rtt is named twice");
    assert_eq!(message("lia,olia,lia+shared", "rtt"), "--cc: lia+shared is named twice");
}

#[test]
fn unknown_names_are_reported_with_the_known_ones() {
    // The catalogue says which there are.
    let laws = narrows_laws::Law::all().map(narrows_laws::Law::name).collect::<Vec<_>>();
    assert!(laws.starts_with(&["reno", "cubic", "lia", "olia", "balia"]), "{laws:?}");
    assert_eq!(
        refused(&["run", "sbd/nsb-2", "--cc", "oliaa"]),
        format!(
            "--cc: unknown law 'oliaa' (did you mean 'olia'?); expected one of: {}",
            laws.join(", ")
        )
    );
    assert_eq!(
        refused(&["compare", "sbd/nsb-2", "--cc", "reno,olia+magic"]),
        "--cc: unknown detector or slow start 'magic'; expected one of: shared, disjoint, ssc, tr, btlbw, xcorr, dcw, standard, \
         hystart++, hystart, lisa"
    );
    assert_eq!(
        refused(&["run", "sbd/nsb-2", "--on", "mars"]),
        "--on: unknown host 'mars'; expected one of: sim, kernel, quic, quic-real"
    );
    for command in [&["run", "sbd/nsb-2"][..], &["compare", "sbd/nsb-2", "--cc", "lia"]] {
        assert_eq!(
            refused(&[command, &["--on", "sim,mars"]].concat()).replace("sim,mars", "mars"),
            "--on: unknown host 'mars'; expected one of: sim, kernel, quic, quic-real"
        );
    }
    let both = ["compare", "sbd/nsb-2", "--cc", "lia", "--on", "sim,sim"];
    assert_eq!(refused(&both), "--on: sim is named twice");
    assert_eq!(
        broken("cc = \"reno\"", "cc = \"renoo\""),
        format!(
            "s.toml:17: flows.a.cc: unknown law 'renoo' (did you mean 'reno'?); expected one of: {}",
            laws.join(", ")
        )
    );
    assert_eq!(
        broken("kind = \"tcp\"", "kind = \"sctp\""),
        "s.toml:17: flows.a.kind: unknown word `sctp`, expected one of `tcp`, `mptcp`, `udp`"
    );
}

#[cfg(feature = "kernel")]
#[test]
fn programs_run_on_the_kernel_in_place_of_a_source() {
    let message = refused(&["run", "sbd/nsb-2", "--app", "true"]);
    assert_eq!(message, "--app: programs run on the kernel: --on kernel");
}

#[cfg(feature = "kernel")]
#[test]
fn a_command_that_is_empty_is_none() {
    let kernel = ["run", "sbd/nsb-2", "--on", "kernel"];
    let none = |option| {
        format!("command line: a value is required for '{option} <CMD>' but none was supplied")
    };
    assert_eq!(refused(&[&kernel[..], &["--app", ""]].concat()), none("--app"));
    assert_eq!(
        refused(&[&kernel[..], &["--app", "true", "--serve", ""]].concat()),
        none("--serve")
    );
    assert_eq!(refused(&["shell", "sbd/nsb-2", "--serve", "", "--", "true"]), none("--serve"));
    let message = "CMD: expected a program, found \"\"";
    assert_eq!(refused(&["shell", "sbd/nsb-2", "--", "", "x"]), message);
}

#[test]
fn what_only_the_kernel_has_is_refused_by_the_simulator_before_anything_runs() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let out = out.to_str().unwrap();
    let message = "--cc: the simulator has no kernel:bbr; --on kernel has";
    assert_eq!(refused(&["run", "sbd/nsb-2", "--cc", "kernel:bbr", "--out", out]), message);
    assert_eq!(refused(&["run", "sbd/nsb-2", "--cc", "kernel:bbr", "--dry-run"]), message);
    assert_eq!(
        refused(&["compare", "sbd/nsb-2", "--cc", "reno,kernel:bbr", "--out", out]),
        message
    );
    assert_eq!(entries(home.path()), Vec::<String>::new());

    let message = "small: flows.a.cc: the simulator has no kernel:cubic; --on kernel has";
    assert_eq!(broken("cc = \"reno\"", "cc = \"kernel:cubic\""), message);
    let message = "small: flows.a.tcp.ecn: reno is no scalable control (RFC 9331); expected true, false, or \"scalable\" with dctcp";
    let scalable = "cc = \"reno\", tcp.ecn = \"scalable\"";
    assert_eq!(broken("cc = \"reno\"", scalable), message);
    // The option goes before the file.
    let file = home.path().join("s.toml");
    fs::write(&file, SMALL.replace("cc = \"reno\"", "cc = \"kernel:cubic\"")).unwrap();
    assert!(narrows(&["run", file.to_str().unwrap(), "--cc", "olia"]).status.success());

    let message =
        "kernel:NAME such as kernel:cubic, with 1 to 15 letters, digits, '_' and '.'; found";
    assert_eq!(
        refused(&["run", "sbd/nsb-2", "--cc", "kernel:no-such"]),
        format!("--cc: expected {message} 'no-such'")
    );
    assert_eq!(
        broken("cc = \"reno\"", "cc = \"kernel:\""),
        format!("s.toml:17: flows.a.cc: expected {message} ''")
    );
}

#[test]
fn unknown_fields_and_units_are_reported_with_their_line() {
    let line = broken("queue = ", "queu = ");
    assert!(
        line.starts_with(
            "s.toml:10: links.wire.queu: unknown field `queu` (did you mean 'queue'?), expected"
        ),
        "{line}"
    );
    assert_eq!(
        broken("10 Mbit/s", "10 Mb"),
        "s.toml:9: links.wire.rate: expected a rate such as \"20 Mbit/s\" in one of bit/s, kbit/s, \
         Mbit/s, Gbit/s, Tbit/s; found unit \"Mb\" in \"10 Mb\""
    );
    assert_eq!(
        broken("\"20 ms\"", "20"),
        "s.toml:14: routes.way.rtt: invalid type: integer `20`, expected a time such as \"20 ms\""
    );
    let line = broken("queue = \"20 packets\"", "queue = \"20 packets");
    assert!(line.starts_with("s.toml:10: "), "{line}");
}

/// A mistake in a base is shown where it stands; what a file builds on is found, and not itself.
#[test]
fn a_base_that_is_none_or_has_mistakes_is_reported_by_file_and_line() {
    let home = tempfile::tempdir().unwrap();
    let top = "name = \"top\"\ntitle = \"\"\nsource = \"\"\n";
    let message = |top: &str, base: &str| {
        let file = home.path().join("top.toml");
        fs::write(&file, top).unwrap();
        fs::write(home.path().join("base.toml"), base).unwrap();
        let line = refused(&["run", file.to_str().unwrap()]);
        line.replace(&format!("{}/", home.path().display()), "")
    };
    let over = |base: &str| format!("{top}base = \"{base}\"\n");
    assert_eq!(
        message(&over("no.toml"), ""),
        "top.toml:4: base: no.toml: cannot read: No such file or directory (os error 2)"
    );
    assert_eq!(
        message(&over("sbd/sb"), ""),
        "top.toml:4: base: sbd/sb: no such file and no shipped scenario (did you mean 'sbd/sb-2'?); `narrows list scenarios` \
         lists them"
    );
    let to_itself = message(&over("base.toml"), "\nbase = \"top.toml\"");
    assert_eq!(to_itself, "base.toml:2: base: \"top.toml\" leads back to top.toml");
    let number = message(&over("base.toml"), "base = 3");
    assert!(number.starts_with("base.toml:1: base: expected a shipped scenario"), "{number}");

    let small = SMALL.replace("20 ms", "20 min");
    let absurd =
        "base.toml:14: routes.way.rtt: an RTT of 1200 s is too long; expected at most 60 s";
    assert_eq!(message(&over("base.toml"), &small), absurd);
    let field =
        "base.toml:10: links.wire.queu: unknown field `queu` (did you mean 'queue'?), expected";
    assert!(message(&over("base.toml"), &SMALL.replace("queue", "queu")).starts_with(field));
    let own = message("base = \"base.toml\"\nname = \"top\"", SMALL);
    assert_eq!(own, "top.toml:1: missing field `title`");
    let over_it = format!("{}[links.wire]\nrate = \"fast\"", over("base.toml"));
    assert!(message(&over_it, SMALL).starts_with("top.toml:6: links.wire.rate: expected a rate"));
    assert_eq!(
        refused(&["run", "sbd/base"]),
        "sbd/base.toml: missing field `name`; a file without it is a base, not a scenario"
    );
}

#[test]
fn what_is_shown_as_written_is_not_changed() {
    let message = "--set: needs --resolved; without it the file is printed unchanged";
    assert_eq!(refused(&["show", "sbd/sb-2", "--set", "jitter=0 packets"]), message);
    assert!(
        refused(&["show", "nothing"])
            .starts_with("nothing: no such file and no shipped scenario; ")
    );
    assert_eq!(
        refused(&["show", "sbd/sb2"]),
        "sbd/sb2: no such file and no shipped scenario (did you mean 'sbd/sb-2'?); `narrows list \
         scenarios` lists them"
    );
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    assert_eq!(
        refused(&["run", folder]),
        format!("{folder}: a folder; expected a scenario, a file in TOML")
    );
    fs::write(format!("{folder}/mine.toml"), SMALL).unwrap();
    let line = refused(&["run", &format!("{folder}/mine")]);
    assert!(line.contains(&format!(" (did you mean '{folder}/mine.toml'?); ")), "{line}");
}

#[test]
fn negative_and_absurd_numbers_are_refused() {
    for (from, to, message) in [
        ("\"20 ms\"", "\"-20 ms\"", "s.toml:14: routes.way.rtt: expected a time such as"),
        ("\"10 Mbit/s\"", "\"0 Mbit/s\"", "s.toml:9: links.wire.rate: expected a rate"),
        ("\"10 Mbit/s\"", "\"-1 Mbit/s\"", "s.toml:9: links.wire.rate: expected a rate"),
        ("\"20 packets\"", "\"0 packets\"", "s.toml:10: links.wire.queue: expected a queue"),
        ("\"20 packets\"", "\"1e99 packets\"", "s.toml:10: links.wire.queue: expected a queue"),
        ("duration = \"1 s\"", "duration = \"0 s\"", "s.toml:5: duration: expected a time above"),
        ("duration = \"1 s\"", "duration = \"999999 min\"", "s.toml:5: duration: expected a time"),
        ("rtt = \"20 ms\"", "rtt = \"300 min\"", "s.toml:14: routes.way.rtt: an RTT"),
        ("queue = ", "loss = \"150 %\"\nqueue = ", "s.toml:10: links.wire.loss: expected a share"),
        ("queue = ", "mtu = \"20 B\"\nqueue = ", "s.toml:10: links.wire.mtu: expected 576 B"),
        ("queue = ", "delay = \"30 ms\"\nqueue = ", "s.toml:15: routes.way.rtt: the links"),
        ("cc = \"reno\"", "cc = \"reno\", recv_buffer = \"1 B\"", "s.toml:17: flows.a.recv_buffer"),
        (
            "cc = \"reno\"",
            "cc = \"reno\", start = \"2 s\"",
            "s.toml:17: flows.a.start: expected a start before the end at 1 s",
        ),
        (
            "test = \"a\"",
            "test = \"a\"\njitter = \"1000000000 packets\"",
            "s.toml:7: jitter: 1200000 s on \"way\", at its rate, is too long; expected at most",
        ),
        (
            "[flows]",
            "[[paper]]\ncc = [\"lia\"]\nratio_to_tcp = nan\nplace = \"\"\n[flows]",
            "s.toml:18: paper.0.ratio_to_tcp: expected a ratio such as 0.6, found NaN",
        ),
    ] {
        let line = broken(from, to);
        assert!(line.starts_with(message), "{line}");
    }
    assert!(
        refused(&["compare", "sbd/nsb-2", "--cc", "lia", "--seeds", "0"])
            .contains("expected K or A..B")
    );
    assert!(
        refused(&["compare", "sbd/nsb-2", "--cc", "lia", "--jobs", "99999"])
            .contains("at most 1024")
    );
}

#[test]
fn values_of_the_command_line_are_refused_in_its_words() {
    let set = |scenario: &str, set: &str, message: &str| {
        let line = refused(&["run", scenario, "--set", set]);
        assert_eq!(line, format!("--set {set}: {message}"));
    };
    let offered = "expected a share such as \"0.1 %\"";
    let more = format!("{offered}, at most 100 %; found \"200 %\"");
    set("sbd/sb-2", "background.offered=200 %", &more);
    let number = "invalid type: integer `40`";
    let each = format!("{number}, {offered}, or a list with one for each");
    set("sbd/sb-2", "background.offered=40", &each);
    let table = "invalid type: integer `1`, expected a share such as \"0.1 %\", or a table";
    set("phone/wifi-lte", "links.wifi.loss=1", table);
    let one = "invalid length 1, expected a list of length 2";
    set("sbd/sb-2", "background.rtt=[\"5 ms\"]", one);
    let whole = "invalid value: integer `-2`, expected a whole number, not negative".to_owned();
    set("sbd/sb-2", "flows.mptcp.path_manager.ndiffports=-2", &whole);
    let policer = "links.bottleneck1.policer={rate=\"1 Mbit/s\",burst=\"100 B\"}";
    set("sbd/sb-2", policer, "a policer's burst must be at least the MTU");
    let fast = refused(&["run", "sbd/sb-2", "--set", "links.bottleneck1.rate=400 Gbit/s"]);
    let flows = "on a link of 400 Gbit/s this takes 333333 flows; expected at most 100000";
    assert!(fast.ends_with(&format!("background.offered: {flows}")), "{fast}");
    let long = refused(&["run", "sbd/sb-2", "--set", "duration=1000000 s"]);
    assert!(long.ends_with(", at most 604800 s; found \"1000000 s\""), "{long}");

    let line = refused(&["run", "sbd/sb-2", "--cc"]);
    assert_eq!(line, "command line: a value is required for '--cc <NAME>' but none was supplied");
    for number in ["99999999999999999999999", "-1"] {
        let line = refused(&["run", "sbd/sb-2", "--seed", number]);
        let wrong = format!("invalid value '{number}' for '--seed <N>'");
        let most = u64::MAX;
        let whole = format!("command line: {wrong}: expected a whole number, at most {most}");
        assert_eq!(line, whole);
    }
    let line = refused(&["compare", "sbd/sb-2", "--cc", "lia", "--jobs", "-1"]);
    assert!(line.ends_with(": expected a number of threads, at most 1024"), "{line}");
}

/// A pipe, as of `narrows run <(sed .. mine.toml)`, and standard input.
#[test]
fn a_scenario_may_come_through_a_pipe() {
    use std::io::Write;
    use std::process::Stdio;
    // Once, however many scenarios are made of it.
    let sweep = "--sweep=duration=2 s,3 s";
    for (words, begins) in [
        (&["run", "-", "--dry-run"][..], "small: "),
        (&["run", "/dev/stdin", "--dry-run"], "small: "),
        (&["compare", "-", "--cc=lia", "--seeds=1", sweep, "--csv"], "scenario,"),
    ] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_narrows"));
        let mut run = run.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        run.stdin.take().unwrap().write_all(SMALL.as_bytes()).unwrap();
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.starts_with(begins), "{words:?}: {said}");
    }
}

/// As editors of other systems write it, and as people set a field.
#[test]
fn lines_that_end_otherwise_a_byte_order_mark_tabs_and_spaces_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = |text: &str, more: &[&str]| {
        let file = home.path().join("s.toml");
        fs::write(&file, text).unwrap();
        let done = narrows(&[&["run", file.to_str().unwrap(), "--json"], more].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    let plain = run(SMALL, &[]);
    for text in
        [SMALL.replace('\n', "\r\n"), format!("\u{feff}{SMALL}"), SMALL.replace(" = ", "\t=\t")]
    {
        assert!(run(&text, &[]) == plain, "{text:?}");
    }
    let set = run(SMALL, &["--set", "duration=2 s"]);
    assert!(run(SMALL, &["--set", " duration = 2 s "]) == set && set != plain);
}

#[test]
fn names_that_break_tables_or_folders_are_refused() {
    let line = broken("[links.wire]", "[links.\"wi\\nre\"]");
    assert!(line.ends_with(": expected a name without control characters"), "{line}");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    fs::write(&file, SMALL.replace("\"small\"", &format!("\"{}\"", "x".repeat(300)))).unwrap();
    let out = home.path().join("out");
    let args = ["compare", file.to_str().unwrap(), "--cc", "reno", "--out", out.to_str().unwrap()];
    let name = "xxxxxxxxxxxxxxxxxxxx..: too long for the name of a folder";
    assert_eq!(refused(&args), format!("--out: {name}; expected at most 240 bytes"));
    // A file as messages name it.
    let shipped = narrows(&["run", "sbd/sb-2.toml", "--dry-run"]);
    assert!(shipped.status.success());
}

#[test]
fn a_udp_packet_is_no_smaller_than_its_headers() {
    let size = "{ uniform = [\"27 B\", \"1000 B\"] }";
    let source = format!("{{ rate = {{ mean = \"10 packets/s\", size = {size} }} }}");
    let flow = format!("[flows]\nb = {{ kind = \"udp\", routes = [\"way\"], source = {source} }}");
    assert!(broken("[flows]", &flow).contains("flows.b.source: a udp packet has at least"));
}

/// Bursts that would take forever to draw, and a shape that is no shape.
#[test]
fn sources_that_never_come_to_a_packet_are_refused() {
    let udp = |rate: &str, on: &str, shape: &str| {
        let size = "{ constant = \"1000 B\" }";
        let source = format!("rate = \"{rate}\", size = {size}, on = \"{on}\", off = \"1 s\"");
        let source = format!("onoff = {{ {source}, shape = {shape} }}");
        let flow = format!("{{ kind = \"udp\", routes = [\"way\"], source = {{ {source} }} }}");
        broken("[flows]", &format!("[flows]\nb = {flow}"))
    };
    assert!(udp("0.000001 packets/s", "1 s", "1.5").contains("expected a packet rate"));
    assert!(udp("1000000000 packets/s", "1 s", "1.5").contains("at most 10000000"));
    assert!(udp("100 packets/s", "1 ns", "1.5").contains("a mean of at least 1 ms"));
    for shape in ["inf", "nan", "1", "-2"] {
        assert!(udp("100 packets/s", "1 s", shape).contains("a finite Pareto shape"), "{shape}");
    }
}

#[test]
fn messages_have_a_size_that_the_buffer_holds_and_an_interval() {
    let messages = |kind: &str, size: &str, interval: &str, more: &str| {
        let source = format!("{{ messages = {{ size = \"{size}\", interval = \"{interval}\" }} }}");
        let flow = format!("{{ kind = \"{kind}\", routes = [\"way\"], source = {source}{more} }}");
        broken("[flows]", &format!("[flows]\nb = {flow}"))
    };
    let cc = ", cc = \"reno\"";
    let place = "s.toml:17: flows.b.source: ";
    for (kind, size, interval, more, message) in [
        ("tcp", "0 B", "5 ms", cc, "a message of 0 B"),
        (
            "tcp",
            "9 GB",
            "5 ms",
            cc,
            "expected a message of at most 4294967295 B, found 9000000000 B",
        ),
        ("tcp", "1 kB", "0 s", cc, "expected an interval of at least 10 us"),
        ("tcp", "9 MB", "5 ms", cc, "a message of 9000000 B exceeds the send buffer of"),
        ("udp", "1 kB", "5 ms", "", "udp needs a source with a rate: rate, onoff, nada or scream"),
    ] {
        let line = messages(kind, size, interval, more);
        assert!(line.starts_with(&format!("{place}{message}")), "{line}");
    }
    let gaps = "source.messages = { size = \"1 kB\", interval = \"5 ms\", gaps = \"even\" }";
    let line = broken("cc = \"reno\"", &format!("cc = \"reno\", {gaps}"));
    assert!(line.contains("`constant` or `poisson`"), "{line}");
}

#[test]
fn media_has_rates_and_a_size_that_a_packet_can_have() {
    let media =
        |flow: &str| broken("[flows]", &format!("[flows]\nb = {{ routes = [\"way\"], {flow} }}"));
    let place = "s.toml:17: flows.b.source: ";
    for (fields, message) in [
        ("min = \"2 Mbit/s\"", "min of 2000000 bit/s is above max of 1500000 bit/s"),
        ("max = \"5 Gbit/s\"", "expected a max of at most 4 Gbit/s, found 5000000000 bit/s"),
        ("size = \"0 B\"", "expected a packet of at least 1 B"),
        ("size = \"27 B\"", "a udp packet has at least its headers' 28 B, found 27 B"),
        ("size = \"66 kB\"", "expected a packet of at most 65535 B, found 66000 B"),
        ("size = \"1501 B\"", "no packet of 1501 B fits the MTU of 1500 B of link wire"),
    ] {
        for control in ["nada", "scream"] {
            let line = media(&format!("kind = \"udp\", source.{control} = {{ {fields} }}"));
            assert!(line.starts_with(&format!("{place}{message}")), "{line}");
        }
    }
    let line = media("kind = \"udp\", source.nada = { fps = 30 }");
    assert!(line.contains("unknown field `fps`"), "{line}");
    let line = media("kind = \"udp\", source = \"nad\"");
    assert!(line.contains("nada"), "{line}");
    for flow in ["kind = \"tcp\", cc = \"reno\"", "kind = \"mptcp\""] {
        let line = media(&format!("{flow}, source = \"nada\""));
        assert_eq!(line, format!("{place}media (nada, scream) is a source of udp"));
    }
}

#[test]
fn media_is_udp_with_one_route_whose_way_back_exists() {
    let media = "kind = \"udp\", source = \"nada\"";
    for (field, given, message) in [
        ("routes", "routes = []", "expected one route for udp, found 0"),
        ("routes", "routes = [\"way\", \"way\"]", "expected one route for udp, found 2"),
        ("cc", "cc = \"reno\"", "udp has no congestion control"),
        ("tcp", "tcp.ecn = true", "udp has no options of tcp"),
        ("send_buffer", "send_buffer = \"9 kB\"", "udp has no buffers here"),
        ("recv_buffer", "recv_buffer = \"9 kB\"", "udp has no buffers here"),
        ("scheduler", "scheduler = \"linux\"", "only mptcp has a scheduler"),
        ("path_manager", "path_manager = \"fullmesh\"", "only mptcp has a path manager"),
        ("backup", "backup = [\"way\"]", "only mptcp has a backup"),
        ("advice", "advice = true", "only mptcp has paths to advise on"),
    ] {
        let routes = if field == "routes" { "" } else { "routes = [\"way\"], " };
        let flow = format!("[flows]\nb = {{ {media}, {routes}{given} }}");
        assert_eq!(broken("[flows]", &flow), format!("s.toml:17: flows.b.{field}: {message}"));
    }
    let flow = format!("\nb = {{ {media}, routes = [\"way\"] }}\n");
    let back = |links: &str| {
        let ways = format!("back = [\"{links}\"]\n\n[flows]{flow}");
        broken("\n[flows]\n", &ways)
    };
    let line = back("wir");
    let expected = "s.toml:15: routes.way.back.0: unknown link 'wir' (did you mean 'wire'?)";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn links_routes_and_flows_must_exist_and_be_used() {
    for (from, to, message) in [
        ("links = [\"wire\"]", "links = [\"wir\"]", "s.toml:13: routes.way.links.0: unknown link"),
        ("routes = [\"way\"]", "routes = [\"wy\"]", "s.toml:17: flows.a.routes.0: unknown route"),
        ("name = \"small\"", "name = \"../small\"", "s.toml:1: name: expected letters"),
        ("test = \"a\"", "test = \"b\"", "s.toml:6: test: unknown flow 'b'"),
        (
            "[routes.way]",
            "[links.spare]\nrate = \"1 Mbit/s\"\n[routes.way]",
            "s.toml:12: links.spare: no flow",
        ),
        ("[flows]", "[rivals]\nwire = \"b\"\n[flows]", "s.toml:17: rivals.wire: unknown flow"),
        ("[flows]", "[rivals]\nwire = \"a\"\n[flows]", "s.toml:17: rivals.wire: \"a\" is under"),
        (
            "[flows]",
            "[[phases]]\nstart = \"0 s\"\ngroups = [[\"x\"]]\n[flows]",
            "s.toml:18: phases.0.groups: \"x\" is not a path",
        ),
        (
            "[flows]",
            "[[phases]]\nstart = \"0 s\"\ngroups = [[\"way\"], []]\n[flows]",
            "s.toml:18: phases.0.groups: expected at least one path",
        ),
    ] {
        let line = broken(from, to);
        assert!(line.starts_with(message), "{line}");
    }
}

#[test]
fn changes_on_the_command_line_are_reported_by_their_option() {
    let set = |change: &str| refused(&["run", "sbd/nsb-2", "--set", change]);
    assert!(
        set("links.bottleneck1.rat=1 Mbit/s")
            .contains("unknown field `rat` (did you mean 'rate'?), expected")
    );
    assert_eq!(
        set("links.bottleneck9.rate=1 Mbit/s"),
        "--set links.bottleneck9.rate=1 Mbit/s: no flow uses this link (did you mean 'bottleneck1'?)"
    );
    assert!(set("generator.disjoint.rate=fast").starts_with(
        "--set generator.disjoint.rate=fast: expected a rate such as \"20 Mbit/s\", found \"fast\""
    ));
    assert_eq!(
        set("generator.disjoint.paths=9"),
        "--set generator.disjoint.paths=9: expected 1 to 8 paths, found 9"
    );
    assert_eq!(set("duration"), "--set: expected FIELD=VALUE, found \"duration\"");
    assert!(set("phases.7.start=0 s").contains("expected an index below 1, found 7"));
    // Two kinds of one thing: the base's, or the file's, and the option's.
    let two = set("generator.dumbbell.paths=3");
    let message = "--set generator.dumbbell.paths=3: expected one of disjoint, dumbbell, series";
    assert!(two.starts_with(message), "{two}");
    assert_eq!(set("links=3"), "--set links=3: invalid type: integer `3`, expected a table");
    assert!(set("phases=[3]").ends_with("expected a table"));
    assert!(set("phases=3").ends_with("expected a list"));
    let sweep = |range: &str| refused(&["compare", "sbd/nsb-2", "--cc", "lia", "--sweep", range]);
    assert!(sweep("duration=1 s").starts_with("--sweep: expected FIELD=A..B:N"));
    assert!(sweep("duration=1..5 s:1").contains("N in 2..=1000"));
    let line = sweep("jitter=1,2 packets");
    assert!(
        line.starts_with("--sweep jitter=1: invalid type: integer `1`, expected a number"),
        "{line}"
    );
    // Their files would have the same name.
    let line = sweep("title=a b,a-b");
    assert!(line.starts_with("--sweep: two of its values have the same name of files"), "{line}");
    // What does not fit is another field; without the sweep nothing is wrong.
    let line = sweep("links.bottleneck1.delay=5..50 ms:2");
    let place = "--sweep links.bottleneck1.delay=50 ms: ";
    assert!(line.starts_with(place) && line.contains("routes.path1.rtt"), "{line}");
    // Nor is it the sweep's fault.
    let line = refused(&[
        "compare",
        "sbd/sb-2",
        "--cc",
        "lia",
        "--set",
        "olia.floor=1",
        "--sweep",
        "duration=5 s,6 s",
    ]);
    assert!(line.starts_with("--set olia.floor"), "{line}");
    let line = sweep("nonsense=1..5 s:2");
    assert!(line.starts_with("--sweep nonsense=1 s: unknown field `nonsense`"), "{line}");
}

/// What a fat tree gives to all its flows is its own field, not that of the first flow.
#[test]
fn a_fat_trees_fields_are_reported_as_the_generators() {
    for (change, message) in [
        ("source.file.size=0 kB", "a file of 0 B"),
        ("cc=none", "unknown law 'none'; expected one of"),
        ("cc=mptcp-sbd", "mptcp-sbd sets the scenario's parameters"),
        ("core=5 Mbit/s", "invalid type: string \"5 Mbit/s\", expected a table"),
        ("core.rate=fast", "expected a rate such as"),
        ("core.queue=0 packets", "expected a queue such as"),
        ("destinations=none", "unknown word `none`, expected `permutation` or `random`"),
    ] {
        let change = format!("generator.fat-tree.{change}");
        let line = refused(&["run", "lisa/fat-tree", "--set", &change]);
        assert!(line.starts_with(&format!("--set {change}: {message}")), "{line}");
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    let names = "name = \"s\"\ntitle = \"\"\nsource = \"\"\n";
    let text = format!("base = \"lisa/fat-tree\"\n{names}generator.fat-tree.cc = \"none\"\n");
    fs::write(&file, text).unwrap();
    let line = refused(&["run", file.to_str().unwrap()]);
    assert!(line.contains("s.toml:5: generator.fat-tree.cc: unknown law 'none'"), "{line}");
}

#[test]
fn traces_are_checked_to_the_line() {
    let home = tempfile::tempdir().unwrap();
    let trace = |name: &str, content: &[u8]| {
        let file = home.path().join(name);
        fs::write(&file, content).unwrap();
        let option = format!("lte={}", file.display());
        let line = refused(&["run", "phone/wifi-lte", "--trace", &option]);
        line.rsplit_once(": ")
            .map(|(place, fault)| (place.rsplit_once('/').unwrap().1.to_owned(), fault.to_owned()))
    };
    let message = |place: &str, fault: &str| Some((place.to_owned(), fault.to_owned()));
    assert_eq!(trace("empty", b""), message("empty:1", "the trace is empty"));
    assert_eq!(trace("order", b"5\n3\n"), message("order:2", "timestamps must not decrease"));
    assert_eq!(
        trace("binary", b"1\n\xff\xfe\n"),
        message("binary:2", "not a whole number of milliseconds")
    );
    let line = trace("broken.gz", b"\x1f\x8b\x08\x00garbage").unwrap();
    assert_eq!(line.0, "broken.gz: cannot unpack", "{line:?}");
    // One packet in 49 days.
    assert_eq!(trace("slow", b"4294967295\n"), message("slow", "less than 1 bit/s on average"));

    let line = refused(&["run", "phone/wifi-lte", "--trace", "lte=/nowhere/at.all"]);
    assert!(line.contains("cannot read /nowhere/at.all"), "{line}");
    let line = refused(&["run", "phone/wifi-lte", "--trace", "lte=/dev/zero"]);
    assert!(line.contains("cannot read /dev/zero: more than"), "{line}");
    let line = refused(&["run", "phone/wifi-lte", "--trace", "umts=x"]);
    assert_eq!(line, "--trace umts=x: unknown link 'umts'; expected one of: wifi, lte");
}

#[test]
fn missing_files_are_reported() {
    let line = refused(&["run", "no/such.toml"]);
    assert!(line.starts_with("no/such.toml: cannot read: "), "{line}");
    let line = refused(&["run", "no-such"]);
    assert!(line.starts_with("no-such: no such file and no shipped scenario"), "{line}");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("binary.toml");
    fs::write(&file, b"\xff\xfe").unwrap();
    assert!(refused(&["run", file.to_str().unwrap()]).contains("not a text file"));
}

#[test]
fn an_output_folder_that_cannot_be_written_is_reported_before_the_run() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "mine").unwrap();
    let under = file.join("out");
    for command in
        [vec!["run", "sbd/nsb-2", "--out"], vec!["compare", "sbd/nsb-2", "--cc", "lia", "--out"]]
    {
        let mut args = command;
        args.push(under.to_str().unwrap());
        let line = refused(&args);
        assert!(line.contains("cannot make this folder"), "{line}");
    }
    assert_eq!(entries(home.path()), ["file"]);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn mistakes_of_the_command_line_are_one_line_too() {
    assert!(refused(&["run"]).starts_with("command line: "));
    let found = refused(&[]);
    assert!(found.starts_with("command line: expected run, compare, "), "{found}");
    assert!(
        found.ends_with("`narrows --help` has examples") && !found.contains(" man,"),
        "{found}"
    );
    let found = refused(&["law"]);
    assert_eq!(found, "command line: expected new, check; `narrows law --help` has examples");
    assert!(refused(&["run", "no\nsuch"]).starts_with("no such: no such file"));
    assert!(refused(&["run", "sbd/nsb-2", "--dry-run", "--json"]).contains("cannot be used"));
    let all = ["compare", "sbd/nsb-2", "--cc", "reno,lia,olia", "--seeds", "100000"];
    assert_eq!(refused(&all), "compare: 300000 runs are too many at once; expected at most 200000");
    assert!(refused(&["fly"]).contains("unrecognized subcommand 'fly'"));
    assert!(refused(&["run", "sbd/nsb-2", "--fast"]).contains("unexpected argument '--fast'"));
    assert_eq!(
        refused(&["run", "sbd/nsb-2", "--seeds", "3"]),
        "command line: unexpected argument '--seeds' found (did you mean '--seed'?)"
    );
    assert!(refused(&["comparre"]).ends_with("'comparre' (did you mean 'compare'?)"));
    assert!(refused(&["list", "scenario"]).ends_with(" (did you mean 'scenarios'?)"));
    assert_eq!(
        refused(&["run", "sbd/nsb-2", "--cc", "reno,lia"]),
        "--cc: expected one control, as only `compare` takes several; found 'reno,lia'"
    );
    if cfg!(feature = "kernel") {
        let line = refused(&["kernel", "load", "cubic+xcorr"]);
        let expected = "cubic+xcorr: cubic does not couple subflows, so that a detector changes nothing; expected one of lia, olia, ";
        assert!(line.starts_with(expected), "{line}");
    }
    if cfg!(not(feature = "kernel")) {
        let line = "kernel: built without kernel support; `make install` includes it";
        assert_eq!(refused(&["kernel", "load", "olia"]), line);
        assert_eq!(refused(&["shell", "sbd/nsb-2"]), line.replace("kernel: built", "shell: built"));
        let line = line.replace("kernel: built", "--on: built");
        assert_eq!(refused(&["run", "sbd/nsb-2", "--on", "kernel", "--dry-run"]), line);
        let both = ["compare", "sbd/nsb-2", "--cc", "lia", "--on", "sim,kernel"];
        assert_eq!(refused(&both), line);
    }
    if cfg!(not(feature = "quic")) {
        let line = "quic: built without QUIC; `make install` includes it from Rust 1.88 on";
        for args in [&["quic"][..], &["quic", "get", "-o", "x"], &["quic", "--help"]] {
            assert_eq!(refused(args), line);
        }
        let line = "--on: built without quic support; `cargo build --release -p narrows --features quic` includes it";
        assert_eq!(refused(&["run", "sbd/nsb-2", "--on", "quic", "--dry-run"]), line);
    }
    if cfg!(not(all(feature = "kernel", feature = "quic"))) {
        let line = "--on: built without quic-real support; `cargo build --release -p narrows --features kernel,quic` includes it";
        assert_eq!(refused(&["run", "sbd/nsb-2", "--on", "quic-real", "--dry-run"]), line);
    }
    assert!(refused(&["list", "birds"]).contains("invalid value 'birds'"));
    assert!(refused(&["compare", "sbd/nsb-2"]).contains("--cc"));
    assert_eq!(
        refused(&["compare", "sbd/nsb-2", "sbd/nsb-2", "--cc", "lia"]),
        "sbd/nsb-2: two scenarios of this name; their results would be merged"
    );
}

/// Of what the kernel cannot run nothing is simulated first.
#[test]
#[cfg(feature = "kernel")]
fn what_the_kernel_cannot_run_is_refused_before_the_simulator_begins() {
    let home = tempfile::tempdir().unwrap();
    let (file, out) = (home.path().join("s.toml"), home.path().join("out"));
    let mptcp = "kind = \"mptcp\", path_manager = { ndiffports = 2 }";
    fs::write(&file, SMALL.replace("kind = \"tcp\"", mptcp)).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let message = "small: flows.a.path_manager: Linux has no ndiffports";
    let both = ["compare", file, "--cc", "lia", "--on", "sim,kernel", "--out", out];
    assert!(refused(&both).starts_with(message));
    assert!(refused(&["run", file, "--on", "kernel", "--dry-run"]).starts_with(message));
    let capture =
        ["run", "phone/wifi-lte", "--on", "kernel", "--pcap", out, "--capture", "mptcp,lte"];
    let message = "--capture: \"lte\" is a link; on the kernel, only hosts can be captured";
    assert_eq!(refused(&capture), message);
    assert_eq!(entries(home.path()), ["s.toml"]);
}

/// What this machine lacks is told before the simulator runs, not hours later: nothing is kept.
#[test]
#[cfg(feature = "kernel")]
fn what_this_machine_lacks_is_reported_before_the_simulator_begins() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    // Where another user can read and run it, and write.
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let [narrows, file, out] = ["narrows", "s.toml", "out"].map(|name| home.path().join(name));
    fs::copy(env!("CARGO_BIN_EXE_narrows"), &narrows).unwrap();
    fs::write(&file, SMALL).unwrap();
    let mut command = Command::new(narrows);
    command.args(["compare", "--cc", "lia", "--seeds", "1", "--on", "sim,kernel", "--out"]);
    command.arg(out).arg(file);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534);
    }
    let output = command.output().unwrap();
    let message = "narrows: kernel: emulation needs root, to create network namespaces\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(entries(home.path()), ["narrows", "s.toml"]);
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_capture_of_what_is_not_there() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("pcap");
    let there = folder.to_str().unwrap();
    let line = refused(&["run", "sbd/sb-2", "--pcap", there, "--capture", "mptcp,bottleneck9"]);
    let expected = "--capture: unknown flow or link 'bottleneck9' (did you mean 'bottleneck1'?); ";
    assert!(line.starts_with(expected), "{line}");
    assert!(!folder.exists());
    let line = refused(&["run", "sbd/sb-2", "--capture", "mptcp"]);
    assert!(line.contains("--pcap <DIR>"), "{line}");
}

#[test]
fn disciplines_options_and_events_that_make_no_sense_are_refused() {
    let event = |fields: &str| broken("[flows]", &format!("[[events]]\n{fields}\n[flows]"));
    for (fields, message) in [
        (
            "at = \"500 ms\"\nlink = \"wire\"\nup = true\n\
             [[events]]\nat = \"0 s\"\nlink = \"wire\"\nup = true",
            "events.1.at: expected events in order",
        ),
        ("at = \"0 s\"\nlink = \"wire\"\nhold = \"0 s\"", "events.0.hold: expected a time above"),
        ("at = \"0 s\"\nlink = \"wire\"\nhold = \"2h\"", "events[0].hold: expected a time"),
        ("at = \"0 s\"\nflow = \"a\"\nhold = \"1 s\"", "events.0: expected a link with"),
        (
            "at = \"0 s\"\nlink = \"wire\"\nup = true\nevery = \"0 s\"",
            "events.0.every: expected a time above 0 s",
        ),
        (
            "at = \"0 s\"\nlink = \"wire\"\nup = true\nevery = \"1 us\"",
            "events.0.every: more than 100000 events until the end at 1 s",
        ),
        ("at = \"0 s\"\nlink = \"wir\"\nup = true", "events.0.link: unknown link"),
        ("at = \"0 s\"\nlink = \"wire\"", "events.0: expected a link with up"),
        ("at = \"0 s\"\nflow = \"a\"\nup = true", "events.0: expected a link with"),
        ("at = \"0 s\"\nflow = \"a\"\nlose = \"way\"", "events.0.lose: only mptcp"),
        ("at = \"0 s\"\nflow = \"a\"\non = false", "flows.a: switched off before"),
        ("at = \"0 s\"\nflow = \"a\"\nup = 3", "events[0].up: invalid type"),
    ] {
        let line = event(fields);
        assert!(line.starts_with("s.toml:") && line.contains(message), "{line}");
    }
    let link = |field: &str| broken("queue = ", &format!("{field}\nqueue = "));
    for (field, message) in [
        (
            "aqm = \"wred\"",
            "links.wire.aqm: unknown queue discipline 'wred' (did you mean 'red'?); expected",
        ),
        ("aqm = { red = {}, pie = {} }", "links.wire.aqm: expected one of red, codel"),
        ("aqm = { red = { mn = 1 } }", "links.wire.aqm.red.mn: unknown field `mn`"),
        ("aqm.red = { weight = 1, time_constant = \"1 s\" }", "links.wire.aqm: a weight"),
        ("ecn = true", "links.wire: a droptail queue does not mark"),
        ("aqm = \"dualpi2\"", "links.wire: DualPI2 marks, so the link must"),
        (
            "ecn = true\naqm = { dualpi2 = { coupling = 0 } }",
            "links.wire: DualPI2's coupling must be at least 1",
        ),
        ("loss = { good_to_bad = \"1 %\" }", "links.wire.loss: missing field"),
        (
            "jitter = 3",
            "links.wire.jitter: invalid type: integer `3`, expected a time such as \"20 ms\", or a table",
        ),
        ("jitter = { max = \"1 s\" }", "links.wire.jitter"),
        ("jitter.gauss = { max = \"1 s\" }", "links.wire.jitter.gauss: unknown word `gauss`"),
        ("jitter.pareto = { mean = \"1 s\" }", "links.wire.jitter.pareto: missing field `max`"),
        (
            "jitter.pareto = { max = \"1 s\", mean = \"1 s\", shape = 1 }",
            "links.wire: a Pareto distribution's shape must be above 1",
        ),
        (
            "jitter.uniform = { max = \"1 s\", correlation = \"100 %\" }",
            "links.wire: a jitter's correlation must be in 0..1",
        ),
        ("reorder = { share = \"1 %\" }", "links.wire.reorder: missing field `delay`"),
        (
            "policer = { rate = \"1 Mbit/s\", burst = \"1 B\" }",
            "links.wire: a policer's burst must be",
        ),
    ] {
        let line = link(field);
        assert!(line.starts_with("s.toml:") && line.contains(message), "{line}");
    }
    let flow = |field: &str| broken("cc = \"reno\"", &format!("cc = \"reno\", {field}"));
    for (field, message) in [
        ("scheduler = \"linux\"", "flows.a.scheduler: only mptcp has a scheduler"),
        ("backup = [\"way\"]", "flows.a.backup: only mptcp has a backup"),
        ("advice = true", "flows.a.advice: only mptcp has paths to advise on"),
        ("path_manager = \"fullmsh\"", "flows.a.path_manager: expected \"fullmesh\" or"),
        ("tcp.tso = \"0 packets\"", "flows.a.tcp.tso: expected a whole number of 1"),
        ("tcp.gro = \"1 s\"", "flows.a.tcp.gro: expected at most 10 ms"),
        ("tcp.timestamps = \"s\"", "flows.a.tcp.timestamps: unknown word `s`"),
        (
            "tcp.ecn = \"l4s\"",
            "flows.a.tcp.ecn: invalid value: string \"l4s\", expected true, false or \"scalable\"",
        ),
        ("tcp.receiver_hides = \"all\"", "flows.a.tcp.receiver_hides: unknown word `all`"),
    ] {
        let line = flow(field);
        assert!(line.starts_with("s.toml:") && line.contains(message), "{line}");
    }
}

#[test]
fn backgrounds_that_make_no_sense_are_refused() {
    let table = "[[background]]\nlinks = [\"wire\"]\nrtt = [\"20 ms\", \"80 ms\"]\n";
    let second = |fields: &str| broken("[flows]", &format!("{table}{table}{fields}\n[flows]"));
    for (fields, message) in [
        ("greedy = [1, 1]", "background.1.greedy: expected one number of flows for each link"),
        ("active = [[\"1 s\", \"2 s\"]]", "background.1.active: expected a start before"),
        ("active = []", "background.1.active: expected at least one period"),
        ("cc = \"ren\"", "background.1.cc: unknown law"),
        ("offered = \"50 %\"", "background.1.offered: expected all of offered, size"),
        ("udp_shape = 1.5", "background.1.offered: expected all of offered, size"),
        ("load = 1", "background[1].load: unknown field"),
    ] {
        let line = second(fields);
        assert!(line.starts_with("s.toml:") && line.contains(message), "{line}");
    }
    let line =
        broken("[flows]", "[background]\nlinks = [\"wir\"]\nrtt = [\"1 s\", \"1 s\"]\n[flows]");
    assert_eq!(
        line,
        "s.toml:17: background.links: unknown link 'wir' (did you mean 'wire'?); expected one of: wire"
    );
    assert!(broken("test =", "background = 1\ntest =").contains("a list of tables"));
}

/// An unlimited queue at 100 Gbit/s behind buffers without end, and a week of it.
#[test]
fn what_is_out_of_reach_is_refused_before_it_starts() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.toml");
    let text = SMALL.replace("10 Mbit/s", "100 Gbit/s").replace("20 packets", "unlimited");
    let buffers = "cc = \"reno\", send_buffer = \"1000000 GB\", recv_buffer = \"1000000 GB\"";
    fs::write(&file, text.replace("cc = \"reno\"", buffers)).unwrap();
    let file = file.to_str().unwrap();
    let line = refused(&["run", file, "--set", "duration=60 min"]);
    // An hour of 100 Gbit/s in packets of 1500 B, each of which takes 200 B.
    assert!(line.starts_with("memory: a run may take 6000.005 GB, and "), "{line}");
    assert!(line.contains("--force runs it anyway"), "{line}");

    let small = ["run", "phone/wifi-lte", "--set", "duration=9000 min", "--set"];
    let line = refused(&[&small[..], &["links.wifi.rate=100 Gbit/s"]].concat());
    assert!(line.starts_with("time: takes about ") && line.contains(" days; --force"), "{line}");
}

#[test]
fn a_trace_says_what_its_columns_are() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = home.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let rates = write("rates.csv", "0,20\n1,0\n2,40\n");
    let run = |more: &[&str]| {
        let trace = format!("lte={rates}");
        let args = ["run", "phone/wifi-lte", "--set", "duration=2 s", "--trace", &trace];
        narrows(&[&args[..], more].concat())
    };
    let line = |output: Output| {
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        line
    };
    let of = "--trace lte=";
    let found = line(run(&[]));
    assert!(
        found.contains(of) && found.contains(":1: not a whole number of milliseconds"),
        "{found}"
    );
    let found = line(run(&["--set", "links.lte.format=Mbit/s"]));
    assert!(found.contains(":1: expected a number of Mbit/s, found \"0,20\""), "{found}");
    let found = line(run(&["--set", "links.lte.format=Mbps"]));
    let expected = "--set links.lte.format=Mbps: expected the units of its columns such as";
    assert!(found.contains(expected), "{found}");
    let found = line(run(&["--set", "links.lte.format=s Mbit/s", "--set", "links.lte.step=1 s"]));
    assert!(found.contains("--set links.lte.step=1 s: only a trace of rates without"), "{found}");
    let found = refused(&["run", "phone/wifi-lte", "--set", "links.wifi.format=us"]);
    assert_eq!(found, "--set links.wifi.format=us: only a trace has one, and this link has none");
    let done = run(&["--set", "links.lte.format=s Mbit/s", "--dry-run"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("rates.csv, 19.997 Mbit/s on average over 3 s"), "{text}");

    // A trace in microseconds, taken for one in milliseconds.
    let micro: String = (1..=3000).map(|packet| format!("{}\n", 1000 * packet)).collect();
    let micro = format!("lte={}", write("micro.trace", &micro));
    let args = ["run", "phone/wifi-lte", "--set", "duration=2 s", "--trace", &micro];
    let taken = narrows(&args);
    let warning = String::from_utf8(taken.stderr).unwrap();
    assert!(taken.status.success() && warning.lines().count() == 1, "{warning}");
    let expected =
        "micro.trace carries 12.032 kbit/s on average over 3000 s; is its format another?";
    assert!(warning.contains(expected), "{warning}");
    let right = narrows(&[&args[..], &["--set", "links.lte.format=us"]].concat());
    assert_eq!(String::from_utf8(right.stderr).unwrap(), "");

    // One in kbit/s, taken for Mbit/s.
    let kilo = format!("lte={}", write("kilo.trace", "0 12000\n1 15000\n"));
    let of = |format: &str| {
        let format = format!("links.lte.format={format}");
        let args = ["run", "phone/wifi-lte", "--trace", &kilo, "--set", &format, "--dry-run"];
        let done = narrows(&args);
        let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        // Without the folds.
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let found = of("s Mbit/s");
    let expected = "kilo.trace carries 13.5 Gbit/s on average over 2 s; is its format another?";
    assert!(found.contains(expected), "{found}");
    assert!(!of("s kbit/s").contains("is its format another?"));
    let found = of("s Gbit/s");
    assert!(found.contains("kilo.trace:1: the trace carries more than 2^26 packets"), "{found}");
}
