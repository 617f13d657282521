//! What the page lets one change of a scenario: its links and paths, as far as the connection under test uses them, and
//! its length. Each is a field of the scenario, as `--set` takes it.

use narrows_lab::units::{show_limit, show_rate, show_time};
use narrows_lab::{FlowPath, Link, Scenario};
use narrows_net::{Limit, Loss, MILLISECOND, Nanos, Rate, SECOND};
use serde::Serialize;

/// A field and the values that it is given.
#[derive(Debug, PartialEq, Serialize)]
pub struct Knob {
    /// The field's name.
    field: String,
    /// What it is of, and what it is.
    label: String,
    /// Values in order, the present one among them.
    stops: Vec<String>,
    /// The place of the present one.
    at: usize,
}

impl Knob {
    /// Of these values, of which each is the greater, and the present one.
    fn new<T: PartialOrd + Copy>(
        field: String,
        label: String,
        values: &[T],
        now: T,
        show: impl Fn(T) -> String,
    ) -> Knob {
        let at = values.partition_point(|value| *value < now);
        let mut values = values.to_vec();
        if values.get(at).is_none_or(|value| *value != now) {
            values.insert(at, now);
        }
        Knob { field, label, stops: values.into_iter().map(show).collect(), at }
    }
}

/// Steps of a fifth to a half, as people tell values of a network apart.
const STEPS: [u64; 12] = [10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80];

/// All such values from `from` to `to`, in a unit.
fn steps(from: u64, to: u64, unit: u64) -> Vec<u64> {
    let decades = (0..6).map(|power| 10_u64.pow(power));
    let all = decades.flat_map(|ten| STEPS.map(|step| step * ten * unit / 10));
    all.filter(|value| (from * unit..=to * unit).contains(value)).collect()
}

/// Shares of packets that are lost, percent.
const LOSSES: [f64; 11] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0];

/// The knobs of a scenario: of each link that the connection under test uses, and of the paths that begin with it.
pub fn of(scenario: &Scenario) -> Vec<Knob> {
    let mut knobs = Vec::new();
    if let Some(test) = scenario.test {
        let paths = &scenario.flows[test].paths;
        let mut links: Vec<usize> = Vec::new();
        for link in paths.iter().flat_map(|path| path.links.iter().copied()) {
            if !links.contains(&link) {
                links.push(link);
            }
        }
        for link in links {
            knobs.extend(of_link(&scenario.links[link]));
            let begins = |path: &&FlowPath| path.links.first() == Some(&link);
            knobs.extend(paths.iter().filter(begins).map(|path| of_path(path, &scenario.links)));
        }
    }
    let times = [10, 20, 30, 60, 120, 300, 600].map(|time: Nanos| time * SECOND);
    let now = scenario.duration;
    knobs.push(Knob::new("duration".into(), "analysed time".into(), &times, now, show_time));
    knobs
}

fn of_link(link: &Link) -> Vec<Knob> {
    let config = &link.config;
    let field = |field: &str| format!("links.{}.{field}", config.name);
    let label = |what: &str| format!("{} {what}", config.name);
    let mut knobs = Vec::new();
    if let Rate::Constant(rate) = config.rate {
        let rates = steps(1, 200, 1_000_000);
        knobs.push(Knob::new(field("rate"), label("rate"), &rates, rate, show_rate));
    }
    let queue = |values: Vec<u64>, now: u64, limit: fn(u64) -> Limit| {
        let show = move |value| show_limit(limit(value));
        Knob::new(field("queue"), label("queue"), &values, now, show)
    };
    knobs.extend(match config.limit {
        Limit::Packets(packets) => {
            Some(queue(steps(2, 1000, 1), packets.into(), |packets| Limit::Packets(packets as u32)))
        }
        Limit::Bytes(bytes) => Some(queue(steps(3, 2000, 1000), bytes, Limit::Bytes)),
        Limit::Time(time) => Some(queue(steps(1, 1000, MILLISECOND), time, Limit::Time)),
        Limit::Unlimited => None,
    });
    // Bursts of losses are more than a share.
    if let Loss::None | Loss::Random(_) = config.loss {
        let percent = (config.loss.mean() * 1e8).round() / 1e6;
        let show = |percent: f64| format!("{percent} %");
        knobs.push(Knob::new(field("loss"), label("loss"), &LOSSES, percent, show));
    }
    knobs
}

fn of_path(path: &FlowPath, links: &[Link]) -> Knob {
    let (field, label) = (format!("routes.{}.rtt", path.name), format!("{} RTT", path.name));
    // Its links delay by so much already.
    let least: Nanos = path.links.iter().map(|&link| links[link].config.delay).sum();
    let mut times = steps(2, 600, MILLISECOND);
    times.retain(|&time| time >= least);
    Knob::new(field, label, &times, path.rtt, show_time)
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, load};

    use super::*;

    /// Those that the page offers.
    const NETWORKS: [&str; 4] = ["sbd/nsb-2", "sbd/sb-2", "phone/wifi-lte", "home/lossy"];

    fn set(name: &str, knob: &Knob, stop: &str) -> Scenario {
        let set = vec![(knob.field.clone(), stop.to_owned())];
        load(name, &Edits { set, ..Edits::default() }).unwrap()
    }

    #[test]
    fn every_end_of_a_knob_and_its_present_value_are_read_as_they_are_written() {
        for name in NETWORKS {
            for knob in of(&load(name, &Edits::default()).unwrap()) {
                for at in [0, knob.at, knob.stops.len() - 1] {
                    let stop = &knob.stops[at];
                    let changed = of(&set(name, &knob, stop));
                    let now = changed.iter().find(|now| now.field == knob.field).unwrap();
                    assert_eq!(&now.stops[now.at], stop, "{name}: {}", knob.field);
                }
            }
        }
    }

    #[test]
    fn links_and_paths_of_the_connection_have_knobs_and_a_trace_has_no_rate() {
        let fields = |name| {
            let knobs = of(&load(name, &Edits::default()).unwrap());
            knobs.into_iter().map(|knob| knob.field).collect::<Vec<_>>()
        };
        let phone = ["links.wifi.rate", "links.wifi.queue", "links.wifi.loss", "routes.wifi.rtt"];
        let lte = ["links.lte.queue", "links.lte.loss", "routes.lte.rtt", "duration"];
        assert_eq!(fields("phone/wifi-lte"), [phone, lte].concat());
        let shared =
            ["links.bottleneck1.rate", "links.bottleneck1.queue", "links.bottleneck1.loss"];
        let paths = ["routes.path1.rtt", "routes.path2.rtt", "duration"];
        assert_eq!(fields("sbd/sb-2"), [shared, paths].concat());
    }

    #[test]
    fn what_is_none_of_the_usual_values_has_its_place_among_them() {
        let knob = Knob::new("f".into(), "l".into(), &[1, 2, 5], 3, |value| value.to_string());
        assert_eq!((knob.stops.join(" ").as_str(), knob.at), ("1 2 3 5", 2));
    }
}
