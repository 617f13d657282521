//! The simulator in a page, which `make site` has made, against the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::{BACKGROUND, BLUE, DRAWN, WIDER_THAN_WINDOW, picture};

/// A browser, and the page.
fn start() -> (Chromium, PathBuf) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/site/simulator.html");
    let text = fs::read_to_string(&page).expect("make site");
    assert!(text.len() <= 2_000_000, "{} bytes", text.len());
    (Chromium::start(), page)
}

/// What it says once it has run, or cannot.
fn said(browser: &mut Chromium) -> String {
    let patience = Instant::now() + Duration::from_secs(120);
    loop {
        let status = browser.value("document.getElementById('status').textContent");
        let status = status.as_str().unwrap().to_owned();
        if !status.is_empty() && !status.starts_with("simulating") {
            return status;
        }
        assert!(Instant::now() < patience, "it says '{status}'");
    }
}

fn text(browser: &mut Chromium, id: &str) -> String {
    let text = browser.value(&format!("document.getElementById('{id}').textContent"));
    text.as_str().unwrap().to_owned()
}

/// Goes to a choice, as a link to it does, and waits until it has run.
fn choose(browser: &mut Chromium, words: &[(&str, &str)]) -> String {
    browser.value(&format!(
        "document.getElementById('status').textContent = '';
        location.hash = new URLSearchParams({})",
        json!(words)
    ));
    said(browser)
}

const CHOICES: [&[(&str, &str)]; 6] = [
    &[("scenario", "sbd/sb-2"), ("cc", "gcubic+xcorr")],
    &[("scenario", "sbd/nsb-2"), ("cc", "mptcp-sbd"), ("seed", "18446744073709551615")],
    &[
        ("scenario", "phone/wifi-lte"),
        ("cc", "bbr3"),
        ("seed", "2"),
        ("set", "links.lte.loss=0.5 %"),
    ],
    &[("scenario", "home/lossy"), ("cc", "wvegas+lisa"), ("set", "links.radio.queue=10 ms")],
    &[("scenario", "sbd/shifting-60"), ("cc", "olia+ssc")],
    &[
        ("scenario", "sbd/sb-2"),
        ("cc", "lia+tr"),
        ("set", "links.bottleneck1.rate=7 Mbit/s"),
        ("set", "routes.path2.rtt=150 ms"),
    ],
];

