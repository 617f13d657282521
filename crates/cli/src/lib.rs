//! The command `narrows`: runs and compares scenarios of multipath congestion control, runs
//! detectors on captures, and loads laws into this machine's kernel. The program is [`main`]; the Python
//! package has the same command, and makes comparisons by [`compare`].
//!
//! Its exit codes are [`Exit`].

mod args;
#[cfg(feature = "lab")]
pub mod compare;
#[cfg(feature = "detect")]
mod detect;
mod error;
#[cfg(feature = "lab")]
mod evaluate;
mod exit;
#[cfg(feature = "lab")]
mod fuzz;
#[cfg(feature = "kernel")]
mod kernel;
mod law;
pub mod list;
#[cfg(feature = "lab")]
mod live;
#[cfg(feature = "lab")]
mod merge;
#[cfg(feature = "lab")]
mod pages;
#[cfg(feature = "lab")]
mod papers;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "lab")]
pub mod run;
#[cfg(any(feature = "detect", feature = "kernel"))]
pub mod set;
#[cfg(all(feature = "lab", feature = "kernel"))]
mod shell;
#[cfg(feature = "lab")]
mod show;
#[cfg(feature = "lab")]
pub mod size;
#[cfg(any(feature = "detect", feature = "lab", feature = "kernel"))]
mod stop;
mod terminal;

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use clap::{CommandFactory, Parser};

pub use args::What;
use args::{Args, Command};
pub use error::Error;
pub use exit::Exit;
#[cfg(feature = "lab")]
use narrows_lab::hosts::child;
#[cfg(all(feature = "lab", not(all(feature = "kernel", feature = "quic"))))]
use narrows_lab::included_by;
use terminal::{note, print};

/// The commit it was built from, if known.
#[cfg(feature = "lab")]
pub const COMMIT: Option<&str> = option_env!("NARROWS_COMMIT");

/// The command line.
static WORDS: OnceLock<Vec<String>> = OnceLock::new();

/// The words of the command line, the program first.
pub fn words() -> &'static [String] {
    WORDS.get().map_or(&[], Vec::as_slice)
}

/// A word as a shell reads it: in quotes, where it has more than letters, digits and signs that mean nothing.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._+-=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Does what the words of the command line say, the program first; returns the exit code. Once in a process.
pub fn main(words: Vec<OsString>) -> u8 {
    terminal::take_panics();
    let _ = WORDS.set(words.iter().map(|word| word.to_string_lossy().into_owned()).collect());
    #[cfg(all(feature = "lab", feature = "kernel"))]
    narrows_lab::hosts::kernel::on_wait(|| {
        note(
            "narrows: another process runs scenarios on this kernel; this one waits until it ends",
        );
    });
    // The internal command for a run under a user's law, unknown to clap.
    #[cfg(feature = "lab")]
    if words.get(1).is_some_and(|word| word == child::CHILD) {
        return exit(child::child().map_err(Error::from));
    }
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        // Help and version are no errors; errors are one line.
        Err(error) if !error.use_stderr() => {
            return exit(print(&error.render().to_string()));
        }
        Err(error) => return exit(Err(one_line(&error))),
    };
    exit(match &args.command {
        #[cfg(feature = "lab")]
        Command::Run(args) => run::run(args),
        #[cfg(feature = "lab")]
        Command::Compare(args) => compare::compare(args),
        #[cfg(feature = "lab")]
        Command::Merge(args) => merge::merge(args),
        #[cfg(feature = "lab")]
        Command::Show(args) => show::show(args),
        #[cfg(feature = "lab")]
        Command::Fuzz(args) => fuzz::fuzz(args),
        #[cfg(feature = "lab")]
        Command::Papers(args) => papers::papers(args),
        #[cfg(feature = "lab")]
        Command::Evaluate(args) => evaluate::evaluate(args),
        #[cfg(feature = "detect")]
        Command::Detect(args) => detect::detect(args),
        #[cfg(feature = "kernel")]
        Command::Kernel(command) => kernel::kernel(command),
        #[cfg(all(feature = "lab", feature = "kernel"))]
        Command::Shell(args) => match shell::shell(args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        #[cfg(all(feature = "lab", feature = "kernel"))]
        Command::Clean { dry_run } => shell::clean(*dry_run),
        #[cfg(feature = "quic")]
        Command::Quic(command) => quic::quic(command),
        #[cfg(not(feature = "quic"))]
        Command::Quic { arguments: _ } => {
            let how = included_by(["make install", "scripts/python wheel"]);
            let message = format!("built without QUIC; {how} includes it from Rust 1.88 on");
            Err(Error::input("quic", message))
        }
        Command::Law(command) => law::law(command),
        Command::List { what, table, json } => list::list(*what, table.as_deref(), *json),
        Command::Man { folder } => man(folder),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "narrows", &mut script);
            let script = String::from_utf8_lossy(&script);
            #[cfg(feature = "lab")]
            if *shell == clap_complete::Shell::Zsh {
                return exit(print(&args::suggest::with_files(&script)));
            }
            print(&script)
        }
    })
}

/// Writes a man page of each command.
fn man(folder: &Path) -> Result<(), Error> {
    let pages = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    pages.map_err(|error| Error::input(folder.display().to_string(), error))
}

/// Prints the error, if any, as one line; returns the exit code.
fn exit(result: Result<(), Error>) -> u8 {
    match result {
        Ok(()) => Exit::Done as u8,
        Err(error) => {
            note(&format!("narrows: {error}"));
            error.exit_code()
        }
    }
}

/// A mistake in the command line as one line.
fn one_line(error: &clap::Error) -> Error {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Of the last command that was named.
        let (mut known, mut command) = (Args::command(), String::from("narrows"));
        for word in words().iter().skip(1) {
            let Some(inner) = known.find_subcommand(word).cloned() else { break };
            (known, command) = (inner, format!("{command} {word}"));
        }
        let shown = known.get_subcommands().filter(|one| !one.is_hide_set());
        let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let message = format!("expected {}; `{command} --help` has examples", names.join(", "));
        return Error::input("command line", message);
    }
    #[cfg(not(feature = "kernel"))]
    if let Some(command) = words().get(1) {
        if ["kernel", "shell", "clean"].contains(&command.as_str()) {
            let how = included_by(["make install", "scripts/python wheel kernel"]);
            let message = format!("built without kernel support; {how} includes it");
            return Error::input(command, message);
        }
    }
    let text = error.to_string();
    let message = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let message = message.collect::<Vec<_>>().join(" ");
    // What the standard library says of "x" where a number is expected.
    let message = message.replace("invalid digit found in string", "expected a whole number");
    let message = message.replace("number too large to fit in target type", "too large");
    // All controls, or all scenarios, are no line.
    let message = match message.split_once(" [possible values: ") {
        Some((before, known)) if known.len() > 200 => before.to_owned(),
        _ => message,
    };
    Error::input(
        "command line",
        format!("{}{}", message.trim_start_matches("error: "), meant(error)),
    )
}

/// What includes a part that a command without the lab was built without; the wheel has the lab, and another answer.
#[cfg(not(feature = "lab"))]
fn included_by([command, _]: [&str; 2]) -> String {
    format!("`{command}`")
}

/// ` (did you mean '--seed'?)` where an option, a command or a value is like the unknown one, or nothing.
fn meant(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let similar = kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one),
        // The most similar is the last.
        ContextValue::Strings(several) => several.last(),
        _ => None,
    });
    similar.map_or(String::new(), |similar| format!(" (did you mean '{similar}'?)"))
}
