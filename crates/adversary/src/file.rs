//! A network as the text of a scenario.

use std::fmt::Write;

use crate::network::{Change, DISCIPLINES, Link, Loss, Network, Rival, SCHEDULERS, What};

/// What a scenario says of itself.
pub struct Head<'a> {
    /// Its name.
    pub name: &'a str,
    /// A line for people.
    pub title: &'a str,
    /// Where it comes from.
    pub source: &'a str,
}

/// The scenario of a network: the connection under test is `mptcp`, its paths are `path1` and so on over
/// links `link1`; `rival` is the control of the TCP beside it, which is also what the connection has
/// unless `--cc` says otherwise.
pub fn text(network: &Network, rival: &str, head: &Head) -> String {
    let Head { name, title, source } = head;
    let Network { warmup_ms, time_ms, .. } = network;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |what: std::fmt::Arguments| writeln!(text, "{what}").unwrap_or_default();
    line(format_args!("name = {name:?}\ntitle = {title:?}\nsource = {source:?}"));
    line(format_args!(
        "warmup = \"{warmup_ms} ms\"\nduration = \"{time_ms} ms\"\ntest = \"mptcp\""
    ));
    for (n, link) in (1..).zip(&network.links) {
        line(format_args!("\n[links.link{n}]\n{}", self::link(link)));
    }
    for (n, path) in (1..).zip(&network.paths) {
        let link = path.link + 1;
        line(format_args!(
            "\n[routes.path{n}]\nlinks = [\"link{link}\"]\nrtt = \"{} ms\"",
            path.rtt_ms
        ));
    }
    for (n, Rival { link, rtt_ms, .. }) in (1..).zip(&network.rivals) {
        let link = link + 1;
        line(format_args!("\n[routes.rival{n}]\nlinks = [\"link{link}\"]\nrtt = \"{rtt_ms} ms\""));
    }
    line(format_args!("\n[flows.mptcp]\n{}", connection(network, rival)));
    let end = network.end_ms();
    for (n, Rival { active, .. }) in (1..).zip(&network.rivals) {
        line(format_args!(
            "\n[flows.rival{n}]\nkind = \"tcp\"\nroutes = [\"rival{n}\"]\ncc = \"{rival}\""
        ));
        if let Some([from, length]) = *active {
            let to = (from + length.max(1)).min(end);
            line(format_args!("active = [[\"{from} ms\", \"{to} ms\"]]"));
        }
    }
    if let Some((n, link)) = shared(network) {
        line(format_args!("\n[rivals]\nlink{} = \"rival{}\"", link + 1, n + 1));
    }
    for event in events(network) {
        line(format_args!("\n[[events]]\n{event}"));
    }
    text
}

/// The rival that is there all the time at the one link that all paths cross, and the link, if there
/// is.
fn shared(network: &Network) -> Option<(usize, usize)> {
    let link = network.paths[0].link;
    let meet = network.paths.iter().all(|path| path.link == link);
    let there = |rival: &Rival| rival.link == link && rival.active.is_none();
    let rival = network.rivals.iter().position(there).filter(|_| meet);
    rival.map(|rival| (rival, link))
}

fn link(link: &Link) -> String {
    let Link { kbps, queue, jitter_ms, .. } = link;
    let mut lines = vec![match link.trace {
        true => "trace = \"phone/lte.trace\"".to_owned(),
        false => format!("rate = \"{}\"", rate(*kbps)),
    }];
    lines.push(format!("queue = \"{queue} packets\""));
    if *jitter_ms > 0 {
        lines.push(format!("jitter = \"{jitter_ms} ms\""));
    }
    let percent = |of_10000: f64| format!("\"{} %\"", of_10000 / 100.0);
    match link.loss {
        Loss::No => {}
        Loss::Random(share) => lines.push(format!("loss = {}", percent(f64::from(share)))),
        // In the bad state all is lost, and it lasts for a burst: Gilbert's model.
        Loss::Bursts(length, share) => {
            let (length, share) = (f64::from(length.max(1)), f64::from(share) / 1e4);
            let leave = 1.0 / length;
            let enter = share / (1.0 - share) * leave;
            let round = |of: f64| percent(libm::round(of * 1e8) / 1e4);
            let (enter, leave) = (round(enter), round(leave));
            lines.push(format!("loss = {{ good_to_bad = {enter}, bad_to_good = {leave} }}"));
        }
    }
    if link.discipline > 0 {
        lines.push(format!("aqm = \"{}\"", DISCIPLINES[link.discipline % DISCIPLINES.len()]));
    }
    if let Some([share, delay]) = link.reorder {
        let share = percent(f64::from(share) * 10.0);
        lines.push(format!("reorder = {{ share = {share}, delay = \"{delay} ms\" }}"));
    }
    if let Some([kbps, burst]) = link.policer {
        lines.push(format!("policer = {{ rate = \"{}\", burst = \"{burst} kB\" }}", rate(kbps)));
    }
    if link.wifi {
        lines.push("wifi = {}".into());
    }
    lines.join("\n")
}

