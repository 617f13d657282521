//! `narrows detect`.

mod stream;

use std::io;
use std::path::PathBuf;

use narrows_detect::{
    Detection, File, Input, Json, Limits, Plot, Report, Sheet, Source, Times, Watch, begin,
    detectors, text,
};
use narrows_laws::{Detector, Params};

use crate::args::detect::DetectArgs;
use crate::error::Error;
use crate::{print, set, words};

/// What errors call it.
const STDIN: &str = "standard input";

/// Reports which flows of a capture or a table share a bottleneck.
pub fn detect(args: &DetectArgs) -> Result<(), Error> {
    let detectors = detectors(args.detector.iter().map(String::as_str))
        .map_err(|message| Error::input("--detector", message))?;
    let params = set::params(&args.set)?;
    args.set.iter().try_for_each(|set| is_of(set, &detectors))?;
    let limits = Limits { flows: args.flows.into(), packets: args.min_packets, at: args.at };
    // Before a long capture is read.
    let plot = args.plot.as_deref().map(File::plot).transpose()?;
    let page = args.report.as_deref().map(File::page).transpose()?;
    if let Some(interface) = &args.interface {
        return stream::interface(interface, args, only(&detectors)?, &params, limits);
    }
    if args.files.len() > 1 {
        if args.losses.is_some() {
            return Err(Error::input(
                "--losses",
                "a qlog includes losses; expected one CSV for FILE",
            ));
        }
        if args.files.iter().any(|path| path.as_os_str() == "-") {
            return Err(Error::input("-", "standard input is read alone"));
        }
        let inputs = args.files.iter().map(|path| Input::file(path)).collect();
        let source = Source::logs(inputs, limits)?;
        return report(args, source, [plot, page], &detectors, &params);
    }
    let path = args.files.first().map_or("-".as_ref(), PathBuf::as_path);
    let input = if path.as_os_str() == "-" {
        let (is_capture, from) = begin(io::stdin())
            .map_err(|error| Error::input(STDIN, format!("cannot read: {error}")))?;
        // For these it has to be read more than once.
        let whole = detectors.len() > 1 || plot.is_some() || page.is_some();
        if is_capture && !whole && args.losses.is_none() {
            return stream::read(STDIN, from, args.json, detectors[0], &params, limits);
        }
        Input::kept(STDIN, from)?
    } else {
        Input::file(path)
    };
    let losses = args.losses.as_deref().map(Input::file);
    report(args, Source::open(input, losses, limits)?, [plot, page], &detectors, &params)
}

/// Does one of the detectors have the parameter that `NAME=VALUE` sets?
fn is_of(set: &str, detectors: &[Detector]) -> Result<(), Error> {
    let name = set.split('=').next().unwrap_or_default().trim();
    let group = name.split('.').next().unwrap_or_default();
    if group == "decision" || detectors.iter().any(|detector| detector.name() == group) {
        return Ok(());
    }
    let message = match Detector::all().any(|detector| detector.name() == group) {
        true => format!("{group} does not run; expected --detector with {group}"),
        false => "expected a parameter of a detector, such as ssc.p_s".into(),
    };
    Err(Error::input(format!("--set {name}"), message))
}

/// The detector, if it is one.
fn only(detectors: &[Detector]) -> Result<Detector, Error> {
    match detectors {
        [one] => Ok(*one),
        _ => Err(Error::input("--detector", "expected one detector, as an interface is read once")),
    }
}

/// What was read, with each detector; also into a plot and a page.
fn report(
    args: &DetectArgs,
    source: Source,
    [plot, page]: [Option<File>; 2],
    detectors: &[Detector],
    params: &Params,
) -> Result<(), Error> {
    for note in &source.recording().notes {
        crate::note(&format!("narrows: {note}"));
    }
    let mut plot = plot.map(|file| Plot::new(file, &source));
    let mut sheet = page.map(|file| Sheet::new(file, &source, detectors[0]));
    let mut reports = Vec::new();
    let several = detectors.len() > 1;
    for (place, &detector) in detectors.iter().enumerate() {
        let detection = Detection::new(&source, detector, params)?;
        // Of the first: by its groups flows are coloured.
        let mut watching: Vec<&mut dyn Watch> = Vec::new();
        if place == 0 {
            watching.extend(plot.as_mut().map(|plot| plot as &mut dyn Watch));
            watching.extend(sheet.as_mut().map(|sheet| sheet as &mut dyn Watch));
        }
        if args.json {
            let (mut json, begin) = Json::begin(source.recording(), detector);
            if several {
                print(if place == 0 { "[" } else { "," })?;
            }
            print(&begin)?;
            let found = detection.run(&mut watching, |decision| print(&json.decision(decision)))?;
            sheet.iter_mut().filter(|_| place == 0).for_each(|sheet| sheet.found(&found));
            print(&json.end(&found))?;
        } else {
            let mut times = Times::new(!detection.compares_pairs());
            let found = detection.run(&mut watching, |decision| -> Result<(), Error> {
                times.decided(decision);
                Ok(())
            })?;
            sheet.iter_mut().filter(|_| place == 0).for_each(|sheet| sheet.found(&found));
            reports.push(Report::new(source.recording(), detector, times, found));
        }
    }
    if !args.json {
        print(&text(source.recording(), &reports))?;
    } else if several {
        print("]\n")?;
    }
    sheet.map_or(Ok(()), |sheet| sheet.finish(&source, &words()[1..]))?;
    plot.map_or(Ok(()), |plot| Ok(plot.finish()?))
}
