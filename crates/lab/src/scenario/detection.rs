//! The delay signal and parameters of detectors, parsed from the file.

use indexmap::IndexMap;
use narrows_laws::params::ParamError;
use narrows_laws::{Detector, Params};
use narrows_sim::PassiveDetector;
use narrows_traffic::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Fault;
use super::file::File;

/// The fields of detection besides the parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionFile {
    /// What delay-based detectors sample: receiver-us, sender-us, sender-ms, rtt or srtt. Default:
    /// `"sender-us"`.
    pub signal: Option<String>,
    /// Passive detectors: they see the packets of the flow under test, without effect; each with its
    /// signal or that one. Example: `["xcorr:rtt", "ssc"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<String>,
}

/// The delay signal of detectors.
pub fn signal(file: &File) -> Result<Signal, Fault> {
    let name = file.detection.as_ref().and_then(|detection| detection.signal.as_ref());
    let signal = name.map(|name| name.parse()).transpose();
    Ok(signal
        .map_err(|message: String| Fault::new(["detection", "signal"], message))?
        .unwrap_or_default())
}

/// The passive detectors, `DETECTOR[:SIGNAL]`.
pub fn passive(file: &File) -> Result<Vec<PassiveDetector>, Fault> {
    let named = file.detection.iter().flat_map(|detection| &detection.passive);
    let mut passive: Vec<PassiveDetector> = Vec::new();
    for (index, text) in named.enumerate() {
        let fault = |message| Fault::new(["detection", "passive", &index.to_string()], message);
        let detector = passive_detector(text, signal(file)?).map_err(fault)?;
        if passive.contains(&detector) {
            return Err(fault(format!("{text} is named twice")));
        }
        let other = passive.iter().find(|other| !other.signal.goes_with(detector.signal));
        if let Some(other) = other {
            let message = format!("needs other timestamps than {}; run them apart", show(other));
            return Err(fault(message));
        }
        passive.push(detector);
    }
    if !passive.is_empty() && file.test.is_none() {
        return Err(Fault::new(["detection", "passive"], "no flow is under test"));
    }
    Ok(passive)
}

/// `DETECTOR[:SIGNAL]`; the signal is `default` if it has none.
fn passive_detector(text: &str, default: Signal) -> Result<PassiveDetector, String> {
    let (name, signal) = text.split_once(':').map_or((text, None), |(n, s)| (n, Some(s)));
    let dynamic = || Detector::all().filter(|detector| detector.measures_delay());
    let Some(detector) = dynamic().find(|detector| detector.name() == name) else {
        return Err(super::unknown("detector", name, dynamic().map(Detector::name)));
    };
    let signal = signal.map(str::parse).transpose()?.unwrap_or(default);
    Ok(PassiveDetector { detector, signal })
}

/// `DETECTOR:SIGNAL`.
pub fn show(passive: &PassiveDetector) -> String {
    format!("{}:{}", passive.detector.name(), passive.signal.name())
}

/// The fields of `file` about detection, with the defaults.
pub fn whole(file: &File) -> Option<DetectionFile> {
    let signal = signal(file).ok()?;
    let passive = passive(file).ok()?.iter().map(show).collect();
    Some(DetectionFile { signal: Some(signal.name().into()), passive })
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
            _ => "",
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
