//! The theory: slopes of delay, Figures 1, 8 and 9, Tables 1 and 5.

use std::fmt::Write;

use narrows_lab::Error;
use narrows_lab::series::Sample;
use narrows_stats::mean;

use super::networks::{
    ALONE_MBPS, DURATION_S, ROUTES, SINGLE, TABLE_1_QUEUE_MS, alone, experiment, single,
};
use super::{Row, ask, beside_reno, rows_of, seeds};
use crate::figures::median;
use crate::{Cell, Curves, Grid, Judged, Runs, Verdict};

/// Time in s, and delay in s.
type Point = (f64, f64);

/// Sampled every 100 ms: rises that are less far apart are one, and one has at least so many samples.
const APART_S: f64 = 0.35;
const LEAST: usize = 10;

/// The trend lines of some delays by the paper's Algorithms 1 and 2: groups of delays that do not fall, merged with
/// the one before if they are near and above its end.
fn rises(samples: &[Point]) -> Vec<Vec<Point>> {
    let mut groups: Vec<Vec<Point>> = Vec::new();
    for pair in samples.windows(2) {
        if pair[1].1 < pair[0].1 {
            groups.push(Vec::new());
        } else if let Some(last) = groups.last_mut() {
            last.push(pair[1]);
        } else {
            groups.push(vec![pair[1]]);
        }
    }
    let mut merged: Vec<Vec<Point>> = Vec::new();
    for group in groups.into_iter().filter(|group| !group.is_empty()) {
        let delays: Vec<f64> = group.iter().map(|point| point.1).collect();
        match merged.last_mut() {
            Some(line) if group[0].0 - end(line).0 <= APART_S && mean(&delays) > end(line).1 => {
                line.extend(group)
            }
            _ => merged.push(group),
        }
    }
    merged.retain(|group| group.len() >= LEAST);
    merged
}

fn end(line: &[Point]) -> Point {
    line[line.len() - 1]
}

/// Slope of the regression line.
fn slope(points: &[Point]) -> f64 {
    let (times, delays): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (mean(&times), mean(&delays));
    let both: f64 = points.iter().map(|(time, delay)| (time - x) * (delay - y)).sum();
    both / times.iter().map(|time| (time - x) * (time - x)).sum::<f64>()
}

/// Time and smoothed RTT of a path.
fn delays(series: &[Sample], path: &str) -> Vec<Point> {
    let of = series.iter().filter(|row| row.connection == "mptcp" && row.path == path);
    of.filter_map(|row| Some((row.time_s, row.srtt_ms? / 1000.0))).collect()
}

/// Figures 1 and 2 begin after slow start.
const SETTLED_S: f64 = 10.0;

/// Of a connection on one path.
fn settled(series: &[Sample]) -> Vec<Point> {
    let mut found = delays(series, "row");
    found.retain(|(time, _)| *time > SETTLED_S);
    found
}

/// The median of a figure of lines, each with as many votes as samples.
fn weighted(lines: &[Vec<Point>], figure: impl Fn(&[Point]) -> f64) -> f64 {
    let votes = lines.iter().flat_map(|line| std::iter::repeat_n(figure(line), line.len()));
    median(&votes.collect::<Vec<_>>())
}

fn packets_per_s(mbps: f64) -> f64 {
    mbps * 1e6 / (8.0 * 1500.0)
}

/// A slope: reproduced within a quarter; off by more is worse on either side.
fn slope_is(found: f64, expected: f64) -> Judged {
    if (found / expected - 1.0).abs() <= 0.25 {
        return Verdict::Reproduced.into();
    }
    Judged::new(Verdict::Worse, if found > expected { "larger" } else { "smaller" })
}

