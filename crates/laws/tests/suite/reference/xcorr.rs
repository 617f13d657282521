//! `xcorr` in floating point, as docs/method/xcorr.md specifies it: bins, pairs, concordance,
//! noise, clocks and memory of two paths without losses, limits or round trips. Delays in ms; times in
//! ms, too, but for intervals and bins, which are counted.

use std::collections::BTreeMap;

/// Samples of a path: time in ms, of when the delay was measured, and the delay in ms.
pub type Samples = Vec<(f64, f64)>;

/// What is said of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Unsure,
    Shared,
    Separate,
}

/// The constants that docs/method/xcorr.md names.
mod constant {
    pub const BIN_MS: f64 = 20.0;
    /// What a bin's mean is a multiple of, ms.
    pub const WHOLE_MS: f64 = 0.064;
    /// Bins of an interval, and of a value of a pair.
    pub const INTERVAL: i64 = 12;
    pub const VALUE: i64 = 3;
    pub const LAG: i64 = 5;
    /// What is left of sums an interval later: a path's own, a pair's fast and slow ones, and those of
    /// changes, fast and slow.
    pub const PATH: f64 = 31.0 / 32.0;
    pub const SUMS: [f64; 2] = [3.0 / 4.0, 63.0 / 64.0];
    pub const CHANGES: [f64; 2] = [15.0 / 16.0, 63.0 / 64.0];
    /// Before a path counts, ms.
    pub const START_MS: f64 = 3000.0;
    pub const SETTLE_MS: f64 = 500.0;
    pub const PAUSE_MS: f64 = 200.0;
    pub const PAUSE: f64 = 7.5;
    /// Pairs for an answer; changes that say that noise explains, and all else, fast and slow.
    pub const PAIRS: f64 = 6.0;
    pub const SOME: f64 = 6.0;
    pub const ENOUGH: [f64; 2] = [16.0, 64.0];
    /// Least variance of both, ms^2.
    pub const FLAT: f64 = 0.04;
    /// Concordance.
    pub const SHARED: f64 = 0.4;
    pub const SEPARATE: f64 = 0.5;
    pub const DEVIATIONS: f64 = 5.0;
    /// Of n, those that are independent in smooth queues.
    pub const SMOOTH: f64 = 0.3;
    /// Clocks: 200 ppm in an interval, of both paths, ms.
    pub const SLOPE: f64 = 2.0 * 200e-6 * 240.0;
    /// In a row to separate.
    pub const TO_SEPARATE: u32 = 2;
    /// Noise: at least so far apart, ms; at most such a difference, ms; at least so much, ms^2.
    pub const APART_MS: f64 = 4.0;
    pub const MOST_MS: f64 = 65.536;
    pub const LEAST: f64 = 16e-6;
    /// The unit of what noise explains, ms^2, and how often it may explain an interval's changes.
    pub const UNIT: f64 = (0.256 / 3.0) * (0.256 / 3.0) / 1024.0;
    pub const CHANGES_MOST: f64 = 1024.0;
    /// And how often each change, where all of a - b may be noise.
    pub const BOUND: f64 = 8.0;
}
use constant::*;

/// What a path publishes at the end of an interval: the bins of the one before, and its noise.
#[derive(Clone, Default)]
struct Published {
    bins: BTreeMap<i64, f64>,
    noise: f64,
}

/// Variance of values with fading weights.
#[derive(Clone, Copy, Default)]
struct Spread {
    n: f64,
    x: f64,
    xx: f64,
}

impl Spread {
    fn add(&mut self, x: f64) {
        *self = Spread { n: self.n + 1.0, x: self.x + x, xx: self.xx + x * x };
    }

    fn fade(&mut self, by: f64) {
        *self = Spread { n: self.n * by, x: self.x * by, xx: self.xx * by };
    }

    fn variance(&self) -> f64 {
        if self.n > 0.0 { (self.xx / self.n - (self.x / self.n).powi(2)).max(0.0) } else { 0.0 }
    }
}

