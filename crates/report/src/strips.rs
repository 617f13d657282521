//! Values of runs as dots on a line, with the box of their quartiles or a bar to their mean.

use crate::colour::Colour;

/// Rows of values over one axis.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    /// The title.
    pub title: String,
    /// A sentence on what is shown.
    pub about: String,
    /// What the values are, with their unit.
    pub label: String,
    /// Decimals of numbers at least; more where the axis needs them.
    pub decimals: usize,
    /// Draws a bar from 0 to the mean instead of a box.
    pub bars: bool,
    /// A value to compare with.
    pub reference: Option<f64>,
    /// The rows.
    pub rows: Vec<Strip>,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Each value with what it is of.
    pub values: Vec<(String, f64)>,
    /// The mean.
    pub mean: Option<f64>,
    /// Half its 95 % interval.
    pub ci95: Option<f64>,
    /// Where it surely is, if an interval is not as wide to both sides.
    pub bounds: Option<[f64; 2]>,
    /// First quartile, median, third quartile.
    pub quartiles: Option<[f64; 3]>,
    /// A published value, as it is written, and as a number.
    pub published: Option<(String, f64)>,
}

/// Numbers for an axis that holds all of `values`: steps of 1, 2 or 5 times a power of ten, at most eight.
pub fn axis(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low > high {
        return vec![0.0, 1.0];
    }
    let span = if high > low { high - low } else { high.abs().max(1.0) };
    let power = 10_f64.powi((span / 8.0).log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| span / step <= 7.0).unwrap_or(10.0 * power);
    let first = (low / step).floor() as i64;
    let last = ((high / step).ceil() as i64).max(first + 1);
    // Not by adding: 0.1 three times is not 0.3.
    (first..=last).map(|number| (number as f64 * step * 1e9).round() / 1e9).collect()
}

/// How many decimals the numbers of an axis need, at most 6.
pub fn decimals(axis: &[f64]) -> usize {
    let step = axis.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let whole = |decimals: &usize| {
        let shifted = step * 10_f64.powi(*decimals as i32);
        !step.is_finite() || (shifted - shifted.round()).abs() < 1e-6
    };
    (0..6).find(whole).unwrap_or(6)
}

impl Strip {
    /// As many of the values as may be, two or more, spread over them by size, with the least and the greatest.
    pub fn some(&self, most: usize) -> Vec<&(String, f64)> {
        let mut sorted: Vec<_> = self.values.iter().collect();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        if sorted.len() <= most {
            return sorted;
        }
        (0..most).map(|at| sorted[at * (sorted.len() - 1) / (most - 1)]).collect()
    }

    /// `0.83 ±0.02`, or `0.83 (0.80 to 0.84)`.
    pub fn shown(&self, decimals: usize) -> String {
        match (self.mean, self.ci95, self.bounds) {
            (Some(mean), Some(half), _) => format!("{mean:.decimals$} ±{half:.decimals$}"),
            (Some(mean), None, Some([low, high])) => {
                format!("{mean:.decimals$} ({low:.decimals$} to {high:.decimals$})")
            }
            (Some(mean), None, None) => format!("{mean:.decimals$}"),
            _ => "–".into(),
        }
    }

    /// From where to where the mean surely is.
    pub fn interval(&self) -> Option<[f64; 2]> {
        let mean = self.mean?;
        self.ci95.map(|half| [mean - half, mean + half]).or(self.bounds)
    }
}

impl Strips {
    /// Decimals of values beside its axis.
    pub fn digits(&self, axis: &[f64]) -> usize {
        let small = axis.windows(2).all(|pair| pair[1] - pair[0] < 1.0);
        self.decimals.max(if small { decimals(axis) + 1 } else { 0 })
    }

    /// Is every interval as wide to both sides?
    pub(crate) fn is_even(&self) -> bool {
        self.rows.iter().all(|row| row.bounds.is_none())
    }

    /// The numbers of its axis. Bars begin at 0.
    pub fn axis(&self) -> Vec<f64> {
        let of = |row: &Strip| {
            let values = row.values.iter().map(|(_, value)| *value);
            let interval = row.mean.into_iter().flat_map(|mean| {
                let half = row.ci95.unwrap_or(0.0);
                // An interval of two values may be wider than all that is of interest.
                [mean - half, mean + half].map(|end| end.clamp(0.0_f64.min(mean), 3.0 * mean.abs()))
            });
            let interval = interval.chain(row.bounds.into_iter().flatten());
            let published = row.published.iter().map(|(_, value)| *value);
            values.chain(interval).chain(published).collect::<Vec<f64>>()
        };
        let zero = self.bars.then_some(0.0);
        axis(self.rows.iter().flat_map(of).chain(self.reference).chain(zero))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_may_be_wider_to_one_side() {
        let row = Strip {
            name: String::new(),
            colour: Colour::Ink,
            values: Vec::new(),
            mean: Some(0.33),
            ci95: None,
            bounds: Some([-0.26, 0.41]),
            quartiles: None,
            published: None,
        };
        assert_eq!(row.shown(2), "0.33 (-0.26 to 0.41)");
        assert_eq!(row.interval(), Some([-0.26, 0.41]));
        let even = Strip { ci95: Some(0.25), ..row.clone() };
        assert_eq!(
            (even.shown(2), even.interval()),
            ("0.33 ±0.25".into(), Some([0.33 - 0.25, 0.33 + 0.25]))
        );
        let axis = Strips { rows: vec![row], ..Strips::default() }.axis();
        assert!(axis[0] <= -0.26 && axis[axis.len() - 1] >= 0.41, "{axis:?}");
    }

    #[test]
    fn an_axis_holds_its_values_between_round_numbers() {
        assert_eq!(axis([0.0, 1.94].into_iter()), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(axis([0.31, 0.33].into_iter()), [0.31, 0.315, 0.32, 0.325, 0.33]);
        assert_eq!(axis([5.0].into_iter()), [5.0, 6.0]);
        assert_eq!(axis([].into_iter()), [0.0, 1.0]);
        assert_eq!(axis([f64::NAN, 1e6, 2.5e6].into_iter())[0], 1e6);
        for (low, high) in [(1e-5, 1.1e-5), (-3.0, 8.0), (0.0, 1e9), (99.0, 101.0)] {
            let axis = axis([low, high].into_iter());
            assert!(axis[0] <= low && axis[axis.len() - 1] >= high, "{axis:?}");
            assert!((2..=9).contains(&axis.len()), "{axis:?}");
        }
    }
}
