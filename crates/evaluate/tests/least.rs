//! Every criterion in its least form, and what the other forms cost.

use std::sync::atomic::AtomicBool;

use narrows_evaluate::rule::{Found, Verdict};
use narrows_evaluate::{CATALOGUE, Criterion, Keyword, Law, Make, Outcome, PAGE};
use narrows_papers::{Form, Runs};

#[test]
fn every_criterion_runs_and_one_seed_tells_nothing() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let law = Law::new("lia+xcorr").unwrap();
    for criterion in CATALOGUE {
        let outcome = criterion.evaluate(&law, &runs);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", criterion.id()));
        let expected = match criterion.make {
            Make::Runs(_) | Make::Host(_) => Verdict::CannotBeTold,
            Make::Prose => Verdict::Missing,
        };
        assert_eq!(outcome.verdict, expected, "{}: {}", criterion.id(), outcome.line);
        let runs = matches!(criterion.make, Make::Runs(_) | Make::Host(_));
        assert_eq!(!outcome.cells.is_empty(), runs, "{}", criterion.id());
        for cell in &outcome.cells {
            let (id, place) = (criterion.id(), &cell.place);
            assert!((-1.0..=1.0).contains(&cell.mean), "{id}, {place}: {}", cell.mean);
        }
    }
}

/// What was found of a criterion in the least form, by one seed.
fn least(id: &str, law: &str) -> Outcome {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let criterion = CATALOGUE.iter().find(|one| one.id() == id).unwrap();
    criterion.evaluate(&Law::new(law).unwrap(), &runs).unwrap()
}

/// Its cell of a place.
fn cell<'o>(outcome: &'o Outcome, place: &str) -> &'o Found {
    let found = outcome.cells.iter().find(|cell| cell.place == place);
    found.unwrap_or_else(|| panic!("no {place}: {:?}", outcome.cells))
}

/// Two connections have half of the link each, as two flows of a standard have; the second also where it comes later.
#[test]
fn connections_of_several_paths_share_with_their_like() {
    for (id, place, fair) in
        [("5.1.4/flows", "2 flows of 2 paths", 1.0), ("5.1.4/late", "1 BDP, 2 paths", 0.5)]
    {
        let outcome = least(id, "greno");
        let found = cell(&outcome, place);
        assert!((found.law[0] - fair).abs() < 0.3, "{id}: {found:?}");
        assert!((found.standard[0] - fair).abs() < 0.3, "{id}: {found:?}");
        // More is better.
        let harm = 1.0 - found.law[0] / found.standard[0];
        assert!((found.mean - harm).abs() < 1e-9, "{id}: {found:?}");
    }
}

/// Where nothing fills the queue of tail drop, a law could do worse.
#[test]
fn the_delay_of_media_is_judged_with_codel_and_beside_files() {
    let outcome = least("5.2.2/adaptive", "greno");
    for place in ["CoDel, 2 paths", "short flows of 2 paths"] {
        let delay = cell(&outcome, &format!("delay of nada, {place}"));
        assert!(delay.judged && (1.0..240.0).contains(&delay.standard[0]), "{delay:?}");
        let rate = cell(&outcome, &format!("rate of nada, {place}"));
        // Within what RFC 8698 has NADA send, and the link carry.
        assert!((0.1..1.6).contains(&rate.law[0]), "{rate:?}");
    }
}

/// Four links of 50 Mbit/s carry a file of 1 MB in 0.04 s; all are complete, and the last is no earlier than the mean.
#[test]
fn files_pass_the_fabric() {
    let outcome = least("7.11/fabric", "greno");
    for count in ["one path", "4 paths"] {
        let [mean, last] = ["mean", "the last"]
            .map(|what| cell(&outcome, &format!("{what}, {count}, draw 1")).law[0]);
        assert!(mean <= last && last > 0.04 && last < 10.0, "{count}: {mean} s, {last} s");
    }
}

/// It holds its packets for 30 of 200 ms, so 17 of 20 Mbit/s are the most.
#[test]
fn a_link_that_retransmits_carries_less() {
    let outcome = least("6.4/wireless", "greno");
    let found = cell(&outcome, "link-layer retransmission, alone");
    for mbps in [found.law[0], found.standard[0]] {
        assert!((8.0..17.0).contains(&mbps), "{found:?}");
    }
}

