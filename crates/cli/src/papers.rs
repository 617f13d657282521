//! `narrows papers`: published figures beside ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use narrows_lab::page::{self, Fact, PageFile};
use narrows_lab::{Error as LabError, HostId, Output, Provenance, fold, json};
use narrows_papers::grid::replaced;
use narrows_papers::{
    ADAPTIVE, Form, Grid, Made as Outcome, PAPERS, Paper, Runs, Stamp, Store, Table, Verdict,
    page as page_of, plots as plots_of, select,
};

use crate::args::lab::{hosts, jobs_on};
use crate::args::papers::PapersArgs;
use crate::error::Error;
use crate::pages::written;
use crate::progress::Tables;
use crate::{COMMIT, print, stop, words};

/// A table that was made, as `--json` prints it.
#[derive(serde::Serialize)]
struct Made<'a> {
    paper: &'a str,
    table: &'a str,
    about: &'a str,
    version: &'a str,
    commit: Option<&'a str>,
    quick: bool,
    seeds: Option<u64>,
    host: HostId,
    #[serde(flatten)]
    grid: Grid,
}

impl Made<'_> {
    /// What its files are named after.
    fn name(&self) -> String {
        format!("{}/{}{}", self.paper, self.table, self.host.suffix().replace(' ', "-"))
    }
}

/// Makes the tables that are named, and prints or writes them.
pub fn papers(args: &PapersArgs) -> Result<(), Error> {
    if args.names.iter().any(|name| name == "list") {
        alone(&args.names)?;
        let made = [
            (args.report.is_some(), "--report"),
            (args.plots.is_some(), "--plots"),
            (args.docs.is_some(), "--docs"),
            (args.quick, "--quick"),
            (args.seeds.is_some(), "--seeds"),
        ];
        if let Some((_, option)) = made.into_iter().find(|(given, _)| *given) {
            return Err(Error::input(
                option,
                "list makes no tables; expected only --out or --json with it",
            ));
        }
        if let Some(folder) = args.out.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(Error::input(folder.display(), "expected a folder of results"));
        }
        let listed = listed(args.out.as_deref());
        return print(&if args.json { json(&listed) } else { list(&listed) });
    }
    let chosen = select(&args.names)?;
    let part =
        [(args.quick, "--quick"), (args.adaptive, "--adaptive"), (args.seeds.is_some(), "--seeds")];
    let part = part.into_iter().find_map(|(given, option)| given.then_some(option));
    if let (Some(option), true) = (part, args.docs.is_some()) {
        let message = "pages have the tables as a whole; expected no --docs with it";
        return Err(Error::input(option, message));
    }
    let stops = |(paper, table): &(&Paper, &Table)| (paper.name, table.name) == ADAPTIVE;
    if args.adaptive && !chosen.iter().any(stops) {
        let (paper, table) = ADAPTIVE;
        let message =
            format!("none of these stops before all seeds; expected {paper}/{table} among them");
        return Err(Error::input("--adaptive", message));
    }
    if args.adaptive && args.seeds.is_some_and(|seeds| seeds < 10) {
        let message = "with --adaptive 10 at least, as nothing is settled before five";
        return Err(Error::input("--seeds", message));
    }
    let host = hosts(std::slice::from_ref(&args.on))?[0];
    if host.id() != HostId::SIM && args.docs.is_some() {
        let message = "pages have the simulator's tables; expected no --docs with it";
        return Err(Error::input(format!("--on {}", host.id()), message));
    }
    // Before hours of runs.
    if let Some(docs) = &args.docs {
        chosen.iter().try_for_each(|(paper, table)| {
            let page = read_page(docs, paper.document)?;
            with_table(docs, paper.document, &page, table.name, &Grid::default()).map(drop)
        })?;
    }
    let file = args.report.as_deref().map(PageFile::new).transpose()?;
    let stop = stop::on_signal()?;
    let provenance = Provenance::new("papers", String::new(), host.real_time(), COMMIT, words());
    let store = args.out.as_deref().map(|out| Store::open(out, args.resume)).transpose()?;
    // Behind it, as they may be in its folder.
    let plots = args.plots.as_deref().map(|to| Output::of(to, &provenance)).transpose()?;
    let jobs = jobs_on(host, args.jobs);
    let progress = Tables::new(jobs);
    let told = |told| progress.told(told);
    let form = if args.quick { Form::Quick } else { Form::Whole };
    let runs = Runs::new(form, args.seeds, store.as_ref(), jobs, &stop, &told)?.on(host);
    let runs = if args.adaptive { runs.adaptive() } else { runs };
    let (mut made, mut differ, mut left_out) = (Vec::new(), Vec::new(), String::new());
    let mut shown_tables = Vec::new();
    for (at, (paper, table)) in chosen.iter().enumerate() {
        if at > 0 && chosen[at - 1].0.name != paper.name {
            runs.forget();
        }
        let place = format!("{}/{} ({} of {})", paper.name, table.name, at + 1, chosen.len());
        progress.of(place);
        match table.made(&runs)? {
            Outcome::LeftOut(why) => {
                let _ = writeln!(left_out, "  {}/{}: {why}", paper.name, table.name);
            }
            Outcome::Grid(grid) => {
                let one = Made {
                    paper: paper.name,
                    table: table.name,
                    about: table.about,
                    version: env!("CARGO_PKG_VERSION"),
                    commit: COMMIT,
                    quick: args.quick,
                    seeds: args.seeds,
                    host: host.id(),
                    grid,
                };
                if let Some(store) = &store {
                    write(store.folder(), &one)?;
                }
                shown_tables.push((*paper, *table));
                made.push(one);
            }
        }
        // A page is written once, with all its tables, so that what it says of them is true.
        let next = chosen.get(at + 1).map(|(of, _)| of.document);
        if let Some(docs) = args.docs.as_ref().filter(|_| next != Some(paper.document)) {
            let all = shown_tables.iter().zip(&made);
            let of_page: Vec<_> =
                all.filter(|((of, _), _)| of.document == paper.document).collect();
            let before = read_page(docs, paper.document)?;
            let mut text = before.clone();
            for ((of, table), one) in &of_page {
                let with = with_table(docs, of.document, &text, table.name, &one.grid)?;
                if args.check && with != text {
                    differ.push(format!("{}/{}", one.paper, one.table));
                }
                text = with;
            }
            if !args.check && text != before {
                let tables: Vec<&str> = of_page.iter().map(|((_, table), _)| table.name).collect();
                rewrite(docs, paper.document, &stamped(&text, &provenance, &tables))?;
            }
        }
    }
    progress.end();
    let tables: Vec<_> =
        shown_tables.iter().zip(&made).map(|((of, table), one)| (*of, *table, &one.grid)).collect();
    if made.is_empty() {
        let why = left_out.lines().next().unwrap_or_default().trim();
        let (place, all) = match host.id() {
            HostId::SIM => (args.names.join(" "), "none can run in this build"),
            host => (format!("--on {host}"), "none can run there"),
        };
        return Err(Error::input(place, format!("{all}; {why}")));
    }
    if let Some(file) = file {
        let facts = facts(args, &provenance);
        file.write(&page_of(&tables, provenance.command_line(), facts))?;
    }
    let said = written(None, plots, &plots_of(&tables))?;
    let (count, all) = (chosen.len() - made.len(), chosen.len());
    if count > 0 {
        let on = match host.id() {
            HostId::SIM => "this build".into(),
            host => host.to_string(),
        };
        let head = format!("Left out, as {on} cannot run them ({count} of {all}):\n");
        left_out = head + &left_out;
        // Beside JSON, which has what was made.
        if args.json {
            crate::note(left_out.trim_end());
        }
    }
    print(&if args.json { json(&made) } else { shown(&made) + &left_out + &said })?;
    if differ.is_empty() {
        return Ok(());
    }
    let message = format!("not as made now: {}", differ.join(", "));
    Err(Error::no(args.docs.as_deref().unwrap_or(Path::new("docs")).display(), message))
}

