//! `narrows evaluate`: what RFC 9743 asks of a congestion control, run and judged.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use narrows_evaluate::rule::LEAST_SEEDS;
use narrows_evaluate::{
    CATALOGUE, Criterion, Law, OnHost, Outcome, PAGE, Tables, catalogue, ignored, listed, of_law,
    page as page_of, seeds_of, select, selection, shown,
};
use narrows_lab::page::{self, Fact, PageFile};
use narrows_lab::{Host, HostId, Output, Provenance, json, sha256};
use narrows_laws::user;
use narrows_papers::{Form, Grid, Runs, Store};

use crate::args::evaluate::EvaluateArgs;
use crate::args::lab::{hosts, jobs_on, load_law};
use crate::error::Error;
use crate::papers::{alone, read_page, rewrite, stamped, with_table};
use crate::progress::Tables as Shown;
use crate::{COMMIT, print, stop, words};

/// A law with its outcomes, as `--json` prints it.
#[derive(serde::Serialize)]
struct Made<'a> {
    law: &'a str,
    couples: bool,
    /// The standard of whose kind it is: its cells have what it loses against one flow of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard: Option<&'a str>,
    /// By so many paths at most, if not by all.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<usize>,
    version: &'a str,
    commit: Option<&'a str>,
    quick: bool,
    seeds: u64,
    host: HostId,
    criteria: &'a [Outcome],
}

/// Runs the criteria for each law, and prints or writes what was found.
pub fn evaluate(args: &EvaluateArgs) -> Result<(), Error> {
    if args.laws.iter().any(|law| law == "list") {
        alone(&args.laws)?;
        return list(args);
    }
    load_law(args.law.as_deref())?;
    let criteria = select(&args.only)?;
    let paths = args.paths.map(usize::from);
    let law = |name: &String| Law::new(name).map(|law| law.with_paths(paths));
    let laws = args.laws.iter().map(law).collect::<Result<Vec<_>, _>>()?;
    unused(args, &laws)?;
    if let Some((at, law)) = laws
        .iter()
        .enumerate()
        .find(|(at, law)| laws[..*at].iter().any(|one| one.control() == law.control()))
    {
        return Err(Error::input(&args.laws[at], format!("{} is named twice", law.control())));
    }
    let hosts = hosts(&args.on)?;
    let other = hosts.iter().find(|host| host.id() != HostId::SIM);
    if let Some(other) = other.filter(|_| args.docs.is_some()) {
        let message = "the page has the simulator's tables; expected no --docs with it";
        return Err(Error::input(format!("--on {}", other.id()), message));
    }
    // Before hours of runs.
    if let Some(docs) = &args.docs {
        page_text(docs, &Tables::of(&[]))?;
    }
    let file = args.report.as_deref().map(PageFile::new).transpose()?;
    let stop = stop::on_signal()?;
    let real_time = hosts.iter().any(|host| host.real_time());
    let provenance = Provenance::new("evaluate", String::new(), real_time, COMMIT, words());
    let store = args.out.as_deref().map(|out| Store::open(out, args.resume)).transpose()?;
    if let Some(few) = args.seeds.filter(|seeds| *seeds < LEAST_SEEDS as u64) {
        crate::note(&format!(
            "narrows: --seeds {few}: from fewer than {LEAST_SEEDS} every verdict on runs is `cannot be told`, unless the law ends one"
        ));
    }
    // First what this machine may be unable to run, as it tells that at once.
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_key(|at| !hosts[*at].real_time());
    let mut found = Vec::new();
    for at in order {
        let laws = on_host(hosts[at], &laws, &criteria, args, store.as_ref(), &stop)?;
        found.push((at, OnHost { host: hosts[at].id(), laws }));
    }
    found.sort_by_key(|(at, _)| *at);
    let found: Vec<OnHost> = found.into_iter().map(|(_, on)| on).collect();
    let all = || found.iter().flat_map(|on| on.laws.iter().map(move |of| (on.host, of)));
    let made: Vec<Made> =
        all().map(|(host, (law, criteria))| made(args, host, law, criteria)).collect();
    if let Some(store) = &store {
        let mut output = Output::new(store.folder())?;
        for (made, (host, (law, outcomes))) in made.iter().zip(all()) {
            let name = format!("{}{}", law.control(), suffix(args, &criteria, host));
            let table = of_law(outcomes).markdown();
            output.write(&format!("{name}.md"), |to| to.write_all(table.as_bytes()))?;
            output.write(&format!("{name}.json"), |to| to.write_all(json(made).as_bytes()))?;
        }
        output.commit()?;
    }
    if let Some(docs) = &args.docs {
        // As it is now: somebody may have written in it meanwhile.
        let (before, after) = page_text(docs, &Tables::of(&found[0].laws))?;
        if before != after {
            rewrite(docs, PAGE, &stamped(&after, &provenance, &IN_PAGE))?;
        }
    }
    if let Some(file) = file {
        let facts = facts(args, &found, &provenance);
        file.write(&page_of(&found, provenance.command_line(), facts))?;
    }
    print(&if args.json { json(&made) } else { shown(&found) })
}

