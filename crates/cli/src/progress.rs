//! How far runs are, on standard error and only if that is a terminal.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use narrows_papers::Told;

use crate::terminal::{note, show};

/// A line that says how far runs are, and how long those that are known of still take.
pub struct Progress {
    bar: ProgressBar,
    pace: Arc<Mutex<Pace>>,
}

impl Progress {
    /// A line of `template`, in which `{left}` is the time that is left with `after` behind it, or nothing until
    /// that can be told; `jobs` run at a time.
    pub fn new(template: &str, after: &'static str, jobs: usize) -> Progress {
        let pace = Arc::new(Mutex::new(Pace::new(jobs, Instant::now())));
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let of = Arc::clone(&pace);
        let left = move |_: &ProgressState, to: &mut dyn std::fmt::Write| {
            // Writing to a string cannot fail.
            let _ = said(&of).map_or(Ok(()), |said| write!(to, "{said}{after}"));
        };
        bar.set_style(style.with_key("left", left));
        bar.enable_steady_tick(Duration::from_millis(500));
        Progress { bar, pace }
    }

    /// One that says nothing but where it is asked.
    pub fn hidden(jobs: usize) -> Progress {
        let pace = Arc::new(Mutex::new(Pace::new(jobs, Instant::now())));
        Progress { bar: ProgressBar::hidden(), pace }
    }

    /// `, about 4 min left`; none until that can be told.
    pub fn left(&self) -> Option<String> {
        said(&self.pace)
    }

    /// Says what is run.
    pub fn say(&self, text: &str) {
        show(&self.bar, text);
    }

    /// Runs begin.
    pub fn begin(&self, begun: Begun) {
        locked(&self.pace).begin(begun, Instant::now());
        self.bar.set_length(self.bar.position() + steps(begun.cost_s) + steps(begun.after_s));
    }

    /// A run that costs so much was done before: nothing of the time went into it.
    pub fn there(&self, cost_s: f64) {
        locked(&self.pace).left_s -= cost_s;
        self.bar.inc(steps(cost_s));
    }

    /// A run that costs so much is done.
    pub fn ran(&self, cost_s: f64) {
        locked(&self.pace).ran(cost_s, Instant::now());
        self.bar.inc(steps(cost_s));
    }

    /// Takes the line away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs that begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun {
    /// What they cost by estimate, seconds of a core. Right only beside each other.
    pub cost_s: f64,
    /// Time for a second of cost, where that is known.
    pub each: Option<f64>,
    /// Time of what comes after them, seconds.
    pub after_s: f64,
}

/// How far the runs of tables are, which ask for some after the others: of those to come nothing is known.
pub struct Tables {
    progress: Progress,
    now: Mutex<Asked>,
}

/// What a table asked for last.
#[derive(Default)]
struct Asked {
    place: String,
    done: usize,
    runs: usize,
    /// Of all tables.
    all: usize,
}

impl Asked {
    fn said(&self) -> String {
        let Asked { place, done, runs, all } = self;
        match runs {
            0 => format!("{place}: {all} runs"),
            _ => format!("{place}: {all} runs, {done} of the {runs} that it asked for last"),
        }
    }
}

impl Tables {
    /// So many run at a time, 0 for as many as cores.
    pub fn new(jobs: usize) -> Tables {
        let progress = Progress::new("{spinner} {msg}{left}; {elapsed}", " of these", jobs);
        Tables { progress, now: Mutex::default() }
    }

    /// A table begins.
    pub fn of(&self, place: String) {
        let mut now = self.asked();
        *now = Asked { place, all: now.all, ..Asked::default() };
        self.progress.say(&now.said());
    }

    /// What its runs tell.
    pub fn told(&self, told: Told) {
        let mut now = self.asked();
        match told {
            Told::Begun { runs, cost_s } => {
                (now.done, now.runs) = (0, runs);
                self.progress.begin(Begun { cost_s, ..Begun::default() });
            }
            Told::Ran { cost_s } => {
                (now.done, now.all) = (now.done + 1, now.all + 1);
                self.progress.ran(cost_s);
            }
        }
        self.progress.say(&now.said());
    }

    /// A line that stays, on standard error.
    pub fn note(&self, line: &str) {
        self.progress.bar.suspend(|| note(line));
    }

    /// Takes the line away.
    pub fn end(&self) {
        self.progress.end();
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.now.lock().unwrap_or_else(|error| error.into_inner())
    }
}

/// See [`Progress::left`].
fn said(pace: &Mutex<Pace>) -> Option<String> {
    let left = locked(pace).left(Instant::now())?;
    Some(format!(", {} left", rough(left)))
}

fn locked(pace: &Mutex<Pace>) -> MutexGuard<'_, Pace> {
    pace.lock().unwrap_or_else(|error| error.into_inner())
}

/// Of a bar: milliseconds.
fn steps(cost_s: f64) -> u64 {
    (1e3 * cost_s) as u64
}

