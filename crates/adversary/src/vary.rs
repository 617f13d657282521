//! Children of networks: one with changes, or one of two.

use crate::draw::Draw;
use crate::network::{Change, Link, Network, PATHS, Path, Rival, SCHEDULERS, What, rtt};

/// A child of `parent` with one to three changes.
pub fn mutated(parent: &Network, draw: &mut Draw, hops: u32) -> Network {
    let mut child = parent.clone();
    for _ in 0..1 + draw.below(3) {
        change(&mut child, draw);
    }
    child.valid(hops)
}

/// Links, paths and rivals of `one` with what happens to `other` and how it sends.
pub fn crossed(one: &Network, other: &Network, draw: &mut Draw, hops: u32) -> Network {
    let mut child = Network { changes: other.changes.clone(), ..one.clone() };
    if draw.percent(50) {
        child.scheduler = other.scheduler;
        child.buffer_kb = other.buffer_kb;
    }
    if draw.percent(50) {
        child.pauses = other.pauses.clone();
        (child.warmup_ms, child.time_ms) = (other.warmup_ms, other.time_ms);
    }
    if draw.percent(30) {
        let link = draw.below(child.links.len());
        child.links[link] = other.links[draw.below(other.links.len())].clone();
    }
    child.valid(hops)
}

fn change(network: &mut Network, draw: &mut Draw) {
    let links = network.links.len();
    let link = draw.below(links);
    let path = draw.below(network.paths.len());
    match draw.below(16) {
        0 | 1 => scale(&mut network.links[link].kbps, draw),
        2 => scale(&mut network.links[link].queue, draw),
        3 => network.links[link].draw_queue(draw),
        4 => network.links[link].draw_feature(draw),
        5 => network.links[link] = Link::random(draw),
        6 => scale(&mut network.paths[path].rtt_ms, draw),
        7 if network.paths.len() < PATHS[1] => {
            // Over a link of its own, or one that is there.
            if draw.percent(50) {
                network.links.push(Link::random(draw));
            }
            let link = draw.below(links + 1) % network.links.len();
            network.paths.push(Path { link, rtt_ms: rtt(draw) });
        }
        8 if network.paths.len() > PATHS[0] => {
            network.paths.remove(path);
        }
        9 => network.scheduler = draw.below(SCHEDULERS.len()),
        10 => network.buffer_kb = draw.percent(70).then(|| draw.log_int(20, 4000)),
        11 => {
            if draw.percent(50) || network.rivals.is_empty() {
                let rival = Rival::random(draw, network);
                network.rivals.push(rival);
            } else {
                network.rivals.remove(draw.below(network.rivals.len()));
            }
        }
        12 => match draw.percent(50) || network.pauses.is_empty() {
            true => network.add_pause(draw),
            false => network.pauses.clear(),
        },
        13 => scale(&mut network.time_ms, draw),
        14 if !network.changes.is_empty() => {
            let index = draw.below(network.changes.len());
            if draw.percent(30) {
                network.changes.remove(index);
            } else {
                alter(&mut network.changes[index], draw);
            }
        }
        _ => network.add_change(draw),
    }
}

fn alter(change: &mut Change, draw: &mut Draw) {
    if draw.percent(50) {
        return scale(&mut change.at_ms, draw);
    }
    match &mut change.what {
        What::Down(_, number)
        | What::Rate(_, number)
        | What::Delay(_, number)
        | What::Leave(_, number) => scale(number, draw),
    }
}

/// Another number of this size: up to four times as much or as little.
fn scale(number: &mut u32, draw: &mut Draw) {
    let scaled = f64::from(*number) * draw.log(0.25, 4.0);
    *number = libm::round(scaled).clamp(1.0, 1e7) as u32;
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, parse};

    use super::*;
    use crate::file::{Head, text};

    #[test]
    fn children_are_scenarios_too() {
        let head = Head { name: "child", title: "", source: "" };
        let hops = 200_000;
        let mut draw = Draw::new(2, 0);
        let mut all = vec![Network::random(&mut draw, hops)];
        for _ in 0..2000 {
            let one = &all[draw.below(all.len())];
            let other = &all[draw.below(all.len())];
            let child = match draw.below(3) {
                0 => Network::random(&mut draw, hops),
                1 => mutated(one, &mut draw, hops),
                _ => crossed(one, other, &mut draw, hops),
            };
            let text = text(&child, "reno", &head);
            parse(&text, &Edits::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
            all.push(child);
        }
    }
}