/// One Reno flow alone: equation 13, by which the square of the RTT rises by 2 n / C in a second.
pub fn figure_1(runs: &Runs) -> Result<Grid, Error> {
    let found = runs.get(&ask(runs, &alone(), ["reno"], None).series())?;
    let squares: Vec<Point> =
        settled(&found["reno"][0].series).iter().map(|(time, rtt)| (*time, rtt * rtt)).collect();
    let lines = rises(&squares);
    let found = weighted(&lines, slope);
    let expected = 2.0 / packets_per_s(ALONE_MBPS);
    let mut grid = Grid::new(["slope of RTT², s²/s", "2 n / C", "ours", "rises", "verdict"]);
    grid.row([
        Cell::from("one Reno flow, 1 Mbit/s"),
        format!("{expected:.4}").into(),
        format!("{found:.4}").into(),
        lines.len().to_string().into(),
        slope_is(found, expected).into(),
    ]);
    Ok(grid)
}

/// One path with others on it: n / C, and n / (C r) with the line's mean RTT.
pub fn table_1(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "",
        "law",
        "flows",
        "queue, ms",
        "slope, ms/s",
        "n / C",
        "verdict",
        "n / (C r)",
        "verdict",
    ]);
    let all = [
        (15, TABLE_1_QUEUE_MS),
        (30, TABLE_1_QUEUE_MS),
        (60, TABLE_1_QUEUE_MS),
        (60, 4 * TABLE_1_QUEUE_MS),
    ];
    for (place, (mbps, _, law)) in SINGLE.into_iter().enumerate() {
        for &(flows, queue_ms) in &all[..runs.form().pick(4, 4, 1)] {
            let network = single(place, flows, queue_ms);
            let found = runs.get(&ask(runs, &network, [law], None).series())?;
            let lines = rises(&settled(&found[law][0].series));
            let found = 1000.0 * weighted(&lines, slope);
            let rtt = weighted(&lines, |line| {
                mean(&line.iter().map(|point| point.1).collect::<Vec<_>>())
            });
            let plain = 1000.0 * f64::from(flows) / packets_per_s(mbps);
            let exact = plain / rtt;
            grid.row([
                Cell::from((place + 1).to_string()),
                law.into(),
                flows.to_string().into(),
                queue_ms.to_string().into(),
                format!("{found:.0}").into(),
                format!("{plain:.0}").into(),
                slope_is(found, plain).into(),
                format!("{exact:.0}").into(),
                slope_is(found, exact).into(),
            ]);
        }
    }
    Ok(grid)
}

/// Table 5, pairs of slopes in ms/s.
const PUBLISHED_PAIRS: [[f64; 2]; 9] = [
    [473.0, 441.0],
    [219.0, 190.0],
    [397.0, 454.0],
    [140.0, 147.0],
    [447.0, 410.0],
    [348.0, 317.0],
    [335.0, 341.0],
    [182.0, 190.0],
    [286.0, 283.0],
];
/// The detector's constants (section 4.3): its period and the gap of two lines in s, the error of two slopes; flat lines
/// match nothing.
const PERIOD_S: u32 = 5;
const TAU_S: f64 = 1.0;
const EPS: f64 = 0.2;
const FLAT: f64 = 0.010;

/// Equation 18.
fn difference([one, other]: [f64; 2]) -> f64 {
    (one - other).abs() / one.max(other)
}

/// By period, the slopes of two paths' longest lines if they match by Algorithm 3.
fn effective(paths: [&[Point]; 2]) -> Vec<[f64; 2]> {
    let of = |period: u32| {
        let [from, to] = [period, period + 1].map(|period| f64::from(period * PERIOD_S));
        let longest = |path: &[Point]| {
            let inside: Vec<Point> =
                path.iter().copied().filter(|(time, _)| from <= *time && *time < to).collect();
            // Of equal ones the first.
            rises(&inside).into_iter().rev().max_by_key(Vec::len)
        };
        let [one, other] = [longest(paths[0])?, longest(paths[1])?];
        let slopes = [slope(&one), slope(&other)];
        let apart = one[0].0.max(other[0].0) - end(&one).0.min(end(&other).0);
        let matches =
            slopes[0].min(slopes[1]) > FLAT && apart <= TAU_S && difference(slopes) <= EPS;
        matches.then_some(slopes)
    };
    (0..DURATION_S / PERIOD_S).filter_map(of).collect()
}

