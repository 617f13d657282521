//! `narrows show`.

use narrows_lab::{load, source_text};

use crate::args::lab::ShowArgs;
use crate::error::Error;
use crate::print;

/// Prints a scenario's file, or the resolved scenario.
pub fn show(args: &ShowArgs) -> Result<(), Error> {
    args.edit.load_law()?;
    let edits = args.edit.edits()?;
    if args.resolved {
        return print(&load(&args.scenario, &edits)?.text());
    }
    let changes = [("--set", edits.set.is_empty()), ("--trace", edits.traces.is_empty())];
    if let Some((option, _)) = changes.into_iter().find(|(_, none)| !none) {
        let message = "needs --resolved; without it the file is printed unchanged";
        return Err(Error::input(option, message));
    }
    print(&source_text(&args.scenario)?)
}
