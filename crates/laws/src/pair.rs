//! What a detector that compares members in pairs knows of two of them.

use crate::raw;

/// What is known of two paths of a connection, or two flows of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The answer in force.
    pub answer: Answer,
    /// Why the newest interval said nothing; none: it gave the answer.
    pub why: Option<Why>,
    /// The end of the newest interval that gave the answer, µs; 0 if there is no answer.
    pub at_us: u64,
    /// How alike the delays of the two were then: the concordance of their changes, from 0 to 1.
    pub concordance: f64,
    /// From how many independent observations, by their autocorrelation.
    pub observations: u32,
}

/// Do two flows share a bottleneck? (`enum nr_answer`)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// That is not known.
    Unsure,
    /// They do.
    Shared,
    /// They do not.
    Separate,
}

/// Why an interval said nothing of two flows (`enum nr_why`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Too few delays of both, or their own sending explains them.
    Few,
    /// The delays do not change.
    Flat,
    /// They are less alike than in one queue, and more than in two.
    Between,
}

impl Answer {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Shared => "shared",
            Answer::Separate => "separate",
            Answer::Unsure => "cannot tell",
        }
    }
}

impl Why {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Why::Few => "too few delays",
            Why::Flat => "no queue",
            Why::Between => "in between",
        }
    }
}

/// The concordance that [`Pair::strength`] takes as that of paths in one queue with noise; at random
/// it is 0.
const ONE_QUEUE: f64 = 0.8;

impl Pair {
    /// An answer without what it was found by.
    pub fn new(answer: Answer) -> Pair {
        Pair { answer, why: None, at_us: 0, concordance: 0.0, observations: 0 }
    }

    /// How far the concordance is from what the other answer would have, in standard deviations: by
    /// Fisher's z, atanh(concordance), whose deviation is about 1 / sqrt(observations + 1). Of shared
    /// from 0, of separate from 0.8.
    pub fn strength(&self) -> f64 {
        // Not 1, of which there is none; what is below 0 is no more than separate.
        let z = self.concordance.clamp(0.0, 1.0 - 1.0 / f64::from(1 << 16)).atanh();
        let away = if self.answer == Answer::Shared { z } else { ONE_QUEUE.atanh() - z };
        away * (f64::from(self.observations) + 1.0).sqrt()
    }

    /// How likely the answer is right, as measured: docs/method/xcorr.md, How sure an answer is. None without an
    /// answer.
    pub fn confidence(&self) -> Option<f64> {
        match self.answer {
            Answer::Unsure => None,
            Answer::Shared if self.observations > 0 && self.strength() >= 5.5 => Some(0.999),
            Answer::Shared => Some(0.99),
            Answer::Separate => Some(0.95),
        }
    }

    /// From `struct nr_pair`, with intervals of `t_us` that are counted from `origin_us`.
    pub(crate) fn unpack(pair: &raw::Pair, origin_us: u64, t_us: u64) -> Pair {
        let answer = match pair.answer {
            0 => Answer::Unsure,
            1 => Answer::Shared,
            _ => Answer::Separate,
        };
        let why = match pair.why {
            0 => Some(Why::Few),
            1 => Some(Why::Flat),
            2 => Some(Why::Between),
            _ => None,
        };
        let at_us = match pair.stamp {
            0 => 0,
            stamp => origin_us + u64::from(stamp) * t_us,
        };
        let concordance = f64::from(pair.alike) / f64::from(1 << 15);
        Pair { answer, why, at_us, concordance, observations: pair.count.into() }
    }
}
