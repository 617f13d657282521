//! `narrows detect`.

use std::io::Write;

use narrows_detect::{Decision, Detection, Input, Json, Plot, Source, Text, detector};
use narrows_laws::Params;
use narrows_laws::params::is_preset;

use crate::args::detect::DetectArgs;
use crate::error::Error;
use crate::print;

/// Reports which flows of a file share a bottleneck.
pub fn detect(args: &DetectArgs) -> Result<(), Error> {
    let detector =
        detector(&args.detector).map_err(|message| Error::input("--detector", message))?;
    let mut params = Params::default();
    // Presets first, in any order of the options, as in a scenario.
    let (presets, others): (Vec<_>, Vec<_>) =
        args.set.iter().partition(|text| text.split('=').next().is_some_and(is_preset));
    for text in presets.into_iter().chain(others) {
        let expected = || Error::input("--set", format!("expected NAME=VALUE, found \"{text}\""));
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        params.set(name, value).map_err(|message| Error::input("--set", message))?;
    }
    params.check().map_err(|message| Error::input("--set", message))?;
    let losses = args.losses.as_deref().map(Input::file);
    let source = Source::open(Input::file(&args.file), losses, args.flows.into())?;
    for note in source.notes() {
        // Nothing to report to if standard error is closed.
        let _ = writeln!(std::io::stderr(), "narrows: {note}");
    }
    let mut plot = args.plot.as_deref().map(|path| Plot::new(path, &source)).transpose()?;
    let detection = Detection::new(&source, detector, &params)?;
    if args.json {
        let (mut json, begin) = Json::begin(&source, detector);
        print(&begin)?;
        detection.run(plot.as_mut(), |decision: &Decision| print(&json.decision(decision)))?;
        print(&json.end())?;
    } else {
        let (mut text, begin) = Text::begin(&source, detector);
        print(&begin)?;
        detection.run(plot.as_mut(), |decision: &Decision| print(&text.decision(decision)))?;
        print(&text.end())?;
    }
    plot.map_or(Ok(()), |plot| Ok(plot.finish()?))
}
