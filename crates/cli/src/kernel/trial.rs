//! `narrows kernel trial`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_foreign::Foreign;
use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::is_root;
use narrows_kernel::register::available_controls;
use narrows_kernel::trial::{PORTS_MAX, head};
use narrows_laws::Control;
use narrows_laws::catalogue::kernel_name;
use narrows_mptcp_admin::assign::Admin;
use narrows_mptcp_admin::trial::{self, Forecast, Need, Part, Report, Terms, WATCHED, duration};
use narrows_netns::Namespace;

use super::named;
use crate::args::kernel::{TrialArgs, TrialCommand, TrialOutput};
use crate::error::Error;
use crate::terminal::print_while_read;
use crate::{print, words};

/// Begins a trial, shows it or ends it; adds up several.
pub fn trial(args: &TrialArgs) -> Result<(), Error> {
    match &args.command {
        Some(TrialCommand::Merge { files, output }) => merge(files, output),
        _ if !is_root() => Err(Error::input("kernel trial", "needs root")),
        None => begin(args),
        Some(TrialCommand::Status(output)) => show(output, None),
        Some(TrialCommand::Stop(output)) => stop(output),
    }
}

/// Shows what the trials of these files found together.
fn merge(files: &[PathBuf], output: &TrialOutput) -> Result<(), Error> {
    let part = |file: &PathBuf| read(file).map(|part| (Foreign::from(file.as_path()), part));
    let parts: Vec<(Foreign, Part)> = files.iter().map(part).collect::<Result<_, _>>()?;
    let report = trial::merge(&parts)?;
    write(output, page(output)?, &report)
}

/// More than a week's lines have, one a minute.
const MAX_BYTES: u64 = 256 << 20;

