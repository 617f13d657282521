//! `narrows compare --live`: what the runs that are done have shown so far.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use narrows_foreign::Foreign;
use narrows_lab::{Finished, Plan, Spread, Task, TestSummary};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Gauge, Paragraph, Row, Table, TableState};

use crate::live::View;
use crate::progress::Progress;

/// A metric: its head, decimals, and how it is read.
type Shown = (&'static str, usize, fn(&TestSummary) -> Option<f64>);

/// Those that are shown, where a run has them.
const METRICS: [Shown; 4] = [
    ("Mbit/s", 2, |test| Some(test.goodput_mbps)),
    ("ratio", 2, |test| test.ratio_to_tcp),
    ("accuracy", 2, |test| test.accuracy),
    ("RTT, ms", 0, |test| test.p50_rtt_ms.into()),
];

/// Of the bars of goodput, columns.
const BAR: usize = 20;

/// What is shown of a comparison.
pub struct OfComparison {
    title: String,
    /// Heads of the columns that tell the rows apart.
    heads: Vec<String>,
    /// In the order of the plan.
    rows: Vec<Vec<String>>,
    /// The row of a run, as its task with seed 0.
    row_of: HashMap<Task, usize>,
    /// Runs of a row.
    seeds: u64,
    state: Mutex<State>,
    /// How far it is.
    pub progress: Progress,
}

struct State {
    rows: Vec<Seen>,
    /// Runs that are done.
    done: u64,
    /// The row of the last.
    last: Option<usize>,
}

/// What the runs of a row have shown.
#[derive(Clone, Default)]
struct Seen {
    done: u64,
    /// Of these, those that missed real time.
    unfit: u64,
    /// Of the others, by metric.
    values: [Vec<f64>; METRICS.len()],
    /// Their means.
    shown: [String; METRICS.len()],
    /// Mean, Mbit/s.
    goodput: f64,
}

impl OfComparison {
    /// Of the runs of a plan.
    pub fn new(plan: &Plan) -> OfComparison {
        let first = plan.tasks().into_iter().filter(|task| task.seed == plan.seeds.first());
        let first: Vec<Task> = first.collect();
        let scenario = |task: &Task| &plan.cases[task.case].scenario.name;
        let several = first.iter().any(|task| scenario(task) != scenario(&first[0]));
        let axes = &plan.cases[0].set;
        let head = |there: bool, head: &str| there.then(|| head.to_owned());
        let heads = [head(several, "scenario")].into_iter();
        let heads =
            heads.chain(axes.iter().map(|point| Some(Foreign::from(&*point.field).to_string())));
        let heads = heads.chain([
            head(true, "control"),
            head(!plan.signals.is_empty(), "signal"),
            head(plan.hosts.len() > 1, "host"),
        ]);
        let row = |task: &Task| {
            let set = &plan.cases[task.case].set;
            let set = set.iter().map(|point| Some(Foreign::from(&*point.value).to_string()));
            let scenario = several.then(|| Foreign::from(&**scenario(task)).to_string());
            let signal = |of: usize| plan.signals.get(of).map(|signal| signal.name().to_owned());
            let signal = task.signal.and_then(signal).unwrap_or_default();
            let rest = [
                Some(task.control.to_string()),
                (!plan.signals.is_empty()).then_some(signal),
                (plan.hosts.len() > 1).then(|| task.host.to_string()),
            ];
            [scenario].into_iter().chain(set).chain(rest).flatten().collect()
        };
        let of = match several {
            false => first.first().map_or_else(String::new, |task| scenario(task).clone()),
            true => "several scenarios".into(),
        };
        let (from, to) = (plan.seeds.first(), plan.seeds.first() + plan.seeds.count() - 1);
        OfComparison {
            title: format!("{}, seeds {from} to {to}", Foreign::from(&*of)),
            heads: heads.flatten().collect(),
            rows: first.iter().map(row).collect(),
            row_of: first.iter().enumerate().map(|(row, task)| (unseeded(*task), row)).collect(),
            seeds: plan.seeds.count(),
            state: Mutex::new(State {
                rows: vec![Seen::default(); first.len()],
                done: 0,
                last: None,
            }),
            progress: Progress::hidden(plan.jobs),
        }
    }

    /// A run is done.
    pub fn see(&self, run: &Finished) {
        let Some(&row) = self.row_of.get(&unseeded(run.task())) else { return };
        let mut state = self.state();
        (state.done, state.last) = (state.done + 1, Some(row));
        let seen = &mut state.rows[row];
        seen.done += 1;
        if run.summary.fitness.as_ref().is_some_and(|fitness| !fitness.fit) {
            seen.unfit += 1;
            return;
        }
        for (metric, (_, digits, get)) in METRICS.into_iter().enumerate() {
            seen.values[metric].extend(run.summary.test.as_ref().and_then(get));
            let Some(spread) = Spread::of(&seen.values[metric]) else { continue };
            let within = spread.ci95.map(|ci95| format!(" \u{b1}{ci95:.digits$}"));
            seen.shown[metric] = format!("{:.digits$}{}", spread.mean, within.unwrap_or_default());
            if metric == 0 {
                seen.goodput = spread.mean;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|error| error.into_inner())
    }

    fn table(&self, state: &State) -> Table<'static> {
        let shown = |metric: &usize| state.rows.iter().any(|seen| !seen.values[*metric].is_empty());
        let shown: Vec<usize> = (0..METRICS.len()).filter(shown).collect();
        let most = state.rows.iter().map(|seen| seen.goodput).fold(0.0, f64::max);
        let row = |(labels, seen): (&Vec<String>, &Seen)| {
            let mut cells: Vec<Line> =
                labels.iter().map(|label| Line::from(label.clone())).collect();
            let unfit = match seen.unfit {
                0 => String::new(),
                unfit => format!(", {unfit} unfit"),
            };
            cells.push(Line::from(format!("{}/{}{unfit}", seen.done, self.seeds)).right_aligned());
            let numbers = shown.iter().map(|&metric| seen.shown[metric].clone());
            cells.extend(numbers.map(|text| Line::from(text).right_aligned()));
            let full = if most > 0.0 { (BAR as f64 * seen.goodput / most).round() } else { 0.0 };
            cells.push(Line::from("\u{2588}".repeat(full as usize)).fg(Color::Blue));
            Row::new(cells)
        };
        let rows: Vec<Row> = self.rows.iter().zip(&state.rows).map(row).collect();
        let widest = |column: usize, head: &String| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([head.chars().count()]).max().unwrap_or(0) as u16
        };
        let mut widths: Vec<u16> =
            self.heads.iter().enumerate().map(|(column, head)| widest(column, head)).collect();
        let mut heads: Vec<Line> = self.heads.iter().map(|head| Line::from(head.clone())).collect();
        heads.push(Line::from("runs").right_aligned());
        widths.push(if state.rows.iter().any(|seen| seen.unfit > 0) { 18 } else { 9 });
        for metric in shown {
            heads.push(Line::from(METRICS[metric].0).right_aligned());
            widths.push(14);
        }
        heads.push(Line::from("goodput"));
        // Bars have what the rest leaves.
        let widths = widths.into_iter().map(Constraint::Length).chain([Constraint::Fill(1)]);
        Table::new(rows, widths)
            .header(Row::new(heads).style(Style::new().bold()))
            .row_highlight_style(Style::new().bold())
    }
}

