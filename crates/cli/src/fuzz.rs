//! `narrows fuzz`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use narrows_adversary::{
    Blame, CHARGES, Charge, FRESH, Find, Found, Head, Measure, Memo, Network, Plan, Verdict,
    agreed, judge, rival, search, text, uncoupled,
};
use narrows_lab::{Algorithm, Edits, Host, Output, Scenario, catalogue, host, load, parse, sha256};
use rayon::prelude::*;

use crate::args::fuzz::FuzzArgs;
use crate::args::lab::EditArgs;
use crate::error::Error;
use crate::terminal::show;
use crate::{compare, print, stop};

/// Networks for each control where neither a number nor a time is given.
const CANDIDATES: usize = 240;

/// Searches, or judges some scenarios.
pub fn fuzz(args: &FuzzArgs) -> Result<(), Error> {
    EditArgs { set: Vec::new(), law: args.law.clone(), trace: Vec::new() }.load_law()?;
    let mut controls = compare::controls(&args.cc)?;
    for control in &controls {
        uncoupled(*control)?;
    }
    if controls.is_empty() {
        let coupled = catalogue::controls().map(Algorithm::from);
        controls = coupled.filter(|control| uncoupled(*control).is_ok()).collect();
    }
    let on = virtual_host(&args.on)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs).build();
    let pool = pool.map_err(|error| Error::input("--jobs", error))?;
    let stop = stop::on_signal()?;
    let guilty = pool.install(|| match &args.out {
        Some(out) => hunt(args, on, &controls, out, &stop),
        None => try_each(args, on, &controls, &stop),
    })?;
    match guilty {
        0 => Ok(()),
        1 => Err(Error::no("fuzz", "a control has a fault of its own")),
        some => Err(Error::no("fuzz", format!("{some} faults of the controls' own"))),
    }
}

/// A host that a search can run on: thousands of runs, which the same seed repeats.
fn virtual_host(name: &str) -> Result<&'static dyn Host, Error> {
    let on = host(name)?;
    if on.real_time() {
        let message =
            format!("a search runs in virtual time, {name} does not; expected sim or quic");
        return Err(Error::input("--on", message));
    }
    Ok(on)
}

/// Judges scenarios with fresh seeds; returns the number of faults of the controls' own.
fn try_each(
    args: &FuzzArgs,
    on: &dyn Host,
    controls: &[Algorithm],
    stop: &AtomicBool,
) -> Result<usize, Error> {
    let scenarios = args.scenarios.iter().map(|name| load(name, &Edits::default()));
    let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
    let mut report = String::new();
    let mut guilty = 0;
    for scenario in &scenarios {
        for &control in controls {
            let one = |&seed: &u64| judge(on, scenario, control, seed, stop);
            let verdicts: Vec<Verdict> = FRESH.par_iter().map(one).collect::<Result<_, _>>()?;
            // Writing to a string cannot fail.
            let _ = writeln!(report, "{} under {control}", scenario.name);
            for charge in CHARGES {
                let Some((blame, measure)) = agreed(charge, &verdicts) else { continue };
                guilty += usize::from(blame == Some(Blame::Law));
                let whose = match blame {
                    None => "right",
                    Some(Blame::Law) => "WRONG",
                    Some(Blame::Host) => "wrong, as uncoupled",
                };
                let _ = writeln!(report, "  {whose:20} {}", sentence(charge, &measure));
            }
        }
    }
    print(&report)?;
    Ok(guilty)
}

/// `silence 3.2 (expected: at most 1.4; uncoupled 0.3): s without delivery while a path is there`.
fn sentence(charge: Charge, measure: &Measure) -> String {
    let Measure { value, uncoupled, limit } = measure;
    let bound = if charge.greater_is_worse() { "at most" } else { "at least" };
    format!(
        "{} {value:.2} (expected: {bound} {limit:.2}; uncoupled {uncoupled:.2}): {}",
        charge.name(),
        charge.about()
    )
}