/// What a file holds of a trial: one object, else that of its last line.
fn read(file: &Path) -> Result<Part, Error> {
    let mut text = String::new();
    File::open(file)
        .and_then(|open| open.take(MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| Error::input(file.display(), format!("cannot read: {error}")))?;
    let expected = "expected what narrows kernel trial status --json or stop --json prints";
    if text.len() as u64 == MAX_BYTES {
        let message = format!("{expected}: it has {} MiB or more", MAX_BYTES >> 20);
        return Err(Error::input(file.display(), message));
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // Else it is one object, over several lines.
    let of_lines =
        last.starts_with('{') && text.lines().filter(|line| line.starts_with('{')).count() > 1;
    serde_json::from_str(&text)
        .or_else(|whole| {
            serde_json::from_str(last).map_err(|of_last| if of_lines { of_last } else { whole })
        })
        .map_err(|error| Error::input(file.display(), format!("{expected}: {error}")))
}

/// Ends the trial, and forgets it when what it found is written.
fn stop(output: &TrialOutput) -> Result<(), Error> {
    let admin = Admin::open()?;
    let readable = head()?.is_none_or(|head| head.readable);
    if readable {
        show(output, Some(&admin))?;
    } else {
        admin.end_trial()?;
    }
    admin.forget_trial()?;
    match readable {
        true => Ok(()),
        false => {
            let lost = "stopped; another build of narrows began it, so what it found is not known";
            Err(Error::no("kernel trial", lost))
        }
    }
}

fn begin(args: &TrialArgs) -> Result<(), Error> {
    let (Some(control), Some(against)) = (&args.control, &args.against) else {
        return Err(Error::input("kernel trial", "expected a control and --against"));
    };
    if args.port.len() > PORTS_MAX {
        return Err(Error::input("--port", format!("expected at most {PORTS_MAX} ports")));
    }
    let against = in_kernel(against, &available_controls()?);
    let netns = args.netns.as_deref().map(Namespace::named).transpose();
    let cgroup = args.cgroup.as_deref().map_or_else(Cgroup::top, Cgroup::open)?;
    let terms = Terms {
        control: named(control)?.0,
        against,
        share: args.share,
        cgroup,
        netns: netns.map_err(|error| Error::input("--netns", error))?,
        ports: args.port.clone(),
        mptcp_only: args.mptcp_only,
        lasts: args.lasts,
        guards: args.guard,
    };
    let text = match args.dry_run {
        true => foreseen(&terms, &trial::foresee(&terms)?),
        false => {
            let need = Admin::open()?.begin_trial(&terms)?;
            let end = "narrows kernel trial status shows what is found, trial stop puts all back\n";
            format!("{}{end}", begun(&terms, "tried", &need))
        }
    };
    print(&text)
}

/// Who is in a trial, and how many it takes.
fn begun(terms: &Terms, is: &str, need: &Need) -> String {
    let Need { connections, spread, of, in_use } = *need;
    let (tried, against) = (&terms.control, Foreign::from(terms.against.as_str()));
    let percent = (terms.share * 10_000.0).round() / 100.0;
    let kind = if terms.mptcp_only { "MPTCP connections" } else { "connections" };
    let mut text = format!(
        "{tried}: {is} on {percent} % of the new {kind} that would have {against}, for {}\n",
        duration(terms.lasts)
    );
    let spread = match of {
        Some(n) => {
            format!("goodputs of {n} open connections are spread by a factor of {spread:.1}")
        }
        None => format!("assuming goodputs that are spread by a factor of {spread:.1}"),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "10 % less goodput takes some {connections} connections with something to send, {:.0} of them under \
         {tried} ({spread})",
        f64::from(connections) * terms.share
    );
    if !in_use {
        let _ = writeln!(
            text,
            "{against} is no default here, and no open socket that could take part has it: connections with another \
             control are left alone, and status counts them"
        );
    }
    text
}

/// How a trial would go.
fn foreseen(terms: &Terms, forecast: &Forecast) -> String {
    let mut text = begun(terms, "would be tried", &forecast.need);
    let watched = duration(WATCHED);
    // Writing to a string cannot fail.
    let _ = match (forecast.began, forecast.takes(), forecast.finds(terms.lasts)) {
        (n, Some(takes), Some(finds)) => writeln!(
            text,
            "{n} of them began in {watched}: at this rate it takes {}; {} are enough for {:.0} % less",
            duration(rounded(takes)),
            duration(terms.lasts),
            (1.0 - finds) * 100.0
        ),
        _ => writeln!(text, "none of them began in {watched}: how long it takes is not known"),
    };
    text.push_str("nothing was changed\n");
    text
}

/// To whole minutes or hours, as far as a rate of a few seconds tells anything.
fn rounded(time: Duration) -> Duration {
    let unit = match time.as_secs() {
        0..120 => 1,
        120..7200 => 60,
        _ => 3600,
    };
    Duration::from_secs(time.as_secs().div_ceil(unit) * unit)
}

/// A control's name in the kernel: what the kernel calls so, else what narrows does.
fn in_kernel(name: &str, available: &[String]) -> String {
    let known = |name: &str| available.iter().any(|one| one == name);
    let ours = name.parse::<Control>().ok().map(kernel_name);
    ours.filter(|ours| !known(name) && known(ours)).unwrap_or_else(|| name.to_owned())
}

/// Shows the trial as it stands, or after `end` has ended it.
fn show(output: &TrialOutput, end: Option<&Admin>) -> Result<(), Error> {
    // First: one that cannot be read leaves an older page as it is.
    let Some(mut report) = trial::status()? else {
        return Err(Error::no("kernel trial", "there is no trial"));
    };
    // Before the trial is ended and forgotten.
    let page = page(output)?;
    if let Some(admin) = end {
        report = admin.end_trial()?.unwrap_or(report);
    }
    match end {
        None if output.json => write(output, page, &report.last_minute()),
        _ => write(output, page, &report),
    }
}

/// The file of --report.
fn page(output: &TrialOutput) -> Result<Option<File>, Error> {
    output.report.as_deref().map(|path| File::create(path).map_err(unwritten(path))).transpose()
}

fn unwritten(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::input(path.display(), format!("cannot write: {error}"))
}

/// Writes what a trial found, also to its page.
fn write(output: &TrialOutput, page: Option<File>, report: &Report) -> Result<(), Error> {
    if let Some((mut page, path)) = page.zip(output.report.as_deref()) {
        page.write_all(report.html(&words()[1..]).as_bytes()).map_err(unwritten(path))?;
    }
    let text = match output.json {
        false => report.text(),
        true => {
            let line = serde_json::to_string(report);
            format!("{}\n", line.map_err(|error| Error::input("JSON", error))?)
        }
    };
    match print_while_read(&text)? {
        true => Ok(()),
        false => Err(Error::no("kernel trial", "nobody reads what was found")),
    }
}

#[cfg(test)]
mod tests {
    use super::in_kernel;

    #[test]
    fn a_control_is_known_by_both_names_and_the_kernels_comes_first() {
        let available = ["reno", "cubic", "nr_cubic", "nr_greno"].map(str::to_owned);
        for (given, expected) in [
            ("cubic", "cubic"),
            ("nr_cubic", "nr_cubic"),
            ("greno", "nr_greno"),
            ("nr_greno", "nr_greno"),
            // As it is given, where there is none.
            ("olia", "olia"),
            ("\u{1b}[31m", "\u{1b}[31m"),
        ] {
            assert_eq!(in_kernel(given, &available), expected);
        }
    }
}
