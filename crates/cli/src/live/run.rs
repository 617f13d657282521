//! `narrows run --live`: how a run goes on, on the terminal.

use std::sync::{Mutex, MutexGuard};

use narrows_foreign::Foreign;
use narrows_lab::detection::Found;
use narrows_lab::series::Sample;
use narrows_lab::{Live, Scenario, Seen};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph, Row, Table};

use crate::live::View;

/// Colours of paths, again from the first on where there are no more.
const COLOURS: [Color; 6] =
    [Color::Blue, Color::Yellow, Color::Green, Color::Magenta, Color::Cyan, Color::Red];

/// Points of a curve at most: about as many as a terminal has dots beside each other.
const POINTS: usize = 120;

/// What is shown of a run.
pub struct OfRun {
    /// Scenario, control, host and seed.
    title: String,
    /// The end, s.
    end_s: f64,
    /// The connection under test.
    test: Option<String>,
    real_time: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    time_s: f64,
    /// As last seen.
    paths: Vec<Path>,
    /// Where the detector places the paths of the connection under test.
    places: Vec<Found>,
}

struct Path {
    connection: Foreign,
    name: Foreign,
    now: Sample,
    /// Mbit/s.
    goodput: Curve,
    /// Packets.
    window: Curve,
}

/// Means of as many samples each, twice as many where it gets long.
#[derive(Default)]
struct Curve {
    points: Vec<(f64, f64)>,
    /// Samples of a point, as a power of two.
    power: u32,
    /// Those of the last.
    last: u32,
}

impl Curve {
    fn add(&mut self, time_s: f64, value: f64) {
        let full = self.last >= 1 << self.power;
        match self.points.last_mut() {
            Some(last) if !full => {
                self.last += 1;
                last.1 += (value - last.1) / f64::from(self.last);
            }
            _ => {
                self.points.push((time_s, value));
                self.last = 1;
            }
        }
        if self.points.len() > POINTS && self.last >= 1 << self.power {
            self.power += 1;
            let mean = |pair: &[(f64, f64)]| {
                let sum: f64 = pair.iter().map(|point| point.1).sum();
                (pair[0].0, sum / pair.len() as f64)
            };
            // Of an odd number the last is half full.
            self.last = if self.points.len() % 2 == 0 { 1 << self.power } else { self.last };
            self.points = self.points.chunks(2).map(mean).collect();
        }
    }
}

impl Live for OfRun {
    fn see(&self, seen: Seen) {
        let mut state = self.state();
        state.time_s = seen.time_s;
        state.places = seen.places;
        if state.paths.is_empty() {
            let path = |sample: &Sample| Path {
                connection: Foreign::from(sample.connection.as_str()),
                name: Foreign::from(sample.path.as_str()),
                now: sample.clone(),
                goodput: Curve::default(),
                window: Curve::default(),
            };
            state.paths = seen.samples.iter().map(path).collect();
        }
        for (path, sample) in state.paths.iter_mut().zip(seen.samples) {
            path.now = sample.clone();
            if let Some(rate) = sample.goodput_mbps {
                path.goodput.add(seen.time_s, rate);
            }
            if let Some(window) = sample.cwnd_packets {
                path.window.add(seen.time_s, f64::from(window));
            }
        }
    }
}

impl OfRun {
    /// Of a run of `scenario`, which `title` names.
    pub fn new(title: String, scenario: &Scenario, real_time: bool) -> OfRun {
        let test = scenario.test.map(|test| scenario.flows[test].name.clone());
        let end_s = scenario.end() as f64 / 1e9;
        OfRun { title, end_s, test, real_time, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|error| error.into_inner())
    }

    fn table(&self, state: &State) -> Table<'static> {
        let number = |value: Option<f64>, digits: usize| {
            let text = value.map_or("-".into(), |value| format!("{value:.digits$}"));
            Line::from(text).right_aligned()
        };
        let mut of_test = 0;
        let row = |(number_of, path): (usize, &Path)| {
            let Path { connection, name, now, .. } = path;
            // Only the connection under test has a detector that is shown.
            let tested = self.test.as_deref() == Some(connection.raw());
            let place = state.places.get(of_test).filter(|_| tested);
            of_test += usize::from(tested);
            let group = match place {
                Some(Found::Group(group)) => format!("group {}", 1 + group),
                Some(Found::Clear) => "not congested".into(),
                Some(Found::Undecided) => "undecided".into(),
                None => String::new(),
            };
            let window = |value: Option<u32>| number(value.map(f64::from), 0);
            let cells = [
                Line::from(format!("{connection} {name}")),
                number(now.goodput_mbps, 2),
                window(now.cwnd_packets),
                window(now.ssthresh_packets),
                number(now.srtt_ms, 1),
                number(Some(now.queue_ms), 1),
                Line::from(group),
            ];
            Row::new(cells).style(COLOURS[number_of % COLOURS.len()])
        };
        let rows: Vec<Row> = state.paths.iter().enumerate().map(row).collect();
        let right = |head: &'static str| Line::from(head).right_aligned();
        let heads = [
            Line::from("path"),
            right("Mbit/s"),
            right("cwnd"),
            right("ssthresh"),
            right("srtt, ms"),
            right("queue, ms"),
            Line::from("detector"),
        ];
        let widths = [24, 8, 7, 8, 8, 9, 13].map(Constraint::Length);
        Table::new(rows, widths).header(Row::new(heads).style(Style::new().bold()))
    }

    fn chart(
        &self,
        frame: &mut Frame,
        area: Rect,
        title: &'static str,
        state: &State,
        curve: fn(&Path) -> &Curve,
    ) {
        let all = state.paths.iter().flat_map(|path| &curve(path).points);
        let most = all.map(|point| point.1).fold(0.0, f64::max);
        let top = if most > 0.0 { 1.05 * most } else { 1.0 };
        let drawn = |(number, path)| {
            let style = Style::new().fg(COLOURS[number % COLOURS.len()]);
            let of = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
            of.style(style).data(&curve(path).points)
        };
        let curves = state.paths.iter().enumerate().map(drawn).collect();
        let ends = |end: f64| ["0".to_owned(), format!("{end:.0}")];
        let chart = Chart::new(curves)
            .block(Block::bordered().title(title))
            .x_axis(Axis::default().bounds([0.0, self.end_s]).labels(ends(self.end_s)))
            .y_axis(Axis::default().bounds([0.0, top]).labels(ends(most)));
        frame.render_widget(chart, area);
    }
}