/// Mean with fading weights.
#[derive(Clone, Copy, Default)]
struct Mean {
    n: f64,
    sum: f64,
}

impl Mean {
    fn add(&mut self, count: f64, sum: f64) {
        *self = Mean { n: self.n + count, sum: self.sum + sum };
    }

    fn fade(&mut self, by: f64) {
        *self = Mean { n: self.n * by, sum: self.sum * by };
    }

    fn value(&self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }
}

/// Steps 1, 2 and 7 for a path; and what does not count.
#[derive(Default)]
struct Path {
    begun: Option<f64>,
    delivered: f64,
    silence: f64,
    counts_from: f64,
    /// The open bin: its number, and its delays.
    open: Option<(i64, Vec<f64>)>,
    /// Complete bins, filled, and the newest that had delays.
    bins: BTreeMap<i64, f64>,
    newest: Option<(i64, f64)>,
    gap: i64,
    values: Spread,
    squares: f64,
    distances: f64,
    compared: Option<(f64, f64)>,
    noise: Mean,
    /// There were packets in the open interval.
    active: bool,
}

impl Path {
    fn new() -> Path {
        Path { gap: 2, ..Path::default() }
    }

    fn sample(&mut self, time: f64, delay: f64) {
        let begun = *self.begun.get_or_insert(time);
        let silence = if time == begun { 0.0 } else { time - self.delivered };
        let paused = silence >= PAUSE_MS && silence >= PAUSE * self.silence;
        if time == begun || time < begun + START_MS || paused {
            self.counts_from = time + SETTLE_MS;
            self.open = None;
        }
        self.active = true;
        self.silence = 15.0 / 16.0 * self.silence + silence / 16.0;
        self.delivered = time;
        if time >= self.counts_from {
            self.compare(time, delay);
            self.delay(time, delay);
        }
    }

    fn compare(&mut self, time: f64, delay: f64) {
        if let Some((last, before)) = self.compared {
            if time - last < APART_MS {
                return;
            }
            if time - last <= INTERVAL as f64 * BIN_MS {
                self.noise.add(1.0, (delay - before).abs().min(MOST_MS).powi(2));
            }
        }
        self.compared = Some((time, delay));
    }

    fn delay(&mut self, time: f64, delay: f64) {
        let number = (time / BIN_MS).floor() as i64;
        if self.open.as_ref().is_some_and(|(open, _)| *open < number) {
            self.complete();
        }
        match &mut self.open {
            Some((_, delays)) => delays.push(delay),
            None if self.newest.is_some_and(|(newest, _)| number <= newest) => {}
            None => self.open = Some((number, vec![delay])),
        }
    }

    /// The open bin is complete.
    fn complete(&mut self) {
        let Some((number, delays)) = self.open.take() else { return };
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let value = (mean / WHOLE_MS).floor() * WHOLE_MS;
        if let Some((last, before)) = self.newest {
            let away = number - last;
            for between in last + 1..number {
                let part = (between - last) as f64 / away as f64;
                if away <= self.gap {
                    self.bins.insert(between, before + (value - before) * part);
                }
            }
            if away <= INTERVAL {
                self.values.add(value);
                self.squares += (value - before).powi(2);
                self.distances += away as f64;
            }
        }
        self.bins.insert(number, value);
        self.newest = Some((number, value));
    }

    /// Interval `number` is over; none without packets in it.
    fn publish(&mut self, number: i64) -> Option<Published> {
        if !std::mem::take(&mut self.active) {
            return None;
        }
        let of = INTERVAL * (number - 1)..INTERVAL * number;
        let bins = self.bins.range(of).map(|(&bin, &value)| (bin, value)).collect();
        let noise = self.noise.value().max(LEAST);
        // To one bit behind the leading one, in us^2.
        let leading = (1e6 * noise).log2().floor().exp2();
        let noise = if 1e6 * noise >= 1.5 * leading { 1.5 * leading } else { leading } / 1e6;
        if self.values.n > 3.0 && self.squares > 0.0 {
            let gap = 0.8 * self.values.variance() * self.distances / self.squares;
            self.gap = (gap as i64).clamp(2, INTERVAL);
        }
        self.values.fade(PATH);
        self.squares *= PATH;
        self.distances *= PATH;
        self.noise.fade(PATH);
        Some(Published { bins, noise })
    }
}

