//! `narrows compare`.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use narrows_lab::{
    Algorithm, Case, Finished, Host, HostId, Journal, Output, Plan, Point, Provenance, Row, Sweep,
    compare as run_all, detection, load, page, report, rows, series, write_csv,
};

use crate::args::lab::{CompareArgs, control, hosts, signals};
use crate::error::Error;
use crate::run::{json, warn};
use crate::size::{Size, seconds};
use crate::terminal::show;
use crate::{COMMIT, print, stop};

/// The rows as `--json` shows them.
#[derive(serde::Serialize)]
struct Rows<'a> {
    rows: &'a [Row],
}

/// Most runs of a comparison: their summaries are kept until the end, about 10 kB each.
const MAX_RUNS: u64 = 200_000;

/// Runs all and shows the table.
pub fn compare(args: &CompareArgs) -> Result<(), Error> {
    let hosts = hosts(&args.on)?;
    args.edit.load_law()?;
    let controls = controls(args)?;
    let signals = signals(&args.signal, &controls)?;
    let cases = cases(args)?;
    for case in &cases {
        case.scenario.check_law_settings(&controls)?;
    }
    let ids: Vec<HostId> = hosts.iter().map(|host| host.id()).collect();
    let plan = Plan {
        cases: &cases,
        controls: &controls,
        signals: &signals,
        hosts: &ids,
        seeds: args.seeds,
        jobs: args.jobs,
        series: args.out.is_some(),
    };
    let rows_each: usize = controls.iter().map(|&control| plan.signals_of(control).count()).sum();
    let times = rows_each as u64 * args.seeds.count();
    let runs = cases.len() as u64 * hosts.len() as u64 * times;
    if runs > MAX_RUNS {
        let message = format!("{runs} runs are too many at once; expected at most {MAX_RUNS}");
        return Err(Error::input("compare", message));
    }
    let scenarios = cases.iter().map(|case| &case.scenario);
    Size::of(scenarios, &hosts, times, args.jobs).check(args.force)?;
    for one in cases.chunk_by(|a, b| a.scenario.name == b.scenario.name) {
        warn(&one[0].scenario);
    }
    // Before the folder is created, which Ctrl-C removes again.
    let stop = stop::on_signal()?;
    let provenance = Provenance::new(
        "compare",
        plan.identity(),
        hosts.iter().any(|host| host.real_time()),
        COMMIT,
    );
    let of = |folder| Output::of(folder, &provenance);
    let output = args.out.as_deref().map(of).transpose()?;
    let page_file = args.report.as_deref().map(page::PageFile::new).transpose()?;
    let journal = |output: &Output| Journal::open(output.target(), &plan, args.resume);
    let journal = output.as_ref().map(journal).transpose()?;
    let finished = run_shown(plan, &hosts, times, journal.as_ref(), &stop)?;
    let rows = rows(&plan, &finished);

    let as_json = json(&Rows { rows: &rows });
    let mut as_csv = Vec::new();
    write_csv(&rows, &mut as_csv).map_err(narrows_lab::Error::io("rows.csv".as_ref(), "write"))?;
    let report = report(&cases, &rows);
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
            let stem = stem(&plan, run);
            write_run(&mut output, &stem, run)?;
        }
        if !args.json && !args.csv {
            text.push_str(&files(args, &plan, &output, &finished));
        }
        output.commit()?;
        journal.map_or(Ok(()), Journal::remove)?;
    }
    if let (Some(file), Some(path)) = (page_file, &args.report) {
        file.write(&page::compare(&provenance, &plan, &rows, &finished))?;
        if !args.json && !args.csv {
            let _ = writeln!(text, "\nPage for a browser: {}", path.display());
        }
    }
    if !args.json && !args.csv {
        text.push_str(&next_steps(args, &ids));
    }
    print(&text)
}

/// Each once.
fn controls(args: &CompareArgs) -> Result<Vec<Algorithm>, Error> {
    let mut controls = Vec::new();
    for name in &args.cc {
        let control = control(name)?;
        if controls.contains(&control) {
            return Err(Error::input("--cc", format!("{} is named twice", name.trim())));
        }
        controls.push(control);
    }
    Ok(controls)
}

