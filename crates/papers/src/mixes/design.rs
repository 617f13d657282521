//! The mixes: which links a connection has, drawn by a design that fills the space of all their numbers.
//!
//! A mix is a point of a Sobol sequence with Owen's scrambling (Burley, Practical Hash-based Owen Scrambling,
//! JCGT 9(4), 2020), of one seed: any first few points fill the space as evenly as they can. Its number gives
//! the scenario, to the byte.

use std::fmt::Write;

use narrows_net::rng;

/// Mixes of the whole form.
pub const COUNT: u32 = 1000;
/// Of the quick one, and of those that were looked at while the rules of `narrows_advice` were found.
pub const QUICK: u32 = 64;
/// Of the scrambling, and of the rates that change.
const SEED: u32 = 42;
/// Warm-up and analysed time, s. Advice needs 15 s until it stands.
pub const WARMUP_S: f64 = 20.0;
const TIME_S: f64 = 30.0;

/// A class of links: ranges from which each link draws its own, all with each ratio as likely as another.
pub struct Class {
    /// What it is called.
    pub name: &'static str,
    /// Rate, Mbit/s. None is above 60, so that a mix takes seconds.
    pub rate_mbps: [f64; 2],
    /// Base RTT, ms.
    pub rtt_ms: [f64; 2],
    /// What the queue holds, ms.
    pub queue_ms: [f64; 2],
    /// Mean of the jitter, ms: normal, with half of it as deviation, at most three times it, and 80 % correlation of
    /// neighbours.
    pub jitter_ms: [f64; 2],
    /// The rate changes every so many seconds, to at most so many times more or less.
    pub varies: Option<(f64, f64)>,
    /// It holds its packets for so many ms, every so many s, as in a handover.
    pub holds: Option<([f64; 2], [f64; 2])>,
    /// Access and aggregation as on Wi-Fi.
    pub wifi: bool,
    /// What is published of them; other numbers are ours.
    pub source: &'static str,
}

/// All classes.
pub const CLASSES: [Class; 6] = [
    Class {
        name: "LTE",
        rate_mbps: [3.0, 50.0],
        rtt_ms: [40.0, 100.0],
        queue_ms: [200.0, 1000.0],
        jitter_ms: [2.0, 8.0],
        varies: Some((2.0, 2.0)),
        holds: Some(([30.0, 80.0], [10.0, 30.0])),
        wifi: false,
        source: "Huang et al., MobiSys 2012: 13 Mbit/s in the median; Jiang et al., IMC 2012: queues so long that losses do not \
                 limit the window",
    },
    Class {
        name: "5G",
        rate_mbps: [20.0, 60.0],
        rtt_ms: [20.0, 60.0],
        queue_ms: [100.0, 400.0],
        jitter_ms: [1.0, 5.0],
        varies: Some((3.0, 2.0)),
        holds: Some(([50.0, 150.0], [10.0, 30.0])),
        wifi: false,
        source: "Narayanan et al., WWW 2020: rates that vary by more than LTE's",
    },
    Class {
        name: "DSL",
        rate_mbps: [2.0, 40.0],
        rtt_ms: [20.0, 60.0],
        queue_ms: [50.0, 600.0],
        jitter_ms: [0.2, 1.0],
        varies: None,
        holds: None,
        wifi: false,
        source: "-",
    },
    Class {
        name: "cable",
        rate_mbps: [15.0, 60.0],
        rtt_ms: [15.0, 45.0],
        queue_ms: [50.0, 300.0],
        jitter_ms: [1.0, 5.0],
        varies: None,
        holds: None,
        wifi: false,
        source: "Barakat and Darcie, IEEE Comm. Letters 11(4), 2007: delays that the access protocol spreads",
    },
    Class {
        name: "Starlink",
        rate_mbps: [30.0, 60.0],
        rtt_ms: [30.0, 80.0],
        queue_ms: [50.0, 150.0],
        jitter_ms: [2.0, 10.0],
        varies: Some((1.5, 15.0)),
        holds: Some(([50.0, 200.0], [15.0, 15.0])),
        wifi: false,
        source: "Michel et al., IMC 2022: RTT of 20 ms at least, 40 to 60 in half of the samples; Mohan et al., WWW 2024: \
                 new satellites every 15 s",
    },
    Class {
        name: "Wi-Fi",
        rate_mbps: [6.0, 60.0],
        rtt_ms: [10.0, 50.0],
        queue_ms: [20.0, 200.0],
        jitter_ms: [1.0, 10.0],
        varies: None,
        holds: None,
        wifi: true,
        source: "Pei et al., INFOCOM 2016: the hop takes more than 20 ms for half of the packets",
    },
];

