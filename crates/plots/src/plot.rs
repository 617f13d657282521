//! Curves.

use narrows_report::{Curve, Line, Plot, Timeline};

use crate::drawing::{Anchor, Drawing, Point, Stroke, WIDTH, grid, rule};
use crate::font::width;
use crate::frame::{
    EDGE, GAP, LINE, MIDDLE, Scale, about, below, events, legend, ticks, warmup, within,
};

/// Points of the area of the curves.
const HEIGHT: f64 = 105.0;
/// Parts of time that can be told apart: of a mean between extremes, and of a curve by itself.
const SMOOTH: usize = 120;
const SHARP: usize = 700;

/// Curves, but those that a page does not show by itself.
pub(crate) fn draw(plot: &Plot, timeline: &Timeline) -> Drawing {
    let (hidden, shown): (Vec<&Curve>, Vec<&Curve>) =
        plot.curves.iter().partition(|curve| curve.hidden);
    let names =
        |curves: &[&Curve]| curves.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut more = format!("Curves: {}.", names(&shown));
    if !hidden.is_empty() {
        more += &format!(" In its data alone: {}.", names(&hidden));
    }
    let time = plot.over_time.then_some(timeline);
    let mut drawing = Drawing::new(&plot.title, about(&plot.about, &more, time));
    let all: Vec<&str> = shown.iter().map(|curve| curve.name.as_str()).collect();
    let sample = |to: &mut Drawing, number: usize, from: Point, end: Point| {
        let middle = (from.1 + end.1) / 2.0;
        to.line([(from.0, middle), (end.0, middle)], stroke(shown[number]));
    };
    let top = legend(&mut drawing, &all, sample) + GAP;

    let thin = match (plot.smooth, plot.over_time) {
        (true, _) => plot.thinned(SMOOTH),
        (false, true) => plot.thinned(SHARP),
        (false, false) => plot.clone(),
    };
    let thin_shown = || thin.curves.iter().filter(|curve| !curve.hidden);
    let values = thin_shown().flat_map(|curve| curve.y.iter().chain(&curve.high)).flatten();
    let axis = narrows_report::axis(values.copied().chain([0.0]).chain(plot.top));
    let (low, high) = (axis[0], axis[axis.len() - 1]);
    let numbers = ticks(&axis);
    let widest = numbers.iter().map(|text| width(text)).fold(0.0, f64::max);
    let left = LINE + widest + 2.0 * GAP;
    let bottom = top + HEIGHT;
    let y = Scale { low, high: plot.top.unwrap_or(high), from: bottom, to: top };
    let (first, last) = match (plot.over_time, &plot.x[..]) {
        (true, _) => (0.0, timeline.end),
        (false, [first, .., last]) => (*first, *last),
        (false, _) => (0.0, 1.0),
    };
    let x = Scale { low: first, high: last, from: left, to: WIDTH - EDGE };

    if let Some(time) = time {
        warmup(&mut drawing, time, x, (top, bottom));
    }
    for (value, text) in axis.iter().zip(numbers).filter(|(value, _)| **value <= y.high) {
        let at = y.at(*value);
        drawing.line([(left, at), (x.to, at)], grid());
        drawing.text((left - GAP, at + MIDDLE), Anchor::End, text);
    }
    let label = [&plot.y_label, &plot.unit].map(String::as_str);
    drawing.turned((LINE - GAP, (top + bottom) / 2.0), label.join(", ").trim_end_matches(", "));
    let end = below(&mut drawing, &within(first, last), x, (top, bottom), &plot.x_label);
    drawing.line([(left, top), (left, bottom)], rule());
    let at = |place: usize, value: f64| (x.at(thin.x[place]), y.at(value));
    let bands = if shown.len() > 3 { 0.12 } else { 0.22 };
    // The first over the others.
    let back_to_front: Vec<&Curve> = thin_shown().collect();
    for curve in back_to_front.iter().rev() {
        for part in parts(&curve.low, &curve.high) {
            let upper = part.clone().filter_map(|i| Some(at(i, curve.high[i]?)));
            let lower = part.rev().filter_map(|i| Some(at(i, curve.low[i]?)));
            drawing.area(upper.chain(lower).collect(), curve.colour.light(), bands);
        }
    }
    for curve in back_to_front.iter().rev() {
        for part in parts(&curve.y, &curve.y) {
            let mut points: Vec<Point> = Vec::new();
            for (place, value) in part.filter_map(|i| Some((i, curve.y[i]?))) {
                let point = at(place, value);
                // It holds until the next.
                if let (true, Some(&(_, before))) = (curve.steps, points.last()) {
                    points.push((point.0, before));
                }
                points.push(point);
            }
            match points[..] {
                [alone] => drawing.dot(alone, 1.2, curve.colour.light(), 1.0),
                _ => drawing.line(points, stroke(curve)),
            }
        }
    }
    if let Some(time) = time {
        events(&mut drawing, time, x, (top, bottom));
    }
    drawing.height = end;
    drawing
}

fn stroke(curve: &Curve) -> Stroke {
    let (width, dash) = match curve.line {
        Line::Solid => (1.0, None),
        Line::Dashed => (0.8, Some([3.0, 2.0])),
        Line::Dotted => (0.8, Some([1.0, 1.4])),
    };
    Stroke { colour: curve.colour.light(), width, dash }
}

/// Ranges without a gap in either of two columns.
fn parts(one: &[Option<f64>], other: &[Option<f64>]) -> Vec<std::ops::Range<usize>> {
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    let there = |values: &[Option<f64>], at: usize| values[at].is_some_and(f64::is_finite);
    for place in (0..one.len().min(other.len())).filter(|&i| there(one, i) && there(other, i)) {
        match parts.last_mut() {
            Some(last) if last.end == place => last.end += 1,
            _ => parts.push(place..place + 1),
        }
    }
    parts
}
