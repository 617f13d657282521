//! Text that others chose: names of processes, interfaces, namespaces, files and laws, titles, and what
//! peers answer. A terminal obeys control characters in it, and some characters hide or reorder what
//! stands beside them.
//!
//! Two things keep it harmless. What is printed as a whole goes through [`harmless`], in one place
//! (`terminal.rs` of the command), which therefore cannot be forgotten. It cannot know which new lines are
//! ours, so a name is a [`Foreign`] where it enters: it stands on one line wherever it is shown, and has the
//! width that it is shown with. Both write a character out as JSON does, which leaves JSON the same text.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Does a terminal obey it, or show it as nothing, or reorder what stands beside it? Controls; Unicode's
/// line and paragraph separators; bidirectional controls and the others of its property
/// Default_Ignorable_Code_Point (DerivedCoreProperties.txt of 16.0); marks of annotations.
fn is_written_out(one: char) -> bool {
    one.is_control()
        || matches!(one,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// As JSON writes a character outside of the basic plane: two units of UTF-16.
fn write_out(to: &mut impl Write, one: char) -> fmt::Result {
    one.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(to, "\\u{unit:04x}"))
}

/// The system's error alone: the one of a temporary file (tempfile) has a name that nobody chose.
pub fn without_path(error: std::io::Error) -> std::io::Error {
    let message = error.to_string();
    let cause = message.split(" at path ").next().unwrap_or_default();
    std::io::Error::new(error.kind(), cause.to_owned())
}

/// Lines of text with such characters written out, as `\u001b`. New lines, also those of other systems, and
/// tabs are text.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_text = |one: char| matches!(one, '\n' | '\t');
    if !text.contains(|one| is_written_out(one) && !is_text(one)) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(one) = chars.next() {
        let ends = one == '\r' && chars.peek() == Some(&'\n');
        if is_written_out(one) && !is_text(one) && !ends {
            // Writing to a string cannot fail.
            let _ = write_out(&mut safe, one);
        } else {
            safe.push(one);
        }
    }
    safe.into()
}

/// A name, or a line, that somebody else chose. It is shown on one line, with what a terminal would obey
/// written out (`\n`, `\u001b`); for programs (serde) it is as it is. Bytes that are no UTF-8 are `\xff` in
/// both.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Foreign(String);

impl Foreign {
    /// As it is, to be looked up or handed to the kernel; to be shown by Display alone.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// As one word of a command that is to be typed into a shell: `$'...'`, which bash and zsh know and
    /// POSIX.1-2024 asks for, only where it takes an escape.
    pub fn word(&self) -> String {
        // Some letters are shown as nothing.
        let letter = |one: char| one.is_alphanumeric() && !is_written_out(one);
        let plain = |one: char| letter(one) || "-_.,:/@%+".contains(one);
        if !self.0.is_empty() && self.0.chars().all(plain) {
            return self.0.clone();
        }
        if !self.0.contains(is_written_out) {
            return format!("'{}'", self.0.replace('\'', r"'\''"));
        }
        let mut word = String::from("$'");
        for one in self.0.chars() {
            match one {
                '\'' | '\\' => word.extend(['\\', one]),
                _ if is_written_out(one) => {
                    for byte in one.encode_utf8(&mut [0; 4]).bytes() {
                        // Octal ends after three digits, whatever follows.
                        let _ = write!(word, "\\{byte:03o}");
                    }
                }
                _ => word.push(one),
            }
        }
        word + "'"
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(is_written_out) {
            return f.pad(&self.0);
        }
        let mut shown = String::with_capacity(self.0.len());
        for one in self.0.chars() {
            match one {
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                '\r' => shown.push_str("\\r"),
                _ if is_written_out(one) => write_out(&mut shown, one)?,
                _ => shown.push(one),
            }
        }
        f.pad(&shown)
    }
}

impl Serialize for Foreign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Foreign {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Foreign, D::Error> {
        String::deserialize(deserializer).map(Foreign)
    }
}

