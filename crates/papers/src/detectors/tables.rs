//! The tables: a row for each cell, a column for each detector with its signal.

use std::collections::BTreeMap;
use std::fmt::Write;

use indexmap::IndexMap;
use narrows_lab::{Error, PassiveSummary};
use narrows_stats::mean;

use super::design::{Cell, Design};
use super::findings::{Figures, Findings, STRONG, figures};
use crate::figures::{Interval, time};
use crate::{Ask, Form, Grid, Kept, Runs};

const RIGHT: usize = 0;
const WRONG: usize = 1;
const UNSURE: usize = 2;

/// The cells of a form: all, or one of each kind.
fn cells_of(design: &Design, form: Form) -> Vec<Cell> {
    let mut cells = design.cells();
    if form == Form::Least {
        cells.retain(|cell| {
            ["separate, centre", "shared, 1 ms", "shared, drawn 13", "shifting, every 10 s"]
                .contains(&&*cell.name)
        });
    }
    cells
}

/// A cell's network under some controls; none where its recordings are not to be had.
fn asked(form: Form, cell: &Cell, controls: &[String], first: u64, seeds: u64) -> Option<Ask> {
    let ask = Ask::of(&cell.scenario, controls.iter().map(String::as_str))
        .set(cell.settings.iter().cloned());
    let ask = ask.traces(cell.recorded()?).from_to(first..=first + seeds - 1);
    // What shifts needs all of its time.
    Some(if cell.side == "shifting" { ask } else { ask.brief(form) })
}

/// What stands below a table where cells were left out.
fn skipped<'a>(mut cells: impl Iterator<Item = &'a Cell>) -> String {
    if cells.all(|cell| cell.recorded().is_some()) {
        return String::new();
    }
    "Cells with recordings were left out, as NARROWS_TEST_DATA is not set.".into()
}

/// The one of a run with this detector and signal.
fn passive<'a>(run: &'a Kept, name: &str) -> &'a PassiveSummary {
    let is = |one: &&PassiveSummary| format!("{}:{}", one.detector, one.signal) == name;
    run.summary.passive.iter().find(is).expect("a passive detector that was asked for")
}

/// Figures by detector and signal, over all masks and by each of them.
type Found = IndexMap<String, (Figures, Vec<(String, Figures)>)>;

/// What each detector found in a cell; nothing where it was skipped.
fn open(runs: &Runs, design: &Design, cell: &Cell) -> Result<Found, Error> {
    let controls = &design.open.controls[&cell.law];
    let seeds = runs.seeds(design.seeds.full, design.seeds.quick);
    let Some(ask) = asked(runs.form(), cell, controls, design.seeds.first, seeds) else {
        return Ok(Found::new());
    };
    let names: Vec<_> = cell.passive.iter().map(|name| format!("\"{name}\"")).collect();
    let found = runs.get(&ask.set([format!("detection.passive=[{}]", names.join(", "))]))?;
    let of = |name: &String| {
        let per: Vec<(String, Vec<Findings>)> = controls
            .iter()
            .map(|control| {
                (
                    control.clone(),
                    found[control].iter().map(|run| Findings::of(passive(run, name))).collect(),
                )
            })
            .collect();
        let all: Vec<Vec<&Findings>> =
            (0..seeds as usize).map(|seed| per.iter().map(|(_, of)| &of[seed]).collect()).collect();
        let each = per.iter().map(|(control, of)| {
            (control.clone(), figures(&of.iter().map(|one| vec![one]).collect::<Vec<_>>()))
        });
        (name.clone(), (figures(&all), each.collect()))
    };
    Ok(cell.passive.iter().map(of).collect())
}

/// What was found in each cell.
struct Results {
    cells: Vec<(Cell, Found)>,
}

impl Results {
    fn of(runs: &Runs) -> Result<Results, Error> {
        let design = Design::read();
        let cells = cells_of(&design, runs.form()).into_iter();
        let cells = cells.map(|cell| open(runs, &design, &cell).map(|found| (cell, found)));
        Ok(Results { cells: cells.collect::<Result<_, _>>()? })
    }

    /// All detectors with their signals.
    fn names(&self) -> Vec<String> {
        let all = self.cells.iter().flat_map(|(cell, _)| &cell.passive);
        let names: indexmap::IndexSet<&String> = all.collect();
        names.into_iter().cloned().collect()
    }

    /// Figures of a detector, of all cells that have it.
    fn all_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Figures> {
        self.cells.iter().filter_map(move |(_, found)| Some(&found.get(name)?.0))
    }

