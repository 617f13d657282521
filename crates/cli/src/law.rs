//! `narrows law`.

mod isolated;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use narrows_laws::check::{Failure, PROPERTIES, Property};
use narrows_laws::user::{self, Checks};
use narrows_laws::{Control, Law};

use crate::args::law::Command;
use crate::error::Error;
use crate::{print, quoted, words};

use isolated::{Died, isolated};

/// The template of `new`; its name is replaced by that of the file.
const MINE: &str = include_str!("law/mine.h");

/// Limits of CPU time for a property and for one of its cases: far above what a law needs.
const PROPERTY: Duration = Duration::from_secs(5);
const CASE: Duration = Duration::from_secs(1);
/// The search for the smallest case that crashes: a law that does not terminate takes CASE for each.
const SEARCH: Duration = Duration::from_secs(20);

/// Why the rest is skipped after a crash.
const DIED: &str = "it would crash again";

/// Runs the command.
pub fn law(command: &Command) -> Result<(), Error> {
    match command {
        Command::New { file } => new(file),
        Command::Check { file } => check(file),
    }
}

fn new(file: &Path) -> Result<(), Error> {
    let error = |message: String| Error::input(file.display(), message);
    if file.extension().is_none_or(|extension| extension != "h") {
        return Err(error("expected a C header, NAME.h".into()));
    }
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    user::check_name(&name).map_err(error)?;
    let text = MINE.replace("mine", &name).replace("MINE", &name.to_uppercase());
    let of = |code: &str| format!(".code = \"{code}\"");
    let text = text.replace(&of(&name), &of(&code(&name)));
    // Never overwrites a file, even one created just now.
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut opened| {
        // Half a law would be in the way of the next try.
        opened.write_all(text.as_bytes()).inspect_err(|_| drop(std::fs::remove_file(file)))
    });
    match written {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(error("already exists and is not overwritten".into()))
        }
        Err(e) => Err(error(format!("cannot write: {e}"))),
        Ok(()) => {
            let narrows = words().first().map_or("narrows", String::as_str);
            let file = file.display().to_string();
            let next = format!("{} law check {}", quoted(narrows), quoted(&file));
            print(&format!("{file}: law {name}; next: {next}\n"))
        }
    }
}

/// A code of at most 5 characters from the name, different from those of other laws.
fn code(name: &str) -> String {
    let first = |n: usize| &name[..name.len().min(n)];
    let numbered = (1..10).map(|n| format!("{}{n}", first(4)));
    let mut codes = std::iter::once(first(5).to_owned()).chain(numbered);
    let free = |code: &String| Law::all().all(|law| law.code() != code);
    codes.find(free).unwrap_or_else(|| first(5).to_owned())
}

/// Result of a step of the check.
enum Outcome {
    Ok(String),
    Skipped(String),
    Failed(Failure),
}

/// Prints the steps and counts failures.
#[derive(Default)]
struct Report {
    steps: usize,
    failed: usize,
}

impl Report {
    fn step(&mut self, name: &str, outcome: Outcome) -> Result<(), Error> {
        self.steps += 1;
        let text = match outcome {
            Outcome::Ok(more) if more.is_empty() => "ok".into(),
            Outcome::Ok(more) => format!("ok, {more}"),
            Outcome::Skipped(reason) => format!("skipped: {reason}"),
            Outcome::Failed(failure) => {
                self.failed += 1;
                format!("failed: {failure}")
            }
        };
        print(&format!("{name:<18} {text}\n"))
    }
}

fn check(file: &Path) -> Result<(), Error> {
    let mut report = Report::default();
    let law = match user::load(file, Checks::Undefined) {
        Ok(law) => law,
        Err(error) => {
            let text = error.to_string();
            // One line: not a law. More: the compiler's messages.
            let Some((_, lines)) = text.split_once('\n') else {
                return Err(Error::of_law(error));
            };
            print(&format!("{lines}\n"))?;
            return Err(Error::input(file.display(), "does not compile"));
        }
    };
    report.step("compiles", Outcome::Ok(String::new()))?;
    let control = Control::of(law);
    let mut died = false;
    for property in &PROPERTIES {
        let outcome = if !property.is_of(law) {
            Outcome::Skipped("does not apply to this kind of law".into())
        } else if died {
            Outcome::Skipped(DIED.into())
        } else {
            match keeps(property, control) {
                Ok(()) => Outcome::Ok(String::new()),
                Err((failure, of)) => {
                    died = of;
                    Outcome::Failed(failure)
                }
            }
        };
        report.step(property.name, outcome)?;
    }
    kernel(&mut report, control, died)?;
    match report.failed {
        0 => Ok(()),
        n => Err(Error::no(file.display(), format!("{n} of {} checks failed", report.steps))),
    }
}

