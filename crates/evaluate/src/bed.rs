//! Networks of criteria, written as scenarios: links of one shape, a route over each, and flows.

use std::fmt::Write;

use narrows_papers::Ask;

/// The flow that is judged, whose control an [`Ask`] sets.
pub const LAW: &str = "law";

/// Bits of a packet of full size.
const PACKET_BITS: f64 = 12_000.0;
/// Loss cycles of a Reno flow that a run has at least where they are long.
const CYCLES: f64 = 2.0;
/// Random delay of senders: three packets at 20 Mbit/s. A scenario's own is three of the slowest link, which on a thin one are seconds.
const MOST_JITTER_MS: f64 = 1.8;

/// A link and the route over it, both by its name.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its rate, kbit/s.
    pub kbps: f64,
    /// Base RTT of the route, ms; a quarter is the link's.
    pub rtt_ms: f64,
    /// Its queue, in products of rate and RTT.
    pub bdp: f64,
    /// Its queue has at least so many packets.
    pub least_packets: f64,
    /// More fields, a line each: `loss = "1 %"`.
    pub more: String,
    /// The acknowledgements pass a link of their own, `NAME-back`.
    pub back: bool,
}

impl Link {
    /// A tail-drop link.
    pub fn new(name: &str, kbps: f64, rtt_ms: f64, bdp: f64) -> Link {
        let (name, more) = (name.into(), String::new());
        Link { name, kbps, rtt_ms, bdp, least_packets: 4.0, more, back: false }
    }

    /// The same with more fields.
    pub fn with(mut self, field: &str) -> Link {
        let _ = writeln!(self.more, "{field}");
        self
    }

    /// The same with a link for the acknowledgements.
    pub fn back(mut self) -> Link {
        self.back = true;
        self
    }

    /// What its queue adds when it is full, ms.
    pub fn full_ms(&self) -> f64 {
        self.queue() * PACKET_BITS / self.kbps
    }

    /// From loss to loss of a Reno flow with such a base RTT, one of so many with equal shares, s: half of its window grows by
    /// a packet in a round trip, of three quarters of the longest on average (RFC 5681, section 3.1).
    pub fn cycle_s(&self, flows: usize, rtt_ms: f64) -> f64 {
        let longest_ms = rtt_ms + self.full_ms();
        let window = self.kbps * longest_ms / PACKET_BITS / flows as f64;
        window / 2.0 * 0.75 * longest_ms / 1000.0
    }

    /// Its queue, packets.
    fn queue(&self) -> f64 {
        let product = self.kbps * self.rtt_ms / PACKET_BITS;
        libm::round(product * self.bdp).max(self.least_packets)
    }
}

/// A route as it is written.
#[derive(Clone, Debug)]
struct Route {
    name: String,
    links: Vec<String>,
    table: String,
}

impl Route {
    fn new(name: &str, links: &[&str], rtt_ms: f64, back: &str) -> Route {
        let over: Vec<String> = links.iter().map(|link| format!("\"{link}\"")).collect();
        let over = over.join(", ");
        let table = format!("[routes.{name}]\nlinks = [{over}]\n{back}rtt = \"{rtt_ms} ms\"\n");
        let links = links.iter().map(|&link| link.to_owned()).collect();
        Route { name: name.into(), links, table }
    }
}

/// A network with flows.
#[derive(Clone, Debug)]
pub struct Bed {
    warmup_s: f64,
    duration_s: f64,
    links: Vec<Link>,
    routes: Vec<Route>,
    flows: String,
    events: Vec<String>,
    ecn: bool,
    most_jitter_ms: f64,
    /// Of the judged flow.
    paths: usize,
}

/// A network with the judged flow under a control.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is run.
    pub ask: Ask,
    /// The control.
    pub control: String,
    /// How many paths the judged flow has.
    pub paths: usize,
}

impl Bed {
    /// Analysed for `duration_s` after `warmup_s`.
    pub fn new(warmup_s: f64, duration_s: f64) -> Bed {
        let (links, routes, flows, events) = (Vec::new(), Vec::new(), String::new(), Vec::new());
        let most_jitter_ms = MOST_JITTER_MS;
        let (ecn, paths) = (false, 0);
        Bed { warmup_s, duration_s, links, routes, flows, events, ecn, most_jitter_ms, paths }
    }

