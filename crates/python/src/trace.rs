//! Fields that name recorded traces.

use std::path::Path;

use toml::Value;

/// Is it a field that names a recorded trace?
pub fn is_trace(field: &str) -> bool {
    let names: Vec<&str> = field.split('.').collect();
    matches!(names[..], ["links", _, "trace"] | ["links", _, "jitter", "trace", "file"])
}

/// The value of a field with absolute paths of the traces on disk in it.
pub fn rooted(field: &str, value: Value) -> Value {
    match value {
        Value::String(name) if is_trace(field) && Path::new(&name).starts_with(".") => {
            let path = std::path::absolute(&name);
            Value::String(path.map_or(name, |path| path.display().to_string()))
        }
        Value::Table(table) => {
            let each = |(key, value): (String, _)| {
                let value = rooted(&format!("{field}.{key}"), value);
                (key, value)
            };
            Value::Table(table.into_iter().map(each).collect())
        }
        other => other,
    }
}