/// `list` is a word of its own.
pub fn alone(words: &[String]) -> Result<(), Error> {
    match words {
        [_] => Ok(()),
        _ => Err(Error::input("list", "has all there are; expected no other name with it")),
    }
}

/// What made the tables, as their page tells it.
fn facts(args: &PapersArgs, provenance: &Provenance) -> Vec<Fact> {
    let form = match (args.quick, args.adaptive) {
        (true, _) => "quick: few seeds, a part of the networks",
        (_, true) => "whole; claims that are settled stop at fewer seeds",
        _ => "whole",
    };
    let seeds = args.seeds.map(|seeds| ("seeds", format!("{seeds}, where a table has several")));
    let on = (args.on.trim() != "sim").then(|| ("host", args.on.trim().to_owned()));
    let all = [("form", form.to_owned())].into_iter().chain(seeds).chain(on);
    page::facts(provenance, all.collect())
}

/// The text of the page `name` with a table in its place.
pub fn with_table(
    docs: &Path,
    name: &str,
    page: &str,
    table: &str,
    grid: &Grid,
) -> Result<String, Error> {
    replaced(page, table, grid).ok_or_else(|| {
        let message = format!("expected <!-- table {table} --> and <!-- end --> after it");
        Error::input(docs.join(name).display(), message)
    })
}

/// The text of a page.
pub fn read_page(docs: &Path, name: &str) -> Result<String, Error> {
    let path = docs.join(name);
    Ok(std::fs::read_to_string(&path).map_err(LabError::io(&path, "read"))?)
}

