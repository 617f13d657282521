//! Values of runs in rows.

use narrows_report::{Colour, Strip, Strips};

use crate::drawing::{Anchor, Drawing, SIZE, Stroke, WIDTH, rule};
use crate::font::{fitting, width};
use crate::frame::{GAP, MIDDLE, Scale, about, below};

/// Points from a row to the next.
const ROW: f64 = 13.0;
/// Points of a name at most.
const NAME: f64 = 85.0;
/// Rows at most: what is as high as a page.
const MOST: usize = 45;
/// Values of a row at most; more cannot be told apart.
const DOTS: usize = 100;

/// Rows of values.
pub(crate) fn draw(strips: &Strips) -> Drawing {
    let rows = &strips.rows[..strips.rows.len().min(MOST)];
    let left_out = strips.rows.len() - rows.len();
    let mut more = match strips.bars {
        true => "Bar: the mean; dots: each value; line: its 95 % interval.".to_owned(),
        false => {
            "Box: quartiles and median; dots: each value; line: the 95 % interval of the mean."
                .into()
        }
    };
    if rows.iter().any(|row| row.published.is_some()) {
        more += " Diamond: what was published.";
    }
    if left_out > 0 {
        more += &format!(" In its data alone: {left_out} more rows.");
    }
    let mut drawing = Drawing::new(&strips.title, about(&strips.about, &more, None));
    let axis = strips.axis();
    let decimals = strips.digits(&axis);
    let texts: Vec<String> = rows.iter().map(|row| row.shown(decimals)).collect();
    let names = rows.iter().map(|row| width(&row.name)).fold(0.0, f64::max).min(NAME);
    let values = texts.iter().map(|text| width(text)).fold(0.0, f64::max);
    let (left, right) = (names + GAP, WIDTH - values - GAP);
    // Room for half of a dot at the ends.
    let x = Scale { low: axis[0], high: axis[axis.len() - 1], from: left + 2.0, to: right - 4.0 };
    let bottom = GAP + ROW * rows.len() as f64;
    let end = below(&mut drawing, &axis, x, (0.0, bottom), &label(strips));
    if let Some(reference) = strips.reference {
        let at = x.at(reference);
        drawing.line([(at, 0.0), (at, bottom)], Stroke { dash: Some([2.0, 1.5]), ..rule() });
    }
    for ((row, text), number) in rows.iter().zip(texts).zip(0..) {
        let y = GAP + ROW * (f64::from(number) + 0.5) - GAP / 2.0;
        let base = y + MIDDLE;
        drawing.text((left - GAP, base), Anchor::End, fitting(&row.name, NAME));
        drawing.text((WIDTH, base), Anchor::End, text);
        marks(&mut drawing, strips, row, x, y);
    }
    drawing.height = end - if label(strips).is_empty() { SIZE } else { 0.0 };
    drawing
}

/// What an axis of values says.
fn label(strips: &Strips) -> String {
    let parts = [strips.title.as_str(), strips.label.as_str()];
    parts.join(", ").trim_end_matches(", ").to_owned()
}

fn marks(drawing: &mut Drawing, strips: &Strips, row: &Strip, x: Scale, y: f64) {
    let (colour, ink) = (row.colour.light(), Colour::Ink.light());
    match (strips.bars, row.mean, row.quartiles) {
        (true, Some(mean), _) => {
            drawing.rect(
                (x.at(mean.min(0.0)), y - 4.0),
                (x.at(mean.max(0.0)), y + 4.0),
                colour,
                0.35,
            );
        }
        (false, _, Some([first, median, third])) => {
            let (from, to) = (x.at(first), x.at(third));
            let corners =
                [(from, y - 4.0), (to, y - 4.0), (to, y + 4.0), (from, y + 4.0), (from, y - 4.0)];
            drawing.area(corners.to_vec(), colour, 0.15);
            drawing.line(corners, Stroke::new(colour, 0.7));
            let middle = x.at(median);
            drawing.line([(middle, y - 5.0), (middle, y + 5.0)], Stroke::new(colour, 1.3));
        }
        _ => {}
    }
    for (_, value) in row.some(DOTS) {
        drawing.dot((x.at(*value), y), 1.4, colour, 0.55);
    }
    if let Some(ends) = row.interval() {
        let [from, to] = ends.map(|end| x.at(end));
        let stroke = Stroke::new(ink, 0.8);
        drawing.line([(from, y), (to, y)], stroke);
        for end in [from, to] {
            drawing.line([(end, y - 2.5), (end, y + 2.5)], stroke);
        }
    }
    if let Some((_, value)) = &row.published {
        let (at, half) = (x.at(*value), 3.0);
        let corners =
            [(at - half, y), (at, y - half), (at + half, y), (at, y + half), (at - half, y)];
        drawing.area(corners.to_vec(), [255; 3], 1.0);
        drawing.line(corners, Stroke::new(ink, 0.8));
    }
}
