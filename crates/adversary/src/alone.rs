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
    let end_ns = scenario.end();
    let one = |path: &narrows_lab::FlowPath| {
        let mut table = whole.clone();
        keep(&mut table, &flow.name, &path.name);
        let others = flow.paths.iter().filter(|other| other.name != path.name);
        others.for_each(|other| hold(&mut table, &other.name, end_ns));
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

/// Gives a route that no flow uses any more one that begins when all is over: a scenario has no idle
/// routes, and the network and its random numbers are to remain what they are.
fn hold(table: &mut Table, route: &str, end_ns: u64) {
    let Some(flows) = table.get_mut("flows").and_then(Value::as_table_mut) else { return };
    let uses = |flow: &Value| {
        let routes = flow.get("routes").and_then(Value::as_array);
        routes.is_some_and(|routes| routes.iter().any(|of| of.as_str() == Some(route)))
    };
    if flows.values().any(uses) {
        return;
    }
    let mut flow = Table::new();
    flow.insert("kind".into(), "tcp".into());
    flow.insert("routes".into(), Value::Array(vec![route.into()]));
    flow.insert("cc".into(), "reno".into());
    flow.insert("start".into(), format!("{} ns", end_ns - 1).into());
    flows.insert(format!("idle-{route}"), flow.into());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use narrows_lab::{Job, host, run};

    use super::*;

    #[test]
    fn a_path_alone_is_in_the_same_network() {
        let text = "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"1 s\"\nduration = \"4 s\"\n\
             test = \"c\"\n\
             links.a = { rate = \"10 Mbit/s\", queue = \"30 packets\" }\n\
             links.b = { rate = \"5 Mbit/s\", queue = \"30 packets\", loss = \"1 %\" }\n\
             routes.a = { links = [\"a\"], rtt = \"20 ms\" }\n\
             routes.b = { links = [\"b\"], rtt = \"40 ms\" }\n\
             flows.c = { kind = \"mptcp\", routes = [\"a\", \"b\"], cc = \"lia\" }\n\
             [[events]]\nat = \"2 s\"\nflow = \"c\"\nlose = \"b\"\n\
             [[events]]\nat = \"3 s\"\nlink = \"a\"\nup = false\n";
        let scenario = parse(text, &Edits::default()).unwrap();
        let [a, b] = &each_path(&scenario, 0).unwrap()[..] else { panic!() };
        let stop = AtomicBool::new(false);
        let goodput = |scenario| {
            let run = run(host("sim").unwrap(), Job::new(scenario, &stop)).unwrap();
            run.summary.test.unwrap().goodput_mbps
        };
        // The link is up for 2 of the 4 s, and the path there for 1.
        assert!((4.0..5.0).contains(&goodput(a)), "{}", goodput(a));
        assert!((0.3..1.25).contains(&goodput(b)), "{}", goodput(b));
        assert_eq!((a.events.len(), b.events.len()), (1, 2));
    }
}