/// Searches under each control; returns the number of faults of the controls' own.
fn hunt(
    args: &FuzzArgs,
    on: &dyn Host,
    controls: &[Algorithm],
    out: &Path,
    stop: &AtomicBool,
) -> Result<usize, Error> {
    let memo = Memo::open(out, &program(args)?, args.resume)?;
    let where_else = match args.on.as_str() {
        "sim" => String::new(),
        name => format!(" --on {name}"),
    };
    let (mut report, mut guilty) = (String::new(), 0);
    for (index, &control) in controls.iter().enumerate() {
        let started = Instant::now();
        let share = args.time.map(|time| time / (controls.len() as u32));
        let Found { candidates, finds } = one_control(args, on, control, &memo, share, stop)?;
        let took = started.elapsed().as_secs();
        crate::note(&format!(
            "narrows: {control} ({}/{}): {candidates} networks, {} finds, {took} s",
            index + 1,
            controls.len(),
            finds.len()
        ));
        guilty += finds.iter().filter(|find| find.blame == Blame::Law).count();
        // At once, as a search takes hours.
        let mut output = Output::new(out)?;
        let mut found = String::new();
        for find in &finds {
            let name = file_name(control, find);
            let scenario = scenario_text(control, find)?;
            output.write(&name, |to| to.write_all(scenario.as_bytes()))?;
            let whose = if find.blame == Blame::Law { "" } else { ", as uncoupled" };
            let _ = writeln!(
                found,
                "{control}{whose}: {}\n  narrows fuzz {} --cc {control}{where_else}",
                sentence(find.charge, &find.measure),
                out.join(&name).display(),
            );
        }
        if finds.is_empty() {
            found = format!("{control}: nothing found\n");
        }
        print(&found)?;
        report.push_str(&found);
        output.write("report.txt", |to| to.write_all(report.as_bytes()))?;
        output.commit()?;
    }
    Ok(guilty)
}

/// The finds of one control.
fn one_control(
    args: &FuzzArgs,
    on: &dyn Host,
    control: Algorithm,
    memo: &Memo,
    share: Option<Duration>,
    stop: &AtomicBool,
) -> Result<Found, Error> {
    let beside = rival(control)?;
    let name = control.to_string();
    let of = |network: &Network, seed: u64| {
        let head = Head { name: "candidate", title: "", source: "narrows fuzz" };
        let text = text(network, &beside, &head);
        memo.verdict(&text, &name, seed, || {
            judge(on, &parse(&text, &Edits::default())?, control, seed, stop)
        })
    };
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    let bar = ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(500));
    let until = share.map(|share| Instant::now() + share);
    let go_on = |candidates: usize| {
        show(&bar, &format!("{control}: {candidates} networks"));
        until.is_none_or(|until| Instant::now() < until)
    };
    let candidates = match (args.candidates, args.time) {
        (Some(candidates), _) => candidates as usize,
        (None, Some(_)) => usize::MAX,
        (None, None) => CANDIDATES,
    };
    let plan = Plan {
        seed: args.seed,
        candidates,
        hops: args.hops,
        shrinks: args.shrink,
        judge: &of,
        go_on: &go_on,
    };
    let found = search(&plan);
    bar.finish_and_clear();
    Ok(found?)
}

/// The scenario of a find, with what is right in its title.
fn scenario_text(control: Algorithm, find: &Find) -> Result<String, Error> {
    let name = file_name(control, find);
    let head = Head {
        name: name.trim_end_matches(".toml"),
        title: &format!("{control}: {}", sentence(find.charge, &find.measure)),
        source: "narrows fuzz",
    };
    Ok(text(&find.network, &rival(control)?, &head))
}

/// `greno-xcorr-silence.toml`, or of the host's `host-greno-xcorr-silence.toml`.
fn file_name(control: Algorithm, find: &Find) -> String {
    let prefix = if find.blame == Blame::Host { "host-" } else { "" };
    // A scenario's name has no plus signs.
    format!("{prefix}{control}-{}.toml", find.charge.name()).replace('+', "-")
}

/// What verdicts depend on besides network, control and seed: the program, the host, and the user's
/// law.
fn program(args: &FuzzArgs) -> Result<String, Error> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(narrows_lab::Error::io(path, "read"));
    let law = args.law.as_deref().map(read).transpose()?;
    Ok(sha256(&(narrows_lab::program()?, &args.on, law)))
}
