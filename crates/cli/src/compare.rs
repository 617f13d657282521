//! `narrows compare`.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressStyle};
use narrows_lab::{
    Case, Estimate, Finished, Journal, LEGEND, Output, Plan, Point, Row, Sweep, answer,
    compare as run_all, load, rows, series, table, write_csv,
};

use crate::args::lab::{CompareArgs, control};
use crate::error::Error;
use crate::run::json;
use crate::size::Size;
use crate::{print, stop};

/// The rows as `--json` shows them.
#[derive(serde::Serialize)]
struct Rows<'a> {
    rows: &'a [Row],
}

/// Most runs of a comparison: their summaries are kept until the end, about 10 kB each.
const MAX_RUNS: u64 = 200_000;

/// Runs all and shows the table.
pub fn compare(args: &CompareArgs) -> Result<(), Error> {
    let mut controls = Vec::new();
    for name in &args.cc {
        let control = control(name)?;
        if !controls.contains(&control) {
            controls.push(control);
        }
    }
    let cases = cases(args)?;
    for (index, case) in cases.iter().enumerate() {
        let same =
            |other: &Case| other.scenario.name == case.scenario.name && other.set == case.set;
        if cases[..index].iter().any(same) {
            let message = "two scenarios of this name; their results would be one";
            return Err(Error::input(&case.scenario.name, message));
        }
    }
    let runs = cases.len() as u64 * controls.len() as u64 * args.seeds;
    if runs > MAX_RUNS {
        let message = format!("{runs} runs are too many at once; expected at most {MAX_RUNS}");
        return Err(Error::input("compare", message));
    }
    let estimates = cases.iter().map(|case| Estimate::of(&case.scenario));
    Size::of(estimates, runs / cases.len() as u64, args.jobs).check(args.edit.force)?;
    let output = args.out.as_deref().map(Output::new).transpose()?;
    let plan = Plan {
        cases: &cases,
        controls: &controls,
        seeds: args.seeds,
        jobs: args.jobs,
        series: output.is_some(),
    };
    let journal = |output: &Output| Journal::open(output.target(), &plan, args.resume);
    let journal = output.as_ref().map(journal).transpose()?;
    let stop = stop::on_signal()?;
    let bar = progress(runs);
    let finished = run_all(plan, journal.as_ref(), &stop, &|| bar.inc(1));
    bar.finish_and_clear();
    let finished = finished.map_err(|error| match &journal {
        Some(journal) => journal.interrupted(error, runs),
        None => error,
    })?;
    let rows = rows(&cases, &finished);

    let as_json = json(&Rows { rows: &rows });
    let mut as_csv = Vec::new();
    write_csv(&rows, &mut as_csv).map_err(narrows_lab::Error::io("rows.csv".as_ref(), "write"))?;
    let report = format!("{}\n{}{LEGEND}\n", answer(&cases, &rows), table(&cases, &rows));
    let mut text = if args.json {
        as_json.clone()
    } else if args.csv {
        String::from_utf8_lossy(&as_csv).into_owned()
    } else {
        report.clone()
    };
    if let Some(mut output) = output {
        output.write("report.txt", |to| to.write_all(report.as_bytes()))?;
        output.write("rows.json", |to| to.write_all(as_json.as_bytes()))?;
        output.write("rows.csv", |to| to.write_all(&as_csv))?;
        for run in &finished {
            write_run(&mut output, &cases[run.case], run)?;
        }
        if !args.json && !args.csv {
            let folder = output.target().display();
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\nFiles in {folder}: report.txt (this), rows.csv and rows.json (the table in full),\n\
                 runs/SCENARIO/CC/seed-N.json (every run), seed-1.csv (its series every 100 ms)\n"
            );
        }
        output.commit()?;
        journal.map_or(Ok(()), Journal::remove)?;
    }
    if !args.json && !args.csv {
        text.push_str(&next_steps(args));
    }
    print(&text)
}

/// The scenarios, in a sweep once per value.
fn cases(args: &CompareArgs) -> Result<Vec<Case>, Error> {
    let edits = args.edit.edits()?;
    let sweep = args.sweep.as_deref().map(str::parse::<Sweep>).transpose();
    let sweep = sweep.map_err(|message| Error::input("--sweep", message))?;
    let mut cases = Vec::new();
    for name in &args.scenarios {
        match &sweep {
            None => cases.push(Case { scenario: load(name, &edits)?, set: None }),
            Some(Sweep { field, values }) => {
                for value in values {
                    let mut edits = edits.clone();
                    edits.set.push((field.clone(), value.clone()));
                    let set = Some(Point { field: field.clone(), value: value.clone() });
                    cases.push(Case { scenario: load(name, &edits)?, set });
                }
            }
        }
    }
    Ok(cases)
}

/// A progress bar with the time left, on standard error and only if that is a terminal.
fn progress(runs: u64) -> ProgressBar {
    let bar = ProgressBar::new(runs);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}

fn write_run(output: &mut Output, case: &Case, run: &Finished) -> Result<(), narrows_lab::Error> {
    let mut folder = format!("runs/{}", run.summary.scenario);
    if let Some(point) = &case.set {
        let value: String = point
            .value
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '.' { c } else { '_' })
            .collect();
        let _ = write!(folder, "/{}={value}", point.field);
    }
    let stem = format!("{folder}/{}/seed-{}", run.control, run.summary.seed);
    output.write(&format!("{stem}.json"), |to| to.write_all(json(&run.summary).as_bytes()))?;
    if run.series.is_empty() {
        return Ok(());
    }
    output.write(&format!("{stem}.csv"), |to| series::write_csv(&run.series, to))
}

/// Three commands to go on with.
fn next_steps(args: &CompareArgs) -> String {
    let narrows = std::env::args().next().unwrap_or_else(|| "narrows".into());
    let (scenario, cc) = (&args.scenarios[0], args.cc[args.cc.len() - 1].trim());
    format!(
        "\nNext:\n  \
         {narrows} run {scenario} --cc {cc} --out out/one    # one run and its series\n  \
         {narrows} compare sbd/nsb-5 sbd/sb-5 --cc reno,lia,olia,balia    # five paths\n  \
         {narrows} list    # all laws, detectors and scenarios\n"
    )
}