/// Runs the criteria for each law on a host: criterion by criterion, as laws share the runs of the standards.
fn on_host(
    host: &'static dyn Host,
    laws: &[Law],
    criteria: &[&Criterion],
    args: &EvaluateArgs,
    store: Option<&Store>,
    stop: &AtomicBool,
) -> Result<Vec<(Law, Vec<Outcome>)>, Error> {
    let jobs = jobs_on(host, args.jobs);
    let progress = Shown::new(jobs);
    let told = |told| progress.told(told);
    let runs = Runs::new(form(args), args.seeds, store, jobs, stop, &told)?.on(host);
    let on = host.id().suffix();
    let mut found: Vec<(Law, Vec<Outcome>)> =
        laws.iter().map(|law| (law.clone(), Vec::new())).collect();
    for (at, criterion) in criteria.iter().enumerate() {
        for (law, outcomes) in &mut found {
            let (control, id, all) = (law.control(), criterion.id(), criteria.len());
            progress.of(format!("{control} of {id}{on} ({} of {all})", at + 1));
            let outcome = criterion.evaluate(law, &runs)?;
            if let Some(line) = outcome.internal_error() {
                let verdict = outcome.verdict;
                progress.note(&format!("narrows: {control}, {id}{on}: {verdict}: {line}"));
            }
            outcomes.push(outcome);
        }
        runs.forget();
    }
    progress.end();
    Ok(found)
}

fn form(args: &EvaluateArgs) -> Form {
    if args.quick { Form::Quick } else { Form::Whole }
}

/// A law that is loaded and not evaluated is a mistake.
fn unused(args: &EvaluateArgs, laws: &[Law]) -> Result<(), Error> {
    let (Some(file), Some(loaded)) = (&args.law, user::loaded()) else { return Ok(()) };
    let is = |law: &Law| law.control().split('+').next() == Some(loaded.name());
    if laws.iter().any(is) {
        return Ok(());
    }
    let message = format!("its law is not evaluated; expected {} among the names", loaded.name());
    Err(Error::input(file.display(), message))
}

/// What tells the tables of a call from those of others into the same folder, the same for the same selection:
/// `-quick-5.1.2+7.10-seeds-20-on-quic`.
fn suffix(args: &EvaluateArgs, criteria: &[&Criterion], host: HostId) -> String {
    /// A file's name may have 255 bytes.
    const LONGEST: usize = 100;
    let only = match selection(criteria).join("+").replace('/', "-") {
        long if long.len() > LONGEST => format!("some-{}", &sha256(&long)[..12]),
        only => only,
    };
    let seeds = args.seeds.filter(|seeds| *seeds != seeds_of(form(args)));
    let parts = [
        args.quick.then(|| "quick".to_owned()),
        Some(only).filter(|only| !only.is_empty()),
        args.paths.map(|paths| format!("paths-{paths}")),
        seeds.map(|seeds| format!("seeds-{seeds}")),
    ];
    let parts: String = parts.into_iter().flatten().map(|part| format!("-{part}")).collect();
    parts + &host.suffix().replace(' ', "-")
}

/// Prints the criteria.
fn list(args: &EvaluateArgs) -> Result<(), Error> {
    let of_runs = [
        (args.law.is_some(), "--law"),
        (args.quick, "--quick"),
        (args.paths.is_some(), "--paths"),
        (args.seeds.is_some(), "--seeds"),
        (args.on.iter().any(|on| on != HostId::SIM.as_str()), "--on"),
        (args.jobs > 0, "--jobs"),
        (args.out.is_some(), "--out"),
        (args.report.is_some(), "--report"),
        (args.docs.is_some(), "--docs"),
    ];
    if let Some((_, option)) = of_runs.into_iter().find(|(given, _)| *given) {
        let message = "list runs nothing; expected only --only or --json with it";
        return Err(Error::input(option, message));
    }
    let criteria = select(&args.only)?;
    print(&if args.json { json(&catalogue(criteria)) } else { listed(criteria) })
}

fn made<'a>(args: &EvaluateArgs, host: HostId, law: &'a Law, criteria: &'a [Outcome]) -> Made<'a> {
    Made {
        law: law.control(),
        couples: law.couples(),
        standard: law.standard(),
        paths: law.most_paths(),
        version: env!("CARGO_PKG_VERSION"),
        commit: COMMIT,
        quick: args.quick,
        seeds: args.seeds.unwrap_or_else(|| seeds_of(form(args))),
        host,
        criteria,
    }
}

/// What made the verdicts, as their page tells it.
fn facts(args: &EvaluateArgs, found: &[OnHost], provenance: &Provenance) -> Vec<Fact> {
    let form = if args.quick {
        "quick: five seeds, a part of the networks"
    } else {
        "whole: twenty seeds"
    };
    let seeds = args.seeds.map(|seeds| ("seeds", seeds.to_string()));
    let paths = args.paths.map(|paths| ("paths of the law, at most", paths.to_string()));
    let hosts: Vec<&str> = found.iter().map(|on| on.host.as_str()).collect();
    let others = found.iter().map(|on| ignored(on.host).trim_end()).find(|line| !line.is_empty());
    let on = others.map(|line| ("hosts", format!("{}; {line}", hosts.join(", "))));
    let all = [("form", form.to_owned())].into_iter().chain(seeds).chain(paths).chain(on);
    page::facts(provenance, all.collect())
}

/// The tables of the page.
const IN_PAGE: [&str; 4] = ["criteria", "bcp133", "bcp133-short", "bcp133-own"];

/// The text of the page, and the text with the tables.
fn page_text(docs: &Path, tables: &Tables) -> Result<(String, String), Error> {
    let text = read_page(docs, PAGE)?;
    let grids: [&Grid; 4] = [&catalogue(CATALOGUE), &tables.verdicts, &tables.short, &tables.own];
    let after = IN_PAGE
        .into_iter()
        .zip(grids)
        .try_fold(text.clone(), |text, (name, grid)| with_table(docs, PAGE, &text, name, grid))?;
    Ok((text, after))
}
