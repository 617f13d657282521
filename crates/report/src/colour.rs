//! Colours of what is shown, which the style sheet has for light and for dark pages.

use serde::Serializer;

/// Colours that people with any kind of colour vision tell apart: M. Okabe and K. Ito, "Color Universal
/// Design", 2008.
pub const COLOURS: usize = 6;

/// How something is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// One of the palette's, again from the first on where there are no more.
    Number(usize),
    /// That of text.
    Ink,
    /// Of what is in the background.
    Muted,
}

impl Colour {
    /// The class in the style sheet.
    pub(crate) fn class(self) -> String {
        match self {
            Colour::Number(number) => format!("c{}", 1 + number % COLOURS),
            Colour::Ink => "ink".into(),
            Colour::Muted => "muted".into(),
        }
    }
}

/// A colour as the script has it: by its class.
pub(crate) fn class<S: Serializer>(colour: &Colour, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&colour.class())
}
