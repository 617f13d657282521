//! What is read: a capture, logs of QUIC or a table, its flows, and their delays and losses.

use crate::{
    At, Error, Input, Limits, MAX_FLOWS, Observation, Signal, Traffic, capture, input, json, logs,
    measure, survey, surveyed, table,
};

/// What is known of a recording: its flows, and what they sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// How its delays are taken.
    pub signal: Signal,
    /// Where a capture was made and why that is so; of a table nothing.
    pub captured: Option<String>,
    /// The flows, as the file calls them: of a file the largest first, of a stream in the order in which
    /// they were large enough.
    pub flows: Vec<String>,
    /// What each of them sent.
    pub traffic: Vec<Traffic>,
    /// When it begins and ends, seconds: of a capture since its first packet, of a table as it says.
    pub span: (f64, f64),
    /// What the user should know of it: damage, what was skipped and left out.
    pub notes: Vec<String>,
}

impl Recording {
    /// What its signal is and where it was captured, in a few words.
    pub fn about(&self) -> &'static str {
        let captured = self.captured.as_deref().unwrap_or_default();
        match captured.starts_with(At::Middle.name()) {
            true => self.signal.about_in_the_middle(),
            false => self.signal.about(),
        }
    }
}

/// A file whose flows are known.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    recording: Recording,
}

#[derive(Debug)]
enum Kind {
    Capture(Input, surveyed::Survey),
    Logs(logs::Survey),
    Table(Input, Option<Input>, table::Survey),
}

impl Source {
    /// Reads a file, and a table of losses beside a table of delays, and chooses the flows that
    /// are analysed.
    ///
    /// # Errors
    /// A file cannot be read, is neither capture nor table, has a row that is not as it should be, or
    /// no flow that gives a delay. A damaged capture is no error: it is reported in [`Recording::notes`].
    pub fn open(input: Input, losses: Option<Input>, limits: Limits) -> Result<Source, Error> {
        let limits = Limits { flows: limits.flows.min(MAX_FLOWS), ..limits };
        let (_, beginning) = input.open()?;
        if json::is_json(&beginning) {
            if losses.is_some() {
                return Err(Error::input(
                    "--losses",
                    "a qlog includes losses; expected CSV for FILE",
                ));
            }
            return Source::logs(vec![input], limits);
        }
        if let Some(other) = input::other(&beginning) {
            let message = format!("expected a capture, a qlog or a table, found {other}");
            return Err(Error::input(input.name(), message));
        }
        let (kind, recording) = if capture::is_capture(&beginning) {
            if losses.is_some() {
                let message = "a capture includes losses; expected CSV for FILE";
                return Err(Error::input("--losses", message));
            }
            let survey = survey::survey(&input, limits)?;
            let recording = Recording {
                signal: survey.signal,
                captured: Some(survey.captured.clone()),
                flows: survey.flows.iter().map(|flow| flow.name.clone()).collect(),
                traffic: survey.flows.iter().map(|flow| flow.traffic).collect(),
                span: (0.0, (survey.end - survey.start) as f64 / 1e9),
                notes: survey.notes.clone(),
            };
            (Kind::Capture(input, survey), recording)
        } else {
            if limits.at.is_some() {
                return Err(Error::input("--at", "expected a capture for FILE, found a table"));
            }
            let survey = table::survey(&input, losses.as_ref(), limits)?;
            let recording = Recording {
                signal: survey.signal,
                captured: None,
                flows: survey.flows.clone(),
                traffic: survey.traffic.clone(),
                span: (survey.start, survey.end),
                notes: survey.notes.clone(),
            };
            (Kind::Table(input, losses, survey), recording)
        };
        Ok(Source { kind, recording })
    }

    /// Reads logs of QUIC (qlog), each of a connection or of several, and chooses the paths that are
    /// analysed. What they show of these is kept in temporary files.
    ///
    /// # Errors
    /// A file is no qlog or cannot be read, or none shows round-trip times; of several that have, one does not
    /// say when it began.
    pub fn logs(inputs: Vec<Input>, limits: Limits) -> Result<Source, Error> {
        if limits.at.is_some() {
            return Err(Error::input("--at", "expected a capture for FILE, found a qlog"));
        }
        for input in &inputs {
            let (_, beginning) = input.open()?;
            if !json::is_json(&beginning) {
                let message = "expected a qlog: of captures and tables one file is read (mergecap joins captures)";
                return Err(Error::input(input.name(), message));
            }
        }
        let survey =
            logs::survey(&inputs, Limits { flows: limits.flows.min(MAX_FLOWS), ..limits })?;
        let recording = Recording {
            signal: Signal::Rtt,
            captured: None,
            flows: survey.flows.clone(),
            traffic: survey.traffic.clone(),
            span: (0.0, survey.span_s),
            notes: survey.notes.clone(),
        };
        Ok(Source { kind: Kind::Logs(survey), recording })
    }

    /// What is known of it.
    pub fn recording(&self) -> &Recording {
        &self.recording
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
            Kind::Capture(input, survey) => measure::measure(input, survey, each),
            Kind::Logs(survey) => logs::measure(survey, each),
            Kind::Table(input, losses, survey) => {
                table::measure(input, losses.as_ref(), survey, each)
            }
        }
    }
}
