//! What figures have in common: axes, the legend, what happens over time.

use narrows_report::{Colour, Timeline, decimals, light};

use crate::drawing::{Anchor, Drawing, Point, SIZE, Stroke, WIDTH, grid, rule};
use crate::font::{fitting, width};

/// Points between a text and what it belongs to, and of a line of text.
pub(crate) const GAP: f64 = 3.0;
pub(crate) const LINE: f64 = 10.0;
/// From the upper end of a line of text to its base.
pub(crate) const BASE: f64 = 7.5;
/// From the middle of a text to its base.
pub(crate) const MIDDLE: f64 = 0.36 * SIZE;
/// What is left free at the right edge of a figure.
pub(crate) const EDGE: f64 = 6.0;
/// Points of a sample in a legend.
const SAMPLE: f64 = 13.0;
/// Points between entries of a legend.
const BETWEEN: f64 = 8.0;

/// Values along a side, of which the first stands at `from` and the last at `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub low: f64,
    pub high: f64,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub fn at(&self, value: f64) -> f64 {
        if self.high <= self.low {
            return self.from;
        }
        let share = (value - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// The numbers of an axis as text.
pub(crate) fn ticks(axis: &[f64]) -> Vec<String> {
    let most = axis.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let text = |value: &f64| match most {
        1e4.. => {
            let thousands: Vec<f64> = axis.iter().map(|value| value / 1e3).collect();
            format!("{:.*}k", decimals(&thousands), value / 1e3)
        }
        _ => format!("{value:.*}", decimals(axis)),
    };
    axis.iter().map(text).collect()
}

/// A legend from the top on; `sample` draws what stands before the name of this number, between two corners.
/// Returns where it ends.
pub(crate) fn legend(
    drawing: &mut Drawing,
    names: &[&str],
    sample: impl Fn(&mut Drawing, usize, Point, Point),
) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for (number, name) in names.iter().enumerate() {
        let name = fitting(name, WIDTH - SAMPLE - GAP);
        let all = SAMPLE + GAP + width(&name);
        if x > 0.0 && x + all > WIDTH {
            (x, y) = (0.0, y + LINE);
        }
        sample(drawing, number, (x, y + 1.0), (x + SAMPLE, y + LINE - 1.0));
        drawing.text((x + SAMPLE + GAP, y + BASE), Anchor::Start, name);
        x += all + BETWEEN;
    }
    if names.is_empty() { 0.0 } else { y + LINE + GAP }
}

/// The axis below a figure, with the lines of its grid up to `top`; returns where it ends.
pub(crate) fn below(
    drawing: &mut Drawing,
    axis: &[f64],
    scale: Scale,
    (top, bottom): (f64, f64),
    label: &str,
) -> f64 {
    let mut end = f64::NEG_INFINITY;
    for (value, text) in axis.iter().zip(ticks(axis)) {
        let x = scale.at(*value);
        drawing.line([(x, top), (x, bottom)], grid());
        drawing.line([(x, bottom), (x, bottom + 2.0)], rule());
        // Numbers that would touch are left out.
        let half = width(&text) / 2.0;
        if x - half < end + GAP {
            continue;
        }
        let middle = x.min(WIDTH - half);
        drawing.text((middle, bottom + 2.0 + BASE + 1.0), Anchor::Middle, text);
        end = middle + half;
    }
    drawing.line([(scale.from, bottom), (scale.to, bottom)], rule());
    let middle = (scale.from + scale.to) / 2.0;
    let label = fitting(label, WIDTH);
    let half = width(&label) / 2.0;
    let middle = middle.min(WIDTH - half).max(half);
    drawing.text((middle, bottom + LINE + 2.0 + BASE + 1.0), Anchor::Middle, label);
    bottom + 2.0 * LINE + GAP
}

/// Numbers of an axis that stand between two ends.
pub(crate) fn within(low: f64, high: f64) -> Vec<f64> {
    let slack = 1e-9 * (high - low).abs();
    let axis = narrows_report::axis([low, high].into_iter()).into_iter();
    axis.filter(|value| (low - slack..=high + slack).contains(value)).collect()
}

/// The time that is not analysed, behind all.
pub(crate) fn warmup(drawing: &mut Drawing, time: &Timeline, scale: Scale, sides: (f64, f64)) {
    if time.warmup > 0.0 {
        let corner = (scale.at(time.warmup), sides.1);
        drawing.rect((scale.from, sides.0), corner, light("panel"), 1.0);
    }
}

/// What happens, by its number, over all.
pub(crate) fn events(drawing: &mut Drawing, time: &Timeline, scale: Scale, sides: (f64, f64)) {
    let stroke = Stroke { dash: Some([1.5, 1.5]), ..rule() };
    // Numbers of events that stand close share a place.
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (number, event) in (1..).zip(&time.events) {
        let x = scale.at(event.at);
        drawing.line([(x, sides.0), (x, sides.1)], stroke);
        match labels.last_mut() {
            Some((at, text)) if x < *at + width(text) + GAP => *text += &format!(", {number}"),
            _ => labels.push((x + 2.0, number.to_string())),
        }
    }
    for (x, text) in labels {
        drawing.text_in((x, sides.0 + BASE), Anchor::Start, text, Colour::Muted.light());
    }
}

/// What is shown, for those who do not see it, and what happens.
pub(crate) fn about(about: &str, more: &str, time: Option<&Timeline>) -> String {
    let mut all: Vec<String> = [about, more].into_iter().map(str::to_owned).collect();
    for (number, event) in time.iter().flat_map(|time| time.events.iter().enumerate()) {
        all.push(format!("{}: {} at {} s.", 1 + number, event.what, event.at));
    }
    all.retain(|text| !text.is_empty());
    all.join(" ")
}
