//! `narrows.Error`: one line, with the file, the field and what was expected as far as the line says them.

use narrows_foreign::harmless;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use crate::trace::is_trace;

/// Why something was not done.
pub enum Failure {
    /// One line with its place, of the command line's words.
    Line(String),
    /// Something wrong of a field or an argument, and what was expected.
    Field(String, String),
    /// Something wrong of a file or a folder.
    File(String, String),
    /// One line, and what it is of.
    Placed(String, Parts),
    /// It was stopped.
    Interrupted,
    /// What Python raised in code that an argument brought, or Ctrl-C.
    Raised(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Raised(error)
    }
}

impl Failure {
    /// Something wrong of a field or an argument, and what was expected.
    pub fn of(field: &str, message: impl std::fmt::Display) -> Failure {
        Failure::Field(field.into(), message.to_string())
    }

    /// Something wrong of an argument, in the words of a line that begins with its value.
    pub fn named(field: &str, line: impl std::fmt::Display) -> Failure {
        Failure::Placed(line.to_string(), Parts { field: Some(field.into()), ..Parts::default() })
    }

    /// Something wrong at a file or a folder.
    pub fn at(file: &std::path::Path, message: impl std::fmt::Display) -> Failure {
        Failure::File(file.display().to_string(), message.to_string())
    }
}

impl From<narrows_lab::Error> for Failure {
    fn from(error: narrows_lab::Error) -> Failure {
        match error {
            error if error.exit_code() == 130 => Failure::Interrupted,
            narrows_lab::Error::Io { path, action, source } => {
                Failure::File(path, format!("cannot {action}: {source}"))
            }
            error => Failure::Line(error.to_string()),
        }
    }
}

impl From<narrows_cli::Error> for Failure {
    fn from(error: narrows_cli::Error) -> Failure {
        match error.exit_code() {
            130 => Failure::Interrupted,
            _ => Failure::Line(error.to_string()),
        }
    }
}

impl From<narrows_detect::Error> for Failure {
    fn from(error: narrows_detect::Error) -> Failure {
        match error {
            narrows_detect::Error::Io { path, action, source } => {
                Failure::File(path, format!("cannot {action}: {source}"))
            }
            error => Failure::Line(error.to_string()),
        }
    }
}

/// The exception.
pub fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    let (line, parts) = match failure {
        Failure::Interrupted => return PyKeyboardInterrupt::new_err(()),
        Failure::Raised(error) => return error,
        Failure::Field(field, message) => {
            let (file, expected) = (None, expected(&message));
            (format!("{field}: {message}"), Parts { file, field: Some(field), expected })
        }
        Failure::File(file, message) => {
            let expected = expected(&message);
            (format!("{file}: {message}"), Parts { file: Some(file), field: None, expected })
        }
        Failure::Line(line) => {
            let line = in_python(&line);
            let parts = Parts::of(&line);
            (line, parts)
        }
        Failure::Placed(line, parts) => {
            let line = in_python(&line);
            let expected = parts.expected.or_else(|| expected(&line));
            (line, Parts { expected, ..parts })
        }
    };
    let Parts { file, field, expected } = parts;
    // Python shows it on a terminal, and others chose the names in it.
    let line = harmless(&line).into_owned();
    let made = || -> PyResult<PyErr> {
        let class = py.import("narrows._error")?.getattr("Error")?;
        let parts = [("file", file), ("field", field), ("expected", expected)].into_py_dict(py)?;
        Ok(PyErr::from_value(class.call((&line,), Some(&parts))?))
    };
    made().unwrap_or_else(|_| PyRuntimeError::new_err(line.clone()))
}

