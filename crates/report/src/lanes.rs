//! What was so from when to when, in lanes over the page's timeline.

use serde::{Serialize, Serializer};

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
#[derive(Clone, Debug, PartialEq)]
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
    /// In none with others.
    Alone,
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

impl Serialize for Span {
    /// As an array: there are many. Its text is left out where its kind says all.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let times = (round(self.from), round(self.to));
        match self.what.as_str() {
            "" => (times.0, times.1, self.kind).serialize(to),
            what => (times.0, times.1, self.kind, what).serialize(to),
        }
    }
}

impl Kind {
    /// What must not vanish beside others: the greater.
    fn weight(self) -> u8 {
        match self {
            Kind::Wrong => 3,
            Kind::Undecided => 2,
            Kind::Right => 1,
            _ => 0,
        }
    }
}

impl Lanes {
    /// How many spans it has.
    pub(crate) fn size(&self) -> usize {
        self.lanes.iter().map(|lane| lane.spans.len()).sum()
    }

    /// At most about `spans` in each lane: what begins in the same part of its time becomes one, in which
    /// what was lost is added up, what was wrong stays so, and else what lasted longest stands for all.
    #[must_use]
    pub fn thinned(&self, spans: usize) -> Lanes {
        let lanes = self.lanes.iter().map(|lane| lane.thinned(spans)).collect();
        Lanes { lanes, ..self.clone() }
    }
}

impl Lane {
    fn thinned(&self, spans: usize) -> Lane {
        let ([first, ..], [.., last]) = (&self.spans[..], &self.spans[..]) else {
            return self.clone();
        };
        if self.spans.len() <= spans {
            return self.clone();
        }
        let part = (last.to - first.from) / spans as f64;
        let number = |span: &Span| ((span.from - first.from) / part) as usize;
        let one = |of: &[Span]| {
            let longest = |a: &&Span, b: &&Span| {
                let by = |span: &Span| (span.kind.weight(), span.to - span.from);
                by(a).0.cmp(&by(b).0).then(by(a).1.total_cmp(&by(b).1))
            };
            let main = of.iter().max_by(longest).unwrap_or(&of[0]);
            let lost = of.iter().filter_map(|span| match span.kind {
                Kind::Lost(lost) => Some(lost),
                _ => None,
            });
            let kind = match main.kind {
                Kind::Lost(_) => Kind::Lost(lost.sum()),
                kind => kind,
            };
            let what = match of.len() {
                1 => main.what.clone(),
                _ if main.what.is_empty() => String::new(),
                others => format!("{}, and {} more", main.what, others - 1),
            };
            Span { from: of[0].from, to: of[of.len() - 1].to, kind, what }
        };
        let same = |a: &Span, b: &Span| number(a) == number(b);
        Lane { spans: self.spans.chunk_by(same).map(one).collect(), ..self.clone() }
    }

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

    #[test]
    fn thinning_keeps_what_was_wrong_and_adds_up_what_was_lost() {
        let spans = |kind: &dyn Fn(usize) -> Kind| {
            let span = |i: usize| Span {
                from: i as f64,
                to: i as f64 + 1.0,
                kind: kind(i),
                what: String::new(),
            };
            (0..10_000).map(span).collect::<Vec<_>>()
        };
        let lane = |spans| Lane { name: String::new(), heading: None, colour: Colour::Ink, spans };
        let wrong =
            lane(spans(&|i| if i == 5432 { Kind::Wrong } else { Kind::Right })).thinned(100);
        assert!(wrong.spans.len() <= 101);
        let there = |span: &&Span| span.kind == Kind::Wrong;
        let there: Vec<&Span> = wrong.spans.iter().filter(there).collect();
        assert!(matches!(there[..], [Span { from, to, .. }] if (*from..*to).contains(&5432.0)));
        let lost = lane(spans(&|i| Kind::Lost(i as u64 % 3))).thinned(100);
        let sum = lost.spans.iter().map(|span| match span.kind {
            Kind::Lost(lost) => lost,
            _ => 0,
        });
        assert_eq!(sum.sum::<u64>(), (0..10_000_u64).map(|i| i % 3).sum::<u64>());
    }
}
