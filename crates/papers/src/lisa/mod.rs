//! Short transfers with linked slow start: Barik, Welzl, Ferlin, Alay, LISA (ICC 2016).

mod causes;
mod claims;
mod headlines;
mod joins;
mod networks;
mod phone;
mod rules;
mod tree;

use std::fmt::Display;

use narrows_lab::Error;
use narrows_stats::mean;

use crate::figures::{Interval, spread, text};
use crate::{Cell, Grid, Kept, Paper, Runs, Table};
use networks::{
    Column, Era, Figure, LAWS, Network, Pair, Points, alone, columns, done, from_8, of_era,
    retransmits, slow_start_cwnd, slow_start_retransmits, with_lisa,
};
use phone::Place;
use tree::{Metric, Tree};

/// The tables of docs/results/lisa.md.
pub const PAPER: Paper = Paper {
    name: "lisa",
    title: "short transfers with linked slow start (LISA, ICC 2016)",
    document: "results/lisa.md",
    tables: &[
        Table {
            name: "headlines",
            about: "what the abstract and the text stress, beside ours",
            make: headlines::headlines,
        },
        Table {
            name: "claims",
            about: "every claim, judged for each law and kernel",
            make: claims::claims,
        },
        Table {
            name: "figure-1",
            about: "Figures 1 and 2: time and retransmissions of 300 kB, beside CUBIC over the first path",
            make: figure_1,
        },
        Table {
            name: "join",
            about: "when the second subflow joins, and at which window of the first",
            make: joins::join,
        },
        Table {
            name: "figure-6-slow-start",
            about: "Figure 6(a), (b): retransmissions and windows at the end of slow start, one bottleneck",
            make: |runs| slow_start(runs, "lisa/shared"),
        },
        Table {
            name: "figure-6-time",
            about: "Figure 6(c): less time by size, one bottleneck, %",
            make: |runs| time(runs, "lisa/shared", &runs.form().three(), &[]),
        },
        Table {
            name: "figure-6-receiver-opens",
            about: "Figure 6(c) where the receiver opens the connection",
            make: |runs| time(runs, "lisa/shared", &runs.form().three(), &["tcp.opener=receiver"]),
        },
        Table {
            name: "figure-6-every-packet",
            about: "Figure 6(c) with less jitter and an acknowledgement of every packet",
            make: |runs| time(runs, "lisa/shared", &runs.form().three(), &[JITTER, EVERY_PACKET]),
        },
        Table {
            name: "figure-6-each",
            about: "the same with each of the two alone, with the paper's kernel",
            make: each_alone,
        },
        Table {
            name: "figure-6-later",
            about: "Figure 6(c) where the second subflow joins later",
            make: joins::later,
        },
        Table {
            name: "figure-6-retransmits",
            about: "Figure 6(d): fewer retransmissions by size, one bottleneck",
            make: |runs| less(runs, "lisa/shared", retransmits),
        },
        Table {
            name: "figure-7-tcp",
            about: "Figure 7(a): fewer retransmissions of the Reno flow beside it, by size",
            make: |runs| less(runs, "lisa/shared-tcp", retransmits_of_tcp),
        },
        Table {
            name: "figure-7-rtt",
            about: "Figure 7(b): 200 and 20 ms, one bottleneck, how many ms later by queue",
            make: |runs| rtts(runs, "lisa/shared-rtt"),
        },
        Table {
            name: "figure-8-slow-start",
            about: "Figure 8(a), (b): as Figure 6, a bottleneck for each subflow",
            make: |runs| slow_start(runs, "lisa/apart"),
        },
        Table {
            name: "figure-8-time",
            about: "Figure 8(c): less time by size, a bottleneck for each subflow, %",
            make: |runs| time(runs, "lisa/apart", &runs.form().three(), &[]),
        },
        Table {
            name: "figure-8-queue-20",
            about: "Figure 8(c) at the paper's favourable queue of 20 packets",
            make: |runs| time(runs, "lisa/apart", &[20], &[]),
        },
        Table {
            name: "figure-8-scheduler",
            about: "Figure 8(c) under today's Linux with the scheduler of the lowest RTT",
            make: |runs| scheduler(runs, "lisa/apart"),
        },
        Table {
            name: "apart-rtt",
            about: "200 and 20 ms, a bottleneck for each, how many ms later by queue",
            make: |runs| rtts(runs, "lisa/apart-rtt"),
        },
        Table {
            name: "rtt-cause",
            about: "the same for olia by scheduler and loss detection, and what the first subflow carried",
            make: cause,
        },
        Table { name: "donor", about: "what a donor of the nearest RTT changes", make: donor },
        Table {
            name: "figure-6-scheduler",
            about: "Figure 6(c) under today's Linux with the scheduler of the lowest RTT",
            make: |runs| scheduler(runs, "lisa/shared"),
        },
        Table {
            name: "v0.89",
            about: "the most that the scheduler of the paper's MPTCP changes",
            make: v089,
        },
        Table {
            name: "figure-9-slow-start",
            about: "Figure 9(a), (b): as Figure 6, in a fat tree",
            make: tree_slow_start,
        },
        Table {
            name: "figure-9-time",
            about: "Figure 9(c): less time by size in a fat tree, %",
            make: |runs| tree_files(runs, tree::done, Pair::less_percent),
        },
        Table {
            name: "figure-9-retransmits",
            about: "Figure 9(d): fewer retransmissions by size in a fat tree",
            make: |runs| tree_files(runs, tree::retransmits, Pair::less),
        },
        Table {
            name: "causes",
            about: "what decides, one rule of the paper's Linux at a time",
            make: causes::causes,
        },
        Table {
            name: "figure-11",
            about: "Figure 11: less time by size over 3G and WLAN, %",
            make: |runs| phone_sizes(runs, done, Pair::less_percent),
        },
        Table {
            name: "figure-11-scheduler",
            about: "Figure 11 under today's Linux with the scheduler of the lowest RTT, and how much less goes over 3G",
            make: phone_scheduler,
        },
        Table {
            name: "figure-12",
            about: "Figure 12: fewer retransmissions over 3G and WLAN",
            make: |runs| phone_sizes(runs, retransmits, Pair::less),
        },
        Table {
            name: "figure-13",
            about: "Figure 13: less of the traffic over 3G, percentage points",
            make: |runs| phone_sizes(runs, phone::share_of_3g, Pair::less),
        },
        Table {
            name: "first-loss",
            about: "how many ms later the first loss is over 3G and WLAN",
            make: phone_loss,
        },
    ],
};

