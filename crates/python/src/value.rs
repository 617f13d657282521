//! Python's values as TOML.

use std::ops::RangeInclusive;

use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};
use toml::Value;

use crate::error::Failure;

/// `value` of a field as TOML.
///
/// # Errors
/// What no scenario holds, by its field.
pub fn toml(value: &Bound<'_, PyAny>, field: &str) -> Result<Value, Failure> {
    within(value, field, 0)
}

/// Deeper than any scenario.
const DEEP: usize = 32;

fn within(value: &Bound<'_, PyAny>, field: &str, depth: usize) -> Result<Value, Failure> {
    let wrong = |what: String| {
        let expected = "expected text, a number, a boolean, a list or a dict";
        Failure::of(
            if field.is_empty() { "scenario" } else { field },
            format!("found {what}; {expected}"),
        )
    };
    let kind = || value.get_type().name().map_or("something".into(), |name| name.to_string());
    if depth > DEEP {
        return Err(wrong("one inside the other without end".into()));
    }
    let below = |key: &str| if field.is_empty() { key.into() } else { format!("{field}.{key}") };
    if value.is_instance_of::<PyBool>() {
        return value.extract().map(Value::Boolean).map_err(|_| wrong(kind()));
    }
    if value.is_instance_of::<PyInt>() {
        let whole = value.extract::<i64>().map(Value::Integer);
        return whole.map_err(|_| wrong("a whole number beyond 64 bits".into()));
    }
    if value.is_instance_of::<PyFloat>() {
        return match value.extract::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => {
                Err(Failure::of(field, "found a number that is not finite; expected a finite one"))
            }
        };
    }
    if value.is_instance_of::<PyString>() {
        return value
            .extract()
            .map(Value::String)
            .map_err(|_| wrong("text that is no Unicode".into()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut table = toml::Table::new();
        for (key, value) in dict.iter() {
            let name =
                key.extract::<String>().map_err(|_| wrong("a key that is not text".into()))?;
            let value = within(&value, &below(&name), depth + 1)?;
            table.insert(name, value);
        }
        return Ok(Value::Table(table));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let each = value.try_iter()?.enumerate();
        let each = each.map(|(at, item)| within(&item?, &below(&at.to_string()), depth + 1));
        return Ok(Value::Array(each.collect::<Result<_, _>>()?));
    }
    // A path, and a scalar of NumPy.
    if let Some(path) = said(value, "__fspath__")? {
        return within(&path, field, depth + 1);
    }
    match said(value, "item") {
        Ok(Some(item)) if !item.is_instance(&value.get_type())? => within(&item, field, depth + 1),
        Ok(_) => Err(wrong(kind())),
        // An array of NumPy with several.
        Err(error) if error.is_instance_of::<PyValueError>(value.py()) => Err(wrong(kind())),
        Err(error) => Err(error.into()),
    }
}

/// What a method gives, where a value has it.
fn said<'py>(value: &Bound<'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    attribute(value, method)?.map(|method| method.call0()).transpose()
}