impl View for OfRun {
    const STAYS: bool = true;

    fn draw(&self, frame: &mut Frame, over: bool) {
        let state = self.state();
        let rows = (state.paths.len() + 1) as u16;
        let [title, time, table, charts, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Max(rows),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(Foreign::from(&*self.title).to_string()).bold(), title);
        let of = if self.real_time { "real" } else { "simulated" };
        let said = format!("{:.1} of {} s, {of} time", state.time_s, self.end_s);
        let share = (state.time_s / self.end_s).clamp(0.0, 1.0);
        let gauge = Gauge::default().ratio(if share.is_nan() { 0.0 } else { share }).label(said);
        frame.render_widget(gauge.gauge_style(Color::Blue), time);
        frame.render_widget(self.table(&state), table);
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(charts);
        self.chart(frame, left, "Goodput, Mbit/s", &state, |path| &path.goodput);
        self.chart(frame, right, "Congestion window, packets", &state, |path| &path.window);
        let said = match over {
            false => "q or Ctrl-C interrupts the run",
            true => "The run has ended; a key shows its results",
        };
        frame.render_widget(Paragraph::new(said).dim(), keys);
    }
}

#[cfg(test)]
mod tests {
    use narrows_lab::{Edits, load};

    use super::*;
    use crate::live::lines;

    fn sample(connection: &str, path: &str, goodput: f64, cwnd: Option<u32>) -> Sample {
        Sample {
            time_s: 0.0,
            connection: connection.into(),
            path: path.into(),
            cwnd_packets: cwnd,
            ssthresh_packets: None,
            srtt_ms: Some(41.25),
            inflight_packets: None,
            goodput_mbps: Some(goodput),
            queue_ms: 3.0,
        }
    }

    fn view() -> OfRun {
        let scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        OfRun::new("a \u{1b}[2J b".into(), &scenario, false)
    }

    #[test]
    fn it_shows_rates_windows_and_groups_of_all_paths() {
        let view = view();
        let samples = [
            sample("mptcp", "path1", 4.126, Some(12)),
            sample("mptcp", "path2", 1.5, None),
            sample("tcp\u{1b}1", "path1", 9.0, Some(7)),
        ];
        let places = vec![Found::Group(0), Found::Undecided];
        view.see(Seen { time_s: 12.3, samples: &samples, places });
        let lines = lines(&view, (100, 24));
        assert!(lines[0].starts_with("a \\u001b[2J b"), "{}", lines[0]);
        assert!(lines[1].contains(&format!("12.3 of {} s, simulated time", view.end_s)));
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(
            words(&lines[3]),
            ["mptcp", "path1", "4.13", "12", "-", "41.2", "3.0", "group", "1"]
        );
        assert_eq!(words(&lines[4])[2..], ["1.50", "-", "-", "41.2", "3.0", "undecided"]);
        assert_eq!(words(&lines[5])[0], "tcp\\u001b1");
        assert_eq!(words(&lines[5]).len(), 7, "no place: {}", lines[5]);
        assert!(lines[23].starts_with("q or Ctrl-C interrupts the run"), "{}", lines[23]);
        let dots = |lines: &[String]| {
            let braille = |letter: char| ('\u{2801}'..='\u{28ff}').contains(&letter);
            lines.iter().flat_map(|line| line.chars()).filter(|letter| braille(*letter)).count()
        };
        let before = dots(&lines);
        view.see(Seen { time_s: 24.0, samples: &samples, places: Vec::new() });
        assert!(dots(&crate::live::lines(&view, (100, 24))) > before, "curves grow");
    }

    #[test]
    fn a_long_curve_is_of_means() {
        let mut curve = Curve::default();
        let count = 16 * POINTS as u32;
        for i in 0..count {
            curve.add(f64::from(i), f64::from(i));
        }
        // Each point is the mean of what begins at its time.
        let each = f64::from(1_u32 << curve.power);
        assert!(each >= 8.0 && curve.points.len() <= POINTS + 1);
        for &(time, mean) in &curve.points[..curve.points.len() - 1] {
            assert_eq!(mean, time + (each - 1.0) / 2.0, "from {time}");
        }
    }

    #[test]
    fn any_terminal_is_large_enough_and_any_run_short_enough() {
        let view = view();
        for size in [(1, 1), (20, 4), (300, 100)] {
            lines(&view, size);
        }
        let samples: Vec<Sample> =
            (0..40).map(|path| sample("mptcp", &path.to_string(), 1.0, Some(1))).collect();
        for i in 0..10_000 {
            view.see(Seen { time_s: f64::from(i), samples: &samples, places: Vec::new() });
        }
        let longest = view.state().paths.iter().map(|path| path.goodput.points.len()).max();
        assert!(longest.is_some_and(|points| (POINTS / 2..=POINTS + 1).contains(&points)));
        for size in [(1, 1), (20, 4), (80, 24)] {
            lines(&view, size);
        }
    }
}
