//! What the worker calls in WebAssembly. It writes a question where [`room`] says, and finds the answer where
//! [`answered`] does; a panic, which ends the instance, is told to the import `panicked`.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    /// The question, then the answer.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// The text of a panic, so many bytes.
    safe fn panicked(text: *const u8, length: usize);
}

/// Room for a question of so many bytes.
#[unsafe(no_mangle)]
extern "C" fn room(length: usize) -> *mut u8 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.to_string();
            panicked(text.as_ptr(), text.len());
        }));
    });
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; length];
        text.as_mut_ptr()
    })
}

/// Answers it: the bytes of the answer.
#[unsafe(no_mangle)]
extern "C" fn answer() -> usize {
    let question = TEXT.take();
    let answer = crate::answer(&String::from_utf8_lossy(&question));
    let length = answer.len();
    TEXT.set(answer.into_bytes());
    length
}

/// Where the answer is.
#[unsafe(no_mangle)]
extern "C" fn answered() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}
