//! A drawing as SVG. Text stays text; what XML does not allow, or a reader could be misled by, is written out.

use std::fmt::Write;

use maud::{Markup, html};
use narrows_foreign::Foreign;

use crate::drawing::{Anchor, Drawing, Point, Rgb, SIZE, Shape, WIDTH};
use crate::font::FAMILY;

/// The file.
pub(crate) fn of(drawing: &Drawing) -> String {
    let (width, height) = (short(WIDTH), short(drawing.height));
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(format!("{width}pt")) height=(format!("{height}pt"))
            viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby="title desc"
            font-family=(FAMILY) font-size=(SIZE) fill="none" {
            title #title { (safe(&drawing.title)) }
            desc #desc { (safe(&drawing.about)) }
            @for shape in &drawing.shapes { (markup(shape)) "\n" }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", svg.into_string())
}

fn markup(shape: &Shape) -> Markup {
    match shape {
        Shape::Line { points, stroke } => {
            let dash = stroke.dash.map(|[on, off]| format!("{on} {off}"));
            html! {
                polyline points=(list(points)) stroke=(hex(stroke.colour)) stroke-width=(stroke.width)
                    stroke-linejoin="round" stroke-dasharray=[dash] {}
            }
        }
        Shape::Area { points, fill, opacity } => html! {
            polygon points=(list(points)) fill=(hex(*fill)) fill-opacity=[part(*opacity)] {}
        },
        Shape::Dot { at: (x, y), radius, fill, opacity } => html! {
            circle cx=(short(*x)) cy=(short(*y)) r=(radius) fill=(hex(*fill)) fill-opacity=[part(*opacity)] {}
        },
        Shape::Text { at: (x, y), text, anchor, turned, fill } => {
            let (x, y) = (short(*x), short(*y));
            let anchor = match anchor {
                Anchor::Start => None,
                Anchor::Middle => Some("middle"),
                Anchor::End => Some("end"),
            };
            let turn = turned.then(|| format!("rotate(-90 {x} {y})"));
            html! {
                text x=(x) y=(y) fill=(hex(*fill)) text-anchor=[anchor] transform=[turn] { (safe(text)) }
            }
        }
    }
}

/// A number with as many digits as can be seen.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn list(points: &[Point]) -> String {
    let mut text = String::with_capacity(14 * points.len());
    for (x, y) in points {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{},{}", short(*x), short(*y));
    }
    text
}

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn part(opacity: f64) -> Option<f64> {
    (opacity < 1.0).then_some(opacity)
}

/// Text that others chose, of letters that XML has.
pub(crate) fn safe(text: &str) -> String {
    Foreign::from(text).to_string().replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