    /// One link, `l`.
    pub fn one(link: Link, warmup_s: f64, duration_s: f64) -> Bed {
        Bed::new(warmup_s, duration_s).link(link)
    }

    /// The same for two loss cycles of a Reno flow at least, each of so many s, and one before them.
    pub fn for_cycles_of(mut self, cycle_s: f64) -> Bed {
        self.warmup_s = self.warmup_s.max(libm::ceil(cycle_s));
        self.duration_s = self.duration_s.max(libm::ceil(CYCLES * cycle_s));
        self
    }

    /// A link, and the route of its name.
    pub fn link(mut self, link: Link) -> Bed {
        let back =
            if link.back { format!("back = [\"{}-back\"]\n", link.name) } else { String::new() };
        self.routes.push(Route::new(&link.name, &[&link.name], link.rtt_ms, &back));
        self.links.push(link);
        self
    }

    /// Another route, over links, with an RTT of its own, ms.
    pub fn route(mut self, name: &str, links: &[&str], rtt_ms: f64) -> Bed {
        self.routes.push(Route::new(name, links, rtt_ms, ""));
        self
    }

    /// A TCP flow from `start_s` on, with more fields: `source.file = { size = "1 MB" }`.
    pub fn tcp(mut self, name: &str, route: &str, cc: &str, start_s: f64, more: &str) -> Bed {
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        let _ = writeln!(
            self.flows,
            "{name} = {{ kind = \"tcp\", routes = [\"{route}\"], cc = \"{cc}\", start = \"{start_s} s\"{more} }}"
        );
        self
    }

    /// So many greedy TCP flows `NAME1`, `NAME2`, ... of a control; they start within a second.
    pub fn tcps(self, count: usize, name: &str, route: &str, cc: &str) -> Bed {
        (1..=count).fold(self, |bed, number| {
            let start_s = 0.5 + libm::floor(1000.0 * number as f64 / count as f64) / 1000.0;
            bed.tcp(&format!("{name}{number}"), route, cc, start_s, "")
        })
    }

    /// A connection over several routes, with more fields.
    pub fn mptcp(
        mut self,
        name: &str,
        routes: &[String],
        cc: &str,
        start_s: f64,
        more: &str,
    ) -> Bed {
        let routes: Vec<String> = routes.iter().map(|route| format!("\"{route}\"")).collect();
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        let _ = writeln!(
            self.flows,
            "{name} = {{ kind = \"mptcp\", routes = [{}], cc = \"{cc}\", scheduler = \"min-rtt\", start = \"{start_s} s\"{more} }}",
            routes.join(", ")
        );
        self
    }

    /// A datagram flow of constant packets of 1000 B at a mean rate, kbit/s.
    pub fn udp(mut self, name: &str, route: &str, kbps: f64, start_s: f64) -> Bed {
        let pps = kbps / 8.0;
        let _ = writeln!(
            self.flows,
            "{name} = {{ kind = \"udp\", routes = [\"{route}\"], source.rate = {{ mean = \"{pps} packets/s\", size = {{ constant = \"1000 B\" }} }}, start = \"{start_s} s\" }}"
        );
        self
    }

    /// Media whose rate adapts, within the rates of RFC 8698: by `nada` or `scream`.
    pub fn media(mut self, name: &str, route: &str, source: &str, start_s: f64) -> Bed {
        let _ = writeln!(
            self.flows,
            "{name} = {{ kind = \"udp\", routes = [\"{route}\"], source = \"{source}\", start = \"{start_s} s\" }}"
        );
        self
    }

    /// Something happens: `link = "l"` and `up = false`, a line each.
    pub fn event(mut self, at_s: f64, what: &[&str]) -> Bed {
        self.events.push(format!("[[events]]\nat = \"{at_s} s\"\n{}\n", what.join("\n")));
        self
    }

    /// Senders have less jitter, at most so many ms.
    pub fn steady(mut self, most_jitter_ms: f64) -> Bed {
        self.most_jitter_ms = most_jitter_ms;
        self
    }

    /// All end points use ECN.
    pub fn ecn(mut self) -> Bed {
        self.ecn = true;
        self
    }

    /// The judged flow as TCP over a route.
    pub fn law_on(mut self, route: &str, start_s: f64, more: &str) -> Bed {
        self.paths = 1;
        self.tcp(LAW, route, "reno", start_s, more)
    }

