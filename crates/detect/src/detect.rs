//! A detector over the second pass.

use narrows_laws::catalogue::Unknown;
use narrows_laws::detect::{Flows, FlowsDecision, Sample};
use narrows_laws::{Detector, Params};

use crate::pairs::Pairs;
use crate::verdict::Verdicts;
use crate::{Decision, Error, Plot, Source, Verdict};

/// What a detector found in a file.
#[derive(Debug)]
pub struct Found {
    /// On each two flows.
    pub verdicts: Vec<Verdict>,
    /// Of each flow: packets that were lost.
    pub lost: Vec<u64>,
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
    flows: Flows,
    verdicts: Verdicts,
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
        let count = source.flows().len();
        let flows = Flows::new(detector, params, count);
        let flows = flows.map_err(|error| Error::input("--detector", error))?;
        Ok(Detection { source, flows, verdicts: Verdicts::new(count) })
    }

    /// Does it compare pairs of flows? Else it groups flows by several observations of each.
    pub fn compares_pairs(&self) -> bool {
        self.source.flows().len() > 1 && self.flows.pair(0, 1).is_some()
    }

    /// Reads the file once more, reports each decision, and returns what was found at the end. The
    /// observations go into the plot, too.
    ///
    /// # Errors
    /// The file cannot be read any more, or `decided` fails.
    pub fn run<E: From<Error>>(
        self,
        mut plot: Option<&mut Plot>,
        mut decided: impl FnMut(&Decision) -> Result<(), E>,
    ) -> Result<Found, E> {
        let Detection { source, mut flows, mut verdicts } = self;
        let count = source.flows().len();
        let mut lost = vec![0; count];
        let (start, end) = source.span();
        let mut report = |on: FlowsDecision, flows: &Flows, plot: &mut Option<&mut Plot>| {
            let mut decision = Decision { t_s: start + on.at_us as f64 / 1e6, on };
            match Pairs::new(count, |a, b| flows.pair(a, b)) {
                // Its groups are for coupling: who is not known to be apart is in one.
                Some(pairs) => {
                    decision.on.places = pairs.places();
                    verdicts.compared(decision.t_s, &pairs);
                }
                None => verdicts.grouped(&decision),
            }
            if let Some(plot) = plot {
                plot.decided(&decision);
            }
            decided(&decision)
        };
        source.measure::<E>(|observation| {
            let sample = Sample {
                now_us: observation.now_us,
                delay_us: observation.delay_us,
                delivered: observation.delivered,
                lost: observation.lost,
                limited: false,
            };
            let mut due = flows.sample(observation.flow, &sample);
            while let Some(on) = due {
                report(on, &flows, &mut plot)?;
                due = flows.advance(observation.now_us);
            }
            lost[observation.flow] += u64::from(observation.lost);
            if let Some(plot) = &mut plot {
                plot.observed(&observation);
            }
            Ok(())
        })?;
        while let Some(on) = flows.advance(((end - start) * 1e6) as u64) {
            report(on, &flows, &mut plot)?;
        }
        Ok(Found { verdicts: verdicts.end(), lost })
    }
}
