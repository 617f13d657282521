//! The page of a run.

use narrows_net::Nanos;
use narrows_report::{
    COLOURS, Colour, Curve, Event, Kind, Lane, Lanes, Line, Network, NetworkLink, Page, Part, Plot,
    Route, Section, Span, Tile, Timeline,
};

use super::{facts, table};
use crate::describe::{describe_event, describe_link};
use crate::detection::{Found, Judged, Truth};
use crate::host_id::HostId;
use crate::measured::seconds;
use crate::provenance::Provenance;
use crate::recorder::Run;
use crate::scenario::{Flow, Scenario};
use crate::series::Sample;
use crate::table::{Lines, connection_lines, detection_lines, link_lines, passive_lines};
use crate::units::{show_rate, show_time};
use crate::watched::Count;

/// Curves of a plot, lanes and routes at most; what is more is in the series.
const MOST: usize = 14;
/// Of them shown without being asked for.
const SHOWN: usize = 8;

/// In place of a control.
const NO_TEST: &str = "no connection under test";

/// The page of `run`, whose series was recorded, of `scenario`.
pub fn run(provenance: &Provenance, scenario: &Scenario, run: &Run) -> Page {
    Page {
        command: provenance.command_line(),
        facts: facts(provenance, about(scenario, run)),
        ..shown(scenario, run)
    }
}

/// What the run is of.
fn about(scenario: &Scenario, run: &Run) -> Vec<(&'static str, String)> {
    let summary = &run.summary;
    let cc = summary.cc.as_deref().unwrap_or(NO_TEST);
    let host = summary.host;
    let on = if host == HostId::SIM { "the simulator".into() } else { host.to_string() };
    let settings = summary.setup.as_ref().map(|setup| setup.show());
    let settings = settings.filter(|text| !text.is_empty()).unwrap_or_else(|| "none".into());
    let warmup = match scenario.warmup {
        0 => String::new(),
        warmup => format!(" after {} of warm-up", show_time(warmup)),
    };
    let mut more = vec![
        ("scenario", scenario.name.clone()),
        ("congestion control", cc.to_owned()),
        ("host", on),
        ("seed", summary.seed.to_string()),
        ("time", show_time(scenario.duration) + &warmup),
        ("changed settings", settings),
    ];
    let hash = summary.setup.as_ref().map(|setup| setup.scenario_sha256.clone());
    more.extend(hash.map(|hash| ("scenario sha256", hash[..16.min(hash.len())].to_owned())));
    more
}

/// The same page without where it comes from: neither command nor facts.
pub fn shown(scenario: &Scenario, run: &Run) -> Page {
    let cc = run.summary.cc.as_deref().unwrap_or(NO_TEST);
    let shown = Shown::of(scenario, run);
    let sections =
        [Some(network(scenario)), groups(scenario, &run.decisions), shown.over_time(scenario, run)];
    Page {
        title: format!("{} under {cc}", scenario.name),
        lead: scenario.title.clone(),
        tiles: tiles(run),
        timeline: timeline(scenario),
        sections: sections.into_iter().flatten().chain([tables(scenario, run)]).collect(),
        ..Page::default()
    }
}

fn timeline(scenario: &Scenario) -> Timeline {
    let event = |event: &crate::scenario::Event| Event {
        at: seconds(event.at),
        what: describe_event(scenario, event),
    };
    Timeline {
        end: seconds(scenario.end()),
        warmup: seconds(scenario.warmup),
        events: scenario.events.iter().map(event).collect(),
    }
}