/// Random loss, %: the bounds between which the FCC counts lines (Measuring Broadband America, ninth report, chart 8:
/// less than 0.4, 0.4 to 1, more).
const LOSS: [f64; 2] = [0.1, 1.0];
/// A dead link, s: from, for.
const DEAD: [[f64; 2]; 2] = [[22.0, 40.0], [3.0, 12.0]];
/// The rate of a shared link, of the sum of the two that pass it; its queue, ms.
const SHARED: [f64; 2] = [0.4, 0.9];
const SHARED_QUEUE_MS: [f64; 2] = [30.0, 200.0];

/// What the receiver holds at most, MiB: Linux's default is 6 (`tcp_rmem`), that of phones less (Jiang et al.,
/// IMC 2012). Added after a first look at 37 mixes that all had 6, where no path was one to park.
const BUFFER_MIB: [f64; 2] = [1.0, 6.0];

/// A link of a mix.
pub struct Link {
    pub class: &'static Class,
    /// In the scenario.
    pub name: String,
    pub rate_mbps: f64,
    pub rtt_ms: f64,
    queue_ms: f64,
    jitter_ms: f64,
    /// For so many ms, every so many s.
    holds: Option<[f64; 2]>,
    /// Random loss, %.
    pub loss: Option<f64>,
    /// From, for, s.
    pub dead: Option<[f64; 2]>,
}

/// Links that a connection has.
pub struct Mix {
    pub number: u32,
    pub links: Vec<Link>,
    /// The rate of the link that the first two share, Mbit/s, and its queue, ms.
    pub shared: Option<[f64; 2]>,
    /// MiB.
    pub buffer_mib: f64,
}

/// `u` of the way from `low` to `high`, by ratio.
fn between([low, high]: [f64; 2], u: f64) -> f64 {
    low * libm::pow(high / low, u)
}

impl Mix {
    /// The mix of a number below [`COUNT`].
    pub fn new(number: u32) -> Mix {
        // No number is used twice: a dimension of the sequence for each.
        let u = |dimension: u32| f64::from(sobol_burley::sample(number, dimension, SEED));
        let one_of = |dimension: u32, n: usize| ((u(dimension) * n as f64) as usize).min(n - 1);
        let count = 2 + one_of(0, 3);
        let lossy = (u(1) < 0.3).then(|| (one_of(2, count), between(LOSS, u(3))));
        let dead = (u(4) < 0.2)
            .then(|| (one_of(5, count), [between(DEAD[0], u(6)), between(DEAD[1], u(7))]));
        let link = |slot: usize| {
            let u = |n: u32| u(11 + 7 * slot as u32 + n);
            let class = &CLASSES[one_of(11 + 7 * slot as u32, CLASSES.len())];
            let plain: String = class.name.chars().filter(char::is_ascii_alphanumeric).collect();
            Link {
                class,
                name: format!("{}{}", plain.to_lowercase(), slot + 1),
                rate_mbps: between(class.rate_mbps, u(1)),
                rtt_ms: between(class.rtt_ms, u(2)),
                queue_ms: between(class.queue_ms, u(3)),
                jitter_ms: between(class.jitter_ms, u(4)),
                holds: class.holds.map(|(ms, s)| [between(ms, u(5)), between(s, u(6))]),
                loss: lossy.filter(|(at, _)| *at == slot).map(|(_, loss)| loss),
                dead: dead.filter(|(at, _)| *at == slot).map(|(_, dead)| dead),
            }
        };
        let links: Vec<Link> = (0..count).map(link).collect();
        let shared = (u(8) < 0.25).then(|| {
            let sum = links[0].rate_mbps + links[1].rate_mbps;
            [sum * between(SHARED, u(9)), between(SHARED_QUEUE_MS, u(10))]
        });
        Mix { number, links, shared, buffer_mib: between(BUFFER_MIB, u(39)) }
    }

    /// What it is, a line.
    pub fn title(&self) -> String {
        let link = |link: &Link| {
            let mut text = format!("{} {:.0}/{:.0}", link.class.name, link.rate_mbps, link.rtt_ms);
            if let Some(loss) = link.loss {
                let _ = write!(text, " loses {loss:.1} %");
            }
            if let Some([_, time]) = link.dead {
                let _ = write!(text, " dead for {time:.0} s");
            }
            text
        };
        let all: Vec<String> = self.links.iter().map(link).collect();
        let shared = self
            .shared
            .map_or(String::new(), |[rate, _]| format!("; the first two share {rate:.0}"));
        format!("{}{shared}; buffer {:.1} MiB", all.join(", "), self.buffer_mib)
    }

