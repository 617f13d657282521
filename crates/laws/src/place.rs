//! Where a detector has placed a member, and how far its observations agree with that.

/// The place of a path in an observation or decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// In a group of paths that share a bottleneck, perhaps alone; the number only names the group.
    Group(u8),
    /// Not congested.
    Clear,
    /// Nothing is known, or not enough.
    Undecided,
}

/// The share of the observations, each the places of all members, in which `member` has the place of
/// `places`; in a group with others, that have both together, the mean over the others. 0: undecided.
pub(crate) fn agreement<'a>(
    observed: impl Iterator<Item = &'a [Place]> + Clone,
    places: &[Place],
    member: usize,
) -> f64 {
    let others = |of: &[Place]| -> Vec<usize> {
        (0..of.len()).filter(|&other| other != member && of[other] == of[member]).collect()
    };
    let share = |seen: &dyn Fn(&[Place]) -> Option<bool>| {
        let seen: Vec<bool> = observed.clone().filter_map(seen).collect();
        match seen.len() {
            0 => 0.0,
            n => seen.iter().filter(|seen| **seen).count() as f64 / n as f64,
        }
    };
    let placed = |of: &[Place], member: usize| of[member] != Place::Undecided;
    let grouped = |of: &[Place]| matches!(of[member], Place::Group(_));
    match (places[member], others(places)) {
        (Place::Undecided, _) => 0.0,
        (Place::Clear, _) => share(&|of| placed(of, member).then_some(of[member] == Place::Clear)),
        (Place::Group(_), alone) if alone.is_empty() => {
            share(&|of| placed(of, member).then(|| grouped(of) && others(of).is_empty()))
        }
        (Place::Group(_), others) => {
            let with = |other: usize| {
                share(&|of| {
                    let both = placed(of, member) && placed(of, other);
                    both.then(|| grouped(of) && of[member] == of[other])
                })
            };
            others.iter().map(|&other| with(other)).sum::<f64>() / others.len() as f64
        }
    }
}
