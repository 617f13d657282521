//! Describes a scenario without running it: `--dry-run`.

use std::fmt::Write;

use narrows_foreign::Foreign;
use narrows_net::{Distribution, Loss, Policer, Rate, Reorder, SECOND};
use narrows_stats::round;
use narrows_traffic::Source;

use crate::algorithm::Algorithm;
use crate::estimate::{Estimate, HOPS_PER_SECOND};
use crate::hosts::Host;
use crate::scenario::{Event, EventKind, Flow, Link, Phase, Scenario};
use crate::table::fold;
use crate::units::{show_bytes, show_limit, show_rate, show_time};

/// Links, flows, rivals and the estimated size of a run on `host`, where `control` replaces that of
/// the connection under test.
pub fn describe(scenario: &Scenario, host: &dyn Host, control: Option<Algorithm>) -> String {
    let mut text =
        fold(&format!("{}: {}", scenario.name, Foreign::from(scenario.title.as_str())), 2);
    // Writing to a string cannot fail.
    text.push_str(&fold(&format!("source: {}", Foreign::from(scenario.source.as_str())), 2));
    let (warmup, duration) = (show_time(scenario.warmup), show_time(scenario.duration));
    let _ = writeln!(text, "{duration} analysed after {warmup} of warm-up\n\nlinks");
    for link in &scenario.links {
        text.push_str(&fold(&format!("  {}", describe_link(link)), 4));
    }
    text.push_str("\nflows\n");
    for (index, flow) in scenario.flows.iter().enumerate().filter(|(_, flow)| !flow.background) {
        let mut line = describe_flow(scenario, flow, scenario.algorithm(index, control));
        if scenario.test == Some(index) {
            line.push_str(" (under test)");
        }
        for rival in scenario.rivals.iter().filter(|rival| rival.flow == index) {
            let _ = write!(line, " (rival on {})", scenario.links[rival.link].config.name);
        }
        text.push_str(&fold(&format!("  {line}"), 4));
    }
    let background = scenario.flows.iter().filter(|flow| flow.background).count();
    if background > 0 {
        let _ = writeln!(text, "  and {background} background flows");
    }
    if let ([_, ..], Some(test)) = (&scenario.phases[..], scenario.test) {
        let paths = &scenario.flows[test].paths;
        let several = scenario.phases.len() > 1;
        let of = if several { "phases" } else { "groups" };
        let _ = writeln!(
            text,
            "\n{of}: bottlenecks of the paths under test, + where several meet in one"
        );
        for Phase { start, groups } in &scenario.phases {
            let group = |group: &Vec<usize>| {
                group.iter().map(|&path| paths[path].name.as_str()).collect::<Vec<_>>().join(" + ")
            };
            let groups: Vec<String> = groups.iter().map(group).collect();
            let start = *start as f64 / SECOND as f64;
            let from = if several { format!("from {start} s: ") } else { String::new() };
            text.push_str(&fold(&format!("  {from}{}", groups.join(" | ")), 4));
        }
    }
    for warning in scenario.warnings() {
        text.push_str(&fold(&format!("  warning: {warning}"), 4));
    }
    if !scenario.events.is_empty() {
        text.push_str("\nevents\n");
    }
    for event in &scenario.events {
        let at = show_time(event.at);
        let _ = writeln!(text, "  at {at}: {}", describe_event(scenario, event));
    }
    if host.real_time() {
        let _ = writeln!(text, "\n{} in real time", show_time(scenario.end()));
        return text;
    }
    let size = Estimate::of(scenario);
    let _ = writeln!(
        text,
        "\nat most about {:.1} million packet-hops (data and acknowledgements) and {} of memory\n\
         about {:.1} s on one core, at {:.0} million packet-hops/s",
        size.packet_hops / 1e6,
        show_bytes(size.memory as u64),
        size.seconds(),
        HOPS_PER_SECOND / 1e6,
    );
    text
}

