//! The system of a paper as the control of the connection under test: what it sets in a scenario.

use indexmap::IndexMap;
use narrows_laws::catalogue::Named;
use toml::{Table, Value};

use super::Scenario;
use super::detection::{check, set};
use super::document::Document;
use crate::Error;

impl Scenario {
    /// Makes the settings of a system: its signal, and all parameters of its detector and of decisions,
    /// in place of the scenario's; but not in place of what the command line set. `place` is the option
    /// or field that names the system.
    ///
    /// # Errors
    /// The two do not fit each other.
    pub fn adopt(&mut self, system: &Named, place: &str) -> Result<(), Error> {
        let signal_is_set =
            ["detection", "detection.signal"].iter().any(|f| self.settings.contains_key(*f));
        let mut params = self.params;
        for group in [system.control().detector.name(), "decision"] {
            params.reset(group);
        }
        let mut tables: IndexMap<String, Table> = IndexMap::new();
        for (field, value) in system.settings() {
            if field == "detection.signal" {
                if !signal_is_set {
                    self.take_signal(value.parse().expect("the signal of a system"));
                }
                continue;
            }
            let (group, field) = field.split_once('.').expect("a parameter");
            let value = Value::String(value.into());
            tables.entry(group.into()).or_default().insert(field.into(), value);
        }
        // Field by field: a preset of the command line leaves the system's other settings.
        for (group, fields) in Document::params_of_sets(&self.settings)? {
            tables.entry(group).or_default().extend(fields);
        }
        let set = set(&mut params, &tables).and_then(|()| check(&params));
        set.map_err(|fault| {
            let message = format!("{}: {}", fault.field.join("."), fault.message);
            Error::input(place, message)
        })?;
        self.params = params;
        Ok(())
    }
}
