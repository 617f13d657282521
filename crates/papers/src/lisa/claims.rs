//! The paper's claims, each judged for each law and kernel.

use narrows_lab::Error;

use super::joins::{FIGURE_1_RTT_S, spreads};
use super::networks::{
    Column, Figure, LEAST_QUEUE, LONG_KB, Network, Pair, Points, alone, columns, done, from_8,
    retransmits, slow_start_cwnd, slow_start_retransmits,
};
use super::phone::{self, Place};
use super::rules::{all_above, at_each, at_most, at_some, exactly, no_change, no_trend};
use super::tree::{self, Metric, Tree};
use super::{BDPS, gain, later, retransmits_of_tcp};
use crate::figures::{Interval, averages, less, text};
use crate::verdict::{Side, about, above, near, weakest, within};
use crate::{Cell, Grid, Judged, Runs, Verdict};

type Found = Result<Vec<Option<Interval>>, Error>;

/// The table as it grows.
struct Claims<'a> {
    runs: &'a Runs<'a>,
    grid: Grid,
}

impl Claims<'_> {
    /// Adds a claim, judged for each column, and what decides where it is worse.
    fn claim<J: Into<Judged>>(
        &mut self,
        claim: impl Into<String>,
        decides: &str,
        judge: impl Fn(Column) -> Result<J, Error>,
    ) -> Result<(), Error> {
        let mut judged: Vec<Judged> = Vec::new();
        for column in columns() {
            judged.push(judge(column)?.into());
        }
        let decides = Cell::from(named(decides, &judged));
        let verdicts = judged.into_iter().map(Cell::Verdict);
        self.grid.row([Cell::Text(claim.into())].into_iter().chain(verdicts).chain([decides]));
        Ok(())
    }
}

/// What decides, where a column is worse; nothing where none is.
fn named<'a>(decides: &'a str, judged: &[Judged]) -> &'a str {
    let worse = judged.iter().any(|one| one.verdict == Verdict::Worse);
    if worse { decides } else { "" }
}

/// Where the page shows what decides.
const OF_FIGURE_1: &str =
    "[the queue, which the paper does not give](#figures-1-and-2-300-kb-at-25-mbits-and-70-ms)";
const OF_FIGURE_6: &str = "3.14, up to 300 kB: [jitter and acknowledgements](#figure-6-one-bottleneck-5-mbits-40-ms); else not known";
const OF_RTTS: &str =
    "[scheduler and loss detection](#why-200-and-20-ms-differ-scheduler-and-loss-detection)";
const OF_PHONES: &str = "today [the scheduler](#figures-11-to-13-3g-and-wlan); else not known";
const OF_RULES: &str = "[one rule at a time](#one-rule-of-the-papers-linux-at-a-time)";
const NOT_KNOWN: &str = "not known";

/// The table.
pub fn claims(runs: &Runs) -> Result<Grid, Error> {
    let heads = columns().into_iter().map(Column::head);
    let heads = ["claim".to_owned()].into_iter().chain(heads).chain(["what decides".to_owned()]);
    let mut grid = Grid::new(heads);
    grid.note =
        "What decides: where a law is worse, the experiment on this page that shows why, or that it is not known.".into();
    let mut claims = Claims { runs, grid };
    first_transfers(&mut claims)?;
    shared(&mut claims)?;
    apart(&mut claims)?;
    data_centre(&mut claims)?;
    // Figure 11's gains at 100 kB, %, and the first losses, ms.
    real_network(&mut claims, Place::Shared, 10.0, 100.0)?;
    real_network(&mut claims, Place::Apart, 20.0, 50.0)?;
    Ok(claims.grid)
}

