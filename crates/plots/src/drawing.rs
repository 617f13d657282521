//! What a figure is made of, whatever it is written as.

use narrows_foreign::Foreign;
use narrows_report::{Colour, light};

/// Points (1/72 inch) of a column of a paper with two, 85 mm.
pub(crate) const WIDTH: f64 = 85.0 / 25.4 * 72.0;
/// Points of text.
pub(crate) const SIZE: f64 = 7.0;

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];
/// A place: points from the left and from above.
pub(crate) type Point = (f64, f64);

/// A figure, [`WIDTH`] wide.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    /// Its title, which is not drawn.
    pub title: String,
    /// What it shows, for those who do not see it.
    pub about: String,
    /// Points.
    pub height: f64,
    /// What is drawn, what comes later over what came before.
    pub shapes: Vec<Shape>,
}

/// Something drawn.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Line {
        points: Vec<Point>,
        stroke: Stroke,
    },
    Area {
        points: Vec<Point>,
        fill: Rgb,
        opacity: f64,
    },
    Dot {
        at: Point,
        radius: f64,
        fill: Rgb,
        opacity: f64,
    },
    /// Its base line begins, has its middle, or ends at a place.
    Text {
        at: Point,
        text: String,
        anchor: Anchor,
        turned: bool,
        fill: Rgb,
    },
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub colour: Rgb,
    /// Points.
    pub width: f64,
    /// Points of dashes and of what is between them; none: it is whole.
    pub dash: Option<[f64; 2]>,
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Stroke {
    pub fn new(colour: Rgb, width: f64) -> Stroke {
        Stroke { colour, width, dash: None }
    }
}

impl Drawing {
    pub fn new(title: &str, about: String) -> Drawing {
        Drawing { title: title.into(), about, height: 0.0, shapes: Vec::new() }
    }

    pub fn line(&mut self, points: impl Into<Vec<Point>>, stroke: Stroke) {
        self.shapes.push(Shape::Line { points: points.into(), stroke });
    }

    pub fn area(&mut self, points: Vec<Point>, fill: Rgb, opacity: f64) {
        self.shapes.push(Shape::Area { points, fill, opacity });
    }

    /// From the upper left to the lower right corner.
    pub fn rect(&mut self, (left, top): Point, (right, bottom): Point, fill: Rgb, opacity: f64) {
        let points = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        self.area(points, fill, opacity);
    }

    pub fn dot(&mut self, at: Point, radius: f64, fill: Rgb, opacity: f64) {
        self.shapes.push(Shape::Dot { at, radius, fill, opacity });
    }

    /// Text in the colour of text.
    pub fn text(&mut self, at: Point, anchor: Anchor, text: impl Into<String>) {
        self.text_in(at, anchor, text, Colour::Ink.light());
    }

    pub fn text_in(&mut self, at: Point, anchor: Anchor, text: impl Into<String>, fill: Rgb) {
        self.shapes.push(Shape::Text { at, text: text.into(), anchor, turned: false, fill });
    }

    /// Text that is read from below, with its middle here.
    pub fn turned(&mut self, at: Point, text: impl Into<String>) {
        let (text, fill) = (text.into(), Colour::Ink.light());
        self.shapes.push(Shape::Text { at, text, anchor: Anchor::Middle, turned: true, fill });
    }
}

/// Text that others chose, of letters that XML has.
pub(crate) fn safe(text: &str) -> String {
    Foreign::from(text).to_string().replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// Lines of a grid.
pub(crate) fn grid() -> Stroke {
    Stroke::new(light("grid"), 0.5)
}

/// The lines of axes.
pub(crate) fn rule() -> Stroke {
    Stroke::new(Colour::Muted.light(), 0.5)
}
