//! What is asked for by names: a control, delay signals, and both for a scenario.

use narrows_traffic::Signal;

use crate::Error;
use crate::algorithm::Algorithm;
use crate::scenario::Scenario;

/// A scenario under the control, and with the delay signal, that are asked for.
pub struct Asked {
    /// With what they set.
    pub scenario: Scenario,
    /// The control in place of the scenario's.
    pub control: Option<Algorithm>,
    /// That of the connection under test.
    pub under_test: Option<Algorithm>,
}

impl Asked {
    /// Reads the names.
    ///
    /// # Errors
    /// What is wrong of them, or does not fit the scenario.
    pub fn of(
        mut scenario: Scenario,
        cc: Option<&str>,
        signal: Option<&str>,
    ) -> Result<Asked, Error> {
        let control = cc.map(control).transpose()?;
        if control.is_some() && scenario.test.is_none() {
            let message =
                "no flow of this scenario is under test; expected a field test = \"FLOW\"";
            return Err(Error::input("--cc", message));
        }
        if let Some(system) = control.and_then(Algorithm::system) {
            scenario.adopt(system, "--cc")?;
        }
        let under_test = match scenario.test {
            Some(test) => control.or(scenario.flows[test].control),
            None => None,
        };
        let signal: Vec<String> = signal.iter().map(|&name| name.into()).collect();
        for signal in signals(&signal, under_test.as_slice())? {
            scenario.set_signal(signal);
        }
        under_test.map_or(Ok(()), |control| scenario.check_passive(control))?;
        scenario.check_law_settings(control.as_slice())?;
        Ok(Asked { scenario, control, under_test })
    }
}

/// The signals of an option.
///
/// # Errors
/// An unknown signal, one named twice, or no control with a delay-based detector.
pub fn signals(names: &[String], controls: &[Algorithm]) -> Result<Vec<Signal>, Error> {
    let mut signals = Vec::new();
    for name in names {
        let signal: Signal =
            name.trim().parse().map_err(|message: String| Error::input("--signal", message))?;
        if signals.contains(&signal) {
            return Err(Error::input("--signal", format!("{name} is named twice")));
        }
        signals.push(signal);
    }
    if !signals.is_empty() && !controls.iter().any(|control| control.decides()) {
        let message = "needs a delay-based detector, e.g. olia+ssc";
        return Err(Error::input("--signal", message));
    }
    Ok(signals)
}

/// The congestion control of an option.
///
/// # Errors
/// An unknown control, or several.
pub fn control(name: &str) -> Result<Algorithm, Error> {
    if name.contains(',') {
        let message =
            format!("expected one control, as only `compare` takes several; found '{name}'");
        return Err(Error::input("--cc", message));
    }
    name.trim().parse().map_err(|message: String| Error::input("--cc", message))
}