/// A page whose second line tells when this build made its tables, if it made all of them.
pub fn stamped(page: &str, provenance: &Provenance, tables: &[&str]) -> String {
    let Some(commit) = COMMIT else { return page.to_owned() };
    let commit = commit.get(..8).unwrap_or(commit);
    Stamp { day: &provenance.day(), version: env!("CARGO_PKG_VERSION"), commit }.on(page, tables)
}

/// Writes a page, whole or not at all.
pub fn rewrite(docs: &Path, name: &str, text: &str) -> Result<(), Error> {
    let mut output = Output::new(docs)?;
    output.write(name, |to| to.write_all(text.as_bytes()))?;
    Ok(output.commit()?)
}

/// `PAPER/TABLE.md` and `.json`, and the data of its figures.
fn write(folder: &Path, made: &Made) -> Result<(), Error> {
    let mut output = Output::new(folder)?;
    let (name, Made { paper, grid, .. }) = (made.name(), made);
    output.write(&format!("{name}.md"), |to| to.write_all(grid.markdown().as_bytes()))?;
    output.write(&format!("{name}.json"), |to| to.write_all(json(made).as_bytes()))?;
    let on = made.host.suffix().replace(' ', "-");
    for (file, text) in &grid.files {
        let (file, form) = file.rsplit_once('.').unwrap_or((file, "csv"));
        output.write(&format!("{paper}/{file}{on}.{form}"), |to| to.write_all(text.as_bytes()))?;
    }
    Ok(output.commit()?)
}

/// The tables in columns, and at the end how many verdicts of each kind there are.
fn shown(made: &[Made]) -> String {
    let mut text = String::new();
    for one in made {
        let Made { paper, table, about, grid, .. } = one;
        let _ =
            write!(text, "{paper}/{table}{}: {about}\n\n{}\n", one.host.suffix(), grid.columns());
    }
    let counts = counted(made.iter().flat_map(|one| one.grid.verdicts()));
    if !counts.is_empty() {
        let _ = writeln!(text, "Verdicts: {counts}");
    }
    text
}

/// How many there are of each verdict, in words.
fn counted(verdicts: impl Iterator<Item = Verdict>) -> String {
    let mut counts = BTreeMap::<Verdict, usize>::new();
    verdicts.for_each(|one| *counts.entry(one).or_default() += 1);
    let each = counts.iter().map(|(verdict, count)| format!("{count} {verdict}"));
    each.collect::<Vec<_>>().join(", ")
}

/// A paper of the list.
#[derive(serde::Serialize)]
struct Listed {
    paper: &'static str,
    title: &'static str,
    page: &'static str,
    tables: Vec<ListedTable>,
}

/// A table of the list.
#[derive(serde::Serialize)]
struct ListedTable {
    table: &'static str,
    about: &'static str,
    /// Where it stands in a folder of results; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

fn listed(folder: Option<&Path>) -> Vec<Listed> {
    let of = |paper: &'static Paper| Listed {
        paper: paper.name,
        title: paper.title,
        page: paper.document,
        tables: paper
            .tables
            .iter()
            .map(|table| ListedTable {
                table: table.name,
                about: table.about,
                state: folder.map(|folder| state(folder, paper, table)),
            })
            .collect(),
    };
    PAPERS.iter().map(of).collect()
}

/// Was a table made in a folder, and which verdicts has it?
fn state(folder: &Path, paper: &Paper, table: &Table) -> String {
    #[derive(serde::Deserialize)]
    struct Found {
        quick: bool,
        rows: Vec<Vec<serde_json::Value>>,
    }
    let file = folder.join(paper.name).join(format!("{}.json", table.name));
    let found =
        std::fs::read(file).ok().and_then(|text| serde_json::from_slice::<Found>(&text).ok());
    let Some(Found { quick, rows }) = found else { return "not made".into() };
    let verdict =
        |cell: &serde_json::Value| serde_json::from_value(cell.get("verdict")?.clone()).ok();
    let verdicts = counted(rows.iter().flatten().filter_map(verdict));
    let made = if quick { "made in the quick form" } else { "made" };
    if verdicts.is_empty() { made.into() } else { format!("{made}: {verdicts}") }
}

fn list(listed: &[Listed]) -> String {
    let mut text = String::new();
    for Listed { paper, title, page, tables } in listed {
        text.push_str(&fold(&format!("{paper}: {title} (docs/{page})"), 2));
        let width = tables.iter().map(|one| one.table.len()).max().unwrap_or(0);
        for ListedTable { table, about, state } in tables {
            let state = state.as_ref().map_or(String::new(), |state| format!("[{state}] "));
            let line = format!("  {paper}/{table:<width$}  {state}{about}");
            text.push_str(&fold(&line, paper.len() + width + 5));
        }
    }
    text
}
