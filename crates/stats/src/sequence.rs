//! Confidence sequences: intervals that hold at all times together, so that one may look as often as one
//! likes, and stop when one sees enough.
//!
//! The boundary is Robbins' normal mixture as an asymptotic confidence sequence (Waudby-Smith, Arbour,
//! Sinha, Kennedy and Ramdas, *Time-uniform central limit theory and asymptotic confidence sequences*,
//! Annals of Statistics 52(6), 2024, Theorem 2.2 and section 3.3; for known variance Howard, Ramdas,
//! McAuliffe and Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, Annals of
//! Statistics 49(2), 2021, equation 14). With n values and an estimate of variance V it is
//!
//! ```text
//! sqrt(V) c,   c² = (1 + 1/x) (ln(1 + x) - 2 ln(alpha)),   x = n rho²
//! ```
//!
//! Asymptotic: it needs some tens of values of each arm before the first look ([`Sequence::LEAST`]).

use libm::{ceil, log, sqrt};

/// The standard normal quantile of 0.9.
const Z_90: f64 = 1.281_551_565_5;

/// A confidence sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    alpha: f64,
    rho2: f64,
}

/// Sums of values of one arm, in one stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// How many values.
    pub n: f64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half the width of the interval.
    pub radius: f64,
}

impl Sums {
    /// Of these values.
    pub fn of(values: &[f64]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|value| sums.add(*value));
        sums
    }

    /// With one more value.
    pub fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// With those of another stratum.
    pub fn join(&mut self, other: &Sums) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }

    /// The variance of the values; 0 of fewer than two.
    pub fn variance(&self) -> f64 {
        if self.n < 2.0 {
            return 0.0;
        }
        let about = self.squares - self.sum * self.sum / self.n;
        (about / (self.n - 1.0)).max(0.0)
    }
}

impl Sequence {
    /// Values of each arm that there must be before anything is said.
    pub const LEAST: f64 = 30.0;
    /// Values of each arm that a stratum of its own must have.
    const STRATUM: f64 = 10.0;

    /// With error probability `alpha`, over all times together, and narrowest near `planned` values.
    pub fn new(alpha: f64, planned: f64) -> Sequence {
        Sequence { alpha, rho2: best_x(alpha) / planned.max(1.0) }
    }

    /// By how many standard errors the estimate may err, with `n` values.
    pub fn boundary(&self, n: f64) -> f64 {
        let x = n * self.rho2;
        sqrt((1.0 + 1.0 / x) * (log(1.0 + x) - 2.0 * log(self.alpha)))
    }

    /// The mean of some values.
    pub fn mean(&self, of: &Sums) -> Option<Estimate> {
        let radius = self.boundary(of.n) * sqrt(of.variance() / of.n);
        (of.n >= Sequence::LEAST).then(|| Estimate { value: of.mean(), radius })
    }

    /// By how much the mean of the second arm is above that of the first, in the mean over strata by their
    /// share of all values (post-stratification: Miratrix, Sekhon and Yu, *Adjusting treatment effect
    /// estimates by post-stratification*, JRSS B 75(2), 2013). Strata that have few of an arm count as one,
    /// and as part of the largest one while that has few, too. None: there are too few in all.
    pub fn difference(&self, strata: &[[Sums; 2]]) -> Option<Estimate> {
        let enough = |pair: &[Sums; 2], least| pair.iter().all(|arm| arm.n >= least);
        let join = |into: &mut [Sums; 2], from: &[Sums; 2]| {
            into.iter_mut().zip(from).for_each(|(into, from)| into.join(from));
        };
        let mut all = [Sums::default(); 2];
        strata.iter().for_each(|one| join(&mut all, one));
        if !enough(&all, Sequence::LEAST) {
            return None;
        }
        let (mut kept, few): (Vec<_>, Vec<_>) =
            strata.iter().copied().partition(|one| enough(one, Sequence::STRATUM));
        let mut rest = [Sums::default(); 2];
        few.iter().for_each(|one| join(&mut rest, one));
        let size = |one: &[Sums; 2]| one[0].n + one[1].n;
        if enough(&rest, Sequence::STRATUM) {
            kept.push(rest);
        } else if let Some(largest) = kept.iter_mut().max_by(|a, b| size(a).total_cmp(&size(b))) {
            join(largest, &rest);
        } else {
            kept.push(all);
        }
        let n = size(&all);
        let effect = |one: &[Sums; 2]| one[1].mean() - one[0].mean();
        let value: f64 = kept.iter().map(|one| size(one) / n * effect(one)).sum();
        let variance: f64 = kept
            .iter()
            .map(|one| {
                let weight = size(one) / n;
                let within = one[0].variance() / one[0].n + one[1].variance() / one[1].n;
                let between = effect(one) - value;
                weight * weight * within + weight * between * between / n
            })
            .sum();
        Some(Estimate { value, radius: self.boundary(n) * sqrt(variance) })
    }

