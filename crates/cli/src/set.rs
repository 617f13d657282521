//! `--set NAME=VALUE`: parameters of laws and detectors.

use narrows_laws::Params;
use narrows_laws::params::is_preset;

use crate::error::Error;

/// The default parameters with these settings.
///
/// # Errors
/// Not NAME=VALUE, no such parameter, or not a value of it.
pub fn params(set: &[String]) -> Result<Params, Error> {
    let mut params = Params::default();
    // Presets first, in any order of the options, as in a scenario.
    let (presets, others): (Vec<_>, Vec<_>) = set
        .iter()
        .partition(|text| text.split('=').next().is_some_and(|name| is_preset(name.trim())));
    for text in presets.into_iter().chain(others) {
        let expected = || Error::input("--set", format!("expected NAME=VALUE, found \"{text}\""));
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        params.set(name.trim(), value.trim()).map_err(|message| Error::input("--set", message))?;
    }
    params.check().map_err(|message| Error::input("--set", message))?;
    Ok(params)
}
