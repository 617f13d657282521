//! What a client of `narrows quic serve` sends on a stream, and the URL that `narrows quic get` is given:
//! read, or refused with one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_transfer::Url;
use narrows_transfer::wire::{MAX_RANGE, MAX_REQUEST, Request};

fuzz_target!(|bytes: &[u8]| {
    match Request::parse(bytes) {
        Ok(Request::Range { offset, length }) => {
            assert!(length <= MAX_RANGE && offset.checked_add(length).is_some());
        }
        Ok(Request::File(name)) => assert!(name.len() <= MAX_REQUEST),
        Err(error) => assert_eq!(error.lines().count(), 1, "{error}"),
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(url) = text.parse::<Url>() {
        assert_eq!(url.to_string().parse(), Ok(url));
    }
});
