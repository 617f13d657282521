//! Decisions and verdicts: as JSON while the file is read, and as text at the end.

use std::fmt::Write;

use narrows_laws::Detector;

use crate::verdict::{numbered, sentence};
use crate::{Answer, Decision, Event, Evidence, Found, Part, Recording, Traffic, Verdict, Why};

/// Maximum pairs of flows in the text.
const PAIRS: usize = 20;

/// One object: `detector`, `signal`, `captured`, `notes`, `flows`, `decisions` with a line each, `verdicts`
/// with a line for each two flows, and `traffic` with a line for each flow.
#[derive(Debug)]
pub struct Json<'a> {
    recording: &'a Recording,
    first: bool,
}

impl<'a> Json<'a> {
    /// Begins, and gives what is to be printed first.
    pub fn begin(recording: &'a Recording, detector: Detector) -> (Json<'a>, String) {
        let text = format!(
            "{{\"detector\": {}, \"signal\": {},{} \"flows\": {}, \"decisions\": [",
            json(detector.name()),
            json(recording.signal.name()),
            known(recording),
            json(&recording.flows),
        );
        (Json { recording, first: true }, text)
    }

    /// A decision.
    pub fn decision(&mut self, made: &Decision) -> String {
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        format!("{separator}{}", decision(&self.recording.flows, made))
    }

    /// The end.
    pub fn end(self, found: &Found) -> String {
        let lines = verdicts(&self.recording.flows, found);
        let line = if self.first { "" } else { "\n" };
        let verdicts = match lines.is_empty() {
            true => String::new(),
            false => format!("\n{}\n", lines.join(",\n")),
        };
        let traffic = sent(self.recording, found).join(",\n");
        format!("{line}], \"verdicts\": [{verdicts}], \"traffic\": [\n{traffic}\n]}}\n")
    }
}

/// What happens in a stream, as a line of JSON: `t_s` with `joined` or `groups`; of what was found up to a
/// time, what [`Json`] has but for the decisions.
pub fn line(detector: Detector, event: &Event) -> String {
    let object = match event {
        Event::Joined { t_s, flows } => {
            format!("{{\"t_s\": {t_s:.6}, \"joined\": {}}}", json(&flows.last()))
        }
        Event::Decided { decision: made, flows } => decision(flows, made),
        Event::Second { .. } => return String::new(),
        Event::Renewed(part) => part_line(detector, part),
    };
    object + "\n"
}

/// What was found in a part of a stream, as an object in a line.
fn part_line(detector: Detector, part: &Part) -> String {
    let Part { recording, found } = part;
    let (from, to) = recording.span;
    format!(
        "{{\"detector\": {}, \"signal\": {},{} \"from_s\": {from:.6}, \"to_s\": {to:.6}, \
         \"flows\": {}, \"verdicts\": [{}], \"traffic\": [{}]}}",
        json(detector.name()),
        json(recording.signal.name()),
        known(recording),
        json(&recording.flows),
        verdicts(&recording.flows, found).join(", "),
        sent(recording, found).join(", "),
    )
}

/// Where it was captured, if it was, and what the user should know of it, as members of an object.
fn known(recording: &Recording) -> String {
    let captured = recording.captured.as_deref();
    let captured = captured.map_or(String::new(), |at| format!(" \"captured\": {},", json(at)));
    format!("{captured} \"notes\": {},", json(&recording.notes))
}

/// A decision on flows by their names, as an object in a line.
fn decision(flows: &[String], decision: &Decision) -> String {
    let names =
        |members: &[usize]| members.iter().map(|&flow| flows[flow].as_str()).collect::<Vec<_>>();
    let groups = decision.on.groups();
    let groups: Vec<Vec<&str>> = groups.iter().map(|group| names(&group.flows)).collect();
    format!(
        "{{\"t_s\": {:.6}, \"groups\": {}, \"uncongested\": {}}}",
        decision.t_s,
        json(&groups),
        json(&names(&decision.on.uncongested())),
    )
}