/// Figures 1 and 2. LISA has an effect there, so that the paper's queue is one at which it does something.
fn first_transfers(claims: &mut Claims) -> Result<(), Error> {
    let runs = claims.runs;
    let queues = BDPS.into_iter().filter(|(packets, _)| *packets >= LEAST_QUEUE);
    let queues: Vec<(u64, f64)> = queues.collect();
    let pair = |scenario, packets, column, of: Figure| {
        Network::of(scenario).queue(packets).pair(runs, column, of)
    };
    claims.claim(
        "Figure 1(c): the second subflow joins after 3 RTTs (read as base RTTs after data began), at a window of 40 (ours: 3 RTTs with queueing)",
        "its queue: [at 250 Mbit/s](#figures-1-and-2-300-kb-at-25-mbits-and-70-ms)",
        |column| {
            let joins = Network::of("lisa/two").joins(runs, column, FIGURE_1_RTT_S)?;
            let [after, window] = spreads(&joins);
            let judged = weakest(&[
                about(after, 3.0, 0.5, Side::Exact),
                about(window, 40.0, 4.0, Side::Exact),
            ]);
            let ours = format!("{} RTTs, {} packets", text(after, 1), text(window, 0));
            Ok(Judged::new(judged.verdict, ours))
        },
    )?;
    for &(packets, bdp) in &queues {
        claims.claim(
            format!("Figure 1, {bdp} BDP: CUBIC is done 50 ms before MPTCP"),
            OF_FIGURE_1,
            |column| {
                let cubic: Vec<_> =
                    alone(runs, column.era, packets)?["cubic"].iter().map(done).collect();
                let without = pair("lisa/two", packets, column, done)?.without;
                Ok(exactly(less(&cubic, &without).map(|found| found.times(1000.0)), 50.0))
            },
        )?;
    }
    for &(packets, bdp) in &queues {
        claims.claim(
            format!("Figure 1, {bdp} BDP: LISA is done 200 ms before MPTCP"),
            "[the queue](#figures-1-and-2-300-kb-at-25-mbits-and-70-ms) and [the kernel](#one-rule-of-the-papers-linux-at-a-time)",
            |column| {
                let earlier = pair("lisa/two", packets, column, done)?.less();
                Ok(near(earlier.map(|found| found.times(1000.0)), 200.0))
            },
        )?;
    }
    let at_both = |found: &dyn Fn(u64) -> Result<Option<Interval>, Error>| {
        let found = queues.iter().map(|(packets, _)| found(*packets));
        Ok(all_above(&found.collect::<Result<Vec<_>, Error>>()?, 0.0))
    };
    claims.claim("Figure 1(b): fewer retransmissions, at 1 and 2 BDP", OF_FIGURE_1, |column| {
        at_both(&|packets| Ok(pair("lisa/two", packets, column, retransmits)?.less()))
    })?;
    claims.claim(
        "Figure 2(b): a greater reduction with 3 subflows, at 1 and 2 BDP",
        OF_FIGURE_1,
        |column| {
            at_both(&|packets| {
                let two = pair("lisa/two", packets, column, retransmits)?.differences();
                let three = pair("lisa/three", packets, column, retransmits)?.differences();
                Ok(less(&two, &three))
            })
        },
    )
}

/// How much less of a metric of slow start there is with LISA, at queues of `lisa/shared` or `lisa/apart`.
pub fn slow_start(
    runs: &Runs,
    scenario: &'static str,
    queues: &[u64],
    column: Column,
    of: Figure,
) -> Result<Vec<Pair>, Error> {
    let at =
        |&packets: &u64| Network::of(scenario).queue(packets).file(LONG_KB).pair(runs, column, of);
    queues.iter().map(at).collect()
}

/// Where LISA does something, how many packets less of a metric of slow start there are.
pub fn fewer(runs: &Runs, scenario: &'static str, column: Column, of: Figure) -> Found {
    let queues = from_8(runs.form().queues());
    Ok(slow_start(runs, scenario, &queues, column, of)?.iter().map(Pair::less).collect())
}

/// The other way round.
fn larger(runs: &Runs, scenario: &'static str, column: Column, of: Figure) -> Found {
    let found = fewer(runs, scenario, column, of)?;
    Ok(found.into_iter().map(|one| one.map(|found| found.times(-1.0))).collect())
}

