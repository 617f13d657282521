//! Pages in a browser. `make test-browser`; pictures of what it saw are in `target/browser`.

#![cfg(feature = "lab")]

mod chromium;
mod simulator;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chromium::Chromium;
use tempfile::TempDir;

/// Makes a page by the command.
fn page(home: &TempDir, name: &str, args: &[&str]) -> PathBuf {
    let file = home.path().join(format!("{name}.html"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    let output = command.args(args).arg("--report").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

/// Where pictures go.
fn picture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../browser");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{name}.png"))
}

/// How many canvases have been drawn on: have pixels of several colours.
const DRAWN: &str = "[...document.querySelectorAll('.uplot canvas')].filter(canvas => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 20;
}).length";

const WIDER_THAN_WINDOW: &str = "document.documentElement.scrollWidth - innerWidth";

const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";

const RANGE: &str = "document.getElementById('range').textContent";

/// The middle of the nth plot, and its width.
const PLACE: &str = "(n => {
    const over = document.querySelectorAll('.u-over')[n];
    over.scrollIntoView({ block: 'center' });
    const { left, top, width, height } = over.getBoundingClientRect();
    return [left + width / 2, top + height / 2, width];
})";

#[cfg(feature = "detect")]
const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/four-in-pairs.pcap.gz");

const HANDOVER: [&str; 4] = ["run", "phone/wifi-handover", "--cc", "gcubic+xcorr"];

#[test]
#[ignore = "make test-browser"]
fn pages_are_drawn_on_any_screen_dark_or_light_and_say_nothing_to_the_console() {
    let mut browser = Chromium::start();
    let home = tempfile::tempdir().unwrap();
    let short = ["--set", "duration=40 s", "--seeds", "8"];
    let compare = ["compare", "sbd/nsb-2", "sbd/sb-2", "--cc", "reno,olia+ssc,gcubic+xcorr"];
    let sweep = ["compare", "sbd/nsb-2", "--cc", "lia,reno", "--sweep", "jitter=0..6 packets:3"];
    for (name, args, plots) in [
        ("run", &["run", "sbd/shifting-60", "--cc", "olia+ssc"][..], 6),
        ("events", &HANDOVER, 6),
        ("compare", &[&compare[..], &short].concat(), 6),
        #[cfg(feature = "detect")]
        ("detect", &["detect", CAPTURE], 4),
        ("sweep", &[&sweep[..], &short].concat(), 3),
    ] {
        let file = page(&home, name, args);
        assert!(fs::metadata(&file).unwrap().len() < 1_000_000);
        for (width, dark) in [(1280, false), (1280, true), (420, false), (420, true)] {
            browser.open(&file, width, dark);
            let scheme = if dark { "dark" } else { "light" };
            browser.screenshot(&picture(&format!("{name}-{width}-{scheme}")));
            assert_eq!(browser.value(DRAWN), plots, "{name} at {width}");
            assert_eq!(browser.value(WIDER_THAN_WINDOW), 0, "{name} at {width}");
            let background = if dark { "rgb(20, 23, 26)" } else { "rgb(255, 255, 255)" };
            assert_eq!(browser.value(BACKGROUND), background, "{name}");
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{name} at {width}");
        }
        let pdf = browser.pdf();
        assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{name}: {} bytes", pdf.len());
        fs::write(picture(name).with_extension("pdf"), pdf).unwrap();
        browser.frame();
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name} after printing");
    }
}

/// How many pixels of the nth plot have the first curve's colour.
const BLUE: &str = "(n => {
    const canvas = document.querySelectorAll('.uplot canvas')[n];
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] == 0 && data[i + 1] == 114 && data[i + 2] == 178;
    return count;
})";

