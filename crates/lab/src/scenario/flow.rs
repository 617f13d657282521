//! Flows and their paths: from the file's words to what runs.

use narrows_laws::MAX_PATHS;
use narrows_laws::catalogue::Named;
use narrows_net::{LinkConfig, Nanos, SECOND};
use narrows_traffic::{PathManager, Scheduler, SizeDist, Source, TcpConfig};

use super::either::Either;
use super::file::{self, File, Kind};
use super::{Fault, Flow, FlowKind, FlowPath, Link, source, tcp};
use crate::algorithm::Algorithm;
use crate::units::{Time, show_time};

/// Longest base RTT: a minute. More is taken for a mistake in units.
const MAX_RTT: Nanos = 60 * SECOND;

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
        let (rtt, most) = (show_time(rtt), show_time(MAX_RTT));
        return Err(format!("an RTT of {rtt} is too long; expected at most {most}"));
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
        backup: false,
        strips_mptcp: false,
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
            scheduler: Scheduler::default(),
            advice: false,
            path_manager: PathManager::default(),
            tcp: TcpConfig::default(),
            send_buffer: buffer,
            recv_buffer: buffer,
        }
    }
}

impl Flow {
    /// The buffers it has if the scenario does not say otherwise, bytes.
    pub fn default_buffer(&self, links: &[Link]) -> u64 {
        default_buffer(&self.paths, links)
    }

    /// Bytes that the send buffer of the connection may grow to, which begins with the default: none
    /// beyond its size where that is not the default. As the kernel host sets tcp_wmem: what Linux has,
    /// or twice the default where that is more.
    pub fn send_buffer_max(&self, links: &[Link]) -> Option<u64> {
        self.grown(self.send_buffer, links)
    }

    /// Likewise of the receive buffer, where a host lets that grow, too.
    pub fn recv_buffer_max(&self, links: &[Link]) -> Option<u64> {
        self.grown(self.recv_buffer, links)
    }

    fn grown(&self, buffer: u64, links: &[Link]) -> Option<u64> {
        let default = self.default_buffer(links);
        (buffer == default).then_some(default.saturating_mul(2).max(TCP_WMEM))
    }
}

/// Largest send buffer of Linux, bytes: the third number of the sysctl tcp_wmem, where memory does not
/// limit it.
const TCP_WMEM: u64 = 4 << 20;

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
    pub fn full_queue(&self) -> Nanos {
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

/// Times of activity, `[start, stop)`, in order: at least one that starts before the end, and none that
/// does not.
pub fn periods(given: &[(Time, Time)], end: Nanos) -> Result<Vec<(Nanos, Nanos)>, String> {
    if given.is_empty() {
        return Err("expected at least one period".into());
    }
    if given[0].0.0 >= end {
        return Err(format!("expected a start before the end at {}", show_time(end)));
    }
    let mut last = 0;
    for &(start, stop) in given {
        if start.0 < last || stop.0 <= start.0 {
            return Err("expected periods in order".into());
        }
        last = stop.0;
    }
    let before = given.iter().filter(|period| period.0.0 < end);
    Ok(before.map(|&(start, stop)| (start.0, stop.0)).collect())
}

/// The congestion control of a flow. A system is for the one under test alone, as a scenario has one
/// set of parameters.
pub fn control(cc: &str, under_test: bool) -> Result<Algorithm, String> {
    let control: Algorithm = cc.parse()?;
    match control.system() {
        Some(Named { name, control, .. }) if !under_test => Err(format!(
            "{name} sets the scenario's parameters and is for the flow under test alone; expected \
             {control}"
        )),
        _ => Ok(control),
    }
}

/// The listed flows of `file`; `tcp` is what their end points do if they do not say otherwise.
pub fn flows(file: &File, links: &[Link], tcp: TcpConfig, end: Nanos) -> Result<Vec<Flow>, Fault> {
    let one = |(name, flow): (&String, &file::Flow)| {
        let mut resolved = one_flow(file, name, flow, links, end)?;
        options(name, flow, links, tcp, &mut resolved)?;
        Ok(resolved)
    };
    file.flows.iter().map(one).collect()
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
            return Err(place(super::unknown(
                "route",
                route_name,
                file.routes.keys().map(String::as_str),
            )));
        };
        paths.push(route_path(file, route_name, route, links)?);
    }
    let source = source::source(&flow.source.0).map_err(|message| fault("source", message))?;
    let mut resolved = Flow::new(name.to_owned(), kind, paths, source, links);

    let (field, given) = match (&flow.active, flow.start) {
        (Some(_), Some(_)) => {
            return Err(fault("active", "a flow has a start or active periods, not both".into()));
        }
        (Some(active), None) => ("active", periods(active, end)),
        (None, start) => ("start", periods(&[(start.unwrap_or(Time(0)), Time(end))], end)),
    };
    resolved.active = given.map_err(|message| fault(field, message))?;

    match (kind, &flow.cc) {
        (FlowKind::Udp, Some(_)) => {
            return Err(fault("cc", "udp has no congestion control".into()));
        }
        (FlowKind::Udp, None) => {
            if !matches!(source, Source::Rate { .. } | Source::OnOff { .. } | Source::Media { .. })
            {
                return Err(fault(
                    "source",
                    "udp needs a source with a rate: rate, onoff, nada or scream".into(),
                ));
            }
        }
        (_, _) if matches!(source, Source::Media { .. }) => {
            return Err(fault("source", "media (nada, scream) is a source of udp".into()));
        }
        (_, Some(cc)) => {
            let under_test = file.test.as_deref() == Some(name);
            resolved.control =
                Some(control(cc, under_test).map_err(|message| fault("cc", message))?);
        }
        (_, None) => return Err(Fault::new(["flows", name], "missing field \"cc\"")),
    }
    Ok(resolved)
}

