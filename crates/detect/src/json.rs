//! JSON values one after the other: a single one, one a line (NDJSON), or JSON text sequences (RFC 7464). They
//! are read byte by byte, so that a value of any length takes no memory but that of what is kept of it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use serde::de::DeserializeSeed;
use serde_json::error::Category;

use crate::input::Reader;
use crate::{Error, Input};

/// Bytes read at once.
const BUFFER: usize = 1 << 18;
/// A string that is longer, or arrays and objects that are deeper in each other, are refused.
const LONGEST: usize = 1 << 20;
const DEEPEST: u32 = 64;
/// Begins each text of a sequence.
const SEPARATOR: u8 = 0x1e;
/// Begins a text file of some editors and shells: the byte order mark, in UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Does a file begin as JSON does whose values are objects?
pub fn is_json(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(&MARK).unwrap_or(beginning);
    let first = beginning.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | &SEPARATOR))
}

/// The values of a file.
pub struct Values<'a> {
    input: &'a Input,
    bytes: Bytes,
}

impl<'a> Values<'a> {
    /// Opens a file.
    pub fn open(input: &'a Input) -> Result<Values<'a>, Error> {
        let (mut from, beginning) = input.open()?;
        if beginning.starts_with(&MARK) {
            let mark = from.read_exact(&mut [0; MARK.len()]);
            mark.map_err(|error| Error::io(input.name(), "read")(error))?;
        }
        Ok(Values { input, bytes: Bytes::new(from) })
    }

    /// The line of what was read last, from 1, as it goes on.
    pub fn line(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.bytes.line)
    }

    /// The next value, as `seed` reads it.
    pub fn next<'de, S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let begins = self.bytes.skip_space();
        let begins = begins.map_err(|error| Error::io(self.input.name(), "read")(error))?;
        if !begins {
            return Ok(None);
        }
        let first = self.bytes.line.get() + u64::from(self.bytes.ends);
        let mut from = serde_json::Deserializer::from_reader(&mut self.bytes);
        let value = seed.deserialize(&mut from);
        value.map(Some).map_err(|error| {
            let line = self.bytes.line.get();
            let place = format!("{} line {line}", self.input.name());
            let message = match error.classify() {
                Category::Eof if line > first => {
                    format!("ends within the object that begins in line {first}")
                }
                Category::Eof => "ends within an object".to_owned(),
                Category::Syntax => match reason(&error).as_str() {
                    // What serde says of a word.
                    "expected ident" | "expected value" => "expected JSON, found none".to_owned(),
                    reason => format!("expected JSON, found none: {reason}"),
                },
                Category::Data | Category::Io => reason(&error),
            };
            Error::input(place, message)
        })
    }
}

/// What is wrong, without serde's place of it, which counts from the beginning of the value.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    text.chars().take(200).collect()
}

/// Bytes with their line, as long as strings and depths are bounded.
struct Bytes {
    from: Reader,
    buffer: Vec<u8>,
    at: usize,
    /// Of the newest byte, and whether that ends it.
    line: Rc<Cell<u64>>,
    ends: bool,
    depth: u32,
    /// Bytes of the string so far, and whether the last was a backslash.
    string: Option<(usize, bool)>,
}

impl Bytes {
    fn new(from: Reader) -> Bytes {
        let line = Rc::new(Cell::new(1));
        Bytes { from, buffer: Vec::new(), at: 0, line, ends: false, depth: 0, string: None }
    }

    /// The next byte, which is not taken.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.buffer.len() {
            self.buffer.resize(BUFFER, 0);
            let read = self.from.read(&mut self.buffer)?;
            self.buffer.truncate(read);
            self.at = 0;
        }
        Ok(self.buffer.get(self.at).copied())
    }

    /// Goes to the next value; is there one?
    fn skip_space(&mut self) -> io::Result<bool> {
        while let Some(byte) = self.peek()? {
            if byte != SEPARATOR && !byte.is_ascii_whitespace() {
                return Ok(true);
            }
            self.count_line(byte);
            self.at += 1;
        }
        Ok(false)
    }

    fn count_line(&mut self, byte: u8) {
        self.line.set(self.line.get() + u64::from(self.ends));
        self.ends = byte == b'\n';
    }

    /// Counts a byte of a value.
    fn count(&mut self, byte: u8) -> Result<(), &'static str> {
        self.count_line(byte);
        match (&mut self.string, byte) {
            (Some((_, escaped @ true)), _) => *escaped = false,
            (Some(_), b'"') => self.string = None,
            (Some((length, escaped)), _) => {
                *length += 1;
                *escaped = byte == b'\\';
                if *length > LONGEST {
                    return Err("a string of more than 1 MiB");
                }
            }
            (None, b'"') => self.string = Some((0, false)),
            (None, b'{' | b'[') => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err("arrays or objects more than 64 deep");
                }
            }
            (None, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
            (None, _) => {}
        }
        Ok(())
    }
}

impl Read for Bytes {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (Some(byte), Some(to)) = (self.peek()?, to.first_mut()) else { return Ok(0) };
        self.at += 1;
        self.count(byte).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))?;
        *to = byte;
        Ok(1)
    }
}
