//! Outcomes as tables and as a page for a browser.

use narrows_lab::{HostId, fold};
use narrows_papers::Grid;
use narrows_report::{Colour, Fact, Page, Part, Section, Strip, Strips, Table, Tile};

use crate::catalogue::{CATALOGUE, Keyword, Make};
use crate::rule::{Found, Own, VERDICTS, Verdict};
use crate::{Criterion, Law, OnHost, Outcome};

/// The page that has the tables, in `docs/`.
pub const PAGE: &str = "results/bcp133.md";

/// The tables of [`PAGE`], by their names there.
pub struct Tables {
    /// `bcp133`: a row for each criterion, a column for each law.
    pub verdicts: Grid,
    /// `bcp133-short`: where they fall short.
    pub short: Grid,
    /// `bcp133-own`: where those of the kind of a standard are worse than one flow of it.
    pub own: Grid,
}

impl Tables {
    /// Of laws with their outcomes.
    pub fn of(laws: &[(Law, Vec<Outcome>)]) -> Tables {
        let names = laws.iter().map(|(law, _)| format!("`{}`", law.control()));
        let mut verdicts =
            Grid::new(["criterion".to_owned(), "keyword".to_owned()].into_iter().chain(names));
        let mut short =
            Grid::new(["law", "criterion", "worst cell", "figure", "limit", "cells above it"]);
        let rows = laws.first().map_or(&[][..], |(_, outcomes)| outcomes);
        for (row, of) in rows.iter().enumerate() {
            let cells = laws.iter().map(|(_, outcomes)| outcomes[row].verdict.to_string());
            verdicts.row([of.criterion.clone(), of.keyword.to_string()].into_iter().chain(cells));
        }
        let mut counts = vec!["falls short of".to_owned(), "MUST, all".to_owned()];
        counts.extend(laws.iter().map(|(_, outcomes)| {
            let short = outcomes.iter().filter(|one| one.verdict == Verdict::FallsShort);
            let must = short.clone().filter(|one| one.keyword == Keyword::Must).count();
            format!("{must}, {}", short.count())
        }));
        verdicts.row(counts);
        for (law, outcomes) in laws {
            for outcome in outcomes.iter().filter(|one| one.verdict == Verdict::FallsShort) {
                let [place, figure] = match outcome.worst() {
                    Some(worst) => [worst.place.clone(), value(worst)],
                    None => [outcome.line.clone(), String::new()],
                };
                let above = outcome.judged().filter(|cell| cell.mean > outcome.limit).count();
                short.row([
                    format!("`{}`", law.control()),
                    outcome.criterion.clone(),
                    place,
                    figure,
                    outcome.limit.to_string(),
                    format!("{above} of {}", outcome.judged().count()),
                ]);
            }
        }
        Tables { verdicts, short, own: of_own(laws) }
    }
}

/// A row for each criterion in which a law is worse than its own standard, a column for each law that has one.
fn of_own(laws: &[(Law, Vec<Outcome>)]) -> Grid {
    let laws: Vec<(&Law, &[Outcome])> = laws
        .iter()
        .filter(|(law, _)| law.standard().is_some())
        .map(|(law, outcomes)| (law, outcomes.as_slice()))
        .collect();
    let names = laws.iter().map(|(law, _)| format!("`{}`", law.control()));
    let mut grid = Grid::new(["criterion".to_owned(), "limit".to_owned()].into_iter().chain(names));
    let count = laws.first().map_or(0, |(_, outcomes)| outcomes.len());
    for row in 0..count {
        let of: Vec<&Outcome> = laws.iter().map(|(_, outcomes)| &outcomes[row]).collect();
        if of.iter().any(|outcome| most_worse(outcome).is_some()) {
            let cells = of.iter().map(|outcome| said_worse(outcome));
            let first = [of[0].criterion.clone(), of[0].limit.to_string()];
            grid.row(first.into_iter().chain(cells));
        }
    }
    let counts = laws.iter().map(|(_, outcomes)| {
        let [all, above] = count_worse(outcomes);
        format!("{all}, {above}")
    });
    let first = ["worse in".to_owned(), "all, above the limit".to_owned()];
    grid.row(first.into_iter().chain(counts));
    grid
}

/// The cell in which a law is most worse than its own standard, of those in which it surely is.
fn most_worse(outcome: &Outcome) -> Option<(&Found, &Own)> {
    outcome.worse().max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))
}

