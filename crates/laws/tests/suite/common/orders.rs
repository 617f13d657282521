//! All orders of events.

use std::fmt::Debug;

/// Takes each step after each other, from a state on, until `left` are taken; `steps` are those that were before.
pub fn all_orders<State: Clone, Step: Copy + Debug>(
    from: &State,
    of: &[Step],
    steps: &mut Vec<Step>,
    left: usize,
    take: fn(&mut State, Step) -> Result<(), String>,
) {
    for &step in of {
        let mut state = from.clone();
        steps.push(step);
        if let Err(error) = take(&mut state, step) {
            panic!("after {steps:?}: {error}");
        }
        if left > 1 {
            all_orders(&state, of, steps, left - 1, take);
        }
        steps.pop();
    }
}
