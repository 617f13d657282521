//! What was so from when to when, in lanes over the page's timeline.

use serde::Serialize;

use crate::colour::Colour;

/// Lanes over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lanes {
    /// The title.
    pub title: String,
    /// A sentence on what is shown.
    pub about: String,
    /// The lanes, from top to bottom.
    pub lanes: Vec<Lane>,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// What stands before it.
    pub name: String,
    /// A heading above it, where some lanes belong together.
    pub heading: Option<String>,
    /// The colour of what was lost.
    #[serde(serialize_with = "crate::colour::class")]
    pub colour: Colour,
    /// What it shows, in the order of time.
    pub spans: Vec<Span>,
}

/// Something that was so from a time to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// From when on, s.
    pub from: f64,
    /// Until when, s.
    pub to: f64,
    /// How it is drawn.
    pub kind: Kind,
    /// What was so.
    pub what: String,
}

/// How a span is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In a group, by the number of its colour.
    Group(usize),
    /// Not congested.
    Clear,
    /// Undecided.
    Undecided,
    /// Not there.
    Absent,
    /// Right.
    Right,
    /// Wrong.
    Wrong,
    /// So many lost.
    Lost(u64),
}

impl Lane {
    /// Of these spans; neighbours of a kind become one.
    pub fn new(name: impl Into<String>, spans: impl IntoIterator<Item = Span>) -> Lane {
        let mut merged: Vec<Span> = Vec::new();
        for span in spans {
            match merged.last_mut() {
                Some(last)
                    if last.to >= span.from && last.kind == span.kind && last.what == span.what =>
                {
                    last.to = span.to;
                }
                _ => merged.push(span),
            }
        }
        Lane { name: name.into(), heading: None, colour: Colour::Ink, spans: merged }
    }

    /// The same under a heading.
    #[must_use]
    pub fn under(self, heading: impl Into<String>) -> Lane {
        Lane { heading: Some(heading.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_kind_are_one_and_a_gap_stays() {
        let span = |from: f64, to: f64, kind| Span { from, to, kind, what: String::new() };
        let lane = Lane::new(
            "a",
            [
                span(0.0, 1.0, Kind::Right),
                span(1.0, 2.0, Kind::Right),
                span(2.0, 3.0, Kind::Wrong),
                span(4.0, 5.0, Kind::Wrong),
            ],
        );
        let found: Vec<_> = lane.spans.iter().map(|span| (span.from, span.to)).collect();
        assert_eq!(found, [(0.0, 2.0), (2.0, 3.0), (4.0, 5.0)]);
    }
}