/// Queues of Figures 1 and 2 in packets, which the paper does not give, and in bandwidth-delay products.
const BDPS: [(u64, f64); 3] = [(7, 0.5), (15, 1.0), (29, 2.0)];

/// Segments that the Reno flow beside it retransmitted.
fn retransmits_of_tcp(run: &Kept) -> Option<f64> {
    Some(run.connection("tcp1").retransmits as f64)
}

/// What the first subflow carried of 500 kB, kB.
fn share_of_first(run: &Kept) -> Option<f64> {
    run.summary.connections[0].paths[0].share.map(|share| 500.0 * share)
}

/// A figure of a file with LISA and without, the mean over queues.
fn gain(
    runs: &Runs,
    network: Network,
    queues: &[u64],
    kilobytes: u64,
    column: Column,
    of: Figure,
) -> Result<Pair, Error> {
    network.file(kilobytes).over(queues, runs, column, of)
}

/// By how many ms LISA is done later at a queue.
fn later(
    runs: &Runs,
    network: Network,
    packets: u64,
    column: Column,
) -> Result<Option<Interval>, Error> {
    Ok(network.queue(packets).pair(runs, column, done)?.later_ms())
}

/// A row for each of `rows`, and a cell of it for each column.
fn table<R: Display + Copy>(
    first: &str,
    rows: impl IntoIterator<Item = R>,
    columns: &[(String, Column)],
    cell: impl Fn(R, Column) -> Result<String, Error>,
) -> Result<Grid, Error> {
    let heads = columns.iter().map(|(head, _)| head.clone());
    let mut grid = Grid::new([first.to_owned()].into_iter().chain(heads));
    for row in rows {
        let cells = columns.iter().map(|(_, column)| cell(row, *column));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        grid.row([row.to_string()].into_iter().chain(cells));
    }
    Ok(grid)
}

/// All columns with their heads.
fn all() -> Vec<(String, Column)> {
    columns().into_iter().map(|column| (column.head(), column)).collect()
}

/// Those of one kernel, by the law alone.
fn laws(era: Era) -> Vec<(String, Column)> {
    of_era(era).into_iter().map(|column| (column.law.to_owned(), column)).collect()
}

