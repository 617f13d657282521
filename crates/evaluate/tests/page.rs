//! What pages say in prose of the recommended controls, against the tables of docs/results/bcp133.md, which `make bcp133`
//! writes.

use std::collections::BTreeSet;
use std::fs;

use narrows_evaluate::PAGE;
use narrows_evaluate::rule::Verdict;

/// The recommended controls.
const OURS: [&str; 2] = ["greno+xcorr", "gcubic+xcorr"];
const SHORT: &str = "falls short";
const UNKNOWN: &str = "cannot be told";

fn page(name: &str) -> String {
    fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The rows of the first table after `mark`, its head first.
fn rows(page: &str, mark: &str) -> Vec<Vec<String>> {
    let (_, after) = page.split_once(mark).unwrap_or_else(|| panic!("no {mark}"));
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    lines
        .filter(|line| !line.starts_with("| ---") && !line.starts_with("|---"))
        .map(cells)
        .collect()
}

/// The table of verdicts.
struct Verdicts {
    laws: Vec<String>,
    /// Criterion, keyword, and a verdict for each law.
    of: Vec<Vec<String>>,
    /// Its last row.
    counts: Vec<String>,
}

impl Verdicts {
    fn new(page: &str) -> Verdicts {
        let mut of = rows(page, "<!-- table bcp133 -->");
        let laws = of.remove(0).split_off(2).iter().map(|law| law.replace('`', "")).collect();
        let counts = of.pop().unwrap().split_off(2);
        Verdicts { laws, of, counts }
    }

    /// The column of a law in the rows.
    fn column(&self, law: &str) -> usize {
        2 + self.laws.iter().position(|one| one == law).expect("a column of the law")
    }

    /// The criteria with this verdict, in the order of the RFC; only the MUSTs among them, or only the others.
    fn criteria(&self, law: &str, verdict: &str, must: bool) -> Vec<&str> {
        let column = self.column(law);
        let found = self.of.iter().filter(|row| row[column] == verdict);
        found.filter(|row| (row[1] == "MUST") == must).map(|row| row[0].as_str()).collect()
    }

    /// Criteria with the verdict, by who of ours has it: both, the first, the second.
    fn ours(&self, verdict: &str, must: bool) -> [Vec<&str>; 3] {
        let [first, second] = OURS.map(|law| self.criteria(law, verdict, must));
        let (both, first): (Vec<_>, _) = first.into_iter().partition(|one| second.contains(one));
        let second = second.into_iter().filter(|one| !both.contains(one)).collect();
        [both, first, second]
    }
}

fn number(of: usize) -> &'static str {
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"][of]
}

fn musts(of: &[&str]) -> String {
    format!("{} MUST{}", number(of.len()), if of.len() == 1 { "" } else { "s" })
}

/// In the words of the verdict, which reports have.
#[test]
fn what_a_run_that_fails_does_to_a_verdict_is_on_the_page() {
    let page = page(PAGE);
    let rows = rows(&page, "## How a criterion is judged");
    for (verdict, by) in [
        (Verdict::FallsShort, "the law ended a run"),
        (Verdict::CannotBeTold, "a run failed by an internal error"),
    ] {
        let about = verdict.about();
        let (_, failed) = about.split_once("; or ").unwrap_or_else(|| panic!("{about}"));
        assert!(failed.starts_with(by), "{about}");
        let row = rows.iter().find(|row| row[0] == verdict.to_string()).unwrap();
        assert!(row[1].ends_with(failed), "{}", row[1]);
    }
}

#[test]
fn the_tables_agree_with_each_other() {
    let page = page(PAGE);
    let verdicts = Verdicts::new(&page);
    let mut short = BTreeSet::new();
    for (law, counts) in verdicts.laws.iter().zip(&verdicts.counts) {
        let [must, others] = [true, false].map(|must| verdicts.criteria(law, SHORT, must));
        assert_eq!(*counts, format!("{}, {}", must.len(), must.len() + others.len()), "{law}");
        short.extend(must.iter().chain(&others).map(|one| (law.clone(), (*one).to_owned())));
    }
    let listed = rows(&page, "<!-- table bcp133-short -->");
    let listed = listed.iter().skip(1).map(|row| (row[0].replace('`', ""), row[1].clone()));
    assert_eq!(listed.collect::<BTreeSet<_>>(), short);
    let laws = number(verdicts.laws.len());
    let heading = format!("## {}{} controls\n", laws[..1].to_uppercase(), &laws[1..]);
    assert!(page.contains(&heading), "expected in docs/{PAGE}: {heading}");
}

/// The page says so if, and only if, it is so.
#[test]
fn no_verdict_of_ours_is_worse_than_that_of_its_standard() {
    let page = page(PAGE);
    let text = page.replace('\n', " ");
    let verdicts = Verdicts::new(&page);
    let rank = |verdict: &str| [UNKNOWN, SHORT].iter().position(|one| *one == verdict);
    let mut worse = Vec::new();
    for (law, standard) in OURS.into_iter().zip(["reno", "cubic"]) {
        let [ours, theirs] = [law, standard].map(|law| verdicts.column(law));
        let is_worse = |row: &&Vec<String>| rank(&row[ours]) > rank(&row[theirs]);
        let found = verdicts.of.iter().filter(is_worse);
        worse.extend(found.map(|row| format!("{law}, {}", row[0])));
    }
    let says = "No verdict of `greno+xcorr` is worse than that of `reno`, and none of \
                `gcubic+xcorr` than that of `cubic`.";
    assert_eq!(text.contains(says), worse.is_empty(), "docs/{PAGE}: {worse:?}\n{says}");
}

