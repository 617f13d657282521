//! From the file's words to a [`Scenario`]: names become indices, defaults are filled in, and what
//! makes no sense is refused with the field it stands in.

use std::collections::HashSet;
use std::sync::Arc;

use narrows_laws::{Control, MAX_PATHS};
use narrows_net::{LinkConfig, Loss, Nanos, Rate, SECOND, Trace};
use narrows_sim::{Scheduler, Source};

use super::file::{self, File, Kind};
use super::{Fault, Flow, FlowKind, FlowPath, Link, Phase, Published, Rival, Scenario};
use super::{background, generate, source};
use crate::units::show_time;

/// Finds the trace that a link names.
pub type FindTrace<'a> = &'a dyn Fn(&str) -> Result<Arc<Trace>, String>;

/// Resolves and checks `file`.
pub fn resolve(mut file: File, find_trace: FindTrace) -> Result<Scenario, Fault> {
    if !is_name(&file.name) {
        let message = "expected letters, digits, '-', '_' and '.', in parts separated by '/'";
        return Err(Fault::new(["name"], format!("{message}; found \"{}\"", file.name)));
    }
    if file.duration.0 == 0 {
        return Err(Fault::new(["duration"], "expected a time above 0 s"));
    }
    let listed = Listed {
        links: file.links.keys().cloned().collect(),
        routes: file.routes.keys().cloned().collect(),
    };
    generate::expand(&mut file)?;
    let end = file.warmup.0 + file.duration.0;
    let links = links(&file, find_trace)?;
    let mut flows = flows(&file, &links, end)?;
    if let Some(background) = &file.background {
        let made = background::flows(background, &links, file.jitter.0, end)?;
        flows.extend(made);
    }
    for path in flows.iter().flat_map(|flow| &flow.paths) {
        if path.access_jitter > MAX_JITTER {
            let jitter = show_time(path.access_jitter);
            let message = format!("{jitter} on \"{}\", at its rate, is absurdly long", path.name);
            return Err(Fault::new(["jitter"], message));
        }
    }
    if flows.is_empty() {
        return Err(Fault::new(["flows"], "expected at least one flow"));
    }
    let test = test(&file, &flows)?;
    let rivals = rivals(&file, &links, &flows, test)?;
    let phases = phases(&file, test.map(|index| &flows[index]), end)?;
    let paper = published(&file)?;
    unused(&listed, &flows, &links)?;
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
        paper,
    })
}

/// Results are put in a folder of the scenario's name, which must not lead out of theirs.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed))
}

fn links(file: &File, find_trace: FindTrace) -> Result<Vec<Link>, Fault> {
    let link = |(name, link): (&String, &file::Link)| {
        let fault = |field, message: String| Fault::new(["links", name, field], message);
        let rate = match (&link.rate, &link.trace) {
            (Some(rate), None) => Rate::Constant(rate.0),
            (None, Some(trace)) => {
                let trace = find_trace(trace).map_err(|message| fault("trace", message))?;
                if trace.mean_rate() == 0 {
                    let message = format!("{}: less than 1 bit/s on average", trace.name());
                    return Err(fault("trace", message));
                }
                Rate::Trace(trace)
            }
            (None, None) => {
                return Err(Fault::new(["links", name], "expected a rate or a trace"));
            }
            (Some(_), Some(_)) => {
                return Err(fault("trace", "a link has a rate or a trace, not both".into()));
            }
        };
        let mut config = LinkConfig {
            name: name.clone(),
            rate,
            delay: link.delay.map_or(0, |delay| delay.0),
            jitter: link.jitter.map_or(0, |jitter| jitter.0),
            loss: link.loss.map_or(Loss::None, |loss| Loss::Random(loss.0)),
            limit: link.queue.map(|queue| queue.0).unwrap_or_default(),
            ..LinkConfig::default()
        };
        if let Some(mtu) = link.mtu {
            if !(576..=65_535).contains(&mtu.0) {
                return Err(fault("mtu", format!("expected 576 B to 65535 B, found {} B", mtu.0)));
            }
            config.mtu = mtu.0 as u32;
        }
        config.validate().map_err(|error| Fault::new(["links", name], error.to_string()))?;
        Ok(Link { config })
    };
    file.links.iter().map(link).collect()
}

/// Longest base RTT: a minute. More is taken for a mistake in units.
const MAX_RTT: Nanos = 60 * SECOND;

/// Longest jitter of a sender: an hour, as the network allows.
const MAX_JITTER: Nanos = 3600 * SECOND;