/// How much less time a file takes by size, %, where the sizes are chosen.
pub fn gains(
    runs: &Runs,
    scenario: &'static str,
    queues: &[u64],
    column: Column,
    chosen: impl Fn(u64) -> bool,
) -> Result<Vec<(u64, Option<Interval>)>, Error> {
    let sizes = runs.form().sizes().into_iter().filter(|&size| chosen(size));
    let of = |size| {
        let pair = gain(runs, Network::of(scenario), queues, size, column, done)?;
        Ok((size, pair.less_percent()))
    };
    sizes.map(of).collect()
}

/// The intervals alone.
pub fn plain(by_size: Vec<(u64, Option<Interval>)>) -> Vec<Option<Interval>> {
    by_size.into_iter().map(|(_, found)| found).collect()
}

/// How much more is gained from 250 to 500 kB than beyond, percentage points.
fn falls(runs: &Runs, column: Column) -> Result<Option<Interval>, Error> {
    let by_seed = |chosen: fn(u64) -> bool| {
        let sizes = runs.form().sizes().into_iter().filter(|&size| chosen(size));
        let three = runs.form().three();
        let of = |size| {
            Ok(gain(runs, Network::of("lisa/shared"), &three, size, column, done)?.percents())
        };
        Ok(averages(&sizes.map(of).collect::<Result<Vec<_>, Error>>()?))
    };
    Ok(less(&by_seed(|size| size > 500)?, &by_seed(middle)?))
}

/// The sizes at which the paper's gain is "more than 10 %".
pub fn middle(kilobytes: u64) -> bool {
    (250..=500).contains(&kilobytes)
}

/// With 200 and 20 ms, later by less than some ms at each queue where LISA does something.
fn at_most_later(
    runs: &Runs,
    scenario: &'static str,
    column: Column,
    most: f64,
) -> Result<Judged, Error> {
    let at = |packets| {
        let later = later(runs, Network::of(scenario), packets, column)?;
        Ok((packets, later.map(|found| found.times(-1.0))))
    };
    let earlier = from_8(runs.form().rtt_queues()).into_iter().map(at);
    Ok(at_each(&earlier.collect::<Result<Vec<_>, Error>>()?, -most))
}

/// Whether the second subflow joins a file of so many kB, so that LISA does something: the paper has one subflow "up to
/// 200 KByte".
fn with_two(kilobytes: u64) -> bool {
    kilobytes > 200
}

/// Figures 6 and 7.
fn shared(claims: &mut Claims) -> Result<(), Error> {
    let runs = claims.runs;
    let (form, three) = (runs.form(), runs.form().three());
    let time = |column, chosen: fn(u64) -> bool| gains(runs, "lisa/shared", &three, column, chosen);
    let at_every_size = |column, scenario, of: Figure| {
        let at = |size| Ok(gain(runs, Network::of(scenario), &three, size, column, of)?.less());
        let found = form.sizes().into_iter().filter(|&size| with_two(size)).map(at);
        Ok(all_above(&found.collect::<Result<Vec<_>, Error>>()?, 0.0))
    };
    claims.claim(
        "Figure 6(c): at the size where it is most, 17 % less time (300 kB)",
        OF_FIGURE_6,
        |column| Ok(at_most(&time(column, |_| true)?, 17.0)),
    )?;
    claims.claim("more than 10 % less up to 500 kB", OF_FIGURE_6, |column| {
        Ok(all_above(&plain(time(column, middle)?), 10.0))
    })?;
    claims.claim(
        "no change up to 200 kB",
        "[when the second subflow joins](#figure-6-one-bottleneck-5-mbits-40-ms)",
        |column| Ok(no_change(&plain(time(column, |size| size <= 200)?))),
    )?;
    claims.claim(
        "Figure 6(a): fewer retransmissions at every queue from 8 packets on",
        NOT_KNOWN,
        |column| {
            let found = fewer(runs, "lisa/shared", column, slow_start_retransmits)?;
            let at = from_8(form.queues()).into_iter().zip(found);
            Ok(at_each(&at.collect::<Vec<_>>(), 0.0))
        },
    )?;
    claims.claim("Figure 6(a): similar retransmissions below 8 packets", NOT_KNOWN, |column| {
        let below: Vec<u64> = form.queues().into_iter().filter(|&packets| packets < 8).collect();
        let found = slow_start(runs, "lisa/shared", &below, column, slow_start_retransmits)?;
        Ok(no_change(&found.iter().map(Pair::less_percent).collect::<Vec<_>>()))
    })?;
    claims.claim("Figure 6(c): less is gained beyond 500 kB", NOT_KNOWN, |column| {
        Ok(above(falls(runs, column)?, 0.0))
    })?;
    claims.claim(
        "Figure 6(b): a larger sum of windows at (almost) all of them",
        NOT_KNOWN,
        |column| Ok(all_above(&larger(runs, "lisa/shared", column, slow_start_cwnd)?, 0.0)),
    )?;
    claims.claim(
        "Figure 6(d): fewer retransmissions, at every size above 200 kB (its text names no result)",
        NOT_KNOWN,
        |column| at_every_size(column, "lisa/shared", retransmits),
    )?;
    claims.claim(
        "Figure 7(a): the Reno flow has fewer retransmissions, at every size above 200 kB",
        NOT_KNOWN,
        |column| at_every_size(column, "lisa/shared-tcp", retransmits_of_tcp),
    )?;
    let at = rtt_queues(runs);
    claims.claim(
        format!(
            "Figure 7(b): with 200 and 20 ms at most a round trip (200 ms) later, at each of {at}"
        ),
        OF_RTTS,
        |column| at_most_later(runs, "lisa/shared-rtt", column, 200.0),
    )
}