/// Two paths of an uncoupled law are two flows, and those of a group are one.
#[test]
fn the_criterion_of_paths_tells_uncoupled_from_one_flow() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Quick, None, None, 0, &stop, &|_| ()).unwrap();
    let of = |name: &str| {
        let criterion = CATALOGUE.iter().find(|one| one.id() == "5.1.4/paths").unwrap();
        criterion.evaluate(&Law::new(name).unwrap(), &runs).unwrap()
    };
    let reno = of("reno");
    assert_eq!(reno.verdict, Verdict::FallsShort, "{:?}", reno.cells);
    // Eight of nine shares, and so the flow has less than a quarter of its half.
    let worst = &reno.cells[0];
    assert_eq!(worst.place, "8 paths, what the flow loses");
    assert!((0.65..0.85).contains(&worst.mean), "{worst:?}");
    let greno = of("greno");
    assert_eq!(greno.verdict, Verdict::Meets, "{:?}", greno.cells);
}

/// A law with a standard's name is no standard: with two paths it is two flows, against one.
#[test]
fn reno_is_judged_as_another_law_is() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    let criterion = CATALOGUE.iter().find(|one| one.id() == "5.1.3/shallow").unwrap();
    let of = |name: &str| {
        let cells = criterion.evaluate(&Law::new(name).unwrap(), &runs).unwrap().cells;
        cells.into_iter().map(|cell| (cell.place, cell.mean)).collect::<Vec<_>>()
    };
    let reno = of("reno");
    // The name with a detector, which an uncoupled law does not use.
    assert_eq!(reno, of("reno+xcorr"));
    let [(two, more), (one, none)] = &reno[..] else { panic!("{reno:?}") };
    assert!(two.ends_with("2 paths") && *more > 0.1, "{reno:?}");
    assert!(one.ends_with("one path") && *none <= 0.0, "{reno:?}");
}

/// With one path the standards are in their own place: they harm nobody more than themselves. The page says no more.
#[test]
fn reno_and_cubic_with_one_path_fall_short_of_no_must() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, Some(5), None, 0, &stop, &|_| ()).unwrap();
    for name in ["reno", "cubic"] {
        let law = Law::new(name).unwrap().with_paths(Some(1));
        let (mut met, mut left_out) = (Vec::new(), Vec::new());
        for criterion in CATALOGUE.iter().filter(|one| one.keyword == Keyword::Must) {
            let outcome = criterion.evaluate(&law, &runs).unwrap();
            let id = outcome.criterion.clone();
            assert_ne!(outcome.verdict, Verdict::FallsShort, "{name}, {id}: {:?}", outcome.cells);
            match outcome.verdict {
                Verdict::Meets => met.push(id),
                Verdict::LeftOut => left_out.push(id),
                _ => {}
            }
        }
        println!("{name}: {met:?} met");
        assert!(met.len() >= 6, "{name}: {met:?}");
        assert!(left_out.contains(&"7.10/shared".into()), "{name}: {left_out:?}");
        assert!(left_out.contains(&"5.2.1/several-paths".into()), "{name}: {left_out:?}");
    }
    let page = format!("{}/../../docs/{PAGE}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("with one (`--paths 1`) neither falls short of a MUST."), "docs/{PAGE}");
}

/// The least forms do not reach all cells: every network of each form is a scenario, and none takes more than is
/// promised.
#[test]
fn the_quick_form_is_ten_minutes_and_the_whole_form_sixteen_hours() {
    let law = Law::new("gcubic+xcorr").unwrap();
    for (form, most_s) in [(Form::Quick, 600.0), (Form::Whole, 16.0 * 3600.0)] {
        let seconds = |criterion: &Criterion| {
            let seconds = criterion.seconds(&law, form);
            seconds.unwrap_or_else(|error| panic!("{}: {error}", criterion.id()))
        };
        let by: Vec<(String, f64)> = CATALOGUE.iter().map(|one| (one.id(), seconds(one))).collect();
        let all: f64 = by.iter().map(|(_, seconds)| seconds).sum();
        println!("{form:?}: {all:.0} s of {by:.0?}");
        assert!(all > 0.0 && all <= most_s, "{all:.0} s: {by:.0?}");
    }
}