    /// The scenario with the links of a set of bits.
    pub fn scenario(&self, set: u32) -> String {
        let used = || self.links.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        let names: Vec<String> = used().map(|(_, link)| format!("\"{}\"", link.name)).collect();
        let end = WARMUP_S + TIME_S;
        let mut text = format!(
            "name = \"mix-{:04}\"\ntitle = \"{}\"\nsource = \"docs/results/mixes.md\"\nwarmup = \"{WARMUP_S} s\"\n\
             duration = \"{TIME_S} s\"\ntest = \"mptcp\"\n",
            self.number,
            self.title()
        );
        let mut events = Vec::<(u64, String)>::new();
        if let Some([rate, queue]) = self.shared.filter(|_| set & 3 != 0) {
            text += &format!(
                "\n[links.shared]\nrate = \"{:.0} kbit/s\"\nqueue = \"{queue:.0} ms\"\n",
                1000.0 * rate
            );
        }
        for (slot, link) in used() {
            let Link { class, name, rate_mbps, rtt_ms, queue_ms, jitter_ms, holds, loss, dead } =
                link;
            text += &format!(
                "\n[links.{name}]\nrate = \"{:.0} kbit/s\"\nqueue = \"{queue_ms:.0} ms\"\njitter.normal = {{ max = \"{:.0} us\", \
                 mean = \"{:.0} us\", deviation = \"{:.0} us\", correlation = \"80 %\" }}\n",
                1000.0 * rate_mbps,
                3000.0 * jitter_ms,
                1000.0 * jitter_ms,
                500.0 * jitter_ms
            );
            text += &loss.map_or(String::new(), |loss| format!("loss = \"{loss:.2} %\"\n"));
            text += if class.wifi { "wifi = {}\n" } else { "" };
            let over = if self.shared.is_some() && slot < 2 { "\"shared\", " } else { "" };
            text += &format!(
                "\n[routes.{name}]\nlinks = [{over}\"{name}\"]\nrtt = \"{:.0} us\"\n",
                1000.0 * rtt_ms
            );
            let mut add = |at: f64, what: String| {
                events.push(((1000.0 * at) as u64, format!("link = \"{name}\", {what}")));
            };
            if let Some((factor, every)) = class.varies {
                let mut rng = rng::stream(SEED.into(), u64::from(8 * self.number) + slot as u64);
                let mut at = every;
                while at < end {
                    let times = between([1.0 / factor, factor], rng::uniform_f64(&mut rng));
                    add(at, format!("rate = \"{:.0} kbit/s\"", 1000.0 * rate_mbps * times));
                    at += every;
                }
            }
            if let Some([time, every]) = *holds {
                let mut at = every;
                while at < end {
                    add(at, format!("hold = \"{time:.0} ms\""));
                    at += every;
                }
            }
            if let Some([from, time]) = *dead {
                add(from, "up = false".into());
                add(from + time, "up = true".into());
            }
        }
        text += &format!(
            "\n[flows.mptcp]\nkind = \"mptcp\"\nroutes = [{}]\ncc = \"gcubic+xcorr\"\nsend_buffer = \"{} MiB\"\n\
             recv_buffer = \"{:.0} kB\"\n",
            names.join(", "),
            4 * names.len(),
            1048.576 * self.buffer_mib
        );
        let together = self.shared.is_some() && set & 3 == 3;
        let groups = match together {
            true => [vec![names[..2].join(", ")], names[2..].to_vec()].concat(),
            false => names,
        };
        text += &format!("\n[[phases]]\nstart = \"0 s\"\ngroups = [[{}]]\n", groups.join("], ["));
        events.sort();
        for (at, what) in events {
            let lines = what.replace(", ", "\n");
            text += &format!("\n[[events]]\nat = \"{at} ms\"\n{lines}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, parse};

    use super::*;

    #[test]
    fn every_set_of_links_of_a_mix_is_a_scenario_and_no_two_are_alike() {
        let mut seen = std::collections::BTreeSet::new();
        for number in (0..COUNT).step_by(23) {
            let mix = Mix::new(number);
            let all = (1 << mix.links.len()) - 1;
            for set in 1..=all {
                let text = mix.scenario(set);
                let found = parse(&text, &Edits::default());
                let scenario = found.unwrap_or_else(|error| panic!("{number}: {error}\n{text}"));
                assert_eq!(scenario.flows[0].paths.len() as u32, set.count_ones(), "{number}");
                assert!(seen.insert(text), "{number}, {set:b}");
            }
        }
    }

    /// Of any 64 in a row from a multiple of 64, each eighth of a dimension has eight: that is what fills the space.
    #[test]
    fn the_first_mixes_fill_the_space_as_all_do() {
        let share = |of: u32, is: &dyn Fn(&Mix) -> bool| {
            f64::from((0..of).filter(|&number| is(&Mix::new(number))).count() as u32)
                / f64::from(of)
        };
        for count in [QUICK, COUNT] {
            let near = |is: &dyn Fn(&Mix) -> bool, expected: f64| {
                let found = share(count, is);
                assert!(
                    (found - expected).abs() < 0.025,
                    "of {count}: {found}, expected {expected}"
                );
            };
            near(&|mix| mix.links.len() == 2, 1.0 / 3.0);
            near(&|mix| mix.shared.is_some(), 0.25);
            near(&|mix| mix.links.iter().any(|link| link.loss.is_some()), 0.3);
            near(&|mix| mix.links.iter().any(|link| link.dead.is_some()), 0.2);
            near(&|mix| mix.links[0].class.name == "DSL", 1.0 / 6.0);
        }
    }
}
