//! Decisions as JSON and as text, while the file is read.

use std::fmt::Write;

use narrows_laws::{Detector, Place};

use crate::{Decision, Source};

/// Maximum pairs of flows in the text.
const PAIRS: usize = 20;

/// One object: `detector`, `signal`, `flows`, and `decisions` with a line each.
#[derive(Debug)]
pub struct Json<'a> {
    source: &'a Source,
    first: bool,
}

impl<'a> Json<'a> {
    /// Begins, and gives what is to be printed first.
    pub fn begin(source: &'a Source, detector: Detector) -> (Json<'a>, String) {
        let text = format!(
            "{{\"detector\": {}, \"signal\": {}, \"flows\": {}, \"decisions\": [",
            json(detector.name()),
            json(source.signal().name()),
            json(source.flows()),
        );
        (Json { source, first: true }, text)
    }

    /// A decision.
    pub fn decision(&mut self, decision: &Decision) -> String {
        let name = |&flow: &usize| self.source.flows()[flow].as_str();
        let names = |members: &[usize]| members.iter().map(name).collect::<Vec<_>>();
        let groups = decision.on.groups();
        let groups: Vec<Vec<&str>> = groups.iter().map(|group| names(&group.flows)).collect();
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        format!(
            "{separator}{{\"t_s\": {:.6}, \"groups\": {}, \"uncongested\": {}}}",
            decision.t_s,
            json(&groups),
            json(&names(&decision.on.uncongested())),
        )
    }

    /// The end.
    pub fn end(self) -> String {
        if self.first { "]}\n".into() } else { "\n]}\n".into() }
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    // Only maps with keys other than strings fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// Lines for people: a span of time for each run of the same decisions, and how often each two
/// flows were together.
#[derive(Debug)]
pub struct Text<'a> {
    source: &'a Source,
    detector: Detector,
    /// Places since when, the decisions since, and the sum of how sure each group was.
    span: Option<Span>,
    /// Decisions that placed each two flows, and those in which they were together.
    placed: Vec<u64>,
    together: Vec<u64>,
}

#[derive(Debug)]
struct Span {
    from: f64,
    decision: Decision,
    groups: Vec<Vec<usize>>,
    count: u64,
    sure: Vec<f64>,
}

impl<'a> Text<'a> {
    /// Begins, and gives what is to be printed first.
    pub fn begin(source: &'a Source, detector: Detector) -> (Text<'a>, String) {
        let flows = source.flows();
        let (start, end) = source.span();
        let mut text = format!(
            "{} on {} flows, {:.1} s, by {} ({})\n\n",
            detector.name(),
            flows.len(),
            end - start,
            source.signal(),
            source.signal().about(),
        );
        for (index, name) in flows.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:4}  {name}", index + 1);
        }
        let _ = writeln!(text, "\n  from s    to s  who shares a bottleneck (confidence)");
        let pairs = flows.len() * flows.len();
        let (placed, together) = (vec![0; pairs], vec![0; pairs]);
        (Text { source, detector, span: None, placed, together }, text)
    }

    /// A decision; it is shown when another follows that differs.
    pub fn decision(&mut self, decision: &Decision) -> String {
        self.count(decision);
        let (groups, sure): (Vec<_>, Vec<_>) =
            decision.on.groups().into_iter().map(|group| (group.flows, group.confidence)).unzip();
        match &mut self.span {
            Some(span) if span.groups == groups && span.same_others(decision) => {
                span.count += 1;
                span.sure.iter_mut().zip(sure).for_each(|(sum, sure)| *sum += sure);
                String::new()
            }
            span => {
                let from = decision.t_s;
                let next = Span { from, decision: decision.clone(), groups, count: 1, sure };
                span.replace(next).map(|span| span.line(from)).unwrap_or_default()
            }
        }
    }

    fn count(&mut self, decision: &Decision) {
        let count = decision.on.places.len();
        for a in 0..count {
            for b in a + 1..count {
                let (one, other) = (decision.on.places[a], decision.on.places[b]);
                if one != Place::Undecided && other != Place::Undecided {
                    self.placed[a * count + b] += 1;
                    let together = one == other && one != Place::Clear;
                    self.together[a * count + b] += u64::from(together);
                }
            }
        }
    }

    /// The last span, and how often each two were together.
    pub fn end(self) -> String {
        let (start, end) = self.source.span();
        let Some(span) = &self.span else {
            return format!(
                "no decision: {} needs more than these {:.1} s of data\n",
                self.detector.name(),
                end - start
            );
        };
        let mut text = span.line(end) + "\n";
        let count = self.source.flows().len();
        let share = |pair: usize| self.together[pair] as f64 / self.placed[pair] as f64;
        let mut pairs: Vec<usize> =
            (0..count * count).filter(|&pair| self.placed[pair] > 0).collect();
        if pairs.is_empty() {
            return text + "No decision placed two flows.\n";
        }
        pairs.sort_by(|&a, &b| share(b).total_cmp(&share(a)).then(a.cmp(&b)));
        text += "Share of the decisions on both flows that found a shared bottleneck:\n";
        for &pair in pairs.iter().take(PAIRS) {
            let (a, b) = (pair / count + 1, pair % count + 1);
            let _ = writeln!(
                text,
                "{a:4} and {b:2}  {:4.0} %  of {}",
                100.0 * share(pair),
                self.placed[pair]
            );
        }
        if let Some(&next) = pairs.get(PAIRS) {
            let (more, share) = (pairs.len() - PAIRS, 100.0 * share(next));
            let _ = writeln!(text, "{more:4} more pairs, {share:.0} % at most");
        }
        text
    }
}

impl Span {
    fn same_others(&self, decision: &Decision) -> bool {
        self.decision.on.uncongested() == decision.on.uncongested()
            && self.decision.on.undecided() == decision.on.undecided()
    }

    fn line(&self, to: f64) -> String {
        let list = |members: &[usize]| {
            let numbers = members.iter().map(|flow| (flow + 1).to_string());
            numbers.collect::<Vec<_>>().join("+")
        };
        let mut parts: Vec<String> = Vec::new();
        let groups = || self.groups.iter().zip(&self.sure);
        for (members, sum) in groups().filter(|(members, _)| members.len() > 1) {
            let sure = 100.0 * sum / self.count as f64;
            parts.push(format!("{} ({sure:.0} %)", list(members)));
        }
        let alone: Vec<String> = groups()
            .filter(|(members, _)| members.len() == 1)
            .map(|(members, sum)| {
                format!("{} ({:.0} %)", members[0] + 1, 100.0 * sum / self.count as f64)
            })
            .collect();
        if !alone.is_empty() {
            parts.push(format!("alone: {}", alone.join(", ")));
        }
        for (what, members) in [
            ("not congested", self.decision.on.uncongested()),
            ("undecided", self.decision.on.undecided()),
        ] {
            if !members.is_empty() {
                parts.push(format!("{what}: {}", list(&members).replace('+', ", ")));
            }
        }
        format!("{:8.1}  {to:8.1}  {}\n", self.from, parts.join("; "))
    }
}