/// Sums of a pair with one memory.
#[derive(Clone, Default)]
struct Sums {
    a: Spread,
    b: Spread,
    changes: [Mean; 2],
    differences: [Spread; 2 * LAG as usize + 1],
    /// The best lag of the last interval that was judged.
    lag: i64,
    /// What noise does not explain: since the lag is what it is, and at all lags.
    here: Mean,
    all: Mean,
    /// Squared changes, ms^2, each at most some times what noise explains.
    bounded: Mean,
}

/// What the sums of one memory say.
struct Seen {
    /// Variance of a - b at the best lag, ms^2.
    apart: f64,
    /// L, and L less what clocks may have added.
    alike: f64,
    level: f64,
    n_eff: f64,
}

#[derive(Default)]
struct Pair {
    sums: [Sums; 2],
    /// Pairs at lag 0 in the slow sums: the interval, counted as clocks are asked for, a + b, weight.
    line: Vec<(i64, f64, f64)>,
    judged: Option<i64>,
    age: i64,
    last: Option<[f64; 2]>,
    answer: Option<Answer>,
    against: u32,
}

/// Both paths' bins of two intervals, as published.
type Bins = [BTreeMap<i64, f64>; 2];

/// Step 3: the value of the triple from bin `from` on.
fn value([a, b]: &Bins, from: i64, lag: i64) -> Option<[f64; 2]> {
    let (back_a, back_b) = ((-lag).max(0), lag.max(0));
    let both =
        (from..from + VALUE).filter_map(|n| Some([*a.get(&(n - back_a))?, *b.get(&(n - back_b))?]));
    let both: Vec<[f64; 2]> = both.collect();
    let mean = |of: usize| both.iter().map(|pair| pair[of]).sum::<f64>() / both.len() as f64;
    (!both.is_empty()).then(|| [mean(0), mean(1)])
}

impl Pair {
    /// Judges the bins from `first` on at the end of interval `now`; `noise` of both paths.
    fn judge(&mut self, bins: &Bins, first: i64, now: i64, noise: f64) {
        let new = |of: &BTreeMap<i64, f64>, n: i64| n >= first && of.contains_key(&n);
        let near = |of: &BTreeMap<i64, f64>, n: i64| (n - LAG..=n).any(|n| of.contains_key(&n));
        let [a, b] = bins;
        if !(first..first + INTERVAL).any(|n| new(a, n) && near(b, n) || new(b, n) && near(a, n)) {
            return;
        }
        self.age += self.judged.map_or(0, |judged| (now - judged).min(64));
        self.judged = Some(now);
        let triples = || (0..INTERVAL / VALUE).map(|n| first + VALUE * n);
        for (sums, (kept, changes)) in self.sums.iter_mut().zip(SUMS.into_iter().zip(CHANGES)) {
            sums.fade(kept, changes);
        }
        self.line.iter_mut().for_each(|(.., weight)| *weight *= SUMS[1]);
        for [a, b] in triples().filter_map(|from| value(bins, from, 0)) {
            for sums in &mut self.sums {
                sums.a.add(a);
                sums.b.add(b);
                if let Some([last_a, last_b]) = self.last {
                    sums.changes[0].add(1.0, (a - last_a).powi(2));
                    sums.changes[1].add(1.0, (b - last_b).powi(2));
                }
            }
            self.last = Some([a, b]);
            self.line.push((self.age, a + b, 1.0));
        }
        for lag in -LAG..=LAG {
            for [a, b] in triples().filter_map(|from| value(bins, from, lag)) {
                self.sums
                    .iter_mut()
                    .for_each(|sums| sums.differences[(lag + LAG) as usize].add(a - b));
            }
        }
        for sums in &mut self.sums {
            let lag = sums.best().unwrap_or(0);
            let from = std::iter::once(first - VALUE).chain(triples());
            let values: Vec<f64> =
                from.filter_map(|from| value(bins, from, lag)).map(|[a, b]| a - b).collect();
            sums.explain(lag, &values, noise);
        }
        self.conclude();
    }

