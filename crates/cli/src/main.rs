//! The command `narrows`: scenarios of multipath congestion control, run and compared.
//!
//! Exit codes: 0 done (also if a reader closes the pipe), 1 a fault of the program in a run, 2 wrong
//! input, 130 Ctrl-C.

mod args;
mod compare;
mod list;
mod run;
mod size;
mod stop;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use narrows_lab::Error;

use args::{Args, Command};

/// It asks the system for huge pages: the state of a large network is spread over so much memory that
/// finding the pages takes as long as loading from them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Help and version are no errors; what is one gets one line, like every other.
        Err(error) if !error.use_stderr() => {
            return exit(print(&error.render().to_string()));
        }
        Err(error) => return exit(Err(one_line(&error))),
    };
    exit(match &args.command {
        Command::Run(args) => run::run(args),
        Command::Compare(args) => compare::compare(args),
        Command::List { what } => list::list(*what),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "narrows", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    })
}

/// Shows the error, if there is one, as one line, and its exit code.
fn exit(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if standard error is closed too.
            // A name that the user gave may hold line ends.
            let line = error.to_string().replace(['\n', '\r'], " ");
            let _ = writeln!(std::io::stderr(), "narrows: {line}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// A mistake in the command line as one line.
fn one_line(error: &clap::Error) -> Error {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let message = "expected run, compare, list or completions; `narrows --help` has examples";
        return Error::input("command line", message);
    }
    let text = error.to_string();
    let told = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let told = told.collect::<Vec<_>>().join(" ");
    Error::input("command line", told.trim_start_matches("error: "))
}

/// Writes to standard output. A reader that has gone away, as in `narrows list | head`, is no
/// error.
fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output".as_ref(), "write")(error))
        }
        _ => Ok(()),
    }
}
