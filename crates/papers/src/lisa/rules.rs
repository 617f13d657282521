//! Rules of this paper's claims, besides those that all papers share.

use crate::figures::Interval;
use crate::verdict::{above, near, weakest};
use crate::{Judged, Verdict};

/// A bound that is exceeded at every point.
pub fn all_above(found: &[Option<Interval>], bound: f64) -> Judged {
    weakest(&found.iter().map(|one| above(*one, bound)).collect::<Vec<_>>())
}

/// The same, with the points at which it is not, if they are the fewer: `not at 8, 30`.
pub fn at_each(found: &[(u64, Option<Interval>)], bound: f64) -> Judged {
    let intervals: Vec<_> = found.iter().map(|(_, one)| *one).collect();
    let judged = all_above(&intervals, bound);
    let not = found.iter().filter(|(_, one)| above(*one, bound) != Verdict::Reproduced);
    let not: Vec<String> = not.map(|(at, _)| at.to_string()).collect();
    if not.is_empty() || 2 * not.len() > found.len() {
        return judged;
    }
    judged.and(&format!("not at {}", not.join(", ")))
}

/// A published effect that is no gain: reproduced as by [`near`], and off either way is worse.
pub fn exactly(found: Option<Interval>, published: f64) -> Verdict {
    match near(found, published) {
        Verdict::Better => Verdict::Worse,
        other => other,
    }
}

/// At how many points there is clearly more than 0, and at how many less.
fn sides(found: &[Option<Interval>]) -> (usize, usize) {
    let count = |side| found.iter().filter(|one| above(**one, 0.0) == side).count();
    (count(Verdict::Reproduced), count(Verdict::Worse))
}

/// More than 0 at some points, and at more of them than less than 0, and at more than chance clears: both are counted.
pub fn at_some(found: &[Option<Interval>]) -> Judged {
    let (fewer, more) = sides(found);
    let by_chance = found.len() / 20 + 1;
    let verdict = match fewer.cmp(&more) {
        _ if fewer.max(more) <= by_chance => Verdict::CannotBeTold,
        std::cmp::Ordering::Greater => Verdict::Reproduced,
        std::cmp::Ordering::Less => Verdict::Worse,
        std::cmp::Ordering::Equal => Verdict::CannotBeTold,
    };
    Judged::new(verdict, format!("{fewer} fewer, {more} more of {}", found.len()))
}

/// The size at which a gain is most, the first of several.
pub fn most(by_size: &[(u64, Option<Interval>)]) -> Option<(u64, Interval)> {
    let known = by_size.iter().filter_map(|(size, found)| Some((*size, (*found)?)));
    known.reduce(|most, one| if one.1.mean > most.1.mean { one } else { most })
}

/// A published maximum over sizes, by the size where ours is most.
pub fn at_most(by_size: &[(u64, Option<Interval>)], published: f64) -> Judged {
    match most(by_size) {
        Some((size, found)) => Judged::new(near(Some(found), published), format!("{size} kB")),
        None => Verdict::CannotBeTold.into(),
    }
}

/// No change, in percent: intervals that leave 0 out decide, worse if one is below; without, reproduced if none is
/// wider than 10 to either side.
pub fn no_change(found: &[Option<Interval>]) -> Verdict {
    let bounds = found.iter().map(|one| one.and_then(Interval::bounds)).collect();
    let Some(bounds): Option<Vec<(f64, f64)>> = bounds else { return Verdict::CannotBeTold };
    let clear: Vec<f64> =
        bounds.iter().filter(|(mean, half)| mean.abs() > *half).map(|(mean, _)| *mean).collect();
    if bounds.is_empty() {
        Verdict::CannotBeTold
    } else if clear.iter().any(|mean| *mean < 0.0) {
        Verdict::Worse
    } else if !clear.is_empty() {
        Verdict::Better
    } else if bounds.iter().all(|(_, half)| *half <= 10.0) {
        Verdict::Reproduced
    } else {
        Verdict::CannotBeTold
    }
}