    /// Steps 6 to 8.
    fn conclude(&mut self) {
        let drift = self.drift();
        let seen = [self.sums[0].seen(0.0), self.sums[1].seen(drift)];
        let slow = &self.sums[1];
        let smooth = slow.effective() < SMOOTH * slow.a.n;
        let (mut explains, mut too_little, mut refuted) = (false, false, false);
        let mut found = None;
        for (copy, seen) in seen.iter().enumerate() {
            let Some(Seen { apart: rest, alike, level, n_eff }) = *seen else { continue };
            let tally = [self.sums[copy].here, self.sums[copy].all];
            let tally = if tally[0].n >= ENOUGH[copy] { tally[0] } else { tally[1] };
            let (r, enough) = match self.sums[copy].bounded {
                of if smooth && of.n >= ENOUGH[copy] && of.value() >= rest => (0.0, true),
                _ => (tally.value(), tally.n >= ENOUGH[copy]),
            };
            if tally.n >= SOME && !(smooth && copy == 0) {
                explains |= r < if smooth { 0.5 } else { 1.0 };
                too_little |= enough && r >= 0.75;
                refuted |= enough && r >= if smooth { 0.75 } else { 1.0 };
            }
            let theta = (DEVIATIONS / (n_eff.min(255.0) + 1.0).sqrt()).tanh();
            let apart = if explains { SEPARATE - theta } else { SEPARATE };
            if level >= theta.max(SHARED) {
                if too_little {
                    if refuted && self.answer == Some(Answer::Shared) {
                        self.answer = None;
                    }
                } else if !smooth || copy == 1 && enough && explains {
                    found = Some(Answer::Shared);
                    break;
                }
            } else if alike < apart && (copy == 1 || !explains) {
                found = Some(Answer::Separate);
                break;
            }
        }
        match (found, self.answer) {
            (Some(Answer::Separate), Some(Answer::Shared)) if self.against + 1 < TO_SEPARATE => {
                self.against += 1;
            }
            (None, _) => self.against = 0,
            _ => (self.answer, self.against) = (found, 0),
        }
    }

    /// Clocks: what may be taken off the sum of squares of both, by its number.
    fn drift(&self) -> f64 {
        let n: f64 = self.line.iter().map(|(.., weight)| weight).sum();
        let mean = |of: &dyn Fn(f64, f64) -> f64| {
            self.line.iter().map(|&(age, x, weight)| weight * of(age as f64, x)).sum::<f64>() / n
        };
        let (age, x) = (mean(&|age, _| age), mean(&|_, x| x));
        let cov = mean(&|k, y| (k - age) * (y - x)).abs();
        let var = mean(&|k, _| (k - age).powi(2));
        if cov > SLOPE * var {
            SLOPE * cov - SLOPE * SLOPE * var / 2.0
        } else if var > 0.0 {
            cov * cov / (2.0 * var)
        } else {
            0.0
        }
    }
}

impl Sums {
    fn fade(&mut self, by: f64, changes: f64) {
        let Sums { a, b, differences, .. } = self;
        [a, b].into_iter().chain(differences).for_each(|spread| spread.fade(by));
        self.changes.iter_mut().for_each(|change| change.fade(by));
        self.here.fade(changes);
        self.all.fade(changes);
        self.bounded.fade(changes);
    }

    /// Step 4: the lag at which both are most alike.
    fn best(&self) -> Option<i64> {
        if self.a.n < PAIRS {
            return None;
        }
        let least = PAIRS.max(self.a.n / 2.0);
        let counts = |lag: &i64| self.differences[(lag + LAG) as usize].n >= least;
        let variance = |lag: &i64| self.differences[(lag + LAG) as usize].variance();
        (-LAG..=LAG).filter(counts).min_by(|a, b| variance(a).total_cmp(&variance(b)))
    }