/// What only some kinds of flows have: buffers, and what their end points do.
fn options(
    name: &str,
    flow: &file::Flow,
    links: &[Link],
    tcp: TcpConfig,
    resolved: &mut Flow,
) -> Result<(), Fault> {
    let fault = |field: &str, message: String| Fault::new(["flows", name, field], message);
    if resolved.kind == FlowKind::Udp {
        for (field, given) in [("send_buffer", flow.send_buffer), ("recv_buffer", flow.recv_buffer)]
        {
            if given.is_some() {
                return Err(fault(field, "udp has no buffers here".into()));
            }
        }
        if flow.tcp.is_some() {
            return Err(fault("tcp", "udp has no options of tcp".into()));
        }
        let size = match resolved.source {
            Source::Rate { size, .. } | Source::OnOff { size, .. } => size,
            Source::Media { bytes, .. } => SizeDist::Constant(bytes),
            _ => unreachable!("one_flow refuses it"),
        };
        source::check_udp(size).map_err(|message| fault("source", message))?;
        let over = resolved.paths.iter().flat_map(|path| &path.links).map(|&link| &links[link]);
        if let Some(narrow) = over.map(|link| &link.config).find(|link| link.mtu < size.min()) {
            let (least, mtu, link) = (size.min(), narrow.mtu, &narrow.name);
            let message = format!("no packet of {least} B fits the MTU of {mtu} B of link {link}");
            return Err(fault("source", message));
        }
    }
    resolved.tcp = tcp::config(&flow.tcp, tcp)
        .map_err(|(field, message)| Fault::new(["flows", name, "tcp", field], message))?;
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
    if let Source::Messages { bytes, .. } = resolved.source {
        if u64::from(bytes) > resolved.send_buffer {
            let buffer = resolved.send_buffer;
            let message = format!("a message of {bytes} B exceeds the send buffer of {buffer} B");
            return Err(fault("source", message));
        }
    }
    let given = [
        ("scheduler", flow.scheduler.is_some()),
        ("path_manager", flow.path_manager.is_some()),
        ("backup", !flow.backup.is_empty()),
    ];
    let given = given.into_iter().find(|(_, given)| *given && resolved.kind != FlowKind::Mptcp);
    if let Some((field, _)) = given {
        return Err(fault(field, format!("only mptcp has a {}", field.replace('_', " "))));
    }
    if let Some(scheduler) = flow.scheduler {
        resolved.scheduler = match scheduler {
            file::Scheduler::Linux => Scheduler::Linux,
            file::Scheduler::MinRtt => Scheduler::MinRtt,
            file::Scheduler::Mptcp089 => Scheduler::Mptcp089,
            file::Scheduler::Mptcp089Reinject => Scheduler::Mptcp089Reinject,
            file::Scheduler::RoundRobin => Scheduler::RoundRobin,
            file::Scheduler::Redundant => Scheduler::Redundant,
        };
    }
    if flow.advice && resolved.kind != FlowKind::Mptcp {
        return Err(fault("advice", "only mptcp has paths to advise on".into()));
    }
    resolved.advice = flow.advice;
    for (index, route) in flow.backup.iter().enumerate() {
        let Some(path) = resolved.paths.iter_mut().find(|path| path.name == *route) else {
            let place = ["flows", name, "backup", &index.to_string()];
            return Err(Fault::new(place, format!("\"{route}\" is not a path of this flow")));
        };
        path.backup = true;
    }
    if let Some(Either::Table(manager)) = &flow.path_manager {
        ndiffports(manager.ndiffports, resolved)
            .map_err(|message| fault("path_manager", message))?;
    }
    Ok(())
}

/// So many subflows on the flow's only route, each with results of its own.
fn ndiffports(subflows: usize, flow: &mut Flow) -> Result<(), String> {
    if flow.paths.len() != 1 {
        return Err("ndiffports needs exactly one route".into());
    }
    if !(1..=MAX_PATHS).contains(&subflows) {
        return Err(format!("expected 1 to {MAX_PATHS} subflows, found {subflows}"));
    }
    flow.path_manager = PathManager::Ndiffports(subflows as u8);
    let path = flow.paths.remove(0);
    flow.paths.extend(
        (1..=subflows).map(|n| FlowPath { name: format!("{}-{n}", path.name), ..path.clone() }),
    );
    Ok(())
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
                    super::unknown("link", link, file.links.keys().map(String::as_str)),
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
        return Err(Fault::new(
            ["routes", name],
            "missing field \"rtt\"; expected a time such as \"20 ms\"",
        ));
    };
    let (over, back) = (indices("links", over)?, indices("back", &route.back)?);
    let path = path(name, over, back, rtt.0, links, file.jitter.0)
        .map_err(|message| Fault::new(["routes", name, "rtt"], message))?;
    Ok(FlowPath { strips_mptcp: route.strips_mptcp, ..path })
}
