//! A fault of the program in one run must not take the results of all others with it: panics are
//! caught and become errors.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::Error;
use crate::algorithm::Algorithm;
use crate::recorder::Run;
use crate::scenario::Scenario;

thread_local! {
    /// While a call of [`caught`] is under way on this thread: what its panic said.
    static TOLD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does a run of `scenario` with `seed`, where `control` replaces that of the connection under test; a
/// panic in it becomes [`Error::Fault`].
pub fn caught_run(
    scenario: &Scenario,
    control: Option<Algorithm>,
    seed: u64,
    run: impl FnOnce() -> Result<Run, Error>,
) -> Result<Run, Error> {
    caught(run).unwrap_or_else(|message| {
        let control = control.or(scenario.test.and_then(|test| scenario.flows[test].control));
        let cc = control.map_or("-".into(), |control| control.to_string());
        Err(Error::Fault { scenario: scenario.name.clone(), cc, seed, message })
    })
}

/// Calls `f`; a panic in it becomes an error that says what it said and where, and prints nothing.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    // The place of a panic is known to the hook only, and there is one hook for all threads: ours
    // goes before the one that was there, which still sees all other panics.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            let ours = TOLD.with_borrow_mut(|told| match told {
                Some(told) => {
                    *told = panic.to_string().replace('\n', " ");
                    true
                }
                None => false,
            });
            if !ours {
                others(panic);
            }
        }));
    });
    TOLD.set(Some(String::new()));
    // Nothing that the panic left half done is looked at again.
    let result = catch_unwind(AssertUnwindSafe(f));
    let told = TOLD.take().unwrap_or_default();
    result.map_err(|_| told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_where() {
        let told = caught(|| -> u32 { panic!("no packet\nleft") }).unwrap_err();
        assert!(told.contains("no packet left"), "{told}");
        assert!(told.contains("caught.rs:"), "{told}");
        assert_eq!(caught(|| 7), Ok(7));
    }
}
