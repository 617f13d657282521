//! What is read: a capture or a table, its flows, and their delays and losses.

use crate::{
    Error, Input, Limits, MAX_FLOWS, Observation, Signal, Traffic, capture, measure, survey, table,
};

/// A file whose flows are known.
#[derive(Debug)]
pub struct Source {
    input: Input,
    losses: Option<Input>,
    kind: Kind,
    names: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Capture(survey::Survey),
    Table(table::Survey),
}

impl Source {
    /// Reads a file, and a table of losses beside a table of delays, and chooses the flows that
    /// are analysed.
    ///
    /// # Errors
    /// A file cannot be read, is neither capture nor table, has a row that is not as it should be, or
    /// no flow that gives a delay. A damaged capture is no error: it is reported in [`Source::notes`].
    pub fn open(input: Input, losses: Option<Input>, limits: Limits) -> Result<Source, Error> {
        let limits = Limits { flows: limits.flows.min(MAX_FLOWS), ..limits };
        let (_, beginning) = input.open()?;
        let (kind, names) = if capture::is_capture(&beginning) {
            if losses.is_some() {
                let message = "a capture includes losses; expected CSV for FILE";
                return Err(Error::input("--losses", message));
            }
            let survey = survey::survey(&input, limits)?;
            let names = survey.flows.iter().map(|flow| flow.name.clone()).collect();
            (Kind::Capture(survey), names)
        } else {
            if limits.at.is_some() {
                return Err(Error::input("--at", "expected a capture for FILE, found a table"));
            }
            let survey = table::survey(&input, losses.as_ref(), limits)?;
            let names = survey.flows.clone();
            (Kind::Table(survey), names)
        };
        Ok(Source { input, losses, kind, names })
    }

    /// How its delays are taken.
    pub fn signal(&self) -> Signal {
        match &self.kind {
            Kind::Capture(survey) => survey.signal,
            Kind::Table(survey) => survey.signal,
        }
    }

    /// Where a capture was made and why that is so.
    pub fn captured(&self) -> Option<&str> {
        match &self.kind {
            Kind::Capture(survey) => Some(&survey.captured),
            Kind::Table(_) => None,
        }
    }

    /// The flows, the largest first, as the file calls them.
    pub fn flows(&self) -> &[String] {
        &self.names
    }

    /// What a flow sent.
    pub fn traffic(&self, flow: usize) -> Traffic {
        match &self.kind {
            Kind::Capture(survey) => survey.flows[flow].traffic,
            Kind::Table(survey) => survey.traffic[flow],
        }
    }

    /// What the user should know of the file: damage, what was skipped and left out.
    pub fn notes(&self) -> &[String] {
        match &self.kind {
            Kind::Capture(survey) => &survey.notes,
            Kind::Table(survey) => &survey.notes,
        }
    }

    /// When it begins and ends, seconds: of a capture since its first packet, of a table as it says.
    pub fn span(&self) -> (f64, f64) {
        match &self.kind {
            Kind::Capture(survey) => (0.0, (survey.end - survey.start) as f64 / 1e9),
            Kind::Table(survey) => (survey.start, survey.end),
        }
    }

    /// Reads it again and gives each observation of the flows to `each`, in the order of time.
    ///
    /// # Errors
    /// A file cannot be read any more, or `each` fails.
    pub fn measure<E: From<Error>>(
        &self,
        each: impl FnMut(Observation) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.kind {
            Kind::Capture(survey) => measure::measure(&self.input, survey, each),
            Kind::Table(survey) => table::measure(&self.input, self.losses.as_ref(), survey, each),
        }
    }
}
