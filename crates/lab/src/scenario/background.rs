//! Background traffic by a fixed rule: the same flows for every law and every seed; only the
//! packets' times and sizes are drawn.
//!
//! For each link, of the load asked for (a share of the link's rate) one half is offered by
//! rate-limited TCP and one half by on/off UDP, each by as many flows as come nearest to it and at
//! least one; then come the link's greedy TCP flows. Where a parameter has a range, the k-th of n flows
//! takes the point (k - 1/2)/n of the way from its low to its high end.

use narrows_laws::Control;
use narrows_net::{Nanos, SECOND};
use narrows_traffic::{SizeDist, Source};

use super::either::Tables;
use super::file::{Background, File};
use super::flow::{path, periods};
use super::source::{MIN_PERIOD, check_shape, check_udp, size_dist};
use super::{Fault, Flow, FlowKind, Link};
use crate::algorithm::Algorithm;

/// The point of the k-th (from 0) of n flows on the way from `low` to `high`.
fn spread([low, high]: [f64; 2], k: usize, n: usize) -> f64 {
    low + (high - low) * (k as f64 + 0.5) / n as f64
}

/// An error in a field of a table, with the name of the field.
type Wrong = (&'static str, String);

/// The background flows of all tables in `file`.
pub fn flows(file: &File, links: &[Link], end: Nanos) -> Result<Vec<Flow>, Fault> {
    let mut flows = Vec::new();
    let tables = file.background.iter().flat_map(Tables::iter);
    for (number, (index, table)) in (1..).zip(tables) {
        let label = if number == 1 { "bg".into() } else { format!("bg{number}") };
        let made = of_table(table, &label, links, file.jitter.0, end);
        flows.extend(made.map_err(|(field, message)| {
            let place = ["background".into()].into_iter().chain(index);
            Fault { field: place.chain(field.split('.').map(String::from)).collect(), message }
        })?);
    }
    Ok(flows)
}

/// What rate-limited TCP and on/off UDP offer.
struct Load {
    /// Share of the link's rate.
    share: f64,
    size: SizeDist,
    /// Mean rate of a TCP flow, packets/s.
    tcp_pps: f64,
    /// Rates during the bursts of UDP, packets/s.
    udp_pps: [f64; 2],
    /// Means of both burst and silence, s.
    udp_period: [f64; 2],
    udp_shape: f64,
}

impl Load {
    fn of(table: &Background) -> Result<Option<Load>, Wrong> {
        let Background { offered, size, tcp_rate, udp_rate, udp_period, udp_shape, .. } = table;
        let (share, size, tcp_rate, udp_rate, udp_period, udp_shape) =
            match (offered, size, tcp_rate, udp_rate, udp_period, udp_shape) {
                (Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)) => (a, b, c, d, e, f),
                (None, None, None, None, None, None) => return Ok(None),
                _ => {
                    let all = "offered, size, tcp_rate, udp_rate, udp_period and udp_shape";
                    return Err(("offered", format!("expected all of {all}, or none of them")));
                }
            };
        let size = size_dist(&size.0).map_err(|message| ("size", message))?;
        check_udp(size).map_err(|message| ("size", message))?;
        if udp_period[0].0 < MIN_PERIOD {
            return Err(("udp_period", "expected a mean of at least 1 ms".into()));
        }
        check_shape(*udp_shape).map_err(|message| ("udp_shape", message))?;
        Ok(Some(Load {
            share: share.0,
            size,
            tcp_pps: tcp_rate.0,
            udp_pps: range("udp_rate", udp_rate.map(|rate| rate.0))?,
            udp_period: range("udp_period", udp_period.map(|p| p.0 as f64 / SECOND as f64))?,
            udp_shape: *udp_shape,
        }))
    }

    /// How many flows of TCP and of UDP offer it on a link of so many bit/s: half of it each; a flow of
    /// UDP is on half of the time.
    fn counts(&self, rate: f64) -> Result<(usize, usize), Wrong> {
        let half = self.share / 2.0 * rate;
        let count = |pps: f64| {
            if half == 0.0 {
                0
            } else {
                ((half / (pps * self.size.mean() * 8.0)).round() as usize).max(1)
            }
        };
        let udp_mean = (self.udp_pps[0] + self.udp_pps[1]) / 2.0;
        let (tcp, udp) = (count(self.tcp_pps), count(udp_mean / 2.0));
        if tcp + udp > 100_000 {
            return Err(("offered", format!("{} flows are too many", tcp + udp)));
        }
        Ok((tcp, udp))
    }
}

fn range(field: &'static str, [low, high]: [f64; 2]) -> Result<[f64; 2], Wrong> {
    if low > high {
        return Err((field, "the low end of the range is above the high end".into()));
    }
    Ok([low, high])
}