/// The options of the command are arguments here: `--cc` is `cc`.
fn in_python(line: &str) -> String {
    let first = |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let word = |word: &str| match word.split_once("--") {
        Some((before, option)) if first(option) && before.chars().all(|c| "(\"'`".contains(c)) => {
            format!("{before}{option}")
        }
        _ => word.to_owned(),
    };
    let words = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    // What stands in backticks is for a shell.
    let part = |(at, text): (usize, &str)| if at % 2 == 0 { words(text) } else { text.to_owned() };
    let line = line.split('`').enumerate().map(part).collect::<Vec<_>>().join("`");
    // Text of a dict, whose lines nobody has seen.
    let numbered = line.strip_prefix("scenario:").and_then(|rest| rest.split_once(": "));
    match numbered.filter(|(number, _)| number.parse::<u64>().is_ok()) {
        Some((_, rest)) => format!("scenario: {rest}"),
        None => line,
    }
}

/// What a message says was expected.
fn expected(message: &str) -> Option<String> {
    let line = message.lines().next()?;
    let word = |at: &usize| !line[..*at].ends_with(char::is_alphanumeric);
    let (at, found) = line.rmatch_indices("expected ").find(|(at, _)| word(at))?;
    let what = &line[at + found.len()..];
    let ends = ["; ", ", found "].iter().filter_map(|end| what.find(end));
    Some(what[..ends.min().unwrap_or(what.len())].to_owned())
}

/// What follows its place in a line.
fn next_of<'a>(line: &'a str, place: &str) -> &'a str {
    line.get(place.len()..).unwrap_or_default()
}

/// What a line says.
#[derive(Debug, Default, PartialEq)]
pub struct Parts {
    /// The file.
    pub file: Option<String>,
    /// The field or argument.
    pub field: Option<String>,
    /// What was expected; where it is not known, what the line says of it.
    pub expected: Option<String>,
}

impl Parts {
    /// Those of a line; where a field is missing it is that one, not its table.
    fn of(line: &str) -> Parts {
        let parts = Parts::read(line);
        let missing = line.split_once("missing field `").and_then(|(_, rest)| rest.split_once('`'));
        let Some((name, _)) = missing else { return parts };
        let table = parts.field.filter(|table| table != "scenario");
        let field = table.map_or(name.into(), |table| format!("{table}.{name}"));
        Parts { field: Some(field), ..parts }
    }

    /// `FILE:LINE: FIELD: MESSAGE, expected WHAT`, `OPTION: MESSAGE`, `set FIELD=VALUE: MESSAGE`,
    /// `trace LINK=FILE: MESSAGE`.
    fn read(line: &str) -> Parts {
        let first = line.lines().next().unwrap_or_default();
        let expected = expected(first);
        let mut places = first.split(": ");
        let place = places.next().unwrap_or_default();
        let next = places.next().filter(|_| places.next().is_some());
        let is_field = |text: &str| {
            let word = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            !text.is_empty() && text.chars().all(word)
        };
        let set = ["set ", "sweep "].iter().find_map(|option| place.strip_prefix(option));
        // What is said of the file that is named there.
        let of_file = |file: &&str| next_of(first, place).contains(*file);
        if let Some((link, file)) = place.strip_prefix("trace ").and_then(|of| of.split_once('=')) {
            let field = Some(format!("links.{link}.trace"));
            return Parts { file: Some(file).filter(of_file).map(Into::into), field, expected };
        }
        if let Some(set) = set {
            let (field, value) = set.split_once('=').unwrap_or((set, ""));
            let file = Some(value).filter(|_| is_trace(field)).filter(of_file);
            return Parts { file: file.map(Into::into), field: Some(field.into()), expected };
        }
        let numbered = place.rsplit_once(':').filter(|(_, line)| line.parse::<u64>().is_ok());
        let file = match numbered {
            Some((file, _)) => Some(file),
            None => Some(place).filter(|place| place.contains(['/', '.'])),
        };
        match (file, next.filter(|next| is_field(next))) {
            // Text that is in no file.
            (None, Some(field)) if place == "scenario" => {
                Parts { file: None, field: Some(field.into()), expected }
            }
            (Some(file), field) => {
                Parts { file: Some(file.into()), field: field.map(Into::into), expected }
            }
            (None, _) => {
                let field = Some(place).filter(|place| is_field(place)).map(Into::into);
                Parts { file: None, field, expected }
            }
        }
    }
}
