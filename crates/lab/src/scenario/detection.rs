//! The delay signal and parameters of detectors, parsed from the file.

use indexmap::IndexMap;
use narrows_laws::Params;
use narrows_laws::params::ParamError;
use narrows_traffic::Signal;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Fault;
use super::file::File;

/// The fields of detection besides the parameters.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionFile {
    signal: Option<String>,
}

impl DetectionFile {
    /// The delay signal.
    pub fn of(signal: Signal) -> DetectionFile {
        DetectionFile { signal: Some(signal.name().into()) }
    }
}

/// The delay signal of detectors.
pub fn signal(file: &File) -> Result<Signal, Fault> {
    let name = file.detection.as_ref().and_then(|detection| detection.signal.as_ref());
    let signal = name.map(|name| name.parse()).transpose();
    Ok(signal
        .map_err(|message: String| Fault::new(["detection", "signal"], message))?
        .unwrap_or_default())
}

/// The fields of `file` about detection, with the defaults.
pub fn whole(file: &File) -> Option<DetectionFile> {
    let signal = signal(file).ok()?;
    Some(DetectionFile::of(signal))
}

/// The parameters: the defaults, the preset, and what else is set.
pub fn params(file: &File) -> Result<Params, Fault> {
    let mut params = Params::default();
    set(&mut params, &file.params)?;
    check(&params)?;
    Ok(params)
}

/// Sets parameters, by their groups; in each the preset first.
pub fn set(params: &mut Params, tables: &IndexMap<String, Table>) -> Result<(), Fault> {
    for (table, fields) in tables {
        let (preset, others): (Vec<_>, Vec<_>) =
            fields.iter().partition(|(field, _)| *field == "preset");
        for (field, value) in preset.into_iter().chain(others) {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
                _ => return Err(Fault::new([table, field], "expected a number or a word")),
            };
            let name = format!("{table}.{field}");
            params.set(&name, &value).map_err(|error| fault(&name, &error))?;
        }
    }
    Ok(())
}

/// Each is in its range; do they fit each other?
pub fn check(params: &Params) -> Result<(), Fault> {
    params.check().map_err(|error| {
        let name = match &error {
            ParamError::Value { name, .. } => name,
            ParamError::Unknown(_) => "",
        };
        fault(name, &error)
    })
}

/// An error in a parameter, with the name of its field.
fn fault(name: &str, error: &ParamError) -> Fault {
    let message = error.to_string();
    let message = message.strip_prefix(&format!("{name}: ")).unwrap_or(&message);
    Fault { field: name.split('.').map(String::from).collect(), message: message.into() }
}