    /// The share `p` of values, as an interval of shares among `n`.
    pub fn share(&self, p: f64, n: f64) -> [f64; 2] {
        let radius = self.boundary(n) * sqrt(p * (1.0 - p) / n);
        [(p - radius).max(0.0), (p + radius).min(1.0)]
    }
}

impl Estimate {
    /// Is 0 outside of the interval?
    pub fn differs(&self) -> bool {
        self.value.abs() > self.radius
    }
}

/// The x at which the boundary is narrowest for what it costs.
fn best_x(alpha: f64) -> f64 {
    let wide = -2.0 * log(alpha);
    wide + log(1.0 + wide)
}

/// How many values both arms need together, so that a difference of means of `effect` is found in 9 of 10
/// trials by then. `deviation` is the standard deviation of values within a stratum, `share` the share of the
/// second arm.
pub fn needed(alpha: f64, effect: f64, deviation: f64, share: f64) -> f64 {
    let x = best_x(alpha);
    let wide = sqrt((1.0 + 1.0 / x) * (log(1.0 + x) - 2.0 * log(alpha))) + Z_90;
    let ratio = wide * deviation / effect;
    ceil(ratio * ratio / (share * (1.0 - share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_that_of_the_paper() {
        // sqrt(2 (t rho² + 1) / (t² rho²) log(sqrt(t rho² + 1) / alpha)), of a variance of one.
        let (alpha, t) = (0.05_f64, 700.0_f64);
        let sequence = Sequence::new(alpha, 1000.0);
        let rho2 = sequence.rho2;
        let inner =
            2.0 * (t * rho2 + 1.0) / (t * t * rho2) * ((t * rho2 + 1.0).sqrt() / alpha).ln();
        assert!((sequence.boundary(t) / t.sqrt() - inner.sqrt()).abs() < 1e-12);
        // Narrowest where it was planned for, in relation to other plans.
        for other in [250.0, 4000.0] {
            assert!(Sequence::new(alpha, other).boundary(1000.0) > sequence.boundary(1000.0));
        }
        assert!(sequence.boundary(1000.0) > 1.96, "looking often has its price");
    }

    #[test]
    fn strata_take_out_what_lies_between_them() {
        // Two kinds of connections, of which the arms have unequal parts: no effect within either.
        let values = |about: f64, n: usize| -> Sums {
            Sums::of(&(0..n).map(|i| about + (i % 7) as f64 / 7.0).collect::<Vec<_>>())
        };
        let strata = [[values(0.0, 700), values(0.0, 70)], [values(9.0, 70), values(9.0, 700)]];
        let sequence = Sequence::new(0.05, 1500.0);
        let apart = sequence.difference(&strata).unwrap();
        assert!(apart.value.abs() < 1e-9 && !apart.differs(), "{apart:?}");
        let mut all = [Sums::default(); 2];
        for one in &strata {
            all[0].join(&one[0]);
            all[1].join(&one[1]);
        }
        assert!(sequence.difference(&[all]).unwrap().differs());
    }

    #[test]
    fn nothing_is_said_of_few() {
        let few = Sums::of(&[1.0; 29]);
        let many = Sums::of(&(0..500).map(f64::from).collect::<Vec<_>>());
        let sequence = Sequence::new(0.05, 100.0);
        assert_eq!(sequence.difference(&[[many, few]]), None);
        assert_eq!(sequence.mean(&few), None);
        // Strata that are too small for one of their own count as one.
        let fifteen = Sums::of(&(0..15).map(f64::from).collect::<Vec<_>>());
        let alone = Sums::of(&[7.0, 8.0]);
        let one = sequence.difference(&[[many, alone], [alone, many], [fifteen, fifteen]]);
        assert!(one.is_some_and(|one| one.radius > 0.0));
    }

    #[test]
    fn a_smaller_effect_needs_more_and_an_even_split_fewer() {
        let at = |effect, share| needed(0.05, effect, 1.0, share);
        assert!((at(0.1, 0.5) / at(0.2, 0.5) - 4.0).abs() < 0.01);
        assert!(at(0.1, 0.05) > 5.0 * at(0.1, 0.5));
    }
}
