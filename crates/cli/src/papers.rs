//! `narrows papers`: published figures beside ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use narrows_lab::{Error as LabError, Output};
use narrows_papers::grid::replaced;
use narrows_papers::{Form, Grid, PAPERS, Paper, Runs, Store, Table, Verdict, select};

use crate::args::papers::PapersArgs;
use crate::error::Error;
use crate::run::json;
use crate::{COMMIT, print, stop};

/// A table that was made.
#[derive(serde::Serialize)]
struct Made<'a> {
    paper: &'a str,
    table: &'a str,
    about: &'a str,
    #[serde(flatten)]
    grid: Grid,
}

/// All of them, as `--json` prints them.
#[derive(serde::Serialize)]
struct Tables<'a> {
    version: &'a str,
    commit: Option<&'a str>,
    quick: bool,
    seeds: Option<u64>,
    tables: &'a [Made<'a>],
}

/// Makes the tables that are named, and prints or writes them.
pub fn papers(args: &PapersArgs) -> Result<(), Error> {
    if args.names.iter().any(|name| name == "list") {
        return print(&if args.json { json(&listed()) } else { list() });
    }
    let chosen = select(&args.names)?;
    let part = if args.quick { Some("--quick") } else { args.seeds.map(|_| "--seeds") };
    if let (Some(option), true) = (part, args.docs.is_some()) {
        let message = "pages have the tables as a whole; expected no --docs with it";
        return Err(Error::input(option, message));
    }
    let pages = args.docs.as_deref().map(|docs| pages(docs, &chosen)).transpose()?;
    let stop = stop::on_signal()?;
    let store = args.out.as_deref().map(|out| Store::open(out, args.resume)).transpose()?;
    let (bar, count) = (progress(), AtomicU64::new(0));
    let ran = || bar.set_position(1 + count.fetch_add(1, Ordering::Relaxed));
    let form = if args.quick { Form::Quick } else { Form::Whole };
    let runs = Runs::new(form, args.seeds, store.as_ref(), args.jobs, &stop, &ran)?;
    let mut made = Vec::new();
    for (at, (paper, table)) in chosen.iter().enumerate() {
        if at > 0 && chosen[at - 1].0.name != paper.name {
            runs.forget();
        }
        bar.set_message(format!("{}/{} ({} of {})", paper.name, table.name, at + 1, chosen.len()));
        let grid = (table.make)(&runs).inspect_err(|_| bar.finish_and_clear())?;
        made.push(Made { paper: paper.name, table: table.name, about: table.about, grid });
    }
    bar.finish_and_clear();
    let tables = Tables {
        version: env!("CARGO_PKG_VERSION"),
        commit: COMMIT,
        quick: args.quick,
        seeds: args.seeds,
        tables: &made,
    };
    if let Some(store) = &store {
        write(store.folder(), &tables)?;
    }
    if let Some(mut pages) = pages {
        for one in &made {
            let paper =
                PAPERS.iter().find(|paper| paper.name == one.paper).expect("of the registry");
            let page = pages.get_mut(paper.document).expect("read before");
            page.1 = replaced(&page.1, one.table, &one.grid).expect("checked before");
        }
        let docs = args.docs.as_deref().expect("there are pages");
        rewrite(docs, &pages, args.check)?;
    }
    print(&if args.json { json(&tables) } else { shown(&made) })
}

/// A page as it is, and as it will be.
type Page = (String, String);

/// The pages of the tables, each of which has its marks there.
fn pages<'a>(
    docs: &Path,
    chosen: &[(&'a Paper, &Table)],
) -> Result<BTreeMap<&'a str, Page>, Error> {
    let mut pages = BTreeMap::<&str, Page>::new();
    for (paper, table) in chosen {
        let path = docs.join(paper.document);
        if !pages.contains_key(paper.document) {
            let text = std::fs::read_to_string(&path).map_err(LabError::io(&path, "read"))?;
            pages.insert(paper.document, (text.clone(), text));
        }
        if replaced(&pages[paper.document].0, table.name, &Grid::default()).is_none() {
            let message =
                format!("expected <!-- table {} --> and <!-- end --> after it", table.name);
            return Err(Error::input(path.display(), message));
        }
    }
    Ok(pages)
}

/// Writes the pages, or with `check` compares them.
fn rewrite(docs: &Path, pages: &BTreeMap<&str, Page>, check: bool) -> Result<(), Error> {
    let changed = pages.iter().filter(|(_, (before, after))| before != after);
    if check {
        let names: Vec<_> =
            changed.map(|(name, _)| docs.join(name).display().to_string()).collect();
        return if names.is_empty() {
            Ok(())
        } else {
            Err(Error::no(names.join(", "), "the tables made now are others"))
        };
    }
    let mut output = Output::new(docs)?;
    for (name, (_, after)) in changed {
        output.write(name, |to| to.write_all(after.as_bytes()))?;
    }
    Ok(output.commit()?)
}

/// `tables.md`, `tables.json` and the data of figures.
fn write(folder: &Path, tables: &Tables) -> Result<(), Error> {
    let mut output = Output::new(folder)?;
    let mut page = String::new();
    for Made { paper, table, about, grid } in tables.tables {
        let _ = write!(page, "## {paper}/{table}\n\n{about}\n\n{}\n", grid.markdown());
        for (name, text) in &grid.files {
            output.write(&format!("data/{paper}/{name}"), |to| to.write_all(text.as_bytes()))?;
        }
    }
    output.write("tables.md", |to| to.write_all(page.as_bytes()))?;
    output.write("tables.json", |to| to.write_all(json(tables).as_bytes()))?;
    Ok(output.commit()?)
}

/// The tables in columns, and at the end how many verdicts of each kind there are.
fn shown(made: &[Made]) -> String {
    let mut text = String::new();
    for Made { paper, table, about, grid } in made {
        let _ = write!(text, "{paper}/{table}: {about}\n\n{}\n", grid.columns());
    }
    let mut counts = BTreeMap::<Verdict, usize>::new();
    made.iter()
        .flat_map(|one| one.grid.verdicts())
        .for_each(|one| *counts.entry(one).or_default() += 1);
    if !counts.is_empty() {
        let each = counts.iter().map(|(verdict, count)| format!("{count} {verdict}"));
        let _ = writeln!(text, "Verdicts: {}", each.collect::<Vec<_>>().join(", "));
    }
    text
}

/// A paper of the list.
#[derive(serde::Serialize)]
struct Listed {
    paper: &'static str,
    title: &'static str,
    page: &'static str,
    tables: Vec<[&'static str; 2]>,
}

fn listed() -> Vec<Listed> {
    let of = |paper: &Paper| Listed {
        paper: paper.name,
        title: paper.title,
        page: paper.document,
        tables: paper.tables.iter().map(|table| [table.name, table.about]).collect(),
    };
    PAPERS.iter().map(of).collect()
}

fn list() -> String {
    let mut text = String::new();
    for Listed { paper, title, page, tables } in listed() {
        let _ = writeln!(text, "{paper}: {title} (docs/{page})");
        let width = tables.iter().map(|[name, _]| name.len()).max().unwrap_or(0);
        for [name, about] in tables {
            let _ = writeln!(text, "  {paper}/{name:<width$}  {about}");
        }
    }
    text
}

/// How many runs were done, on standard error and only if that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg}, {pos} runs, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}