fn tiles(run: &Run) -> Vec<Tile> {
    let Some(test) = &run.summary.test else { return Vec::new() };
    let tile = |name: &str, value: String, about: &str| Tile {
        name: name.into(),
        value,
        about: about.into(),
    };
    let mut tiles = vec![tile(
        "goodput",
        format!("{:.2} Mbit/s", test.goodput_mbps),
        "of the connection under test",
    )];
    tiles.extend(test.ratio_to_tcp.map(|ratio| {
        tile("ratio to TCP", format!("{ratio:.2}"), "its goodput over that of its rivals")
    }));
    tiles.extend(test.accuracy.map(|accuracy| {
        tile("right decisions", format!("{:.0} %", 100.0 * accuracy), "of its detector")
    }));
    tiles.push(tile(
        "queueing delay",
        format!("{:.0} / {:.0} ms", test.p50_queue_ms, test.p95_queue_ms),
        "median and 95 % quantile over packets",
    ));
    tiles.push(tile("Jain's index", format!("{:.3}", test.jain), "1 is equal shares"));
    tiles.push(tile("sent again", test.retransmits.to_string(), "segments"));
    tiles
}

/// Links and the routes of the flows that are listed.
fn network(scenario: &Scenario) -> Section {
    let name = |link: usize| scenario.links[link].config.name.as_str();
    let order = order(scenario);
    let mut routes = Vec::new();
    let mut described = Vec::new();
    for &flow in &order {
        let of = &scenario.flows[flow];
        for (path, route) in of.paths.iter().enumerate() {
            let through: Vec<&str> = route.links.iter().map(|&link| name(link)).collect();
            let label = label(scenario, flow, path);
            described.push(format!("{label} through {}", through.join(", ")));
            routes.push(Route {
                name: label,
                links: route.links.clone(),
                colour: Colour::Number(routes.len()),
                minor: scenario.test.is_some_and(|test| test != flow),
            });
        }
    }
    let all = routes.len();
    routes.truncate(MOST);
    let background = scenario.flows.iter().filter(|flow| flow.background).count();
    let mut about = "From the senders on the left to the receivers on the right.".to_owned();
    if all > MOST {
        about += &format!(" {} more routes are not drawn.", all - MOST);
    }
    if background > 0 {
        about += &format!(" {background} background flows are not drawn.");
    }
    // Only links that something drawn crosses.
    let mut used: Vec<usize> =
        routes.iter().flat_map(|route| route.links.iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    for route in &mut routes {
        for link in &mut route.links {
            *link = used.binary_search(link).unwrap_or_default();
        }
    }
    let link = |&link: &usize| {
        let of = &scenario.links[link];
        NetworkLink {
            name: of.config.name.clone(),
            about: format!("{}, {}", show_rate(of.mean_rate()), show_time(of.config.delay)),
            whole: describe_link(of),
        }
    };
    let links = used.iter().map(link).collect();
    let network = Network { about: described.join("; "), links, routes };
    Section { title: "Network".into(), about, parts: vec![Part::Network(network)] }
}

/// A path of a flow, as plots name it: one of the connection under test by its own name.
fn label(scenario: &Scenario, flow: usize, path: usize) -> String {
    let of = &scenario.flows[flow];
    match of.paths.len() {
        1 => of.name.clone(),
        _ if scenario.test == Some(flow) => of.paths[path].name.clone(),
        _ => format!("{} {}", of.name, of.paths[path].name),
    }
}

/// The flows that are listed: the connection under test, its rivals, the others.
fn order(scenario: &Scenario) -> Vec<usize> {
    let listed = |flow: &usize| !scenario.flows[*flow].background;
    let mut order: Vec<usize> = (0..scenario.flows.len()).filter(listed).collect();
    let rival = |flow: usize| scenario.rivals.iter().any(|rival| rival.flow == flow);
    order.sort_by_key(|&flow| (scenario.test != Some(flow), !rival(flow)));
    order
}

/// When a decision holds, and what it is.
fn groups(scenario: &Scenario, decisions: &[Judged]) -> Option<Section> {
    let first = decisions.first()?;
    let truth = Truth(scenario);
    let paths: Vec<&str> = truth.flow().paths.iter().map(|path| path.name.as_str()).collect();
    if first.places.len() != paths.len() {
        return None;
    }
    let end = seconds(scenario.end());
    let until = decisions.iter().skip(1).map(|decision| decision.time_s).chain([end]);
    let held: Vec<(&Judged, f64)> = decisions.iter().zip(until).collect();
    let spans = |of: &dyn Fn(&Judged) -> (Kind, String)| -> Vec<Span> {
        let span = |&(decision, to): &(&Judged, f64)| {
            let (kind, what) = of(decision);
            Span { from: decision.time_s, to, kind, what }
        };
        held.iter().map(span).collect()
    };
    let mut lanes = Vec::new();
    let pairs = |decision: &Judged| truth.there(nanos(decision.time_s)).len() > 1;
    if decisions.iter().any(|decision| decision.correct.is_some() && pairs(decision)) {
        let judged = |decision: &Judged| {
            if !pairs(decision) {
                return (Kind::Absent, "one path alone".into());
            }
            let kind = verdict(truth, decision);
            let what = match kind {
                Kind::Right => "right",
                Kind::Wrong => "wrong",
                _ => "undecided",
            };
            (kind, what.to_owned())
        };
        lanes.push(Lane::new("verdict", spans(&judged)));
    }
    for (path, name) in paths.iter().enumerate() {
        let found = |decision: &Judged| {
            let time = nanos(decision.time_s);
            match decision.places[path] {
                _ if truth.opened(path, time).is_none() => (Kind::Absent, "not there".into()),
                Found::Clear => (Kind::Clear, "not congested".into()),
                Found::Undecided => (Kind::Undecided, "undecided".into()),
                Found::Group(_) => {
                    let with = |other: usize| decision.places[other] == decision.places[path];
                    together(&paths, path, &with)
                }
            }
        };
        let lane = Lane::new(*name, spans(&found));
        lanes.push(if path == 0 { lane.under("found by the detector") } else { lane });
    }
    if !scenario.phases.is_empty() {
        for (path, name) in paths.iter().enumerate() {
            let span = |(start, stop): (Nanos, Nanos)| {
                let right = truth.right(start)?;
                let (kind, what) = together(&paths, path, &|other| right[other] == right[path]);
                Some(Span { from: seconds(start), to: seconds(stop), kind, what })
            };
            let lane = Lane::new(*name, truth.phases().filter_map(span));
            lanes.push(if path == 0 { lane.under("true groups of the scenario") } else { lane });
        }
    }
    let about = "Each decision holds until the next. Wrong: it puts two paths together that are apart, or apart \
                 that are together. Undecided: a path has no place yet, and the others have the right one. \
                 Decisions in the warm-up are shown, but no metric counts them.";
    let lanes = Lanes { title: "Groups of paths over time".into(), about: about.into(), lanes };
    let about =
        "Which paths the detector of the connection under test takes to share a bottleneck.";
    Some(Section {
        title: "Decisions".into(),
        about: about.into(),
        parts: vec![Part::Lanes(lanes)],
    })
}

/// The group of a path by the number of its first, and who else is in it.
fn together(paths: &[&str], path: usize, with: &dyn Fn(usize) -> bool) -> (Kind, String) {
    let first = (0..paths.len()).find(|&other| with(other)).unwrap_or(path);
    let others: Vec<&str> = (0..paths.len())
        .filter(|&other| other != path && with(other))
        .map(|other| paths[other])
        .collect();
    let what =
        if others.is_empty() { "alone".into() } else { format!("with {}", others.join(", ")) };
    (Kind::Group(first), what)
}

/// Is a decision right, wrong of two paths, or does it lack a path?
fn verdict(truth: Truth, decision: &Judged) -> Kind {
    if decision.correct == Some(true) {
        return Kind::Right;
    }
    let time = nanos(decision.time_s);
    let phase = truth.phases().find(|(start, end)| (*start..*end).contains(&time));
    let Some(right) = phase.and_then(|(start, _)| truth.right(start)) else {
        return Kind::Undecided;
    };
    let placed = |&path: &usize| decision.places[path] != Found::Undecided;
    let there: Vec<usize> = truth.there(time).into_iter().filter(placed).collect();
    let as_found = |i: usize, j: usize| {
        matches!(decision.places[i], Found::Group(_)) && decision.places[i] == decision.places[j]
    };
    let wrong =
        crate::detection::pairs(&there).any(|(i, j)| as_found(i, j) != (right[i] == right[j]));
    if wrong { Kind::Wrong } else { Kind::Undecided }
}

/// A path whose series is shown.
struct Row {
    flow: usize,
    path: usize,
    /// Its samples, one at each time.
    samples: Vec<Sample>,
}

/// The paths whose series are shown, those of the connection under test first.
struct Shown {
    rows: Vec<Row>,
    left_out: usize,
}

impl Shown {
    /// Sorts the series by path. It has all paths at each time, in the order of the scenario.
    fn of(scenario: &Scenario, run: &Run) -> Shown {
        let sampled = |flow: &Flow| !flow.background && flow.has_feedback();
        let mut rows = Vec::new();
        for (flow, of) in scenario.flows.iter().enumerate().filter(|(_, flow)| sampled(flow)) {
            rows.extend((0..of.paths.len()).map(|path| Row { flow, path, samples: Vec::new() }));
        }
        let width = rows.len().max(1);
        for (index, sample) in run.series.iter().enumerate() {
            if let Some(row) = rows.get_mut(index % width) {
                row.samples.push(sample.clone());
            }
        }
        let order = order(scenario);
        rows.sort_by_key(|row| order.iter().position(|&flow| flow == row.flow));
        let left_out = rows.len().saturating_sub(MOST);
        rows.truncate(MOST);
        Shown { rows, left_out }
    }

    /// A curve of each path.
    fn curves(&self, scenario: &Scenario, value: impl Fn(&Sample) -> Option<f64>) -> Vec<Curve> {
        let curve = |(number, row): (usize, &Row)| {
            let other = scenario.test.is_some_and(|test| test != row.flow);
            // A path whose address is lost has no state to speak of.
            let there = |sample: &&Sample| {
                let time = nanos(sample.time_s);
                scenario.test != Some(row.flow) || Truth(scenario).opened(row.path, time).is_some()
            };
            let y = row.samples.iter().map(|sample| Some(sample).filter(there).and_then(&value));
            Curve {
                line: match other {
                    true => Line::Dashed,
                    // Its colour stands for another one too.
                    false if number >= COLOURS => Line::Dotted,
                    false => Line::Solid,
                },
                hidden: number >= SHOWN,
                ..Curve::new(
                    label(scenario, row.flow, row.path),
                    Colour::Number(number),
                    y.collect(),
                )
            }
        };
        self.rows.iter().enumerate().map(curve).collect()
    }

    fn over_time(&self, scenario: &Scenario, run: &Run) -> Option<Section> {
        let x: Vec<f64> = self.rows.first()?.samples.iter().map(|sample| sample.time_s).collect();
        if x.is_empty() {
            return None;
        }
        let plot = |title: &str, about: &str, label: &str, unit: &str, smooth, curves| {
            Part::Plot(Plot {
                title: title.into(),
                about: about.into(),
                x_label: "time, s".into(),
                y_label: label.into(),
                unit: unit.into(),
                over_time: true,
                smooth,
                top: None,
                x: x.clone(),
                curves,
            })
        };
        // Before its first measurement a path has no RTT and no window to speak of.
        let begun = |sample: &Sample| sample.srtt_ms.is_some();
        let mut goodput = self.curves(scenario, |sample| {
            sample.goodput_mbps.filter(|&rate| begun(sample) || rate > 0.0)
        });
        goodput.extend(self.total(scenario));
        let mut windows =
            self.curves(scenario, |s| s.cwnd_packets.filter(|_| begun(s)).map(f64::from));
        let thresholds = self.curves(scenario, |sample| {
            sample.ssthresh_packets.filter(|_| begun(sample)).map(f64::from)
        });
        // Of few paths they can be told apart.
        let few = thresholds.iter().filter(|curve| curve.line == Line::Solid).count() <= 2;
        windows.extend(thresholds.into_iter().map(|curve| Curve {
            name: format!("{} ssthresh", curve.name),
            hidden: !few || curve.line != Line::Solid,
            line: Line::Dotted,
            steps: true,
            ..curve
        }));
        let rtt = self.curves(scenario, |sample| sample.srtt_ms);
        let mut parts: Vec<Part> = events(scenario).into_iter().collect();
        parts.extend([
            plot(
                "Goodput",
                "Payload acknowledged on each path, samples of 100 ms: their mean between the least and the greatest.",
                "goodput",
                "Mbit/s",
                true,
                goodput,
            ),
            plot(
                "Congestion window",
                "Of each path; dotted: its slow start threshold, none before the first loss.",
                "window",
                "packets",
                false,
                windows,
            ),
        ]);
        parts.extend(self.losses(scenario, run).map(Part::Lanes));
        parts.push(plot(
            "Smoothed RTT",
            "Of each path, the mean between the least and the greatest.",
            "smoothed RTT",
            "ms",
            true,
            rtt,
        ));
        let watched = &run.watched;
        if watched.time_s.len() == x.len() {
            let curve = |(number, link): (usize, usize)| {
                let queue = &watched.links[link].queue_ms;
                let name = scenario.links[link].config.name.clone();
                Curve {
                    hidden: number >= SHOWN,
                    ..Curve::new(
                        name,
                        Colour::Number(number),
                        queue.iter().copied().map(Some).collect(),
                    )
                }
            };
            let links = self.links(scenario);
            parts.push(plot(
                "Queues",
                "How long a packet that came then would wait at each link, the mean between the least and the greatest.",
                "queueing delay",
                "ms",
                true,
                links.into_iter().enumerate().map(curve).collect(),
            ));
        }
        let mut about = "Drag over a plot to zoom in all of them, double-click to see all again. Keys of a plot in focus: \
                         arrows, plus, minus, 0.".to_owned();
        if scenario.warmup > 0 {
            about += " The warm-up is shaded; no metric counts it.";
        }
        if scenario.test.is_some() {
            about += " Dashed: the other connections.";
        }
        if self.left_out > 0 {
            about += &format!(" {} more paths are in series.csv (--out).", self.left_out);
        }
        Some(Section { title: "Over time".into(), about, parts })
    }

    /// The sum over the paths of the connection under test, if it has several.
    fn total(&self, scenario: &Scenario) -> Option<Curve> {
        let test = scenario.test?;
        let own: Vec<&Row> = self.rows.iter().filter(|row| row.flow == test).collect();
        if own.len() < 2 || own.len() != scenario.flows[test].paths.len() {
            return None;
        }
        let sum = |at: usize| {
            let begun = own.iter().any(|row| row.samples[at].srtt_ms.is_some());
            begun.then(|| own.iter().filter_map(|row| row.samples[at].goodput_mbps).sum())
        };
        let y = (0..own[0].samples.len()).map(sum).collect();
        let name = format!("{} in all", scenario.flows[test].name);
        Some(Curve { hidden: true, ..Curve::new(name, Colour::Ink, y) })
    }

    /// The links that these paths cross, in the order of the scenario.
    fn links(&self, scenario: &Scenario) -> Vec<usize> {
        let mut links = Vec::new();
        for row in &self.rows {
            for &link in &scenario.flows[row.flow].paths[row.path].links {
                if !links.contains(&link) {
                    links.push(link);
                }
            }
        }
        links.truncate(MOST);
        links.sort_unstable();
        links
    }

    /// What was sent again on each path and dropped at each link.
    fn losses(&self, scenario: &Scenario, run: &Run) -> Option<Lanes> {
        let watched = &run.watched;
        let lane = |name: String, colour: Colour, count: &Count| {
            let times = watched.time_s.iter();
            let before = [0.0].iter().chain(&watched.time_s);
            let lost = times.zip(before).zip(&count.since).filter(|(_, lost)| **lost > 0);
            let span = |((&to, &from), &lost): ((&f64, &f64), &u64)| Span {
                from,
                to,
                kind: Kind::Lost(lost),
                what: String::new(),
            };
            let spans: Vec<Span> = lost.map(span).collect();
            (!spans.is_empty()).then_some(Lane { name, heading: None, colour, spans })
        };
        let under = |lanes: Vec<Lane>, heading: &str| {
            let under = |(number, lane): (usize, Lane)| {
                if number == 0 { lane.under(heading) } else { lane }
            };
            lanes.into_iter().enumerate().map(under).collect::<Vec<_>>()
        };
        let of_path = |(number, row): (usize, &Row)| {
            let count = watched.retransmits.get(row.flow)?.get(row.path)?;
            lane(label(scenario, row.flow, row.path), Colour::Number(number), count)
        };
        let of_link = |link: usize| {
            let drops = &watched.links.get(link)?.drops;
            lane(scenario.links[link].config.name.clone(), Colour::Muted, drops)
        };
        let mut lanes = under(
            self.rows.iter().enumerate().filter_map(of_path).collect(),
            "segments sent again",
        );
        let dropped = self.links(scenario).into_iter().filter_map(of_link).collect();
        lanes.extend(under(dropped, "packets dropped at links"));
        let about = "In each 100 ms, in a long run in longer parts; the more, the higher.";
        let lanes = Lanes { title: "Losses".into(), about: about.into(), lanes };
        (!lanes.lanes.is_empty()).then_some(lanes)
    }
}

/// What happens, by the numbers that plots have.
fn events(scenario: &Scenario) -> Option<Part> {
    let event = |(number, event): (usize, &crate::scenario::Event)| {
        let what = describe_event(scenario, event);
        vec![(1 + number).to_string(), seconds(event.at).to_string(), what]
    };
    let heads = ["event", "at, s", "what"].map(|head| (head.to_owned(), String::new())).to_vec();
    let lines: Vec<_> = scenario.events.iter().enumerate().map(event).collect();
    let about = "Marked in the plots by their numbers.";
    let lines = Lines { heads, left: 3, lines };
    (!lines.lines.is_empty()).then(|| Part::Table(table("Events", about, lines)))
}

fn tables(scenario: &Scenario, run: &Run) -> Section {
    let summary = &run.summary;
    let (connections, background) = connection_lines(scenario, summary);
    let background = background.unwrap_or_default();
    let mut parts = vec![
        Part::Table(table("Connections and their paths", &background, connections)),
        Part::Table(table("Links", "", link_lines(summary))),
    ];
    let more = [
        ("Decisions of the detector, by phase", detection_lines(summary)),
        ("Passive detectors", passive_lines(summary)),
    ];
    for (title, lines) in more {
        parts.extend(lines.map(|lines| Part::Table(table(title, "", lines))));
    }
    if let Some(fitness) = &summary.fitness {
        let text = crate::table::show_fitness(fitness);
        parts.push(Part::Text { title: "How well real time was kept".into(), text });
    }
    if !run.notes.is_empty() {
        parts.push(Part::Text { title: "Notes".into(), text: run.notes.join("\n") });
    }
    parts.push(Part::Text { title: "The whole scenario".into(), text: scenario.text() });
    Section { title: "Results".into(), about: "Over the analysed time.".into(), parts }
}

/// Seconds of a result in the model's time: 8.2 s is not one nanosecond less.
fn nanos(time_s: f64) -> Nanos {
    libm::round(time_s * 1e9) as Nanos
}