/// In how many criteria it is, and in how many of them by more than the limit.
fn count_worse(outcomes: &[Outcome]) -> [usize; 2] {
    let all = outcomes.iter().filter_map(|one| Some((one.limit, most_worse(one)?.1)));
    [all.clone().count(), all.filter(|(limit, own)| is_above(own, *limit)).count()]
}

/// Is it surely worse by more than the limit?
fn is_above(own: &Own, limit: f64) -> bool {
    own.low.is_some_and(|low| low > limit)
}

/// Harm in that cell, bold if it is surely above the limit, and in how many of the cells compared the law is worse.
fn said_worse(outcome: &Outcome) -> String {
    let all = outcome.compared().count();
    match most_worse(outcome) {
        None if all == 0 => "not compared".into(),
        None => "-".into(),
        Some((_, own)) => {
            let harm = bounds(own.mean, own.low, own.high);
            let text = format!("{harm}, {} of {all}", outcome.worse().count());
            if is_above(own, outcome.limit) { format!("**{text}**") } else { text }
        }
    }
}

/// Harm in a cell, and from where to where it surely is: each bound one-sided, the first at the corrected confidence.
fn value(cell: &Found) -> String {
    bounds(cell.mean, cell.low, cell.high)
}

fn bounds(mean: f64, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", digits(mean), digits(low), digits(high))
        }
        _ => digits(mean),
    }
}

/// Two digits, without a minus before a zero.
fn digits(harm: f64) -> String {
    format!("{:.2}", libm::round(100.0 * harm) / 100.0 + 0.0)
}

fn mean(outcome: &Outcome) -> String {
    outcome.mean.map_or_else(|| "-".into(), digits)
}

/// Criteria as a table; all of them are `criteria` of [`PAGE`].
pub fn catalogue<'c>(criteria: impl IntoIterator<Item = &'c Criterion>) -> Grid {
    let mut grid = Grid::new([
        "criterion",
        "section of RFC 9743",
        "keyword",
        "what is run",
        "figure",
        "limit",
    ]);
    for criterion in criteria {
        let limit = match criterion.make {
            Make::Runs(_) | Make::Host(_) => criterion.limit.to_string(),
            _ => "-".into(),
        };
        let Criterion { heading, keyword, runs, figure, .. } = criterion;
        grid.row([
            criterion.id(),
            (*heading).into(),
            keyword.to_string(),
            (*runs).into(),
            (*figure).into(),
            limit,
        ]);
    }
    grid
}

/// The same for a terminal, some lines for each criterion.
pub fn listed<'c>(criteria: impl IntoIterator<Item = &'c Criterion>) -> String {
    let mut text = String::new();
    for criterion in criteria {
        let Criterion { heading, keyword, runs, figure, .. } = criterion;
        let limit = match criterion.make {
            Make::Runs(_) | Make::Host(_) => format!(", at most {}", criterion.limit),
            _ => String::new(),
        };
        text += &fold(&format!("{} ({keyword}): {heading}", criterion.id()), 2);
        text += &fold(&format!("  {runs}"), 4);
        text += &fold(&format!("  figure: {figure}{limit}"), 4);
    }
    text
}

/// The outcomes of a law as a table, with a note on cells that are not judged.
pub fn of_law(outcomes: &[Outcome]) -> Grid {
    let mut grid = Grid::new(["criterion", "keyword", "verdict", "mean", "limit", "worst cell"]);
    for outcome in outcomes {
        let limit = if outcome.cells.is_empty() { "-".into() } else { outcome.limit.to_string() };
        grid.row([
            outcome.criterion.clone(),
            outcome.keyword.to_string(),
            outcome.verdict.to_string(),
            mean(outcome),
            limit,
            worst(outcome),
        ]);
    }
    grid.note = not_judged(outcomes);
    grid
}

/// The same for a terminal, as wide as its columns need: the note is folded, and what takes lines, an answer say, stands below.
fn narrow(outcomes: &[Outcome]) -> Grid {
    let mut short = outcomes.to_vec();
    for outcome in short.iter_mut().filter(|outcome| is_long(outcome)) {
        outcome.line = "below".into();
    }
    let mut grid = of_law(&short);
    grid.note = fold(&grid.note, 0).trim_end().to_owned();
    grid
}

/// Is its line too long for a column?
fn is_long(outcome: &Outcome) -> bool {
    outcome.line.chars().count() > 60
}