#[test]
#[ignore = "make test-browser"]
fn a_page_is_zoomed_read_and_toggled_by_mouse_and_keys() {
    let mut browser = Chromium::start();
    let home = tempfile::tempdir().unwrap();
    browser.open(&page(&home, "run", &HANDOVER), 1280, false);
    assert_eq!(browser.value(RANGE), "0 to 65 s");

    // A drag over the second plot zooms all, to what it covers: a quarter of 65 s.
    let place = browser.value(&format!("{PLACE}(1)"));
    let [x, y, width] = [0, 1, 2].map(|at| place[at].as_f64().unwrap());
    browser.mouse("mouseMoved", x, y);
    browser.mouse("mousePressed", x, y);
    browser.mouse("mouseMoved", x + width / 4.0, y);
    browser.mouse("mouseReleased", x + width / 4.0, y);
    browser.frame();
    let range = browser.value(RANGE);
    assert!(["32.5 to 48.7 s", "32.5 to 48.8 s"].contains(&range.as_str().unwrap()), "{range}");

    // The pointer tells the values of all plots over time at its place, a third of the way.
    browser.mouse("mouseMoved", x - width / 6.0, y);
    browser.frame();
    let said = "[...document.querySelectorAll('.at')].map(at => at.textContent)";
    let said = browser.value(said);
    let said: Vec<&str> = said.as_array().unwrap().iter().map(|at| at.as_str().unwrap()).collect();
    assert_eq!(said.len(), 6);
    assert!(said.iter().all(|at| at.starts_with("at 37.") || at.starts_with("at 38.")), "{said:?}");
    let value = "document.querySelectorAll('.legend')[1].querySelectorAll('.value')[1].textContent";
    let value = browser.value(value);
    let goodput: f64 = value.as_str().unwrap().parse().unwrap();
    assert!((0.5..12.0).contains(&goodput), "over LTE of 12 Mbit/s: {goodput}");

    // A key of the legend takes its curve away, and gives it back.
    let before = browser.value(&format!("{BLUE}(1)")).as_u64().unwrap();
    let key = "document.querySelectorAll('.legend')[1].querySelector('button')";
    for (pressed, there) in [("false", false), ("true", true)] {
        browser.value(&format!("{key}.click()"));
        browser.frame();
        assert_eq!(browser.value(&format!("{key}.getAttribute('aria-pressed')")), pressed);
        let now = browser.value(&format!("{BLUE}(1)")).as_u64().unwrap();
        assert_eq!(now > before / 2, there, "{now} pixels, {before} before");
    }

    // Keys of the plot in focus.
    browser.value("document.querySelectorAll('.canvas')[2].focus()");
    browser.key("Escape");
    assert_eq!(browser.value(RANGE), "0 to 65 s");
    browser.key("+");
    assert_eq!(browser.value(RANGE), "16.3 to 48.8 s");
    browser.key("-");
    assert_eq!(browser.value(RANGE), "0 to 65 s");

    // The table behind a plot shows what the plot does.
    let rows = "(() => {
        const details = document.querySelectorAll('figure details')[1];
        details.open = true;
        return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
            () => done(details.querySelectorAll('tbody tr').length))));
    })()";
    let rows = browser.value(rows).as_u64().unwrap();
    assert!((50..=101).contains(&rows), "{rows}");

    // The CSV has every sample.
    let csv = "new Promise(done => {
        URL.createObjectURL = blob => { blob.text().then(done); return 'data:,'; };
        HTMLAnchorElement.prototype.click = () => {};
        document.querySelectorAll('.csv')[1].click();
    })";
    let csv = browser.value(csv);
    let lines: Vec<&str> = csv.as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 1 + 650);
    assert_eq!(
        lines[0],
        "\"time, s\",\"wifi, Mbit/s\",\"lte, Mbit/s\",\"tcp-lte, Mbit/s\",\"tcp-wifi, Mbit/s\",\"mptcp in all, Mbit/s\""
    );

    // Dark by the button, whatever the system's choice.
    browser.value("document.getElementById('theme').click()");
    assert_eq!(browser.value(BACKGROUND), "rgb(20, 23, 26)");
    browser.frame();
    assert_eq!(browser.value(&format!("{BLUE}(1)")), 0, "the plots follow");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

const HOSTILE: &str = "name = 'hostile'
title = 'BAD'
source = 'test'
warmup = '0 s'
duration = '20 s'
test = 'BAD'
links.'BAD 1' = { rate = '10 Mbit/s', queue = '20 packets' }
links.'BAD 2' = { rate = '10 Mbit/s', queue = '20 packets' }
routes.'BAD 1' = { links = ['BAD 1'], rtt = '20 ms' }
routes.'BAD 2' = { links = ['BAD 2'], rtt = '20 ms' }
flows.'BAD' = { kind = 'mptcp', routes = ['BAD 1', 'BAD 2'], cc = 'lia' }
events = [{ at = '10 s', link = 'BAD 1', up = false }, { at = '11 s', link = 'BAD 1', up = true }]
";