/// What each flow sent, an object each.
fn sent(recording: &Recording, found: &Found) -> Vec<String> {
    let flows = recording.flows.iter().zip(&recording.traffic).zip(&found.lost);
    let object = |((flow, traffic), lost): ((&String, &Traffic), &u64)| {
        let rate = if traffic.bytes.is_some() { "mbit_per_s" } else { "packets_per_s" };
        let lost = recording.signal.has_losses().then_some(lost);
        format!(
            "{{\"flow\": {}, \"packets\": {}, \"{rate}\": {:.3}, \"min_rtt_ms\": {}, \"lost\": {}}}",
            json(flow),
            traffic.packets,
            traffic.rate(),
            traffic.min_rtt_ms.map_or("null".into(), |rtt| format!("{rtt:.3}")),
            json(&lost),
        )
    };
    flows.map(object).collect()
}

/// The verdicts, an object each.
fn verdicts(flows: &[String], found: &Found) -> Vec<String> {
    found.verdicts.iter().map(|of| verdict(flows, of, found.warm_up_s)).collect()
}

fn verdict(flows: &[String], verdict: &Verdict, warm_up_s: f64) -> String {
    let (a, b) = verdict.flows;
    let names = json(&[&flows[a], &flows[b]]);
    let mut text = format!("{{\"flows\": {names}, \"verdict\": {}", json(verdict.answer.name()));
    if let Some(why) = verdict.why {
        let needs = json(&needs(why, warm_up_s));
        text += &format!(", \"why\": {}, \"needs\": {needs}", json(why.name()));
    }
    if let Some(since_s) = verdict.since_s {
        text += &format!(", \"since_s\": {since_s:.6}");
    }
    if let Some(compared_s) = verdict.compared_s {
        text += &format!(", \"compared_s\": {compared_s:.2}");
    }
    text += &match verdict.evidence {
        Some(Evidence::Delays { confidence, concordance, observations }) => format!(
            ", \"confidence\": {confidence}, \"concordance\": {concordance:.3}, \
             \"observations\": {observations}"
        ),
        Some(Evidence::Decisions { agree, all }) => {
            format!(", \"agree\": {agree}, \"decisions\": {all}")
        }
        None => String::new(),
    };
    text + "}"
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    // Only maps with keys other than strings fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// What one detector found in a file, for people.
#[derive(Debug)]
pub struct Report {
    detector: Detector,
    found: Found,
    /// A line for each time in which the decisions were the same.
    times: String,
}

impl Report {
    /// Of a detector whose decisions are complete.
    pub fn new(recording: &Recording, detector: Detector, times: Times, found: Found) -> Report {
        Report { detector, found, times: times.end(recording.span.1) }
    }
}

/// The text of one detector, or of several beside each other: a sentence, the flows, each two of them,
/// and of a single detector the times.
pub fn text(recording: &Recording, reports: &[Report]) -> String {
    let flows = &recording.flows;
    let (start, end) = recording.span;
    let name = |report: &Report| report.detector.name();
    let width = reports.iter().map(|report| name(report).len()).max().unwrap_or_default();
    let mut text = String::new();
    for report in reports {
        let said = sentence(&report.found.verdicts, flows.len());
        // Writing to a string cannot fail.
        let _ = match reports {
            [_] => writeln!(text, "{said}"),
            _ => writeln!(text, "{:width$}  {said}", name(report)),
        };
    }
    let _ = writeln!(
        text,
        "\n{} on {} flow{}, {:.1} s, by {}\n({})",
        reports.iter().map(name).collect::<Vec<_>>().join(", "),
        flows.len(),
        if flows.len() == 1 { "" } else { "s" },
        end - start,
        recording.signal,
        recording.about(),
    );
    if let Some(captured) = &recording.captured {
        let _ = writeln!(text, "(captured {captured})");
    }
    text.push('\n');
    text += &traffic(recording, &reports[0].found.lost);
    text += &match reports {
        [one] => pairs(one) + &one.times,
        _ => beside(reports),
    };
    text
}

/// What each flow sent and lost.
fn traffic(recording: &Recording, lost: &[u64]) -> String {
    let mut text = String::new();
    for (flow, name) in recording.flows.iter().enumerate() {
        let traffic = recording.traffic[flow];
        if flow == 0 {
            let rate = if traffic.bytes.is_some() { "Mbit/s" } else { "packets/s" };
            let _ = writeln!(text, "      packets  {rate:>9}  min RTT ms   lost  flow");
        }
        let rtt = traffic.min_rtt_ms.map_or("-".into(), |rtt| format!("{rtt:.1}"));
        let lost = 100.0 * lost[flow] as f64 / traffic.packets.max(1) as f64;
        let has_losses = recording.signal.has_losses();
        let lost = if has_losses { format!("{lost:.1}%") } else { "-".into() };
        let _ = writeln!(
            text,
            "{:>4} {:8}  {:9.2}  {rtt:>10}  {lost:>5}  {name}",
            numbered(flow),
            traffic.packets,
            traffic.rate(),
        );
    }
    text
}

/// Each two flows: the verdict, since when, how sure or why not.
fn pairs(report: &Report) -> String {
    if report.found.verdicts.is_empty() {
        return String::new();
    }
    let compares = report.found.verdicts.iter().any(|of| of.compared_s.is_some());
    let compared = if compares { "compared s  " } else { "" };
    let mut text = format!("\n   flows  bottleneck   since s  {compared}how sure\n");
    for verdict in sorted(&report.found.verdicts).into_iter().take(PAIRS) {
        let (a, b) = verdict.flows;
        let since = verdict.since_s.map_or(String::new(), |since_s| format!("{since_s:.1}"));
        let compared = verdict.compared_s.map_or(String::new(), |s| format!("{s:10.1}  "));
        let sure = how_sure(verdict);
        let answer = verdict.answer.name();
        let (a, b) = (numbered(a), numbered(b));
        let _ = writeln!(text, "{a:>4} {b:>3}  {answer:11}  {since:>7}  {compared}{sure}");
    }
    text + &more(report) + &needed(report)
}

/// How sure a verdict is, or why it could not be given.
pub(crate) fn how_sure(verdict: &Verdict) -> String {
    match (verdict.why, verdict.evidence) {
        (Some(why), _) => why.name().to_owned(),
        (_, Some(evidence)) => evidence.to_string(),
        (_, None) => "by their pairs with others".into(),
    }
}

/// Each two flows: the verdict of each detector, and since when.
fn beside(reports: &[Report]) -> String {
    let mut text = String::from("\n   flows");
    let row = |text: &mut String, cells: Vec<String>| {
        for cell in cells {
            let _ = write!(text, "  {cell:16}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    };
    row(&mut text, reports.iter().map(|report| report.detector.name().into()).collect());
    for verdict in sorted(&reports[0].found.verdicts).into_iter().take(PAIRS) {
        let (a, b) = verdict.flows;
        let of = |report: &Report| {
            let verdict = report.found.verdicts.iter().find(|of| of.flows == verdict.flows);
            verdict.map_or(String::new(), |verdict| {
                let since = verdict.since_s.map(|since_s| format!(", {since_s:.1} s"));
                format!("{}{}", verdict.answer.name(), since.unwrap_or_default())
            })
        };
        let _ = write!(text, "{:>4} {:>3}", numbered(a), numbered(b));
        row(&mut text, reports.iter().map(of).collect());
    }
    text + &more(&reports[0]) + &reports.iter().map(needed).collect::<String>()
}

/// Shared ones first, then separate ones.
pub(crate) fn sorted(verdicts: &[Verdict]) -> Vec<&Verdict> {
    let mut verdicts: Vec<&Verdict> = verdicts.iter().collect();
    verdicts.sort_by_key(|verdict| match verdict.answer {
        Answer::Shared => 0,
        Answer::Separate => 1,
        Answer::Unsure => 2,
    });
    verdicts
}

fn more(report: &Report) -> String {
    match report.found.verdicts.len().saturating_sub(PAIRS) {
        0 => String::new(),
        1 => "   1 more pair: see --json\n".into(),
        more => format!("{more:4} more pairs: see --json\n"),
    }
}

/// What a verdict that could not be given would have needed, of a detector that takes so long.
pub(crate) fn needs(why: Why, warm_up_s: f64) -> String {
    match why {
        Why::Few => format!("about {warm_up_s:.0} s in which both flows send"),
        Why::Flat => "a queue that grows and shrinks: more load on the bottleneck".into(),
        _ => "more time".into(),
    }
}

/// The same of all of them, a line for each reason.
fn needed(report: &Report) -> String {
    let mut text = String::new();
    for why in [Why::Few, Why::Flat, Why::Between] {
        if report.found.verdicts.iter().any(|of| of.why == Some(why)) {
            let needs = needs(why, report.found.warm_up_s);
            let _ = writeln!(text, "{}: {} needs {needs}", why.name(), report.detector.name());
        }
    }
    text
}

/// The decisions of a detector, as a line for each time in which they were the same.
#[derive(Debug)]
pub struct Times {
    lines: String,
    span: Option<Span>,
    confidence: bool,
}

impl Times {
    /// Before the first decision. With `confidence` each group has the share of the observations of its
    /// decisions in which it was one.
    pub fn new(confidence: bool) -> Times {
        Times { lines: String::new(), span: None, confidence }
    }

    /// A decision.
    pub fn decided(&mut self, decision: &Decision) {
        let (groups, confidence): (Vec<_>, Vec<_>) =
            decision.on.groups().into_iter().map(|group| (group.flows, group.confidence)).unzip();
        match &mut self.span {
            Some(span) if span.groups == groups && span.same_others(decision) => {
                span.count += 1;
                span.confidence.iter_mut().zip(confidence).for_each(|(sum, more)| *sum += more);
            }
            span => {
                let from = decision.t_s;
                let decision = decision.clone();
                let next = Span { from, decision, groups, count: 1, confidence };
                if let Some(span) = span.replace(next) {
                    self.lines += &span.line(from, self.confidence);
                    forget_oldest(&mut self.lines);
                }
            }
        }
    }

    fn end(mut self, end: f64) -> String {
        let Some(span) = self.span else { return String::new() };
        self.lines += &span.line(end, self.confidence);
        let header = if self.confidence { " (confidence)" } else { "" };
        format!("\n  from s    to s  who shares a bottleneck{header}\n{}", self.lines)
    }
}

/// Bytes of lines that are kept: a stream may have more than anybody reads.
const KEPT: usize = 1 << 20;

/// Leaves out the older half of lines that are too many.
fn forget_oldest(lines: &mut String) {
    if lines.len() > KEPT {
        let from = lines[KEPT / 2..].find('\n').map_or(0, |end| KEPT / 2 + end + 1);
        *lines = format!("      ..        ..  earlier times are left out\n{}", &lines[from..]);
    }
}

#[derive(Debug)]
struct Span {
    from: f64,
    decision: Decision,
    groups: Vec<Vec<usize>>,
    count: u64,
    /// Of each group, the sum over the decisions.
    confidence: Vec<f64>,
}

impl Span {
    fn same_others(&self, decision: &Decision) -> bool {
        self.decision.on.uncongested() == decision.on.uncongested()
            && self.decision.on.undecided() == decision.on.undecided()
    }

    fn line(&self, to: f64, confidence: bool) -> String {
        let percent = |sum: &f64| format!(" ({:.0} %)", 100.0 * sum / self.count as f64);
        let percents =
            self.confidence.iter().map(percent).filter(|_| confidence).collect::<Vec<_>>();
        format!("{:8.1}  {to:8.1}  {}\n", self.from, who(&self.decision, &percents))
    }
}

/// Who shares a bottleneck by a decision: `#1+#2; alone: #3; undecided: #4`; behind each group what is said
/// of it, if anything.
pub fn who(decision: &Decision, of_groups: &[String]) -> String {
    let list = |members: &[usize], between: &str| {
        let numbers = members.iter().map(|&flow| numbered(flow));
        numbers.collect::<Vec<_>>().join(between)
    };
    let groups = decision.on.groups();
    let with = |group: usize| {
        list(&groups[group].flows, "+") + of_groups.get(group).map_or("", String::as_str)
    };
    let (alone, several): (Vec<usize>, Vec<usize>) =
        (0..groups.len()).partition(|&group| groups[group].flows.len() == 1);
    let mut parts: Vec<String> = several.into_iter().map(with).collect();
    if !alone.is_empty() {
        let alone: Vec<String> = alone.into_iter().map(with).collect();
        parts.push(format!("alone: {}", alone.join(", ")));
    }
    for (what, members) in
        [("not congested", decision.on.uncongested()), ("undecided", decision.on.undecided())]
    {
        if !members.is_empty() {
            parts.push(format!("{what}: {}", list(&members, ", ")));
        }
    }
    parts.join("; ")
}