/// A path of a flow over `links`, with the access and return delays that bring its base RTT to
/// `rtt`: what the shared links do not delay is split evenly between the sender's access link and
/// the way back.
pub fn path(
    name: &str,
    over: Vec<usize>,
    back: Vec<usize>,
    rtt: Nanos,
    links: &[Link],
    jitter_packets: f64,
) -> Result<FlowPath, String> {
    let delay = |over: &[usize]| over.iter().map(|&link| links[link].config.delay).sum::<Nanos>();
    let (forward, backward) = (delay(&over), delay(&back));
    let Some(rest) = rtt.checked_sub(forward + backward) else {
        return Err(format!(
            "the links of the route alone delay by {}, more than the RTT of {}",
            show_time(forward + backward),
            show_time(rtt)
        ));
    };
    if rtt > MAX_RTT {
        return Err(format!("an RTT of {} is absurdly long", show_time(rtt)));
    }
    let half = (rtt / 2).saturating_sub(forward).min(rest);
    let slowest = over.iter().map(|&link| links[link].mean_rate()).min().unwrap_or(u64::MAX);
    let packet_bits = f64::from(LinkConfig::default().mtu) * 8.0;
    let packet_time = packet_bits * SECOND as f64 / slowest as f64;
    Ok(FlowPath {
        name: name.to_owned(),
        links: over,
        back,
        rtt,
        access_delay: half,
        access_jitter: (jitter_packets * packet_time).round() as Nanos,
        return_delay: rest - half,
    })
}

impl Flow {
    /// A flow with the default buffers, silent as long as `active` is empty.
    pub(super) fn new(
        name: String,
        kind: FlowKind,
        paths: Vec<FlowPath>,
        source: Source,
        links: &[Link],
    ) -> Flow {
        let buffer = default_buffer(&paths, links);
        Flow {
            name,
            background: false,
            kind,
            paths,
            source,
            active: Vec::new(),
            control: None,
            scheduler: Scheduler::MinRtt,
            send_buffer: buffer,
            recv_buffer: buffer,
        }
    }
}

/// 2 x sum of the paths' rates x largest RTT (RFC 6182, section 5.3), where a path's rate is that
/// of its slowest link and its largest RTT is the base RTT with all its queues full.
fn default_buffer(paths: &[FlowPath], links: &[Link]) -> u64 {
    let rate = |path: &FlowPath| path.links.iter().map(|&link| links[link].mean_rate()).min();
    let queues = |path: &FlowPath| -> Nanos {
        let shared = path.links.iter().chain(&path.back);
        shared.map(|&link| links[link].full_queue()).fold(0, Nanos::saturating_add)
    };
    let rates: u64 = paths.iter().filter_map(rate).sum();
    let base = |path: &FlowPath| path.rtt.saturating_add(path.access_jitter);
    let rtt = paths.iter().map(|path| base(path).saturating_add(queues(path))).max();
    let bytes = 2 * u128::from(rates) * u128::from(rtt.unwrap_or(0)) / u128::from(8 * SECOND);
    bytes.clamp(64 * 1024, MAX_BUFFER) as u64
}

/// Largest default buffer, bytes; it keeps slow links with huge queues in 64 bits.
const MAX_BUFFER: u128 = 1_000_000_000_000_000;

impl Link {
    /// How long a full queue takes to drain; an unlimited one counts as 1 s.
    fn full_queue(&self) -> Nanos {
        use narrows_net::Limit;
        let bytes = match self.config.limit {
            Limit::Unlimited => return SECOND,
            Limit::Time(time) => return time,
            Limit::Packets(packets) => u64::from(packets) * u64::from(self.config.mtu),
            Limit::Bytes(bytes) => bytes,
        };
        let time = u128::from(bytes * 8) * u128::from(SECOND) / u128::from(self.mean_rate());
        Nanos::try_from(time).unwrap_or(Nanos::MAX)
    }
}

fn flows(file: &File, links: &[Link], end: Nanos) -> Result<Vec<Flow>, Fault> {
    file.flows.iter().map(|(name, flow)| one_flow(file, name, flow, links, end)).collect()
}