fn rtt_queues(runs: &Runs) -> String {
    format!("{} queues from 8 packets on", from_8(runs.form().rtt_queues()).len())
}

/// Figure 8, and 200 and 20 ms with a bottleneck each.
fn apart(claims: &mut Claims) -> Result<(), Error> {
    let runs = claims.runs;
    claims.claim(
        "Figure 8(a): non-shared, fewer retransmissions at some queues",
        OF_RULES,
        |column| Ok(at_some(&fewer(runs, "lisa/apart", column, slow_start_retransmits)?)),
    )?;
    claims.claim(
        "Figure 8(b): non-shared, sum of windows without a clear trend over the queues",
        OF_RULES,
        |column| Ok(no_trend(&larger(runs, "lisa/apart", column, slow_start_cwnd)?)),
    )?;
    claims.claim(
        "Figure 8(c): non-shared, time without a clear trend over the sizes",
        "[the scheduler](#figure-8-a-bottleneck-for-each-subflow)",
        |column| {
            let three = runs.form().three();
            Ok(no_trend(&plain(gains(runs, "lisa/apart", &three, column, |_| true)?)))
        },
    )?;
    claims.claim(
        "Figure 8: non-shared, queue 20: consistently less time, above 200 kB",
        OF_RULES,
        |column| Ok(all_above(&plain(gains(runs, "lisa/apart", &[20], column, with_two)?), 0.0)),
    )?;
    let at = rtt_queues(runs);
    claims.claim(
        format!("non-shared, 200 and 20 ms: less than 50 ms later, at each of {at}"),
        OF_RTTS,
        |column| at_most_later(runs, "lisa/apart-rtt", column, 50.0),
    )
}

