//! A capture of any content is read as far as it can be: pcap, pcapng, plain or packed; what is read
//! is in the order of time, and the detector takes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_detect::{Detection, Error, Input, Source};
use narrows_laws::{Detector, Params};

fuzz_target!(|bytes: &[u8]| {
    match Source::open(Input::bytes("fuzz", bytes), None, 64) {
        Ok(source) => {
            let mut newest = 0;
            let measured = source.measure::<Error>(|told| {
                assert!(told.now_us >= newest && told.flow < source.flows().len());
                newest = told.now_us;
                Ok(())
            });
            measured.expect("what was read once");
            let detection = Detection::new(&source, Detector::SSC, &Params::default());
            detection.expect("fit").run::<Error>(None, |_| Ok(())).expect("what was read once");
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
