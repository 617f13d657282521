//! `--report`: the page of a run or a comparison as a file. `browser` looks at it.

#![cfg(feature = "lab")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

/// Runs the command, which must make the page; returns the page.
fn page(args: &[&str], file: &Path) -> String {
    let output = narrows(&[args, &["--report", file.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(file).unwrap()
}

/// What the script draws.
fn data(page: &str) -> serde_json::Value {
    let (_, data) = page.split_once("id=\"data\" type=\"application/json\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

const SHORT: [&str; 2] = ["--set", "duration=20 s"];

#[test]
fn the_page_of_a_run_shows_what_the_series_has() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let run = ["run", "sbd/sb-2", "--cc", "lia+xcorr", "--seed", "3"];
    let with_out = [&run[..], &SHORT, &["--out", out.to_str().unwrap()]].concat();
    let html = page(&with_out, &home.path().join("a/new/folder/page.html"));
    assert!(html.len() < 1_000_000);
    assert!(
        html.contains("narrows run sbd/sb-2 --cc lia+xcorr --seed 3 --set 'duration=20 s' --out")
    );
    let data = data(&html);
    let titles: Vec<&str> = data["plots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plot| plot["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["Goodput", "Congestion window", "Smoothed RTT", "Queues"]);
    let plot = |title: &str| &data["plots"][titles.iter().position(|of| *of == title).unwrap()];

    // Every sample of a path stands in its curve, from its first RTT on.
    let series = fs::read_to_string(out.join("series.csv")).unwrap();
    let mut lines = series.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|of| *of == name).unwrap();
    let [time, path, connection] = ["time_s", "path", "connection"].map(column);
    let of: Vec<Vec<&str>> =
        lines.filter(|line| line[path] == "path2" && line[connection] == "mptcp").collect();
    for (title, name) in [("Goodput", "goodput_mbps"), ("Congestion window", "cwnd_packets")] {
        let plot = plot(title);
        let curve = plot["curves"]
            .as_array()
            .unwrap()
            .iter()
            .find(|curve| curve["name"] == "path2")
            .unwrap();
        assert_eq!(curve["y"].as_array().unwrap().len(), of.len());
        for (i, line) in of.iter().enumerate() {
            assert_eq!(plot["x"][i].as_f64().unwrap(), line[time].parse::<f64>().unwrap());
            let value: Option<f64> = line[column(name)].parse().ok();
            match curve["y"][i].as_f64() {
                Some(shown) => {
                    assert!((shown - value.unwrap()).abs() < 1e-3, "{title} at {}", line[time]);
                }
                // Before its first RTT a path has no window to speak of.
                None => assert!(
                    value.is_none_or(|value| value == 0.0) || line[column("srtt_ms")].is_empty()
                ),
            }
        }
    }

    // The lanes say of each decision whether it is right, as the file of decisions does.
    let decisions = fs::read_to_string(out.join("decisions.csv")).unwrap();
    let lanes = data["lanes"][0]["lanes"].as_array().unwrap();
    let names: Vec<&str> = lanes.iter().map(|lane| lane["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["verdict", "path1", "path2", "path1", "path2"]);
    for line in decisions.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        // Times of the page are in ms.
        let at: f64 = cells[0].parse::<f64>().unwrap() + 0.001;
        let there = |span: &&serde_json::Value| {
            span[0].as_f64().unwrap() <= at && at < span[1].as_f64().unwrap()
        };
        let spans = lanes[0]["spans"].as_array().unwrap();
        let Some(span) = spans.iter().find(there) else { panic!("nothing at {at} s") };
        assert_eq!(span[2] == "right", cells[4] == "true", "at {at} s");
    }
    // Both paths are together in truth, in the colour of the first.
    assert_eq!(lanes[4]["spans"][0][2]["group"], 0);
    let drops: u64 = lost(&data["lanes"][1], "bottleneck1");
    let summary = fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let analysed = summary["links"][0]["drops"].as_u64().unwrap();
    assert!(drops > analysed && analysed > 0, "{drops} with those of the warm-up, {analysed}");
}

/// What was lost in a lane.
fn lost(lanes: &serde_json::Value, name: &str) -> u64 {
    let lanes = lanes["lanes"].as_array().unwrap().iter();
    let spans = lanes.filter(|lane| lane["name"] == name).flat_map(|lane| lane["spans"].as_array());
    spans.flatten().map(|span| span[2]["lost"].as_u64().unwrap()).sum()
}

#[test]
fn a_page_does_not_change_a_result_and_is_the_same_twice() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("page.html");
    let run =
        [&["run", "phone/wifi-handover", "--cc", "lia", "--json"][..], &["--set", "duration=50 s"]]
            .concat();
    let alone = narrows(&run).stdout;
    let first = page(&run, &file);
    let with = narrows(&[&run[..], &["--report", file.to_str().unwrap()]].concat()).stdout;
    assert!(alone == with);
    assert!(first == fs::read_to_string(&file).unwrap());
    let compare = ["compare", "sbd/nsb-2", "--cc", "reno,lia+ssc", "--seeds", "4", "--jobs"];
    let [one, two] = ["1", "2"].map(|jobs| page(&[&compare[..], &[jobs], &SHORT].concat(), &file));
    assert!(one.replace("--jobs 1", "--jobs 2") == two);
    assert!(fs::read_dir(home.path()).unwrap().count() == 1, "nothing else is left");
}

#[test]
fn the_page_of_a_comparison_has_every_seed() {
    let home = tempfile::tempdir().unwrap();
    let args = ["compare", "sbd/nsb-2", "--cc", "reno,lia+ssc", "--seeds", "5..8"];
    let html = page(&[&args[..], &SHORT].concat(), &home.path().join("page.html"));
    for seed in 5..=8 {
        assert!(html.contains(&format!("title=\"seed {seed}: ")), "{seed}");
    }
    let data = data(&html);
    let distribution = &data["plots"][0];
    assert_eq!(distribution["title"], "Ratio to TCP over seeds");
    let last = |curve: &serde_json::Value| curve["y"].as_array().unwrap().last().unwrap().clone();
    let curves = distribution["curves"].as_array().unwrap();
    assert_eq!(curves.iter().map(last).collect::<Vec<_>>(), [1.0, 1.0]);
    assert_eq!(distribution["x"].as_array().unwrap().len(), 8 + 2, "each value, and both margins");
}

#[test]
fn a_page_says_of_how_many_rows_it_draws_the_distributions() {
    let home = tempfile::tempdir().unwrap();
    let args = ["compare", "sbd/sb-2", "--cc", "reno", "--seeds", "3", "--set", "warmup=1 s"];
    let rates = ["--set", "duration=2 s", "--sweep", "links.bottleneck1.rate=5..17 Mbit/s:13"];
    let schedulers = ["--sweep", "flows.mptcp.scheduler=min-rtt,round-robin"];
    let all = [&args[..], &rates, &schedulers].concat();
    let html = page(&all, &home.path().join("page.html"));
    assert!(html.contains("Drawn are the first 24 of 26 rows: a comparison of fewer draws"));
    let data = data(&html);
    let plots = data["plots"].as_array().unwrap();
    let goodput = plots.iter().find(|plot| plot["title"] == "Goodput over seeds").unwrap();
    assert_eq!(goodput["curves"].as_array().unwrap().len(), 24);
    // With as many as that nothing is left out.
    let fewer = [&args[..], &rates[..2], &schedulers].concat();
    let html = page(&fewer, &home.path().join("page.html"));
    assert!(html.contains("Goodput over seeds") && !html.contains("Drawn are the first"));
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_the_run() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(home.path().join("folder.html")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for (file, why) in [
        (at("page.txt"), "expected a name that ends with .html"),
        (at(""), "expected a name that ends with .html"),
        (at("folder.html"), "expected a file, found something else of this name"),
        (at("file/page.html"), "cannot make this folder"),
        ("/proc/page.html".into(), "cannot write in this folder"),
    ] {
        for command in [&["run", "sbd/nsb-2"][..], &["compare", "sbd/nsb-2", "--cc", "lia"]] {
            // Of a day: it would take minutes to run.
            let long = ["--set", "duration=1000 min", "--report", &file];
            let output = narrows(&[command, &long].concat());
            let line = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(line.contains(why), "{line}");
            assert!(!line.contains(".narrows-"), "a name that nobody chose: {line}");
        }
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing is left");
}

#[cfg(feature = "quic")]
#[test]
fn quic_gives_a_page_too() {
    let home = tempfile::tempdir().unwrap();
    let run = ["run", "sbd/nsb-2", "--cc", "lia+xcorr", "--on", "quic"];
    let data = data(&page(&[&run[..], &SHORT].concat(), &home.path().join("page.html")));
    let queue = &data["plots"][3]["curves"][0]["y"];
    let greatest = queue.as_array().unwrap().iter().filter_map(|y| y.as_f64()).fold(0.0, f64::max);
    assert!((5.0..30.0).contains(&greatest), "35 packets at 20 Mbit/s are 21 ms: {greatest}");
    assert!(lost(&data["lanes"][1], "bottleneck1") > 0);
}

#[cfg(feature = "detect")]
#[test]
fn the_page_of_a_capture_shows_groups_and_delays() {
    let home = tempfile::tempdir().unwrap();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/four-in-pairs.pcap.gz");
    let file = home.path().join("page.html");
    let html = page(&["detect", capture], &file);
    assert!(html.contains("Flows #1 and #4 share a bottleneck; flows #2 and #3 share another."));
    assert!(html.contains("concordance 0.99 of 24 observations"));
    assert!(!html.contains(": needs "), "all are told");
    let data = data(&html);
    // At the end each has the colour of the first of its group.
    let lanes = data["lanes"][0]["lanes"].as_array().unwrap();
    let last = |lane: &serde_json::Value| {
        lane["spans"].as_array().unwrap().last().unwrap()[2]["group"].as_u64()
    };
    let groups: Vec<_> = lanes.iter().map(last).collect();
    assert_eq!(groups, [Some(0), Some(1), Some(1), Some(0)]);
    let delays = &data["plots"][0];
    let high = delays["curves"][2]["high"].as_array().unwrap();
    let greatest = high.iter().filter_map(|y| y.as_f64()).fold(0.0, f64::max);
    // The data's delay changes by 62.0 ms, as the command says.
    assert!((55.0..80.0).contains(&greatest), "{greatest}");
    // The same as JSON, and the page is the same.
    let again = home.path().join("again.html");
    let json = page(&["detect", capture, "--json"], &again);
    assert_eq!(json.replace(" --json", "").replace("again.html", "page.html"), html);
    // Where it cannot be told, what that needs.
    let table = home.path().join("few.csv");
    fs::write(&table, "flow,t_s,owd_ms\na,1,2\nb,2,3\n").unwrap();
    let few = page(&["detect", table.to_str().unwrap(), "--detector", "ssc"], &again);
    assert!(few.contains("too few delays: needs about 21 s in which both flows send"));
    let refused = narrows(&["detect", capture, "--report", "/nowhere/page.html"]);
    assert_eq!(refused.status.code(), Some(2));
    let line = String::from_utf8(refused.stderr).unwrap();
    assert!(
        line.ends_with(
            "/nowhere/page.html: cannot write: No such file or directory (os error 2)\n"
        ),
        "{line}"
    );
}