#[test]
#[ignore = "make test-browser"]
fn the_page_writes_the_same_bytes_as_the_command_that_it_shows() {
    let (mut browser, page) = start();
    browser.open(&page, 1280, false);
    said(&mut browser);
    // What it offers to save.
    browser.value(
        "URL.createObjectURL = blob => { kept.push(blob.text()); return 'data:,' }; window.kept = []; 0",
    );
    let home = tempfile::tempdir().unwrap();
    for (number, words) in CHOICES.into_iter().enumerate() {
        browser.value("window.kept = []; 0");
        let status = choose(&mut browser, words);
        assert!(status.contains(" s simulated in "), "{words:?}: {status}");
        let files =
            "Promise.all(kept).then(texts => [...document.querySelectorAll('#files a')].map(
            (link, at) => [link.download, texts[at]]))";
        let files = browser.value(files);
        let files: Vec<[String; 2]> = serde_json::from_value(files).unwrap();

        let command = shlex::split(&text(&mut browser, "command")).unwrap();
        let folder = home.path().join(number.to_string());
        let mut native = Command::new(env!("CARGO_BIN_EXE_narrows"));
        let output = native.args(&command[1..]).arg("--out").arg(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            // It has the time of day.
            .filter(|name| name != "provenance.json")
            .collect();
        names.sort();
        let mut offered: Vec<&String> = files.iter().map(|[name, _]| name).collect();
        offered.sort();
        assert_eq!(offered, names.iter().collect::<Vec<_>>(), "{command:?}");
        for [name, text] in &files {
            let of_command = fs::read_to_string(folder.join(name)).unwrap();
            assert!(of_command.len() > 100, "{name} of {command:?}");
            assert!(*text == of_command, "{name} of {command:?} differs");
        }
        // The address holds the choice, and the command all of it.
        let there = browser.value("[...new URLSearchParams(location.hash.slice(1))]");
        for (word, value) in words {
            assert!(there.as_array().unwrap().contains(&json!([word, value])), "{there}");
            let said = command
                .iter()
                .any(|argument| argument == value || format!("{word}={argument}") == *value);
            assert!(said, "{command:?} without {value}");
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "make test-browser"]
fn the_page_reads_well_on_any_screen_dark_or_light() {
    let (mut browser, page) = start();
    for (width, dark) in [(1280, false), (1280, true), (420, false), (420, true)] {
        browser.open(&page, width, dark);
        said(&mut browser);
        // To its end, of which the canvases tell.
        browser.value("document.getElementById('clock').value = 140; document.getElementById('clock').oninput()");
        browser.frame();
        let scheme = if dark { "dark" } else { "light" };
        browser.screenshot(&picture(&format!("simulator-{width}-{scheme}")));
        assert_eq!(browser.value(DRAWN), 6, "at {width}");
        assert_eq!(browser.value(WIDER_THAN_WINDOW), 0, "at {width}");
        let background = if dark { "rgb(20, 23, 26)" } else { "rgb(255, 255, 255)" };
        assert_eq!(browser.value(BACKGROUND), background);
        assert_eq!(browser.complaints(), Vec::<String>::new(), "at {width}");
    }
}

/// Without a mouse: from the top of the page by Tab, then keys.
#[test]
#[ignore = "make test-browser"]
fn the_page_is_used_by_keys_and_stays_responsive_and_stops() {
    let (mut browser, page) = start();
    browser.open(&page, 1280, false);
    said(&mut browser);
    let at = "document.activeElement.id || document.activeElement.name || document.activeElement.tagName";
    let mut reached = Vec::new();
    while reached.last() != Some(&Value::from("run")) {
        browser.key("Tab");
        reached.push(browser.value(at));
        assert!(reached.len() < 20, "{reached:?}");
    }
    for id in ["scenario", "law", "detector", "seed", "links.bottleneck1.rate", "routes.path2.rtt"]
    {
        assert!(reached.contains(&id.into()), "{id} is not among {reached:?}");
    }

    // Each slider has its name, and the link to the results leaves them.
    let named =
        "[...document.querySelectorAll('.knob input')].every(of => of.labels[0]?.control == of)";
    assert_eq!(browser.value(named), true);
    browser.value("document.querySelector('.skip').focus(); 0");
    browser.key("Enter");
    assert_eq!(browser.value("document.activeElement.id"), "results");
    assert_eq!(browser.value("document.querySelectorAll('#results figure').length > 0"), true);

    // A slider by an arrow: the next value, and a run of it.
    browser.value("document.getElementById('status').textContent = ''; document.getElementsByName('links.bottleneck1.rate')[0].focus()");
    browser.key("ArrowRight");
    let patience = Instant::now() + Duration::from_secs(30);
    while text(&mut browser, "command").ends_with("--seed 1") {
        assert!(Instant::now() < patience, "no run after a change");
    }
    said(&mut browser);
    let command = text(&mut browser, "command");
    assert!(command.ends_with("--set 'links.bottleneck1.rate=25 Mbit/s'"), "{command}");

    // Time goes on by itself; a key on its slider takes it over.
    let time = "Number(document.getElementById('clock').value)";
    let clock = browser.value(
        "document.getElementById('clock').focus(); Number(document.getElementById('clock').value)",
    );
    let patience = Instant::now() + Duration::from_secs(5);
    while browser.value(time).as_f64() <= clock.as_f64() {
        assert!(Instant::now() < patience, "it stays at {clock}");
        browser.frame();
    }
    browser.key("Home");
    assert_eq!([browser.value(time), text(&mut browser, "play").into()], [json!(0), "Play".into()]);
    browser.key("ArrowRight");
    browser.frame();
    assert_eq!(browser.value(time), json!(0.1));
    // Nothing is drawn of what is still to come, of the windows too.
    assert_eq!(browser.value(&format!("{BLUE}(2)")), 0);
    browser.key("End");
    browser.frame();
    let blue = browser.value(&format!("{BLUE}(2)")).as_u64();
    assert!(blue > Some(100), "{blue:?} pixels at {}", browser.value(time));

    // A run of minutes: the page draws frames meanwhile, and the key ends it with its worker.
    browser.value(
        "window.workers = 0; window.Worker = class extends Worker {
            constructor(code) { super(code); workers++; }
            terminate() { super.terminate(); workers--; }
        }; 0",
    );
    let long = [("scenario", "sbd/sb-2"), ("set", "duration=14400 s")];
    browser.value(&format!("location.hash = new URLSearchParams({})", json!(long)));
    let patience = Instant::now() + Duration::from_secs(30);
    while !text(&mut browser, "status").starts_with("simulating .. the command takes at most") {
        assert!(Instant::now() < patience, "it says '{}'", text(&mut browser, "status"));
    }
    let began = Instant::now();
    (0..20).for_each(|_| browser.frame());
    assert!(began.elapsed() < Duration::from_secs(10), "20 frames in {:?}", began.elapsed());
    assert_eq!(
        [browser.value("workers"), text(&mut browser, "run").into()],
        [json!(1), "Stop".into()],
        "it says '{}'",
        text(&mut browser, "status")
    );
    browser.value("document.getElementById('run').focus()");
    browser.key("Enter");
    assert_eq!(
        [text(&mut browser, "status"), text(&mut browser, "run")],
        ["stopped; what is below is of the run before", "Run"]
    );
    assert_eq!(browser.value("workers"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "make test-browser"]
fn the_address_of_the_guide_runs_and_a_wrong_or_hostile_one_is_said_as_text() {
    let (mut browser, page) = start();
    browser.open(&page, 420, false);
    said(&mut browser);
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/browser.md");
    let guide = fs::read_to_string(guide).unwrap();
    let right = guide.lines().find_map(|line| line.strip_prefix("simulator.html#")).unwrap();
    browser.value(&format!(
        "document.getElementById('status').textContent = ''; location.hash = {}",
        json!(right)
    ));
    let status = said(&mut browser);
    assert!(status.contains("simulated"), "{right} of the guide: {status}");
    for (words, error) in [
        (&[("scenario", "sbd/sb2")][..], "sbd/sb2: no such file and no shipped scenario"),
        (&[("cc", "leo")], "--cc: unknown law 'leo'"),
        (&[("seed", "-1")], "--seed: expected a whole number"),
        (&[("set", "links.bottleneck1.rate=fast")], "--set links.bottleneck1.rate=fast: "),
        (&[("set", "rate")], "--set rate=: "),
        (&[("sed", "1")], "the address: unknown word 'sed'; expected scenario, cc, seed, set"),
    ] {
        let status = choose(&mut browser, words);
        assert!(status.starts_with(error), "{words:?}: {status}");
        // No results of another choice stand below it.
        assert_eq!(browser.value("document.getElementById('results').childElementCount"), 0);
        assert_eq!(browser.value(WIDER_THAN_WINDOW), 0, "{status}");
    }
    let bad = "</script><img src=x onerror=document.title=1>";
    let title = format!("title={bad}");
    let status = choose(&mut browser, &[("set", title.as_str()), ("set", "duration=10 s")]);
    assert!(status.contains("simulated"), "{status}");
    assert_eq!(browser.value("document.images.length"), 0);
    assert!(text(&mut browser, "meaning").contains(bad));
    choose(&mut browser, &[("cc", bad)]);
    assert_eq!(browser.value("document.images.length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