/// Figures 1 and 2.
fn figure_1(runs: &Runs) -> Result<Grid, Error> {
    let laws = LAWS.iter().flat_map(|law| [format!("{law} / +lisa, s"), "retx".into()]);
    let first = ["subflows, queue, Linux", "CUBIC, s"].map(str::to_owned);
    let mut grid = Grid::new(first.into_iter().chain(laws));
    for (scenario, subflows) in [("lisa/two", 2), ("lisa/three", 3)] {
        for (packets, bdp) in BDPS {
            for era in Era::ALL {
                let found = Network::of(scenario).queue(packets).all(runs, era)?;
                let cubic = match subflows {
                    2 => text(spread(&alone(runs, era, packets)?["cubic"], done), 2),
                    _ => String::new(),
                };
                let mut row = vec![format!("{subflows}, {bdp} BDP, {}", era.name()), cubic];
                for law in LAWS {
                    let pair = [&found[law], &found[&with_lisa(law)]];
                    row.push(pair.map(|runs| text(spread(runs, done), 2)).join(" / "));
                    row.push(pair.map(|runs| text(spread(runs, retransmits), 0)).join(" / "));
                }
                grid.row(row);
            }
        }
    }
    Ok(grid)
}

/// What stands above two cells of each column.
fn two_each(first: &str) -> Grid {
    let heads = columns().into_iter();
    let heads = heads.flat_map(|column| [format!("retx, {}", column.head()), "cwnd".into()]);
    Grid::new([first.to_owned()].into_iter().chain(heads))
}

