//! A qlog of any content, with another behind an empty line, is read, or refused with one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_detect::{Error, Input, Limits, Source};

/// All paths, also of a packet.
const LIMITS: Limits = Limits { flows: 64, packets: 1, at: None };

fuzz_target!(|text: &str| {
    let logs = text.split("\n\n").take(2).map(|text| Input::bytes("qlog", text.as_bytes()));
    match Source::logs(logs.collect(), LIMITS) {
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
