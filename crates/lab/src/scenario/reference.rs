//! All tables of a scenario's file with their fields, as the types that read it have them:
//! `narrows list fields`.

use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

use super::file::File;

/// A table of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Its dotted name, with capitals for what the file names: `links.NAME.aqm.red`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its fields, by name.
    pub fields: Vec<Field>,
}

/// A field of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it takes: `a time such as "20 ms"`.
    pub takes: String,
    /// The default as TOML, if it is a value and not a rule.
    pub default: Option<String>,
    /// What it is, with an example where the kind of value is none.
    pub about: String,
    /// Must it be there?
    pub required: bool,
}

/// The tables of a scenario, each before those in it.
pub fn reference() -> Vec<Table> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<File>();
    let mut tables = Vec::new();
    walk("", schema.as_value(), &mut tables);
    tables
}

/// Adds the table at `name`, if `schema` is one, and those in it.
fn walk(name: &str, schema: &Value, tables: &mut Vec<Table>) {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let below = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    if !properties.is_empty() {
        let required = schema["required"].as_array();
        let field = |(key, of): (&String, &Value)| Field {
            name: key.clone(),
            takes: takes(of),
            default: default(of),
            about: about(of),
            required: required.is_some_and(|names| names.iter().any(|name| name == key)),
        };
        let fields = properties.iter().map(field).collect();
        tables.push(Table { name: name.into(), about: about(schema), fields });
    }
    for (key, of) in properties {
        inside(&below(key), of, tables);
    }
}

/// Adds the tables that a field takes.
fn inside(name: &str, schema: &Value, tables: &mut Vec<Table>) {
    if let Some(kinds) = kinds(schema) {
        // One key says which it is.
        for (kind, of) in kinds {
            inside(&format!("{name}.{kind}"), of, tables);
        }
        return;
    }
    walk(name, schema, tables);
    if schema["additionalProperties"].is_object() {
        inside(&format!("{name}.NAME"), &schema["additionalProperties"], tables);
    }
    for choice in
        schema["items"].is_object().then_some(&schema["items"]).into_iter().chain(choices(schema))
    {
        inside(name, choice, tables);
    }
}

/// The kinds of an enum whose variants have fields, each with its table.
fn kinds(schema: &Value) -> Option<Vec<(&String, &Value)>> {
    let variants = schema["oneOf"].as_array()?;
    let kind = |variant| {
        let variant: &Value = variant;
        let mut keys = variant["properties"].as_object()?.iter();
        keys.next().filter(|_| keys.next().is_none() && variant["required"].is_array())
    };
    variants.iter().filter(|variant| variant["type"] != "null").map(kind).collect()
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| schema[key].as_array().into_iter().flatten();
    of("anyOf").chain(of("oneOf")).filter(|choice| choice["type"] != "null")
}

fn about(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace("  ", " ")
}

/// The value as TOML; null stands for a rule.
fn default(schema: &Value) -> Option<String> {
    let default = &schema["default"];
    let empty = |value: &Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
    };
    (!empty(default)).then(|| default.to_string())
}

/// What a field takes, in words.
fn takes(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.into();
    }
    if let Some(kinds) = kinds(schema) {
        let names: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).collect();
        return format!("one of {}, by name or as a table", names.join(", "));
    }
    let words = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<Value> = values.iter().filter(|value| !value.is_null()).cloned().collect();
        return words(&values).join(" or ");
    }
    if !schema["const"].is_null() {
        return schema["const"].to_string();
    }
    let mut choices = choices(schema).map(takes).collect::<Vec<_>>();
    if !choices.is_empty() {
        choices.dedup();
        return choices.join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") => "a string".into(),
        Some("boolean") => "true or false".into(),
        Some("integer") => "a whole number".into(),
        Some("number") => "a number".into(),
        Some("array") => match schema["prefixItems"].as_array() {
            Some(items) => {
                format!("[from, to], each {}", items.first().map_or(String::new(), takes))
            }
            None => match (schema["minItems"].as_u64(), takes(&schema["items"])) {
                (Some(2), item) => format!("[from, to], each {item}"),
                (_, item) if item == "a table" => "tables".into(),
                (_, item) => format!("a list, each {item}"),
            },
        },
        _ => match &schema["additionalProperties"] {
            Value::Object(of) if of.contains_key("properties") => "tables by name".into(),
            of @ Value::Object(_) => format!("a table, each entry {}", takes(of)),
            _ => "a table".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_says_what_it_is_and_its_examples_are_toml() {
        let tables = reference();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        for name in ["", "links.NAME", "links.NAME.aqm.red", "flows.NAME.tcp", "events", "tcp"] {
            assert_eq!(names.iter().filter(|of| **of == name).count(), 1, "{name}: {names:?}");
        }
        for Table { name, about, fields } in &tables {
            assert!(!about.is_empty(), "{name}");
            for field in fields {
                assert!(field.about.ends_with('.'), "{name}.{}: {}", field.name, field.about);
                let quoted =
                    |marker: &str| Some(field.about.split_once(marker)?.1.split_once('`')?.0);
                let examples =
                    [quoted("Example: `"), quoted("Default: `"), field.default.as_deref()];
                for example in examples.into_iter().flatten() {
                    let line =
                        if example.contains(" = ") { example } else { &format!("x = {example}") };
                    assert!(line.parse::<toml::Table>().is_ok(), "{name}.{}: {line}", field.name);
                }
            }
        }
        let links = tables.iter().find(|table| table.name == "links.NAME").unwrap();
        let of = |name: &str| links.fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!(of("rate").takes, "a rate such as \"20 Mbit/s\"");
        assert_eq!(of("jitter").default.as_deref(), Some("\"0 s\""));
    }
}
