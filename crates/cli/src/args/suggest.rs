//! What completion scripts suggest where any text is allowed: an argument that also takes a file, a list or a
//! field with its value. (clap_complete's own way to do this, an engine that asks the command at each
//! completion, is marked as unstable.)

use std::sync::LazyLock;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use narrows_laws::{catalogue, params};

/// Takes any text, and knows some that it may be.
#[derive(Clone)]
pub struct Suggested(&'static LazyLock<Vec<String>>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|name| PossibleValue::new(name.as_str()))))
    }
}

/// Tables of a scenario's file.
pub fn tables() -> Suggested {
    static TABLES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let tables = narrows_lab::reference();
        let mut names: Vec<String> = tables.iter().map(|table| first(&table.name)).collect();
        names.extend(params::groups().into_iter().map(String::from));
        names.retain(|name| !name.is_empty());
        names.dedup();
        names
    });
    Suggested(&TABLES)
}

static SCENARIOS: LazyLock<Vec<String>> =
    LazyLock::new(|| narrows_lab::shipped().into_iter().map(String::from).collect());

/// Shipped scenarios.
pub fn scenarios() -> Suggested {
    Suggested(&SCENARIOS)
}

/// A script for zsh, which suggests known texts or files but not both, with files beside scenarios.
pub fn with_files(script: &str) -> String {
    let names = SCENARIOS.join(" ");
    let both = format!(r#"{{_alternative "scenarios:scenario:({names})" files:file:_files}}"#);
    script.replace(&format!(":({names})"), &format!(":{both}"))
}

/// Congestion controls.
pub fn controls() -> Suggested {
    static CONTROLS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let ours = catalogue::all().map(|control| control.to_string());
        ours.chain(catalogue::NAMES.iter().map(|named| named.name.to_owned())).collect()
    });
    Suggested(&CONTROLS)
}

/// Fields of a scenario that have a name in every file, and parameters, with the sign before their value.
pub fn fields() -> Suggested {
    static FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut names = Vec::new();
        for table in narrows_lab::reference() {
            // In a list or of a name that the file gives.
            let own = ["events", "phases", "paper", "background"].contains(&table.name.as_str())
                || table.name.contains("NAME");
            let below = |field: &str| match table.name.as_str() {
                "" => format!("{field}="),
                name => format!("{name}.{field}="),
            };
            if !own {
                let values = table.fields.iter().filter(|field| !field.takes.starts_with("table"));
                names.extend(values.map(|field| below(&field.name)));
            }
        }
        names.extend(params::all().map(|param| format!("{}=", param.name)));
        names
    });
    Suggested(&FIELDS)
}
