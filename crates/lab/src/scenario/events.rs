//! What changes at a given time of a run: links, addresses, applications.

use narrows_net::{Nanos, Rate, SECOND};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Fault, Flow, FlowKind, Link, PathManager, Scenario, file};
use crate::units::{BitRate, Time, show_time};

/// Longest delay of a link: an hour, as the network allows.
const MAX_DELAY: Nanos = 3600 * SECOND;

/// A change during the run, of a link or of a flow, in the order of time.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// When. What is not before the end of the run is left out.
    pub at: Time,
    /// Again after each such time, until the end. Default: once.
    every: Option<Time>,
    /// The link that changes, with `up`, `hold`, `rate` or `delay`.
    link: Option<String>,
    /// It goes up, or down and loses its packets.
    up: Option<bool>,
    /// It holds its packets for so long, as in a handover: they wait in its queue.
    hold: Option<Time>,
    /// Its new rate.
    rate: Option<BitRate>,
    /// Its new delay.
    delay: Option<Time>,
    /// The flow that changes, with `lose`, `add` or `on`.
    flow: Option<String>,
    /// A route whose address is lost: the subflow is closed at both ends.
    lose: Option<String>,
    /// Such a route that is available again.
    add: Option<String>,
    /// Its application is switched on or off.
    on: Option<bool>,
}

/// The events of `file` before the end, in the order of time. Those that switch an application are put into the
/// flows' times of activity.
pub fn events(
    file: &file::File,
    links: &[Link],
    flows: &mut [Flow],
    end: Nanos,
) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    for (at, index) in happening(file, end)? {
        let event = &file.events[index];
        let place = index.to_string();
        let fault = |field: &str, message: String| Fault::new(["events", &place, field], message);
        let of_link =
            [event.up.is_some(), event.hold.is_some(), event.rate.is_some(), event.delay.is_some()];
        let of_flow = [event.lose.is_some(), event.add.is_some(), event.on.is_some()];
        let whole = |message: &str| Fault::new(["events", &place], message);
        let mut add = |what| events.push((index, Event { at, what }));
        match (&event.link, &event.flow) {
            (Some(name), None) if of_link.contains(&true) && !of_flow.contains(&true) => {
                let link = links.iter().position(|link| link.config.name == *name);
                let link = link.ok_or_else(|| fault("link", super::unknown_link(name, links)))?;
                if let Some(up) = event.up {
                    add(EventKind::LinkUp(link, up));
                }
                if let Some(time) = event.hold {
                    if !(1..=MAX_DELAY).contains(&time.0) {
                        return Err(fault(
                            "hold",
                            "expected a time above 0 s, at most an hour".into(),
                        ));
                    }
                    add(EventKind::LinkHold(link, time.0));
                }
                if let Some(rate) = event.rate {
                    add(EventKind::LinkRate(link, Rate::Constant(rate.0)));
                }
                if let Some(delay) = event.delay {
                    if delay.0 > MAX_DELAY {
                        return Err(fault("delay", "more than an hour".into()));
                    }
                    add(EventKind::LinkDelay(link, delay.0));
                }
            }
            (None, Some(name)) if of_flow.contains(&true) && !of_link.contains(&true) => {
                let flow = flows.iter().position(|flow| flow.name == *name && !flow.background);
                let flow = flow.ok_or_else(|| fault("flow", super::unknown_flow(name, flows)))?;
                if let Some(on) = event.on {
                    switch(&mut flows[flow], at, on, end);
                }
                let path = |field: &str, route: &str| {
                    let of = &flows[flow];
                    if of.kind != FlowKind::Mptcp || of.path_manager != PathManager::Fullmesh {
                        let message = "only mptcp with the path manager fullmesh has addresses";
                        return Err(fault(field, message.into()));
                    }
                    let path = of.paths.iter().position(|path| path.name == route);
                    path.ok_or_else(|| fault(field, format!("\"{route}\" is not a path of {name}")))
                };
                if let Some(route) = &event.lose {
                    add(EventKind::PathLost(flow, path("lose", route)?));
                }
                if let Some(route) = &event.add {
                    add(EventKind::PathAdded(flow, path("add", route)?));
                }
            }
            _ => {
                return Err(whole(
                    "expected a link with up, hold, rate or delay, or a flow with lose, add or on",
                ));
            }
        }
    }
    lost_and_added_in_turn(&events)?;
    if let Some(flow) = flows.iter().find(|flow| flow.active.is_empty()) {
        return Err(Fault::new(["flows", &flow.name], "switched off before it starts"));
    }
    Ok(events.into_iter().map(|(_, event)| event).collect())
}

