//! A detector over the second pass.

use narrows_laws::catalogue::Unknown;
use narrows_laws::{Detector, Params};

use crate::{Decision, Error, Live, Source, Verdict, Watch};

/// What a detector found in a file.
#[derive(Clone, Debug)]
pub struct Found {
    /// On each two flows.
    pub verdicts: Vec<Verdict>,
    /// Of each flow: packets that were lost.
    pub lost: Vec<u64>,
    /// A flow has to send for so long before the detector answers, seconds.
    pub warm_up_s: f64,
}

/// The name for all detectors that go by delays and losses.
const ALL: &str = "all";

/// The detector that is used if none is named.
pub const DEFAULT: &str = "xcorr";

/// The detectors called `names`, which must go by delays and losses; for `all` all of them, the
/// [`DEFAULT`] first.
///
/// # Errors
/// There is none of a name; one line that has those there are.
pub fn detectors<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Detector>, String> {
    let mut fit: Vec<Detector> = Detector::all().filter(|all| all.measures_delay()).collect();
    fit.sort_by_key(|detector| detector.name() != DEFAULT);
    let mut found: Vec<Detector> = Vec::new();
    for name in names {
        let named: Vec<_> = fit.iter().filter(|one| name == ALL || one.name() == name).collect();
        if named.is_empty() {
            let known: Vec<&str> = fit.iter().map(|of| of.name()).chain([ALL]).collect();
            return Err(Unknown::new("detector of captures and tables", name, &known).to_string());
        }
        for detector in named {
            if !found.contains(detector) {
                found.push(*detector);
            }
        }
    }
    Ok(found)
}

/// A detector with its parameters, made for a file.
pub struct Detection<'a> {
    source: &'a Source,
    live: Live,
}

impl<'a> Detection<'a> {
    /// Of the flows of `source`.
    ///
    /// # Errors
    /// The detector does not go by delays and losses.
    pub fn new(
        source: &'a Source,
        detector: Detector,
        params: &Params,
    ) -> Result<Detection<'a>, Error> {
        Ok(Detection { source, live: Live::new(detector, params, source.recording().flows.len())? })
    }

    /// Does it compare pairs of flows? Else it groups flows by several observations of each.
    pub fn compares_pairs(&self) -> bool {
        self.live.compares_pairs()
    }

    /// Reads the file once more, reports each decision, and returns what was found at the end. The
    /// observations and decisions go to who watches, too.
    ///
    /// # Errors
    /// The file cannot be read any more, or `decided` fails.
    pub fn run<E: From<Error>>(
        self,
        watching: &mut [&mut dyn Watch],
        mut decided: impl FnMut(&Decision) -> Result<(), E>,
    ) -> Result<Found, E> {
        let Detection { source, mut live } = self;
        let mut lost = vec![0; source.recording().flows.len()];
        let (start, end) = source.recording().span;
        let mut report = |mut decision: Decision, watching: &mut [&mut dyn Watch]| {
            decision.t_s += start;
            watching.iter_mut().for_each(|one| one.decided(&decision));
            decided(&decision)
        };
        source.measure::<E>(|observation| {
            let mut due = live.sample(observation.flow, &observation.sample());
            while let Some(decision) = due {
                report(decision, watching)?;
                due = live.advance(observation.now_us);
            }
            lost[observation.flow] += u64::from(observation.lost);
            watching.iter_mut().for_each(|one| one.observed(&observation));
            Ok(())
        })?;
        while let Some(decision) = live.advance(((end - start) * 1e6) as u64) {
            report(decision, watching)?;
        }
        let mut verdicts = live.verdicts();
        for verdict in &mut verdicts {
            verdict.since_s = verdict.since_s.map(|since_s| start + since_s);
        }
        Ok(Found { verdicts, lost, warm_up_s: live.warm_up_s })
    }
}
