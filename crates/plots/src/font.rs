//! The font of all figures: DejaVu Sans, which comes with the program (its licence allows that, and to embed it).

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId};

use crate::drawing::{Anchor, SIZE, safe};

/// Its file.
pub(crate) fn file() -> &'static [u8] {
    dejavu::sans::regular()
}

/// Its tables.
pub(crate) fn face() -> &'static Face<'static> {
    static FACE: LazyLock<Face> =
        LazyLock::new(|| Face::parse(file(), 0).expect("the font that comes with the program"));
    &FACE
}

/// The glyph of a letter; that of letters it lacks is a box.
pub(crate) fn glyph(letter: char) -> GlyphId {
    face().glyph_index(letter).unwrap_or(GlyphId(0))
}

/// How wide a glyph is, in units of which the height of a letter has `units_per_em`.
pub(crate) fn advance(glyph: GlyphId) -> f64 {
    f64::from(face().glyph_hor_advance(glyph).unwrap_or(0))
}

/// How wide a text is as it is written, points.
pub(crate) fn width(text: &str) -> f64 {
    let units: f64 = safe(text).chars().map(|letter| advance(glyph(letter))).sum();
    units * SIZE / f64::from(face().units_per_em())
}

/// How long before its place a text begins, points.
pub(crate) fn before(text: &str, anchor: Anchor) -> f64 {
    match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width(text) / 2.0,
        Anchor::End => width(text),
    }
}

/// A text no wider than `room` points, if need be without its middle, as names differ at their ends.
pub(crate) fn fitting(text: &str, room: f64) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut short = text.to_owned();
    for keep in (2..letters.len()).rev() {
        if width(&short) <= room {
            break;
        }
        let head = letters[..keep.div_ceil(2)].iter();
        let tail = letters[letters.len() - keep / 2..].iter();
        short = head.chain([&'…']).chain(tail).collect();
    }
    short
}