    /// A row for each cell, a column for each detector; those with other detectors have a table of their own.
    fn grid(
        &self,
        head: &str,
        chosen: impl Fn(&Cell, &Found) -> bool,
        text: impl Fn(&Figures) -> String,
    ) -> Grid {
        let mut groups = IndexMap::<&Vec<String>, Vec<&(Cell, Found)>>::new();
        for one in self.cells.iter().filter(|(cell, found)| chosen(cell, found)) {
            groups.entry(&one.0.passive).or_default().push(one);
        }
        let mut grids = groups.into_iter().map(|(names, cells)| {
            let mut grid = Grid::new(
                [head.to_owned()].into_iter().chain(names.iter().map(|name| title(name))),
            );
            for (cell, found) in cells {
                let of = |name: &String| {
                    found.get(name).map_or("-".into(), |(figures, _)| text(figures))
                };
                grid.row([cell.name.clone()].into_iter().chain(names.iter().map(of)));
            }
            grid
        });
        let Some(mut grid) = grids.next() else { return Grid::new([head]) };
        let others: Vec<String> = grids.map(|other| other.markdown()).collect();
        grid.note = others.join("\n").trim_end().to_owned();
        grid
    }
}

/// `xcorr:rtt`: xcorr, rtt.
fn title(name: &str) -> String {
    name.replace(':', ", ")
}

/// A share in percent: of small ones it matters whether they are none.
fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1}", 100.0 * share))
}

/// A mean with its interval.
fn plus_minus(found: Option<Interval>, digits: usize, factor: f64) -> String {
    found.map_or("-".into(), |Interval { mean, half }| {
        let half = half.map_or(String::new(), |half| format!(" ± {:.digits$}", factor * half));
        format!("{:.digits$}{half}", factor * mean)
    })
}

fn seconds(found: Option<f64>) -> String {
    found.map_or("-".into(), time)
}

fn middle(found: Option<Interval>) -> Option<f64> {
    found.map(|found| found.mean)
}

