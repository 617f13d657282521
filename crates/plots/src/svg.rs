//! A drawing as SVG. A text is the outlines of its glyphs, so that no reader needs the font, with what it says as its
//! label; what XML does not allow, or a reader could be misled by, is written out.

use std::fmt::Write;

use maud::{Markup, html};
use ttf_parser::OutlineBuilder;

use crate::drawing::{Drawing, Point, Rgb, SIZE, Shape, WIDTH, safe};
use crate::font;

/// The file.
pub(crate) fn of(drawing: &Drawing) -> String {
    let (width, height) = (short(WIDTH), short(drawing.height));
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(format!("{width}pt")) height=(format!("{height}pt"))
            viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby="title desc" fill="none" {
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
            let text = safe(text);
            let before = font::before(&text, *anchor);
            let scale = SIZE / f64::from(font::face().units_per_em());
            let matrix = if *turned {
                format!("matrix(0 -{scale} {scale} 0 {} {})", short(*x), short(y + before))
            } else {
                format!("matrix({scale} 0 0 {scale} {} {})", short(x - before), short(*y))
            };
            html! {
                path aria-label=(text) fill=(hex(*fill)) transform=(matrix) d=(Outlines::of(&text)) {}
            }
        }
    }
}

/// The outlines of glyphs as a path, in units of the font, from the beginning of their base line on.
#[derive(Default)]
struct Outlines {
    path: String,
    /// Where the next glyph begins.
    from: f64,
}

impl Outlines {
    fn of(text: &str) -> String {
        let mut to = Outlines::default();
        for glyph in text.chars().map(font::glyph) {
            // A space has none.
            font::face().outline_glyph(glyph, &mut to);
            to.from += font::advance(glyph);
        }
        to.path
    }

    fn add(&mut self, command: char, points: &[(f32, f32)]) {
        // A font counts from below; no minus before a zero.
        let place = |(x, y): &(f32, f32)| (self.from + f64::from(*x), 0.0 - f64::from(*y));
        let points: Vec<Point> = points.iter().map(place).collect();
        self.path.push(command);
        self.path.push_str(&list(&points));
    }
}

impl OutlineBuilder for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        self.add('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.add('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.add('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.add('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
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
