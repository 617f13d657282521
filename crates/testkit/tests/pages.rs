//! The pages: their links lead somewhere, each is in the site's table of contents, and packages load what they recommend,
//! with the licences of what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The root of the repository.
fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The texts below a folder whose names `wanted` accepts; not what is built, and nothing hidden.
fn texts(folder: &Path, wanted: &dyn Fn(&str) -> bool, into: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || ["target", "out", "parts", "node_modules"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            texts(&path, wanted, into);
        } else if wanted(name) {
            // What is no text has no links.
            if let Ok(text) = std::fs::read_to_string(&path) {
                into.insert(path, text);
            }
        }
    }
}

fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    texts(&root(), &|name| name.ends_with(".md"), &mut pages);
    pages
}

/// The lines outside of fenced code, each with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((at + 1, line))
    })
}

/// The targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// The anchors that GitHub and mdBook make of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // Of a link its text.
        let parts = heading.trim().split("](").enumerate();
        let heading =
            parts.map(
                |(n, part)| {
                    if n == 0 { part } else { part.split_once(')').map_or(part, |two| two.1) }
                },
            );
        let heading = heading.collect::<String>().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (0..).map(|n| if n == 0 { anchor.clone() } else { format!("{anchor}-{n}") });
        let free = again.into_iter().find(|one| !anchors.contains(one));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn every_link_leads_somewhere() {
    no_dead_links(&pages());
}

/// Packages have the pages, and not what these link to in the repository.
#[test]
fn every_link_of_a_package_leads_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    for of_release in ["CHANGELOG.md", "LICENSE.md"] {
        std::fs::copy(root().join(of_release), folder.path().join(of_release)).unwrap();
    }
    let mut copy = Command::new(root().join("scripts/pages"));
    assert!(copy.arg(folder.path()).status().unwrap().success());
    let mut packed = BTreeMap::new();
    texts(folder.path(), &|name| name.ends_with(".md"), &mut packed);
    let docs = pages().into_keys().filter(|page| page.starts_with(root().join("docs")));
    assert_eq!(packed.len(), docs.count() + 3);
    no_dead_links(&packed);
    // One of the repository is told by its words.
    assert!(packed[&folder.path().join("README.md")].contains("CITATION.cff and CONTRIBUTING.md."));
}

