//! Background traffic by a fixed rule: the same flows for every law.
//!
//! For each link, of the load asked for (a share of the link's rate) one half is offered by
//! rate-limited TCP and one half by on/off UDP, each by as many flows as come nearest to it and at
//! least one; then come the link's greedy TCP flows. Where a parameter has a range, each flow draws its
//! value from it, uniformly, by link and seed.

use narrows_laws::Control;
use narrows_net::rng::{self, Xoshiro256PlusPlus};
use narrows_net::{Nanos, SECOND};
use narrows_traffic::{SizeDist, Source};

use super::either::{OneOrEach, Tables};
use super::file::{Background, File};
use super::flow::{control, path, periods};
use super::source::{MIN_PERIOD, check_shape, check_udp, size_dist};
use super::{Fault, Flow, FlowKind, Link};
use crate::algorithm::Algorithm;
use crate::units::show_rate;

/// The random streams of backgrounds, one for each table and link; those of flows have lower numbers.
const STREAMS: u64 = 1 << 62;

/// Flows of one link at most.
const MOST_FLOWS: usize = 100_000;

/// Takes values from the ranges of a link's flows, in their order: their middles without a generator.
struct Taker(Option<Xoshiro256PlusPlus>);

impl Taker {
    /// The next value from a range.
    fn next(&mut self, [low, high]: [f64; 2]) -> f64 {
        low + (high - low) * self.0.as_mut().map_or(0.5, rng::uniform_f64)
    }
}