/// A line that says which cells are not judged, and of how many; none if all are.
fn not_judged(outcomes: &[Outcome]) -> String {
    let of = |outcome: &Outcome| {
        let cells = outcome.cells.iter().filter(|cell| !cell.judged);
        let places: Vec<&str> = cells.map(|cell| cell.place.as_str()).collect();
        let (count, all) = (places.len(), outcome.cells.len());
        let said = [outcome.criterion.clone(), common(&places), format!("({count} of {all})")];
        let said: Vec<String> = said.into_iter().filter(|part| !part.is_empty()).collect();
        (count > 0).then(|| said.join(" "))
    };
    let each: Vec<String> = outcomes.iter().filter_map(of).collect();
    if each.is_empty() {
        return String::new();
    }
    format!(
        "Cells that are not judged, as the standard is near the worst possible there: {}.",
        each.join("; ")
    )
}

/// What places have in common: `20 BDP` of `20 BDP, one path` and `20 BDP, 2 paths`; `delay` of that of two kinds.
fn common(places: &[&str]) -> String {
    fn each(places: &[&str], is: impl Fn(&str) -> bool) -> bool {
        places.iter().all(|place| place.split(", ").any(&is))
    }
    let Some((first, others)) = places.split_first() else { return String::new() };
    let mut shared = Vec::new();
    for part in first.split(", ") {
        let what = part.split_once(" of ").map_or(part, |(what, _)| what);
        let of = |one: &str| one.strip_prefix(what).is_some_and(|rest| rest.starts_with(" of "));
        if each(others, |one| one == part) {
            shared.push(part);
        } else if !what.ends_with(|last: char| last.is_ascii_digit()) && each(others, of) {
            shared.push(what);
        }
    }
    shared.join(", ")
}

/// The worst cell with its figure, or what there is in place of cells; and how far to trust it.
fn worst(outcome: &Outcome) -> String {
    let text = match outcome.worst() {
        Some(worst) => format!("{}: {}", worst.place, value(worst)),
        None => outcome.line.clone(),
    };
    match outcome.unfit {
        0 => text,
        unfit => format!("{text}; the machine was too slow for {unfit} of {} runs", outcome.runs),
    }
}

