//! `narrows merge`: the results of one comparison in several folders, each with seeds of its own, as one
//! comparison over all of them writes them.

use std::collections::HashMap;
use std::path::Path;

use clap::Parser;
use narrows_lab::page::PageFile;
use narrows_lab::{Comparison, Journal, Output, Provenance, Seeds};

use crate::args::lab::MergeArgs;
use crate::args::{Args, Command};
use crate::compare::{Inputs, Results, finished_in, plan_of, stem};
use crate::error::Error;
use crate::print;

/// Results of a comparison.
struct Part<'a> {
    folder: &'a Path,
    provenance: Provenance,
    comparison: Comparison,
}

impl Part<'_> {
    fn of(folder: &Path) -> Result<Part<'_>, Error> {
        let wrong = |message: &str| Error::input(folder.display().to_string(), message);
        if Journal::is_in(folder) {
            return Err(wrong("the comparison is not finished; --resume continues it"));
        }
        let provenance = Provenance::read(folder);
        let compared = provenance.and_then(|of| Some((of.comparison()?.clone(), of)));
        let (comparison, provenance) = compared.ok_or_else(|| {
            wrong("expected the --out folder of a finished `narrows compare` of this version")
        })?;
        Ok(Part { folder, provenance, comparison })
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Error {
        Error::input(self.folder.display().to_string(), message)
    }
}

/// Merges the folders.
pub fn merge(args: &MergeArgs) -> Result<(), Error> {
    let parts = args.folders.iter().map(|folder| Part::of(folder));
    let mut parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
    parts.sort_by_key(|part| part.comparison.seeds.first());
    // A part that was made twice is the same, but in real time.
    parts.dedup_by(|part, before| {
        let differs = part.provenance.differs(&before.provenance).is_some();
        part.comparison.seeds == before.comparison.seeds && !differs && !part.provenance.real_time()
    });
    // Then they differ in it no more; the same seeds twice still do not follow each other.
    let builds =
        args.any_build.then(|| Comparison::builds(parts.iter().map(|part| &part.comparison)));
    let by = |provenance: Provenance| match &builds {
        Some(builds) => provenance.by(builds),
        None => provenance,
    };
    for part in &mut parts {
        part.provenance = by(part.provenance.clone());
    }
    let first = &parts[0];
    let mut seeds = first.comparison.seeds;
    for (before, part) in parts.iter().zip(&parts[1..]) {
        if let Some(what) = first.provenance.differs(&part.provenance) {
            let folder = first.folder.display();
            return Err(part.wrong(format!("cannot be merged with {folder}: {what}")));
        }
        let (last, next) = (before.comparison.seeds, part.comparison.seeds);
        seeds = seeds.with(next).ok_or_else(|| {
            let folder = before.folder.display();
            part.wrong(format!("holds seeds {next}, which do not follow {last} of {folder}"))
        })?;
    }
    let command = again(first.provenance.command(), seeds, &args.out);
    let Ok(Args { command: Command::Compare(compared) }) = Args::try_parse_from(&command) else {
        return Err(first.wrong("its command cannot be read again"));
    };
    let inputs = Inputs::of(&compared)?;
    let plan = plan_of(&inputs, &compared)?;
    let provenance = by(inputs.provenance(&plan, &command)?.like(&first.provenance));
    if let Some(what) = provenance.differs(&first.provenance) {
        return Err(first.wrong(format!("cannot be made again here: {what}")));
    }
    let mut output = Output::of(&args.out, &provenance)?;
    let page = args.report.as_deref().map(PageFile::new).transpose()?;
    let plots = args.plots.as_deref().map(|to| Output::of(to, &provenance)).transpose()?;
    let mut finished = HashMap::new();
    for part in &parts {
        let runs = finished_in(part.folder, &plan, part.comparison.seeds)?;
        finished.extend(runs.into_iter().map(|run| (run.task(), (run, part))));
    }
    let mut all = Vec::new();
    for task in plan.tasks() {
        let stem = stem(&plan, &task);
        let Some((run, Part { folder, provenance, .. })) = finished.remove(&task) else {
            let message = format!("no folder has {stem}.json with its series");
            return Err(Error::input("merge", message));
        };
        let series = plan.series.keeps(task.seed, plan.seeds);
        for name in [".json", ".decisions.csv", ".csv"].map(|end| format!("{stem}{end}")) {
            let from = folder.join(&name);
            if from.exists() && (series || !name.ends_with(&format!("-{}.csv", task.seed))) {
                let bytes = std::fs::read(&from).map_err(narrows_lab::Error::io(&from, "read"))?;
                provenance.check_file(folder, &name, &bytes)?;
                output.write(&name, |to| to.write_all(&bytes))?;
            }
        }
        all.push(run);
    }
    let results = Results::of(&plan, &all)?;
    let files = results.pages(&plan, &all, &provenance, page.zip(args.report.as_deref()), plots)?;
    results.write(&mut output)?;
    output.commit()?;
    print(&(results.report + &files))
}

/// Options of which each part has its own.
const OF_PARTS: [&str; 5] = ["--seeds", "--shard", "--out", "--report", "--plots"];

/// The command of a comparison with other seeds and another folder.
fn again(command: &[String], seeds: Seeds, out: &Path) -> Vec<String> {
    let mut words = command.iter();
    let mut again = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            word if OF_PARTS.contains(&word) => drop(words.next()),
            "--resume" => {}
            word if word.split_once('=').is_some_and(|(option, _)| OF_PARTS.contains(&option)) => {}
            _ => again.push(word.clone()),
        }
    }
    again.extend([format!("--seeds={seeds}"), format!("--out={}", out.display())]);
    again
}