/// Names that would be code if a page took them for it.
#[test]
#[ignore = "make test-browser"]
fn foreign_names_are_text() {
    let mut browser = Chromium::start();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("hostile.toml");
    let bad = "</script><img src=x onerror=document.title=1>";
    fs::write(&file, HOSTILE.replace("BAD", bad)).unwrap();
    let args = ["run", file.to_str().unwrap(), "--cc", "lia+xcorr"];
    browser.open(&page(&home, "run", &args), 1280, false);
    assert_eq!(browser.value("document.images.length"), 0);
    assert_eq!(browser.value("document.querySelector('.lead').textContent"), bad);
    assert_eq!(browser.value(DRAWN), 6);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// 10^5 samples of two paths that are as slow as the run would otherwise be long.
const LONG: &str = "name = 'long'
title = 'Ten thousand seconds'
source = 'test'
warmup = '0 s'
duration = 'DURATION'
test = 'both'
links.one = { rate = '200 kbit/s', queue = '20 packets' }
links.two = { rate = '200 kbit/s', queue = '20 packets' }
routes.one = { links = ['one'], rtt = '20 ms' }
routes.two = { links = ['two'], rtt = '20 ms' }
flows.both = { kind = 'mptcp', routes = ['one', 'two'], cc = 'lia' }
";

/// When the page had been drawn, ms after it was asked for.
const LOADED: &str = "performance.getEntriesByType('navigation')[0].loadEventEnd";

/// A page of published figures that has tables alone.
const TABLES: [&str; 5] = ["papers", "cmpbbr/figure-1", "--quick", "--seeds", "1"];

/// A page draws what a screen can show of a long run, no more: it is neither larger nor slower than that of a
/// short one, and takes less than ten times as long as a page without plots.
#[test]
#[ignore = "make test-browser"]
fn a_page_of_100_000_samples_is_drawn_as_fast_as_one_of_1_000() {
    let mut browser = Chromium::start();
    let home = tempfile::tempdir().unwrap();
    let mut drawn = |file: &Path| {
        assert!(fs::metadata(file).unwrap().len() < 1_000_000);
        // The quickest of three: what else the machine does only adds.
        let times = [0; 3].map(|_| {
            browser.open(file, 1280, false);
            browser.value(LOADED).as_f64().unwrap()
        });
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{}", file.display());
        times.into_iter().fold(f64::INFINITY, f64::min)
    };
    let empty = drawn(&page(&home, "empty", &TABLES));
    let [short, long] = [("short", "100 s"), ("long", "10000 s")].map(|(name, duration)| {
        let file = home.path().join(format!("{name}.toml"));
        fs::write(&file, LONG.replace("DURATION", duration)).unwrap();
        drawn(&page(&home, name, &["run", file.to_str().unwrap(), "--cc", "lia"]))
    });
    println!(
        "drawn after {empty:.0} ms without plots, {short:.0} ms with 1,000 samples, {long:.0} ms with 100,000"
    );
    assert!(long < 3.0 * short, "{long} ms, {short} ms");
    assert!(long < 10.0 * empty, "{long} ms, {empty} ms without plots");
}

#[test]
#[ignore = "make test-browser"]
fn a_page_of_published_figures_fits_any_screen() {
    let mut browser = Chromium::start();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let args = [&TABLES[..], &["--out", out.to_str().unwrap()]].concat();
    let file = page(&home, "papers", &args);
    for (width, dark) in [(1280, false), (420, true)] {
        browser.open(&file, width, dark);
        let scheme = if dark { "dark" } else { "light" };
        browser.screenshot(&picture(&format!("papers-{width}-{scheme}")));
        let cards = browser.value("document.querySelector('main').textContent");
        let cards = cards.as_str().unwrap();
        for word in ["reproduced", "cannot be told", "Figure 1: two BBR flows with loss."] {
            assert!(cards.contains(word), "{cards}");
        }
        assert_eq!(browser.value(WIDER_THAN_WINDOW), 0, "at {width}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "at {width}");
    }
}