/// An error in a field of a table, with the name of the field.
type Wrong = (&'static str, String);

/// The background flows of all tables in `file` as a run with `seed` draws them; without one they take
/// the middles of their ranges. How many there are, and their names, do not depend on it.
pub fn flows(
    file: &File,
    links: &[Link],
    end: Nanos,
    seed: Option<u64>,
) -> Result<Vec<Flow>, Fault> {
    let mut flows = Vec::new();
    let tables = file.background.iter().flat_map(Tables::iter);
    for (number, (index, table)) in (1_u64..).zip(tables) {
        let label = if number == 1 { "bg".into() } else { format!("bg{number}") };
        let stream = |link: usize| STREAMS | number << 32 | link as u64;
        let takers = |link| Taker(seed.map(|seed| rng::stream(seed, stream(link))));
        let made = of_table(table, &label, links, takers, file.jitter.0, end);
        flows.extend(made.map_err(|(field, message)| {
            let place = ["background".into()].into_iter().chain(index);
            Fault { field: place.chain(field.split('.').map(String::from)).collect(), message }
        })?);
    }
    Ok(flows)
}

/// What rate-limited TCP and on/off UDP offer.
struct Load {
    /// Share of each link's rate.
    shares: Vec<f64>,
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
        let (shares, size, tcp_rate, udp_rate, udp_period, udp_shape) =
            match (offered, size, tcp_rate, udp_rate, udp_period, udp_shape) {
                (Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)) => (a, b, c, d, e, f),
                (None, None, None, None, None, None) => return Ok(None),
                _ => {
                    let all = "offered, size, tcp_rate, udp_rate, udp_period and udp_shape";
                    return Err(("offered", format!("expected all of {all}, or none of them")));
                }
            };
        let shares = match shares {
            OneOrEach::One(share) => vec![share.0; table.links.len()],
            OneOrEach::Each(shares) => shares.iter().map(|share| share.0).collect(),
        };
        if shares.len() != table.links.len() {
            return Err(("offered", "expected one share, or one for each link".into()));
        }
        let size = size_dist(&size.0).map_err(|message| ("size", message))?;
        check_udp(size).map_err(|message| ("size", message))?;
        if udp_period[0].0 < MIN_PERIOD {
            return Err(("udp_period", "expected a mean of at least 1 ms".into()));
        }
        check_shape(*udp_shape).map_err(|message| ("udp_shape", message))?;
        Ok(Some(Load {
            shares,
            size,
            tcp_pps: tcp_rate.0,
            udp_pps: range("udp_rate", udp_rate.map(|rate| rate.0))?,
            udp_period: range("udp_period", udp_period.map(|p| p.0 as f64 / SECOND as f64))?,
            udp_shape: *udp_shape,
        }))
    }

    /// How many flows of TCP and of UDP offer it on a link of so many bit/s, the table's `nth`: half of
    /// it each; a flow of UDP is on half of the time.
    fn counts(&self, nth: usize, rate: f64) -> Result<(usize, usize), Wrong> {
        let half = self.shares[nth] / 2.0 * rate;
        let count = |pps: f64| {
            if half == 0.0 {
                0
            } else {
                ((half / (pps * self.size.mean() * 8.0)).round() as usize).max(1)
            }
        };
        let udp_mean = (self.udp_pps[0] + self.udp_pps[1]) / 2.0;
        let (tcp, udp) = (count(self.tcp_pps), count(udp_mean / 2.0));
        if tcp + udp > MOST_FLOWS {
            let message = format!(
                "on a link of {} this takes {} flows; expected at most {MOST_FLOWS}",
                show_rate(rate as u64),
                tcp + udp
            );
            return Err(("offered", message));
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
    takers: impl Fn(usize) -> Taker,
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
        Some(cc) => control(cc, false).map_err(|message| ("cc", message))?,
        None => Control::RENO.into(),
    };
    let greedy = table.greedy.clone().unwrap_or_else(|| vec![0; table.links.len()]);
    if greedy.len() != table.links.len() {
        return Err(("greedy", "expected one number of flows for each link".into()));
    }
    if let Some(absurd) = greedy.iter().find(|&&count| count > 1000) {
        return Err(("greedy", format!("expected at most 1000 greedy flows, found {absurd}")));
    }

    let mut flows = Vec::new();
    for (nth, (name, &greedy)) in table.links.iter().zip(&greedy).enumerate() {
        let Some(index) = links.iter().position(|link| link.config.name == *name) else {
            return Err(("links", super::unknown_link(name, links)));
        };
        let rate = links[index].mean_rate() as f64;
        let (limited, on_off) = load.as_ref().map_or(Ok((0, 0)), |load| load.counts(nth, rate))?;
        let path = |rtt| {
            let path = path("path", vec![index], vec![], rtt as Nanos, links, jitter_packets);
            path.map_err(|message| ("rtt", message))
        };
        // Whatever is drawn is possible if both ends are.
        path(rtt[0])?;
        path(rtt[1])?;
        let total = limited + on_off + greedy;
        let first = flows.len();
        let mut add = |what: &str, kind, k: usize, rtt, source| -> Result<(), Wrong> {
            let name = format!("{label}-{name}-{what}{}", k + 1);
            let path = path(rtt)?;
            // Starts spread over the first second of a period.
            let late = SECOND * (flows.len() - first) as u64 / total as u64;
            let mut flow = Flow::new(name, kind, vec![path], source, links);
            flow.background = true;
            flow.active = active.iter().map(|&(at, stop)| ((at + late).min(stop), stop)).collect();
            flow.control = (kind == FlowKind::Tcp).then_some(control);
            flows.push(flow);
            Ok(())
        };
        let mut taker = takers(index);
        if let Some(Load { size, tcp_pps, udp_pps, udp_period, udp_shape, .. }) = load {
            for k in 0..limited {
                let source = Source::Rate { mean_pps: tcp_pps, size };
                add("tcp", FlowKind::Tcp, k, taker.next(rtt), source)?;
            }
            for k in 0..on_off {
                let period = taker.next(udp_period);
                let source = Source::OnOff {
                    pps: taker.next(udp_pps),
                    size,
                    on_mean_s: period,
                    on_shape: udp_shape,
                    off_mean_s: period,
                };
                add("udp", FlowKind::Udp, k, taker.next(rtt), source)?;
            }
        }
        for k in 0..greedy {
            add("greedy", FlowKind::Tcp, k, taker.next(rtt), Source::Greedy)?;
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
                ("bg-wire-greedy1", 30, "reno".into(), always(0.0)),
                ("bg-wire-greedy2", 30, "reno".into(), always(0.5)),
                ("bg2-wire-greedy1", 30, "cubic".into(), vec![(s(1.0), s(2.0)), (s(4.0), s(4.3))]),
                // It would begin after the second period has ended.
                ("bg2-wire-greedy2", 30, "cubic".into(), vec![(s(1.5), s(2.0)), (s(4.3), s(4.3))]),
            ]
        );
    }

    /// Two links with the loads 20 and 60 %, of rates and RTTs from ranges.
    const LOADED: &str = r#"
        name = "loaded"
        title = "Two links with other loads"
        source = "test"
        warmup = "0 s"
        duration = "10 s"
        links.a = { rate = "20 Mbit/s" }
        links.b = { rate = "20 Mbit/s" }
        background.links = ["a", "b"]
        background.offered = ["20 %", "60 %"]
        background.greedy = [1, 1]
        background.rtt = ["20 ms", "80 ms"]
        background.size = { constant = "1000 B" }
        background.tcp_rate = "100 packets/s"
        background.udp_rate = ["50 packets/s", "150 packets/s"]
        background.udp_period = ["1 s", "5 s"]
        background.udp_shape = 1.5
    "#;

    /// What a flow draws: its RTT, and as UDP its rate and period.
    fn drawn(flow: &Flow) -> (Nanos, f64, f64) {
        match flow.source {
            Source::OnOff { pps, on_mean_s, .. } => (flow.paths[0].rtt, pps, on_mean_s),
            _ => (flow.paths[0].rtt, 100.0, 3.0),
        }
    }

    #[test]
    fn each_link_has_the_load_that_it_is_given() {
        let scenario = parse(LOADED, &Edits::default()).unwrap();
        let count = |what: &str| scenario.flows.iter().filter(|f| f.name.contains(what)).count();
        // 2 and 6 Mbit/s each by TCP of 0.8 and UDP of 0.4 Mbit/s.
        assert_eq!(["a-tcp", "b-tcp", "a-udp", "b-udp"].map(count), [3, 8, 5, 15]);
        let wrong = LOADED.replace(r#"["20 %", "60 %"]"#, r#"["20 %"]"#);
        let error = parse(&wrong, &Edits::default()).unwrap_err().to_string();
        assert!(error.contains("background.offered: expected one share"), "{error}");
    }

    #[test]
    fn a_seed_draws_from_the_ranges_and_leaves_the_rest() {
        let scenario = parse(LOADED, &Edits::default()).unwrap();
        let of = |seed: u64| scenario.drawn(seed).into_owned().flows;
        let (mut rtts, mut rates) = (0.0, 0.0);
        for seed in 1..=50 {
            for (flow, plain) in of(seed).iter().zip(&scenario.flows) {
                let (rtt, pps, period) = drawn(flow);
                assert!((20_000_000..=80_000_000).contains(&rtt), "{rtt}");
                assert!((50.0..=150.0).contains(&pps) && (1.0..=5.0).contains(&period));
                assert_eq!((&flow.name, &flow.active), (&plain.name, &plain.active));
                rtts += rtt as f64 / 50.0 / scenario.flows.len() as f64;
                rates += pps / 50.0 / scenario.flows.len() as f64;
            }
        }
        // Uniform: 1650 RTTs with a deviation of 17 ms, 1000 rates of 29 packets/s, a fifth fixed.
        assert!((rtts / 1e6 - 50.0).abs() < 2.0, "{rtts}");
        assert!((rates - 100.0).abs() < 3.0, "{rates}");
        let all = |seed| of(seed).iter().map(drawn).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        // Links draw by themselves.
        let flows = of(7);
        let of_flow = |name: &str| drawn(flows.iter().find(|flow| flow.name == name).unwrap());
        assert_ne!(of_flow("bg-a-udp1"), of_flow("bg-b-udp1"));
    }
}