/// Figure 9.
fn data_centre(claims: &mut Claims) -> Result<(), Error> {
    let (runs, tree) = (claims.runs, Tree::new(claims.runs)?);
    let (queues, sizes) = (tree::queues(runs.form()), tree::sizes(runs.form()));
    let slow_start = |column, of: Metric| {
        let found = queues.iter().map(|&packets| tree.slow_start(packets, column, of));
        found.collect::<Result<Vec<_>, _>>()
    };
    let files = |column, of: Metric| {
        let found = sizes.iter().map(|&size| tree.file(size, column, of));
        found.collect::<Result<Vec<_>, _>>()
    };
    let fewer =
        |found: Vec<Pair>| all_above(&found.iter().map(Pair::less).collect::<Vec<_>>(), 0.0);
    let at = format!("at each of {} queues", queues.len());
    claims.claim(
        format!("Figure 9(a): fewer retransmissions in slow start, {at}"),
        NOT_KNOWN,
        |column| Ok(fewer(slow_start(column, tree::slow_start_retransmits)?)),
    )?;
    claims.claim(format!("Figure 9(b): a smaller sum of windows, {at}"), NOT_KNOWN, |column| {
        Ok(fewer(slow_start(column, tree::slow_start_cwnd)?))
    })?;
    claims.claim("Figure 9(c): less time, at every size", OF_RULES, |column| {
        Ok(fewer(files(column, tree::done)?))
    })?;
    claims.claim("Figure 9(d): fewer retransmissions, at every size", NOT_KNOWN, |column| {
        Ok(fewer(files(column, tree::retransmits)?))
    })?;
    claims.claim(
        "Figure 9(c), (d): the less is retransmitted, the less time it takes",
        OF_RULES,
        |column| {
            let (time, lost) = (files(column, tree::done)?, files(column, tree::retransmits)?);
            Ok(above(tree::follows(&time, &lost), 0.0))
        },
    )
}

/// Figures 11 to 13: `saved` % less time at 100 kB, the first loss `later` ms later.
fn real_network(claims: &mut Claims, place: Place, saved: f64, later: f64) -> Result<(), Error> {
    let (runs, name) = (claims.runs, place.name());
    let sizes = runs.form().phone_sizes();
    let at_each = |column, of: Figure| -> Found {
        let at = |&size: &u64| Ok(phone::file(runs, place, size, column, of)?.less());
        sizes.iter().map(at).collect()
    };
    let time = |size, column| phone::gain(runs, place, size, column);
    claims.claim(format!("Figure 11, {name}: less time, at every size"), OF_PHONES, |column| {
        let found = sizes.iter().map(|&size| time(size, column)).collect::<Result<Vec<_>, _>>()?;
        Ok(all_above(&found, 0.0))
    })?;
    claims.claim(format!("Figure 11, {name}: {saved} % less at 100 kB"), OF_PHONES, |column| {
        Ok(near(time(100, column)?, saved))
    })?;
    claims.claim(
        format!("Figure 11, {name}: against it, no change up to 200 kB"),
        OF_PHONES,
        |column| Ok(no_change(&[time(100, column)?, time(200, column)?])),
    )?;
    claims.claim(
        format!("Figure 12, {name}: fewer retransmissions, at every size"),
        OF_RULES,
        |column| Ok(all_above(&at_each(column, retransmits)?, 0.0)),
    )?;
    claims.claim(
        format!("Figure 13, {name}: 5 to 7 points less over 3G, at every size"),
        OF_PHONES,
        |column| {
            let found = at_each(column, phone::share_of_3g)?;
            Ok(weakest(&found.iter().map(|one| within(*one, 5.0, 7.0)).collect::<Vec<_>>()))
        },
    )?;
    let over = |column, of: Figure| phone::over_sizes(runs, place, column, of);
    claims.claim(
        format!("{name}: less bufferbloat on 3G (95th percentile of its RTT)"),
        NOT_KNOWN,
        |column| Ok(above(over(column, phone::srtt_of_3g)?, 0.0)),
    )?;
    claims.claim(
        format!("{name}: fewer transfers that leave slow start with a loss"),
        NOT_KNOWN,
        |column| Ok(above(over(column, phone::has_loss)?, 0.0)),
    )?;
    claims.claim(format!("{name}: the first loss {later} ms later"), NOT_KNOWN, |column| {
        Ok(near(phone::first_loss(runs, place, column)?, later))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_named_where_a_law_is_worse() {
        let judged = |all: &[Verdict]| all.iter().map(|one| Judged::from(*one)).collect::<Vec<_>>();
        let none = judged(&[Verdict::Reproduced, Verdict::Better, Verdict::CannotBeTold]);
        assert_eq!(named(OF_RULES, &none), "");
        assert_eq!(named(OF_RULES, &judged(&[Verdict::Reproduced, Verdict::Worse])), OF_RULES);
    }
}