/// A run's task without its seed.
fn unseeded(task: Task) -> Task {
    Task { seed: 0, ..task }
}

impl View for OfComparison {
    const STAYS: bool = false;

    fn draw(&self, frame: &mut Frame, _over: bool) {
        let state = self.state();
        let [title, time, table, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.title.clone()).bold(), title);
        let all = self.seeds * self.rows.len() as u64;
        let left = self.progress.left().unwrap_or_default();
        let said = format!("{} of {all} runs{left}", state.done);
        let share = (state.done as f64 / all.max(1) as f64).clamp(0.0, 1.0);
        frame.render_widget(
            Gauge::default().ratio(share).label(said).gauge_style(Color::Blue),
            time,
        );
        // The row of the last run is always among those that fit.
        let mut at = TableState::default().with_selected(state.last);
        frame.render_stateful_widget(self.table(&state), table, &mut at);
        let said =
            "q or Ctrl-C interrupts it; \u{b1}: half the 95 % interval; bold: the last run's";
        frame.render_widget(Paragraph::new(said).dim(), keys);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use narrows_lab::{Case, Edits, HostId, Job, Point, Run, Seeds, SeriesOf, host, load, run};

    use super::*;
    use crate::live::lines;

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn each_row_shows_the_runs_that_are_done() {
        let set = ["warmup", "duration"].into_iter().zip(["1 s", "3 s"]);
        let set = set.map(|(field, value)| (field.into(), value.into())).collect();
        let scenario = load("sbd/sb-2", &Edits { set, traces: vec![] }).unwrap();
        let case = |value: &str| {
            let set = vec![Point::new("title", value)];
            Case { scenario: scenario.clone(), set }
        };
        let cases: Vec<Case> = (0..40).map(|value| case(&format!("v{value}\u{1b}[2J"))).collect();
        let controls = ["reno".parse().unwrap(), "lia".parse().unwrap()];
        let seeds = Seeds::up_to(3);
        let (hosts, series) = (&[HostId::SIM], SeriesOf::None);
        let plan = Plan {
            cases: &cases,
            controls: &controls,
            signals: &[],
            hosts,
            seeds,
            jobs: 1,
            series,
        };
        let view = OfComparison::new(&plan);
        let before = lines(&view, (100, 24));
        assert!(before[0].starts_with("sbd/sb-2, seeds 1 to 3 "), "{}", before[0]);
        assert!(before[1].contains("0 of 240 runs"), "{}", before[1]);
        assert_eq!(words(&before[2]), ["title", "control", "runs", "goodput"]);
        assert_eq!(words(&before[3]), ["v0\\u001b[2J", "reno", "0/3"]);

        let stop = AtomicBool::new(false);
        let control = controls[1];
        let job = Job { control: Some(control), ..Job::new(&scenario, &stop) };
        let Run { summary, .. } = run(host("sim").unwrap(), job).unwrap();
        let goodput = summary.test.as_ref().unwrap().goodput_mbps;
        let (series, decisions) = (Vec::new(), Vec::new());
        let mut run = Finished { case: 39, control, signal: None, summary, series, decisions };
        for add in [0.0, 2.0] {
            run.summary.test.as_mut().unwrap().goodput_mbps = goodput + add;
            view.see(&run);
        }
        let after = lines(&view, (120, 24));
        assert!(after[1].contains("2 of 240 runs"), "{}", after[1]);
        assert_eq!(words(&after[2])[3], "Mbit/s", "{}", after[2]);
        // It scrolls there.
        let row = after.iter().find(|line| line.contains("2/3")).unwrap();
        // Of two values t is 12.706, and half of the interval that by half of their distance.
        let mean = format!("{:.2}", goodput + 1.0);
        assert_eq!(words(row)[..5], ["v39\\u001b[2J", "lia", "2/3", &mean, "\u{b1}12.71"], "{row}");
        assert!(row.contains(&"\u{2588}".repeat(BAR)), "{row}");
        for size in [(1, 1), (20, 4), (300, 100)] {
            lines(&view, size);
        }
    }
}
