//! A capture of any content is read as it comes, with room for few flows: what is told on the way and at
//! its end is of the flows that there are, or an error of one line.
#![no_main]

use std::io::Cursor;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use narrows_detect::{Error, Event, Limits, Part, Stream, begin, detectors};
use narrows_laws::Params;

/// So few that flows take the places of others, also of a packet.
const LIMITS: Limits = Limits { flows: 2, packets: 1, at: None };

fn fits(part: &Part) {
    let Part { recording, found } = part;
    let flows = recording.flows.len();
    assert_eq!((recording.traffic.len(), found.lost.len()), (flows, flows));
    assert_eq!(found.verdicts.len(), flows * flows.saturating_sub(1) / 2);
}

fuzz_target!(|bytes: &[u8]| {
    for detector in detectors(["all"]).expect("known") {
        let (is_capture, from) = begin(Cursor::new(bytes.to_vec())).expect("it is in memory");
        if !is_capture {
            return;
        }
        let stream = Stream::new(detector, &Params::default(), LIMITS).expect("fit");
        let ended = AtomicBool::new(false);
        let mut joined = 0;
        let part = stream.read::<Error>("fuzz", from, &ended, |event| {
            match event {
                Event::Joined { flows, .. } => {
                    joined += 1;
                    assert_eq!(flows.len(), joined);
                }
                Event::Decided { decision, flows } => {
                    assert_eq!((decision.on.places.len(), flows.len()), (joined, joined));
                }
                Event::Second { flows, mbit_per_s, .. } => {
                    assert_eq!((flows.len(), mbit_per_s.len()), (joined, joined));
                }
                Event::Renewed(part) => {
                    fits(part);
                    joined = 0;
                }
            }
            Ok(())
        });
        match part {
            Ok(part) => fits(&part),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
});