/// What is asked of `xcorr` in a cell.
type Asked = (&'static str, fn(&Figures) -> Option<bool>);

const ASKED: [Asked; 5] = [
    ("wrong <= 1 %", |of| middle(of.shares[WRONG]).map(|share| share <= 0.01)),
    ("right >= 99.5 %", |of| middle(of.shares[RIGHT]).map(|share| share >= 0.995)),
    ("not sure <= 5 %", |of| middle(of.shares[UNSURE]).map(|share| share <= 0.05)),
    ("first, median <= 1.5 s", |of| of.first_s[0].map(|time| time <= 1.5)),
    ("first, 95 % <= 5 s", |of| of.first_s[1].map(|time| time <= 5.0)),
];

/// In how many cells each detector does what is asked of `xcorr`, and its shares in the mean of the cells.
pub fn summary(runs: &Runs) -> Result<Grid, Error> {
    let results = Results::of(runs)?;
    let heads = ["cells with"].into_iter().chain(ASKED.map(|(name, _)| name));
    let mut grid = Grid::new(heads.chain(["right, mean %", "wrong", "not sure"]));
    for name in results.names() {
        let mut row = vec![title(&name)];
        for (_, good) in ASKED {
            let values: Vec<bool> = results.all_of(&name).filter_map(good).collect();
            row.push(format!("{} of {}", values.iter().filter(|&&one| one).count(), values.len()));
        }
        for share in [RIGHT, WRONG, UNSURE] {
            let values: Vec<f64> =
                results.all_of(&name).filter_map(|of| middle(of.shares[share])).collect();
            row.push(percent((!values.is_empty()).then(|| mean(&values))));
        }
        grid.row(row);
    }
    grid.note = skipped(results.cells.iter().map(|(cell, _)| cell));
    grid.files.push(("open.csv".into(), data(&results)));
    Ok(grid)
}

/// The figures of all cells, by mask, too.
fn data(results: &Results) -> String {
    let mut text = "cell,factor,side,detector,signal,control,runs,right,right_ci95,wrong,wrong_ci95,unsure,unsure_ci95,\
                    first_median_s,first_p95_s,switches,followed,switch_mean_s,switch_p95_s\n"
        .to_owned();
    let number = |value: Option<f64>| {
        value.map_or(String::new(), |value| narrows_stats::round(value).to_string())
    };
    for (cell, found) in &results.cells {
        for (name, (all, each)) in found {
            let rows =
                each.iter().map(|(control, of)| (control.as_str(), of)).chain([("all", all)]);
            for (control, of) in rows {
                let _ = write!(
                    text,
                    "\"{}\",{},{},{},{control},{}",
                    cell.name,
                    cell.factor,
                    cell.side,
                    name.replace(':', ","),
                    of.runs
                );
                for share in of.shares {
                    let half = share.and_then(|share| share.half);
                    let _ = write!(text, ",{},{}", number(middle(share)), number(half));
                }
                let times = [of.first_s, of.switch_s].map(|times| times.map(number));
                let _ = writeln!(
                    text,
                    ",{},{},{},{},{},{}",
                    times[0][0], times[0][1], of.switches, of.followed, times[1][0], times[1][1]
                );
            }
        }
    }
    text
}

/// The cells in which `xcorr` is wrong in more than 1 %, with any signal.
pub fn wrong(runs: &Runs) -> Result<Grid, Error> {
    let fails = |_: &Cell, found: &Found| {
        let ours = found.iter().filter(|(name, _)| name.starts_with("xcorr:"));
        ours.filter_map(|(_, (of, _))| middle(of.shares[WRONG])).any(|share| share > 0.01)
    };
    Ok(Results::of(runs)?.grid("wrong, %", fails, |of| plus_minus(of.shares[WRONG], 1, 100.0)))
}

fn accuracy(runs: &Runs, chosen: impl Fn(&Cell) -> bool) -> Result<Grid, Error> {
    let text = |of: &Figures| {
        let [right, wrong, unsure] = of.shares;
        format!(
            "{} / {} / {}",
            plus_minus(right, 1, 100.0),
            percent(middle(wrong)),
            percent(middle(unsure))
        )
    };
    Ok(Results::of(runs)?.grid("right / wrong / not sure, %", |cell, _| chosen(cell), text))
}

/// Right, wrong and not sure of every detector, one factor at a time.
pub fn cells(runs: &Runs) -> Result<Grid, Error> {
    accuracy(runs, |cell| cell.factor != "drawn")
}

/// The same of the drawn cells.
pub fn drawn(runs: &Runs) -> Result<Grid, Error> {
    accuracy(runs, |cell| cell.factor == "drawn")
}

/// What the drawn cells are.
pub fn drawn_levels(_: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new(["cell", "levels"]);
    for drawn in &Design::read().drawn {
        grid.row([format!("{}, {}", drawn.side, drawn.name), drawn.levels.join("; ")]);
    }
    Ok(grid)
}

/// Each drawn network as a separate and as a shared one: a detector that only leans to one answer gains nothing. A
/// value is the mean over the pairs; that of a pair is the mean of its two networks.
pub fn twins(runs: &Runs) -> Result<Grid, Error> {
    let design = Design::read();
    let pairs = design.twins();
    let pairs = &pairs[..runs.form().pick(pairs.len(), pairs.len(), 1)];
    let mut sides = Vec::new();
    for cell in pairs.iter().flatten() {
        sides.push((cell.clone(), open(runs, &design, cell)?));
    }
    let results = Results { cells: sides };
    let heads = [
        "detector",
        "pairs",
        "right, %",
        "wrong",
        "not sure",
        "right where separate",
        "where shared",
    ];
    let mut grid = Grid::new(heads);
    for name in results.names() {
        // Those of other detectors are no pairs of this one.
        let found: Vec<_> = results
            .cells
            .iter()
            .filter_map(|(_, found)| Some(found.get(&name)?.0.shares.map(middle)))
            .collect();
        let pairs: Vec<_> = found.chunks_exact(2).collect();
        let of = |values: Vec<f64>| plus_minus(Interval::of(&values), 1, 100.0);
        let both = |share: usize| {
            of(pairs
                .iter()
                .filter_map(|pair| Some((pair[0][share]? + pair[1][share]?) / 2.0))
                .collect())
        };
        let side = |side: usize| of(pairs.iter().filter_map(|pair| pair[side][RIGHT]).collect());
        grid.row([
            title(&name),
            pairs.len().to_string(),
            both(RIGHT),
            both(WRONG),
            both(UNSURE),
            side(0),
            side(1),
        ]);
    }
    grid.files.push(("twins.csv".into(), data(&results)));
    Ok(grid)
}

/// How long until all pairs were first right: half of the runs, and 95 % of them.
pub fn first(runs: &Runs) -> Result<Grid, Error> {
    let text = |of: &Figures| format!("{} / {}", seconds(of.first_s[0]), seconds(of.first_s[1]));
    Ok(Results::of(runs)?.grid("median / 95 %, s", |_, _| true, text))
}

/// How long a shift takes to be followed.
pub fn switches(runs: &Runs) -> Result<Grid, Error> {
    let text = |of: &Figures| {
        let both = of.switch_s.map(seconds).join(" / ");
        format!("{both} ({} of {})", of.followed, of.switches)
    };
    let shifts = |_: &Cell, found: &Found| found.values().any(|(of, _)| of.switches > 0);
    Ok(Results::of(runs)?.grid("mean / 95 %, s (followed)", shifts, text))
}

/// How often answers were right, by their strength.
pub fn calibration(runs: &Runs) -> Result<Grid, Error> {
    let results = Results::of(runs)?;
    let names: Vec<String> =
        results.names().into_iter().filter(|name| name.starts_with("xcorr:")).collect();
    let mut counts = BTreeMap::<(u32, &str, bool), [u64; 2]>::new();
    for name in &names {
        for (&(strength, shared), [right, wrong]) in results.all_of(name).flat_map(|of| &of.answers)
        {
            let all = counts.entry((strength, name, shared)).or_default();
            all[0] += right;
            all[1] += wrong;
        }
    }
    let heads = names
        .iter()
        .flat_map(|name| ["shared", "separate"].map(|answer| format!("{}: {answer}", title(name))));
    let mut grid = Grid::new(["right, % (answers)".to_owned()].into_iter().chain(heads));
    let mut strengths: Vec<u32> = counts.keys().map(|key| key.0).collect();
    strengths.dedup();
    for twice in strengths {
        let strength = f64::from(twice) / 2.0;
        let strong = strength == STRONG;
        let mut row = vec![if strong {
            format!("{strength} and more")
        } else {
            format!("{strength} to {}", strength + 0.5)
        }];
        for name in &names {
            for shared in [true, false] {
                let [right, wrong] =
                    counts.get(&(twice, name, shared)).copied().unwrap_or_default();
                let all = right + wrong;
                row.push(if all > 0 {
                    format!("{:.2} ({all})", 100.0 * right as f64 / all as f64)
                } else {
                    "-".into()
                });
            }
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Closed loop: what the connection gets, and how right its detector is.
pub fn ratios(runs: &Runs) -> Result<Grid, Error> {
    let design = Design::read();
    let controls = &design.closed.controls;
    let mut grid =
        Grid::new(["ratio (accuracy, %)"].into_iter().chain(controls.iter().map(String::as_str)));
    let seeds = runs.seeds(design.seeds.full, design.seeds.quick).min(design.closed.seeds);
    let mut data =
        "cell,factor,side,control,runs,ratio_to_tcp,ratio_to_tcp_ci95,accuracy,accuracy_ci95\n"
            .to_owned();
    for cell in cells_of(&design, runs.form()).iter().filter(|cell| cell.closed) {
        let Some(ask) = asked(runs.form(), cell, controls, design.seeds.first, seeds) else {
            continue;
        };
        let found = runs.get(&ask.set([format!("detection.signal={}", design.closed.signal)]))?;
        let of = |control: &String| {
            let runs = &found[control];
            let known = |of: fn(&Kept) -> Option<f64>| {
                Interval::of(&runs.iter().filter_map(of).collect::<Vec<_>>())
            };
            [known(|run| run.test().ratio_to_tcp), known(|run| run.test().accuracy)]
        };
        let all: Vec<_> = controls.iter().map(of).collect();
        if all.iter().all(|[ratio, _]| ratio.is_none()) {
            continue;
        }
        let text = |[ratio, right]: &[Option<Interval>; 2]| {
            let right =
                right.map_or(String::new(), |right| format!(" ({})", percent(Some(right.mean))));
            plus_minus(*ratio, 2, 1.0) + &right
        };
        grid.row([cell.name.clone()].into_iter().chain(all.iter().map(text)));
        for (control, found) in controls.iter().zip(&all) {
            let number = |of: Option<f64>| {
                of.map_or(String::new(), |of| narrows_stats::round(of).to_string())
            };
            let numbers = found.map(|one| {
                format!("{},{}", number(middle(one)), number(one.and_then(|one| one.half)))
            });
            let _ = writeln!(
                data,
                "\"{}\",{},{},{control},{seeds},{}",
                cell.name,
                cell.factor,
                cell.side,
                numbers.join(",")
            );
        }
    }
    grid.note = skipped(cells_of(&design, runs.form()).iter());
    grid.files.push(("closed.csv".into(), data));
    Ok(grid)
}
