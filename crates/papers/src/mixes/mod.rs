//! A connection over two to four links of many kinds: what it has of what it could have.

mod design;
mod measured;

use narrows_advice::recommend::Control;
use narrows_lab::Error;

use crate::{Grid, Paper, Runs, Table};
use design::{CLASSES, Class, QUICK};
use measured::{Measured, measured};

/// The tables of docs/results/mixes.md.
pub const PAPER: Paper = Paper {
    name: "mixes",
    title: "1,000 mixes of links",
    document: "results/mixes.md",
    tables: &[
        Table { name: "classes", about: "what a mix is drawn of", make: classes },
        Table {
            name: "controls",
            about: "goodput over hindsight's best, by control",
            make: controls,
        },
        Table { name: "kinds", about: "gcubic+xcorr by kinds of mixes", make: kinds },
        Table { name: "best", about: "what is best in hindsight", make: best },
        Table { name: "worst", about: "the mixes in which gcubic+xcorr does worst", make: worst },
    ],
};

fn classes(_: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "class",
        "Mbit/s",
        "RTT, ms",
        "queue, ms",
        "jitter, ms",
        "its rate changes",
        "it pauses",
        "published",
    ]);
    let range = |[low, high]: [f64; 2]| match low == high {
        true => format!("{low}"),
        false => format!("{low} to {high}"),
    };
    for Class { name, rate_mbps, rtt_ms, queue_ms, jitter_ms, varies, holds, wifi, source } in
        &CLASSES
    {
        let changes =
            varies.map(|(times, every)| format!("to 1/{times} to {times}, every {every} s"));
        let pauses =
            holds.map(|(time, every)| format!("{} ms every {} s", range(time), range(every)));
        let name = if *wifi { format!("{name}, aggregates") } else { name.to_string() };
        grid.row([
            name,
            range(*rate_mbps),
            range(*rtt_ms),
            range(*queue_ms),
            range(*jitter_ms),
            changes.unwrap_or("-".into()),
            pauses.unwrap_or("-".into()),
            source.to_string(),
        ]);
    }
    Ok(grid)
}

fn percent(all: &[&Measured], is: impl Fn(&Measured) -> bool) -> String {
    let count = all.iter().filter(|one| is(one)).count();
    format!("{:.1}", 100.0 * count as f64 / all.len() as f64)
}

/// Mean, the worst percent, and how many are how near.
fn shares(all: &[&Measured], ratio: impl Fn(&Measured) -> f64) -> [String; 4] {
    let mut ratios: Vec<f64> = all.iter().map(|one| ratio(one)).collect();
    ratios.sort_by(f64::total_cmp);
    [
        format!("{:.3}", narrows_stats::mean(&ratios)),
        format!("{:.2}", narrows_stats::quantile(&ratios, 0.01)),
        percent(all, |one| ratio(one) >= 0.95),
        percent(all, |one| ratio(one) >= 0.9),
    ]
}

fn controls(runs: &Runs) -> Result<Grid, Error> {
    let found = measured(runs)?;
    let all: Vec<&Measured> = found.iter().collect();
    let mut grid = Grid::new([
        "over all links",
        "mean ratio",
        "worst 1 %",
        ">= 0.95, %",
        ">= 0.9, %",
        "below the best single link, %",
    ]);
    for (at, name) in measured::ALL_LINKS.iter().enumerate() {
        let below = match *name {
            measured::OURS => percent(&all, |one| one.below[0]),
            measured::ADVISED => percent(&all, |one| one.below[1]),
            _ => "-".into(),
        };
        grid.row(
            [vec![format!("`{name}`")], shares(&all, |one| one.ratio(at)).to_vec(), vec![below]]
                .concat(),
        );
    }
    let mut recommended = |name: &str, some: &[&Measured]| {
        let shares = shares(some, Measured::recommended).to_vec();
        grid.row([vec![name.into()], shares, vec!["-".into()]].concat());
    };
    recommended("as recommended", &all);
    let fresh: Vec<&Measured> = all.iter().copied().filter(|one| one.mix.number >= QUICK).collect();
    if !fresh.is_empty() {
        recommended(&format!("the same, without the first {QUICK}"), &fresh);
    }
    let again = all.iter().filter(|one| one.again).count();
    let regrets: Vec<f64> = all.iter().map(|one| 100.0 * (1.0 - one.recommended())).collect();
    grid.note = format!(
        "{} mixes, of which {again} were run with {} more seeds. Recommended, beside `gcubic+xcorr` over all links: \
         `bbr+xcorr` in {} %, without a link in {} %; {:.1} ±{:.1} % behind hindsight on average.",
        all.len(),
        measured::AGAIN,
        percent(&all, |one| one.recommendation.control == Control::Model),
        percent(&all, |one| one.recommendation.without.is_some()),
        narrows_stats::mean(&regrets),
        narrows_stats::ci95(&regrets).unwrap_or(0.0),
    );
    grid.files.push(("mixes.csv".into(), measured::data(&found)));
    grid.files.extend(found.iter().map(|one| {
        let all = (1 << one.mix.links.len()) - 1;
        (format!("mix-{:04}.toml", one.mix.number), one.mix.scenario(all))
    }));
    Ok(grid)
}

