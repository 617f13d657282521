//! Python's values as TOML.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
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
        let items = value.try_iter().map_err(|_| wrong(kind()))?;
        let each = items.enumerate().map(|(at, item)| match item {
            Ok(item) => within(&item, &below(&at.to_string()), depth + 1),
            Err(_) => Err(wrong(kind())),
        });
        return Ok(Value::Array(each.collect::<Result<_, _>>()?));
    }
    // A path, and a scalar of NumPy.
    if let Ok(path) = value.call_method0("__fspath__") {
        return within(&path, field, depth + 1);
    }
    match value.call_method0("item") {
        Ok(item) if !item.is_instance(&value.get_type()).unwrap_or(true) => {
            within(&item, field, depth + 1)
        }
        _ => Err(wrong(kind())),
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
    let text = match toml(value, field)? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(match unit {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    })
}

/// A whole number that is not negative.
///
/// # Errors
/// It is something else.
pub fn whole(value: &Bound<'_, PyAny>, field: &str) -> Result<u64, Failure> {
    let wrong = || {
        let text = value.str().map_or(String::new(), |text| text.to_string());
        Failure::of(field, format!("found {text}; expected a whole number from 0 to 2^64-1"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    value.extract().map_err(|_| wrong())
}

/// What is named alone or in a list.
///
/// # Errors
/// Neither text nor a list of it.
pub fn names(value: &Bound<'_, PyAny>, field: &str) -> Result<Vec<String>, Failure> {
    let wrong = || Failure::of(field, "expected text, or a list of it");
    match value.extract::<String>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => value.extract().map_err(|_| wrong()),
    }
}
