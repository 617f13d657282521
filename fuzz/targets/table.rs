//! A table of delays of any content, with its losses behind an empty line, is read, or refused with
//! one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_detect::{Error, Input, Limits, Source};

/// All flows, also of a packet.
const LIMITS: Limits = Limits { flows: 64, packets: 1, at: None };

fuzz_target!(|text: &str| {
    let (table, losses) = text.split_once("\n\n").map_or((text, None), |(a, b)| (a, Some(b)));
    let losses = losses.map(|text| Input::bytes("losses", text.as_bytes()));
    match Source::open(Input::bytes("table", table.as_bytes()), losses, LIMITS) {
        Ok(source) => {
            let mut newest = 0;
            let measured = source.measure::<Error>(|told| {
                assert!(told.now_us >= newest && told.flow < source.recording().flows.len());
                newest = told.now_us;
                Ok(())
            });
            measured.expect("what was read once");
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
