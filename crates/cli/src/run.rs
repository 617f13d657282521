//! `narrows run`.

use std::fmt::Write as _;

use indicatif::{ProgressBar, ProgressStyle};
use narrows_lab::units::show_time;
use narrows_lab::{
    App, Asked, CaptureRequest, HostId, Job, Output, Provenance, Run, Scenario, Setup, Summary,
    describe, detection, json, load, page, parts, run as run_on, series, sha256, summary_table,
};

#[cfg(feature = "parquet")]
use narrows_lab::tables;

use crate::args::lab::{RunArgs, Series, hosts};
use crate::error::Error;
use crate::live::{OfRun, shown};
use crate::pages::written;
use crate::size::Size;
use crate::terminal::{Screen, show};
use crate::{COMMIT, print, stop, words};

/// Runs one scenario once.
pub(crate) fn run(args: &RunArgs) -> Result<(), Error> {
    let host = hosts(std::slice::from_ref(&args.on))?[0];
    if cfg!(not(feature = "parquet")) && args.series == Series::Parquet {
        let message =
            "this command was built without; expected csv, or a build with --features parquet";
        return Err(Error::input("--series parquet", message));
    }
    if args.live {
        Screen::check()?;
    }
    args.edit.load_law()?;
    let scenario = load(&args.scenario, &args.edit.edits()?)?;
    let asked = Asked::of(scenario, args.cc.as_deref(), args.signal.as_deref())?;
    let Asked { mut scenario, control, under_test } = asked;
    let app = args.app.clone().map(|client| App { client, server: args.serve.clone() });
    for (option, program) in [("app", &args.app), ("serve", &args.serve)] {
        scenario.settings.extend(program.clone().map(|program| (option.into(), program)));
    }
    // Before the folders are created, which Ctrl-C removes again.
    let stop = stop::on_signal()?;
    let series = args.live || args.out.is_some() || args.report.is_some() || args.plots.is_some();
    let seed = args.seed;
    if args.threads.is_some() && host.id() != HostId::SIM {
        let message = "only the simulator runs on several; expected --on sim";
        return Err(Error::input("--threads", message));
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, usize::from);
    let app = app.as_ref();
    let mut job = Job { control, seed, series, app, threads, ..Job::new(&scenario, &stop) };
    host.check(&job)?;
    if args.dry_run {
        let mut text = describe(&scenario, host, control);
        if host.id() == HostId::SIM {
            let parts = match parts(&job)? {
                Some((parts, ahead)) => {
                    let (threads, ahead) = (threads.min(parts), show_time(ahead));
                    format!(
                        "on {threads} threads, in {parts} parts that wait for each other every {ahead}"
                    )
                }
                None => "on one thread".into(),
            };
            let _ = writeln!(text, "{parts}");
        }
        return print(&text);
    }
    warn(&scenario);
    Size::of([&scenario], &[host], 1, 1).check(args.force)?;
    let setup = Setup::of(&scenario, control.as_slice());
    let results = sha256(&(&setup, under_test, host.id(), seed));
    let provenance = Provenance::new("run", results, host.real_time(), COMMIT, words());
    let of = |folder| Output::of(folder, &provenance);
    let output = args.out.as_deref().map(of).transpose()?;
    let mut pcap = args.pcap.as_deref().map(of).transpose()?;
    let report = args.report.as_deref().map(page::PageFile::new).transpose()?;
    let plots = args.plots.as_deref().map(of).transpose()?;
    let request = |output| CaptureRequest { names: &args.capture, snaplen: args.snaplen, output };
    job.capture = pcap.as_mut().map(request);
    let result = if args.live {
        let cc = scenario.test.and_then(|test| scenario.algorithm(test, control));
        let cc = cc.map_or("-".into(), |cc| cc.to_string());
        let title = format!("{} under {cc} on {}, seed {seed}", scenario.name, host.id());
        let view = OfRun::new(title, &scenario, host.real_time());
        shown(&view, &stop, || run_on(host, Job { live: Some(&view), ..job }))?
    } else {
        let bar = progress(host.seconds(&scenario));
        let result = run_on(host, job);
        bar.finish_and_clear();
        result
    };
    let result = result?;
    let result = Run { summary: Summary { setup: Some(setup), ..result.summary }, ..result };
    for note in &result.notes {
        crate::note(note);
    }
    let json = json(&result.summary);
    let mut text = if args.json { json.clone() } else { summary_table(&scenario, &result.summary) };
    if let Some(mut output) = output {
        output.write("summary.json", |to| to.write_all(json.as_bytes()))?;
        let mut names = vec!["summary.json", write_series(&mut output, args.series, &result)?];
        if !result.decisions.is_empty() {
            let decisions = &result.decisions;
            output.write("decisions.csv", |to| detection::write_csv(decisions, to))?;
            names.push("decisions.csv");
        }
        if !args.json {
            let folder = output.target().display();
            names.push("provenance.json");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nFiles in {folder}: {}", names.join(", "));
        }
        output.commit()?;
    }
    if report.is_some() || plots.is_some() {
        let page = page::run(&provenance, &scenario, &result);
        let said = written(report.zip(args.report.as_deref()), plots, &page)?;
        if !args.json {
            text += &said;
        }
    }
    if let Some(pcap) = pcap {
        if !args.json {
            let folder = pcap.target().display();
            let _ = writeln!(text, "\nCaptures in {folder}: {}", pcap.created().join(", "));
        }
        pcap.commit()?;
    }
    print(&text)
}

/// Writes the series of a run, and returns the file's name.
fn write_series(
    output: &mut Output,
    format: Series,
    run: &Run,
) -> Result<&'static str, narrows_lab::Error> {
    match format {
        Series::Csv => {
            output.write("series.csv", |to| series::write_csv(&run.series, to))?;
            Ok("series.csv")
        }
        #[cfg(not(feature = "parquet"))]
        Series::Parquet => unreachable!("refused before the run"),
        #[cfg(feature = "parquet")]
        Series::Parquet => {
            let mut bytes = Vec::new();
            let table = tables::series(&run.series)?;
            let written = tables::write_parquet(&table, &mut bytes);
            output.write("series.parquet", |to| written.and_then(|()| to.write_all(&bytes)))?;
            Ok("series.parquet")
        }
    }
}

/// Says what is most likely not meant, on standard error.
pub(crate) fn warn(scenario: &Scenario) {
    for warning in scenario.warnings() {
        // Nothing to report to if standard error is closed.
        crate::note(&format!("narrows: {}: {warning}", scenario.name));
    }
}

/// The time that a run takes and may take, on standard error and only if that is a terminal; of a short
/// run nothing.
fn progress(estimate_s: f64) -> ProgressBar {
    if estimate_s < 2.0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    show(&bar, &format!("{estimate_s:.0} s"));
    let style = ProgressStyle::with_template("{spinner} {elapsed} of at most about {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}