/// A rate in Mbit/s where that is shorter.
fn rate(kbps: u32) -> String {
    match kbps % 1000 {
        0 => format!("{} Mbit/s", kbps / 1000),
        _ => format!("{kbps} kbit/s"),
    }
}

fn connection(network: &Network, cc: &str) -> String {
    let routes: Vec<String> = (1..=network.paths.len()).map(|n| format!("\"path{n}\"")).collect();
    let mut lines =
        vec![format!("kind = \"mptcp\"\nroutes = [{}]\ncc = \"{cc}\"", routes.join(", "))];
    if network.scheduler > 0 {
        lines.push(format!("scheduler = \"{}\"", SCHEDULERS[network.scheduler % SCHEDULERS.len()]));
    }
    if let Some(kb) = network.buffer_kb {
        lines.push(format!("send_buffer = \"{kb} kB\"\nrecv_buffer = \"{kb} kB\""));
    }
    if !network.pauses.is_empty() {
        let starts =
            std::iter::once(0).chain(network.pauses.iter().map(|[at, length]| at + length));
        let stops = network.pauses.iter().map(|pause| pause[0]).chain([network.end_ms()]);
        let period = |(start, stop)| format!("[\"{start} ms\", \"{stop} ms\"]");
        let periods: Vec<String> = starts.zip(stops).map(period).collect();
        lines.push(format!("active = [{}]", periods.join(", ")));
    }
    lines.join("\n")
}

/// The events of all changes, in the order of time.
fn events(network: &Network) -> Vec<String> {
    let mut events: Vec<(u32, String)> = Vec::new();
    for Change { at_ms, what } in &network.changes {
        let link = |of: &usize| format!("link = \"link{}\"", of + 1);
        let path =
            |verb: &str, of: &usize| format!("flow = \"mptcp\"\n{verb} = \"path{}\"", of + 1);
        match what {
            What::Down(of, length) => {
                events.push((*at_ms, format!("{}\nup = false", link(of))));
                events.push((at_ms + length.max(&1), format!("{}\nup = true", link(of))));
            }
            What::Rate(of, kbps) => {
                events.push((*at_ms, format!("{}\nrate = \"{}\"", link(of), rate(*kbps))));
            }
            What::Delay(of, ms) => {
                events.push((*at_ms, format!("{}\ndelay = \"{ms} ms\"", link(of))));
            }
            What::Leave(of, length) => {
                events.push((*at_ms, path("lose", of)));
                events.push((at_ms + length.max(&1), path("add", of)));
            }
        }
    }
    events.retain(|(at, _)| *at < network.end_ms());
    // Stable: what leaves and comes at the same time does so in the order of the changes.
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(at, what)| format!("at = \"{at} ms\"\n{what}")).collect()
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, Estimate, parse};

    use super::*;
    use crate::draw::Draw;

    #[test]
    fn every_random_network_is_a_scenario_of_the_size_that_was_asked_for() {
        let head = Head { name: "random", title: "", source: "" };
        for n in 0..2000 {
            let network = Network::random(&mut Draw::new(1, n), 200_000);
            let text = text(&network, "reno", &head);
            let scenario = parse(&text, &Edits::default());
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
            let hops = Estimate::of(&scenario).packet_hops;
            assert!(hops < 400_000.0, "{hops}\n{text}");
            assert_eq!(network.clone().valid(200_000), network);
        }
    }
}
