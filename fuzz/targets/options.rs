//! What `--set`, `--sweep` and `--cc` are given, and each quantity: read, or refused with one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_lab::units::{BitRate, Bytes, PacketRate, Packets, Queue, Share, Time};
use narrows_lab::{Algorithm, Edits, Sweep, load};

fn one_line<T>(result: Result<T, impl ToString>) -> Option<T> {
    result.map_err(|error| assert_eq!(error.to_string().lines().count(), 1)).ok()
}

fuzz_target!(|text: &str| {
    if let Some((field, value)) = text.split_once('=') {
        let edits = Edits { set: vec![(field.into(), value.into())], traces: vec![] };
        one_line(load("phone/wifi-lte", &edits));
    }
    if let Ok(sweep) = text.parse::<Sweep>() {
        assert!(sweep.values.len() >= 2 && sweep.values[0] != sweep.values[1], "{sweep:?}");
    }
    let _ = text.parse::<Algorithm>();
    let _ = text.parse::<Time>();
    let _ = text.parse::<BitRate>();
    let _ = text.parse::<Bytes>();
    let _ = text.parse::<Packets>();
    let _ = text.parse::<PacketRate>();
    let _ = text.parse::<Share>();
    let _ = text.parse::<Queue>();
});
