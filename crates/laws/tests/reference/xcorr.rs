//! `xcorr` in floating point, from its specification: every sample of a pair interpolated, bins of
//! 50 ms, a decision each second. The C has bins of 20 ms, filled, and decides each 240 ms, so the
//! two agree on answers, not on bits.

/// Samples of a path: time in ms, of when the delay was measured, and the delay in ms.
pub type Samples = Vec<(f64, f64)>;

/// What is said of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Unsure,
    Shared,
    Separate,
}

/// Bins, ms.
const BIN: f64 = 50.0;
/// Lags looked at, ms.
const LAGS: [f64; 11] = [-100.0, -80.0, -60.0, -40.0, -20.0, 0.0, 20.0, 40.0, 60.0, 80.0, 100.0];
/// Fast and slow memory, a second.
const DECAYS: [f64; 2] = [3.0 / 4.0, 15.0 / 16.0];

/// Means of each bin that has samples, with the bin's number.
fn bins(samples: impl Iterator<Item = (f64, [f64; 2])>) -> Vec<(i64, [f64; 2])> {
    let mut bins: Vec<(i64, [f64; 2], f64)> = Vec::new();
    for (time, values) in samples {
        let number = (time / BIN).floor() as i64;
        if bins.last().is_none_or(|last| last.0 != number) {
            bins.push((number, [0.0; 2], 0.0));
        }
        let (_, sums, n) = bins.last_mut().unwrap();
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
        *n += 1.0;
    }
    bins.into_iter().map(|(number, sums, n)| (number, sums.map(|sum| sum / n))).collect()
}

/// The longest gap of a path that may be interpolated, ms, over all of `samples`.
fn gap(samples: &Samples) -> f64 {
    let means = bins(samples.iter().map(|&(time, delay)| (time, [delay; 2])));
    let n = means.len() as f64;
    let mean = means.iter().map(|(_, [a, _])| a).sum::<f64>() / n;
    let variance = means.iter().map(|(_, [a, _])| (a - mean).powi(2)).sum::<f64>() / n;
    let near = means.windows(2).filter(|two| (two[1].0 - two[0].0) as f64 * BIN <= 250.0);
    let (mut squares, mut gaps) = (0.0, 0.0);
    for two in near {
        squares += (two[1].1[0] - two[0].1[0]).powi(2);
        gaps += (two[1].0 - two[0].0) as f64 * BIN;
    }
    match squares > 0.0 {
        true => (0.4 * 2.0 * variance * gaps / squares).clamp(30.0, 250.0),
        false => 30.0,
    }
}

/// The delay of `own` at the times of `other`, `lag` ms later, beside the delay of `other`.
fn pairs(own: &Samples, other: &Samples, lag: f64) -> Vec<(i64, [f64; 2])> {
    let longest = gap(own);
    let mut next = 0;
    let matched = other.iter().filter_map(|&(time, theirs)| {
        let time = time + lag;
        while next < own.len() && own[next].0 < time {
            next += 1;
        }
        let (&(t1, d1), &(t0, d0)) = (own.get(next)?, own.get(next.checked_sub(1)?)?);
        let ours = if t1 - t0 <= longest {
            d0 + (d1 - d0) * (time - t0) / (t1 - t0).max(1e-9)
        } else if t1 - time <= longest / 10.0 && t1 - time <= time - t0 {
            d1
        } else if time - t0 <= longest / 10.0 {
            d0
        } else {
            return None;
        };
        Some((time, [ours, theirs]))
    });
    bins(matched.collect::<Vec<_>>().into_iter())
}

#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    a: f64,
    b: f64,
    aa: f64,
    bb: f64,
    ab: f64,
    raa: f64,
    rbb: f64,
    m: f64,
}

impl Sums {
    fn decay(&mut self, by: f64) {
        let Sums { n, a, b, aa, bb, ab, raa, rbb, m } = self;
        for sum in [n, a, b, aa, bb, ab, raa, rbb, m] {
            *sum *= by;
        }
    }

    fn add(&mut self, [a, b]: [f64; 2], before: Option<[f64; 2]>) {
        self.n += 1.0;
        self.a += a;
        self.b += b;
        self.aa += a * a;
        self.bb += b * b;
        self.ab += a * b;
        if let Some([last_a, last_b]) = before {
            self.raa += (a - last_a).powi(2);
            self.rbb += (b - last_b).powi(2);
            self.m += 1.0;
        }
    }

    fn answer(&self) -> Answer {
        let Sums { n, m, .. } = *self;
        let va = self.aa - self.a * self.a / n;
        let vb = self.bb - self.b * self.b / n;
        if n < 6.0 || va + vb < 0.04 * n {
            return Answer::Unsure;
        }
        let phi = |v: f64, r: f64| (1.0 - r * n / (2.0 * m.max(1.0) * v)).max(0.0);
        let f = phi(va, self.raa) * phi(vb, self.rbb);
        let effective = n * (1.0 - f) / (1.0 + f);
        let l = 2.0 * (self.ab - self.a * self.b / n) / (va + vb);
        match l {
            l if l >= (5.0 / (effective + 1.0).sqrt()).tanh().max(0.4) => Answer::Shared,
            l if l < 0.5 => Answer::Separate,
            _ => Answer::Unsure,
        }
    }
}

/// Shared if it is at any lag, separate if it is at all.
fn any(answers: &[Answer]) -> Answer {
    if answers.contains(&Answer::Shared) {
        Answer::Shared
    } else if answers.iter().all(|&answer| answer == Answer::Separate) {
        Answer::Separate
    } else {
        Answer::Unsure
    }
}

/// The answer in force at the end of each second.
pub fn held(one: &Samples, other: &Samples, seconds: usize) -> Vec<Answer> {
    let at: Vec<_> = LAGS
        .iter()
        .map(|&lag| {
            let (forth, back) = (pairs(one, other, lag), pairs(other, one, -lag));
            if forth.len() >= back.len() { forth } else { back }
        })
        .collect();
    let mut sums = [[Sums::default(); 2]; LAGS.len()];
    let mut next = [0; LAGS.len()];
    let mut held = Answer::Unsure;
    (1..=seconds)
        .map(|second| {
            let end = (1e3 * second as f64 / BIN) as i64;
            for (lag, bins) in at.iter().enumerate() {
                while let Some(&(_, values)) = bins.get(next[lag]).filter(|bin| bin.0 < end) {
                    let before = next[lag].checked_sub(1).map(|before| bins[before].1);
                    sums[lag].iter_mut().for_each(|sums| sums.add(values, before));
                    next[lag] += 1;
                }
            }
            for memory in 0..2 {
                let answers: Vec<_> = sums.iter().map(|sums| sums[memory].answer()).collect();
                let answer = any(&answers);
                if answer != Answer::Unsure {
                    held = answer;
                    break;
                }
            }
            for sums in &mut sums {
                for (sums, decay) in sums.iter_mut().zip(DECAYS) {
                    sums.decay(decay);
                }
            }
            held
        })
        .collect()
}