/// Runs all, `times` each case on each host, and shows how far it is.
fn run_shown(
    plan: Plan,
    hosts: &[&dyn Host],
    times: u64,
    journal: Option<&Journal>,
    stop: &AtomicBool,
) -> Result<Vec<Finished>, narrows_lab::Error> {
    let runs = plan.cases.len() as u64 * hosts.len() as u64 * times;
    let weight = |host: &dyn Host, case: &Case| (1.0 + 1e3 * seconds(host, &case.scenario)) as u64;
    let all = hosts
        .iter()
        .flat_map(|&host| plan.cases.iter().map(move |case| times * weight(host, case)));
    let bar = progress(all.sum());
    show(&bar, &format!("0/{runs}"));
    let count = AtomicU64::new(0);
    let done = |run: &Finished| {
        let count = 1 + count.fetch_add(1, Ordering::Relaxed);
        show(&bar, &format!("{count}/{runs}"));
        let host = hosts.iter().find(|host| host.id() == run.summary.host);
        bar.inc(host.map_or(0, |&host| weight(host, &plan.cases[run.case])));
    };
    let finished = run_all(plan, journal, stop, &done);
    bar.finish_and_clear();
    finished.map_err(|error| match journal {
        Some(journal) => journal.interrupted(error, runs),
        None => error,
    })
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
            Some(sweep @ Sweep { field, values }) => {
                for value in values {
                    let mut edits = edits.clone();
                    edits.set.push((field.clone(), value.clone()));
                    let set = Some(Point { field: field.clone(), value: value.clone() });
                    let scenario = load(name, &edits).map_err(|error| of_sweep(error, sweep))?;
                    cases.push(Case { scenario, set });
                }
            }
        }
    }
    for (index, case) in cases.iter().enumerate() {
        let same =
            |other: &Case| other.scenario.name == case.scenario.name && other.set == case.set;
        if cases[..index].iter().any(same) {
            let message = "two scenarios of this name; their results would be merged";
            return Err(Error::input(&case.scenario.name, message));
        }
    }
    Ok(cases)
}

/// What is wrong with a value of a sweep, which is set as `--set` sets it.
fn of_sweep(error: narrows_lab::Error, sweep: &Sweep) -> narrows_lab::Error {
    use narrows_lab::Error::Input;
    let option = format!("--set {}=", sweep.field);
    match error {
        Input { place, message } if place.starts_with(&option) => {
            Input { place: place.replacen("--set", "--sweep", 1), message }
        }
        other => other,
    }
}