/// A link, in a line.
pub fn describe_link(link: &Link) -> String {
    let config = &link.config;
    let mut text = match &config.rate {
        Rate::Trace(trace) => {
            let (rate, period) = (show_rate(trace.mean_rate()), show_time(trace.period()));
            format!("{}: trace {}, {rate} on average over {period}", config.name, trace.name())
        }
        _ => format!("{}: {}", config.name, show_rate(link.mean_rate())),
    };
    let _ = write!(text, ", delay {}", show_time(config.delay));
    if config.jitter > 0 {
        let kind = match &config.variation.distribution {
            Distribution::Uniform => String::new(),
            Distribution::Normal { mean, deviation } => {
                format!("normal {} ± {}, ", show_time(*mean), show_time(*deviation))
            }
            Distribution::Pareto { mean, shape } => {
                format!("Pareto {shape} with mean {}, ", show_time(*mean))
            }
            Distribution::Recorded(delays) => {
                format!("trace {} of {}, ", delays.name(), show_time(delays.period()))
            }
        };
        let most = if kind.is_empty() { "" } else { "at most " };
        let _ = write!(text, ", jitter {kind}{most}{}", show_time(config.jitter));
        if config.variation.correlation > 0.0 {
            let _ = write!(text, " ({} % correlated)", config.variation.correlation * 100.0);
        }
    }
    if config.loss != Loss::None {
        let _ = write!(text, ", loss {} %", round(config.loss.mean() * 100.0));
    }
    if let Some(Reorder { share, delay }) = config.reorder {
        let _ = write!(text, ", {} % reordered by {}", round(share * 100.0), show_time(delay));
    }
    if let Some(Policer { rate, burst }) = config.policer {
        let _ = write!(text, ", policed to {} and {}", show_rate(rate), show_bytes(burst));
    }
    if config.wifi.is_some() {
        text.push_str(", Wi-Fi");
    }
    let discipline = config.discipline.name();
    let ecn = if config.ecn { " with ECN" } else { "" };
    let limit = show_limit(config.limit);
    let _ = write!(text, ", {discipline} {limit}{ecn}, MTU {}", config.mtu);
    text
}

/// An event, in a few words.
pub fn describe_event(scenario: &Scenario, event: &Event) -> String {
    let link = |link: &usize| &scenario.links[*link].config.name;
    let path = |flow: &usize, path: &usize| {
        let flow = &scenario.flows[*flow];
        format!("{} of {}", flow.paths[*path].name, flow.name)
    };
    match &event.what {
        EventKind::LinkUp(of, true) => format!("link {} up", link(of)),
        EventKind::LinkUp(of, false) => format!("link {} down", link(of)),
        EventKind::LinkHold(of, time) => {
            format!("link {} holds its packets for {}", link(of), show_time(*time))
        }
        EventKind::LinkRate(of, Rate::Constant(rate)) => {
            format!("link {}: {}", link(of), show_rate(*rate))
        }
        EventKind::LinkRate(of, _) => format!("link {}: rate changes", link(of)),
        EventKind::LinkDelay(of, delay) => {
            format!("link {}: delay {}", link(of), show_time(*delay))
        }
        EventKind::PathLost(flow, lost) => format!("path {} lost", path(flow, lost)),
        EventKind::PathAdded(flow, added) => format!("path {} added", path(flow, added)),
    }
}

fn describe_flow(scenario: &Scenario, flow: &Flow, control: Option<Algorithm>) -> String {
    let mut text = format!("{}: {}", flow.name, flow.kind.name());
    if let Some(control) = control {
        let _ = write!(text, " {control}");
    }
    let source = match flow.source {
        Source::Greedy => "greedy".into(),
        Source::File { bytes } => format!("a file of {}", show_bytes(bytes)),
        Source::Rate { mean_pps, .. } => format!("{mean_pps} packets/s"),
        Source::OnOff { pps, .. } => format!("{pps} packets/s on and off"),
        Source::Media { control, max_bps, .. } => {
            format!("media of up to {} kbit/s by {}", max_bps as f64 / 1e3, control.name())
        }
        Source::Messages { bytes, interval, poisson } => {
            let on_average = if poisson { " on average" } else { "" };
            format!(
                "a message of {} every {}{on_average}",
                show_bytes(bytes.into()),
                show_time(interval)
            )
        }
    };
    let paths = flow.paths.iter().map(|path| {
        let links = path.links.iter().map(|&link| scenario.links[link].config.name.as_str());
        let links = links.collect::<Vec<_>>().join(" > ");
        let backup = if path.backup { ", backup" } else { "" };
        format!("{} (RTT {}, {links}{backup})", path.name, show_time(path.rtt))
    });
    let _ = write!(text, ", {source}, over {}", paths.collect::<Vec<_>>().join(", "));
    text
}