/// Checks a property; on failure: the failure, and whether the law crashed.
fn keeps(property: &Property, control: Control) -> Result<(), (Failure, bool)> {
    let by = |limit| isolated(limit, || property.check(control)).map_err(|Died(how)| how);
    match by(PROPERTY) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err((failure, false)),
        Err(how) => {
            // Again with a process per case, to find the smallest that crashes.
            let end = Instant::now() + SEARCH;
            let case = |case: narrows_laws::check::Case| {
                if Instant::now() > end {
                    return Ok(());
                }
                let died = |Died(what)| Err(Failure::new(what));
                isolated(CASE, case).unwrap_or_else(died)
            };
            let smallest = property.check_by(control, &case).err();
            Err((smallest.unwrap_or(Failure::new(how)), true))
        }
    }
}

/// What to do about a law that is too much for the verifier.
#[cfg(feature = "kernel")]
const TOO_MANY: &str = "too many branches for the verifier: put loops with fractions into a helper, NR_NOINLINE nr_u64 \
     nr_LAW_share(const struct nr_conn *c, nr_u32 i, nr_u32 set), as laws/balia.h does; add integers \
     first and convert the sum once";

/// Checks in the kernel: the verifier, and replay with equal windows bit by bit.
#[cfg(feature = "kernel")]
fn kernel(report: &mut Report, control: Control, died: bool) -> Result<(), Error> {
    use narrows_kernel::replay::{Replay, VERIFIED_INSNS_MAX};

    let (verifier, replay) = ("verifier", "replay in kernel");
    let skipped = |reason: &dyn std::fmt::Display| Outcome::Skipped(reason.to_string());
    let failed = |text: &str| Outcome::Failed(Failure::of_lines(text));
    if let Err(reason) = narrows_kernel::available() {
        report.step(verifier, skipped(&reason))?;
        return report.step(replay, skipped(&reason));
    }
    if let Err(error) = narrows_kernel::object::compile_user() {
        let text = error.to_string();
        // One line: something is missing. More: the compiler's messages.
        let outcome = if text.contains('\n') { failed(&text) } else { skipped(&text) };
        report.step(verifier, outcome)?;
        return report.step(replay, skipped(&"no object"));
    }
    let loaded = Replay::load(control).and_then(|loaded| {
        let most = loaded.verified_insns()?.into_iter().map(|(_, insns)| insns).max();
        Ok((loaded, most.unwrap_or_default()))
    });
    let mut loaded = match loaded {
        Ok((loaded, insns)) => {
            let walked = format!("{insns} instructions of at most {VERIFIED_INSNS_MAX}");
            let in_bounds = insns <= VERIFIED_INSNS_MAX;
            let outcome = match in_bounds {
                true => Outcome::Ok(walked),
                false => failed(&format!("{walked}\n{TOO_MANY}")),
            };
            report.step(verifier, outcome)?;
            loaded
        }
        Err(error) => {
            let text = error.to_string();
            let hint = if text.contains("too large") { TOO_MANY } else { "" };
            report.step(verifier, failed(&format!("{text}\n{hint}")))?;
            return report.step(replay, skipped(&"not loaded"));
        }
    };
    if died {
        return report.step(replay, skipped(&DIED));
    }
    let parted = isolated(PROPERTY, || {
        for (seed, paths) in [1, 2, 4, 8].into_iter().enumerate() {
            let parted = loaded.compare(seed as u64, paths, 20_000);
            if let Some(parted) = parted.map_err(|error| Failure::new(error.to_string()))? {
                return Err(Failure::new(parted.to_string()));
            }
        }
        Ok(())
    });
    let outcome = match parted {
        Ok(Ok(())) => Outcome::Ok("the same windows as natively, to the bit".into()),
        Ok(Err(failure)) => Outcome::Failed(failure),
        Err(Died(how)) => failed(&how),
    };
    report.step(replay, outcome)
}

#[cfg(not(feature = "kernel"))]
fn kernel(report: &mut Report, _: Control, _: bool) -> Result<(), Error> {
    let reason = "built without kernel support";
    report.step("verifier", Outcome::Skipped(reason.into()))?;
    report.step("replay in kernel", Outcome::Skipped(reason.into()))
}