/// A kind of mixes.
type Kind<'a> = (String, Box<dyn Fn(&Measured) -> bool + 'a>);

fn kinds(runs: &Runs) -> Result<Grid, Error> {
    let found = measured(runs)?;
    let mut grid = Grid::new([
        "mixes",
        "count",
        "mean ratio",
        "worst 1 %",
        ">= 0.95, %",
        ">= 0.9, %",
        "mean by links",
        "mean by control",
    ]);
    let links = (2..=4).map(|count| -> Kind {
        (format!("{count} links"), Box::new(move |one| one.mix.links.len() == count))
    });
    let with = CLASSES.iter().map(|class| -> Kind {
        let has = |one: &Measured| one.mix.links.iter().any(|link| link.class.name == class.name);
        (format!("with {}", class.name), Box::new(has))
    });
    let events: [Kind; 5] = [
        ("buffer below 2 MiB".into(), Box::new(|one| one.mix.buffer_mib < 2.0)),
        ("two links share one".into(), Box::new(|one| one.mix.shared.is_some())),
        (
            "a lossy link".into(),
            Box::new(|one| one.mix.links.iter().any(|link| link.loss.is_some())),
        ),
        (
            "a link is dead for a time".into(),
            Box::new(|one| one.mix.links.iter().any(|link| link.dead.is_some())),
        ),
        (
            "none of the last three".into(),
            Box::new(|one| {
                let plain = |link: &design::Link| link.loss.is_none() && link.dead.is_none();
                one.mix.shared.is_none() && one.mix.links.iter().all(plain)
            }),
        ),
    ];
    for (name, is) in links.chain(with).chain(events) {
        let these: Vec<&Measured> = found.iter().filter(|one| is(one)).collect();
        if these.is_empty() {
            continue;
        }
        let mean = |of: &dyn Fn(&Measured) -> f64| {
            let all: Vec<f64> = these.iter().map(|one| of(one)).collect();
            format!("{:.3}", narrows_stats::mean(&all))
        };
        let shares = shares(&these, Measured::ours).to_vec();
        let parts = vec![mean(&Measured::by_links), mean(&Measured::by_control)];
        grid.row([vec![name, these.len().to_string()], shares, parts].concat());
    }
    Ok(grid)
}

fn best(runs: &Runs) -> Result<Grid, Error> {
    let found = measured(runs)?;
    let all: Vec<&Measured> = found.iter().collect();
    let mut grid = Grid::new(["control", "over all links, %", "over some, %", "over one, %"]);
    for control in measured::CONTROLS {
        let with = |is: &dyn Fn(u32, u32) -> bool| {
            percent(&all, |one| {
                let best = one.best();
                best.control == control && is(best.set.count_ones(), one.mix.links.len() as u32)
            })
        };
        let some = with(&|used, of| 1 < used && used < of);
        grid.row([
            format!("`{control}`"),
            with(&|used, of| used == of),
            some,
            with(&|used, _| used == 1),
        ]);
    }
    Ok(grid)
}

/// Rows of the table of the worst.
const WORST: usize = 10;

fn worst(runs: &Runs) -> Result<Grid, Error> {
    let found = measured(runs)?;
    let mut all: Vec<&Measured> = found.iter().collect();
    all.sort_by(|one, other| one.ours().total_cmp(&other.ours()));
    let mut grid = Grid::new([
        "mix",
        "links, Mbit/s / RTT in ms",
        "ratio",
        "with advice",
        "by links",
        "by control",
        "best in hindsight",
        "lacks most on",
    ]);
    for one in all.into_iter().take(WORST) {
        let best = one.best();
        grid.row([
            one.mix.number.to_string(),
            one.mix.title(),
            format!("{:.2}", one.ours()),
            format!("{:.2}", one.advised()),
            format!("{:.2}", one.by_links()),
            format!("{:.2}", one.by_control()),
            format!("`{}` over {}", best.control, one.names(best.set)),
            one.lacks(),
        ]);
    }
    Ok(grid)
}
