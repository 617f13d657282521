//! A detector over the second pass.

use narrows_laws::detect::{Flows, FlowsDecision, Sample};
use narrows_laws::{Detector, Params};

use crate::{Decision, Error, Plot, Source};

/// The detector called `name`, which must go by delays and losses.
///
/// # Errors
/// There is none; one line that has those there are.
pub fn detector(name: &str) -> Result<Detector, String> {
    let fit = || Detector::all().filter(|detector| detector.measures_delay());
    fit().find(|detector| detector.name() == name).ok_or_else(|| {
        let names = fit().map(Detector::name).collect::<Vec<_>>().join(", ");
        format!("unknown detector '{name}'; for captures and tables expected one of: {names}")
    })
}

/// A detector with its parameters, made for a file.
pub struct Detection<'a> {
    source: &'a Source,
    flows: Flows,
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
        let flows = Flows::new(detector, params, source.flows().len());
        Ok(Detection { source, flows: flows.map_err(|error| Error::input("--detector", error))? })
    }

    /// Reads the file once more and reports each decision. The delays go into the plot, too.
    ///
    /// # Errors
    /// The file cannot be read any more, or `decided` fails.
    pub fn run<E: From<Error>>(
        mut self,
        mut plot: Option<&mut Plot>,
        mut decided: impl FnMut(&Decision) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, end) = self.source.span();
        let mut report = |on: FlowsDecision, plot: &mut Option<&mut Plot>| {
            let decision = Decision { t_s: start + on.at_us as f64 / 1e6, on };
            if let Some(plot) = plot {
                plot.decided(&decision);
            }
            decided(&decision)
        };
        self.source.measure::<E>(|observation| {
            let sample = Sample {
                now_us: observation.now_us,
                delay_us: observation.delay_us,
                delivered: observation.delivered,
                lost: observation.lost,
                limited: false,
            };
            let mut due = self.flows.sample(observation.flow, &sample);
            while let Some(on) = due {
                report(on, &mut plot)?;
                due = self.flows.advance(observation.now_us);
            }
            if let (Some(plot), Some(delay_us)) = (&mut plot, observation.delay_us) {
                plot.delay(observation.flow, observation.now_us, delay_us);
            }
            Ok(())
        })?;
        while let Some(on) = self.flows.advance(((end - start) * 1e6) as u64) {
            report(on, &mut plot)?;
        }
        Ok(())
    }
}
