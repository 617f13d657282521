//! Recorded delays, which a link replays.

use crate::{MAX_DELAY, Nanos, TraceError, TraceFault};

/// Delays of a link over time, as a probe measured them. A link replays what each is above the smallest
/// ([`crate::Distribution::Recorded`]): linear between two, from the first on, and again after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    name: String,
    /// Time since the first, and delay above the smallest; the first is at 0 and the last after it.
    points: Vec<(Nanos, Nanos)>,
}

impl Delays {
    /// Of the time of each measurement and the delay, in the order of time; `name` is for errors.
    ///
    /// # Errors
    /// There are not two, times decrease or are all the same, or delays differ by more than an hour. The
    /// line is the place in `points`, from 1.
    pub fn new(mut points: Vec<(Nanos, Nanos)>, name: &str) -> Result<Delays, TraceError> {
        let error = |line, fault| TraceError { name: name.to_owned(), line, fault };
        if let Some(at) = points.windows(2).position(|pair| pair[1].0 < pair[0].0) {
            return Err(error(at + 2, TraceFault::Unordered));
        }
        let Some(&(first, _)) = points.first() else { return Err(error(1, TraceFault::Empty)) };
        if points.last().is_some_and(|last| last.0 == first) {
            return Err(error(points.len(), TraceFault::ZeroPeriod));
        }
        let least = points.iter().map(|point| point.1).min().unwrap_or(0);
        for point in &mut points {
            *point = (point.0 - first, point.1 - least);
        }
        if let Some(at) = points.iter().position(|point| point.1 > MAX_DELAY) {
            return Err(error(at + 1, TraceFault::TooLong));
        }
        Ok(Delays { name: name.to_owned(), points })
    }

    /// The name given to [`Delays::new`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Time since the first of each, and its delay above the smallest.
    pub fn points(&self) -> &[(Nanos, Nanos)] {
        &self.points
    }

    /// Time after which it repeats.
    pub fn period(&self) -> Nanos {
        self.points.last().map_or(0, |last| last.0)
    }

    /// The largest above the smallest.
    pub fn max(&self) -> Nanos {
        self.points.iter().map(|point| point.1).max().unwrap_or(0)
    }

    /// The delay above the smallest at a time.
    pub(crate) fn at(&self, time: Nanos) -> Nanos {
        let time = time % self.period();
        let after = self.points.partition_point(|point| point.0 <= time);
        let [from, to] = [self.points[after - 1], self.points[after]];
        // A share of one; delays have at most 42 bits.
        let share = (time - from.0) as f64 / (to.0 - from.0) as f64;
        (from.1 as f64 + share * (to.1 as f64 - from.1 as f64)) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_linear_between_and_repeats() {
        let delays =
            Delays::new(vec![(70, 5), (80, 25), (80, 15), (90, 5), (100, 5)], "d").unwrap();
        assert_eq!((delays.period(), delays.max()), (30, 20));
        // Of two at the same time the last stands from then on.
        for (time, delay) in
            [(0, 0), (5, 10), (9, 18), (10, 10), (15, 5), (20, 0), (29, 0), (35, 10)]
        {
            assert_eq!(delays.at(time), delay, "{time}");
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_its_line() {
        let refused =
            |points: &[(Nanos, Nanos)]| Delays::new(points.to_vec(), "d").unwrap_err().to_string();
        assert_eq!(refused(&[]), "d:1: the trace is empty");
        assert_eq!(refused(&[(3, 1)]), "d:1: the trace must last longer than 0 ms");
        assert_eq!(refused(&[(3, 1), (3, 2)]), "d:2: the trace must last longer than 0 ms");
        assert_eq!(refused(&[(3, 1), (4, 1), (2, 1)]), "d:3: timestamps must not decrease");
        let long = refused(&[(3, 1), (4, MAX_DELAY + 2)]);
        assert_eq!(long, "d:2: a delay of more than an hour above the smallest");
    }
}
