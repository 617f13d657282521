//! Networks of criteria, written as scenarios: links of one shape, a route over each, and flows.

use std::fmt::Write;

use narrows_papers::Ask;

/// The flow that is judged, whose control an [`Ask`] sets.
pub const LAW: &str = "law";

/// Bits of a packet of full size.
const PACKET_BITS: f64 = 12_000.0;

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

    /// Its queue, packets.
    fn queue(&self) -> f64 {
        let product = self.kbps * self.rtt_ms / PACKET_BITS;
        libm::round(product * self.bdp).max(self.least_packets)
    }
}

/// A network with flows.
#[derive(Clone, Debug)]
pub struct Bed {
    warmup_s: f64,
    duration_s: f64,
    links: Vec<Link>,
    /// Name, link and table.
    routes: Vec<[String; 3]>,
    flows: String,
    events: Vec<String>,
    ecn: bool,
}

impl Bed {
    /// Analysed for `duration_s` after `warmup_s`.
    pub fn new(warmup_s: f64, duration_s: f64) -> Bed {
        let (links, routes, flows, events) = (Vec::new(), Vec::new(), String::new(), Vec::new());
        Bed { warmup_s, duration_s, links, routes, flows, events, ecn: false }
    }

    /// One link, `l`.
    pub fn one(link: Link, warmup_s: f64, duration_s: f64) -> Bed {
        Bed::new(warmup_s, duration_s).link(link)
    }

    /// A link, and the route of its name.
    pub fn link(mut self, link: Link) -> Bed {
        let back =
            if link.back { format!("back = [\"{}-back\"]\n", link.name) } else { String::new() };
        let (name, rtt_ms) = (link.name.clone(), link.rtt_ms);
        let table = format!("[routes.{name}]\nlinks = [\"{name}\"]\n{back}rtt = \"{rtt_ms} ms\"\n");
        self.routes.push([name.clone(), name, table]);
        self.links.push(link);
        self
    }

    /// Another route over a link, with an RTT of its own, ms.
    pub fn route(mut self, name: &str, link: &str, rtt_ms: f64) -> Bed {
        let table = format!("[routes.{name}]\nlinks = [\"{link}\"]\nrtt = \"{rtt_ms} ms\"\n");
        self.routes.push([name.into(), link.into(), table]);
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

    /// Something happens: `link = "l"` and `up = false`, a line each.
    pub fn event(mut self, at_s: f64, what: &[&str]) -> Bed {
        self.events.push(format!("[[events]]\nat = \"{at_s} s\"\n{}\n", what.join("\n")));
        self
    }

    /// All end points use ECN.
    pub fn ecn(mut self) -> Bed {
        self.ecn = true;
        self
    }

    /// The judged flow as TCP over a route.
    pub fn law_on(self, route: &str, start_s: f64, more: &str) -> Bed {
        self.tcp(LAW, route, "reno", start_s, more)
    }

    /// The judged flow as a connection over several routes.
    pub fn law_over(self, routes: &[String], start_s: f64, more: &str) -> Bed {
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
        // RFC 5681's delayed acknowledgements for TCP as for MPTCP, which Linux 6.6 changed for TCP alone.
        let _ = writeln!(text, "[tcp]\nreceiver_acks = \"linux-6.5\"\necn = {}", self.ecn);
        let taken = |[name, ..]: &&[String; 3]| self.flows.contains(&format!("\"{name}\""));
        let routes: Vec<&[String; 3]> = self.routes.iter().filter(taken).collect();
        let crossed = |link: &&Link| routes.iter().any(|[_, of, _]| *of == link.name);
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
        routes.iter().for_each(|[.., table]| text += table);
        let _ = write!(text, "[flows]\n{}", self.flows);
        let idle: Vec<&Link> = self.links.iter().filter(|link| !crossed(link)).collect();
        let of_idle = |event: &&String| {
            idle.iter().any(|link| event.contains(&format!("link = \"{}\"", link.name)))
        };
        self.events.iter().filter(|event| !of_idle(event)).for_each(|event| text += event);
        text
    }

    /// Runs with the judged flow under a control.
    pub fn ask(&self, control: &str) -> Ask {
        Ask::made(self.toml(), [control])
    }
}
