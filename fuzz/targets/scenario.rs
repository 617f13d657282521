//! A scenario file of any content is read, or refused with one line; what is read can be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_lab::{Edits, describe, host, parse};

fuzz_target!(|text: &str| {
    match parse(text, &Edits::default()) {
        Ok(scenario) => {
            let told = describe(&scenario, host("sim").expect("always there"), None);
            assert!(!told.is_empty());
            let text = scenario.text();
            let again = parse(&text, &Edits::default()).expect("what was read can be read again");
            assert_eq!(again.text(), text);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
