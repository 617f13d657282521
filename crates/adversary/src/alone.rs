//! The same network with one path of the connection under test alone: what that path is worth.

use narrows_lab::{Edits, Error, Scenario, parse};
use toml::{Table, Value};

/// The scenario for each path alone.
///
/// # Errors
/// A trace of the user's own, which the text of a scenario only names.
pub fn each_path(scenario: &Scenario, test: usize) -> Result<Vec<Scenario>, Error> {
    let flow = &scenario.flows[test];
    let fault = |error: &dyn std::fmt::Display| Error::input(&scenario.name, error.to_string());
    let whole: Table = scenario.text().parse().map_err(|error: toml::de::Error| fault(&error))?;
    let one = |path: &narrows_lab::FlowPath| {
        let mut table = whole.clone();
        keep(&mut table, &flow.name, &path.name);
        let text = toml::to_string(&table).map_err(|error| fault(&error))?;
        parse(&text, &Edits::default())
    };
    flow.paths.iter().map(one).collect()
}

/// Leaves the flow this route, and the events those that are not of its others.
fn keep(table: &mut Table, flow: &str, route: &str) {
    let flows = table.get_mut("flows").and_then(Value::as_table_mut);
    if let Some(of) = flows.and_then(|flows| flows.get_mut(flow)).and_then(Value::as_table_mut) {
        of.insert("routes".into(), Value::Array(vec![route.into()]));
        of.remove("backup");
    }
    let of_other = |event: &Value| {
        let path = |verb: &str| event.get(verb).and_then(Value::as_str);
        let mine = event.get("flow").and_then(Value::as_str) == Some(flow);
        mine && [path("lose"), path("add")].into_iter().flatten().any(|path| path != route)
    };
    if let Some(Value::Array(events)) = table.get_mut("events") {
        events.retain(|event| !of_other(event));
    }
    // Which paths share a bottleneck is no question for one.
    table.remove("phases");
}