/// No clear trend: those that leave 0 out lie on both sides, at most three quarters on one, or are no more than chance
/// gives, one in twenty and one more.
pub fn no_trend(found: &[Option<Interval>]) -> Judged {
    let (more, less) = sides(found);
    let (clear, one_side) = ((more + less) as f64, more.max(less) as f64);
    let by_chance = found.len() as f64 / 20.0 + 1.0;
    let none = clear <= by_chance || one_side <= 0.75 * clear;
    let verdict = match none {
        _ if found.iter().all(|one| one.and_then(Interval::bounds).is_none()) => {
            Verdict::CannotBeTold
        }
        true => Verdict::Reproduced,
        false if more > less => Verdict::Better,
        false => Verdict::Worse,
    };
    Judged::new(verdict, format!("{more} better, {less} worse of {}", found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mean: f64, half: f64) -> Option<Interval> {
        Some(Interval { mean, half: Some(half) })
    }

    #[test]
    fn a_bound_holds_at_every_point_or_not() {
        let judged = all_above(&[of(3.0, 1.0), of(1.0, 2.0), of(-3.0, 1.0)], 0.0);
        assert_eq!(judged.to_string(), "worse (1 of 3 reproduced)");
    }

    #[test]
    fn the_points_at_which_a_bound_does_not_hold_are_named() {
        let at = [(8, of(0.0, 0.0)), (9, of(3.0, 1.0)), (10, of(9.0, 1.0)), (30, of(1.0, 2.0))];
        let judged = at_each(&at, 0.0);
        assert_eq!(judged.to_string(), "cannot be told (2 of 4 reproduced; not at 8, 30)");
        assert_eq!(at_each(&at[1..2], 0.0).to_string(), "reproduced");
        assert_eq!(at_each(&at[..1], 0.0).to_string(), "cannot be told (0 of 1 reproduced)");
    }

    #[test]
    fn an_effect_that_is_no_gain_is_not_better_where_it_is_more() {
        assert_eq!(exactly(of(60.0, 20.0), 50.0), Verdict::Reproduced);
        assert_eq!(exactly(of(410.0, 20.0), 50.0), Verdict::Worse);
        assert_eq!(exactly(of(-50.0, 20.0), 50.0), Verdict::Worse);
        assert_eq!(exactly(of(40.0, 60.0), 50.0), Verdict::CannotBeTold);
    }

    #[test]
    fn at_some_points_counts_those_against_it() {
        let (fewer, neither, more) = (of(3.0, 1.0), of(1.0, 2.0), of(-3.0, 1.0));
        for (found, judged) in [
            (vec![fewer, fewer, neither], "reproduced (2 fewer, 0 more of 3)"),
            // By chance one in twenty, and one more.
            (vec![fewer, neither, neither], "cannot be told (1 fewer, 0 more of 3)"),
            (vec![fewer, more, more], "worse (1 fewer, 2 more of 3)"),
            (vec![fewer, more, neither], "cannot be told (1 fewer, 1 more of 3)"),
            (vec![None], "cannot be told (0 fewer, 0 more of 1)"),
        ] {
            assert_eq!(at_some(&found).to_string(), judged);
        }
    }

    #[test]
    fn the_most_is_the_first_of_the_largest() {
        let by_size = [(100, of(1.0, 0.5)), (300, of(16.0, 2.0)), (500, of(16.0, 1.0))];
        assert_eq!(at_most(&by_size, 17.0).to_string(), "reproduced (300 kB)");
        assert_eq!(
            at_most(&[(100, None), (300, of(-2.0, 1.0))], 17.0).to_string(),
            "worse (300 kB)"
        );
        assert_eq!(at_most(&[(100, None)], 17.0).to_string(), "cannot be told");
    }

    #[test]
    fn no_change_is_no_wide_interval() {
        for (found, verdict) in [
            (vec![of(1.0, 3.0), of(-2.0, 10.0)], Verdict::Reproduced),
            (vec![of(1.0, 3.0), of(0.0, 11.0)], Verdict::CannotBeTold),
            // Those that leave 0 out decide, however wide another is.
            (vec![of(5.0, 3.0), of(0.0, 11.0)], Verdict::Better),
            (vec![of(5.0, 3.0), of(-5.0, 3.0)], Verdict::Worse),
            (vec![None, of(5.0, 3.0)], Verdict::CannotBeTold),
            (vec![], Verdict::CannotBeTold),
        ] {
            assert_eq!(no_change(&found), verdict, "{found:?}");
        }
    }

    #[test]
    fn a_trend_lies_on_one_side() {
        let (more, neither, less) = (of(3.0, 1.0), of(1.0, 2.0), of(-3.0, 1.0));
        let judged = |parts: &[(Option<Interval>, usize)]| {
            let found = parts.iter().flat_map(|(one, times)| vec![*one; *times]);
            no_trend(&found.collect::<Vec<_>>()).to_string()
        };
        assert_eq!(judged(&[(more, 3), (less, 2)]), "reproduced (3 better, 2 worse of 5)");
        assert_eq!(judged(&[(more, 4), (less, 1)]), "better (4 better, 1 worse of 5)");
        assert_eq!(judged(&[(less, 2), (neither, 3)]), "worse (0 better, 2 worse of 5)");
        // By chance one of twenty leaves 0 out.
        assert_eq!(judged(&[(less, 2), (neither, 18)]), "reproduced (0 better, 2 worse of 20)");
        assert_eq!(judged(&[(None, 3)]), "cannot be told (0 better, 0 worse of 3)");
    }
}