/// Of cells, against one flow of its own standard in the same place.
#[test]
fn the_page_says_in_what_ours_are_worse_than_their_own_standard() {
    let page = page(PAGE);
    let text = page.replace('\n', " ");
    let mut of = rows(&page, "<!-- table bcp133-own -->");
    let heads = of.remove(0);
    let counts = of.pop().unwrap();
    // Until it is made it has no column of a law.
    let is_empty = heads.len() == 2;
    assert_eq!(text.contains("The table is still empty"), is_empty, "docs/{PAGE}");
    if is_empty {
        return;
    }
    for (law, standard) in OURS.into_iter().zip(["Reno", "CUBIC"]) {
        let column = heads.iter().position(|head| head.trim_matches('`') == law);
        let column = column.expect("a column of the law");
        let worse = of.iter().filter(|row| row[column].contains(" of "));
        let above = worse.clone().filter(|row| row[column].starts_with("**"));
        let above: Vec<&str> = above.map(|row| row[0].as_str()).collect();
        let count = worse.count();
        assert_eq!(counts[column], format!("{count}, {}", above.len()), "{law}");
        let of = format!("`{law}` is worse than one {standard} flow in");
        let says = match (count, above.len()) {
            (0, _) => format!("{of} no criterion"),
            (count, 0) => format!("{of} {count} of the criteria, above the limit in none"),
            (count, more) => {
                let list = above.join(", ");
                format!("{of} {count} of the criteria, above the limit in {more} ({list})")
            }
        };
        assert!(text.contains(&says), "expected in docs/{PAGE}:\n{says}");
    }
}

/// As `docs/method/one-flow.md` has it, without what stands in parentheses there.
#[test]
fn pages_say_what_the_recommended_controls_fall_short_of() {
    let results = page(PAGE);
    let verdicts = Verdicts::new(&results);
    let [must, first, second] = verdicts.ours(SHORT, true);
    assert!(first.is_empty() && second.is_empty(), "a MUST of one: {first:?} {second:?}");
    let [others, first, second] = verdicts.ours(SHORT, false);
    assert!(first.is_empty(), "{first:?}");
    let [unknown, unknown_first, unknown_second] = verdicts.ours(UNKNOWN, true);
    assert!(unknown_first.is_empty() && unknown_second.is_empty(), "a MUST of one");
    // Where the second falls short of no more than both do, nothing is said of it alone.
    let alone = |law: &str| match second.as_slice() {
        [] => String::new(),
        second => format!(" `{law}` of {}, too;", second.join(" and ")),
    };
    let [list, others, told] = [must.clone(), others, unknown.clone()].map(|all| all.join(" and "));
    let (must, unknown) = (musts(&must), musts(&unknown));

    let says = format!(
        "**Both fall short of {must}**, {list}, and of {others};{} {unknown} cannot be told, \
         {told}.",
        alone(OURS[1])
    );
    assert!(results.contains(&says), "expected in docs/{PAGE}:\n{says}");

    let method = page("method/one-flow.md");
    // Not all of them are.
    assert!(results.contains("- **Not run**: ") && method.contains("RFC 9743 that were run]("));
    let mut parts = method.split('(');
    let mut plain = parts.next().unwrap().trim_end().to_owned();
    for part in parts {
        plain += part.split_once(')').map_or(part, |(_, after)| after).trim_end();
    }
    let plain = plain.replace('\n', " ");
    let says = format!(
        "of {must}, {list}, and of {others};{} {unknown}, {told}, cannot be told. All other MUSTs \
         that were run are met, or are the host's.",
        alone("gcubic")
    );
    assert!(plain.contains(&says), "expected in docs/method/one-flow.md:\n{says}");
    let known = [SHORT, UNKNOWN, "meets", "the host's", "answered"];
    for law in OURS {
        let all = known.iter().map(|verdict| verdicts.criteria(law, verdict, true).len());
        let musts = verdicts.of.iter().filter(|row| row[1] == "MUST").count();
        assert_eq!(all.sum::<usize>(), musts, "{law}");
    }
}

/// Each verdict of ours but the good ones has its line in the table of reasons, with the figure of its worst cell.
#[test]
fn each_shortcoming_has_its_reason_and_its_figure() {
    let page = page(PAGE);
    let verdicts = Verdicts::new(&page);
    let mut expected = BTreeSet::new();
    for verdict in [SHORT, UNKNOWN] {
        for must in [true, false] {
            let [both, first, second] = verdicts.ours(verdict, must);
            let said = |laws: &str| match (verdict, laws) {
                (SHORT, "both") => "both fall short".to_owned(),
                (SHORT, law) => format!("{law} falls short"),
                (_, laws) => format!("{laws}: {verdict}"),
            };
            let laws = ["both".to_owned(), format!("`{}`", OURS[0]), format!("`{}`", OURS[1])];
            for (criteria, laws) in [both, first, second].into_iter().zip(laws) {
                let said = said(&laws);
                expected.extend(criteria.into_iter().map(|one| (one.to_owned(), said.clone())));
            }
        }
    }
    let reasons = rows(&page, "### Where ours fall short, and why");
    let reasons = &reasons[1..];
    let split = |row: &Vec<String>| {
        let (criterion, said) = row[0].split_once(", ").expect("a criterion, and who");
        (criterion.to_owned(), said.to_owned())
    };
    assert_eq!(reasons.iter().map(split).collect::<BTreeSet<_>>(), expected);

    for row in rows(&page, "<!-- table bcp133-short -->") {
        let [law, criterion, _, figure, ..] = &row[..] else { panic!("{row:?}") };
        if !OURS.contains(&law.trim_matches('`')) {
            continue;
        }
        let reason = reasons.iter().find(|reason| split(reason).0 == *criterion).unwrap();
        assert!(reason[1].contains(figure), "{law}, {criterion}: expected {figure}");
    }
}
