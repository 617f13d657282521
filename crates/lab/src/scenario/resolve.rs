//! From the file's words to a [`Scenario`]: names become indices, defaults are filled in, and what
//! makes no sense is refused with the field it stands in.

use std::collections::HashSet;

use narrows_laws::catalogue::hint;
use narrows_net::{Nanos, SECOND};
use narrows_traffic::TcpConfig;

use super::file::{self, File};
use super::{Fault, Flow, FlowKind, Link, Phase, Published, Rival, Scenario};
use super::{background, detection, era, events, flow, generate, link, tcp};
use crate::units::show_time;

/// Resolves and checks `file`.
pub fn resolve(mut written: File) -> Result<Scenario, Fault> {
    let mut file = written.clone();
    if !is_name(&file.name) {
        let message = "expected letters, digits, '-', '_' and '.', in parts separated by '/'";
        return Err(Fault::new(["name"], format!("{message}; found \"{}\"", file.name)));
    }
    let named: [(&str, Vec<&String>); 3] = [
        ("links", file.links.keys().collect()),
        ("routes", file.routes.keys().collect()),
        ("flows", file.flows.keys().collect()),
    ];
    for (table, names) in named {
        // It would break the lines of tables.
        if let Some(name) = names.into_iter().find(|name| name.contains(char::is_control)) {
            return Err(Fault::new([table, name], "expected a name without control characters"));
        }
    }
    if file.duration.0 == 0 {
        return Err(Fault::new(["duration"], "expected a time above 0 s"));
    }
    generate::expand(&mut file)?;
    era::apply(&mut file);
    let end = file.warmup.0 + file.duration.0;
    let links = link::links(&file)?;
    let default = TcpConfig { signal: detection::signal(&file)?, ..TcpConfig::default() };
    let tcp = tcp::config(&file.tcp, default)
        .map_err(|(field, message)| Fault::new(["tcp", field], message))?;
    let mut flows = flow::flows(&file, &links, tcp, end)?;
    let made = background::flows(&file, &links, end, None)?;
    flows.extend(made.into_iter().map(|flow| Flow { tcp, ..flow }));
    for path in flows.iter().flat_map(|flow| &flow.paths) {
        if path.access_jitter > MAX_JITTER {
            let jitter = show_time(path.access_jitter);
            let most = show_time(MAX_JITTER);
            let message = format!(
                "{jitter} on \"{}\", at its rate, is too long; expected at most {most}",
                path.name
            );
            return Err(Fault::new(["jitter"], message));
        }
    }
    if flows.is_empty() {
        return Err(Fault::new(["flows"], "expected at least one flow"));
    }
    let test = test(&file, &flows)?;
    let rivals = rivals(&file, &links, &flows, test)?;
    let phases = phases(&file, test.map(|index| &flows[index]), end)?;
    let params = detection::params(&file)?;
    let passive = detection::passive(&file)?;
    // Each with its signal, whatever that of the control will be.
    if let Some(file) = &mut written.detection {
        file.passive = passive.iter().map(detection::show).collect();
    }
    let paper = published(&file)?;
    unused(&written, &file, &flows, &links)?;
    let events = events::events(&file, &links, &mut flows, end)?;
    Ok(Scenario {
        name: file.name,
        title: file.title,
        source: file.source,
        warmup: file.warmup.0,
        duration: file.duration.0,
        links,
        flows,
        test,
        rivals,
        phases,
        params,
        passive,
        events,
        paper,
        file: written,
        settings: Default::default(),
    })
}

/// Results are put in a folder of the scenario's name, which must not lead out of theirs.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed))
}

/// Longest jitter of a sender: an hour, as the network allows.
const MAX_JITTER: Nanos = 3600 * SECOND;

fn test(file: &File, flows: &[Flow]) -> Result<Option<usize>, Fault> {
    let Some(name) = &file.test else { return Ok(None) };
    let index = flows.iter().position(|flow| flow.name == *name && !flow.background);
    match index {
        Some(index) if flows[index].kind != FlowKind::Udp => Ok(Some(index)),
        Some(_) => Err(Fault::new(["test"], "expected a tcp or mptcp flow")),
        None => Err(Fault::new(["test"], super::unknown_flow(name, flows))),
    }
}

fn rivals(
    file: &File,
    links: &[Link],
    flows: &[Flow],
    test: Option<usize>,
) -> Result<Vec<Rival>, Fault> {
    let rival = |(link_name, flow_name): (&String, &String)| {
        let fault = |message: String| Fault::new(["rivals", link_name], message);
        let link = links.iter().position(|link| link.config.name == *link_name);
        let link = link.ok_or_else(|| fault(super::unknown_link(link_name, links)))?;
        let flow = flows.iter().position(|flow| flow.name == *flow_name);
        let flow = flow.ok_or_else(|| fault(super::unknown_flow(flow_name, flows)))?;
        if flows[flow].kind != FlowKind::Tcp {
            return Err(fault(format!("expected a tcp flow; \"{flow_name}\" is not")));
        }
        if test == Some(flow) {
            return Err(fault(format!(
                "\"{flow_name}\" is under test, it cannot be its own rival"
            )));
        }
        if !flows[flow].paths[0].links.contains(&link) {
            return Err(fault(format!("\"{flow_name}\" does not cross this link")));
        }
        Ok(Rival { link, flow })
    };
    file.rivals.iter().map(rival).collect()
}

