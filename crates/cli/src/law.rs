//! `narrows law`.

mod isolated;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use narrows_laws::Control;
use narrows_laws::check::{Failure, PROPERTIES, Property};
use narrows_laws::user::{self, Checks};

use crate::args::law::Command;
use crate::error::Error;
use crate::print;

use isolated::{Died, isolated};

const TEMPLATE: &str = include_str!("law/template.h");

/// CPU time of a property, and of one of its cases: far more than a law takes that ends.
const PROPERTY: Duration = Duration::from_secs(20);
const CASE: Duration = Duration::from_secs(1);

/// Does what was asked.
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
    let text = TEMPLATE.replace("@name@", &name).replace("@NAME@", &name.to_uppercase());
    let text = text.replace("@code@", &name[..name.len().min(5)]);
    // Never another file in its place, also if that came a moment ago.
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    match written {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(error("exists already, and is left as it is".into()))
        }
        Err(e) => Err(error(format!("cannot write: {e}"))),
        Ok(()) => print(&format!(
            "{file}: law {name}; next: narrows law check {file}\n",
            file = file.display()
        )),
    }
}

/// What a step of the check came to.
enum Outcome {
    Ok(String),
    Skipped(String),
    Failed(Failure),
}

/// The steps as they are shown.
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
            // A compiler's lines are as it wrote them.
            let Some((first, lines)) = text.split_once('\n') else {
                return Err(Error::input("law check", text));
            };
            print(&format!("{lines}\n"))?;
            return Err(Error::no("law check", first));
        }
    };
    report.step("compiles", Outcome::Ok(String::new()))?;
    let control = Control::of(law);
    let mut died = false;
    for property in &PROPERTIES {
        let outcome = if !property.is_of(law) {
            Outcome::Skipped("not of such a law".into())
        } else if died {
            Outcome::Skipped("it would die again".into())
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

/// Does the law keep it? If not: what fails, and did the law die?
fn keeps(property: &Property, control: Control) -> Result<(), (Failure, bool)> {
    let by = |limit| isolated(limit, || property.check(control)).map_err(|Died(how)| how);
    match by(PROPERTY) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err((failure, false)),
        Err(how) => {
            // Once more, each case in a process of its own, for the smallest that dies.
            let case = |case: narrows_laws::check::Case| {
                let died = |Died(what)| Err(Failure { what, case: Vec::new() });
                isolated(CASE, case).unwrap_or_else(died)
            };
            let smallest = property.check_by(control, &case).err();
            Err((smallest.unwrap_or(Failure { what: how, case: Vec::new() }), true))
        }
    }
}

#[cfg(not(feature = "kernel"))]
fn kernel(report: &mut Report, _: Control, _: bool) -> Result<(), Error> {
    let reason = "this narrows was built without the kernel";
    report.step("verifier", Outcome::Skipped(reason.into()))?;
    report.step("replay", Outcome::Skipped(reason.into()))
}