impl From<&[u8]> for Foreign {
    fn from(bytes: &[u8]) -> Foreign {
        let mut name = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            name.push_str(chunk.valid());
            for byte in chunk.invalid() {
                // Writing to a string cannot fail.
                let _ = write!(name, "\\x{byte:02x}");
            }
        }
        Foreign(name)
    }
}

impl From<&OsStr> for Foreign {
    fn from(name: &OsStr) -> Foreign {
        name.as_encoded_bytes().into()
    }
}

impl From<&Path> for Foreign {
    fn from(path: &Path) -> Foreign {
        path.as_os_str().into()
    }
}

impl From<&str> for Foreign {
    fn from(name: &str) -> Foreign {
        Foreign(name.into())
    }
}

impl From<String> for Foreign {
    fn from(name: String) -> Foreign {
        Foreign(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_neither_commands_the_terminal_nor_hides_what_stands_beside_it() {
        for (name, shown) in [
            ("ev\u{1b}[31m\u{7}\u{7f}", "ev\\u001b[31m\\u0007\\u007f"),
            ("\u{9b}2J a", "\\u009b2J a"),
            ("\u{202e}gpj.exe\u{200b}\u{2066}\u{61c}", "\\u202egpj.exe\\u200b\\u2066\\u061c"),
            ("a\u{2028}b\u{2029}\u{ad}", "a\\u2028b\\u2029\\u00ad"),
            // Tags, which are shown as nothing.
            ("a\u{e0041}", "a\\udb40\\udc41"),
        ] {
            assert_eq!(harmless(name), shown);
            assert_eq!(Foreign::from(name).to_string(), shown);
        }
        for text in ["two\tlines\n", "µs, Zürich, 東京", ""] {
            assert!(matches!(harmless(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(harmless("a\r\nb\rc"), "a\r\nb\\u000dc");
    }

    #[test]
    fn a_name_stands_on_one_line_and_has_the_width_that_it_is_shown_with() {
        let name = Foreign::from("a\nroot \t\r");
        assert_eq!(name.to_string(), "a\\nroot \\t\\r");
        assert_eq!(
            format!("{:8}|{:>3}|", Foreign::from("\u{1b}"), Foreign::from("b")),
            "\\u001b  |  b|"
        );
    }

    #[test]
    fn programs_get_a_name_as_it_is() {
        let json = |name: &Foreign| serde_json::to_string(name).unwrap();
        let name = Foreign::from("a\n\u{9b}\u{202e}\u{e0041}\"\\");
        // Also as it is printed.
        let back: String = serde_json::from_str(&harmless(&json(&name))).unwrap();
        assert_eq!(back, name.raw());
        assert_eq!(serde_json::from_str::<Foreign>(&json(&name)).unwrap(), name);
        let name = Foreign::from(&b"ev\xff\xc3(\n"[..]);
        assert_eq!(name.to_string(), "ev\\xff\\xc3(\\n");
        assert_eq!(json(&name), r#""ev\\xff\\xc3(\n""#);
    }

    #[test]
    fn a_shell_takes_a_name_for_one_word_that_it_does_not_obey() {
        for (name, word) in [
            ("enp3s0.7", "enp3s0.7"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
            ("a'b", r"'a'\''b'"),
            ("e\u{1b}[0m'\\", r"$'e\033[0m\'\\'"),
            // A letter that is shown as nothing.
            ("a\u{3164}", r"$'a\343\205\244'"),
        ] {
            let foreign = Foreign::from(name);
            assert_eq!(foreign.word(), word);
            let script = format!("printf %s {}", foreign.word());
            let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), name, "{word}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_written_out_is_left(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let bad = |one: char| is_written_out(one) && !['\n', '\t', '\r'].contains(&one);
            prop_assert!(!harmless(&text).contains(bad));
            let names = [Foreign::from(text), Foreign::from(&bytes[..])];
            prop_assert!(!names.iter().any(|name| name.to_string().contains(is_written_out)));
            prop_assert!(!names.iter().any(|name| name.word().contains(is_written_out)));
        }
    }
}
