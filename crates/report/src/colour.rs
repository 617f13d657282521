//! Colours of what is shown, which the style sheet has for light and for dark pages.

use serde::Serializer;

pub(crate) const STYLE: &str = include_str!("../assets/page.css");

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

    /// As light pages have it: red, green, blue.
    pub fn light(self) -> [u8; 3] {
        light(&self.class())
    }
}

/// A colour of light pages by its name in the style sheet (`right`, `wrong`, `grid`): red, green, blue.
///
/// # Panics
/// There is none of that name.
pub fn light(name: &str) -> [u8; 3] {
    // What stands first is for light pages.
    let found = STYLE.split_once(&format!("--{name}:#")).and_then(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some([byte(0)?, byte(2)?, byte(4)?])
    });
    found.unwrap_or_else(|| panic!("the style sheet has no colour {name} of six digits"))
}

/// A colour as the script has it: by its class.
pub(crate) fn class<S: Serializer>(colour: &Colour, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&colour.class())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_light_pages() {
        // Okabe and Ito's blue and vermilion.
        assert_eq!(Colour::Number(0).light(), [0x00, 0x72, 0xb2]);
        assert_eq!(Colour::Number(COLOURS + 1).light(), [0xd5, 0x5e, 0x00]);
        assert!(Colour::Ink.light().iter().all(|part| *part < 0x40), "dark on white");
        let classes = (0..COLOURS).map(|number| Colour::Number(number).class());
        let others = ["right", "wrong", "undecided", "clear", "grid", "panel", "muted"];
        for name in classes.chain(others.map(String::from)) {
            assert_ne!(light(&name), [0; 3], "{name}");
        }
    }
}