fn phases(file: &File, test: Option<&Flow>, end: Nanos) -> Result<Vec<Phase>, Fault> {
    let mut phases: Vec<Phase> = Vec::new();
    for (index, phase) in file.phases.iter().enumerate() {
        let place = index.to_string();
        let fault = |field: &str, message: String| Fault::new(["phases", &place, field], message);
        let Some(test) = test else {
            return Err(fault("groups", "phases need a flow under test".into()));
        };
        let in_order = match phases.last() {
            None => phase.start.0 == 0,
            Some(last) => phase.start.0 > last.start,
        };
        if !in_order {
            return Err(fault("start", "expected phases in order, the first at \"0 s\"".into()));
        }
        let mut left: Vec<&str> = test.paths.iter().map(|path| path.name.as_str()).collect();
        let mut groups = Vec::new();
        for group in &phase.groups {
            let mut members = Vec::new();
            for name in group {
                let Some(position) = left.iter().position(|path| path == name) else {
                    let of = &test.name;
                    let message =
                        format!("\"{name}\" is not a path of \"{of}\" or is listed twice");
                    return Err(fault("groups", message));
                };
                left.remove(position);
                members.extend(test.paths.iter().position(|path| path.name == *name));
            }
            if members.is_empty() {
                return Err(fault("groups", "expected at least one path".into()));
            }
            groups.push(members);
        }
        if !left.is_empty() {
            return Err(fault("groups", format!("in no group: {}", left.join(", "))));
        }
        phases.push(Phase { start: phase.start.0, groups });
    }
    phases.retain(|phase| phase.start < end);
    Ok(phases)
}

fn published(file: &File) -> Result<Vec<Published>, Fault> {
    let one = |(index, paper): (usize, &file::Paper)| {
        let place = index.to_string();
        let fault = |field: &str, message: String| Fault::new(["paper", &place, field], message);
        let controls = paper.cc.iter().map(|name| name.parse());
        let controls =
            controls.collect::<Result<_, _>>().map_err(|message| fault("cc", message))?;
        if let Some(ratio) = paper.ratio_to_tcp.filter(|ratio| !(0.0..1e6).contains(ratio)) {
            let message = format!("expected a ratio such as 0.6, found {ratio}");
            return Err(fault("ratio_to_tcp", message));
        }
        if let Some(share) = paper.accuracy.filter(|share| !(0.0..=1.0).contains(share)) {
            let message = format!("expected a share from 0 to 1 such as 0.75, found {share}");
            return Err(fault("accuracy", message));
        }
        if paper.ratio_to_tcp.is_none() && paper.accuracy.is_none() {
            let message = "expected a published ratio_to_tcp or accuracy";
            return Err(Fault::new(["paper", &place], message));
        }
        Ok(Published {
            controls,
            ratio_to_tcp: paper.ratio_to_tcp,
            accuracy: paper.accuracy,
            bound: paper.bound,
            place: paper.place.clone(),
        })
    };
    file.paper.iter().enumerate().map(one).collect()
}

/// Refuses links and routes that are listed and that nothing uses: most likely a mistyped name. What a
/// generator makes does no harm.
fn unused(written: &File, file: &File, flows: &[Flow], links: &[Link]) -> Result<(), Fault> {
    let mut idle = idle(file, flows, links).peekable();
    if idle.peek().is_none() {
        return Ok(());
    }
    let mut made = written.clone();
    (made.links, made.routes) = Default::default();
    generate::expand(&mut made)?;
    for (table, name) in idle {
        let (made, what) = match table {
            "links" => (made.links.contains_key(name), "link"),
            _ => (made.routes.contains_key(name), "route"),
        };
        if !made {
            let paths = flows.iter().flat_map(|flow| &flow.paths);
            let used: Vec<&str> = match table {
                "links" => {
                    let crossed = paths.flat_map(|path| &path.links);
                    crossed.map(|&link| links[link].config.name.as_str()).collect()
                }
                _ => paths.map(|path| path.name.as_str()).collect(),
            };
            let hint = hint(name, &used);
            return Err(Fault::new([table, name], format!("no flow uses this {what}{hint}")));
        }
    }
    Ok(())
}

/// The routes and links of an expanded file that no flow uses, each with its table.
pub fn idle<'a>(
    file: &'a File,
    flows: &'a [Flow],
    links: &'a [Link],
) -> impl Iterator<Item = (&'static str, &'a String)> {
    let paths = || flows.iter().flat_map(|flow| &flow.paths);
    debug_assert!(paths().all(|path| path.access_delay <= path.rtt));
    let routes = file.flows.values().flat_map(|flow| &flow.routes);
    let routes: HashSet<&str> = routes.map(String::as_str).collect();
    let used: HashSet<&str> = paths()
        .flat_map(|path| path.links.iter().chain(&path.back))
        .map(|&link| links[link].config.name.as_str())
        .collect();
    let routes = file.routes.keys().filter(move |name| !routes.contains(name.as_str()));
    let links = file.links.keys().filter(move |name| !used.contains(name.as_str()));
    routes.map(|name| ("routes", name)).chain(links.map(|name| ("links", name)))
}
