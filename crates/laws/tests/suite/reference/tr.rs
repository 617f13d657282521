//! arXiv:1812.05816, section 4.3, in batches and floating point, line by line from the paper; its
//! slips can be put back one by one.

/// What the paper gives numbers for. Times in ms.
#[derive(Clone, Copy, Debug)]
pub struct Tr {
    /// Weight of the new delay in the smoothed one.
    pub alpha: f64,
    /// Largest gap between groups that may be one.
    pub gap: f64,
    /// Largest difference of two slopes, relative to the larger.
    pub eps: f64,
    /// Largest gap between two paths' groups.
    pub tau: f64,
    /// Slopes up to this match nothing, ms/s. The authors' code has it, the paper does not.
    pub slope_min: f64,
    /// As the paper prints it.
    pub slips: Slips,
}

/// What is wrong in the paper's print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slips {
    /// Algorithm 2, line 7: the gap is that of the delays.
    pub gap_of_delays: bool,
    /// Algorithm 2, lines 5 and 17: the last group is left out.
    pub last_group_dropped: bool,
    /// Equation 17: the first time is subtracted on top of the mean.
    pub centred_twice: bool,
}

impl Default for Tr {
    fn default() -> Tr {
        Tr {
            alpha: 0.9,
            gap: 50.0,
            eps: 0.2,
            tau: 1000.0,
            slope_min: 10.0,
            slips: Slips::default(),
        }
    }
}

/// A sample: when, and the delay, both in ms.
pub type Point = (f64, f64);

/// A merged group and its line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// ms of delay per s.
    pub slope: f64,
    /// Time of its first sample, ms.
    pub from: f64,
    /// Time of its last sample, ms.
    pub to: f64,
    /// Its samples.
    pub points: usize,
}

impl Tr {
    /// Equation 16.
    fn smoothed(&self, samples: &[Point]) -> Vec<Point> {
        let mut s = samples[0].1;
        let smooth = |&(t, delay): &Point| {
            s = self.alpha * delay + (1.0 - self.alpha) * s;
            (t, s)
        };
        samples.iter().map(smooth).collect()
    }

    /// Algorithm 1: runs of samples that are not below the one before them.
    fn groups(smoothed: &[Point]) -> Vec<Vec<Point>> {
        let mut groups: Vec<Vec<Point>> = Vec::new();
        let mut last_index = 0;
        for i in 1..smoothed.len() {
            if smoothed[i].1 >= smoothed[i - 1].1 {
                if groups.is_empty() || i - last_index > 1 {
                    groups.push(Vec::new());
                }
                groups.last_mut().unwrap().push(smoothed[i]);
                last_index = i;
            }
        }
        groups
    }

    /// Algorithm 2.
    fn merged(&self, groups: &[Vec<Point>]) -> Vec<Vec<Point>> {
        let joins_next = |i: usize| {
            let (last, next) = (groups[i][groups[i].len() - 1], &groups[i + 1]);
            let mean = next.iter().map(|point| point.1).sum::<f64>() / next.len() as f64;
            let gap =
                if self.slips.gap_of_delays { next[0].1 - last.1 } else { next[0].0 - last.0 };
            last.1 < mean && gap < self.gap
        };
        let count = groups.len() - usize::from(self.slips.last_group_dropped && !groups.is_empty());
        let mut merged: Vec<Vec<Point>> = Vec::new();
        let mut joined = false;
        for i in 0..count {
            if !joined {
                merged.push(Vec::new());
            }
            merged.last_mut().unwrap().extend(&groups[i]);
            joined = i + 1 < groups.len() && joins_next(i);
        }
        merged
    }

    /// Equation 17.
    fn slope(&self, group: &[Point]) -> f64 {
        let n = group.len() as f64;
        let mean_x = group.iter().map(|point| point.0).sum::<f64>() / n;
        let mean_y = group.iter().map(|point| point.1).sum::<f64>() / n;
        let origin = mean_x + if self.slips.centred_twice { group[0].0 } else { 0.0 };
        let xy: f64 = group.iter().map(|(x, y)| (x - origin) * (y - mean_y)).sum();
        let xx: f64 = group.iter().map(|(x, _)| (x - origin) * (x - origin)).sum();
        if xx == 0.0 { 0.0 } else { 1000.0 * xy / xx }
    }

    /// The line through the longest group of one period's samples; of equal ones the first. Times
    /// are since the period began.
    pub fn longest(&self, samples: &[Point]) -> Option<Line> {
        if samples.is_empty() {
            return None;
        }
        let merged = self.merged(&Self::groups(&self.smoothed(samples)));
        let longest = merged.iter().rev().max_by_key(|group| group.len())?;
        Some(Line {
            slope: self.slope(longest),
            from: longest[0].0,
            to: longest[longest.len() - 1].0,
            points: longest.len(),
        })
    }

    /// Algorithm 3.
    pub fn shared(&self, a: &Line, b: &Line) -> bool {
        let (s, e) = (a.from.max(b.from), a.to.min(b.to));
        if e < s && s - e > self.tau {
            return false;
        }
        let error = (a.slope - b.slope).abs() / a.slope.max(b.slope);
        a.slope.min(b.slope) > self.slope_min && error <= self.eps
    }
}
