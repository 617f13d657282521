//! Claims that stop at fewer seeds once they are settled.
//!
//! A claim is judged after a quarter and after half of its seeds, in their order, and then with all. Before the end its
//! intervals are at 99.9 % (and equal values settle nothing), at the end at 95.2 % (the rule of Haybittle, British Journal of Radiology 44, 1971, and of Peto et
//! al., British Journal of Cancer 34, 1976, with what the looks before cost taken off the last): that one of them misses the
//! truth is at most 0.1 + 0.1 + 4.8 = 5 % likely, as of one look at 95 %, whatever the looks have in common.
//!
//! It is settled where its verdicts with these intervals are those of the means alone, and none is open. So a verdict that
//! a wider interval makes easier, that 0 may be the truth, is never settled early. The number of seeds depends on the runs
//! alone, and not on how many run at a time.

use narrows_lab::Error;

use crate::Verdict;
use crate::figures::{EARLY, at};

/// The table whose claims can stop before all seeds: of this paper, this name.
pub const ADAPTIVE: (&str, &str) = ("sbd", "claims");

/// Confidence of intervals at the last look.
const LAST: f64 = 0.952;

/// Seeds at a look: Student's t of fewer settles nothing.
const LEAST: u64 = 5;

/// After how many of its seeds a claim is judged.
fn looks(all: u64) -> impl Iterator<Item = u64> {
    [all / 4, all / 2].into_iter().filter(|seeds| *seeds >= LEAST).chain([all])
}

/// What is made of as many seeds as settle its verdicts, at most of all, and of how many.
///
/// # Errors
/// Of making it.
pub fn settled<T>(
    all: u64,
    make: impl Fn(u64) -> Result<T, Error>,
    verdicts: impl Fn(&T) -> Vec<Verdict>,
) -> Result<(T, u64), Error> {
    for seeds in looks(all).filter(|seeds| *seeds < all) {
        let found = at(EARLY, || make(seeds))?;
        let judged = verdicts(&found);
        let open = judged.is_empty() || judged.contains(&Verdict::CannotBeTold);
        if !open && judged == verdicts(&at(0.0, || make(seeds))?) {
            return Ok((found, seeds));
        }
    }
    Ok((at(LAST, || make(all))?, all))
}

#[cfg(test)]
mod tests {
    use narrows_net::rng::{self, Xoshiro256PlusPlus};

    use super::*;
    use crate::figures::Interval;
    use crate::verdict::{Side, about, above, near};

    /// Sums of three uniform numbers, of a mean and a deviation: near enough to what runs give.
    fn drawn(rng: &mut Xoshiro256PlusPlus, mean: f64, n: u64) -> Vec<f64> {
        let mut one = || (0..3).map(|_| rng::uniform_f64(rng) - 0.5).sum::<f64>() * 2.0;
        (0..n).map(|_| mean + one()).collect()
    }

    /// Of so many claims with 20 seeds whose truth is `mean`: the share of each verdict, and the seeds that they take.
    fn judged(
        mean: f64,
        rule: fn(Option<Interval>) -> Verdict,
        judge: impl Fn(&dyn Fn(u64) -> Result<Verdict, Error>) -> (Verdict, u64),
    ) -> (impl Fn(Verdict) -> f64, f64) {
        const CLAIMS: u64 = 5000;
        let mut rng = rng::stream(7, 0);
        let one = |_| {
            let values = drawn(&mut rng, mean, 20);
            judge(&|n| Ok(rule(Interval::of(&values[..n as usize]))))
        };
        let all: Vec<(Verdict, u64)> = (0..CLAIMS).map(one).collect();
        let seeds = all.iter().map(|(_, seeds)| *seeds as f64).sum::<f64>() / CLAIMS as f64;
        let share =
            move |verdict| all.iter().filter(|one| one.0 == verdict).count() as f64 / CLAIMS as f64;
        (share, seeds)
    }

    fn by_rule(make: &dyn Fn(u64) -> Result<Verdict, Error>) -> (Verdict, u64) {
        settled(20, make, |one| vec![*one]).unwrap()
    }

    fn bound(found: Option<Interval>) -> Verdict {
        above(found, 0.0)
    }

    #[test]
    fn claims_on_their_bound_are_decided_no_more_often_than_at_one_look() {
        let decided =
            |share: &dyn Fn(Verdict) -> f64| share(Verdict::Reproduced) + share(Verdict::Worse);
        let once = decided(&judged(0.0, bound, |make| (make(20).unwrap(), 20)).0);
        let found = decided(&judged(0.0, bound, by_rule).0);
        // Three deviations of so many claims; the draws are the same.
        assert!(found < 0.05 + 0.009 && found < once + 0.005, "{found}, and at one look {once}");
        // Whoever looks as often and stops at the first decision at 95 %.
        let often = |make: &dyn Fn(u64) -> Result<Verdict, Error>| {
            let mut each = looks(20).map(|seeds| make(seeds).unwrap());
            let first = each.find(|one| *one != Verdict::CannotBeTold);
            (first.unwrap_or(Verdict::CannotBeTold), 20)
        };
        assert!(decided(&judged(0.0, bound, often).0) > 0.08);
        let level = |found| about(found, 0.5, 0.5, Side::More);
        let found = decided(&judged(0.0, level, by_rule).0);
        assert!(found < 0.059, "at the edge of a range: {found}");
    }

    #[test]
    fn a_share_that_is_1_in_the_first_runs_settles_nothing() {
        let mut few = vec![1.0; 20];
        few[12] = 0.2;
        let of = |values: Vec<f64>| {
            let make =
                |n: u64| Ok(about(Interval::of(&values[..n as usize]), 0.97, 0.05, Side::More));
            settled(20, make, |one| vec![*one]).unwrap()
        };
        assert_eq!(of(few).1, 20);
        assert_eq!(of(vec![1.0; 20]), (Verdict::Reproduced, 20));
    }

    #[test]
    fn what_is_clear_takes_fewer_seeds_and_what_is_not_takes_all() {
        let (share, seeds) = judged(8.0, bound, by_rule);
        assert!(share(Verdict::Reproduced) == 1.0 && seeds < 6.0, "{seeds}");
        let (_, seeds) = judged(0.0, bound, by_rule);
        assert!(seeds > 19.9, "{seeds}");
        // That an interval has the published value is no news early on.
        let (share, seeds) = judged(2.0, |found| near(found, 2.0), by_rule);
        assert!(seeds > 19.9 && share(Verdict::Reproduced) > 0.93, "{seeds}");
    }

    #[test]
    fn few_seeds_are_looked_at_once() {
        assert_eq!(looks(20).collect::<Vec<_>>(), [5, 10, 20]);
        assert_eq!(looks(10).collect::<Vec<_>>(), [5, 10]);
        assert_eq!(looks(3).collect::<Vec<_>>(), [3]);
    }
}
