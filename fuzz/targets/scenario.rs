//! A scenario file of any content is read, or refused with one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_lab::{Edits, describe, host, parse};

fuzz_target!(|text: &str| {
    match parse(text, &Edits::default()) {
        Ok(scenario) => assert!(!describe(&scenario, host("sim").expect("always there")).is_empty()),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