/// Figures 6 and 8, (a) and (b): without / with LISA.
fn slow_start(runs: &Runs, scenario: &'static str) -> Result<Grid, Error> {
    let mut grid = two_each("queue");
    for packets in runs.form().queues() {
        let mut row = vec![packets.to_string()];
        for column in columns() {
            for of in [slow_start_retransmits as Figure, slow_start_cwnd] {
                let found = claims::slow_start(runs, scenario, &[packets], column, of)?;
                let Pair { with, without } = &found[0];
                let mean = |values: &Vec<Option<f64>>| {
                    let mean = spread(values, |value| *value).map(|found| found.mean);
                    mean.map_or_else(|| "-".into(), |mean| format!("{mean:.0}"))
                };
                row.push(format!("{} / {}", mean(without), mean(with)));
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

/// How much less time, %, by size; the mean over queues.
fn time(
    runs: &Runs,
    scenario: &'static str,
    queues: &[u64],
    settings: &[&str],
) -> Result<Grid, Error> {
    let network = Network::of(scenario).set(settings.iter().copied());
    table("kB", runs.form().sizes(), &all(), |size, column| {
        let pair = gain(runs, network.clone(), queues, size, column, done)?;
        Ok(text(pair.less_percent(), 1))
    })
}

/// What the closest variant of the hosts consists of; the paper's receivers acknowledge every packet in slow start.
const JITTER: &str = "jitter=1 packet";
const EVERY_PACKET: &str = "tcp.receiver_acks=every-packet";

/// Figure 6(c) with the paper's kernel and one thing of that variant.
fn each_alone(runs: &Runs) -> Result<Grid, Error> {
    let things = [("jitter of 1 packet", JITTER), ("every packet", EVERY_PACKET)];
    let heads = things.iter().flat_map(|(name, _)| LAWS.map(|law| format!("{name}: {law}")));
    let mut grid = Grid::new(["kB".to_owned()].into_iter().chain(heads));
    let three = runs.form().three();
    for size in runs.form().sizes() {
        let mut row = vec![size.to_string()];
        for (_, setting) in things {
            for column in of_era(Era::Paper) {
                let network = Network::of("lisa/shared").set([setting]);
                let pair = gain(runs, network, &three, size, column, done)?;
                row.push(text(pair.less_percent(), 1));
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

/// How much less of a figure, by size; the mean over the three queues.
fn less(runs: &Runs, scenario: &'static str, of: Figure) -> Result<Grid, Error> {
    let three = runs.form().three();
    table("kB", runs.form().sizes(), &all(), |size, column| {
        Ok(text(gain(runs, Network::of(scenario), &three, size, column, of)?.less(), 1))
    })
}

/// With 200 and 20 ms.
fn rtts(runs: &Runs, scenario: &'static str) -> Result<Grid, Error> {
    table("queue", runs.form().rtt_queues(), &all(), |packets, column| {
        Ok(text(later(runs, Network::of(scenario), packets, column)?, 0))
    })
}

const MIN_RTT: &str = "flows.mptcp.scheduler=min-rtt";
const FACK: &str = "tcp.loss_detection=fack";
const CAUSES: [(&str, &[&str]); 4] = [
    ("today", &[]),
    ("min-rtt", &[MIN_RTT]),
    ("FACK", &[FACK]),
    ("min-rtt, FACK", &[MIN_RTT, FACK]),
];

/// The networks of 200 and 20 ms.
const RTTS: [(&str, &str); 2] = [("shared", "lisa/shared-rtt"), ("apart", "lisa/apart-rtt")];

/// Why 200 and 20 ms differ: how much later olia is with LISA, and the first subflow's part without / with it.
fn cause(runs: &Runs) -> Result<Grid, Error> {
    let heads =
        CAUSES.iter().flat_map(|(cause, _)| [format!("{cause}: ms later"), "first, kB".into()]);
    let mut grid = Grid::new(["network, queue".to_owned()].into_iter().chain(heads));
    let olia = Column { era: Era::Today, law: "olia" };
    for (place, scenario) in RTTS {
        for packets in runs.form().rtt_queues() {
            let mut row = vec![format!("{place}, {packets}")];
            for (_, settings) in CAUSES {
                let network = || Network::of(scenario).set(settings.iter().copied());
                row.push(text(later(runs, network(), packets, olia)?, 0));
                let Pair { with, without } =
                    network().queue(packets).pair(runs, olia, share_of_first)?;
                let mean = |values: Vec<Option<f64>>| {
                    let values: Option<Vec<f64>> = values.into_iter().collect();
                    values.map_or_else(|| "-".into(), |values| format!("{:.0}", mean(&values)))
                };
                row.push(format!("{} / {}", mean(without), mean(with)));
            }
            grid.row(row);
        }
    }
    Ok(grid)
}

/// What a donor chosen by its RTT changes: of the fastest / the nearest.
fn donor(runs: &Runs) -> Result<Grid, Error> {
    let heads = columns().into_iter().map(Column::head);
    let mut grid = Grid::new(["network".to_owned()].into_iter().chain(heads));
    let rules: [&[&str]; 2] = [&[], &["lisa.donor=nearest"]];
    let both = |cell: &dyn Fn(&[&str]) -> Result<String, Error>| {
        Ok(rules.map(cell).into_iter().collect::<Result<Vec<_>, Error>>()?.join(" / "))
    };
    for size in [300, 500] {
        let mut row = vec![format!("40 ms, {size} kB: less time, %")];
        for column in columns() {
            row.push(both(&|rule| {
                let network = Network::of("lisa/shared").set(rule.iter().copied());
                let pair = gain(runs, network, &runs.form().three(), size, column, done)?;
                Ok(text(pair.less_percent(), 1))
            })?);
        }
        grid.row(row);
    }
    for (place, scenario) in RTTS {
        let mut row = vec![format!("200 and 20 ms, {place}: ms later")];
        for column in columns() {
            row.push(both(&|rule| {
                let queues = from_8(runs.form().rtt_queues());
                let network = Network::of(scenario).set(rule.iter().copied());
                Ok(text(network.over(&queues, runs, column, done)?.later_ms(), 0))
            })?);
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Figures 6(c) and 8(c) under today's Linux with the scheduler of the lowest RTT.
fn scheduler(runs: &Runs, scenario: &'static str) -> Result<Grid, Error> {
    let three = runs.form().three();
    table("kB", runs.form().sizes(), &laws(Era::Today), |size, column| {
        let network = Network::of(scenario).set([MIN_RTT]);
        Ok(text(gain(runs, network, &three, size, column, done)?.less_percent(), 1))
    })
}

/// The most that the scheduler of the paper's version of MPTCP changes with the paper's kernel.
fn v089(runs: &Runs) -> Result<Grid, Error> {
    let mptcp = || ["flows.mptcp.scheduler=mptcp-v0.89"];
    let three = runs.form().three();
    let figure_6 = |network: Network, size, column| {
        Ok(gain(runs, network, &three, size, column, done)?.less_percent())
    };
    let figure_7 = |network: Network, packets, column| later(runs, network, packets, column);
    type Found<'a> = &'a dyn Fn(Network, u64, Column) -> Result<Option<Interval>, Error>;
    let figures: [(&str, &str, Vec<u64>, Found); 2] = [
        ("6(c), points", "lisa/shared", runs.form().sizes(), &figure_6),
        ("7(b), ms", "lisa/shared-rtt", runs.form().rtt_queues(), &figure_7),
    ];
    let mut grid = Grid::new(["Figure"].into_iter().chain(LAWS));
    for (name, scenario, points, found) in figures {
        let mut row = vec![name.to_owned()];
        for column in of_era(Era::Paper) {
            let mut most: Option<f64> = None;
            for &at in &points {
                let before = found(Network::of(scenario), at, column)?;
                let after = found(Network::of(scenario).set(mptcp()), at, column)?;
                if let (Some(before), Some(after)) = (before, after) {
                    let change = (after.mean - before.mean).abs();
                    most = Some(most.map_or(change, |most| most.max(change)));
                }
            }
            row.push(most.map_or_else(|| "-".into(), |most| format!("{most:.1}")));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Figure 9, (a) and (b): as Figure 6.
fn tree_slow_start(runs: &Runs) -> Result<Grid, Error> {
    let tree = Tree::new(runs)?;
    let mut grid = two_each("queue");
    for packets in tree::queues(runs.form()) {
        let mut row = vec![packets.to_string()];
        for column in columns() {
            for of in [tree::slow_start_retransmits as Metric, tree::slow_start_cwnd] {
                let Pair { with, without } = tree.slow_start(packets, column, of)?;
                let mean = |values: Vec<Option<f64>>| {
                    let known: Vec<f64> = values.into_iter().flatten().collect();
                    let mean = Interval::of(&known).map(|found| found.mean);
                    mean.map_or_else(|| "-".into(), |mean| format!("{mean:.1}"))
                };
                row.push(format!("{} / {}", mean(without), mean(with)));
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

/// How a pair is told.
type Told = fn(&Pair) -> Option<Interval>;

/// Figure 9, (c) and (d).
fn tree_files(runs: &Runs, of: Metric, told: Told) -> Result<Grid, Error> {
    let tree = Tree::new(runs)?;
    table("kB", tree::sizes(runs.form()), &all(), |size, column| {
        Ok(text(told(&tree.file(size, column, of)?), 1))
    })
}

/// Both networks of Figures 11 to 13 side by side.
fn phone_sizes(runs: &Runs, of: Figure, told: Told) -> Result<Grid, Error> {
    let places = Place::ALL.into_iter();
    let columns: Vec<(Place, Column)> =
        places.flat_map(|place| columns().into_iter().map(move |column| (place, column))).collect();
    let heads =
        columns.iter().map(|(place, column)| format!("{}: {}", place.name(), column.head()));
    let mut grid = Grid::new(["kB".to_owned()].into_iter().chain(heads));
    for size in runs.form().phone_sizes() {
        let mut row: Vec<Cell> = vec![size.to_string().into()];
        for &(place, column) in &columns {
            row.push(text(told(&phone::file(runs, place, size, column, of)?), 1).into());
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Figure 11 under today's Linux with the scheduler of the lowest RTT: less time, %, and how much less goes over 3G,
/// percentage points.
fn phone_scheduler(runs: &Runs) -> Result<Grid, Error> {
    let heads = laws(Era::Today).into_iter().map(|(head, _)| head).collect::<Vec<_>>();
    let of_place = |place: Place| heads.iter().map(move |law| format!("{}: {law}", place.name()));
    let heads = Place::ALL.into_iter().flat_map(of_place).collect::<Vec<_>>();
    let mut grid = Grid::new(["kB".to_owned()].into_iter().chain(heads));
    let sizes = runs.form().phone_sizes();
    for size in sizes.into_iter().filter(|size| [100, 200, 500, 1000].contains(size)) {
        let mut row = vec![size.to_string()];
        for place in Place::ALL {
            for column in of_era(Era::Today) {
                let of =
                    |of: Figure| place.network().set([MIN_RTT]).file(size).pair(runs, column, of);
                let (time, share) = (of(done)?, of(phone::share_of_3g)?);
                row.push(format!(
                    "{}; {} points",
                    text(time.less_percent(), 1),
                    text(share.less(), 1)
                ));
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

/// How many ms later the first loss is.
fn phone_loss(runs: &Runs) -> Result<Grid, Error> {
    let heads = columns().into_iter().map(Column::head);
    let mut grid = Grid::new(["network".to_owned()].into_iter().chain(heads));
    for place in Place::ALL {
        let mut row = vec![place.name().to_owned()];
        for column in columns() {
            row.push(text(phone::first_loss(runs, place, column)?, 0));
        }
        grid.row(row);
    }
    Ok(grid)
}
