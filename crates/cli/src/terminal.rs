//! What is said on the terminal. Names of processes, interfaces, namespaces and files are others' choice,
//! and a terminal obeys control characters in them: none gets there but our own.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use crate::error::Error;

/// Does a terminal obey it, or does it hide or reorder what stands beside it (Unicode's bidirectional
/// controls and zero widths)? New lines and tabs are text.
fn commands(one: char) -> bool {
    matches!(one, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || one.is_control() && !matches!(one, '\n' | '\t')
}

/// `text` with such characters as `\u001b`, as JSON writes them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(commands) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(one) = chars.next() {
        // The end of a line in files of other systems.
        let ends = one == '\r' && chars.peek() == Some(&'\n');
        match commands(one) && !ends {
            true => safe += &format!("\\u{:04x}", u32::from(one)),
            false => safe.push(one),
        }
    }
    safe.into()
}

/// Writes to standard output. A reader that has gone away, as in `narrows list | head`, is no
/// error.
pub fn print(text: &str) -> Result<(), Error> {
    print_while_read(text).map(drop)
}

/// The same; false: the reader has gone away.
pub fn print_while_read(text: &str) -> Result<bool, Error> {
    command(&harmless(text))
}

/// The same of text that may command the terminal.
pub fn command(text: &str) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::input("standard output", format!("cannot write: {error}"))),
        Ok(()) => Ok(true),
    }
}

/// Writes a line, or more, to standard error. If that is closed there is nothing to report to.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_neither_commands_the_terminal_nor_hides_what_stands_beside_it() {
        assert_eq!(harmless("ev\u{1b}[31m\u{7}"), "ev\\u001b[31m\\u0007");
        assert_eq!(harmless("\u{9b}2J \r a"), "\\u009b2J \\u000d a");
        assert_eq!(harmless("\u{202e}gpj.exe\u{200b}"), "\\u202egpj.exe\\u200b");
        for text in ["two\tlines\n", "µs, Zürich, 東京", ""] {
            assert!(matches!(harmless(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(harmless("a\r\nb\rc"), "a\r\nb\\u000dc");
        // In JSON it is the same text.
        let json = serde_json::to_string("a\u{9b}\u{202e}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&harmless(&json)).unwrap(), "a\u{9b}\u{202e}");
    }
}
