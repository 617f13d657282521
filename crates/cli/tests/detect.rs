//! `narrows detect` on captures of the simulator and on tables.

#![cfg(all(feature = "detect", feature = "lab"))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = narrows(args);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = narrows(args);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?}");
    line.trim_end().strip_prefix("narrows: ").unwrap().to_owned()
}

/// What was captured of the two subflows of an uncoupled connection, at both of its hosts.
fn captured(scenario: &str, folder: &Path) -> [String; 2] {
    let out = folder.join("pcap");
    let out = out.to_str().unwrap();
    printed(&["run", scenario, "--cc", "reno", "--pcap", out, "--capture", "mptcp"]);
    ["sender", "receiver"].map(|host| format!("{out}/mptcp.{host}.pcapng"))
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(&[args, &["--json"]].concat())).unwrap()
}

/// Of the decisions on both flows, the share that has them in one group.
fn shared(result: &Value) -> f64 {
    let decisions = result["decisions"].as_array().unwrap();
    let mut all = 0.0;
    let mut together = 0.0;
    for decision in decisions {
        let groups = decision["groups"].as_array().unwrap();
        let placed: usize = groups.iter().map(|group| group.as_array().unwrap().len()).sum();
        let clear = decision["uncongested"].as_array().unwrap().len();
        if placed + clear == 2 {
            all += 1.0;
            together += f64::from(u8::from(groups.len() == 1 && placed == 2));
        }
    }
    assert!(all > 10.0, "{all} decisions");
    together / all
}

#[test]
fn subflows_that_share_a_bottleneck_are_found_at_both_hosts() {
    let home = tempfile::tempdir().unwrap();
    let [sender, receiver] = captured("sbd/sb-2", home.path());
    let signals = [(&sender, "owd-sender"), (&receiver, "owd-receiver")];
    for (file, signal) in signals {
        let result = json(&["detect", file]);
        assert_eq!((&result["detector"], &result["signal"]), (&"ssc".into(), &signal.into()));
        let flows = result["flows"].as_array().unwrap();
        let names: Vec<&str> = flows.iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(names.len(), 2);
        // Both are known by the same connection.
        let token = |name: &str| name.split_once(" mptcp ").unwrap().1.to_owned();
        assert_eq!(token(names[0]), token(names[1]));
        assert_eq!(token(names[0]).len(), 8);
        assert!(names.iter().any(|name| name.starts_with("10.1.0.1:40001 > 10.101.0.1:5001 ")));
        let share = shared(&result);
        assert!(share > 0.9, "{signal}: {share}");
        // Its groups are of these names.
        let last = result["decisions"].as_array().unwrap().last().unwrap();
        let members = last["groups"][0].as_array().unwrap();
        assert!(members.iter().all(|name| flows.contains(name)), "{last}");
    }
}

#[test]
fn text_plots_and_damage() {
    let home = tempfile::tempdir().unwrap();
    let [sender, _] = captured("sbd/sb-2", home.path());
    for (name, magic) in [("p.svg", "<svg".as_bytes()), ("p.png", b"\x89PNG")] {
        let plot = home.path().join(name);
        let text = printed(&["detect", &sender, "--plot", plot.to_str().unwrap()]);
        assert!(text.contains("undecided: 1, 2") && text.contains("  1+2 ("), "{text}");
        let drawn = fs::read(&plot).unwrap();
        assert!(drawn.starts_with(magic) && drawn.len() < 300_000, "{name}: {}", drawn.len());
    }
    let set = |one, other| printed(&["detect", &sender, "--json", "--set", one, "--set", other]);
    let (preset, own) = ("ssc.preset=mptcp-sbd", "ssc.t_ms=500");
    assert_eq!(set(preset, own), set(own, preset));
    // Nothing else is left behind.
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3);

    let whole = fs::read(&sender).unwrap();
    let cut = home.path().join("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() / 2 + 3]).unwrap();
    let output = narrows(&["detect", cut.to_str().unwrap()]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.lines().count() == 1, "{warning}");
    assert!(warning.contains("cut.pcapng: it ends within the packet at byte"), "{warning}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("who shares a bottleneck"));
}

#[test]
fn mistakes_are_reported_before_anything_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("t.csv");
    fs::write(&table, "flow,t_s,owd_ms\na,1,2\nb,2,3\n").unwrap();
    let table = table.to_str().unwrap();
    let of = |args: &[&str]| refused(&[&["detect", table], args].concat());
    assert_eq!(
        of(&["--detector", "magic"]),
        "--detector: unknown detector 'magic'; for captures and tables expected one of: ssc, tr, xcorr"
    );
    assert!(of(&["--detector", "btlbw"]).contains("unknown detector 'btlbw'"));
    assert!(of(&["--set", "ssc.p_s"]).contains("--set: expected NAME=VALUE, found \"ssc.p_s\""));
    assert!(
        of(&["--set", "decision.together=11"]).contains("--set: decision.together: '11' is not")
    );
    assert!(of(&["--set", "ssc.p_s=much"]).contains("--set: ssc.p_s: 'much' is not a number"));
    assert!(of(&["--flows", "65"]).contains("--flows"));
    assert!(
        of(&["--plot", "p.pdf"]).contains("p.pdf: expected a name that ends with .svg or .png")
    );
    assert_eq!(
        of(&["--plot", "/nowhere/p.svg"]),
        "/nowhere/p.svg: cannot write: No such file or directory (os error 2)"
    );
    let folder = home.path().join("p.svg");
    fs::create_dir(&folder).unwrap();
    assert!(
        of(&["--plot", folder.to_str().unwrap()])
            .contains("p.svg: expected a file, found a folder")
    );
    assert!(of(&["--losses", "/nowhere.csv"]).contains("/nowhere.csv: cannot read"));
    assert!(refused(&["detect", "/nowhere.pcap"]).contains("/nowhere.pcap: cannot read"));
    let folder = home.path().to_str().unwrap();
    assert!(refused(&["detect", folder]).contains("expected a file, as it is read twice"));
    assert!(printed(&["detect", table]).contains("no decision: ssc needs more than these 1.0 s"));
    assert_eq!(json(&["detect", table])["decisions"], Value::Array(vec![]));
}

/// Recordings of ns-3: flows 0 and 1 in one place, 30 and 31 in the other or in the same.
#[test]
fn recordings_of_another_simulator() {
    let Some(folder) = narrows_testkit::data("traces/ns3") else { return };
    for signal in ["owd", "rtt"] {
        let result = |name: &str| {
            let file = folder.join(format!("E3_droptail_cubic_{name}.{signal}.csv.gz"));
            let file = file.to_str().unwrap();
            let result = json(&["detect", file]);
            assert_eq!(result["signal"], signal);
            // Decisions with all four in one group.
            let decisions = result["decisions"].as_array().unwrap();
            let groups = |d: &Value| d["groups"].as_array().unwrap().clone();
            let decided: Vec<_> = decisions.iter().map(groups).filter(|g| !g.is_empty()).collect();
            assert!(decided.len() > 20, "{name} {signal}: {}", decided.len());
            let one = |groups: &&Vec<Value>| groups[0].as_array().unwrap().len() == 4;
            decided.iter().filter(one).count() as f64 / decided.len() as f64
        };
        let (shared, separate) = (result("shared"), result("sepeq"));
        assert!(shared > 0.7, "{signal}: {shared}");
        assert!(separate < shared, "{signal}: {separate} {shared}");
    }
}
