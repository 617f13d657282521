//! Catches panics, with message and place.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once, PoisonError};

use narrows_sim::THREAD;

thread_local! {
    /// During a call of [`catch`] on this thread: the panic's message.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The message of a panic in another thread of a run: its own then panics, too, and says nothing of why.
static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);

/// Calls `f`; a panic becomes an error with its message and place, and prints nothing. So does one
/// that `f` caught itself, as a runtime of tasks does.
pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    // The place of a panic is known to the hook only, and there is one hook for all threads: ours
    // goes before the one that was there, which still sees all other panics.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            let ours = MESSAGE.with_borrow_mut(|message| match message {
                Some(message) => {
                    // The first one: those that follow are of what it left half done.
                    if message.is_empty() {
                        *message = panic.to_string().replace('\n', " ");
                    }
                    true
                }
                None if std::thread::current().name() == Some(THREAD) => {
                    let message = panic.to_string().replace('\n', " ");
                    ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
                    true
                }
                None => false,
            });
            if !ours {
                others(panic);
            }
        }));
    });
    MESSAGE.set(Some(String::new()));
    // Nothing that the panic left half done is looked at again.
    let result = catch_unwind(AssertUnwindSafe(f));
    let message = MESSAGE.take().unwrap_or_default();
    match result {
        Ok(done) if message.is_empty() => Ok(done),
        _ => {
            Err(ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_where() {
        let message = catch(|| -> u32 { panic!("no packet\nleft") }).unwrap_err();
        assert!(message.contains("no packet left"), "{message}");
        assert!(message.contains("panics.rs:"), "{message}");
        assert_eq!(catch(|| 7), Ok(7));
        let message = catch(|| {
            let part = std::thread::Builder::new().name(THREAD.into());
            part.spawn(|| panic!("in a part")).unwrap().join().unwrap();
        });
        assert!(message.unwrap_err().ends_with("in a part"));
        let message = catch(|| {
            let _ = catch_unwind(|| panic!("in a task"));
            let _ = catch_unwind(|| panic!("after it"));
        });
        assert!(message.unwrap_err().ends_with("in a task"));
    }
}