/// Events of a run at most, repeated ones each time.
const MOST: usize = 100_000;

/// The times before the end at which something happens, in order, each with the index of what does.
fn happening(file: &file::File, end: Nanos) -> Result<Vec<(Nanos, usize)>, Fault> {
    let mut all = Vec::new();
    let mut last = 0;
    for (index, event) in file.events.iter().enumerate() {
        let fault = |field: &str, message: String| {
            Fault::new(["events", &index.to_string(), field], message)
        };
        if event.at.0 < last {
            return Err(fault("at", "expected events in order of time".into()));
        }
        last = event.at.0;
        let Some(every) = event.every else {
            all.extend((last < end).then_some((last, index)));
            continue;
        };
        let times = end.saturating_sub(last).div_ceil(every.0.max(1));
        if every.0 == 0 {
            return Err(fault("every", "expected a time above 0 s".into()));
        }
        if all.len() as u64 + times > MOST as u64 {
            let message = format!("more than {MOST} events until the end at {}", show_time(end));
            return Err(fault("every", message));
        }
        all.extend((0..times).map(|number| (last + number * every.0, index)));
    }
    // Of the same time, in the order of the file.
    all.sort();
    Ok(all)
}

/// From `at` on the application of `flow` is switched on until the end, or off.
fn switch(flow: &mut Flow, at: Nanos, on: bool, end: Nanos) {
    flow.active.retain(|period| period.0 < at);
    if let Some(last) = flow.active.last_mut() {
        if on && last.1 >= at {
            last.1 = end;
            return;
        }
        last.1 = last.1.min(at);
    }
    if on {
        flow.active.push((at, end));
    }
}

/// A path that is there cannot come, and one that is lost cannot be lost.
fn lost_and_added_in_turn(events: &[(usize, Event)]) -> Result<(), Fault> {
    let mut lost = Vec::new();
    for (index, event) in events {
        let fault = |message: &str| Fault::new(["events", &index.to_string()], message);
        match event.what {
            EventKind::PathLost(flow, path) if lost.contains(&(flow, path)) => {
                return Err(fault("this path is already lost"));
            }
            EventKind::PathLost(flow, path) => lost.push((flow, path)),
            EventKind::PathAdded(flow, path) => {
                let before = lost.len();
                lost.retain(|&of| of != (flow, path));
                if lost.len() == before {
                    return Err(fault("this path already exists; lose it first, at 0 s or later"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Scenario {
    /// Bits that the link `link` can send from `from` until `end`, with all that events change.
    pub fn capacity(&self, link: usize, from: Nanos, end: Nanos) -> f64 {
        let mut rate = &self.links[link].config.rate;
        let mut up = true;
        let mut bits = 0.0;
        let mut now = 0;
        let mut pass = |until: Nanos, rate: Option<&Rate>| {
            let until = until.min(end);
            let begin = now.max(from);
            let seconds = until.saturating_sub(begin) as f64 / SECOND as f64;
            bits += match rate {
                None => 0.0,
                Some(Rate::Constant(rate)) => *rate as f64 * seconds,
                Some(Rate::Trace(trace)) if until > begin => trace.bits(begin, until),
                Some(Rate::Trace(_)) => 0.0,
                Some(Rate::Infinite) => u64::MAX as f64 * seconds,
            };
            // What was held ends after what happens meanwhile.
            now = now.max(until);
        };
        for event in &self.events {
            match &event.what {
                EventKind::LinkUp(of, to) if *of == link => {
                    pass(event.at, up.then_some(rate));
                    up = *to;
                }
                EventKind::LinkHold(of, time) if *of == link => {
                    pass(event.at, up.then_some(rate));
                    pass(event.at + time, None);
                }
                EventKind::LinkRate(of, to) if *of == link => {
                    pass(event.at, up.then_some(rate));
                    rate = to;
                }
                _ => {}
            }
        }
        pass(end, up.then_some(rate));
        bits
    }
}
