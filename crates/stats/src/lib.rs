//! Statistics of runs: mean with confidence interval, quantiles, fairness, and of trials: confidence
//! sequences.

pub mod sequence;

use serde::Serialize;

/// A metric over the seeds of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval (Student's t); none with one value.
    pub ci95: Option<f64>,
    /// Median.
    pub median: f64,
    /// Lower quartile.
    pub q1: f64,
    /// Upper quartile.
    pub q3: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Spread {
            mean: round(mean(values)),
            ci95: ci95(values).map(round),
            median: round(quantile(&sorted, 0.5)),
            q1: round(quantile(&sorted, 0.25)),
            q3: round(quantile(&sorted, 0.75)),
        })
    }
}

/// Rounds to 6 decimals, the precision of every result file.
pub fn round(value: f64) -> f64 {
    libm::round(value * 1e6) / 1e6
}

/// Mean of values with weights; none without weight.
pub fn weighted(values: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let add =
        |(sum, all): (f64, f64), (value, weight): (f64, f64)| (sum + value * weight, all + weight);
    let (sum, all) = values.into_iter().fold((0.0, 0.0), add);
    (all > 0.0).then(|| sum / all)
}

/// The mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Half the width of the 95 % confidence interval of the mean (Student's t), for values from independent
/// seeds; none of fewer than two.
pub fn ci95(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = mean(values);
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64;
    Some(student_t_975(n - 1) * libm::sqrt(variance / n as f64))
}

/// How far a mean of independent values may be off to one side, at a confidence (0.99): from fewer than two, none.
pub fn one_sided(values: &[f64], confidence: f64) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = mean(values);
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64;
    Some(student_t(confidence, n - 1) * libm::sqrt(variance / n as f64))
}

/// The quantile `p`, above a half, of Student's t with `df` degrees of freedom: the distribution as the finite sums of
/// Abramowitz and Stegun, 26.7.3 and 26.7.4, inverted by bisection.
fn student_t(p: f64, df: usize) -> f64 {
    // P(|T| <= t).
    let within = |t: f64| {
        let angle = libm::atan(t / libm::sqrt(df as f64));
        let (sin, cos) = (libm::sin(angle), libm::cos(angle));
        let odd = df % 2 == 1;
        let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
        let first = if odd { 1 } else { 0 };
        for power in (first..df.saturating_sub(1)).step_by(2) {
            sum += term;
            term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        }
        if odd { (angle + sin * sum) * core::f64::consts::FRAC_2_PI } else { sin * sum }
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if within(middle) < 2.0 * p - 1.0 { low = middle } else { high = middle }
    }
    high
}

/// The 97.5 % quantile of Student's t with `df` degrees of freedom, good to 1e-3.
fn student_t_975(df: usize) -> f64 {
    const TABLE: [f64; 10] =
        [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281];
    if let Some(t) = TABLE.get(df - 1) {
        return *t;
    }
    // Expansion about the normal quantile z (Abramowitz and Stegun, 26.7.5), three terms.
    let (z, n) = (1.959964_f64, df as f64);
    let z3 = z * z * z;
    let (z5, z7) = (z3 * z * z, z3 * z3 * z);
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

/// Quantile `p` of ascending values: type 7 of Hyndman and Fan (1996), the rule of R and NumPy.
/// 0 without values.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = p * last as f64;
    let below = libm::floor(position) as usize;
    let above = (below + 1).min(last);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Jain's index (Jain, Chiu, Hawe 1984): (sum x)^2 / (n sum x^2). 1 if all have the same, 1/n if
/// one has all; 1 without values or with nothing to share.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // Mean 3, standard deviation sqrt(2.5), 4 degrees of freedom: 2.7764 * sqrt(2.5 / 5).
        let spread = Spread::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.mean, spread.median, spread.q1, spread.q3), (3.0, 3.0, 2.0, 4.0));
        assert!((spread.ci95.unwrap() - 1.9632).abs() < 1e-4, "{spread:?}");
        assert_eq!(Spread::of(&[7.0]).unwrap().ci95, None);
        assert_eq!(Spread::of(&[]), None);
        // From tables of the t distribution.
        for (df, t) in [(11, 2.2010), (19, 2.0930), (29, 2.0452), (60, 2.0003), (1000, 1.9623)] {
            assert!((student_t_975(df) - t).abs() < 1e-3, "df {df}: {}", student_t_975(df));
        }
    }

    #[test]
    fn quantiles_of_students_t_are_those_of_tables() {
        for (p, df, t) in [
            (0.975, 1, 12.7062),
            (0.975, 2, 4.3027),
            (0.975, 9, 2.2622),
            (0.95, 4, 2.1318),
            (0.99, 5, 3.3649),
            (0.999, 2, 22.3271),
            (0.9995, 9, 4.7809),
            (0.995, 30, 2.7500),
        ] {
            assert!((student_t(p, df) - t).abs() < 1e-4, "{p}, {df}: {}", student_t(p, df));
        }
        let two_sided = ci95(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert!((one_sided(&[5.0, 1.0, 4.0, 2.0, 3.0], 0.975).unwrap() - two_sided).abs() < 1e-4);
        assert_eq!(one_sided(&[7.0], 0.975), None);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 0.25), 1.75);
        assert_eq!(quantile(&values, 0.5), 3.0);
        assert_eq!(quantile(&values, 1.0), 8.0);
        assert_eq!(quantile(&[3.0], 0.95), 3.0);
    }

    #[test]
    fn jain_is_one_for_equal_shares() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
