//! Background traffic by a fixed rule: the same flows for every law and every seed; only the
//! packets' times and sizes are drawn.
//!
//! For each link, of the load asked for (a share of the link's rate) one half is offered by
//! rate-limited TCP and one half by on/off UDP, each by as many flows as come nearest to it and at
//! least one; then come the link's greedy TCP flows. Where a parameter has a range, the k-th of n flows
//! takes the point (k - 1/2)/n of the way from its low to its high end.

use narrows_laws::Control;
use narrows_net::Nanos;
use narrows_sim::Source;

use super::file::Background;
use super::flow::path;
use super::source::{MIN_PERIOD, check_shape, check_udp, size_dist};
use super::{Fault, Flow, FlowKind, Link};

/// The point of the k-th (from 0) of n flows on the way from `low` to `high`.
fn spread(low: f64, high: f64, k: usize, n: usize) -> f64 {
    low + (high - low) * (k as f64 + 0.5) / n as f64
}

/// The background flows of all links in `background`.
pub fn flows(
    background: &Background,
    links: &[Link],
    jitter_packets: f64,
    end: Nanos,
) -> Result<Vec<Flow>, Fault> {
    let fault = |field: &str, message: String| Fault::new(["background", field], message);
    let size = size_dist(&background.size).map_err(|message| fault("size", message))?;
    check_udp(size).map_err(|message| fault("size", message))?;
    for (field, low, high) in [
        ("rtt", background.rtt[0].0 as f64, background.rtt[1].0 as f64),
        ("udp_rate", background.udp_rate[0].0, background.udp_rate[1].0),
        ("udp_period", background.udp_period[0].0 as f64, background.udp_period[1].0 as f64),
    ] {
        if low > high {
            return Err(fault(field, "the low end of the range is above the high end".into()));
        }
    }
    if background.udp_period[0].0 < MIN_PERIOD {
        return Err(fault("udp_period", "expected a mean of at least 1 ms".into()));
    }
    check_shape(background.udp_shape).map_err(|message| fault("udp_shape", message))?;
    if background.greedy.len() != background.links.len() {
        return Err(fault("greedy", "expected one number of flows for each link".into()));
    }
    if let Some(absurd) = background.greedy.iter().find(|&&count| count > 1000) {
        return Err(fault("greedy", format!("{absurd} greedy flows are absurd")));
    }

    let mut flows = Vec::new();
    for (position, name) in background.links.iter().enumerate() {
        let Some(index) = links.iter().position(|link| link.config.name == *name) else {
            let place = ["background", "links", &position.to_string()];
            return Err(Fault::new(place, format!("unknown link \"{name}\"")));
        };
        // Half of the load for each of the two kinds; an on/off flow is on half of the time.
        let half = background.offered.0 / 2.0 * links[index].mean_rate() as f64;
        let count = |pps: f64| {
            if half == 0.0 {
                0
            } else {
                ((half / (pps * size.mean() * 8.0)).round() as usize).max(1)
            }
        };
        let udp_mean = (background.udp_rate[0].0 + background.udp_rate[1].0) / 2.0;
        let (limited, on_off) = (count(background.tcp_rate.0), count(udp_mean / 2.0));
        if limited + on_off > 100_000 {
            return Err(fault("offered", format!("{} flows are absurd", limited + on_off)));
        }

        let greedy = background.greedy[position];
        let total = limited + on_off + greedy;
        let first = flows.len();
        let mut add = |label: &str, kind, k: usize, n: usize, source| -> Result<(), Fault> {
            let [low, high] = background.rtt.map(|rtt| rtt.0 as f64);
            let rtt = spread(low, high, k, n) as Nanos;
            let name = format!("bg-{name}-{label}{}", k + 1);
            let path = path("path", vec![index], vec![], rtt, links, jitter_packets)
                .map_err(|message| fault("rtt", message))?;
            // Starts spread over the first second.
            let start = narrows_net::SECOND * (flows.len() - first) as u64 / total as u64;
            let mut flow = Flow::new(name, kind, vec![path], source, links);
            flow.background = true;
            flow.active = vec![(start.min(end), end)];
            flow.control = (kind == FlowKind::Tcp).then_some(Control::RENO.into());
            flows.push(flow);
            Ok(())
        };
        for k in 0..limited {
            let source = Source::Rate { mean_pps: background.tcp_rate.0, size };
            add("tcp", FlowKind::Tcp, k, limited, source)?;
        }
        for k in 0..on_off {
            let [low, high] = background.udp_period.map(|period| period.0 as f64 / 1e9);
            let period = spread(low, high, k, on_off);
            let [slow, fast] = background.udp_rate.map(|rate| rate.0);
            let source = Source::OnOff {
                pps: spread(slow, fast, k, on_off),
                size,
                on_mean_s: period,
                on_shape: background.udp_shape,
                off_mean_s: period,
            };
            add("udp", FlowKind::Udp, k, on_off, source)?;
        }
        for k in 0..greedy {
            add("greedy", FlowKind::Tcp, k, greedy, Source::Greedy)?;
        }
    }
    Ok(flows)
}