/// The flows of one table; their names begin with `label`.
fn of_table(
    table: &Background,
    label: &str,
    links: &[Link],
    jitter_packets: f64,
    end: Nanos,
) -> Result<Vec<Flow>, Wrong> {
    let load = Load::of(table)?;
    let rtt = range("rtt", table.rtt.map(|rtt| rtt.0 as f64))?;
    let active = match &table.active {
        Some(active) => periods(active, end).map_err(|message| ("active", message))?,
        None => vec![(0, end)],
    };
    let control: Algorithm = match &table.cc {
        Some(cc) => cc.parse().map_err(|message| ("cc", message))?,
        None => Control::RENO.into(),
    };
    let greedy = table.greedy.clone().unwrap_or_else(|| vec![0; table.links.len()]);
    if greedy.len() != table.links.len() {
        return Err(("greedy", "expected one number of flows for each link".into()));
    }
    if let Some(absurd) = greedy.iter().find(|&&count| count > 1000) {
        return Err(("greedy", format!("{absurd} greedy flows are too many")));
    }

    let mut flows = Vec::new();
    for (name, &greedy) in table.links.iter().zip(&greedy) {
        let Some(index) = links.iter().position(|link| link.config.name == *name) else {
            return Err(("links", format!("unknown link \"{name}\"")));
        };
        let rate = links[index].mean_rate() as f64;
        let (limited, on_off) = load.as_ref().map_or(Ok((0, 0)), |load| load.counts(rate))?;
        let total = limited + on_off + greedy;
        let first = flows.len();
        let mut add = |what: &str, kind, k: usize, n: usize, source| -> Result<(), Wrong> {
            let name = format!("{label}-{name}-{what}{}", k + 1);
            let rtt = spread(rtt, k, n) as Nanos;
            let path = path("path", vec![index], vec![], rtt, links, jitter_packets)
                .map_err(|message| ("rtt", message))?;
            // Starts spread over the first second of a period.
            let late = SECOND * (flows.len() - first) as u64 / total as u64;
            let mut flow = Flow::new(name, kind, vec![path], source, links);
            flow.background = true;
            flow.active = active.iter().map(|&(at, stop)| ((at + late).min(stop), stop)).collect();
            flow.control = (kind == FlowKind::Tcp).then_some(control);
            flows.push(flow);
            Ok(())
        };
        if let Some(Load { size, tcp_pps, udp_pps, udp_period, udp_shape, .. }) = load {
            for k in 0..limited {
                let source = Source::Rate { mean_pps: tcp_pps, size };
                add("tcp", FlowKind::Tcp, k, limited, source)?;
            }
            for k in 0..on_off {
                let period = spread(udp_period, k, on_off);
                let source = Source::OnOff {
                    pps: spread(udp_pps, k, on_off),
                    size,
                    on_mean_s: period,
                    on_shape: udp_shape,
                    off_mean_s: period,
                };
                add("udp", FlowKind::Udp, k, on_off, source)?;
            }
        }
        for k in 0..greedy {
            add("greedy", FlowKind::Tcp, k, greedy, Source::Greedy)?;
        }
    }
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, parse};

    #[test]
    fn each_table_loads_its_links_in_its_time_with_its_law() {
        let text = r#"
            name = "two"
            title = "Two backgrounds on a link"
            source = "test"
            warmup = "0 s"
            duration = "10 s"
            links.wire = { rate = "10 Mbit/s" }

            [[background]]
            links = ["wire"]
            greedy = [2]
            rtt = ["20 ms", "40 ms"]

            [[background]]
            links = ["wire"]
            greedy = [2]
            rtt = ["30 ms", "30 ms"]
            cc = "cubic"
            active = [["1 s", "2 s"], ["4 s", "4.3 s"]]
        "#;
        let scenario = parse(text, &Edits::default()).unwrap();
        let reported: Vec<_> = scenario
            .flows
            .iter()
            .map(|flow| {
                let rtt = flow.paths[0].rtt / narrows_net::MILLISECOND;
                (flow.name.as_str(), rtt, flow.control.unwrap().to_string(), flow.active.clone())
            })
            .collect();
        let s = |seconds: f64| (seconds * SECOND as f64) as Nanos;
        let always = |from: f64| vec![(s(from), s(10.0))];
        assert_eq!(
            reported,
            [
                ("bg-wire-greedy1", 25, "reno".into(), always(0.0)),
                ("bg-wire-greedy2", 35, "reno".into(), always(0.5)),
                ("bg2-wire-greedy1", 30, "cubic".into(), vec![(s(1.0), s(2.0)), (s(4.0), s(4.3))]),
                // It would begin after the second period has ended.
                ("bg2-wire-greedy2", 30, "cubic".into(), vec![(s(1.5), s(2.0)), (s(4.3), s(4.3))]),
            ]
        );
    }
}
