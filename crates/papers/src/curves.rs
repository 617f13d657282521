//! Data behind a table as plots.

use indexmap::IndexMap;
use narrows_report::{COLOURS, Colour, Curve, Line, Plot};

/// How data as CSV is drawn: what its columns are in plots.
#[derive(Clone, Copy, Debug)]
pub struct Curves {
    /// The figure that it is in the paper, or what it shows.
    pub title: &'static str,
    /// A sentence on it.
    pub about: &'static str,
    /// Columns of whose values each has a plot of its own.
    pub plots: &'static [&'static str],
    /// Columns of whose values each has a curve.
    pub curves: &'static [&'static str],
    /// The column of x, and what it is, with its unit.
    pub x: (&'static str, &'static str),
    /// The column of y, what it is, and its unit; no column: the share of lines up to x.
    pub y: (Option<&'static str>, &'static str, &'static str),
    /// The column of half the 95 % interval of y.
    pub ci95: Option<&'static str>,
    /// Samples of a time, of which the mean is shown within its extremes.
    pub smooth: bool,
}

/// A point: x, y, half of its interval.
type Point = (f64, Option<f64>, Option<f64>);

impl Curves {
    /// The plots, each with its curves in the order of the data.
    ///
    /// # Panics
    /// The data has not these columns.
    pub fn of(&self, data: &str) -> Vec<Plot> {
        let mut lines = data.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heads = lines.next().unwrap_or_default();
        let column = |name: &&str| {
            let place = heads.iter().position(|head| head == name);
            place.unwrap_or_else(|| panic!("no column {name} in {heads:?}"))
        };
        let columns = |names: &[&str]| names.iter().map(column).collect::<Vec<_>>();
        let (plots, curves) = (columns(self.plots), columns(self.curves));
        let (x, y) = (column(&self.x.0), self.y.0.as_ref().map(column));
        let ci95 = self.ci95.as_ref().map(column);
        let mut found = IndexMap::<String, IndexMap<String, Vec<Point>>>::new();
        for line in lines {
            let name = |columns: &[usize]| {
                let parts = columns.iter().map(|&at| line[at]).filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join(" ")
            };
            let value = |at: usize| line[at].parse().ok();
            let Some(at) = value(x) else { continue };
            let point = (at, y.and_then(value), ci95.and_then(value));
            found.entry(name(&plots)).or_default().entry(name(&curves)).or_default().push(point);
        }
        found.into_iter().map(|(name, curves)| self.plot(&name, curves)).collect()
    }

    fn plot(&self, name: &str, curves: IndexMap<String, Vec<Point>>) -> Plot {
        let mut x: Vec<f64> = curves.values().flatten().map(|point| point.0).collect();
        x.sort_by(f64::total_cmp);
        x.dedup();
        let curve = |(number, (name, mut points)): (usize, (String, Vec<Point>))| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let upto = |at: &f64| points.partition_point(|point| point.0 <= *at);
            let there = |at: &f64| {
                let last = points.get(upto(at).checked_sub(1)?)?;
                (last.0 == *at).then_some(*last)
            };
            let end = |sign: f64| {
                let end = |at: &f64| {
                    let (_, y, half) = there(at)?;
                    Some(y? + sign * half.unwrap_or(0.0))
                };
                x.iter().map(end).collect::<Vec<_>>()
            };
            let share = |at: &f64| Some(upto(at) as f64 / points.len() as f64);
            let y = match self.y.0 {
                Some(_) => x.iter().map(|at| there(at)?.1).collect(),
                None => x.iter().map(share).collect(),
            };
            let (low, high) = match self.ci95 {
                Some(_) => (end(-1.0), end(1.0)),
                None => Default::default(),
            };
            let line = match number / COLOURS {
                0 => Line::Solid,
                1 => Line::Dashed,
                _ => Line::Dotted,
            };
            let steps = self.y.0.is_none();
            Curve { line, steps, low, high, ..Curve::new(name, Colour::Number(number), y) }
        };
        let curves = curves.into_iter().enumerate().map(curve).collect();
        let title = [self.title, name].join(", ");
        let (_, y_label, unit) = self.y;
        Plot {
            title: title.trim_end_matches(", ").into(),
            about: self.about.into(),
            x_label: self.x.1.into(),
            y_label: y_label.into(),
            unit: unit.into(),
            smooth: self.smooth,
            top: self.y.0.is_none().then_some(1.0),
            x,
            curves,
            ..Plot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Curves = Curves {
        title: "Figure 9",
        about: "",
        plots: &["queue"],
        curves: &["law", "path"],
        x: ("time_s", "time, s"),
        y: (Some("rate"), "rate", "Mbit/s"),
        ci95: Some("ci95"),
        smooth: false,
    };

    #[test]
    fn lines_become_points_of_their_curve_in_their_plot() {
        let data = "queue,law,path,time_s,rate,ci95\nred,lia,1,0.1,5,1\nred,lia,1,0.2,6,\n\
                    red,lia,2,0.2,7,2\nfifo,olia,1,3,8,1\n";
        let plots = OF.of(data);
        let titles: Vec<&str> = plots.iter().map(|plot| plot.title.as_str()).collect();
        assert_eq!(titles, ["Figure 9, red", "Figure 9, fifo"]);
        assert_eq!(plots[0].x, [0.1, 0.2]);
        let [one, two] = &plots[0].curves[..] else { panic!("{:?}", plots[0].curves) };
        assert_eq!((one.name.as_str(), two.name.as_str()), ("lia 1", "lia 2"));
        assert_eq!((&one.y[..], &two.y[..]), (&[Some(5.0), Some(6.0)][..], &[None, Some(7.0)][..]));
        assert_eq!((one.low[0], one.high[0], one.high[1]), (Some(4.0), Some(6.0), Some(6.0)));
    }

    #[test]
    fn without_a_column_of_y_it_is_the_share_of_lines() {
        let shares = Curves { y: (None, "share", ""), ci95: None, plots: &[], ..OF };
        let plots = shares.of("law,path,time_s\nlia,1,4\nlia,1,2\nlia,1,2\nlia,2,3\n");
        assert_eq!((plots.len(), &plots[0].x[..]), (1, &[2.0, 3.0, 4.0][..]));
        let share = |curve: usize| plots[0].curves[curve].y.iter().flatten().copied();
        assert_eq!(share(0).collect::<Vec<_>>(), [2.0 / 3.0, 2.0 / 3.0, 1.0]);
        assert_eq!(share(1).collect::<Vec<_>>(), [0.0, 1.0, 1.0]);
    }
}
