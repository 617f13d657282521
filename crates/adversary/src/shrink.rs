//! The smallest network that still shows a fault: parts are left out, then numbers are made round, as
//! long as the fault stays.

use crate::network::{Change, Loss, Network, PATHS, What};

/// Simpler networks than this, the greatest step first; each is valid.
pub fn simpler(network: &Network, hops: u32) -> Vec<Network> {
    let mut all: Vec<Network> = Vec::new();
    let mut with = |change: &dyn Fn(&mut Network)| {
        let mut simpler = network.clone();
        change(&mut simpler);
        let simpler = simpler.valid(hops);
        // A change that the limits undo is none.
        if simpler != *network && !all.contains(&simpler) {
            all.push(simpler);
        }
    };
    if network.paths.len() > PATHS[0] {
        (0..network.paths.len()).for_each(|path| with(&|n| leave_out_path(n, path)));
    }
    with(&|n| n.rivals.clear());
    with(&|n| n.changes.clear());
    (0..network.rivals.len()).for_each(|rival| with(&|n| _ = n.rivals.remove(rival)));
    (0..network.changes.len()).for_each(|change| with(&|n| _ = n.changes.remove(change)));
    with(&|n| n.pauses.clear());
    with(&|n| n.buffer_kb = None);
    with(&|n| n.scheduler = 0);
    with(&|n| n.warmup_ms = 0);
    with(&|n| n.links.iter_mut().for_each(|link| link.loss = Loss::No));
    for link in 0..network.links.len() {
        with(&|n| n.links[link].trace = false);
        with(&|n| n.links[link].wifi = false);
        with(&|n| n.links[link].loss = Loss::No);
        with(&|n| n.links[link].jitter_ms = 0);
        with(&|n| n.links[link].discipline = 0);
        with(&|n| n.links[link].reorder = None);
        with(&|n| n.links[link].policer = None);
        if let Loss::Bursts(_, share) = network.links[link].loss {
            with(&|n| n.links[link].loss = Loss::Random(share));
        }
    }
    // One link like another, one path like another.
    for link in 1..network.links.len() {
        with(&|n| n.links[link] = n.links[0].clone());
    }
    with(&|n| n.paths.iter_mut().for_each(|path| path.rtt_ms = network.paths[0].rtt_ms));
    with(&|n| n.rivals.iter_mut().for_each(|rival| rival.rtt_ms = network.paths[0].rtt_ms));
    with(&|n| n.rivals.iter_mut().for_each(|rival| rival.active = None));
    with(&|n| n.time_ms /= 2);
    // Round numbers: to one digit, or where that is too much to two.
    for digits in [1, 2] {
        let round = |number: &mut u32| *number = rounded(*number, digits);
        with(&|n| numbers(n).into_iter().for_each(round));
        for which in 0..numbers(&mut network.clone()).len() {
            with(&|n| round(numbers(n).swap_remove(which)));
        }
    }
    all
}

fn leave_out_path(network: &mut Network, path: usize) {
    network.paths.remove(path);
    network.changes.retain_mut(|change| match &mut change.what {
        What::Leave(of, _) if *of == path => false,
        What::Leave(of, _) => {
            *of -= usize::from(*of > path);
            true
        }
        _ => true,
    });
}

/// All numbers that can be more or less round.
fn numbers(network: &mut Network) -> Vec<&mut u32> {
    let mut all = vec![&mut network.warmup_ms, &mut network.time_ms];
    for link in &mut network.links {
        all.extend([&mut link.kbps, &mut link.queue, &mut link.jitter_ms]);
        match &mut link.loss {
            Loss::No => {}
            Loss::Random(share) => all.push(share),
            Loss::Bursts(length, share) => all.extend([length, share]),
        }
        all.extend(link.reorder.iter_mut().chain(&mut link.policer).flatten());
    }
    all.extend(network.paths.iter_mut().map(|path| &mut path.rtt_ms));
    for rival in &mut network.rivals {
        all.push(&mut rival.rtt_ms);
        all.extend(rival.active.iter_mut().flatten());
    }
    all.extend(&mut network.buffer_kb);
    all.extend(network.pauses.iter_mut().flatten());
    for Change { at_ms, what } in &mut network.changes {
        all.push(at_ms);
        match what {
            What::Down(_, number)
            | What::Rate(_, number)
            | What::Delay(_, number)
            | What::Leave(_, number) => all.push(number),
        }
    }
    all
}

/// The number with so many digits that are not 0.
fn rounded(number: u32, digits: u32) -> u32 {
    let Some(size) = number.checked_ilog10() else { return 0 };
    let unit = 10_u64.pow(size.saturating_sub(digits - 1));
    let rounded = (u64::from(number) + unit / 2) / unit * unit;
    u32::try_from(rounded).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    #[test]
    fn numbers_get_round() {
        assert_eq!([0, 7, 94, 95, 1234].map(|n| rounded(n, 1)), [0, 7, 90, 100, 1000]);
        assert_eq!([7, 94, 1250].map(|n| rounded(n, 2)), [7, 94, 1300]);
    }

    #[test]
    fn shrinking_ends() {
        let hops = 200_000;
        for n in 0..50 {
            let mut network = Network::random(&mut Draw::new(3, n), hops);
            let mut steps = 0;
            // Whatever is simpler is taken.
            while let Some(next) = simpler(&network, hops).into_iter().next() {
                (network, steps) = (next, steps + 1);
                assert!(steps < 500, "{network:?}");
            }
            assert!(network.rivals.is_empty() && network.changes.is_empty(), "{network:?}");
        }
    }
}
