//! Every criterion in its least form, and what the other forms cost.

use std::sync::atomic::AtomicBool;

use narrows_evaluate::rule::Verdict;
use narrows_evaluate::{CATALOGUE, Criterion, Law, Make};
use narrows_papers::{Form, Runs};

#[test]
fn every_criterion_runs_and_one_seed_tells_nothing() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|| ()).unwrap();
    let law = Law::new("lia+xcorr").unwrap();
    for criterion in CATALOGUE {
        let outcome = criterion.evaluate(&law, &runs);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", criterion.id()));
        let expected = match criterion.make {
            Make::Runs(_) => Verdict::CannotBeTold,
            Make::Prose => Verdict::Missing,
            Make::None(_) => Verdict::NotRun,
        };
        assert_eq!(outcome.verdict, expected, "{}: {}", criterion.id(), outcome.line);
        let runs = matches!(criterion.make, Make::Runs(_));
        assert_eq!(!outcome.cells.is_empty(), runs, "{}", criterion.id());
        for cell in &outcome.cells {
            let (id, place) = (criterion.id(), &cell.place);
            assert!((-1.0..=1.0).contains(&cell.mean), "{id}, {place}: {}", cell.mean);
        }
    }
}

/// An uncoupled law takes two shares, and one flow of a standard takes what it takes.
#[test]
fn the_criterion_of_shared_paths_tells_uncoupled_from_one_flow() {
    let stop = AtomicBool::new(false);
    let runs = Runs::new(Form::Least, Some(2), None, 0, &stop, &|| ()).unwrap();
    let of = |name: &str, id: &str| {
        let criterion = CATALOGUE.iter().find(|criterion| criterion.id() == id).unwrap();
        let outcome = criterion.evaluate(&Law::new(name).unwrap(), &runs).unwrap();
        (outcome.verdict, outcome.cells[0].mean)
    };
    let (verdict, harm) = of("reno", "7.10/shared");
    assert!(verdict == Verdict::FallsShort && harm > 0.25, "{verdict}, {harm}");
    let (verdict, harm) = of("greno", "7.10/shared");
    assert!(verdict != Verdict::FallsShort && harm < 0.2, "{verdict}, {harm}");
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