/// How many there are of each verdict, in words.
fn counted(outcomes: &[Outcome]) -> String {
    let each = VERDICTS.iter().filter_map(|verdict| {
        let count = outcomes.iter().filter(|one| one.verdict == *verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What of the networks another host does by itself, a line.
pub fn ignored(host: HostId) -> &'static str {
    match host {
        HostId::SIM => "",
        _ => {
            "end points other than the simulator's have schedulers and acknowledgements of their own; on quic flows of one path but the judged one are the simulator's TCP\n"
        }
    }
}

/// In how many criteria a law is worse than its own standard, and in which by more than the limit, folded; nothing where
/// nothing of it is sure.
fn beside_own(law: &Law, outcomes: &[Outcome]) -> String {
    let is_sure = |outcome: &&Outcome| outcome.compared().any(|(_, own)| own.low.is_some());
    let sure = outcomes.iter().filter(is_sure).count();
    let (Some(standard), 1..) = (law.standard(), sure) else { return String::new() };
    let [all, above] = count_worse(outcomes);
    let surely = |one: &&Outcome| most_worse(one).is_some_and(|(_, own)| is_above(own, one.limit));
    let named = outcomes.iter().filter(surely).map(|one| one.criterion.as_str());
    let list: Vec<&str> = named.collect();
    let list = if list.is_empty() { String::new() } else { format!(": {}", list.join(", ")) };
    let control = law.control();
    fold(
        &format!(
            "{control}: worse than one flow of {standard} in {all} of {sure} criteria, above the limit in {above}{list}"
        ),
        2,
    )
}

/// What a law is, for the judgement of its paths.
fn about(law: &Law) -> String {
    match (law.most_paths(), law.couples()) {
        (Some(1), _) => " (with one path)".into(),
        (most, couples) => {
            let most = most.map(|most| format!("with at most {most} paths"));
            let couples =
                (!couples).then(|| "does not couple: several paths are judged as uncoupled".into());
            let all: Vec<String> = most.into_iter().chain(couples).collect();
            if all.is_empty() { String::new() } else { format!(" ({})", all.join("; ")) }
        }
    }
}

/// The outcomes for a terminal, host by host.
pub fn shown(found: &[OnHost]) -> String {
    let mut text = String::new();
    let all = found.iter().flat_map(|on| on.laws.iter().map(move |of| (on.host, of)));
    for (host, (law, outcomes)) in all {
        let (control, about, on) = (law.control(), about(law), host.suffix());
        text += &format!("{control}{about}, by RFC 9743 (BCP 133){on}\n\n");
        text += &narrow(outcomes).columns();
        let long = outcomes.iter().filter(|outcome| is_long(outcome));
        let lines: Vec<String> =
            long.map(|one| fold(&format!("{}: {}", one.criterion, one.line), 2)).collect();
        if !lines.is_empty() {
            text += &format!("\n{}", lines.concat());
        }
        text += &format!("\n{}: {}\n", law.control(), counted(outcomes));
        text += &beside_own(law, outcomes);
        text += "\n";
    }
    text += "mean: of the criterion's figure over its cells; `narrows evaluate list` has what is run and the figure\n";
    let of_others = found.iter().map(|on| ignored(on.host)).find(|line| !line.is_empty());
    text + of_others.unwrap_or_default()
}

/// The page of some laws; made by `command`, of which `facts` tell more.
pub fn page(found: &[OnHost], command: String, facts: Vec<Fact>) -> Page {
    let laws = || found.iter().flat_map(|on| on.laws.iter().map(move |of| (on.host, of)));
    // On each host they are the same.
    let first = found.first().map_or(&[][..], |on| on.laws.as_slice());
    let names: Vec<&str> = first.iter().map(|(law, _)| law.control()).collect();
    let all: Vec<&Outcome> = laws().flat_map(|(_, (_, outcomes))| outcomes).collect();
    let tile = |verdict: Verdict| Tile {
        name: verdict.to_string(),
        value: all.iter().filter(|one| one.verdict == verdict).count().to_string(),
        about: verdict.about().into(),
    };
    let section = |(host, (law, outcomes)): (HostId, &(Law, Vec<Outcome>))| Section {
        title: format!("{}{}", law.control(), host.suffix()),
        about: format!("{}{}.", counted(outcomes), about(law)),
        parts: [verdicts(outcomes)]
            .into_iter()
            .chain(own(law, outcomes))
            .chain(charts(outcomes))
            .chain(outcomes.iter().filter_map(cells))
            .collect(),
    };
    Page {
        title: format!("{}: BCP 133", names.join(", ")),
        lead: "What RFC 9743 asks of a congestion control, run and judged. A figure is what somebody loses more beside the law than beside one more flow of Reno or CUBIC in the same place, as a share; verdicts are by intervals over the seeds, in every cell. A cell is not judged where the standard is so near the worst possible that no law can be above the limit.".into(),
        command,
        facts,
        tiles: VERDICTS.map(tile).to_vec(),
        sections: laws().map(section).collect(),
        ..Page::default()
    }
}

/// A verdict with a sign before it, which a glance finds in a table.
fn signed(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Meets => '✓',
        Verdict::FallsShort => '▼',
        Verdict::CannotBeTold => '?',
        // Nobody reads prose here, and a question may not be for this law.
        Verdict::Host | Verdict::Answered | Verdict::Missing | Verdict::LeftOut => '–',
    };
    format!("{sign} {verdict}")
}

fn verdicts(outcomes: &[Outcome]) -> Part {
    let heads = ["criterion", "section", "keyword", "verdict", "mean", "limit", "worst cell"];
    let line = |outcome: &Outcome| {
        let limit = if outcome.cells.is_empty() { "-".into() } else { outcome.limit.to_string() };
        vec![
            outcome.criterion.clone(),
            outcome.heading.into(),
            outcome.keyword.to_string(),
            signed(outcome.verdict),
            mean(outcome),
            limit,
            worst(outcome),
        ]
    };
    let about = "The mean is over the cells of a criterion; the worst cell stands with where its harm surely is, each bound one-sided at 95 %: the first is corrected for the number of cells, the second for that of the standards.";
    Part::Table(Table {
        title: "Criteria".into(),
        about: format!("{about} {}", not_judged(outcomes)).trim_end().to_owned(),
        heads: heads.map(|head| (head.to_owned(), String::new())).to_vec(),
        left: heads.len(),
        lines: outcomes.iter().map(line).collect(),
    })
}

/// Where a law is worse than one flow of its own standard, if it has one.
fn own(law: &Law, outcomes: &[Outcome]) -> Option<Part> {
    let standard = law.standard()?;
    let line = |outcome: &Outcome| {
        let (cell, own) = most_worse(outcome)?;
        Some(vec![
            outcome.criterion.clone(),
            cell.place.clone(),
            bounds(own.mean, own.low, own.high),
            outcome.limit.to_string(),
            format!("{} of {}", outcome.worse().count(), outcome.compared().count()),
        ])
    };
    let lines: Vec<Vec<String>> = outcomes.iter().filter_map(line).collect();
    let about = format!(
        "Criteria in which the law is worse than one flow of {standard} in its place, by however little, at 95 %, corrected for the number of cells: the cell in which it is most, and how many there are. {}",
        if lines.is_empty() { "There are none." } else { "" }
    );
    let heads = ["criterion", "cell", "harm", "limit", "cells where it is worse"];
    Some(Part::Table(Table {
        title: format!("Against one flow of {standard}"),
        about: about.trim_end().to_owned(),
        heads: heads.map(|head| (head.to_owned(), String::new())).to_vec(),
        left: heads.len(),
        lines,
    }))
}

/// Harm of all criteria, a chart for each limit.
fn charts(outcomes: &[Outcome]) -> Vec<Part> {
    let rows = outcomes.iter().filter_map(|outcome| Some((outcome.limit, strip(outcome)?)));
    let rows: Vec<(f64, Strip)> = rows.collect();
    let mut limits: Vec<f64> = rows.iter().map(|(limit, _)| *limit).collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let chart = |limit: f64| {
        let rows = rows.iter().filter(|(of, _)| *of == limit).map(|(_, row)| row.clone());
        Part::Strips(Strips {
            title: format!("Harm, at most {limit}"),
            about: format!(
                "A dot is a cell that is judged, the line is where harm in the worst one surely is, as in the table; left of {limit}, at the vertical line, is what is to be met."
            ),
            label: "harm".into(),
            decimals: 2,
            reference: Some(limit),
            rows: rows.collect(),
            ..Strips::default()
        })
    };
    limits.into_iter().map(chart).collect()
}

/// The row of a criterion, if cells are judged.
fn strip(outcome: &Outcome) -> Option<Strip> {
    let worst = outcome.worst()?;
    let colour = match outcome.verdict {
        Verdict::Meets | Verdict::Host => Colour::Number(2),
        Verdict::FallsShort => Colour::Number(1),
        _ => Colour::Muted,
    };
    Some(Strip {
        name: outcome.criterion.clone(),
        colour,
        values: outcome.judged().map(|cell| (cell.place.clone(), cell.mean)).collect(),
        mean: Some(worst.mean),
        ci95: None,
        bounds: worst.low.zip(worst.high).map(|(low, high)| [low, high]),
        quartiles: None,
        published: None,
    })
}

/// The cells of an outcome, if it has any.
fn cells(outcome: &Outcome) -> Option<Part> {
    let criterion = CATALOGUE.iter().find(|one| one.id() == outcome.criterion)?;
    (!outcome.cells.is_empty()).then(|| {
        let line = |cell: &Found| {
            let bound = |bound: Option<f64>| bound.map_or_else(|| "-".into(), digits);
            let by = if cell.judged { cell.against.as_str() } else { "not judged" };
            vec![
                cell.place.clone(),
                digits(cell.mean),
                bound(cell.low),
                bound(cell.high),
                by.to_owned(),
            ]
        };
        Part::Table(Table {
            title: outcome.criterion.clone(),
            about: format!("{}. {}; at most {}.", criterion.runs, outcome.figure, outcome.limit),
            heads: ["cell", "harm", "surely above", "surely below", "against"]
                .map(|head| (head.to_owned(), String::new()))
                .to_vec(),
            left: 1,
            lines: outcome.cells.iter().map(line).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the simulator.
    fn sim(laws: &[(Law, Vec<Outcome>)]) -> [OnHost; 1] {
        [OnHost { host: HostId::SIM, laws: laws.to_vec() }]
    }

    fn found(place: &str, judged: bool) -> Found {
        Found {
            place: place.into(),
            mean: 0.99,
            low: Some(0.921),
            high: Some(1.0),
            judged,
            against: "reno".into(),
            law: vec![0.01; 5],
            standard: vec![1.0; 5],
            own: None,
        }
    }

    fn outcome(criterion: &str, cells: Vec<Found>) -> Outcome {
        Outcome {
            criterion: criterion.into(),
            heading: "",
            keyword: Keyword::Ought,
            verdict: Verdict::Meets,
            figure: "",
            limit: 0.2,
            mean: None,
            cells,
            runs: 0,
            unfit: 0,
            line: String::new(),
        }
    }

    #[test]
    fn cells_that_are_not_judged_are_told_in_one_line_below_the_table() {
        let judged = outcome("5.1.1/loss", vec![found("1 % lost", true)]);
        assert_eq!(of_law(std::slice::from_ref(&judged)).note, "");
        let queue = vec![
            found("0.25 BDP, one path", true),
            found("20 BDP, one path", false),
            found("20 BDP, 2 paths", false),
        ];
        let flows = vec![found("RTTs 1 to 10", false)];
        let delays = ["1 of 2 paths, delay of reno", "1 of 3 paths, delay of cubic"];
        let delays = delays.map(|place| found(place, false)).to_vec();
        let all = [
            judged,
            outcome("5.1.2/queue", queue),
            outcome("5.1.4/flows", flows),
            outcome("7.10/shared", delays),
            outcome("7.2/breaker", vec![found("a", false), found("b", false)]),
        ];
        let table = of_law(&all);
        assert_eq!(
            table.note,
            "Cells that are not judged, as the standard is near the worst possible there: \
             5.1.2/queue 20 BDP (2 of 3); 5.1.4/flows RTTs 1 to 10 (1 of 1); \
             7.10/shared delay (2 of 2); 7.2/breaker (2 of 2)."
        );
        assert!(table.columns().ends_with(&format!("\n\n{}\n", table.note)));
        // Tables of the page have no such line.
        let Tables { verdicts, short, .. } =
            Tables::of(&[(Law::new("lia").unwrap(), all.to_vec())]);
        assert!(verdicts.note.is_empty() && short.note.is_empty());
    }

    #[test]
    fn an_answer_of_lines_stands_below_the_table_of_a_terminal() {
        let answer = "one after another. ".repeat(20).trim().to_owned();
        let prose = Outcome { line: answer.clone(), ..outcome("8/security", Vec::new()) };
        let judged = outcome("7.2/breaker", vec![found("a", false), found("b", true)]);
        let all = vec![(Law::new("lia").unwrap(), vec![judged, prose])];
        let text = shown(&sim(&all));
        assert!(text.contains("8/security   ought    meets    -     -      below\n"), "{text}");
        assert!(text.contains("\n8/security: one after another. one"), "{text}");
        // The last line is as long as it is for every law.
        let lines = text.lines().filter(|line| !line.starts_with("mean: "));
        assert!(lines.clone().all(|line| line.chars().count() <= 80), "{text}");
        // Files have it whole.
        assert!(of_law(&all[0].1).markdown().contains(&answer));
    }

    #[test]
    fn of_several_hosts_each_has_its_table_and_what_it_lacks_is_counted() {
        let law = || Law::new("lia").unwrap();
        let judged = outcome("7.6/receivers", vec![found("a", true)]);
        let line = "receivers do not misbehave there".to_owned();
        let left_out =
            Outcome { verdict: Verdict::LeftOut, line, ..outcome("7.6/receivers", vec![]) };
        let other = OnHost { host: HostId::new("quic"), laws: vec![(law(), vec![left_out])] };
        let [first] = sim(&[(law(), vec![judged])]);
        let both = [first, other];
        let text = shown(&both);
        let parts: Vec<&str> = text.split("lia, by RFC 9743 (BCP 133)").collect();
        let [_, first, second] = &parts[..] else { panic!("{text}") };
        assert!(first.contains("\nlia: 1 meets\n"), "{text}");
        assert!(second.starts_with(" on quic\n"), "{text}");
        assert!(second.contains("\nlia: 1 left out\n"), "{text}");
        assert_eq!(text.matches("schedulers and acknowledgements of their own").count(), 1);
        let page = page(&both, String::new(), Vec::new());
        let titles: Vec<&str> = page.sections.iter().map(|one| one.title.as_str()).collect();
        assert_eq!((page.title.as_str(), titles), ("lia: BCP 133", vec!["lia", "lia on quic"]));
    }

    #[test]
    fn of_a_law_it_is_said_with_which_paths_it_is_judged() {
        let about = |law: &str, most| about(&Law::new(law).unwrap().with_paths(most));
        assert_eq!(about("lia", None), "");
        assert_eq!(about("lia", Some(1)), " (with one path)");
        assert_eq!(
            about("reno", Some(2)),
            " (with at most 2 paths; does not couple: several paths are judged as uncoupled)"
        );
    }

    #[test]
    fn the_page_has_a_chart_for_each_limit_with_a_row_for_each_criterion() {
        let starved = Outcome { limit: 0.8, ..outcome("5.2/starvation", vec![found("c", true)]) };
        let all = vec![
            outcome("7.2/breaker", vec![found("a", false), found("b", true)]),
            starved,
            outcome("7.3/delay", vec![found("not judged", false)]),
            outcome("8/security", Vec::new()),
        ];
        let [Part::Strips(first), Part::Strips(second)] = &charts(&all)[..] else { panic!() };
        assert_eq!((first.reference, second.reference), (Some(0.2), Some(0.8)));
        let [row] = &first.rows[..] else { panic!("{:?}", first.rows) };
        assert_eq!((row.name.as_str(), row.bounds), ("7.2/breaker", Some([0.921, 1.0])));
        assert_eq!(row.values, [("b".to_owned(), 0.99)]);
        let law = Law::new("lia").unwrap();
        let html = page(&sim(&[(law, all)]), String::new(), Vec::new()).html();
        assert!(html.contains("Harm, at most 0.8") && html.contains("0.92 to 1.00"), "{html}");
    }

    #[test]
    fn where_a_law_is_worse_than_one_flow_of_its_own_standard_is_told() {
        let with = |place: &str, mean: f64, low: f64| {
            let (against, standard) = ("reno".to_owned(), vec![1.0; 5]);
            let own = Own { against, mean, low: Some(low), high: Some(0.45), standard };
            Found { own: Some(own), ..found(place, true) }
        };
        // Most in a cell where it is not sure.
        let cells = vec![with("a", 0.1, 0.05), with("b", 0.3, 0.25), with("c", 0.4, -0.1)];
        let all = vec![
            outcome("7.2/breaker", [cells, vec![found("d", true)]].concat()),
            outcome("7.3/delay", vec![with("e", 0.05, -0.1)]),
            // Not surely by more than the limit.
            outcome("7.4/thin", vec![with("f", 0.25, 0.1)]),
            outcome("8/security", Vec::new()),
        ];
        let law = |name: &str| Law::new(name).unwrap();
        let laws = [(law("greno+xcorr"), all.clone()), (law("bbr"), all.clone())];
        assert_eq!(
            Tables::of(&laws).own.markdown(),
            "| criterion | limit | `greno+xcorr` |\n| --- | --- | --- |\n\
             | 7.2/breaker | 0.2 | **0.30 (0.25 to 0.45), 2 of 3** |\n\
             | 7.4/thin | 0.2 | 0.25 (0.10 to 0.45), 1 of 1 |\n\
             | worse in | all, above the limit | 2, 1 |\n"
        );
        let text = shown(&sim(&laws)).replace("\n  ", " ");
        let says = "\ngreno+xcorr: worse than one flow of reno in 2 of 3 criteria, above the limit in 1: 7.2/breaker\n";
        assert!(text.contains(says) && !text.contains("bbr: worse"), "{text}");
        let Some(Part::Table(table)) = own(&laws[0].0, &laws[0].1) else { panic!() };
        assert_eq!(table.title, "Against one flow of reno");
        assert_eq!(table.lines[0], ["7.2/breaker", "b", "0.30 (0.25 to 0.45)", "0.2", "2 of 3"]);
        assert_eq!(table.lines.len(), 2);
        assert!(own(&laws[1].0, &laws[1].1).is_none());
        let html = page(&sim(&laws), String::new(), Vec::new()).html();
        assert!(html.contains("Against one flow of reno"), "{html}");
        // Of few seeds nothing is said; where there is none, so much.
        let few = outcome("7.3/delay", vec![found("g", true)]);
        assert!(!shown(&sim(&[(law("lia"), vec![few])])).contains("worse than"));
        let Some(Part::Table(none)) = own(&law("lia"), &all[1..2]) else { panic!() };
        assert!(none.lines.is_empty() && none.about.ends_with("There are none."), "{none:?}");
    }

    #[test]
    fn a_figure_has_two_digits_and_its_bounds() {
        assert_eq!(value(&found("", true)), "0.99 (0.92 to 1.00)");
        assert_eq!(digits(-0.001), "0.00");
    }
}
