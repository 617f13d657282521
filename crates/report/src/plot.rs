//! Curves over time, or over values.

use serde::Serialize;

use crate::colour::Colour;

/// Curves with the same x.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// A sentence on what is shown.
    pub about: String,
    /// What x is, with its unit.
    pub x_label: String,
    /// What y is.
    pub y_label: String,
    /// The unit of y; empty of a share.
    pub unit: String,
    /// Is x the time of the page's timeline? Such plots are zoomed together.
    pub over_time: bool,
    /// Shows the mean with its extremes where there are more points than can be told apart.
    pub smooth: bool,
    /// Y goes from 0 to this; none: to the greatest value.
    pub top: Option<f64>,
    /// X of all points, ascending.
    pub x: Vec<f64>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// A curve of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its colour.
    #[serde(serialize_with = "crate::colour::class")]
    pub colour: Colour,
    /// How its line is broken, to tell it from another of the colour.
    pub line: Line,
    /// Steps from value to value.
    pub steps: bool,
    /// Not shown until it is asked for.
    pub hidden: bool,
    /// Y of each x; none where there is no value. Once thinned the mean.
    pub y: Vec<Option<f64>>,
    /// The least and the greatest of what became one point; empty unless it was thinned.
    pub low: Vec<Option<f64>>,
    /// See `low`.
    pub high: Vec<Option<f64>>,
}

/// How a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// It is not.
    Solid,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Curve {
    /// A curve of these values.
    pub fn new(name: impl Into<String>, colour: Colour, y: Vec<Option<f64>>) -> Curve {
        Curve {
            name: name.into(),
            colour,
            line: Line::Solid,
            steps: false,
            hidden: false,
            y,
            low: Vec::new(),
            high: Vec::new(),
        }
    }
}

impl Plot {
    /// How many numbers it takes.
    pub(crate) fn size(&self) -> usize {
        let curves = self.curves.iter().map(|curve| curve.y.len() + 2 * curve.low.len());
        self.x.len() + curves.sum::<usize>()
    }

    /// At most `points` of each curve, of as many neighbours each: the mean, the least and the greatest. X
    /// is that of the first. As it is if there are not more.
    #[must_use]
    pub fn thinned(&self, points: usize) -> Plot {
        if self.x.len() <= points {
            return self.clone();
        }
        let each = self.x.len().div_ceil(points.max(1));
        let chunks = |values: &[Option<f64>], of: fn(&[f64]) -> f64| -> Vec<Option<f64>> {
            let one = |chunk: &[Option<f64>]| {
                let there: Vec<f64> = chunk.iter().copied().flatten().collect();
                (!there.is_empty()).then(|| of(&there))
            };
            values.chunks(each).map(one).collect()
        };
        let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let curve = |curve: &Curve| {
            let or_y = |some: &Vec<_>| if some.is_empty() { curve.y.clone() } else { some.clone() };
            Curve {
                y: chunks(&curve.y, |of| of.iter().sum::<f64>() / of.len() as f64),
                low: chunks(&or_y(&curve.low), least),
                high: chunks(&or_y(&curve.high), greatest),
                ..curve.clone()
            }
        };
        Plot {
            x: self.x.chunks(each).map(|chunk| chunk[0]).collect(),
            curves: self.curves.iter().map(curve).collect(),
            ..self.clone()
        }
    }

    /// The same with values of so many digits as a screen can show.
    pub(crate) fn rounded(mut self) -> Plot {
        let round = |value: &mut f64| *value = (*value * 1000.0).round() / 1000.0;
        self.x.iter_mut().for_each(round);
        for curve in &mut self.curves {
            let values = [&mut curve.y, &mut curve.low, &mut curve.high];
            values.into_iter().flatten().flatten().for_each(round);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(y: Vec<Option<f64>>) -> Plot {
        let x = (0..y.len()).map(|i| i as f64).collect();
        Plot { x, curves: vec![Curve::new("a", Colour::Ink, y)], ..Plot::default() }
    }

    #[test]
    fn thinning_keeps_a_spike_of_one_sample_and_what_is_missing() {
        let mut y = vec![Some(1.0); 100_000];
        y[54_321] = Some(900.0);
        y[77_777] = Some(-5.0);
        y[..1000].fill(None);
        let thin = plot(y).thinned(500);
        let curve = &thin.curves[0];
        assert!(
            thin.x.len() <= 500
                && [&curve.y, &curve.low, &curve.high].iter().all(|v| v.len() == thin.x.len())
        );
        let greatest = |of: &[Option<f64>]| of.iter().flatten().copied().fold(f64::MIN, f64::max);
        let least = |of: &[Option<f64>]| of.iter().flatten().copied().fold(f64::MAX, f64::min);
        assert_eq!((greatest(&curve.high), least(&curve.low)), (900.0, -5.0));
        assert!(greatest(&curve.y) < 10.0, "the mean is a mean");
        assert_eq!((curve.y[0], curve.high[0]), (None, None));
        // Thinned again it has not lost them.
        let again = &thin.thinned(20).curves[0];
        assert_eq!((greatest(&again.high), least(&again.low)), (900.0, -5.0));
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let thin = plot(vec![Some(1.0), None, Some(3.0)]).thinned(3);
        assert_eq!(thin.curves[0].y, [Some(1.0), None, Some(3.0)]);
        assert!(thin.curves[0].low.is_empty());
    }
}
