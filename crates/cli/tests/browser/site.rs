//! The site of the pages, which `make site` has made.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::chromium::Chromium;
use super::{WIDER_THAN_WINDOW, picture};

/// The pages below a folder.
fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("make site") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|end| end == "html") {
            into.push(path);
        }
    }
}

#[test]
#[ignore = "make test-browser"]
fn every_page_of_the_site_fits_its_window_and_words_are_found_offline() {
    let mut browser = Chromium::start();
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/site");
    let mut all = Vec::new();
    pages(&site, &mut all);
    // These two are parts of others: what a server shows in place of a page, and a frame without scripts.
    all.retain(|page| !page.ends_with("404.html") && !page.ends_with("toc.html"));
    assert!(all.len() > 30, "{} pages", all.len());
    for page in &all {
        for width in [1280, 420] {
            browser.open(page, width, false);
            let name = page.strip_prefix(&site).unwrap().display().to_string();
            assert_eq!(browser.value(WIDER_THAN_WINDOW), 0, "{name} at {width}");
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{name} at {width}");
            if name == "index.html" || name == "docs/guide/choose.html" {
                browser.screenshot(&picture(&format!("site-{}-{width}", name.replace('/', "-"))));
            }
        }
    }

    let index = fs::canonicalize(site.join("index.html")).unwrap();
    let url = format!("file://{}?search=ninth%20subflow", index.display());
    browser.call("Page.navigate", json!({ "url": url }));
    let patience = Instant::now() + Duration::from_secs(30);
    let found = "[...document.querySelectorAll('#mdbook-searchresults a')].map(a => a.pathname)";
    loop {
        let found = browser.value(found);
        if found.to_string().contains("/docs/guide/kernel.html") {
            break;
        }
        assert!(Instant::now() < patience, "found {found}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