    /// Step 5: independent pairs.
    fn effective(&self) -> f64 {
        let phi = |of: Spread, changes: Mean| {
            if of.variance() > 0.0 { 1.0 - changes.value() / (2.0 * of.variance()) } else { 0.0 }
        };
        let f = phi(self.a, self.changes[0]).max(0.0) * phi(self.b, self.changes[1]).max(0.0);
        (self.a.n * (1.0 - f) / (1.0 + f)).floor()
    }

    /// Steps 4 to 6, if there is enough.
    fn seen(&self, drift: f64) -> Option<Seen> {
        let lag = self.best()?;
        let both = self.a.variance() + self.b.variance();
        let rest = both - drift;
        if rest < FLAT {
            return None;
        }
        let apart = self.differences[(lag + LAG) as usize].variance();
        let n_eff = self.effective();
        Some(Seen { apart, alike: 1.0 - apart / both, level: 1.0 - apart / rest, n_eff })
    }

    /// Step 7: what a - b, `values` at `lag`, changes, in what noise explains.
    fn explain(&mut self, lag: i64, values: &[f64], noise: f64) {
        if (lag - self.lag).abs() > 1 {
            self.here = Mean::default();
        }
        self.lag = lag;
        let changes: Vec<f64> = values.windows(2).map(|two| (two[1] - two[0]).powi(2)).collect();
        let squares: f64 = changes.iter().sum();
        let explained = UNIT * ((2.0 / 3.0 * noise / UNIT).floor() + 1.0);
        let count = values.len().saturating_sub(1) as f64;
        let bounded = changes.iter().map(|change| change.min(BOUND * explained)).sum();
        self.bounded.add(count, bounded);
        let squares = (squares / explained).min(CHANGES_MOST);
        self.here.add(count, squares);
        self.all.add(count, squares);
    }
}

/// The answer in force at the end of each second.
pub fn held(one: &Samples, other: &Samples, seconds: usize) -> Vec<Answer> {
    let mut samples: Vec<_> = one.iter().map(|sample| (0, sample)).collect();
    samples.extend(other.iter().map(|sample| (1, sample)));
    samples.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    // Intervals begin with the first sample.
    let Some(&(_, &(origin, _))) = samples.first() else { return vec![Answer::Unsure; seconds] };
    let mut samples = samples.into_iter().peekable();
    let mut paths = [Path::new(), Path::new()];
    let mut kept: [Option<(i64, Published)>; 2] = [None, None];
    let mut pair = Pair::default();
    let mut held = Vec::new();
    let length = INTERVAL as f64 * BIN_MS;
    for interval in 0.. {
        let end = length * (interval + 1) as f64;
        while held.len() < seconds && 1e3 * ((held.len() + 1) as f64) < origin + end {
            held.push(pair.answer.unwrap_or(Answer::Unsure));
        }
        if held.len() == seconds {
            return held;
        }
        while let Some((path, &(time, delay))) = samples.next_if(|next| next.1.0 - origin < end) {
            paths[path].sample(time - origin, delay);
        }
        let published = paths.each_mut().map(|path| path.publish(interval));
        let mut bins = Bins::default();
        let mut noise = 0.0;
        for (n, now) in published.iter().enumerate() {
            let Some(now) = now else { continue };
            // Those of the interval before, if it was published, too.
            if let Some((_, before)) = kept[n].as_ref().filter(|(at, _)| at + 1 == interval) {
                bins[n].extend(before.bins.clone());
            }
            bins[n].extend(now.bins.clone());
            noise += now.noise;
        }
        if published.iter().all(Option::is_some) {
            pair.judge(&bins, INTERVAL * (interval - 1), interval, noise);
        }
        for (n, now) in published.into_iter().enumerate() {
            if let Some(now) = now {
                kept[n] = Some((interval, now));
            }
        }
    }
    held
}