    /// The judged flow as a connection over several routes.
    pub fn law_over(mut self, routes: &[String], start_s: f64, more: &str) -> Bed {
        self.paths = routes.len();
        self.mptcp(LAW, routes, "reno", start_s, more)
    }

    /// The scenario, without the routes that no flow takes, their links and what happens to these.
    fn toml(&self) -> String {
        let mut text = String::from(
            "name = \"bcp133\"\ntitle = \"a network of the evaluation\"\nsource = \"our choice: RFC 9743 gives none\"\n",
        );
        let (warmup, duration) = (self.warmup_s, self.duration_s);
        let _ = writeln!(
            text,
            "warmup = \"{warmup} s\"\nduration = \"{duration} s\"\ntest = \"{LAW}\""
        );
        let taken = |route: &&Route| self.flows.contains(&format!("\"{}\"", route.name));
        let routes: Vec<&Route> = self.routes.iter().filter(taken).collect();
        let crossed = |link: &&Link| routes.iter().any(|route| route.links.contains(&link.name));
        let slowest = self.links.iter().filter(crossed).map(|link| link.kbps);
        let packet_ms = PACKET_BITS / slowest.fold(f64::INFINITY, f64::min);
        let jitter = libm::round(1e6 * (self.most_jitter_ms / packet_ms).min(3.0)) / 1e6;
        let _ = writeln!(text, "jitter = \"{jitter} packets\"");
        // RFC 5681's delayed acknowledgements for TCP as for MPTCP, which Linux 6.6 changed for TCP alone.
        let _ = writeln!(text, "[tcp]\nreceiver_acks = \"linux-6.5\"\necn = {}", self.ecn);
        for link in self.links.iter().filter(crossed) {
            let Link { name, kbps, rtt_ms, more, back, .. } = link;
            let rate = if more.contains("trace") {
                String::new()
            } else {
                format!("rate = \"{kbps} kbit/s\"\n")
            };
            let queue = link.queue();
            let delay = rtt_ms / 4.0;
            let _ = write!(
                text,
                "[links.{name}]\n{rate}delay = \"{delay} ms\"\nqueue = \"{queue} packets\"\n{more}"
            );
            if *back {
                let _ = write!(
                    text,
                    "[links.{name}-back]\nrate = \"10 Gbit/s\"\ndelay = \"{delay} ms\"\n"
                );
            }
        }
        routes.iter().for_each(|route| text += &route.table);
        let _ = write!(text, "[flows]\n{}", self.flows);
        let idle: Vec<&Link> = self.links.iter().filter(|link| !crossed(link)).collect();
        let of_idle = |event: &&String| {
            idle.iter().any(|link| event.contains(&format!("link = \"{}\"", link.name)))
        };
        self.events.iter().filter(|event| !of_idle(event)).for_each(|event| text += event);
        text
    }

    /// Runs with the judged flow under a control.
    pub fn run(&self, control: &str) -> Run {
        let (ask, paths) = (Ask::made(self.toml(), [control]), self.paths);
        Run { ask, control: control.into(), paths }
    }
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, parse};

    use super::*;

    /// Half of 700 packets grows by one in each round trip of 630 ms.
    #[test]
    fn a_loss_cycle_is_that_of_reno() {
        let deep = Link::new("l", 10_000.0, 40.0, 20.0);
        assert!((deep.cycle_s(1, 40.0) - 220.5).abs() < 1.0, "{}", deep.cycle_s(1, 40.0));
        assert!((deep.cycle_s(2, 40.0) - 110.25).abs() < 0.5);
        let bed = Bed::one(deep.clone(), 20.0, 60.0).for_cycles_of(deep.cycle_s(1, 40.0));
        assert_eq!((bed.warmup_s, bed.duration_s), (221.0, 442.0));
    }

    /// On a thin link three packets take seconds.
    #[test]
    fn senders_have_little_jitter_at_any_rate() {
        for (kbps, us) in [(10.0, 1_800), (10_000.0, 1_800), (20_000.0, 1_800), (100_000.0, 360)] {
            let bed = Bed::one(Link::new("l", kbps, 200.0, 1.0), 1.0, 1.0).law_on("l", 0.0, "");
            let scenario = parse(&bed.toml(), &Edits::default()).unwrap();
            let jitter = scenario.flows[0].paths[0].access_jitter / 1000;
            assert!(jitter.abs_diff(us) <= 2, "{jitter} us at {kbps} kbit/s");
        }
    }
}
