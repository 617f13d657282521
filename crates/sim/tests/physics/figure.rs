//! Figures that stand beside theory: `scripts/fidelity` gathers them into one table.

use std::ops::RangeInclusive;

/// Prints the row of one figure and fails if it is outside its band. `point` is the section of
/// docs/method/fidelity.md that holds the formula and its source.
pub fn figure(point: &str, what: &str, measured: f64, theory: f64, band: RangeInclusive<f64>) {
    let [m, t, low, high] = [measured, theory, *band.start(), *band.end()].map(digits);
    println!("| {point} | {what} | {t} | {m} | {low} to {high} |");
    assert!(band.contains(&measured), "{point}, {what}: {m}, in theory {t}, band {low} to {high}");
}

/// The band of so many percent on both sides of a value.
pub fn within(percent: f64, of: f64) -> RangeInclusive<f64> {
    of * (1.0 - percent / 100.0)..=of * (1.0 + percent / 100.0)
}

/// Four significant digits, at most four after the point.
fn digits(x: f64) -> String {
    let places = match x.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        x if x >= 1.0 => 3,
        _ => 4,
    };
    format!("{x:.places$}")
}
