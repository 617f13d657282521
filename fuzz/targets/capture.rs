//! A capture of any content is read as far as it can be: pcap, pcapng, plain or packed; what is read
//! is in the order of time, and the detectors take it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_detect::{Detection, Error, Input, Limits, Source, detectors};
use narrows_laws::Params;

/// All flows, also of a packet.
const LIMITS: Limits = Limits { flows: 64, packets: 1, at: None };

fuzz_target!(|bytes: &[u8]| {
    match Source::open(Input::bytes("fuzz", bytes), None, LIMITS) {
        Ok(source) => {
            let mut newest = 0;
            let measured = source.measure::<Error>(|told| {
                assert!(told.now_us >= newest && told.flow < source.recording().flows.len());
                newest = told.now_us;
                Ok(())
            });
            measured.expect("what was read once");
            for detector in detectors(["all"]).expect("known") {
                let detection = Detection::new(&source, detector, &Params::default());
                let found = detection.expect("fit").run::<Error>(&mut [], |_| Ok(()));
                let flows = source.recording().flows.len();
                let pairs = flows * flows.saturating_sub(1) / 2;
                assert_eq!(found.expect("what was read once").verdicts.len(), pairs);
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
