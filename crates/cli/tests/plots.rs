//! `--plots`: the plots of a page as files for a paper. crates/plots looks at what is in them.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

const SHORT: [&str; 2] = ["--set", "duration=20 s"];

/// What the command writes into the folder, but for what says when.
fn plots(args: &[&str], folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let output = narrows(&[args, &SHORT, &["--plots", folder.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = files.map(|entry| (name(&entry), fs::read(entry.path()).unwrap()));
    let all: BTreeMap<_, _> = files.collect();
    assert!(all.contains_key("provenance.json"), "{:?}", all.keys());
    all.into_iter().filter(|(name, _)| name != "provenance.json").collect()
}

#[test]
fn a_run_has_each_plot_in_three_forms_with_the_numbers_of_its_series() {
    let home = tempfile::tempdir().unwrap();
    let (out, folder) = (home.path().join("out"), home.path().join("a/new/folder"));
    let run = ["run", "sbd/sb-2", "--cc", "lia+xcorr", "--out", out.to_str().unwrap()];
    let all = plots(&run, &folder);
    let names: Vec<&str> = all.keys().filter_map(|name| name.strip_suffix(".svg")).collect();
    let expected = [
        "decisions-groups-of-paths-over-time",
        "over-time-congestion-window",
        "over-time-goodput",
        "over-time-losses",
        "over-time-queues",
        "over-time-smoothed-rtt",
    ];
    assert_eq!((names, all.len()), (expected.to_vec(), 3 * expected.len()));
    for name in expected {
        assert!(all[&format!("{name}.pdf")].starts_with(b"%PDF-1"), "{name}");
    }

    let lines = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(',').map(String::from).collect()).collect()
    };
    let series = lines(&fs::read_to_string(out.join("series.csv")).unwrap());
    let column = |name: &str| series[0].iter().position(|head| head == name).unwrap();
    let (path, connection) = (column("path"), column("connection"));
    let of = series.iter().filter(|line| line[path] == "path2" && line[connection] == "mptcp");
    let goodput = String::from_utf8(all["over-time-goodput.csv"].clone()).unwrap();
    assert!(goodput.starts_with("\"time, s\",\"path1, Mbit/s\",\"path2, Mbit/s\","), "{goodput}");
    let drawn = lines(&goodput);
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    let mut same = 0;
    for (line, sample) in drawn[1..].iter().zip(of) {
        assert_eq!(number(&line[0]), number(&sample[column("time_s")]));
        // Before its first RTT a path has no goodput to speak of.
        if !line[2].is_empty() {
            let goodput = number(&sample[column("goodput_mbps")]);
            assert_eq!(number(&line[2]), goodput, "at {} s", line[0]);
            same += 1;
        }
    }
    assert!(same > 300, "{same} of {}", drawn.len());
}

#[test]
fn plots_are_the_same_twice_and_with_any_number_of_jobs() {
    let home = tempfile::tempdir().unwrap();
    let compare = ["compare", "sbd/nsb-2", "--cc", "reno,lia+ssc", "--seeds", "3", "--jobs"];
    let [one, two] = ["1", "2"].map(|jobs| {
        let args = [&compare[..], &[jobs]].concat();
        plots(&args, &home.path().join("same"))
    });
    assert!(one.contains_key("sbd-nsb-2-ratio-to-tcp.svg"), "{:?}", one.keys());
    assert!(one == two);
    let svg = String::from_utf8(one["sbd-nsb-2-ratio-to-tcp.svg"].clone()).unwrap();
    assert!(svg.contains("<title id=\"title\">Ratio to TCP</title>"), "{svg}");
}

#[test]
fn a_folder_that_cannot_be_or_is_of_something_else_is_told_before_the_run() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/rows.json"), "").unwrap();
    for (folder, why) in [
        (at("file"), "cannot make this folder"),
        (at("file/plots"), "cannot make this folder"),
        (at("other"), "holds results without a provenance.json; choose another folder"),
        ("/proc".into(), "cannot write in this folder"),
    ] {
        for command in [
            &["run", "sbd/nsb-2", "--set", "duration=1000 min"][..],
            &["compare", "sbd/nsb-2", "--cc", "lia", "--set", "duration=1000 min"],
            &["papers", "lisa", "--quick"],
        ] {
            let output = narrows(&[command, &["--plots", &folder]].concat());
            let line = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
            assert!(line.contains(why), "{line}");
        }
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing is left");
}

#[test]
fn tables_of_a_paper_that_are_no_figures_give_no_files() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("plots");
    let output =
        narrows(&["papers", "detectors/drawn-levels", "--plots", folder.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("plots: no plots; these tables are no figures"), "{text}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}