/// What a value has of this name.
///
/// # Errors
/// What Python raises there, but that there is none.
pub fn attribute<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match value.getattr(name) {
        Ok(attribute) => Ok(Some(attribute)),
        Err(error) if error.is_instance_of::<PyAttributeError>(value.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The items of what has any; Ctrl-C is seen between them.
///
/// # Errors
/// What Python raises there.
pub fn items<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>>> {
    let py = value.py();
    // One process has another order of it than the next.
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        return Ok(None);
    }
    match value.try_iter() {
        Ok(items) => Ok(Some(items.map(move |item| py.check_signals().and(item)))),
        // What has no items says so by this error, and an iterator of someone's may, too.
        Err(error) if error.is_instance_of::<PyTypeError>(py) && !value.hasattr("__iter__")? => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A value as `set` takes it: text as it is, all else as TOML.
///
/// # Errors
/// As of [`toml`].
pub fn setting(
    value: &Bound<'_, PyAny>,
    field: &str,
    unit: Option<&str>,
) -> Result<String, Failure> {
    Ok(as_text(toml(value, field)?, unit))
}

/// TOML as `set` takes it, a number with its unit.
pub fn as_text(value: Value, unit: Option<&str>) -> String {
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    match unit {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    }
}

/// A whole number, where a value is one; a boolean is none.
///
/// # Errors
/// What Python raises there.
pub fn number<'py, T: pyo3::conversion::FromPyObjectOwned<'py>>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<T>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    let index = match value.is_instance_of::<PyInt>() {
        true => Some(value.clone()),
        false => said(value, "__index__")?.filter(|index| index.is_instance_of::<PyInt>()),
    };
    Ok(index.and_then(|index| index.extract().ok()))
}

/// Most threads, as of the command.
pub const JOBS: u64 = 1024;

/// A whole number of a range.
///
/// # Errors
/// It is something else.
pub fn whole(
    value: &Bound<'_, PyAny>,
    field: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, Failure> {
    if let Some(number) = number(value)?.filter(|number| range.contains(number)) {
        return Ok(number);
    }
    let text = value.str()?;
    let (least, most) = (range.start(), *range.end());
    let most = if most == u64::MAX { "2^64-1".into() } else { most.to_string() };
    let message = format!("found {text}; expected a whole number from {least} to {most}");
    Err(Failure::of(field, message))
}

/// What is named alone or in a list.
///
/// # Errors
/// Neither text nor a list of it.
pub fn names(value: &Bound<'_, PyAny>, field: &str) -> Result<Vec<String>, Failure> {
    let wrong = || Failure::of(field, "expected text, or a list of it");
    if let Ok(one) = value.extract::<String>() {
        return Ok(vec![one]);
    }
    let items = items(value)?.filter(|_| !value.is_instance_of::<PyString>()).ok_or_else(wrong)?;
    items.map(|item| item?.extract().map_err(|_| wrong())).collect()
}

/// Text.
///
/// # Errors
/// It is something else, or no Unicode.
pub fn text(value: &Bound<'_, PyAny>, field: &str) -> Result<String, Failure> {
    let found = || match value.is_instance_of::<PyString>() {
        true => "text that is no Unicode".into(),
        false => value.get_type().name().map_or("something".into(), |name| name.to_string()),
    };
    let wrong = |_| Failure::of(field, format!("found {}; expected text", found()));
    value.extract().map_err(wrong)
}

/// A path.
///
/// # Errors
/// It is something else, or no system has a file of this name; what Python raises there.
pub fn path(value: &Bound<'_, PyAny>, field: &str) -> Result<PathBuf, Failure> {
    value.extract::<PathBuf>().map_err(|error| {
        let py = value.py();
        if error.is_instance_of::<PyUnicodeEncodeError>(py) {
            return Failure::of(field, "found text that is no Unicode; expected a path");
        }
        // A path that raises this has a reason of its own.
        let is_path = value.hasattr("__fspath__").unwrap_or(true);
        match !is_path && error.is_instance_of::<PyTypeError>(py) {
            true => Failure::of(field, "expected text or a path"),
            false => error.into(),
        }
    })
}

/// The folder of results, where one is named; without one there is nothing to `resume`.
///
/// # Errors
/// It is no path, or that of another machine.
pub fn out(value: Option<&Bound<'_, PyAny>>, resume: bool) -> Result<Option<PathBuf>, Failure> {
    let Some(value) = value else {
        let message = "goes on with what is in a folder; expected out, too";
        return if resume { Err(Failure::of("resume", message)) } else { Ok(None) };
    };
    let out = path(value, "out")?;
    if is_url(&out) {
        let message = format!("found {}; expected a folder of this machine, no URL", out.display());
        return Err(Failure::of("out", message));
    }
    Ok(Some(out))
}

/// Is it a URL, or what a path makes of one, `s3:/bucket`?
fn is_url(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let scheme = text.split_once(":/").map(|(scheme, _)| scheme);
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.contains("://")
        || scheme.is_some_and(|scheme| scheme.len() > 1 && scheme.chars().all(of_scheme))
}