fn one_flow(
    file: &File,
    name: &str,
    flow: &file::Flow,
    links: &[Link],
    end: Nanos,
) -> Result<Flow, Fault> {
    let fault = |field: &str, message: String| Fault::new(["flows", name, field], message);
    let kind = match flow.kind {
        Kind::Tcp => FlowKind::Tcp,
        Kind::Mptcp => FlowKind::Mptcp,
        Kind::Udp => FlowKind::Udp,
    };
    let most = if kind == FlowKind::Mptcp { MAX_PATHS } else { 1 };
    if !(1..=most).contains(&flow.routes.len()) {
        let count = if most == 1 { "one route".into() } else { format!("1 to {most} routes") };
        let message = format!("expected {count} for {}, found {}", kind.name(), flow.routes.len());
        return Err(fault("routes", message));
    }
    let mut paths: Vec<FlowPath> = Vec::new();
    for (index, route_name) in flow.routes.iter().enumerate() {
        let place = |message| Fault::new(["flows", name, "routes", &index.to_string()], message);
        if paths.iter().any(|path| path.name == *route_name) {
            return Err(place(format!("route \"{route_name}\" is named twice")));
        }
        let Some(route) = file.routes.get(route_name) else {
            return Err(place(format!("unknown route \"{route_name}\"")));
        };
        paths.push(route_path(file, route_name, route, links)?);
    }
    let source = source::source(&flow.source).map_err(|message| fault("source", message))?;
    let mut resolved = Flow::new(name.to_owned(), kind, paths, source, links);

    resolved.active = match (&flow.active, flow.start) {
        (Some(_), Some(_)) => {
            return Err(fault("active", "a flow has a start or active periods, not both".into()));
        }
        (Some(periods), None) => periods.iter().map(|period| (period.0.0, period.1.0)).collect(),
        (None, start) => vec![(start.map_or(0, |start| start.0), end)],
    };
    let field = if flow.active.is_some() { "active" } else { "start" };
    let mut last = 0;
    for &(start, stop) in &resolved.active {
        if start < last || stop <= start || start >= end {
            let message = format!("expected periods in order before the end at {}", show_time(end));
            return Err(fault(field, message));
        }
        last = stop;
    }
    if resolved.active.is_empty() {
        return Err(fault(field, "expected at least one period".into()));
    }

    match (kind, &flow.cc) {
        (FlowKind::Udp, Some(_)) => {
            return Err(fault("cc", "udp has no congestion control".into()));
        }
        (FlowKind::Udp, None) => {
            if matches!(source, Source::Greedy | Source::File { .. }) {
                return Err(fault(
                    "source",
                    "udp needs a source with a rate: rate or onoff".into(),
                ));
            }
        }
        (_, Some(cc)) => {
            let control: Result<Control, _> = cc.parse();
            resolved.control = Some(control.map_err(|error| fault("cc", error.to_string()))?);
        }
        (_, None) => return Err(Fault::new(["flows", name], "missing field \"cc\"")),
    }
    if kind == FlowKind::Udp && (flow.send_buffer.is_some() || flow.recv_buffer.is_some()) {
        return Err(Fault::new(["flows", name], "udp has no buffers here"));
    }
    match (kind, flow.scheduler) {
        (_, None) | (FlowKind::Mptcp, Some(file::Scheduler::MinRtt)) => {}
        (FlowKind::Mptcp, Some(file::Scheduler::RoundRobin)) => {
            resolved.scheduler = Scheduler::RoundRobin;
        }
        _ => return Err(fault("scheduler", "only mptcp has a scheduler".into())),
    }
    for (field, given, buffer) in [
        ("send_buffer", flow.send_buffer, &mut resolved.send_buffer),
        ("recv_buffer", flow.recv_buffer, &mut resolved.recv_buffer),
    ] {
        if let Some(bytes) = given {
            if bytes.0 < 3000 {
                return Err(fault(field, format!("{} B cannot hold two packets", bytes.0)));
            }
            *buffer = bytes.0;
        }
    }
    Ok(resolved)
}

/// The path that a listed route gives a flow.
fn route_path(
    file: &File,
    name: &str,
    route: &file::Route,
    links: &[Link],
) -> Result<FlowPath, Fault> {
    let indices = |field: &str, names: &[String]| -> Result<Vec<usize>, Fault> {
        let index = |(position, link): (usize, &String)| {
            file.links.get_index_of(link).ok_or_else(|| {
                Fault::new(
                    ["routes", name, field, &position.to_string()],
                    format!("unknown link \"{link}\""),
                )
            })
        };
        names.iter().enumerate().map(index).collect()
    };
    let Some(over) = &route.links else {
        return Err(Fault::new(["routes", name], "missing field \"links\""));
    };
    if over.is_empty() {
        return Err(Fault::new(["routes", name, "links"], "expected at least one link"));
    }
    let Some(rtt) = route.rtt else {
        return Err(Fault::new(["routes", name], "missing field \"rtt\""));
    };
    let (over, back) = (indices("links", over)?, indices("back", &route.back)?);
    path(name, over, back, rtt.0, links, file.jitter.0)
        .map_err(|message| Fault::new(["routes", name, "rtt"], message))
}