fn no_dead_links(pages: &BTreeMap<PathBuf, String>) {
    let mut dead = Vec::new();
    for (page, text) in pages {
        for (at, line) in prose(text) {
            for link in links(line).filter(|link| !link.contains("://")) {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = match path {
                    "" => page.clone(),
                    _ => normal(&page.parent().unwrap().join(path)),
                };
                let there = match pages.get(&target) {
                    Some(text) => anchor.is_empty() || anchors(text).contains(anchor),
                    None => target.exists() && anchor.is_empty(),
                };
                if !there {
                    dead.push(format!("{}:{at}: {link}", page.display()));
                }
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// The pictures of a page, each as far as it goes on: `![words](..)`, also over lines, and `<img ..>`.
fn pictures(text: &str) -> Vec<String> {
    let text: String = prose(text).flat_map(|(_, line)| [line, "\n"]).collect();
    let marked = text.split("![").skip(1).map(|rest| rest.split("](").next().unwrap().to_owned());
    let tag = |rest: &str| {
        let tag = rest.split('>').next().unwrap().to_owned();
        tag.split_once("alt=\"").and_then(|(_, alt)| Some(alt.split_once('"')?.0.to_owned()))
    };
    let tags = text.split("<img").skip(1).map(|rest| tag(rest).unwrap_or_default());
    marked.chain(tags).collect()
}

/// Who cannot see a picture reads what it shows.
#[test]
fn every_picture_is_told_in_words() {
    let pages = pages();
    let all: Vec<(&PathBuf, String)> = pages
        .iter()
        .flat_map(|(page, text)| pictures(text).into_iter().map(move |words| (page, words)))
        .collect();
    let few: Vec<_> =
        all.iter().filter(|(_, words)| words.split_whitespace().count() < 5).collect();
    assert!(few.is_empty(), "pictures without a sentence: {few:?}");
    assert!(all.len() >= 9, "{} pictures", all.len());
    let read = |text| pictures(text).into_iter().map(|words| words.len()).collect::<Vec<_>>();
    assert_eq!(read("![](a.svg) <img src=\"a\" width=\"9\"> <img alt=\"of\ntwo\">"), [0, 0, 6]);
}

/// Comments, messages, help and scripts name pages by their path from the root.
#[test]
fn every_page_that_is_named_is_there() {
    let mut all = BTreeMap::new();
    texts(&root(), &|_| true, &mut all);
    let mut missing = Vec::new();
    for (file, text) in &all {
        for (at, rest) in text.match_indices("docs/") {
            let own = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
            let before = text[..at].chars().next_back().is_none_or(|c| !own(c));
            let name = text[at..at + rest.len()].to_owned()
                + text[at + rest.len()..].split(|c| !own(c)).next().unwrap_or_default();
            let name = name.trim_end_matches('.');
            if before && name.ends_with(".md") && !root().join(name).exists() {
                missing.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such pages:\n{}", missing.join("\n"));
}

/// What pages tell to make, and the scripts that they tell to run, in their code and in their blocks.
#[test]
fn every_target_and_every_script_of_a_page_is_there() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let (mut missing, mut found) = (Vec::new(), 0);
    for (page, text) in &pages() {
        for line in text.split('`').skip(1).step_by(2).flat_map(str::lines) {
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            let words: Vec<&str> =
                line.split_whitespace().take_while(|word| !word.starts_with(['#', '-'])).collect();
            let target = |word: &&str| makefile.contains(&format!("\n{word}:"));
            let wrong: Vec<&str> = match words.split_first() {
                Some((&"make", rest)) => {
                    let targets = rest.iter().copied().filter(|word| !word.contains('='));
                    targets.filter(|word| !target(word)).collect()
                }
                Some((script, _)) if script.starts_with("scripts/") => Some(*script)
                    .filter(|script| !root().join(script).exists())
                    .into_iter()
                    .collect(),
                _ => continue,
            };
            found += 1;
            missing.extend(wrong.iter().map(|word| format!("{}: {word}", page.display())));
        }
    }
    assert!(missing.is_empty(), "no such target or script:\n{}", missing.join("\n"));
    assert!(found >= 60, "{found} calls");
}

/// What programs write into pages was written, but for what takes hours and the page says so of.
#[test]
fn no_table_is_empty_between_its_marks() {
    let not_run = ["twins"];
    let (mut empty, mut found) = (Vec::new(), 0);
    for (page, text) in &pages() {
        for part in text.split("\n<!-- table ").skip(1) {
            let (name, rest) = part.split_once(" -->\n").expect("a mark with a name");
            let (table, _) = rest.split_once("<!-- end -->").expect("a mark of the end");
            found += 1;
            if !table.contains("| --- |") && !not_run.contains(&name) {
                empty.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(
        empty.is_empty(),
        "`narrows papers PAPER/TABLE --docs docs` makes:\n{}",
        empty.join("\n")
    );
    assert!(found >= 100, "{found} tables");
}

#[test]
fn every_page_is_once_in_the_table_of_contents() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> =
        summary.lines().flat_map(links).map(|link| normal(&docs.join(link))).collect();
    listed.sort();
    let twice = listed.windows(2).find(|two| two[0] == two[1]);
    assert_eq!(twice, None);
    for page in pages().keys().filter(|page| page.starts_with(&docs)) {
        let there = page.ends_with("SUMMARY.md") || listed.contains(page);
        assert!(there, "{} is not in docs/SUMMARY.md", page.display());
    }
}

/// A guide says what it is for, how to use it, what it does, and its limits, in this order; the other pages have what they are
/// for first and their limits last. A page of docs/results has above that when it was measured, and the commits that did it.
#[test]
fn pages_follow_one_order() {
    // A walk-through has each command with what it does.
    let walks = ["operator-day.md"];
    let [guide, method, results, scenarios, quic] = [
        "docs/guide",
        "docs/method",
        "docs/results",
        "scenarios/README.md",
        "crates/quic/README.md",
    ]
    .map(|path| root().join(path));
    let is_commit = |word: &str| word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut wrong = Vec::new();
    for (path, text) in &pages() {
        let is_guide = path.starts_with(&guide) || *path == scenarios;
        let is_result = path.starts_with(&results);
        if !is_guide && !is_result && !path.starts_with(&method) && *path != quic {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let page = path.strip_prefix(root()).unwrap().display();
        let mut below = text.split_once('\n').unwrap_or_default().1.trim_start();
        if is_result {
            let (measured, rest) = below.split_once("\n\n").unwrap_or_default();
            let says = measured.split(|c: char| !c.is_alphanumeric()).any(is_commit);
            if !measured.starts_with("*Measured ") || !says {
                wrong.push(format!("{page}: expected *Measured DAY, .. COMMIT*: {measured:?}"));
            }
            below = rest;
        }
        if !below.starts_with(|c: char| c.is_alphanumeric() || c == '`') {
            let first = below.lines().next();
            wrong.push(format!("{page}: no word under the title says what it is for: {first:?}"));
        }
        let sections: Vec<&str> =
            prose(text).filter_map(|(_, line)| line.strip_prefix("## ")).collect();
        let at = |wanted: &str| sections.iter().position(|section| *section == wanted);
        match at("What it does") {
            Some(0) => wrong.push(format!("{page}: no section on usage before `What it does`")),
            None if is_guide && !walks.contains(&name) => {
                wrong.push(format!("{page}: no `What it does`"));
            }
            _ => {}
        }
        let is_last = |at: usize| at + 1 == sections.len() && (at > 0 || is_result);
        if !at("Limits").is_some_and(is_last) {
            wrong.push(format!("{page}: `Limits` is not the last section: {sections:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The unit of the Debian package and the service of OpenWrt run the control of the quick start.
#[test]
fn packages_load_what_the_quick_start_loads() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let quick_start = read("docs/guide/kernel.md");
    let (_, after) = quick_start.split_once("sudo narrows kernel load ").unwrap();
    let control = after.split_whitespace().next().unwrap();
    for (file, says) in [
        ("docs/guide/install.md", format!("if wanted: {control} as the default for MPTCP")),
        ("scripts/deb", format!("kernel use {control} --default --mptcp-only --boot")),
        ("packaging/openwrt/files/narrows.config", format!("option control '{control}'")),
        ("packaging/openwrt/files/narrows.init", format!("read_section main {control} 1\n")),
    ] {
        assert!(
            read(file).contains(&says),
            "{file}: expected `{says}`, as docs/guide/kernel.md has"
        );
    }
}

#[test]
fn all_that_names_the_version_names_the_same() {
    let file = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let after = |name: &str, before: &str| {
        let text = file(name);
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?} in {name}"));
        rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>()
    };
    let version = after("Cargo.toml", "[workspace.package]\nversion = \"");
    for (name, before) in [
        ("Cargo.toml", "narrows-laws = { path = \"crates/laws\", version = \""),
        ("crates/quic/Cargo.toml", "narrows-laws = { path = \"../laws\", version = \""),
        ("CITATION.cff", "\nversion: "),
        ("packaging/openwrt/Makefile", "PKG_VERSION:="),
        ("CHANGELOG.md", "\n## "),
    ] {
        assert_eq!(after(name, before), version, "{name}");
    }
}

/// Who passes the command on owes its users the licences of all that is linked in: of crates, of what crates
/// bring from others, and of those that come without a text.
#[test]
fn all_that_is_linked_in_is_listed_with_the_text_of_its_licence() {
    let python = Command::new("python3").args(["-c", "import tomllib"]).output();
    if !python.is_ok_and(|output| output.status.success()) {
        println!("skipped: no python3 of 3.11 or newer");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(root().join("scripts/third-party"));
    command.args(["narrows", &target, "default"]).arg(folder.path());
    let output = command.current_dir(root()).env("CARGO_NET_OFFLINE", "true").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (listed, texts) = (read("sbom.cdx.json"), read("third-party.txt"));
    for of_others in ["uPlot 1.", "mimalloc 2.", "DejaVu fonts 2."] {
        assert!(texts.contains(of_others), "{of_others}");
    }
    for holder in ["(c) 2022 Leon Sorokin", "Microsoft Corporation, Daan Leijen", "Bitstream, Inc."]
    {
        assert!(texts.contains(holder), "no text of {holder}");
    }
    // One without a file of its licence.
    let etherparse = "\n\nMIT License\n\nCopyright (c) Julian Schmid <info@julianschmid.name>\n";
    assert!(texts.contains(etherparse));
    assert!(!listed.contains("MIT  OR"), "a licence that is no SPDX expression");
    let packages = listed.lines().filter(|line| line.contains("\"pkg:cargo/"));
    let plus: Vec<&str> = packages.filter(|line| line.contains('+')).collect();
    assert!(plus.is_empty() && listed.contains("%2B"), "a version's plus sign: {plus:?}");
}

#[test]
fn every_unit_is_in_every_package_and_goes_with_it() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let mut units = Vec::new();
    for entry in std::fs::read_dir(root().join("packaging")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".service") || name.ends_with(".timer") {
            units.push(name);
        }
    }
    assert!(units.len() >= 3, "{units:?}");
    for unit in units {
        let enabled = read(&format!("packaging/{unit}")).contains("\n[Install]\n");
        let with = ["crates/cli/Cargo.toml", "Makefile", "scripts/test-deb"];
        let without = ["packaging/debian/prerm", "packaging/debian/postrm"];
        for file in with.into_iter().chain(without.into_iter().filter(|_| enabled)) {
            assert!(read(file).contains(&unit), "{file}: expected `{unit}`");
        }
    }
    let says = "packaging/narrows-*.{service,timer}";
    assert!(read("scripts/release").contains(says), "scripts/release: expected `{says}`");
}

/// What OpenWrt's own makefiles give the recipe of a package, as far as its installation asks for it.
const OPENWRT: [(&str, &str); 2] = [
    (
        "rules.mk",
        "INCLUDE_DIR := $(TOPDIR)
INSTALL_DIR := install -d -m0755
INSTALL_BIN := install -m0755
INSTALL_DATA := install -m0644
INSTALL_CONF := install -m0600
",
    ),
    (
        "package.mk",
        "define BuildPackage
install:
\t$(call Package/$(1)/install,$(ROOT))
endef
",
    ),
];

#[test]
fn the_package_of_openwrt_installs_the_command_its_service_and_the_licences() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, text) in OPENWRT {
        std::fs::write(at(name), text).unwrap();
    }
    // What it takes of a router's tarball.
    let unpacked = at("narrows-router");
    for name in ["bin/narrows", "LICENSE.md", "LICENSES/MIT.txt", "third-party.txt"] {
        let file = unpacked.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, name).unwrap();
    }
    let variable = |name: &str, path: &Path| format!("{name}={}", path.display());
    let output = Command::new("make")
        .args(["--no-print-directory", "install"])
        .arg(variable("TOPDIR", folder.path()))
        .arg(variable("PKG_BUILD_DIR", &unpacked))
        .arg(variable("ROOT", &at("root")))
        // That of a `make` that runs this test is not for this one.
        .env_remove("MAKEFLAGS")
        .current_dir(root().join("packaging/openwrt"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut installed = Vec::new();
    let mut folders = vec![at("root")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let executable = std::fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0;
            let name = path.strip_prefix(at("root")).unwrap().display().to_string();
            installed.push((name, executable));
        }
    }
    installed.sort();
    let expected = [
        ("etc/config/narrows", false),
        ("etc/hotplug.d/iface/99-narrows", false),
        ("etc/init.d/narrows", true),
        ("usr/bin/narrows", true),
        ("usr/share/doc/narrows/LICENSE.md", false),
        ("usr/share/doc/narrows/LICENSES/MIT.txt", false),
        ("usr/share/doc/narrows/third-party.txt.gz", false),
    ];
    assert_eq!(installed, expected.map(|(name, executable)| (name.to_owned(), executable)));
}

#[test]
fn whatever_has_the_command_in_it_has_the_licences() {
    for (file, says) in [
        ("packaging/Containerfile", "COPY licences "),
        ("packaging/openwrt/Makefile", "$(PKG_BUILD_DIR)/third-party.txt"),
        ("crates/cli/Cargo.toml", "packaging/parts/third-party.txt"),
        ("crates/python/pyproject.toml", "third-party.txt"),
        ("scripts/release", "/licences/."),
        ("scripts/static", "scripts/third-party narrows "),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(says), "{file}: expected `{says}`");
    }
}