/// How long runs take, by what they were estimated to cost: what is left takes as long as what was done took.
/// Costs are right only beside each other.
#[derive(Debug)]
struct Pace {
    jobs: usize,
    /// Of the runs that began last: cost, seconds.
    left_s: f64,
    done_s: f64,
    runs: usize,
    begun: Instant,
    /// When the last was done.
    last: Instant,
    /// Time for cost, in those before, or as it is known.
    before: Option<f64>,
    /// Time of what comes after, seconds.
    after_s: f64,
}

impl Pace {
    fn new(jobs: usize, now: Instant) -> Pace {
        let jobs = if jobs == 0 { cores() } else { jobs };
        Pace {
            jobs,
            left_s: 0.0,
            done_s: 0.0,
            runs: 0,
            begun: now,
            last: now,
            before: None,
            after_s: 0.0,
        }
    }

    fn begin(&mut self, Begun { cost_s, each, after_s }: Begun, now: Instant) {
        let before = each.or(self.per_cost(self.last)).or(self.before);
        *self = Pace { left_s: cost_s, before, after_s, ..Pace::new(self.jobs, now) };
    }

    fn ran(&mut self, cost_s: f64, now: Instant) {
        self.left_s -= cost_s;
        self.done_s += cost_s;
        self.runs += 1;
        self.last = now;
    }

    /// Time for cost so far: not before each job has done a run, as the others are under way.
    fn per_cost(&self, now: Instant) -> Option<f64> {
        let known = self.runs >= self.jobs && self.done_s > 0.0;
        known.then(|| (now - self.begun).as_secs_f64() / self.done_s)
    }

    /// Seconds that are left; none if nothing tells.
    fn left(&self, now: Instant) -> Option<f64> {
        // As it was when the last run was done, less what went by since.
        let then = self.left_s.max(0.0) * self.per_cost(self.last).or(self.before)?;
        let since = (now - self.last).as_secs_f64();
        // One that takes much longer than it should tells that all do.
        let late = since > 1.5 * then + 5.0;
        let again = || Some(self.left_s.max(0.0) * self.per_cost(now)?);
        let left = late.then(again).flatten().unwrap_or((then - since).max(0.0));
        Some(left + self.after_s)
    }
}

/// Seconds as roughly as they are known.
fn rough(seconds: f64) -> String {
    match seconds {
        ..10.0 => "a few seconds".into(),
        ..90.0 => format!("about {:.0} s", 5.0 * (seconds / 5.0).round()),
        ..5400.0 => format!("about {:.0} min", seconds / 60.0),
        _ => format!("about {:.1} h", seconds / 3600.0),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost_s: f64) -> Begun {
        Begun { cost_s, ..Begun::default() }
    }

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_left_takes_as_long_as_what_was_done() {
        let start = Instant::now();
        let mut pace = Pace::new(2, start);
        pace.begin(of(40.0), start);
        assert_eq!(pace.left(at(start, 9)), None);
        pace.ran(4.0, at(start, 10));
        assert_eq!(pace.left(at(start, 10)), None, "the other job's is under way");
        pace.ran(4.0, at(start, 12));
        // 8 took 12 s; 32 are left.
        assert_eq!(pace.left(at(start, 12)), Some(48.0));
        assert_eq!(pace.left(at(start, 20)), Some(40.0), "and it goes by");
        // Long after it should have ended: 100 s for the 8 that were done.
        assert_eq!(pace.left(at(start, 100)), Some(400.0));
        pace.ran(32.0, at(start, 100));
        assert_eq!(pace.left(at(start, 100)), Some(0.0));
    }

    #[test]
    fn runs_that_were_there_are_no_speed() {
        let progress = Progress::hidden(1);
        progress.begin(of(40.0));
        (0..8).for_each(|_| progress.there(4.0));
        assert_eq!(locked(&progress.pace).left(Instant::now()), None);
        let start = locked(&progress.pace).begun;
        locked(&progress.pace).ran(4.0, at(start, 20));
        // One of the last two took 20 s.
        assert_eq!(locked(&progress.pace).left(at(start, 20)), Some(20.0));
    }

    #[test]
    fn what_takes_as_long_as_it_says_is_known_before_it_begins() {
        let start = Instant::now();
        let mut pace = Pace::new(4, start);
        let real = Begun { cost_s: 60.0, each: Some(0.5), after_s: 7.0 };
        pace.begin(real, start);
        assert_eq!(pace.left(at(start, 10)), Some(27.0));
    }

    #[test]
    fn until_runs_tell_it_is_as_it_was_before() {
        let start = Instant::now();
        let mut pace = Pace::new(1, start);
        pace.begin(of(10.0), start);
        pace.ran(10.0, at(start, 30));
        pace.begin(of(100.0), at(start, 30));
        assert_eq!(pace.left(at(start, 30)), Some(300.0));
        pace.ran(10.0, at(start, 31));
        assert_eq!(pace.left(at(start, 31)), Some(9.0), "these are faster");
    }

    #[test]
    fn times_are_as_rough_as_they_are_known() {
        let said = [3.0, 47.0, 400.0, 9000.0].map(rough);
        assert_eq!(said, ["a few seconds", "about 45 s", "about 7 min", "about 2.5 h"]);
    }
}