fn test(file: &File, flows: &[Flow]) -> Result<Option<usize>, Fault> {
    let Some(name) = &file.test else { return Ok(None) };
    let index = flows.iter().position(|flow| flow.name == *name && !flow.background);
    match index {
        Some(index) if flows[index].kind != FlowKind::Udp => Ok(Some(index)),
        Some(_) => Err(Fault::new(["test"], "expected a tcp or mptcp flow")),
        None => Err(Fault::new(["test"], format!("unknown flow \"{name}\""))),
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
        let link = link.ok_or_else(|| fault(format!("unknown link \"{link_name}\"")))?;
        let flow = flows.iter().position(|flow| flow.name == *flow_name);
        let flow = flow.ok_or_else(|| fault(format!("unknown flow \"{flow_name}\"")))?;
        if flows[flow].kind != FlowKind::Tcp {
            return Err(fault(format!("expected a tcp flow; \"{flow_name}\" is none")));
        }
        if test == Some(flow) {
            return Err(fault(format!("\"{flow_name}\" is under test, so no rival of itself")));
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
        if phase.start.0 >= end {
            let message = format!("expected a start before the end at {}", show_time(end));
            return Err(fault("start", message));
        }
        let mut left: Vec<&str> = test.paths.iter().map(|path| path.name.as_str()).collect();
        let mut groups = Vec::new();
        for group in &phase.groups {
            let mut members = Vec::new();
            for name in group {
                let Some(position) = left.iter().position(|path| path == name) else {
                    let of = &test.name;
                    let message = format!("\"{name}\" is no path of \"{of}\" or stands twice");
                    return Err(fault("groups", message));
                };
                left.remove(position);
                members.extend(test.paths.iter().position(|path| path.name == *name));
            }
            if members.is_empty() {
                return Err(fault("groups", "a group without paths is no group".into()));
            }
            groups.push(members);
        }
        if !left.is_empty() {
            return Err(fault("groups", format!("in no group: {}", left.join(", "))));
        }
        phases.push(Phase { start: phase.start.0, groups });
    }
    Ok(phases)
}

fn published(file: &File) -> Result<Vec<Published>, Fault> {
    let one = |(index, paper): (usize, &file::Paper)| {
        let place = index.to_string();
        let fault = |field: &str, message: String| Fault::new(["paper", &place, field], message);
        let controls = paper.cc.iter().map(|name| name.parse::<Control>());
        let controls =
            controls.collect::<Result<_, _>>().map_err(|e| fault("cc", e.to_string()))?;
        if !paper.ratio_to_tcp.is_finite() || paper.ratio_to_tcp < 0.0 {
            let message = format!("expected a ratio such as 0.6, found {}", paper.ratio_to_tcp);
            return Err(fault("ratio_to_tcp", message));
        }
        Ok(Published {
            controls,
            ratio_to_tcp: paper.ratio_to_tcp,
            bound: paper.bound,
            place: paper.place.clone(),
        })
    };
    file.paper.iter().enumerate().map(one).collect()
}

/// The names of links and routes that stand in the file, rather than being made.
struct Listed {
    links: Vec<String>,
    routes: Vec<String>,
}

/// Refuses listed links and routes that nothing uses: most likely a mistyped name.
fn unused(listed: &Listed, flows: &[Flow], links: &[Link]) -> Result<(), Fault> {
    let paths = || flows.iter().flat_map(|flow| &flow.paths);
    debug_assert!(paths().all(|path| path.access_delay <= path.rtt));
    let routes: HashSet<&str> = paths().map(|path| path.name.as_str()).collect();
    if let Some(name) = listed.routes.iter().find(|name| !routes.contains(name.as_str())) {
        return Err(Fault::new(["routes", name], "no flow uses this route"));
    }
    let used: HashSet<&str> = paths()
        .flat_map(|path| path.links.iter().chain(&path.back))
        .map(|&link| links[link].config.name.as_str())
        .collect();
    if let Some(name) = listed.links.iter().find(|name| !used.contains(name.as_str())) {
        return Err(Fault::new(["links", name], "no flow uses this link"));
    }
    Ok(())
}
