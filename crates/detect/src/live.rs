//! A detector on flows while they send.

use narrows_laws::detect::{Finding, Flows, FlowsDecision, Pair, Sample};
use narrows_laws::{Detector, Params};

use crate::verdict::{Verdicts, pairs};
use crate::{Decision, Error, Verdict};

/// A detector with its parameters on some flows, and what it has found so far.
pub struct Live {
    flows: Flows,
    count: usize,
    verdicts: Verdicts,
    /// A flow has to send for so long before there is an answer, seconds.
    pub(crate) warm_up_s: f64,
}

impl Live {
    /// Of so many flows, at most [`crate::MAX_FLOWS`].
    ///
    /// # Errors
    /// The detector does not go by delays and losses.
    pub fn new(detector: Detector, params: &Params, count: usize) -> Result<Live, Error> {
        let flows = Flows::new(detector, params, count);
        let flows = flows.map_err(|error| Error::input("--detector", error))?;
        let interval_s = flows.interval_us() as f64 / 1e6;
        let warm_up_s = detector.warm_up_us(params) as f64 / 1e6;
        Ok(Live { flows, count, verdicts: Verdicts::new(count, interval_s), warm_up_s })
    }

    /// Does it compare pairs of flows? Else it groups flows by several observations of each.
    pub fn compares_pairs(&self) -> bool {
        self.count > 1 && self.flows.pair(0, 1).is_some()
    }

    /// Takes a sample of a flow; samples of all flows come in the order of time. Returns the oldest
    /// decision that was not returned yet, in the time of the samples.
    pub fn sample(&mut self, flow: usize, sample: &Sample) -> Option<Decision> {
        let due = self.flows.sample(flow, sample);
        due.map(|on| self.decided(on))
    }

    /// Advances the time to `now_us`, and returns the oldest decision that was not returned yet.
    pub fn advance(&mut self, now_us: u64) -> Option<Decision> {
        let due = self.flows.advance(now_us);
        due.map(|on| self.decided(on))
    }

    /// On each two flows.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.verdicts.now()
    }

    fn decided(&mut self, on: FlowsDecision) -> Decision {
        let mut decision = Decision { t_s: on.at_us as f64 / 1e6, on };
        if !self.compares_pairs() {
            self.verdicts.grouped(&decision);
            return decision;
        }
        let pair = |(a, b)| Some(((a, b), self.flows.pair(a, b)?));
        let (all, said): (Vec<_>, Vec<Pair>) = pairs(self.count).filter_map(pair).unzip();
        let answers = all.iter().zip(&said).map(|(&(a, b), pair)| (a, b, pair.answer));
        let finding = Finding::new(self.count, answers);
        // Its groups are for coupling: who is not known to be apart is in one.
        decision.on.places = finding.places();
        self.verdicts.compared(decision.t_s, self.count, &said, &finding);
        decision
    }
}