/// Pairs of slopes that match, in T4-E5.
pub fn table_5(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "",
        "pairs in a run",
        "slopes, ms/s",
        "median",
        "largest error",
        "median's verdict",
    ]);
    let middle = |pairs: &[[f64; 2]]| median(&pairs.concat());
    let mut add = |name: String, pairs: &[[f64; 2]], runs: u64, judged: Cell| {
        let both = pairs.concat();
        let (low, high) = both
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), &one| (low.min(one), high.max(one)));
        let some = |text: String| Cell::from(if pairs.is_empty() { "-".into() } else { text });
        grid.row([
            Cell::from(name),
            format!("{:.1}", pairs.len() as f64 / runs as f64).into(),
            some(format!("{low:.0} to {high:.0}")),
            some(format!("{:.0}", middle(pairs))),
            some(format!("{:.2}", pairs.iter().map(|pair| difference(*pair)).fold(0.0, f64::max))),
            judged,
        ]);
    };
    add("paper".into(), &PUBLISHED_PAIRS, 1, "".into());
    for row in rows_of("tr") {
        let network = experiment("T4-E5").shared(row.rival, None);
        let found =
            runs.get(&ask(runs, &network, row.together(), row.signal).seeds(seeds(runs)).series())?;
        let of = |series: &[Sample]| {
            effective(ROUTES.map(|path| delays(series, path)).each_ref().map(Vec::as_slice))
        };
        let pairs: Vec<[f64; 2]> = found[row.control]
            .iter()
            .flat_map(|run| of(&run.series))
            .map(|pair| pair.map(|slope| 1000.0 * slope))
            .collect();
        let judged = if pairs.is_empty() {
            Verdict::CannotBeTold.into()
        } else {
            slope_is(middle(&pairs), middle(&PUBLISHED_PAIRS)).into()
        };
        add(row.name(), &pairs, seeds(runs), judged);
    }
    Ok(grid)
}

/// Windows of Figures 8 and 9, s.
const WINDOWS: [u32; 7] = [0, 5, 10, 20, 40, 80, DURATION_S];

