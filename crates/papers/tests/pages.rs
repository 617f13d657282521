//! What pages say is judged as it is today. The quick form has fewer seeds and so wider intervals: it contradicts a page
//! where both decide, otherwise, and by intervals that do not meet.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use narrows_papers::{Form, PAPERS, Runs};

/// Tables in which each row is judged by one interval; the quick form has those of their networks that it has as the page
/// does, but for the seeds.
const TABLES: [(&str, &str); 2] = [("sbd", "table-2"), ("cmpbbr", "claims")];

/// `0.95 ±0.02`, `45 ± 5 (0.60)`: the mean, and half the interval.
fn interval(cell: &str) -> Option<(f64, f64)> {
    let (mean, half) = cell.split_once('±')?;
    let half = half.split_whitespace().next()?;
    Some((mean.trim().parse().ok()?, half.parse().ok()?))
}

/// What a table decides, with the interval before it: by what stands before both.
fn decided(markdown: &str) -> BTreeMap<String, (&str, (f64, f64))> {
    let mut found = BTreeMap::new();
    let rows = markdown.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        for (at, pair) in cells.windows(2).enumerate() {
            let verdicts = ["reproduced", "better", "worse"];
            let verdict = verdicts.into_iter().find(|verdict| pair[1].starts_with(*verdict));
            if let (Some(interval), Some(verdict)) = (interval(pair[0]), verdict) {
                found.insert(cells[..at].join(", "), (verdict, interval));
            }
        }
    }
    found
}

/// The rows that both decide, and those of them that contradict.
fn compared(page: &str, made: &str) -> (usize, Vec<String>) {
    let (page, made) = (decided(page), decided(made));
    let both: Vec<_> =
        page.iter().filter_map(|(row, one)| Some((row, one, made.get(row)?))).collect();
    let contradict = both.iter().filter(|(_, one, other)| {
        let ((verdict, (mean, half)), (other, (other_mean, other_half))) = (one, other);
        verdict != other && (mean - other_mean).abs() > half + other_half
    });
    let told = contradict.map(|(row, one, other)| format!("{row}: {one:?}, now {other:?}"));
    (both.len(), told.collect())
}

#[test]
#[ignore = "minutes: make test-long"]
fn verdicts_do_not_contradict_those_of_their_page() {
    let stop = AtomicBool::new(false);
    for (paper, name) in TABLES {
        let runs = Runs::new(Form::Quick, None, None, 0, &stop, &|_| ()).unwrap();
        let paper = PAPERS.iter().find(|one| one.name == paper).unwrap();
        let table = paper.tables.iter().find(|one| one.name == name).unwrap();
        let page = format!("{}/../../docs/{}", env!("CARGO_MANIFEST_DIR"), paper.document);
        let page = std::fs::read_to_string(page).unwrap();
        let (_, page) = page.split_once(&format!("<!-- table {name} -->\n")).unwrap();
        let (page, _) = page.split_once("<!-- end -->").unwrap();
        let made = (table.make)(&runs).unwrap().markdown();
        let (count, contradict) = compared(page, &made);
        println!("{}/{name}: {count} rows that both decide", paper.name);
        assert!(count > 0, "{}/{name} has no row that its page has, too:\n{made}", paper.name);
        assert_eq!(contradict, Vec::<String>::new(), "{}/{name}", paper.name);
    }
}

#[test]
fn rows_contradict_if_they_decide_otherwise_by_intervals_that_do_not_meet() {
    let page = "| network | paper | ours | verdict | why |\n| --- | --- | --- | --- | --- |\n\
                | one | 1.00 | 0.50 ±0.10 | worse (0 of 2 reproduced) |  |\n\
                | two | 75 | 90 ± 5 (0.60) | better | **80 ± 5** (0.60) |\n\
                | three |  | 0.50 ±0.10 | cannot be told |  |\n\
                | four |  | - | not run |  |\n";
    let made = |one: &str, two: &str| {
        let row = |name: &str, of: &str| format!("| {name} | {of} | none |\n");
        let rows = [row("one | 1.00", one), row("two | 75", two), row("three | ", "2 ±1 | worse")];
        compared(page, &rows.concat())
    };
    let none = Vec::<String>::new();
    assert_eq!(made("0.55 ±0.01 | worse", "90 ± 1 (0.70) | better"), (2, none.clone()));
    // Wide intervals that have both.
    assert_eq!(made("0.80 ±0.25 | reproduced", "80 ± 9 (0.70) | reproduced"), (2, none.clone()));
    assert_eq!(made("0.90 ±0.05 | cannot be told", "- | not run"), (0, none));
    let (count, contradict) = made("0.90 ±0.05 | reproduced", "60 ± 9 (0.70) | worse");
    assert_eq!(count, 2);
    let expected = [
        r#"one, 1.00: ("worse", (0.5, 0.1)), now ("reproduced", (0.9, 0.05))"#,
        r#"two, 75: ("better", (90.0, 5.0)), now ("worse", (60.0, 9.0))"#,
    ];
    assert_eq!(contradict, expected);
}