/// A progress bar with the time left, on standard error and only if that is a terminal. Its length is
/// the time of all runs in sequence.
fn progress(milliseconds: u64) -> ProgressBar {
    let bar = ProgressBar::new(milliseconds);
    let style = ProgressStyle::with_template("{wide_bar} {msg} runs, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}

fn write_run(output: &mut Output, stem: &str, run: &Finished) -> Result<(), narrows_lab::Error> {
    output.write(&format!("{stem}.json"), |to| to.write_all(json(&run.summary).as_bytes()))?;
    if !run.decisions.is_empty() {
        let name = format!("{stem}.decisions.csv");
        output.write(&name, |to| detection::write_csv(&run.decisions, to))?;
    }
    if run.series.is_empty() {
        return Ok(());
    }
    output.write(&format!("{stem}.csv"), |to| series::write_csv(&run.series, to))
}

/// The path of a run's files without extension, unique in a comparison.
fn stem(plan: &Plan, run: &Finished) -> String {
    let summary = &run.summary;
    let mut stem = format!("runs/{}", summary.scenario);
    if let Some(point) = &plan.cases[run.case].set {
        let value: String = point
            .value
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '.' { c } else { '_' })
            .collect();
        let _ = write!(stem, "/{}={value}", point.field);
    }
    if plan.hosts != [HostId::SIM] {
        let _ = write!(stem, "/{}", summary.host);
    }
    // A colon has a meaning for rsync and make.
    let cc = run.control.to_string().replace(':', "-");
    let _ = write!(stem, "/{cc}");
    if let Some(signal) = run.signal {
        let _ = write!(stem, "/{}", plan.signals[signal].name());
    }
    let _ = write!(stem, "/seed-{}", summary.seed);
    stem
}

/// What is in the folder of results.
fn files(args: &CompareArgs, plan: &Plan, output: &Output, finished: &[Finished]) -> String {
    let part = |there: bool, name: &'static str| if there { name } else { "" };
    let below = [
        part(args.sweep.is_some(), "/FIELD=VALUE"),
        part(plan.hosts != [HostId::SIM], "/HOST"),
        "/CC",
        part(!plan.signals.is_empty(), "/SIGNAL"),
    ];
    let decided = finished.iter().any(|run| !run.decisions.is_empty());
    let decisions =
        part(decided, "    seed-N.decisions.csv             its detector's decisions\n");
    let (folder, seed) = (output.target().display(), plan.seeds.first());
    format!(
        "\nFiles in {folder}:\n  \
         report.txt                         the tables above\n  \
         rows.csv, rows.json                all metrics of each row\n  \
         provenance.json                    command, version, start\n  \
         runs/SCENARIO{}/\n    \
         seed-N.json                      the summary of a run\n\
         {decisions}    \
         {:<32} the series of this seed, every 100 ms\n",
        below.concat(),
        format!("seed-{seed}.csv"),
    )
}

/// Three suggested commands.
fn next_steps(args: &CompareArgs, hosts: &[HostId]) -> String {
    let narrows = std::env::args().next().unwrap_or_else(|| "narrows".into());
    let (scenario, cc) = (&args.scenarios[0], args.cc[args.cc.len() - 1].trim());
    let other = hosts.iter().rfind(|&&host| host != HostId::SIM);
    let mut options = other.map_or_else(String::new, |host| format!(" --on {host}"));
    let mut quoted = |option: &str, value: &str| {
        let _ = write!(options, " --{option} '{}'", value.replace('\'', r"'\''"));
    };
    args.edit.set.iter().for_each(|set| quoted("set", set));
    args.edit.trace.iter().for_each(|trace| quoted("trace", trace));
    args.edit.law.iter().for_each(|law| quoted("law", &law.display().to_string()));
    if let Some(signal) = args.signal.first() {
        let _ = write!(options, " --signal {}", signal.trim());
    }
    format!(
        "\nNext:\n  \
         {narrows} run {scenario} --cc {cc}{options} --out out/one    # one run and its series\n  \
         {narrows} compare sbd/nsb-5 sbd/sb-5 --cc reno,lia,olia,balia    # five paths\n  \
         {narrows} list    # all laws, detectors and scenarios\n"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use narrows_lab::{Edits, Job, Run, Seeds, Signal, host, run};

    use super::*;

    #[test]
    fn what_two_hosts_say_goes_to_two_places() {
        let second = ("duration".into(), "2 s".into());
        let edits = Edits { set: vec![("warmup".into(), "1 s".into()), second], traces: vec![] };
        let scenario = load("sbd/sb-2", &edits).unwrap();
        let control = "olia+ssc".parse().unwrap();
        let stop = AtomicBool::new(false);
        let job = Job { control: Some(control), seed: 3, ..Job::new(&scenario, &stop) };
        let kernel = HostId::new("kernel");
        let Run { summary, series, decisions, .. } = run(host("sim").unwrap(), job).unwrap();
        let mut cases = [Case { scenario, set: None }];
        let mut run = Finished { case: 0, control, signal: None, summary, series, decisions };
        let stem = |cases: &[Case], run: &Finished, hosts: &[HostId]| {
            let signals = &[Signal::SenderUs];
            let (controls, seeds, jobs, series) = (&[control], Seeds::up_to(3), 1, false);
            stem(&Plan { cases, controls, signals, hosts, seeds, jobs, series }, run)
        };
        assert_eq!(stem(&cases, &run, &[HostId::SIM]), "runs/sbd/sb-2/olia+ssc/seed-3");
        assert_eq!(stem(&cases, &run, &[HostId::SIM, kernel]), "runs/sbd/sb-2/sim/olia+ssc/seed-3");
        run.signal = Some(0);
        assert_eq!(stem(&cases, &run, &[HostId::SIM]), "runs/sbd/sb-2/olia+ssc/sender-us/seed-3");
        (run.signal, run.control) = (None, "kernel:bbr".parse().unwrap());
        run.summary.host = kernel;
        cases[0].set = Some(Point { field: "links.l.rate".into(), value: "5 Mbit/s".into() });
        let there = "runs/sbd/sb-2/links.l.rate=5_Mbit_s/kernel/kernel-bbr/seed-3";
        assert_eq!(stem(&cases, &run, &[kernel]), there);
    }

    /// The words of a line as a shell has them, with single quotes alone.
    #[cfg(feature = "kernel")]
    fn words(line: &str) -> Vec<String> {
        let mut quoted = false;
        let words = line.split(|c| {
            quoted ^= c == '\'';
            c == ' ' && !quoted
        });
        words.filter(|word| !word.is_empty()).map(|word| word.replace('\'', "")).collect()
    }

    #[cfg(feature = "kernel")]
    #[test]
    fn the_hosts_have_what_the_comparisons_in_the_readme_ask_for() {
        use clap::Parser;

        use crate::args::{Args, Command};

        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let mut used = Vec::new();
        for line in readme.lines() {
            let line = line.trim_start().trim_start_matches("sudo ");
            if !line.starts_with("narrows compare ") {
                continue;
            }
            let line = line.split(" #").next().unwrap();
            let Ok(Args { command: Command::Compare(args) }) = Args::try_parse_from(words(line))
            else {
                panic!("{line}")
            };
            let hosts = hosts(&args.on).unwrap();
            for case in cases(&args).unwrap() {
                for (host, cc) in
                    hosts.iter().flat_map(|host| args.cc.iter().map(move |cc| (host, cc)))
                {
                    let stop = AtomicBool::new(false);
                    let control = Some(control(cc).unwrap());
                    let checked = host.check(&Job { control, ..Job::new(&case.scenario, &stop) });
                    checked.unwrap_or_else(|error| panic!("{line}: {error}"));
                }
            }
            used.extend(hosts.iter().map(|host| host.id()));
        }
        assert!(used.contains(&HostId::SIM) && used.contains(&HostId::new("kernel")), "{used:?}");
    }
}
