//! A trace of any content is read, or refused with the line at fault; what is read can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_net::Trace;

fuzz_target!(|bytes: &[u8]| {
    match Trace::parse(bytes, "fuzz") {
        Ok(trace) => {
            assert!(trace.opportunities() > 0 && trace.period() > 0);
            let _ = trace.mean_rate();
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