/// T3-E1, seed 1.
pub fn rates(runs: &Runs) -> Result<Grid, Error> {
    let heads = WINDOWS.windows(2).map(|pair| format!("{} to {} s", pair[0], pair[1]));
    let mut grid = Grid::new(["Mbit/s".to_owned()].into_iter().chain(heads));
    let mut data = "control,signal,connection,time_s,goodput_mbps\n".to_owned();
    let listed: Vec<Row> = beside_reno("ssc").into_iter().chain(beside_reno("tr")).collect();
    for row in listed {
        let network = experiment("T3-E1").shared(row.rival, None);
        let found = runs.get(&ask(runs, &network, row.together(), row.signal).series())?;
        let signal = row.signal.unwrap_or_default();
        for connection in ["mptcp", "tcp1", "tcp2"] {
            // Paths of one time follow each other.
            let of: Vec<&Sample> = found[row.control][0]
                .series
                .iter()
                .filter(|line| line.connection == connection)
                .collect();
            let sums: Vec<(f64, f64)> = of
                .chunk_by(|a, b| a.time_s == b.time_s)
                .map(|same| {
                    (same[0].time_s, same.iter().filter_map(|line| line.goodput_mbps).sum())
                })
                .collect();
            for (time, rate) in &sums {
                let _ = writeln!(data, "{},{signal},{connection},{time},{rate:.3}", row.control);
            }
            // A sample is about the 100 ms before it.
            let window = |pair: &[u32]| {
                let inside = sums
                    .iter()
                    .filter(|(time, _)| f64::from(pair[0]) < *time && *time <= f64::from(pair[1]));
                format!("{:.1}", mean(&inside.map(|(_, rate)| *rate).collect::<Vec<_>>()))
            };
            let name = format!("{}, {signal}: {connection}", row.control);
            grid.row([name].into_iter().chain(WINDOWS.windows(2).map(window)));
        }
    }
    let rates = Curves {
        title: "Goodput beside two TCP flows",
        about: "In T3-E1; samples of 100 ms: their mean between the least and the greatest.",
        plots: &["control", "signal"],
        curves: &["connection"],
        x: ("time_s", "time, s"),
        y: (Some("goodput_mbps"), "goodput", "Mbit/s"),
        ci95: None,
        smooth: true,
    };
    grid.draw("rates.csv", data, &rates);
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays that rise and fall, sampled every 100 ms for 40 s.
    fn teeth(rise: f64, tooth: f64) -> Vec<Point> {
        let of = |n: u32| {
            let time = f64::from(n) / 10.0;
            (time, 0.1 + rise * (time % tooth))
        };
        (0..400).map(of).collect()
    }

    #[test]
    fn lines_are_the_rises() {
        let lines = rises(&teeth(0.02, 4.0));
        assert_eq!(lines.len(), 10);
        for line in &lines {
            assert!((slope(line) - 0.02).abs() < 1e-9);
        }
        let falls: Vec<Point> =
            (0..400).map(|n| (f64::from(n) / 10.0, 1.0 - f64::from(n) / 1000.0)).collect();
        assert!(rises(&falls).is_empty());
    }

    #[test]
    fn a_dip_does_not_part_a_line_and_a_lower_delay_does() {
        let line = |less: fn(u32) -> f64| -> Vec<Point> {
            (0..40).map(|n| (f64::from(n) / 10.0, 0.1 + 0.002 * f64::from(n) - less(n))).collect()
        };
        assert_eq!(rises(&line(|n| if n == 20 { 0.003 } else { 0.0 })).len(), 1);
        assert_eq!(rises(&line(|n| if n >= 20 { 0.05 } else { 0.0 })).len(), 2);
    }

    #[test]
    fn equation_13_is_a_line_of_squares() {
        let rate = 2.0 / packets_per_s(1.0);
        let delays =
            (0..100).map(|n| (f64::from(n) / 10.0, (0.01 + rate * f64::from(n) / 10.0).sqrt()));
        let lines = rises(&delays.map(|(time, delay)| (time, delay * delay)).collect::<Vec<_>>());
        assert_eq!(lines.len(), 1);
        assert!((slope(&lines[0]) - rate).abs() < 1e-9);
    }

    #[test]
    fn lines_of_two_paths_match_by_slope_and_time() {
        let one = teeth(0.02, 5.0);
        let matched = |other: &[Point]| effective([&one, other]).len();
        assert_eq!(matched(&teeth(0.023, 5.0)), 8);
        assert_eq!(matched(&teeth(0.03, 5.0)), 0);
        // Flat ones match nothing.
        assert!(effective([&teeth(0.005, 5.0), &teeth(0.005, 5.0)]).is_empty());
        // More than a second apart within the period.
        let part = |keep: fn(f64) -> bool| -> Vec<Point> {
            one.iter()
                .map(|&(time, delay)| (time, if keep(time % 5.0) { delay } else { 0.0 }))
                .collect()
        };
        assert!(effective([&part(|time| time < 1.5), &part(|time| time > 3.0)]).is_empty());
    }

    #[test]
    fn a_slope_is_within_a_quarter() {
        let said = [8.0, 12.0, 14.0, 7.0].map(|one| slope_is(one, 10.0).to_string());
        assert_eq!(said, ["reproduced", "reproduced", "worse (larger)", "worse (smaller)"]);
    }
}
